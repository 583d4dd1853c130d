"""Holder: private rows with their own schema, ledger and noise; SecureSum: sums over holders."""

import hashlib
import logging
from typing import Any

import numpy as np
from msgspec import UNSET

from steadytree._base.exceptions import CancelledError, RefusedError, StaleError, TooMuchWorkError
from steadytree.data.schema import Schema, check_schema
from steadytree.data.splits import SplitTable
from steadytree.federated.masking import SumSide
from steadytree.federated.messages import (
    BLOCKS,
    CHOICES,
    LARGEST,
    NAME,
    WHOLE,
    Answer,
    Request,
    SumStep,
)
from steadytree.privacy import budget, mechanisms, tree_mechanism
from steadytree.privacy.accounting import share_scale
from steadytree.privacy.budget import logged_refusal
from steadytree.privacy.growers import RowsInMemory, bound_rows
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.ledger_lines import ZERO, Entry, decimal_of
from steadytree.privacy.mechanisms import Integers, SeededNoise, release_counts, release_share
from steadytree.privacy.padding import Price, capacity_for
from steadytree.privacy.sampled_tree import SampledTree, from_numbers, leaves_of, n_open, to_numbers
from steadytree.privacy.tree_mechanism import (
    MOST_ROWS,
    BlockRows,
    leaf_counts,
    open_rows,
    rows_by_leaf,
)

_LOG = logging.getLogger(__name__)
MOST_WORK = 5 * 10**10  # steps of one request: 10 to 40 seconds
MOST_BITS = 2**32  # rows times candidate splits of a block: 0.5 GB
TAIL = 64  # scales; noise exceeds so many with a probability of about exp(-64)
ROUNDING = 1e-9  # of a divided budget
MOST_SUMMED = 256  # holders of a secure sum, whose numbers must not wrap around
Admitted = tuple[SplitTable, list[SampledTree]]


