"""Labels as a user hands them over, checked."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d


def check_labels(y: Any, n_rows: int) -> NDArray[Any]:
    """One label a row; refuses missing labels, mixed types and numbers that go on."""
    if not (isinstance(y, np.ndarray) and y.ndim == 1):
        y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise ValueError(
            f"X and y have inconsistent numbers of samples: {n_rows} rows, {len(y)} labels."
        )
    gone = _missing_labels(y)
    if gone.any():
        raise ValueError(
            f"Input y contains NaN. {gone.sum()} label(s) are missing, the first in row "
            f"{int(gone.argmax())}: drop those rows or label them."
        )
    if y.dtype == object and len({isinstance(label, str) for label in y.tolist()}) > 1:
        raise TypeError("y mixes text and numbers as labels: turn all of them into text.")
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError(
            "Input y contains infinity or a value too large for dtype('float64'). "
            "y must hold class labels."
        )
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise ValueError(
            "Unknown label type: continuous. y holds fractions, so it is no class label: "
            "cut it into classes, or use a regression method."
        )
    return y


def _missing_labels(y: NDArray[Any]) -> NDArray[np.bool_]:
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype != object:
        return np.zeros(len(y), bool)
    return np.array([v is None or v != v or type(v).__name__ == "NAType" for v in y.tolist()])
