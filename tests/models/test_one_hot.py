import hypothesis
import numpy as np
import pandas as pd
import polars as pl
import pytest

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.one_hot import MAX_NODES, make_additive, one_hot, one_hot_tree
from steadytree.models.sklearn import to_sklearn
from steadytree.models.tree import Tree
from tests.models.trees import random_rows, random_tree, to_float32, trees

COLOURS = ["red", "green", "blue", "black", "white", "grey"]


def ask(*going_left, missing_left=False, categories=COLOURS):
    """A stump that sends these categories left."""
    subset = np.zeros((3, len(categories)), bool)
    subset[0] = np.isin(categories, going_left)
    space = FeatureSpace.declare(categories={"colour": categories})
    shape = [0, -1, -1], [np.nan] * 3, [1, -1, -1], [2, -1, -1]
    value, missing = [[0.3, 0.7], [1, 0], [0, 1]], [missing_left, False, False]
    return Tree(space, ["left", "right"], *shape, value, [10, 3, 7], missing, subset)


def assert_adds_up(tree):
    inner = np.flatnonzero(~tree.is_leaf)
    left, right = tree.left[inner], tree.right[inner]
    mass = tree.weight[:, None] * tree.value
    assert (tree.weight > 0).all()
    np.testing.assert_allclose(tree.weight[inner], tree.weight[left] + tree.weight[right])
    np.testing.assert_allclose(mass[inner], mass[left] + mass[right], atol=1e-12)


@hypothesis.settings(max_examples=200)
@hypothesis.given(tree=trees())
def test_thresholds_decide_as_categories_did(tree):
    expanded = one_hot_tree(tree)
    rows = random_rows(np.random.default_rng(0), tree)
    assert not expanded.space.categorical.any()
    np.testing.assert_array_equal(
        expanded.predict_proba(one_hot(tree, rows)), tree.predict_proba(rows)
    )


@hypothesis.settings(max_examples=200)
@hypothesis.given(tree=trees())
def test_the_exported_tree_decides_as_ours_on_float32_data(tree):
    rows = to_float32(random_rows(np.random.default_rng(1), tree))
    exported = to_sklearn(tree)
    columns = one_hot(tree, rows)
    np.testing.assert_array_equal(exported.predict_proba(columns), tree.predict_proba(rows))
    np.testing.assert_array_equal(exported.predict(columns), tree.predict(rows))
    assert_adds_up(make_additive(one_hot_tree(tree)))


@pytest.mark.parametrize("missing_left", [False, True])
@pytest.mark.parametrize(
    ("going_left", "n_questions"),
    [
        (["red"], 1),
        (["green", "blue", "black", "white", "grey"], 1),
        (["red", "green"], 2),
        (["blue", "black", "white", "grey"], 2),
        (["red", "green", "blue"], 3),
    ],
)
def test_the_shorter_of_a_set_and_its_complement_is_asked(going_left, n_questions, missing_left):
    tree = ask(*going_left, missing_left=missing_left)
    expanded = one_hot_tree(tree)
    assert (~expanded.is_leaf).sum() == len(expanded.space) == n_questions
    assert expanded.weight[0] == pytest.approx(10)
    if n_questions == 2:  # in the order of the categories
        assert list(expanded.space.names) == ["colour=red", "colour=green"]
        assert expanded.space[int(expanded.feature[0])].name == "colour=red"
    rows = [[colour] for colour in [*COLOURS, "pink", None]]
    assert expanded.predict(one_hot(tree, rows)).tolist() == tree.predict(rows).tolist()


def test_all_categories_against_missing_is_one_question():
    tree = ask(*COLOURS, missing_left=False)
    expanded = one_hot_tree(tree)
    assert expanded.n_nodes == 3
    assert expanded.threshold[0] == np.inf
    rows = [["red"], ["grey"], [None], ["pink"]]
    assert expanded.predict(one_hot(tree, rows)).tolist() == ["left", "left", "right", "right"]


def test_a_question_that_sends_all_one_way_is_dropped():
    expanded = one_hot_tree(ask(*COLOURS, missing_left=True))
    assert expanded.n_nodes == 1
    assert expanded.predict([[0.0]]) == ["left"]
    assert expanded.space.names == ("colour=red",)


def test_only_categories_that_still_arrive_are_asked_about():
    space = FeatureSpace.declare(categories={"colour": COLOURS})
    subset = np.zeros((5, 6), bool)
    subset[0, :3], subset[1, :2] = True, True
    shape = [0, 0, -1, -1, -1], [np.nan] * 5, [1, 3, -1, -1, -1], [2, 4, -1, -1, -1]
    tree = Tree(space, [0, 1], *shape, np.full((5, 2), 0.5), [4, 2, 2, 1, 1], subset=subset)
    # black, white and grey leave first; of the rest, red and green are all but blue
    expanded = one_hot_tree(tree)
    assert (~expanded.is_leaf).sum() == 4
    assert "colour=red" not in expanded.space.names