class Holder:
    """One data holder: answers requests with noised numbers and records their cost.

    Each answer alone is epsilon-differentially private for the request's epsilon, for adding or
    removing one row of this holder; the ledger adds them up. The holder trusts nobody: it checks
    the schema, refuses repeated and stale rounds, and spends before it answers.

    Parameters
    ----------
    name : str
        Letters, digits, ``_.-``.
    schema : Schema, or path of a schema file
    X, y : the rows, encoded by the schema
    ledger : Ledger
        Of these rows and of no others.
    most_rows : int, optional
        A public number that the rows do not exceed: work and time follow from it, not from the
        rows. By default the next power of two from 1,024 on, which time then reveals.
    persons, rows_per_person : array-like and int, optional
        Protect persons: what a request costs covers the first so many rows of each, and no more
        are kept.
    testing_seed : int, optional
        FOR TESTS ONLY: seeded noise, which is not private.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> schema = Schema(bounds={"age": (0, 100)}, classes=["no", "yes"])
    >>> ledger = Ledger(f"{folder.name}/north.ledger", budget=1.0)
    >>> X, y = [[20], [70]] * 50, ["no", "yes"] * 50
    >>> north = Holder("north", schema, X, y, ledger, testing_seed=0)
    >>> answer = north.answer(Request("demo", 0, "rows", 0.5, schema_digest(schema)))
    >>> answer.numbers.tolist(), ledger.left
    ([102], 0.5)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        name: str,
        schema: Any,
        X: Any,
        y: Any,
        ledger: Ledger,
        *,
        most_rows: int | None = None,
        testing_seed: int | None = None,
        persons: Any = None,
        rows_per_person: int | None = None,
    ) -> None:
        with logged_refusal(_LOG, "refused to hold rows"):
            if not NAME.fullmatch(str(name)):
                raise ValueError("name must be 1 to 64 letters, digits or any of _.-")
            if not isinstance(ledger, Ledger):
                raise TypeError(f"ledger must be a Ledger, got {type(ledger).__name__}.")
            self.name, self.ledger = str(name), ledger
            self.schema: Schema = check_schema(schema)
            X, y = bound_rows(X, y, persons, rows_per_person)
            self.rows_per_person = rows_per_person
            self._rows = RowsInMemory(self.schema, X, y)
            if self._rows.n_read > MOST_ROWS:
                message = f"a holder may have at most {MOST_ROWS:,} rows: use a sample of them."
                raise ValueError(message)
            self.capacity = capacity_for(self._rows.n_read, most_rows)
        self._padded: dict[int, BlockRows] = {}  # by bins, the latest
        self._cancelled = False
        self._noise, self._testing_seed = mechanisms.make_noise(testing_seed), testing_seed
        self._digest = schema_digest(self.schema)
        self._last_round: dict[str, int] = {}
        self._joined: set[str] = set()  # sessions of secure sums that were paid for
        self.sums = SumSide(self.name)  # give it keys to take part in secure sums over a network

    @property
    def private(self) -> bool:
        """Whether answers are protected: False with a testing seed."""
        return self._noise.private

    def answer(self, request: Request) -> Answer:
        """Answer one request, or refuse it; every refusal is logged."""
        with logged_refusal(_LOG, f"holder {self.name} refused round"):
            admitted = self._check(request)
            self.pay(request)
        return self.draft(request, admitted)

    def admit(self, request: Request) -> Admitted:
        """Refuse what `answer` refuses, from public numbers alone; the result is for `draft`."""
        admitted = self._check(request)
        entry = self.entry_of(request)
        self.ledger.check(entry.epsilon, entry.what, request=entry.request, rho=entry.rho)
        return admitted

    def price(self, request: Request, admitted: Admitted) -> int:
        """Steps of work of a request, from public numbers alone."""
        candidates, trees = admitted
        sizes = (len(candidates.space), len(candidates), candidates.n_bins)
        price = Price(self.capacity, *sizes, len(self.schema.classes))
        used = trees if request.kind == "leaf counts" else trees[:1]
        n_leaves = sum(len(leaves_of(tree)) for tree in used)
        walking = (n_leaves - len(used)) * price.masking  # a split a node
        kind = request.kind
        if request.sum is not UNSET:  # the steps before and after the vector read no row
            kind = request.sum.what if request.sum.step == "vector" else "rows"
        if kind == "rows":
            return 0
        if kind == "bins":
            return walking + n_leaves * price.counting
        if kind in BLOCKS:
            return walking + n_leaves * price.block(request.depth)
        if kind == "leaf counts":
            return walking + n_leaves * price.masking
        return walking + n_open(trees[0]) * price.counting

    @property
    def done(self) -> int:
        """Steps of work so far, as counted while they were done."""
        return sum(block.padding.done for block in self._padded.values() if block.padding)

    def cancel(self) -> None:
        """Give up what is being computed, and all that would be computed later."""
        self._cancelled = True
        for block in self._padded.values():
            if block.padding is not None:
                block.padding.cancelled = True

    def draft(self, request: Request, admitted: Admitted) -> Answer:
        """An answer that must not be released before `pay` has returned.

        A gateway stores the draft first: then neither a crash before the payment nor one after it
        loses an answer or a budget. Rows are read here: the outcome, even an error, has to be
        paid for.
        """
        if isinstance(self._noise, SeededNoise):
            # seeded by round, so that a test's holder gives the same answers after a restart
            self._noise = SeededNoise([self._testing_seed or 0, request.round])
        numbers = self._numbers(request, *admitted)
        names = (self.name, request.session, request.round, request.kind)
        return Answer(*names, numbers, self._noise.private)

    def pay(self, request: Request) -> None:
        """Record the cost of a request in the ledger."""
        entry = self.entry_of(request)
        if request.sum is UNSET or request.sum.step == "vector":  # other steps read no row
            named = (entry.what, entry.mechanism)
            self.ledger.spend(entry.epsilon, *named, request=entry.request, rho=entry.rho)
        self._last_round[request.session] = request.round

    def entry_of(self, request: Request) -> Entry:
        """What a request costs: its epsilon, or the rho of a secure sum.

        The first steps of a sum are checked for its cost, the last one comes after it was paid.
        """
        amounts = [decimal_of(request.epsilon, "epsilon"), ZERO]
        if request.sum is not UNSET:
            done = request.sum.step == "unmask"
            amounts = [ZERO, ZERO if done else decimal_of(request.sum.rho, "rho")]
        mechanism = self._mechanism(request.session)
        texts = (request.kind, mechanism, "", "", request.name)
        return Entry(amounts[0], ZERO, *texts, rho=amounts[1])

    def check_session(self, schema: str, epsilon: float, delta: float = 0.0) -> None:
        """Refuse a whole run that would be refused half-way; nothing is spent."""
        with logged_refusal(_LOG, f"holder {self.name} refused a run"):
            if schema != self._digest:
                raise RefusedError("the run is for another schema.")
            self.ledger.check(epsilon, "one tree", delta=delta)

    def join_sum(self, session: str, schema: str, epsilon: float, delta: float) -> None:
        """Pay for a whole run under secure aggregation, before any sum is formed."""
        with logged_refusal(_LOG, f"holder {self.name} refused sums"):
            if schema != self._digest:
                raise RefusedError("the sums were requested for another schema.")
            mechanism, request = self._mechanism(session), f"{session}:sums"
            self.ledger.spend(epsilon, "secure sums", mechanism, delta=delta, request=request)
        self._joined.add(session)

    def _mechanism(self, session: str) -> str:
        """The run in the ledger's words, and whom it protects if that is persons."""
        most = self.rows_per_person
        name = session if most is None else f"{session}, {budget.relation(most)}"
        return mechanisms.ledger_mark(self._noise, name)

    def _exact_counts(
        self, session: str, tree: SampledTree, candidates: SplitTable, kind: str
    ) -> Integers:
        """Counts WITHOUT noise; for the in-process `SecureSum` only, which noises their sums."""
        if session not in self._joined:
            raise RefusedError("exact counts are for a secure sum that was joined and paid for.")
        return self._summed(tree, self._rows.block(candidates), candidates, kind)

    def _summed(
        self, tree: SampledTree, block: BlockRows, candidates: SplitTable, kind: str
    ) -> Integers:
        """Counts WITHOUT noise, to be noised and summed."""
        if kind == "leaf counts":
            return leaf_counts(tree, block, candidates)
        if kind == "rows":
            return np.array([self._rows.n_kept])
        parts = rows_by_leaf(tree, block, candidates)
        return np.array([tree_mechanism.bin_counts(part, candidates) for part in parts])

    def _check(self, request: Request) -> Admitted:
        if not isinstance(request, Request):
            raise RefusedError("a holder answers a Request and nothing else.")
        if request.schema != self._digest:
            raise RefusedError("the request was made for another schema.")
        if request.round <= self._last_round.get(request.session, -1):
            raise StaleError(f"round {request.round} is stale: a later one was answered.")
        candidates = SplitTable.declared(self.schema.space, request.n_bins)
        try:
            n_splits = len(candidates)
            closed = request.kind in CHOICES or request.kind == "side counts"
            listed = request.trees
            trees = [from_numbers(tree, n_splits, closed) for tree in listed]
            if not all(map(n_open, trees)):
                raise RefusedError("all leaves of a tree are closed: nothing is asked.")
            if request.kind in BLOCKS and request.depth == 0:
                raise RefusedError("a block needs a depth of 1 to 3.")
            if request.weights is not UNSET and len(request.weights) != len(self.schema.classes):
                raise RefusedError("weights must be one for each class.")
            if request.kind == "side counts":
                _check_splits(request, trees, n_splits)
            if request.sum is not UNSET:
                self.sums.check(request)
            how = (candidates, len(self.schema.classes), self.rows_per_person or 1)
            _check_size(request, trees, *how)
        except RefusedError:
            raise
        except ValueError as error:
            raise RefusedError(str(error)) from None
        price = self.price(request, (candidates, trees))
        packed = len(candidates) * self.capacity if request.kind in BLOCKS else 0
        if price > MOST_WORK or packed > MOST_BITS:
            raise TooMuchWorkError(
                f"a request would take {price:,} steps of work, and a holder does at most "
                f"{MOST_WORK:,}: ask about fewer leaves, or use fewer bins or levels."
            )
        return candidates, trees

    def _block(self, candidates: SplitTable, n_bins: int) -> BlockRows:
        """The padded rows in these bins, made once."""
        if self._cancelled:
            raise CancelledError
        if n_bins not in self._padded:
            self._padded = {n_bins: self._rows.padded(candidates, self.capacity)}
        return self._padded[n_bins]

    def _numbers(
        self, request: Request, candidates: SplitTable, trees: list[SampledTree]
    ) -> Integers:
        most = self.rows_per_person or 1
        if request.sum is not UNSET:
            step, tree = request.sum, trees[0]
            # bins count a row once a feature, leaves and rows count it once
            times = len(candidates.space) if step.what == "bins" else 1
            squared = times * most**2  # the l2 sensitivity of k rows is k times that of one

            def vector() -> Integers:
                block = self._block(candidates, request.n_bins)
                exact = self._summed(tree, block, candidates, step.what).ravel()
                return release_share(exact, step.rho, self._noise, squared, step.honest)

            return self.sums.take(request, self.private, vector)
        epsilon, noise = request.epsilon / most, self._noise  # a row's part of its person's
        if request.kind == "rows":
            return release_counts(np.array([self._rows.n_kept]), epsilon, noise)
        block = self._block(candidates, request.n_bins)
        if request.kind in BLOCKS:
            # labels are sampled with a last block and dropped: all holders count its leaves
            utility = "pure" if request.kind == "block" else "correct"
            weights = [] if request.weights is UNSET else [w / WHOLE for w in request.weights]
            how = (candidates, epsilon, request.depth, utility, noise, weights)
            grown = tree_mechanism.extend(trees[0], block, *how)
            return np.array(to_numbers(grown))
        if request.kind == "leaf counts":
            exact = [leaf_counts(tree, block, candidates).ravel() for tree in trees]
            # every row is counted once for each tree
            return release_counts(np.concatenate(exact), epsilon, noise, len(trees))
        leaves = open_rows(trees[0], block, candidates)
        bins = (tree_mechanism.bin_counts(rows, candidates) for rows in leaves)
        if request.kind in CHOICES:
            limits = (candidates, CHOICES[request.kind], epsilon, noise)
            return np.array([tree_mechanism.select_splits(leaf[None], *limits)[0] for leaf in bins])
        exact = [
            tree_mechanism.side_counts(leaf, candidates, splits).ravel()
            for leaf, splits in zip(bins, request.questions, strict=True)
        ]
        # a row is in one leaf, and is counted once for each split there
        most = max(len(splits) for splits in request.questions)
        return release_counts(np.concatenate(exact), epsilon, noise, most)


