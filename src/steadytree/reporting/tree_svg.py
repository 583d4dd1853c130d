"""Tree SVG: a tree drawn as one picture that needs nothing else."""

from typing import Any

from markupsafe import Markup

from steadytree.reporting.numbers import percent_text, rows_text
from steadytree.reporting.palette import class_colours
from steadytree.reporting.picture import RECT, Picture, frame_picture, text_at
from steadytree.reporting.text_width import fit_text, text_width
from steadytree.reporting.tree_layout import (
    BOX_HEIGHT,
    PADDING,
    SMALL,
    TEXT,
    Layout,
    lay_out,
    test_line,
)

TOP = 30  # room for the heads of the columns
MARGIN = 6
BAR, ROWS = 92, 86  # widths of these columns of answers
NARROWEST_ANSWER, WIDEST_ANSWER = 64, 160
THICKEST = 9.0
ANSWER_HEIGHT = 26
BAR_HEIGHT = 9


def draw_tree(tree: dict[str, Any]) -> Picture:
    """Draw what `collect_tree` returned.

    Parameters
    ----------
    tree : dict
        Classes and nodes.

    Returns
    -------
    svg : Markup
        One ``<svg>`` element; its texts are escaped.
    """
    nodes = tree["nodes"]
    layout = lay_out(nodes)
    colours = class_colours(nodes[0]["counts"])
    answer = _answer_width(tree)
    width, height = _size(layout, answer)
    parts = [_edges(nodes, layout), _heads(layout.answers_x + PADDING, answer)]
    for node in nodes:
        if "left" in node:
            parts.append(_question(node, layout, tree["classes"], colours))
        else:
            parts.append(_answer(node, layout, tree["classes"], colours, answer))
    body = Markup('<g transform="translate({} {})">{}</g>').format(
        MARGIN, MARGIN + TOP, Markup("\n").join(parts)
    )
    label = f"Decision tree with {tree['n_leaves_shown']} answers"
    return frame_picture(width, height, label, body)


def picture_size(tree: dict[str, Any]) -> tuple[int, int]:
    """Width and height of the picture in pixels."""
    return _size(lay_out(tree["nodes"]), _answer_width(tree))


def _answer_width(tree: dict[str, Any]) -> float:
    """Room for the longest answer, within limits."""
    answers = [answer_line(node, tree["classes"]) for node in tree["nodes"] if "left" not in node]
    longest = max(text_width(answer, TEXT, bold=True) for answer in answers) + 14
    return min(max(longest, NARROWEST_ANSWER), WIDEST_ANSWER)


def answer_line(node: dict[str, Any], classes: list[str]) -> str:
    """The answer, and how many more leaves it stands for."""
    more = f" (+{node['n_below'] - 1:,})" if node["n_below"] > 1 else ""
    return classes[node["answer"]] + more


def _size(layout: Layout, answer: float) -> tuple[int, int]:
    width = layout.answers_x + answer + BAR + ROWS + PADDING + 2 * MARGIN
    return round(width), round(layout.height + TOP + 2 * MARGIN)


def _edges(nodes: list[dict[str, Any]], layout: Layout) -> Markup:
    """Lines from questions to what follows, as wide as the share of rows that go there."""
    parts, labels = [], []
    for node in nodes:
        if node["parent"] is None:
            continue
        path, x, y = layout.edge(nodes[node["parent"]], node)
        line = Markup('<path class="edge" stroke-width="{:.1f}" d="{}"/>')
        parts.append(line.format(1 + (THICKEST - 1) * node["share"], path))
        labels.append(text_at(x, y + 4, node["side"], "small side"))
    return Markup("").join(parts + labels)


def _heads(x: float, answer: float) -> Markup:
    places = {"answer": x, "true classes": x + answer, "rows": x + answer + BAR}
    return Markup("").join(text_at(place, -9, head, "small") for head, place in places.items())


def _question(
    node: dict[str, Any], layout: Layout, classes: list[str], colours: list[int]
) -> Markup:
    x, y = layout.x[node["place"]], layout.y[node["place"]]
    width = layout.widths[node["depth"]]
    top, room = y - BOX_HEIGHT / 2, width - 2 * PADDING
    rows = _short_rows(node["n_rows"])
    bar = room - text_width(rows, SMALL) - 6
    return Markup("<g>{}{}{}{}{}{}</g>").format(
        _title(node, classes),
        RECT.format("box", x, top, width, BOX_HEIGHT, 5),
        text_at(x + PADDING, top + 18, fit_text(node["feature"], room, TEXT, bold=True), "name"),
        text_at(x + PADDING, top + 34, fit_text(test_line(node), room, TEXT)),
        _bar(x + PADDING, top + 42, bar, node["counts"], colours),
        text_at(x + width - PADDING, top + 50, rows, "small", anchor="end"),
    )


def _answer(
    node: dict[str, Any], layout: Layout, classes: list[str], colours: list[int], width: float
) -> Markup:
    x, y = layout.x[node["place"]], layout.y[node["place"]]
    top, inner, height = y - ANSWER_HEIGHT / 2, x + PADDING, ANSWER_HEIGHT
    line = fit_text(answer_line(node, classes), width - 10, TEXT, bold=True)
    rows = f"{node['n_rows']:,} · {percent_text(node['share'])}"
    return Markup("<g>{}{}{}{}{}{}</g>").format(
        _title(node, classes),
        RECT.format("box", x, top, width + BAR + ROWS + PADDING, height, 5),
        RECT.format(f"c{colours[node['answer']]}", x, top, 5, height, 2),
        text_at(inner + 2, y + 4.5, line, "name"),
        _bar(inner + width, y - BAR_HEIGHT / 2, BAR - 10, node["counts"], colours),
        text_at(inner + width + BAR, y + 4, fit_text(rows, ROWS - 4, SMALL), "small"),
    )


def _bar(x: float, y: float, width: float, counts: list[int], colours: list[int]) -> Markup:
    """Shares of the classes side by side, equal colours together."""
    total = sum(counts)
    parts = [RECT.format("empty", x, y, width, BAR_HEIGHT, 0)]
    by_colour: dict[int, int] = {}
    for count, colour in zip(counts, colours, strict=True):
        by_colour[colour] = by_colour.get(colour, 0) + count
    for colour, count in by_colour.items():
        if count:
            part = width * count / total
            parts.append(RECT.format(f"c{colour}", x, y, part, BAR_HEIGHT, 0))
            x += part
    return Markup("").join(parts)


def _title(node: dict[str, Any], classes: list[str]) -> Markup:
    """What a pointer at the box shows: nothing cut, nothing rounded."""
    lines = [f"{node['full']}?"] if "full" in node else [f"answer: {classes[node['answer']]}"]
    lines.append(f"{rows_text(node['n_rows'])}, {percent_text(node['share'])} of all")
    found = [(count, name) for count, name in zip(node["counts"], classes, strict=True) if count]
    lines += [f"{name}: {count:,}" for count, name in sorted(found, reverse=True)[:10]]
    if node.get("conditions"):
        lines.append("if " + " and ".join(node["conditions"]))
    return Markup("<title>{}</title>").format("\n".join(lines))


def _short_rows(count: int) -> str:
    return rows_text(count) if count < 10_000 else f"{count:,}"
