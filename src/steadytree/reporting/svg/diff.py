"""Two trees as one picture, and below it the rows that went from leaf to leaf."""

from typing import Any

from markupsafe import Markup

from steadytree.reporting.formatting import plain_text, rows_text
from steadytree.reporting.svg import tree
from steadytree.reporting.svg.canvas import RECT, fit_text, read_style, text_at, text_width
from steadytree.reporting.svg.tree import BOX_HEIGHT, PADDING, SMALL, TEXT, Layout

Values = dict[str, Any]
HEAD = 40
TALLEST, PER_LEAF = 260.0, 24.0
SPACE = 8.0  # between leaves
LINE = 15.0  # between labels
BAR = 8


def draw_flow(rows: Values, width: float, top: float) -> tuple[Markup, float]:
    """Bands from old to new leaves, and their height; changed predictions are red."""
    leaves = {side: [x for x in rows[f"{side}_leaves"] if x["n_rows"]] for side in ("old", "new")}
    tall = max(TALLEST, PER_LEAF * max(map(len, leaves.values())))
    x = {"old": 0.32 * width, "new": 0.68 * width}
    start = top + HEAD
    scale = {s: (tall - SPACE * (len(own) - 1)) / rows["n_rows"] for s, own in leaves.items()}
    n, total = rows["n_flipped"], rows["n_rows"]
    title = f"Old and new leaves of {rows_text(total)}: {n:,} predictions change ({n / total:.1%})"
    head = Markup("").join(
        [
            text_at(width / 2, top + 12, title, "name", "middle"),
            text_at(x["old"] - 10, top + 30, "old leaves", "small", "end"),
            text_at(x["new"] + 10, top + 30, "new leaves", "small"),
        ]
    )
    edge = {side: _stack(own, start, scale[side]) for side, own in leaves.items()}
    parts = [head, *_bands(rows["flows"], leaves, edge, scale, x)]
    for side, own in leaves.items():
        parts += _labels(own, edge[side], scale[side], x[side], side, width)
    return Markup("\n").join(parts), HEAD + tall + 10


def _stack(leaves: list[Values], start: float, scale: float) -> dict[int, float]:
    """Upper edge of each leaf's bar."""
    edge = {}
    for leaf in leaves:
        edge[leaf["node"]] = start
        start += leaf["n_rows"] * scale + SPACE
    return edge


def _bands(
    flows: list[Values],
    leaves: dict[str, list[Values]],
    edge: dict[str, dict[int, float]],
    scale: dict[str, float],
    x: dict[str, float],
) -> list[Markup]:
    """One band for each pair of leaves, in the order in which the leaves stand."""
    numbers = {side: {leaf["node"]: leaf["number"] for leaf in own} for side, own in leaves.items()}
    at = {side: dict(edges) for side, edges in edge.items()}
    old, new = numbers["old"], numbers["new"]
    ranked = sorted(flows, key=lambda flow: (old[flow["old_leaf"]], new[flow["new_leaf"]]))
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
        title = f"{rows_text(n)} from old {old[a]} to new {new[b]}"
        title += ": the prediction changes" if flow["flips"] else ""
        parts.append(
            Markup('<path class="{}" d="{}" data-rows="{}"><title>{}</title></path>').format(
                "flip" if flow["flips"] else "stay", path, n, title
            )
        )
    return parts


def _labels(
    leaves: list[Values], edge: dict[int, float], scale: float, x: float, side: str, width: float
) -> list[Markup]:
    """Bars with their leaves; labels are pushed apart where bars are thin."""
    parts, lowest = [], -1e9
    anchor, where = ("end", x - 10) if side == "old" else ("start", x + 10)
    for leaf in leaves:
        tall = leaf["n_rows"] * scale
        y = max(edge[leaf["node"]] + tall / 2 + 4, lowest + LINE)
        lowest = y
        text = f"{leaf['number']}: {leaf['label']} ({rows_text(leaf['n_rows'])})"
        parts.append(RECT.format("bar", x - BAR / 2, edge[leaf["node"]], BAR, round(tall, 2), 0))
        parts.append(text_at(where, y, fit_text(text, 0.32 * width - 14, 12.5), anchor=anchor))
    return parts


