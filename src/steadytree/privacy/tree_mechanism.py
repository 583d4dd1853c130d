"""Scores of questions in rows: exact here, noised by whoever releases anything of them."""

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data._kernels import count_classes
from steadytree.data.splits import SplitTable
from steadytree.privacy._kernels import (
    PURE,
    RIGHT,
    impurity_scores,
    order_by_class,
    pack_answers,
    root_terms,
)
from steadytree.privacy.mechanisms import check_part
from steadytree.privacy.noise import Noise, _library
from steadytree.privacy.sampled_tree import BlockRows, SampledTree

MOST_ROWS = 2**27  # of one data set; the bound on rounding errors needs one that is public
DEEPEST_BLOCK = 3
STOP = 0.2  # prior chance of a leaf
UTILITIES = {"right": RIGHT, "pure": PURE}
SENSITIVITY = {"right": 1.0, "pure": 2.0}
UNIT = 2.0**-53


def sampler_slack(epsilon: float, depth: int, n_candidates: int, n_classes: int) -> float:
    """What rounding may cost at most, from public numbers alone.

    eta bounds the error of a log-weight. Leaves' log-weights sum to at most epsilon * MOST_ROWS in
    size, and priors to 2^depth * (log m + 2); each passes through fewer than 16 roundings a level,
    and a leaf's squares through one more for each of K classes. A sum of m + 1 exponentials adds
    fewer than m + 8 units to its logarithm's error, and the sum over labels in each of 2^depth
    leaves fewer than K + 8.
    """
    size = epsilon * MOST_ROWS + 2**depth * (np.log(n_candidates) + 2.0)
    sums = n_candidates + 8 + 2**depth * (n_classes + 8)
    eta = depth * UNIT * ((16 + n_classes) * size + sums)
    return float(4 * (2 ** (depth + 1) - 1) * eta)


def draw_tree(
    block: BlockRows,
    candidates: SplitTable,
    epsilon: float,
    depth: int,
    utility: str,
    noise: Noise,
) -> SampledTree:
    """Draw one tree of at most `depth` levels for the rows; the proof is at the top of this file.

    Parameters
    ----------
    block : BlockRows
    candidates : SplitTable
        Public: made from the schema.
    epsilon : float
        What the whole tree costs, its labels included where the utility is "right".
    depth : int, 1 to 3
    utility : {"right", "pure"}
    noise : Noise
    """
    epsilon = check_part(epsilon)
    if not 1 <= depth <= DEEPEST_BLOCK:
        raise ValueError(f"depth must be 1 to {DEEPEST_BLOCK}, got {depth}.")
    if block.codes.shape[1] > MOST_ROWS:
        raise ValueError(f"a data set may have at most {MOST_ROWS:,} rows.")
    rate = epsilon - sampler_slack(epsilon, depth, len(candidates), block.n_classes)
    if rate <= 0:
        raise ValueError("epsilon is too small to cover rounding errors: use at least 1e-6.")
    return _draw(block, candidates, rate, depth, utility, noise)


def _draw(
    block: BlockRows, candidates: SplitTable, rate: float, depth: int, utility: str, noise: Noise
) -> SampledTree:
    within = block.class_counts()
    if depth > 0:
        ordered, word_offsets = order_by_class(block.labels, block.rows, block.n_classes)
        bits = pack_answers(block.codes, ordered, *candidates.arrays)
        prior = candidates.log_prior
        kind = UTILITIES[utility]
        terms = root_terms(bits, word_offsets, within, prior, STOP, rate, kind, depth)
        question = noise.place(terms)
        if question < len(candidates):
            yes = candidates.goes_left(block.codes, question)[block.rows]
            below = (candidates, rate, depth - 1, utility, noise)
            return SampledTree(
                question, _draw(block.take(yes), *below), _draw(block.take(~yes), *below)
            )
    if utility == "pure":
        return SampledTree(-1)
    return SampledTree(-1, label=noise.place(rate * within.astype(np.float64)))


def whole_tree_measurement(
    candidates: SplitTable, n_classes: int, epsilon: float, depth: int, noise: Noise
) -> Any:
    """`draw_tree` with labels as an OpenDP measurement, so that OpenDP's odometers can count it.

    Its argument is a list of rows, each a list of codes and a label last; its metric counts rows
    added or removed, and k of them cost k epsilon. Rows outside the codes and classes are refused.
    """
    if not noise.private:
        raise ValueError("a measurement needs private noise: this one has a testing seed.")
    dp = _library()
    limits = [*(column.n_bins + 1 for column in candidates.space), n_classes]

    def member(listed: Any) -> bool:
        return isinstance(listed, list) and all(_is_row(row, limits) for row in listed)

    def function(listed: list[list[int]]) -> SampledTree:
        if not member(listed):  # OpenDP does not ask before it calls
            raise ValueError("rows must be lists of codes of the candidates and a label last.")
        table = np.array(listed, np.int64).reshape(len(listed), len(limits))
        codes, labels = np.ascontiguousarray(table[:, :-1].T), table[:, -1].astype(np.int32)
        block = BlockRows(codes, labels, n_classes, np.arange(len(table)))
        return draw_tree(block, candidates, epsilon, depth, "right", noise)

    return dp.m.make_user_measurement(
        dp.user_domain("rows of codes and a label", member),
        dp.symmetric_distance(),
        dp.max_divergence(),
        function,
        lambda d_in: float(d_in) * epsilon,
    )


def _is_row(row: Any, limits: list[int]) -> bool:
    return (
        isinstance(row, list)
        and len(row) == len(limits)
        and all(type(n) is int and 0 <= n < end for n, end in zip(row, limits, strict=True))
    )


# What one row more changes a score by at most, all scores the same way. Gini: see
# privacy/whole_tree.py. Entropy in bits: rows times entropy rises by
# log2((n+1)^(n+1) / n^n) - log2((a+1)^(a+1) / a^a), at least 0 and at most log2(n + 1) + log2(e),
# which needs a public bound on the rows.
SCORE_SENSITIVITY = {"gini": 2.0, "entropy": float(np.log2(MOST_ROWS + 1) + np.log2(math.e))}


def score_questions(
    block: BlockRows, candidates: SplitTable, slots: NDArray[np.int32], n_slots: int, criterion: str
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


def side_counts(block: BlockRows, candidates: SplitTable, question: int) -> NDArray[np.int64]:
    """Exact class counts (2, n_classes) of both sides of a question, yes first."""
    yes = candidates.goes_left(block.codes, question, block.rows)
    return np.array([block.take(yes).class_counts(), block.take(~yes).class_counts()])


def bin_counts(block: BlockRows, candidates: SplitTable) -> NDArray[np.int64]:
    """Exact class counts (bins of all features, n_classes); a row counts once a feature."""
    sizes = np.array([column.n_bins + 1 for column in candidates.space])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    slots = np.full(block.codes.shape[1], -1, np.int32)
    slots[block.rows] = 0
    return count_classes(block.codes, block.labels, slots, 1, offsets, block.n_classes)[0]


def sides_from_bins(bins: NDArray[np.float64], candidates: SplitTable) -> list[NDArray[np.float64]]:
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
