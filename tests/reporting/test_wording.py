import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.reporting.wording import (
    DEEPEST,
    MOST_LEAVES,
    build_nodes,
    conditions,
    describe_split,
)
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.models import trees


def chain(column, splits, missing_left=()):
    """A tree that asks one column again and again, going on at the right each time.

    A split is a threshold, or a list of flags for categories.
    """
    n = len(splits)
    width = len(column.categories)
    feature, threshold, left, right = [], [], [], []
    subset = np.zeros((2 * n + 1, width), bool)
    for step, split in enumerate(splits):
        node = 2 * step
        feature += [0, -1]
        threshold += [np.nan if width else split, np.nan]
        left += [node + 1, -1]
        right += [node + 2, -1]
        if width:
            subset[node] = split
    arrays = [[*feature, -1], [*threshold, np.nan], [*left, -1], [*right, -1]]
    flags = np.zeros(2 * n + 1, bool)
    flags[[2 * step for step in missing_left]] = True
    value = np.tile([0.5, 0.5], (2 * n + 1, 1))
    space = FeatureSpace((column,))
    return Tree(space, ["a", "b"], *arrays, value, np.ones(2 * n + 1), flags, subset)


def number(kind="numeric", low=0.0, high=100.0, missing=False):
    return Column("age", kind, low, high, missing=missing)


def colours(n=4, missing=False):
    names = ("red", "blue", "green", "grey", "a", "b", "c")[:n]
    return Column("colour", "categorical", categories=names, missing=missing)


@pytest.mark.parametrize(
    ("column", "split", "text"),
    [
        (number(), 43.512345, "age ≤ 43.5"),
        (number(high=1e6), 52_310.123, "age ≤ 52,000"),
        (number(high=1e6), 52_510.123, "age ≤ 53,000"),
        (number(high=0.01), 0.00123456, "age ≤ 0.00123"),
        (number(low=5.0, high=5.0), 5.0, "age ≤ 5"),
        (number(low=-100.0), -12.3456, "age ≤ -12.3"),
        (number(), 0.0, "age ≤ 0"),
        (number("integer"), 43.5, "age ≤ 43"),
        (number("integer"), -0.5, "age ≤ -1"),
        (number("integer", high=1e6), 12_345.5, "age ≤ 12,345"),
        (number("binary", high=1.0), 0.5, "age = 0"),
        (number("binary", high=1.0), 1.5, "age ≤ 1"),
        (number(missing=True), np.inf, "age is present"),
        (number(missing=True), -np.inf, "age is missing"),
        (colours(), [1, 0, 0, 0], "colour = red"),
        (colours(), [1, 1, 0, 0], "colour in {red, blue}"),
        (colours(), [1, 1, 1, 0], "colour ≠ grey"),
        (colours(), [1, 1, 1, 1], "colour is present"),
        (colours(7), [1, 1, 1, 1, 1, 0, 0], "colour in {red, blue, green, grey, 1 more}"),
    ],
)
def test_a_split_in_words(column, split, text):
    assert describe_split(chain(column, [split]), 0).text == text


@pytest.mark.parametrize(("left", "where"), [([0], "yes"), ([], "no")])
def test_where_missing_values_go(left, where):
    assert describe_split(chain(number(missing=True), [5.0], left), 0).missing == where
    assert describe_split(chain(number(missing=False), [5.0], left), 0).missing == ""


def test_close_thresholds_read_differently():
    tree = chain(number(), [43.501, 43.502])
    assert {describe_split(tree, 0).text, describe_split(tree, 2).text} == {
        "age ≤ 43.501",
        "age ≤ 43.502",
    }


def test_the_full_question_keeps_all_digits():
    question = describe_split(chain(number(missing=True), [43.512345]), 0)
    assert question.full == "age ≤ 43.512345; missing: no"


def test_rounding_moves_a_threshold_by_little():
    for threshold in np.random.default_rng(0).uniform(0, 100, 200):
        text = describe_split(chain(number(), [threshold]), 0).test
        assert abs(float(text[2:]) - threshold) <= 0.1


def test_a_leaf_asks_nothing():
    with pytest.raises(ValueError, match="leaf"):
        describe_split(chain(number(), [5.0]), 1)


@pytest.mark.parametrize(
    ("column", "splits", "left", "leaf", "expected"),
    [
        (number(), [43, 60], [], 3, ["43 < age ≤ 60"]),
        (number(), [43, 60], [], 4, ["age > 60"]),
        (number(), [60, 43], [], 4, ["age > 60"]),
        (number(), [60, 43], [], 3, ["impossible: no value of age fits"]),
        (number(missing=True), [43, 60], [1], 3, ["43 < age ≤ 60 or missing"]),
        (number(missing=True), [43, 60], [0], 3, ["43 < age ≤ 60"]),
        (number(missing=True), [np.inf], [], 2, ["age is missing"]),
        (number(missing=True), [np.inf], [], 1, ["age is present"]),
        (number("binary", high=1.0), [0.5], [], 1, ["age = 0"]),
        (number("binary", high=1.0), [0.5], [], 2, ["age = 1"]),
        (colours(), [[1, 0, 0, 0], [0, 1, 0, 0]], [], 3, ["colour = blue"]),
        (colours(), [[1, 0, 0, 0], [0, 1, 0, 0]], [], 4, ["colour in {green, grey}"]),
        (colours(), [[1, 0, 0, 0]], [], 2, ["colour ≠ red"]),
        (colours(missing=True), [[1, 1, 1, 1]], [], 2, ["colour is missing"]),
    ],
)
def test_what_holds_in_a_leaf(column, splits, left, leaf, expected):
    assert conditions(chain(column, splits, left), leaf) == expected


