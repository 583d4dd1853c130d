"""TreeClassifierMixin: what every fitted tree learner can do."""

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from steadytree.core.table import Table
from steadytree.core.tree import Tree
from steadytree.interop.sklearn_tree import to_sklearn
from steadytree.interop.tree_file import save


class TreeClassifierMixin:
    """Predictions, files and exports of a learner whose ``fit`` sets ``tree_``."""

    tree_: Tree

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Index of the leaf each row falls in."""
        table = self._check_rows(X)
        return self.tree_.apply(table)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class shares of the leaf each row falls in, in order of ``classes_``."""
        leaves = self.apply(X)
        return self.tree_.value[leaves]

    def predict(self, X: Any) -> NDArray[Any]:
        """Most frequent class of the leaf each row falls in."""
        leaves = self.apply(X)
        return self.tree_.classes[self.tree_.label[leaves]]

    def decision_path(self, X: Any) -> Any:
        """Nodes each row passes, as a sparse indicator matrix (n_rows, n_nodes)."""
        table = self._check_rows(X)
        return self.tree_.decision_path(table)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted tree to a ``*.tree.json`` file; `steadytree.load` reads it back."""
        check_is_fitted(self)
        save(self.tree_, path)

    def to_sklearn(self) -> Any:
        """The fitted tree as a genuine scikit-learn ``DecisionTreeClassifier``."""
        check_is_fitted(self)
        return to_sklearn(self.tree_)

    def _check_rows(self, X: Any) -> Table:
        check_is_fitted(self)
        table = Table.read(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return table

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


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


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Weights as float64, or None where every row counts once."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must hold one number a row, shape ({n_rows},), got {weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and not negative: mend or drop such rows.")
    if not weights.any():
        raise ValueError("sample_weight is zero for every row: at least one row must count.")
    return None if (weights == 1).all() else weights


def _missing_labels(y: NDArray[Any]) -> NDArray[np.bool_]:
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype != object:
        return np.zeros(len(y), bool)
    return np.array([v is None or v != v or type(v).__name__ == "NAType" for v in y.tolist()])
