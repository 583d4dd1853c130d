"""TreeClassifierMixin: what every fitted tree learner can do."""

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted, validate_data

from steadytree._base.notebook import html_of
from steadytree._base.parallel import allow_threads
from steadytree.data.column import NUMBERED, row_numbers, stray_texts
from steadytree.data.dask import map_rows
from steadytree.data.dataset import Dataset
from steadytree.data.labels import check_labels
from steadytree.data.parts import Parts, RowSample
from steadytree.data.table import Table, check_form, check_not_masked, is_dask, is_read, quote
from steadytree.models.files import save
from steadytree.models.sklearn import to_sklearn
from steadytree.models.tree import Tree

LAYOUT = 2  # of the state that is pickled
LAYOUT_KEY = "_steadytree_layout"


class LearnerMixin:
    """Checks and tags of every learner; pickles carry their layout, and others are refused."""

    n_features_in_: int

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), LAYOUT_KEY: LAYOUT}  # type: ignore[dict-item]

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state.get(LAYOUT_KEY) != LAYOUT:
            raise ValueError(
                f"this pickle of {type(self).__name__} was made by another version of steadytree: "
                "fit the model again, and keep it with save()."
            )
        kept = {name: value for name, value in state.items() if name != LAYOUT_KEY}
        super().__setstate__(kept)  # type: ignore[misc]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """What a notebook shows: scikit-learn's diagram and, once fitted, the model's picture."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        picture = html_of(self) if "text/html" in bundle else None
        return bundle if picture is None else {**bundle, "text/html": bundle["text/html"] + picture}

    def _repr_html_(self) -> str | None:
        return self._repr_mimebundle_().get("text/html")

    def _check_rows(self, X: Any) -> Table:
        check_is_fitted(self)
        table = Table.read(X)
        if not is_read(X) and not is_bare(self, X, self.n_features_in_):
            validate_data(self, X, reset=False, skip_check_array=True)
        return table

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def is_bare(learner: Any, X: Any, n_features: int | None = None) -> bool:
    """Whether X is an array and names are of no concern: scikit-learn asks for them for long."""
    if type(X) is not np.ndarray or X.ndim != 2 or hasattr(learner, "feature_names_in_"):
        return False
    return n_features is None or X.shape[1] == n_features


class TreeClassifierMixin(LearnerMixin):
    """Predictions, files and exports of a learner whose ``fit`` sets ``tree_``."""

    tree_: Tree

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Index of the leaf each row falls in."""
        if is_dask(X):
            return self._map_rows(X, "apply", lambda tree: np.empty(0, np.int64))
        table = self._check_rows(X)  # which checks first that there is a tree
        with allow_threads(getattr(self, "n_jobs", None)):
            return self.tree_.apply(table)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class shares of the leaf each row falls in, in order of ``classes_``."""
        if is_dask(X):
            return self._map_rows(X, "predict_proba", lambda tree: tree.value[:0])
        leaves = self.apply(X)
        return self.tree_.value[leaves]

    def predict(self, X: Any) -> NDArray[Any]:
        """Most frequent class of the leaf each row falls in; a dask array where X is Dask's."""
        if is_dask(X):
            return self._map_rows(X, "predict", lambda tree: tree.classes[:0])
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

    def to_sklearn(self, X: Any = None) -> Any:
        """The fitted tree as a genuine scikit-learn ``DecisionTreeClassifier``.

        A warning counts the rows of `X`, where given, that rounding to float32 sends elsewhere.
        """
        check_is_fitted(self)
        return to_sklearn(self.tree_, X)

    def _map_rows(self, X: Any, method: str, sample: Callable[[Tree], NDArray[Any]]) -> Any:
        """A method's answers for a Dask collection, to be computed where its partitions lie."""
        check_is_fitted(self)
        return map_rows(getattr(self, method), X, sample(self.tree_))


def read_rows(learner: Any, X: Any, y: Any, sample_weight: Any = None) -> Dataset:
    """Rows to learn from, with labels and weights, checked; rows of weight 0 are left out."""
    check_form(X)
    if y is not None and is_bare(learner, X):
        learner.n_features_in_ = X.shape[1]
    elif not is_read(X):  # else its names are no concern of scikit-learn's
        X, y = validate_data(learner, X, y, skip_check_array=True)
    table = Table.read(X)
    table.check_not_empty()
    if not is_read(X):  # else whoever read it has said so
        warn_of_columns(table)
    weights = check_weights(sample_weight, table.n_rows)
    data = Dataset(table, check_labels(y, table.n_rows), weights)
    return data if weights is None or weights.all() else data.take(weights > 0)


