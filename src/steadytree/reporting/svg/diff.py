"""Two trees as one picture, and below it the rows that went from leaf to leaf."""

from itertools import accumulate
from typing import Any

from markupsafe import Markup

from steadytree.reporting.formatting import plain_text, rows_text, shorten
from steadytree.reporting.svg.canvas import (
    RECT,
    fit_text,
    line_at,
    read_style,
    text_at,
    text_width,
    titled,
)
from steadytree.reporting.svg.tree import GAP, PADDING, SMALL, TEXT, Layout, branches, lay_out

HEAD = 40
TALLEST, PER_LEAF = 260.0, 24.0
SPACE = 8.0  # between leaves
LINE = 15.0  # between labels
BAR = 8
MOST_BARS = 100  # leaves of a side that are drawn with their rows


def plot_flow(rows: dict[str, Any], width: float, top: float) -> tuple[Markup, float]:
    """Bands from old to new leaves, and their height; changed predictions are red."""
    leaves = {side: [x for x in rows[f"{side}_leaves"] if x["n_rows"]] for side in ("old", "new")}
    most = max(map(len, leaves.values()))
    head = _flow_head(rows, width, top)
    if most > MOST_BARS:
        text = f"not drawn: rows are in {most:,} leaves, more than {MOST_BARS}"
        return head + text_at(width / 2, top + 48, text, "small", "middle"), HEAD + 20
    tall = max(TALLEST, PER_LEAF * most)
    x = {"old": 0.32 * width, "new": 0.68 * width}
    scale = {s: (tall - SPACE * (len(own) - 1)) / rows["n_rows"] for s, own in leaves.items()}
    edge = {side: _stack(own, top + HEAD, scale[side]) for side, own in leaves.items()}
    parts = [head, *_bands(rows["flows"], leaves, edge, scale, x)]
    for side, own in leaves.items():
        parts += _bars(own, edge[side], scale[side], x[side], side, width)
    return Markup("\n").join(parts), HEAD + tall + 10


def _flow_head(rows: dict[str, Any], width: float, top: float) -> Markup:
    n, total = rows["n_flipped"], rows["n_rows"]
    title = f"Old and new leaves of {rows_text(total)}: {n:,} predictions change ({n / total:.1%})"
    return Markup("").join(
        [
            text_at(width / 2, top + 12, title, "name", "middle"),
            text_at(0.32 * width - 10, top + 30, "old leaves", "small", "end"),
            text_at(0.68 * width + 10, top + 30, "new leaves", "small"),
        ]
    )


def _stack(leaves: list[dict[str, Any]], start: float, scale: float) -> dict[int, float]:
    """Upper edge of each leaf's bar, from top to bottom."""
    heights = [leaf["n_rows"] * scale + SPACE for leaf in leaves]
    edges = accumulate(heights[:-1], initial=start)
    return dict(zip((leaf["node"] for leaf in leaves), edges, strict=True))