MARGIN, TOP = 8, 92
CLASS_LINE = 19  # height of a sentence on a class that is new or gone
LEAF_HEIGHT = 26
PREDICTION, ROWS = 150, 96  # widths of the columns of leaves
MOST_LEAVES = 64
NARROWEST = 640
LEGEND = (
    ("same", "same"),
    ("moved", "moved: same feature, other threshold"),
    ("replaced", "replaced or relabelled"),
    ("grown", "grown"),
    ("cut", "cut"),
)
STYLE = read_style("diff.css")


def draw_diff(data: Values) -> Markup:
    """Draw what `build_diff` returned, as one picture.

    Grey boxes are the same, amber ones moved, vermilion ones replaced, green ones grown and pink
    ones cut; what no longer holds is struck through.
    """
    nodes = shown_nodes(data["nodes"])
    layout = tree.lay_out([_as_laid_out(node) for node in nodes])
    width = max(layout.leaves_x + 2 * PREDICTION + ROWS + PADDING, NARROWEST)
    classes = data["classes_text"]
    top = TOP + CLASS_LINE * len(classes)
    shares = [max(node["old_share"], node["new_share"]) for node in nodes]
    one_sided = [node["old"] is None or node["new"] is None for node in nodes]
    x = layout.leaves_x + PADDING
    heads = {"old prediction": x, "new prediction": x + PREDICTION, "rows": x + 2 * PREDICTION}
    parts = [_legend(data["headline"], classes, width)]
    parts += [tree.branches(nodes, layout, shares, one_sided), tree.column_heads(heads)]
    parts += [_split(node, layout) if "left" in node else _leaf(node, layout) for node in nodes]
    height = layout.height
    if data["rows"] is not None:
        flow, flow_height = draw_flow(data["rows"], width, height + 34)
        parts.append(flow)
        height += 34 + flow_height
    full = round(width + 2 * MARGIN), round(height + top + 2 * MARGIN)
    body, spoken = Markup("\n").join(parts), " ".join([data["headline"], *classes])
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="steadytree-diff" viewBox="0 0 {} {}" '
        'width="{}" height="{}" role="img" aria-label="{}"><style>{}</style>'
        '<rect class="back" width="100%" height="100%"/>'
        '<g transform="translate({} {})">{}</g></svg>'
    ).format(*full, *full, spoken, Markup(STYLE), MARGIN, MARGIN + top, body)


def shown_nodes(nodes: list[Values]) -> list[Values]:
    """The places of the upper levels that a picture has room for, numbered anew."""
    deepest = max(node["depth"] for node in nodes)
    ends = [node["depth"] for node in nodes if "left" not in node]
    splits = [node["depth"] for node in nodes if "left" in node]
    while deepest > 1 and sum(d <= deepest for d in ends) + splits.count(deepest) > MOST_LEAVES:
        deepest -= 1
    kept = [node for node in nodes if node["depth"] <= deepest]
    indices = {node["place"]: new for new, node in enumerate(kept)} | {None: None}
    shown = []
    for node in kept:
        node = node | {"place": indices[node["place"]], "parent": indices[node["parent"]]}
        if "left" in node and node["depth"] < deepest:
            node |= {"left": indices[node["left"]], "right": indices[node["right"]]}
        else:
            node = {key: part for key, part in node.items() if key not in ("left", "right")}
        shown.append(node)
    return shown


def _as_laid_out(node: Values) -> Values:
    """The node with its longest text where the layout looks for it."""
    texts = [_line(node, side) for side in ("old", "new")]
    longest = max(texts, key=lambda text: text_width(text, TEXT, bold=True))
    return node | {"feature": longest, "test": "", "missing": ""}


