"""Sections of the report: each from a model, its rows and the options to plain values."""

from typing import Any

import numpy as np

from steadytree._base.exceptions import UnsuitableDataError
from steadytree.data.dataset import Dataset, Sampled
from steadytree.metrics.accuracy import Answers, accuracy, answer_rows, event_index
from steadytree.metrics.calibration import calibration
from steadytree.metrics.groups import by_group
from steadytree.metrics.validation import validate_answers
from steadytree.models.black_box import BlackBox
from steadytree.models.documents import scorecard_to_dict
from steadytree.models.scorecard import Scorecard, as_scorecard
from steadytree.models.scorecard_tree import scorecard_to_tree
from steadytree.models.tree import Tree
from steadytree.reporting.diff import diff
from steadytree.reporting.formatting import label_text, one_line, plain, plain_measurements
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.text import scorecard_text
from steadytree.stability.optimism import optimism

MOST_LISTED = 1_000  # rows whose prediction changed; all are counted
MOST_PRIVATE = 5_000  # rows for accuracy against epsilon
MOST_SEPARATED = 3_000  # rows of which all pairs are compared
NEARER = "Over all rows the classes can only be closer."
MOST_CORRECTED, REFITS = 1_000, 5  # rows and refits for the optimism
SEVERAL = (
    "The model has {} classes. Ranking, cut-offs and usefulness are about one event: name it with "
    "--positive (in Python, positive=) to measure it against all other classes."
)
ONE_CLASS = "All rows are of one class, so there is nothing to rank and no error to count."
NO_CONTRAST = "All rows or no row has the event, so there is nothing to rank and no error to count."
ANSWERS_ONLY = "The model gives predictions and no risks."
SAMPLED = "All models compared are fitted to this sample: on all rows the optimism is smaller."


def build_groups(
    fitted: Tree | Scorecard | BlackBox, X: Any, y: Any, options: ReportOptions
) -> list[dict[str, Any]]:
    """Accuracy and rates in each group of each grouping."""
    found = []
    for name, labels in options.groups.items():
        parts = None if name in options.protected else options.parts
        rows, truth, of = (X, y, labels) if parts is None else (parts, None, name)
        groups = by_group(fitted, rows, truth, of, one_line(name), options.positive)
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
    rows, truth = (X, y) if options.parts is None else (options.parts, None)
    found = calibration(fitted, rows, truth, positive=options.positive)
    shown, measurements = plain(found.to_dict()), plain_measurements(found.measurements())
    return shown | {"label": _label(shown, fitted), "readings": measurements}


def _label(shown: dict[str, Any], fitted: Tree | Scorecard | BlackBox) -> str:
    """The class that figures are about; empty above two classes, where they are about none."""
    return label_text(shown["label"]) if len(fitted.classes) == 2 else ""


def build_validation(model: Any, X: Any, y: Any, options: ReportOptions) -> dict[str, Any]:
    """Figures of the risk of the event; else a sentence that says why not."""
    found = answer_rows(model, X, y).with_event(options.positive)
    scorecard = as_scorecard(model)
    why = ""
    two = len(found.classes) == 2
    if not two and options.positive is None:
        why = SEVERAL.format(len(found.classes))
    elif len(set(found.truth.tolist())) < 2:
        why = ONE_CLASS
    elif not two and not _has_both(found, options.positive):
        why = NO_CONTRAST
    elif scorecard is not None and not scorecard.gives_risks:
        why = ANSWERS_ONLY
    if why:
        return {"why_not": why, "readings": []}
    result = validate_answers(found, options.positive)
    return {
        "why_not": "",
        "readings": plain_measurements(result.measurements()),
        "optimism": None if options.quick or not two else _optimism(options),
        **plain(result.to_dict()),
        "label": label_text(result.label),
    }


def _has_both(found: Answers, positive: Any) -> bool:
    """Whether there are rows with the event and rows without it."""
    event = found.truth == event_index(found.classes, positive)
    return bool(event.any() and not event.all())


def _optimism(options: ReportOptions) -> dict[str, Any] | None:
    """Figures corrected by refits to bootstrap samples.

    None without learner and training rows, and where rows held out show the same directly.
    """
    if options.learner is None or options.train is None or options.origin.seen is False:
        return None
    rows = Sampled.of(options.train, options.train.labels, MOST_CORRECTED, options.seed)
    try:
        found = optimism(
            options.learner,
            rows.features,
            rows.labels,
            REFITS,
            random_state=options.seed,
            positive=options.positive,
        )
    except UnsuitableDataError:  # a learner that cannot take a sample of the rows
        return None
    note = f"{rows.note} {SAMPLED}" if rows.note else ""
    readings = plain_measurements(found.measurements())
    return {"n_refits": REFITS, "note": note, "readings": readings}


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
