"""Session, and six methods to grow one tree from the noised answers of several holders."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import RefusedError
from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.federated.gateway import MOST_NUMBERS
from steadytree.federated.holder import SecureSum, schema_digest
from steadytree.federated.messages import CHOICES, Answer, Request
from steadytree.federated.study import Checkpoint
from steadytree.federated.transport import Holders
from steadytree.privacy import tree_mechanism
from steadytree.privacy.budget import ROWS_SHARE, weighs_triples
from steadytree.privacy.mechanisms import SMALLEST_EPSILON, Integers
from steadytree.privacy.topdown import (
    CountedSplits,
    PrivateSplit,
    TopDown,
    count_variance,
    grow_top_down,
)
from steadytree.privacy.tree_mechanism import (
    DEEPEST,
    OPEN,
    SampledTree,
    leaves_of,
    n_open,
    sides_from_bins,
    size_gains,
    split_leaves,
)

_LOG = logging.getLogger(__name__)
Trees = Mapping[int, SampledTree]  # by holder
Grown = tuple[SampledTree, NDArray[Any]]  # a tree and the noisy class counts of its leaves
ROUNDING = 1e-9
LEAST_LABEL_SHARE = 0.3  # of each holder's epsilon, for the counts of the leaves
# epsilon times rows of a holder, from which a third level is worthwhile, and a second block
TRIPLE_STRENGTH, BLOCK_STRENGTH = 100.0, 400.0


class Session:
    """The coordinator's side of a run: sends requests, checks answers, tracks what was spent.

    A holder that gives no usable answer is dropped, and the run continues with at least `minimum`
    others; otherwise its error ends the run. Holders are referred to by their index.
    """

    def __init__(
        self,
        holders: Holders,
        schema: Schema,
        epsilon: float,
        name: str,
        n_bins: int,
        minimum: int | None = None,
        checkpoint: Checkpoint | None = None,
        limits: TopDown | None = None,
    ) -> None:
        self.holders, self.schema, self.n_classes = holders, schema, len(schema.classes)
        self.limits = limits or TopDown()
        # amounts are rounded when they are divided, and ledgers add them up exactly
        self.epsilon = epsilon * (1 - ROUNDING)
        self.candidates = SplitTable.declared(schema.space, n_bins)
        self._name, self._n_bins, self._round = name, n_bins, -1
        self._digest = schema_digest(schema)
        self._minimum = len(holders.names) if minimum is None else minimum
        self._checkpoint = checkpoint or Checkpoint()
        self.active = list(range(len(holders.names)))
        self.spent = np.zeros(len(holders.names))
        self._spent_on: list[dict[str, float]] = [{} for _ in holders.names]
        self.private = True  # until an answer with seeded noise arrives
        self.numbers = 0  # in all answers

    @property
    def spent_on(self) -> dict[str, float]:
        """Epsilon by purpose of the holder that spent most: an upper bound for every row."""
        return self._spent_on[int(np.argmax(self.spent))]

    def ask(
        self,
        epsilons: Mapping[int, float],
        kind: str,
        size: int | None = None,
        trees: Sequence[SampledTree] | Trees = (OPEN,),
        check: Callable[[int, Integers], object] | None = None,
        **more: object,
    ) -> dict[int, Integers]:
        """One round: requests of one kind to some holders, each with its own epsilon.

        Returns the numbers of those who answered. `trees` are the same for all, or one a holder.
        """
        self._round += 1
        requests = {}
        for index, epsilon in epsilons.items():
            own = (trees[index],) if isinstance(trees, Mapping) else trees
            listed = tuple(tree_mechanism.to_numbers(tree) for tree in own)
            fixed = (float(epsilon), self._digest, self._n_bins, listed)
            request = Request(self._name, self._round, kind, *fixed, **more)  # type: ignore[arg-type]
            requests[self.holders.names[index]] = request
        outcome = self._checkpoint.recall(self._round, requests)
        fresh = outcome is None
        if outcome is None:
            outcome = self.holders.ask(requests)
        found: dict[int, Integers] = {}
        for index, (name, request) in zip(epsilons, requests.items(), strict=True):
            try:
                numbers = _check_answer(outcome[name], request, size)
                if check is not None:
                    check(index, numbers)
            except ValueError as error:
                outcome[name] = error
                self._drop(index, error)
                continue
            found[index] = numbers
            self.numbers += len(numbers)
            self.private &= getattr(outcome[name], "private", False)
            self.spent[index] += request.epsilon
            own_spent = self._spent_on[index]
            own_spent[kind] = own_spent.get(kind, 0.0) + request.epsilon
        if fresh:
            self._checkpoint.note(self._round, requests, outcome)
        return found

    def _drop(self, index: int, error: Exception) -> None:
        self.active.remove(index)
        if len(self.active) < self._minimum:
            raise error
        _LOG.warning("%s: the study goes on with %d holders", error, len(self.active))

    def total(
        self, kind: str, epsilon: float, size: int, *trees: SampledTree, **more: Any
    ) -> Integers:
        """Sum of all active holders' answers at one epsilon."""
        found = self.ask(dict.fromkeys(self.active, epsilon), kind, size, trees, **more)
        return np.sum(list(found.values()), axis=0)

    def count_rows(self) -> float:
        return float(max(self.total("rows", ROWS_SHARE * self.epsilon, 1, OPEN)[0], 1))

    def blocks(
        self, epsilons: Mapping[int, float], trees: Trees, depth: int, last: bool
    ) -> dict[int, SampledTree]:
        """Trees with blocks that holders sampled below the leaves, all in one round."""
        epsilons = {index: amount for index, amount in epsilons.items() if index in self.active}
        if not epsilons:
            return {}

        def read(index: int, numbers: Integers) -> SampledTree:
            grown = tree_mechanism.from_numbers(numbers.tolist(), len(self.candidates))
            _check_grown(trees[index], grown, depth)
            return grown

        kind = "last block" if last else "block"
        found = self.ask(epsilons, kind, None, trees, read, depth=depth)
        return {index: read(index, numbers) for index, numbers in found.items()}

    def block(
        self, who: int, epsilon: float, tree: SampledTree, depth: int, last: bool
    ) -> SampledTree:
        """The tree with blocks of one holder, or, if it is missing, of one that spent least."""
        most = (1 - LEAST_LABEL_SHARE) * self.epsilon
        for index in [who, *np.argsort(self.spent, kind="stable").tolist()]:
            # one that paid for the block of a missing holder has less left for its own
            rest = most - self.spent[index]
            left = epsilon if epsilon * (1 - ROUNDING) <= rest else rest
            if index in self.active and left >= SMALLEST_EPSILON:
                grown = self.blocks({index: left}, {index: tree}, depth, last)
                if grown:
                    return grown[index]
        return tree  # no holder can pay for it

    def label(self, tree: SampledTree) -> Grown:
        """Class counts of the leaves from all holders, for the rest of each one's epsilon."""
        left = self.epsilon - self.spent
        size = len(leaves_of(tree)) * self.n_classes
        epsilons = {index: float(left[index]) for index in self.active}
        parts = self.ask(epsilons, "leaf counts", size, (tree,))
        return tree, np.sum(list(parts.values()), axis=0).reshape(-1, self.n_classes)


