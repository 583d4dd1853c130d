"""Facts about collections of trees."""

from statistics import pstdev

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier

from steadytree import StableTreeClassifier
from steadytree.distance.tree_distance import collection_facts, gini_importance
from steadytree.models.boxes import rename
from steadytree.models.sklearn import from_sklearn
from steadytree.models.tree import Tree


@pytest.fixture(scope="module")
def forest():
    X, y = load_iris(return_X_y=True)
    return RandomForestClassifier(15, max_depth=3, random_state=0).fit(X, y)


def test_importances_are_those_of_scikit_learn(forest):
    for one in forest.estimators_:
        np.testing.assert_allclose(
            gini_importance(from_sklearn(one)), one.feature_importances_, atol=1e-12
        )
    facts = collection_facts(forest.estimators_)
    np.testing.assert_allclose(facts.importances.mean(axis=0), forest.feature_importances_)
    assert facts.n_trees == 15
    columns = zip(*(one.feature_importances_ for one in forest.estimators_), strict=True)
    assert facts.deviation == pytest.approx(np.mean([pstdev(column) for column in columns]))


def test_first_splits_top_features_and_cuts_are_counted(forest):
    facts = collection_facts(forest.estimators_)
    trees = [one.tree_ for one in forest.estimators_]
    for place in range(3):
        nodes = [(0, t.children_left[0], t.children_right[0])[place] for t in trees]
        asked = [
            t.feature[k] if t.feature[k] >= 0 else 4 for t, k in zip(trees, nodes, strict=True)
        ]
        assert facts.first_splits[place].tolist() == np.bincount(asked, minlength=5).tolist()
    for j in range(4):
        own = np.concatenate([t.threshold[t.feature == j] for t in trees])
        np.testing.assert_array_equal(facts.thresholds[f"x{j}"], np.sort(own))
    top = [set(np.argsort(-one.feature_importances_)[:3]) for one in forest.estimators_]
    assert facts.n_top_features == len(set().union(*top))
    assert facts.most_chosen(1)[0][0] == "root"
    assert sum(share for place, _, share in facts.most_chosen(9) if place == "left") == 1


def test_columns_make_a_frame():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(8, max_depth=3, random_state=0).fit(X.to_numpy(), y)
    facts = collection_facts([from_sklearn(one, X) for one in forest.estimators_])
    frame = facts.frame()
    assert len(frame) == 30
    assert frame["importance"].is_monotonic_decreasing
    for row in frame.itertuples():
        own, each = facts.thresholds[row.feature], X.columns.get_loc(row.feature)
        found = (row.n_cuts, row.cut_25, row.cut_50, row.cut_75)
        quartiles = np.percentile(own, [25, 50, 75]) if len(own) else [np.nan] * 3
        np.testing.assert_array_equal(found, [len(own), *quartiles])
        importances = [one.feature_importances_[each] for one in forest.estimators_]
        np.testing.assert_allclose(
            (row.importance, row.deviation), (np.mean(importances), np.std(importances)), atol=1e-12
        )
        roots = [one.tree_.feature[0] == each for one in forest.estimators_]
        assert row.root == np.mean(roots)


def test_splits_on_categories_have_no_cuts():
    rng, trees = np.random.default_rng(0), []
    for depth in (1, 1, 2, 3, 3, 3):
        rows = pd.DataFrame({"a": rng.normal(size=60), "ward": rng.choice([*"uvw"], 60)})
        y = (rows["a"] > 0) ^ (rows["ward"] == "u") ^ (rng.random(60) < 0.1)
        trees.append(StableTreeClassifier(depth, 0, random_state=0).fit(rows, y).tree_)
    space, classes = trees[0].space.bare(), trees[0].classes
    single = Tree(space, classes, [-1], [np.nan], [-1], [-1], [[0.5, 0.5]], [1.0])
    trees.append(single)  # whose children are nowhere
    facts = collection_facts(trees)
    columns = facts.columns()
    for k, name in enumerate(columns["feature"]):
        j = facts.space.names.index(name)
        own = [t.threshold[t.feature == j] for t in trees if not t.space[j].is_categorical]
        cuts = [x for each in own for x in each.tolist() if np.isfinite(x)]
        assert columns["n_cuts"][k] == len(cuts)
        assert np.isnan(columns["cut_50"][k]) == (not cuts)
        placed = [int(tree.feature[0] == j) for tree in trees]
        assert columns["root"][k] == np.mean(placed)
        ranked = [np.argsort(-row, kind="stable")[:3] for row in facts.importances]
        top = [
            j in best and row[j] > 0 for best, row in zip(ranked, facts.importances, strict=True)
        ]
        assert columns["in_top_3"][k] == np.mean(top)
    listed = facts.most_chosen(2)
    for place, name, share in listed:
        nodes = [{"root": 0, "left": t.left[0], "right": t.right[0]}[place] for t in trees]
        asked = [
            "(leaf)" if k < 0 or t.feature[k] < 0 else t.space.names[t.feature[k]]
            for t, k in zip(trees, nodes, strict=True)
        ]
        assert share == asked.count(name) / len(trees)
        more = sum(asked.count(other) > asked.count(name) for other in set(asked))
        assert more < 2


def test_bad_input_is_explained(forest):
    with pytest.raises(ValueError, match="at least one tree"):
        collection_facts([])
    tree = from_sklearn(forest.estimators_[0])
    with pytest.raises(ValueError, match="different features"):
        collection_facts([tree, rename(tree, {"x0": "z"})])


def test_two_features_are_named_at_each_node_unless_more_are_asked_for():
    forest = RandomForestClassifier(25, random_state=0).fit(*load_iris(return_X_y=True))
    facts = collection_facts(forest.estimators_)
    assert facts.most_chosen() == facts.most_chosen(2)
    assert len(facts.most_chosen(3)) > len(facts.most_chosen()) == 6
