"""Collect: a model and data become one plain dict; renderers turn that into pages."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.dataset import hash_data
from steadytree.data.labels import label_array
from steadytree.data.table import Table
from steadytree.metrics.accuracy import Accuracy, accuracy, label_indices
from steadytree.metrics.complexity import Complexity, complexity
from steadytree.models.export import MOST_CONDITIONS
from steadytree.models.files import card_hash, tree_hash
from steadytree.models.scorecard import Scorecard, as_card
from steadytree.models.sklearn import as_tree, from_sklearn
from steadytree.models.tree import Tree
from steadytree.reporting.data_set import Origin, made_with
from steadytree.reporting.formatting import (
    interval_text,
    plain,
    plain_reading,
    reading_text,
    rows_text,
)
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.sections.model import (
    collect_calibration,
    collect_card,
    collect_change,
    collect_groups,
    collect_privacy,
)
from steadytree.reporting.sections.robustness import collect_robustness, collect_separation
from steadytree.reporting.sections.stability import collect_card_stability, collect_stability
from steadytree.reporting.wording import collect_tree, label_text, one_line

FORMAT = 1  # raised when the meaning of a field changes
NOUNS = {"tree": "decision tree", "card": "card of points"}


def collect(
    model: Any,
    X: Any,
    y: Any,
    title: str | None = None,
    date: str | None = None,
    origin: Origin | None = None,
    evidence: ReportOptions | None = None,
) -> dict[str, Any]:
    """Everything a report shows, as plain values that JSON can hold.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner or fitted scikit-learn tree
    X, y : the rows to judge it on, and their classes
    title : str, optional
    date : str, optional
        Date of the report; today where it is not given.
    origin : Origin, optional
    evidence : ReportOptions, optional
        What else to look at.

    Returns
    -------
    data : dict
    """
    table = Table.read(X)
    table.check_not_empty()
    judged, evidence = _readable(model, table), evidence or ReportOptions()
    if evidence.previous is not None:
        _check_change(judged)
    found = accuracy(judged, table, y)
    size = complexity(judged, table)
    truth = label_indices(judged.classes, y)
    origin = origin or Origin()
    if origin.seen is None and _looks_like_training(judged, truth):
        origin = Origin(**{**asdict(origin), "seen": True})
    shown = _shown(model, judged, table, truth)
    data = {
        "format": FORMAT,
        "title": one_line(title or origin.data or f"A {NOUNS[shown['kind']]}"),
        "headline": _headline(found, size, origin, shown["kind"]),
        "readings": {
            "accuracy": [plain_reading(reading) for reading in found.measurements()],
            "complexity": [plain_reading(reading) for reading in size.measurements()],
        },
        "confusion": _confusion(found),
        **shown,
        "data": _data(judged, table, truth, hash_data(table, y)),
        "origin": origin.to_dict(),
        "made": made_with(date),
        **_sections(model, judged, table.select(judged.space.names), y, evidence),
    }
    _add_readings(data)
    data["verdict"] = [] if evidence.limits is None else evidence.limits.check(data)
    return data


def _check_change(judged: Tree | Scorecard) -> None:
    """What changed is told of trees: a card must be small enough to be told as one."""
    if isinstance(judged, Scorecard) and judged.n_conditions > MOST_CONDITIONS:
        raise ValueError(
            f"previous: what changed is told of trees, and of cards of up to {MOST_CONDITIONS} "
            f"conditions, but this card has {judged.n_conditions}: leave the previous one out."
        )


def _shown(
    model: Any, judged: Tree | Scorecard, table: Table, truth: NDArray[np.int64]
) -> dict[str, Any]:
    """What is judged: a tree with its nodes, or a card, whose section has it; with its hash."""
    if isinstance(judged, Tree):
        kind, tree, sha256 = "tree", collect_tree(judged, table, truth), tree_hash(judged)
    else:
        kind, tree, sha256 = "card", None, card_hash(judged)
    return {"kind": kind, "tree": tree, "model": {"kind": type(model).__name__, "sha256": sha256}}


def _sections(
    model: Any, judged: Tree | Scorecard, table: Table, y: Any, evidence: ReportOptions
) -> dict[str, Any]:
    """What is found with further evidence; None where a section has none."""
    labels = label_array(y)
    if isinstance(judged, Scorecard):
        evidence, again = replace(evidence, card=model), collect_card_stability
    else:
        again = collect_stability
    measured = not evidence.quick
    robust = measured or evidence.perturbation is not None  # stated noise is measured in any case
    return {
        "robustness": collect_robustness(model, judged, table, labels, evidence)
        if robust
        else None,
        "separation": collect_separation(table, labels, evidence) if measured else None,
        "stability": again(evidence) if measured else None,
        "change": collect_change(judged, table, labels, evidence),
        "comparison": None if evidence.comparison is None else plain(evidence.comparison),
        "card": collect_card(table, labels, evidence),
        "privacy": collect_privacy(model, table, labels, evidence),
        "groups": collect_groups(judged, table, labels, evidence),
        "calibration": collect_calibration(judged, table, labels),
    }


def _add_readings(data: dict[str, Any]) -> None:
    """List the readings of the sections in one place, where limits look for them."""
    for section in ("stability", "robustness", "separation", "calibration"):
        if data[section] is not None:
            data["readings"][section] = data[section]["readings"]
    if data["stability"] is not None:
        data["readings"]["refits"] = data["stability"]["refit_readings"]


def _readable(model: Any, table: Table) -> Tree | Scorecard:
    """The tree or card inside; a tree of scikit-learn's gets names and bounds from the rows."""
    card = as_card(model)
    if card is not None:
        return card
    ours = isinstance(model, Tree) or isinstance(getattr(model, "tree_", None), Tree)
    return as_tree(model) if ours else from_sklearn(model, table)


