"""Sections on groups, calibration, the card and the change since the previous tree."""

from typing import Any

from steadytree.core.scorecard import Scorecard, as_card
from steadytree.core.tree import Tree
from steadytree.interop.card_dict import card_from_dict, card_to_dict
from steadytree.interop.card_tree import card_to_tree
from steadytree.measure.accuracy import accuracy
from steadytree.measure.calibration import calibration
from steadytree.measure.groups import by_group
from steadytree.reporting.card_svg import draw_card
from steadytree.reporting.card_text import card_text
from steadytree.reporting.diff import diff
from steadytree.reporting.evidence import Evidence
from steadytree.reporting.plain import plain, plain_reading
from steadytree.reporting.wording import label_text, one_line

MOST_LISTED = 1_000  # rows whose decision changed; how many there are is told in any case


def collect_groups(
    judged: Tree | Scorecard, X: Any, y: Any, evidence: Evidence
) -> list[dict[str, Any]]:
    """How often it is right in each group of each named column."""
    found = []
    for name, labels in evidence.groups.items():
        groups = by_group(judged, X, y, labels, one_line(name))
        shown = plain(groups.to_dict())
        for one in shown["groups"]:
            one["name"] = label_text(one["name"])
        readings = [plain_reading(reading) for reading in groups.readings()]
        found.append(shown | {"label": label_text(shown["label"]), "readings": readings})
    return found


def collect_calibration(judged: Tree | Scorecard, X: Any, y: Any) -> dict[str, Any]:
    """Stated shares beside those that came true."""
    found = calibration(judged, X, y)
    shown = plain(found.to_dict())
    readings = [plain_reading(reading) for reading in found.readings()]
    return shown | {"label": label_text(shown["label"]), "readings": readings}


def collect_card(X: Any, y: Any, evidence: Evidence) -> dict[str, Any] | None:
    """A card of points for the same decision, drawn and as text."""
    card = as_card(evidence.card)
    if card is None:
        return None
    table = card.risk_table
    return {
        "text": card_text(card),
        "card": plain(card_to_dict(card)),
        "risks": [] if table is None else [plain(vars(row)) for row in table.rows],
        "readings": [plain_reading(reading) for reading in accuracy(card, X, y).readings()],
    }


def picture_of_card(data: dict[str, Any]) -> str:
    """The card drawn from its plain values."""
    return draw_card(card_from_dict(data["card"]))


def collect_change(
    judged: Tree | Scorecard, X: Any, y: Any, evidence: Evidence
) -> dict[str, Any] | None:
    """What changed since the previous tree, with the picture of it; a small card is told as one."""
    if evidence.previous is None:
        return None
    tree = card_to_tree(judged) if isinstance(judged, Scorecard) else judged
    found = diff(evidence.previous, tree, X, y)
    words = plain(found.words)
    rows = words["rows"]
    if rows is not None:
        rows["flipped"] = rows["flipped"][:MOST_LISTED]
    return words | {"text": str(found)}
