"""Stability in a report: what is left out or fitted again, and how much of the model changes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import Column
from steadytree.data.dataset import Sampled
from steadytree.distance.tree_distance import POSITIONS, CollectionFacts
from steadytree.metrics.accuracy import accuracy, label_indices
from steadytree.models.scorecard import Scorecard
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.reporting.formatting import number_text, one_line, plain, plain_measurements
from steadytree.reporting.options import RULES, ReportOptions
from steadytree.reporting.robustness import MOST_COLUMNS, noise_of
from steadytree.reporting.wording import build_nodes
from steadytree.robustness.certify import certificate_of
from steadytree.robustness.perturbation import Perturbation
from steadytree.stability.refits import (
    KEPT,
    Refits,
    ScorecardRefits,
    columns_used,
    refits,
    thresholds,
)
from steadytree.stability.removal import affordable, is_repeatable
from steadytree.stability.sensitivity import Sensitivity, average_sensitivity

MOST_ROWS, REPEATS, MOST_FEATURES = 10_000, 20, 8
MOST_SCORECARD_ROWS, SCORECARD_REPEATS = 2_000, 10  # each fit of a scorecard selects its settings
SMALLER = "All {}s compared are fitted to this sample, not to all rows."
SAMPLED = 20  # removals where leaving out every row takes too long
MOST_ALTERNATIVES = 3
SIZES = (2, 3, 4, 6, 8, 12, 16)  # leaves of the smaller trees
MOST_CERTIFIED = 5_000  # rows that a smaller tree is certified on


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
        | _leave_one_out(options, rows)
        | {
            "changed_decisions": _changed_decisions(again.whole, again.trees, X),
            "candidates": candidates(fitted, again, X, y, noise_of(X, options), options.seed),
            "refit_readings": plain_measurements(again.measurements()),
            "kept": KEPT,
            "distances": plain(again.distances),
            "first": _first_splits(again.facts),
            "cuts": tree_thresholds(again),
        }
    )


def _leave_one_out(options: ReportOptions, rows: Sampled) -> dict[str, Any]:
    """How the tree changes without a single row.

    Where few removals are affordable they tell little: they are then made for a limit only.
    """
    learner, limits = options.learner, options.limits
    n = affordable(learner, len(rows.labels), SAMPLED)
    limited = limits is not None and any(
        RULES[name].section == "stability" for name in limits.values
    )
    if n < SAMPLED and not limited:
        return {"exact": False, "n_removals": 0, "readings": [], "worst": [], "alternatives": []}
    repeats = None if is_repeatable(learner) else n
    found = average_sensitivity(learner, rows.features, rows.labels, repeats=repeats)
    return {
        "exact": found.exact,
        "n_removals": int(found.distances.shape[1]),
        "readings": plain_measurements(found.measurements),
        "worst": [
            {"row": int(removed[0]), "distance": distance}
            for removed, distance in found.worst(5)
            if distance > 0
        ],
        "alternatives": _alternatives(found, rows),
    }


def _alternatives(found: Sensitivity, rows: Sampled) -> list[dict[str, Any]]:
    """The most frequent other trees that are fitted without one row."""
    shown = []
    for one in [one for one in found.alternatives if one.distance > 0][:MOST_ALTERNATIVES]:
        tree = as_tree(one.tree, rows.features)
        nodes = build_nodes(tree, rows.features, label_indices(tree.classes, rows.labels))
        shown.append({"share": one.share, "distance": one.distance, "tree": nodes})
    return shown


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
            "changed_decisions": _changed_decisions(again.whole, again.scorecards, X),
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


def candidates(
    fitted: Tree, again: Refits, X: Any, y: Any, noise: Perturbation | None, seed: int
) -> list[dict[str, Any]]:
    """Trees beside the model, from the most accurate to the most stable; none is fitted again.

    The tree pruned to fewer leaves: retrained trees are pruned alike, so that the share of changed
    decisions is that of the learner followed by the pruning. And the retrained trees themselves:
    some decide more like the others than the model does. A tree that another one equals or beats
    in both is left out, but for the model itself.
    """
    sizes = [size for size in SIZES if size < fitted.n_leaves]
    every: list[tuple[Tree, Tree, list[Tree]]] = [(fitted, again.whole, list(again.trees))]
    for size in sizes:
        others = [prune_to(one, size) for one in again.trees]
        every.append((prune_to(fitted, size), prune_to(again.whole, size), others))
    for k, tree in enumerate(again.trees):
        others = [again.whole, *again.trees[:k], *again.trees[k + 1 :]]
        every.append((tree, tree, others))
    found: list[dict[str, Any]] = [
        {
            "n_leaves": tree.n_leaves,
            "is_model": tree is fitted,
            "is_refit": k > len(sizes),
            "accuracy": accuracy(tree, X, y).accuracy,
            "changed_decisions": _changed_decisions(whole, others, X),
        }
        for k, (tree, whole, others) in enumerate(every)
    ]
    kept = [k for k, one in enumerate(found) if k == 0 or not _is_beaten(one, found, k)]
    if len(kept) == 1:
        return []
    rows = Sampled.of(X, y, MOST_CERTIFIED, seed)
    for k in kept:
        tree, worst = every[k][0], None
        if noise is not None and noise.budget is not None:
            worst = certificate_of(tree, rows.features, rows.labels, noise).worst_case_accuracy
        nodes = build_nodes(tree, X, label_indices(tree.classes, y))
        found[k] |= {"worst_case_accuracy": worst, "tree": nodes}
    chosen = [found[k] for k in kept]
    return sorted(chosen, key=lambda one: (-one["accuracy"], -one["changed_decisions"]))


def _changed_decisions(
    whole: Tree | Scorecard, others: Sequence[Tree | Scorecard], X: Any
) -> float:
    """Mean share of the predictions changed by retraining."""
    own = whole.predict(X)
    return float(np.mean([np.mean(one.predict(X) != own) for one in others]))


def _is_beaten(one: dict[str, Any], others: list[dict[str, Any]], k: int) -> bool:
    """Whether another tree is at least as accurate and as steady, and better, smaller or first."""
    own = (one["accuracy"], -one["changed_decisions"], -one["n_leaves"], -k)
    figures = [
        (x["accuracy"], -x["changed_decisions"], -x["n_leaves"], -i) for i, x in enumerate(others)
    ]
    return any(x > own and x[0] >= own[0] and x[1] >= own[1] for x in figures)


def prune_to(tree: Tree, n_leaves: int) -> Tree:
    """The tree with at most so many leaves, pruned where the Gini impurity rises least."""
    impurity = tree.weight * (1.0 - (tree.value**2).sum(axis=1))
    leaf, pruned = tree.is_leaf.copy(), []
    while leaf[_reached(tree, leaf)].sum() > n_leaves:
        inner = [node for node in _reached(tree, leaf) if not leaf[node]]
        ends = [node for node in inner if leaf[tree.left[node]] and leaf[tree.right[node]]]
        rise = [
            impurity[node] - impurity[tree.left[node]] - impurity[tree.right[node]] for node in ends
        ]
        node = ends[int(np.argmin(rise))]
        leaf[node] = True
        pruned.append(node)
    return tree.restrict(pruned)


def _reached(tree: Tree, leaf: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Nodes from the root down to the given leaves."""
    reached = np.zeros(tree.n_nodes, bool)
    reached[0] = True
    for node in range(tree.n_nodes):
        if reached[node] and not leaf[node]:
            reached[[tree.left[node], tree.right[node]]] = True
    return np.flatnonzero(reached)


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
        "low_text": number_text(column.low, tolerance),
        "high_text": number_text(column.high, tolerance),
        "cuts": plain(values),
        "own": plain(own),
        "share": share,
    }


def _own_thresholds(tree: Tree, name: str) -> Any:
    found = tree.threshold[tree.feature == tree.space.names.index(name)]
    return np.sort(found[np.isfinite(found)])