def _check_splits(request: Request, trees: list[SampledTree], n_candidates: int) -> None:
    if len(trees) != 1 or len(request.questions) != n_open(trees[0]):
        raise RefusedError("side counts need one tree and splits for each of its leaves.")
    for splits in request.questions:
        valid = all(type(k) is int and 0 <= k < n_candidates for k in splits)  # bool is no index
        if not splits or not valid:
            raise RefusedError("splits must be indices in the list of candidates.")
        if len(set(splits)) < len(splits):
            raise RefusedError("splits of a leaf must differ.")


def _check_size(
    request: Request,
    trees: list[SampledTree],
    candidates: SplitTable,
    n_classes: int,
    rows_per_person: int,
) -> None:
    """Refuse what could not be computed or sent, before it is paid for or any noise is sampled."""
    most = max((len(splits) for splits in request.questions), default=1)
    epsilon = request.epsilon / rows_per_person
    scale = max(most, len(request.trees)) / epsilon
    if epsilon < mechanisms.SMALLEST_PART:
        raise RefusedError("epsilon is too small for so many rows of a person.")
    if TAIL * scale + MOST_ROWS > LARGEST:  # noise could exceed the largest count
        raise RefusedError("epsilon is too small for so many splits.")
    n_leaves = sum(len(leaves_of(tree)) for tree in trees)
    if request.sum is not UNSET:
        _check_sum(request.sum, len(trees), n_leaves * n_classes, candidates, rows_per_person)
    elif request.kind in BLOCKS:
        budget.check_block(len(candidates), n_classes, request.depth, epsilon)
        budget.check_released(n_leaves * 2 ** (request.depth + 1))
    elif request.kind in CHOICES:
        budget.check_scores(candidates.n_bins, n_classes, 1)
    elif request.kind == "leaf counts":
        budget.check_released(n_leaves * n_classes)
    elif request.kind == "side counts":
        budget.check_released(2 * n_classes * sum(len(splits) for splits in request.questions))


def _check_sum(
    how: SumStep, n_trees: int, n_counts: int, candidates: SplitTable, rows_per_person: int
) -> None:
    if n_trees != 1:
        raise RefusedError("a secure sum is about one tree.")
    times = (len(candidates.space) if how.what == "bins" else 1) * rows_per_person**2
    size = n_counts * (candidates.n_bins if how.what == "bins" else 1)
    budget.check_released(size)
    if TAIL * share_scale(how.rho, how.honest, times, size) + MOST_ROWS > LARGEST / MOST_SUMMED:
        raise RefusedError("rho is too small for a secure sum.")


def schema_digest(schema: Schema) -> str:
    """Digest that identifies a schema in messages."""
    return hashlib.sha256(schema.key().encode()).hexdigest()