def test_names_that_would_break_lines_are_mended():
    column = Column("age\n(in\tyears)\x1b[31m", "numeric", 0.0, 1.0)
    assert describe_split(chain(column, [0.5]), 0).feature == "age (in years)[31m"


@pytest.mark.parametrize("seed", range(20))
def test_every_random_tree_has_words(seed):
    tree = trees.random_tree(np.random.default_rng(seed), n_leaves=12)
    for node in range(tree.n_nodes):
        if tree.is_leaf[node]:
            assert len(conditions(tree, node)) == len(set(tree.feature[tree.path(node)[:-1]]))
        else:
            assert describe_split(tree, node).text


def test_thresholds_of_integers_are_integers():
    space = FeatureSpace.declare({"age": (18, 90)}, kinds={"age": "integer"}, missing=False)
    none, value = [np.nan] * 2, [[0.5, 0.5], [1, 0], [0, 1]]
    tree = Tree(
        space, ["no", "yes"], [0, -1, -1], [43.5, *none], [1, -1, -1], [2, -1, -1], value, [2, 1, 1]
    )
    assert describe_split(tree, 0).text == "age ≤ 43"


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_counted_on_the_given_data(seed):
    rng = np.random.default_rng(seed)
    tree = trees.random_tree(rng, n_leaves=10)
    X = trees.random_rows(rng, tree)
    truth = rng.integers(0, 3, len(X))
    paths = tree.decision_path(X).toarray().astype(bool)
    for node in build_nodes(tree, X, truth)["nodes"]:
        here = paths[:, node["id"]]
        assert node["n_rows"] == here.sum()
        assert node["counts"] == np.bincount(truth[here], minlength=3).tolist()


def test_nodes_come_in_reading_order_with_links():
    tree = trees.random_tree(np.random.default_rng(0), n_leaves=10)
    X = trees.random_rows(np.random.default_rng(1), tree, 5)
    nodes = build_nodes(tree, X, np.zeros(5, int))["nodes"]
    assert [node["id"] for node in nodes] == tree.preorder.tolist()
    for place, node in enumerate(nodes):
        assert node["place"] == place
        if "left" in node:
            assert nodes[node["left"]]["parent"] == nodes[node["right"]]["parent"] == place
            assert (nodes[node["left"]]["side"], nodes[node["right"]]["side"]) == ("yes", "no")


def test_a_tree_too_large_to_draw_is_cut_back():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), rng.integers(0, 2, 2000)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    found = build_nodes(as_tree(model), X, y)
    leaves = [node for node in found["nodes"] if "left" not in node]
    assert found["n_leaves"] == model.get_n_leaves() > MOST_LEAVES >= len(leaves)
    assert found["depth_shown"] <= DEEPEST
    assert sum(node["n_below"] for node in leaves) == model.get_n_leaves()
    assert sum(node["n_rows"] for node in leaves) == 2000
    answers = model.tree_.value[[node["id"] for node in leaves], 0].argmax(axis=1)
    assert [node["answer"] for node in leaves] == answers.tolist()


def test_a_chain_is_cut_at_its_depth():
    X = np.arange(40.0)[:, None]
    model = DecisionTreeClassifier(random_state=0).fit(X, np.arange(40) % 2)
    assert build_nodes(as_tree(model), X, np.arange(40) % 2)["depth_shown"] <= DEEPEST


def test_histogram_counts_the_known_values_of_a_node():
    X = pd.DataFrame(
        {"x": [0.0, 1.0, 2.0, np.nan] * 10, "colour": ["red", "blue", "red", None] * 10}
    )
    y = np.array([0, 0, 1, 1] * 10)
    tree = StableTreeClassifier(2, 0, random_state=0).fit(X, y).tree_
    for node in build_nodes(tree, X, y)["nodes"]:
        if "left" in node:
            found = node["histogram"]
            missing = sum(node["counts"]) - np.sum(found["counts"])
            assert 0 <= missing <= 10
            assert 0 <= found["at"] <= 1
    root = build_nodes(tree, X, y)["nodes"][0]
    assert np.sum(root["histogram"]["counts"]) == 30


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ([1, 1, 0, 0, 0], "grade ≤ fair"),
        ([1, 1, 1, 1, 0], "grade ≤ high"),
        ([0, 0, 0, 1, 1], "grade > good"),
        ([0, 1, 1, 1, 1], "grade > low"),
        ([1, 0, 0, 0, 0], "grade = low"),
        ([0, 1, 1, 0, 0], "grade in {fair, good}"),
        ([1, 1, 0, 1, 1], "grade ≠ good"),
        ([1, 1, 1, 1, 1], "grade is present"),
    ],
)
def test_ordered_categories_are_said_by_where_they_are_divided(flags, text):
    names = ("low", "fair", "good", "high", "top")
    column = Column("grade", "categorical", categories=names, ordered=True)
    assert describe_split(chain(column, [flags]), 0).text == text
