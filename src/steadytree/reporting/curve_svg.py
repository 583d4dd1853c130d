"""Curve SVG: values over a size, as lines, steps or bands."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from steadytree.reporting.axes import LEFT, Axis, Chart
from steadytree.reporting.picture import Picture, frame_picture, line_at, text_at
from steadytree.reporting.text_width import text_width

LEGEND = 22  # height of one line of the legend
DASHES = ("", "6 3", "2 3", "8 3 2 3")


@dataclass(frozen=True)
class Series:
    """A line of a chart.

    Parameters
    ----------
    name : str
    x, y : sequences of float
    low, high : sequences of float, optional
        Ends of intervals, drawn as whiskers.
    steps : bool
        Whether y holds until the next x, as for shares that drop at some sizes.
    colour : int
        Place in the palette.
    dots : bool
        Whether points are marked.
    line : bool
        Whether points are joined.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    steps: bool = False
    colour: int = 0
    dots: bool = False
    line: bool = True


def draw_curve(series: Sequence[Series], x: Axis, y: Axis, label: str) -> Picture:
    """Draw lines over two axes, with a legend above where there are several.

    Each line has a colour and a dash of its own, so that they differ in print too.

    Examples
    --------
    >>> line = Series("tree", [0, 1, 2], [0.9, 0.8, 0.5], steps=True)
    >>> axes = Axis.over(line.x, "size"), Axis.over(line.y, "accuracy", percent=True)
    >>> str(draw_curve([line], *axes, "certified accuracy"))[:4]
    '<svg'
    """
    chart = Chart(x, y)
    legend, lines = _legend(series, chart.width) if len(series) > 1 else (Markup(""), 0)
    parts = [chart.draw()]
    for place, one in enumerate(series):
        parts.append(_line(one, chart, DASHES[place % len(DASHES)]))
    body = Markup('{}<g transform="translate(0 {})">{}</g>').format(
        legend, lines * LEGEND, Markup("").join(parts)
    )
    return frame_picture(chart.width, chart.height + lines * LEGEND, label, body)


def _line(series: Series, chart: Chart, dash: str) -> Markup:
    points = [chart.at(x, y) for x, y in zip(series.x, series.y, strict=True)]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for x, y in points[1:]:
        path += f"H{x:.1f}V{y:.1f}" if series.steps else f"L{x:.1f} {y:.1f}"
    parts = []
    if series.low is not None and series.high is not None:
        for x, low, high in zip(series.x, series.low, series.high, strict=True):
            (place, bottom), (_, top) = chart.at(x, low), chart.at(x, high)
            parts.append(line_at(place, bottom, place, top, "whisker"))
    if series.line:
        parts.append(
            Markup(
                '<path class="s{}" fill="none" stroke-width="2" stroke-dasharray="{}" d="{}"/>'
            ).format(series.colour, dash, path)
        )
    if series.dots:
        for x, y in points:
            parts.append(
                Markup('<circle class="c{}" cx="{:.1f}" cy="{:.1f}" r="4"/>').format(
                    series.colour, x, y
                )
            )
    return Markup("").join(parts)


def _legend(series: Sequence[Series], width: float) -> tuple[Markup, int]:
    """Names beside a piece of their line; how many lines of text it takes."""
    parts, x, line = [], float(LEFT), 0
    for place, one in enumerate(series):
        room = 34 + text_width(one.name, 12.5) + 16
        if x + room > width and x > LEFT:
            x, line = float(LEFT), line + 1
        y = LEGEND * (line + 0.5) + 2
        dash = DASHES[place % len(DASHES)]
        if one.line:
            parts.append(
                Markup(
                    '<path class="s{}" stroke-width="2" stroke-dasharray="{}" '
                    'd="M{:.1f} {:.1f}h26"/>'
                ).format(one.colour, dash, x, y)
            )
        else:
            parts.append(
                Markup('<circle class="c{}" cx="{:.1f}" cy="{:.1f}" r="4"/>').format(
                    one.colour, x + 14, y
                )
            )
        parts.append(text_at(x + 32, y + 4, one.name))
        x += room
    return Markup("").join(parts), line + 1
