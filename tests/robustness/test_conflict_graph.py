"""Which rows are closer than 2 r is decided without rounding: a twin in fractions."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from steadytree.robustness.conflict_graph import Scaled
from steadytree.robustness.separation import separation


def exact_distances(frame, scale):
    """All distances in exact arithmetic, each float the decimal that Python prints."""
    n = len(frame)
    apart = [[Fraction(0)] * n for _ in range(n)]
    for name in frame:
        listed = list(frame[name].to_numpy())  # numpy's numbers, which keep their precision
        gone = [value is None or value != value for value in listed]
        is_text = frame[name].dtype == object
        if not is_text:
            numbers = [None if g else Fraction(str(v)) for v, g in zip(listed, gone, strict=True)]
            present = [number for number in numbers if number is not None]
            unit = Fraction(str(scale[name])) if name in scale else max(present) - min(present)
        for i, j in itertools.combinations(range(n), 2):
            if gone[i] or gone[j]:
                own = Fraction(int(gone[i] != gone[j]))
            elif is_text:
                own = Fraction(int(listed[i] != listed[j]))
            else:
                own = abs(numbers[i] - numbers[j]) / (unit or 1)
            apart[i][j] = apart[j][i] = max(apart[i][j], own)
    return apart


def fewest_dropped(apart, y, r):
    """Fewest rows whose removal leaves different classes at least 2 r apart, and unequal."""
    wide = 2 * Fraction(str(r))
    clash = [
        (i, j)
        for i, j in itertools.combinations(range(len(y)), 2)
        if y[i] != y[j] and (apart[i][j] < wide or apart[i][j] == 0)
    ]
    for size in range(len(y) + 1):
        for gone in itertools.combinations(range(len(y)), size):
            if all(i in gone or j in gone for i, j in clash):
                return size, clash
    raise AssertionError("all rows removed leave no pair")


def random_case(rng):
    """Decimals on a grid, many pairs exactly 2 r apart; text, missing values, scales."""
    n, digits = int(rng.integers(3, 9)), int(rng.integers(0, 4))
    columns, scale = {}, {}
    for name in ("a", "b", "c")[: rng.integers(1, 4)]:
        offset = float(rng.choice([0, 0, 1, -3, 1000, 1e6]))
        values = [round(offset + float(k) / 10**digits, digits) for k in rng.integers(0, 11, n)]
        column = pd.Series(values, dtype=rng.choice(["float64", "float64", "float32"]))
        if rng.random() < 0.2:
            column[rng.integers(n)] = np.nan
        elif rng.random() < 0.3:
            # at least the range, so that a missing value is never farther than 1 from any other
            scale[name] = round(float(np.ptp(values)) + float(rng.integers(1, 9)) / 10, 4)
        columns[name] = column
    if rng.random() < 0.3:
        columns["t"] = pd.Series(rng.choice(["u", "v"], n), dtype=object)
    y = rng.integers(0, int(rng.integers(2, 4)), n)
    y[:2] = [0, 1]
    frame = pd.DataFrame(columns)
    ties = sorted({d for row in exact_distances(frame, scale) for d in row if d > 0})
    drawn = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.5]
    halves = [float(d / 2) for d in ties if Fraction(str(float(d / 2))) == d / 2]
    return frame, y, float(rng.choice(drawn + halves)), scale


@pytest.mark.parametrize("block", range(12))
def test_rows_to_drop_equal_a_twin_in_fractions(block):
    """1,200 cases, most of them with pairs that are exactly 2 r apart."""
    rng = np.random.default_rng(block)
    n_tied = 0
    for _ in range(100):
        frame, y, r, scale = random_case(rng)
        apart = exact_distances(frame, scale)
        expected, clash = fewest_dropped(apart, y, r)
        found = separation(frame, y, r=r, scale=scale, linear=False)
        assert len(found.dropped) == found.least_dropped == expected
        assert {tuple(sorted(pair)) for pair in found.pairs.tolist()} <= set(clash)
        assert bool(len(found.pairs)) == bool(clash)
        assert found.two_r >= 2 * r
        n_tied += any(2 * Fraction(str(r)) == d for row in apart for d in row)
    assert n_tied >= 30


def test_rows_exactly_two_r_apart_may_stay():
    found = separation([[0], [1], [2], [3], [4], [5]], [0, 1, 0, 1, 0, 1], r=0.1)
    assert len(found.dropped) == found.least_dropped == 0
    assert len(found.pairs) == 0
    assert found.two_r == 0.2
    assert "no row has to be dropped" in str(found.statements()[0])
    just_more = separation([[0], [1], [2], [3], [4], [5]], [0, 1, 0, 1, 0, 1], r=0.1 + 1e-16)
    assert len(just_more.dropped) == 3


def test_rows_that_scaling_rounds_together_are_still_different():
    """1e-17 and 0 are one float when -1 is taken off both."""
    found = separation([[-1.0], [0.0], [1e-17], [1.0]], [0, 0, 1, 1], linear=False)
    assert len(found.dropped) == 0
    assert found.depth_anyway == 2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_least_and_last_closer_values_equal_trying_all(dtype):
    rng = np.random.default_rng(0)
    for _ in range(60):
        offset = rng.choice([0.0, 0.3, -7.0, 1e5])
        X = (offset + rng.integers(-20, 20, (int(rng.integers(1, 30)), 1)) / 10).astype(dtype)
        X = X * dtype(rng.choice([1, 1, 1e-30, 1e30, 1e-44 if dtype == np.float32 else 1e-322]))
        r = float(rng.choice([0.05, 0.1, 0.125, 0.25, 0.5, 1.0]))
        scaled = Scaled.of(X)
        least, last, _ = scaled.closer_than(r)
        level = [Fraction(str(value)) for value in np.unique(X[:, 0] + dtype(0))]
        reach = 2 * Fraction(str(r)) * ((level[-1] - level[0]) or 1)
        expected = [max(b for b, x in enumerate(level) if x - low < reach) for low in level]
        assert last.tolist() == expected
        assert least.tolist() == [
            min(b for b, x in enumerate(level) if high - x < reach) for high in level
        ]


def test_the_margin_told_is_that_of_a_plane():
    """Not above the greatest by the solver's tolerance: a card's size is promised from it."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        steps = int(rng.integers(3, 50))
        X = np.array([[0.0], [float(steps - 1)], [float(steps)], [3.0 * steps]])
        found = separation(X, [0, 0, 1, 1]).linear
        # two points on [-1, 1]; the widest w x + b with |w| + |b| = 1 lies halfway between
        low, high = (Fraction(2 * (steps - k), 3 * steps) - 1 for k in (1, 0))
        greatest = (high - low) / 2 / (1 + abs(high + low) / 2)
        assert Fraction(found.gamma) <= greatest * (1 + Fraction(1, 10**13))
        assert found.gamma == pytest.approx(float(greatest), rel=1e-6)
