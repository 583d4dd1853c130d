"""Single decision trees that people can trust.

Every learner returns the same `Tree`, every measure reads it, and one report answers "can I
trust this tree?". Names load when they are first used, so that ``steadytree --help`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steadytree.core.boxes import Boxes
    from steadytree.core.perturbation import Perturbation
    from steadytree.core.reading import Reading
    from steadytree.core.space import FeatureSpace
    from steadytree.core.tree import Tree
    from steadytree.interop.one_hot import one_hot
    from steadytree.interop.sklearn_tree import as_tree, from_sklearn, to_sklearn
    from steadytree.interop.tree_file import load, save
    from steadytree.learn.pareto import ParetoTreeClassifier
    from steadytree.learn.robust import RobustTreeClassifier
    from steadytree.learn.stable import StableTreeClassifier
    from steadytree.measure.certify import certify
    from steadytree.measure.collection import collection_facts
    from steadytree.measure.complexity import complexity
    from steadytree.measure.distance import tree_distance, tree_distances
    from steadytree.measure.distributional import distributional_sensitivity
    from steadytree.measure.path_distance import path_distance
    from steadytree.measure.sensitivity import average_sensitivity
    from steadytree.measure.shift import shift_accuracy
    from steadytree.measure.stability_curve import stability_curve
    from steadytree.reporting.collection_plot import plot_collection
    from steadytree.reporting.diff import diff
    from steadytree.reporting.report import report
    from steadytree.reporting.stability_plot import plot_stability_curve

_WHERE = {
    "Boxes": "core.boxes",
    "FeatureSpace": "core.space",
    "ParetoTreeClassifier": "learn.pareto",
    "Perturbation": "core.perturbation",
    "Reading": "core.reading",
    "RobustTreeClassifier": "learn.robust",
    "StableTreeClassifier": "learn.stable",
    "Tree": "core.tree",
    "as_tree": "interop.sklearn_tree",
    "average_sensitivity": "measure.sensitivity",
    "certify": "measure.certify",
    "collection_facts": "measure.collection",
    "complexity": "measure.complexity",
    "diff": "reporting.diff",
    "distributional_sensitivity": "measure.distributional",
    "from_sklearn": "interop.sklearn_tree",
    "load": "interop.tree_file",
    "one_hot": "interop.one_hot",
    "path_distance": "measure.path_distance",
    "plot_collection": "reporting.collection_plot",
    "plot_stability_curve": "reporting.stability_plot",
    "report": "reporting.report",
    "save": "interop.tree_file",
    "shift_accuracy": "measure.shift",
    "stability_curve": "measure.stability_curve",
    "to_sklearn": "interop.sklearn_tree",
    "tree_distance": "measure.distance",
    "tree_distances": "measure.distance",
}

__all__ = [
    "Boxes",
    "FeatureSpace",
    "ParetoTreeClassifier",
    "Perturbation",
    "Reading",
    "RobustTreeClassifier",
    "StableTreeClassifier",
    "Tree",
    "as_tree",
    "average_sensitivity",
    "certify",
    "collection_facts",
    "complexity",
    "diff",
    "distributional_sensitivity",
    "from_sklearn",
    "load",
    "one_hot",
    "path_distance",
    "plot_collection",
    "plot_stability_curve",
    "report",
    "save",
    "shift_accuracy",
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