def _line(node: Values, side: str) -> str:
    formatted = node[side]
    if formatted is None or formatted["question"]:
        return "" if formatted is None else str(formatted["text"])
    return f"{side} {formatted['number']}: {formatted['text']}"


def _legend(headline: str, classes: list[str], width: float) -> Markup:
    """The headline, lines on classes, and the meaning of the colours."""
    top = -TOP + 18 - CLASS_LINE * len(classes)
    parts = [text_at(0, top, fit_text(headline, width, 14, bold=True), "name")]
    for k, text in enumerate(classes, start=1):
        parts.append(text_at(0, top + CLASS_LINE * k, fit_text(text, width, TEXT), "class"))
    x = 0.0
    for status, meaning in LEGEND:
        parts.append(RECT.format(f"f-{status}", x, -TOP + 34, 11, 11, 2))
        parts.append(text_at(x + 16, -TOP + 44, meaning, "small"))
        x += 16 + text_width(meaning, SMALL) + 18
    return Markup("").join(parts)


def _split(node: Values, layout: Layout) -> Markup:
    x, y = layout.x[node["place"]], layout.y[node["place"]]
    width = layout.widths[node["depth"]]
    top, room = y - BOX_HEIGHT / 2, width - 2 * PADDING
    old, new = _line(node, "old"), _line(node, "new")
    shown = [(new or old, "name" if new else "gone", 27)]
    if node["status"] != "same" and old and new:
        shown = [(old, "gone", 18), (new, "name", 35)]
    lines = [
        text_at(x + PADDING, top + down, fit_text(text, room, TEXT, bold=True), kind)
        for text, kind, down in shown
    ]
    foot = [
        text_at(x + PADDING, top + 51, node["status"], "small"),
        text_at(x + width - PADDING, top + 51, _rows(node), "small", anchor="end"),
    ]
    box = _box(x, top, width, BOX_HEIGHT, node["status"])
    return Markup("<g>{}{}{}</g>").format(_title(node), box, Markup("").join(lines + foot))


def _leaf(node: Values, layout: Layout) -> Markup:
    x, y = layout.x[node["place"]], layout.y[node["place"]]
    inner = x + PADDING
    changed = node["status"] != "same"
    parts = [
        _box(x, y - LEAF_HEIGHT / 2, 2 * PREDICTION + ROWS + PADDING, LEAF_HEIGHT, node["status"])
    ]
    for side, start, kind in (("old", inner, "gone"), ("new", inner + PREDICTION, "name")):
        formatted = node[side]
        text = "—" if formatted is None else formatted["text"]
        if formatted is not None and not formatted["question"]:
            text = f"{formatted['number']}: {text}"
        kind = kind if formatted is not None and (changed or side == "new") else "small"
        parts.append(
            text_at(start, y + 4.5, fit_text(text, PREDICTION - 12, TEXT, bold=True), kind)
        )
    rows = fit_text(_rows(node), ROWS - 4, SMALL)
    parts.append(text_at(inner + 2 * PREDICTION, y + 4, rows, "small"))
    return Markup("<g>{}{}</g>").format(_title(node), Markup("").join(parts))


def _rows(node: Values) -> str:
    """Rows before and now; one number where they are the same."""
    numbers = [node["old_rows"], node["new_rows"]]
    old, new = ("—" if n is None else plain_text(float(f"{n:.6g}")) for n in numbers)
    return old if old == new else f"{old} → {new}"


def _title(node: Values) -> Markup:
    """The tooltip of a box: nothing shortened."""
    lines = [node["status"]]
    lines += [f"{side}: {node[side]['full']}" for side in ("old", "new") if node[side]]
    return Markup("<title>{}</title>").format("\n".join(lines))


def _box(x: float, y: float, width: float, height: float, status: str) -> Markup:
    name = "replaced" if status == "relabelled" else status
    return RECT.format(f"box {name}", x, y, width, height, 5)
