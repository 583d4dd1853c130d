"""Diff flow: bands of rows from the leaves of the old tree to those of the new one."""

from typing import Any

from markupsafe import Markup, escape

from steadytree.reporting.numbers import rows_text
from steadytree.reporting.text_width import fit_text

HEAD = 40
TALLEST, PER_LEAF = 260.0, 24.0
SPACE = 8.0  # between leaves
LINE = 15.0  # between labels
BAR = 8


def draw_flow(rows: dict[str, Any], width: float, top: float) -> tuple[Markup, float]:
    """Draw the flows; bands whose decision changes are red.

    Parameters
    ----------
    rows : dict
        Flows and leaves of both trees, with their rows.
    width : float
    top : float
        Upper edge of the drawing.

    Returns
    -------
    drawing : Markup
    height : float
    """
    leaves = {side: [x for x in rows[f"{side}_leaves"] if x["n_rows"]] for side in ("old", "new")}
    tall = max(TALLEST, PER_LEAF * max(map(len, leaves.values())))
    x = {"old": 0.32 * width, "new": 0.68 * width}
    start = top + HEAD
    scale = {s: (tall - SPACE * (len(own) - 1)) / rows["n_rows"] for s, own in leaves.items()}
    parts = [_head(rows, width, top)]
    edge = {side: _stack(own, start, scale[side]) for side, own in leaves.items()}
    parts += _bands(rows["flows"], leaves, edge, scale, x)
    for side, own in leaves.items():
        parts += _labels(own, edge[side], scale[side], x[side], side, width)
    return Markup("\n").join(parts), HEAD + tall + 10


def _head(rows: dict[str, Any], width: float, top: float) -> Markup:
    n, total = rows["n_flipped"], rows["n_rows"]
    said = f"Where the {rows_text(total)} went: {n:,} decisions change ({n / total:.1%})"
    head = Markup('<text class="name" text-anchor="middle" x="{:.1f}" y="{:.1f}">{}</text>')
    small = Markup('<text class="small" text-anchor="{}" x="{:.1f}" y="{:.1f}">{}</text>')
    return Markup("").join(
        [
            head.format(width / 2, top + 12, said),
            small.format("end", 0.32 * width - 10, top + 30, "old leaves"),
            small.format("start", 0.68 * width + 10, top + 30, "new leaves"),
        ]
    )


def _stack(leaves: list[dict[str, Any]], start: float, scale: float) -> dict[int, float]:
    """Upper edge of each leaf's bar."""
    edge = {}
    for leaf in leaves:
        edge[leaf["node"]] = start
        start += leaf["n_rows"] * scale + SPACE
    return edge


def _bands(
    flows: list[dict[str, Any]],
    leaves: dict[str, list[dict[str, Any]]],
    edge: dict[str, dict[int, float]],
    scale: dict[str, float],
    x: dict[str, float],
) -> list[Markup]:
    """One band for each pair of leaves, in the order in which the leaves stand."""
    order = {side: [leaf["node"] for leaf in own] for side, own in leaves.items()}
    numbers = {side: {leaf["node"]: leaf["number"] for leaf in own} for side, own in leaves.items()}
    at = {side: dict(edges) for side, edges in edge.items()}
    ranked = sorted(
        flows,
        key=lambda flow: (
            order["old"].index(flow["old_leaf"]),
            order["new"].index(flow["new_leaf"]),
        ),
    )
    left, right = x["old"] + BAR / 2, x["new"] - BAR / 2
    middle = (left + right) / 2
    parts = []
    for flow in ranked:
        a, b, n = flow["old_leaf"], flow["new_leaf"], flow["rows"]
        y1, y2 = at["old"][a], at["new"][b]
        at["old"][a] = low1 = y1 + n * scale["old"]
        at["new"][b] = low2 = y2 + n * scale["new"]
        path = (
            f"M{left:.1f} {y1:.2f}C{middle:.1f} {y1:.2f} {middle:.1f} {y2:.2f} {right:.1f} {y2:.2f}"
            f"V{low2:.2f}C{middle:.1f} {low2:.2f} {middle:.1f} {low1:.2f} {left:.1f} {low1:.2f}Z"
        )
        says = f"{rows_text(n)} from old {numbers['old'][a]} to new {numbers['new'][b]}"
        says += ": the decision changes" if flow["flips"] else ""
        parts.append(
            Markup('<path class="{}" d="{}" data-rows="{}"><title>{}</title></path>').format(
                "flip" if flow["flips"] else "stay", path, n, says
            )
        )
    return parts


def _labels(
    leaves: list[dict[str, Any]],
    edge: dict[int, float],
    scale: float,
    x: float,
    side: str,
    width: float,
) -> list[Markup]:
    """Bars with what they stand for, labels pushed apart where bars are thin."""
    parts, lowest = [], -1e9
    anchor, where = ("end", x - 10) if side == "old" else ("start", x + 10)
    for leaf in leaves:
        tall = leaf["n_rows"] * scale
        y = max(edge[leaf["node"]] + tall / 2 + 4, lowest + LINE)
        lowest = y
        text = f"{leaf['number']}: {leaf['label']} ({rows_text(leaf['n_rows'])})"
        parts.append(
            Markup(
                '<rect class="bar" x="{:.1f}" y="{:.2f}" width="{}" height="{:.2f}"/>'
                '<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>'
            ).format(
                *(x - BAR / 2, edge[leaf["node"]], BAR, tall, where, y, anchor),
                escape(fit_text(text, 0.32 * width - 14, 12.5)),
            )
        )
    return parts
