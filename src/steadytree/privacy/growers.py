"""Three ways to grow a private tree from the rows of one data set, and the `Tree` they make."""

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
from steadytree.models.builder import TreeBuilder
from steadytree.models.tree import LEAF, Tree
from steadytree.privacy._kernels import impurity_scores
from steadytree.privacy.mechanisms import Noise, release_counts, select
from steadytree.privacy.tree_mechanism import (
    OPEN,
    SCORE_SENSITIVITY,
    BlockRows,
    Floats,
    Integers,
    SampledTree,
    extend,
    sample_tree,
    score_splits,
    side_counts,
    size_gain,
)

Encoded = tuple[NDArray[np.float64], NDArray[np.int32], int]  # values, labels, rows read
LEAST_GAIN = 0.01  # of a leaf's rows: below this a split is mostly noise


class RowsInMemory:
    """Rows with a declared label, encoded within the schema's bounds; nothing here is noised."""

    def __init__(self, schema: Schema, X: Any, y: Any) -> None:
        self._values, self._labels, self.n_read = _encode(X, y, schema)
        self._n_classes = len(schema.classes)
        self.sample = X

    @property
    def n_kept(self) -> int:
        return len(self._labels)

    def binned(self, candidates: SplitTable) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Bins (p, n) of all rows, and their labels."""
        return candidates.space.binned(self._values), self._labels

    def source(self, candidates: SplitTable) -> Source:
        """The rows as a source of counts, level by level."""
        return Rows(*self.binned(candidates), candidates, self._n_classes)


class RowsInDask:
    """The same for Dask collections, encoded and kept on the workers of a cluster."""

    def __init__(self, schema: Schema, X: Any, y: Any, client: Any) -> None:
        self._parts = DaskParts(X, y, client)
        self._n_classes = len(schema.classes)
        self.sample = self._parts.sample
        self._kept = self._parts.keep(_encode, schema)
        sizes = self._parts.gather(_sizes, self._kept)
        self.n_read = sum(read for read, _ in sizes)
        self.n_kept = sum(kept for _, kept in sizes)

    def binned(self, candidates: SplitTable) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Bins of all rows, computed on the workers and gathered here: a byte or two a value."""
        found = self._parts.gather(_bin_part, self._kept, candidates.space)
        binned = np.concatenate([part for part, _ in found], axis=1)
        return binned, np.concatenate([labels for _, labels in found])

    def source(self, candidates: SplitTable) -> Source:
        """The rows as a source of counts; the rows stay on the workers."""
        ready = self._parts.chain(_ready, self._kept, candidates.space, candidates.table)
        return DaskRows(ready, candidates, self._n_classes, self._parts.runner)


def read_rows(schema: Schema, X: Any, y: Any, client: Any = None) -> RowsInMemory | RowsInDask:
    """Encode the rows where they are."""
    if is_dask(X) or is_dask(y):
        return RowsInDask(schema, X, y, client)
    if client is not None:
        raise ValueError("client goes with Dask collections, but X is in memory: leave it out.")
    return RowsInMemory(schema, X, y)


# ---- these run where the rows are ----
def _encode(X: Any, y: Any, schema: Schema) -> Encoded:
    values, labels = schema.encode(X), schema.encode_labels(y)
    if len(values) != len(labels):
        raise ValueError("X and y have different numbers of rows: pass one label a row.")
    kept = labels != NO_CLASS
    return values[kept], labels[kept], len(labels)


def _sizes(part: Encoded) -> tuple[int, int]:
    return part[2], len(part[1])


def _bin_part(part: Encoded, space: FeatureSpace) -> tuple[NDArray[Any], NDArray[np.int32]]:
    return space.binned(np.array(part[0])), part[1]


def _ready(
    part: Encoded, space: FeatureSpace, table: SplitArrays
) -> tuple[NDArray[Any], NDArray[np.int32], SplitArrays]:
    # copies, since arrays received over a network are read-only
    own = SplitArrays(*(np.array(array) for array in table))
    return space.binned(np.array(part[0])), np.array(part[1]), own


# ---- growers ----
def grow_blocks(
    block: BlockRows,
    candidates: SplitTable,
    epsilons: Sequence[float],
    depths: Sequence[int],
    noise: Noise,
) -> SampledTree:
    """Whole trees below the leaves of whole trees; the last block samples labels too.

    The leaves of a tree share no row, so one level of blocks costs its epsilon once.
    """
    tree = OPEN
    for level, (epsilon, depth) in enumerate(zip(epsilons, depths, strict=True)):
        utility = "correct" if level == len(depths) - 1 else "pure"
        grow = partial(
            sample_tree,
            candidates=candidates,
            epsilon=epsilon,
            depth=depth,
            utility=utility,
            noise=noise,
        )
        tree = extend(tree, block, candidates, grow)
    return tree


def grow_greedy(
    source: Source, candidates: SplitTable, epsilons: Sequence[float], criterion: str, noise: Noise
) -> tuple[SampledTree, Integers]:
    """Level by level, each node's split by `select`: nodes of a level share no row.

    The source's splits must be the candidates, in their order. Returns the tree, and the EXACT
    class counts (leaves, classes) of its leaves, to be noised before they are released.
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
        limits = (epsilon, SCORE_SENSITIVITY[criterion], noise, candidates.log_prior)
        chosen.append([select(node, *limits, n_terms=source.n_classes) for node in scores])
    below = child_counts(counts, table, np.array(chosen[-1]))[1]
    leaves = below.transpose(1, 0, 2).reshape(-1, source.n_classes)

    def build(depth: int, index: int) -> SampledTree:
        if depth == len(chosen):
            return OPEN
        below = (build(depth + 1, 2 * index), build(depth + 1, 2 * index + 1))
        return SampledTree(chosen[depth][index], *below)

    return build(0, 0), leaves


def split_shares(budget: str, max_depth: int) -> Floats:
    """Shares of the split budget by depth, summing to at most 1."""
    if budget == "uniform":
        return np.full(max_depth, 1.0 / max_depth)
    return np.power(0.5, np.arange(1.0, max_depth + 1))


class TopDown:
    """DP-TopDown: the leaf with the largest noisy gain is split next, `max_splits` times.

    Each leaf at depth d costs ``epsilon * share(d)``: half selects its split (`select`), half
    counts both sides by class with fresh noise. The counts give the leaf's weight, its gain and
    its priority; all of this is post-processing. Leaves of one depth share no row, so the tree
    costs the sum over depths, in whatever order the leaves are split.
    """

    def __init__(
        self, candidates: SplitTable, criterion: str, noise: Noise, shares: Floats
    ) -> None:
        self._candidates, self._criterion = candidates, criterion
        self._noise, self._shares = noise, shares

    def grow(self, block: BlockRows, epsilon: float, max_splits: int, error: float) -> SampledTree:
        """Grow; leaves with less than error / max_splits of the rows (noisy) stay leaves."""
        node: dict[int, int] = {}  # index in the full binary tree -> split
        queue: list[tuple[float, int, int, BlockRows]] = []
        root_rows = self._push(queue, 0, block, epsilon, 0.0)
        for _ in range(max_splits):
            if not queue:
                break
            _, index, split, rows = heapq.heappop(queue)
            node[index] = split
            if (2 * index + 2).bit_length() - 1 >= len(self._shares):
                continue  # there is no budget for deeper nodes
            least = error / max_splits * root_rows
            for child, part in enumerate(rows.sides(self._candidates, split), 2 * index + 1):
                self._push(queue, child, part, epsilon, least)
        return _build(node, 0)

    def _push(
        self,
        queue: list[tuple[float, int, int, BlockRows]],
        index: int,
        rows: BlockRows,
        epsilon: float,
        least: float,
    ) -> float:
        """Select a leaf's split, queue it if it is worthwhile, and return its noisy size."""
        depth = (index + 1).bit_length() - 1
        half = epsilon * self._shares[depth] / 2
        scores = score_splits(rows, self._candidates, self._criterion)
        limits = (half, SCORE_SENSITIVITY[self._criterion], self._noise, self._candidates.log_prior)
        split = select(scores, *limits, n_terms=rows.n_classes)
        exact = side_counts(rows, self._candidates, split)
        noisy = np.maximum(release_counts(exact, half, self._noise), 0)
        size = float(noisy.sum())
        gain = size_gain(noisy, self._criterion)
        if size >= least and gain > LEAST_GAIN * size:
            heapq.heappush(queue, (-gain, index, split, rows))
        return size


def _build(node: dict[int, int], index: int) -> SampledTree:
    if index not in node:
        return OPEN
    return SampledTree(node[index], _build(node, 2 * index + 1), _build(node, 2 * index + 2))


# ---- from released counts to a Tree ----
def plausible_counts(noisy: Integers, labels: Integers | None = None) -> Floats:
    """Noisy leaf counts made non-negative, with the sampled label in the lead if there is one."""
    counts = np.maximum(noisy, 0).astype(np.float64)
    if labels is not None:
        own = np.arange(len(counts)), labels
        highest = counts.max(axis=1)
        # a label was sampled with more budget than a count: the count gives way
        counts[own] = np.where(counts[own] < highest, highest, counts[own])
        tied = (counts == highest[:, None]).sum(axis=1) > 1
        counts[own] += np.where(tied, 1e-9 * highest + 1e-9, 0.0)
    return counts


def counts_from_labels(labels: Integers, n_classes: int, n_rows: float) -> Floats:
    """Leaf counts if none were released: equal weights, each leaf of one class."""
    counts = np.zeros((len(labels), n_classes))
    counts[np.arange(len(labels)), labels] = max(n_rows, 1.0) / len(labels)
    return counts


def build_tree(tree: SampledTree, candidates: SplitTable, schema: Schema, counts: Floats) -> Tree:
    """A `Tree` whose leaves have the given counts; a parent has the sum of its children's.

    Sibling leaves with equal labels are merged. A leaf without counts takes its parent's shares.
    """
    nodes: list[tuple[int, int, int]] = []  # split, yes, no; parents first
    leaf_node: list[int] = []

    def add(part: SampledTree) -> int:
        here = len(nodes)
        nodes.append((-1, LEAF, LEAF))
        if part.is_leaf:
            leaf_node.append(here)
        else:
            yes = add(part.yes)
            nodes[here] = (part.split, yes, add(part.no))
        return here

    add(tree)
    totals = np.zeros((len(nodes), counts.shape[1]))
    totals[leaf_node] = counts
    split, left, right = np.array(nodes).T.copy()
    for here in np.flatnonzero(split >= 0)[::-1]:
        totals[here] = totals[left[here]] + totals[right[here]]
    builder = TreeBuilder(candidates, np.array(schema.classes))
    return builder.build(split, left, right, totals, missing_right=True)
