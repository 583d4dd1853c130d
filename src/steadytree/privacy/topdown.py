"""DP-TopDown: the queue of Wang, Dick and Balcan (2020), Algorithm 1, with a PrivateSplit.

Three implementations of `PrivateSplit` serve it: `ReportNoisyMax` here, for the rows of one data
set, and `NoisyCounts` and `LocalRNM` in `federated`, for several holders. They differ in which
splits they count, and in nothing else.

Guarantee: the tree costs the sum of `epsilons`, one for each depth. The open leaves of a tree share
no row, so a `PrivateSplit` costs its epsilon once, however many leaves it is asked about; the costs
of the depths add up. All else here is computed from noisy counts alone.

The queue is asked for level by level. Algorithm 1 asks for the split of a leaf when its parent is
split, one request for each of M splits. What it learns of a leaf does not depend on when it asks,
so all leaves of a depth can be asked about at once, if none is left out that the queue would reach:
`_queue` is run on what is known so far, and leaves that are not known yet can only delay the
others, never bring one forward. So a leaf that is not reached now is not reached later either, and
the tree has the distribution of Algorithm 1, in as many rounds as it is deep.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from steadytree._base.validation import Integer, OneOf, Parameters, Real, validate
from steadytree.data.splits import SplitTable
from steadytree.privacy import tree_mechanism
from steadytree.privacy.mechanisms import Floats, Integers, Noise, release_counts
from steadytree.privacy.sampled_tree import CLOSED, OPEN, SampledTree, assemble
from steadytree.privacy.tree_mechanism import BlockRows

# of a leaf's rows: with less than this gained a split is mostly noise. The paper's 0.01 is in units
# of its criterion, whose maximum is 1; Gini impurity of two classes is at most 1/2.
LEAST_GAIN = {"gini": 0.005, "entropy": 0.01}
LEAF_SHARE = 0.1  # "auto"; the leaves also have the counts of their parents' splits
NOISE_BOUND = 0.7  # times ln k noise scales: a smaller one of k counts is taken as 0
PARAMETERS: Parameters = {
    "max_splits": Integer(1, 10_000),
    "error": Real(0, 1),
    "budget": OneOf("decay", "uniform"),
    "leaf_share": Real(0, 1, also=("auto",)),
    "criterion": OneOf("gini", "entropy"),
    "max_depth": Integer(1, also=(None,)),
}


class CountedSplits(NamedTuple):
    """Splits of one leaf and noisy class counts of their sides, all with the same noise."""

    splits: Sequence[int]
    counts: Integers  # (splits, 2, n_classes), yes sides first
    variance: float  # of the noise of a count


class PrivateSplit(Protocol):
    """Good splits of the open leaves of a tree, in their order, with noisy counts of their sides.

    Guarantee: `epsilon` for adding or removing one row, for all leaves together.
    """

    def __call__(self, tree: SampledTree, epsilon: float) -> list[CountedSplits]: ...


@dataclass(frozen=True)
class ReportNoisyMax:
    """RNM on one machine: one split a leaf by its noisy score, its sides counted with fresh noise.

    Half of epsilon selects (`select`, on scores in rows), half counts. A row is in one leaf, and
    there in one of 2 * n_classes counts, so the counts have sensitivity 1. As published, the score
    was released with the noise that had selected it, which is not private (`docs/private.rst`).
    """

    block: BlockRows
    candidates: SplitTable
    criterion: str
    noise: Noise

    def __call__(self, tree: SampledTree, epsilon: float) -> list[CountedSplits]:
        half, found = epsilon / 2, []
        how = (self.candidates, self.criterion, half, self.noise)
        for rows in tree_mechanism.open_rows(tree, self.block, self.candidates):
            bins = tree_mechanism.bin_counts(rows, self.candidates)
            chosen = tree_mechanism.select_splits(bins[None], *how)
            exact = tree_mechanism.side_counts(bins, self.candidates, chosen)
            noisy = release_counts(exact, half, self.noise)
            found.append(CountedSplits(chosen, noisy, count_variance(half)))
        return found


def count_variance(epsilon: float, times: int = 1, n_holders: int = 1) -> float:
    """Variance of summed counts of holders in which a row counts `times` (`release_counts`)."""
    return 2.0 * n_holders * (times / epsilon) ** 2


@dataclass(frozen=True)
class TopDown:
    """The parameters of DP-TopDown, the same for every `PrivateSplit`."""

    max_splits: int = 64  # M
    error: float = 0.1  # a leaf with less than error / M of the rows stays a leaf
    budget: str = "decay"  # or "uniform"
    leaf_share: float | str = "auto"  # of epsilon, for class counts of the leaves
    criterion: str = "gini"  # or "entropy"
    max_depth: int | None = None

    def __post_init__(self) -> None:
        validate(self, PARAMETERS)
        if self.leaf_share == 1:
            raise ValueError(
                "leaf_share must be less than 1: with 1 nothing is left to find a split with. "
                "Use a smaller share."
            )

    @property
    def share(self) -> float:
        """The leaves' share of epsilon."""
        return LEAF_SHARE if self.leaf_share == "auto" else float(self.leaf_share)

    def epsilons(self, epsilon: float, least: float) -> list[float]:
        """What the splits of each depth may cost, down to the depth where it is below `least`.

        Decay: 2^-d at depth d = 1, 2, ... Uniform: 1/M, for trees of M splits have no more depths.

        >>> TopDown(max_splits=3, leaf_share=0.5).epsilons(1.0, 1e-6)
        [0.25, 0.125, 0.0625]
        >>> TopDown(max_splits=2, leaf_share=0, budget="uniform").epsilons(1.0, 1e-6)
        [0.5, 0.5]
        """
        depths = min(self.max_splits, self.max_depth or self.max_splits)
        left = epsilon * (1 - self.share)
        even = self.budget == "uniform"
        parts = (left / depths if even else left * 0.5**d for d in range(1, depths + 1))
        return [part for part in parts if part >= least]