@pytest.mark.parametrize("missing_left", [False, True])
def test_an_answered_question_is_not_asked_again(missing_left):
    """Red is asked first; whether missing values go with it decides what can still arrive."""
    space = FeatureSpace.declare(categories={"colour": COLOURS})
    subset = np.zeros((7, 6), bool)
    subset[0, 0], subset[1, 0], subset[2, 1:] = True, True, True
    feature, left, right = [0, 0, 0] + [-1] * 4, [1, 3, 5] + [-1] * 4, [2, 4, 6] + [-1] * 4
    value, weight = np.full((7, 2), 0.5), [4, 2, 2, 1, 1, 1, 1]
    missing = [missing_left] + [False] * 6
    tree = Tree(space, [0, 1], feature, [np.nan] * 7, left, right, value, weight, missing, subset)
    expanded = one_hot_tree(tree)
    # on the side where missing values arrive they still part from the others
    assert (~expanded.is_leaf).sum() == 2
    assert expanded.threshold[~expanded.is_leaf].tolist() == [0.5, np.inf]


def test_a_leaf_shares_its_weight_among_its_copies():
    expanded = one_hot_tree(ask("red", "green"))
    copies = expanded.is_leaf & (expanded.label == 0)
    np.testing.assert_allclose(expanded.weight[copies], [1.5, 1.5])
    assert expanded.weight[expanded.is_leaf & (expanded.label == 1)] == [7]


def test_names_and_order_of_columns():
    tree = random_tree(np.random.default_rng(3), n_leaves=10)
    exported = to_sklearn(tree)
    rows = random_rows(np.random.default_rng(0), tree, 5)
    assert list(exported.feature_names_in_) == list(one_hot(tree, rows).columns)
    for name, column in one_hot(tree, rows).items():
        feature, _, category = name.partition("=")
        if category:
            known = rows[feature].isin(tree.space[tree.space.names.index(feature)].categories)
            expected = (rows[feature] == category).astype(float).where(known)
        else:
            expected = rows[feature]
        np.testing.assert_array_equal(column, expected)


def test_frames_give_frames_and_arrays_give_arrays():
    tree = ask("red")
    for library in (pd, pl):
        columns = one_hot(tree, library.DataFrame({"colour": ["red", "blue"]}))
        assert isinstance(columns, library.DataFrame)
        assert list(columns.columns) == ["colour=red"]
        assert columns["colour=red"].to_list() == [1, 0]
    assert isinstance(one_hot(tree, np.array([["red"]], dtype=object)), np.ndarray)


def test_a_tree_of_numbers_stays_as_it_is():
    tree = random_tree(np.random.default_rng(0), n_categorical=0)
    rows = random_rows(np.random.default_rng(0), tree).to_numpy()
    assert one_hot_tree(tree) is tree
    np.testing.assert_array_equal(one_hot(tree, rows), rows)


def test_names_that_fall_together_are_refused():
    space = FeatureSpace.declare(bounds={"a=b": (0, 1)}, categories={"a": ["b", "c"]})
    shape = [1, -1, -1], [np.nan] * 3, [1, -1, -1], [2, -1, -1]
    subset = [[True, False], [False] * 2, [False] * 2]
    tree = Tree(space, [0, 1], *shape, np.full((3, 2), 0.5), [2, 1, 1], subset=subset)
    with pytest.raises(ValueError, match="'a=b' appear more than once"):
        one_hot_tree(tree)


def test_a_tree_that_would_grow_without_bound_is_refused():
    rng = np.random.default_rng(0)
    names = [f"g{j}" for j in range(6)]
    space = FeatureSpace.declare(categories={name: [str(k) for k in range(60)] for name in names})
    n_inner, n = 63, 127
    feature = np.array([int(np.log2(k + 1)) if k < n_inner else -1 for k in range(n)])
    left = np.where(np.arange(n) < n_inner, 2 * np.arange(n) + 1, -1)
    right = np.where(left > 0, left + 1, -1)
    subset = (rng.random((n, 60)) < 0.5) & (left > 0)[:, None]
    nan, value = np.full(n, np.nan), np.full((n, 2), 0.5)
    tree = Tree(space, [0, 1], feature, nan, left, right, value, np.ones(n), subset=subset)
    with pytest.raises(ValueError, match=f"more than {MAX_NODES:,} nodes"):
        to_sklearn(tree)


