"""Section privacy: what was promised, what it cost, and what accuracy epsilon buys."""

from typing import Any

from steadytree.judging.epsilon_curve import epsilon_curve
from steadytree.judging.sampling import Sampled
from steadytree.reporting.evidence import Evidence
from steadytree.reporting.plain import plain
from steadytree.reporting.wording import one_line

MOST_ROWS = 5_000


def collect_privacy(model: Any, X: Any, y: Any, evidence: Evidence) -> dict[str, Any] | None:
    """The model's statement, the data's ledger and accuracy against epsilon; None without any."""
    statement, ledger = getattr(model, "privacy_", None), evidence.ledger
    if statement is not None:
        epsilon = statement.epsilon
    elif ledger is not None:
        epsilon = ledger.spent
    else:
        return None
    schema = evidence.schema or getattr(model, "schema", None)
    told = None if statement is None else plain(statement.to_dict())
    found: dict[str, Any] = {
        "epsilon": epsilon,
        "statement": told,
        "ledger": None if ledger is None else _ledger(ledger),
        "curve": None,
        "note": "",
    }
    if schema is not None and not evidence.quick:
        rows = Sampled.of(*(evidence.train or (X, y)), MOST_ROWS, evidence.seed)
        method = getattr(model, "method", "gibbs")
        points = epsilon_curve(schema, rows.features, rows.labels, method, evidence.seed)
        found["curve"] = [plain(vars(point)) for point in points]
        found["note"] = rows.note
    return found


def _ledger(ledger: Any) -> dict[str, Any]:
    return {
        "budget": ledger.budget,
        "spent": ledger.spent,
        "left": ledger.left,
        "entries": [
            {
                "what": one_line(entry.what),
                "mechanism": one_line(entry.mechanism),
                "epsilon": plain(float(entry.epsilon)),
            }
            for entry in ledger.entries
        ],
    }
