"""run_study: one tree from holders elsewhere, as a plan says, resumed where it was left."""

import hashlib
import json
import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadytree.core.atomic import check_can_write, write_text_atomically
from steadytree.core.clock import CLOCK, Clock
from steadytree.core.tree import Tree
from steadytree.interop.tree_file import save
from steadytree.learn._journal import Journal
from steadytree.learn._private_tree import build_tree, plausible_counts
from steadytree.learn._session_limits import check_session
from steadytree.learn._several import METHODS, Table
from steadytree.learn.coordinator import RELATION, bins_of
from steadytree.privacy.noise import NOT_PRIVATE
from steadytree.privacy.statement import PrivacyStatement
from steadytree.sources.gateway import MOST_NUMBERS
from steadytree.sources.greeting import greet
from steadytree.sources.parties import Correspondence, Parties, Traffic, Transport
from steadytree.sources.plan import Plan

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


def run_study(plan: Plan, transport: Transport, clock: Clock = CLOCK) -> Study:
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
    journal = Journal(plan.checkpoint, plan.digest)
    private = greet(transport, plan, plan.join, clock)
    parties = Correspondence(transport, private, plan.deadline, plan.attempt, clock=clock)
    parties.names = plan.holders  # in the plan's order, on which every draw depends
    study = learn(plan, parties, journal)
    finish(plan, study)
    return study


def learn(plan: Plan, parties: Parties, journal: Journal) -> Study:
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


def finish(plan: Plan, study: Study) -> None:
    """Write the tree and what it cost."""
    save(study.tree, plan.out)
    if not study.privacy.private:
        _LOG.warning("%s is NOT PRIVATE (testing seed): do not hand it on.", plan.out.name)
    write_text_atomically(plan.facts, json.dumps(study.to_dict(), indent=2) + "\n")


def _order(plan: Plan) -> list[int]:
    """Who draws first: by the study's name, so that a study that lost its checkpoint goes on."""
    seed = plan.testing_seed
    if seed is None:
        seed = int.from_bytes(hashlib.sha256(plan.study.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).permutation(len(plan.holders)).tolist()