class Estimate(NamedTuple):
    """Estimated class counts of a leaf, and the inverse of their variance."""

    counts: Floats
    precision: float

    def pooled(self, counts: Any, precision: float) -> "Estimate":
        """With independent noisy counts of the same rows: the mean of least variance."""
        total = self.precision + precision
        if total == 0:
            return self
        mean = (self.precision * self.counts + precision * np.asarray(counts)) / total
        return Estimate(mean, total)


@dataclass(eq=False)
class _Leaf:
    """A leaf that the queue may reach, and what is known of it."""

    estimate: Estimate
    split: int = -1
    gain: float = 0.0
    sides: tuple[Estimate, ...] = ()
    worthwhile: bool = False
    below: tuple["_Leaf", ...] = ()  # its children, where they are known


class TopDownTree(NamedTuple):
    """A tree, what its noisy counts say of each leaf, and what it cost."""

    tree: SampledTree
    leaves: list[Estimate]
    epsilon: float

    def labelled(self, noisy: Integers, variance: float) -> Floats:
        """Class counts (leaves, classes), pooled with fresh noisy counts of all leaves."""
        pooled = [
            leaf.pooled(own, 1 / variance) for leaf, own in zip(self.leaves, noisy, strict=True)
        ]
        return np.array([leaf.counts for leaf in pooled])


