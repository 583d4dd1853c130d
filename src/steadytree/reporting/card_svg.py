"""Card SVG: a card of points as one picture, to print and to fill in by hand."""

from markupsafe import Markup, escape

from steadytree.core.risk_table import RiskTable
from steadytree.core.scorecard import Scorecard
from steadytree.reporting.numbers import percent_text
from steadytree.reporting.text_width import fit_text, text_width

ROW, MARGIN, TEXT = 34, 24, 15
BOX, POINTS = 64, 60  # widths of the column to fill in and of the points
NARROWEST, WIDEST = 300, 640
CELL = 62
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
.steadytree-card .bar { fill: var(--accent); }
"""


def draw_card(card: Scorecard, table: RiskTable | None = None, title: str = "") -> Markup:
    """Draw a card of two classes: conditions, points, boxes to fill in, and risk by total.

    Parameters
    ----------
    card : Scorecard
    table : RiskTable, optional
        Adds a strip of totals with their risk and the rows behind it.
    title : str, optional

    Returns
    -------
    svg : Markup
        One ``<svg>`` element that needs nothing else; its texts are escaped.
    """
    if not card.is_binary:
        raise ValueError(
            f"a card of {len(card.classes)} classes has a column for each: print it with card_text."
        )
    labels = [str(label) for label in card.classes.tolist()]
    texts = card.texts()
    wide = max((text_width(text, TEXT) for text in texts), default=0) + 30
    room = min(max(wide, NARROWEST), WIDEST)
    n_totals = len(table.rows) if table is not None else 0
    width = max(2 * MARGIN + room + POINTS + BOX, 2 * MARGIN + n_totals * CELL + 70)
    parts, y = (
        [_text(MARGIN, MARGIN + 14, title or f"Points for: {labels[1]}", "title")],
        MARGIN + 34,
    )
    rows = [(text, f"{points:+d}") for text, points in zip(texts, card.points[:, 0], strict=True)]
    for text, points in [("start with", f"{int(card.offset[0]):+d}"), *rows]:
        parts.append(
            _row(y, width, fit_text(text, width - 2 * MARGIN - POINTS - BOX, TEXT), points)
        )
        y += ROW
    parts.append(_total(y, width, labels))
    y += ROW + 22
    if table is not None:
        parts.append(_strip(table, y, f"risk of {labels[1]}"))
        y += 96
    return Markup(
        '<svg class="steadytree-card" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" '
        'width="{w}" height="{h}" role="img" aria-label="{label}"><style>{style}</style>'
        '<rect class="paper" x="1" y="1" width="{iw}" height="{ih}" rx="8"/>{body}</svg>'
    ).format(
        w=round(width),
        h=round(y + 8),
        iw=round(width) - 2,
        ih=round(y + 8) - 2,
        label=f"Card of points with {card.n_conditions} conditions",
        style=Markup(STYLE),
        body=Markup("\n").join(parts),
    )


def _row(y: float, width: float, text: str, points: str) -> Markup:
    right = width - MARGIN
    return Markup("{}{}{}{}").format(
        _line(MARGIN, y + ROW, right),
        _text(MARGIN, y + 23, text),
        _text(right - BOX - 16, y + 23, points, "points", "end"),
        _box(right - BOX, y + 5),
    )


def _total(y: float, width: float, labels: list[str]) -> Markup:
    right = width - MARGIN
    answer = fit_text(f"above 0: {labels[1]} · else: {labels[0]}", right - MARGIN - BOX - 70, 12)
    return Markup("{}{}{}").format(
        _text(MARGIN, y + 24, answer, "quiet"),
        _text(right - BOX - 16, y + 24, "total", "points", "end"),
        _box(right - BOX, y + 6),
    )


def _strip(table: RiskTable, y: float, name: str) -> Markup:
    """Totals side by side, each with a bar as high as its risk and the rows behind it."""
    parts = [
        _text(MARGIN, y + 8, "total", "quiet"),
        _text(MARGIN, y + 64, name if len(name) < 12 else "risk", "quiet"),
        _text(MARGIN, y + 82, "rows", "quiet"),
    ]
    for place, row in enumerate(table.rows):
        x = MARGIN + 70 + (place + 0.5) * CELL
        high = max(30 * row.risk, 1)
        parts.append(_text(x, y + 8, f"{row.total}", "points", "middle"))
        parts.append(
            Markup('<rect class="bar" x="{:.1f}" y="{:.1f}" width="26" height="{:.1f}"/>').format(
                x - 13, y + 46 - high, high
            )
        )
        parts.append(_text(x, y + 64, percent_text(row.risk), "", "middle"))
        parts.append(_text(x, y + 82, f"{row.n_rows:,.6g}", "quiet", "middle"))
    return Markup("").join(parts)


def _line(left: float, y: float, right: float) -> Markup:
    return Markup('<line class="line" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(
        left, right, y, y
    )


def _box(x: float, y: float) -> Markup:
    return Markup(
        '<rect class="paper" x="{:.1f}" y="{:.1f}" width="{}" height="24" rx="4"/>'
    ).format(x, y, BOX)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" class="{}" text-anchor="{}">{}</text>').format(
        x, y, kind, anchor, escape(text)
    )