def test_weights_that_add_up_are_kept_and_others_are_summed():
    space = FeatureSpace.declare(bounds={"a": (0, 1)})
    shape = [0, -1, -1], [0.5, np.nan, np.nan], [1, -1, -1], [2, -1, -1]
    good = Tree(space, [0, 1], *shape, [[0.25, 0.75], [1, 0], [0, 1]], [4, 1, 3])
    assert make_additive(good) is good
    for value, weight in [
        ([[0.25, 0.75], [1, 0], [0, 1]], [7.5, 1, 3]),
        ([[0.5, 0.5], [1, 0], [0, 1]], [4, 1, 3]),
    ]:
        assert make_additive(Tree(space, [0, 1], *shape, value, weight)) == good
    empty = make_additive(Tree(space, [0, 1], *shape, [[0, 1], [0.5, 0.5], [0, 1]], [3, 0, 3]))
    assert_adds_up(empty)
    assert empty.weight[0] == pytest.approx(3, rel=1e-5)
    np.testing.assert_array_equal(empty.value[1:], [[0.5, 0.5], [0, 1]])
    shape = [0, -1, 0, -1, -1], [0.2, *[np.nan] * 4], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1]
    shape[1][2] = 0.7
    three = Tree(space, [0, 1], *shape, [[0, 1]] * 5, [9, 7, 2, 0, 2])
    assert make_additive(three).weight[3] == 2e-6  # a millionth of the least, which is 2
    shape = [0, -1, -1], [0.5, np.nan, np.nan], [1, -1, -1], [2, -1, -1]
    nothing = make_additive(Tree(space, [0, 1], *shape, [[1, 0], [1, 0], [0, 1]], [0, 0, 0]))
    assert nothing.weight.tolist() == [2, 1, 1]


def test_one_column_for_the_only_category_that_is_asked_for():
    space = FeatureSpace.declare(categories={"colour": COLOURS[:3]})
    split = ([0, -1, -1], [np.nan] * 3, [1, -1, -1], [2, -1, -1], [[0.5, 0.5], [1, 0], [0, 1]])
    subset = [[1, 0, 0], [0] * 3, [0] * 3]
    tree = Tree(space, ["stop", "go"], *split, [2, 1, 1], subset=subset)
    assert one_hot_tree(tree).space.names == ("colour=red",)
    np.testing.assert_array_equal(one_hot(tree, [["red"], ["blue"], [None]]), [[1], [0], [np.nan]])


def chain_of(n_splits, feature, first):
    """Nodes of a sub-tree that asks one number again and again, numbered from `first` on."""
    rows = []
    for k in range(n_splits):
        rows += [(feature, k + 0.5, first + 2 * k + 1, first + 2 * k + 2), (-1, np.nan, -1, -1)]
    return [*rows, (-1, np.nan, -1, -1)]


@pytest.mark.parametrize("n_left", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("below_left", "below_right"), [(0, 0), (0, 1), (1, 0), (2, 1), (1, 4)])
def test_the_side_whose_copies_are_fewer_nodes_is_the_one_that_is_asked_for(
    n_left, below_left, below_right
):
    """A split and a copy for each category of one side, and the other side once."""
    left = chain_of(below_left, 1, 1)
    right = chain_of(below_right, 1, 1 + len(left))
    nodes = [(0, np.nan, 1, 1 + len(left)), *left, *right]
    feature, threshold, *children = map(list, zip(*nodes, strict=True))
    space = FeatureSpace.declare({"x": (0, 9)}, {"colour": COLOURS})
    space = FeatureSpace((space[1], space[0]))
    subset = np.zeros((len(nodes), 6), bool)
    subset[0, :n_left] = True
    value = np.eye(2)[np.arange(len(nodes)) % 2]
    tree = Tree(
        space, [0, 1], feature, threshold, *children, value, np.ones(len(nodes)), subset=subset
    )
    expanded = one_hot_tree(tree)
    costs = n_left * (1 + len(left)) + len(right), (6 - n_left) * (1 + len(right)) + len(left)
    assert expanded.n_nodes == min(costs)
    asked = {name for name in expanded.space.names if name.startswith("colour=")}
    sides = COLOURS[:n_left], COLOURS[n_left:]
    assert asked == {f"colour={text}" for text in sides[int(costs[1] < costs[0])]}


def test_columns_of_categories_hold_0_and_1():
    for column in one_hot_tree(ask("red", "green")).space:
        assert (column.kind, column.low, column.high, column.missing) == ("binary", 0.0, 1.0, True)
