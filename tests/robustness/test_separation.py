"""Separation equals what trying everything gives."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression

from steadytree.robustness._kernels.separation import close_pairs
from steadytree.robustness.conflict_graph import Distinct, Scaled
from steadytree.robustness.separation import LinearSeparation, _logistic_plane, separation
from tests.robustness import reference_separation


def distances(X):
    return np.abs(X[:, None] - X[None]).max(axis=2)


def least_removal(D, y, reach):
    """Fewest rows whose removal leaves no pair of different classes within reach."""
    close = reach >= D
    clash = close & (y[:, None] != y[None])
    for size in range(len(y) + 1):
        for gone in itertools.combinations(range(len(y)), size):
            kept = np.setdiff1d(np.arange(len(y)), gone)
            if not clash[np.ix_(kept, kept)].any():
                return size
    raise AssertionError("all rows removed leave no pair")


@pytest.mark.parametrize("seed", range(60))
def test_everything_equals_brute_force(seed):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 5))
    n = int(rng.integers(4, 10))
    X = rng.integers(0, 9, (n, 2)) / 8 if seed % 2 else rng.random((n, 2))
    X[0], X[1] = 0.0, 1.0  # so that scaling changes nothing
    y = rng.integers(0, n_classes, n)
    y[:2] = [0, 1]
    r = float(rng.choice([0.0, 0.05, 0.125, 0.25]))
    found = separation(X, y, r=r, linear=False)
    D = distances(X)
    reach = np.nextafter(2 * r, 0) if r else 0.0
    assert len(found.dropped) == found.least_dropped == least_removal(D, y, reach)
    enemies = np.where(y[:, None] != y[None], D, np.inf)
    np.testing.assert_allclose(found.nearest_other_class, enemies.min(axis=1))
    kept = np.setdiff1d(np.arange(n), found.dropped)
    left = enemies[np.ix_(kept, kept)].min(initial=np.inf)
    assert found.two_r == left
    assert left > reach
    for i, j in found.pairs:
        assert y[i] != y[j]
        assert D[i, j] <= reach
    assert bool(len(found.pairs)) == bool(len(found.dropped))


@pytest.mark.parametrize("kind", ["binary", "continuous", "wide"])
def test_nearest_rows_of_another_class_of_many_rows(kind):
    rng = np.random.default_rng(0)
    X = {
        "binary": rng.integers(0, 2, (300, 9)).astype(float),
        "continuous": rng.random((300, 4)),
        "wide": rng.integers(0, 3, (300, 5)) * 7.0,
    }[kind]
    y = rng.integers(0, 3, 300)
    scaled = Scaled.of(X)
    distinct = Distinct.of(scaled, y, 3)
    found = distinct.nearest_other_class()[distinct.distinct_row]
    expected = np.where(y[:, None] != y[None], distances(scaled.values), np.inf).min(axis=1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["binary", "continuous", "wide", "mixed"])
def test_the_closest_pair_is_found(kind):
    rng = np.random.default_rng(1)
    for n_classes in (2, 4):
        X = {
            "binary": rng.integers(0, 2, (200, 12)).astype(float),
            "continuous": rng.random((200, 5)),
            "wide": rng.integers(0, 3, (200, 6)) * 7.0,
            "mixed": np.column_stack([rng.integers(0, 2, (200, 3)), rng.random((200, 3))]),
        }[kind]
        y = rng.integers(0, n_classes, 200)
        scaled = Scaled.of(X)
        distinct = Distinct.of(scaled, y, n_classes)
        apart = np.where(y[:, None] != y[None], distances(scaled.values), np.inf)
        nothing = np.zeros(distinct.counts.shape, bool)
        assert distinct.least_distance(nothing) == apart.min()
        # and among rows that are left
        dropped = nothing.copy()
        dropped[::2] = True
        left = np.flatnonzero(distinct.distinct_row % 2 == 1)
        assert distinct.least_distance(dropped) == apart[np.ix_(left, left)].min()


def test_categories_and_missing_values_are_one_apart():
    frame = pd.DataFrame({"a": [0.0, 0.2, np.nan, 1.0], "b": ["u", "u", "u", "v"]})
    X = Scaled.of(frame).values
    D = distances(X)
    assert D[0, 1] == pytest.approx(0.2)
    assert D[0, 2] == D[1, 2] == D[0, 3] == 1.0


def test_the_margin_of_points_on_a_line():
    found = separation([[-1.0], [-0.5], [0.5], [1.0]], [0, 0, 1, 1]).linear
    assert found.separateness == 1.0
    # w = 1 on the column and 0 on the constant: the nearest points are at -0.5 and 0.5
    assert found.gamma == pytest.approx(0.5)
    assert found.exact
    assert found.edge == 0.25
    assert found.card_size(0.01) == int(np.ceil(np.log(100) / (2 * 0.25**2)))


def test_theorems_hold_on_real_data():
    X, y = load_breast_cancer(return_X_y=True)
    found = separation(X, y)
    assert found.separateness == 1.0
    assert found.depth_bound >= 1
    assert 0.9 < found.linear.separateness <= 1
    # some condition on the rows that stay must beat one half by the edge, for equal weights
    best = max(
        max(((X[:, j] >= t) == y).mean(), ((X[:, j] < t) == y).mean())
        for j in range(X.shape[1])
        for t in np.unique(X[:, j])[::20]
    )
    assert best >= 0.5 + found.linear.edge


def test_more_than_two_classes_have_no_hyperplane():
    X, y = load_iris(return_X_y=True)
    assert separation(X, y).linear is None
    with pytest.raises(ValueError, match="a hyperplane separates two classes"):
        separation(X, y, linear=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"r": -1}, "r must be a number of at least 0, got -1"),
        ({"r": "a"}, "r must be a number of at least 0, got 'a'"),
        ({"r": True}, "r must be a number of at least 0, got True"),
        ({"y": [0, 0]}, "y must hold 2 to 62 classes, got 1"),
        ({"y": [0, 1, 0]}, "X has 2 rows, but y has 3"),
        ({"scale": {"z": 1.0}}, "scale names 'z'"),
        ({"scale": {"x0": 0.0}}, "scale of 'x0' must be a number above 0, got 0.0"),
        ({"scale": {"x0": "a"}}, "scale of 'x0' must be a number above 0, got 'a'"),
        ({"scale": 2.0}, "scale must map names to numbers, got 2.0"),
        (
            {"X": [["a"], ["b"]], "scale": {"x0": 2.0}},
            "scale of 'x0': its categories are always 1 apart",
        ),
        ({"scale": {"x0": 1e-320}}, "column 'x0' reaches from 0 to 1, too far"),
        ({"X": [[-1.7e308], [1.7e308]]}, r"reaches from -1.7e\+308 to 1.7e\+308, too far"),
        ({"time_limit": "a"}, "time_limit must be above 0 seconds, got 'a'"),
    ],
)
def test_bad_input_is_one_clear_line(changes, message):
    given = {"X": [[0.0], [1.0]], "y": [0, 1], **changes}
    with pytest.raises(ValueError, match=message):
        separation(given.pop("X"), given.pop("y"), **given)


def test_equal_rows_of_different_classes_must_go():
    found = separation([[0.0], [0.0], [0.0], [1.0]], [0, 0, 1, 1])
    assert found.dropped.tolist() == [2]
    assert len(found.pairs) == 1
    assert found.nearest_other_class.tolist() == [0.0, 0.0, 0.0, 1.0]


def test_what_branch_and_bound_proves_is_exact():
    """Four classes at each of two places: three of four must go, a half each by the relaxation."""
    found = separation([[0.0]] * 4 + [[1.0]] * 4, [0, 1, 2, 3] * 2)
    assert (len(found.dropped), found.least_dropped, found.exact) == (6, 6, True)
    assert "once 6 rows are dropped, and dropping fewer is not enough" in str(found.statements()[0])


def test_a_bound_holds_where_the_least_removal_is_not_known():
    found = separation([[0.0]] * 4, [0, 1, 2, 3])
    unsure = replace(found, least_dropped=2)
    assert not unsure.exact
    assert "holds: at least 2 rows must be dropped" in str(unsure.statements()[0])
    assert "3 are enough" in str(unsure.statements()[0])


@pytest.mark.parametrize("seed", range(6))
def test_more_pairs_than_can_be_listed_leave_an_interval(seed, monkeypatch):
    """It holds the least number, and what is dropped suffices."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 12, (80, 2)) / 11, rng.integers(0, 2 + seed % 2, 80)
    X[0], X[1] = 0.0, 1.0  # so that scaling changes nothing
    exact = separation(X, y, r=0.06, linear=False)
    monkeypatch.setattr("steadytree.robustness.conflict_graph.MOST_PAIRS", 20)
    found = separation(X, y, r=0.06, linear=False)
    assert exact.exact
    assert len(exact.pairs) > 20
    assert found.least_dropped <= exact.least_dropped <= len(found.dropped)
    assert len(found.dropped) <= 2 * found.least_dropped
    assert len(found.pairs) >= 20  # those listed, and equal rows
    kept = np.setdiff1d(np.arange(80), found.dropped)
    apart = np.where(y[:, None] != y[None], distances(X), np.inf)[np.ix_(kept, kept)]
    assert found.two_r == apart.min() > 0.119
    assert "must be dropped for the classes to be apart" in str(found.statements()[0])