def _bands(
    flows: list[dict[str, Any]],
    leaves: dict[str, list[dict[str, Any]]],
    edge: dict[str, dict[int, float]],
    scale: dict[str, float],
    x: dict[str, float],
) -> list[Markup]:
    """One band for each pair of leaves, in the order in which the leaves stand."""
    numbers = {side: {leaf["node"]: leaf["number"] for leaf in own} for side, own in leaves.items()}
    at = {side: dict(edges) for side, edges in edge.items()}
    ranked = sorted(
        flows,
        key=lambda flow: (numbers["old"][flow["old_leaf"]], numbers["new"][flow["new_leaf"]]),
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
        title = f"{rows_text(n)} from old {numbers['old'][a]} to new {numbers['new'][b]}"
        title += ": the prediction changes" if flow["flips"] else ""
        parts.append(
            Markup('<path class="{}" d="{}" data-rows="{}"><title>{}</title></path>').format(
                "flip" if flow["flips"] else "stay", path, n, title
            )
        )
    return parts


def _bars(
    leaves: list[dict[str, Any]],
    edge: dict[int, float],
    scale: float,
    x: float,
    side: str,
    width: float,
) -> list[Markup]:
    """Bars with the names of their leaves; a line leads to a name that had to be moved."""
    tall = [leaf["n_rows"] * scale for leaf in leaves]
    middles = [edge[leaf["node"]] + own / 2 for leaf, own in zip(leaves, tall, strict=True)]
    bottom = edge[leaves[-1]["node"]] + tall[-1]
    sign, anchor = (-1, "end") if side == "old" else (1, "start")
    parts = []
    for leaf, own, middle, y in zip(leaves, tall, middles, _apart(middles, bottom), strict=True):
        text = f"{leaf['number']}: {leaf['label']} ({rows_text(leaf['n_rows'])})"
        short = fit_text(text, 0.32 * width - 32, TEXT)
        bar = RECT.format("bar", x - BAR / 2, edge[leaf["node"]], BAR, round(own, 2), 0)
        line = line_at(x + sign * BAR / 2, middle, x + sign * 20, y, "leader")
        name = text_at(x + sign * 23, y + 4, short, anchor=anchor)
        parts.append(titled(bar + line + name, text))
    return parts


def _apart(middles: list[float], bottom: float) -> list[float]:
    """Heights of names near the middles of their bars: a line apart, and none below the bottom."""
    heights: list[float] = []
    for middle in middles:
        heights.append(max(middle, heights[-1] + LINE) if heights else middle)
    limit = max(bottom, middles[0])
    for k in range(len(heights) - 1, -1, -1):
        heights[k] = min(heights[k], limit)
        limit = heights[k] - LINE
    return heights


MARGIN, TOP = 8, 92
TEXT_LINE = 19  # height of a sentence above the legend
BOX_HEIGHT, LEAF_HEIGHT = 70, 26
STRETCH = 1.1  # of the heights of a plain tree, whose boxes are lower
NARROWEST_BOX, WIDEST_BOX = 124.0, 260.0
ROWS = 96  # width of the column with rows
NARROWEST_LEAF, WIDEST_LEAF = 110.0, 230.0
MOST_LEAVES = 64
NARROWEST, WIDEST_HEADLINE = 640, 980
HEADLINE = 12.5  # size of its text
LEGEND = (
    ("same", "same"),
    ("moved", "moved (dotted: moved away)"),
    ("adjusted", "adjusted: other threshold"),
    ("replaced", "replaced or relabelled"),
    ("grown", "grown"),
    ("cut", "cut"),
)
# number of categories that are listed, and of letters of each, tried in this order
SHORTER = ((4, 16), (4, 12), (4, 9), (3, 12), (3, 9), (2, 16), (2, 9), (1, 16), (1, 9), (1, 6))
STYLE = read_style("diff.css")


def plot_diff(data: dict[str, Any]) -> Markup:
    """Draw what `build_diff` returned, as one picture.

    Grey boxes are the same, blue ones moved, amber ones adjusted, vermilion ones replaced, green
    ones grown and pink ones cut; what no longer holds is struck through.
    """
    nodes = shown_nodes(data["nodes"])
    layout, leaf = _lay_out(nodes), _leaf_width(nodes)
    wanted = min(text_width(data["headline"], HEADLINE, bold=True), WIDEST_HEADLINE)
    width = max(layout.leaves_x + 2 * leaf + ROWS + PADDING, NARROWEST, wanted)
    lines = [line for line in (*data["classes_text"], data["alike_text"]) if line]
    top = TOP + TEXT_LINE * len(lines)
    parts = [
        _legend(data["headline"], lines, width),
        branches(nodes, layout, [*map(_share, nodes)], map(_is_one_sided, nodes)),
        _heads(layout.leaves_x + PADDING, leaf),
    ]
    parts += [
        _split(node, layout) if "left" in node else _leaf(node, layout, leaf) for node in nodes
    ]
    height = layout.height
    if data["rows"] is not None:
        flow, flow_height = plot_flow(data["rows"], width, height + 34)
        parts.append(flow)
        height += 34 + flow_height
    full = round(width + 2 * MARGIN), round(height + top + 2 * MARGIN)
    body, label = Markup("\n").join(parts), " ".join([data["headline"], *lines])
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="steadytree-diff" viewBox="0 0 {} {}" '
        'width="{}" height="{}" role="img" aria-label="{}"><style>{}</style>'
        '<rect class="back" width="100%" height="100%"/>'
        '<g transform="translate({} {})">{}</g></svg>'
    ).format(*full, *full, label, Markup(STYLE), MARGIN, MARGIN + top, body)


