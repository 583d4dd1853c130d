"""Three ways to grow a private tree from the rows of one data set, and the `Tree` they make."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.validation import Integer
from steadytree.data._kernels.counts import SplitArrays, child_counts
from steadytree.data.cell_reader import canonical
from steadytree.data.dask import DaskParts, DaskRows
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.schema import NO_CLASS, Schema
from steadytree.data.sources import LevelSplits, Rows, Source
from steadytree.data.splits import SplitTable
from steadytree.data.table import Table, is_dask
from steadytree.models.builder import TreeBuilder
from steadytree.models.tree import LEAF, Tree
from steadytree.privacy import tree_mechanism
from steadytree.privacy.mechanisms import Floats, Integers, Noise
from steadytree.privacy.padding import Padding
from steadytree.privacy.sampled_tree import OPEN, SampledTree, nodes_of, split_leaves
from steadytree.privacy.tree_mechanism import BlockRows

Binned = tuple[NDArray[Any], NDArray[np.int32]]  # bins and labels
ROWS_PER_PERSON = Integer(1, 1_000_000, also=(None,))
SHALLOW = 5  # levels of a tree whose splits need not gain rows
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}([.]0*)?")  # a text that is the same as this number
Encoded = tuple[Floats, NDArray[np.int32], int]  # values, labels, rows read


class RowsInMemory:
    """Rows with a declared label, encoded within the schema's bounds; nothing here is noised."""

    def __init__(self, schema: Schema, X: Any, y: Any) -> None:
        self._values, self._labels, self.n_read = encode_rows(X, y, schema)
        self.n_kept, self._n_classes = len(self._labels), len(schema.classes)

    def block(self, candidates: SplitTable) -> BlockRows:
        binned = candidates.space.binned(self._values)
        return BlockRows(binned, self._labels, self._n_classes, np.arange(self.n_kept))

    def padded(self, candidates: SplitTable, capacity: int) -> BlockRows:
        """The rows among so many; what is done with them takes the same work for any rows."""
        space, n_classes, extra = candidates.space, self._n_classes, capacity - self.n_kept
        binned = space.binned(np.pad(self._values, ((0, extra), (0, 0))))  # padded before
        labels = np.pad(self._labels, (0, extra))
        padding = Padding(binned, labels, self.n_kept, n_classes, candidates)
        return BlockRows(binned, labels, n_classes, np.arange(capacity) < self.n_kept, padding)

    def source(self, candidates: SplitTable) -> Source:
        """The rows as a source of counts, level by level."""
        binned = candidates.space.binned(self._values)
        return Rows(binned, self._labels, candidates, self._n_classes)


class RowsInDask:
    """The same for Dask collections, encoded and kept on the workers of a cluster."""

    def __init__(self, schema: Schema, X: Any, y: Any, client: Any) -> None:
        self._parts = DaskParts(X, y, client)
        self._n_classes = len(schema.classes)
        self.sample = self._parts.sample
        self._kept = self._parts.keep(encode_rows, schema)
        sizes = self._parts.gather(_sizes, self._kept)
        self.n_read, self.n_kept = (sum(size) for size in zip(*sizes, strict=True))

    def block(self, candidates: SplitTable) -> BlockRows:
        """Bins of all rows, computed on the workers and gathered here: a byte or two a value."""
        found = self._parts.gather(_bin_part, self._kept, candidates.space)
        binned = np.concatenate([part for part, _ in found], axis=1)
        labels = np.concatenate([labels for _, labels in found])
        return BlockRows(binned, labels, self._n_classes, np.arange(self.n_kept))

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


