"""Sections of the report: each from a model, its rows and the options to plain values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import Column
from steadytree.data.dataset import Dataset, Sampled
from steadytree.distance.tree_distance import POSITIONS, CollectionFacts
from steadytree.metrics.accuracy import accuracy
from steadytree.metrics.calibration import calibration
from steadytree.metrics.groups import by_group
from steadytree.models.black_box import BlackBox
from steadytree.models.documents import scorecard_to_dict
from steadytree.models.scorecard import Scorecard, as_scorecard
from steadytree.models.scorecard_tree import scorecard_to_tree
from steadytree.models.tree import Tree
from steadytree.reporting import formatting
from steadytree.reporting.diff import diff
from steadytree.reporting.formatting import label_text, one_line, plain, plain_measurements
from steadytree.reporting.interactive.sliders import (
    attacked_columns,
    candidates,
    changed_decisions,
    noise_steps,
)
from steadytree.reporting.leave_one_out import build_leave_one_out
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.text import scorecard_text
from steadytree.robustness.certificate import thin_curve
from steadytree.robustness.certify import certificate_of, used_columns
from steadytree.robustness.perturbation import NOISE_SHARE, Perturbation, usual_perturbation
from steadytree.stability.refits import (
    KEPT,
    Refits,
    ScorecardRefits,
    columns_used,
    refits,
    thresholds,
)
from steadytree.stability.removal import affordable

MOST_LISTED = 1_000  # rows whose prediction changed; all are counted
MOST_PRIVATE = 5_000  # rows for accuracy against epsilon
MOST_CERTIFIED = 20_000
MOST_SEPARATED = 3_000  # rows of which all pairs are compared
MOST_ATTACKS = 5
MOST_NAMES = 8
NEARER = "Over all rows the classes can only be closer."
MOST_ROWS, REPEATS, MOST_FEATURES = 10_000, 20, 8
MOST_SCORECARD_ROWS, SCORECARD_REPEATS = 2_000, 10  # each fit of a scorecard selects its settings
MOST_COLUMNS = 15
SMALLER = "All {}s compared are fitted to this sample, not to all rows."


def build_groups(
    fitted: Tree | Scorecard | BlackBox, X: Any, y: Any, options: ReportOptions
) -> list[dict[str, Any]]:
    """Accuracy and rates in each group of each grouping."""
    found = []
    for name, labels in options.groups.items():
        parts = None if name in options.protected else options.parts
        rows, truth, of = (X, y, labels) if parts is None else (parts, None, name)
        groups = by_group(fitted, rows, truth, of, one_line(name))
        shown = plain(groups.to_dict())
        for one in shown["groups"]:
            one["name"] = label_text(one["name"])
        for gap in shown["gaps"]:
            gap["low"], gap["high"] = label_text(gap["low"]), label_text(gap["high"])
        measurements = plain_measurements(groups.measurements())
        own = {"label": _label(shown, fitted), "by_name": name in options.protected}
        found.append(shown | own | {"readings": measurements})
    return found


def build_calibration(
    fitted: Tree | Scorecard | BlackBox, X: Any, y: Any, options: ReportOptions
) -> dict[str, Any]:
    """Predicted probabilities beside observed frequencies."""
    found = calibration(fitted, *((X, y) if options.parts is None else (options.parts, None)))
    shown, measurements = plain(found.to_dict()), plain_measurements(found.measurements())
    return shown | {"label": _label(shown, fitted), "readings": measurements}


def _label(shown: dict[str, Any], fitted: Tree | Scorecard | BlackBox) -> str:
    """The class that figures are about; empty above two classes, where they are about none."""
    return label_text(shown["label"]) if len(fitted.classes) == 2 else ""


def build_scorecard(X: Any, y: Any, options: ReportOptions) -> dict[str, Any] | None:
    """A risk score for the same decision, as text and plain values."""
    scorecard = as_scorecard(options.scorecard)
    if scorecard is None:
        return None
    table = scorecard.risk_table
    return {
        "text": scorecard_text(scorecard),
        "card": plain(scorecard_to_dict(scorecard)),
        "risks": [] if table is None else [plain(vars(row)) for row in table.rows],
        "readings": plain_measurements(accuracy(scorecard, X, y).measurements()),
    }


def build_change(
    model: Any, fitted: Tree | Scorecard, X: Any, y: Any, options: ReportOptions
) -> dict[str, Any] | None:
    """Changes since the previous tree; a small scorecard is written as a tree."""
    if options.previous is None:
        return None
    tree = scorecard_to_tree(fitted) if isinstance(fitted, Scorecard) else fitted
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
        from steadytree.privacy.simulation import epsilon_curve

        train = options.train or Dataset.of(X, y)
        rows = Sampled.of(train, train.labels, MOST_PRIVATE, options.seed)
        method = getattr(model, "method", "gibbs")
        points = epsilon_curve(schema, rows.features, rows.labels, method, options.seed)
        found["curve"] = [plain(vars(point)) for point in points]
        found["note"] = rows.note
    return found


def _ledger(ledger: Any) -> dict[str, Any]:
    entries = [
        {"what": one_line(entry.what), "mechanism": one_line(entry.mechanism)}
        | {"epsilon": plain(float(entry.epsilon))}
        for entry in ledger.entries
    ]
    sums = {"budget": ledger.budget, "spent": ledger.spent, "left": ledger.left}
    return {**sums, "entries": entries}


def build_robustness(
    model: Any, fitted: Tree | Scorecard, X: Any, y: Any, options: ReportOptions
) -> dict[str, Any] | None:
    """Certified accuracy by size, worst case, and the smallest changes that overturn predictions.

    The model itself is certified, since the tree of a scikit-learn model has kinds from these rows.
    """
    rows = Sampled.of(X, y, MOST_CERTIFIED, options.seed)
    noise = _noise(rows.features, options)
    if noise is None:
        return None
    found = certificate_of(model, rows.features, rows.labels, noise)
    sizes, shares = thin_curve(found.right, found.distance)
    return {
        "note": " ".join(filter(None, [rows.note, _fixed_note(fitted, noise)])),
        "notes": [one_line(one) for one in found.notes],
        "radii": _radii(fitted, noise),
        "n_rows": len(rows.labels),
        "stated": options.perturbation is not None,
        "usual_share": NOISE_SHARE,
        "perturbation": plain(noise.to_dict()),
        "readings": plain_measurements(found.measurements()),
        "n_attacked": len(found.attacked) if noise.budget is not None else None,
        "attacked_columns": [] if noise.budget is None else attacked_columns(found),
        "curve": {"size": plain(sizes), "certified_accuracy": plain(shares)},
        "steps": None if options.quick else noise_steps(found, fitted),
        "attacks": [
            {
                "row": example.row,
                "size": example.size,
                "answer": label_text(example.answer),
                "other": label_text(example.other),
                "steps": [one_line(str(step)) for step in example.steps],
            }
            for example in found.counterexamples(MOST_ATTACKS)
        ],
        **_search(model),
    }


def _search(model: Any) -> dict[str, Any]:
    """How the search for a robust tree went: rows kept by the best tree, and by any at most."""
    steps = getattr(model, "history_", None)
    if not steps or not hasattr(model, "optimality_gap_"):
        return {}
    total = model.objective_ + steps[-1].incumbent
    found = [(float(s.seconds), total - s.incumbent, total - s.bound) for s in steps]
    shown = dict(zip(("seconds", "kept", "bound"), zip(*found, strict=True), strict=True))
    return {"search": {**plain(shown), "gap": model.optimality_gap_, "status": model.status_}}


def _noise(X: Any, options: ReportOptions) -> Perturbation | None:
    """The stated perturbation or the default one; None for text and 0/1 columns alone."""
    noise = options.perturbation or usual_perturbation(X)
    return noise if options.perturbation is not None or noise.radius else None


def _fixed_note(fitted: Tree | Scorecard, noise: Perturbation) -> str:
    """A sentence where columns are used about that the noise does not touch."""
    noun = "tree" if isinstance(fitted, Tree) else "risk score"
    used = np.array(used_columns(fitted), np.int64)
    moves = noise.all_moves(fitted.space)
    fixed = used[np.isinf(np.minimum(moves.up, moves.down))[used]]
    if not len(fixed):
        return ""
    names = [one_line(fitted.space.names[k]) for k in fixed[:MOST_NAMES]]
    more = f" and {len(fixed) - MOST_NAMES} more" if len(fixed) > MOST_NAMES else ""
    return (
        f"The perturbation does not change {len(fixed)} of the {len(used)} columns that the {noun} "
        f"uses: {', '.join(names)}{more}."
    )


def _radii(fitted: Tree | Scorecard, noise: Perturbation) -> list[dict[str, str]]:
    """How far columns that the model uses may be off, in their own units."""
    if not isinstance(noise.radius, dict):
        return []
    used = [fitted.space.names[j] for j in used_columns(fitted)]
    moved = [(name, noise.radius.get(name)) for name in used]
    shown = [(name, radius) for name, radius in moved if radius][:MOST_COLUMNS]
    return [{"name": one_line(name), "radius": f"{radius:.3g}"} for name, radius in shown]


def build_separation(X: Any, y: Any, options: ReportOptions) -> dict[str, Any] | None:
    """How far apart the classes are, whatever the model."""
    from steadytree.robustness.separation import MOST_CLASSES, separation  # and its solvers

    rows = Sampled.of(X, y, MOST_SEPARATED, options.seed)
    if not 2 <= len(np.unique(rows.labels)) <= MOST_CLASSES:
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


def _refitted(
    options: ReportOptions, most_rows: int, repeats: int, noun: str
) -> tuple[Sampled, Any, dict[str, Any]] | None:
    """Training rows, refits to parts of them, and what both sections on stability show of that.

    None where the learner or its training rows are not known.
    """
    learner = options.learner
    if learner is None or options.train is None:
        return None
    rows = Sampled.of(options.train, options.train.labels, most_rows, options.seed)
    n = affordable(learner, len(rows.labels), repeats)
    whole = None if rows.note else options.whole  # which is fitted to all rows
    again = refits(learner, rows.features, rows.labels, n, random_state=options.seed, whole=whole)
    note = f"{rows.note} {SMALLER.format(noun)}" if rows.note else ""
    shown = {"learner": type(learner).__name__, "note": note, "n_rows": len(rows.labels)}
    return rows, again, shown


def build_stability(options: ReportOptions, fitted: Any, X: Any, y: Any) -> dict[str, Any] | None:
    """Leave-one-out, refits, first splits, thresholds and alternative trees."""
    refitted = _refitted(options, MOST_ROWS, REPEATS, "tree")
    if refitted is None:
        return None
    rows, again, shown = refitted
    if isinstance(again, ScorecardRefits):
        raise ValueError(
            "learner fits risk scores, but the model is a tree: pass the learner of the tree."
        )
    return (
        shown
        | build_leave_one_out(options, rows)
        | {
            "changed_decisions": changed_decisions(again.whole, again.trees, X),
            "candidates": candidates(fitted, again, X, y, _noise(X, options), options.seed),
            "refit_readings": plain_measurements(again.measurements()),
            "kept": KEPT,
            "distances": plain(again.distances),
            "first": _first_splits(again.facts),
            "cuts": tree_thresholds(again),
        }
    )


def build_scorecard_stability(
    options: ReportOptions, fitted: Any, X: Any, y: Any
) -> dict[str, Any] | None:
    """How many predictions and columns stay when a scorecard is refitted to part of the rows."""
    refitted = _refitted(options, MOST_SCORECARD_ROWS, SCORECARD_REPEATS, "risk score")
    if refitted is None:
        return None
    _, again, shown = refitted
    if not isinstance(again, ScorecardRefits):
        raise ValueError("learner fits trees, but the model is a risk score: pass its own learner.")
    return (
        shown
        | {
            "changed_decisions": changed_decisions(again.whole, again.scorecards, X),
            "n_cards": len(again.scorecards),
            "kept": KEPT,
            "readings": [],  # single rows are not left out
            "refit_readings": plain_measurements(again.measurements()),
            "columns": [
                {"name": one_line(name), "share": share, "own": name in columns_used(again.whole)}
                for name, share in list(again.columns().items())[:MOST_COLUMNS]
            ],
            "cuts": scorecard_thresholds(again),
        }
    )


def scorecard_thresholds(again: ScorecardRefits) -> list[dict[str, Any]]:
    """Thresholds of the refitted scorecards, for the numeric columns of the scorecard itself."""
    shares, found = again.columns(), []
    for column in again.whole.space:
        own = thresholds(again.whole, column.name) if column.name in shares else np.empty(0)
        if len(own) and column.high > column.low:
            values = again.thresholds(column.name)
            found.append(_strip(column, values, own, shares[column.name]))
    return found


def _first_splits(facts: CollectionFacts) -> dict[str, Any]:
    """How often each feature is used at the root and its children."""
    shares = facts.first_splits / facts.n_trees
    names = [*(one_line(name) for name in facts.space.names), "(leaf)"]
    order = np.argsort(-shares.max(axis=0), kind="stable")[:MOST_FEATURES]
    kept = [int(k) for k in order if shares[:, k].max() > 0]
    return {
        "n_trees": facts.n_trees,
        "places": list(POSITIONS),
        "features": [names[k] for k in kept],
        "shares": [plain(shares[:, k]) for k in kept],
    }


def tree_thresholds(again: Refits) -> list[dict[str, Any]]:
    """Thresholds of the most important features over all trees, and those of the tree itself."""
    trees = (again.whole, *again.trees)
    used = np.array([[len(_own_thresholds(t, n)) > 0 for n in t.space.names] for t in trees])
    return collection_thresholds(again.facts, used.mean(axis=0), again.whole)


def collection_thresholds(
    facts: CollectionFacts, shares: NDArray[np.float64], own: Tree | None = None
) -> list[dict[str, Any]]:
    """Thresholds of the most important features; those of the tree `own` are marked.

    `shares` holds the share of trees that use each feature.
    """
    found: list[dict[str, Any]] = []
    columns = dict(zip(facts.space.names, zip(facts.space, shares, strict=True), strict=True))
    for name in facts.columns()["feature"].tolist():
        values, (column, share) = facts.thresholds.get(name, np.empty(0)), columns[name]
        if len(values) and column.high > column.low:
            marked = np.empty(0) if own is None else _own_thresholds(own, name)
            found.append(_strip(column, values, marked, share))
    return found[:MOST_FEATURES]


def _strip(column: Column, values: Any, own: Any, share: float) -> dict[str, Any]:
    """Thresholds of one column, with the ends of its range as text."""
    tolerance = (column.high - column.low) * 1e-3
    return {
        "feature": one_line(column.name),
        "low": column.low,
        "high": column.high,
        "low_text": formatting.number_text(column.low, tolerance),
        "high_text": formatting.number_text(column.high, tolerance),
        "cuts": plain(values),
        "own": plain(own),
        "share": share,
    }


def _own_thresholds(tree: Tree, name: str) -> Any:
    found = tree.threshold[tree.feature == tree.space.names.index(name)]
    return np.sort(found[np.isfinite(found)])
