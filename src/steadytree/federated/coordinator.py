"""Coordinator: one tree from several holders, none of whom shows a row."""

import hashlib
import json
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.clock import CLOCK, Clock
from steadytree._base.files import check_can_write, write_text_atomically
from steadytree._base.validation import check_whole_number
from steadytree.data.schema import Schema, check_schema
from steadytree.federated.checkpoint import Checkpoint
from steadytree.federated.gateway import MOST_NUMBERS
from steadytree.federated.holder import Holder, schema_digest
from steadytree.federated.messages import MOST_BINS, MOST_TREES, Party
from steadytree.federated.secure_sum import SecureSum
from steadytree.federated.strategies import METHODS, Table, grow_from_sums
from steadytree.federated.study_config import StudyConfig, greet
from steadytree.federated.transport import Holders, LocalHolders, RemoteHolders, Traffic, Transport
from steadytree.models.files import save
from steadytree.models.tree import Tree
from steadytree.privacy.budget import (
    MOST_RELEASED,
    PrivacyStatement,
    bins_within,
    check_block,
    check_leaves,
    check_released,
    check_scores,
    count_bins_of,
)
from steadytree.privacy.mechanisms import check_epsilon
from steadytree.privacy.noise import NOT_PRIVATE
from steadytree.privacy.sampled_tree import SampledTree, build_tree, plausible_counts

LEAST_PART = 0.2  # of epsilon: the least that a block gets
DEEPEST_LEVELS = 5  # of several holders' trees that are paid for level by level


def check_session(
    table: Table, method: str, n_holders: int, most_released: int = MOST_RELEASED
) -> None:
    """Refuse a session among holders that one of them would have to refuse half-way."""
    n_classes, leaves = table.n_classes, 2 ** (DEEPEST_LEVELS - 1)
    n_questions, n_bins = len(table.candidates), count_bins_of(table.candidates)
    trees = n_holders if method == "vote" else 2
    if trees > MOST_TREES:
        raise ValueError(
            f"method 'vote' compares at most {MOST_TREES} holders' trees, got {n_holders} holders: "
            "use 'delegate' or 'duel'."
        )
    check_leaves(table.schema, 2 * leaves)
    check_released(trees * leaves * n_classes, most_released)
    if method in ("delegate", "duel", "vote"):
        check_block(n_questions, n_classes, 2, LEAST_PART * table.epsilon)
    elif method == "local_rnm":
        check_scores(n_bins, n_classes, 1)
        # a holder names one question a leaf, and all named ones are counted
        check_released(min(n_holders, n_questions) * leaves * 2 * n_classes, most_released)
    elif method == "noisy_counts":
        check_released(n_questions * leaves * 2 * n_classes, most_released)
    else:
        check_released(n_bins * leaves * n_classes, most_released)


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Study:
    """A study that came to its end.

    Parameters
    ----------
    tree : Tree
    privacy : PrivacyStatement
    epsilons : dict of holder to epsilon
        What each holder's answers cost.
    gone : tuple of str
        Holders that the study went on without.
    rounds : int
    resumed : int
        Rounds that came from the checkpoint.
    traffic : Traffic
    """

    tree: Tree
    privacy: PrivacyStatement
    epsilons: dict[str, float]
    gone: tuple[str, ...]
    rounds: int
    resumed: int
    traffic: Traffic

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "ok": True,
            "privacy": self.privacy.to_dict(),
            "epsilons": self.epsilons,
            "gone": list(self.gone),
            "rounds": self.rounds,
            "resumed": self.resumed,
            "seconds": [round(s, 3) for s in self.traffic.seconds],
            "bytes_out": self.traffic.bytes_out,
            "bytes_in": self.traffic.bytes_in,
            "asked_again": self.traffic.asked_again,
        }


def run_study(plan: StudyConfig, transport: Transport, clock: Clock = CLOCK) -> Study:
    """Greet the holders, learn the tree, write it; go on from the checkpoint where there is one.

    Parameters
    ----------
    plan : Plan
    transport : Transport
        Whatever carries letters to the plan's holders.
    clock : Clock, optional
        By which the plan's deadlines are told.

    Returns
    -------
    study : Study
        Its tree is written to ``plan.out``, what it cost to ``plan.facts``.
    """
    for path in (plan.out, plan.checkpoint, plan.facts):
        check_can_write(path)
    if set(transport.names) != set(plan.holders):
        raise ValueError(f"the transport reaches {transport.names}, the plan has {plan.holders}.")
    journal = Checkpoint(plan.checkpoint, plan.digest)
    private = greet(transport, plan, plan.join, clock)
    parties = RemoteHolders(transport, private, plan.deadline, plan.attempt, clock=clock)
    parties.names = plan.holders  # in the plan's order, on which every draw depends
    study = learn(plan, parties, journal)
    finish(plan, study)
    return study


def learn(plan: StudyConfig, parties: Holders, journal: Checkpoint) -> Study:
    """Grow the plan's tree from the parties' answers and the journal."""
    resumed = journal.n_rounds
    n_bins = bins_of(plan.method, plan.schema, plan.n_bins)
    table = Table(parties, plan.schema, plan.epsilon, plan.study, n_bins, plan.minimum, journal)
    check_session(table, plan.method, len(plan.holders), MOST_NUMBERS)
    drawn, counts = METHODS[plan.method](table, _order(plan))
    tree = build_tree(drawn, table.candidates, plan.schema, plausible_counts(counts))
    private = parties.private and table.private and plan.testing_seed is None
    tree = tree if private else tree.with_note(NOT_PRIVATE)
    privacy = PrivacyStatement(plan.epsilon, 0.0, table.spent_on, plan.method, private, RELATION)
    epsilons = dict(zip(plan.holders, table.spent.tolist(), strict=True))
    gone = tuple(n for p, n in enumerate(plan.holders) if p not in table.present)
    traffic = getattr(parties, "traffic", Traffic())
    return Study(tree, privacy, epsilons, gone, journal.n_rounds, resumed, traffic)


def finish(plan: StudyConfig, study: Study) -> None:
    """Write the tree and what it cost."""
    save(study.tree, plan.out)
    if not study.privacy.private:
        _LOG.warning("%s is NOT PRIVATE (testing seed): do not hand it on.", plan.out.name)
    write_text_atomically(plan.facts, json.dumps(study.to_dict(), indent=2) + "\n")


def _order(plan: StudyConfig) -> list[int]:
    """Who draws first: by the study's name, so that a study that lost its checkpoint goes on."""
    seed = plan.testing_seed
    if seed is None:
        seed = int.from_bytes(hashlib.sha256(plan.study.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).permutation(len(plan.holders)).tolist()


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
        table = Table(LocalHolders(self.holders), self.schema, self.epsilon, session, n_bins)
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

    def _add_up(self, table: Table, session: str) -> tuple[SampledTree, NDArray[np.int64]]:
        holders = [holder for holder in self.holders if isinstance(holder, Holder)]
        budget = (self.epsilon, self.delta, self.testing_seed)
        sums = SecureSum(holders, session, schema_digest(self.schema), *budget)
        return grow_from_sums(sums, table.candidates, self.epsilon)
