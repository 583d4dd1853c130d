"""Canvas: colours, text widths, axes and the elements that all drawings share."""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate
from typing import NamedTuple

from markupsafe import Markup, escape

from steadytree.reporting.formatting import plain_text

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
OTHERS = "#8A919B"
N_COLOURS = len(OKABE_ITO)


def class_colours(counts: list[int]) -> list[int]:
    """A colour for each class: its own for the most frequent ones, one for all others.

    Classes keep their order where all have a colour of their own.
    """
    if len(counts) <= N_COLOURS:
        return list(range(len(counts)))
    ranked = sorted(range(len(counts)), key=lambda index: (-counts[index], index))
    colours = [N_COLOURS] * len(counts)
    for colour, index in enumerate(ranked[:N_COLOURS]):
        colours[index] = colour
    return colours


def bar_parts(counts: list[int], colours: list[int]) -> list[tuple[int, float]]:
    """Colours and shares of the parts of a bar, equal colours together."""
    total = sum(counts)
    by_colour: dict[int, int] = {}
    for count, colour in zip(counts, colours, strict=True):
        by_colour[colour] = by_colour.get(colour, 0) + count
    return [(colour, count / total) for colour, count in by_colour.items() if count]


def colour_style(prefix: str) -> str:
    """Style rules that give the classes ``c0`` to ``c7`` their fill and background.

    Lines get the same colours by the classes ``s0`` to ``s7``.
    """
    return "\n".join(
        f"{prefix} .c{index} {{ fill: {colour}; background: {colour}; }}"
        f"\n{prefix} .s{index} {{ stroke: {colour}; }}"
        for index, colour in enumerate((*OKABE_ITO, OTHERS))
    )


WIDTHS = {
    **dict.fromkeys("ijl|'", 0.23),
    **dict.fromkeys("It.,:;!/\\\\ f[]·", 0.29),
    **dict.fromkeys('r()-"{}*', 0.36),
    **dict.fromkeys("ckszvxyJ", 0.5),
    **dict.fromkeys("FTZL", 0.61),
    **dict.fromkeys("ABEKPSVXY&", 0.67),
    **dict.fromkeys("CDHNRUw", 0.73),
    **dict.fromkeys("GOQm", 0.8),
    **dict.fromkeys("MW%@—…", 0.95),
}
USUAL = 0.56  # digits and most small letters
WIDE = 1.0
MARGIN = 1.04  # fonts differ
BOLD = 1.07


def text_width(text: str, size: float = 12, bold: bool = False) -> float:
    """Estimated width in pixels."""
    return sum(map(_letter_width, text)) * size * MARGIN * (BOLD if bold else 1.0)


def fit_text(text: str, width: float, size: float = 12, bold: bool = False) -> str:
    """The text, or as much of its beginning and end as fits, with dots between."""
    if text_width(text, size, bold) <= width + 1e-6:  # a box made for the text has room for it
        return text
    # long labels would take long if every trial were measured letter by letter
    scale, n = text_width("…", size, bold) / WIDTHS["…"], len(text)
    up_to = [*accumulate((_letter_width(letter) * scale for letter in text), initial=0.0)]
    head_end, tail_start = [0] * (n + 1), [n] * (n + 1)  # without the spaces beside the dots
    for k in range(n):
        head_end[k + 1] = head_end[k] if text[k].isspace() else k + 1
        tail_start[n - k - 1] = tail_start[n - k] if text[n - k - 1].isspace() else n - k - 1
    for kept in range(n - 1, 1, -1):
        tail = kept // 3
        head, start = head_end[kept - tail], tail_start[n - tail]
        if up_to[head] + up_to[n] - up_to[start] + WIDTHS["…"] * scale > width + 1e-6:
            continue
        shortened = f"{text[:head]}…{text[start:]}"
        if text_width(shortened, size, bold) <= width:
            return shortened
    return "…"


