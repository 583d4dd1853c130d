"""Six methods to grow one tree from the noised answers of several holders."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steadytree._base.exceptions import RefusedError
from steadytree.data.splits import SplitTable
from steadytree.federated.gateway import MOST_NUMBERS
from steadytree.federated.joint_table import JointTable
from steadytree.federated.messages import CHOICES, WHOLE
from steadytree.federated.secure_sum import MaskedSums, SecureSum
from steadytree.federated.session import LEAST_LABEL_SHARE, Grown, Session
from steadytree.privacy.budget import FEW_CANDIDATES, ROWS_SHARE, weighs_triples
from steadytree.privacy.mechanisms import SMALLEST_EPSILON, Integers
from steadytree.privacy.sampled_tree import (
    DEEPEST,
    OPEN,
    SampledTree,
    leaves_of,
    n_open,
    split_leaves,
)
from steadytree.privacy.topdown import CountedSplits, PrivateSplit, count_variance, grow_top_down
from steadytree.privacy.tree_mechanism import sides_from_bins, size_gains

OVERLAP_POWER = 4
CLASS_SHARE = 0.05  # of each holder's epsilon, for its number of rows of each class
# epsilon times rows of a holder, from which a third level is worthwhile, and a second block:
# sooner where a holder has all of its epsilon for one block
TRIPLE_STRENGTH, ONE_BLOCK_STRENGTH, BLOCK_STRENGTH = 100.0, 250.0, 400.0
# of sums: the joint table's share of the budget, levels of histograms, features of a leaf that may
# be in the table, and its noise, all cells together, as a share of the rows
TABLE_SHARE, LEVELS, BEST_FEATURES, NOISE_SHARE = 0.4, 2, 3, 0.1
LEAST_CELLS, MOST_SPLITS = 4, 8


# ---- block by block ----
def _depths(session: Session, strength: float, enough: float = BLOCK_STRENGTH) -> tuple[int, ...]:
    """Depths of blocks; strength is epsilon times the rows of a holder that samples."""
    fits = weighs_triples(len(session.candidates), session.n_classes)
    if strength >= enough:
        return (2, 2)
    return (3,) if fits and strength >= TRIPLE_STRENGTH else (2,)


def delegate(session: Session, order: Sequence[int]) -> Grown:
    """Each block is sampled by one holder; holders share no row.

    The holders whose rows are most like all holders' rows sample, by noisy class counts, each with
    weights that make its shares of the classes those of all holders. A tree of one block is
    sampled by two of them, and all evaluate both.
    """
    worth, weights = _compare_holders(session, order)
    best = sorted(order, key=lambda who: -worth[who])[:2]
    strength = session.epsilon * float(np.mean([worth[who] for who in best]))
    depths = _depths(session, strength, ONE_BLOCK_STRENGTH)
    few = len(session.candidates) <= FEW_CANDIDATES
    if depths == (2, 2) and few and weighs_triples(len(session.candidates), session.n_classes):
        depths = (2, 3)
    most = (1 - LEAST_LABEL_SHARE - CLASS_SHARE) * session.epsilon
    if len(depths) == 1:
        every = dict.fromkeys(best, OPEN)
        grown = session.blocks(dict.fromkeys(best, most), every, depths[0], True, weights)
        if grown:
            left = session.epsilon - session.spent
            rest = {index: float(left[index]) for index in session.active}
            return _best_of(session, list(grown.values()), rest)
    turns, samplers = dict.fromkeys(order, 0), []
    for _ in depths:
        samplers.append(min(order, key=lambda who: -worth[who] / (1 + turns[who])))
        turns[samplers[-1]] += 1
    tree = OPEN
    for level, (who, depth) in enumerate(zip(samplers, depths, strict=True)):
        last = level == len(depths) - 1
        tree = session.block(who, most / turns[who], tree, depth, last, weights)
    return session.label(tree)


def _compare_holders(
    session: Session, order: Sequence[int]
) -> tuple[dict[int, float], dict[int, tuple[int, ...]]]:
    """Of each holder: how many rows like all holders' rows it has, and its weights of classes.

    A holder with a share s_c of all rows of class c may count them as t / s_c each, at most 1: the
    smaller t, the closer are its shares of the classes to those of all, and the fewer rows count.
    The best t is one of the s_c; rows count by the overlap of the two distributions of classes, to
    a power that makes few rows of all classes better than many rows of one.
    """
    each = dict.fromkeys(session.active, CLASS_SHARE * session.epsilon)
    noisy = session.ask(each, "leaf counts", session.n_classes)
    counts = {who: np.maximum(numbers, 1).astype(float) for who, numbers in noisy.items()}
    total = np.sum(list(counts.values()), axis=0)
    worth: dict[int, float] = dict.fromkeys(order, 0.0)
    weights = dict.fromkeys(order, (WHOLE,) * session.n_classes)
    for who, own in counts.items():
        shares = own / total
        for limit in np.unique(shares):
            scaled = np.minimum(1.0, limit / shares)
            counted = scaled * own
            overlap = np.minimum(counted / counted.sum(), total / total.sum()).sum()
            rows = float(counted.sum() * overlap**OVERLAP_POWER)
            if rows > worth[who]:
                worth[who] = rows
                weights[who] = tuple(max(1, round(WHOLE * each)) for each in scaled.tolist())
    return worth, weights


def _best_of(
    session: Session, trees: Sequence[SampledTree], epsilons: Mapping[int, float]
) -> Grown:
    """The tree that classifies most rows correctly, by all holders' noisy leaf counts."""
    counts = _evaluate(session, trees, epsilons)
    best = max(range(len(counts)), key=lambda k: counts[k].max(axis=1).sum())
    return trees[best], counts[best]


