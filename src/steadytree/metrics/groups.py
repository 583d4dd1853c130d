"""Groups: accuracy of a model on parts of the rows, such as men and women."""

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from steadytree._base.intervals import difference_interval, wilson_interval
from steadytree._base.notebook import Shown
from steadytree.data.parts import is_parted
from steadytree.metrics.accuracy import (
    MOST_GROUPS,
    Answers,
    answer_rows,
    group_names,
    too_many_groups,
)
from steadytree.metrics.measurement import Measurement

FEW_ROWS = 30  # with fewer, rates are too uncertain to compare
FEW_CASES = 10  # least rows that a rate of a group is a share of, for it to be compared


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
    # with two classes: share of predictions of the second that are correct; None without any
    precision: float | None = None
    # with two classes: mean predicted probability of the second
    stated: float | None = None
    # of each rate the rows it counts and those it is a share of
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    # with two classes: actual rate less mean predicted probability, with its standard error
    residual: tuple[float, float] | None = None

    @property
    def is_small(self) -> bool:
        return self.n_rows < FEW_ROWS

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Wilson's 95 % interval of each rate that has rows."""
        return {name: wilson_interval(*one) for name, one in self.counts.items() if one[1]}


@dataclass(frozen=True)
class Gap:
    """The largest difference of a rate between two groups."""

    name: str
    value: float
    # for all pairs of groups together: 95 % that no pair's true difference is outside its own
    interval: tuple[float, float]
    low: str  # the group with the lowest rate
    high: str

    @property
    def is_clear(self) -> bool:
        """Whether the rows suffice to say that the groups differ."""
        return self.interval[0] > 0


@dataclass(frozen=True, eq=False, repr=False)
class Groups(Shown):
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

    @cached_property
    def gaps(self) -> tuple[Gap, ...]:
        """Differences of accuracy, recall, false-positive rate, precision and calibration.

        Groups of fewer than 30 rows are left out, and rates that are shares of fewer than 10.
        """
        large = [one for one in self.groups if not one.is_small]
        found = []
        for name in large[0].counts if large else ():
            rates = {
                one.name: one.counts[name] for one in large if one.counts[name][1] >= FEW_CASES
            }
            if len(rates) > 1:
                found.append(_gap(name, rates))
        if self.label and len(large) > 1:
            found.append(_calibration_gap(large))
        return tuple(found)

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        least = f"lowest accuracy of a group, {self.worst.name!r}"
        gap = "difference between the best and the worst group, of those of 30 rows or more"
        return (
            Measurement("least group accuracy", self.worst.accuracy, least, self.worst.interval),
            Measurement("group gap", self.gap, gap),
            *(_measurement(one) for one in self.gaps if one.name != "accuracy"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        groups = [
            asdict(one)
            | {"interval": list(one.interval), "is_small": one.is_small}
            | {"intervals": {name: list(ends) for name, ends in one.intervals.items()}}
            for one in self.groups
        ]
        gaps = [asdict(one) | {"is_clear": one.is_clear} for one in self.gaps]
        shown = {"column": self.column, "label": self.label, "gap": self.gap}
        return shown | {"gaps": gaps, "groups": groups}


def by_group(
    model: Any, X: Any, y: Any, groups: Any, column: str = "group", positive: Any = None
) -> Groups:
    """Accuracy of a model in each of several groups of rows.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner or fitted scikit-learn tree
    X : array-like or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        X and y may lie in files or on a cluster, as for `accuracy`.
    groups : array-like of shape (n_rows,)
        A label for each row; at most 50 different ones. Of rows in files or of Dask, the name of
        a column of X.
    column : str, default="group"
        What the groups are called.
    positive : optional
        Which of two classes recall and the other rates are of, instead of the second.

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
    if is_parted(X):
        if not isinstance(groups, str):
            raise TypeError(
                "groups must name a column where rows lie in files or are of Dask, got "
                f"{type(groups).__name__}."
            )
        found = answer_rows(model, X, y, groups)
        names, column = found.groups, groups if column == "group" else column
    else:
        found, names = answer_rows(model, X, y), group_names(groups)
    found = found.with_event(positive)
    if len(names) != len(found.truth):
        raise ValueError(
            f"groups must hold one label per row, {len(found.truth)} in all, got {len(names)}."
        )
    listed, index = np.unique(names, return_inverse=True)
    if len(listed) > MOST_GROUPS:
        raise too_many_groups(column, len(listed))
    sizes = np.bincount(index, found.weights)
    order = np.argsort(-sizes, kind="stable")
    made = tuple(_group(str(listed[k]), names == listed[k], found) for k in order)
    return Groups(column, made, str(found.classes[1]) if len(found.classes) == 2 else "")


def _group(name: str, own: NDArray[np.bool_], rows: Answers) -> Group:
    truth, answer, counts_of = rows.truth[own], rows.answer[own], rows.weights[own]
    n, n_correct = int(counts_of.sum()), int(counts_of[truth == answer].sum())
    shared = (name, n, n_correct / n, wilson_interval(n_correct, n))
    counts = {"accuracy": (n_correct, n)}
    if len(rows.classes) != 2:
        return Group(*shared, counts=counts)
    predicted, true, stated = answer == 1, truth == 1, rows.shares[own, 1]
    hits, n_true, n_predicted = (
        int(counts_of[x].sum()) for x in (predicted & true, true, predicted)
    )
    counts |= {
        "recall": (hits, n_true),
        "false-positive rate": (n_predicted - hits, n - n_true),
        "precision": (hits, n_predicted),
    }
    recall, false_positive, precision = (
        counts[name][0] / counts[name][1] if counts[name][1] else None
        for name in ("recall", "false-positive rate", "precision")
    )
    residual = true - stated
    mean = np.average(residual, weights=counts_of)
    spread = np.sqrt((counts_of * (residual - mean) ** 2).sum() / max(n - 1, 1))
    return Group(
        *shared,
        answered=n_predicted / n,
        true_share=n_true / n,
        found=recall,
        false_alarm=false_positive,
        precision=precision,
        stated=float(np.average(stated, weights=counts_of)),
        counts=counts,
        residual=(float(mean), float(spread / np.sqrt(n))),
    )


def _gap(name: str, rates: dict[str, tuple[int, int]]) -> Gap:
    """The largest difference; its interval allows for the number of pairs (Bonferroni)."""
    order = sorted(rates, key=lambda group: rates[group][0] / rates[group][1])
    low, high = order[0], order[-1]
    within = difference_interval(rates[high], rates[low], _level(len(rates)))
    value = rates[high][0] / rates[high][1] - rates[low][0] / rates[low][1]
    return Gap(name, value, within, low, high)


def _calibration_gap(groups: list[Group]) -> Gap:
    """The largest difference of actual rate less predicted probability."""
    pairs = {one.name: one.residual for one in groups if one.residual is not None}
    order = sorted(pairs, key=lambda group: pairs[group][0])
    low, high = order[0], order[-1]
    value = pairs[high][0] - pairs[low][0]
    half = float(ndtri((1 + _level(len(pairs))) / 2) * np.hypot(pairs[high][1], pairs[low][1]))
    return Gap("calibration", value, (value - half, value + half), low, high)


def _level(n_groups: int) -> float:
    return 1 - 0.05 / (n_groups * (n_groups - 1) / 2)


def _measurement(gap: Gap) -> Measurement:
    what = "actual rate less predicted probability" if gap.name == "calibration" else gap.name
    meaning = f"difference in {what} between {gap.high!r} and {gap.low!r}"
    return Measurement(f"{gap.name} gap", gap.value, meaning, gap.interval)
