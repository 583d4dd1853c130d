"""Screening: figures of a model and its rows that findings are made from and no section has."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from steadytree._base.intervals import wilson_interval
from steadytree.data.table import Table
from steadytree.metrics.accuracy import area_under_curve
from steadytree.metrics.drift import psi
from steadytree.models.black_box import BlackBox
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import Tree
from steadytree.reporting.formatting import label_text, one_line, plain
from steadytree.reporting.options import ReportOptions
from steadytree.robustness.certify import used_columns
from steadytree.robustness.perturbation import NOISE_SHARE

# words of names of columns that law or custom protects in many places
PROTECTED = {
    "age", "birth", "birthday", "birthdate", "dob", "born",
    "sex", "gender", "pregnant", "pregnancy", "orientation",
    "race", "ethnic", "ethnicity", "skin", "nationality", "citizenship", "citizen", "native",
    "religion", "religious", "faith",
    "disability", "disabled", "handicap",
    "marital", "married",
}  # fmt: skip
AGES = (25, 45, 65)  # between the groups of a column of ages
MOST_VALUES = 10  # different values of a column that groups are made of
FEWEST = 50  # rows to screen columns for leakage with, and for drift
TINY = 5  # training rows; a leaf of fewer is tiny
FEW_OF_CLASS = 10  # rows of a class whose recall is looked at
N_BINS = 10
UNLIKELY = 0.01  # how often drift is seen where there is none


def screen(
    fitted: Tree | Scorecard | BlackBox,
    table: Table,
    truth: NDArray[np.int64],
    confusion: list[list[int]],
    options: ReportOptions,
    robustness: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """All figures, None where one cannot be measured."""
    if isinstance(fitted, BlackBox):
        return _screen_black_box(fitted, table, truth, np.array(confusion))
    own = table.select(fitted.space.names)
    used = used_columns(fitted)
    values = np.asarray(fitted.space.encode(own), np.float64)
    names = [one_line(name) for name in fitted.space.names]
    found = {
        "has_risks": isinstance(fitted, Tree) or fitted.gives_risks,
        "leaf_rows": _leaf_rows(fitted),
        "tiny_leaf_share": _tiny_leaf_share(fitted, values),
        "recall": _recall(fitted, np.array(confusion)),
        "robustness": _robustness_loss(robustness),
        "protected": [names[j] for j in used if looks_protected(names[j])],
        "leakage": _leakage(values, truth, used, names),
        "outliers": None,
        "drift": _drift(fitted, values, options, names),
    }
    if robustness is not None and not robustness["stated"]:
        numbers = [j for j in used if not fitted.space[j].is_categorical]
        found["outliers"] = _outliers(values, numbers, names)
    return dict(plain(found))


def _screen_black_box(
    box: BlackBox, table: Table, truth: NDArray[np.int64], confusion: NDArray[np.int64]
) -> dict[str, Any]:
    """What can be measured without knowing which columns the model uses: all count as used."""
    own = table if box.names is None else table.select(box.names)
    names = [one_line(name) for name in own.names or (f"x{j}" for j in range(own.n_columns))]
    used, values = list(range(own.n_columns)), np.empty((own.n_rows, own.n_columns))
    for j, column in enumerate(own.columns):
        texts = own.text(j).of_row if column.dtype == object else None
        values[:, j] = column if texts is None else np.where(texts < 0, np.nan, texts)
    nothing = dict.fromkeys(("leaf_rows", "tiny_leaf_share", "robustness", "outliers", "drift"))
    found = {
        "has_risks": True,
        "recall": _recall(box, confusion),
        "protected": [name for name in names if looks_protected(name)],
        "leakage": _leakage(values, truth, used, names),
    }
    return dict(plain(found | nothing))


# ---- protected columns ----
def looks_protected(name: str) -> bool:
    """Whether a word of a column's name is among those in `PROTECTED`."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return any(word.lower() in PROTECTED for word in words)