def _headline(found: Accuracy, size: Complexity, origin: Origin, kind: str) -> str:
    right, baseline, *_ = found.measurements()
    rows = {
        True: f"{rows_text(found.n_rows)} it was fitted on",
        False: f"{rows_text(found.n_rows)} it had not seen",
        None: f"the {rows_text(found.n_rows)} given",
    }[origin.seen]
    label = label_text(found.baseline_label)
    size_text = (
        f"It adds up points for {size.depth} conditions on {size.n_features} columns, and has "
        f"{size.n_leaves:,} different totals."
        if kind == "card"
        else f"It asks {size.mean_questions:.1f} questions of a row on average, {size.depth} at "
        f"most, and has {size.n_leaves:,} different ends."
    )
    return (
        f"The {kind} is right on {reading_text(right)} of {rows} "
        f"(95 % interval {interval_text(right)}); always answering “{label}” would be right on "
        f"{reading_text(baseline)}. {size_text}"
    )


def _confusion(found: Accuracy) -> dict[str, Any]:
    labels = [label_text(label) for label in found.labels]
    return {"labels": labels, "counts": found.confusion.tolist()}


def _data(
    judged: Tree | Scorecard, table: Table, truth: NDArray[np.int64], sha256: str
) -> dict[str, Any]:
    names = table.names or judged.space.names
    missing = [_n_missing(column) for column in table.columns]
    rows = np.bincount(truth, minlength=len(judged.classes)).tolist()
    kinds = {column.name: column.kind for column in judged.space}
    return {
        "n_rows": table.n_rows,
        "n_columns": table.n_columns,
        "n_missing": sum(missing),
        "share_missing": sum(missing) / (table.n_rows * table.n_columns),
        "columns": [
            {"name": one_line(name), "kind": kinds.get(name, "not used"), "n_missing": gone}
            for name, gone in zip(names, missing, strict=True)
        ],
        "classes": [
            {"label": label_text(label), "n_rows": n, "share": n / table.n_rows}
            for label, n in zip(judged.classes.tolist(), rows, strict=True)
        ],
        "sha256": sha256,
    }


def _n_missing(column: NDArray[Any]) -> int:
    if column.dtype == object:
        return sum(value is None for value in column.tolist())
    return int(np.isnan(column).sum())


def _looks_like_training(judged: Tree | Scorecard, truth: NDArray[np.int64]) -> bool:
    """Whether rows and classes are as many as in fitting: then they most likely are the same."""
    counts = np.bincount(truth, minlength=len(judged.classes))
    if isinstance(judged, Tree):
        return len(truth) > 1 and bool(np.allclose(judged.value[0] * judged.weight[0], counts))
    table = judged.risk_table
    if table is None or len(truth) < 2:
        return False
    # of two classes the table counts the second, of more all: rows and these must be as many
    known, n_rows = dict.fromkeys((row.label for row in table.rows), 0.0), 0.0
    for row in table.rows:
        known[row.label] += row.n_label
        n_rows += row.n_rows / (1 if judged.is_binary else len(judged.classes))
    own = dict(zip(judged.classes.tolist(), counts, strict=True))
    same = all(np.isclose(known[label], own[label]) for label in known)
    return same and bool(np.isclose(n_rows, len(truth)))
