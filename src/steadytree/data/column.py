"""Column: what is known of one feature; Summary: what rows tell of all their columns."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import compress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steadytree._base.parallel import in_threads
from steadytree.data.ranges import order_of_ranges
from steadytree.data.table import Table, TextValues, is_number, quote

Bounds = Mapping[str, tuple[float, float]]
Kind = Literal["numeric", "integer", "binary", "categorical"]
KINDS = ("numeric", "integer", "binary", "categorical")
MAX_CATEGORIES = 1_000
MANY_NUMBERS = 20  # fewer different values may well be categories
# perhaps with a time behind it
DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})($|[T ])")
FEW_TEXTS = 20  # which few rows may well all have
# names of columns that number rows; the first is what pandas calls an index that was saved
NUMBERED = re.compile(
    r"^Unnamed: 0$|(?:^|[^A-Za-z])(?i:id|nr|no|number|index|key|row)$|[a-z](?:ID|Id|Nr|No)$"
)
BLOCK = 1 << 16  # values looked at together
NO_THRESHOLDS: NDArray[np.float64] = np.empty(0)
NO_THRESHOLDS.flags.writeable = False


class ByKey:
    """Objects of a class are equal where their keys are."""

    def key(self) -> Any:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())


@dataclass(frozen=True, eq=False)
class Column(ByKey):
    """Name, kind, bounds or categories, and candidate thresholds of one feature."""

    name: str
    kind: Kind
    low: float = np.nan  # declared or observed bounds; nan for a categorical column
    high: float = np.nan
    categories: tuple[str, ...] = ()
    missing: bool = False  # seen or declared; only then may a split ask for missing values
    # rising; a value goes left if x <= threshold
    thresholds: NDArray[np.float64] = field(default_factory=lambda: NO_THRESHOLDS, repr=False)
    ordered: bool = False  # whether the categories are listed from the lowest to the highest

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(
                f"column {self.name!r}: kind must be one of {KINDS}, got {self.kind!r}."
            )
        if self.is_categorical:
            self._check_categories()
            return
        if self.categories:
            raise ValueError(f"column {self.name!r}: only a categorical column has categories.")
        if self.ordered:
            raise ValueError(f"column {self.name!r}: only a categorical column may be ordered.")
        if not -np.inf < self.low <= self.high < np.inf:
            raise ValueError(
                f"column {self.name!r}: bounds must be finite and in order, "
                f"got [{self.low}, {self.high}]."
            )
        if self.high / 2 - self.low / 2 > np.finfo(np.float64).max / 2:
            raise ValueError(
                f"column {self.name!r} reaches from {self.low:.6g} to {self.high:.6g}, too far "
                "for any number (1.8e308): divide its values, or drop it."
            )
        if self.thresholds is not NO_THRESHOLDS:
            object.__setattr__(self, "thresholds", _check_thresholds(self.name, self.thresholds))

    def _check_categories(self) -> None:
        if len(self.categories) == 0:
            raise ValueError(f"column {self.name!r}: a categorical column needs its categories.")
        if len(set(self.categories)) < len(self.categories):
            raise ValueError(f"column {self.name!r}: a category appears twice.")
        if len(self.categories) > MAX_CATEGORIES:
            raise ValueError(
                f"column {self.name!r} has {len(self.categories):,} categories, more than the "
                f"{MAX_CATEGORIES:,} a readable tree can split on: {self._fewer_categories()}."
            )

    def _fewer_categories(self) -> str:
        """What to do about too many categories."""
        if strays := stray_texts(self.categories):
            return f"they are numbers but for texts such as {strays[0]!r}, so mark these as missing"
        if are_dates(self.categories):
            return "they are dates, so turn them into numbers, such as days since a date"
        return "group them, or drop the column if it is an identifier"

    @property
    def is_categorical(self) -> bool:
        return self.kind == "categorical"

    @cached_property
    def index_of(self) -> dict[str, int]:
        """Index of each category."""
        return {category: index for index, category in enumerate(self.categories)}

    @cached_property
    def ranks(self) -> NDArray[np.int64] | None:
        """Places of the categories in their order; None where they have none.

        The order is declared by the data's type, or that of ranges of numbers.
        """
        return np.arange(len(self.categories)) if self.ordered else order_of_ranges(self.categories)

    @property
    def n_bins(self) -> int:
        """Bins without the one for missing values."""
        return len(self.categories) if self.is_categorical else len(self.thresholds) + 1

    def with_thresholds(self, thresholds: NDArray[np.float64]) -> "Column":
        """The same column with other candidate thresholds."""
        if self.is_categorical:
            raise ValueError(f"column {self.name!r}: a categorical column has no thresholds.")
        return self._copy(_check_thresholds(self.name, thresholds))

    def bare(self) -> "Column":
        """The same column without its candidate thresholds."""
        return self if self.thresholds is NO_THRESHOLDS else self._copy(NO_THRESHOLDS)

    def _copy(self, thresholds: NDArray[np.float64]) -> "Column":
        """A copy that is not checked again: on few rows that would cost as much as the fit."""
        copy = object.__new__(Column)
        copy.__dict__.update(self.__dict__, thresholds=thresholds)
        copy.__dict__.pop("_key", None)  # which was made with the other thresholds
        return copy

    def key(self) -> tuple[Any, ...]:
        """What makes two columns equal."""
        return self._key

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        bounds = () if self.is_categorical else (float(self.low), float(self.high))
        own = (self.name, self.kind, bounds, self.categories, self.ordered, self.missing)
        return (*own, self.thresholds.tobytes())


def _check_thresholds(name: str, thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    checked = np.array(thresholds, dtype=np.float64)
    if len(checked) and not (
        (checked[1:] > checked[:-1]).all() and -np.inf < checked[0] and checked[-1] < np.inf
    ):
        raise ValueError(f"column {name!r}: thresholds must be finite and increasing.")
    checked.flags.writeable = False
    return checked


def stray_texts(texts: Iterable[str]) -> list[str]:
    """The few texts among many numbers; none where there are no or too many such texts."""
    values = sorted(set(texts))
    strays = [value for value in values if not is_number(value)]
    return strays if len(values) > MANY_NUMBERS and len(strays) <= len(values) / 10 else []


def are_dates(texts: Iterable[str]) -> bool:
    """Whether all texts look like dates, such as 2026-03-31 or 31.3.2026."""
    return all(DATE.match(text) for text in texts)


# least and largest value, missing count, infinite count, integer-valued: an array for each
Figures = tuple[NDArray[Any], ...]


@dataclass(frozen=True, eq=False)
class Summary:
    """Names, ranges, missing values and categories of the columns of some rows."""

    names: tuple[str, ...]
    n_rows: int
    figures: Figures  # from `summarise_columns`; of text only missing values are counted
    found: tuple[frozenset[str] | None, ...]  # categories that occur; None for numbers
    declared: dict[str, tuple[str, ...]]  # categories declared by the data's type or the user
    ordered: frozenset[str] = frozenset()  # columns whose declared categories have an order

    @classmethod
    def of(cls, table: Table, categories: Mapping[str, tuple[str, ...]] | None = None) -> "Summary":
        """Look at the rows once; `categories` take the place of those that the data declare."""
        names = table.names or tuple(f"x{j}" for j in range(table.n_columns))
        declared = {**table.declared, **(categories or {})}
        ordered = table.ordered - set(categories or ())
        if table.matrix is not None and not declared:
            figures = summarise_columns(table.matrix)
            return cls(names, table.n_rows, figures, (None,) * len(names), {})
        parts, found = [], []
        for j, (name, values) in enumerate(zip(names, table.columns, strict=True)):
            by_value = values.dtype == object or name in declared
            found.append(_categories_in(table.text(j)) if by_value else None)
            parts.append(
                _count_missing(table.text(j)) if by_value else summarise_columns(values[:, None])
            )
        figures = tuple(np.concatenate(one) for one in zip(*parts, strict=True))
        return cls(names, table.n_rows, figures, tuple(found), declared, ordered)

    def __add__(self, other: "Summary") -> "Summary":
        if self.names != other.names:
            differ = [name for name in self.names if name not in other.names]
            differ += [name for name in other.names if name not in self.names]
            what = f"{quote(differ)} only in some" if differ else "in another order"
            raise ValueError(f"parts of the data have different columns: {what}.")
        figures = _both(self.figures, other.figures)
        found = tuple(self._found_with(other, index) for index in range(len(self.names)))
        declared = {
            # in order of appearance, as categories unite when parts are put together
            name: tuple(dict.fromkeys(self.declared.get(name, ()) + other.declared.get(name, ())))
            for name in {**self.declared, **other.declared}
        }
        # where parts declare other categories, nothing says how these follow each other
        ordered = frozenset(
            name
            for name in self.ordered & other.ordered
            if self.declared[name] == other.declared[name]
        )
        return Summary(self.names, self.n_rows + other.n_rows, figures, found, declared, ordered)

    def _found_with(self, other: "Summary", index: int) -> frozenset[str] | None:
        """Categories of both; a part without any value of a column goes with either kind."""
        one, two = self.found[index], other.found[index]
        if one is not None and two is not None:
            return one | two
        numbers = self if one is None else other
        if one is two or numbers.figures[2][index] == numbers.n_rows:
            return one if two is None else two
        raise ValueError(
            f"column {self.names[index]!r} holds text in some parts of the data and numbers in "
            "others: turn it into one of them."
        )

    def columns(self, bounds: Bounds | None = None) -> tuple[Column, ...]:
        """The columns as observed; declared bounds take the place of observed ones.

        All columns that no model can use are named at once.
        """
        infinite = list(compress(self.names, self.figures[3]))
        empty = list(compress(self.names, self.figures[2] == self.n_rows))
        faults = [*_infinity_text(infinite), *_nothing_text(empty)]
        figures = zip(*(figure.tolist() for figure in self.figures), strict=True)
        columns = []
        for j, (name, own) in enumerate(zip(self.names, figures, strict=True)):
            if name in infinite or name in empty:
                continue
            try:
                columns.append(self._column(j, name, own, bounds or {}))
            except ValueError as error:
                faults.append(str(error))
        if faults:
            raise ValueError(" ".join(faults))
        return tuple(columns)

    def _column(self, j: int, name: str, figures: tuple[Any, ...], bounds: Bounds) -> Column:
        low, high, n_missing, _, integral = figures
        found, missing = self.found[j], n_missing > 0
        if found is None:
            kind: Kind = "integer" if integral else "numeric"
            if integral and (low, high) == (0, 1):
                kind = "binary"
            low, high = bounds.get(name, (low, high))
            return Column(name, kind, float(low), float(high), missing=missing)
        declared = self.declared.get(name)
        known = tuple(sorted(found)) if declared is None else declared
        if len(known) > MAX_CATEGORIES and declared is not None:
            known = tuple(category for category in known if category in found)
        missing = missing or len(found - set(known)) > 0
        is_ordered = name in self.ordered
        return Column(name, "categorical", categories=known, ordered=is_ordered, missing=missing)


def summarise_columns(X: NDArray[Any]) -> Figures:
    """Per column of X (n, p): least and largest finite value, missing, infinite, integer-valued.

    Columns without a finite value have inf as the least and -inf as the largest one.
    """
    parts = in_threads(lambda first, last: _summarise_rows(X[first:last]), len(X), X.size)
    return reduce(_both, parts)


def _both(one: Figures, two: Figures) -> Figures:
    """The figures of the rows of both."""
    together = (np.minimum, np.maximum, np.add, np.add, np.logical_and)
    return tuple(add(*pair) for add, *pair in zip(together, one, two, strict=True))


def _summarise_rows(X: NDArray[Any]) -> Figures:
    """As `summarise_columns`, in blocks whose values stay in the cache.

    A column of fractions is found in its first one.
    """
    n_columns = X.shape[1]
    low, high = np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
    missing, infinite = np.zeros(n_columns, np.int64), np.zeros(n_columns, np.int64)
    integral = np.ones(n_columns, np.bool_)
    n_together = max(BLOCK // max(n_columns, 1), 1)
    for first in range(0, len(X), n_together):
        block = np.ascontiguousarray(X[first : first + n_together].T)  # numpy likes long rows
        least, largest = block.min(axis=1), block.max(axis=1)
        with np.errstate(invalid="ignore", over="ignore"):
            odd = np.flatnonzero(~np.isfinite(least.astype(np.float64) + largest))
        for j in odd:  # a missing value, an infinite one, or a sum past the largest number
            values = block[j].astype(np.float64)
            known = values[np.isfinite(values)]
            n_missing = np.count_nonzero(np.isnan(values))
            missing[j] += n_missing
            infinite[j] += len(values) - len(known) - n_missing
            least[j], largest[j] = known.min(initial=np.inf), known.max(initial=-np.inf)
        np.minimum(low, least, out=low)
        np.maximum(high, largest, out=high)
        if X.dtype.kind == "f":
            maybe = np.flatnonzero(integral)
            values = block if len(maybe) == n_columns else block[maybe]
            whole = np.floor(values) == values
            if len(odd):
                whole |= ~np.isfinite(values)
            integral[maybe] = whole.all(axis=1)
    return low, high, missing, infinite, integral


def _categories_in(text: TextValues) -> frozenset[str]:
    counts = np.bincount(text.of_row + 1, minlength=len(text.values) + 1)[1:]
    return frozenset(text.values[k] for k in np.flatnonzero(counts))


def _count_missing(text: TextValues) -> Figures:
    missing, none = np.array([(text.of_row < 0).sum()]), np.zeros(1, np.int64)
    return np.array([np.inf]), np.array([-np.inf]), missing, none, np.ones(1, np.bool_)


def check_finite(bad: Iterable[str]) -> None:
    """Refuse columns that hold infinity, given by their names."""
    if faults := _infinity_text(list(bad)):
        raise ValueError(faults[0])


def _infinity_text(names: list[str]) -> list[str]:
    text = f"column(s) {quote(names)} hold infinity: clip such values, or mark them missing."
    return [text] if names else []


def _nothing_text(names: list[str]) -> list[str]:
    if len(names) == 1:
        return [f"column {names[0]!r} holds no value at all, only missing ones: drop it."]
    text = f"columns {quote(names)} hold no value at all, only missing ones: drop them."
    return [text] if names else []


def row_numbers(table: Table) -> list[str]:
    """Names of columns that number the rows: distinct integers, in sequence or named like it."""
    found = []
    for name, column in zip(table.names or (), table.columns, strict=True):
        n = len(column)
        if column.dtype == object or n <= FEW_TEXTS or not np.isfinite(column).all():
            continue
        with np.errstate(over="ignore"):
            in_sequence = float(np.ptp(column)) == n - 1
        if (in_sequence or NUMBERED.search(name)) and (np.floor(column) == column).all():
            found += [name] if len(np.unique(column)) == n else []
    return found