def protected_groups(table: Table, known: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Labels of the rows by columns that look protected; ages in four groups."""
    found = {}
    for name, column in zip(table.names or (), table.columns, strict=False):
        if name in known or not looks_protected(name):
            continue
        few = len({value for value in column.tolist() if value == value}) <= MOST_VALUES
        if few:
            found[name] = column
        elif column.dtype != object and "age" in re.findall(r"[a-z]+", name.lower()):
            found[name] = _age_groups(column)
    return {name: labels for name, labels in found.items() if len(set(map(str, labels))) > 1}


def _age_groups(ages: NDArray[Any]) -> NDArray[Any]:
    first, *others = AGES
    later = [f"{a} to {b - 1}" for a, b in zip(AGES[:-1], others, strict=True)]
    names = [f"under {first}", *later, f"{AGES[-1]} and above", None]
    group = np.where(np.isnan(ages), len(AGES) + 1, np.digitize(ages, AGES))
    return np.array(names, dtype=object)[group]


# ---- the model ----
def _leaf_rows(fitted: Tree | Scorecard) -> float | None:
    """Training rows of the smallest leaf."""
    if isinstance(fitted, Scorecard):
        return None
    return float(fitted.weight[fitted.is_leaf].min())


def _tiny_leaf_share(fitted: Tree | Scorecard, values: NDArray[np.float64]) -> float | None:
    """Share of the rows that end in leaves of very few training rows."""
    if isinstance(fitted, Scorecard):
        return None
    return float((fitted.weight[fitted.apply_encoded(values)] < TINY).mean())


def _recall(
    fitted: Tree | Scorecard | BlackBox, confusion: NDArray[np.int64]
) -> dict[str, Any] | None:
    """The class with the lowest recall, of those with enough rows."""
    rows, right = confusion.sum(axis=1), np.diag(confusion)
    enough = np.flatnonzero(rows >= FEW_OF_CLASS)
    if not len(enough):
        return None
    worst = int(enough[np.argmin(right[enough] / rows[enough])])
    n_right, n_rows = int(right[worst]), int(rows[worst])
    return {
        "label": label_text(fitted.classes.tolist()[worst]),
        "value": n_right / n_rows,
        "interval": wilson_interval(n_right, n_rows),
        "n_rows": n_rows,
    }


def _robustness_loss(robustness: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Accuracy lost under the worst perturbation, and the column that changes most often in it."""
    listed = {one["name"]: one["value"] for one in (robustness or {}).get("readings", ())}
    if robustness is None or "worst-case accuracy" not in listed:
        return None
    start, worst = listed["accuracy"], listed["worst-case accuracy"]
    return {
        "value": start - worst,
        "accuracy": start,
        "worst": worst,
        "columns": robustness["attacked_columns"],
    }


# ---- the columns ----
def _leakage(
    values: NDArray[np.float64], truth: NDArray[np.int64], used: list[int], names: list[str]
) -> dict[str, Any] | None:
    """The column that the model uses with the greatest AUC by itself."""
    n_classes = len(np.unique(truth))
    if len(truth) < FEWEST or n_classes < 2 or not used:
        return None
    _, classes = np.unique(truth, return_inverse=True)
    areas = [_single_auc(values[:, j], classes) for j in used]
    best = int(np.argmax(areas))
    return {"column": names[used[best]], "value": areas[best]}


def _single_auc(x: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """AUC of the class rates in bins of a column, or of its order where that is greater."""
    n_classes = int(truth.max()) + 1
    bins = _bins(x, x, max(min(len(x) // 30, 2 * N_BINS), 2))
    rates = np.zeros((int(bins.max()) + 1, n_classes))
    np.add.at(rates, (bins, truth), 1.0)
    rates /= np.maximum(rates.sum(axis=1, keepdims=True), 1.0)
    binned = area_under_curve(rates[bins], truth) or 0.5
    if n_classes > 2 or np.isnan(x).any():
        return binned
    ordered = area_under_curve(np.stack([-x, x], axis=1), truth)
    # 0 where the column falls as the class rises, without any exception
    return binned if ordered is None else max(binned, ordered, 1.0 - ordered)


def _bins(x: NDArray[np.float64], known: NDArray[np.float64], n_bins: int) -> NDArray[np.int64]:
    """Bins with about equally many known values; few different values have one each."""
    there = known[~np.isnan(known)]
    distinct = np.unique(there)
    if len(distinct) > n_bins:
        distinct = np.unique(np.quantile(there, np.linspace(0, 1, n_bins + 1)[1:]))
    bins = np.searchsorted(distinct, np.nan_to_num(x))
    return np.where(np.isnan(x), len(distinct) + 1, bins).astype(np.int64)


def _outliers(
    values: NDArray[np.float64], used: list[int], names: list[str]
) -> dict[str, Any] | None:
    """The column whose range is widest against the spread of most of its values."""
    found = []
    for j in used:
        x = values[~np.isnan(values[:, j]), j]
        spread = float(np.subtract(*np.quantile(x, [0.95, 0.05]))) if len(x) else 0.0
        if spread > 0:
            found.append((NOISE_SHARE * float(np.ptp(x)) / spread, names[j]))
    value, name = max(found, default=(None, ""))
    return None if value is None else {"column": name, "value": value}


# ---- drift ----
def _drift(
    fitted: Tree | Scorecard, values: NDArray[np.float64], options: ReportOptions, names: list[str]
) -> dict[str, Any] | None:
    """The greatest population stability index of leaves or bands, and of columns with `train`."""
    if options.origin.seen or len(values) < FEWEST:
        return None
    pairs = list(_profile(fitted, values, names))
    if options.train is not None and options.train.n_rows >= FEWEST:
        earlier = np.asarray(fitted.space.encode(options.train.table), np.float64)
        for j in used_columns(fitted):
            old, new = (_bins(x[:, j], earlier[:, j], N_BINS) for x in (earlier, values))
            size = int(max(old.max(), new.max())) + 1
            counts = np.bincount(old, minlength=size), np.bincount(new, minlength=size)
            pairs.append((names[j], *counts))
    found = [(*_stability_index(old, new, len(pairs)), what) for what, old, new in pairs]
    if not found:
        return None
    value, low, what = max(found)
    return {"value": value, "low": low, "what": what}


def _profile(
    fitted: Tree | Scorecard, values: NDArray[np.float64], names: list[str]
) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    """What the model itself keeps of its training rows, beside the same of these rows."""
    if isinstance(fitted, Tree):
        if fitted.weight[0] >= FEWEST:
            counts = np.bincount(fitted.apply_encoded(values), minlength=fitted.n_nodes)
            yield "its leaves", fitted.weight[fitted.is_leaf], counts[fitted.is_leaf]
        return
    for variable, earlier in zip(fitted.variables, fitted.profile, strict=False):
        bands = variable.band_of(values[:, variable.feature])
        counts = np.bincount(bands, minlength=len(variable.bands))
        yield names[variable.feature], earlier.sum(axis=1), counts


def _stability_index(old: NDArray[Any], new: NDArray[Any], n_compared: int) -> tuple[float, float]:
    """The index, and how much of it is more than chance explains.

    Without drift the index is about chi-squared with one degree of freedom less than bins, times
    ``1 / n_old + 1 / n_new``.
    """
    free = max(int(((old + new) > 0).sum()) - 1, 1)
    chance = float(chdtri(free, UNLIKELY / n_compared)) * (1 / old.sum() + 1 / new.sum())
    index = psi(old, new)
    return index, index - chance
