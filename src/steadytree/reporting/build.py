"""Build: everything a report shows, as one plain dict; renderers turn it into pages."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import NotATreeError
from steadytree.data.dataset import Dataset, hash_data
from steadytree.data.labels import label_array
from steadytree.data.table import Table
from steadytree.metrics.accuracy import Accuracy, accuracy, event_index, label_indices
from steadytree.metrics.complexity import Complexity, complexity
from steadytree.models.black_box import BlackBox, as_model
from steadytree.models.files import model_hash
from steadytree.models.scorecard import Scorecard
from steadytree.models.scorecard_tree import MOST_CONDITIONS
from steadytree.models.tree import Tree
from steadytree.reporting import sections
from steadytree.reporting.cases import build_cases
from steadytree.reporting.checks import is_missing
from steadytree.reporting.data_set import Origin, made_with
from steadytree.reporting.findings.rules import make_findings
from steadytree.reporting.findings.screening import protected_groups, screen
from steadytree.reporting.formatting import (
    label_text,
    one_line,
    percent_text,
    plain,
    plain_measurements,
    rows_text,
)
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.robustness import build_ensemble, build_robustness
from steadytree.reporting.stability import build_scorecard_stability, build_stability
from steadytree.reporting.wording import build_nodes

FORMAT = 1  # raised when the meaning of a field changes
NOUNS = {"tree": "decision tree", "card": "risk score", "black_box": "model"}


def build_report(
    model: Any, X: Any, y: Any, options: ReportOptions | None = None
) -> dict[str, Any]:
    """Everything a report shows, as plain values that JSON can hold."""
    options = options or ReportOptions()
    table = Table.read(X)
    table.check_not_empty()
    fitted = as_model(model, X)
    if options.perturbation is not None:  # shares of ranges are those of the training rows
        known = table if options.train is None else options.train.table
        options = replace(options, perturbation=options.perturbation.scaled_to(known))
    if options.previous is not None:
        _check_change(fitted)
    if options.positive is not None:
        event_index(fitted.classes, options.positive)  # refused before anything is measured
    given: Any = Dataset.of(X)
    if isinstance(fitted, BlackBox):  # which is asked about the sample alone
        options = replace(options, parts=None)
        found, size = accuracy(fitted, X, y), None
    else:
        given = table.select(fitted.space.names)
        every = (table, y) if options.parts is None else (options.parts, None)
        found, size = accuracy(fitted, *every), complexity(fitted, table)
    truth, n_of_class = label_indices(fitted.classes, y), found.confusion.sum(axis=1)
    origin = options.origin
    named = protected_groups(table, options.groups)
    options = replace(options, groups={**options.groups, **named}, protected=tuple(named))
    if origin.seen is None and _looks_like_training(fitted, n_of_class):
        origin = replace(origin, seen=True)
    kind = {Tree: "tree", Scorecard: "card", BlackBox: "black_box"}[type(fitted)]
    data = {
        "format": FORMAT,
        "title": one_line(_title(options, origin, kind)),
        "headline": _headline(found, _size_text(size, fitted), origin, kind) + _sampled(options),
        "readings": {
            "accuracy": plain_measurements(found.measurements()),
            "complexity": [] if size is None else plain_measurements(size.measurements()),
        },
        "confusion": {
            "labels": [label_text(label) for label in found.labels],
            "counts": found.confusion.tolist(),
        },
        "kind": kind,
        "tree": build_nodes(fitted, table, truth) if isinstance(fitted, Tree) else None,
        "model": {
            "kind": _kind_text(model),
            "sha256": model_hash(fitted),
            "learned": _how_learned(model),
            **({"reason": fitted.reason} if isinstance(fitted, BlackBox) else {}),
            "settings": _settings(model, options.learner),
        },
        "data": _data(fitted, table, n_of_class, hash_data(table, y)),
        "origin": origin.to_dict(),
        "made": made_with(options.date),
        "sign_off": None if options.sign_off is None else options.sign_off.to_dict(),
        **_sections(model, fitted, given, y, options),
    }
    # measurements of all sections together, where limits look them up
    for section in ("stability", "robustness", "separation", "calibration", "validation"):
        if data[section] is not None:
            data["readings"][section] = data[section]["readings"]
    if data["stability"] is not None:
        data["readings"]["refits"] = data["stability"]["refit_readings"]
    if isinstance(fitted, BlackBox):
        data["cases"] = None
    else:
        is_private = data["privacy"] is not None
        data["cases"] = build_cases(fitted, table, truth, options, is_private)
    data["screening"] = screen(
        fitted,
        table,
        truth,
        data["confusion"]["counts"],
        replace(options, origin=origin),
        data["robustness"],
    )
    data["findings"] = make_findings(data)
    data["verdict"] = [] if options.limits is None else options.limits.check(data)
    return data


def _kind_text(model: Any) -> str:
    """Name of a model's class, and of what a search or pipeline ends in."""
    inside = getattr(model, "best_estimator_", model)
    last = inside.steps[-1][1] if hasattr(inside, "steps") else inside
    names = dict.fromkeys(type(one).__name__ for one in (model, inside, last))
    return " of ".join(names)