def grow_top_down(
    private_split: PrivateSplit,
    epsilons: Sequence[float],
    n_classes: int,
    limits: TopDown,
    most_leaves: int | None = None,
) -> TopDownTree:
    """The tree of Algorithm 1.

    A leaf is split if it has error / max_splits of the rows and gains enough, by the noisy counts;
    that with the largest gain is split next, `max_splits` times. Where an answer cannot hold more
    than `most_leaves` leaves, it is asked about the largest ones.
    """
    root = _Leaf(Estimate(np.zeros(n_classes), 0.0))
    level, least, spent = [root], 0.0, 0.0
    for epsilon in epsilons:
        if not level:
            break
        spent += epsilon
        for leaf, counted in zip(level, private_split(_tree(root, level), epsilon), strict=True):
            _judge(leaf, counted, limits.criterion, least)
        if leaf is root:
            least = limits.error / limits.max_splits * float(root.estimate.counts.sum())
        reached = _queue(root, limits.max_splits)
        parents = [leaf for leaf in level if leaf in reached]
        for leaf in parents:
            leaf.below = tuple(_Leaf(side) for side in leaf.sides)
        level = [child for leaf in parents for child in leaf.below]
        largest = set(sorted(level, key=lambda leaf: -leaf.estimate.counts.sum())[:most_leaves])
        level = [leaf for leaf in level if leaf in largest]
    order = list(_preorder(root, _queue(root, limits.max_splits)))
    tree = assemble(leaf.split if divided else OPEN for leaf, divided in order)
    return TopDownTree(tree, [leaf.estimate for leaf, divided in order if not divided], spent)


def _judge(leaf: _Leaf, counted: CountedSplits, criterion: str, least: float) -> None:
    """Note the best of the counted splits of a leaf, its gain, and whether it is worthwhile.

    With v the variance of a count, the two sides of each of m splits add up to the leaf's classes,
    with variance 2 v; so does, with the noise of the depth above, a side of its parent. All are
    pooled. The difference of two sides is independent of their sum, so that a side is half of the
    pooled sum and half of the difference, with variance v / 2 + (variance of the sum) / 4.

    A count that noise may have made is taken as 0: the largest of k counts without rows is about
    ln k noise scales. Otherwise noise would look like rare classes that a split sets apart, and
    trees would be largest where the noise is.
    """
    counts, variance = np.asarray(counted.counts, np.float64), counted.variance
    sums, halves = counts.sum(axis=1).mean(axis=0), (counts[:, 0] - counts[:, 1]) / 2
    leaf.estimate = leaf.estimate.pooled(sums, len(counts) / (2 * variance))
    middle = leaf.estimate.counts / 2
    sides = np.stack([middle + halves, middle - halves], axis=1)
    spread = variance / 2 + 0.25 / leaf.estimate.precision
    bound = NOISE_BOUND * math.log(sides.size) * math.sqrt(spread / 2)
    certain = np.where(sides > bound, sides, 0.0)
    gains = tree_mechanism.size_gains(certain, criterion)
    best = int(np.argmax(gains))
    leaf.split, leaf.gain = int(counted.splits[best]), float(gains[best])
    leaf.sides = tuple(Estimate(side, 1 / spread) for side in sides[best])
    size = float(leaf.estimate.counts.sum())
    leaf.worthwhile = size >= least and leaf.gain > LEAST_GAIN[criterion] * size


def _queue(root: _Leaf, max_splits: int) -> set[_Leaf]:
    """The leaves that are split: always that with the largest gain, of those known."""
    queue, reached, pushed = [(0.0, 0, root)], set[_Leaf](), 0
    while queue and len(reached) < max_splits:
        leaf = heapq.heappop(queue)[2]
        if not leaf.worthwhile:
            continue
        reached.add(leaf)
        for child in leaf.below:
            pushed += 1
            heapq.heappush(queue, (-child.gain, pushed, child))
    return reached


def _preorder(root: _Leaf, split: set[_Leaf] | None = None) -> Iterator[tuple[_Leaf, bool]]:
    """Every leaf, and whether it is split: all whose children are known, or those listed."""
    waiting = [root]
    while waiting:
        leaf = waiting.pop()
        divided = bool(leaf.below) if split is None else leaf in split
        yield leaf, divided
        if divided:
            waiting += reversed(leaf.below)


def _tree(root: _Leaf, level: Sequence[_Leaf]) -> SampledTree:
    """The tree so far, with the leaves of a level open."""
    current = set(level)
    return assemble(
        leaf.split if divided else OPEN if leaf in current else CLOSED
        for leaf, divided in _preorder(root)
    )
