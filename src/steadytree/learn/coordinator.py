"""Coordinator: one tree from several holders, none of whom shows a row."""

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.parameters import check_whole_number
from steadytree.core.schema import Schema, check_schema
from steadytree.core.tree import Tree
from steadytree.learn._private_plan import bins_within
from steadytree.learn._private_tree import build_tree, plausible_counts
from steadytree.learn._session_limits import check_session
from steadytree.learn._several import METHODS, Table, grow_from_sums
from steadytree.privacy.drawn import Drawn
from steadytree.privacy.mechanisms import check_epsilon
from steadytree.privacy.noise import NOT_PRIVATE
from steadytree.privacy.statement import PrivacyStatement
from steadytree.sources.holder import Holder, schema_digest
from steadytree.sources.messages import MOST_BINS, Party
from steadytree.sources.parties import Together
from steadytree.sources.secure_sum import SecureSum

RELATION = "add or remove one row of one holder"
FEWER_BINS = {"noisy_counts": 10, "secure_sum": 16}  # where every question is counted


def bins_of(method: str, schema: Schema, n_bins: int) -> int:
    """How many bins a method can afford, of those that were asked for."""
    if method in FEWER_BINS:
        return min(n_bins, FEWER_BINS[method])
    return bins_within(schema.space, n_bins)


class Coordinator:
    """Learns one tree from noised answers; holds no rows and no budget.

    Every holder's whole part of the conversation is epsilon-differentially private for its own
    rows, whatever the coordinator and the other holders do. Holders must hold different people:
    a person at two holders pays twice.

    Parameters
    ----------
    holders : list of Holder, or of anything that answers a Request
        One that does not say that it is `private` counts as not private.
    schema : Schema, or path of a schema file
    epsilon : float, default=1.0
        What this run may cost each holder.
    method : str, default="delegate"
        "delegate": each block of the tree is drawn by one holder in turn. "duel": two propose
        each block, all judge; for holders that differ much. "vote": all propose trees, all
        judge. "local_rnm", "noisy_counts": the published two, corrected. "secure_sum": noise
        once on sums that nobody sees without it.
    delta : float, default=0.0
        Only for "secure_sum": more than 0 uses Gaussian noise under zCDP.
    n_bins : int, default=64
        Bins of numeric columns; 10 at most for "noisy_counts", 16 for "secure_sum", and so few
        for the others that there are at most 1,000 questions.
    testing_seed : int, optional
        FOR TESTS ONLY: fixes the order of holders, and the noise of secure sums, which refuse it
        unless all holders have a testing seed.

    Attributes
    ----------
    tree_ : Tree
    classes_ : ndarray
    privacy_ : PrivacyStatement
    """

    def __init__(
        self,
        holders: Sequence[Party],
        schema: Any,
        epsilon: float = 1.0,
        method: str = "delegate",
        delta: float = 0.0,
        n_bins: int = 64,
        testing_seed: int | None = None,
    ) -> None:
        self.schema = check_schema(schema)
        self.epsilon = check_epsilon(epsilon)
        if method not in (*METHODS, "secure_sum"):
            raise ValueError(f"method must be one of {(*METHODS, 'secure_sum')}, got {method!r}.")
        if delta and method != "secure_sum":
            raise ValueError(f"delta must be 0 for method={method!r}: only secure_sum uses it.")
        names = [holder.name for holder in holders]
        if not names or len(set(names)) < len(names):
            raise ValueError("holders must be one or more, with names that differ.")
        check_whole_number(n_bins, "n_bins", 2, MOST_BINS)
        self.holders, self.method, self.delta = list(holders), method, delta
        self.n_bins, self.testing_seed = n_bins, testing_seed

    def fit(self) -> "Coordinator":
        """Run one session; every holder's ledger is charged as it goes."""
        session = secrets.token_hex(8)
        n_bins = bins_of(self.method, self.schema, self.n_bins)
        table = Table(Together(self.holders), self.schema, self.epsilon, session, n_bins)
        self._check_before_paying(table)
        if self.method == "secure_sum":
            (drawn, counts), spent = self._add_up(table, session), {"secure sums": self.epsilon}
        else:
            order = np.random.default_rng(self.testing_seed).permutation(len(self.holders))
            drawn, counts = METHODS[self.method](table, order.tolist())
            spent = table.spent_on
        private = all(getattr(holder, "private", False) for holder in self.holders)
        private = private and self.testing_seed is None  # also where it only orders the holders
        tree = build_tree(drawn, table.candidates, self.schema, plausible_counts(counts))
        self.tree_: Tree = tree if private else tree.with_note(NOT_PRIVATE)
        self.classes_ = np.array(self.schema.classes)
        self.privacy_ = PrivacyStatement(
            self.epsilon, self.delta, spent, self.method, private, RELATION
        )
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Most frequent class of the leaf each row falls in."""
        return self.tree_.predict(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class shares of the leaf each row falls in."""
        return self.tree_.predict_proba(X)

    def _check_before_paying(self, table: Table) -> None:
        """A run that cannot end should cost nobody anything."""
        check_session(table, self.method, len(self.holders))
        own = [holder for holder in self.holders if isinstance(holder, Holder)]
        if self.method == "secure_sum" and len(own) < len(self.holders):
            raise TypeError("method='secure_sum' needs holders in this process.")
        for holder in own:
            holder.check_session(schema_digest(self.schema), self.epsilon, self.delta)

    def _add_up(self, table: Table, session: str) -> tuple[Drawn, NDArray[np.int64]]:
        holders = [holder for holder in self.holders if isinstance(holder, Holder)]
        budget = (self.epsilon, self.delta, self.testing_seed)
        sums = SecureSum(holders, session, schema_digest(self.schema), *budget)
        return grow_from_sums(sums, table.candidates, self.epsilon)
