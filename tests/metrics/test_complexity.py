import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from steadytree.data.feature_space import FeatureSpace
from steadytree.metrics import complexity as complexity_module
from steadytree.metrics.complexity import complexity
from steadytree.models.condition import Condition
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import Tree
from tests.models import trees


def tree_that_asks_twice():
    """Both children of the root ask the same question."""
    space = FeatureSpace.declare({"a": (0, 1), "b": (0, 1)}, missing=False)
    nan = np.nan
    return Tree(
        space,
        ["no", "yes"],
        [0, 1, 1, -1, -1, -1, -1],
        [0.5, 0.2, 0.2, nan, nan, nan, nan],
        [1, 3, 5, -1, -1, -1, -1],
        [2, 4, 6, -1, -1, -1, -1],
        np.full((7, 2), 0.5),
        [8, 4, 4, 2, 2, 2, 2],
    )


def test_sizes_of_a_small_tree():
    found = complexity(tree_that_asks_twice())
    assert (found.n_leaves, found.depth, found.n_nodes, found.n_features) == (4, 2, 7, 2)


def test_a_question_in_two_places_counts_once():
    assert complexity(tree_that_asks_twice()).n_questions == 2


def test_same_threshold_on_other_categories_is_another_question():
    tree = trees.random_tree(np.random.default_rng(0), n_leaves=30, n_numeric=0, n_categorical=1)
    inner = ~tree.is_leaf
    assert complexity(tree).n_questions == len(np.unique(tree.subset[inner], axis=0))


def test_mean_questions_is_the_mean_path_length_of_the_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    model = DecisionTreeClassifier(max_depth=4).fit(X, y)
    lengths = np.asarray(model.decision_path(X).sum(axis=1)) - 1
    assert complexity(model).mean_questions == pytest.approx(lengths.mean())
    assert complexity(model, X[:7]).mean_questions == pytest.approx(lengths[:7].mean())


def test_a_single_leaf_asks_nothing():
    model = DecisionTreeClassifier().fit([[0.0], [1.0]], ["a", "a"])
    found = complexity(model)
    assert (found.n_leaves, found.depth, found.n_questions, found.mean_questions) == (1, 0, 0, 0)


def test_tree_without_training_weights_counts_every_leaf_once():
    tree = tree_that_asks_twice()
    weightless = Tree(
        tree.space, tree.classes, tree.feature, tree.threshold, tree.left, tree.right, tree.value,
        np.zeros(7),
    )  # fmt: skip
    assert complexity(weightless).mean_questions == 2


def test_readings_say_what_they_mean():
    for reading in complexity(tree_that_asks_twice()).measurements():
        assert reading.meaning


def test_as_many_totals_as_are_counted_are_counted_on(monkeypatch):
    """Counting ends above the limit alone: 2 totals of the first column, 4 of both."""
    space = FeatureSpace.declare({"a": (0, 4), "b": (0, 4)})
    conditions = [Condition(0, "at_least", 1.0), Condition(1, "at_least", 2.0)]
    scorecard = Scorecard(space, ["no", "yes"], conditions, np.array([[1], [2]]), [0])
    for most, expected in ((1, 2), (2, 4), (3, 4)):
        monkeypatch.setattr(complexity_module, "MOST_TOTALS", most)
        assert complexity(scorecard).n_leaves == expected


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="no rows"):
        complexity(tree_that_asks_twice(), np.empty((0, 2)))


def test_a_variable_that_changes_no_total_is_not_counted():
    space = FeatureSpace.declare({"a": (0, 4), "b": (0, 4)})
    conditions = [Condition(0, "at_least", 1.0), Condition(1, "at_least", 2.0)]
    for points, n_features, n_questions in (([[2], [1]], 2, 2), ([[2], [0]], 1, 1)):
        found = complexity(Scorecard(space, ["no", "yes"], conditions, np.array(points), [0]))
        assert (found.n_features, found.n_questions) == (n_features, n_questions)
        assert found.n_leaves == 2**n_features
