"""EnsembleCertificate: what is proven of an ensemble under a box of noise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.notebook import Shown
from steadytree.data.feature_space import FeatureSpace
from steadytree.metrics.measurement import Measurement
from steadytree.robustness.certificate import Counterexample, Step, decode, told_of
from steadytree.robustness.perturbation import Perturbation

Floats = NDArray[np.float64]
WRONG, CERTIFIED, ATTACKED, UNDECIDED = "wrong", "certified", "attacked", "undecided"
STATUSES = (WRONG, CERTIFIED, ATTACKED, UNDECIDED)


@dataclass(frozen=True, eq=False, repr=False)
class EnsembleCertificate(Shown):
    """What is proven of an ensemble: an interval of its accuracy under the worst noise.

    The witness of every row that counts as attacked was given to the model itself, which predicts
    another class there.
    """

    perturbation: Perturbation
    space: FeatureSpace
    classes: NDArray[Any]
    rows: Floats  # (n, p), encoded
    witness: Floats  # (n, p): a point in the box with another prediction; nan without one
    # (n,): true class, prediction, and prediction at the witness (-1 where there is none)
    truth: NDArray[np.int64]
    answer: NDArray[np.int64]
    other: NDArray[np.int64]
    status: NDArray[np.str_]  # (n,): "wrong" as it is, "certified", "attacked" or "undecided"
    weight: Floats
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
            start, end = self.rows[row], self.witness[row]
            same = (start == end) | (np.isnan(start) & np.isnan(end))
            steps = []
            for j in np.flatnonzero(~same).tolist():
                first = self.unknown.get((row, j), decode(self.space[j], start[j]))
                steps.append(Step(self.space.names[j], first, decode(self.space[j], end[j])))
            answers = labels[self.answer[row]], labels[self.other[row]]
            found.append(Counterexample(row, 1.0, *answers, tuple(steps)))
        return found

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        low, high = self.robust_accuracy
        always = "share right when always giving the most frequent answer; no move can lower it"
        return (
            Measurement("accuracy", self.accuracy, "share of rows it gets right as they are"),
            Measurement("majority baseline", self.baseline, always),
            Measurement("worst-case accuracy, at least", low, "share proven to stay right"),
            Measurement("worst-case accuracy, at most", high, "share for which no attack is known"),
            Measurement("decided", self.decided, "share of rows that the search decided"),
        )

    def told(self) -> list[str]:
        """Sentences that stand beside the numbers."""
        return told_of(self.notes, self.unused)

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
        lines = [*map(str, self.measurements()), *(f"note: {one}" for one in self.told())]
        return "\n".join([*lines, *(f"  {example}" for example in self.counterexamples(3))])
