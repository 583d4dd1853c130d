"""Three ways to grow a private tree on one machine; each returns questions and no count."""

import heapq
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data._kernels import SplitArrays, child_counts
from steadytree.data.dask import DaskParts, DaskRows
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.schema import NO_CLASS, Schema
from steadytree.data.sources import LevelSplits, Rows, Source
from steadytree.data.splits import SplitTable
from steadytree.data.table import is_dask
from steadytree.privacy._kernels import impurity_scores
from steadytree.privacy.mechanisms import release_counts, select
from steadytree.privacy.noise import Noise
from steadytree.privacy.sampled_tree import OPEN, BlockRows, SampledTree, extend
from steadytree.privacy.tree_mechanism import SCORE_SENSITIVITY as SENSITIVITY
from steadytree.privacy.tree_mechanism import draw_tree, score_questions, side_counts, size_gain

Encoded = tuple[NDArray[np.float64], NDArray[np.int32], int]


class RowsInMemory:
    """Rows with a declared label, as numbers within the schema's bounds.

    Parameters
    ----------
    schema : Schema
    X, y : data as the user handed them over
    """

    def __init__(self, schema: Schema, X: Any, y: Any) -> None:
        self._values, self._labels, self.n_read = _encode(X, y, schema)
        self._n_classes = len(schema.classes)
        self.sample = X

    @property
    def n_kept(self) -> int:
        return len(self._labels)

    def codes(self, candidates: SplitTable) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Codes (p, n) of all rows, and their labels."""
        return candidates.space.binned(self._values), self._labels

    def source(self, candidates: SplitTable) -> Source:
        """The rows as a source of counts, level by level."""
        codes = candidates.space.binned(self._values)
        return Rows(codes, self._labels, candidates, self._n_classes)


class RowsInDask:
    """The same, read and kept on the workers of a cluster.

    Parameters
    ----------
    schema : Schema
    X, y : Dask collections
    client : distributed.Client or None
    """

    def __init__(self, schema: Schema, X: Any, y: Any, client: Any) -> None:
        self._parts = DaskParts(X, y, client)
        self._n_classes = len(schema.classes)
        self.sample = self._parts.sample
        self._kept = self._parts.keep(_encode, schema)
        sizes = self._parts.gather(_sizes, self._kept)
        self.n_read = sum(read for read, _ in sizes)
        self.n_kept = sum(kept for _, kept in sizes)

    def codes(self, candidates: SplitTable) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Codes of all rows, binned on the workers and brought here: a byte or two a value."""
        found = self._parts.gather(_codes, self._kept, candidates.space)
        codes = np.concatenate([codes for codes, _ in found], axis=1)
        return codes, np.concatenate([labels for _, labels in found])

    def source(self, candidates: SplitTable) -> Source:
        """The rows as a source of counts, which stay on the workers."""
        ready = self._parts.chain(_ready, self._kept, candidates.space, candidates.table)
        return DaskRows(ready, candidates, self._n_classes, self._parts.runner)


def read_rows(schema: Schema, X: Any, y: Any, client: Any = None) -> RowsInMemory | RowsInDask:
    """Read rows where they are."""
    if is_dask(X) or is_dask(y):
        return RowsInDask(schema, X, y, client)
    if client is not None:
        raise ValueError("client goes with Dask collections, but X is in memory: leave it out.")
    return RowsInMemory(schema, X, y)


# ---- what runs where the rows are ----
def _encode(X: Any, y: Any, schema: Schema) -> Encoded:
    values, labels = schema.encode(X), schema.encode_labels(y)
    if len(values) != len(labels):
        raise ValueError("X and y have different numbers of rows: pass one label a row.")
    kept = labels != NO_CLASS
    return values[kept], labels[kept], len(labels)


def _sizes(part: Encoded) -> tuple[int, int]:
    return part[2], len(part[1])


def _codes(part: Encoded, space: FeatureSpace) -> tuple[NDArray[Any], NDArray[np.int32]]:
    return space.binned(np.array(part[0])), part[1]


def _ready(
    part: Encoded, space: FeatureSpace, table: SplitArrays
) -> tuple[NDArray[Any], NDArray[np.int32], SplitArrays]:
    # copies, since arrays that came over a network cannot be written to
    own = SplitArrays(*(np.array(array) for array in table))
    return space.binned(np.array(part[0])), np.array(part[1]), own


def grow_blocks(
    block: BlockRows,
    candidates: SplitTable,
    epsilons: Sequence[float],
    depths: Sequence[int],
    noise: Noise,
) -> SampledTree:
    """Whole trees below whole trees: the last block draws labels, the others pure leaves.

    The leaves of a tree share no row, so one level of blocks costs its epsilon once.
    """
    tree = OPEN
    for level, (epsilon, depth) in enumerate(zip(epsilons, depths, strict=True)):
        utility = "right" if level == len(depths) - 1 else "pure"
        grow = partial(
            draw_tree,
            candidates=candidates,
            epsilon=epsilon,
            depth=depth,
            utility=utility,
            noise=noise,
        )
        tree = extend(tree, block, candidates, grow)
    return tree


