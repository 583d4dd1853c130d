"""Retraining near a previous tree."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

from steadytree.data.table import Table
from steadytree.distance.path import path_distance
from steadytree.models.boxes import rename
from steadytree.stability.near_previous import (
    Regrower,
    hold_out,
    leaves_of,
    node_sets,
    pick_rows,
    stratified_flags,
)
from steadytree.stability.pareto_tree import ParetoTreeClassifier
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.models.trees import random_rows, random_tree


@pytest.fixture(scope="module")
def data():
    return load_breast_cancer(return_X_y=True, as_frame=True)


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
    rows = FORMS[form](X)
    old = StableTreeClassifier(max_depth=1, epsilon=0, random_state=0)
    old.fit(rows, X["dose"].isna().astype(int))
    assert old.tree_.feature.tolist() == [1, -1, -1]  # the rows of one leaf lack every dose
    near = StableTreeClassifier(max_depth=3, epsilon=0, previous=old, random_state=0)
    assert near.fit(rows, y).score(rows, y) > 0.7
    pareto = ParetoTreeClassifier(n_trees=4, previous=old, random_state=0)
    assert pareto.fit(rows, y).score(rows, y) > 0.7


def test_a_bootstrap_sample_may_lack_every_value_of_a_column():
    X, y = rows_that_lack_a_column()
    X["rare"] = [1.0, 2.0] + [np.nan] * (len(X) - 2)
    model = ParetoTreeClassifier(n_trees=20, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7


def test_empty_columns_of_picked_rows_become_constant():
    X, _ = rows_that_lack_a_column()
    values = np.column_stack([X["age"], X["dose"], X["ward"].isna().map({True: np.nan, False: 0})])
    rows = np.flatnonzero(X["dose"].isna())
    for form in (X, X.to_numpy(dtype=object), Table.read(X)):
        table = Table.read(pick_rows(form, values, rows))
        np.testing.assert_array_equal(table.columns[0], X["age"].to_numpy()[rows])
        assert (np.asarray(table.columns[1], float) == 0).all()
        assert table.columns[2].tolist() == Table.read(X).take(rows).columns[2].tolist()
    assert X["dose"].isna().sum() == len(rows)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_neighbours_keep_all_other_nodes(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_leaves=int(rng.integers(1, 8)), n_classes=2, labels="int")
    values = tree.space.encode(random_rows(rng, tree, n=60))
    labels = rng.integers(0, 2, 60)
    reached = leaves_of(tree, values)

    def grow(rows, depth):
        leaf = [[-1], [np.nan], [-1], [-1]]
        shares = np.bincount(labels[rows], minlength=2) / len(rows)
        return type(tree)(tree.space, tree.classes, *leaf, [shares], [len(rows)])

    regrower = Regrower(tree, reached, labels, tree.classes, grow, 30)
    same = regrower.make(frozenset())
    np.testing.assert_array_equal(same.feature[same.preorder], tree.feature[tree.preorder])
    assert path_distance(same, tree, class_weight=0).value < 1e-6
    assert regrower.make(None) == tree
    for nodes in node_sets(tree)[1:]:
        made = regrower.make(nodes)
        found = leaves_of(made, values)
        # a row's leaf holds the class shares of just the rows in it
        for leaf in np.unique(found):
            shares = np.bincount(labels[found == leaf], minlength=2) / (found == leaf).sum()
            np.testing.assert_allclose(made.value[leaf], shares)
            assert made.weight[leaf] == (found == leaf).sum()


def test_stable_tree_stays_close_within_the_allowed_loss(data):
    X, y = data
    rows = np.random.default_rng(0).permutation(len(X))
    first, rest = rows[:200], rows[:500]
    old = StableTreeClassifier(max_depth=3, epsilon=0, random_state=0)
    old.fit(X.iloc[first], y.iloc[first])
    fresh = StableTreeClassifier(max_depth=3, epsilon=0, random_state=0)
    fresh.fit(X.iloc[rest], y.iloc[rest])
    near = StableTreeClassifier(max_depth=3, epsilon=0, random_state=0, previous=old)
    near.fit(X.iloc[rest], y.iloc[rest])
    held = rows[500:]
    assert path_distance(near, old).value < path_distance(fresh, old).value
    scores = [model.score(X.iloc[held], y.iloc[held]) for model in (near, fresh)]
    assert scores[0] >= scores[1] - 0.05
    same = StableTreeClassifier(max_depth=3, previous=old, max_score_loss=1, random_state=0)
    same.fit(X.iloc[rest], y.iloc[rest])
    assert path_distance(same, old).value == 0


def test_previous_with_text_new_categories_and_another_order_of_columns():
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame({"size": rng.random(n), "town": rng.choice(["Ulm", "Bonn"], n)})
    y = np.where((X["town"] == "Ulm") & (X["size"] > 0.4), "yes", "no")
    old = StableTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    more = X.assign(town=np.where(rng.random(n) < 0.2, "Kiel", X["town"]))[["town", "size"]]
    near = StableTreeClassifier(max_depth=2, previous=old, random_state=0).fit(more, y)
    assert near.tree_.space.names == ("town", "size")
    assert set(near.tree_.space[0].categories) == {"Ulm", "Bonn", "Kiel"}
    pareto = ParetoTreeClassifier(n_trees=4, previous=old, random_state=0).fit(more, y)
    assert pareto.score(more, y) > 0.8


def test_previous_over_columns_that_are_missing(data):
    X, y = data
    old = StableTreeClassifier(max_depth=1, epsilon=0, random_state=0).fit(X, y).tree_
    asked = old.space[old.feature[0]].name
    new = X.rename(columns={asked: "renamed"})
    learners = (
        ParetoTreeClassifier(n_trees=4, previous=old, random_state=0),
        StableTreeClassifier(previous=old),
    )
    for learner in learners:
        with pytest.raises(ValueError, match=f"uses '{asked}', which the new data lack"):
            learner.fit(new, y)
    mapped = learners[0].set_params(previous_names={asked: "renamed"}, max_score_loss=1.0)
    assert path_distance(mapped.fit(new, y), rename(old, {asked: "renamed"})).value < 1e-6
    with pytest.raises(ValueError, match="the mapping names 'nothing'"):
        mapped.set_params(previous_names={"nothing": "renamed"}).fit(new, y)


def test_rows_that_the_tree_in_use_has_seen_are_not_held_out(data):
    labels = np.tile([0, 1], 50)
    seen = np.arange(100) < 70
    held = hold_out(labels, 0.25, seen, np.random.default_rng(0))
    assert not (held & seen).any()
    assert 20 <= held.sum() <= 24
    X, y = data
    old = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X[:400], y[:400])
    model = ParetoTreeClassifier(n_trees=4, previous=old, random_state=0)
    assert model.fit(X, y, seen=np.arange(len(X)) < 400).score(X, y) > 0.9
    with pytest.raises(ValueError, match="seen must hold True or False for each row"):
        model.fit(X, y, seen=[1, 2])
    with pytest.raises(ValueError, match="at least 2 must be new"):
        model.fit(X, y, seen=np.ones(len(X), bool))


def test_an_overfitted_previous_tree_is_validated_on_new_rows():
    """Labels are noise, so a tree in use is worth nothing on rows that it has not seen."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 3)), rng.integers(2, size=300)
    X[200:, 0] = np.where(y[200:] == 1, 5.0, -5.0)  # what there is to learn came later
    old = StableTreeClassifier(max_depth=8, epsilon=0, random_state=0).fit(X[:200], y[:200])
    seen = np.arange(300) < 200
    retrained = StableTreeClassifier(max_depth=8, epsilon=0, previous=old, random_state=0)
    blind = retrained.fit(X, y).tree_
    aware = retrained.fit(X, y, seen=seen).tree_
    assert path_distance(aware, old.tree_).value > path_distance(blind, old.tree_).value
    with pytest.raises(ValueError, match="give previous too"):
        StableTreeClassifier().fit(X, y, seen=seen)


def test_flags_are_stratified():
    labels = np.array([0] * 10 + [1] * 2 + [2])
    held = stratified_flags(labels, 0.25, 0)
    assert np.bincount(labels[held], minlength=3).tolist() == [2, 1, 0]
