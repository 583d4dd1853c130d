"""Calibration: whether predicted probabilities agree with observed rates."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from steadytree._base.intervals import wilson_interval
from steadytree._base.notebook import Shown
from steadytree._base.validation import Integer
from steadytree.metrics.accuracy import answer_rows
from steadytree.metrics.measurement import Measurement


@dataclass(frozen=True)
class Bin:
    """Rows with similar predicted probabilities: their mean, and the observed rate."""

    stated: float
    observed: float
    interval: tuple[float, float]  # Wilson's 95 % interval of `observed`
    n_rows: int


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Shown):
    """Predicted probabilities beside the observed rates."""

    bins: tuple[Bin, ...]  # by rising probability
    label: str  # the class the probabilities are of; empty where it is the predicted class
    brier: float  # mean squared difference of probability and outcome (0 or 1)

    @property
    def error(self) -> float:
        """Expected calibration error: mean over rows of |stated - observed| of their bin."""
        rows = sum(one.n_rows for one in self.bins)
        return sum(one.n_rows * abs(one.stated - one.observed) for one in self.bins) / rows

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        off = "mean difference between predicted probability and observed rate"
        squared = "mean squared error of predicted probabilities; 0 is best"
        error = Measurement("calibration error", self.error, off)
        return error, Measurement("Brier score", self.brier, squared)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        bins = [asdict(one) | {"interval": list(one.interval)} for one in self.bins]
        return {"label": self.label, "error": self.error, "brier": self.brier, "bins": bins}


def calibration(model: Any, X: Any, y: Any, n_bins: int = 10, positive: Any = None) -> Calibration:
    """Compare predicted probabilities with observed rates.

    With two classes the probabilities are of the second one, with more of the predicted class.
    Rows with equal probabilities stay together; where there are more than `n_bins` different ones,
    neighbours are joined into bins of about equally many rows.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner or fitted scikit-learn tree
    X : array-like or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        X and y may lie in files or on a cluster, as for `accuracy`.
    n_bins : int, default=10
    positive : optional
        Which of two classes the probabilities are of, instead of the second.

    Returns
    -------
    calibration : Calibration

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"])
    >>> found = calibration(model, [[0], [1], [1], [1]], ["no", "yes", "yes", "no"])
    >>> [(one.stated, round(one.observed, 2), one.n_rows) for one in found.bins]
    [(0.0, 0.0, 1), (1.0, 0.67, 3)]
    """
    Integer(1).check(n_bins, "n_bins")
    found = answer_rows(model, X, y).with_event(positive)
    two = len(found.classes) == 2
    label_of_row = np.ones_like(found.answer) if two else found.answer
    stated = found.shares[np.arange(len(label_of_row)), label_of_row]
    came = found.truth == label_of_row
    counts = found.weights
    bins = tuple(
        _bin(stated[rows], came[rows], counts[rows]) for rows in _join(stated, counts, n_bins)
    )
    label = str(found.classes[1]) if two else ""
    return Calibration(bins, label, float(np.average((stated - came) ** 2, weights=counts)))


def _join(
    stated: NDArray[np.float64], n_rows: NDArray[np.int64], n_bins: int
) -> list[NDArray[np.int64]]:
    """Entries of each bin; rows with equal probabilities are never separated."""
    values, where = np.unique(stated, return_inverse=True)
    counts = np.bincount(where.ravel(), n_rows)
    middle = np.cumsum(counts) - counts / 2
    group = np.arange(len(values))
    if len(values) > n_bins:
        group = np.minimum(middle * n_bins // n_rows.sum(), n_bins - 1).astype(np.int64)
    of_row = group[where.ravel()]
    return [np.flatnonzero(of_row == one) for one in np.unique(group)]


def _bin(stated: NDArray[np.float64], came: NDArray[np.bool_], counts: NDArray[np.int64]) -> Bin:
    true, rows = int(counts[came].sum()), int(counts.sum())
    mean = float(np.average(stated, weights=counts))
    return Bin(mean, true / rows, wilson_interval(true, rows), rows)


NEWTON_STEPS = 100
EXTREME = 0.5  # rows: a probability of 0 or 1 counts as half a row of those evaluated


@dataclass(frozen=True)
class CalibrationLine:
    """Logistic regression of the outcome on the log odds of the predicted risk (Cox 1958)."""

    slope: float | None  # 1 is best, below 1 risks are too extreme; None where it is not determined
    slope_interval: tuple[float, float] | None
    # log odds to be added to all risks so that their mean equals the observed rate
    intercept: float
    intercept_interval: tuple[float, float]
    expected: float  # events that the risks add up to
    observed: int
    n_extreme: int  # rows with a risk of 0 or 1, which was moved inwards by half a row

    @classmethod
    def of(
        cls, risk: NDArray[np.float64], event: NDArray[np.bool_], level: float = 0.95
    ) -> "CalibrationLine":
        """From the risk of each row and whether it has the event; both classes must have rows."""
        n, z = len(risk), float(ndtri((1 + level) / 2))
        inward = np.clip(risk, EXTREME / n, 1 - EXTREME / n)
        # rows with the same risk count as one with a weight: trees have few different risks
        values, index, rows = np.unique(logit(inward), return_inverse=True, return_counts=True)
        events = np.bincount(index.ravel(), event, len(values)).astype(np.float64)
        ones = np.ones((len(values), 1))
        weights, covariance = fit_logistic(ones, values, rows, events)
        found = _settled(weights[0])
        half = z * float(np.sqrt(covariance[0, 0]))
        slope, within = None, None
        if overlaps(values, rows, events):
            design = np.column_stack([ones, values])
            (_, slope), covariance = fit_logistic(design, np.zeros(len(values)), rows, events)
            half_slope = z * float(np.sqrt(covariance[1, 1]))
            slope = _settled(slope)
            within = (slope - half_slope, slope + half_slope)
        return cls(
            slope=slope,
            slope_interval=within,
            intercept=found,
            intercept_interval=(found - half, found + half),
            expected=float(risk.sum()),
            observed=int(event.sum()),
            n_extreme=int(((risk == 0) | (risk == 1)).sum()),
        )

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        steep = "1 is best; below 1 the risks are too extreme, above 1 too close to each other"
        level = "log odds by which all risks are too low (above 0) or too high (below 0)"
        ratio = "observed events by the number that the risks add up to; 1 is best"
        found = [
            Measurement("calibration in the large", self.intercept, level, self.intercept_interval),
        ]
        if self.slope is not None:
            found.insert(
                0, Measurement("calibration slope", self.slope, steep, self.slope_interval)
            )
        if self.expected > 0:
            found.append(Measurement("observed/expected", self.observed / self.expected, ratio))
        return tuple(found)


def _settled(value: float) -> float:
    """A weight to the digits that Newton's steps settle: no -9e-14 where it is 0."""
    return round(float(value), 9) + 0.0


def overlaps(
    values: NDArray[np.float64], rows: NDArray[np.int64], events: NDArray[np.float64]
) -> bool:
    """Whether a finite slope exists: neither class lies wholly on one side of the other."""
    own, others = values[events > 0], values[events < rows]
    return bool(own.min() < others.max() and others.min() < own.max())


def fit_logistic(
    design: NDArray[np.float64],
    offset: NDArray[np.float64],
    rows: NDArray[Any],
    events: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights of a logistic regression with an offset, and the inverse of their information."""

    def loss(weights: NDArray[np.float64]) -> float:
        level = offset + design @ weights
        return float(rows @ np.logaddexp(0, level) - events @ level)

    weights = np.zeros(design.shape[1])
    for _ in range(NEWTON_STEPS):
        risk = expit(offset + design @ weights)
        information = (design.T * (rows * risk * (1 - risk))) @ design
        step = np.linalg.solve(information, design.T @ (events - rows * risk))
        before, size = loss(weights), 1.0
        while loss(weights + size * step) > before + 1e-9 * abs(before) and size > 1e-8:
            size /= 2
        weights = weights + size * step
        if np.abs(size * step).max() < 1e-10:
            break
    return weights, np.linalg.inv(information)
