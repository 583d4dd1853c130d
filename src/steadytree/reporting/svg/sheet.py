"""Sheet: what the printed form of a risk score says, for its picture and its text."""

import math
from dataclasses import dataclass

from scipy.special import expit, logit

from steadytree._base.intervals import wilson_interval
from steadytree.models.risk_table import RiskRow, RiskTable
from steadytree.models.scorecard import Scorecard
from steadytree.models.variable import Variable, join_names
from steadytree.reporting.formatting import label_text, one_line

MOST_LINES = 60  # totals of one class; with more, neighbours share a line
MOST_TOTALS = 10_000  # above which only totals that occurred are listed
EMPTY = "no conditions: every row gets the same prediction"


@dataclass(frozen=True)
class Block:
    """One variable: its bands in words, with the points of each."""

    name: str
    unit: str
    bands: tuple[tuple[str, tuple[int, ...]], ...]
    names: tuple[tuple[str, ...], ...] = ()  # the categories that the text of each band begins with


@dataclass(frozen=True)
class RiskLine:
    """Totals from `low` to `high` with the risk they stand for."""

    low: int
    high: int
    risks: tuple[float, float]  # of the lowest and the highest of these totals
    n_rows: float  # training rows (or weights) with these totals
    n_label: float
    group: int | None = None  # index of the risk group
    shift: float = 0.0  # of the log odds, from the training rows to another prevalence

    @property
    def totals(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"

    @property
    def risk(self) -> str:
        low, high = map(risk_text, self.risks)
        return low if low == high else f"{low.removesuffix(' %')} to {high}"

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % intervals around the observed share and around the risk, together.

        Bands were chosen on the rows that are counted, so that shares are too extreme: risks are
        shrunken for that, and as uncertain for that many rows. None without rows.
        """
        if not self.n_rows:
            return None
        before = (self.n_rows * self._moved(risk, -self.shift) for risk in self.risks)
        both = [wilson_interval(events, self.n_rows) for events in (self.n_label, *before)]
        ends = [self._moved(end, self.shift) for pair in both for end in pair]
        return min(ends), max(ends)

    @staticmethod
    def _moved(risk: float, shift: float) -> float:
        """A risk after a shift of its log odds."""
        return float(expit(logit(risk) + shift)) if shift else risk

    @property
    def interval_text(self) -> str:
        if self.interval is None:
            return "–"
        low, high = map(risk_text, self.interval)
        return f"{low.removesuffix(' %')} to {high}"


@dataclass(frozen=True)
class Sheet:
    """Title, blocks of points, the rule of prediction, and the risk of each total."""

    title: str
    labels: tuple[str, ...]
    start: tuple[int, ...]  # points everybody starts with
    blocks: tuple[Block, ...]
    rule: str
    # by class, the totals of which are listed; one entry for two classes
    risks: tuple[tuple[str, tuple[RiskLine, ...]], ...]
    groups: tuple[str, ...]  # names of the risk groups with their totals
    note: str

    @property
    def is_binary(self) -> bool:
        return len(self.labels) == 2

    @classmethod
    def of(cls, scorecard: Scorecard, title: str = "") -> "Sheet":
        """From a scorecard; `title` replaces its own."""
        labels = tuple(label_text(label) for label in scorecard.classes.tolist())
        usual = f"Points for: {labels[1]}" if scorecard.is_binary else "Points for each class"
        table = scorecard.risk_table
        risks = []
        for label in dict.fromkeys(row.label for row in table.rows) if table is not None else ():
            rows = [row for row in table.rows if row.label == label]  # type: ignore[union-attr]
            risks.append((label_text(label), _lines(scorecard, rows)))
        return cls(
            title=one_line(title) or one_line(scorecard.title) or usual,
            labels=labels,
            start=tuple(scorecard.offset.tolist()),
            blocks=tuple(_block(variable) for variable in scorecard.variables),
            rule=_rule(scorecard, labels),
            risks=tuple(risks),
            groups=_groups(scorecard),
            note=_note(scorecard),
        )


def risk_text(share: float) -> str:
    """A risk in per cent, with a digit more where it is small; 0 and 100 only where it is that."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.5 <= percent < 100:
        return "> 99 %"
    return f"{percent:.1f} %" if 0 < percent < 9.95 else f"{percent:.0f} %"


def _block(variable: Variable) -> Block:
    listed, column = variable.listed(), variable.column
    shown = tuple((one_line(text), band.points) for text, band in listed)
    names = []
    for text, band in listed:
        own = [one_line(one) for one in band.names(column)]
        names.append(tuple(own) if one_line(text).startswith(join_names(own)) else ())
    return Block(one_line(variable.name), one_line(variable.unit), shown, tuple(names))


def _rule(scorecard: Scorecard, labels: tuple[str, ...]) -> str:
    if not scorecard.variables:
        return EMPTY
    if not scorecard.is_binary:
        return "the class with the greatest total is predicted; the first one on ties"
    if scorecard.decision is None:
        return f"above 0: {labels[1]}, else {labels[0]}"
    totals = possible_totals(scorecard)
    if not min(totals) < scorecard.decision <= max(totals):
        return f"every total: {labels[int(scorecard.decision <= min(totals))]}"
    return f"{scorecard.decision} or more: {labels[1]}, else {labels[0]}"


def _groups(scorecard: Scorecard) -> tuple[str, ...]:
    found, groups = [], scorecard.risk_groups
    for index, group in enumerate(groups):
        end = groups[index + 1].least - 1 if index + 1 < len(groups) else None
        if index == 0:
            where = f"up to {end}" if end is not None else "all totals"
        elif end is None:
            where = f"{group.least} or more"
        else:
            where = str(end) if end == group.least else f"{group.least} to {end}"
        found.append(f"{one_line(group.name)}: {where}")
    return tuple(found)


def _note(scorecard: Scorecard) -> str:
    if scorecard.risk_table is None:
        return ""
    own = scorecard.risk_table.rows[0].label if scorecard.risk_table.rows else None
    n_rows = sum(row.n_rows for row in scorecard.risk_table.rows if row.label == own)
    note = f"95 % intervals hold the share observed among {n_rows:,.6g} training rows and the risk"
    prevalence = scorecard.provenance.get("prevalence")
    return note if prevalence is None else f"{note}, at a prevalence of {risk_text(prevalence)}"


def _lines(scorecard: Scorecard, rows: list[RiskRow]) -> tuple[RiskLine, ...]:
    """A line for each total that can occur, or for several neighbours where there are many."""
    seen = {row.total: row for row in rows}
    risk_of = {row.total: row.risk for row in rows}
    totals = sorted(seen)
    if scorecard.is_binary and scorecard.gives_risks:
        totals = sorted(possible_totals(scorecard) | set(seen))
        risks = scorecard.risk(totals)[:, 1].tolist()
        risk_of = dict(zip(totals, risks, strict=True))
    starts = [group.least for group in scorecard.risk_groups[1:]]

    def group_of(total: int) -> int | None:
        return sum(total >= start for start in starts) if scorecard.risk_groups else None

    shift = _shift(scorecard, rows)
    step = math.ceil(len(totals) / MOST_LINES)
    parts: list[list[int]] = []
    for total in totals:  # a line never reaches over the end of a risk group
        if parts and len(parts[-1]) < step and group_of(parts[-1][0]) == group_of(total):
            parts[-1].append(total)
        else:
            parts.append([total])
    return tuple(
        RiskLine(
            part[0],
            part[-1],
            (risk_of[part[0]], risk_of[part[-1]]),
            sum(seen[total].n_rows for total in part if total in seen),
            sum(seen[total].n_label for total in part if total in seen),
            group_of(part[0]),
            shift,
        )
        for part in parts
    )


def interval_of(scorecard: Scorecard, row: RiskRow) -> tuple[float, float]:
    """The interval of one total as the sheet states it."""
    table: RiskTable = scorecard.risk_table  # type: ignore[assignment]
    shift = _shift(scorecard, [one for one in table.rows if one.label == row.label])
    risks = row.risk, row.risk
    line = RiskLine(row.total, row.total, risks, row.n_rows, row.n_label, shift=shift)
    return line.interval or (0.0, 1.0)


def _shift(scorecard: Scorecard, rows: list[RiskRow]) -> float:
    """Log odds from the share of events in training to the prevalence that risks are stated for."""
    prevalence = scorecard.provenance.get("prevalence")
    if prevalence is None:
        return 0.0
    share = sum(row.n_label for row in rows) / sum(row.n_rows for row in rows)
    return float(logit(prevalence) - logit(share))


def possible_totals(scorecard: Scorecard) -> set[int]:
    """Totals of two classes that some row can have; empty where they are too many."""
    found = {int(scorecard.offset[0])}
    for variable in scorecard.variables:
        points = {band.points[0] for _, band in variable.listed()}
        found = {total + own for total in found for own in points}
        if len(found) > MOST_TOTALS:
            return set()
    return found
