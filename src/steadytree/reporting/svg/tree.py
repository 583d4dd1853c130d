"""Tree SVG: a tree drawn as one picture that needs nothing else."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from markupsafe import Markup

from steadytree.reporting.formatting import percent_text, rows_text
from steadytree.reporting.svg import canvas
from steadytree.reporting.svg.canvas import RECT, Part, fit_text, text_at, text_width

BOX_HEIGHT = 66
LEAF_STEP = 35  # from leaf to leaf
GAP = 40  # between columns
PADDING = 9
TEXT = 12.5
SMALL = 11
NARROWEST, WIDEST = 124, 200


@dataclass(frozen=True)
class Layout:
    """Positions of all boxes, in the order of the nodes."""

    x: list[float]  # left edges
    y: list[float]  # vertical middles
    widths: list[float]  # of the boxes of splits, by level
    leaves_x: float  # left edge of the column of leaves
    height: float

    def right_edge(self, node: dict[str, Any]) -> float:
        return self.x[node["place"]] + self.widths[node["depth"]]

    def edge(self, parent: dict[str, Any], node: dict[str, Any]) -> tuple[str, float, float]:
        """The path of a line from a split to a child, and the middle of its bend."""
        start, above = self.right_edge(parent), self.y[parent["place"]]
        end, y, bend = self.x[node["place"]], self.y[node["place"]], start + GAP / 2
        curve = f"C{bend:.1f} {above:.1f} {bend:.1f} {y:.1f} {start + GAP:.1f} {y:.1f}"
        return f"M{start:.1f} {above:.1f}{curve}H{end:.1f}", bend, (above + y) / 2


def lay_out(nodes: Sequence[dict[str, Any]]) -> Layout:
    """Place the nodes of `build_nodes`, which come in the order root, left, right."""
    widths = _level_widths(nodes)
    starts = [sum(widths[:level]) + GAP * level for level in range(len(widths) + 1)]
    y = [0.0] * len(nodes)
    n_leaves = 0
    for index, node in enumerate(nodes):
        if "left" not in node:
            y[index] = LEAF_STEP * (n_leaves + 0.5)
            n_leaves += 1
    for index, node in reversed(list(enumerate(nodes))):  # children come later
        if "left" in node:
            y[index] = (y[node["left"]] + y[node["right"]]) / 2
    x = [starts[node["depth"]] if "left" in node else starts[-1] for node in nodes]
    return Layout(x, y, widths, starts[-1], max(LEAF_STEP * n_leaves, float(BOX_HEIGHT)))


def split_line(node: dict[str, Any]) -> str:
    """The test of the feature, and the branch of missing values."""
    return f"{node['test']} (missing: {node['missing']})" if node["missing"] else node["test"]


def _level_widths(nodes: Sequence[dict[str, Any]]) -> list[float]:
    """Room for the longest text of each level, within limits."""
    splits = [node for node in nodes if "left" in node]
    widths = [float(NARROWEST)] * (max((node["depth"] for node in splits), default=-1) + 1)
    for node in splits:
        wanted = max(
            text_width(node["feature"], TEXT, bold=True), text_width(split_line(node), TEXT)
        )
        level = node["depth"]
        widths[level] = min(max(widths[level], wanted + 2 * PADDING), WIDEST)
    return widths


TOP = 30  # room for the heads of the columns
MARGIN = 6
BAR, ROWS = 92, 86  # widths of these columns of leaves
NARROWEST_LEAF, WIDEST_LEAF = 64, 160
THICKEST = 9.0
LEAF_HEIGHT = 26
BAR_HEIGHT = 9
HISTOGRAM_HEIGHT = 16


def plot_tree(tree: dict[str, Any]) -> Markup:
    """Draw what `build_nodes` returned, as one picture."""
    nodes = tree["nodes"]
    layout = lay_out(nodes)
    colours = canvas.class_colours(nodes[0]["counts"])
    leaf_width = _leaf_width(tree)
    width, height = _size(layout, leaf_width)
    x = layout.leaves_x + PADDING
    heads = {"prediction": x, "actual classes": x + leaf_width, "rows": x + leaf_width + BAR}
    parts = [branches(nodes, layout, [node["share"] for node in nodes]), column_heads(heads)]
    for node in nodes:
        if "left" in node:
            parts.append(_split(node, layout, tree["classes"], colours))
        else:
            parts.append(_leaf(node, layout, tree["classes"], colours, leaf_width))
    body = Markup('<g transform="translate({} {})">{}</g>').format(
        MARGIN, MARGIN + TOP, Markup("\n").join(parts)
    )
    label = f"Decision tree with {tree['n_leaves_shown']} leaves"
    return canvas.frame_picture(Part(body, width, height), label)


def picture_size(tree: dict[str, Any]) -> tuple[int, int]:
    """Width and height of the picture in pixels."""
    return _size(lay_out(tree["nodes"]), _leaf_width(tree))


def _leaf_width(tree: dict[str, Any]) -> float:
    """Room for the longest prediction, within limits."""
    texts = [leaf_line(node, tree["classes"]) for node in tree["nodes"] if "left" not in node]
    longest = max(text_width(text, TEXT, bold=True) for text in texts) + 14
    return min(max(longest, NARROWEST_LEAF), WIDEST_LEAF)


def leaf_line(node: dict[str, Any], classes: list[str]) -> str:
    """The prediction, and how many more leaves the node stands for."""
    more = f" (+{node['n_below'] - 1:,})" if node["n_below"] > 1 else ""
    return classes[node["answer"]] + more


def _size(layout: Layout, leaf_width: float) -> tuple[int, int]:
    width = layout.leaves_x + leaf_width + BAR + ROWS + PADDING + 2 * MARGIN
    return round(width), round(layout.height + TOP + 2 * MARGIN)


def branches(
    nodes: list[dict[str, Any]], layout: Layout, shares: list[float], dashed: Iterable[bool] = ()
) -> Markup:
    """Lines from splits to their children, as wide as the share of rows."""
    parts, labels = [], []
    for node, share, is_dashed in zip_longest(nodes, shares, dashed):
        if node["parent"] is None:
            continue
        path, x, y = layout.edge(nodes[node["parent"]], node)
        dashes = Markup(' stroke-dasharray="5 4"' if is_dashed else "")
        line = Markup('<path class="edge" data-node="{}" stroke-width="{:.1f}"{} d="{}"/>')
        parts.append(line.format(node.get("id", ""), 1 + (THICKEST - 1) * share, dashes, path))
        labels.append(text_at(x, y + 4, node["side"], "small side"))
    return Markup("").join(parts + labels)


def column_heads(positions: dict[str, float]) -> Markup:
    """Headings above the columns of leaves."""
    return Markup("").join(text_at(x, -9, head, "small") for head, x in positions.items())


def _split(node: dict[str, Any], layout: Layout, classes: list[str], colours: list[int]) -> Markup:
    x, y = layout.x[node["place"]], layout.y[node["place"]]
    width = layout.widths[node["depth"]]
    top, room = y - BOX_HEIGHT / 2, width - 2 * PADDING
    rows = rows_text(node["n_rows"]) if node["n_rows"] < 10_000 else f"{node['n_rows']:,}"
    bar = room - text_width(rows, SMALL) - 6
    return Markup('<g data-node="{}">{}{}{}{}{}{}</g>').format(
        node["id"],
        _title(node, classes),
        RECT.format("box", x, top, width, BOX_HEIGHT, 5),
        text_at(x + PADDING, top + 18, fit_text(node["feature"], room, TEXT, bold=True), "name"),
        text_at(x + PADDING, top + 34, fit_text(split_line(node), room, TEXT)),
        _histogram(x + PADDING, top + 42, bar, node, colours),
        text_at(x + width - PADDING, top + 57, rows, "small", anchor="end"),
    )


def _leaf(
    node: dict[str, Any], layout: Layout, classes: list[str], colours: list[int], width: float
) -> Markup:
    x, y = layout.x[node["place"]], layout.y[node["place"]]
    top, inner, height = y - LEAF_HEIGHT / 2, x + PADDING, LEAF_HEIGHT
    line = fit_text(leaf_line(node, classes), width - 10, TEXT, bold=True)
    rows = f"{node['n_rows']:,} · {percent_text(node['share'])}"
    return Markup('<g class="leaf" data-node="{}">{}{}{}{}{}{}</g>').format(
        node["id"],
        _title(node, classes),
        RECT.format("box", x, top, width + BAR + ROWS + PADDING, height, 5),
        RECT.format(f"c{colours[node['answer']]}", x, top, 5, height, 2),
        text_at(inner + 2, y + 4.5, line, "name"),
        _bar(inner + width, y - BAR_HEIGHT / 2, BAR - 10, node["counts"], colours),
        text_at(inner + width + BAR, y + 4, fit_text(rows, ROWS - 4, SMALL), "small"),
    )


def _bar(x: float, y: float, width: float, counts: list[int], colours: list[int]) -> Markup:
    """Shares of the classes side by side."""
    parts = [RECT.format("empty", x, y, width, BAR_HEIGHT, 0)]
    for colour, share in canvas.bar_parts(counts, colours):
        parts.append(RECT.format(f"c{colour}", x, y, width * share, BAR_HEIGHT, 0))
        x += width * share
    return Markup("").join(parts)


def _histogram(
    x: float, y: float, width: float, node: dict[str, Any], colours: list[int]
) -> Markup:
    """The column's values in the node, stacked by class, and the threshold between them."""
    found = node.get("histogram")
    if found is None:
        return _bar(x, y + HISTOGRAM_HEIGHT - BAR_HEIGHT, width, node["counts"], colours)
    bars, bottom = found["counts"], y + HISTOGRAM_HEIGHT
    step, most = width / len(bars), max(map(sum, bars))
    paths: dict[int, list[str]] = {}
    for k, counts in enumerate(bars):
        below = 0.0
        for colour, share in canvas.bar_parts(counts, colours) if sum(counts) else ():
            height = HISTOGRAM_HEIGHT * sum(counts) / most * share
            start = f"M{x + k * step:.1f} {bottom - below:.1f}"
            paths.setdefault(colour, []).append(f"{start}v{-height:.1f}h{step:.1f}v{height:.1f}z")
            below += height
    shapes = [
        Markup('<path class="c{}" d="{}"/>').format(colour, "".join(parts))
        for colour, parts in sorted(paths.items())
    ]
    at = x + width * found["at"]
    lines = canvas.line_at(x, bottom, x + width, bottom, "axis")
    return Markup("").join(shapes) + lines + canvas.line_at(at, y - 1, at, bottom + 1, "own")


def _title(node: dict[str, Any], classes: list[str]) -> Markup:
    """The tooltip of a box: nothing shortened, nothing rounded."""
    lines = [f"{node['full']}?"] if "full" in node else [f"prediction: {classes[node['answer']]}"]
    lines.append(f"{rows_text(node['n_rows'])}, {percent_text(node['share'])} of all")
    found = [(count, name) for count, name in zip(node["counts"], classes, strict=True) if count]
    lines += [f"{name}: {count:,}" for count, name in sorted(found, reverse=True)[:10]]
    if node.get("conditions"):
        lines.append("if " + " and ".join(node["conditions"]))
    return Markup("<title>{}</title>").format("\n".join(lines))
