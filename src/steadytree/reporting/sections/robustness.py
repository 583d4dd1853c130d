"""Sections on robustness and separation: what small changes of inputs can do."""

from typing import Any

import numpy as np

from steadytree.comparison.compare import thin_curve
from steadytree.comparison.learners import NOISE_SHARE, usual_perturbation
from steadytree.metrics.sampling import Sampled
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import Tree
from steadytree.reporting.formatting import plain, plain_reading
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.wording import label_text, one_line
from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.separation import MOST_CLASSES, separation

MOST_ROWS = 20_000
MOST_SEPARATED = 3_000  # rows of which all pairs are looked at
ATTACKS = 5
MOST_NAMES = 8
NEARER = "Over all rows the classes can only be closer."


def build_robustness(
    model: Any, judged: Tree | Scorecard, X: Any, y: Any, options: ReportOptions
) -> dict[str, Any] | None:
    """Certified accuracy by size of move, worst case, and the smallest attacks on real rows.

    The model itself is certified: of scikit-learn's, the tree judged has kinds read off these rows.
    """
    rows = Sampled.of(X, y, MOST_ROWS, options.seed)
    noise = options.perturbation
    if noise is None:
        noise = usual_perturbation(rows.features)
        if not noise.radius:
            return None  # nothing but text and 0/1 columns: no usual noise to speak of
    found = certify(model, rows.features, rows.labels, noise)
    sizes, shares = thin_curve(found.right, found.distance)
    return {
        "note": " ".join(filter(None, [rows.note, _fixed_note(judged, noise)])),
        "n_rows": len(rows.labels),
        "stated": options.perturbation is not None,
        "usual_share": NOISE_SHARE,
        "perturbation": plain(noise.to_dict()),
        "readings": [plain_reading(reading) for reading in found.measurements()],
        "n_attacked": len(found.attacked) if noise.budget is not None else None,
        "curve": {"size": plain(sizes), "certified_accuracy": plain(shares)},
        "attacks": [_attack(example) for example in found.counterexamples(ATTACKS)],
    }


def _fixed_note(judged: Tree | Scorecard, noise: Perturbation) -> str:
    """A sentence where columns are used about that the noise does not touch."""
    if isinstance(judged, Tree):
        noun, features = "tree", judged.feature[judged.feature >= 0]
    else:
        noun, features = "risk score", np.array([c.feature for c in judged.conditions], np.int64)
    used = np.unique(features)
    moves = noise.moves(judged.space)
    fixed = used[np.isinf(np.minimum(moves.up, moves.down))[used]]
    if not len(fixed):
        return ""
    names = [one_line(judged.space.names[k]) for k in fixed[:MOST_NAMES]]
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
    """Whether a tree that noise cannot turn could exist on these rows at all."""
    rows = Sampled.of(X, y, MOST_SEPARATED, options.seed)
    n_classes = len(np.unique(rows.labels))
    if not 2 <= n_classes <= MOST_CLASSES:
        return None
    found = separation(rows.features, rows.labels, time_limit=10.0)
    near = np.sort(found.nearest_other_class)
    places = np.linspace(0, len(near) - 1, min(len(near), 200)).round().astype(np.int64)
    return {
        "note": f"{rows.note} {NEARER}" if rows.note else "",
        "n_rows": len(rows.labels),
        "readings": [plain_reading(reading) for reading in found.measurements()],
        "nearest_other_class": plain(near[places]),
        "share": plain((len(near) - places) / len(near)),
    }
