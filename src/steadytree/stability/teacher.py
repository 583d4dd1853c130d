"""Teacher: a forest and a logistic regression on bins, stacked on rows that neither has seen."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadytree.stability._kernels.steady import (
    WITH_MISSING,
    find_deep_leaves,
    grow_deep,
    hash_rows,
    sample_bag,
)

Floats = NDArray[np.float64]
N_TREES = 100
MOST_IN_BAG = 20_000  # more rows make deep trees large and hardly better
MOST_SAMPLED = 1024.0  # of one row
PENALTY, STACK_PENALTY = 10.0, 20.0
FARTHEST = 0.002  # least probability that is told apart
NEWTON_STEPS, SMALL_STEP = 25, 1e-6


@dataclass(frozen=True, eq=False)
class BinnedRows:
    """Rows that differ, as bins, with how much each counts.

    Parameters
    ----------
    codes : uint8 array (n, d)
    targets : float64 array (n, k)
        1 where a row is of the class: the second of two, or each of several.
    weights : float64 array (n,)
    hashes : uint64 array (n,)
        Of what a row holds; all draws about a row come from them.
    n_bins, kinds : int64 arrays (d,)
    """

    binned: NDArray[np.uint8]
    targets: Floats
    weights: Floats
    hashes: NDArray[np.uint64]
    n_bins: NDArray[np.int64]
    kinds: NDArray[np.int64]

    @property
    def shares(self) -> Floats:
        """Weighted share of each class."""
        return self.weights @ self.targets / self.weights.sum()


class Teacher:
    """Probabilities of rows that no part of the model has seen, and of any other row.

    `unseen` (n, k) are the probabilities of the rows learned from, each from trees whose bags it
    is not in and from a regression without it; `loss` is their log loss, and `share_loss` that of
    the class shares. The regression of a class is leave-one-out by one Newton step.
    """

    def __init__(self, rows: BinnedRows, seed: int) -> None:
        self._rows = rows
        out_of_bag = self._grow_forest(seed)
        design = self._design(rows.binned, learn=True)
        unit = np.minimum(rows.weights, 1.0)
        self._lines, self._stacks, unseen, judged = [], [], [], []
        for k, share in enumerate(rows.shares):
            y, start = rows.targets[:, k], np.zeros(design.shape[1])
            start[0] = logit(share)
            line, left_out = fit_ridge(design, y, rows.weights, unit, PENALTY, start)
            both = np.column_stack([np.ones(len(y)), logit(out_of_bag[:, k]), logit(left_out)])
            equal = np.array([0.0, 0.5, 0.5])
            stack, honest = fit_ridge(both, y, rows.weights, unit, STACK_PENALTY, equal)
            stack[1:] = np.maximum(stack[1:], 0.0)
            self._lines.append(line)
            self._stacks.append(stack)
            unseen.append(chance(both @ stack))
            judged.append(honest)
        self.unseen = _normalised(np.column_stack(unseen))
        self.loss = self._log_loss(_normalised(np.column_stack(judged)))
        self.share_loss = self._log_loss(np.broadcast_to(rows.shares, rows.targets.shape))

    def predict(self, binned: NDArray[np.uint8]) -> Floats:
        """Probabilities (n, k) of other rows, by all trees."""
        votes = np.zeros((len(binned), self._rows.targets.shape[1]))
        for feature, last_left, left, value in self._trees:
            votes += value[find_deep_leaves(binned, feature, last_left, left)]
        votes /= len(self._trees)
        design, found = self._design(binned), []
        for k, (line, stack) in enumerate(zip(self._lines, self._stacks, strict=True)):
            parts = [np.ones(len(binned)), logit(votes[:, k]), logit(chance(design @ line))]
            found.append(chance(np.column_stack(parts) @ stack))
        return _normalised(np.column_stack(found))

    def _grow_forest(self, seed: int) -> Floats:
        """Grow the trees; probabilities of rows by trees that did not draw them.

        A row of weight w stands for w equal rows drawn one by one. Of those, a tree that drew k
        in all has left out the share (1 - 1 / w)^k on average.
        """
        rows = self._rows
        copies = np.clip(rows.weights, 1.0, MOST_SAMPLED)
        means = copies * min(1.0, MOST_IN_BAG / copies.sum())
        n_tried = max(2, -(-rows.binned.shape[1] // 2))
        votes, n_votes, self._trees = rows.shares, np.ones(len(copies)), []
        roots = hash_rows(np.array([[seed, tree] for tree in range(N_TREES)], np.uint64))
        for bits in roots:
            counts = sample_bag(rows.hashes, means, bits)
            bag = counts * (rows.weights / copies)
            tree = grow_deep(*take_bag(rows.binned, rows.targets, bag), n_tried, bits)
            out = (1 - 1 / copies) ** counts
            leaves = find_deep_leaves(rows.binned, *tree[:3])
            votes = votes + out[:, None] * tree[3][leaves]  # begins with one vote of the shares
            n_votes += out
            self._trees.append(tree)
        return votes / n_votes[:, None]

    def _design(self, binned: NDArray[np.uint8], learn: bool = False) -> Floats:
        """Bin numbers, standardised; a missing one is the mean and has a column of its own."""
        missing = (binned == self._rows.n_bins - 1) & (self._rows.kinds == WITH_MISSING)
        numbers = binned.astype(np.float64)
        if learn:
            known = self._rows.weights[:, None] * ~missing
            heavy = np.maximum(known.sum(axis=0), np.finfo(float).tiny)
            self._means = (known * numbers).sum(axis=0) / heavy
            spread = (known * (numbers - self._means) ** 2).sum(axis=0) / heavy
            self._scales = np.where(spread > 0, np.sqrt(spread), 1.0)
        scaled = np.where(missing, 0.0, (numbers - self._means) / self._scales)
        flags = missing[:, self._rows.kinds == WITH_MISSING]
        return np.column_stack([np.ones(len(binned)), scaled, flags])

    def _log_loss(self, p: Floats) -> float:
        y, p = self._rows.targets, np.clip(p, FARTHEST, 1 - FARTHEST)
        if y.shape[1] == 1:
            y, p = np.column_stack([1 - y, y]), np.column_stack([1 - p, p])
        return float(-self._rows.weights @ (y * np.log(p)).sum(1) / self._rows.weights.sum())


def take_bag(
    binned: NDArray[np.uint8], targets: Floats, weights: Floats
) -> tuple[NDArray[np.uint8], Floats, Floats]:
    """Bins (d, m), weighted targets (k, m) and weights of the rows whose weight is above 0."""
    kept = np.flatnonzero(weights > 0)
    mass = weights[kept]
    columns = np.ascontiguousarray(binned[kept].T)
    return columns, np.ascontiguousarray((mass[:, None] * targets[kept]).T), mass


def fit_ridge(
    Z: Floats, y: Floats, weights: Floats, unit: Floats, penalty: float, start: Floats
) -> tuple[Floats, Floats]:
    """Logistic regression pulled to `start`, the first column free, and leave-one-out chances.

    `unit` is the weight that is left out of each row.
    """
    pull = np.full(len(start), penalty)
    pull[0] = 1e-6
    beta = start.copy()
    for _ in range(NEWTON_STEPS):
        p = chance(Z @ beta)
        curve = np.maximum(p * (1 - p), 1e-4)
        hessian = (Z * (weights * curve)[:, None]).T @ Z + np.diag(pull)
        step = np.linalg.solve(hessian, Z.T @ (weights * (y - p)) - pull * (beta - start))
        beta = beta + step * min(1.0, 5.0 / np.abs(step).max(initial=SMALL_STEP))
        if np.abs(step).max() < SMALL_STEP:
            break
    z = Z @ beta
    p = chance(z)
    curve = np.maximum(p * (1 - p), 1e-4)
    reach = np.einsum("ij,ij->i", Z @ np.linalg.inv(hessian), Z) * unit
    leverage = np.minimum(reach * curve, 0.95)
    return beta, chance(z - (y - p) * reach / (1 - leverage))


def chance(z: Floats) -> Floats:
    """The probability of log odds."""
    return 1 / (1 + np.exp(-np.clip(z, -30, 30)))


def logit(p: Floats) -> Floats:
    """The log odds of a probability, not too far out."""
    p = np.clip(p, FARTHEST, 1 - FARTHEST)
    return np.log(p / (1 - p))


def _normalised(p: Floats) -> Floats:
    return p if p.shape[1] == 1 else p / p.sum(axis=1, keepdims=True)
