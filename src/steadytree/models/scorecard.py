"""Scorecard: conditions, integer points for each, an offset, and the risk by total."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.intervals import wilson_interval
from steadytree.data.column import ByKey
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from steadytree.models.condition import Condition
from steadytree.models.tree import freeze

if TYPE_CHECKING:
    from steadytree.models.tree import Tree


@dataclass(frozen=True)
class RiskRow:
    """One total of one class."""

    label: Any  # the class whose risk it is
    total: int  # points with the offset
    n_rows: float  # training rows (or their summed weights) with this total
    n_label: float  # those of the class
    share: float  # n_label / n_rows
    interval: tuple[float, float]  # 95 % Wilson interval of the share
    # the scorecard's risk; above two classes the share, since one class's total does not give it
    risk: float

    @classmethod
    def of(
        cls, scorecard: "Scorecard", label: Any, total: int, n_rows: float, n_label: float
    ) -> "RiskRow":
        """The row that counts of rows make; all else follows from them and the card."""
        share = n_label / n_rows
        fits = scorecard.is_binary and scorecard.gives_risks
        risk = float(scorecard.risk([total])[0, 1]) if fits else share
        return cls(label, total, n_rows, n_label, share, wilson_interval(n_label, n_rows), risk)


@dataclass(frozen=True)
class RiskTable:
    """Risk by total, lowest total first; with more than two classes, class by class."""

    rows: tuple[RiskRow, ...]

    @classmethod
    def of(
        cls,
        scorecard: "Scorecard",
        totals: NDArray[np.int64],
        labels: NDArray[np.int64],
        weights: NDArray[np.float64] | None = None,
    ) -> "RiskTable":
        """Count rows with given totals (as `Scorecard.score` returns them) and class indices."""
        weights = np.ones(len(labels)) if weights is None else weights
        rows: list[RiskRow] = []
        for index in [1] if scorecard.is_binary else range(len(scorecard.classes)):
            own = totals if scorecard.is_binary else totals[:, index]
            for total in np.unique(own):
                here = own == total
                n_rows = float(weights[here].sum())
                n_label = min(float(weights[here & (labels == index)].sum()), n_rows)
                label = scorecard.classes[index : index + 1].tolist()[0]
                rows.append(RiskRow.of(scorecard, label, int(total), n_rows, n_label))
        return cls(tuple(rows))

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of plain values, which pandas and polars take as they are."""
        listed = [asdict(row) for row in self.rows]
        names = RiskRow.__dataclass_fields__
        return {name: [row[name] for row in listed] for name in names}


