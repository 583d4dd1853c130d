"""Section stability: what of a tree stays when rows are left out."""

from typing import Any

import numpy as np

from steadytree.data.column import Column
from steadytree.distance.collection import PLACES, CollectionFacts
from steadytree.metrics.accuracy import label_indices
from steadytree.metrics.sampling import Sampled
from steadytree.models.sklearn import from_sklearn
from steadytree.models.tree import Tree
from steadytree.reporting.formatting import number_text, plain, plain_reading
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.wording import collect_tree, one_line
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
SAMPLED = 20  # removals where trying all rows takes too long
MOST_FEATURES = 8
MOST_CARD_ROWS, CARD_REPEATS = 2_000, 10  # a card chooses its settings anew at each fit
MOST_COLUMNS = 15
MOST_ALTERNATIVES = 3
SMALLER = "The trees compared are learned from those, not from all rows."


def collect_stability(evidence: ReportOptions) -> dict[str, Any] | None:
    """Exact leave-one-out, refits, first questions, cut points and alternative trees.

    None where nobody says how the tree was learned, and from which rows.
    """
    if evidence.learner is None or evidence.train is None:
        return None
    rows = Sampled.of(*evidence.train, MOST_ROWS, evidence.seed)
    again = refits(
        evidence.learner, rows.features, rows.labels, REPEATS, random_state=evidence.seed
    )
    if isinstance(again, ScorecardRefits):
        raise ValueError("learner gives cards, but a tree is judged: pass the one that gave it.")
    exact = is_repeatable(evidence.learner)
    found = average_sensitivity(
        evidence.learner, rows.features, rows.labels, repeats=None if exact else SAMPLED
    )
    return {
        "learner": type(evidence.learner).__name__,
        "note": f"{rows.note} {SMALLER}" if rows.note else "",
        "n_rows": len(rows.labels),
        "exact": found.exact,
        "n_removals": int(found.distances.shape[1]),
        "readings": [plain_reading(reading) for reading in found.measurements],
        "refit_readings": [plain_reading(reading) for reading in again.measurements()],
        "kept": KEPT,
        "distances": plain(again.distances),
        "worst": [
            {"row": int(removed[0]), "distance": distance}
            for removed, distance in found.worst(5)
            if distance > 0
        ],
        "first": _first_questions(again.facts),
        "cuts": collect_cut_points(again),
        "alternatives": _alternatives(found, rows),
    }


def collect_card_stability(evidence: ReportOptions) -> dict[str, Any] | None:
    """How many answers and columns of a card stay when it is fitted again to part of the rows."""
    if evidence.learner is None or evidence.train is None:
        return None
    rows = Sampled.of(*evidence.train, MOST_CARD_ROWS, evidence.seed)
    again = refits(
        evidence.learner, rows.features, rows.labels, CARD_REPEATS, random_state=evidence.seed
    )
    if not isinstance(again, ScorecardRefits):
        raise ValueError("learner gives trees, but a card is judged: pass the one that gave it.")
    return {
        "learner": type(evidence.learner).__name__,
        "note": f"{rows.note} {SMALLER.replace('trees', 'cards')}" if rows.note else "",
        "n_rows": len(rows.labels),
        "n_cards": len(again.scorecards),
        "kept": KEPT,
        "readings": [],  # nothing is said of single rows left out
        "refit_readings": [plain_reading(reading) for reading in again.measurements()],
        "columns": [
            {"name": one_line(name), "share": share, "own": name in columns_used(again.whole)}
            for name, share in list(again.columns().items())[:MOST_COLUMNS]
        ],
        "cuts": collect_card_cuts(again),
    }


def collect_card_cuts(again: ScorecardRefits) -> list[dict[str, Any]]:
    """Where the cards cut the columns of numbers that the card itself asks about."""
    shares, found = again.columns(), []
    for column in again.whole.space:
        own = thresholds(again.whole, column.name) if column.name in shares else np.empty(0)
        if len(own) and column.high > column.low:
            cuts = again.thresholds(column.name)
            found.append(_strip(column, cuts, own, shares[column.name]))
    return found


def _first_questions(facts: CollectionFacts) -> dict[str, Any]:
    """How often each feature is asked at the root and right below it."""
    shares = facts.first_splits / facts.n_trees
    names = [*(one_line(name) for name in facts.space.names), "(an answer)"]
    order = np.argsort(-shares.max(axis=0), kind="stable")[:MOST_FEATURES]
    kept = [int(k) for k in order if shares[:, k].max() > 0]
    return {
        "n_trees": facts.n_trees,
        "places": list(PLACES),
        "features": [names[k] for k in kept],
        "shares": [plain(shares[:, k]) for k in kept],
    }


def collect_cut_points(again: Refits) -> list[dict[str, Any]]:
    """Where the features asked most often are cut, and where the tree itself cuts them."""
    facts = again.facts
    columns = facts.columns()
    found: list[dict[str, Any]] = []
    by_name: dict[str, Column] = {column.name: column for column in facts.space}
    for name in columns["feature"].tolist():
        cuts, column = facts.cuts.get(name, np.empty(0)), by_name[name]
        if not len(cuts) or not column.high > column.low or len(found) == MOST_FEATURES:
            continue
        own = _own_cuts(again.whole, name)
        trees = sum(bool(len(_own_cuts(tree, name))) for tree in (again.whole, *again.trees))
        found.append(_strip(column, cuts, own, trees / facts.n_trees))
    return found


def _strip(column: Column, cuts: Any, own: Any, share: float) -> dict[str, Any]:
    """Cut points of one column, with the ends of its range in words."""
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


def _own_cuts(tree: Tree, name: str) -> Any:
    asked = tree.space.names.index(name)
    cuts = tree.threshold[tree.feature == asked]
    return np.sort(cuts[np.isfinite(cuts)])


def _alternatives(found: Sensitivity, rows: Sampled) -> list[dict[str, Any]]:
    """The most frequent trees that come out without one row, the usual one left out."""
    listed = [one for one in found.alternatives if one.distance > 0][:MOST_ALTERNATIVES]
    shown = []
    for one in listed:
        tree = one.tree if isinstance(one.tree, Tree) else from_sklearn(one.tree, rows.features)
        truth = label_indices(tree.classes, rows.labels)
        drawn = collect_tree(tree, rows.features, truth)
        shown.append({"share": one.share, "distance": one.distance, "tree": drawn})
    return shown
