"""Accuracy of a model, beside that of always predicting the most frequent class."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.intervals import wilson_interval
from steadytree._base.notebook import Shown
from steadytree.data.labels import UNKNOWN, label_array, match_labels, missing_labels
from steadytree.data.parts import Parts, is_parted
from steadytree.data.table import Table, check_dense, quote, value_text
from steadytree.metrics.measurement import Measurement
from steadytree.models.black_box import BlackBox, as_model
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import Tree

MOST_GROUPS = 50
MISSING_NAME = "(missing)"


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy(Shown):
    """Accuracy of a tree on given rows."""

    labels: tuple[Any, ...]  # the classes, in order of the rows and columns of `confusion`
    # (n_classes, n_classes): rows by true class (down) and prediction (across)
    confusion: NDArray[np.int64]
    # area under the ROC curve, the mean over classes against the rest where there are more
    # than two; None where a class has no rows
    auc: float | None
    level: float = 0.95  # confidence level of the interval

    @property
    def n_rows(self) -> int:
        return int(self.confusion.sum())

    @property
    def n_right(self) -> int:
        return int(np.trace(self.confusion))

    @property
    def accuracy(self) -> float:
        return self.n_right / self.n_rows

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson interval of the accuracy."""
        return wilson_interval(self.n_right, self.n_rows, self.level)

    @property
    def baseline_label(self) -> Any:
        """The most frequent class: the best prediction without any split."""
        return self.labels[int(self.confusion.sum(axis=1).argmax())]

    @property
    def baseline(self) -> float:
        return int(self.confusion.sum(axis=1).max()) / self.n_rows

    @property
    def balanced(self) -> float:
        """Mean recall over the classes that have rows."""
        rows = self.confusion.sum(axis=1)
        there = rows > 0
        return float((np.diag(self.confusion)[there] / rows[there]).mean())

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        always = f"accuracy of always predicting {str(self.baseline_label)!r}"
        balanced = "mean recall over the classes"
        measurements = [
            Measurement(
                "accuracy", self.accuracy, "share of rows predicted correctly", self.interval
            ),
            Measurement("majority baseline", self.baseline, always),
            Measurement("balanced accuracy", self.balanced, balanced),
        ]
        if self.auc is not None:
            pair = "probability that a row of a class is ranked above one of another class"
            measurements.append(Measurement("AUC", self.auc, pair))
        return tuple(measurements)


def accuracy(model: Any, X: Any, y: Any, level: float = 0.95) -> Accuracy:
    """How often a tree is right, with an interval, the majority baseline and the confusion.

    X may be a Parquet or Arrow file or a folder of such, y then being the name of the target, or
    both may be Dask collections: the rows are counted part by part, and never all in memory.
    """
    return summarise_answers(answer_rows(model, X, y), level)


@dataclass(frozen=True, eq=False)
class Answers:
    """Predictions of a tree or scorecard beside the true classes."""

    classes: NDArray[Any]
    truth: NDArray[np.int64]  # (n_rows,): indices into the classes
    answer: NDArray[np.int64]
    # (n_rows, n_classes): predicted probability of each class
    shares: NDArray[np.float64]
    # where the rows lie in parts, an entry stands for all rows with the same answer and truth in
    # the same group: how many these are, and the group's name
    counts: NDArray[np.int64] | None = None
    groups: Any = None

    @property
    def weights(self) -> NDArray[np.int64]:
        """Rows that each entry stands for."""
        return np.ones(len(self.truth), np.int64) if self.counts is None else self.counts

    def with_event(self, positive: Any) -> "Answers":
        """The same predictions with the event as the second of two classes.

        None leaves the classes in their order; so do more than two classes.
        """
        event = event_of_two(self.classes, positive)
        if event is None or event == self.classes.tolist()[1]:
            return self
        return replace(
            self,
            classes=self.classes[::-1],
            truth=1 - self.truth,
            answer=1 - self.answer,
            shares=self.shares[:, ::-1],
        )


def event_of_two(classes: NDArray[Any], positive: Any) -> Any:
    """The named one of two classes; None where none is named or there are more."""
    if positive is None:
        return None
    index = event_index(classes, positive)
    return classes.tolist()[index] if len(classes) == 2 else None


