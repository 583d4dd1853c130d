"""Robustness in a report: of a tree or risk score, and of an ensemble beside a readable tree."""

from typing import Any

import numpy as np

from steadytree._base.exceptions import NotATreeError, UnsuitableDataError
from steadytree.data.dataset import Sampled, hold_out
from steadytree.data.labels import label_array
from steadytree.data.table import Table
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import Tree
from steadytree.reporting.formatting import (
    label_text,
    one_line,
    percent_text,
    plain,
    plain_measurements,
)
from steadytree.reporting.options import ReportOptions
from steadytree.robustness.certificate import Certificate, EnsembleCertificate, thin_curve
from steadytree.robustness.certify import certificate_of, used_columns
from steadytree.robustness.perturbation import NOISE_SHARE, Perturbation, usual_perturbation
from steadytree.stability.steady_tree import SteadyTreeClassifier

MOST_CERTIFIED = 20_000
MOST_ATTACKS = 5
MOST_NAMES = 8
MOST_COLUMNS = 15
MOST_VERIFIED = 200  # rows of an ensemble; each is a search of its own
MAX_STEPS = 1_000  # of the search for a row
STEPS, FARTHEST = 41, 2.0  # positions of the page's slider, and times the noise at its end
HELD_OUT = 0.5  # of the rows, where no training rows are known to fit the tree to


def build_robustness(
    model: Any, fitted: Tree | Scorecard, X: Any, y: Any, options: ReportOptions
) -> dict[str, Any] | None:
    """Certified accuracy by size, worst case, and the smallest changes that overturn predictions.

    The model itself is certified, since the tree of a scikit-learn model has kinds from these rows.
    """
    rows = Sampled.of(X, y, MOST_CERTIFIED, options.seed)
    noise = noise_of(rows.features, options)
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


def noise_steps(found: Certificate, fitted: Any) -> dict[str, Any] | None:
    """Certified accuracy by size, and the share of each leaf's correct rows that stay so."""
    if not isinstance(fitted, Tree) or found.perturbation.scope != "row":
        return None
    budget = found.perturbation.budget or 1.0
    sizes = np.linspace(0.0, FARTHEST * budget, STEPS)
    leaves = fitted.apply_encoded(found.rows)
    shown = []
    for leaf in np.flatnonzero(fitted.is_leaf).tolist():
        kept = found.distance[(leaves == leaf) & found.right]
        # as `Certificate.certified_accuracy`: what is within a rounding of the size counts as moved
        shares = [np.mean(kept > _limit(size)) if len(kept) else 1.0 for size in sizes]
        shown.append({"node": leaf, "n_rows": len(kept), "stays": plain(np.array(shares))})
    certified = [found.certified_accuracy(float(size)) for size in sizes]
    return {"size": plain(sizes), "certified_accuracy": certified, "leaves": shown}


def _limit(size: float) -> float:
    return Perturbation(step_cost=0, budget=float(size)).spend(1.0)


def attacked_columns(found: Certificate) -> list[dict[str, Any]]:
    """Columns that change in the rows which the worst perturbation makes wrong, with the share."""
    start, end = found.rows[found.attacked], found.witness[found.attacked]
    changed = (start != end) & ~(np.isnan(start) & np.isnan(end))
    shares = changed.sum(axis=0) / max(len(changed), 1)
    ranked = sorted(zip(found.space.names, shares, strict=True), key=lambda one: -one[1])
    return [
        {"name": one_line(name), "share": float(share)}
        for name, share in ranked[:MOST_NAMES]
        if share
    ]


def _search(model: Any) -> dict[str, Any]:
    """How the search for a robust tree went: rows kept by the best tree, and by any at most."""
    steps = getattr(model, "history_", None)
    if not steps or not hasattr(model, "optimality_gap_"):
        return {}
    total = model.objective_ + steps[-1].incumbent
    found = [(float(s.seconds), total - s.incumbent, total - s.bound) for s in steps]
    shown = dict(zip(("seconds", "kept", "bound"), zip(*found, strict=True), strict=True))
    return {"search": {**plain(shown), "gap": model.optimality_gap_, "status": model.status_}}


def noise_of(X: Any, options: ReportOptions) -> Perturbation | None:
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


def build_ensemble(model: Any, X: Any, y: Any, options: ReportOptions) -> dict[str, Any]:
    """Accuracy with and without noise of the ensemble and of a tree; or why there is none."""
    rows, fitting = _rows(X, y, options)
    noise = options.perturbation or usual_perturbation(rows.features)
    if not noise.radius:
        return {"note": "The noise changes no numeric column, so there is nothing to certify."}
    try:
        found = certificate_of(model, rows.features, rows.labels, noise, max_steps=MAX_STEPS)
    except (NotATreeError, UnsuitableDataError, ImportError) as error:
        return {"note": one_line(str(error))}
    learner = SteadyTreeClassifier(options.max_leaf_nodes, random_state=options.seed)
    tree = learner.fit(*fitting)
    beside = certificate_of(tree, rows.features, rows.labels, noise)
    return {
        "note": rows.note,
        "notes": [one_line(note) for note in found.notes],
        "stated": options.perturbation is not None,
        "perturbation": plain(noise.to_dict()),
        "n_rows": len(rows.labels),
        "n_leaves": tree.tree_.n_leaves,
        "known": options.train is not None,
        "models": [_shown(type(model).__name__, found), _shown("readable tree", beside)],
        "attacks": [
            {"row": one.row, "steps": [one_line(str(step)) for step in one.steps]}
            for one in found.counterexamples(3)
        ],
    }


def _rows(X: Any, y: Any, options: ReportOptions) -> tuple[Sampled, tuple[Any, Any]]:
    """Rows to certify, and others to fit the tree to."""
    if options.train is not None:
        fitting = options.train, options.train.labels
        return Sampled.of(X, y, MOST_VERIFIED, options.seed), fitting
    table, labels = Table.read(X), label_array(y)
    held = hold_out(labels, HELD_OUT, options.seed)
    rows = Sampled.of(table.take(held), labels[held], MOST_VERIFIED, options.seed)
    return rows, (table.take(~held), labels[~held])


def _shown(name: str, found: Any) -> dict[str, str]:
    worst = found.worst_case_accuracy
    low, high = found.robust_accuracy if isinstance(found, EnsembleCertificate) else (worst, worst)
    decided = found.decided if isinstance(found, EnsembleCertificate) else 1.0
    between = percent_text(low) if low == high else f"{percent_text(low)} to {percent_text(high)}"
    shown = {"accuracy": percent_text(found.accuracy), "decided": percent_text(decided)}
    return {"name": one_line(name), **shown, "worst": between}
