"""Coordinator: one tree from several holders, none of whom shows a row."""

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.candidates import Candidates
from steadytree.core.schema import check_schema
from steadytree.core.tree import Tree
from steadytree.learn._private_tree import build_tree, plausible_counts
from steadytree.learn._several import METHODS, Table, grow_from_sums
from steadytree.privacy.mechanisms import check_epsilon
from steadytree.privacy.statement import PrivacyStatement
from steadytree.sources.holder import Holder, schema_digest
from steadytree.sources.messages import Party
from steadytree.sources.parties import Together
from steadytree.sources.secure_sum import SecureSum

RELATION = "add or remove one row of one holder"
MOST_SIDE_QUESTIONS = 10  # bins, where every question is counted


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
        Bins of numeric columns; 10 at most for "noisy_counts", 16 for "secure_sum".
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
        self.holders, self.method, self.delta = list(holders), method, delta
        self.n_bins, self.testing_seed = n_bins, testing_seed

    def fit(self) -> "Coordinator":
        """Run one session; every holder's ledger is charged as it goes."""
        for holder in self.holders:
            if isinstance(holder, Holder):  # a run that cannot end should cost nobody anything
                holder.ledger.check(self.epsilon, "one tree")
        session = secrets.token_hex(8)
        if self.method == "secure_sum":
            tree, spent = self._fit_sums(session)
        else:
            tree, spent = self._fit_answers(session)
        self.tree_: Tree = tree
        self.classes_ = np.array(self.schema.classes)
        private = all(getattr(holder, "private", False) for holder in self.holders)
        private = private and self.testing_seed is None  # also where it only orders the holders
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

    def _fit_answers(self, session: str) -> tuple[Tree, dict[str, float]]:
        n_bins = self.n_bins
        if self.method == "noisy_counts":
            n_bins = min(n_bins, MOST_SIDE_QUESTIONS)
        table = Table(Together(self.holders), self.schema, self.epsilon, session, n_bins)
        order = np.random.default_rng(self.testing_seed).permutation(len(self.holders)).tolist()
        drawn, counts = METHODS[self.method](table, order)
        tree = build_tree(drawn, table.candidates, self.schema, plausible_counts(counts))
        return tree, table.spent_on

    def _fit_sums(self, session: str) -> tuple[Tree, dict[str, float]]:
        candidates = Candidates.of(self.schema.space, min(self.n_bins, 16))
        holders = [holder for holder in self.holders if isinstance(holder, Holder)]
        if len(holders) < len(self.holders):
            raise TypeError("method='secure_sum' needs holders in this process.")
        budget = (self.epsilon, self.delta, self.testing_seed)
        sums = SecureSum(holders, session, schema_digest(self.schema), *budget)
        drawn, counts = grow_from_sums(sums, candidates, self.epsilon)
        tree = build_tree(drawn, candidates, self.schema, plausible_counts(counts))
        return tree, {"secure sums": self.epsilon}
