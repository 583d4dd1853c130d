"""Coordinator, run_study: one tree from several holders, none of which reveals a row."""

import hashlib
import json
import logging
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.clock import CLOCK, Clock
from steadytree._base.files import check_can_write, write_text_atomically
from steadytree._base.validation import Integer, OneOf
from steadytree.data.schema import Schema, check_schema
from steadytree.federated.checkpoint import Checkpoint
from steadytree.federated.gateway import MOST_NUMBERS
from steadytree.federated.holder import Holder, schema_digest
from steadytree.federated.messages import MOST_BINS, MOST_TREES, HolderLike
from steadytree.federated.receipts import Receipts
from steadytree.federated.secure_sum import MaskedSums, SecureSum
from steadytree.federated.session import Grown, Session
from steadytree.federated.strategies import LEVELS, METHODS, MOST_SPLITS, grow_from_sums
from steadytree.federated.study import SECURE_SUM, StudyConfig, handshake, hello
from steadytree.federated.transport import Holders, LocalHolders, RemoteHolders, Traffic, Transport
from steadytree.models.files import save
from steadytree.models.tree import Tree
from steadytree.privacy import budget
from steadytree.privacy.budget import MOST_RELEASED, PrivacyStatement, check_released
from steadytree.privacy.growers import build_tree, plausible_counts
from steadytree.privacy.mechanisms import NOT_PRIVATE, check_epsilon
from steadytree.privacy.topdown import TopDown

_LOG = logging.getLogger(__name__)
LEAST_PART = 0.2  # of epsilon: the least for a block
DEEPEST_LEVELS = 5  # of trees that are paid for level by level
FEWER_BINS = {"noisy_counts": 10, "secure_sum": 16}  # for methods that count every split


def check_session(
    session: Session, method: str, n_holders: int, most_released: int = MOST_RELEASED
) -> None:
    """Refuse a session that a holder would have to refuse half-way."""
    n_classes, leaves = session.n_classes, 2 ** (DEEPEST_LEVELS - 1)
    n_splits, n_bins = len(session.candidates), session.candidates.n_bins
    trees = n_holders if method == "vote" else 2
    if trees > MOST_TREES:
        raise ValueError(
            f"method 'vote' compares at most {MOST_TREES} holders' trees, got {n_holders} holders: "
            "use 'delegate' or 'duel'."
        )
    budget.check_leaves(session.schema, 2 * leaves)
    check_released(trees * leaves * n_classes, most_released)
    if method in ("delegate", "duel", "vote"):
        budget.check_block(n_splits, n_classes, 2, LEAST_PART * session.epsilon)
    elif method == "local_rnm":
        budget.check_scores(n_bins, n_classes, 1)
        # each holder chooses one split a leaf, and all chosen ones are counted
        check_released(min(n_holders, n_splits) * leaves * 2 * n_classes, most_released)
    elif method == "noisy_counts":
        check_released(n_splits * leaves * 2 * n_classes, most_released)
    else:
        budget.check_leaves(session.schema, 2**MOST_SPLITS)
        check_released(max(n_bins * 2 ** (LEVELS - 1), 2**MOST_SPLITS) * n_classes, most_released)


@dataclass(frozen=True)
class Study:
    """A finished study."""

    tree: Tree
    privacy: PrivacyStatement
    epsilons: dict[str, float]  # cost of each holder's answers
    missing: tuple[str, ...]  # holders that were dropped
    rounds: int
    resumed: int  # rounds from the checkpoint
    traffic: Traffic
    numbers: int  # in all answers

    def to_dict(self) -> dict[str, Any]:
        known = {"ok": True, "privacy": self.privacy.to_dict(), "epsilons": self.epsilons}
        known |= {"gone": list(self.missing), "rounds": self.rounds, "resumed": self.resumed}
        known["numbers"] = self.numbers
        known |= asdict(self.traffic)
        return {**known, "seconds": [round(s, 3) for s in self.traffic.seconds]}