def grow_greedy(
    source: Source,
    candidates: SplitTable,
    epsilons: Sequence[float],
    criterion: str,
    noise: Noise,
) -> tuple[SampledTree, NDArray[np.int64]]:
    """Level by level, each node's question by `select`: nodes of a level share no row.

    The source's rules must be the candidates, by number. Returns the tree, and the exact class
    counts (leaves, classes) of its leaves, to be noised before they go anywhere.
    """
    source.start()
    table = source.splits.table
    chosen: list[list[int]] = []
    for depth, epsilon in enumerate(epsilons):
        if depth:
            yes = np.arange(2**depth, step=2)
            source.advance(LevelSplits(np.array(chosen[-1]), yes, yes + 1))
        counts = source.count(0, 2**depth).values
        entropy = criterion == "entropy"
        scores = impurity_scores(counts, table.bin_offsets, *candidates.arrays, entropy)
        limits = (epsilon, SENSITIVITY[criterion], noise, candidates.log_prior)
        chosen.append([select(node, *limits, n_terms=source.n_classes) for node in scores])
    below = child_counts(counts, table, np.array(chosen[-1]))[1]
    leaves = below.transpose(1, 0, 2).reshape(-1, source.n_classes)

    def build(depth: int, place: int) -> SampledTree:
        if depth == len(chosen):
            return OPEN
        below = (build(depth + 1, 2 * place), build(depth + 1, 2 * place + 1))
        return SampledTree(chosen[depth][place], *below)

    return build(0, 0), leaves


def split_shares(budget: str, max_depth: int) -> NDArray[np.float64]:
    """Shares of the split budget by depth, summing to at most 1."""
    if budget == "uniform":
        return np.full(max_depth, 1.0 / max_depth)
    return np.power(0.5, np.arange(1.0, max_depth + 1))


class TopDown:
    """DP-TopDown: the leaf that promises most is split next, until `max_splits` are made.

    Each leaf at depth d costs ``epsilon * share(d)``: half chooses its question (`select`), half
    counts the answers by class with fresh noise. The counts give the leaf's weight, the gain and
    with them its priority; all of this is post-processing. Leaves of one depth share no row, so
    the tree costs the sum over depths, whatever the order in which leaves are taken.
    """

    def __init__(
        self, candidates: SplitTable, criterion: str, noise: Noise, shares: NDArray[np.float64]
    ) -> None:
        self._candidates, self._criterion = candidates, criterion
        self._noise, self._shares = noise, shares

    def grow(self, block: BlockRows, epsilon: float, max_splits: int, error: float) -> SampledTree:
        """Grow; a leaf counts while its noisy share of the rows is at least error / max_splits."""
        node: dict[int, int] = {}  # place in the full binary tree -> question
        queue: list[tuple[float, int, int, BlockRows]] = []
        root_rows = self._push(queue, 0, block, epsilon, 0.0)
        for _ in range(max_splits):
            if not queue:
                break
            _, place, question, rows = heapq.heappop(queue)
            node[place] = question
            if (2 * place + 2).bit_length() - 1 >= len(self._shares):
                continue  # its children would be deeper than there is budget for
            yes = self._candidates.goes_left(rows.codes, question)[rows.rows]
            least = error / max_splits * root_rows
            for child, part in ((2 * place + 1, yes), (2 * place + 2, ~yes)):
                self._push(queue, child, rows.take(part), epsilon, least)
        return _build(node, 0)

    def _push(
        self,
        queue: list[tuple[float, int, int, BlockRows]],
        place: int,
        rows: BlockRows,
        epsilon: float,
        least: float,
    ) -> float:
        depth = (place + 1).bit_length() - 1
        half = epsilon * self._shares[depth] / 2
        slots = np.full(rows.codes.shape[1], -1, np.int32)
        slots[rows.rows] = 0
        scores = score_questions(rows, self._candidates, slots, 1, self._criterion)[0]
        limits = (half, SENSITIVITY[self._criterion], self._noise, self._candidates.log_prior)
        question = select(scores, *limits, n_terms=rows.n_classes)
        exact = side_counts(rows, self._candidates, question)
        noisy = np.maximum(release_counts(exact, half, self._noise), 0)
        size = float(noisy.sum())
        gain = size_gain(noisy, self._criterion)
        if size >= least and gain > LEAST_GAIN * size:
            heapq.heappush(queue, (-gain, place, question, rows))
        return size


LEAST_GAIN = 0.01  # of a leaf's rows: below this a split is mostly noise


def _build(node: dict[int, int], place: int) -> SampledTree:
    if place not in node:
        return OPEN
    return SampledTree(node[place], _build(node, 2 * place + 1), _build(node, 2 * place + 2))
