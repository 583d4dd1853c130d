import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from steadytree import StableTreeClassifier, tree_distance
from steadytree.distance.tree_distance import measure_distance, measure_node_distance

X, y = load_iris(return_X_y=True)
SMALL = StableTreeClassifier(max_depth=2, epsilon=0, random_state=0).fit(X, y)
LARGE = DecisionTreeClassifier(random_state=0).fit(X, y)


@pytest.mark.parametrize("kind", ["node", "node-features"])
@pytest.mark.parametrize("normalise", [False, True, 9])
def test_a_distance_is_a_number_that_knows_where_trees_part(kind, normalise):
    found = tree_distance(SMALL, LARGE, kind, normalise)
    expected = measure_node_distance(SMALL, LARGE, kind == "node-features", normalise)
    assert isinstance(found, float)
    assert found == expected
    assert found.parted == expected.parted
    assert found.kind == kind


def test_equal_trees_have_no_distance():
    found = tree_distance(SMALL, SMALL.tree_, "node")
    assert found == 0
    assert found.parted == ()


def test_by_name_or_by_function():
    assert measure_distance(SMALL.tree_, SMALL.tree_, "node") == 0.0
    assert measure_distance(SMALL.tree_, SMALL.tree_, lambda a, b: np.int64(a.n_nodes)) == 5.0


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="kind must be one of"):
        tree_distance(SMALL, LARGE, "edit")
    other = StableTreeClassifier(random_state=0).fit(X[:, :2], y)
    with pytest.raises(ValueError, match="over different features: only the first has 'x2', 'x3'"):
        tree_distance(SMALL, other, "node")
    with pytest.raises(TypeError, match="LogisticRegression"):
        tree_distance(SMALL, LogisticRegression(max_iter=999).fit(X, y), "node")


@pytest.mark.parametrize("kind", ["path", "node", "node-features"])
@pytest.mark.parametrize("normalise", [False, True, 9])
def test_lists_give_the_matrix_of_all_pairs(kind, normalise):
    deeper = StableTreeClassifier(max_depth=3, epsilon=0, random_state=0).fit(X, y)
    trees, others = [SMALL, LARGE, deeper], (deeper, SMALL)
    depth = LARGE.get_depth() if normalise is True else normalise
    cross = tree_distance(trees, others, kind, normalise, space=X)
    expected = [[float(tree_distance(a, b, kind, depth, space=X)) for b in others] for a in trees]
    np.testing.assert_allclose(cross, expected)
    own = tree_distance(trees, kind=kind, normalise=normalise, space=X)
    np.testing.assert_allclose(own, tree_distance(trees, trees, kind, normalise, space=X))


def test_path_distances_explain_themselves():
    found = tree_distance(SMALL, LARGE, space=X)
    assert found == pytest.approx(found.costs.sum())
    assert len(found.matching) == len(found.costs)


def test_a_tree_and_a_list_are_not_mixed():
    with pytest.raises(TypeError, match="b is missing"):
        tree_distance(SMALL)
    with pytest.raises(TypeError, match="b must be one too"):
        tree_distance([SMALL], LARGE, "node")
    for kind in ("path", "node"):
        with pytest.raises(ValueError, match="at least one tree is needed in each list"):
            tree_distance([], kind=kind)


@pytest.mark.parametrize(("kind", "expected"), [("node", 6.0), ("node-features", 0.0)])
def test_lists_tell_splits_on_one_column_apart_where_thresholds_count(kind, expected):
    rows = [[0.0], [1.0], [2.0]]
    a, b = (DecisionTreeClassifier(max_depth=1).fit(rows, y) for y in ([0, 1, 1], [0, 0, 1]))
    assert tree_distance(a, b, kind) == expected
    assert tree_distance([a], [b], kind).tolist() == [[expected]]
    np.testing.assert_array_equal(
        tree_distance([a, b], kind=kind), expected * np.array([[0, 1], [1, 0]])
    )
