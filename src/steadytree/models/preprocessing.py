"""Preprocessing: from which raw column each column behind the steps of a pipeline comes."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from steadytree._base.exceptions import NotATreeError

# each moves all values of a column by a function that never falls, also when it is rounded
SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
ENCODERS = (OneHotEncoder, OrdinalEncoder)
RAW, SCALED, ENCODED, FLAG = "raw", "scaled", "encoded", "flag"
FOLLOWED = (
    "scalers (standard, min-max, max-abs, robust), SimpleImputer, OneHotEncoder, OrdinalEncoder, "
    "feature selection, passthrough and ColumnTransformer"
)


class Trace(NamedTuple):
    """The raw column that a column between two steps comes from, and what became of it."""

    raw: int
    form: str = RAW  # FLAG: whether the value is missing


class Preprocessing(NamedTuple):
    """The steps before the tree of a pipeline, as far as single columns can be followed."""

    steps: list[Any]
    names: tuple[str, ...] | None  # of the raw columns
    n_raw: int
    traces: list[Trace]  # of the columns that the tree sees
    categories: dict[int, list[Any]]  # of raw columns that are encoded
    nones: set[int]  # raw columns whose missing values are None, not nan


def follow(pipeline: Pipeline) -> Preprocessing:
    """Follow the columns through the steps; a step that mixes them is refused by name."""
    first = next(step for _, step in pipeline.steps if step not in (None, "passthrough"))
    given = getattr(first, "feature_names_in_", None)
    names = None if given is None else tuple(map(str, given))
    found = Preprocessing([], names, 0, [], {}, set())
    n_raw = first.n_features_in_
    traces = [Trace(j) for j in range(n_raw)]
    for name, step in pipeline.steps[:-1]:
        traces = _follow(name, step, traces, found)
    numbers = {trace.raw for trace in traces if trace.form in (RAW, SCALED)}
    both = sorted(numbers & set(found.categories))
    if both:
        column = repr(names[both[0]]) if names else str(both[0])
        raise not_a_tree(f"column {column} is used as a number and as a category")
    steps = [step for _, step in pipeline.steps[:-1]]
    return found._replace(steps=steps, n_raw=n_raw, traces=traces)


def not_a_tree(fault: str) -> NotATreeError:
    """The refusal of a pipeline whose tree cannot be mapped back."""
    return NotATreeError(
        f"a tree is needed, got Pipeline whose tree has no form over the raw columns: {fault}. "
        "Pass the tree in it, model[-1], with the columns it sees, model[:-1].transform(X)."
    )


def is_missing(value: Any) -> bool:
    """Whether a value of an encoder or imputer stands for a missing one."""
    return value is None or value != value or type(value).__name__ == "NAType"


def _follow(name: str, step: Any, traces: list[Trace], found: Preprocessing) -> list[Trace]:
    """Where the columns that one step puts out come from."""
    if step is None or step == "passthrough":
        return traces
    kind = type(step)
    if kind is Pipeline:
        for inner, part in step.steps:
            traces = _follow(f"{name}__{inner}", part, traces, found)
        return traces
    if kind is ColumnTransformer and not step.transformer_weights:
        return list(_follow_columns(name, step, traces, found))
    if kind in SCALERS:
        return [one._replace(form=SCALED) if one.form == RAW else one for one in traces]
    if kind is SimpleImputer and is_missing(step.missing_values):
        found.nones.update(one.raw for one in traces if step.missing_values is None)
        kept = [one for one, fill in zip(traces, step.statistics_, strict=True) if fill == fill]
        flags = [] if step.indicator_ is None else step.indicator_.features_
        return kept + [Trace(traces[k].raw, FLAG) for k in flags]
    if kind is MissingIndicator and is_missing(step.missing_values):
        return [Trace(traces[k].raw, FLAG) for k in step.features_]
    if kind in ENCODERS:
        return list(_follow_encoder(name, step, traces, found))
    if isinstance(step, SelectorMixin) and kind.__module__.startswith("sklearn."):
        return [traces[k] for k in step.get_support(indices=True)]
    if kind is FunctionTransformer and step.func is None:
        return traces
    raise _unfollowed(name, step, "cannot be followed back to single columns")


def _follow_columns(
    name: str, step: ColumnTransformer, traces: list[Trace], found: Preprocessing
) -> Iterator[Trace]:
    names = list(getattr(step, "feature_names_in_", ()))
    with warnings.catch_warnings():  # scikit-learn 1.6 warns of the numbers of the remainder
        warnings.simplefilter("ignore", FutureWarning)
        parts = [
            (inner, part, _indices(chosen, names, step.n_features_in_))
            for inner, part, chosen in step.transformers_
        ]
    for inner, part, indices in parts:
        if indices and not (isinstance(part, str) and part == "drop"):
            own = [traces[k] for k in indices]
            yield from _follow(f"{name}__{inner}", part, own, found)


def _indices(chosen: Any, names: list[str], n: int) -> list[int]:
    """Columns of a ColumnTransformer by number, however they are named."""
    if isinstance(chosen, slice):
        ends = (chosen.start, chosen.stop)
        start, stop = (names.index(end) if isinstance(end, str) else end for end in ends)
        stop = stop + 1 if isinstance(chosen.stop, str) else stop  # names include the last one
        return [*range(n)[slice(start, stop, chosen.step)]]
    listed: list[Any] = [chosen] if isinstance(chosen, str | int) else list(chosen)
    if listed and isinstance(listed[0], bool | np.bool_):
        return [k for k, flag in enumerate(listed) if flag]
    return [names.index(one) if isinstance(one, str) else int(one) % n for one in listed]


def _follow_encoder(
    name: str, step: Any, traces: list[Trace], found: Preprocessing
) -> Iterator[Trace]:
    """Columns of 0 and 1, or numbers of categories; the categories are added to those known."""
    for index, (trace, learned) in enumerate(zip(traces, step.categories_, strict=True)):
        if trace.form != RAW:
            raise _unfollowed(name, step, "encodes values that another step has changed")
        values = [value for value in learned.tolist() if not is_missing(value)]
        if not values or len({isinstance(value, str) for value in values}) > 1:
            raise _unfollowed(name, step, "has categories that are neither text nor numbers alone")
        found.nones.update({trace.raw} if None in learned.tolist() else ())
        known = found.categories.setdefault(trace.raw, [])
        known += [value for value in values if value not in known]
        n_columns = 1
        if isinstance(step, OneHotEncoder):
            rare = getattr(step, "infrequent_categories_", [None] * len(traces))[index]
            dropped = step.drop_idx_ is not None and step.drop_idx_[index] is not None
            n_columns = len(learned) - (0 if rare is None else len(rare) - 1) - dropped
        yield from [Trace(trace.raw, ENCODED)] * n_columns


def _unfollowed(name: str, step: Any, fault: str) -> NotATreeError:
    return NotATreeError(
        f"a tree is needed, got Pipeline whose step {name!r} ({type(step).__name__}) {fault}: "
        f"followed are {FOLLOWED}. Replace the step, or pass model[-1] with the columns it sees, "
        "model[:-1].transform(X)."
    )
