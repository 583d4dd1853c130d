"""Six ways to grow one tree from several holders' noised answers."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from steadytree.core.candidates import Candidates
from steadytree.core.schema import Schema
from steadytree.learn._private_plan import TRIPLE_CANDIDATES
from steadytree.privacy.drawn import OPEN, Drawn, from_numbers, leaves_of, to_numbers
from steadytree.privacy.questions import sides_from_bins, size_gain
from steadytree.sources.holder import schema_digest
from steadytree.sources.messages import Party, RefusedError, Request
from steadytree.sources.secure_sum import SecureSum

Integers = NDArray[np.int64]
ROWS_SHARE = 0.02
ROUNDING = 1e-9
# epsilon times rows of a holder, from which a third level pays, and a second block
TRIPLE_STRENGTH, BLOCK_STRENGTH = 100.0, 400.0


class Table:
    """The coordinator's side of a session: asks, checks answers, remembers what was spent."""

    def __init__(
        self, parties: Sequence[Party], schema: Schema, epsilon: float, session: str, n_bins: int
    ) -> None:
        self.parties, self.schema = list(parties), schema
        # amounts are rounded when they are divided, and ledgers add them up exactly
        self.epsilon = epsilon * (1 - ROUNDING)
        self.candidates = Candidates.of(schema.space, n_bins)
        self._session, self._n_bins, self._round = session, n_bins, -1
        self._digest = schema_digest(schema)
        self.spent = np.zeros(len(self.parties))
        self._spent_on: list[dict[str, float]] = [{} for _ in self.parties]

    @property
    def n_classes(self) -> int:
        return len(self.schema.classes)

    @property
    def spent_on(self) -> dict[str, float]:
        """Epsilon by purpose of the party that paid most: no row loses more than this."""
        return self._spent_on[int(np.argmax(self.spent))]

    def ask(
        self,
        who: Sequence[int],
        kind: str,
        epsilons: Sequence[float],
        size: int | None = None,
        trees: Sequence[Drawn] = (OPEN,),
        **more: object,
    ) -> list[Integers]:
        """One round: the same question to some parties, each with its own epsilon."""
        self._round += 1
        numbers = tuple(to_numbers(tree) for tree in trees)
        answers = []
        for place, epsilon in zip(who, epsilons, strict=True):
            request = Request(
                self._session,
                self._round,
                kind,
                float(epsilon),
                self._digest,
                self._n_bins,
                numbers,
                **more,  # type: ignore[arg-type]
            )
            answers.append(self.parties[place].answer(request).check(request, size))
            self.spent[place] += epsilon
            own = self._spent_on[place]
            own[kind] = own.get(kind, 0.0) + float(epsilon)
        return answers

    def everyone(self, kind: str, epsilon: float, size: int, trees: Sequence[Drawn]) -> Integers:
        """Sum of all parties' answers at one epsilon."""
        who = range(len(self.parties))
        return np.sum(self.ask(who, kind, [epsilon] * len(who), size, trees), axis=0)

    def count_rows(self) -> float:
        noisy = self.everyone("rows", ROWS_SHARE * self.epsilon, 1, (OPEN,))
        return float(max(noisy[0], 1))

    def block(self, who: int, epsilon: float, tree: Drawn, depth: int, last: bool) -> Drawn:
        """The tree with blocks that one party drew below its leaves."""
        kind = "last block" if last else "block"
        (numbers,) = self.ask([who], kind, [epsilon], None, (tree,), depth=depth)
        grown = from_numbers(numbers.tolist(), len(self.candidates))
        _check_grown(tree, grown, depth)
        return grown

    def label(self, tree: Drawn) -> tuple[Drawn, Integers]:
        """Class counts of the leaves from everyone, for all that is left of each one's epsilon."""
        left = self.epsilon - self.spent
        size = len(leaves_of(tree)) * self.n_classes
        parts = self.ask(range(len(left)), "leaf counts", left.tolist(), size, (tree,))
        return tree, np.sum(parts, axis=0).reshape(-1, self.n_classes)


def _check_grown(before: Drawn, after: Drawn, depth: int) -> None:
    """Refuse an answer that does not only add blocks below the leaves."""
    if before.is_leaf:
        if _depth(after) > depth:
            raise RefusedError("a holder sent a block deeper than asked.")
        return
    if after.question != before.question or after.is_leaf:
        raise RefusedError("a holder changed questions that were fixed.")
    _check_grown(before.yes, after.yes, depth)
    _check_grown(before.no, after.no, depth)


def _depth(tree: Drawn) -> int:
    return 0 if tree.is_leaf else 1 + max(_depth(tree.yes), _depth(tree.no))


def _depths(table: Table) -> tuple[int, ...]:
    strength = table.epsilon * table.count_rows() / len(table.parties)
    if strength >= BLOCK_STRENGTH:
        return (2, 2)
    fits = len(table.candidates) <= TRIPLE_CANDIDATES
    return (3,) if fits and strength >= TRIPLE_STRENGTH else (2,)


def delegate(table: Table, order: Sequence[int]) -> tuple[Drawn, Integers]:
    """Each block is drawn by one holder in turn, who shares no row with the next."""
    depths, k = _depths(table), len(order)
    drawers = [order[level % k] for level in range(len(depths))]
    tree = OPEN
    for level, depth in enumerate(depths):
        who = drawers[level]
        epsilon = (0.7 - ROWS_SHARE) * table.epsilon / drawers.count(who)
        tree = table.block(who, epsilon, tree, depth, level == len(depths) - 1)
    return table.label(tree)


