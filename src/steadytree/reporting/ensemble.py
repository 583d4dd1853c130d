"""The section on an ensemble: what noise does to it, and to a readable tree beside it."""

from typing import Any

from steadytree._base.exceptions import NotATreeError, UnsuitableDataError
from steadytree.data.dataset import Sampled, hold_out
from steadytree.data.labels import label_array
from steadytree.data.table import Table
from steadytree.reporting.formatting import one_line, percent_text, plain
from steadytree.reporting.options import ReportOptions
from steadytree.robustness.certificate import EnsembleCertificate
from steadytree.robustness.certify import certificate_of
from steadytree.robustness.perturbation import usual_perturbation
from steadytree.stability.steady_tree import SteadyTreeClassifier

MOST_VERIFIED = 200  # rows; each is a search of its own
MAX_STEPS = 1_000  # of the search for a row
HELD_OUT = 0.5  # of the rows, where no training rows are known to fit the tree to


def build_ensemble(model: Any, X: Any, y: Any, options: ReportOptions) -> dict[str, Any]:
    """Accuracy with and without noise of the ensemble and of a tree; or why there is none."""
    rows, fitting = _rows(X, y, options)
    noise = options.perturbation or usual_perturbation(rows.features)
    if not noise.radius:
        return {"note": "No column of numbers may move, so there is no noise to certify."}
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
