"""Procedures are compared by what their trees decide."""

from dataclasses import replace

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

from steadytree.data.feature_space import FeatureSpace
from steadytree.distance.path import path_distance
from steadytree.models.boxes import rebase
from steadytree.models.sklearn import as_tree
from steadytree.stability.refits import changed_answers, mean_distance, usual_procedures
from steadytree.stability.stable_tree import StableTreeClassifier


@pytest.fixture(scope="module")
def data():
    return load_breast_cancer(return_X_y=True, as_frame=True)


def test_changed_answers_and_distance_of_a_procedure(data):
    X, y = data
    trees = [as_tree(DecisionTreeClassifier(max_depth=2).fit(X[k::3], y[k::3]), X) for k in (0, 1)]
    trees = [rebase(tree, trees[0].space) for tree in trees]
    values = trees[0].space.encode(X)
    expected = (trees[0].predict(X) != trees[1].predict(X)).mean()
    assert changed_answers(trees, values) == expected
    assert changed_answers([trees[0], *trees], values) == pytest.approx(2 * expected / 3)
    assert mean_distance([trees[0]] * 2, trees[0].space) == 0
    assert mean_distance(trees, trees[0].space) == pytest.approx(
        path_distance(*trees, space=trees[0].space).value
    )


def test_usual_procedures_include_steady_greedy_and_robust_trees(data):
    columns = FeatureSpace.observe(data[0]).columns
    names = [
        one.name[:6]
        for one in usual_procedures(StableTreeClassifier(), [{}], FeatureSpace(columns[:5]))
    ]
    assert names == ["Steady", "Stable", "Steady", "Steady", "Robust"]
    wide = FeatureSpace(tuple(columns) + tuple(replace(c, name=c.name + "2") for c in columns))
    assert len(usual_procedures(StableTreeClassifier(), [{}], wide)) == 4  # too many for the search