def duel(table: Table, order: Sequence[int]) -> tuple[Drawn, Integers]:
    """Two holders propose each block, and all judge by noisy leaf counts."""
    depths, k = _depths(table), len(order)
    slots = [[order[(2 * b) % k], order[(2 * b + 1) % k]] for b in range(len(depths))]
    turns = [who for slot in slots for who in set(slot)]
    tree, judge = OPEN, 0.2 * table.epsilon / len(depths)
    for level, (slot, depth) in enumerate(zip(slots, depths, strict=True)):
        base, last = (0.5 - ROWS_SHARE) * table.epsilon, level == len(depths) - 1
        proposals = [table.block(w, base / turns.count(w), tree, depth, last) for w in set(slot)]
        tree = _purest(table, proposals, judge)
    return table.label(tree)


def vote(table: Table, order: Sequence[int]) -> tuple[Drawn, Integers]:
    """Every holder proposes a whole tree, and all judge all of them."""
    depths = _depths(table)
    proposals = []
    for who in order:
        tree = OPEN
        epsilon = (0.6 - ROWS_SHARE) * table.epsilon / len(depths)
        for level, depth in enumerate(depths):
            tree = table.block(who, epsilon, tree, depth, level == len(depths) - 1)
        proposals.append(tree)
    counts = _judge(table, proposals, 0.4 * table.epsilon)
    best = max(range(len(counts)), key=lambda place: counts[place].max(axis=1).sum())
    return proposals[best], counts[best]


def _judge(table: Table, trees: Sequence[Drawn], epsilon: float) -> list[Integers]:
    sizes = [len(leaves_of(tree)) * table.n_classes for tree in trees]
    summed = table.everyone("leaf counts", epsilon, sum(sizes), trees)
    parts = np.split(summed, np.cumsum(sizes)[:-1])
    return [part.reshape(-1, table.n_classes) for part in parts]


def _purest(table: Table, trees: Sequence[Drawn], epsilon: float) -> Drawn:
    if len(trees) == 1:
        return trees[0]

    def impurity(noisy: Integers) -> float:
        counts = np.maximum(noisy, 0)
        size = np.maximum(counts.sum(axis=1), 1)
        return float((size - (counts**2).sum(axis=1) / size).sum())

    counts = _judge(table, trees, epsilon)
    return trees[min(range(len(trees)), key=lambda place: impurity(counts[place]))]


# ---- level by level ----
def level_depth(strength: float) -> int:
    """Levels for methods that pay for each: 2 to 5."""
    return int(np.clip(round(np.log2(max(strength, 1.0)) - 8.5), 2, 5))


def noisy_counts(table: Table, order: Sequence[int]) -> tuple[Drawn, Integers]:
    """Everyone counts both sides of every question; a row is counted once a question."""
    every = tuple(range(len(table.candidates)))

    def ask(tree: Drawn, epsilon: float) -> list[tuple[int, ...]]:
        return [every] * len(leaves_of(tree))

    return _by_levels(table, ask, 1.0)


def local_rnm(table: Table, order: Sequence[int]) -> tuple[Drawn, Integers]:
    """Everyone names a question for each leaf by `select`; then only those are counted."""

    def ask(tree: Drawn, epsilon: float) -> list[tuple[int, ...]]:
        size, who = len(leaves_of(tree)), range(len(table.parties))
        named = np.array(table.ask(who, "choice", [epsilon / 2] * len(who), size, (tree,)))
        if named.min() < 0 or named.max() >= len(table.candidates):
            raise RefusedError("a holder named a question that does not exist.")
        return [tuple(sorted(set(column.tolist()))) for column in named.T]

    return _by_levels(table, ask, 0.5)


def _by_levels(
    table: Table, ask: Callable[[Drawn, float], list[tuple[int, ...]]], count_share: float
) -> tuple[Drawn, Integers]:
    depth = level_depth(table.epsilon * table.count_rows())
    epsilon = (0.7 - ROWS_SHARE) * table.epsilon / depth
    tree, who = OPEN, range(len(table.parties))
    for _ in range(depth):
        asked = ask(tree, epsilon)
        size = sum(len(listed) for listed in asked) * 2 * table.n_classes
        each = [epsilon * count_share] * len(who)
        parts = table.ask(who, "side counts", each, size, (tree,), questions=tuple(asked))
        sides = np.maximum(np.sum(parts, axis=0), 0).reshape(-1, 2, table.n_classes)
        best, place = [], 0
        for listed in asked:
            gains = [size_gain(side, "gini") for side in sides[place : place + len(listed)]]
            best.append(listed[int(np.argmax(gains))])
            place += len(listed)
        tree = _split_leaves(tree, iter(best))
    return table.label(tree)


def _split_leaves(tree: Drawn, questions: Iterator[int]) -> Drawn:
    if tree.is_leaf:
        return Drawn(next(questions), OPEN, OPEN)
    yes = _split_leaves(tree.yes, questions)
    return Drawn(tree.question, yes, _split_leaves(tree.no, questions))


def grow_from_sums(
    sums: SecureSum, candidates: Candidates, epsilon: float
) -> tuple[Drawn, Integers]:
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
