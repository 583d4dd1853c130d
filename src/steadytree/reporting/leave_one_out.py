"""Leave one out: what the section on stability shows of removals of single training rows."""

from typing import Any

from steadytree.data.dataset import Sampled
from steadytree.metrics.accuracy import label_indices
from steadytree.models.sklearn import as_tree
from steadytree.reporting.formatting import plain_measurements
from steadytree.reporting.options import RULES, ReportOptions
from steadytree.reporting.wording import build_nodes
from steadytree.stability.removal import affordable, is_repeatable
from steadytree.stability.sensitivity import Sensitivity, average_sensitivity

SAMPLED = 20  # removals where leaving out every row takes too long
MOST_ALTERNATIVES = 3


def build_leave_one_out(options: ReportOptions, rows: Sampled) -> dict[str, Any]:
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
