"""Perturbation: how far inputs of a model may move, and at what cost."""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import UnsuitableDataError
from steadytree._base.validation import Integer, OneOf
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table, quote
from steadytree.robustness import readings
from steadytree.robustness.moves import (
    COSTS,
    TOLERANCE,
    Moves,
    certainty_cost,
    check_costs,
    check_groups,
    check_names,
    checked_names,
    is_number,
    moves_of,
)

NOISE_SHARE = 0.02  # of a column's range, where no perturbation is given
PerFeature = Mapping[str, float] | float | None


@dataclass(frozen=True)
class Perturbation:
    """How far, at what cost and in which direction inputs may move.

    Give one of `radius`, `step_cost` and `change_cost`. With `radius` the size of a move is its
    largest coordinate, each in units of that feature's radius (l_inf): size 1 is the declared
    radius. With `step_cost` it is the sum over features of cost times distance moved (weighted l1),
    with `change_cost` the sum of the costs of the features that move at all (weighted l0).
    Distances are in the feature's own units; integer columns move in whole steps (see `whole`),
    and a changed category counts as one step. A feature that is not named does not move.

    Parameters
    ----------
    radius : mapping of name to float or str, or one for every feature, optional
        How far a feature may be off; 0 does not move. ``"5 %"`` is a share of the column's range
        between its quantiles of 2.5 and 97.5 %, ``"0.5 sd"`` are standard deviations: `scaled_to`
        says of which rows. One such text for every feature is for numbers; categories and columns
        of 0 and 1 then stay. Beside `change_cost` it limits how far a feature moves.
    step_cost : mapping of name to float, or float for every feature, optional
        Cost of moving by one unit; infinity does not move.
    change_cost : mapping of name to float, or float for every feature, optional
        Cost of another value, however far away; infinity does not move. See `wrong_values`.
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
    one_hot : sequence of sequences of str, or "auto"
        Groups of 0/1 columns of which exactly one is 1, such as those of an encoder: they move as
        one category does, at the common cost of their columns, and stay possible. "auto"
        recognises them by `scaled_to`: names that begin alike, and exactly one 1 in each row.
    together : sequence of sequences of str
        Groups of numbers that move together, all by the same share of their radius up or all down,
        such as readings of one instrument. Columns of whole numbers need equal radii.

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

    radius: Mapping[str, float | str] | float | str | None = None
    step_cost: PerFeature = None
    frozen: Sequence[str] = ()
    direction: Mapping[str, str] = field(default_factory=dict)
    missing_cost: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    whole: Sequence[str] | None = None
    budget: float | None = None
    scope: Literal["row", "mean", "total"] = "row"
    change_cost: PerFeature = None
    one_hot: Sequence[Sequence[str]] | Literal["auto"] = ()
    together: Sequence[Sequence[str]] = ()

    def __post_init__(self) -> None:
        given = tuple(name for name in COSTS if getattr(self, name) is not None)
        if len(given) != 1 and given != ("radius", "change_cost"):
            raise ValueError(
                "Perturbation: give one of radius and step_cost, the other not, or change_cost, "
                f"alone or with radius; got {quote(given) or 'none'}."
            )
        if given == ("radius",) and self.budget is None:
            object.__setattr__(self, "budget", 1.0)
        for parameter in (*COSTS, "missing_cost"):
            check_costs(parameter, getattr(self, parameter))
        if self.budget is not None and not (is_number(self.budget) and 0 <= self.budget < np.inf):
            raise ValueError(f"budget must be a finite number of at least 0, got {self.budget!r}.")
        OneOf("row", "mean", "total").check(self.scope, "scope")
        for parameter in ("frozen", "whole"):
            listed = getattr(self, parameter)
            if listed is not None:
                object.__setattr__(self, parameter, checked_names(parameter, listed))
        for parameter in ("direction", "missing_cost", "bounds"):
            given = getattr(self, parameter)
            if not isinstance(given, Mapping):
                raise ValueError(f"{parameter} must map names to values, got {given!r}.")
        self._check_columns()

    def _check_columns(self) -> None:
        """Refuse what is said of single columns or groups of them and means nothing."""
        for name, way in self.direction.items():
            OneOf("both", "up", "down").check(way, f"direction of {name!r}")
        for name, pair in self.bounds.items():
            two = isinstance(pair, list | tuple) and len(pair) == 2
            if not two or not all(map(is_number, pair)) or not pair[0] <= pair[1]:
                raise ValueError(f"bounds of {name!r} must be two numbers in order, got {pair}.")
        pairs = {name: tuple(pair) for name, pair in self.bounds.items()}
        object.__setattr__(self, "bounds", pairs)
        flags = () if self.one_hot == "auto" else check_groups("one_hot", self.one_hot)
        groups = check_groups("together", self.together)
        if groups and self.norm != "l_inf":
            raise ValueError("together needs radius alone: columns share a part of their radius.")
        check_groups("together and one_hot", (*groups, *flags))
        object.__setattr__(self, "together", groups)
        if self.one_hot != "auto":
            object.__setattr__(self, "one_hot", flags)

    @classmethod
    def wrong_values(
        cls, most: int, columns: Sequence[str] | None = None, **others: Any
    ) -> "Perturbation":
        """At most so many values of a row are wrong, and each of them may be any value.

        The size of a move is the number of values that change (l0); `radius` limits how far each of
        them may be off.

        Parameters
        ----------
        most : int
            Wrong values a row.
        columns : sequence of str, optional
            Columns that may be wrong; by default all.
        **others
            Further parameters, such as `radius`, `frozen` or `bounds`.

        Examples
        --------
        >>> noise = Perturbation.wrong_values(2, radius="10 %")
        >>> noise.change_cost, noise.budget, noise.norm
        (1.0, 2.0, 'l0')
        """
        Integer(1).check(most, "wrong_values")
        costs: PerFeature = 1.0 if columns is None else dict.fromkeys(columns, 1.0)
        return cls(change_cost=costs, budget=float(most), **others)

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
        beside stands for `from_certainty`, and ``wrong_values`` for the method of that name.
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
        known = {item.name for item in fields(cls)} | estimated | {"wrong_values"}
        unknown = [key for key in values if key not in known]
        if unknown:
            raise ValueError(
                f"{source}: unknown key(s) {quote(unknown)}; known are {quote(sorted(known), 20)}."
            )
        if "certainty" not in values:
            if "confidence" in values:
                raise ValueError(f"{source}: confidence needs a table [certainty] beside it.")
            if "wrong_values" not in values:
                return cls(**values)
            if {"change_cost", "budget"} & set(values):
                raise ValueError(f"{source}: wrong_values sets change_cost and budget itself.")
            given = {key: value for key, value in values.items() if key != "wrong_values"}
            return cls.wrong_values(values["wrong_values"], **given)
        rest = {key: value for key, value in values.items() if key not in estimated}
        fixed = [key for key in (*COSTS, "wrong_values", "budget", "scope") if key in rest]
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
        if confidence is None:
            return cls(radius=readings.estimate_radius(first, second, coverage), **others)
        certainty = readings.estimate_certainty(first, second)
        return cls.from_certainty(certainty, confidence, **others)

    @classmethod
    def from_repeated(cls, X: Any, by: str, **others: Any) -> "Perturbation":
        """Estimate it from repeated measurements in one table.

        Rows with the same value of the column `by` are readings of the same thing; they are
        taken in pairs, in their order, and treated as `from_readings` does, which has the
        parameters.

        Examples
        --------
        >>> import pandas as pd
        >>> X = pd.DataFrame({"who": ["a", "a", "b", "b"], "pulse": [70, 74, 81, 80]})
        >>> Perturbation.from_repeated(X, by="who", coverage=0.5).radius
        {'pulse': 4.0}
        """
        return cls.from_readings(*readings.repeated_pairs(X, by), **others)

    @property
    def norm(self) -> Literal["l_inf", "l1", "l0"]:
        if self.change_cost is not None:
            return "l0"
        return "l_inf" if self.radius is not None else "l1"

    @property
    def relative_to_rows(self) -> bool:
        """Whether it is stated in shares of ranges or standard deviations, or "auto"."""
        each = self.radius.values() if isinstance(self.radius, Mapping) else [self.radius]
        return self.one_hot == "auto" or any(isinstance(one, str) for one in each)

    def scaled_to(self, X: Any) -> "Perturbation":
        """The same in the columns' own units, measured on rows such as the training rows.

        No single value decides: see `radius`, and values farther than three interquartile ranges
        from the quartiles are no part of a standard deviation.

        Examples
        --------
        >>> X = [[float(k)] for k in range(101)]
        >>> round(Perturbation(radius="5 %").scaled_to(X).radius["x0"], 3)
        4.8
        """
        if not self.relative_to_rows:
            return self
        table, given = Table.read(X), self.radius
        groups = readings.recognise_one_hot(table) if self.one_hot == "auto" else self.one_hot
        if isinstance(given, Mapping):
            known = table.names or tuple(f"x{j}" for j in range(table.n_columns))
            check_names("radius", given, known)
        space = FeatureSpace.observe(table)
        values = np.asarray(space.encode(table), np.float64)
        if isinstance(given, str):
            moved = [c for c in space if not c.is_categorical and c.kind != "binary"]
            given = {column.name: given for column in moved}
        if isinstance(given, Mapping):
            columns = {column.name: (column, values[:, j]) for j, column in enumerate(space)}
            given = {
                name: readings.in_units(one, *columns[name]) if isinstance(one, str) else one
                for name, one in given.items()
            }
        return replace(self, radius=given, one_hot=groups)

    def spend(self, total_weight: float) -> float:
        """The budget of one row, or of all rows together where it is shared."""
        if self.budget is None:
            raise ValueError(
                "this perturbation has no budget: give budget=, and scope='row', 'mean' or 'total'."
            )
        spent = self.budget * (total_weight if self.scope == "mean" else 1.0)
        return float(spent + TOLERANCE * max(1.0, spent))

    @property
    def is_separate(self) -> bool:
        """Whether each column moves by itself, at a cost for each unit."""
        return self.change_cost is None and not self.one_hot and not self.together

    def moves(self, space: FeatureSpace) -> Moves:
        """Costs per column of a space, checked against it; columns that move one by one alone."""
        if not self.is_separate:
            raise UnsuitableDataError(
                "only certify takes a perturbation with change_cost, one_hot or together: state "
                "this one by radius or step_cost of single columns."
            )
        return self.all_moves(space)

    def all_moves(self, space: FeatureSpace, others: Sequence[str] = ()) -> Moves:
        """As `moves`, for who treats groups itself; `others` may be named beside the space."""
        return moves_of(self, space, others)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `from_dict` reads back."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {
            key: dict(value) if isinstance(value, Mapping) else value
            for key, value in values.items()
            if value is not None and value != {} and value != ()
        }


def check_integers(noise: Perturbation, space: FeatureSpace, values: NDArray[np.float64]) -> None:
    """Refuse fractions in columns that the perturbation's `whole` names."""
    for name in noise.whole or ():
        if name not in space.names:
            continue  # a column that the model does not have
        column = values[:, space.names.index(name)]
        fractions = column[(column != np.floor(column)) & ~np.isnan(column)]
        if len(fractions):
            raise ValueError(
                f"column {name!r} is declared to hold whole numbers, but holds "
                f"{fractions[0]:g}: round it, or leave it out of the perturbation's whole."
            )


def usual_perturbation(X: Any) -> Perturbation:
    """Every number may move by a share of its column's range; text and 0/1 columns stay."""
    return Perturbation(radius=f"{100 * NOISE_SHARE:g} %").scaled_to(X)
