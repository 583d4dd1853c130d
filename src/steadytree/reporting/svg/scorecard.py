"""The sheet of a risk score: one picture to print and to fill in by hand."""

import math
from collections.abc import Sequence
from itertools import accumulate

from markupsafe import Markup

from steadytree.models.scorecard import Scorecard
from steadytree.models.variable import join_names
from steadytree.reporting.svg.canvas import (
    BOLD,
    RECT,
    Part,
    fit_text,
    line_at,
    read_style,
    stack,
    text_at,
    text_width,
    titled,
    wrap_text,
)
from steadytree.reporting.svg.sheet import Block, RiskLine, Sheet

# a column of 352 is legible on a phone, and two of them fill the width of an A4 page
COLUMN, GUTTER, MARGIN = 352, 28, 16
HEAD, LINE, TEXT, QUIET = 28, 18, 14, 12
BOX = 46  # to write points in
POINTS = 44  # least width of a class's points
NAME = 200  # least width of the bands beside the points of several classes
MOST_BAND_LINES = 14  # a group of categories is listed, so that it can be applied by hand
RISK_COLUMN, RISK_LINE, SMALL = 168, 19, 12.5
RISK_HEADS = ("total", "risk", "95 % interval")
N_SHADES = 4
STYLE = read_style("scorecard.css")
SHEET = Markup(
    '<svg class="steadytree-card" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" '
    'width="{0}" height="{1}" role="img" aria-label="{2}"><style>{3}</style>'
    '<rect class="paper" x="1" y="1" width="{4}" height="{5}" rx="8"/>'
    '<g transform="translate({6} {6})">{7}</g></svg>'
)


def plot_scorecard(scorecard: Scorecard, title: str = "", narrow: bool = False) -> Markup:
    """The sheet of a risk score: points by variable, the total, and the risk of each total.

    Variables stand in two columns, which fill an A4 page; in one where `narrow`, for a phone.
    """
    sheet = Sheet.of(scorecard, title)
    single = _single(sheet)
    n_columns = 1 if narrow or not sheet.is_binary or len(sheet.blocks) < 2 else 2
    width = n_columns * single + (n_columns - 1) * GUTTER
    blocks = [_start(sheet, single)] if any(sheet.start) or not sheet.is_binary else []
    blocks += [_block(block, sheet, single) for block in sheet.blocks]
    parts = [_title(sheet, width)]
    if blocks:
        parts.append(_side_by_side(blocks, n_columns, single))
    parts.append(_total(sheet, width, single))
    parts += [_risks(sheet, name, lines, width) for name, lines in sheet.risks]
    if sheet.groups:
        parts.append(_groups(sheet.groups, width))
    if sheet.note:
        parts.append(_lines_of(sheet.note, width, "quiet", QUIET))
    whole = stack(parts, 14)
    size = round(whole.width + 2 * MARGIN), round(whole.height + 2 * MARGIN)
    label = f"Risk score with {len(sheet.blocks)} variables"
    return SHEET.format(*size, label, Markup(STYLE), size[0] - 2, size[1] - 2, MARGIN, whole.body)


def long_groups(scorecard: Scorecard) -> tuple[tuple[str, str], ...]:
    """Groups of categories whose names the sheet cannot hold: the variable with points, and all."""
    sheet, found = Sheet.of(scorecard), []
    room = _room(sheet, _single(sheet))
    for block in sheet.blocks:
        for (text, points), own in zip(block.bands, block.names, strict=True):
            if _band_lines(text, own, room) != wrap_text(text, room, TEXT, len(text)):
                found.append((f"{block.name}, {' / '.join(map(_signed, points))}", text))
    return tuple(found)


def _single(sheet: Sheet) -> float:
    """Width of one column of variables."""
    return COLUMN if sheet.is_binary else NAME + len(sheet.labels) * _points_width(sheet)


def _room(sheet: Sheet, width: float) -> float:
    """Room for the text of a band beside its points."""
    return _ends(sheet, width)[0] - 26 - (_points_width(sheet) if not sheet.is_binary else POINTS)


def _points_width(sheet: Sheet) -> float:
    given = [
        *sheet.start,
        *(value for b in sheet.blocks for _, points in b.bands for value in points),
    ]
    shown = [f"{value:+d}" for value in given]
    names = [min(text_width(name, TEXT, True), 110) for name in sheet.labels]
    widths = [text_width(one, TEXT, True) for one in shown]
    return max(POINTS, *(wide + 16 for wide in (*widths, *(() if sheet.is_binary else names))))


