"""Constructions and bounds of Moshkovitz, Yang and Chaudhuri, checked on the data they make."""

import importlib.util
import pathlib

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import steadytree as st

PATH = pathlib.Path(__file__).parents[2] / "studies" / "separation" / "theory.py"
SPEC = importlib.util.spec_from_file_location("theory", PATH)
theory = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(theory)


@pytest.mark.parametrize("n_groups", [10, 50])
def test_a_line_separates_what_no_small_tree_learns(n_groups):
    """Theorem 1: w = (1, 1) / 2 has margin step / 2; greedy and optimal trees keep the limit."""
    X, y = theory.staircase(n_groups)
    sign = 2 * y - 1
    np.testing.assert_allclose(sign * (X @ [0.5, 0.5]), 0.125)
    assert st.separation(X, y, r=0.01).linear.separateness == 1
    for n_leaves in (2, 3, 5, 8):
        tree = DecisionTreeClassifier(max_leaf_nodes=n_leaves, random_state=0).fit(X, y)
        assert tree.score(X, y) <= theory.staircase_limit(n_leaves, len(y))
    best = st.RobustTreeClassifier(max_depth=2, perturbation=None).fit(X, y)
    assert best.score(X, y) <= theory.staircase_limit(4, len(y))
    whole = DecisionTreeClassifier(random_state=0).fit(X, y)
    assert whole.score(X, y) == 1
    assert whole.get_n_leaves() > n_groups


@pytest.mark.parametrize("d", [3, 5])
def test_parity_needs_a_leaf_for_every_point(d):
    """Theorem 3: accuracy is 1/2 plus the leaves with one point over 2^(d + 1), for any tree."""
    X, y = theory.parity(d)
    assert st.separation(X, y).two_r == 1  # of columns scaled to length 1: 2 as they are
    rng = np.random.default_rng(0)
    for n_leaves in range(2, 2**d + 1):
        for noise in rng.random((3, len(y))):  # other trees by other weights
            tree = DecisionTreeClassifier(max_leaf_nodes=n_leaves, random_state=0)
            tree.fit(X, y, sample_weight=0.5 + noise)
            leaves = tree.apply(X)
            alone = (np.unique(leaves, return_counts=True)[1] == 1).sum()
            assert tree.score(X, y) <= 0.5 + alone / 2 ** (d + 1)
            assert tree.score(X, y) <= theory.parity_limit(tree.get_n_leaves(), d)
    assert theory.parity_limit(2**d, d) == 1
    best = st.RobustTreeClassifier(max_depth=2, perturbation=None).fit(X, y)
    assert best.score(X, y) <= theory.parity_limit(4, d)


def separated(rng, n, d, gamma, binary=False):
    """Rows whose label is the sign of w x, at least gamma away; |w| = 1 in the sum norm."""
    w = np.full(d, 1 / d)
    X = rng.choice([-1.0, 1.0], (6 * n + 50, d)) if binary else rng.uniform(-1, 1, (6 * n + 50, d))
    X = X[np.abs(X @ w) >= gamma - 1e-12][:n]
    assert len(X) == n
    return X, (X @ w > 0).astype(int)


def best_condition(X, y):
    """The condition x_j >= t that is right on most rows, in either direction."""
    best = (0.0, 0, 0.0, False)
    for j, column in enumerate(X.T):
        order = np.argsort(column)
        values, first = np.unique(column[order], return_index=True)
        below = np.append(0, np.cumsum(2 * y[order] - 1))[first]  # ones minus zeros below
        shares = ((y == 1).sum() - below) / len(y)
        for turned, own in ((False, shares), (True, 1 - shares)):
            best = max(best, (float(own.max()), j, float(values[own.argmax()]), turned))
    return best[1:]


@pytest.mark.parametrize("binary", [False, True])
def test_a_sample_of_that_size_finds_a_weak_learner(binary):
    """Theorems 5 and 9: of 60 samples at most the 99.9 % quantile of failures at delta = .1, 14;
    two rows are too few for it."""
    rng = np.random.default_rng(int(binary))
    d, gamma, delta = 3, 1 / 3, 0.1
    test, truth = separated(rng, 20_000, d, gamma, binary)

    def failures(n_rows):
        failed = 0
        for _ in range(60):
            j, t, turned = best_condition(*separated(rng, n_rows, d, gamma, binary))
            right = (((test[:, j] >= t) != turned) == (truth == 1)).mean()
            failed += right < 0.5 + gamma / 4
        return failed

    n_rows = theory.weak_learner_rows(d, gamma, delta, binary)
    assert n_rows == int(np.ceil((32 if binary else 128) * np.log(120) * 9))
    assert failures(n_rows) <= 14
    assert failures(2) > 0


@pytest.mark.parametrize("seed", range(3))
def test_top_down_trees_keep_the_error_of_the_potential(seed):
    """Section 5.2: at every size, with the margin that the rows have."""
    X, y = separated(np.random.default_rng(seed), 60, 2, 0.15)
    found = st.separation(X, y)
    gamma = found.linear.gamma
    assert gamma >= 0.14
    for n_leaves, error in enumerate(theory.topdown_errors(X, y, 12), start=1):
        assert error <= theory.potential_limit(gamma, n_leaves) + 1e-12
    assert theory.tree_leaves(0.5, 0.05) == 10**8
    assert theory.potential_limit(0.5, theory.tree_leaves(0.5, 0.05)) <= 0.05 + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_votes_are_those_of_the_published_card(seed):
    """All votes together predict as `RiskScoreClassifier.as_published`; fewer are a cut card."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((80, 3)), np.ones(80)])
    y = (X[:, 0] + 0.6 * X[:, 1] + 0.3 * rng.random(80) > 0.9).astype(int)
    model = st.RiskScoreClassifier.as_published().set_params(n_rounds=9).fit(X, y)
    votes = theory.boost_votes(X, y, n_rounds=9)
    accuracies = theory.cut_accuracies(votes, X, y)
    assert len(accuracies) == len(votes) <= 9
    assert accuracies[-1] == pytest.approx(model.score(X, y), abs=1e-12)
    assert accuracies[0] == ((X[:, votes[0][0]] >= votes[0][1]) == (y == 1)).mean()
