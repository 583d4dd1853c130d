"""Tree layout: where the boxes of a tree stand, read from left to right.

Questions stand in one column a level, each in the middle of what follows from it. Answers stand
in one column on the right, evenly spaced, so that they read like a table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steadytree.reporting.text_width import text_width

BOX_HEIGHT = 58
SLOT = 35  # from answer to answer
GAP = 40  # between columns
PADDING = 9
TEXT = 12.5
SMALL = 11
NARROWEST, WIDEST = 124, 200


@dataclass(frozen=True)
class Layout:
    """Places of all boxes.

    Parameters
    ----------
    x, y : list of float
        Left edge and vertical middle of each node, in order of the nodes.
    widths : list of float
        Width of the questions' boxes by level.
    answers_x : float
        Left edge of the column of answers.
    height : float
        From the first answer's top to the last one's bottom.
    """

    x: list[float]
    y: list[float]
    widths: list[float]
    answers_x: float
    height: float

    def right_edge(self, node: dict[str, Any]) -> float:
        return self.x[node["place"]] + self.widths[node["depth"]]

    def edge(self, parent: dict[str, Any], node: dict[str, Any]) -> tuple[str, float, float]:
        """The path of a line from a question to what follows, and the middle of its bend."""
        start, above = self.right_edge(parent), self.y[parent["place"]]
        end, y, bend = self.x[node["place"]], self.y[node["place"]], start + GAP / 2
        curve = f"C{bend:.1f} {above:.1f} {bend:.1f} {y:.1f} {start + GAP:.1f} {y:.1f}"
        return f"M{start:.1f} {above:.1f}{curve}H{end:.1f}", bend, (above + y) / 2


def lay_out(nodes: Sequence[dict[str, Any]]) -> Layout:
    """Place the nodes of `collect_tree`, which come in the order root, left, right.

    Examples
    --------
    >>> leaf = {"depth": 1}
    >>> root = {"depth": 0, "left": 1, "right": 2, "feature": "age", "test": "≤ 4", "missing": ""}
    >>> lay_out([root, leaf, leaf]).y
    [35.0, 17.5, 52.5]
    """
    widths = _level_widths(nodes)
    starts = [sum(widths[:level]) + GAP * level for level in range(len(widths) + 1)]
    y = [0.0] * len(nodes)
    n_leaves = 0
    for place, node in enumerate(nodes):
        if "left" not in node:
            y[place] = SLOT * (n_leaves + 0.5)
            n_leaves += 1
    for place in range(len(nodes) - 1, -1, -1):  # children come later
        node = nodes[place]
        if "left" in node:
            y[place] = (y[node["left"]] + y[node["right"]]) / 2
    x = [starts[node["depth"]] if "left" in node else starts[-1] for node in nodes]
    return Layout(x, y, widths, starts[-1], max(SLOT * n_leaves, float(BOX_HEIGHT)))


def test_line(node: dict[str, Any]) -> str:
    """What is asked of the feature, and where missing values go."""
    return f"{node['test']} (missing: {node['missing']})" if node["missing"] else node["test"]


def _level_widths(nodes: Sequence[dict[str, Any]]) -> list[float]:
    """Room for the longest text of each level, within limits."""
    questions = [node for node in nodes if "left" in node]
    widths = [float(NARROWEST)] * (max((node["depth"] for node in questions), default=-1) + 1)
    for node in questions:
        wanted = max(
            text_width(node["feature"], TEXT, bold=True), text_width(test_line(node), TEXT)
        )
        level = node["depth"]
        widths[level] = min(max(widths[level], wanted + 2 * PADDING), WIDEST)
    return widths
