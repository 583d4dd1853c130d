"""Certificates: how far rows are from another prediction, and which stay in a box."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.notebook import Shown
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import quote
from steadytree.metrics.measurement import Measurement
from steadytree.robustness.perturbation import Perturbation

WRONG, CERTIFIED, ATTACKED, UNDECIDED = "wrong", "certified", "attacked", "undecided"
JUST, TINY = 2.0**-22, 1e-300  # as a share of a number, which trees of single precision round
STATUSES = (WRONG, CERTIFIED, ATTACKED, UNDECIDED)


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


def remarks_of(notes: tuple[str, ...], unused: tuple[str, ...]) -> list[str]:
    """Sentences that stand beside the numbers of a certificate."""
    idle = f"the model does not use {quote(unused)}: noise there changes nothing."
    return [*notes, *([idle] if unused else [])]


def decode(column: Column, value: float) -> float | str | None:
    """An encoded value as a user wrote it; None is missing."""
    if np.isnan(value):
        return None
    return column.categories[int(value)] if column.is_categorical else float(value)


def _steps(found: "Certificate | EnsembleCertificate", row: int) -> tuple[Step, ...]:
    """The columns in which a row and its witness differ."""
    start, end = found.rows[row], found.witness[row]
    same = (start == end) | (np.isnan(start) & np.isnan(end))
    steps = []
    for j in np.flatnonzero(~same).tolist():
        column = found.space[j]
        first = found.unknown.get((row, j), decode(column, start[j]))
        steps.append(Step(column.name, first, decode(column, end[j])))
    return tuple(steps)


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
    right: NDArray[np.bool_],
    distance: NDArray[np.float64],
    most: int = 200,
    weight: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Share correct and farther than a size from another prediction, at 0 and `most` sizes."""
    finite = np.unique(distance[right & np.isfinite(distance)])
    if len(finite) > most:
        finite = finite[np.linspace(0, len(finite) - 1, most).round().astype(np.int64)]
    sizes = np.unique(np.concatenate([[0.0], finite]))
    if weight is None:
        weight = np.ones(len(right))
    order = np.argsort(distance[right])
    kept = distance[right][order]
    beyond = np.append(np.cumsum(weight[right][order][::-1])[::-1], 0.0)
    return sizes, beyond[np.searchsorted(kept, sizes, side="right")] / weight.sum()


def _median(distance: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """The median where a row of weight w stands for w rows."""
    if (weight == weight[0]).all():
        return float(np.median(distance))
    order = np.argsort(distance)
    below = np.cumsum(weight[order])
    middle = [np.searchsorted(below, below[-1] / 2, side) for side in ("left", "right")]
    return float(distance[order][middle].mean())


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
    weight: NDArray[np.float64]  # (n,): what each row counts
    # texts of categories that the model does not know, by row and column
    unknown: Mapping[tuple[int, int], str] = field(default_factory=dict)
    # what must be remarks, such as columns that the noise does not move
    notes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()  # columns that the perturbation names and the model does not use
    # (n,): number of each row among those of all parts, -1 where an entry stands for several;
    # these come last, and are not among rows and witness
    numbers: NDArray[np.int64] | None = None

    @property
    def right(self) -> NDArray[np.bool_]:
        return self.truth == self.answer

    @property
    def accuracy(self) -> float:
        """Share of rows that are correct as they are."""
        return self._share(self.right)

    @property
    def baseline(self) -> float:
        """Share of the most frequent class: always predicting it is not affected by moves."""
        return float(np.bincount(self.truth, self.weight).max() / self.weight.sum())

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
        return self._share(self.right & (self.distance > limit))

    def _share(self, flags: NDArray[np.bool_]) -> float:
        return float(self.weight[flags].sum() / self.weight.sum())

    def curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Certified accuracy at 0 and at every size where it drops: (sizes, accuracies)."""
        return thin_curve(self.right, self.distance, len(self.distance), self.weight)

    @cached_property
    def attacked(self) -> NDArray[np.int64]:
        """Rows that the worst perturbation within the budget makes wrong, least cost first.

        Of a row of weight w, which stands for w rows, all are.
        """
        limit = self.perturbation.spend(float(self.weight.sum()))
        rows = np.flatnonzero(self._in_reach(limit))
        rows = rows[np.argsort(self.distance[rows], kind="stable")]
        if self.perturbation.scope == "row":
            return rows
        spent = np.cumsum(self.distance[rows] * self.weight[rows])
        return rows[: np.searchsorted(spent, limit, side="right")]

    @property
    def worst_case_accuracy(self) -> float:
        """Share of rows correct after the worst perturbation within the budget."""
        total, lost = self.weight.sum(), self.weight[self.attacked].sum()
        if self.perturbation.scope != "row":
            lost += self._lost_in_part()
        return float((self.weight[self.right].sum() - lost) / total)

    def _in_reach(self, limit: float) -> NDArray[np.bool_]:
        """Correct rows that the limit covers, or any part of them where weights are fractional."""
        covered = self.distance <= limit
        if self.perturbation.scope != "row" and not self._has_whole_weights:
            covered = np.isfinite(self.distance)
        return self.right & covered & (self.weight > 0)

    @property
    def _has_whole_weights(self) -> bool:
        return bool((self.weight == np.floor(self.weight)).all())

    def _lost_in_part(self) -> float:
        """Weight lost of the next row, which the rest of a shared budget does not cover."""
        limit = self.perturbation.spend(float(self.weight.sum()))
        rest = limit - (self.distance[self.attacked] * self.weight[self.attacked]).sum()
        still = self._in_reach(limit)
        still[self.attacked] = False
        if not still.any():
            return 0.0
        part = rest / self.distance[still].min()
        return float(np.floor(part) if self._has_whole_weights else part)

    def counterexamples(self, most: int = 10) -> list[Counterexample]:
        """The correct rows with the least moves to a wrong prediction, and these moves."""
        rows = np.flatnonzero(self.right & np.isfinite(self.distance))
        if self.numbers is not None:
            rows = rows[self.numbers[rows] >= 0]
        rows = rows[np.argsort(self.distance[rows], kind="stable")][:most]
        labels = self.classes.tolist()
        found = []
        for row in rows.tolist():
            answer, other = labels[self.answer[row]], labels[self.other[row]]
            size = float(self.distance[row])
            number = row if self.numbers is None else int(self.numbers[row])
            found.append(Counterexample(number, size, answer, other, _steps(self, row)))
        return found

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        always = "accuracy of always predicting the largest class; no noise lowers it"
        measurements = [
            Measurement(
                "accuracy", self.accuracy, "share predicted correctly without perturbation"
            ),
            Measurement("majority baseline", self.baseline, always),
        ]
        if self.perturbation.budget is not None:
            meaning = "share predicted correctly under the worst perturbation within the budget"
            worst = self.worst_case_accuracy
            measurements.append(Measurement("worst-case accuracy", worst, meaning))
        counted = self.right & (self.weight > 0)
        if counted.any():
            meaning = "half of the correct predictions change only beyond this size of perturbation"
            median = _median(self.distance[counted], self.weight[counted])
            measurements.append(Measurement("median distance", median, meaning))
        return tuple(measurements)

    def remarks(self) -> list[str]:
        """Sentences that stand beside the numbers."""
        return remarks_of(self.notes, self.unused)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        sizes, accuracies = self.curve()
        return {
            "readings": [one.to_dict() for one in self.measurements()],
            "perturbation": self.perturbation.to_dict(),
            "curve": {"size": sizes.tolist(), "certified_accuracy": accuracies.tolist()},
            "counterexamples": [example.to_dict() for example in self.counterexamples()],
            "notes": list(self.notes),
            "unused": list(self.unused),
        }

    def __str__(self) -> str:
        lines = [*map(str, self.measurements()), *(f"note: {one}" for one in self.remarks())]
        return "\n".join([*lines, *(f"  {example}" for example in self.counterexamples(3))])


@dataclass(frozen=True, eq=False, repr=False)
class EnsembleCertificate(Shown):
    """What is proven of an ensemble: an interval of its accuracy under the worst noise.

    The witness of every row that counts as attacked was given to the model itself, which predicts
    another class there.
    """

    perturbation: Perturbation
    space: FeatureSpace
    classes: NDArray[Any]
    rows: NDArray[np.float64]  # (n, p), encoded
    witness: NDArray[np.float64]  # (n, p): a point in the box with another prediction, or nan
    # (n,): true class, prediction, and prediction at the witness (-1 where there is none)
    truth: NDArray[np.int64]
    answer: NDArray[np.int64]
    other: NDArray[np.int64]
    status: NDArray[np.str_]  # (n,): "wrong" as it is, "certified", "attacked" or "undecided"
    weight: NDArray[np.float64]
    steps: int  # of the verifier, over all rows
    seconds: float
    unknown: Mapping[tuple[int, int], str]
    notes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def _share(self, *status: str) -> float:
        return float(self.weight[np.isin(self.status, status)].sum() / self.weight.sum())

    @property
    def accuracy(self) -> float:
        """Share of rows that are correct as they are."""
        return 1.0 - self._share(WRONG)

    @property
    def baseline(self) -> float:
        """Share of the most frequent class: always predicting it is not affected by moves."""
        return float(np.bincount(self.truth, self.weight).max() / self.weight.sum())

    @property
    def worst_case_accuracy(self) -> float:
        """Share of rows proven to stay correct: a lower bound of the robust accuracy."""
        return self._share(CERTIFIED)

    @property
    def robust_accuracy(self) -> tuple[float, float]:
        """An interval that holds the share of rows that stay correct under every noise."""
        return self._share(CERTIFIED), self._share(CERTIFIED, UNDECIDED)

    @property
    def decided(self) -> float:
        """Share of rows that are proven or have a witness, or are wrong as they are."""
        return 1.0 - self._share(UNDECIDED)

    def counterexamples(self, most: int = 10) -> list[Counterexample]:
        """Rows that are correct and have a witness, and how it differs from them."""
        labels, found = self.classes.tolist(), []
        for row in np.flatnonzero(self.status == ATTACKED)[:most].tolist():
            answers = labels[self.answer[row]], labels[self.other[row]]
            found.append(Counterexample(row, 1.0, *answers, _steps(self, row)))
        return found

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        low, high = self.robust_accuracy
        always = "accuracy of always predicting the largest class; no noise lowers it"
        return (
            Measurement(
                "accuracy", self.accuracy, "share predicted correctly without perturbation"
            ),
            Measurement("majority baseline", self.baseline, always),
            Measurement("worst-case accuracy, at least", low, "share proven to stay correct"),
            Measurement("worst-case accuracy, at most", high, "share for which no attack is known"),
            Measurement("decided", self.decided, "share of rows that the search decided"),
        )

    def remarks(self) -> list[str]:
        """Sentences that stand beside the numbers."""
        return remarks_of(self.notes, self.unused)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "readings": [one.to_dict() for one in self.measurements()],
            "perturbation": self.perturbation.to_dict(),
            "steps": self.steps,
            "status": {name: int((self.status == name).sum()) for name in STATUSES},
            "counterexamples": [example.to_dict() for example in self.counterexamples()],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [*map(str, self.measurements()), *(f"note: {one}" for one in self.remarks())]
        return "\n".join([*lines, *(f"  {example}" for example in self.counterexamples(3))])
