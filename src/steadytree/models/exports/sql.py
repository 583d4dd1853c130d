"""Trees and scorecards as SQL expressions, run once in SQLite before they are handed over."""

import math
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from steadytree._base.validation import OneOf
from steadytree.data.table import quote
from steadytree.models.boxes import in_double
from steadytree.models.exports.probes import Check, Probes, used_features
from steadytree.models.exports.source import check_size
from steadytree.models.scorecard import Scorecard, scorecard_of
from steadytree.models.tree import LEAF, Tree
from steadytree.models.variable import Variable

LEAST, GREATEST = "-1.7976931348623157e308", "1.7976931348623157e308"  # of all doubles
EXACT_INTEGERS = 2.0**53
MOST_LEVELS = 15  # the parser of SQLite before 3.46 has room for 100 symbols


class Dialect(NamedTuple):
    """How a family of databases writes names and texts, and how it sorts NaN."""

    around_name: str
    name_escape: str  # of the same sign within a name
    text_escapes: tuple[tuple[str, str], ...]
    nan_is_greatest: bool = False  # in comparisons; elsewhere they are false, or there is no NaN

    def name(self, name: str) -> str:
        sign = self.around_name
        return sign + name.replace(sign, self.name_escape) + sign

    def text(self, text: str) -> str:
        for sign, escaped in self.text_escapes:
            text = text.replace(sign, escaped)
        return f"'{text}'"

    def texts(self, categories: Sequence[str], chosen: Iterable[int]) -> str:
        return ", ".join(self.text(categories[k]) for k in chosen)

    def above(self, name: str, value: float) -> str:
        """Whether a number is greater; never so for NaN, which stays the greatest as 0 - NaN."""
        if self.nan_is_greatest:
            return f"0e0 - {name} < {_number(-value)}"
        return f"{name} > {_number(value)}"

    def is_infinite(self, name: str) -> str:
        return f"{name} < {LEAST} OR {self.above(name, float(GREATEST))}"

    def label(self, label: Any) -> str:
        if isinstance(label, bool):
            return "TRUE" if label else "FALSE"
        return self.text(label) if isinstance(label, str) else _number(label)


