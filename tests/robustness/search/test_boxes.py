"""Rows as boxes: ranks among thresholds, thresholds that matter, and what no tree can keep."""

import itertools

import numpy as np
import pytest

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.search.boxes import (
    BoxProblem,
    box_thresholds,
    empty_tree,
    moves_in_boxes,
    reach,
)


def problem_of(values, labels, noise, columns, weights=None):
    space = FeatureSpace(tuple(columns))
    weights = np.ones(len(values)) if weights is None else weights
    training = np.asarray(values, float), np.asarray(labels), weights
    return BoxProblem.of(space, noise.moves(space), training, noise.spend(1.0), 0.0)


def reachable(x, noise, moves, integer):
    """Values that a number may move to, tried one by one on a fine grid."""
    if np.isnan(x):
        return np.array([])
    grid = np.arange(-8, 17) if integer else np.arange(-80, 161) / 10
    grid = grid[(grid >= moves.low[0]) & (grid <= moves.high[0])]
    with np.errstate(invalid="ignore"):
        cost = np.where(grid > x, (grid - x) * moves.up[0], (x - grid) * moves.down[0])
    return np.append(grid[np.nan_to_num(cost) <= noise.spend(1.0)], x)


@pytest.mark.parametrize("seed", range(20))
def test_ranks_say_what_every_move_says(seed):
    rng = np.random.default_rng(seed)
    integer = bool(seed % 2)
    x = rng.integers(0, 9, 12).astype(float)
    x[rng.random(12) < 0.2] = np.nan
    x[0] = 0
    thresholds = np.unique(rng.integers(-1, 9, 4)) + (0.0 if integer else 0.05)
    kind = "integer" if integer else "numeric"
    column = Column("a", kind, 0.0, 9.0, (), bool(np.isnan(x).any()), thresholds)
    noise = Perturbation(
        radius={"a": float(rng.choice([0, 0.5, 1, 2.5]))},
        direction={"a": str(rng.choice(["up", "down", "both"]))},
        bounds={"a": (1, 6)} if rng.random() < 0.5 else {},
        missing_cost={"a": 0.5} if rng.random() < 0.5 else {},
    )
    problem = problem_of(x[:, None], rng.integers(0, 2, 12), noise, [column])
    table, moves = problem.table, problem.moves
    for k, one in enumerate(problem.columns):
        for row, value in enumerate(problem.rows[:, 0]):
            values = reachable(value, noise, moves, integer)
            for index, t in enumerate(one.thresholds):
                left, right = (values <= t).any(), (values > t).any()
                if np.isnan(value):
                    moved = noise.missing_cost.get("a", 9) <= 1
                    left, right = moved or one.missing_left, moved or not one.missing_left
                assert (table.left_from[k, row] <= index) == (not right)
                assert (index < table.right_below[k, row]) == (not left)


def test_categories_move_to_any_other_or_stay():
    column = Column("a", "categorical", categories=("p", "q", "r"), missing=True)
    values = np.array([[0.0], [1.0], [2.0], [np.nan]])
    for radius, sure in ((0.0, True), (1.0, False)):
        noise = Perturbation(radius={"a": radius})
        problem = problem_of(values, [0, 1, 0, 1], noise, [column])
        assert problem.n_splits == 6
        for k, one in enumerate(problem.columns):
            for row, x in enumerate(problem.rows[:, 0]):
                missing = np.isnan(x)
                is_left = one.missing_left if missing else x == one.category
                stays = sure or missing
                assert (problem.table.left_from[k, row] <= 0) == (stays and is_left)
                assert (problem.table.right_below[k, row] > 0) == (stays and not is_left)


@pytest.mark.parametrize("seed", range(10))
def test_some_threshold_kept_is_as_good_as_any_other(seed):
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 20, 8) / 2
    high = low + rng.integers(0, 6, 8) / 2
    kept = box_thresholds(low, high, integer=False)
    ends = np.unique(np.concatenate([low, high, [-1.0, 20.0]]))
    for t in [*ends, *((ends[1:] + ends[:-1]) / 2)]:
        left, right = high <= t, low > t
        if not left.any() or not right.any():
            continue
        assert any((left <= (high <= k)).all() and (right <= (low > k)).all() for k in kept)
    assert (np.diff(kept) > 0).all()


