"""Sample a whole tree by one exponential mechanism; exact counts and scores for the others.

Guarantee of `sample_tree`: epsilon-differential privacy for adding or removing one row.

Utility of a tree T on data D, summed over its leaves:

* ``CORRECT``: rows whose class is the leaf's label. A row falls in exactly one leaf of T, so adding
  it changes the utility by 0 or 1.
* ``PURE``: minus rows times Gini impurity, ``-(n - sum_c n_c^2 / n)``. Adding a row of class c to
  a leaf with n rows, a of them of class c, and S = sum n_c^2 changes ``n - S / n`` by
  ``(n + S / n - 2 a) / (n + 1)``. It is at least 0, since S >= a^2 makes the numerator at least
  ``(n - a)^2 / n``; and less than 2, since S <= n^2 and a >= 0 bound it by ``2 n / (n + 1)``.

So in both cases an added row moves the utility of EVERY tree the same way (monotone) by at most
D = 1 or D = 2, however deep the trees are.

Mechanism: P(T) proportional to prior(T) exp(epsilon u(T, D) / D) with a public prior. Between
neighbours each weight changes by a factor in [1, e^epsilon] (or each by one in [e^-epsilon, 1]),
and so does their sum: the ratio, and with it the log-probability of every tree, changes by at most
epsilon. No factor 2 is lost, because the utility is monotone. Labels are part of T for CORRECT.

Sampling: given the root split, the two subtrees are independent and follow the same distribution
on the rows of either side. So the root split is sampled by the summed weights of all trees that
begin with it (`root_terms`, exact sum-product), then each side in turn.

Floating point: a sample follows its log-weights exactly (`Noise.sample_index`); the log-weights
are computed in double precision with an error of at most eta, which `sampler_slack` bounds from
public numbers. A tree takes at most q = 2^(depth+1) - 1 samples, each probability is off by a
factor within e^(2 eta), on each of two neighbours: 4 q eta in all. The tree is sampled with
epsilon minus this.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.data._kernels import count_classes
from steadytree.data.splits import SplitTable
from steadytree.privacy._kernels import (
    CORRECT,
    PURE,
    impurity_scores,
    order_by_class,
    pack_sides,
    root_terms,
)
from steadytree.privacy.mechanisms import (
    Floats,
    Integers,
    Noise,
    SeededNoise,
    _library,
    check_part,
    select,
)
from steadytree.privacy.padding import Padding

MOST_ROWS = 2**27  # of one data set; the bound on rounding errors needs a public one
MOST_NODES = 200_000
DEEPEST = 1_000  # levels of a tree from outside
DEEPEST_BLOCK = 3
STOP = 0.2  # prior probability of a leaf
UTILITIES = {"correct": CORRECT, "pure": PURE}
UNIT = 2.0**-53
# The most that one row changes a split's score, all scores the same way. Gini: see above. Entropy
# in bits: rows times entropy rises by log2((n+1)^(n+1) / n^n) - log2((a+1)^(a+1) / a^a), at least 0
# and at most log2(n + 1) + log2(e), which needs a public bound on the rows.
SCORE_SENSITIVITY = {"gini": 2.0, "entropy": float(np.log2(MOST_ROWS + 1) + np.log2(math.e))}


class SampledTree(NamedTuple):
    """A split with two trees below, or a leaf with a label (-1: none was sampled).

    The split of a leaf is -1, or -2 for a closed one, which nothing is asked about.
    """

    split: int
    yes: "SampledTree" = None  # type: ignore[assignment]  # leaves have none
    no: "SampledTree" = None  # type: ignore[assignment]
    label: int = -1

    @property
    def is_leaf(self) -> bool:
        return self.yes is None


OPEN, CLOSED = SampledTree(-1), SampledTree(-2)


class BlockRows(NamedTuple):
    """The rows that a tree is sampled for: bins (p, n), labels (n,), and which rows of them.

    With `padding`, `rows` is a mask, and all that is done takes the same work for every mask.
    """

    binned: NDArray[Any]
    labels: NDArray[np.int32]
    n_classes: int
    rows: NDArray[Any]
    padding: Padding | None = None

    def sides(self, candidates: SplitTable, split: int) -> tuple["BlockRows", "BlockRows"]:
        """The rows on either side of a split, the yes side first."""
        if self.padding is not None:
            inside = self.padding.split(self.rows, split)
            return self._replace(rows=inside), self._replace(rows=self.rows & ~inside)
        yes = candidates.goes_left(self.binned, split, self.rows)
        return self._replace(rows=self.rows[yes]), self._replace(rows=self.rows[~yes])

    def class_counts(self) -> Integers:
        if self.padding is not None:
            return self.padding.class_counts(self.rows)
        return np.bincount(self.labels[self.rows], minlength=self.n_classes).astype(np.int64)

    def packed(self, candidates: SplitTable) -> tuple[NDArray[np.uint64], Integers]:
        """Sides of all splits as bits, row by row, and the first word of each class."""
        if self.padding is not None:
            return self.padding.packed(self.rows), self.padding.word_offsets
        ordered, word_offsets = order_by_class(self.labels, self.rows, self.n_classes)
        return pack_sides(self.binned, ordered, *candidates.arrays), word_offsets


def sampler_slack(epsilon: float, depth: int, n_candidates: int, n_classes: int) -> float:
    """Upper bound on the privacy cost of rounding, from public numbers alone.

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


