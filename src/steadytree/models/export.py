"""A scorecard as a tree and as an SQL expression."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from steadytree._base.validation import OneOf
from steadytree.models.scorecard import scorecard_of
from steadytree.models.tree import LEAF, Tree
from steadytree.models.variable import Variable

MOST_CONDITIONS = 8


def scorecard_to_tree(scorecard: Any) -> Tree:
    """The tree with a scorecard's predictions and risks: a level for each of up to 8 conditions."""
    scorecard = scorecard_of(scorecard)
    if scorecard.n_conditions > MOST_CONDITIONS:
        raise ValueError(
            f"the card has {scorecard.n_conditions} conditions, and a tree of more than "
            f"{MOST_CONDITIONS} levels is too large to write out: fit with "
            f"max_conditions={MOST_CONDITIONS}, or export the card itself."
        )
    n_inner = 2**scorecard.n_conditions - 1
    n_nodes, width = 2 * n_inner + 1, max(len(column.categories) for column in scorecard.space)
    feature, threshold = np.full(n_nodes, LEAF), np.full(n_nodes, np.nan)
    left, right = np.full(n_nodes, LEAF), np.full(n_nodes, LEAF)
    missing_left, subset = np.zeros(n_nodes, bool), np.zeros((n_nodes, width), bool)
    totals = np.zeros((n_nodes, scorecard.points.shape[1]), np.int64) + scorecard.offset
    for node in range(n_inner):
        level = int(np.log2(node + 1))
        condition = scorecard.conditions[level]
        yes_left = condition.sort not in ("at_least", "missing")
        feature[node], missing_left[node] = condition.feature, condition.sort == "at_least"
        categories = scorecard.space[condition.feature].categories
        if categories:  # any value is asked for by naming all
            named = condition.categories if condition.sort == "among" else range(len(categories))
            subset[node, list(named)] = True
        else:
            below = np.nextafter(condition.threshold, -np.inf)
            threshold[node] = np.inf if condition.sort in ("missing", "present") else below
        left[node], right[node] = 2 * node + 1, 2 * node + 2
        totals[left[node]], totals[right[node]] = totals[node], totals[node]
        totals[left[node] if yes_left else right[node]] += scorecard.points[level]
    weight = 2.0 ** -np.floor(np.log2(np.arange(n_nodes) + 1))
    if scorecard.gives_risks:
        value = scorecard.risk(totals[:, 0] if scorecard.is_binary else totals)
    else:
        value = np.eye(len(scorecard.classes))[scorecard.answer_of(totals)]
    for node in range(n_inner - 1, -1, -1):
        value[node] = (value[left[node]] + value[right[node]]) / 2
    arrays = (feature, threshold, left, right, value, weight, missing_left, subset)
    return Tree(scorecard.space, scorecard.classes, *arrays)


def scorecard_to_sql(scorecard: Any, label: object = None, dialect: str = "standard") -> str:
    """The total of a row as an SQL expression, as `Scorecard.to_sql` describes it."""
    scorecard = scorecard_of(scorecard)
    OneOf(*DIALECTS).check(dialect, "dialect")
    own = scorecard.total_of(label)
    parts = [str(int(scorecard.offset[own]))] if scorecard.offset[own] else []
    parts += [_variable(variable, own, DIALECTS[dialect]) for variable in scorecard.variables]
    return " + ".join(parts) or "0"


def _variable(variable: Variable, own: int, quotes: "Quotes") -> str:
    """Points of one variable; a value that is none of its bands has those of missing values."""
    *known, missing = (band.points[own] for band in variable.bands)
    name = quotes.name(variable.name)
    if variable.column.is_categorical:
        listed = [
            f"WHEN {name} IN ({quotes.texts(variable.column.categories, band.categories)}) "
            f"THEN {points}"
            for band, points in zip(variable.bands, known, strict=False)
            if points != missing
        ]
        return f"(CASE {' '.join(listed)} ELSE {missing} END)" if listed else str(missing)
    # from the highest band down; the last one needs no comparison
    steps = [
        f"WHEN {name} >= {_number(band.low)} THEN {points}"
        for band, points in list(zip(variable.bands, known, strict=False))[:0:-1]
    ]
    inner = f"CASE {' '.join(steps)} ELSE {known[0]} END" if steps else str(known[0])
    # NaN lies between no two numbers, whether a database sorts it last or refuses to compare it
    return f"(CASE WHEN {name} BETWEEN {LEAST} AND {GREATEST} THEN {inner} ELSE {missing} END)"


def _number(value: float) -> str:
    """A number that every database reads as this double: others take 0.1 for a decimal."""
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    text = repr(value)
    return text if "e" in text else f"{text}e0"


class Quotes(NamedTuple):
    """How a dialect writes names and texts."""

    around_name: str
    name_escape: str  # of the same sign within a name
    text_escapes: tuple[tuple[str, str], ...]

    def name(self, name: str) -> str:
        sign = self.around_name
        return sign + name.replace(sign, self.name_escape) + sign

    def texts(self, categories: Sequence[str], chosen: Sequence[int]) -> str:
        return ", ".join(self._text(categories[k]) for k in chosen)

    def _text(self, text: str) -> str:
        for sign, escaped in self.text_escapes:
            text = text.replace(sign, escaped)
        return f"'{text}'"


LEAST, GREATEST = "-1.7976931348623157e308", "1.7976931348623157e308"  # of all doubles
DIALECTS = {
    "standard": Quotes('"', '""', (("'", "''"),)),  # SQLite, DuckDB, PostgreSQL, Snowflake
    "mysql": Quotes("`", "``", (("\\", "\\\\"), ("'", "''"))),
    "bigquery": Quotes("`", "\\`", (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"))),
    "spark": Quotes("`", "``", (("\\", "\\\\"), ("'", "\\'"))),
}
