"""Six ways to grow one tree from several holders' noised answers."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import RefusedError
from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.federated.checkpoint import Checkpoint
from steadytree.federated.holder import schema_digest
from steadytree.federated.messages import Answer, Request
from steadytree.federated.secure_sum import SecureSum
from steadytree.federated.transport import Holders
from steadytree.privacy.budget import weighs_triples
from steadytree.privacy.mechanisms import SMALLEST_EPSILON
from steadytree.privacy.sampled_tree import OPEN, SampledTree, from_numbers, leaves_of, to_numbers
from steadytree.privacy.tree_mechanism import sides_from_bins, size_gain

_LOG = logging.getLogger(__name__)
Integers = NDArray[np.int64]
ROWS_SHARE = 0.02
ROUNDING = 1e-9
LEAST_LABEL_SHARE = 0.3  # of what each party pays, for the counts of the leaves
# epsilon times rows of a holder, from which a third level pays, and a second block
TRIPLE_STRENGTH, BLOCK_STRENGTH = 100.0, 400.0


class Table:
    """The coordinator's side of a session: asks, checks answers, remembers what was spent.

    A party that gives no usable answer leaves the table, and the others go on while they are
    at least `minimum`; otherwise its error ends the session.
    """

    def __init__(
        self,
        parties: Holders,
        schema: Schema,
        epsilon: float,
        session: str,
        n_bins: int,
        minimum: int | None = None,
        journal: Checkpoint | None = None,
    ) -> None:
        self.parties, self.schema = parties, schema
        # amounts are rounded when they are divided, and ledgers add them up exactly
        self.epsilon = epsilon * (1 - ROUNDING)
        self.candidates = SplitTable.declared(schema.space, n_bins)
        self._session, self._n_bins, self._round = session, n_bins, -1
        self._digest = schema_digest(schema)
        self._minimum = len(parties.names) if minimum is None else minimum
        self._journal = journal or Checkpoint()
        self.present = list(range(len(parties.names)))
        self.spent = np.zeros(len(parties.names))
        self._spent_on: list[dict[str, float]] = [{} for _ in parties.names]
        self.private = True  # until an answer came whose noise does not protect

    @property
    def n_classes(self) -> int:
        return len(self.schema.classes)

    @property
    def spent_on(self) -> dict[str, float]:
        """Epsilon by purpose of the party that paid most: no row loses more than this."""
        return self._spent_on[int(np.argmax(self.spent))]

    def ask(
        self,
        epsilons: Mapping[int, float],
        kind: str,
        size: int | None = None,
        trees: Sequence[SampledTree] | Mapping[int, SampledTree] = (OPEN,),
        check: Callable[[int, Integers], object] | None = None,
        **more: object,
    ) -> dict[int, Integers]:
        """One round: the same kind of question to some parties, each with its own epsilon.

        Returns the numbers of those who answered, by their place. `trees` are the same for all, or
        one for each place.
        """
        self._round += 1
        requests = {}
        for place, epsilon in epsilons.items():
            asked = (trees[place],) if isinstance(trees, Mapping) else trees
            requests[self.parties.names[place]] = Request(
                self._session,
                self._round,
                kind,
                float(epsilon),
                self._digest,
                self._n_bins,
                tuple(to_numbers(tree) for tree in asked),
                **more,  # type: ignore[arg-type]
            )
        outcome = self._journal.recall(self._round, requests)
        fresh = outcome is None
        if outcome is None:
            outcome = self.parties.ask(requests)
        found: dict[int, Integers] = {}
        for place, (name, request) in zip(epsilons, requests.items(), strict=True):
            try:
                numbers = _numbers_of(outcome[name], request, size)
                if check is not None:
                    check(place, numbers)
            except ValueError as error:
                outcome[name] = error
                self._dismiss(place, error)
                continue
            found[place] = numbers
            self.private &= getattr(outcome[name], "private", False)
            self._book(place, kind, request.epsilon)
        if fresh:
            self._journal.note(self._round, requests, outcome)
        return found

    def _dismiss(self, place: int, error: Exception) -> None:
        self.present.remove(place)
        if len(self.present) < self._minimum:
            raise error
        _LOG.warning("%s: the study goes on with %d holders", error, len(self.present))

    def _book(self, place: int, kind: str, epsilon: float) -> None:
        self.spent[place] += epsilon
        own = self._spent_on[place]
        own[kind] = own.get(kind, 0.0) + epsilon

    def everyone(
        self, kind: str, epsilon: float, size: int, trees: Sequence[SampledTree]
    ) -> Integers:
        """Sum of all present parties' answers at one epsilon."""
        found = self.ask(dict.fromkeys(self.present, epsilon), kind, size, trees)
        return np.sum(list(found.values()), axis=0)

    def count_rows(self) -> float:
        noisy = self.everyone("rows", ROWS_SHARE * self.epsilon, 1, (OPEN,))
        return float(max(noisy[0], 1))

    def class_counts(self) -> dict[int, Integers]:
        """Each present party's noisy class counts, for what the number of rows costs."""
        each = dict.fromkeys(self.present, ROWS_SHARE * self.epsilon)
        return self.ask(each, "leaf counts", self.n_classes, (OPEN,))

    def blocks(
        self,
        epsilons: Mapping[int, float],
        trees: Mapping[int, SampledTree],
        depth: int,
        last: bool,
    ) -> dict[int, SampledTree]:
        """Trees with blocks that parties drew below the leaves, all in one round."""
        epsilons = {place: amount for place, amount in epsilons.items() if place in self.present}
        if not epsilons:
            return {}

        def read(place: int, numbers: Integers) -> SampledTree:
            grown = from_numbers(numbers.tolist(), len(self.candidates))
            _check_grown(trees[place], grown, depth)
            return grown

        kind = "last block" if last else "block"
        found = self.ask(epsilons, kind, None, trees, read, depth=depth)
        return {place: read(place, numbers) for place, numbers in found.items()}

    def block(
        self, who: int, epsilon: float, tree: SampledTree, depth: int, last: bool
    ) -> SampledTree:
        """The tree with blocks of one party; where it is gone, of one that has paid least."""
        most = (1 - LEAST_LABEL_SHARE) * self.epsilon
        for place in [who, *np.argsort(self.spent, kind="stable").tolist()]:
            left = epsilon if place == who else min(epsilon, most - self.spent[place])
            if place in self.present and left >= SMALLEST_EPSILON:
                grown = self.blocks({place: left}, {place: tree}, depth, last)
                if grown:
                    return grown[place]
        return tree  # nobody is left who can pay for it

    def label(self, tree: SampledTree) -> tuple[SampledTree, Integers]:
        """Class counts of the leaves from everyone, for all that is left of each one's epsilon."""
        left = self.epsilon - self.spent
        size = len(leaves_of(tree)) * self.n_classes
        asked = {place: float(left[place]) for place in self.present}
        parts = self.ask(asked, "leaf counts", size, (tree,))
        return tree, np.sum(list(parts.values()), axis=0).reshape(-1, self.n_classes)