def sample_tree(
    block: BlockRows, candidates: SplitTable, epsilon: float, depth: int, utility: str, noise: Noise
) -> SampledTree:
    """Sample one tree of at most `depth` levels (1 to 3); see the module for the proof.

    The candidates must be public. `epsilon` is the cost of the whole tree, including its labels if
    the utility is "correct"; "pure" samples none.
    """
    epsilon = check_part(epsilon)
    if not 1 <= depth <= DEEPEST_BLOCK:
        raise ValueError(f"depth must be 1 to {DEEPEST_BLOCK}, got {depth}.")
    if block.binned.shape[1] > MOST_ROWS:
        raise ValueError(f"a data set may have at most {MOST_ROWS:,} rows.")
    rate = epsilon - sampler_slack(epsilon, depth, len(candidates), block.n_classes)
    if rate <= 0:
        raise ValueError("epsilon is too small to cover rounding errors: use at least 1e-6.")
    return _sample(block, candidates, rate, depth, utility, noise)


def _sample(
    block: BlockRows, candidates: SplitTable, rate: float, depth: int, utility: str, noise: Noise
) -> SampledTree:
    within = block.class_counts()
    if depth > 0:
        bits, word_offsets = block.packed(candidates)
        prior, kind = candidates.log_prior, UTILITIES[utility]
        terms = root_terms(bits, word_offsets, within, prior, STOP, rate, kind, depth)
        if block.padding is not None:
            block.padding.spend(block.padding.price.weighing(depth))
        split = noise.sample_index(terms)
        below = (candidates, rate, depth - 1, utility)
        if split < len(candidates):
            yes, no = (_sample(side, *below, noise) for side in block.sides(candidates, split))
            tree = SampledTree(split, yes, no)
            if block.padding is not None and utility == "correct":
                _spare(noise).sample_index(rate * within.astype(np.float64))
            return tree
        if block.padding is not None:  # the same work as below a split, for no row and no use
            for side in block._replace(rows=np.zeros_like(block.rows)).sides(candidates, 0):
                _sample(side, *below, _spare(noise))
    if utility == "pure":
        return OPEN
    return SampledTree(-1, label=noise.sample_index(rate * within.astype(np.float64)))


def _spare(noise: Noise) -> Noise:
    """Noise for samples that are thrown away: a seeded one is not used up."""
    return noise if noise.private else SeededNoise(0)


