"""BlackBox: a fitted classifier of which only the predictions are looked at."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from steadytree._base.exceptions import NotATreeError
from steadytree.data.table import FLAGS, Table, quote
from steadytree.models.pipeline import as_rows
from steadytree.models.scorecard import Scorecard, as_scorecard
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree

# marks that pandas reads as missing; all others are text to a model that was fitted with it
PANDAS_MISSING = frozenset(
    ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"]
    + ["<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
)
NUMBERED = re.compile(r"Column_\d+|f\d+")  # how other packages call columns that have no name


@dataclass(frozen=True, eq=False)
class BlackBox:
    """Any fitted classifier with ``predict_proba`` and ``classes_``: a forest, boosting, ...

    Parameters
    ----------
    estimator : fitted classifier
    reason : str
        Why it is not read as a tree.
    """

    estimator: Any
    reason: str

    @property
    def classes(self) -> NDArray[Any]:
        return np.asarray(self.estimator.classes_)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Columns that it was fitted to; None where it was fitted to an array."""
        given = getattr(self.estimator, "feature_names_in_", None)
        if given is None or all(NUMBERED.fullmatch(str(name)) for name in given):
            return None
        return tuple(map(str, given))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predicted probability of each class, in order of `classes`."""
        found = np.asarray(self.estimator.predict_proba(self._rows(X)), dtype=np.float64)
        if found.ndim != 2 or found.shape[1] != len(self.classes):
            raise ValueError(
                f"predict_proba of {type(self.estimator).__name__} returned an array of shape "
                f"{found.shape}, and one column for each of {len(self.classes)} classes is needed."
            )
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """The predicted class, as the classifier itself decides."""
        return np.asarray(self.estimator.predict(self._rows(X)))

    def _rows(self, X: Any) -> Any:
        """Rows as the classifier takes them; a table becomes a frame or an array."""
        X = getattr(X, "native", X)  # of a Dataset
        if not isinstance(X, Table):
            if self.names is None or not hasattr(X, "columns"):
                return X
            Table.read(X).select(self.names)  # refuses columns that are missing
            return X[list(self.names)]
        if self.names is not None:
            X = X.select(self.names)
        expected = getattr(self.estimator, "n_features_in_", X.n_columns)
        if X.n_columns != expected:
            raise ValueError(
                f"the model was fitted to {expected} columns without names, and the data have "
                f"{X.n_columns}: {quote(X.names or ())}. Leave the others out."
            )
        return as_rows(self.names, [_as_pandas(X, j) for j in range(X.n_columns)])


def _as_pandas(table: Table, j: int) -> NDArray[Any]:
    """A column as pandas reads it: text of a csv file with its spaces, bools, nan for missing."""
    column, given = table.columns[j], table.as_given.get(table.names[j]) if table.names else None
    if given is None and column.dtype != object:
        return column
    if given is None:
        return np.array([np.nan if value is None else value for value in column], dtype=object)
    cells = [np.nan if value in PANDAS_MISSING else value for value in given.values]
    known = [value for value in cells if isinstance(value, str)]
    if known and all(value in FLAGS for value in known):
        cells = [FLAGS[value] == 1 if isinstance(value, str) else value for value in cells]
        if len(known) == len(cells):
            return np.array(cells)[given.of_row]
    return np.array(cells, dtype=object)[given.of_row]


def as_model(model: Any, X: Any = None) -> Tree | Scorecard | BlackBox:
    """A model as it is measured: its tree or scorecard, else a black box.

    A pipeline whose tree, mapped back, decides some row of X differently stays a black box: the
    tree sends categories that were not in training where missing values go.
    """
    if isinstance(model, BlackBox):
        return model
    scorecard = as_scorecard(model)
    if scorecard is not None:
        return scorecard
    try:
        tree = as_tree(model, None if X is None else Table.read(X))
    except NotATreeError as error:
        return _black_box(model, str(error).removeprefix("a tree is needed, got "))
    if X is not None and tree.note and hasattr(model, "predict_proba") and model is not tree:
        box = BlackBox(model, f"the rows hold what its tree cannot tell apart. {tree.note}")
        if not np.array_equal(tree.predict_proba(X), box.predict_proba(X)):
            return box
    return tree


def _black_box(model: Any, reason: str) -> BlackBox:
    """Refuse what gives no probabilities of classes, in the words of the missing tree."""
    if isinstance(model, type) or not hasattr(model, "predict"):
        raise NotATreeError(f"a tree is needed, got {reason}")
    if hasattr(model, "fit"):
        check_is_fitted(model)
    if not hasattr(model, "predict_proba") or not hasattr(model, "classes_"):
        raise NotATreeError(
            f"a classifier with predict_proba and classes_ is needed, got {type(model).__name__}: "
            "pass a fitted classifier that gives probabilities."
        )
    return BlackBox(model, reason)
