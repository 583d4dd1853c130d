"""The baselines of the study of separation: LCPA and RobDT beside brute force."""

import itertools
import pathlib
import sys

import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "studies" / "separation"


@pytest.fixture(scope="module")
def study():
    """The modules of the study, which import each other by plain names."""
    names = ("lcpa", "peers", "robdt", "methods")
    before = {name: sys.modules.pop(name, None) for name in names}
    sys.path.insert(0, str(FOLDER))
    try:
        import lcpa
        import methods
        import robdt

        yield {"lcpa": lcpa, "robdt": robdt, "methods": methods}
    finally:
        sys.path.remove(str(FOLDER))
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


# ---- lattice cutting planes ----
def best_card(X, y, size, largest, offset, price):
    """Least value over every integer point."""
    signs = np.where(y == 1, 1.0, -1.0)
    values = []
    for points in itertools.product(range(-largest, largest + 1), repeat=X.shape[1]):
        used = sum(p != 0 for p in points)
        if used <= size:
            for start in range(-offset, offset + 1):
                margin = signs * (X @ points + start)
                values.append(np.mean(np.log1p(np.exp(-margin))) + price * used)
    return min(values)


@pytest.mark.parametrize(("seed", "size"), [(0, 1), (1, 2), (2, 3), (3, 2)])
def test_cutting_planes_find_the_best_card(study, seed, size):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (30, 3)) / 2
    y = (X @ [2, -1, 0.5] + rng.normal(0, 0.7, 30) > 0.7).astype(int)
    found = study["lcpa"].lcpa(X, y, size, gap=1e-6)
    best = best_card(X, y, size, 5, 5 * size + 1, 1e-6)
    assert found.value == pytest.approx(best, rel=2e-6)
    assert found.bound <= best + 1e-9
    assert found.gap <= 1e-6
    assert np.count_nonzero(found.points[1:]) <= size
    assert np.array_equal(found.points, np.round(found.points))


def test_a_small_budget_gives_a_card_and_an_honest_bound(study):
    rng = np.random.default_rng(5)
    X, y = rng.random((60, 3)), rng.integers(0, 2, 60)
    found = study["lcpa"].lcpa(X, y, 2, n_relaxed=2, n_solves=1, n_nodes=1)
    whole = study["lcpa"].lcpa(X, y, 2, gap=1e-6)
    assert found.bound <= whole.bound + 1e-9 <= whole.value + 1e-9 <= found.value + 2e-9


def test_a_linear_card_is_judged_as_the_paper_does(study):
    """2 x - 1 moves by 2 for each step of x, by 3 where the intercept moves as well."""
    X, y = np.array([[0.54], [0.9], [0.2], [0.6]]), np.array([1, 1, 0, 0])
    found = study["methods"].judge_linear(np.array([-1.0, 2.0]), X, y)
    assert found["accuracy"] == 0.75
    assert found["questions"] == 2
    assert found["er"] == pytest.approx((0.08 + 0.8 + 0.6) / 6)
    assert found["er_moved"] == pytest.approx((0.08 + 0.8 + 0.6) / 9)
    assert found["at05"] == 0.5


# ---- robust splits ----
def gain(left, y):
    """Of the first tree of a boosted ensemble: gradients +-1/2, hessians 1/4, penalty 1."""

    def leaf(labels):
        gradient, hessian = (0.5 - labels).sum(), 0.25 * len(labels)
        return gradient**2 / (hessian + 1)

    return leaf(y[left]) + leaf(y[~left]) - leaf(y)


def four_cases(x, y, cut, eps):
    """The least gain when movable rows are moved: all left, all right, none, or across."""
    movable = (x >= cut - eps) & (x <= cut + eps)
    left = x <= cut
    sides = (left | movable, left & ~movable, left, left ^ movable)
    return min(gain(side, y) for side in sides)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_split_is_that_of_four_moves(study, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (40, 3)) / 11
    y = (X[:, 0] + 0.4 * rng.random(40) > 0.6).astype(int)
    eps = (0.0, 0.05, 0.1, 0.2)[seed % 4]
    scores = {}
    for j in range(3):
        values = np.unique(X[:, j])
        for low, high in itertools.pairwise(values):
            cut = (low + high) / 2
            if min((X[:, j] <= cut).sum(), (X[:, j] > cut).sum()) >= 4:
                scores[j, cut] = four_cases(X[:, j], y, cut, eps)
    column, threshold, found = study["robdt"].best_split(X, y, eps)
    assert found == pytest.approx(max(scores.values()), abs=1e-9)
    assert scores[column, threshold] == pytest.approx(found, abs=1e-9)


def test_an_adversary_with_more_choices_leaves_less(study):
    """Every choice of a side for each movable row: never more than the four cases leave."""
    rng = np.random.default_rng(1)
    x, y = rng.random(14), rng.integers(0, 2, 14)
    movable = np.flatnonzero(np.abs(x - 0.5) <= 0.2)
    assert 4 <= len(movable) <= 8
    least = np.inf
    for sides in itertools.product([False, True], repeat=len(movable)):
        left = x <= 0.5
        left[movable] = sides
        least = min(least, gain(left, y))
    assert least <= four_cases(x, y, 0.5, 0.2) + 1e-12


def test_a_tree_cut_off_is_the_tree_grown_less(study):
    rng = np.random.default_rng(3)
    X = rng.random((120, 3))
    y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.4)).astype(int)
    deep = study["robdt"].grow(X, y, 0.02, 6)
    for depth in (0, 1, 3):
        own = study["robdt"].grow(X, y, 0.02, depth)
        assert str(study["robdt"].cut_off(deep, depth)) == str(own)