def warn_of_columns(table: Table) -> None:
    """Warn of columns of numbers that a few texts turn into categories, and of row numbers.

    A column numbers the rows for sure where it has such a name, or is the index that pandas reads.
    """
    named = [name for name in table.names or () if NUMBERED.search(name)]
    for name in row_numbers(table.select(named)) if named else ():
        warnings.warn(
            f"column {name!r} numbers the rows and cannot predict new rows: leave it out.",
            stacklevel=_levels_inside(),
        )
    names = table.names or [f"x{j}" for j in range(table.n_columns)]
    for j, (name, column) in enumerate(zip(names, table.columns, strict=True)):
        if column.dtype != object or name in table.declared:
            continue
        text = table.text(j)
        if strays := stray_texts(text.values):
            is_stray = np.array([*(value in strays for value in text.values), False])
            warnings.warn(
                f"column {name!r} holds numbers, but also {quote(strays, most=3)} in "
                f"{is_stray[text.of_row].sum():,} of {table.n_rows:,} rows, so each number was "
                "read as a category: write numbers or NaN instead, as pandas.to_numeric(..., "
                "errors='coerce') does.",
                stacklevel=_levels_inside(),
            )


def warn_of_few_leaves(X: Any, n_classes: int, max_leaf_nodes: int) -> None:
    """Warn of a tree that cannot predict each class; a command's report shows it."""
    if n_classes > max_leaf_nodes and not is_read(X):
        warnings.warn(
            f"y has {n_classes} classes and max_leaf_nodes={max_leaf_nodes}, so "
            f"{n_classes - max_leaf_nodes} or more classes are never predicted: raise "
            "max_leaf_nodes.",
            stacklevel=_levels_inside(),
        )


def _levels_inside() -> int:
    """The stack level, for a warning of the caller, of the first line outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        level, frame = level + 1, frame.f_back
    return level


def _is_ours(module: str | None) -> bool:
    return module is not None and module.startswith("steadytree.")


def fit_sample(learner: Any, parts: Parts, sample_weight: Any, refused: Sequence[str]) -> RowSample:
    """Fit a learner to rows drawn from parts, or to all where they are few enough.

    Weights and the `refused` parameters need all rows in memory.
    """
    given = {"sample_weight": sample_weight, **{name: getattr(learner, name) for name in refused}}
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} needs the rows in memory: leave it out, or load them.")
    seed = int(check_random_state(learner.random_state).randint(np.iinfo(np.int32).max))
    rows = parts.sample(seed=seed)
    learner.fit(rows.table, rows.labels)
    learner.n_features_in_ = rows.table.n_columns
    if rows.table.names is not None:
        learner.feature_names_in_ = np.array(rows.table.names, dtype=object)
    return rows


def with_class_weight(data: Dataset, class_weight: Any) -> Dataset:
    """The rows with their weights multiplied by those of their classes.

    "balanced" gives all classes the same sum; weights of rows count as repeated rows in it.
    """
    if class_weight is None:
        return data
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    if isinstance(class_weight, str) and class_weight == "balanced":
        classes, index = np.unique(data.labels, return_inverse=True)
        factors = (weights.sum() / (len(classes) * np.bincount(index, weights)))[index]
    else:
        factors = compute_sample_weight(class_weight, data.labels)
    found = check_weights(weights * factors, data.n_rows)
    data = replace(data, weights=found)
    return data if found is None or found.all() else data.take(found > 0)


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Weights as float64, or None where every row counts once."""
    if sample_weight is None:
        return None
    check_not_masked(sample_weight, "sample_weight")
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        shapes = f"shape ({n_rows},), got {weights.shape}"
        raise ValueError(f"sample_weight must hold one number a row, {shapes}.")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(
            "sample_weight must be finite and not negative: correct or drop such rows."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for every row: at least one row must count.")
    return None if (weights == 1).all() else weights
