"""A tree that grows under a penalty on its distance to a given tree (a part of a study)."""

import importlib.util
import pathlib
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import steadytree as st

FOLDER = pathlib.Path(__file__).parents[2] / "studies" / "tree_distance"


@pytest.fixture
def grow_near(monkeypatch):
    """The study's learner; other studies have modules of the same names."""
    for name in ("frontier", "methods", "tables"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(FOLDER)
    spec = importlib.util.spec_from_file_location("regulariser", FOLDER / "regulariser.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module.grow_near
    for name in ("frontier", "methods", "tables"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def objective(tree, before, mu, X, y):
    loss = -np.log(tree.predict_proba(X)[np.arange(len(y)), y]).mean()
    return loss + mu * float(st.tree_distance(tree, before, space=X))


def test_the_penalty_brings_trees_nearer(grow_near):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((300, 3)), columns=list("abc"))
    y = ((X["a"] > 0.5) ^ (X["b"] > 0.7) ^ (rng.random(300) < 0.1)).to_numpy().astype(int)
    first = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X[:100], y[:100])
    before = st.as_tree(first, X)
    weights = (0.0, 0.02, 1.0)
    trees = [grow_near(X, y, before, mu, max_leaves=5) for mu in weights]
    far = [float(st.tree_distance(tree, before, space=X)) for tree in trees]
    assert far[0] > far[2]
    for mu, own in zip(weights, trees, strict=True):  # each is best for its own weight
        least = objective(own, before, mu, X, y)
        assert least <= min(objective(tree, before, mu, X, y) for tree in trees) + 1e-9