def whole_tree_measurement(
    candidates: SplitTable, n_classes: int, epsilon: float, depth: int, noise: Noise
) -> Any:
    """`sample_tree` with labels as an OpenDP measurement, to be used with OpenDP's odometers.

    Its argument is a list of rows, each a list of bins and a label last; its metric counts rows
    added or removed, and k of them cost k epsilon. Rows outside the bins and classes are refused.
    """
    if not noise.private:
        raise ValueError("a measurement needs private noise: this one has a testing seed.")
    dp = _library()
    limits = [*np.diff(candidates.space.bin_offsets).tolist(), n_classes]

    def is_row(row: Any) -> bool:
        if not isinstance(row, list) or len(row) != len(limits):
            return False
        return all(type(n) is int and 0 <= n < end for n, end in zip(row, limits, strict=True))

    def member(listed: Any) -> bool:
        return isinstance(listed, list) and all(is_row(row) for row in listed)

    def function(listed: list[list[int]]) -> SampledTree:
        if not member(listed):  # OpenDP does not check before it calls
            raise ValueError("rows must be lists of bins of the candidates and a label last.")
        table = np.array(listed, np.int64).reshape(len(listed), len(limits))
        binned, labels = np.ascontiguousarray(table[:, :-1].T), table[:, -1].astype(np.int32)
        block = BlockRows(binned, labels, n_classes, np.arange(len(table)))
        return sample_tree(block, candidates, epsilon, depth, "correct", noise)

    return dp.m.make_user_measurement(
        dp.user_domain("rows of codes and a label", member),
        dp.symmetric_distance(),
        dp.max_divergence(),
        function,
        lambda d_in: float(d_in) * epsilon,
    )


