"""Leave-one-out without growing n trees equals growing n trees, in all corners of the data."""

import itertools
import pickle

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from steadytree import FeatureSpace, StableTreeClassifier, Tree, average_sensitivity, tree_distance
from steadytree.data.dataset import Dataset
from steadytree.stability.removal import affordable, is_repeatable, settle_thresholds
from tests.data.row_sets import random_rows

EPSILONS = (0, 0.01, 0.1, 1)
CRITERIA = ("count", "gini")
DEPTHS = range(1, 7)
SETTINGS = list(itertools.product(EPSILONS, CRITERIA, DEPTHS))


@pytest.fixture(autouse=True)
def groups_from_few_rows(monkeypatch):
    """Groups of categories, however few rows there are."""
    monkeypatch.setattr("steadytree.data.splits.GROUPED_ROWS", 0)


def learner(epsilon, criterion, depth, rng):
    return StableTreeClassifier(
        max_depth=depth,
        epsilon=epsilon,
        criterion=criterion,
        n_thresholds=int(rng.choice([3, 20, 500])),
        grid=str(rng.choice(["equidistant", "quantile", "midpoint"])),
        min_samples_leaf=int(rng.choice([1, 1, 3])),
        merge_leaves=bool(rng.integers(2)),
        random_state=int(rng.integers(99)),
    )


def brute_force(model, X, y, sets):
    """Grow every tree anew, through the grower that `fit` uses."""
    prepared = model.prepare(X, y)
    whole = model.grow(prepared)
    trees = [model.grow(prepared.take(np.setdiff1d(np.arange(len(y)), s))) for s in sets]
    return [float(tree_distance(whole, tree, "node")) for tree in trees], trees


def count_mismatches(seed, setting):
    """Comparisons of one random data set, and how many of them differ."""
    rng = np.random.default_rng(seed)
    X, y = random_rows(rng)
    model = learner(*setting, rng)
    found = average_sensitivity(model, X, y, normalise=False)
    expected, _ = brute_force(model, X, y, np.arange(len(y))[:, None])
    assert found.exact
    return len(expected), int((found.distances[0] != expected).sum())


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_leave_one_out_equals_refitting(setting):
    index = SETTINGS.index(setting)
    results = [count_mismatches((seed, index), setting) for seed in range(4)]
    assert sum(mismatches for _, mismatches in results) == 0


@pytest.mark.slow
def test_leave_one_out_equals_refitting_twenty_thousand_times():
    compared, seed = 0, 0
    while compared < 20_000:
        setting = SETTINGS[seed % len(SETTINGS)]
        comparisons, mismatches = count_mismatches((1, seed), setting)
        assert mismatches == 0, (seed, setting)
        compared, seed = compared + comparisons, seed + 1


@pytest.mark.parametrize("coupling", ["gumbel", "rejection"])
@pytest.mark.parametrize("removed", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0, 0.3])
def test_sampled_sets_equal_refitting(coupling, removed, epsilon):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = random_rows(rng, n=30)
        model = learner(epsilon, "count", 3, rng).set_params(coupling=coupling)
        found = average_sensitivity(model, X, y, removed, repeats=15, normalise=False)
        assert found.removed.shape == (1, 15, removed)
        assert all(len(set(rows)) == removed for rows in found.removed[0].tolist())
        expected, _ = brute_force(model, X, y, found.removed[0])
        np.testing.assert_array_equal(found.distances[0], expected)


def test_rejection_and_looking_ahead_leave_one_out_too():
    X, y = random_rows(np.random.default_rng(5), n=25)
    for changes in (
        {"coupling": "rejection", "epsilon": 0.5},
        {"lookahead": 2, "epsilon": 0, "criterion": "count"},
    ):
        model = StableTreeClassifier(max_depth=2, n_thresholds=5, random_state=1, **changes)
        found = average_sensitivity(model, X, y, normalise=False)
        expected, _ = brute_force(model, X, y, np.arange(25)[:, None])
        np.testing.assert_array_equal(found.distances[0], expected)


@pytest.mark.parametrize("distance", ["node-features", lambda a, b: abs(a.n_nodes - b.n_nodes)])
def test_other_distances(distance):
    X, y = random_rows(np.random.default_rng(6), n=40)
    model = StableTreeClassifier(max_depth=4, epsilon=0, random_state=0)
    found = average_sensitivity(model, X, y, distance=distance, normalise=False)
    prepared = model.prepare(X, y)
    whole, trees = model.grow(prepared), brute_force(model, X, y, np.arange(40)[:, None])[1]
    measure = distance if callable(distance) else lambda a, b: tree_distance(a, b, distance)
    np.testing.assert_array_equal(found.distances[0], [measure(whole, tree) for tree in trees])


