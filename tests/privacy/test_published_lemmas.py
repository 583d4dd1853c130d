"""Steps of the proofs of Wang, Dick and Balcan, on fine grids; Lemma 20, which is false."""

import numpy as np

GRID = np.linspace(0, 1, 201)


def test_x_log_x_is_as_continuous_as_lemma_10_says():
    x, y = np.meshgrid(GRID[1:-1], GRID[1:-1])
    apart = np.abs(x - y)
    near = (apart > 0) & (apart <= 0.5)
    change = np.abs(x * np.log2(x) - y * np.log2(y))
    assert (change[near] <= -apart[near] * np.log2(apart[near]) + 1e-12).all()
    far = apart > 0.9  # the condition is needed
    assert (change[far] > -apart[far] * np.log2(apart[far])).any()


def test_sizes_with_logarithms_follow_lemma_13():
    b, x = np.meshgrid(np.geomspace(0.01, 1e4, 200), np.geomspace(1e-3, 1e7, 400))
    enough = x >= 2 * b * np.log(b)
    assert (x[enough] >= b[enough] * np.log(x[enough]) - 1e-9).all()
    some = (x >= 0.5 * b * np.log(b)) & (b > 100)  # the factor 2 is needed
    assert (x[some] < b[some] * np.log(x[some])).any()


def test_products_and_roots_differ_as_lemmas_17_and_19_say():
    grid = np.linspace(0, 1, 21)
    a, b, x, y = np.meshgrid(grid, grid, grid, grid)
    assert (np.abs(a * x - b * y) <= np.abs(a - b) + np.abs(x - y) + 1e-12).all()
    x, y = np.meshgrid(GRID, GRID)
    assert (np.abs(np.sqrt(x) - np.sqrt(y)) <= np.sqrt(np.abs(x - y)) + 1e-12).all()


def test_the_root_of_gini_is_more_sensitive_than_lemma_20_says():
    for m in (100, 10_000):
        q = 1 / m  # one row of another class at a pure node
        assert 2 * np.sqrt(q * (1 - q)) > 10 / m
