"""Card shapes: the lines, boxes, texts and strips that a drawn card is made of."""

from collections.abc import Sequence

from markupsafe import Markup

from steadytree.core.risk_table import RiskRow
from steadytree.reporting.numbers import percent_text
from steadytree.reporting.picture import text_at
from steadytree.reporting.text_width import text_width

ROW, MARGIN, TEXT = 34, 24, 15
CELL, NAMES = 62, 40  # widths of one total in a strip, and of what its lines are called
STRIP = 106
STYLE = """
.steadytree-card { --ink: #1c2024; --quiet: #5b6470; --line: #b4bcc6; --paper: #ffffff;
  --accent: #0072B2; font-family: Arial, "Liberation Sans", "Helvetica Neue", sans-serif; }
@media (prefers-color-scheme: dark) { .steadytree-card { --ink: #e8eaed; --quiet: #a3acb8;
  --line: #56606c; --paper: #1d2126; --accent: #56B4E9; } }
@media print { .steadytree-card { --ink: #000; --quiet: #444; --line: #999; --paper: #fff; } }
.steadytree-card text { fill: var(--ink); font-size: 15px; }
.steadytree-card .title { font-size: 20px; font-weight: bold; }
.steadytree-card .quiet { fill: var(--quiet); font-size: 12px; }
.steadytree-card .points { font-weight: bold; }
.steadytree-card .paper { fill: var(--paper); stroke: var(--line); }
.steadytree-card .line { stroke: var(--line); }
.steadytree-card .bar { fill: var(--accent); fill-opacity: 0.55; }
.steadytree-card .whisker { stroke: var(--ink); stroke-width: 1.5; }
"""


def draw_line(left: float, y: float, right: float) -> Markup:
    """A line across."""
    return Markup('<line class="line" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(
        left, right, y, y
    )


def draw_box(x: float, y: float, width: float) -> Markup:
    """A box to write into."""
    return Markup(
        '<rect class="paper" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="24" rx="4"/>'
    ).format(x, y, width)


def strip_width(name: str, n_totals: int) -> float:
    """How wide a strip is."""
    return max(NAMES + n_totals * CELL, text_width(name, 12))


def draw_strip(rows: Sequence[RiskRow], left: float, y: float, name: str, what: str) -> Markup:
    """Totals side by side, each with a bar as high as its risk, and the rows behind it.

    The thin line on a bar is the interval of the observed share.
    """
    parts = [
        text_at(left, y + 4, name, "quiet"),
        text_at(left, y + 24, "total", "quiet"),
        text_at(left, y + 80, what, "quiet"),
        text_at(left, y + 97, "rows", "quiet"),
    ]
    base, tall = y + 62, 30
    for place, row in enumerate(rows):
        x = left + NAMES + (place + 0.5) * CELL
        high = max(tall * row.risk, 1)
        low, top = (base - tall * end for end in row.interval)
        parts.append(text_at(x, y + 24, f"{row.total}", "points", "middle"))
        parts.append(
            Markup(
                '<rect class="bar" x="{:.1f}" y="{:.1f}" width="26" height="{:.1f}"/>'
                '<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" y1="{:.1f}" y2="{:.1f}"/>'
            ).format(x - 13, base - high, high, low, top, x=x)
        )
        parts.append(text_at(x, y + 80, percent_text(row.risk), "", "middle"))
        parts.append(text_at(x, y + 97, f"{row.n_rows:,.6g}", "quiet", "middle"))
    return Markup("").join(parts)
