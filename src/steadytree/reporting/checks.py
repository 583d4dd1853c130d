"""Checks of a data file: columns and targets that no tree can be fitted to, one line each."""

import difflib
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import FEW_TEXTS, MAX_CATEGORIES, are_dates, stray_texts
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table, quote
from steadytree.metrics.accuracy import MOST_GROUPS, group_names

MOST_NUMBERS = 50  # different whole numbers a target may hold
MOST_CLASSES = 200
IDENTIFIERS = "different texts for more than every second row, as identifiers and free text have"


def check_names(known: Sequence[str], names: Sequence[str], role: str) -> None:
    """Refuse unknown column names, and suggest similar ones."""
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
            hint = f"did you mean {quote(close)}?" if close else f"it has {quote(known)}."
            raise ValueError(f"the data have no column {name!r} for {role}: {hint}")


def check_features(table: Table) -> None:
    """Refuse columns that cannot be split, naming all that share a fault."""
    if table.n_columns == 0:
        raise ValueError("no column is left to learn from: keep at least one besides the target.")
    names = table.names or ()
    pairs = list(zip(names, table.columns, strict=True))
    faults = {
        "no name in the header": [name for name in names if name.startswith("(unnamed ")],
        "no value at all": [name for name, column in pairs if _n_values(column) == 0],
        "one value only": [name for name, column in pairs if _is_constant(column)],
        "infinite values": [
            name for name, column in pairs if column.dtype != object and np.isinf(column).any()
        ],
    }
    for fault, found in faults.items():
        _refuse(found, fault)
    check_texts(table)


def check_texts(table: Table) -> None:
    """Refuse columns of text that is hardly ever the same in two rows."""
    texts = {
        name: (set(column.tolist()) - {None}, _n_values(column))
        for name, column in zip(table.names or (), table.columns, strict=True)
        if column.dtype == object
    }
    many = [name for name, (found, _) in texts.items() if len(found) > MAX_CATEGORIES]
    unlike = [name for name, (found, n) in texts.items() if _is_identifier(len(found), n)]
    refused = dict.fromkeys([*many, *unlike])
    for name in refused:
        if strays := stray_texts(map(str, texts[name][0])):
            fault = f"numbers, but also text such as {strays[0]!r}"
            _refuse([name], fault, "correct the text or leave it empty")
    dates = [name for name in refused if are_dates(map(str, texts[name][0]))]
    _refuse(dates, "dates", "write numbers instead, such as days since a date")
    _refuse(many, f"more than {MAX_CATEGORIES:,} different texts")
    _refuse(unlike, IDENTIFIERS)


def check_categories(space: FeatureSpace, n_rows: int) -> None:
    """The same check for columns that were read block by block."""
    found = [column.name for column in space if _is_identifier(len(column.categories), n_rows)]
    _refuse(found, IDENTIFIERS)


def mixed_numbers(table: Table) -> dict[str, str]:
    """Columns of text that are numbers but for a few values, each with one of those."""
    found = {}
    for name, column in zip(table.names or (), table.columns, strict=True):
        if column.dtype == object:
            strays = stray_texts(str(value) for value in column.tolist() if value is not None)
            if strays:
                found[name] = strays[0]
    return found


def _is_identifier(n_texts: int, n_values: int) -> bool:
    return n_texts > max(FEW_TEXTS, n_values / 2)


def _refuse(found: Sequence[str], fault: str, advice: str = "") -> None:
    if found:
        has, them = ("has", "it") if len(found) == 1 else ("have", "them")
        columns = "column" if len(found) == 1 else "columns"
        raise ValueError(
            f"{columns} {quote(found)} {has} {fault}: {advice or f'correct {them}'}, or leave "
            f"{them} out with {drop_options(found)}"
        )


def drop_options(names: Sequence[str]) -> str:
    """Options that leave columns out."""
    return " ".join(f"--drop {shlex.quote(name)}" for name in names[:8])


def check_groups(table: Table, names: Sequence[str]) -> None:
    """Refuse columns that would divide the rows into too many groups."""
    for name in names:
        n_values = len(np.unique(group_names(table.select([name]).columns[0])))
        if n_values > MOST_GROUPS:
            raise ValueError(
                f"--by {name}: the column holds {n_values:,} different values, and a table has "
                f"room for {MOST_GROUPS} groups: merge values first."
            )


def labels_of(table: Table, target: str) -> NDArray[Any]:
    """The target's column as labels: whole numbers as int, all else as text."""
    column = table.columns[(table.names or ()).index(target)]
    missing = is_missing(column)
    if missing.any():
        raise ValueError(
            f"target {target!r} is missing in {missing.sum():,} of {len(missing):,} rows, first in "
            f"row {int(missing.argmax()) + 1}: fill in or delete those rows."
        )
    if column.dtype == object:
        return column.astype(str)
    if np.isinf(column).any():
        raise ValueError(f"target {target!r} holds infinity: correct it, or name another target.")
    is_integer = np.floor(column) == column
    if not is_integer.all():
        raise ValueError(
            f"target {target!r} holds continuous numbers such as {column[~is_integer][0]:g}, but a "
            "classifier needs classes: group them into classes, or name another target."
        )
    return column.astype(np.int64)


def check_classes(labels: NDArray[Any], target: str) -> None:
    """Refuse a target with a single class, or with too many."""
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(
            f"target {target!r} has only one class, {str(classes[0])!r}: add rows of another "
            "class, or name another target."
        )
    most = MOST_NUMBERS if labels.dtype.kind == "i" else MOST_CLASSES
    if len(classes) > most:
        raise ValueError(
            f"target {target!r} holds {len(classes):,} different values, which look like an amount "
            "or a name rather than classes: group them, or name another target."
        )


def is_missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each value of a column is missing."""
    if column.dtype == object:
        return np.array([value is None for value in column.tolist()], dtype=bool)
    return np.isnan(column)


def _n_values(column: NDArray[Any]) -> int:
    return len(column) - int(is_missing(column).sum())


def _is_constant(column: NDArray[Any]) -> bool:
    """Whether all rows have the same value; missing values make a split possible."""
    same = len(column) > 0 and bool((column == column[0]).all())
    return same and not is_missing(column).any()