def _lines_of(text: str, width: float, kind: str, size: float, most: int = 4) -> Part:
    """Text in as many lines as it needs."""
    lines = wrap_text(text, width, size, most)
    step = size * 1.3
    body = [text_at(0, size + k * step, line, kind) for k, line in enumerate(lines)]
    return Part(Markup("").join(body), width, step * len(lines))


def _title(sheet: Sheet, width: float) -> Part:
    found = _lines_of(sheet.title, width / BOLD, "title", 20, 3)
    usual = f"Points for: {sheet.labels[1]}" if sheet.is_binary else "Points for each class"
    if sheet.title == usual:
        return found
    return stack([found, _lines_of(usual, width, "quiet", QUIET, 2)], 2)


def _ends(sheet: Sheet, width: float) -> list[float]:
    """Right ends of the columns of points."""
    if sheet.is_binary:
        return [width - BOX - 10]
    wide = _points_width(sheet)
    return [width - wide * k - 8 for k in range(len(sheet.labels))][::-1]


def _start(sheet: Sheet, width: float) -> Part:
    """What everybody starts with; above two classes their names too."""
    parts, y, ends = [], 0.0, _ends(sheet, width)
    if not sheet.is_binary:
        room = _points_width(sheet) - 10
        parts += [
            titled(text_at(end, 18, fit_text(name, room, TEXT, True), "points", "end"), name)
            for end, name in zip(ends, sheet.labels, strict=True)
        ]
        y = HEAD
    parts.append(text_at(8, y + 19, "start with"))
    parts += [
        text_at(end, y + 19, _signed(value), "points", "end")
        for end, value in zip(ends, sheet.start, strict=True)
    ]
    return Part(Markup("").join(parts), width, y + HEAD)


def _block(block: Block, sheet: Sheet, width: float) -> Part:
    """A variable: its name with a box to fill in, and below it the bands with their points."""
    ends = _ends(sheet, width)
    room = _room(sheet, width)
    unit = f" ({block.unit})" if block.unit else ""
    space = (ends[0] if sheet.is_binary else width) - 16
    titles = wrap_text(block.name + unit, space / BOLD, TEXT, 2)
    y: float = HEAD + LINE * (len(titles) - 1)
    heads = [text_at(8, 18 + k * LINE, title, "points") for k, title in enumerate(titles)]
    parts = [
        RECT.format("head", 0, 0, width, y - 2, 4),
        titled(Markup("").join(heads), block.name + unit),
    ]
    if sheet.is_binary:
        parts.append(RECT.format("paper", width - BOX, 2, BOX - 2, HEAD - 6, 3))
    names = block.names or ((),) * len(block.bands)
    for (text, points), own in zip(block.bands, names, strict=True):
        lines = _band_lines(text, own, room)
        parts.append(RECT.format("tick", 9, y + 3, 11, 11, 2))
        listed = [text_at(26, y + 13 + k * LINE, line) for k, line in enumerate(lines)]
        parts.append(titled(Markup("").join(listed), text))
        parts += [
            text_at(end, y + 13, _signed(value), "points", "end")
            for end, value in zip(ends, points, strict=True)
        ]
        y += LINE * len(lines) + 4
        parts.append(line_at(26, y - 2, ends[-1], y - 2, "line"))
    return Part(Markup("").join(parts), width, y)


def _band_lines(text: str, names: Sequence[str], room: float) -> list[str]:
    """A band in lines; where its names are too many, it says how many are left out."""
    lines = wrap_text(text, room, TEXT, len(text))
    end = text.removeprefix(join_names(names))  # such as ", or missing"
    for n_shown in range(len(names) - 1, 0, -1):
        if len(lines) <= MOST_BAND_LINES:
            break
        left_out = f" and {len(names) - n_shown} more, listed in the file{end}"
        lines = wrap_text(join_names(names[:n_shown]) + left_out, room, TEXT, len(text))
    return lines


def _signed(value: int) -> str:
    return f"{value:+d}" if value else "0"


def _side_by_side(blocks: Sequence[Part], n_columns: int, width: float) -> Part:
    """Blocks in columns of about the same height, in their order."""
    if n_columns == 1:
        return stack(blocks, 8)
    heights = [block.height + 8 for block in blocks]
    first = min(range(1, len(blocks)), key=lambda k: (max(sum(heights[:k]), sum(heights[k:])), k))
    left, right = stack(blocks[:first], 8), stack(blocks[first:], 8)
    body = Markup('{}<g transform="translate({} 0)">{}</g>').format(
        left.body, width + GUTTER, right.body
    )
    return Part(body, 2 * width + GUTTER, max(left.height, right.height))


def _total(sheet: Sheet, width: float, single: float) -> Part:
    """Boxes for the totals, and which class they predict."""
    rule = _lines_of(sheet.rule, width, "", TEXT, 3)
    if not sheet.blocks:
        return rule
    parts = [RECT.format("total", 0, 0, width, HEAD + 4, 4), text_at(8, 21, "Total", "points")]
    if sheet.is_binary:
        parts.append(RECT.format("paper", width - BOX - 14, 3, BOX + 12, HEAD - 2, 3))
    else:
        wide = _points_width(sheet)
        parts += [
            RECT.format("paper", end - wide + 14, 3, wide - 8, HEAD - 2, 3)
            for end in _ends(sheet, single)
        ]
    return stack([Part(Markup("").join(parts), width, HEAD + 4), rule], 5)


def _risks(sheet: Sheet, name: str, lines: Sequence[RiskLine], width: float) -> Part:
    """Totals with risk and interval, in as many columns as fit, read downwards."""
    what = f"Risk of {name} by total" if sheet.is_binary else f"Share of {name} by its total"
    texts = [(line.totals, line.risk, line.interval_text) for line in lines]
    ends = list(accumulate(_width_of(column) for column in zip(RISK_HEADS, *texts, strict=True)))
    least = max(ends[-1], RISK_COLUMN)
    n_columns = max(1, min(int((width + 12) // (least + 12)), math.ceil(len(lines) / 4)))
    tall = math.ceil(len(lines) / n_columns)
    wide = (width - 12 * (n_columns - 1)) / n_columns
    ends = [end + (wide - ends[-1]) * k / 2 for k, end in enumerate(ends)]
    parts = [titled(text_at(0, 14, fit_text(what, width, TEXT, True), "points"), what)]
    for column in range(n_columns):
        x = column * (wide + 12)
        own = lines[column * tall : (column + 1) * tall]
        if own:
            heads = zip(RISK_HEADS, ends, strict=True)
            parts += [text_at(x + end, 31, head, "quiet", "end") for head, end in heads]
        parts += [_risk_line(line, x, 36 + k * RISK_LINE, ends) for k, line in enumerate(own)]
    return Part(Markup("").join(parts), width, 38 + tall * RISK_LINE)


def _width_of(texts: Sequence[str]) -> float:
    """Room for the widest of some texts beside others."""
    return max(text_width(text, SMALL, True) for text in texts) + 8


def _risk_line(line: RiskLine, x: float, y: float, ends: Sequence[float]) -> Markup:
    """A total, its risk as text and as a bar below it, and the interval."""
    kind = f"g{min(line.group, N_SHADES - 1)}" if line.group is not None else "bar"
    room, share = ends[-1] - ends[0], max(line.risks)
    parts = [
        RECT.format(kind, x, y + 1, 4, RISK_LINE - 2, 0),
        RECT.format("risk", x + ends[0] + 4, y + 16, max((room - 4) * share, 1), 2, 0),
        text_at(x + ends[0], y + 14, line.totals, "points small", "end"),
        text_at(x + ends[1], y + 14, line.risk, "small", "end"),
        text_at(x + ends[2], y + 14, line.interval_text, "small", "end"),
    ]
    return titled(Markup("").join(parts), f"{line.n_rows:,.6g} rows")


def _groups(groups: Sequence[str], width: float) -> Part:
    """The risk groups with their totals, side by side as far as there is room."""
    parts, x, y = [], 0.0, 0.0
    for index, text in enumerate(groups):
        shown = fit_text(text, width - 16, TEXT)
        room = 16 + text_width(shown, TEXT) + 18
        if x > 0 and x + room - 18 > width:
            x, y = 0.0, y + LINE + 2
        parts.append(RECT.format(f"g{min(index, N_SHADES - 1)}", x, y + 3, 11, 11, 2))
        parts.append(titled(text_at(x + 16, y + 13, shown), text))
        x += room
    return Part(Markup("").join(parts), width, y + LINE)
