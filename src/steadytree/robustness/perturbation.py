"""Perturbation: how far inputs of a model may move, and at what cost."""

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steadytree._base.validation import OneOf
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import quote

NOISE_SHARE = 0.02  # of a column's range, where no perturbation is given


@dataclass(frozen=True, eq=False)
class Moves:
    """What one unit costs in each column; infinity where it does not move."""

    # (p,): cost of rising or falling by one unit; both hold the cost of another category
    up: NDArray[np.float64]
    down: NDArray[np.float64]
    missing: NDArray[np.float64]  # (p,): cost of a missing value becoming any value
    low: NDArray[np.float64]  # (p,): values do not leave [low, high]
    high: NDArray[np.float64]
    integer: NDArray[np.bool_]  # (p,): columns that move in whole steps
    categorical: NDArray[np.bool_]
    largest: bool  # whether the largest cost over columns counts, else their sum

    @property
    def prices(self) -> NDArray[np.float64]:
        """Costs (p, 3) of one unit up, one down, and of a missing value."""
        return np.stack([self.up, self.down, self.missing], axis=1)

    def ends(
        self, column: Any, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Least and greatest value at which a move into ``low < x <= high`` of a column may end."""
        # All three broadcast to one length. No value fits where the least is above the greatest.
        integer = self.integer[column]
        least = np.where(integer, np.floor(low) + 1.0, np.nextafter(low, np.inf))
        greatest = np.where(integer, np.floor(high), high)
        # nextafter(-inf) is the least finite number, which bounds nothing
        least = np.where(np.isneginf(low), -np.inf, least)
        lowest = np.where(integer, np.ceil(self.low[column]), self.low[column])
        highest = np.where(integer, np.floor(self.high[column]), self.high[column])
        least = np.maximum(least, lowest)
        # beyond the greatest number there is nothing to move to, as past a threshold of infinity
        return least, np.where(np.isposinf(least), -np.inf, np.minimum(greatest, highest))

    def by_fractions(
        self, rows: NDArray[np.float64]
    ) -> Iterator[tuple[NDArray[np.int64], "Moves"]]:
        """Indices of rows with the moves they may make: a fraction moves to any number."""
        # each row is looked at by itself, so that none depends on what others hold
        fractions = self.integer & (rows != np.floor(rows)) & ~np.isnan(rows)
        if not fractions.any():
            yield np.arange(len(rows)), self
            return
        patterns, group = np.unique(fractions, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            yield np.flatnonzero(group.ravel() == k), replace(self, integer=self.integer & ~pattern)


TOLERANCE = 1e-9  # a cost that exceeds the budget by rounding alone is within it
NAMING = ("radius", "step_cost", "frozen", "direction", "missing_cost", "bounds", "whole")
PerFeature = Mapping[str, float] | float | None


@dataclass(frozen=True)
class Perturbation:
    """How far, at what cost and in which direction inputs may move.

    Give one of `radius` and `step_cost`. With `radius` the size of a move is its largest
    coordinate, each in units of that feature's radius (l_inf): size 1 is the declared radius.
    With `step_cost` it is the sum over features of cost times distance moved (weighted l1).
    Distances are in the feature's own units; integer columns move in whole steps (see `whole`),
    and a changed category counts as one step. A feature that is not named does not move.

    Parameters
    ----------
    radius : mapping of name to float, or float for every feature, optional
        How far a feature may be off; 0 does not move.
    step_cost : mapping of name to float, or float for every feature, optional
        Cost of moving by one unit; infinity does not move.
    frozen : sequence of str
        Features that do not move, whatever other parameters say; missing values stay missing.
    direction : mapping of name to {"both", "up", "down"}
        One-sided moves: "up" may only rise.
    missing_cost : mapping of name to float
        Cost (under `radius`: size) at which a missing value may turn out to be any value; missing
        values stay missing where none is given.
    bounds : mapping of name to (low, high)
        Values do not move out of these; columns of type bool stay in 0 and 1.
    whole : sequence of str, optional
        The columns that move in whole steps; a fraction in one of them is refused. By default a
        column does where its type in the data is integer or bool, or where a model of ours knows
        it as integer, because it was fitted on whole numbers alone; never where the model was
        fitted on fractions. scikit-learn's trees keep no such knowledge: for floats, lists and csv
        files, name the columns here. A row that holds a fraction in a column which only the model
        knows as integer may move to any number in that column; other rows are not affected.
    budget : float, optional
        How much may be spent; by default 1 with `radius`. Distances need none.
    scope : {"row", "mean", "total"}, default="row"
        Whether every row may spend the budget, all rows together the budget times their number,
        or all rows together the budget.

    Examples
    --------
    >>> noise = Perturbation(radius={"age": 2, "income": 500}, direction={"age": "up"})
    >>> noise.budget, noise.scope
    (1.0, 'row')
    >>> Perturbation(step_cost={"age": -1})
    Traceback (most recent call last):
        ...
    ValueError: step_cost of 'age' must be a number of at least 0, got -1: ...
    """

    radius: PerFeature = None
    step_cost: PerFeature = None
    frozen: Sequence[str] = ()
    direction: Mapping[str, str] = field(default_factory=dict)
    missing_cost: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    whole: Sequence[str] | None = None
    budget: float | None = None
    scope: Literal["row", "mean", "total"] = "row"

    def __post_init__(self) -> None:
        if (self.radius is None) == (self.step_cost is None):
            raise ValueError("Perturbation: give one of radius and step_cost, the other not.")
        if self.radius is not None and self.budget is None:
            object.__setattr__(self, "budget", 1.0)
        for parameter in ("radius", "step_cost", "missing_cost"):
            _check_costs(parameter, getattr(self, parameter))
        if self.budget is not None and not (is_number(self.budget) and 0 <= self.budget < np.inf):
            raise ValueError(f"budget must be a finite number of at least 0, got {self.budget!r}.")
        OneOf("row", "mean", "total").check(self.scope, "scope")
        for parameter in ("frozen", "whole"):
            if getattr(self, parameter) is not None:
                object.__setattr__(self, parameter, _names(parameter, getattr(self, parameter)))
        for parameter in ("direction", "missing_cost", "bounds"):
            given = getattr(self, parameter)
            if not isinstance(given, Mapping):
                raise ValueError(f"{parameter} must map names to values, got {given!r}.")
        for name, way in self.direction.items():
            OneOf("both", "up", "down").check(way, f"direction of {name!r}")
        for name, pair in self.bounds.items():
            two = isinstance(pair, list | tuple) and len(pair) == 2
            if not two or not all(map(is_number, pair)) or not pair[0] <= pair[1]:
                raise ValueError(f"bounds of {name!r} must be two numbers in order, got {pair}.")
        pairs = {name: tuple(pair) for name, pair in self.bounds.items()}
        object.__setattr__(self, "bounds", pairs)

    @classmethod
    def from_certainty(
        cls, certainty: Mapping[str, float] | float, confidence: float, **others: Any
    ) -> "Perturbation":
        """Costs and budget from the probability that a value is correct.

        A step of feature f costs ``log(1 / (1 - q_f))``, where q_f is the probability that the
        value has not moved, and all n rows together may spend ``-n log(confidence)``: the
        moves that a likelihood-ratio test at `confidence` would not reject. A feature with q_f = 1
        does not move.

        Parameters
        ----------
        certainty : mapping of name to float in (0, 1], or one such number
        confidence : float in (0, 1]
            Smaller is more: the test's threshold, lambda.
        **others
            Further parameters, such as `frozen` or `direction`.

        Examples
        --------
        >>> noise = Perturbation.from_certainty({"age": 0.9}, confidence=0.85)
        >>> round(noise.step_cost["age"], 4), round(noise.budget, 4), noise.scope
        (2.3026, 0.1625, 'mean')
        """
        if not is_number(confidence) or not 0 < confidence <= 1:
            raise ValueError(f"confidence must be in (0, 1], got {confidence}.")
        if isinstance(certainty, Mapping):
            costs: PerFeature = {name: certainty_cost(name, q) for name, q in certainty.items()}
        else:
            costs = certainty_cost("every feature", certainty)
        return cls(step_cost=costs, budget=-math.log(confidence) + 0.0, scope="mean", **others)

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> "Perturbation":
        """Read the parameters from a TOML file.

        Its keys are the parameters' names; a table ``[certainty]`` with the key ``confidence``
        beside stands for `from_certainty`.
        """
        file = Path(path)
        if not file.is_file():
            raise FileNotFoundError(f"cannot read {str(path)!r}: no such file.")
        try:
            values = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{str(path)!r} is not valid TOML: {error}.") from error
        return cls.from_dict(values, str(path))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str = "perturbation") -> "Perturbation":
        """Make it from plain values, as a TOML file holds them."""
        estimated = {"certainty", "confidence"}
        known = {item.name for item in fields(cls)} | estimated
        unknown = [key for key in values if key not in known]
        if unknown:
            raise ValueError(
                f"{source}: unknown key(s) {quote(unknown)}; known are {quote(sorted(known), 20)}."
            )
        if "certainty" not in values:
            if "confidence" in values:
                raise ValueError(f"{source}: confidence needs a table [certainty] beside it.")
            return cls(**values)
        rest = {key: value for key, value in values.items() if key not in estimated}
        fixed = [key for key in ("radius", "step_cost", "budget", "scope") if key in rest]
        if fixed:
            raise ValueError(f"{source}: certainty sets {quote(fixed)} itself: drop one of them.")
        if "confidence" not in values:
            raise ValueError(f"{source}: certainty needs confidence, a number in (0, 1].")
        return cls.from_certainty(values["certainty"], values["confidence"], **rest)

    @classmethod
    def from_readings(
        cls,
        first: Any,
        second: Any,
        coverage: float = 0.95,
        confidence: float | None = None,
        **others: Any,
    ) -> "Perturbation":
        """Estimate it from the same things measured twice.

        Without `confidence`, each feature's radius is the least distance that covers the share
        `coverage` of differences (the ceil((n + 1) coverage)-th smallest, so that a new pair is
        covered with at least that probability). With it, certainties are estimated
        (``q = n / (n + sum of |differences|)``, the maximum likelihood) and go through
        `from_certainty`; columns should then hold integers. A difference holds the noise of both
        measurements, so either estimate is on the safe side for a single one.

        Parameters
        ----------
        first, second : array-like or frames of the same shape
            Row i of both is the same thing; pairs with a missing value are left out.
        """
        from steadytree.robustness.shift import estimate_certainty, estimate_radius

        if confidence is None:
            return cls(radius=estimate_radius(first, second, coverage), **others)
        return cls.from_certainty(estimate_certainty(first, second), confidence, **others)

    @property
    def norm(self) -> Literal["l_inf", "l1"]:
        return "l_inf" if self.radius is not None else "l1"

    def spend(self, total_weight: float) -> float:
        """The budget of one row, or of all rows together where it is shared."""
        if self.budget is None:
            raise ValueError(
                "this perturbation has no budget: give budget=, and scope='row', 'mean' or 'total'."
            )
        spent = self.budget * (total_weight if self.scope == "mean" else 1.0)
        return float(spent + TOLERANCE * max(1.0, spent))

    def moves(self, space: FeatureSpace) -> Moves:
        """Costs per column of a space, checked against it."""
        for parameter in NAMING:
            given = getattr(self, parameter)
            if isinstance(given, Mapping | list | tuple):
                advice = ": use the names the tree was learned with."
                check_names(parameter, given, space.names, advice)
        up, down, missing, low, high = np.full((5, len(space)), np.inf)
        low *= -1
        for j, column in enumerate(space):
            cost, way = self._unit_cost(column.name), self.direction.get(column.name, "both")
            if column.is_categorical and way != "both":
                raise ValueError(
                    f"direction of {column.name!r} is {way!r}, but its categories have no order."
                )
            if column.is_categorical and column.name in self.bounds:
                raise ValueError(f"bounds of {column.name!r}: its categories have no order.")
            up[j] = np.inf if way == "down" else cost
            down[j] = np.inf if way == "up" else cost
            if column.name not in self.frozen:
                missing[j] = self.missing_cost.get(column.name, np.inf)
            if column.kind == "binary":
                low[j], high[j] = 0.0, 1.0
            if column.name in self.bounds:
                low[j], high[j] = self.bounds[column.name]
        known = [column.name for column in space if column.kind in ("integer", "binary")]
        declared = known if self.whole is None else self.whole
        integer = np.array([column.name in declared for column in space])
        largest = self.radius is not None
        return Moves(up, down, missing, low, high, integer, space.categorical, largest)

    def _unit_cost(self, name: str) -> float:
        """Cost of one unit; infinity for what does not move."""
        given = self.radius if self.radius is not None else self.step_cost
        value = given.get(name) if isinstance(given, Mapping) else given
        if value is None or name in self.frozen:
            return np.inf
        if self.radius is None:
            return float(value)
        return 1.0 / value if value > 0 else np.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `from_dict` reads back."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {
            key: dict(value) if isinstance(value, Mapping) else value
            for key, value in values.items()
            if value is not None and value != {} and value != ()
        }


def check_names(
    parameter: str, given: Iterable[str], names: Sequence[str], advice: str = "."
) -> None:
    """Refuse names in a parameter that are none of the columns'."""
    unknown = [name for name in given if name not in names]
    if unknown:
        known = quote(names)
        raise ValueError(f"{parameter} names {quote(unknown)}, but the columns are {known}{advice}")


def certainty_cost(name: str, certainty: float) -> float:
    """Cost of a step of a feature that stays as it is with probability `certainty`."""
    if not is_number(certainty) or not 0 < certainty <= 1:
        raise ValueError(
            f"certainty of {name!r} must be in (0, 1], got {certainty}: the probability that a "
            "value is correct."
        )
    return np.inf if certainty == 1 else -math.log1p(-float(certainty))


def _names(parameter: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"{parameter} must be a list of names, got {given!r}.")
    return tuple(given)


def check_integers(noise: Perturbation, space: FeatureSpace, values: NDArray[np.float64]) -> None:
    """Refuse fractions in columns that the perturbation's `whole` names."""
    for name in noise.whole or ():
        column = values[:, space.names.index(name)]
        fractions = column[(column != np.floor(column)) & ~np.isnan(column)]
        if len(fractions):
            raise ValueError(
                f"column {name!r} is declared to hold whole numbers, but holds "
                f"{fractions[0]:g}: round it, or leave it out of the perturbation's whole."
            )


def _check_costs(parameter: str, given: Any) -> None:
    alone = {} if given is None else {"every feature": given}
    each = given if isinstance(given, Mapping) else alone
    most = "a finite" if parameter == "radius" else "a"
    for name, value in each.items():
        if not is_number(value) or not value >= 0 or (parameter == "radius" and np.isinf(value)):
            raise ValueError(
                f"{parameter} of {name!r} must be {most} number of at least 0, got {value!r}: "
                "list a feature in frozen if it does not move."
            )


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python or NumPy, and no bool."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def usual_perturbation(X: Any, share: float = NOISE_SHARE) -> Perturbation:
    """Every number may move by a share of its column's range; text and 0/1 columns stay."""
    moved = [c for c in FeatureSpace.observe(X) if not c.is_categorical and c.kind != "binary"]
    return Perturbation(radius={c.name: share * (c.high - c.low) for c in moved})
