"""Single decision trees that people can trust.

Every learner returns the same `Tree`, every measure reads it, and one report answers "can I
trust this tree?". Names load when they are first used, so that ``steadytree --help`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steadytree.core.boxes import Boxes
    from steadytree.core.condition import Condition
    from steadytree.core.perturbation import Perturbation
    from steadytree.core.reading import Reading
    from steadytree.core.schema import Schema
    from steadytree.core.scorecard import Scorecard
    from steadytree.core.space import FeatureSpace
    from steadytree.core.tree import Tree
    from steadytree.interop.card_sql import card_to_sql
    from steadytree.interop.card_tree import card_to_tree
    from steadytree.interop.one_hot import one_hot
    from steadytree.interop.sklearn_tree import as_tree, from_sklearn, to_sklearn
    from steadytree.interop.tree_file import load, save
    from steadytree.learn.coordinator import Coordinator
    from steadytree.learn.pareto import ParetoTreeClassifier
    from steadytree.learn.private import PrivateTreeClassifier
    from steadytree.learn.risk_score import RiskScoreClassifier
    from steadytree.learn.robust import RobustTreeClassifier
    from steadytree.learn.simulate import simulate
    from steadytree.learn.stable import StableTreeClassifier
    from steadytree.measure.calibration import calibration
    from steadytree.measure.certify import certify
    from steadytree.measure.collection import collection_facts
    from steadytree.measure.complexity import complexity
    from steadytree.measure.distance import tree_distance, tree_distances
    from steadytree.measure.distributional import distributional_sensitivity
    from steadytree.measure.groups import by_group
    from steadytree.measure.path_distance import path_distance
    from steadytree.measure.privacy_audit import audit_privacy
    from steadytree.measure.private_accuracy import private_accuracy
    from steadytree.measure.refits import refits
    from steadytree.measure.sensitivity import average_sensitivity
    from steadytree.measure.separation import separation
    from steadytree.measure.shift import shift_accuracy
    from steadytree.measure.stability_curve import stability_curve
    from steadytree.privacy.ledger import Ledger
    from steadytree.reporting.card_html import card_html
    from steadytree.reporting.card_svg import draw_card
    from steadytree.reporting.card_text import card_text
    from steadytree.reporting.collection_plot import plot_collection
    from steadytree.reporting.compare import compare
    from steadytree.reporting.diff import diff
    from steadytree.reporting.draw import draw
    from steadytree.reporting.report import report
    from steadytree.reporting.stability_plot import plot_stability_curve
    from steadytree.sources.holder import Holder

_WHERE = {
    "Boxes": "core.boxes",
    "Condition": "core.condition",
    "Coordinator": "learn.coordinator",
    "FeatureSpace": "core.space",
    "Holder": "sources.holder",
    "Ledger": "privacy.ledger",
    "ParetoTreeClassifier": "learn.pareto",
    "Perturbation": "core.perturbation",
    "PrivateTreeClassifier": "learn.private",
    "Reading": "core.reading",
    "RiskScoreClassifier": "learn.risk_score",
    "RobustTreeClassifier": "learn.robust",
    "Schema": "core.schema",
    "Scorecard": "core.scorecard",
    "StableTreeClassifier": "learn.stable",
    "Tree": "core.tree",
    "as_tree": "interop.sklearn_tree",
    "audit_privacy": "measure.privacy_audit",
    "average_sensitivity": "measure.sensitivity",
    "by_group": "measure.groups",
    "calibration": "measure.calibration",
    "card_html": "reporting.card_html",
    "card_text": "reporting.card_text",
    "card_to_sql": "interop.card_sql",
    "card_to_tree": "interop.card_tree",
    "certify": "measure.certify",
    "collection_facts": "measure.collection",
    "compare": "reporting.compare",
    "complexity": "measure.complexity",
    "diff": "reporting.diff",
    "distributional_sensitivity": "measure.distributional",
    "draw": "reporting.draw",
    "draw_card": "reporting.card_svg",
    "from_sklearn": "interop.sklearn_tree",
    "load": "interop.tree_file",
    "one_hot": "interop.one_hot",
    "path_distance": "measure.path_distance",
    "plot_collection": "reporting.collection_plot",
    "plot_stability_curve": "reporting.stability_plot",
    "private_accuracy": "measure.private_accuracy",
    "refits": "measure.refits",
    "report": "reporting.report",
    "save": "interop.tree_file",
    "separation": "measure.separation",
    "shift_accuracy": "measure.shift",
    "simulate": "learn.simulate",
    "stability_curve": "measure.stability_curve",
    "to_sklearn": "interop.sklearn_tree",
    "tree_distance": "measure.distance",
    "tree_distances": "measure.distance",
}

__all__ = [
    "Boxes",
    "Condition",
    "Coordinator",
    "FeatureSpace",
    "Holder",
    "Ledger",
    "ParetoTreeClassifier",
    "Perturbation",
    "PrivateTreeClassifier",
    "Reading",
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