def duel(session: Session, order: Sequence[int]) -> Grown:
    """Two holders propose each block, and all evaluate them by noisy leaf counts.

    Holders with many and mixed rows propose, by their noisy class counts: holders that differ may
    have almost no row of a class. For the same reason all blocks are sampled for pure leaves.
    """
    each = dict.fromkeys(session.active, ROWS_SHARE * session.epsilon)  # the cost of counting rows
    counts = session.ask(each, "leaf counts", session.n_classes)
    n_rows = float(max(np.sum(list(counts.values())), 1))
    depths = _depths(session, session.epsilon * n_rows / len(session.active))
    worth = {who: _impurity(counts[who][None]) if who in counts else 0.0 for who in order}
    turns, pairs = dict.fromkeys(order, 0), []
    for _ in depths:
        pairs.append(sorted(order, key=lambda who: -worth[who] / (1 + turns[who]))[:2])
        for who in pairs[-1]:
            turns[who] += 1
    tree, evaluation = OPEN, 0.2 * session.epsilon / len(depths)
    for pair, depth in zip(pairs, depths, strict=True):
        base = (0.5 - ROWS_SHARE) * session.epsilon
        epsilons = {who: base / turns[who] for who in sorted(pair)}
        grown = session.blocks(epsilons, dict.fromkeys(epsilons, tree), depth, last=False)
        trees = list(grown.values()) or [tree]
        if len(trees) > 1:
            each = dict.fromkeys(session.active, evaluation)
            impurities = [_impurity(noisy) for noisy in _evaluate(session, trees, each)]
            trees = [trees[int(np.argmin(impurities))]]
        tree = trees[0]
    return session.label(tree)


def vote(session: Session, order: Sequence[int]) -> Grown:
    """Every holder proposes a whole tree, and all holders evaluate all trees."""
    depths = _depths(session, session.epsilon * session.count_rows() / len(session.active))
    epsilon = (0.6 - ROWS_SHARE) * session.epsilon / len(depths)
    grown = dict.fromkeys(order, OPEN)
    for level, depth in enumerate(depths):
        last = level == len(depths) - 1
        grown = session.blocks(dict.fromkeys(grown, epsilon), grown, depth, last)
    each = dict.fromkeys(session.active, 0.4 * session.epsilon)
    return _best_of(session, list(grown.values()) or [OPEN], each)


def _evaluate(
    session: Session, trees: Sequence[SampledTree], epsilons: Mapping[int, float]
) -> list[Integers]:
    sizes = [len(leaves_of(tree)) * session.n_classes for tree in trees]
    found = session.ask(epsilons, "leaf counts", sum(sizes), trees)
    parts = np.split(np.sum(list(found.values()), axis=0), np.cumsum(sizes)[:-1])
    return [part.reshape(-1, session.n_classes) for part in parts]


def _impurity(noisy: Integers) -> float:
    """Rows times Gini impurity, summed over leaves (leaves, classes)."""
    counts = np.maximum(noisy, 0)
    size = np.maximum(counts.sum(axis=1), 1)
    return float((size - (counts**2).sum(axis=1) / size).sum())


# ---- DP-TopDown among holders ----
@dataclass(frozen=True)
class NoisyCounts:
    """PrivateSplit by counting: all holders count both sides of every split.

    A row is in one leaf, and there in one count of each of the m splits: added or removed it moves
    m counts by 1, so noise of scale m / epsilon costs epsilon. As published, three kinds of counts
    had a budget of 3 epsilon / m each for each split, which adds up to nine times the claim.
    """

    session: Session

    def __call__(self, tree: SampledTree, epsilon: float) -> list[CountedSplits]:
        every = tuple(range(len(self.session.candidates)))
        return _count(self.session, tree, (every,) * n_open(tree), epsilon)