@pytest.mark.parametrize("epsilon", [0, 0.1])
def test_alternatives_come_with_their_frequencies(epsilon):
    X, y = random_rows(np.random.default_rng(11), n=40)
    model = StableTreeClassifier(max_depth=3, epsilon=epsilon, random_state=0)
    found = average_sensitivity(model, X, y)
    _, trees = brute_force(model, X, y, np.arange(40)[:, None])
    assert len(found.alternatives) > 1
    for each in found.alternatives:
        assert each.share == sum(tree_distance(each.tree, tree, "node") == 0 for tree in trees) / 40
    different = {
        tuple(tree_distance(tree, other, "node") == 0 for other in trees) for tree in trees
    }
    most = sorted((sum(equal) for equal in different), reverse=True)[:5]
    assert [each.share for each in found.alternatives] == [count / 40 for count in most]


def test_alternatives_are_grown_when_asked_for_and_travel():
    X, y = random_rows(np.random.default_rng(7), n=40)
    model = StableTreeClassifier(max_depth=3, epsilon=0, random_state=0)
    found = average_sensitivity(model, X, y, normalise=False)
    whole = model.grow(model.prepare(X, y))
    assert [each.share for each in found.alternatives] == sorted(
        (each.share for each in found.alternatives), reverse=True
    )
    for each in found.alternatives:
        assert "tree" not in vars(each)
        assert each.distance == tree_distance(whole, each.tree, "node")
        assert each.tree is each.tree
        assert pickle.loads(pickle.dumps(each)).tree == each.tree


def test_only_learners_that_prepare_a_fit_repeat_it():
    assert is_repeatable(StableTreeClassifier())
    assert not is_repeatable(DecisionTreeClassifier())


def test_slow_learners_are_fitted_to_twenty_thousand_rows_in_all():
    slow, quick = DecisionTreeClassifier(), StableTreeClassifier()
    assert [affordable(slow, n, 100) for n in (1, 200, 400, 3_999, 4_000, 10**6)] == [
        *(100, 100, 50, 5, 5, 5)
    ]
    assert affordable(quick, 10**6, 100) == 100


def test_thresholds_that_differ_by_rounding_become_the_least_of_them_and_others_stay():
    space = FeatureSpace.declare({"age": (0, 100), "dose": (0, 1)})

    def stump(feature, threshold):
        nodes = [feature, -1, -1], [threshold, np.nan, np.nan], [1, -1, -1], [2, -1, -1]
        return Tree(space, ["no", "yes"], *nodes, [[0.5, 0.5], [1, 0], [0, 1]], [2.0, 1, 1])

    far, near = 50 + 2e-5, 50 + 4e-6  # a rounding of numbers up to 50 is 50 * 2**-22, 1.2e-5
    given = [(0, 50.0), (0, near), (0, far), (1, 0.25), (1, 0.25 + 1e-9), (1, 0.3), (0, 70.0)]
    data = Dataset.of(np.array([[0.0, 0.0], [100.0, 1.0]]))
    settled = settle_thresholds([stump(*one) for one in given], data)
    expected = [50.0, 50.0, far, 0.25, 0.25, 0.3, 70.0]
    assert [tree.threshold[0] for tree in settled] == expected
    assert [tree.feature[0] for tree in settled] == [feature for feature, _ in given]


@pytest.mark.parametrize("seed", range(20))
def test_thresholds_are_settled_one_after_the_other(seed):
    """Each that is farther from the one before than single precision rounds begins anew."""
    rng = np.random.default_rng(seed)
    skewed = np.exp(rng.normal(size=40) * 3)  # mean, median and least value far from each other
    rows = np.column_stack([skewed + 50, rng.normal(size=40) - 9, rng.integers(0, 3, 40)])
    rows[rng.random(rows.shape) < 0.1] = np.nan
    space = FeatureSpace.observe(rows)

    def reach(j, at):
        seen = rows[~np.isnan(rows[:, j]), j]
        return max(abs(at - each) for each in (space[j].low, np.mean(seen), np.median(seen)))

    given = []
    for j in (0, 1):
        for at in rng.normal(size=4) * 3 + np.nanmean(rows[:, j]):
            for _ in range(5):  # steps around the rounding of a number so far off
                given.append((j, at))
                at += reach(j, at) * 2.0**-22 * float(rng.choice([0, 0.4, 0.9, 1.2, 3.0]))
    given = [given[k] for k in rng.permutation(len(given))]
    expected = {}
    for j in (0, 1):
        own = sorted({at for feature, at in given if feature == j})
        for k, at in enumerate(own):
            same = k > 0 and at - own[k - 1] <= 2.0**-22 * reach(j, at)
            expected[j, at] = expected[j, own[k - 1]] if same else at

    def stump(feature, threshold):
        nodes = [feature, -1, -1], [threshold, np.nan, np.nan], [1, -1, -1], [2, -1, -1]
        return Tree(space, ["no", "yes"], *nodes, [[0.5, 0.5], [1, 0], [0, 1]], [2.0, 1, 1])

    settled = settle_thresholds([stump(*one) for one in given], Dataset.of(rows))
    assert [tree.threshold[0] for tree in settled] == [expected[one] for one in given]
    assert 8 < len(set(expected.values())) < len(expected)
