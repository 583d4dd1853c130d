"""Scorecard: conditions, integer points for each, an offset, and the risk by total."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.notebook import Shown
from steadytree.data.column import ByKey
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from steadytree.models.condition import Condition
from steadytree.models.risk_table import RiskGroup, RiskTable
from steadytree.models.tree import freeze
from steadytree.models.variable import Variable, check_profile, variables_of

if TYPE_CHECKING:
    from steadytree.models.tree import Tree


@dataclass(frozen=True, eq=False)
class Scorecard(ByKey, Shown):
    """A risk score: add up the points of the conditions that hold.

    With two classes the points are for the second one, `positive`. It is predicted where the
    total, the offset included, is at least `decision`. With more classes each has its own points,
    and the greatest total wins; the first class on ties. `variables` has the same points band by
    band, one row for each column.

    Parameters
    ----------
    space : FeatureSpace
        The columns of the conditions; kept without candidate thresholds.
    classes : array of shape (n_classes,)
        Labels that differ, at least two.
    conditions : sequence of Condition
        None stands twice.
    points : int64 array of shape (n_conditions,), or (n_conditions, n_classes) above two classes
    offset : int, or int64 array of shape (n_classes,) above two classes
    slope, intercept : float, default=nan
        Risk of a total t: ``1 / (1 + exp(-(slope t + intercept)))``; above two classes shares go
        with ``exp(slope t)``. A card without them gives no risks.
    risk_table : RiskTable, optional
        What totals meant among the training rows; shown with the card and saved with it. Cards
        that differ in it alone, or in what follows `decision`, are equal.
    decision : int, optional
        The least total of two classes that predicts the second. Without it, totals above 0 do,
        and risks are kept on the side of one half that the prediction is on.
    title : str
    units : mapping of column name to text
    risk_groups : sequence of RiskGroup
        From the lowest total to the highest.
    profile : sequence of int or float array of shape (n_bands, n_classes)
        Training rows (or their summed weights) of each class in each band of each variable.
    provenance : mapping of str to str, int or float
        How the card was made.

    Examples
    --------
    >>> space = FeatureSpace.declare(bounds={"age": (18, 99), "visits": (0, 9)})
    >>> conditions = [Condition(0, "at_least", 75), Condition(1, "at_least", 3)]
    >>> scorecard = Scorecard(space, ["stays", "goes"], conditions, [2, 1], offset=-2)
    >>> scorecard.score([[80, 5], [80, 0]]).tolist(), scorecard.predict([[80, 5], [80, 0]]).tolist()
    ([1, 0], ['goes', 'stays'])
    """

    space: FeatureSpace
    classes: NDArray[Any]
    conditions: Sequence[Condition]
    points: NDArray[np.int64]
    offset: Any
    slope: float = np.nan
    intercept: float = np.nan
    risk_table: RiskTable | None = None
    decision: int | None = None
    title: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    risk_groups: Sequence[RiskGroup] = ()
    profile: Sequence[NDArray[np.float64]] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "space", self.space.bare())
        object.__setattr__(self, "conditions", tuple(self.conditions))
        freeze(self, "classes", np.array(self.classes))
        if self.classes.ndim != 1 or not 2 <= len(self.classes) == len(set(self.classes.tolist())):
            what = "a list of at least two labels that differ"
            raise ValueError(f"Scorecard: classes must be {what}.")
        n_totals = 1 if self.is_binary else len(self.classes)
        shape = (len(self.conditions), n_totals)
        freeze(self, "points", _integers("points", self.points, shape))
        freeze(self, "offset", _integers("offset", self.offset, (n_totals,)))
        for name in ("slope", "intercept"):
            object.__setattr__(self, name, float(getattr(self, name)))
        _check_conditions(self)
        _check_risk(self)
        _check_description(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Scorecard, tuple(getattr(self, item.name) for item in fields(self))

    # ---- what it is ----
    @property
    def is_binary(self) -> bool:
        return len(self.classes) == 2

    @property
    def n_conditions(self) -> int:
        return len(self.conditions)

    @property
    def n_bands(self) -> int:
        return sum(len(variable.listed()) for variable in self.variables)  # lines of its sheet

    @property
    def positive(self) -> Any:
        """The class that the points of two classes are for."""
        if not self.is_binary:
            raise ValueError("a risk score of several classes has points for each, not one event.")
        return self.classes.tolist()[1]

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The columns with their bands and the points of each, in order of the conditions."""
        return variables_of(self)

    @property
    def gives_risks(self) -> bool:
        return not np.isnan(self.slope)

    @property
    def class_points(self) -> NDArray[np.int64]:
        """Points (n_conditions, n_classes) such that the greatest total wins, first on ties."""
        return self._per_class(self.points)

    @property
    def class_offset(self) -> NDArray[np.int64]:
        """Offsets that go with `class_points`."""
        return self._per_class(self.offset[None] - self._margin)[0]

    def texts(self) -> list[str]:
        """The conditions in words, no two the same.

        Of whole numbers ``x >= 5.5`` and ``x >= 6`` ask the same, though moves of less than a step
        tell them apart: where both stand on a card, both are shown as they are.
        """
        used = [(condition, self.space[condition.feature]) for condition in self.conditions]
        texts = [condition.text(column) for condition, column in used]
        return [c.text(column, exact=texts.count(c.text(column)) > 1) for c, column in used]

    # ---- what it does ----
    def encode(self, X: Any) -> NDArray[np.float64]:
        """Rows as numbers; a frame may lack columns that no condition asks about."""
        table = Table.read(X)
        used = {condition.feature for condition in self.conditions}
        known = self.space.names if table.names is None else table.names
        spare = [c for j, c in enumerate(self.space) if c.name not in known and j not in used]
        if spare:
            empty = [np.full(table.n_rows, None if c.is_categorical else np.nan) for c in spare]
            names = (*known, *(column.name for column in spare))
            types = (*table.types, *(None for _ in spare)) if table.types else ()
            columns, given = [*table.columns, *empty], table.as_given
            table = Table(names, columns, table.declared, types=types, as_given=given)
        return np.asarray(self.space.encode(table), np.float64)

    def holds(self, X: Any) -> NDArray[np.bool_]:
        """Which conditions hold for which rows: (n_rows, n_conditions)."""
        return self.holds_encoded(self.encode(X))

    def holds_encoded(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """As `holds`, for rows as `FeatureSpace.encode` returns them."""
        found = np.empty((len(values), self.n_conditions), bool)
        for k, condition in enumerate(self.conditions):
            found[:, k] = condition.holds(values[:, condition.feature])
        return found

    def score(self, X: Any) -> NDArray[np.int64]:
        """Totals with the offset: (n_rows,), or (n_rows, n_classes) above two classes."""
        total = self.holds(X) @ self.points + self.offset
        return total[:, 0] if self.is_binary else total

    def answer_encoded(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Index of the class that encoded rows get."""
        return self.answer_of(self.holds_encoded(values) @ self.points + self.offset)

    def answer_of(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Index of the class that totals (n_rows, n_totals) stand for."""
        return self._per_class(totals - self._margin).argmax(axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class each row gets."""
        return self.classes[self.answer_encoded(self.encode(X))]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Risk of each class, in order of `classes`."""
        return self.risk(self.score(X))

    def risk(self, totals: Any) -> NDArray[np.float64]:
        """Risk of each class for given totals: (n, n_classes)."""
        if not self.gives_risks:
            raise ValueError("this risk score has no slope and intercept, so it gives no risks.")
        if not self.is_binary:
            levels = self.slope * np.asarray(totals, float)
            shares = np.exp(levels - levels.max(axis=1, keepdims=True))
            return shares / shares.sum(axis=1, keepdims=True)
        totals = np.asarray(totals, float)
        level = np.clip(self.slope * totals + self.intercept, -700, 700)
        high = 1.0 / (1.0 + np.exp(-level))
        if self.decision is None:
            above = np.maximum(high, np.nextafter(0.5, 1))
            high = np.where(totals > 0, above, np.minimum(high, 0.5))
        return np.stack([1.0 - high, high], axis=1)

    def reasons(self, X: Any, label: Any = None) -> list[list[tuple[str, int]]]:
        """For each row the bands that raise its total, with the points above the lowest band.

        Most points first, which is the order of reasons for an adverse decision: how much a row
        loses against the best band of each variable. A missing value is compared with the lowest
        band of known values.

        Parameters
        ----------
        X : array-like or frame
        label : optional
            The class whose points are meant; needed above two classes, where each has its own.
        """
        own, values = self.total_of(label), self.encode(X)
        texts: list[list[str]] = []
        lost = np.zeros((len(values), len(self.variables)), np.int64)
        for k, variable in enumerate(self.variables):
            points = np.array([band.points[own] for band in variable.bands])
            texts.append([f"{variable.name}: {text}" for text in variable.texts()])
            bands = variable.band_of(values[:, variable.feature])
            texts[k] = [texts[k][band] for band in bands.tolist()]
            lost[:, k] = points[bands] - points[:-1].min()
        order = np.argsort(-lost, axis=1, kind="stable")
        return [
            [(texts[k][row], int(points[k])) for k in ranked if points[k] > 0]
            for row, (points, ranked) in enumerate(zip(lost, order, strict=True))
        ]

    def total_of(self, label: Any) -> int:
        """Index of a class's total; the only one of two classes is for the second."""
        known = self.classes.tolist()
        if self.is_binary and label is not None and label != known[1]:
            raise ValueError(
                f"label must be {known[1]!r} or left out, got {label!r}: points of a card of two "
                "classes are for the second."
            )
        if not self.is_binary and label not in known:
            raise ValueError(
                f"label must be one of {known}, got {label!r}: each has its own points."
            )
        return 0 if self.is_binary else known.index(label)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns "variable", "band" and "points" (one a class above two), ready for a frame."""
        heads = ["points"] if self.is_binary else [f"points {c}" for c in self.classes.tolist()]
        found: dict[str, list[Any]] = {name: [] for name in ("variable", "band", *heads)}
        for variable in self.variables:
            for text, band in zip(variable.texts(), variable.bands, strict=True):
                for name, value in zip(found, (variable.name, text, *band.points), strict=True):
                    found[name].append(value)
        return found

    def save(self, path: str | PathLike[str]) -> None:
        """Write the scorecard to a ``*.card.json`` file; `steadytree.load` reads it back."""
        from steadytree.models.files import save

        save(self, path)

    def to_tree(self) -> "Tree":
        """The tree with the same predictions and risks, for at most 8 conditions, one a level."""
        from steadytree.models.scorecard_tree import scorecard_to_tree

        return scorecard_to_tree(self)

    def to_sql(self, label: Any = None, dialect: str = "standard") -> str:
        """The total of a row as an SQL expression, one CASE for each variable.

        NULL, NaN and categories that are not known count as missing; an infinite number, which the
        card refuses, gives NULL; binary columns are compared as the numbers 1 and 0. Before it is
        returned it is run in SQLite at every threshold and beside it, and must give the card's
        totals; else an ``ExportError`` is raised.

        Parameters
        ----------
        label : optional
            Above two classes the class whose total is wanted.
        dialect : {"standard", "mysql", "bigquery", "spark"}, default="standard"
            How names and texts are quoted; "standard" is for SQLite, DuckDB, PostgreSQL,
            Snowflake and SQL Server.
        """
        from steadytree.models.exports.sql import scorecard_to_sql

        return scorecard_to_sql(self, label, dialect)[0]

    # ---- equality ----
    def key(self) -> tuple[Any, ...]:
        """What makes two cards equal: the same conditions with the same points, in any order."""
        order = sorted(range(self.n_conditions), key=lambda k: repr(self.conditions[k].key()))
        risks = (self.slope, self.intercept) if self.gives_risks else None
        points = tuple((self.conditions[k], tuple(self.points[k].tolist())) for k in order)
        classes, offset = tuple(self.classes.tolist()), tuple(self.offset.tolist())
        return self.space, classes, points, offset, risks, self.decision

    def __repr__(self) -> str:
        variables, classes = len(self.variables), len(self.classes)
        return f"Scorecard({variables} variables, {self.n_bands} bands, {classes} classes)"

    @property
    def _margin(self) -> int:
        """The greatest total that does not predict the second of two classes."""
        return 0 if self.decision is None else self.decision - 1

    def _per_class(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        if not self.is_binary:
            return totals
        return np.stack([np.zeros(len(totals), np.int64), totals[:, 0]], axis=1)


def as_scorecard(model: Any) -> Scorecard | None:
    """The card inside a model; None where it has none."""
    if isinstance(model, Scorecard):
        return model
    inside = getattr(model, "card_", None)
    return inside if isinstance(inside, Scorecard) else None


def scorecard_of(model: Any) -> Scorecard:
    """The card inside a model; a TypeError where it has none."""
    scorecard = as_scorecard(model)
    if scorecard is None:
        raise TypeError(
            f"a card is needed, got {type(model).__name__}: pass a Scorecard or a fitted "
            "RiskScoreClassifier."
        )
    return scorecard


def _integers(name: str, given: Any, shape: tuple[int, ...]) -> NDArray[np.int64]:
    numbers = np.array(given)
    if numbers.size == 0:
        numbers = np.zeros(shape if np.prod(shape) == 0 else 0, np.int64)
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"Scorecard: {name} must be whole numbers, got {numbers.dtype}.")
    if numbers.size != np.prod(shape) or (shape[-1] > 1 and numbers.shape != shape):
        raise ValueError(f"Scorecard: {name} must have shape {shape}, got {numbers.shape}.")
    return numbers.reshape(shape).astype(np.int64)


def _check_conditions(scorecard: Scorecard) -> None:
    n_columns = len(scorecard.space)
    for condition in scorecard.conditions:
        if not isinstance(condition, Condition):
            raise TypeError(f"Scorecard: needs Conditions, got {type(condition).__name__}.")
        if not 0 <= condition.feature < n_columns:
            raise ValueError(f"Scorecard: a condition's feature must be in 0..{n_columns - 1}.")
        condition.check(scorecard.space[condition.feature])
    if len(set(scorecard.conditions)) < scorecard.n_conditions:
        raise ValueError("Scorecard: a condition appears twice: add up its points.")


def _check_risk(scorecard: Scorecard) -> None:
    slope, intercept = scorecard.slope, scorecard.intercept
    if np.isnan(slope) != np.isnan(intercept):
        raise ValueError("Scorecard: give both slope and intercept, or neither.")
    if scorecard.gives_risks and not (np.isfinite(intercept) and 0 <= slope < np.inf):
        got = f"got {slope} and {intercept}"
        raise ValueError(f"Scorecard: slope must be at least 0 and both finite, {got}.")


def _check_description(scorecard: Scorecard) -> None:
    if scorecard.decision is not None:
        if not scorecard.is_binary:
            raise ValueError("Scorecard: decision is for two classes: leave it out.")
        object.__setattr__(scorecard, "decision", int(scorecard.decision))
    unknown = [name for name in scorecard.units if name not in scorecard.space.names]
    if unknown:
        raise ValueError(f"Scorecard: units names {unknown[0]!r}, which is not a column.")
    for name, kind in (("units", dict), ("provenance", dict), ("risk_groups", tuple)):
        object.__setattr__(scorecard, name, kind(getattr(scorecard, name)))
    if any(one.least >= two.least for one, two in pairwise(scorecard.risk_groups)):
        raise ValueError("Scorecard: risk_groups must go from the lowest total to the highest.")
    profile = tuple(np.array(counts, float) for counts in scorecard.profile)
    object.__setattr__(scorecard, "profile", profile)
    if profile:
        check_profile(scorecard.variables, len(scorecard.classes), profile)
