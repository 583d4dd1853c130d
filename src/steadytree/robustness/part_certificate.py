"""PartCertificate: certificates of rows in files or on a cluster, which add up to one of all."""

import functools
import operator
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.parts import Parts
from steadytree.data.table import Table, quote
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import Tree
from steadytree.robustness.certificate import Certificate
from steadytree.robustness.certify import certificate_of
from steadytree.robustness.perturbation import Perturbation

MOST_SHOWN = 1_000  # counterexamples that are kept as rows
MOST_ENTRIES = 200_000  # different distances; of more the last digits are rounded off
ROWS_AT_ONCE = 100_000
KEPT_BITS = 12.0  # of a distance that is rounded
KINDS = ("truth", "answer", "other")
COLUMNS = (*KINDS, "distance", "weight", "numbers")
ROWS = ("rows", "witness")  # of entries that are rows of their own, which come first


def certify_parts(model: Any, X: Any, y: Any, perturbation: Perturbation) -> Certificate:
    """The certificate of all rows; those with the same distance and answers are one entry.

    Shares are exact counts of rows. Beyond MOST_ENTRIES different distances each is rounded down to
    12 binary digits, so that no row counts as certified that is not.
    """
    if not isinstance(model, Tree | Scorecard):
        raise TypeError(
            "rows in files or of Dask are certified for trees and risk scores of this package "
            f"alone, and this is {type(model).__name__}: load the rows."
        )
    found: PartCertificate = Parts.of(X, y).add_up(
        _certify_part, model, perturbation, columns=list(model.space.names)
    )
    return found.whole


@dataclass(frozen=True, eq=False)
class PartCertificate:
    """A certificate of some rows, how many there are, and the categories that are not known."""

    certificate: Certificate
    n_rows: int
    strange: "Counter[tuple[str, str]]"  # rows by column and category
    texts: dict[tuple[int, int], str]  # by number of the row and column, of rows that are kept
    is_rounded: bool = False

    def __add__(self, other: "PartCertificate") -> "PartCertificate":
        one, two = _entries(self.certificate), _entries(other.certificate)
        two["numbers"] = np.where(two["numbers"] >= 0, two["numbers"] + self.n_rows, -1)
        merged, rounded = _merge({name: np.concatenate([one[name], two[name]]) for name in one})
        later = {(row + self.n_rows, j): text for (row, j), text in other.texts.items()}
        notes = tuple(dict.fromkeys(self.certificate.notes + other.certificate.notes))
        return PartCertificate(
            replace(self.certificate, **merged, notes=notes),
            self.n_rows + other.n_rows,
            self.strange + other.strange,
            _kept(self.texts | later, merged),
            rounded or self.is_rounded or other.is_rounded,
        )

    @property
    def whole(self) -> Certificate:
        """The certificate with its notes."""
        found = self.certificate
        notes = list(found.notes)
        for name in dict.fromkeys(column for column, _ in self.strange):
            texts = {text: n for (column, text), n in self.strange.items() if column == name}
            notes.append(
                f"column {name!r}: the model does not know {quote(sorted(texts))} "
                f"({sum(texts.values())} row(s)). Such a category goes where missing values go, "
                "and may turn into any known one at the cost of a changed category."
            )
        if self.is_rounded:
            notes.append("distances are rounded down to 12 binary digits.")
        numbers: Any = found.numbers
        entry_of = {number: k for k, number in enumerate(numbers.tolist())}
        unknown = {(entry_of[row], j): text for (row, j), text in self.texts.items()}
        return replace(found, notes=tuple(notes), unknown=unknown)


def _certify_part(X: Any, y: Any, model: Any, noise: Perturbation) -> PartCertificate:
    """The certificates of some rows at a time, as each takes several times the rows' memory."""
    table, labels = Table.read(X), np.asarray(y)
    ends = [*range(ROWS_AT_ONCE, table.n_rows, ROWS_AT_ONCE), table.n_rows]
    pieces = [np.arange(max(end - 1, 0) // ROWS_AT_ONCE * ROWS_AT_ONCE, end) for end in ends]
    found = (_certify_rows(table.take(rows), labels[rows], model, noise) for rows in pieces)
    return functools.reduce(operator.add, found)


def _certify_rows(X: Table, y: Any, model: Any, noise: Perturbation) -> PartCertificate:
    found = certificate_of(model, X, y, noise)
    names, n_rows = model.space.names, len(found.truth)
    strange = Counter((names[j], text) for (_, j), text in found.unknown.items())
    notes = tuple(note for note in found.notes if "does not know" not in note)
    entries, rounded = _merge({**_entries(found), "numbers": np.arange(n_rows)})
    kept = replace(found, **entries, notes=notes, unknown={})
    return PartCertificate(kept, n_rows, strange, _kept(dict(found.unknown), entries), rounded)


def _kept(texts: dict[tuple[int, int], str], entries: dict[str, Any]) -> dict[tuple[int, int], str]:
    """The texts of rows that are entries of their own."""
    numbers = set(entries["numbers"].tolist())
    return {cell: text for cell, text in texts.items() if cell[0] in numbers}


def _entries(found: Certificate) -> dict[str, Any]:
    return {name: getattr(found, name) for name in (*COLUMNS, *ROWS)}


def _merge(entries: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The rows with the least distances as they are, all others by distance and answers."""
    own = np.flatnonzero(entries["numbers"] >= 0)  # whose rows and witnesses are there
    right = (entries["truth"] == entries["answer"]) & np.isfinite(entries["distance"])
    single = np.flatnonzero(right[own])
    order = np.lexsort((entries["numbers"][own][single], entries["distance"][own][single]))
    shown = np.sort(single[order[:MOST_SHOWN]])
    rest = np.setdiff1d(np.arange(len(right)), own[shown], assume_unique=True)
    distance, rounded = entries["distance"][rest], False
    keys = [entries[name][rest] for name in KINDS]
    first, index = _distinct(distance, *keys)
    if len(first) > MOST_ENTRIES:
        distance, rounded = _rounded_down(distance), True
        first, index = _distinct(distance, *keys)
    merged = {
        **{name: entries[name][rest][first] for name in KINDS},
        "distance": distance[first],
        "weight": np.bincount(index, entries["weight"][rest], len(first)),
        "numbers": np.full(len(first), -1),
    }
    joined = {name: np.concatenate([entries[name][own[shown]], merged[name]]) for name in COLUMNS}
    return joined | {name: entries[name][shown] for name in ROWS}, rounded


def _distinct(*keys: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An entry of each kind, and the kind of each entry; ordered by the last key first."""
    order = np.lexsort(keys)
    is_new = np.zeros(len(order), bool)
    is_new[:1] = True
    for key in keys:
        is_new[1:] |= key[order][1:] != key[order][:-1]
    index = np.empty(len(order), np.int64)
    index[order] = np.cumsum(is_new) - 1
    return order[is_new], index


def _rounded_down(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    part, power = np.frexp(distance)
    with np.errstate(invalid="ignore"):
        rounded = np.ldexp(np.floor(part * 2**KEPT_BITS) / 2**KEPT_BITS, power)
    return np.where(np.isfinite(distance), rounded, distance)
