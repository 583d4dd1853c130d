"""The study as a Flower ServerApp: reads the plan, runs it over the grid, writes how it ended."""

import json
from typing import Any

from steadytree.core.atomic import write_text_atomically
from steadytree.core.extras import require
from steadytree.learn.study import run_study
from steadytree.privacy.ledger import BudgetError
from steadytree.sources.flower import GridTransport
from steadytree.sources.letters import Code
from steadytree.sources.plan import Plan
from steadytree.sources.signed import SignedLetters

WRONG_USE, LIMIT = 2, 3


def make_server_app() -> Any:
    """The coordinator as a Flower ServerApp; the plan's path comes from the run's config."""
    serverapp = require("flwr.serverapp", extra="federated", purpose="a study over Flower")
    app = serverapp.ServerApp()
    app.main()(main)
    return app


def main(grid: Any, context: Any) -> None:
    """Run the plan named in the run's config; its facts file says how it ended."""
    plan = Plan.load(context.run_config["plan"])
    nodes = json.loads(context.run_config["nodes"])
    grid = GridTransport(grid, {name: int(nodes[name]) for name in plan.holders})
    try:
        # Flower lets others speak to holders too: these believe the coordinator's key alone
        run_study(plan, SignedLetters(grid, plan.keys / "coordinator" / "sign.key"))
    except Exception as error:
        # all that is known here came as codes and noised numbers
        limit = isinstance(error, BudgetError) or getattr(error, "code", None) == Code.BUDGET
        facts = {"ok": False, "reason": str(error), "exit": LIMIT if limit else WRONG_USE}
        write_text_atomically(plan.facts, json.dumps(facts, indent=2) + "\n")
        if not isinstance(error, ValueError | TypeError | OSError):
            raise
