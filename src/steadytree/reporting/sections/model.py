"""Sections on one model: groups, calibration, risk score, changes, privacy and robustness."""

from typing import Any

import numpy as np

from steadytree.comparison.compare import thin_curve
from steadytree.comparison.learners import NOISE_SHARE, usual_perturbation
from steadytree.data.dataset import Dataset
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
from steadytree.reporting.formatting import label_text, one_line, plain, plain_measurements
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.text import scorecard_text
from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.separation import MOST_CLASSES, separation

MOST_LISTED = 1_000  # rows whose prediction changed; all are counted
MOST_PRIVATE = 5_000  # rows for accuracy against epsilon
MOST_CERTIFIED = 20_000
MOST_SEPARATED = 3_000  # rows of which all pairs are compared
MOST_ATTACKS = 5
MOST_NAMES = 8
NEARER = "Over all rows the classes can only be closer."


def build_groups(
    fitted: Tree | Scorecard, X: Any, y: Any, options: ReportOptions
) -> list[dict[str, Any]]:
    """Accuracy and rates in each group of each grouping."""
    found = []
    for name, labels in options.groups.items():
        groups = by_group(fitted, X, y, labels, one_line(name))
        shown = plain(groups.to_dict())
        for one in shown["groups"]:
            one["name"] = label_text(one["name"])
        measurements = plain_measurements(groups.measurements())
        found.append(shown | {"label": label_text(shown["label"]), "readings": measurements})
    return found


def build_calibration(fitted: Tree | Scorecard, X: Any, y: Any) -> dict[str, Any]:
    """Predicted probabilities beside observed frequencies."""
    found = calibration(fitted, X, y)
    shown = plain(found.to_dict())
    measurements = plain_measurements(found.measurements())
    return shown | {"label": label_text(shown["label"]), "readings": measurements}


def build_scorecard(X: Any, y: Any, options: ReportOptions) -> dict[str, Any] | None:
    """A risk score for the same decision, as text and plain values."""
    scorecard = as_card(options.scorecard)
    if scorecard is None:
        return None
    table = scorecard.risk_table
    return {
        "text": scorecard_text(scorecard),
        "card": plain(card_to_dict(scorecard)),
        "risks": [] if table is None else [plain(vars(row)) for row in table.rows],
        "readings": plain_measurements(accuracy(scorecard, X, y).measurements()),
    }


def build_change(
    model: Any, fitted: Tree | Scorecard, X: Any, y: Any, options: ReportOptions
) -> dict[str, Any] | None:
    """Changes since the previous tree; a small scorecard is written as a tree."""
    if options.previous is None:
        return None
    tree = card_to_tree(fitted) if isinstance(fitted, Scorecard) else fitted
    found = diff(options.previous, tree, X, y)
    shown = plain(found.formatted)
    rows = shown["rows"]
    if rows is not None:
        rows["flipped"] = rows["flipped"][:MOST_LISTED]
    frontier = model.frontier_text() if hasattr(model, "frontier_text") else ""
    return shown | {"text": str(found), "frontier": frontier}


def build_privacy(model: Any, X: Any, y: Any, options: ReportOptions) -> dict[str, Any] | None:
    """Privacy statement, ledger, and accuracy against epsilon; None without either of the first."""
    statement = getattr(model, "privacy_", None)
    ledger = options.ledger if options.ledger is not None else getattr(model, "ledger", None)
    if statement is not None:
        epsilon = statement.epsilon
    elif ledger is not None:
        epsilon = ledger.spent
    else:
        return None
    schema = options.schema or getattr(model, "schema", None)
    found: dict[str, Any] = {
        "epsilon": epsilon,
        "statement": None if statement is None else plain(statement.to_dict()),
        "ledger": None if ledger is None else _ledger(ledger),
        "curve": None,
        "note": "",
    }
    if schema is not None and not options.quick:
        train = options.train or Dataset.of(X, y)
        rows = Sampled.of(train, train.labels, MOST_PRIVATE, options.seed)
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


def build_robustness(
    model: Any, fitted: Tree | Scorecard, X: Any, y: Any, options: ReportOptions
) -> dict[str, Any] | None:
    """Certified accuracy by size, worst case, and the smallest changes that overturn predictions.

    The model itself is certified, since the tree of a scikit-learn model has kinds from these rows.
    """
    rows = Sampled.of(X, y, MOST_CERTIFIED, options.seed)
    noise = options.perturbation
    if noise is None:
        noise = usual_perturbation(rows.features)
        if not noise.radius:
            return None  # only text and 0/1 columns: there is no default perturbation
    found = certify(model, rows.features, rows.labels, noise)
    sizes, shares = thin_curve(found.right, found.distance)
    return {
        "note": " ".join(filter(None, [rows.note, _fixed_note(fitted, noise)])),
        "n_rows": len(rows.labels),
        "stated": options.perturbation is not None,
        "usual_share": NOISE_SHARE,
        "perturbation": plain(noise.to_dict()),
        "readings": plain_measurements(found.measurements()),
        "n_attacked": len(found.attacked) if noise.budget is not None else None,
        "curve": {"size": plain(sizes), "certified_accuracy": plain(shares)},
        "attacks": [_attack(example) for example in found.counterexamples(MOST_ATTACKS)],
    }


def _fixed_note(fitted: Tree | Scorecard, noise: Perturbation) -> str:
    """A sentence where columns are used about that the noise does not touch."""
    if isinstance(fitted, Tree):
        noun, features = "tree", fitted.feature[fitted.feature >= 0]
    else:
        noun, features = "risk score", np.array([c.feature for c in fitted.conditions], np.int64)
    used = np.unique(features)
    moves = noise.moves(fitted.space)
    fixed = used[np.isinf(np.minimum(moves.up, moves.down))[used]]
    if not len(fixed):
        return ""
    names = [one_line(fitted.space.names[k]) for k in fixed[:MOST_NAMES]]
    more = f" and {len(fixed) - MOST_NAMES} more" if len(fixed) > MOST_NAMES else ""
    return (
        f"The perturbation does not change {len(fixed)} of the {len(used)} columns that the {noun} "
        f"uses: {', '.join(names)}{more}."
    )


def _attack(example: Any) -> dict[str, Any]:
    return {
        "row": example.row,
        "size": example.size,
        "answer": label_text(example.answer),
        "other": label_text(example.other),
        "steps": [one_line(str(step)) for step in example.steps],
    }


def build_separation(X: Any, y: Any, options: ReportOptions) -> dict[str, Any] | None:
    """How far apart the classes are, whatever the model."""
    rows = Sampled.of(X, y, MOST_SEPARATED, options.seed)
    n_classes = len(np.unique(rows.labels))
    if not 2 <= n_classes <= MOST_CLASSES:
        return None
    found = separation(rows.features, rows.labels, time_limit=10.0)
    near = np.sort(found.nearest_other_class)
    indices = np.linspace(0, len(near) - 1, min(len(near), 200)).round().astype(np.int64)
    return {
        "note": f"{rows.note} {NEARER}" if rows.note else "",
        "n_rows": len(rows.labels),
        "readings": plain_measurements(found.measurements()),
        "nearest_other_class": plain(near[indices]),
        "share": plain((len(near) - indices) / len(near)),
    }
