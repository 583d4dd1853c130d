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
    assert found == expected.value
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
