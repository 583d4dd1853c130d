"""The paper's constructions as data, its bounds with constants, and a card cut off after votes."""

import itertools
import math

import numpy as np
from scipy.stats import binom


# ---- data that no small tree learns ----
def staircase(n_groups, step=0.25):
    """Theorem 1: linearly separable in the plane, four points a group; see `staircase_limit`."""
    centre = np.repeat(np.arange(1, n_groups + 1), 4)[:, None] * np.array([[1.0, -1.0]])
    moves = step * np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
    return centre + np.tile(moves, (n_groups, 1)), np.tile([1, 1, 0, 0], n_groups)


def staircase_limit(n_leaves, n_points):
    """Accuracy that no tree with this many leaves exceeds."""
    return 0.5 + 4 * n_leaves / n_points


def parity(d):
    """Theorem 3: all points of {-1, 1}^d, 1-separated; the label is the parity."""
    X = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    return X, ((X > 0).sum(axis=1) % 2).astype(int)


def parity_limit(n_leaves, d):
    """Accuracy that no tree with this many leaves exceeds: 1/2 + n_leaves / 2^(d + 1)."""
    return min(0.5 + n_leaves / 2 ** (d + 1), 1.0)


# ---- sizes that suffice ----
def weak_learner_rows(d, gamma, delta, binary=False):
    """Theorems 5 and 9 with constants: rows from which a sample finds a weak learner.

    With probability 1 - delta the best condition on the sample then has an accuracy of at least
    1/2 + gamma / 4. The best of all has 1/2 + gamma / 2 (Theorems 4 and 8), so accuracies may be
    gamma / 8 off. With 0/1 columns Hoeffding's bound over 2 d conditions gives it; with numbers two
    inequalities of Dvoretzky, Kiefer, Wolfowitz and Massart a column, each within gamma / 16. Both
    have log d where the paper has d.
    """
    return math.ceil((32 if binary else 128) * math.log(4 * d / delta) / gamma**2)


def tree_leaves(gamma, error):
    """Section 5.2 with its constant: leaves from which a top-down tree has at most this error.

    For G(q) = 2 sqrt(q (1 - q)) a condition with advantage gamma / 2 lowers a leaf's potential by
    the factor sqrt(1 - gamma^2) at most; the heaviest of t leaves has at least 1 / t of the sum, so
    the sum is at most t^(-gamma^2 / 2), and the error half of it.
    """
    return math.ceil((1 / (2 * error)) ** (2 / gamma**2))


def potential_limit(gamma, n_leaves):
    """Training error that a top-down tree with this many leaves cannot exceed."""
    return n_leaves ** (-(gamma**2) / 2) / 2


def topdown_errors(X, y, n_leaves):
    """Training error after each leaf of a tree that splits the leaf with the largest potential."""
    leaves = [np.arange(len(y))]
    errors = []
    while True:
        errors.append(sum(min((y[r] == 0).sum(), (y[r] == 1).sum()) for r in leaves) / len(y))
        heaviest = max(range(len(leaves)), key=lambda k: _potential(y[leaves[k]]))
        if len(leaves) == n_leaves or _potential(y[leaves[heaviest]]) == 0:
            return errors
        rows = leaves.pop(heaviest)
        leaves += _best_split(X[rows], y[rows], rows)


def _potential(labels):
    ones = (labels == 1).sum()
    return 2 * math.sqrt(ones * (len(labels) - ones))


def _best_split(X, y, rows):
    best, sides = math.inf, None
    for column in X.T:
        for threshold in np.unique(column)[1:]:
            high = column >= threshold
            value = _potential(y[high]) + _potential(y[~high])
            if value < best:
                best, sides = value, [rows[high], rows[~high]]
    return sides


# ---- a card cut off after some votes ----
def boost_votes(X, y, tau=0.05, n_rounds=15, gamma=0.01):
    """Algorithm 1: columns and thresholds of the votes in their order; labels are 0 and 1."""
    sign = 2 * y - 1
    moved = X - tau * sign[:, None]
    votes, margin = [], np.zeros(len(y), int)
    while len(votes) < n_rounds:
        left = n_rounds - len(votes) - 1
        weight = binom.pmf((left - margin + 1) // 2, left, 0.5 + gamma) + 1e-300
        share, column, threshold = _best_vote(moved, sign, weight / weight.sum())
        votes.append((column, threshold))
        margin += np.where(moved[:, column] >= threshold, sign, -sign)
        if share < 0.5 + gamma:  # the published way keeps the vote that fails
            break
    return votes


def _best_vote(moved, sign, weight):
    """Weight that the best condition x >= threshold is right on, its column and threshold."""
    best = (-1.0, 0, -math.inf)
    for j, column in enumerate(moved.T):
        order = np.argsort(column, kind="stable")
        values, signed = column[order], (weight * sign)[order]
        share = weight[sign < 0].sum() + signed.sum() - np.append(0.0, np.cumsum(signed))[:-1]
        share[1:][values[1:] == values[:-1]] = -1.0
        k = int(share.argmax())
        if share[k] > best[0] + 1e-12:
            threshold = -math.inf if k == 0 else (values[k - 1] + values[k]) / 2
            best = (float(share[k]), j, threshold)
    return best


def cut_accuracies(votes, X, y):
    """Figure 5: accuracy of the card after its first 1, 2, ... votes, more than half of them."""
    count, found = np.zeros(len(y), int), []
    for k, (column, threshold) in enumerate(votes, start=1):
        count += X[:, column] >= threshold
        found.append(float(((count > k // 2) == (y == 1)).mean()))
    return found