def _numbers_of(found: Answer | Exception, request: Request, size: int | None) -> Integers:
    if isinstance(found, Exception):
        raise found
    if not isinstance(found, Answer):
        raise RefusedError("a holder sent something that is no Answer.")
    return found.check(request, size)


def _check_grown(before: SampledTree, after: SampledTree, depth: int) -> None:
    """Refuse an answer that does not only add blocks below the leaves."""
    if before.is_leaf:
        if _depth(after) > depth:
            raise RefusedError("a holder sent a block deeper than asked.")
        return
    if after.question != before.question or after.is_leaf:
        raise RefusedError("a holder changed questions that were fixed.")
    _check_grown(before.yes, after.yes, depth)
    _check_grown(before.no, after.no, depth)


def _depth(tree: SampledTree) -> int:
    return 0 if tree.is_leaf else 1 + max(_depth(tree.yes), _depth(tree.no))


def _depths(table: Table) -> tuple[int, ...]:
    return _depths_for(table, table.count_rows())


def _depths_for(table: Table, n_rows: float) -> tuple[int, ...]:
    strength = table.epsilon * n_rows / len(table.present)
    if strength >= BLOCK_STRENGTH:
        return (2, 2)
    fits = weighs_triples(len(table.candidates), table.n_classes)
    return (3,) if fits and strength >= TRIPLE_STRENGTH else (2,)


