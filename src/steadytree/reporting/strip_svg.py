"""Strip SVG: many values of several things, one strip for each."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from steadytree.reporting.picture import RECT, Picture, frame_picture, line_at, text_at, titled
from steadytree.reporting.text_width import fit_text

WIDTH, ROW, NAMES, NOTES = 470, 34, 136, 88


@dataclass(frozen=True)
class Strip:
    """Values between two ends.

    Parameters
    ----------
    name : str
    values : sequence of float
        Each a thin line.
    low, high : float
        Values at the ends of the strip.
    own : sequence of float
        Values to stand out: those of the tree itself.
    note : str
        Written at the right.
    low_text, high_text : str
    """

    name: str
    values: Sequence[float]
    low: float
    high: float
    own: Sequence[float] = ()
    note: str = ""
    low_text: str = ""
    high_text: str = ""


def draw_strips(strips: Sequence[Strip], label: str) -> Picture:
    """Draw strips one under the other; where lines are dense, values are frequent.

    Examples
    --------
    >>> draw_strips([Strip("age", [40, 41, 60], 18, 90, own=[41])], "cut points").count('"own"')
    1
    """
    parts = []
    for place, strip in enumerate(strips):
        parts.append(_strip(strip, 6 + place * ROW))
    return frame_picture(WIDTH, 10 + ROW * len(strips), label, Markup("").join(parts))


def _strip(strip: Strip, y: float) -> Markup:
    left, right = NAMES + 8, WIDTH - NOTES - 8
    span = (strip.high - strip.low) or 1.0

    def place(value: float) -> float:
        return left + (right - left) * min(max((value - strip.low) / span, 0.0), 1.0)

    parts = [
        text_at(0, y + 13, fit_text(strip.name, NAMES, 12.5)),
        RECT.format("empty", left, y + 2, right - left, 14, 2),
    ]
    parts += [line_at(place(v), y + 2, place(v), y + 16, "cut") for v in strip.values]
    parts += [line_at(place(v), y, place(v), y + 18, "own") for v in strip.own]
    parts.append(text_at(left, y + 27, strip.low_text, "small"))
    parts.append(text_at(right, y + 27, strip.high_text, "small", "end"))
    parts.append(text_at(right + 8, y + 13, fit_text(strip.note, NOTES, 11), "small"))
    shown = f"{strip.name}: {len(strip.values)} values"
    return titled(Markup("").join(parts), shown)
