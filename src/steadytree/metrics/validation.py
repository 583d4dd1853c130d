"""Validation: ranking, calibration and usefulness of the risks of one class."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from steadytree._base.notebook import Shown
from steadytree.metrics.accuracy import Answers, answer_rows, event_index
from steadytree.metrics.calibration import CalibrationLine
from steadytree.metrics.measurement import Measurement

MOST_CUTOFFS = 12  # of a table; with more different risks, those nearest to these alerts
ALERTS_PER_100 = (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90)
N_THRESHOLDS = 100  # of a decision curve


@dataclass(frozen=True)
class Cutoff:
    """What follows from acting on all rows whose risk is at least `risk`."""

    risk: float
    n_alerts: int
    n_found: int  # alerts that have the event
    sensitivity: float  # share of events that get an alert
    specificity: float  # share of other rows that get none
    ppv: float  # share of alerts that have the event
    npv: float | None  # share of rows without an alert that do not have it; None without such rows
    alerts_per_100: float
    is_own: bool = False  # whether the model itself predicts the event for these rows


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Shown):
    """Counts of rows and events at every cut-off, the highest first; both classes have rows."""

    risk: NDArray[np.float64]  # different risks, falling
    n_alerts: NDArray[np.int64]  # rows with at least that risk
    n_found: NDArray[np.int64]  # those of them that have the event
    level: float = 0.95

    @classmethod
    def of(cls, risk: NDArray[np.float64], event: NDArray[np.bool_]) -> "Ranking":
        """From the risk of each row and whether it has the event."""
        values, index, counts = np.unique(risk, return_inverse=True, return_counts=True)
        events = np.bincount(index.ravel(), event, len(values)).astype(np.int64)
        if not 0 < events.sum() < len(event):
            raise ValueError(
                "a ranking needs rows with the event and rows without it: all rows here are of "
                "one class."
            )
        return cls(values[::-1], np.cumsum(counts[::-1]), np.cumsum(events[::-1]))

    @property
    def n_rows(self) -> int:
        return int(self.n_alerts[-1])

    @property
    def n_events(self) -> int:
        return int(self.n_found[-1])

    @property
    def sensitivity(self) -> NDArray[np.float64]:
        return self.n_found / self.n_events

    @property
    def false_positive_rate(self) -> NDArray[np.float64]:
        return (self.n_alerts - self.n_found) / (self.n_rows - self.n_events)

    @cached_property
    def auc(self) -> float:
        """Area under the ROC curve: chance that a row with the event has the higher risk."""
        above, _ = self._placements()
        return float(above @ self._events) / self.n_events

    @cached_property
    def auc_interval(self) -> tuple[float, float] | None:
        """Interval by DeLong's variance on the logit scale; None where nothing varies."""
        above, below = self._placements()
        events, others, area = self._events, self._others, self.auc
        m, n = self.n_events, self.n_rows - self.n_events
        if min(m, n) < 2 or not 0 < area < 1:
            return None
        variance = float(events @ (above - area) ** 2) / (m - 1) / m
        variance += float(others @ (below - area) ** 2) / (n - 1) / n
        half = float(ndtri((1 + self.level) / 2)) * np.sqrt(variance) / (area * (1 - area))
        low, high = expit(logit(area) - half), expit(logit(area) + half)
        return float(low), float(high)

    @property
    def ks(self) -> float:
        """Kolmogorov-Smirnov: largest difference of sensitivity and false-positive rate."""
        return max(0.0, float((self.sensitivity - self.false_positive_rate).max()))

    @property
    def average_precision(self) -> float:
        """Area under the precision-recall curve, as a sum of steps."""
        gained = np.diff(self.sensitivity, prepend=0.0)
        return float(gained @ (self.n_found / self.n_alerts))

    def cutoffs(self, own: float | None = None) -> tuple[Cutoff, ...]:
        """A table of cut-offs, the lowest first; `own` is the one the model itself applies."""
        kept = set(range(len(self.risk)))
        if len(self.risk) > MOST_CUTOFFS:
            share = 100 * self.n_alerts / self.n_rows
            kept = {int(np.abs(share - wanted).argmin()) for wanted in ALERTS_PER_100}
        if own is not None:
            kept.add(int(np.searchsorted(-self.risk, -own, side="right")) - 1)
        return tuple(self._cutoff(k, own) for k in sorted(kept, reverse=True) if k >= 0)

    def _cutoff(self, index: int, own: float | None) -> Cutoff:
        alerts, found = int(self.n_alerts[index]), int(self.n_found[index])
        passed = self.n_rows - alerts
        others = self.n_rows - self.n_events
        clear = others - (alerts - found)  # without an alert and without the event
        return Cutoff(
            risk=float(self.risk[index]),
            n_alerts=alerts,
            n_found=found,
            sensitivity=found / self.n_events,
            specificity=clear / others,
            ppv=found / alerts,
            npv=clear / passed if passed else None,
            alerts_per_100=100 * alerts / self.n_rows,
            is_own=own is not None and own == self.risk[index],
        )

    def net_benefit(self, thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Net benefit of acting on rows whose risk is at least a threshold p.

        True positives less false positives weighted by the odds p / (1 - p), per row (Vickers and
        Elkin 2006).
        """
        last = np.searchsorted(-self.risk, -thresholds, side="right")
        alerts = np.concatenate([[0], self.n_alerts])[last]
        found = np.concatenate([[0], self.n_found])[last]
        return (found - (alerts - found) * thresholds / (1 - thresholds)) / self.n_rows

    def decision_curve(self) -> dict[str, list[float]]:
        """Net benefit of the model and of acting on all rows, by threshold; of none it is 0."""
        share = self.n_events / self.n_rows
        top = min(0.99, max(float(self.risk[0]), 2 * share))
        thresholds = np.linspace(0, top, N_THRESHOLDS + 1)[1:]
        every = share - (1 - share) * thresholds / (1 - thresholds)
        model = self.net_benefit(thresholds)
        return {"threshold": thresholds.tolist(), "model": model.tolist(), "all": every.tolist()}

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        pair = "chance that a row with the event has a higher risk than one without it"
        twice = None if self.auc_interval is None else tuple(2 * x - 1 for x in self.auc_interval)
        apart = "largest difference between sensitivity and false-positive rate"
        mean = "mean share of events among alerts over all cut-offs; by chance "
        return (
            Measurement("AUC", self.auc, pair, self.auc_interval),
            Measurement("Gini", 2 * self.auc - 1, "2 AUC - 1", twice),  # type: ignore[arg-type]
            Measurement("KS", self.ks, apart),
            Measurement(
                "average precision",
                self.average_precision,
                f"{mean}{self.n_events / self.n_rows:.3g}",
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values of the ROC and precision-recall curves, thinned to about 200 points."""
        last = len(self.risk) - 1
        shown = np.unique(np.linspace(0, last, min(last + 1, 200)).round().astype(np.int64))
        return {
            "risk": self.risk[shown].tolist(),
            "sensitivity": self.sensitivity[shown].tolist(),
            "false_positive_rate": self.false_positive_rate[shown].tolist(),
            "precision": (self.n_found / self.n_alerts)[shown].tolist(),
        }

    @property
    def _events(self) -> NDArray[np.int64]:
        return np.diff(self.n_found, prepend=0)

    @property
    def _others(self) -> NDArray[np.int64]:
        return np.diff(self.n_alerts - self.n_found, prepend=0)

    def _placements(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of each risk: share of other rows below it, and share of events above it; ties half."""
        events, others = self._events, self._others
        below = others.sum() - np.cumsum(others) + others / 2
        above = np.cumsum(events) - events / 2
        return below / others.sum(), above / events.sum()


@dataclass(frozen=True, eq=False, repr=False)
class Validation(Shown):
    """Predicted risks of one class, the event, beside what was observed."""

    label: Any  # the class that is the event
    ranking: Ranking
    line: CalibrationLine
    own: float | None  # the risk from which the model predicts the event; None where there is none

    @property
    def cutoffs(self) -> tuple[Cutoff, ...]:
        """A table of cut-offs, the lowest first."""
        return self.ranking.cutoffs(self.own)

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        return self.ranking.measurements() + self.line.measurements()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "label": str(self.label),
            "n_rows": self.ranking.n_rows,
            "n_events": self.ranking.n_events,
            "n_extreme": self.line.n_extreme,
            "curves": self.ranking.to_dict(),
            "decision_curve": self.ranking.decision_curve(),
            "cutoffs": [asdict(one) for one in self.cutoffs],
        }


def validate(model: Any, X: Any, y: Any, positive: Any = None) -> Validation:
    """Ranking, calibration and usefulness of predicted risks.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner, fitted scikit-learn tree, or any fitted classifier
        A model that is not a tree needs ``predict_proba`` and ``classes_``.
    X : array-like or frame of shape (n_rows, n_features)
        Rows the model was not fitted to: on its training rows every figure is too good.
    y : array-like of shape (n_rows,)
    positive : optional
        The class that is the event, against all others; needed with more than two classes. With
        two it is the second by default.

    Returns
    -------
    validation : Validation

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier(max_depth=1).fit([[0], [1], [1]], ["no", "yes", "no"])
    >>> found = validate(model, [[0], [0], [1], [1]], ["no", "yes", "yes", "yes"])
    >>> round(found.ranking.auc, 3), [one.sensitivity for one in found.cutoffs]
    (0.833, [1.0, 0.6666666666666666])
    """
    return validate_answers(answer_rows(model, X, y), positive)


def validate_answers(found: Answers, positive: Any = None) -> Validation:
    """As `validate`, of predictions that were made."""
    if found.counts is not None:
        raise TypeError(
            "validate needs the rows in memory: load them, or measure accuracy, calibration and "
            "groups, which count rows in files and of Dask."
        )
    index = event_index(found.classes, positive)
    risk, event = found.shares[:, index], found.truth == index
    predicted = found.answer == index
    own = float(risk[predicted].min()) if predicted.any() else None
    if own is not None and ((risk >= own) != predicted).any():
        own = None  # above two classes the class with the highest probability is predicted
    ranking = Ranking.of(risk, event)  # which says what is wrong where there is one class
    line = CalibrationLine.of(risk, event)
    return Validation(found.classes.tolist()[index], ranking, line, own)