def _title(options: ReportOptions, origin: Origin, kind: str) -> str:
    signed = "" if options.sign_off is None else options.sign_off.title
    return signed or options.title or origin.data or f"A {NOUNS[kind]}"


def _settings(model: Any, learner: Any) -> dict[str, str]:
    """Every setting of the learner as text; empty where the model is a file."""
    source = model if hasattr(model, "get_params") else learner
    if not hasattr(source, "get_params"):
        return {}
    found = source.get_params(deep=False)
    plain_types = (str, int, float, bool, list, tuple, dict, type(None))
    return {
        name: one_line(repr(value) if isinstance(value, plain_types) else type(value).__name__)[
            :200
        ]
        for name, value in found.items()
    }


def _how_learned(model: Any) -> str:
    """What the learner chose and why, as far as it says so."""
    agreement = getattr(model, "agreement_", None)
    if agreement is not None:
        origin = model.candidates_["origin"][model.chosen_]
        return (
            f"chosen among {len(model.trees_)} learners by score, changed predictions "
            f"and distance: {origin}, whose refits agree on {percent_text(agreement)} of the rows "
            "held out."
        )
    reason = getattr(getattr(model, "choice_", None), "reason", "")
    return str(reason)


def _check_change(fitted: Tree | Scorecard | BlackBox) -> None:
    """Refuse a black box, and a risk score with too many conditions to be written as a tree."""
    if isinstance(fitted, BlackBox):
        raise NotATreeError(f"previous: changes are shown between trees. {fitted.reason}")
    if isinstance(fitted, Scorecard) and fitted.n_conditions > MOST_CONDITIONS:
        raise ValueError(
            f"previous: changes are shown for trees and for risk scores of up to {MOST_CONDITIONS} "
            f"conditions, but this one has {fitted.n_conditions}: omit previous."
        )


def _sections(
    model: Any, fitted: Tree | Scorecard | BlackBox, X: Any, y: Any, options: ReportOptions
) -> dict[str, Any]:
    """The sections that need options; None for those left out."""
    rows, again = (X, label_array(y)), build_stability
    if isinstance(fitted, Scorecard):
        options, again = replace(options, scorecard=model), build_scorecard_stability
    full = not options.quick
    robustness = stability = change = None
    if not isinstance(fitted, BlackBox) and (
        full or options.perturbation is not None
    ):  # a stated one is always measured
        options.on_progress("measuring robustness", 0.55)
        robustness = build_robustness(model, fitted, *rows, options)
    ensemble = None
    if isinstance(fitted, BlackBox) and (full or options.perturbation is not None):
        options.on_progress("verifying the ensemble", 0.55)
        ensemble = build_ensemble(model, *rows, options)
    options.on_progress("measuring separability", 0.6)
    separation = sections.build_separation(*rows, options) if full else None
    options.on_progress("measuring stability under retraining", 0.65)
    if not isinstance(fitted, BlackBox):
        stability = again(options, fitted, *rows) if full else None
        change = sections.build_change(model, fitted, *rows, options)
    options.on_progress("measuring validity", 0.9)
    return {
        "robustness": robustness,
        "ensemble": ensemble,
        "separation": separation,
        "stability": stability,
        "change": change,
        "comparison": None if options.comparison is None else plain(options.comparison),
        "card": sections.build_scorecard(*rows, options),
        "privacy": sections.build_privacy(model, *rows, options),
        "groups": sections.build_groups(fitted, *rows, options),
        "calibration": sections.build_calibration(fitted, *rows, options),
        "validation": sections.build_validation(fitted, *rows, options),
    }


