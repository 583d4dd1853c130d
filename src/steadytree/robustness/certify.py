"""Certify: how far inputs must move before the prediction of a tree or scorecard changes."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.notebook import Shown
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from steadytree.metrics.accuracy import label_indices
from steadytree.metrics.measurement import Measurement
from steadytree.models.boxes import exact_thresholds
from steadytree.models.condition import Condition
from steadytree.models.files import opened
from steadytree.models.scorecard import Scorecard, as_scorecard
from steadytree.models.sklearn import as_tree, from_sklearn_for
from steadytree.models.tree import Tree
from steadytree.robustness._kernels import attack
from steadytree.robustness._kernels.attack import BinTable, MoveTable, NodeTable
from steadytree.robustness.perturbation import Moves, Perturbation, check_integers

NO_BOX = (np.nan, np.nan, np.inf, -np.inf)


def bins_of(scorecard: Scorecard, moves: Moves) -> BinTable:
    """The scorecard's columns in bins within which no condition changes."""
    columns = sorted({condition.feature for condition in scorecard.conditions})
    n_classes = len(scorecard.classes)
    start, sorts = [0], [np.empty(0, np.int64)]
    boxes, points = [np.empty((0, 4))], [np.empty((0, n_classes), np.int64)]
    for j in columns:
        own = [k for k, condition in enumerate(scorecard.conditions) if condition.feature == j]
        conditions = [scorecard.conditions[k] for k in own]
        sort, box, probe = _column_bins(scorecard.space[j], j, conditions, moves)
        held = np.stack([condition.holds(probe) for condition in conditions], axis=1)
        points.append(held @ scorecard.class_points[own])
        sorts.append(sort)
        boxes.append(box)
        start.append(start[-1] + len(sort))
    joined = np.concatenate(sorts), np.concatenate(boxes), np.concatenate(points)
    return BinTable(np.array(columns, np.int64), np.array(start), *joined, scorecard.class_offset)


def _column_bins(
    column: Column, j: int, conditions: list[Condition], moves: Moves
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Sort and box of each bin of a column, and a value in it."""
    if column.is_categorical:
        categories = np.arange(len(column.categories), dtype=float)
        box = np.tile(NO_BOX, (len(categories) + 1, 1))
        box[:-1, 0] = categories
        sort = np.append(np.full(len(categories), attack.CATEGORY), attack.MISSING)
        return sort, box, np.append(categories, np.nan)
    at = np.unique([c.threshold for c in conditions if not np.isnan(c.threshold)])
    # a bin reaches from one threshold to just below the next: low < x <= high in float64
    ends = np.concatenate([[-np.inf], np.nextafter(at, -np.inf), [np.inf]])
    reach = moves.ends(np.full(len(at) + 1, j), ends[:-1], ends[1:])
    box = np.concatenate([np.stack([ends[:-1], ends[1:], *reach], axis=1), [NO_BOX]])
    sort = np.append(np.full(len(at) + 1, attack.NUMBER), attack.MISSING)
    below = np.nextafter(at[0], -np.inf) if len(at) else 0.0
    return sort, box, np.concatenate([[below], at, [np.nan]])


JUST, TINY = 2.0**-22, 1e-300  # as a share of a number, which trees of single precision round


@dataclass(frozen=True)
class Step:
    """One feature that moves, from what to what; None is missing."""

    feature: str
    start: float | str | None
    end: float | str | None

    def __str__(self) -> str:
        start, end = _shown(self.start, self.end)
        return f"{self.feature} from {start} to {end}"


@dataclass(frozen=True)
class Counterexample:
    """A row, the least move that changes its prediction, and the prediction after it."""

    row: int
    size: float
    answer: Any
    other: Any
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        moved = ", ".join(str(step) for step in self.steps)
        becomes = f"{self.answer!r} becomes {self.other!r}"
        return f"row {self.row}: {becomes} at size {self.size:.4g}: {moved}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def _decode(column: Column, value: float) -> float | str | None:
    if np.isnan(value):
        return None
    return column.categories[int(value)] if column.is_categorical else float(value)


def _plain(value: float | str | None) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "missing" if value is None else repr(value)


def _shown(start: float | str | None, end: float | str | None) -> tuple[str, str]:
    """Both as text, with as few digits as keep them apart; the end as what is enough."""
    if not isinstance(start, float) or not isinstance(end, float):
        return _plain(start), _plain(end)
    enough = _enough(start, end)
    texts = [_rounded(start, digits) for digits in range(4, 18)]
    at = float(enough.split()[-1])
    return next((text for text in texts if float(text) != at), texts[-1]), enough


def _rounded(number: float, digits: int) -> str:
    return f"{float(f'{number:.{digits}g}'):.{max(digits, 15)}g}"


def _enough(start: float, end: float) -> str:
    """The end of a change, or a number a little beyond it; just beyond a threshold "above 45.5"."""
    close, side = 1e-3 * abs(end - start), "above" if end > start else "below"
    for digits in range(4, 18):
        text = _rounded(end, digits) if abs(end) > TINY else "0"
        lacks = end - float(text) if end > start else float(text) - end
        if -close <= lacks <= 0:
            return text
        if 0 < lacks <= max(JUST * abs(end), TINY):
            return f"{side} {text}"
    return text


def thin_curve(
    right: NDArray[np.bool_], distance: NDArray[np.float64], most: int = 200
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Share correct and farther than a size from another prediction, at 0 and `most` sizes."""
    finite = np.unique(distance[right & np.isfinite(distance)])
    if len(finite) > most:
        finite = finite[np.linspace(0, len(finite) - 1, most).round().astype(np.int64)]
    sizes = np.unique(np.concatenate([[0.0], finite]))
    kept = np.sort(distance[right])
    return sizes, (len(kept) - np.searchsorted(kept, sizes, side="right")) / len(right)


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Shown):
    """Exact distances of rows to another prediction, and what follows from them."""

    perturbation: Perturbation
    space: FeatureSpace
    classes: NDArray[Any]
    # (n, p): encoded rows, and the nearest point with another prediction; nan without one
    rows: NDArray[np.float64]
    witness: NDArray[np.float64]
    # (n,): true class, prediction, and prediction at the witness (-1 where there is none)
    truth: NDArray[np.int64]
    answer: NDArray[np.int64]
    other: NDArray[np.int64]
    # (n,): size of the least move to another prediction, in the perturbation's units; may be inf
    distance: NDArray[np.float64]

    @property
    def right(self) -> NDArray[np.bool_]:
        return self.truth == self.answer

    @property
    def accuracy(self) -> float:
        """Share of rows that are correct as they are."""
        return float(self.right.mean())

    @property
    def baseline(self) -> float:
        """Share of the most frequent class: always predicting it is not affected by moves."""
        return float(np.bincount(self.truth).max() / len(self.truth))

    def certified_accuracy(self, size: float | None = None) -> float:
        """Share of rows that are correct and stay so under every move of the given size.

        By default the size is the perturbation's budget (1 is the declared radius).
        """
        if size is None and self.perturbation.scope != "row":
            raise ValueError(
                "the budget is shared among rows, so no single size follows from it: "
                "pass size=, or read worst_case_accuracy."
            )
        if size is None:
            limit = self.perturbation.spend(1.0)
        elif not isinstance(size, int | float | np.number) or not 0 <= size < np.inf:
            raise ValueError(f"size must be a finite number of at least 0, got {size!r}.")
        else:
            limit = Perturbation(step_cost=0, budget=float(size)).spend(1.0)
        return float((self.right & (self.distance > limit)).mean())

    def curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Certified accuracy at 0 and at every size where it drops: (sizes, accuracies)."""
        return thin_curve(self.right, self.distance, most=len(self.distance))

    @cached_property
    def attacked(self) -> NDArray[np.int64]:
        """Rows that the worst perturbation within the budget makes wrong, least cost first."""
        limit = self.perturbation.spend(len(self.truth))
        rows = np.flatnonzero(self.right & (self.distance <= limit))
        rows = rows[np.argsort(self.distance[rows], kind="stable")]
        if self.perturbation.scope == "row":
            return rows
        return rows[: np.searchsorted(np.cumsum(self.distance[rows]), limit, side="right")]

    @property
    def worst_case_accuracy(self) -> float:
        """Share of rows correct after the worst perturbation within the budget."""
        return float((self.right.sum() - len(self.attacked)) / len(self.truth))

    def counterexamples(self, most: int = 10) -> list[Counterexample]:
        """The correct rows with the least moves to a wrong prediction, and these moves."""
        rows = np.flatnonzero(self.right & np.isfinite(self.distance))
        rows = rows[np.argsort(self.distance[rows], kind="stable")][:most]
        labels = self.classes.tolist()
        found = []
        for row in rows.tolist():
            answer, other = labels[self.answer[row]], labels[self.other[row]]
            size = float(self.distance[row])
            found.append(Counterexample(row, size, answer, other, self._steps(row)))
        return found

    def _steps(self, row: int) -> tuple[Step, ...]:
        """The columns in which a row and its witness differ."""
        start, end = self.rows[row], self.witness[row]
        same = (start == end) | (np.isnan(start) & np.isnan(end))
        moved = [self.space[j] for j in np.flatnonzero(~same).tolist()]
        ends = zip(moved, start[~same], end[~same], strict=True)
        return tuple(Step(c.name, _decode(c, a), _decode(c, b)) for c, a, b in ends)

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        always = "share right when always giving the most frequent answer; no move can lower it"
        measurements = [
            Measurement("accuracy", self.accuracy, "share of rows it gets right as they are"),
            Measurement("majority baseline", self.baseline, always),
        ]
        if self.perturbation.budget is not None:
            meaning = "share still right after the worst perturbation within the budget"
            worst = self.worst_case_accuracy
            measurements.append(Measurement("worst-case accuracy", worst, meaning))
        if self.right.any():
            meaning = "half of the right rows change their answer only beyond this size of move"
            median = float(np.median(self.distance[self.right]))
            measurements.append(Measurement("median distance", median, meaning))
        return tuple(measurements)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        sizes, accuracies = self.curve()
        return {
            "readings": [one.to_dict() for one in self.measurements()],
            "perturbation": self.perturbation.to_dict(),
            "curve": {"size": sizes.tolist(), "certified_accuracy": accuracies.tolist()},
            "counterexamples": [example.to_dict() for example in self.counterexamples()],
        }

    def __str__(self) -> str:
        lines = map(str, self.measurements())
        return "\n".join([*lines, *(f"  {example}" for example in self.counterexamples(3))])


def certify(model: Any, X: Any, y: Any, perturbation: Perturbation) -> Certificate:
    """Exact size of the least move of each row that changes the prediction.

    A move may end at any float64 number (an integer in integer columns), and the model does predict
    another class at the witness of a row. Rows within a rounding of 1e-9 of the budget count as
    within it, so certified shares err on the safe side. No row's distance depends on other rows.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner, fitted scikit-learn tree or pipeline, or path of a file
    X : array-like or frame of shape (n_rows, n_features)
        Which columns move in whole steps is described at `Perturbation`, parameter `whole`.
    y : array-like of shape (n_rows,)
        True classes.
    perturbation : Perturbation

    Returns
    -------
    certificate : Certificate

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = [[0.0], [1.0], [4.0], [6.5]], ["no", "no", "yes", "yes"]
    >>> model = DecisionTreeClassifier().fit(X, y)
    >>> found = certify(model, X, y, Perturbation(radius={"x0": 2.0}))
    >>> found.worst_case_accuracy, found.certified_accuracy(0.5)
    (0.5, 1.0)
    >>> print(found.counterexamples(1)[0])
    row 2: 'yes' becomes 'no' at size 0.75: x0 from 4 to 2.5
    """
    if not isinstance(perturbation, Perturbation):
        raise TypeError(f"perturbation must be a Perturbation, got {type(perturbation).__name__}.")
    table, model = Table.read(X), opened(model)
    found = as_scorecard(model) or _tree_of(model, table)
    # scikit-learn's trees, of single precision, keep no kinds of columns
    learned = isinstance(found, Scorecard) or not found.single_precision
    moves = perturbation.moves(found.space.typed_like(table, fitted=learned))
    rows, truth = labelled_rows(found, table, y, "certify")
    check_integers(perturbation, found.space, rows)
    answer = _answers(found, rows)
    distance, witness = np.empty(len(rows)), np.empty_like(rows)
    for some, own_moves in moves.by_fractions(rows):
        distance[some], witness[some] = _nearest(found, rows[some], answer[some], own_moves)
    other, reached = np.full(len(rows), -1), np.isfinite(distance)
    if reached.any():
        other[reached] = _answers(found, witness[reached])
    arrays = (rows, witness, truth, answer, other, distance)
    return Certificate(perturbation, found.space, found.classes, *arrays)


def labelled_rows(
    model: Tree | Scorecard, X: Any, y: Any, purpose: str
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Encoded rows and their true classes; `purpose` is what needs at least one."""
    rows = np.asarray(model.space.encode(X), np.float64)
    truth = label_indices(model.classes, y)
    if len(rows) != len(truth):
        raise ValueError(f"X has {len(rows)} rows, but y has {len(truth)} labels.")
    if len(rows) == 0:
        raise ValueError(f"X and y have no rows: {purpose} needs at least one.")
    return rows, truth


def _nearest(
    model: Tree | Scorecard, rows: NDArray[np.float64], own: NDArray[np.int64], moves: Moves
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Size of the least move of each encoded row to another prediction, and where it ends."""
    if isinstance(model, Scorecard):
        bins = bins_of(model, moves)
        return attack.nearest_scorecard_change(rows, own, bins, moves.prices, moves.largest)
    nodes = _node_table(model, moves)
    table = MoveTable(moves.prices, moves.categorical, moves.largest)
    _, where = attack.nearest_change(rows, own, nodes, table)
    witness, distance = attack.move_rows_into(rows, where, nodes, table)
    return distance, witness


def _node_table(tree: Tree, moves: Moves) -> NodeTable:
    sizes = np.array([len(column.categories) for column in tree.space])
    shape = tree.left, tree.right, tree.missing_left, sizes, tree.subset
    parent, column, before, low, high, allowed, missing = attack.narrow_nodes(
        tree.feature, exact_thresholds(tree), *shape
    )
    least, greatest = moves.ends(column, low, high)
    box = np.stack([low, high, least, greatest], axis=1)
    opened = np.where(moves.categorical[column], allowed.any(axis=1), least <= greatest)
    flags = np.stack([missing, opened], axis=1)
    only = attack.only_labels(tree.left, tree.right, tree.label)
    return NodeTable(tree.left, tree.right, parent, column, before, box, flags, allowed, only)


def _answers(model: Tree | Scorecard, rows: NDArray[np.float64]) -> NDArray[np.int64]:
    if isinstance(model, Scorecard):
        return model.answer_encoded(rows)
    return model.label[model.apply_encoded(rows)]


def _tree_of(model: Any, table: Table) -> Tree:
    tree = as_tree(model)
    own = model is tree or getattr(model, "tree_", None) is tree
    return tree if own else from_sklearn_for(model, table)
