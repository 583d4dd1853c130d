"""Scatter SVG: named points over two axes, with intervals and sizes."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from steadytree.reporting.axes import RIGHT, Axis, Chart
from steadytree.reporting.picture import Picture, frame_picture, line_at, text_at, titled
from steadytree.reporting.text_width import text_width

LEAST, MOST = 5.0, 15.0  # radius of points


@dataclass(frozen=True)
class Point:
    """A named point.

    Parameters
    ----------
    name : str
    x, y : float
    weight : float
        Drawn as the area of the point.
    x_interval, y_interval : pairs of float, optional
    colour : int
        Place in the palette.
    note : str
        What a pointer at it shows.
    """

    name: str
    x: float
    y: float
    weight: float = 1.0
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None
    colour: int = 0
    note: str = ""


def draw_scatter(points: Sequence[Point], x: Axis, y: Axis, label: str) -> Picture:
    """Draw named points; names are moved up or down where they would overlap.

    Examples
    --------
    >>> points = [Point("a", 0.1, 0.9), Point("b", 0.4, 0.95, weight=9)]
    >>> axes = Axis.over([0, 0.4], "distance"), Axis.over([0.9, 0.95], "accuracy", percent=True)
    >>> draw_scatter(points, *axes, "two learners").count("<circle")
    2
    """
    chart = Chart(x, y)
    parts = [chart.draw()]
    heaviest = max((point.weight for point in points), default=1.0) or 1.0
    for point in points:
        parts.append(_whiskers(point, chart))
    for point in sorted(points, key=lambda one: -one.weight):
        px, py = chart.at(point.x, point.y)
        radius = LEAST + (MOST - LEAST) * (point.weight / heaviest) ** 0.5
        dot = Markup(
            '<circle class="c{} ring" cx="{:.1f}" cy="{:.1f}" r="{:.1f}" fill-opacity=".8"/>'
        ).format(point.colour, px, py, radius)
        parts.append(titled(dot, point.note or point.name))
    parts += _names(points, chart, heaviest)
    return frame_picture(chart.width, chart.height, label, Markup("").join(parts))


def _whiskers(point: Point, chart: Chart) -> Markup:
    parts = []
    if point.y_interval is not None:
        (x, low), (_, high) = (chart.at(point.x, end) for end in point.y_interval)
        parts.append(line_at(x, low, x, high, "whisker"))
    if point.x_interval is not None:
        (left, y), (right, _) = (chart.at(end, point.y) for end in point.x_interval)
        parts.append(line_at(left, y, right, y, "whisker"))
    return Markup("").join(parts)


def _names(points: Sequence[Point], chart: Chart, heaviest: float) -> list[Markup]:
    """Names beside their points, each where it hides no other name and no other point."""
    taken: list[tuple[float, float, float, float]] = []
    for point in points:
        px, py = chart.at(point.x, point.y)
        radius = LEAST + (MOST - LEAST) * (point.weight / heaviest) ** 0.5
        taken.append((px - radius, py - radius, px + radius, py + radius))
    parts = []
    for place, point in enumerate(points):
        px, py = chart.at(point.x, point.y)
        radius = taken[place][2] - px
        wide = text_width(point.name, 12.5, bold=True)
        others = taken[:place] + taken[place + 1 :]
        box = _free_place(px, py, radius, wide, chart, others)
        taken.append(box)
        if abs(box[1] + 8 - py) > radius + 12:
            parts.append(line_at(px, py, (box[0] + box[2]) / 2, box[1] + 8, "axis"))
        parts.append(text_at(box[0], box[3] - 4, point.name, "name halo"))
    return parts


def _free_place(
    px: float,
    py: float,
    radius: float,
    wide: float,
    chart: Chart,
    taken: Sequence[tuple[float, float, float, float]],
) -> tuple[float, float, float, float]:
    """The nearest place for a name that is free; the last one tried where none is."""
    box = (px, py, px, py)
    for away in range(0, 200, 8):
        for sign in (-1, 1):
            for x in (px + radius + 4, px - radius - 4 - wide, px - wide / 2):
                if x == px - wide / 2 and away < radius + 10:
                    continue  # it would hide its own point
                top = py - 8 + sign * away
                box = (x, top, x + wide, top + 16)
                inside = box[0] > 58 and box[2] < chart.width - RIGHT and box[1] > 4
                if inside and box[3] < chart.height - 48 and not _hits(box, taken):
                    return box
    return box


def _hits(box: tuple[float, ...], taken: Sequence[tuple[float, ...]]) -> bool:
    return any(
        box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
        for other in taken
    )
