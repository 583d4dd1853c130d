"""Session: the coordinator's side of a run, from the first request to the last answer."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import RefusedError
from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.federated.checkpoint import Checkpoint
from steadytree.federated.holder import schema_digest
from steadytree.federated.messages import SUM, Answer, Request
from steadytree.federated.transport import Holders
from steadytree.privacy.budget import ROWS_SHARE
from steadytree.privacy.mechanisms import SMALLEST_EPSILON, Integers
from steadytree.privacy.sampled_tree import OPEN, SampledTree, from_numbers, leaves_of, to_numbers
from steadytree.privacy.topdown import TopDown

_LOG = logging.getLogger(__name__)
Trees = Mapping[int, SampledTree]  # by holder
Weights = Mapping[int, tuple[int, ...]]  # of the classes, by holder
Grown = tuple[SampledTree, NDArray[Any]]  # a tree and the noisy class counts of its leaves
ROUNDING = 1e-9
LEAST_LABEL_SHARE = 0.3  # of each holder's epsilon, for the counts of the leaves


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
        self.name, self.n_bins, self._round = name, n_bins, -1
        self.digest = schema_digest(schema)
        self.minimum = len(holders.names) if minimum is None else minimum
        self._checkpoint = checkpoint or Checkpoint()
        self.active = list(range(len(holders.names)))
        self.spent = np.zeros(len(holders.names))
        self._spent_on: list[dict[str, float]] = [{} for _ in holders.names]
        self.private = True  # until an answer with seeded noise arrives
        self.numbers = 0  # in all answers

    @property
    def next_round(self) -> int:
        return self._round + 1

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
        own: Mapping[int, Mapping[str, Any]] | None = None,
        **more: Any,
    ) -> dict[int, Integers]:
        """One round: requests of one kind to some holders, each with its own epsilon.

        Returns the numbers of those who answered. `trees` are the same for all, or one a holder;
        `own` are other fields of single holders' requests.
        """
        self._round += 1
        requests = {}
        for index, epsilon in epsilons.items():
            about = (trees[index],) if isinstance(trees, Mapping) else trees
            listed = tuple(to_numbers(tree) for tree in about)
            fixed = (float(epsilon), self.digest, self.n_bins, listed)
            fields = {**more, **own[index]} if own else more
            request = Request(self.name, self._round, kind, *fixed, **fields)
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
            if kind != SUM:  # a step names the cost of the study
                self.charge(index, kind, request.epsilon)
        if fresh:
            self._checkpoint.note(self._round, requests, outcome)
        return found

    def charge(self, index: int, kind: str, epsilon: float) -> None:
        """Note what a holder spent."""
        self.spent[index] += epsilon
        spent_on = self._spent_on[index]
        spent_on[kind] = spent_on.get(kind, 0.0) + epsilon

    def _drop(self, index: int, error: Exception) -> None:
        self.active.remove(index)
        if len(self.active) < self.minimum:
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
        self,
        epsilons: Mapping[int, float],
        trees: Trees,
        depth: int,
        last: bool,
        weights: Weights | None = None,
    ) -> dict[int, SampledTree]:
        """Trees with blocks that holders sampled below the leaves, all in one round."""
        epsilons = {index: amount for index, amount in epsilons.items() if index in self.active}
        if not epsilons:
            return {}

        def read(index: int, numbers: Integers) -> SampledTree:
            grown = from_numbers(numbers.tolist(), len(self.candidates))
            _check_grown(trees[index], grown, depth)
            return grown

        kind = "last block" if last else "block"
        own = {index: {"weights": weights[index]} for index in epsilons} if weights else None
        found = self.ask(epsilons, kind, None, trees, read, own, depth=depth)
        return {index: read(index, numbers) for index, numbers in found.items()}

    def block(
        self,
        who: int,
        epsilon: float,
        tree: SampledTree,
        depth: int,
        last: bool,
        weights: Weights,
    ) -> SampledTree:
        """The tree with blocks of one holder, or, if it is missing, of one that spent least."""
        most = (1 - LEAST_LABEL_SHARE) * self.epsilon
        for index in [who, *np.argsort(self.spent, kind="stable").tolist()]:
            # one that paid for the block of a missing holder has less left for its own
            rest = most - self.spent[index]
            left = epsilon if epsilon * (1 - ROUNDING) <= rest else rest
            if index in self.active and left >= SMALLEST_EPSILON:
                grown = self.blocks({index: left}, {index: tree}, depth, last, weights)
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