def event_index(classes: NDArray[Any], positive: Any = None) -> int:
    """Index of the class that is the event: the second of two, or the one that is named."""
    known = classes.tolist()
    if positive is None:
        if len(known) == 2:
            return 1
        raise ValueError(
            f"positive must name one of the classes {quote(known)}: there are more than two."
        )
    index = match_labels([positive], known)[0]
    if index == UNKNOWN:
        raise ValueError(f"positive must be one of the classes {quote(known)}, got {positive!r}.")
    return int(index)


def summarise_answers(found: Answers, level: float = 0.95) -> Accuracy:
    """Accuracy of predictions, whatever made them."""
    n = len(found.classes)
    pairs = found.truth * n + found.answer
    # whole numbers below 2^53 add up exactly as floats
    confusion = np.bincount(pairs, found.weights, n * n).reshape(n, n).astype(np.int64)
    area = area_under_curve(found.shares, found.truth, found.weights)
    return Accuracy(tuple(found.classes.tolist()), confusion, area, level)


def answer_rows(model: Any, X: Any, y: Any, groups: str | None = None) -> Answers:
    """Predict rows whose classes are known, by a tree, a scorecard or a black box.

    Rows in parts may be told apart by the column `groups`.
    """
    searched = hasattr(model, "steps") or hasattr(model, "best_estimator_")
    # a pipeline predicts by itself, which is quicker than mapping its tree back to raw columns
    fitted = BlackBox(model, "") if searched else as_model(model)
    if is_parted(X):
        return _count_answers(fitted, X, y, groups)
    classes, truth = fitted.classes, label_indices(fitted.classes, y)
    if isinstance(fitted, Tree):
        leaves = fitted.apply(X)
        answer, shares = fitted.label[leaves], fitted.value[leaves]
    elif isinstance(fitted, Scorecard):
        answer, shares = predict_scorecard(fitted, X)
    else:
        shares, answer = fitted.predict_proba(X), label_indices(classes, fitted.predict(X))
    if len(answer) != len(truth):
        raise ValueError(f"X has {len(answer)} rows, but y has {len(truth)} labels.")
    if len(truth) == 0:
        raise ValueError("X and y have no rows: at least one is needed.")
    return Answers(classes, truth, answer, shares)


def _count_answers(fitted: Any, X: Any, y: Any, groups: str | None) -> Answers:
    """Answers of rows in parts, those that are alike together."""
    if not isinstance(fitted, Tree | Scorecard):
        raise TypeError(
            "rows in files or of Dask are counted for trees and risk scores alone, and this is "
            f"{type(fitted).__name__}: load the rows."
        )
    wanted = dict.fromkeys([*fitted.space.names, *([] if groups is None else [groups])])
    total = Parts.of(X, y).add_up(_answers_of_part, fitted, groups, columns=list(wanted))
    if not total:
        raise ValueError("X and y have no rows: at least one is needed.")
    listed = sorted(total)
    truth, answer = np.array([key[:2] for key in listed], np.int64).T
    names, counts = np.array([key[2] for key in listed]), [total[key] for key in listed]
    shares = np.array([key[3:] for key in listed])
    return Answers(fitted.classes, truth, answer, shares, np.array(counts), names)


def _answers_of_part(X: Any, y: Any, fitted: Any, groups: str | None) -> "Counter[Any]":
    """How many rows have each (truth, answer, group, shares)."""
    table = Table.read(X)
    truth, names = label_indices(fitted.classes, y), np.zeros(table.n_rows, np.int64)
    if len(truth) != table.n_rows:
        raise ValueError(f"X has {table.n_rows} rows, but y has {len(truth)} labels.")
    listed: Any = [""]
    if groups is not None:
        listed, names = np.unique(
            group_names(table.select([groups]).columns[0]), return_inverse=True
        )
        if len(listed) > MOST_GROUPS:
            raise too_many_groups(groups, len(listed))
    if isinstance(fitted, Tree):
        leaves, kind = np.unique(fitted.apply(table), return_inverse=True)
        kinds = np.column_stack([fitted.label[leaves], fitted.value[leaves]])
    else:
        both = np.column_stack(predict_scorecard(fitted, table))
        kinds, kind = np.unique(both, axis=0, return_inverse=True)
    size = len(fitted.classes), len(listed), max(len(kinds), 1)
    found, counts = np.unique(
        np.ravel_multi_index((truth, names.ravel(), kind.ravel()), size), return_counts=True
    )
    total: Counter[Any] = Counter()
    for t, g, k, n in zip(*np.unravel_index(found, size), counts.tolist(), strict=True):
        answer, *shares = kinds[k].tolist()
        total[int(t), int(answer), str(listed[g]), *shares] += n
    return total


