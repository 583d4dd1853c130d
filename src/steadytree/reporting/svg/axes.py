"""Axes: scales with round ticks, and the frame of a chart."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from steadytree.reporting.formatting import plain_text
from steadytree.reporting.svg.canvas import line_at, text_at, text_width

WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 22, 12, 46
STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Axis:
    """One direction of a chart.

    Parameters
    ----------
    low, high : float
        Values at its ends.
    label : str
    ticks : tuple of float
    log : bool
        Whether equal ratios are equally far apart.
    percent : bool
        Whether values are shares, shown in per cent.
    """

    low: float
    high: float
    label: str
    ticks: tuple[float, ...]
    log: bool = False
    percent: bool = False

    @classmethod
    def over(
        cls, values: Sequence[float], label: str, *, percent: bool = False, zero: bool = False
    ) -> "Axis":
        """An axis that holds all the values, with round ends.

        Examples
        --------
        >>> Axis.over([0.93, 0.96], "accuracy").ticks
        (0.93, 0.94, 0.95, 0.96)
        """
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
    """A frame with two axes; says where values lie in it."""

    x: Axis
    y: Axis
    width: float = WIDTH
    height: float = HEIGHT

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point."""
        across, up = self.x.share(x), self.y.share(y)
        return (
            LEFT + across * (self.width - LEFT - RIGHT),
            self.height - BOTTOM - up * (self.height - TOP - BOTTOM),
        )

    def draw(self) -> Markup:
        """Grid, ticks and the names of the axes."""
        bottom, right = self.height - BOTTOM, self.width - RIGHT
        parts = []
        for tick in self.y.ticks:
            _, y = self.at(self._any_x, tick)
            parts += [line_at(LEFT, y, right, y, "grid")]
            parts += [text_at(LEFT - 6, y + 4, self.y.text(tick), "small", "end")]
        for tick in _thinned(self.x, self.width - LEFT - RIGHT):
            x, _ = self.at(tick, self._any_y)
            parts += [line_at(x, bottom, x, bottom + 4, "axis")]
            parts += [text_at(x, bottom + 17, self.x.text(tick), "small", "middle")]
        parts += [line_at(LEFT, bottom, right, bottom, "axis")]
        parts += [text_at((LEFT + right) / 2, self.height - 10, self.x.label, "small", "middle")]
        middle = (TOP + bottom) / 2
        name = text_at(12, middle, self.y.label, "small", "middle")
        parts += [Markup('<g transform="rotate(-90 12 {:.1f})">{}</g>').format(middle, name)]
        return Markup("").join(parts)

    @property
    def _any_x(self) -> float:
        return self.x.ticks[0]

    @property
    def _any_y(self) -> float:
        return self.y.ticks[0]


def _step(rough: float) -> float:
    """The least round number that is not below."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in STEPS if step * power >= rough * (1 - 1e-9))


def _thinned(axis: Axis, room: float) -> list[float]:
    """Ticks whose texts do not run into each other."""
    kept: list[float] = []
    end = -math.inf
    for tick in axis.ticks:
        place, half = axis.share(tick) * room, text_width(axis.text(tick), 11) / 2
        if place - half > end + 6:
            kept.append(tick)
            end = place + half
    return kept
