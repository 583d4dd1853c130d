"""Single decision trees that people can trust.

Every learner returns the same `Tree`, every measure reads it, and one report answers "can I
trust this tree?". Names load when they are first used, so that ``steadytree --help`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steadytree._base import missing_modules

missing_modules.install()

if TYPE_CHECKING:
    from steadytree.data.feature_space import FeatureSpace
    from steadytree.data.schema import Schema
    from steadytree.distance.collection import collection_facts
    from steadytree.distance.path import path_distance
    from steadytree.distance.tree_distance import tree_distance, tree_distances
    from steadytree.federated.coordinator import Coordinator
    from steadytree.federated.holder import Holder
    from steadytree.metrics.calibration import calibration
    from steadytree.metrics.complexity import complexity
    from steadytree.metrics.groups import by_group
    from steadytree.metrics.measurement import Measurement
    from steadytree.models.boxes import Boxes
    from steadytree.models.export import card_to_sql, card_to_tree
    from steadytree.models.files import load, save
    from steadytree.models.one_hot import one_hot
    from steadytree.models.scorecard import Condition, Scorecard
    from steadytree.models.sklearn import as_tree, from_sklearn, to_sklearn
    from steadytree.models.tree import Tree
    from steadytree.privacy.audit import audit_privacy
    from steadytree.privacy.evaluation import private_accuracy
    from steadytree.privacy.ledger import Ledger
    from steadytree.privacy.private_tree import PrivateTreeClassifier
    from steadytree.privacy.simulation import simulate
    from steadytree.reporting.comparison import compare
    from steadytree.reporting.diff import diff
    from steadytree.reporting.matplotlib_plots import plot_collection, plot_stability_curve
    from steadytree.reporting.plot import draw
    from steadytree.reporting.report import report
    from steadytree.reporting.scorecard import card_html, card_text
    from steadytree.reporting.svg.scorecard import draw_card
    from steadytree.riskscore.risk_score import RiskScoreClassifier
    from steadytree.robustness.certify import certify
    from steadytree.robustness.perturbation import Perturbation
    from steadytree.robustness.robust_tree import RobustTreeClassifier
    from steadytree.robustness.separation import separation
    from steadytree.robustness.shift import shift_accuracy
    from steadytree.stability.curve import stability_curve
    from steadytree.stability.distributional import distributional_sensitivity
    from steadytree.stability.pareto_tree import ParetoTreeClassifier
    from steadytree.stability.refits import refits
    from steadytree.stability.sensitivity import average_sensitivity
    from steadytree.stability.stable_tree import StableTreeClassifier

_WHERE = {
    "Boxes": "models.boxes",
    "Condition": "models.scorecard",
    "Coordinator": "federated.coordinator",
    "FeatureSpace": "data.feature_space",
    "Holder": "federated.holder",
    "Ledger": "privacy.ledger",
    "ParetoTreeClassifier": "stability.pareto_tree",
    "Perturbation": "robustness.perturbation",
    "PrivateTreeClassifier": "privacy.private_tree",
    "Measurement": "metrics.measurement",
    "RiskScoreClassifier": "riskscore.risk_score",
    "RobustTreeClassifier": "robustness.robust_tree",
    "Schema": "data.schema",
    "Scorecard": "models.scorecard",
    "StableTreeClassifier": "stability.stable_tree",
    "Tree": "models.tree",
    "as_tree": "models.sklearn",
    "audit_privacy": "privacy.audit",
    "average_sensitivity": "stability.sensitivity",
    "by_group": "metrics.groups",
    "calibration": "metrics.calibration",
    "card_html": "reporting.scorecard",
    "card_text": "reporting.scorecard",
    "card_to_sql": "models.export",
    "card_to_tree": "models.export",
    "certify": "robustness.certify",
    "collection_facts": "distance.collection",
    "compare": "reporting.comparison",
    "complexity": "metrics.complexity",
    "diff": "reporting.diff",
    "distributional_sensitivity": "stability.distributional",
    "draw": "reporting.plot",
    "draw_card": "reporting.svg.scorecard",
    "from_sklearn": "models.sklearn",
    "load": "models.files",
    "one_hot": "models.one_hot",
    "path_distance": "distance.path",
    "plot_collection": "reporting.matplotlib_plots",
    "plot_stability_curve": "reporting.matplotlib_plots",
    "private_accuracy": "privacy.evaluation",
    "refits": "stability.refits",
    "report": "reporting.report",
    "save": "models.files",
    "separation": "robustness.separation",
    "shift_accuracy": "robustness.shift",
    "simulate": "privacy.simulation",
    "stability_curve": "stability.curve",
    "to_sklearn": "models.sklearn",
    "tree_distance": "distance.tree_distance",
    "tree_distances": "distance.tree_distance",
}

__all__ = [
    "Boxes",
    "Condition",
    "Coordinator",
    "FeatureSpace",
    "Holder",
    "Ledger",
    "Measurement",
    "ParetoTreeClassifier",
    "Perturbation",
    "PrivateTreeClassifier",
    "RiskScoreClassifier",
    "RobustTreeClassifier",
    "Schema",
    "Scorecard",
    "StableTreeClassifier",
    "Tree",
    "as_tree",
    "audit_privacy",
    "average_sensitivity",
    "by_group",
    "calibration",
    "card_html",
    "card_text",
    "card_to_sql",
    "card_to_tree",
    "certify",
    "collection_facts",
    "compare",
    "complexity",
    "diff",
    "distributional_sensitivity",
    "draw",
    "draw_card",
    "from_sklearn",
    "load",
    "one_hot",
    "path_distance",
    "plot_collection",
    "plot_stability_curve",
    "private_accuracy",
    "refits",
    "report",
    "save",
    "separation",
    "shift_accuracy",
    "simulate",
    "stability_curve",
    "to_sklearn",
    "tree_distance",
    "tree_distances",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
