"""Charts: curves, tables of shares, strips of values and named points."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

from markupsafe import Markup

from steadytree.reporting.formatting import percent_text
from steadytree.reporting.svg import canvas
from steadytree.reporting.svg.canvas import (
    RECT,
    Axis,
    Chart,
    Part,
    fit_text,
    line_at,
    text_at,
    text_width,
    titled,
)

LEGEND = 22  # height of one line of the legend
DASHES = ("", "6 3", "2 3", "8 3 2 3")
PATH = Markup('<path class="s{}" fill="none" stroke-width="2" stroke-dasharray="{}" d="{}"/>')
DOT = Markup('<circle class="c{}" cx="{:.1f}" cy="{:.1f}" r="4"/>')


@dataclass(frozen=True)
class Series:
    """A line of a chart."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None  # ends of intervals, drawn as whiskers
    high: Sequence[float] | None = None
    steps: bool = False  # y holds until the next x
    colour: int = 0  # index into the palette
    dots: bool = False
    line: bool = True


def curve(series: Sequence[Series], x: Axis, y: Axis) -> Part:
    """Lines over two axes, with a legend above where there are several.

    Each line has a colour and a dash of its own, so that they differ in print too.
    """
    chart = Chart(x, y)
    legend, lines = _legend(series) if len(series) > 1 else (Markup(""), 0)
    parts = [_line(one, chart, dash) for one, dash in zip(series, cycle(DASHES), strict=False)]
    body = Markup('{}<g transform="translate(0 {})">{}</g>').format(
        legend, lines * LEGEND, Markup("").join([chart.plot_axes(), *parts])
    )
    return Part(body, canvas.WIDTH, canvas.HEIGHT + lines * LEGEND)


def _line(series: Series, chart: Chart, dash: str) -> Markup:
    points = [chart.at(x, y) for x, y in zip(series.x, series.y, strict=True)]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for x, y in points[1:]:
        path += f"H{x:.1f}V{y:.1f}" if series.steps else f"L{x:.1f} {y:.1f}"
    parts = []
    if series.low is not None and series.high is not None:
        for x, low, high in zip(series.x, series.low, series.high, strict=True):
            (across, bottom), (_, top) = chart.at(x, low), chart.at(x, high)
            parts.append(line_at(across, bottom, across, top, "whisker"))
    if series.line:
        parts.append(PATH.format(series.colour, dash, path))
    if series.dots:
        parts += [DOT.format(series.colour, x, y) for x, y in points]
    return Markup("").join(parts)


def _legend(series: Sequence[Series]) -> tuple[Markup, int]:
    """Names beside a piece of their line; how many lines of text it takes."""
    parts, x, line = [], float(canvas.LEFT), 0
    for one, dash in zip(series, cycle(DASHES), strict=False):
        room = 34 + text_width(one.name, 12.5) + 16
        if x + room > canvas.WIDTH and x > canvas.LEFT:
            x, line = float(canvas.LEFT), line + 1
        y = LEGEND * (line + 0.5) + 2
        if one.line:
            parts.append(PATH.format(one.colour, dash, f"M{x:.1f} {y:.1f}h26"))
        else:
            parts.append(DOT.format(one.colour, x + 14, y))
        parts.append(text_at(x + 32, y + 4, one.name))
        x += room
    return Markup("").join(parts), line + 1


HEAT_WIDTH, HEAT_NAMES, HEAT_ROW, TOP = 460, 170, 26, 24
DARK = 0.6  # from which a white text reads better


def heat(
    rows: Sequence[str],
    columns: Sequence[str],
    shares: Sequence[Sequence[float]],
    texts: Sequence[Sequence[str]] | None = None,
) -> Part:
    """A table of shares between 0 and 1, one sequence a row; `texts` replace their percentages."""
    wide = (HEAT_WIDTH - HEAT_NAMES) / max(len(columns), 1)
    parts = [
        text_at(HEAT_NAMES + (k + 0.5) * wide, 15, fit_text(name, wide - 4, 11), "small", "middle")
        for k, name in enumerate(columns)
    ]
    for r, (name, values) in enumerate(zip(rows, shares, strict=True)):
        y = TOP + r * HEAT_ROW
        parts.append(titled(text_at(0, y + 17, fit_text(name, HEAT_NAMES - 10, 12.5)), name))
        for k, value in enumerate(values):
            shown = texts[r][k] if texts else percent_text(value) if value > 0 else "–"
            parts.append(_cell(HEAT_NAMES + k * wide, y, wide, value, shown))
    return Part(Markup("").join(parts), HEAT_WIDTH, TOP + HEAT_ROW * len(rows) + 4)


def _cell(x: float, y: float, wide: float, value: float, shown: str) -> Markup:
    back = Markup(
        '<rect class="heat" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{}" '
        'fill-opacity="{:.3f}"/>'
    ).format(x + 1, y + 1, wide - 2, HEAT_ROW - 2, value)
    ink = "cell on-heat-text" if value >= DARK else "cell"
    empty = RECT.format("empty", x + 1, y + 1, wide - 2, HEAT_ROW - 2, 0)
    return empty + back + text_at(x + wide / 2, y + 17, shown, ink, "middle")


