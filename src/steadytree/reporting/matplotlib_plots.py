"""Collection plot: importances, first questions and cut points of many trees."""

from typing import Any

import numpy as np

from steadytree._base.optional import require
from steadytree.distance.collection import PLACES, CollectionFacts
from steadytree.reporting.svg.canvas import OKABE_ITO, OTHERS
from steadytree.reporting.wording import cut_text, one_line
from steadytree.stability.curve import CurvePoint, StabilityCurve

BLUE, ORANGE = OKABE_ITO[:2]


def plot_stability_curve(curve: StabilityCurve, axes: Any = None) -> Any:
    """Draw sensitivity and accuracy over epsilon, the greedy tree as a dashed line.

    Bands and bars are 95 % intervals over folds.

    Parameters
    ----------
    curve : StabilityCurve
    axes : pair of matplotlib axes, optional
        For sensitivity and for accuracy; a new figure by default.

    Returns
    -------
    figure : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steadytree import StableTreeClassifier, stability_curve
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = StableTreeClassifier(max_depth=2)
    >>> curve = stability_curve(learner, X, y, epsilons=(0, 0.1, 1), n_folds=2, n_seeds=2)
    >>> plot_stability_curve(curve).axes[0].get_ylabel()
    'average sensitivity'
    """
    if axes is None:
        figures = require("matplotlib.figure", "plot", "plot_stability_curve")
        # no pyplot: the figure belongs to the caller, and no window is opened
        figure = figures.Figure(figsize=(6.4, 6.0), layout="constrained")
        axes = figure.subplots(2, 1, sharex=True)
    upper, lower = axes
    _draw_sensitivity(upper, curve)
    _draw_accuracy(lower, curve)
    return upper.figure


def _draw_sensitivity(axes: Any, curve: StabilityCurve) -> None:
    points, greedy = _divide(curve)
    x = [point.epsilon for point in points]
    if greedy is not None:
        _reference(axes, greedy.sensitivity, OTHERS, "greedy")
    if points:
        low, high = zip(*(point.sensitivity_interval for point in points), strict=True)
        axes.fill_between(x, [max(value, 0) for value in low], high, color=BLUE, alpha=0.2, lw=0)
    values = [point.sensitivity for point in points]
    axes.plot(x, values, "o-", color=BLUE, label="stable")
    rows = _rows(curve.removed)
    axes.set(xscale="log", ylabel="average sensitivity", title=f"without {rows}")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    _clean(axes)


def _draw_accuracy(axes: Any, curve: StabilityCurve) -> None:
    points, greedy = _divide(curve)
    x = [point.epsilon for point in points]
    if greedy is not None:
        _reference(axes, greedy.train_accuracy, ORANGE, "greedy, training")
        _reference(axes, greedy.test_accuracy, BLUE, "greedy, held out")
    train = [point.train_accuracy for point in points]
    axes.plot(x, train, "s-", color=ORANGE, label="stable, training")
    test = [point.test_accuracy for point in points]
    low = [p.test_accuracy - p.test_accuracy_interval[0] for p in points]
    high = [p.test_accuracy_interval[1] - p.test_accuracy for p in points]
    axes.errorbar(x, test, (low, high), fmt="o-", color=BLUE, capsize=3, label="stable, held out")
    axes.set(xscale="log", xlabel="epsilon", ylabel="accuracy")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    _clean(axes)


def _divide(curve: StabilityCurve) -> tuple[list[CurvePoint], CurvePoint | None]:
    """The stable points, and the greedy one if it was measured."""
    greedy = [point for point in curve.points if point.epsilon == 0]
    return [point for point in curve.points if point.epsilon > 0], greedy[0] if greedy else None


def _reference(axes: Any, value: float, colour: str, label: str) -> None:
    axes.axhline(value, color=colour, linestyle="--", linewidth=1.2, label=label)


def _rows(removed: float) -> str:
    if removed == 1:
        return "one row"
    return f"{removed:,} rows" if removed > 1 else f"{100 * removed:g} % of the rows"


def _clean(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)


COLOURS = ("#0072B2", "#E69F00", "#009E73")
LONGEST_NAME = 26


def plot_collection(facts: CollectionFacts, n_features: int = 8) -> Any:
    """Draw what the trees of a collection agree on, for the most important features.

    On the left importances with their deviation, in the middle how often a feature is asked first,
    on the right where it is cut, as a share of its range.

    Parameters
    ----------
    facts : CollectionFacts
    n_features : int, default=8

    Returns
    -------
    figure : matplotlib figure
    """
    plots = require("matplotlib.pyplot", extra="plot", purpose="plotting a collection of trees")
    columns = {name: column[:n_features] for name, column in facts.columns().items()}
    names = columns["feature"].tolist()
    rows = np.arange(len(names))
    figure, axes = plots.subplots(1, 3, figsize=(12, 0.45 * len(rows) + 1.6), sharey=True)
    axes[0].barh(
        rows, columns["importance"], xerr=columns["deviation"], color="#8fb3d1", ecolor="#444"
    )
    axes[0].set_xlim(left=0)
    axes[0].set_yticks(rows, [cut_text(one_line(name), LONGEST_NAME) for name in names])
    axes[0].invert_yaxis()
    axes[0].set_title("importance, ± deviation over trees")
    for k, (place, colour) in enumerate(zip(PLACES, COLOURS, strict=True)):
        axes[1].barh(rows + 0.26 * (k - 1), columns[place], 0.24, color=colour, label=place)
    axes[1].set_title("share of trees that ask it there")
    axes[1].legend(frameon=False, loc="lower right")
    by_name = {column.name: column for column in facts.space}
    for row, name in zip(rows, names, strict=True):
        cuts, column = facts.cuts.get(name, np.empty(0)), by_name[name]
        if len(cuts) and column.high > column.low:
            at = (cuts - column.low) / (column.high - column.low)
            axes[2].plot(at, np.full(len(cuts), row), "|", color="#0072B2", ms=14, alpha=0.35)
    axes[2].set_xlim(0, 1)
    axes[2].set_title("cut points, from least to greatest value")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure
