"""Every learner finds the same trees and cards as before: in memory, from files and in Dask."""

import numpy as np
import pandas as pd
import pytest

import steadytree as st
from tests.golden.golden_data import MAKERS, schema_of
from tests.golden.golden_models import card_line, lines, tree_line

STABLE = {
    "greedy": {"epsilon": 0},
    "published": {"criterion": "count", "merge_leaves": True},
    "as is": {},
    "gini": {"epsilon": 0, "criterion": "gini", "grid": "quantile", "n_thresholds": 20},
    "few levels": {"epsilon": 0.3, "criterion": "gini", "max_depth": 3, "n_thresholds": 50},
    "rejection": {"epsilon": 0.2, "coupling": "rejection"},
    "midpoint": {"epsilon": 0.1, "grid": "midpoint", "min_samples_leaf": 4},
}
CARDS = {
    "plain": ("majority", 0.05, {"gamma": 0.01, "n_rounds": 6}),
    "up": (
        "majority",
        0.02,
        {"gamma": 0.02, "n_rounds": 8, "directions": "up", "max_conditions": 4},
    ),
    "logistic": ("logistic", 0.02, {}),
}


@pytest.fixture(params=MAKERS)
def rows(request):
    return request.param, MAKERS[request.param]()


def stable(**changes):
    return st.StableTreeClassifier(**{"max_depth": 4, "random_state": 3, **changes})


def test_trees_and_cards_in_memory(rows, golden):
    name, (X, y, weight) = rows
    found = {}
    for setting, changes in STABLE.items():
        model = stable(**changes).fit(X, y, weight)
        found[f"stable, {setting}"] = tree_line(model)
    previous = stable(epsilon=0, max_depth=2).fit(X[::2], y[::2])
    near = st.RetrainedTreeClassifier(previous, n_repeats=1).fit(X, y, weight)
    found["retrained"] = tree_line(near)
    pareto = st.ParetoTreeClassifier(n_trees=6, random_state=0).fit(X, y)
    found["pareto"] = tree_line(pareto)
    for setting, perturbation in (
        ("each row", st.Perturbation(radius=0.5)),
        ("all rows", st.Perturbation(step_cost=1.0, budget=0.1, scope="mean")),
    ):
        settings = {"n_thresholds": 3, "cuts": cuts_of(X), "random_state": 0}
        model = st.RobustTreeClassifier(2, perturbation, 600, 0.01, **settings)
        found[f"robust, {setting}"] = tree_line(model.fit(X, y, weight))
    for setting, (objective, noise, changes) in CARDS.items():
        learner = st.RiskScoreClassifier(objective, noise, random_state=0, **changes)
        model = learner.fit(X, y, weight)
        found[f"card, {setting}"] = card_line(model)
    golden(f"trees-{name}.txt", lines(found))


def cuts_of(X):
    """Three thresholds for each column of numbers, so that the search ends soon."""
    numeric = [name for name in X.columns if pd.api.types.is_numeric_dtype(X[name])]
    return {
        name: np.unique(np.quantile(X[name].dropna(), [0.3, 0.5, 0.7]).round(2) + 0.001).tolist()
        for name in numeric
    }


def test_searches_of_default_settings(golden):
    """Those that take a second each: on one set only."""
    X, y, _ = MAKERS["iris"]()
    ahead = stable(epsilon=0, lookahead=2, n_thresholds=6, grid="quantile", max_depth=3)
    ahead.set_params(criterion="count", merge_leaves=True)
    found = {"stable, two levels at once, iris": tree_line(ahead.fit(X, y))}
    X, y, weight = MAKERS["tumours"]()
    votes = st.RiskScoreClassifier("majority", "1se", random_state=0)
    found["card, tumours"] = card_line(votes.fit(X, y))
    found["bands, tumours"] = card_line(st.RiskScoreClassifier().fit(X, y))
    X, y, weight = MAKERS["mushrooms"]()
    found["card, mushrooms"] = card_line(votes.fit(X, y, weight))
    found["bands, mushrooms"] = card_line(st.RiskScoreClassifier().fit(X, y, weight))
    golden("trees-default.txt", lines(found))


def test_private_trees_of_seeded_noise(rows, golden):
    pytest.importorskip("opendp")
    name, data = rows
    X, y, _ = data
    found = {}
    for method in ("gibbs", "greedy", "topdown"):
        model = st.PrivateTreeClassifier(2.0, schema_of(data), method, testing_seed=3)
        found[f"private, {method}"] = tree_line(model.fit(X, y))
    golden(f"trees-private-{name}.txt", lines(found))


def test_trees_from_files_and_in_dask(rows, golden, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    dask = pytest.importorskip("dask")
    frames = pytest.importorskip("dask.dataframe")
    name, (X, y, _) = rows
    table = arrow.Table.from_pandas(X.assign(label=y), preserve_index=False)
    for part in range(2):
        half = table.slice(part * 60, 60 if part == 0 else None)
        parquet.write_table(half, tmp_path / f"{part}.parquet", row_group_size=25)
    far = frames.from_pandas(X, npartitions=3), frames.from_pandas(pd.Series(y), npartitions=3)
    found = {}
    with dask.config.set(scheduler="synchronous"):
        for setting, changes in STABLE.items():
            model = stable(**changes)
            found[f"files, {setting}"] = tree_line(model.fit_files(tmp_path, "label"))
            found[f"dask, {setting}"] = tree_line(model.fit(*far))
    golden(f"trees-far-{name}.txt", lines(found))