def delegate(table: Table, order: Sequence[int]) -> tuple[SampledTree, Integers]:
    """Each block is drawn by one holder in turn, who shares no row with the next."""
    depths, k = _depths(table), len(order)
    drawers = [order[level % k] for level in range(len(depths))]
    tree = OPEN
    for level, depth in enumerate(depths):
        who = drawers[level]
        epsilon = (0.7 - ROWS_SHARE) * table.epsilon / drawers.count(who)
        tree = table.block(who, epsilon, tree, depth, level == len(depths) - 1)
    return table.label(tree)


def duel(table: Table, order: Sequence[int]) -> tuple[SampledTree, Integers]:
    """Two holders propose each block, and all judge by noisy leaf counts.

    Those propose whose rows are many and mixed, by their noisy class counts: unlike holders may
    have next to none of a class. For the same reason all blocks are drawn for pure leaves.
    """
    counts = table.class_counts()
    depths = _depths_for(table, float(max(np.sum(list(counts.values())), 1)))
    worth = {who: _impurity(counts[who][None]) if who in counts else 0.0 for who in order}
    turns, slots = dict.fromkeys(order, 0), []
    for _ in depths:
        slots.append(sorted(order, key=lambda who: -worth[who] / (1 + turns[who]))[:2])
        for who in slots[-1]:
            turns[who] += 1
    tree, judge = OPEN, 0.2 * table.epsilon / len(depths)
    for slot, depth in zip(slots, depths, strict=True):
        base = (0.5 - ROWS_SHARE) * table.epsilon
        epsilons = {who: base / turns[who] for who in sorted(slot)}
        grown = table.blocks(epsilons, dict.fromkeys(epsilons, tree), depth, last=False)
        if grown:
            tree = _purest(table, list(grown.values()), judge)
    return table.label(tree)


def vote(table: Table, order: Sequence[int]) -> tuple[SampledTree, Integers]:
    """Every holder proposes a whole tree, and all judge all of them."""
    depths = _depths(table)
    epsilon = (0.6 - ROWS_SHARE) * table.epsilon / len(depths)
    grown = dict.fromkeys(order, OPEN)
    for level, depth in enumerate(depths):
        last = level == len(depths) - 1
        grown = table.blocks(dict.fromkeys(grown, epsilon), grown, depth, last)
    proposals = list(grown.values()) or [OPEN]
    counts = _judge(table, proposals, 0.4 * table.epsilon)
    best = max(range(len(counts)), key=lambda place: counts[place].max(axis=1).sum())
    return proposals[best], counts[best]


def _judge(table: Table, trees: Sequence[SampledTree], epsilon: float) -> list[Integers]:
    sizes = [len(leaves_of(tree)) * table.n_classes for tree in trees]
    summed = table.everyone("leaf counts", epsilon, sum(sizes), trees)
    parts = np.split(summed, np.cumsum(sizes)[:-1])
    return [part.reshape(-1, table.n_classes) for part in parts]


def _purest(table: Table, trees: Sequence[SampledTree], epsilon: float) -> SampledTree:
    if len(trees) == 1:
        return trees[0]

    counts = _judge(table, trees, epsilon)
    return trees[min(range(len(trees)), key=lambda place: _impurity(counts[place]))]


