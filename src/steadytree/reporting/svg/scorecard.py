"""The sheet of a risk score: one picture to print and to fill in by hand."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from steadytree.models.scorecard import RiskRow, RiskTable, Scorecard
from steadytree.reporting.formatting import label_text, one_line, percent_text
from steadytree.reporting.svg.canvas import RECT, fit_text, line_at, read_style, text_at, text_width

ROW, MARGIN, TEXT = 34, 24, 15
CELL, NAMES = 62, 40  # widths of one total in a strip, and of the names of its lines
STRIP = 106
STYLE = read_style("scorecard.css")


def strip_width(name: str, n_totals: int) -> float:
    """Width of a strip of totals."""
    return max(NAMES + n_totals * CELL, text_width(name, 12))


def plot_strip(rows: Sequence[RiskRow], left: float, y: float, name: str, what: str) -> Markup:
    """Totals side by side, each with its risk as a bar, the interval, and the number of rows."""
    parts = [
        text_at(left, y + 4, name, "quiet"),
        text_at(left, y + 24, "total", "quiet"),
        text_at(left, y + 80, what, "quiet"),
        text_at(left, y + 97, "rows", "quiet"),
    ]
    base, tall = y + 62, 30
    for index, row in enumerate(rows):
        x = left + NAMES + (index + 0.5) * CELL
        high = max(tall * row.risk, 1)
        low, top = (base - tall * end for end in row.interval)
        parts.append(text_at(x, y + 24, f"{row.total}", "points", "middle"))
        parts.append(RECT.format("bar", x - 13, base - high, 26, round(high, 1), 0))
        parts.append(line_at(x, low, x, top, "whisker"))
        parts.append(text_at(x, y + 80, percent_text(row.risk), "", "middle"))
        parts.append(text_at(x, y + 97, f"{row.n_rows:,.6g}", "quiet", "middle"))
    return Markup("").join(parts)


POINTS, BOX = 46, 58  # widths of a class's points and of its box
NARROWEST, WIDEST = 300, 640
WIDEST_NAME = 150
GAP = 40  # between strips
NOTE = "thin lines: 95 % interval of the observed share"
EMPTY = "no conditions: every row gets the same prediction"
SHEET = Markup(
    '<svg class="steadytree-card" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" '
    'width="{0}" height="{1}" role="img" aria-label="{2}"><style>{3}</style>'
    '<rect class="paper" x="1" y="1" width="{4}" height="{5}" rx="8"/>{6}</svg>'
)


@dataclass(frozen=True)
class Layout:
    """Right ends of the columns of points, and the whole width."""

    names: list[str]
    ends: list[float]
    width: float
    points: float

    @property
    def room(self) -> float:
        """Width left for conditions."""
        return self.ends[0] - BOX - self.points - MARGIN

    @classmethod
    def of(cls, scorecard: Scorecard, widest_strip: float) -> "Layout":
        """Columns as wide as their names need, conditions as wide as theirs."""
        labels = [label_text(label) for label in scorecard.classes.tolist()]
        shown = [""] if scorecard.is_binary else labels
        names = [fit_text(name, WIDEST_NAME, TEXT, True) for name in shown]
        given = [f"{value:+d}" for value in (*scorecard.points.ravel(), *scorecard.offset)]
        points = max(POINTS, *(text_width(one, TEXT, True) + 20 for one in given))
        columns = [max(points + BOX, text_width(name, TEXT, True) + 14) for name in names]
        texts = [one_line(text) for text in scorecard.texts()] or [EMPTY]
        wanted = max(text_width(text, TEXT) for text in texts) + 30
        room = min(max(wanted, NARROWEST), WIDEST)
        width = 2 * MARGIN + max(room + sum(columns), widest_strip)
        ends = [width - MARGIN - sum(columns[k + 1 :]) for k in range(len(columns))]
        return cls(names, ends, width, points)


def plot_scorecard(scorecard: Scorecard, title: str = "") -> Markup:
    """The sheet of a risk score: conditions, points, boxes to fill in, and the risk of each total.

    With more than two classes every class has a column of points and a strip of its totals.
    """
    labels = [label_text(label) for label in scorecard.classes.tolist()]
    strips = _strips(scorecard.risk_table, scorecard.is_binary)
    layout = Layout.of(scorecard, max((strip_width(n, len(rows)) for n, rows in strips), default=0))
    usual = f"Points for: {labels[1]}" if scorecard.is_binary else "Points for each class"
    heading = one_line(title) or usual
    room = layout.width - 2 * MARGIN
    parts = [text_at(MARGIN, MARGIN + 14, fit_text(heading, room, 20, True), "title")]
    y: float = MARGIN + 34
    if not scorecard.is_binary:
        parts += [
            text_at(end, y + 20, name, "points", "end")
            for name, end in zip(layout.names, layout.ends, strict=True)
        ]
        y += ROW
    texts = ["start with", *map(one_line, scorecard.texts())]
    for text, points in zip(texts, [scorecard.offset, *scorecard.points], strict=True):
        parts.append(_row(y, layout, text, [int(value) for value in points]))
        y += ROW
    if scorecard.n_conditions == 0:
        parts.append(text_at(MARGIN, y + 23, fit_text(EMPTY, room, TEXT)))
        y += ROW
    parts.append(_total(y, layout, labels))
    y += ROW + 26
    below, y = _below(strips, layout, y)
    width, height, body = round(layout.width), round(y + 4), Markup("\n").join([*parts, *below])
    label = f"Risk score with {scorecard.n_conditions} conditions"
    return SHEET.format(width, height, label, Markup(STYLE), width - 2, height - 2, body)


def _strips(table: RiskTable | None, is_binary: bool) -> list[tuple[str, list[RiskRow]]]:
    """The rows of a risk table class by class, with a name."""
    rows = table.rows if table is not None else ()
    what = "risk" if is_binary else "share of rows"
    return [
        (f"{what} by total, {label_text(label)}", [row for row in rows if row.label == label])
        for label in dict.fromkeys(row.label for row in rows)
    ]


def _below(
    strips: list[tuple[str, list[RiskRow]]], layout: Layout, y: float
) -> tuple[list[Markup], float]:
    """Strips side by side as far as there is room, and their lower end."""
    parts: list[Markup] = []
    x: float = MARGIN
    for name, rows in strips:
        wide = strip_width(name, len(rows))
        if x > MARGIN and x + wide > layout.width - MARGIN:
            x, y = MARGIN, y + STRIP + 12
        parts.append(plot_strip(rows, x, y, name, "risk" if len(layout.ends) == 1 else "share"))
        x += wide + GAP
    if not strips:
        return parts, y
    parts.append(text_at(MARGIN, y + STRIP + 12, NOTE, "quiet"))
    return parts, y + STRIP + 30


def _row(y: float, layout: Layout, text: str, points: list[int]) -> Markup:
    """A condition with its points, and a box for every class that it gives points to."""
    parts = [
        line_at(MARGIN, y + ROW, layout.width - MARGIN, y + ROW, "line"),
        text_at(MARGIN, y + 23, fit_text(text, layout.room, TEXT)),
    ]
    for end, value in zip(layout.ends, points, strict=True):
        if value or text == "start with" or len(points) == 1:
            shown = f"{value:+d}" if value else "0"
            parts.append(text_at(end - BOX - 10, y + 23, shown, "points", "end"))
            parts.append(RECT.format("paper", end - BOX, y + 5, BOX, 24, 4))
    return Markup("").join(parts)


def _total(y: float, layout: Layout, labels: list[str]) -> Markup:
    if len(layout.ends) == 1:
        rule = f"above 0: {labels[1]} · else: {labels[0]}"
    else:
        rule = "the class with the greatest total is predicted; the first one on ties"
    parts = [text_at(MARGIN, y + 24, fit_text(rule, layout.room, 12), "quiet")]
    parts.append(text_at(layout.ends[0] - BOX - 10, y + 24, "total", "points", "end"))
    parts += [RECT.format("paper", end - BOX, y + 6, BOX, 24, 4) for end in layout.ends]
    return Markup("").join(parts)