@dataclass(frozen=True, eq=False)
class Scorecard(ByKey):
    """A card of points: add up the points of the conditions that hold.

    With two classes the answer is the second one where the total, the offset included, is
    above 0. With more classes each has its own points, and the greatest total wins; the first
    class on ties.

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
        Risk of a total t: ``1 / (1 + exp(-(slope t + intercept)))``, kept on the side of one
        half that the answer is on; above two classes shares go with ``exp(slope t)``. A card
        without them gives no risks.
    risk_table : RiskTable, optional
        What totals meant among the training rows; shown with the card and saved with it. Cards
        that differ in it alone are equal.

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
    def gives_risks(self) -> bool:
        return not np.isnan(self.slope)

    @property
    def class_points(self) -> NDArray[np.int64]:
        """Points (n_conditions, n_classes) such that the greatest total wins, first on ties."""
        return self._per_class(self.points)

    @property
    def class_offset(self) -> NDArray[np.int64]:
        """Offsets that go with `class_points`."""
        return self._per_class(self.offset[None])[0]

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
            table = Table(names, [*table.columns, *empty], table.declared)
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
        return self._per_class(totals).argmax(axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class each row gets."""
        return self.classes[self.answer_encoded(self.encode(X))]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Risk of each class, in order of `classes`."""
        return self.risk(self.score(X))

    def risk(self, totals: Any) -> NDArray[np.float64]:
        """Risk of each class for given totals: (n, n_classes)."""
        if not self.gives_risks:
            raise ValueError("this card has no slope and intercept, so it gives answers only.")
        if not self.is_binary:
            levels = self.slope * np.asarray(totals, float)
            shares = np.exp(levels - levels.max(axis=1, keepdims=True))
            return shares / shares.sum(axis=1, keepdims=True)
        totals = np.asarray(totals, float)
        level = np.clip(self.slope * totals + self.intercept, -700, 700)
        high = 1.0 / (1.0 + np.exp(-level))
        high = np.where(totals > 0, np.maximum(high, np.nextafter(0.5, 1)), np.minimum(high, 0.5))
        return np.stack([1.0 - high, high], axis=1)

    def reasons(self, X: Any, label: Any = None) -> list[list[tuple[str, int]]]:
        """For each row the conditions that hold with their points, most points first.

        Parameters
        ----------
        X : array-like or frame
        label : optional
            The class whose points are meant; needed above two classes, where each has its own.
        """
        points = self.points[:, self.total_of(label)]
        texts, order = self.texts(), np.argsort(-points, kind="stable")
        return [
            [(texts[k], int(points[k])) for k in order if held[k] and points[k]]
            for held in self.holds(X)
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
        """Columns "condition" and "points" (one a class above two), ready for a frame."""
        heads = ["points"] if self.is_binary else [f"points {c}" for c in self.classes.tolist()]
        columns = dict(zip(heads, self.points.T.tolist(), strict=True))
        return {"condition": self.texts(), **columns}

    def save(self, path: str | PathLike[str]) -> None:
        """Write the scorecard to a ``*.card.json`` file; `steadytree.load` reads it back."""
        from steadytree.models.files import save

        save(self, path)

    def to_tree(self) -> "Tree":
        """The tree with the same predictions and risks, for at most 8 conditions, one a level."""
        from steadytree.models.export import scorecard_to_tree

        return scorecard_to_tree(self)

    def to_sql(self, label: Any = None) -> str:
        """The total of a row as an expression of standard SQL; missing values are NULL.

        Binary columns are compared as the numbers 1 and 0. An unknown category counts as missing.
        Above two classes `label` names the class whose total is wanted.
        """
        from steadytree.models.export import scorecard_to_sql

        return scorecard_to_sql(self, label)

    # ---- equality ----
    def key(self) -> tuple[Any, ...]:
        """What makes two cards equal: the same conditions with the same points, in any order."""
        order = sorted(range(self.n_conditions), key=lambda k: repr(self.conditions[k].key()))
        risks = (self.slope, self.intercept) if self.gives_risks else None
        points = tuple((self.conditions[k], tuple(self.points[k].tolist())) for k in order)
        classes, offset = tuple(self.classes.tolist()), tuple(self.offset.tolist())
        return self.space, classes, points, offset, risks

    def __repr__(self) -> str:
        return f"Scorecard({self.n_conditions} conditions, {len(self.classes)} classes)"

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
    for condition in scorecard.conditions:
        if not isinstance(condition, Condition):
            raise TypeError(f"Scorecard: needs Conditions, got {type(condition).__name__}.")
        if not 0 <= condition.feature < len(scorecard.space):
            raise ValueError(
                f"Scorecard: a condition's feature must be in 0..{len(scorecard.space) - 1}."
            )
        condition.check(scorecard.space[condition.feature])
    if len(set(scorecard.conditions)) < scorecard.n_conditions:
        raise ValueError("Scorecard: a condition stands twice: add up its points.")


def _check_risk(scorecard: Scorecard) -> None:
    if np.isnan(scorecard.slope) != np.isnan(scorecard.intercept):
        raise ValueError("Scorecard: give both slope and intercept, or neither.")
    if scorecard.gives_risks and not (
        np.isfinite(scorecard.intercept) and 0 <= scorecard.slope < np.inf
    ):
        raise ValueError(
            f"Scorecard: slope must be at least 0 and both finite, got {scorecard.slope} and "
            f"{scorecard.intercept}."
        )
