"""Scores of questions in rows: exact here, noised by whoever releases anything of them."""

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.candidates import Candidates
from steadytree.kernels import count_classes, impurity_scores
from steadytree.privacy.drawn import BlockRows
from steadytree.privacy.whole_tree import MOST_ROWS

# What one row more changes a score by at most, all scores the same way. Gini: see
# privacy/whole_tree.py. Entropy in bits: rows times entropy rises by
# log2((n+1)^(n+1) / n^n) - log2((a+1)^(a+1) / a^a), at least 0 and at most log2(n + 1) + log2(e),
# which needs a public bound on the rows.
SENSITIVITY = {"gini": 2.0, "entropy": float(np.log2(MOST_ROWS + 1) + np.log2(math.e))}


def score_questions(
    block: BlockRows, candidates: Candidates, slots: NDArray[np.int32], n_slots: int, criterion: str
) -> NDArray[np.float64]:
    """Exact scores (n_slots, m) of every question for the rows of each slot: not to be released."""
    sizes = np.array([column.n_bins + 1 for column in candidates.space])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    counts = count_classes(block.codes, block.labels, slots, n_slots, offsets, block.n_classes)
    return impurity_scores(counts, offsets, *candidates.arrays, criterion == "entropy")


def size_gain(sides: NDArray[Any], criterion: str) -> float:
    """Rows times gain in purity of a split with class counts (2, n_classes)."""

    def impurity(counts: NDArray[Any]) -> float:
        size = counts.sum()
        if size == 0:
            return 0.0
        share = counts[counts > 0] / size
        if criterion == "entropy":
            return float(-size * (share * np.log2(share)).sum())
        return float(size * (1.0 - (share**2).sum()))

    return impurity(sides.sum(axis=0)) - impurity(sides[0]) - impurity(sides[1])


def side_counts(block: BlockRows, candidates: Candidates, question: int) -> NDArray[np.int64]:
    """Exact class counts (2, n_classes) of both sides of a question, yes first."""
    yes = candidates.answers(block.codes, question, block.rows)
    return np.array([block.take(yes).class_counts(), block.take(~yes).class_counts()])


def bin_counts(block: BlockRows, candidates: Candidates) -> NDArray[np.int64]:
    """Exact class counts (bins of all features, n_classes); a row counts once a feature."""
    sizes = np.array([column.n_bins + 1 for column in candidates.space])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    slots = np.full(block.codes.shape[1], -1, np.int32)
    slots[block.rows] = 0
    return count_classes(block.codes, block.labels, slots, 1, offsets, block.n_classes)[0]


def sides_from_bins(bins: NDArray[np.float64], candidates: Candidates) -> list[NDArray[np.float64]]:
    """Class counts (2, n_classes) of every question from counts of bins, exact or noisy."""
    sizes = np.array([column.n_bins + 1 for column in candidates.space])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    whole = np.array([bins[a:b].sum(axis=0) for a, b in itertools.pairwise(offsets)])
    node = np.maximum(whole.mean(axis=0), 0.0)  # every feature counts the same rows
    found = []
    for feature, bin_, by_value in zip(*candidates.arrays, strict=True):
        first = offsets[feature] + (bin_ if by_value else 0)
        yes = np.clip(bins[first : offsets[feature] + bin_ + 1].sum(axis=0), 0.0, node)
        found.append(np.array([yes, node - yes]))
    return found