@dataclass(frozen=True)
class LocalRNM:
    """PrivateSplit by proposals: each holder selects one split a leaf, and only those are counted.

    Half of epsilon selects, on the holder's own rows (`select`); half counts, with noise that grows
    with the number of different proposals for a leaf, at most one for each holder.
    """

    session: Session

    def __call__(self, tree: SampledTree, epsilon: float) -> list[CountedSplits]:
        session, kinds = self.session, {criterion: kind for kind, criterion in CHOICES.items()}

        def check(_: int, chosen: Integers) -> None:
            if chosen.min() < 0 or chosen.max() >= len(session.candidates):
                raise RefusedError("a holder chose a split that does not exist.")

        each, kind = dict.fromkeys(session.active, epsilon / 2), kinds[session.limits.criterion]
        found = session.ask(each, kind, n_open(tree), (tree,), check)
        chosen = np.array(list(found.values()))
        proposed = tuple(tuple(sorted(set(column.tolist()))) for column in chosen.T)
        return _count(session, tree, proposed, epsilon / 2)


def _count(
    session: Session, tree: SampledTree, splits: tuple[tuple[int, ...], ...], epsilon: float
) -> list[CountedSplits]:
    """Noisy counts of the sides of some splits of each open leaf, summed over holders."""
    sizes = np.array([len(listed) for listed in splits])
    each = dict.fromkeys(session.active, epsilon)
    size = int(sizes.sum()) * 2 * session.n_classes
    found = session.ask(each, "side counts", size, (tree,), questions=splits)
    noisy = np.sum(list(found.values()), axis=0).reshape(-1, 2, session.n_classes)
    variance = count_variance(epsilon, int(sizes.max()), len(found))
    parts = np.split(noisy, np.cumsum(sizes)[:-1])
    return [CountedSplits(*both, variance) for both in zip(splits, parts, strict=True)]


def noisy_counts(session: Session, order: Sequence[int]) -> Grown:
    """DP-TopDown with `NoisyCounts`."""
    return _top_down(session, NoisyCounts(session), len(session.candidates))


def local_rnm(session: Session, order: Sequence[int]) -> Grown:
    """DP-TopDown with `LocalRNM`."""
    return _top_down(session, LocalRNM(session), min(len(order), len(session.candidates)))


def _top_down(session: Session, private_split: PrivateSplit, n_counted: int) -> Grown:
    """Grow the tree, then spend what is left on the counts of its leaves."""
    epsilons = session.limits.epsilons(session.epsilon, 2 * SMALLEST_EPSILON)[:DEEPEST]
    most_leaves = MOST_NUMBERS // (n_counted * 2 * session.n_classes)
    how = (session.n_classes, session.limits, most_leaves)
    grown = grow_top_down(private_split, epsilons, *how)
    left = (session.epsilon - session.spent)[session.active]
    if left.min() < SMALLEST_EPSILON:
        return grown.tree, np.array([leaf.counts for leaf in grown.leaves])
    counts = session.label(grown.tree)[1]
    return grown.tree, grown.labelled(counts, sum(count_variance(part) for part in left.tolist()))


# ---- sums ----
def grow_from_sums(sums: SecureSum | MaskedSums, candidates: SplitTable) -> Grown:
    """From sums that were noised once: splits by histograms, then a tree by their joint table.

    Histograms of all features, for all rows and for both sides of the best split, show which splits
    are worthwhile. A histogram counts a row once a feature, the joint table once: so the table is
    precise, and the best tree of its splits is found without another question.
    """
    n_rows = float(max(sums.ask(ROWS_SHARE, "rows", OPEN, candidates)[0], 1))
    share, tree, gains = (1 - ROWS_SHARE - TABLE_SHARE) / LEVELS, OPEN, dict[int, float]()
    for _ in range(LEVELS):
        bins = sums.ask(share, "bins", tree, candidates)
        best = [_best_splits(leaf, candidates) for leaf in bins]
        for split, gain in itertools.chain(*best):
            gains[split] = gains.get(split, 0.0) + gain
        tree = split_leaves(tree, [listed[0][0] for listed in best])
    variance = sums.variance(TABLE_SHARE)
    most_cells = (NOISE_SHARE * n_rows) ** 2 / (variance * bins.shape[2])
    table = JointTable.of((), candidates)
    for split in sorted(gains, key=lambda split: -gains[split]):
        larger = JointTable.of((*table.splits, split), candidates)
        grows = len(table.answers) < len(larger.answers) <= max(most_cells, LEAST_CELLS)
        if grows and len(larger.splits) <= MOST_SPLITS:
            table = larger
    return table.best_tree(sums.ask(TABLE_SHARE, "leaf counts", table.tree, candidates), variance)


def _best_splits(bins: Integers, candidates: SplitTable) -> list[tuple[int, float]]:
    """The best split of each of the best features of a leaf, and its gain."""
    gains = size_gains(sides_from_bins(bins, candidates), "gini")
    feature, found = candidates.table.feature, dict[int, tuple[int, float]]()
    for split in np.argsort(-gains, kind="stable").tolist():
        found.setdefault(int(feature[split]), (split, float(gains[split])))
    return list(found.values())[:BEST_FEATURES]


METHODS = {grow.__name__: grow for grow in (delegate, duel, vote, local_rnm, noisy_counts)}