def shown_nodes(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The nodes of the upper levels that a picture has room for."""
    deepest = max(node["depth"] for node in nodes)
    while deepest > 1 and _n_ends(nodes, deepest) > MOST_LEAVES:
        deepest -= 1
    return upper_levels(nodes, deepest)


def upper_levels(nodes: list[dict[str, Any]], deepest: int) -> list[dict[str, Any]]:
    """The nodes down to a level, numbered anew."""
    kept = [node for node in nodes if node["depth"] <= deepest]
    index = {node["place"]: new for new, node in enumerate(kept)} | {None: None}
    shown = []
    for node in kept:
        node = node | {"place": index[node["place"]], "parent": index[node["parent"]]}
        if "left" in node and node["depth"] < deepest:
            node |= {"left": index[node["left"]], "right": index[node["right"]]}
        else:
            node = {key: part for key, part in node.items() if key not in ("left", "right")}
        shown.append(node)
    return shown


def _n_ends(nodes: list[dict[str, Any]], deepest: int) -> int:
    ends = [node for node in nodes if node["depth"] == deepest or "left" not in node]
    return sum(node["depth"] <= deepest for node in ends)


def _lay_out(nodes: list[dict[str, Any]]) -> Layout:
    """A plain tree's layout with boxes as wide as their lines, within limits."""
    plain = lay_out([node | {"feature": "", "test": "", "missing": ""} for node in nodes])
    widths = [NARROWEST_BOX] * len(plain.widths)
    for node in nodes:
        if "left" in node:
            wanted = max(text_width(text, TEXT, bold=True) for text, _ in _lines(node))
            wanted = max(wanted, text_width(_foot(node) + "  " + _rows(node), SMALL))
            level = node["depth"]
            widths[level] = min(max(widths[level], wanted + 2 * PADDING), WIDEST_BOX)
    starts = [*accumulate((width + GAP for width in widths), initial=0.0)]
    x = [starts[node["depth"]] if "left" in node else starts[-1] for node in nodes]
    y = [STRETCH * height for height in plain.y]
    return Layout(x, y, widths, starts[-1], max(STRETCH * plain.height, float(BOX_HEIGHT)))


def _leaf_width(nodes: list[dict[str, Any]]) -> float:
    """Width of a column of predictions."""
    texts = [text for node in nodes if "left" not in node for text, _ in _predictions(node)]
    longest = max(text_width(text, TEXT, bold=True) for text in texts) + 14
    return min(max(longest, NARROWEST_LEAF), WIDEST_LEAF)


def _legend(headline: str, lines: list[str], width: float) -> Markup:
    """The headline, sentences below it, and the meaning of the colours."""
    top = -TOP + 18 - TEXT_LINE * len(lines)
    parts = [
        titled(text_at(0, top, fit_text(headline, width, HEADLINE, bold=True), "name"), headline)
    ]
    for k, line in enumerate(lines, start=1):
        text = text_at(0, top + TEXT_LINE * k, fit_text(line, width, TEXT), "class")
        parts.append(titled(text, line))
    x = 0.0
    for status, meaning in LEGEND:
        parts.append(RECT.format(f"f-{status}", x, -TOP + 34, 11, 11, 2))
        parts.append(text_at(x + 16, -TOP + 44, meaning, "small"))
        x += 16 + text_width(meaning, SMALL) + 18
    return Markup("").join(parts)


def _heads(x: float, leaf: float) -> Markup:
    heads = {"old prediction": x, "new prediction": x + leaf, "rows": x + 2 * leaf}
    return Markup("").join(text_at(start, -9, head, "small") for head, start in heads.items())


def _share(node: dict[str, Any]) -> float:
    return max(node["old_share"], node["new_share"])


def _is_one_sided(node: dict[str, Any]) -> bool:
    return node["old"] is None or node["new"] is None


def _split(node: dict[str, Any], layout: Layout) -> Markup:
    x, y = layout.x[node["place"]], layout.y[node["place"]]
    width = layout.widths[node["depth"]]
    top, room, rows = y - BOX_HEIGHT / 2, width - 2 * PADDING, _rows(node)
    lines = _lines(node, room)
    first = top + 17 + 7.5 * (3 - len(lines))
    parts = [
        text_at(x + PADDING, first + 15 * k, text, kind) for k, (text, kind) in enumerate(lines)
    ]
    foot = fit_text(_foot(node), room - text_width(rows, SMALL) - 6, SMALL)
    parts.append(text_at(x + PADDING, top + 63, foot, "small"))
    parts.append(text_at(x + width - PADDING, top + 63, rows, "small", anchor="end"))
    box = _box(x, top, width, BOX_HEIGHT, node["status"])
    return titled(box + Markup("").join(parts), _title(node))


def _foot(node: dict[str, Any]) -> str:
    return node["note"].split("; ")[0] or node["status"]


def _lines(node: dict[str, Any], room: float = 1e9) -> list[tuple[str, str]]:
    """At most three lines of a split's box, each with its class."""
    old, new = node["old"], node["new"]
    if node["status"] in ("same", "moved"):
        old = None
    if node["status"] == "adjusted":
        feature = fit_text(new["feature"], room, TEXT, bold=True)
        tests = [(_fit_test(own, room), kind) for own, kind in ((old, "gone"), (new, "name"))]
        return [(feature, "name"), *tests]
    former = [] if old is None else _own_lines(old, room, "old", "gone", "gone")
    now = [] if new is None else _own_lines(new, room, "new", "name", "")
    if "away" in node:
        former = [(fit_text(node["away"], room, TEXT, bold=True), "gone")]
    if len(former) + len(now) > 3:
        feature = fit_text(old["feature"], 0.5 * room, TEXT, bold=True)
        rest = room - text_width(feature + " ", TEXT, bold=True)
        former = [(f"{feature} {_fit_test(old, rest)}", "gone")]
    return former + now


def _own_lines(
    own: dict[str, Any], room: float, side: str, first: str, second: str
) -> list[tuple[str, str]]:
    if own["question"]:
        feature = fit_text(own["feature"], room, TEXT, bold=True)
        return [(feature, first), (_fit_test(own, room), second)]
    text = f"{side} {own['number']}: {own['text']}"
    return [(fit_text(text, room, TEXT, bold=True), first)]


def _fit_test(own: dict[str, Any], room: float) -> str:
    """The test of a split, with fewer and shorter names of categories where room is scarce."""
    text = own["test"]
    if not own["n_categories"] or text_width(text, TEXT, bold=True) <= room:
        return fit_text(text, room, TEXT, bold=True)
    for most, longest in SHORTER:
        shown = [shorten(name, longest) for name in own["categories"][:most]]
        more = own["n_categories"] - len(shown)
        listed = ", ".join([*shown, *([f"{more} more"] if more else [])])
        text = f"in {{{listed}}}" if own["relation"] == "in" else f"{own['relation']} {listed}"
        text += own["missing"]
        if text_width(text, TEXT, bold=True) <= room:
            break
    return text


def _leaf(node: dict[str, Any], layout: Layout, leaf: float) -> Markup:
    x, y = layout.x[node["place"]], layout.y[node["place"]]
    inner = x + PADDING
    parts = [_box(x, y - LEAF_HEIGHT / 2, 2 * leaf + ROWS + PADDING, LEAF_HEIGHT, node["status"])]
    for k, (text, kind) in enumerate(_predictions(node)):
        short = fit_text(text, leaf - 12, TEXT, bold=True)
        parts.append(text_at(inner + k * leaf, y + 4.5, short, kind))
    rows = fit_text(_rows(node), ROWS - 4, SMALL)
    parts.append(text_at(inner + 2 * leaf, y + 4, rows, "small"))
    return titled(Markup("").join(parts), _title(node))


def _predictions(node: dict[str, Any]) -> list[tuple[str, str]]:
    """Old and new prediction, each with its class; a split where the picture has no more room."""
    found = []
    for side, kind in (("old", "gone"), ("new", "name")):
        own = node[side]
        if own is None:
            away = node.get("away") if side == "old" else None
            found.append((away, "gone") if away else ("—", "small"))
            continue
        text = own["text"] if own["question"] else f"{own['number']}: {own['text']}"
        found.append((text, "small" if side == "old" and node["status"] == "same" else kind))
    return found


def _rows(node: dict[str, Any]) -> str:
    """Rows before and now; one number where they are the same."""
    numbers = [node["old_rows"], node["new_rows"]]
    old, new = ("—" if n is None else plain_text(float(f"{n:.6g}")) for n in numbers)
    return old if old == new else f"{old} → {new}"


def _title(node: dict[str, Any]) -> str:
    """The tooltip of a box: nothing shortened."""
    lines = [node["status"], node["note"]]
    lines += [f"{side}: {node[side]['full']}" for side in ("old", "new") if node[side]]
    return "\n".join(line for line in lines if line)


def _box(x: float, y: float, width: float, height: float, status: str) -> Markup:
    name = "replaced" if status == "relabelled" else status  # "moved away" is two classes
    return RECT.format(f"box {name}", x, y, width, height, 5)