def run_study(config: StudyConfig, transport: Transport, clock: Clock = CLOCK) -> Study:
    """Shake hands with the holders, learn the tree and write it; resume from the checkpoint."""
    for path in (config.out, config.checkpoint, config.facts):
        check_can_write(path)
    if set(transport.names) != set(config.holders):
        raise ValueError(f"the transport reaches {transport.names}, the plan has {config.holders}.")
    checkpoint = Checkpoint(config.checkpoint, config.digest)
    receipts = Receipts(config.study, checkpoint.heads, getattr(transport, "sign", None))
    private, most = handshake(transport, config, config.join, clock, receipts)
    how: dict[str, Any] = {"clock": clock, "receipts": receipts, "rows_per_person": most}
    holders = RemoteHolders(transport, private, config.deadline, config.attempt, **how)
    holders.names = config.holders  # in the plan's order, on which every sample depends
    study = learn(config, holders, checkpoint)
    # the last receipts, once: a holder that does not get them can ask for the checkpoint
    active = [name for name in config.holders if name not in study.missing]
    transport.exchange({name: hello(config, name, receipts) for name in active}, config.attempt)
    finish(config, study)
    return study


def learn(config: StudyConfig, holders: Holders, checkpoint: Checkpoint) -> Study:
    """Grow the plan's tree from the holders' answers and the checkpoint."""
    resumed, schema = checkpoint.n_rounds, config.schema
    n_bins = bins_of(config.method, schema, config.n_bins)
    how = (config.epsilon, config.study, n_bins, config.minimum, checkpoint, config.limits)
    session = Session(holders, schema, *how)
    check_session(session, config.method, len(config.holders), MOST_NUMBERS)
    if config.method == SECURE_SUM:
        sums = MaskedSums(session, config.epsilon, config.delta, config.honest)
        grown = grow_from_sums(sums, session.candidates)
    else:
        grown = METHODS[config.method](session, _order(config))
    private = holders.private and session.private and config.testing_seed is None
    tree = _build(session, grown, private)
    spent = (config.epsilon, config.delta, session.spent_on)
    privacy = PrivacyStatement(*spent, config.method, private, _relation(holders))
    epsilons = dict(zip(config.holders, session.spent.tolist(), strict=True))
    missing = tuple(n for k, n in enumerate(config.holders) if k not in session.active)
    traffic = getattr(holders, "traffic", Traffic())
    rounds = (checkpoint.n_rounds, resumed, traffic, session.numbers)
    return Study(tree, privacy, epsilons, missing, *rounds)


def _relation(holders: Holders) -> str:
    return f"{budget.relation(holders.rows_per_person)} of one holder"


def _build(session: Session, grown: Grown, private: bool) -> Tree:
    sampled, counts = grown
    tree = build_tree(sampled, session.candidates, session.schema, plausible_counts(counts))
    return tree if private else tree.with_note(NOT_PRIVATE)


def finish(config: StudyConfig, study: Study) -> None:
    """Write the tree and what it cost."""
    save(study.tree, config.out)
    if not study.privacy.private:
        _LOG.warning("%s is NOT PRIVATE (testing seed): do not share it.", config.out.name)
    write_text_atomically(config.facts, json.dumps(study.to_dict(), indent=2) + "\n")