def wrap_text(text: str, width: float, size: float = 12, most: int = 4) -> list[str]:
    """The text in lines of at most this width; dots in the last one where more than `most`."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    if len(lines) > most:
        lines = [*lines[: most - 1], " ".join(lines[most - 1 :])]
    return [fit_text(line, width, size) for line in lines]


def _letter_width(letter: str) -> float:
    known = WIDTHS.get(letter)
    if known:
        return known
    if unicodedata.combining(letter):
        return 0.0
    return WIDE if unicodedata.east_asian_width(letter) in "WF" else USUAL


RECT = Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:g}" rx="{}"/>')
SMALLEST = 0.8  # share of its size a picture may shrink to before it scrolls


def read_style(name: str) -> str:
    """The style sheet of a picture, from the templates."""
    return (files("steadytree.reporting") / "templates" / name).read_text("utf-8")


STYLE = read_style("picture.css")


class Part(NamedTuple):
    """Drawn elements and the room they take, in pixels."""

    body: Markup
    width: float
    height: float


def stack(parts: Sequence[Part], gap: float = 10) -> Part:
    """Parts one below the other."""
    bodies, top = [], 0.0
    for part in parts:
        bodies.append(Markup('<g transform="translate(0 {:.1f})">{}</g>').format(top, part.body))
        top += part.height + gap
    return Part(Markup("").join(bodies), max(part.width for part in parts), top - gap)


def frame_picture(part: Part, label: str) -> Markup:
    """An ``<svg>`` element around a drawn part; `label` describes it for screen readers."""
    shrunk = SMALLEST * part.width
    least = min(shrunk, 320) if part.width <= 480 else shrunk
    size = round(part.width), round(part.height), round(least)
    style = Markup(STYLE + colour_style(".steadytree-picture"))
    return Markup(
        '<svg class="steadytree-picture" '
        'viewBox="0 0 {0} {1}" width="{0}" height="{1}" style="min-width:{2}px" '
        'role="img" aria-label="{3}"><style>{4}</style>{5}</svg>'
    ).format(*size, label, style, part.body)


def text_at(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> Markup:
    """A text whose start, middle or end, by `anchor`, is at x."""
    attributes = Markup(' class="{}"').format(kind) if kind else Markup("")
    if anchor != "start":
        attributes += Markup(' text-anchor="{}"').format(anchor)
    return Markup('<text x="{:.1f}" y="{:.1f}"{}>{}</text>').format(x, y, attributes, escape(text))


def line_at(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line."""
    return Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(
        kind, x1, y1, x2, y2
    )


def titled(body: Markup, title: str) -> Markup:
    """Parts with a tooltip."""
    return Markup("<g><title>{}</title>{}</g>").format(title, body)


WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 22, 12, 46
STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Axis:
    """One direction of a chart, from `low` to `high`."""

    low: float
    high: float
    label: str
    ticks: tuple[float, ...]
    log: bool = False
    percent: bool = False  # whether values are shares, shown in per cent

    @classmethod
    def over(
        cls, values: Sequence[float], label: str, *, percent: bool = False, zero: bool = False
    ) -> "Axis":
        """An axis that holds all the values, with round ends."""
        low, high = min(values), max(values)
        low = min(low, 0.0) if zero else low
        if high - low < 1e-9:
            low, high = (low - 0.01, high + 0.01) if percent else (low, low + (abs(low) or 1.0))
        step = _step((high - low) / 4)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        ticks = tuple(round(k * step, 12) for k in range(first, last + 1))
        if percent:  # no share is below 0 or above 1
            ticks = tuple(tick for tick in ticks if -1e-9 <= tick <= 1 + 1e-9)
        return cls(min(ticks[0], low), max(ticks[-1], high), label, ticks, percent=percent)

    @classmethod
    def over_ratios(cls, values: Sequence[float], label: str) -> "Axis":
        """A logarithmic axis over positive values; the values themselves are its ticks."""
        ticks = tuple(sorted(set(values)))
        return cls(ticks[0] / 1.25, ticks[-1] * 1.25, label, ticks, log=True)

    def share(self, value: float) -> float:
        """How far along the axis a value lies, 0 to 1."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def text(self, value: float) -> str:
        """A tick as text."""
        if self.percent:
            return f"{round(100 * value, 6):g} %"
        return plain_text(float(f"{value:.6g}"))


@dataclass(frozen=True)
class Chart:
    """A frame with two axes, which maps values to pixels."""

    x: Axis
    y: Axis

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point."""
        across = self.x.share(x) * (WIDTH - LEFT - RIGHT)
        return LEFT + across, HEIGHT - BOTTOM - self.y.share(y) * (HEIGHT - TOP - BOTTOM)

    def plot_axes(self) -> Markup:
        """Grid, ticks and the names of the axes."""
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        parts = []
        for tick in self.y.ticks:
            _, y = self.at(self.x.ticks[0], tick)
            parts += [line_at(LEFT, y, right, y, "grid")]
            parts += [text_at(LEFT - 6, y + 4, self.y.text(tick), "small", "end")]
        for tick in _thinned(self.x, WIDTH - LEFT - RIGHT):
            x, _ = self.at(tick, self.y.ticks[0])
            parts += [line_at(x, bottom, x, bottom + 4, "axis")]
            parts += [text_at(x, bottom + 17, self.x.text(tick), "small", "middle")]
        parts += [line_at(LEFT, bottom, right, bottom, "axis")]
        parts += [text_at((LEFT + right) / 2, HEIGHT - 10, self.x.label, "small", "middle")]
        middle = (TOP + bottom) / 2
        name = text_at(12, middle, self.y.label, "small", "middle")
        parts += [Markup('<g transform="rotate(-90 12 {:.1f})">{}</g>').format(middle, name)]
        return Markup("").join(parts)


def _step(rough: float) -> float:
    """The least round number that is not below."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in STEPS if step * power >= rough * (1 - 1e-9))


def _thinned(axis: Axis, room: float) -> list[float]:
    """Ticks whose texts do not run into each other."""
    kept: list[float] = []
    end = -math.inf
    for tick in axis.ticks:
        middle, half = axis.share(tick) * room, text_width(axis.text(tick), 11) / 2
        if middle - half > end + 6:
            kept.append(tick)
            end = middle + half
    return kept