def test_statements_name_what_they_need():
    X, y = load_iris(return_X_y=True)
    found = separation(X[:100], y[:100])
    assert all(one.holds for one in found.statements())
    assert len(found.statements()) == 5
    assert "holds: a card of" in str(found)
    same = separation(np.ones((4, 1)), [0, 1, 0, 1])
    assert same.linear.separateness == 0.5  # a constant answer is a hyperplane too
    assert "are of one class, so nothing is left to separate" in str(same.statements()[1])
    several = separation(X, y, r=0.05)
    assert len(several.statements()) == 2


def depth_by_halving(rows):
    """Depth of a tree that halves each column's values in turn until rows are alone."""
    if len(rows) <= 1:
        return 0
    column = next(j for j in range(rows.shape[1]) if len(np.unique(rows[:, j])) > 1)
    values = np.unique(rows[:, column])
    left = rows[:, column] < values[len(values) // 2]
    return 1 + max(depth_by_halving(rows[left]), depth_by_halving(rows[~left]))


@pytest.mark.parametrize("seed", range(20))
def test_some_tree_of_that_depth_exists_whatever_the_classes_are(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, rng.integers(2, 9), (rng.integers(2, 40), rng.integers(1, 4)))
    y = np.arange(len(X)) % 2
    found = separation(X, y)
    assert depth_by_halving(np.unique(X, axis=0)) <= found.depth_anyway


def test_a_depth_that_says_nothing_is_not_shown_as_if_it_did():
    X, y = load_breast_cancer(return_X_y=True)
    found = separation(X, y)
    assert found.depth_bound > found.depth_anyway > 0
    depth = next(reading for reading in found.measurements() if reading.name == "tree depth")
    assert depth.value == found.depth_anyway
    assert "any labels" in depth.meaning
    assert "gives no useful bound" in str(found.statements()[1])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[:, 0] = np.where(np.arange(300) < 150, X[:, 0] / 1e3, 100 + X[:, 0] / 1e3)
    wide = separation(X, np.arange(300) < 150)
    assert wide.depth_says_something
    assert "some tree of depth 18 is right on all 300 rows" in str(wide.statements()[1])


def test_units_change_distances_but_neither_the_margin_nor_the_depth():
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    ranges = {f"x{j}": 10 * float(np.ptp(X[:, j])) for j in range(4)}
    plain, wide = separation(X, y), separation(X, y, scale=ranges)
    assert wide.two_r == pytest.approx(plain.two_r / 10)
    assert wide.depth_bound == pytest.approx(plain.depth_bound)
    assert wide.linear.gamma == pytest.approx(plain.linear.gamma)


def test_without_a_margin_no_card_size_is_promised():
    assert LinearSeparation(0.5, 0.0, True).card_size(0.1) == np.inf


def test_rows_that_are_lost_do_not_hold_a_hyperplane_back():
    """Four of a hundred rows lie far on the wrong side; the other 96 can be separated."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1, -0.02, 48), rng.uniform(0.02, 1, 48), [8.0] * 4])
    y = np.repeat([0, 1, 0], [48, 48, 4])
    found = separation(x[:, None], y)
    assert found.linear.separateness == 0.96


@pytest.mark.parametrize("noise", [0.0, 0.5])  # separable rows have large coefficients
def test_the_plane_is_that_of_scikit_learn(noise):
    random = np.random.default_rng(3)
    rows = np.column_stack([random.normal(size=(200, 3)), np.ones(200)])
    signs = np.where(rows[:, 0] + noise * random.normal(size=200) > 0, 1.0, -1.0)
    weight = random.integers(0, 4, 200).astype(float)
    model = LogisticRegression(C=1e4, max_iter=2000, fit_intercept=False)
    expected = model.fit(rows, signs, sample_weight=weight).coef_[0]
    np.testing.assert_allclose(_logistic_plane(rows, signs, weight), expected, rtol=1e-6)


def test_more_pairs_than_there_was_room_for_are_all_listed():
    n, rng = 130, np.random.default_rng(0)
    rows, bits = rng.integers(0, 5, (n, 3)), rng.integers(1, 3, n)
    least, last = np.arange(-2, 3).clip(0), np.arange(2, 7).clip(max=4)
    closer = np.tile(least, 3), np.tile(last, 3), np.array([0, 5, 10])
    given = *reference_separation.tree_of(rows, bits, 4), closer
    expected, _ = reference_separation.close_pairs(*given, 10_000)
    assert len(expected) > 1_024
    found = close_pairs(*given, 10_000)
    reference_separation.same_pairs(found, (expected, 10_000))


def test_figures_are_called_what_they_are():
    found = separation([[0.0], [0.4], [0.5], [1.0]], [0, 0, 1, 1])
    names = {one.name: one.value for one in found.measurements()}
    assert names["class distance"] == found.two_r
    assert names["hyperplane margin"] == found.linear.gamma
    assert names["single condition"] == 0.5 + found.linear.edge
