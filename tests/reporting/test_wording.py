import numpy as np
import pytest

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.tree import Tree
from steadytree.reporting.wording import conditions, describe_split
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
