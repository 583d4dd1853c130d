"""Retraining near a previous tree."""

import numpy as np
import pandas as pd
import pytest

from steadytree.stability.pareto_tree import ParetoTreeClassifier
from steadytree.stability.stable_tree import StableTreeClassifier


def rows_that_lack_a_column(n=120):
    """Rows where the label is mostly whether `dose` is missing and `age` above 40."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 90, n).astype(float),
            "dose": rng.random(n).round(2),
            "ward": rng.choice(["A", "B"], n).astype(object),
        }
    )
    X.loc[rng.random(n) < 0.4, "dose"] = np.nan
    X.loc[rng.random(n) < 0.4, "ward"] = None
    y = (X["dose"].isna() & (X["age"] > 40)).to_numpy() ^ (rng.random(n) < 0.1)
    return X, y.astype(int)


FORMS = {
    "frame": lambda X: X,
    "array": lambda X: X.to_numpy(dtype=object),
    "numbers": lambda X: X[["age", "dose"]].to_numpy(),
    "list": lambda X: X[["age", "dose"]].to_numpy().tolist(),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_below_a_node_may_lack_every_value_of_a_column(form):
    X, y = rows_that_lack_a_column()
    given = FORMS[form](X)
    old = StableTreeClassifier(max_depth=1, epsilon=0, random_state=0)
    old.fit(given, X["dose"].isna().astype(int))
    assert old.tree_.feature.tolist() == [1, -1, -1]  # the rows of one leaf lack every dose
    near = StableTreeClassifier(max_depth=3, epsilon=0, previous=old, random_state=0)
    assert near.fit(given, y).score(given, y) > 0.7
    pareto = ParetoTreeClassifier(n_trees=4, previous=old, random_state=0)
    assert pareto.fit(given, y).score(given, y) > 0.7


def test_a_bootstrap_sample_may_lack_every_value_of_a_column():
    X, y = rows_that_lack_a_column()
    X["rare"] = [1.0, 2.0] + [np.nan] * (len(X) - 2)
    model = ParetoTreeClassifier(n_trees=20, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7