def _headline(found: Accuracy, size: str, origin: Origin, kind: str) -> str:
    correct, baseline, *_ = plain_measurements(found.measurements())
    rows = {
        True: f"the {rows_text(found.n_rows)} it was fitted to",
        False: f"{rows_text(found.n_rows)} held out",
        None: f"the {rows_text(found.n_rows)} given",
    }[origin.seen]
    label = label_text(found.baseline_label)
    return (
        f"The {NOUNS[kind]} is correct on {correct['shown']} of {rows} (95 % interval "
        f"{correct['shown_interval']}); always predicting “{label}” would be correct on "
        f"{baseline['shown']}. {size}"
    )


def _sampled(options: ReportOptions) -> str:
    """Which figures are of all rows, where those in memory are a sample."""
    if not options.sampled:
        return ""
    if options.parts is None:
        return f" The rows are {options.sampled}."
    return (
        " Accuracy, calibration, groups that were asked for and numbers of rows are of all rows; "
        f"everything else is measured on {options.sampled}."
    )


def _size_text(size: Complexity | None, fitted: Tree | Scorecard | BlackBox) -> str:
    if size is None:
        return "It is neither a single tree nor a risk score, so its splits are not shown."
    if isinstance(fitted, Scorecard):
        variables = (
            "1 variable" if len(fitted.variables) == 1 else f"{len(fitted.variables)} variables"
        )
        return (
            f"It has {variables} in {fitted.n_bands} bands and {size.n_leaves:,} different totals."
        )
    leaves = f"{size.n_leaves:,} {'leaf' if size.n_leaves == 1 else 'leaves'}"
    return (
        f"It has {leaves} and depth {size.depth}; a row passes {size.mean_questions:.1f} "
        "splits on average."
    )


def _data(
    fitted: Tree | Scorecard | BlackBox, table: Table, n_of_class: NDArray[np.int64], sha256: str
) -> dict[str, Any]:
    names = table.names or _names_of(fitted, table)
    missing = [int(is_missing(column).sum()) for column in table.columns]
    n_rows, kinds = int(n_of_class.sum()), _kinds_of(fitted, table)
    return {
        "n_rows": n_rows,
        "n_columns": table.n_columns,
        "n_missing": sum(missing),
        "share_missing": sum(missing) / (table.n_rows * table.n_columns),
        "columns": [
            {"name": one_line(name), "kind": kinds.get(name, "not used"), "n_missing": n}
            for name, n in zip(names, missing, strict=True)
        ],
        "classes": [
            {"label": label_text(label), "n_rows": n, "share": n / n_rows}
            for label, n in zip(fitted.classes.tolist(), n_of_class.tolist(), strict=True)
        ],
        "sha256": sha256,
    }


def _names_of(fitted: Tree | Scorecard | BlackBox, table: Table) -> tuple[str, ...]:
    if isinstance(fitted, BlackBox):
        return fitted.names or tuple(f"x{j}" for j in range(table.n_columns))
    return fitted.space.names


def _kinds_of(fitted: Tree | Scorecard | BlackBox, table: Table) -> dict[str, str]:
    """Kinds of the columns that the model was fitted to; of a black box's, as far as rows tell."""
    if not isinstance(fitted, BlackBox):
        return {column.name: column.kind for column in fitted.space}
    names = table.names or _names_of(fitted, table)
    kinds = ("categorical" if column.dtype == object else "numeric" for column in table.columns)
    own = fitted.names or names
    return {name: kind for name, kind in zip(names, kinds, strict=True) if name in own}


def _looks_like_training(fitted: Tree | Scorecard | BlackBox, counts: NDArray[np.int64]) -> bool:
    """Whether there are as many rows of each class as in fitting: most likely the same rows."""
    if isinstance(fitted, BlackBox):  # which keeps no counts
        return False
    n_all = int(counts.sum())
    if isinstance(fitted, Tree):
        return n_all > 1 and bool(np.allclose(fitted.value[0] * fitted.weight[0], counts))
    table = fitted.risk_table
    if table is None or n_all < 2:
        return False
    # the table counts the second of two classes, or each of more
    known, n_rows = dict.fromkeys((row.label for row in table.rows), 0.0), 0.0
    for row in table.rows:
        known[row.label] += row.n_label
        n_rows += row.n_rows / (1 if fitted.is_binary else len(fitted.classes))
    own = dict(zip(fitted.classes.tolist(), counts, strict=True))
    same = all(np.isclose(known[label], own[label]) for label in known)
    return same and bool(np.isclose(n_rows, n_all))
