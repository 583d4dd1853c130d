"""Column: what is known of one feature."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["numeric", "integer", "binary", "categorical"]
KINDS = ("numeric", "integer", "binary", "categorical")
MAX_CATEGORIES = 1_000
NO_CUTS: NDArray[np.float64] = np.empty(0)
NO_CUTS.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Column:
    """Name, kind, bounds or categories, and candidate cut points of one feature.

    Parameters
    ----------
    name : str
    kind : {"numeric", "integer", "binary", "categorical"}
    low, high : float
        Declared or observed bounds; nan for a categorical column.
    categories : tuple of str
        In order of their codes; empty for other kinds.
    missing : bool
        Whether missing values were seen (or declared possible); only then are rules about
        missing values among the candidates.
    cuts : float64 array
        Rising candidate thresholds, read as ``x <= cut``.
    """

    name: str
    kind: Kind
    low: float = np.nan
    high: float = np.nan
    categories: tuple[str, ...] = ()
    missing: bool = False
    cuts: NDArray[np.float64] = field(default_factory=lambda: NO_CUTS)

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
        if not -np.inf < self.low <= self.high < np.inf:
            raise ValueError(
                f"column {self.name!r}: bounds must be finite and in order, "
                f"got [{self.low}, {self.high}]."
            )
        if self.cuts is not NO_CUTS:
            object.__setattr__(self, "cuts", _check_cuts(self.name, self.cuts))

    def _check_categories(self) -> None:
        if len(self.categories) == 0:
            raise ValueError(f"column {self.name!r}: a categorical column needs its categories.")
        if len(set(self.categories)) < len(self.categories):
            raise ValueError(f"column {self.name!r}: a category stands twice.")
        if len(self.categories) > MAX_CATEGORIES:
            raise ValueError(
                f"column {self.name!r} has {len(self.categories):,} categories, more than the "
                f"{MAX_CATEGORIES:,} a readable tree can ask about: group them, or drop the column "
                "if it is an identifier."
            )

    @property
    def is_categorical(self) -> bool:
        return self.kind == "categorical"

    @property
    def n_bins(self) -> int:
        """Bins without the one for missing values."""
        return len(self.categories) if self.is_categorical else len(self.cuts) + 1

    def with_cuts(self, cuts: NDArray[np.float64]) -> "Column":
        """The same column with other candidate cuts."""
        if self.is_categorical:
            raise ValueError(f"column {self.name!r}: a categorical column has no cuts.")
        return self._copy(_check_cuts(self.name, cuts))

    def bare(self) -> "Column":
        """The same column without its candidate cuts."""
        return self if self.cuts is NO_CUTS else self._copy(NO_CUTS)

    def _copy(self, cuts: NDArray[np.float64]) -> "Column":
        """A copy that is not checked again: on few rows that would cost as much as the fit."""
        copy = object.__new__(Column)
        copy.__dict__.update(self.__dict__, cuts=cuts)
        copy.__dict__.pop("_key", None)  # which was made with the other cuts
        return copy

    def key(self) -> tuple[Any, ...]:
        """What makes two columns equal."""
        return self._key

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        bounds = () if self.is_categorical else (float(self.low), float(self.high))
        return (self.name, self.kind, bounds, self.categories, self.missing, self.cuts.tobytes())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Column) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self.key())


def _check_cuts(name: str, cuts: NDArray[np.float64]) -> NDArray[np.float64]:
    checked = np.array(cuts, dtype=np.float64)
    if len(checked) and not (
        (checked[1:] > checked[:-1]).all() and -np.inf < checked[0] and checked[-1] < np.inf
    ):
        raise ValueError(f"column {name!r}: cuts must be finite and rise.")
    checked.flags.writeable = False
    return checked
