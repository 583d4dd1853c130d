"""Accuracy under shifts: the exact law against shifting the rows themselves."""

import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeClassifier

from steadytree import Perturbation
from steadytree.robustness.shift import answer_chances, count_law, shift_accuracy, steps_within
from tests.models.trees import random_rows, random_tree


def shifted(rng, tree, rows, certainty):
    """The rows, every value shifted as its certainty says."""
    rows = rows.copy()
    for j, column in enumerate(tree.space):
        moved = rng.random(len(rows)) >= certainty[j]
        if column.is_categorical:
            size = len(column.categories)
            if size > 1:
                step = rng.integers(1, size, len(rows))
                rows[:, j] = np.where(moved, (rows[:, j] + step) % size, rows[:, j])
        else:
            steps = rng.geometric(certainty[j], len(rows)) - 1
            rows[:, j] += steps * rng.choice([-1, 1], len(rows))
    return rows


@pytest.mark.parametrize("seed", range(8))
def test_chances_equal_the_shares_of_sampled_shifts(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, single_precision=bool(seed % 2), n_leaves=7)
    rows = tree.space.encode(random_rows(rng, tree, 5))
    rows = np.where(tree.space.categorical, rows, np.round(rows))
    certainty = rng.uniform(0.3, 1.0, len(tree.space))
    exact = answer_chances(tree, rows, certainty)
    np.testing.assert_allclose(exact.sum(axis=1), 1.0, atol=1e-12)
    repeats = 20_000
    for row in range(len(rows)):
        drawn = shifted(rng, tree, np.tile(rows[row], (repeats, 1)), certainty)
        labels = tree.label[tree.apply_encoded(drawn)]
        shares = np.bincount(labels, minlength=len(tree.classes)) / repeats
        # 8 x 5 x 3 shares, each 5 standard errors wide: false alarm below 1e-4
        error = np.sqrt(np.maximum(exact[row] * (1 - exact[row]), 1e-4) / repeats)
        assert (np.abs(shares - exact[row]) <= 5 * error).all()


@pytest.mark.parametrize("n", [1, 2, 7, 130, 1000])
def test_law_of_the_number_right(n):
    rng = np.random.default_rng(n)
    law = count_law(np.full(n, 0.3))
    np.testing.assert_allclose(law, stats.binom.pmf(np.arange(n + 1), n, 0.3), atol=1e-12)
    chances = rng.random(n)
    expected = np.ones(1)
    for p in chances:
        expected = np.convolve(expected, [1 - p, p])
    np.testing.assert_allclose(count_law(chances), expected, atol=1e-12)


def test_average_and_worst_agree_with_shifting_the_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (300, 3)).astype(float)
    y = (X[:, 0] + X[:, 1] > 4).astype(int)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    found = shift_accuracy(model, X, y, {"x0": 0.8, "x1": 0.6}, repeats=2000, random_state=0)
    direct = []
    for _ in range(2000):
        Z = X.copy()
        for j, q in ((0, 0.8), (1, 0.6)):
            Z[:, j] += (rng.geometric(q, 300) - 1) * rng.choice([-1, 1], 300)
        direct.append(model.score(Z, y))
    # two-sample Kolmogorov-Smirnov at level 1e-4
    assert stats.ks_2samp(found.sampled, direct).pvalue > 1e-4
    assert found.average == pytest.approx(np.mean(direct), abs=5 * np.std(direct) / np.sqrt(2000))
    assert found.worst <= found.average <= model.score(X, y)


def test_wrong_certainties():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, (100, 2)), rng.integers(0, 2, 100)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    arguments = (model, X, y, {"x0": 0.8, "x1": 0.7})
    lower = shift_accuracy(*arguments, offset=-0.2, random_state=0).average
    higher = shift_accuracy(*arguments, offset=0.1, random_state=0).average
    assert lower < shift_accuracy(*arguments, random_state=0).average < higher
    one = shift_accuracy(*arguments, spread=0.1, random_state=1)
    again = shift_accuracy(*arguments, spread=0.1, random_state=1)
    np.testing.assert_array_equal(one.sampled, again.sampled)
    assert shift_accuracy(model, X, y, 1.0).worst == model.score(X, y)


def test_what_is_refused():
    model = DecisionTreeClassifier().fit([[0], [1]], [0, 1])
    with pytest.raises(TypeError, match="got Perturbation"):
        shift_accuracy(model, [[0], [1]], [0, 1], Perturbation(radius=0.1))
    with pytest.raises(ValueError, match="certainty names 'age'"):
        shift_accuracy(model, [[0], [1]], [0, 1], {"age": 0.5})
    with pytest.raises(ValueError, match="must be in"):
        shift_accuracy(model, [[0], [1]], [0, 1], {"x0": 0.0})
    with pytest.raises(ValueError, match="repeats must be a whole number of at least 1"):
        shift_accuracy(model, [[0], [1]], [0, 1], 0.5, repeats=0)
    with pytest.raises(ValueError, match="offset must be a number from -1 to 1, got nan"):
        shift_accuracy(model, [[0], [1]], [0, 1], 0.5, offset=float("nan"))
    with pytest.raises(ValueError, match="spread must be a number from 0 to 1"):
        shift_accuracy(model, [[0], [1]], [0, 1], 0.5, spread=-0.1)
    with pytest.raises(ValueError, match="2 rows, but y has 1"):
        shift_accuracy(model, [[0], [1]], [0], 0.5)


def test_steps_up_to_a_threshold_are_those_the_tree_sees():
    """0.7 + 0.1 is not 0.8 in floats: differences would count a step too many or too few."""
    tenths = np.arange(-30, 31) / 10
    differ = 0
    for edge in tenths:
        found = steps_within(tenths, edge)
        expected = [max(k for k in range(-10, 11) if x + k <= edge) for x in tenths]
        np.testing.assert_array_equal(found, expected)
        differ += (np.floor(edge - tenths) != expected).sum()
    assert differ > 0
    np.testing.assert_array_equal(steps_within(tenths, np.inf), np.inf)
    np.testing.assert_array_equal(steps_within(tenths, -np.inf), -np.inf)