def _impurity(noisy: Integers) -> float:
    """Rows times Gini impurity, summed over leaves (leaves, classes)."""
    counts = np.maximum(noisy, 0)
    size = np.maximum(counts.sum(axis=1), 1)
    return float((size - (counts**2).sum(axis=1) / size).sum())


# ---- level by level ----
def level_depth(strength: float) -> int:
    """Levels for methods that pay for each: 2 to 5."""
    return int(np.clip(round(np.log2(max(strength, 1.0)) - 8.5), 2, 5))


def noisy_counts(table: Table, order: Sequence[int]) -> tuple[SampledTree, Integers]:
    """Everyone counts both sides of every question; a row is counted once a question."""
    every = tuple(range(len(table.candidates)))

    def ask(tree: SampledTree, epsilon: float) -> list[tuple[int, ...]]:
        return [every] * len(leaves_of(tree))

    return _by_levels(table, ask, 1.0)


def local_rnm(table: Table, order: Sequence[int]) -> tuple[SampledTree, Integers]:
    """Everyone names a question for each leaf by `select`; then only those are counted."""

    def ask(tree: SampledTree, epsilon: float) -> list[tuple[int, ...]]:
        def check(_: int, named: Integers) -> None:
            if named.min() < 0 or named.max() >= len(table.candidates):
                raise RefusedError("a holder named a question that does not exist.")

        each = dict.fromkeys(table.present, epsilon / 2)
        found = table.ask(each, "choice", len(leaves_of(tree)), (tree,), check)
        named = np.array(list(found.values()))
        return [tuple(sorted(set(column.tolist()))) for column in named.T]

    return _by_levels(table, ask, 0.5)


def _by_levels(
    table: Table, ask: Callable[[SampledTree, float], list[tuple[int, ...]]], count_share: float
) -> tuple[SampledTree, Integers]:
    depth = level_depth(table.epsilon * table.count_rows())
    epsilon = (0.7 - ROWS_SHARE) * table.epsilon / depth
    tree = OPEN
    for _ in range(depth):
        asked = ask(tree, epsilon)
        size = sum(len(listed) for listed in asked) * 2 * table.n_classes
        each = dict.fromkeys(table.present, epsilon * count_share)
        parts = table.ask(each, "side counts", size, (tree,), questions=tuple(asked))
        sides = np.maximum(np.sum(list(parts.values()), axis=0), 0).reshape(-1, 2, table.n_classes)
        best, place = [], 0
        for listed in asked:
            gains = [size_gain(side, "gini") for side in sides[place : place + len(listed)]]
            best.append(listed[int(np.argmax(gains))])
            place += len(listed)
        tree = _split_leaves(tree, iter(best))
    return table.label(tree)


def _split_leaves(tree: SampledTree, questions: Iterator[int]) -> SampledTree:
    if tree.is_leaf:
        return SampledTree(next(questions), OPEN, OPEN)
    yes = _split_leaves(tree.yes, questions)
    return SampledTree(tree.question, yes, _split_leaves(tree.no, questions))


def grow_from_sums(
    sums: SecureSum, candidates: SplitTable, epsilon: float
) -> tuple[SampledTree, Integers]:
    """Level by level from histograms of all features, summed and noised once."""
    n_rows = float(max(sums.ask(ROWS_SHARE, "rows", OPEN, candidates)[0], 1))
    depth = level_depth(epsilon * n_rows)
    share, tree = (0.7 - ROWS_SHARE) / depth, OPEN
    for _ in range(depth):
        bins = sums.ask(share, "bins", tree, candidates)
        best = []
        for leaf in bins:
            gains = [size_gain(side, "gini") for side in sides_from_bins(leaf, candidates)]
            best.append(int(np.argmax(gains)))
        tree = _split_leaves(tree, iter(best))
    return tree, sums.ask(0.3, "leaf counts", tree, candidates)


METHODS = {
    "delegate": delegate,
    "duel": duel,
    "vote": vote,
    "local_rnm": local_rnm,
    "noisy_counts": noisy_counts,
}