DIALECTS = {
    # SQLite, DuckDB, PostgreSQL, Snowflake
    "standard": Dialect('"', '""', (("'", "''"),), nan_is_greatest=True),
    "mysql": Dialect("`", "``", (("\\", "\\\\"), ("'", "''"))),
    "bigquery": Dialect("`", "\\`", (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"))),
    "spark": Dialect("`", "``", (("\\", "\\\\"), ("'", "\\'")), nan_is_greatest=True),
}


def tree_to_sql(tree: Tree, label: Any = None, dialect: str = "standard") -> tuple[str, Check]:
    """What `Tree.to_sql` describes, and on what it was compared with the tree."""
    OneOf(*DIALECTS).check(dialect, "dialect")
    check_size(tree, "SQL", MOST_LEVELS)
    tree = in_double(tree)
    _check_columns(tree, dialect)
    known = tree.classes.tolist()
    if label is None and "\0" in "".join(map(str, known)):
        raise ValueError("a class label has a NUL sign, which SQL cannot hold.")
    if label is not None and label not in known:
        raise ValueError(f"label must be one of {known} or left out, got {label!r}.")
    values: list[Any] = [known[index] for index in tree.label.tolist()]
    if label is not None:
        values = tree.value[:, known.index(label)].tolist()
    probes, used = Probes.of_tree(tree), used_features(tree)
    leaves = probes.ask(tree.apply, used, None)
    expected = [None if leaf is None else values[leaf] for leaf in leaves]
    check = _compare(_tree(tree, values, DIALECTS["standard"]), probes, used, expected)
    return _tree(tree, values, DIALECTS[dialect]), check


def scorecard_to_sql(
    scorecard: Any, label: object = None, dialect: str = "standard"
) -> tuple[str, Check]:
    """What `Scorecard.to_sql` describes, and on what it was compared with the scorecard."""
    scorecard = scorecard_of(scorecard)
    OneOf(*DIALECTS).check(dialect, "dialect")
    _check_columns(scorecard, dialect)
    own = scorecard.total_of(label)
    probes, used = Probes.of_scorecard(scorecard), used_features(scorecard)
    n_totals = len(scorecard.offset)
    expected = probes.ask(lambda X: scorecard.score(X).reshape(-1, n_totals)[:, own], used, None)
    check = _compare(_total(scorecard, own, DIALECTS["standard"]), probes, used, expected)
    return _total(scorecard, own, DIALECTS[dialect]), check


# ---- texts ----
def _tree(tree: Tree, values: Sequence[Any], dialect: Dialect) -> str:
    def branch(node: int) -> str:
        feature = int(tree.feature[node])
        if feature == LEAF:
            return dialect.label(values[node])
        left, right = int(tree.left[node]), int(tree.right[node])
        condition = _condition(tree, node, dialect)
        if condition is None:
            return branch(left)
        if tree.missing_left[node]:  # the condition is the other one, so that NULL goes left
            left, right = right, left
        return f"CASE WHEN {condition} THEN {branch(left)} ELSE {branch(right)} END"

    numbers = [j for j in used_features(tree) if not tree.space[j].is_categorical]
    if not numbers:
        return branch(0)
    guards = " OR ".join(dialect.is_infinite(dialect.name(tree.space[j].name)) for j in numbers)
    return f"CASE WHEN {guards} THEN NULL ELSE {branch(0)} END"


def _condition(tree: Tree, node: int, dialect: Dialect) -> str | None:
    """What sends a row to the side that missing values do not go to; None where all go left."""
    column, missing_left = tree.space[tree.feature[node]], bool(tree.missing_left[node])
    name, at = dialect.name(column.name), float(tree.threshold[node])
    if column.is_categorical:
        flags = tree.subset[node, : len(column.categories)] != missing_left
        chosen = flags.nonzero()[0].tolist()
        return f"{name} IN ({dialect.texts(column.categories, chosen)})" if chosen else None
    if at == float("inf"):
        return None if missing_left else f"{name} <= {GREATEST}"
    return dialect.above(name, at) if missing_left else f"{name} <= {_number(at)}"


def _total(scorecard: Scorecard, own: int, dialect: Dialect) -> str:
    parts = [str(int(scorecard.offset[own]))] if scorecard.offset[own] else []
    parts += [_points(variable, own, dialect) for variable in scorecard.variables]
    return " + ".join(parts) or "0"


def _points(variable: Variable, own: int, dialect: Dialect) -> str:
    """Points of one variable; a value that is none of its bands has those of missing values."""
    *known, missing = (band.points[own] for band in variable.bands)
    name = dialect.name(variable.name)
    if variable.column.is_categorical:
        listed = [
            f"WHEN {name} IN ({dialect.texts(variable.column.categories, band.categories)}) "
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
    return (
        f"(CASE WHEN {name} BETWEEN {LEAST} AND {GREATEST} THEN {inner} "
        f"WHEN {dialect.is_infinite(name)} THEN NULL ELSE {missing} END)"
    )


def _number(value: float) -> str:
    """A number that every database reads as this double: others take 0.1 for a decimal."""
    value = float(value)
    if value.is_integer() and abs(value) < EXACT_INTEGERS:
        return str(int(value))
    text = repr(value)
    return text if "e" in text else f"{text}e0"


# ---- checks ----
def _check_columns(model: Tree | Scorecard, dialect: str) -> None:
    """Refuse names and texts that a database cannot tell apart, and integers that it rounds."""
    columns = [model.space[j] for j in used_features(model)]
    _check_apart("columns", [column.name for column in columns], "rename one of them")
    for column in columns:
        if dialect == "mysql":
            what = f"categories of {column.name!r} for MySQL"
            advice = "rename one of them, or use another dialect"
            _check_apart(what, column.categories, advice, _collated)
        if not column.name:
            raise ValueError("a column has no name, which SQL cannot write: name it.")
        if "\0" in "".join((column.name, *column.categories)):
            raise ValueError(f"column {column.name!r} has a NUL sign, which SQL cannot hold.")
    beyond = [model.space[j].name for j, at in _thresholds(model) if abs(at) >= EXACT_INTEGERS]
    beyond = [
        column.name for column in columns if column.name in beyond and column.kind == "integer"
    ]
    if beyond:
        raise ValueError(
            f"column(s) {quote(beyond)} have thresholds of 2**53 or more: databases compare such "
            "integers exactly, and models round them to float64; divide the column first."
        )


def _case_free(text: str) -> str:
    return text.casefold().rstrip()


def _collated(text: str) -> str:
    """What MySQL's usual collations compare: neither case, accents nor spaces at the end."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return _case_free("".join(sign for sign in parts if not unicodedata.combining(sign)))


def _check_apart(
    what: str, texts: Iterable[str], advice: str, form: Callable[[str], str] = _case_free
) -> None:
    seen: dict[str, str] = {}
    for text in texts:
        other = seen.setdefault(form(text), text)
        if other != text:
            raise ValueError(f"{what} {other!r} and {text!r} are the same in SQL: {advice}.")


def _thresholds(model: Tree | Scorecard) -> list[tuple[int, float]]:
    """Columns and finite thresholds of all splits or conditions on numbers."""
    if isinstance(model, Tree):
        pairs = list(zip(model.feature.tolist(), model.threshold.tolist(), strict=True))
    else:
        pairs = [(each.feature, each.threshold) for each in model.conditions]
    return [(feature, at) for feature, at in pairs if math.isfinite(at)]


def _compare(text: str, probes: Probes, used: list[int], expected: list[Any]) -> Check:
    """Run the expression in SQLite; a table holds the columns that the model asks about."""
    columns = probes.columns(used) or {"no column is used": [None] * len(expected)}
    dialect = DIALECTS["standard"]
    kinds = {column.name: "TEXT" if column.is_categorical else "REAL" for column in probes.space}
    named = ", ".join(f"{dialect.name(name)} {kinds.get(name, 'TEXT')}" for name in columns)
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(f"CREATE TABLE probes ({named})")
        marks = ", ".join("?" * len(columns))
        rows = zip(*columns.values(), strict=True)
        base.executemany(f"INSERT INTO probes VALUES ({marks})", rows)
        found = [answer for (answer,) in base.execute(f"SELECT {text} FROM probes")]
    return probes.compare("the SQL expression", f"SQLite {sqlite3.sqlite_version}", expected, found)
