"""Section privacy: what was promised, what it cost, and what accuracy epsilon buys."""

from typing import Any

from steadytree.metrics.accuracy import accuracy
from steadytree.metrics.calibration import calibration
from steadytree.metrics.groups import by_group
from steadytree.metrics.sampling import Sampled
from steadytree.models.documents import card_to_dict
from steadytree.models.export import card_to_tree
from steadytree.models.scorecard import Scorecard, as_card
from steadytree.models.tree import Tree
from steadytree.privacy.simulation import epsilon_curve
from steadytree.reporting.diff import diff
from steadytree.reporting.formatting import plain, plain_reading
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.text import scorecard_text
from steadytree.reporting.wording import label_text, one_line

MOST_LISTED = 1_000  # rows whose decision changed; how many there are is told in any case


def build_groups(
    judged: Tree | Scorecard, X: Any, y: Any, options: ReportOptions
) -> list[dict[str, Any]]:
    """How often it is right in each group of each named column."""
    found = []
    for name, labels in options.groups.items():
        groups = by_group(judged, X, y, labels, one_line(name))
        shown = plain(groups.to_dict())
        for one in shown["groups"]:
            one["name"] = label_text(one["name"])
        measurements = [plain_reading(reading) for reading in groups.measurements()]
        found.append(shown | {"label": label_text(shown["label"]), "readings": measurements})
    return found


def build_calibration(judged: Tree | Scorecard, X: Any, y: Any) -> dict[str, Any]:
    """Stated shares beside those that came true."""
    found = calibration(judged, X, y)
    shown = plain(found.to_dict())
    measurements = [plain_reading(reading) for reading in found.measurements()]
    return shown | {"label": label_text(shown["label"]), "readings": measurements}


def build_scorecard(X: Any, y: Any, options: ReportOptions) -> dict[str, Any] | None:
    """A card of points for the same decision, drawn and as text."""
    card = as_card(options.scorecard)
    if card is None:
        return None
    table = card.risk_table
    return {
        "text": scorecard_text(card),
        "card": plain(card_to_dict(card)),
        "risks": [] if table is None else [plain(vars(row)) for row in table.rows],
        "readings": [plain_reading(reading) for reading in accuracy(card, X, y).measurements()],
    }


def build_change(
    judged: Tree | Scorecard, X: Any, y: Any, options: ReportOptions
) -> dict[str, Any] | None:
    """What changed since the previous tree, with the picture of it; a small card is told as one."""
    if options.previous is None:
        return None
    tree = card_to_tree(judged) if isinstance(judged, Scorecard) else judged
    found = diff(options.previous, tree, X, y)
    words = plain(found.words)
    rows = words["rows"]
    if rows is not None:
        rows["flipped"] = rows["flipped"][:MOST_LISTED]
    return words | {"text": str(found)}


MOST_ROWS = 5_000


def build_privacy(model: Any, X: Any, y: Any, options: ReportOptions) -> dict[str, Any] | None:
    """The model's statement, the data's ledger and accuracy against epsilon; None without any."""
    statement = getattr(model, "privacy_", None)
    ledger = options.ledger if options.ledger is not None else getattr(model, "ledger", None)
    if statement is not None:
        epsilon = statement.epsilon
    elif ledger is not None:
        epsilon = ledger.spent
    else:
        return None
    schema = options.schema or getattr(model, "schema", None)
    told = None if statement is None else plain(statement.to_dict())
    found: dict[str, Any] = {
        "epsilon": epsilon,
        "statement": told,
        "ledger": None if ledger is None else _ledger(ledger),
        "curve": None,
        "note": "",
    }
    if schema is not None and not options.quick:
        rows = Sampled.of(*(options.train or (X, y)), MOST_ROWS, options.seed)
        method = getattr(model, "method", "gibbs")
        points = epsilon_curve(schema, rows.features, rows.labels, method, options.seed)
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
