"""Heat SVG: a table of shares, the larger the darker, each written out too."""

from collections.abc import Sequence

from markupsafe import Markup

from steadytree.reporting.numbers import percent_text
from steadytree.reporting.picture import RECT, Picture, frame_picture, text_at, titled
from steadytree.reporting.text_width import fit_text

WIDTH, NAMES, ROW, TOP = 460, 170, 26, 24
DARK = 0.6  # from which a white text reads better


def draw_heat(
    rows: Sequence[str], columns: Sequence[str], shares: Sequence[Sequence[float]], label: str
) -> Picture:
    """Draw a table of shares.

    Parameters
    ----------
    rows, columns : names
    shares : one sequence a row, of values between 0 and 1
    label : str

    Examples
    --------
    >>> draw_heat(["age", "income"], ["root"], [[0.9], [0.1]], "at the root").count('="heat"')
    2
    """
    wide = (WIDTH - NAMES) / max(len(columns), 1)
    parts = [
        text_at(NAMES + (k + 0.5) * wide, 15, fit_text(name, wide - 4, 11), "small", "middle")
        for k, name in enumerate(columns)
    ]
    for r, (name, values) in enumerate(zip(rows, shares, strict=True)):
        y = TOP + r * ROW
        whole = text_at(0, y + 17, fit_text(name, NAMES - 10, 12.5))
        parts.append(titled(whole, name))
        for k, value in enumerate(values):
            parts.append(_cell(NAMES + k * wide, y, wide, value))
    height = TOP + ROW * len(rows) + 4
    return frame_picture(WIDTH, height, label, Markup("").join(parts))


def _cell(x: float, y: float, wide: float, value: float) -> Markup:
    back = Markup(
        '<rect class="heat" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{}" '
        'fill-opacity="{:.3f}"/>'
    ).format(x + 1, y + 1, wide - 2, ROW - 2, value)
    shown = percent_text(value) if value > 0 else "–"
    ink = "cell on-heat-text" if value >= DARK else "cell"
    empty = RECT.format("empty", x + 1, y + 1, wide - 2, ROW - 2, 0)
    return empty + back + text_at(x + wide / 2, y + 17, shown, ink, "middle")
