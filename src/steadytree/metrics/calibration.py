"""Calibration: whether shares a model states are the shares that come true."""

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
    """Rows with like statements: what was stated on average, and what came true.

    Parameters
    ----------
    stated, observed : float
    interval : tuple of two floats
        Wilson's 95 % interval of `observed`.
    n_rows : int
    """

    stated: float
    observed: float
    interval: tuple[float, float]
    n_rows: int


@dataclass(frozen=True, eq=False)
class Calibration:
    """Stated shares beside those that came true.

    Parameters
    ----------
    bins : tuple of Bin
        By rising statement.
    label : str
        The class the shares are of; empty where they are of whatever was answered.
    brier : float
        Mean squared difference of stated share and outcome (0 or 1).
    """

    bins: tuple[Bin, ...]
    label: str
    brier: float

    @property
    def error(self) -> float:
        """Mean over rows of the difference between stated and observed share of their bin."""
        rows = sum(one.n_rows for one in self.bins)
        return sum(one.n_rows * abs(one.stated - one.observed) for one in self.bins) / rows

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        off = "mean difference between the stated share and the one that came true"
        return (
            Measurement("calibration error", self.error, off),
            Measurement(
                "Brier score", self.brier, "mean squared error of stated shares; 0 is best"
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        bins = [asdict(one) | {"interval": list(one.interval)} for one in self.bins]
        return {"label": self.label, "error": self.error, "brier": self.brier, "bins": bins}


def calibration(model: Any, X: Any, y: Any, n_bins: int = 10) -> Calibration:
    """Compare the shares a model states with those that come true.

    With two classes the shares are of the second one, with more of the class that was answered.
    Rows with equal statements stay together; where there are more than `n_bins` statements,
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
    place = np.ones_like(found.answer) if two else found.answer
    stated = found.shares[np.arange(len(place)), place]
    came = found.truth == place
    bins = tuple(_bin(stated[rows], came[rows]) for rows in _join(stated, n_bins))
    label = str(found.classes[1]) if two else ""
    return Calibration(bins, label, float(np.mean((stated - came) ** 2)))


def _join(stated: NDArray[np.float64], n_bins: int) -> list[NDArray[np.int64]]:
    """Rows of each bin; rows with equal statements are never parted."""
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