def test_thresholds_of_whole_numbers_are_whole():
    low, high = np.array([0.0, 3.0, 8.0, np.nan]), np.array([1.0, 4.0, 9.0, np.nan])
    assert box_thresholds(low, high, integer=True).tolist() == [2.0, 6.0]
    assert box_thresholds(np.full(2, np.nan), np.full(2, np.nan), integer=False).size == 0


def least_cover(conflicts, weights):
    """Least weight of rows that meets every pair, by trying all sets of rows."""
    n = len(weights)
    return min(
        weights[list(rows)].sum()
        for size in range(n + 1)
        for rows in itertools.combinations(range(n), size)
        if all(i in rows or j in rows for i, j in conflicts)
    )


@pytest.mark.parametrize("seed", range(10))
def test_what_no_tree_can_keep(seed):
    rng = np.random.default_rng(seed)
    n, n_classes = 9, 2 + seed % 2
    X, labels = rng.random((n, 2)), rng.integers(0, n_classes, n)
    labels[:n_classes] = range(n_classes)
    weights = rng.uniform(0.5, 2, n) if seed % 3 == 0 else np.ones(n)
    noise, radius = Perturbation(radius=0.15), 0.15 * (1 + 1e-9)
    columns = []
    for j in range(2):
        low, high = X[:, j] - radius, X[:, j] + radius
        columns.append(
            Column(f"x{j}", "numeric", 0.0, 1.0).with_thresholds(box_thresholds(low, high, False))
        )
    problem = problem_of(X, labels, noise, columns, weights)
    near = np.abs(X[:, None] - X).max(axis=2) <= 2 * radius
    conflicts = [
        (i, j)
        for i, j in itertools.combinations(range(n), 2)
        if near[i, j] and labels[i] != labels[j]
    ]
    least = least_cover(conflicts, weights)
    found = problem.total - problem.most_kept()
    if n_classes == 2:
        assert found == pytest.approx(least, abs=1e-4)
    else:
        assert least / 2 - 1e-4 <= found <= least + 1e-4


def test_which_moves_are_boxes():
    space = FeatureSpace((Column("a", "numeric", 0.0, 1.0), Column("b", "numeric", 0.0, 1.0)))
    by_radius = Perturbation(radius=0.1).moves(space)
    by_cost = Perturbation(step_cost=1.0, budget=1).moves(space)
    nothing = Perturbation(step_cost=np.inf, budget=0).moves(space)
    assert moves_in_boxes(by_radius, shared=False)
    assert not moves_in_boxes(by_radius, shared=True)
    assert not moves_in_boxes(by_cost, shared=False)
    assert moves_in_boxes(nothing, shared=False)
    low, high = reach(by_radius, 0, np.array([0.5, np.nan]), 1.0)
    assert (low[0], high[0]) == (0.4, 0.6)
    assert np.isnan(low[1])


def test_a_tree_is_encoded_over_the_thresholds_it_uses():
    column = Column("a", "numeric", 0.0, 9.0, (), False, np.arange(9) + 0.5)
    noise = Perturbation(radius={"a": 0.1})
    problem = problem_of(np.arange(10.0)[:, None], [0] * 5 + [1] * 5, noise, [column])
    nodes = empty_tree(2)
    nodes[1], nodes[3] = (0, 4, 0), (0, 7, 0)
    nodes[2, 2], nodes[6, 2], nodes[7, 2] = 0, 1, 0
    space, splits, encoding = problem.encode(nodes)
    assert space[0].thresholds.tolist() == [4.5, 7.5]
    assert [split.threshold for split in splits] == [4.5, 7.5]
    assert encoding.tolist() == [0, -1, 0, 0, 1, -2, -1]