# ---- sampled trees, walked without recursion: one from outside may be a chain ----
def nodes_of(tree: SampledTree) -> Iterator[SampledTree]:
    """Splits and leaves in preorder, the yes side first."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        yield part
        if not part.is_leaf:
            waiting += (part.no, part.yes)


def assemble(parts: Iterable[SampledTree | int]) -> SampledTree:
    """The tree of splits (integers) and leaves, or trees instead of leaves, in preorder."""
    done: list[SampledTree] = []
    for part in reversed(list(parts)):  # children are complete before their parent is reached
        done.append(SampledTree(part, done.pop(), done.pop()) if isinstance(part, int) else part)
    return done[0]


def leaves_of(tree: SampledTree) -> list[SampledTree]:
    """Leaves, the yes side first."""
    return [part for part in nodes_of(tree) if part.is_leaf]


def n_open(tree: SampledTree) -> int:
    """Leaves that are not closed."""
    return sum(part.split == OPEN.split for part in nodes_of(tree))


def rows_by_leaf(
    tree: SampledTree, block: BlockRows, candidates: SplitTable
) -> Iterator[BlockRows]:
    """Rows of each leaf, in the order of `leaves_of`."""
    waiting = [(tree, block)]
    while waiting:
        part, rows = waiting.pop()
        if part.is_leaf:
            yield rows
            continue
        yes, no = rows.sides(candidates, part.split)
        waiting += ((part.no, no), (part.yes, yes))


def open_rows(tree: SampledTree, block: BlockRows, candidates: SplitTable) -> Iterator[BlockRows]:
    """Rows of each leaf that is not closed."""
    parts = zip(leaves_of(tree), rows_by_leaf(tree, block, candidates), strict=True)
    return (rows for leaf, rows in parts if leaf.split == OPEN.split)


def replace_leaves(tree: SampledTree, leaves: Iterator[SampledTree]) -> SampledTree:
    """The tree with every leaf replaced by the next of `leaves`, the yes side first."""
    return assemble(next(leaves) if part.is_leaf else part.split for part in nodes_of(tree))


def split_leaves(tree: SampledTree, splits: Sequence[int]) -> SampledTree:
    """The tree with every leaf split."""
    return replace_leaves(tree, (SampledTree(split, OPEN, OPEN) for split in splits))


def extend(
    tree: SampledTree,
    block: BlockRows,
    candidates: SplitTable,
    epsilon: float,
    depth: int,
    utility: str,
    noise: Noise,
) -> SampledTree:
    """The tree with a whole tree sampled below every leaf, which share no row."""
    how = (candidates, epsilon, depth, utility, noise)
    parts = rows_by_leaf(tree, block, candidates)
    return replace_leaves(tree, (sample_tree(rows, *how) for rows in parts))


def to_numbers(tree: SampledTree) -> tuple[int, ...]:
    """Splits in preorder, the yes side first; -1 for a leaf, -2 for a closed one; no labels.

    >>> to_numbers(SampledTree(4, OPEN, SampledTree(2, OPEN, OPEN)))
    (4, -1, 2, -1, -1)
    """
    return tuple(part.split for part in nodes_of(tree))


def from_numbers(numbers: Sequence[int], n_splits: int, closed: bool = False) -> SampledTree:
    """The tree that `to_numbers` wrote; anything else is refused, and closed leaves by default."""
    wrong = ValueError("tree: splits must be integers that make up one tree.")
    if not 0 < len(numbers) <= MOST_NODES:
        raise wrong
    done: list[tuple[SampledTree, int]] = []  # with their depths
    for number in reversed(numbers):  # children are complete before their parent is reached
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise wrong
        if not -1 - closed <= number < n_splits or (number >= 0 and len(done) < 2):
            raise wrong
        if number < 0:
            done.append((OPEN if number == OPEN.split else CLOSED, 0))
            continue
        (yes, one), (no, other) = done.pop(), done.pop()
        depth = 1 + max(one, other)
        if depth > DEEPEST:
            raise ValueError(f"tree: may have at most {DEEPEST:,} levels.")
        done.append((SampledTree(int(number), yes, no), depth))
    if len(done) != 1:
        raise wrong
    return done[0][0]


# ---- exact counts and scores: to be noised before they are released ----
def leaf_counts(tree: SampledTree, block: BlockRows, candidates: SplitTable) -> Integers:
    """Exact class counts (leaves, classes)."""
    return np.array([rows.class_counts() for rows in rows_by_leaf(tree, block, candidates)])


def bin_counts(block: BlockRows, candidates: SplitTable) -> Integers:
    """Exact class counts (bins of all features, n_classes); a row counts once a feature."""
    if block.padding is not None:
        return block.padding.bin_counts(block.rows)
    node_of_row = np.full(block.binned.shape[1], -1, np.int32)
    node_of_row[block.rows] = 0
    shape = (1, candidates.space.bin_offsets, block.n_classes)
    return count_classes(block.binned, block.labels, node_of_row, *shape)[0]


def side_counts(bins: NDArray[Any], candidates: SplitTable, splits: Sequence[int]) -> NDArray[Any]:
    """Class counts (splits, 2, n_classes) of both sides, yes first, from counts of bins."""
    running = np.concatenate([np.zeros_like(bins[:1]), bins.cumsum(axis=0)])
    offsets = candidates.space.bin_offsets
    feature, bin_, by_value = (array[np.asarray(splits, np.int64)] for array in candidates.arrays)
    start = offsets[feature]
    yes = running[start + bin_ + 1] - running[start + np.where(by_value, bin_, 0)]
    both = running[offsets[feature + 1]] - running[start]
    return np.stack([yes, both - yes], axis=1)


def score_splits(counts: Integers, candidates: SplitTable, criterion: str) -> Floats:
    """Exact scores (n_nodes, m) from class counts (n_nodes, bins of all features, n_classes)."""
    offsets, entropy = candidates.space.bin_offsets, criterion == "entropy"
    return impurity_scores(counts, offsets, *candidates.arrays, entropy)


def select_splits(
    counts: Integers, candidates: SplitTable, criterion: str, epsilon: float, noise: Noise
) -> list[int]:
    """One split for each node, by its exact score; nodes that share no row cost epsilon once."""
    limits = (epsilon, SCORE_SENSITIVITY[criterion], noise, candidates.log_prior)
    scores = score_splits(counts, candidates, criterion)
    return [select(node, *limits, n_terms=counts.shape[2]) for node in scores]


def size_gains(sides: NDArray[Any], criterion: str) -> Floats:
    """Rows times gain in purity of splits with class counts (splits, 2, n_classes), none negative.

    >>> size_gains(np.array([[[4, 0], [0, 4]]]), "gini")
    array([4.])
    """

    def impurity(counts: NDArray[Any]) -> Any:
        size = counts.sum(axis=-1)
        share = counts / np.maximum(size, 1e-300)[..., None]
        if criterion == "entropy":
            return -size * (share * np.log2(np.where(share > 0, share, 1.0))).sum(axis=-1)
        return size * (1.0 - (share**2).sum(axis=-1))

    return np.asarray(impurity(sides.sum(axis=1)) - impurity(sides).sum(axis=1))


def sides_from_bins(bins: NDArray[Any], candidates: SplitTable) -> Floats:
    """Plausible class counts (splits, 2, n_classes) of every split from noisy counts of bins."""
    totals = np.add.reduceat(bins, candidates.space.bin_offsets[:-1], axis=0)
    node = np.maximum(totals.mean(axis=0), 0.0)  # every feature counts the same rows
    yes = np.clip(side_counts(bins, candidates, range(len(candidates)))[:, 0], 0.0, node)
    return np.stack([yes, node - yes], axis=1)