def _order(config: StudyConfig) -> list[int]:
    """Order of the holders: by the study's name, so that it is the same without a checkpoint."""
    seed = config.testing_seed
    if seed is None:
        seed = int.from_bytes(hashlib.sha256(config.study.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).permutation(len(config.holders)).tolist()


def bins_of(method: str, schema: Schema, n_bins: int) -> int:
    """The number of bins that a method can afford, at most `n_bins`."""
    if method in FEWER_BINS:
        return min(n_bins, FEWER_BINS[method])
    return budget.bins_within(schema.space, n_bins)


class Coordinator:
    """Learns one tree from noised answers; has no rows and no budget.

    All answers of a holder together are epsilon-differentially private for its own rows, whatever
    the coordinator and the other holders do. Holders must have different people: a person at two
    holders loses twice as much.

    Parameters
    ----------
    holders : list of Holder, or of anything that answers a Request
        One without an attribute `private` counts as not private.
    schema : Schema, or path of a schema file
    epsilon : float, default=1.0
        The most that this run may cost each holder.
    method : str, default="delegate"
        "delegate": each block of the tree is sampled by a holder whose rows are like those of all,
        by noisy class counts. "duel": two holders propose each block, all evaluate. "vote": all
        propose trees, all evaluate. "local_rnm", "noisy_counts": DP-TopDown with its two ways to
        find a split among holders, corrected. "secure_sum": noise is added once, to the sums; here
        simulated in one process, over a network by `run_study`.
    delta : float, default=0.0
        Only for "secure_sum": more than 0 uses Gaussian noise under zCDP.
    n_bins : int, default=64
        Bins of numeric columns; at most 10 for "noisy_counts", 16 for "secure_sum", and for the
        others so few that there are at most 1,000 candidate splits.
    testing_seed : int, optional
        FOR TESTS ONLY: fixes the order of holders, and the noise of secure sums, which refuse it
        unless all holders have a testing seed.
    max_splits, error, budget, leaf_share, criterion, max_depth
        For "local_rnm" and "noisy_counts", as for ``PrivateTreeClassifier(method="topdown")``.

    Attributes
    ----------
    tree_ : Tree
    classes_ : ndarray
    privacy_ : PrivacyStatement
    """

    def __init__(
        self,
        holders: Sequence[HolderLike],
        schema: Any,
        epsilon: float = 1.0,
        method: str = "delegate",
        delta: float = 0.0,
        n_bins: int = 64,
        testing_seed: int | None = None,
        *,
        max_splits: int = 64,
        error: float = 0.1,
        budget: str = "decay",
        leaf_share: float | str = "auto",
        criterion: str = "gini",
        max_depth: int | None = None,
    ) -> None:
        self.schema = check_schema(schema)
        self.limits = TopDown(max_splits, error, budget, leaf_share, criterion, max_depth)
        self.epsilon = check_epsilon(epsilon)
        OneOf(*METHODS, "secure_sum").check(method, "method")
        if delta and method != "secure_sum":
            raise ValueError(f"delta must be 0 for method={method!r}: only secure_sum uses it.")
        names = [holder.name for holder in holders]
        if not names or len(set(names)) < len(names):
            raise ValueError("holders must be one or more, with names that differ.")
        Integer(2, MOST_BINS).check(n_bins, "n_bins")
        self.holders, self.method, self.delta = list(holders), method, delta
        self.n_bins, self.testing_seed = n_bins, testing_seed

    def fit(self) -> "Coordinator":
        """Run one session; every holder's ledger is charged during the run."""
        name = secrets.token_hex(8)
        n_bins = bins_of(self.method, self.schema, self.n_bins)
        how = (self.schema, self.epsilon, name, n_bins)
        session = Session(LocalHolders(self.holders), *how, limits=self.limits)
        own = self._check_before_paying(session)
        if self.method == "secure_sum":
            limits = (self.epsilon, self.delta, self.testing_seed)
            sums = SecureSum(own, name, schema_digest(self.schema), *limits)
            grown = grow_from_sums(sums, session.candidates)
            spent = {"secure sums": self.epsilon}
        else:
            order = np.random.default_rng(self.testing_seed).permutation(len(self.holders))
            grown = METHODS[self.method](session, order.tolist())
            spent = session.spent_on
        private = all(getattr(holder, "private", False) for holder in self.holders)
        private = private and self.testing_seed is None  # also where it only orders the holders
        self.tree_: Tree = _build(session, grown, private)
        self.classes_ = np.array(self.schema.classes)
        cost = (self.epsilon, self.delta, spent)
        self.privacy_ = PrivacyStatement(*cost, self.method, private, _relation(session.holders))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Most frequent class of each row's leaf."""
        return self.tree_.predict(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class shares of each row's leaf."""
        return self.tree_.predict_proba(X)

    def _check_before_paying(self, session: Session) -> list[Holder]:
        """Refuse a run that could not be finished; returns the holders in this process."""
        check_session(session, self.method, len(self.holders))
        own = [holder for holder in self.holders if isinstance(holder, Holder)]
        if self.method == "secure_sum" and len(own) < len(self.holders):
            raise TypeError("method='secure_sum' needs holders in this process.")
        for holder in own:
            holder.check_session(schema_digest(self.schema), self.epsilon, self.delta)
        return own