def _check_answer(found: Answer | Exception, request: Request, size: int | None) -> Integers:
    if isinstance(found, Exception):
        raise found
    if not isinstance(found, Answer):
        raise RefusedError("a holder sent something other than an Answer.")
    return found.check(request, size)


def _check_grown(before: SampledTree, after: SampledTree, depth: int) -> None:
    """Refuse an answer that does more than add blocks below the leaves."""
    waiting = [(before, after, -1)]  # the last counts levels below a leaf
    while waiting:
        old, new, level = waiting.pop()
        if level < 0 and not old.is_leaf:
            if new.is_leaf or new.split != old.split:
                raise RefusedError("a holder changed splits that were fixed.")
            waiting += ((old.yes, new.yes, -1), (old.no, new.no, -1))
            continue
        level = max(level, 0)
        if not new.is_leaf:
            if level == depth:
                raise RefusedError("a holder sent a block deeper than requested.")
            waiting += ((old, new.yes, level + 1), (old, new.no, level + 1))


# ---- block by block ----
def _depths(session: Session, n_rows: float) -> tuple[int, ...]:
    strength = session.epsilon * n_rows / len(session.active)
    if strength >= BLOCK_STRENGTH:
        return (2, 2)
    fits = weighs_triples(len(session.candidates), session.n_classes)
    return (3,) if fits and strength >= TRIPLE_STRENGTH else (2,)


