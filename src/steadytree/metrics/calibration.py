"""Calibration: whether predicted probabilities agree with observed rates."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.intervals import wilson_interval
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


@dataclass(frozen=True, eq=False)
class Calibration:
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


def calibration(model: Any, X: Any, y: Any, n_bins: int = 10) -> Calibration:
    """Compare predicted probabilities with observed rates.

    With two classes the probabilities are of the second one, with more of the predicted class.
    Rows with equal probabilities stay together; where there are more than `n_bins` different ones,
    neighbours are joined into bins of about equally many rows.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner or fitted scikit-learn tree
    X : array-like or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    n_bins : int, default=10

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
    found = answer_rows(model, X, y)
    two = len(found.classes) == 2
    label_of_row = np.ones_like(found.answer) if two else found.answer
    stated = found.shares[np.arange(len(label_of_row)), label_of_row]
    came = found.truth == label_of_row
    bins = tuple(_bin(stated[rows], came[rows]) for rows in _join(stated, n_bins))
    label = str(found.classes[1]) if two else ""
    return Calibration(bins, label, float(np.mean((stated - came) ** 2)))


def _join(stated: NDArray[np.float64], n_bins: int) -> list[NDArray[np.int64]]:
    """Rows of each bin; rows with equal probabilities are never separated."""
    values, where, counts = np.unique(stated, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    group = np.arange(len(values))
    if len(values) > n_bins:
        group = np.minimum(middle * n_bins // len(stated), n_bins - 1).astype(np.int64)
    of_row = group[where.ravel()]
    return [np.flatnonzero(of_row == one) for one in np.unique(group)]


def _bin(stated: NDArray[np.float64], came: NDArray[np.bool_]) -> Bin:
    true, rows = int(came.sum()), len(came)
    return Bin(float(stated.mean()), true / rows, wilson_interval(true, rows), rows)
