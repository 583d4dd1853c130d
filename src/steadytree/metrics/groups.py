"""Groups: accuracy of a model on parts of the rows, such as men and women."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.intervals import wilson_interval
from steadytree.data.table import Table, quote, value_text
from steadytree.metrics.accuracy import Answers, answer_rows
from steadytree.metrics.measurement import Measurement

MOST_GROUPS = 50
Rate = tuple[float, float, float]
FEW_ROWS = 30  # with fewer, rates are too uncertain to compare
MISSING_NAME = "(missing)"


@dataclass(frozen=True)
class Group:
    """A model on one group of rows."""

    name: str
    n_rows: int
    accuracy: float
    interval: tuple[float, float]  # Wilson's 95 % interval of the accuracy
    # with two classes: predicted rate and actual rate of the second
    answered: float | None = None
    true_share: float | None = None
    # with two classes: recall and false-positive rate of the second; None without such rows
    found: float | None = None
    false_alarm: float | None = None
    stated: float | None = None  # with two classes: mean predicted probability of the second

    @property
    def is_small(self) -> bool:
        return self.n_rows < FEW_ROWS


@dataclass(frozen=True)
class Gap:
    """The largest difference of one metric between two groups."""

    metric: str  # "accuracy", "recall", "false-positive rate" or "calibration"
    value: float
    # lower end of the difference's 95 % interval (Newcombe 1998), at a level that holds for all
    # pairs of groups together (Bonferroni); 0 or less where the difference may be chance
    low: float
    high_group: str
    low_group: str


@dataclass(frozen=True, eq=False)
class Groups:
    """A model on each of several groups."""

    column: str
    groups: tuple[Group, ...]  # largest first
    label: str  # the class that `answered` and `found` are about; empty above two classes

    @property
    def gap(self) -> float:
        """Greatest difference in accuracy between two groups of 30 rows or more."""
        shown = [one.accuracy for one in self.groups if not one.is_small]
        return max(shown) - min(shown) if shown else 0.0

    @property
    def worst(self) -> Group:
        """The group with the least accuracy, out of those of 30 rows or more where there are."""
        large = [one for one in self.groups if not one.is_small] or list(self.groups)
        return min(large, key=lambda one: one.accuracy)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The largest difference in each metric, of groups with 30 rows or more behind it."""
        found = (_largest_gap(metric, self.groups) for metric in METRICS)
        return tuple(gap for gap in found if gap is not None)

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        least = f"lowest accuracy of a group, {self.worst.name!r}"
        gap = "difference between the best and the worst group, of those of 30 rows or more"
        return (
            Measurement("least group accuracy", self.worst.accuracy, least, self.worst.interval),
            Measurement("group gap", self.gap, gap),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        groups = [
            asdict(one) | {"interval": list(one.interval), "is_small": one.is_small}
            for one in self.groups
        ]
        return {"column": self.column, "label": self.label, "gap": self.gap, "groups": groups} | {
            "gaps": [asdict(gap) for gap in self.gaps]
        }


def by_group(model: Any, X: Any, y: Any, groups: Any, column: str = "group") -> Groups:
    """Accuracy of a model in each of several groups of rows.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner or fitted scikit-learn tree
    X : array-like or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    groups : array-like of shape (n_rows,)
        A label for each row; at most 50 different ones.
    column : str, default="group"
        What the groups are called.

    Returns
    -------
    groups : Groups

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"])
    >>> found = by_group(model, [[0], [1], [1]], ["no", "yes", "no"], ["a", "a", "b"])
    >>> [(one.name, one.accuracy) for one in found.groups]
    [('a', 1.0), ('b', 0.0)]
    """
    found = answer_rows(model, X, y)
    names = group_names(groups)
    if len(names) != len(found.truth):
        raise ValueError(f"groups must name one a row, {len(found.truth)}, got {len(names)}.")
    listed, sizes = np.unique(names, return_counts=True)
    if len(listed) > MOST_GROUPS:
        raise ValueError(
            f"{column!r} holds {len(listed):,} different values, and a table has room for "
            f"{MOST_GROUPS} groups: put values together first."
        )
    order = np.argsort(-sizes, kind="stable")
    made = tuple(_group(str(listed[k]), names == listed[k], found) for k in order)
    return Groups(column, made, str(found.classes[1]) if len(found.classes) == 2 else "")


def group_names(groups: Any) -> NDArray[Any]:
    """Labels of groups as text; whole numbers without a point, missing values by a name."""
    if hasattr(groups, "columns"):
        table = Table.read(groups)
        if table.n_columns != 1:
            raise ValueError(f"groups must be one column, got {quote(table.names or ())}.")
        groups = table.columns[0]
    values = np.asarray(groups, dtype=object).tolist()
    return np.array([MISSING_NAME if v is None or v != v else value_text(v) for v in values])


def _group(name: str, own: NDArray[np.bool_], rows: Answers) -> Group:
    truth, answer, n = rows.truth[own], rows.answer[own], int(own.sum())
    n_correct = int((truth == answer).sum())
    shared = (name, n, n_correct / n, wilson_interval(n_correct, n))
    if len(rows.classes) != 2:
        return Group(*shared)
    predicted, true = answer == 1, truth == 1
    return Group(
        *shared,
        answered=float(predicted.mean()),
        true_share=float(true.mean()),
        found=float(predicted[true].mean()) if true.any() else None,
        false_alarm=float(predicted[~true].mean()) if (~true).any() else None,
        stated=float(rows.shares[own, 1].mean()),
    )


def _largest_gap(metric: str, groups: tuple[Group, ...]) -> Gap | None:
    rates = [(one.name, *METRICS[metric](one)) for one in groups]
    # a metric of more than two classes has no rate
    large = [(name, share, n, offset) for name, share, n, offset in rates if n >= FEW_ROWS]
    if len(large) < 2:
        return None
    level = 1 - 0.05 / (len(large) * (len(large) - 1) / 2)
    ranked = sorted(large, key=lambda one: one[1] - one[3])
    (low_name, p, n_p, off_p), (high_name, q, n_q, off_q) = ranked[0], ranked[-1]
    gap = (q - off_q) - (p - off_p)
    below = q - wilson_interval(q * n_q, n_q, level)[0]
    above = wilson_interval(p * n_p, n_p, level)[1] - p
    return Gap(metric, gap, float(gap - np.hypot(below, above)), high_name, low_name)


def _share(rate: float | None, n_rows: float, offset: float | None = 0.0) -> Rate:
    """A rate, the rows behind it, and what it is compared with; no rows where there is none."""
    if rate is None or offset is None:
        return 0.0, 0.0, 0.0
    return rate, n_rows, offset


# rate of a group, the rows it is a share of, and the rate that was predicted for them
METRICS: dict[str, Callable[[Group], Rate]] = {
    "accuracy": lambda one: _share(one.accuracy, one.n_rows),
    "recall": lambda one: _share(one.found, one.n_rows * (one.true_share or 0.0)),
    "false-positive rate": lambda one: _share(
        one.false_alarm, one.n_rows * (1.0 - (one.true_share or 0.0))
    ),
    "calibration": lambda one: _share(one.true_share, one.n_rows, one.stated),
}