def delegate(session: Session, order: Sequence[int]) -> Grown:
    """Each block is sampled by one holder in turn; holders share no row."""
    depths, k = _depths(session, session.count_rows()), len(order)
    samplers = [order[level % k] for level in range(len(depths))]
    tree = OPEN
    for level, depth in enumerate(depths):
        who = samplers[level]
        epsilon = (0.7 - ROWS_SHARE) * session.epsilon / samplers.count(who)
        tree = session.block(who, epsilon, tree, depth, level == len(depths) - 1)
    return session.label(tree)


def duel(session: Session, order: Sequence[int]) -> Grown:
    """Two holders propose each block, and all evaluate them by noisy leaf counts.

    Holders with many and mixed rows propose, by their noisy class counts: holders that differ may
    have almost no row of a class. For the same reason all blocks are sampled for pure leaves.
    """
    each = dict.fromkeys(session.active, ROWS_SHARE * session.epsilon)  # the cost of counting rows
    counts = session.ask(each, "leaf counts", session.n_classes)
    depths = _depths(session, float(max(np.sum(list(counts.values())), 1)))
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
            impurities = [_impurity(noisy) for noisy in _evaluate(session, trees, evaluation)]
            trees = [trees[int(np.argmin(impurities))]]
        tree = trees[0]
    return session.label(tree)


def vote(session: Session, order: Sequence[int]) -> Grown:
    """Every holder proposes a whole tree, and all holders evaluate all trees."""
    depths = _depths(session, session.count_rows())
    epsilon = (0.6 - ROWS_SHARE) * session.epsilon / len(depths)
    grown = dict.fromkeys(order, OPEN)
    for level, depth in enumerate(depths):
        last = level == len(depths) - 1
        grown = session.blocks(dict.fromkeys(grown, epsilon), grown, depth, last)
    proposals = list(grown.values()) or [OPEN]
    counts = _evaluate(session, proposals, 0.4 * session.epsilon)
    best = max(range(len(counts)), key=lambda k: counts[k].max(axis=1).sum())
    return proposals[best], counts[best]


def _evaluate(session: Session, trees: Sequence[SampledTree], epsilon: float) -> list[Integers]:
    sizes = [len(leaves_of(tree)) * session.n_classes for tree in trees]
    summed = session.total("leaf counts", epsilon, sum(sizes), *trees)
    parts = np.split(summed, np.cumsum(sizes)[:-1])
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
def level_depth(strength: float) -> int:
    """Levels of a tree that is paid for level by level: 2 to 5."""
    return int(np.clip(round(np.log2(max(strength, 1.0)) - 8.5), 2, 5))


def grow_from_sums(sums: SecureSum, candidates: SplitTable, epsilon: float) -> Grown:
    """Level by level from histograms of all features, summed and noised once."""
    n_rows = float(max(sums.ask(ROWS_SHARE, "rows", OPEN, candidates)[0], 1))
    depth = level_depth(epsilon * n_rows)
    share, tree = (0.7 - ROWS_SHARE) / depth, OPEN
    for _ in range(depth):
        bins = sums.ask(share, "bins", tree, candidates)
        gains = (size_gains(sides_from_bins(leaf, candidates), "gini") for leaf in bins)
        tree = split_leaves(tree, [int(np.argmax(each)) for each in gains])
    return tree, sums.ask(0.3, "leaf counts", tree, candidates)


METHODS = {grow.__name__: grow for grow in (delegate, duel, vote, local_rnm, noisy_counts)}
