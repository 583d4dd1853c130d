"""draw: what steadytree measures and learns, as pictures for notebooks, pages and files."""

from collections.abc import Callable
from typing import Any

import numpy as np

from steadytree.comparison.compare import Results, thin_curve
from steadytree.data.table import Table
from steadytree.distance.diff import TreeChanges
from steadytree.metrics.accuracy import label_indices
from steadytree.metrics.calibration import Calibration
from steadytree.models.scorecard import Scorecard, as_card
from steadytree.models.sklearn import as_tree, from_sklearn
from steadytree.models.tree import Tree
from steadytree.reporting.comparison_table import comparison_words
from steadytree.reporting.diff import build_diff
from steadytree.reporting.formatting import plain, plain_reading
from steadytree.reporting.sections.stability import scorecard_thresholds, tree_thresholds
from steadytree.reporting.svg.axes import Axis
from steadytree.reporting.svg.canvas import Picture
from steadytree.reporting.svg.charts import Series, draw_curve
from steadytree.reporting.svg.diff import draw_diff
from steadytree.reporting.svg.figures import (
    calibration_chart,
    certified_curve,
    comparison_pictures,
    cut_strips,
)
from steadytree.reporting.svg.scorecard import draw_card
from steadytree.reporting.svg.tree import draw_tree
from steadytree.reporting.wording import build_nodes
from steadytree.robustness.certify import Certificate
from steadytree.stability.curve import StabilityCurve
from steadytree.stability.refits import Refits, ScorecardRefits


def draw(thing: Any, X: Any = None, y: Any = None) -> Picture:
    """Draw a model or what was measured about one, as SVG that needs nothing else.

    Parameters
    ----------
    thing : what to draw
        A tree, a fitted learner, a scikit-learn tree or a card; or what `certify`, `calibration`,
        `compare`, `diff`, `refits` or `stability_curve` returned.
    X, y : rows and their classes, optional
        For a tree: the rows it shows; without them, those it was fitted on.

    Returns
    -------
    picture : Picture
        Shows itself in a notebook; ``write("tree.svg")`` makes a file.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    >>> str(draw(model, [[0.0], [1.0]], ["no", "yes"]))[:4]
    '<svg'
    """
    for kind, function in DRAWN.items():
        if isinstance(thing, kind):
            return Picture(function(thing))
    card = as_card(thing)
    if card is not None:
        return Picture(draw_card(card))
    return _draw_tree(thing, X, y)


def _draw_tree(model: Any, X: Any, y: Any) -> Picture:
    if X is None or y is None:
        if X is not None or y is not None:
            raise ValueError("a tree is drawn with rows and their classes: pass both X and y.")
        tree = as_tree(model)
        return draw_tree(_fitted_nodes(tree))
    ours = isinstance(model, Tree) or isinstance(getattr(model, "tree_", None), Tree)
    tree = as_tree(model) if ours else from_sklearn(model, X)
    return draw_tree(build_nodes(tree, Table.read(X), label_indices(tree.classes, y)))


def _fitted_nodes(tree: Tree) -> dict[str, Any]:
    """Nodes with the rows the tree was fitted on, as far as its weights tell."""
    empty = np.zeros((0, len(tree.space)))
    found = build_nodes(tree, empty, np.zeros(0, np.int64))
    whole = max(found["nodes"][0]["fitted_weight"], 1e-12)
    for node in found["nodes"]:
        weight = node["fitted_weight"]
        node["counts"] = [round(weight * share) for share in node["fitted_shares"]]
        node["n_rows"], node["share"] = round(weight), weight / whole
    return found


def _draw_certificate(found: Certificate) -> Picture:
    sizes, shares = thin_curve(found.right, found.distance)
    return certified_curve(
        {
            "curve": {"size": plain(sizes), "certified_accuracy": plain(shares)},
            "perturbation": plain(found.perturbation.to_dict()),
            "readings": [plain_reading(reading) for reading in found.measurements()],
        }
    )


def _draw_comparison(found: Results) -> Picture:
    return comparison_pictures(comparison_words(found.to_dict()))[0][1]


def _draw_refits(found: Refits) -> Picture:
    return cut_strips({"cuts": tree_thresholds(found)})


def _draw_stability(curve: StabilityCurve) -> Picture:
    """Sensitivity over epsilon, the greedy tree as a line of its own."""
    stable = [point for point in curve.points if point.epsilon > 0]
    greedy = [point.sensitivity for point in curve.points if point.epsilon == 0]
    if not stable:
        raise ValueError("the curve has no point above epsilon 0: there is nothing to draw.")
    x, y = [one.epsilon for one in stable], [one.sensitivity for one in stable]
    series = [Series("stable", x, y, dots=True)]
    if greedy:
        series.append(Series("greedy", (x[0], x[-1]), (greedy[0],) * 2, colour=7))
    values = [*y, *greedy]
    up = Axis.over(values, "average sensitivity", zero=True)
    return draw_curve(series, Axis.over_ratios(x, "epsilon"), up, "Sensitivity over epsilon")


DRAWN: dict[type, Callable[[Any], Any]] = {
    Certificate: _draw_certificate,
    Calibration: lambda found: calibration_chart(plain(found.to_dict())),
    Results: _draw_comparison,
    TreeChanges: lambda found: draw_diff(build_diff(found)),
    Refits: _draw_refits,
    ScorecardRefits: lambda found: cut_strips({"cuts": scorecard_thresholds(found)}, "card"),
    StabilityCurve: _draw_stability,
    Scorecard: draw_card,
}
