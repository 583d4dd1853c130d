"""Section on stability: how a model changes when training rows are left out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import Column
from steadytree.data.dataset import Sampled
from steadytree.distance.collection import PLACES, CollectionFacts
from steadytree.metrics.accuracy import label_indices
from steadytree.models.sklearn import from_sklearn
from steadytree.models.tree import Tree
from steadytree.reporting.formatting import number_text, one_line, plain, plain_measurements
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.wording import build_nodes
from steadytree.stability.refits import (
    KEPT,
    Refits,
    ScorecardRefits,
    columns_used,
    refits,
    thresholds,
)
from steadytree.stability.removal import is_repeatable
from steadytree.stability.sensitivity import Sensitivity, average_sensitivity

MOST_ROWS = 10_000
REPEATS = 20
SAMPLED = 20  # removals where leaving out every row takes too long
MOST_FEATURES = 8
MOST_SCORECARD_ROWS, SCORECARD_REPEATS = 2_000, 10  # each fit of a scorecard selects its settings
MOST_COLUMNS = 15
MOST_ALTERNATIVES = 3
SMALLER = "All {}s compared are fitted to this sample, not to all rows."


def build_stability(options: ReportOptions) -> dict[str, Any] | None:
    """Leave-one-out, refits, first splits, thresholds and alternative trees.

    None where the learner or its training rows are not known.
    """
    if options.learner is None or options.train is None:
        return None
    rows = Sampled.of(options.train, options.train.labels, MOST_ROWS, options.seed)
    again = refits(options.learner, rows.features, rows.labels, REPEATS, random_state=options.seed)
    if isinstance(again, ScorecardRefits):
        raise ValueError(
            "learner fits risk scores, but the model is a tree: pass the learner of the tree."
        )
    exact = is_repeatable(options.learner)
    found = average_sensitivity(
        options.learner, rows.features, rows.labels, repeats=None if exact else SAMPLED
    )
    return {
        "learner": type(options.learner).__name__,
        "note": f"{rows.note} {SMALLER.format('tree')}" if rows.note else "",
        "n_rows": len(rows.labels),
        "exact": found.exact,
        "n_removals": int(found.distances.shape[1]),
        "readings": plain_measurements(found.measurements),
        "refit_readings": plain_measurements(again.measurements()),
        "kept": KEPT,
        "distances": plain(again.distances),
        "worst": [
            {"row": int(removed[0]), "distance": distance}
            for removed, distance in found.worst(5)
            if distance > 0
        ],
        "first": _first_splits(again.facts),
        "cuts": tree_thresholds(again),
        "alternatives": _alternatives(found, rows),
    }


def build_scorecard_stability(options: ReportOptions) -> dict[str, Any] | None:
    """How many predictions and columns stay when a scorecard is refitted to part of the rows."""
    if options.learner is None or options.train is None:
        return None
    rows = Sampled.of(options.train, options.train.labels, MOST_SCORECARD_ROWS, options.seed)
    again = refits(
        options.learner, rows.features, rows.labels, SCORECARD_REPEATS, random_state=options.seed
    )
    if not isinstance(again, ScorecardRefits):
        raise ValueError("learner fits trees, but the model is a risk score: pass its own learner.")
    return {
        "learner": type(options.learner).__name__,
        "note": f"{rows.note} {SMALLER.format('risk score')}" if rows.note else "",
        "n_rows": len(rows.labels),
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


def scorecard_thresholds(again: ScorecardRefits) -> list[dict[str, Any]]:
    """Thresholds of the refitted scorecards, for the numeric columns of the scorecard itself."""
    shares, found = again.columns(), []
    for column in again.whole.space:
        own = thresholds(again.whole, column.name) if column.name in shares else np.empty(0)
        if len(own) and column.high > column.low:
            cuts = again.thresholds(column.name)
            found.append(_strip(column, cuts, own, shares[column.name]))
    return found


def _first_splits(facts: CollectionFacts) -> dict[str, Any]:
    """How often each feature is used at the root and its children."""
    shares = facts.first_splits / facts.n_trees
    names = [*(one_line(name) for name in facts.space.names), "(leaf)"]
    order = np.argsort(-shares.max(axis=0), kind="stable")[:MOST_FEATURES]
    kept = [int(k) for k in order if shares[:, k].max() > 0]
    return {
        "n_trees": facts.n_trees,
        "places": list(PLACES),
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
    columns = {
        column.name: (column, share) for column, share in zip(facts.space, shares, strict=True)
    }
    for name in facts.columns()["feature"].tolist():
        cuts, (column, share) = facts.thresholds.get(name, np.empty(0)), columns[name]
        if not len(cuts) or not column.high > column.low or len(found) == MOST_FEATURES:
            continue
        marked = np.empty(0) if own is None else _own_thresholds(own, name)
        found.append(_strip(column, cuts, marked, share))
    return found


def _strip(column: Column, cuts: Any, own: Any, share: float) -> dict[str, Any]:
    """Thresholds of one column, with the ends of its range as text."""
    tolerance = (column.high - column.low) * 1e-3
    return {
        "feature": one_line(column.name),
        "low": column.low,
        "high": column.high,
        "low_text": number_text(column.low, tolerance),
        "high_text": number_text(column.high, tolerance),
        "cuts": plain(cuts),
        "own": plain(own),
        "share": share,
    }


def _own_thresholds(tree: Tree, name: str) -> Any:
    found = tree.threshold[tree.feature == tree.space.names.index(name)]
    return np.sort(found[np.isfinite(found)])


def _alternatives(found: Sensitivity, rows: Sampled) -> list[dict[str, Any]]:
    """The most frequent other trees that are fitted without one row."""
    listed = [one for one in found.alternatives if one.distance > 0][:MOST_ALTERNATIVES]
    shown = []
    for one in listed:
        tree = one.tree if isinstance(one.tree, Tree) else from_sklearn(one.tree, rows.features)
        truth = label_indices(tree.classes, rows.labels)
        drawn = build_nodes(tree, rows.features, truth)
        shown.append({"share": one.share, "distance": one.distance, "tree": drawn})
    return shown