def predict_scorecard(
    scorecard: Scorecard, X: Any
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Class of each row by its index, and the probability of each class."""
    values = np.asarray(scorecard.space.encode(X), np.float64)
    answer = scorecard.answer_encoded(values)
    shares = np.eye(len(scorecard.classes))[answer]
    if scorecard.gives_risks:
        totals = scorecard.holds_encoded(values) @ scorecard.points + scorecard.offset
        shares = scorecard.risk(totals[:, 0] if scorecard.is_binary else totals)
    return answer, shares


def label_indices(classes: NDArray[Any], y: Any) -> NDArray[np.int64]:
    """Index of each label in the classes; labels are compared as text if none fits as it is."""
    labels, inverse = distinct_labels(y)
    known = classes.tolist()
    indices = match_labels(labels, known)
    unknown = [str(label) for label, k in zip(labels, indices, strict=True) if k == UNKNOWN]
    if unknown:
        raise ValueError(
            f"y holds the label(s) {quote(sorted(unknown))}, but the model knows {quote(known)}: "
            "leave those rows out, or fit a tree on data that has them."
        )
    return np.array(indices, dtype=np.int64)[inverse]


def area_under_curve(
    scores: NDArray[np.float64], truth: NDArray[np.int64], counts: NDArray[np.int64] | None = None
) -> float | None:
    """Area under the ROC curve of class shares (n, n_classes); None where a class has no rows.

    An entry counts as `counts` rows. Above two classes it is the mean of each against the rest.
    """
    n_classes = scores.shape[1]
    if n_classes < 2 or (np.bincount(truth, minlength=n_classes) == 0).any():
        return None
    labels = [1] if n_classes == 2 else range(n_classes)
    return float(np.mean([roc_area(scores[:, k], truth == k, counts) for k in labels]))


def roc_area(
    scores: NDArray[Any], event: NDArray[np.bool_], weights: NDArray[Any] | None = None
) -> float:
    """Probability that a row with the event scores above one without it, ties counting half."""
    levels, index = np.unique(scores, return_inverse=True)
    own = np.ones(len(event)) if weights is None else weights
    with_event, without = (
        np.bincount(index.ravel(), own * rows, len(levels)) for rows in (event, ~event)
    )
    below = np.cumsum(without) - without / 2
    return float(with_event @ below / (with_event.sum() * without.sum()))


def group_names(groups: Any) -> NDArray[Any]:
    """Labels of groups as text; whole numbers without a point, missing values by a name."""
    if hasattr(groups, "columns"):
        table = Table.read(groups)
        if table.n_columns != 1:
            raise ValueError(f"groups must be one column, got {quote(table.names or ())}.")
        groups = table.columns[0]
    values = np.asarray(groups, dtype=object)
    pairs = zip(values.tolist(), missing_labels(values).tolist(), strict=True)
    return np.array([MISSING_NAME if missing else value_text(v) for v, missing in pairs])


def too_many_groups(column: str, n: int) -> ValueError:
    """What is said of a column with too many values for a table of groups."""
    return ValueError(
        f"{column!r} holds {n:,} different values, and a table has room for {MOST_GROUPS} groups: "
        "merge values first."
    )


def distinct_labels(y: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Labels that occur, as plain Python values, and which of them each row has.

    Missing ones are refused.
    """
    check_dense(y, "y")
    column = Table.read(y) if hasattr(y, "columns") else None
    values = label_array(column.columns[0] if column else y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"y must hold one label a row, got an array of shape {values.shape}.")
    missing = np.flatnonzero(missing_labels(values))
    if len(missing):
        raise ValueError(
            f"y lacks the label of {len(missing)} row(s), the first being row {missing[0]}: "
            "drop those rows or label them."
        )
    if values.dtype.kind in "biuf":
        distinct, inverse = np.unique(values, return_inverse=True)
        return distinct.tolist(), inverse
    labels = values.tolist()
    index = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    return list(index), np.array([index[label] for label in labels], dtype=np.int64)
