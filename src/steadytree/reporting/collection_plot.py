"""Collection plot: importances, first questions and cut points of many trees."""

from typing import Any

import numpy as np

from steadytree.core.extras import require
from steadytree.measure.collection import PLACES, CollectionFacts
from steadytree.reporting.wording import cut_text, one_line

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