def bound_rows(X: Any, y: Any, persons: Any, most: int | None) -> tuple[Any, Any]:
    """The first `most` rows of each person; rows of nobody (missing) are left out.

    Which rows of a person are kept depends on that person's rows alone. Without both, all rows.
    """
    ROWS_PER_PERSON.check(most, "rows_per_person")
    if (persons is None) != (most is None):
        raise ValueError("rows_per_person and persons go together: give both, or neither.")
    if most is None:
        return X, y
    if is_dask(X) or is_dask(y):
        raise ValueError("rows_per_person needs data in memory, and X or y is a Dask one.")
    listed, labels = np.asarray(persons, dtype=object), np.asarray(y)
    n_rows = len(X) if isinstance(X, list | tuple) else Table.read(X).n_rows
    if listed.ndim != 1 or not len(listed) == len(labels) == n_rows:
        raise ValueError("X, y and persons have different numbers of rows: pass one person a row.")
    seen: Counter[str] = Counter()
    kept = []
    for row, who in enumerate(listed.tolist()):
        name = _name_of(who)
        if name is None:
            continue
        seen[name] += 1
        if seen[name] <= most:
            kept.append(row)
    return Table.pick(X, np.array(kept, np.int64)), labels[kept]


def _name_of(who: Any) -> str | None:
    """One text for a person however it was stored, None for nobody.

    1, 1.0 and "1" are one person. What only a float cannot tell apart are two, such as whole
    numbers beyond 2**53, "1e5" and "100000": for two persons under one name, the rows that are
    kept of one would depend on the other.
    """
    if isinstance(who, str):
        text = unicodedata.normalize("NFC", who.strip())
        return canonical(text) if _NUMBER.fullmatch(text) else text or None
    if isinstance(who, int | np.integer) and not isinstance(who, np.timedelta64):
        return str(int(who))
    return canonical(who)


# ---- these run where the rows are ----
def encode_rows(X: Any, y: Any, schema: Schema) -> Encoded:
    """Encode the rows with a declared label, and count all."""
    values, labels = schema.encode(X), schema.encode_labels(y)
    if len(values) != len(labels):
        raise ValueError("X and y have different numbers of rows: pass one label a row.")
    kept = labels != NO_CLASS
    return values[kept], labels[kept], len(labels)


def _sizes(part: Encoded) -> tuple[int, int]:
    return part[2], len(part[1])


def _bin_part(part: Encoded, space: FeatureSpace) -> Binned:
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

    The leaves of a tree share no row, so one level of blocks costs its epsilon once. In deep trees
    a split must gain rows.
    """
    tree, cost = OPEN, tree_mechanism.LARGEST_COST if sum(depths) > SHALLOW else 0.0
    for level, how in enumerate(zip(epsilons, depths, strict=True), 1):
        utility = "correct" if level == len(depths) else "pure"
        tree = tree_mechanism.extend(tree, block, candidates, *how, utility, noise, (), cost)
    return tree


def grow_greedy(
    source: Source, candidates: SplitTable, epsilons: Sequence[float], criterion: str, noise: Noise
) -> tuple[SampledTree, Integers]:
    """Level by level, each node's split by `select`: nodes of a level share no row.

    The source's splits must be the candidates, in their order. Returns the tree, and the EXACT
    class counts (leaves, classes) of its leaves, to be noised before they are released.
    """
    source.start()
    tree, chosen = OPEN, list[int]()
    for depth, epsilon in enumerate(epsilons):
        if depth:
            yes = np.arange(2**depth, step=2)
            source.advance(LevelSplits(np.array(chosen), yes, yes + 1))
        counts = source.count(0, 2**depth).values
        chosen = tree_mechanism.select_splits(counts, candidates, criterion, epsilon, noise)
        tree = split_leaves(tree, chosen)
    below = child_counts(counts, source.splits.table, np.array(chosen))[1]
    return tree, below.transpose(1, 0, 2).reshape(-1, source.n_classes)


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
    parts = list(nodes_of(tree))  # parents first
    split = np.array([part.split for part in parts])
    left, right = np.full((2, len(parts)), LEAF)
    totals = np.zeros((len(parts), counts.shape[1]))
    totals[split < 0] = counts
    done: list[int] = []  # whole trees, the last one first
    for here in range(len(parts) - 1, -1, -1):
        if split[here] >= 0:
            left[here], right[here] = done.pop(), done.pop()
            totals[here] = totals[left[here]] + totals[right[here]]
        done.append(here)
    builder = TreeBuilder(candidates, np.array(schema.classes))
    return builder.build(split, left, right, totals, missing_right=True)