STRIP_WIDTH, STRIP_ROW, STRIP_NAMES, NOTES = 470, 34, 136, 88


@dataclass(frozen=True)
class Strip:
    """Values between two ends, each a thin line."""

    name: str
    values: Sequence[float]
    low: float
    high: float
    own: Sequence[float] = ()  # values of the model itself, drawn thicker
    note: str = ""  # at the right
    low_text: str = ""
    high_text: str = ""


def strips(listed: Sequence[Strip]) -> Part:
    """Strips one below the other; where lines are dense, values are frequent."""
    parts = [_strip(strip, 6 + index * STRIP_ROW) for index, strip in enumerate(listed)]
    return Part(Markup("").join(parts), STRIP_WIDTH, 10 + STRIP_ROW * len(listed))


def _strip(strip: Strip, y: float) -> Markup:
    left, right = STRIP_NAMES + 8, STRIP_WIDTH - NOTES - 8
    span = (strip.high - strip.low) or 1.0

    def across(value: float) -> float:
        return left + (right - left) * min(max((value - strip.low) / span, 0.0), 1.0)

    parts = [
        text_at(0, y + 13, fit_text(strip.name, STRIP_NAMES, 12.5)),
        RECT.format("empty", left, y + 2, right - left, 14, 2),
    ]
    parts += [line_at(x, y + 2, x, y + 16, "cut") for x in map(across, strip.values)]
    parts += [line_at(x, y, x, y + 18, "own") for x in map(across, strip.own)]
    parts.append(text_at(left, y + 27, strip.low_text, "small"))
    parts.append(text_at(right, y + 27, strip.high_text, "small", "end"))
    parts.append(text_at(right + 8, y + 13, fit_text(strip.note, NOTES, 11), "small"))
    return titled(Markup("").join(parts), f"{strip.name}: {len(strip.values)} values")


Box = tuple[float, float, float, float]  # left, top, right and bottom
LEAST, MOST = 5.0, 15.0  # radius of points


@dataclass(frozen=True)
class Point:
    """A named point."""

    name: str
    x: float
    y: float
    weight: float = 1.0  # drawn as the area
    y_interval: tuple[float, float] | None = None
    colour: int = 0
    note: str = ""  # tooltip


def scatter(points: Sequence[Point], x: Axis, y: Axis) -> Part:
    """Named points; names are moved up or down where they would overlap."""
    chart = Chart(x, y)
    heaviest = max((point.weight for point in points), default=1.0) or 1.0
    radii = [LEAST + (MOST - LEAST) * (point.weight / heaviest) ** 0.5 for point in points]
    circles = [(*chart.at(p.x, p.y), radius) for p, radius in zip(points, radii, strict=True)]
    parts = [chart.plot_axes()]
    for point in points:
        if point.y_interval is not None:
            (px, low), (_, high) = (chart.at(point.x, end) for end in point.y_interval)
            parts.append(line_at(px, low, px, high, "whisker"))
    circled = sorted(zip(points, circles, strict=True), key=lambda one: -one[0].weight)
    for point, circle in circled:
        dot = Markup(
            '<circle class="c{} ring" cx="{:.1f}" cy="{:.1f}" r="{:.1f}" fill-opacity=".8"/>'
        ).format(point.colour, *circle)
        parts.append(titled(dot, point.note or point.name))
    parts += _names(points, circles)
    return Part(Markup("").join(parts), canvas.WIDTH, canvas.HEIGHT)


def _names(points: Sequence[Point], circles: Sequence[tuple[float, float, float]]) -> list[Markup]:
    """Names beside their points, each where it hides no other name and no other point."""
    taken = [(px - radius, py - radius, px + radius, py + radius) for px, py, radius in circles]
    parts = []
    for index, (point, (px, py, radius)) in enumerate(zip(points, circles, strict=True)):
        wide = text_width(point.name, 12.5, bold=True)
        box = _free_box(px, py, radius, wide, taken[:index] + taken[index + 1 :])
        taken.append(box)
        if abs(box[1] + 8 - py) > radius + 12:
            parts.append(line_at(px, py, (box[0] + box[2]) / 2, box[1] + 8, "axis"))
        parts.append(text_at(box[0], box[3] - 4, point.name, "name halo"))
    return parts


def _free_box(px: float, py: float, radius: float, wide: float, taken: list[Box]) -> Box:
    """The nearest free box for a name; the last one tried where none is free."""
    box = (px, py, px, py)
    for away in range(0, 200, 8):
        for sign in (-1, 1):
            for x in (px + radius + 4, px - radius - 4 - wide, px - wide / 2):
                if x == px - wide / 2 and away < radius + 10:
                    continue  # it would hide its own point
                top = py - 8 + sign * away
                box = (x, top, x + wide, top + 16)
                inside = box[0] > 58 and box[2] < canvas.WIDTH - canvas.RIGHT and box[1] > 4
                if inside and box[3] < canvas.HEIGHT - 48 and not _hits(box, taken):
                    return box
    return box


def _hits(box: Box, taken: list[Box]) -> bool:
    return any(
        box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
        for other in taken
    )
