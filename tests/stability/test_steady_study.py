"""The study of the steady tree: peers' trees over raw columns, intervals, tables."""

import importlib.util
import pathlib
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from steadytree.data.feature_space import FeatureSpace

FOLDER = pathlib.Path(__file__).parents[2] / "studies" / "steady"


@pytest.fixture
def study(monkeypatch):
    """Modules of the study by name; other studies have modules of the same names."""
    own = ("data", "peers", "methods", "tables")
    for name in own:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(FOLDER)

    def load(name):
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return {name: load(name) for name in own}


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_over_encoded_columns_decides_the_same_over_raw_ones(study, seed):
    random = np.random.default_rng(seed)
    n = 300
    X = pd.DataFrame(
        {
            "age": np.where(random.random(n) < 0.1, np.nan, random.integers(20, 80, n)),
            "site": random.choice(["north", "south", "west", None], n),
            "dose": random.normal(size=n).round(2),
        }
    )
    y = (X["age"].fillna(0).to_numpy() > 40) ^ (X["site"] == "south").to_numpy()
    y = np.where(random.random(n) < 0.2, 2, y.astype(int))
    encoded = study["data"].Encoded(X)
    model = DecisionTreeClassifier(max_leaf_nodes=12, random_state=0).fit(encoded.numbers, y)
    nodes = study["methods"]._nodes(model, 3)
    tree = encoded.tree(FeatureSpace.observe(X), np.arange(3), nodes)
    np.testing.assert_allclose(
        tree.predict_proba(X), model.predict_proba(encoded.numbers), atol=1e-12
    )


def test_the_interval_widens_with_the_overlap_of_folds(study):
    differences = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    plain = 2.776445 * differences.std(ddof=1)
    assert study["tables"].interval(differences) == pytest.approx(plain * np.sqrt(1 / 5 + 1 / 4))


def cell(method, accuracy, changed, name="one", repeat=0):
    shares = {"accuracy": [accuracy] * 5, "auc": [accuracy] * 5, "loss": [0.5] * 5}
    numbers = {"changed": changed, "distance": 2.0, "size": 8.0, "seconds": 0.1}
    return {"set": name, "method": method, "leaves": 8, "repeat": repeat, **shares, **numbers}


def test_the_tables_have_differences_ratios_and_what_is_beyond_the_limits(study):
    text = study["tables"].report([cell("cart", 0.8, 0.1), cell("steady", 0.75, 0.2)], False)
    ratio = (0.2 + 0.002) / (0.1 + 0.002)
    assert f"| 1 | 8 | -5.00 | -0.0500 | x {ratio:.2f} | x 1.00 |" in text
    assert "- one, 8 leaves: changed 0.100 -> 0.200" in text
    assert "- one, 8 leaves: accuracy -0.050 ± 0.000" in text
