"""Dataset: rows and labels, read once; samples, held-out rows, hashes, and fingerprints of rows."""

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steadytree._base.documents import Document, convert, parse_json
from steadytree._base.exceptions import TreeFileError
from steadytree._base.files import write_text_atomically
from steadytree.data.labels import label_array
from steadytree.data.table import Table, quote, value_text


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its labels and weights; whatever takes X also takes a Dataset made from it.

    The table is read when the Dataset is made. Subsets share what was read, so that refits on
    parts of a frame neither read it nor compare its text again.
    """

    table: Table
    labels: Any = None  # array, if labels were passed
    weights: NDArray[np.float64] | None = None
    given: Any = None  # X in the form it was passed, for estimators of other packages
    rows: NDArray[Any] | None = None  # the rows of `given` that the table holds; None is all

    @classmethod
    def of(cls, X: Any, y: Any = None) -> "Dataset":
        """Read X once; a Dataset is returned as it is."""
        if isinstance(X, Dataset):
            return X
        return cls(Table.read(X), None if y is None else label_array(y), given=X)

    @property
    def n_rows(self) -> int:
        return self.table.n_rows

    def take(self, kept: NDArray[np.bool_] | NDArray[np.int64]) -> "Dataset":
        """The rows that are flagged, or listed by number."""
        rows = np.arange(self.n_rows)[kept] if self.rows is None else self.rows[kept]
        labels = None if self.labels is None else self.labels[kept]
        weights = None if self.weights is None else self.weights[kept]
        return Dataset(self.table.take(kept), labels, weights, self.given, rows)

    def form_for(self, estimator: Any) -> Any:
        """X as an estimator's ``fit`` takes it: the Dataset for learners of this package.

        Any other estimator, also a subclass with a ``fit`` of its own, gets the form that the
        user passed.
        """
        fit = getattr(type(estimator), "fit", None)
        if getattr(fit, "__module__", "").partition(".")[0] == __name__.partition(".")[0]:
            return self
        return self.native

    @property
    def native(self) -> Any:
        """The rows in the form the user passed them in."""
        return self.given if self.rows is None else Table.pick(self.given, self.rows)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Rows for a slow measure: all of them, or as many as it can handle."""

    features: Dataset
    labels: NDArray[Any]
    n_all: int  # rows before sampling

    @classmethod
    def of(cls, X: Any, y: Any, most: int, seed: int = 0) -> "Sampled":
        """At most so many rows, with the classes in the same proportions."""
        data = Dataset.of(X, y)
        labels, n = label_array(y), data.n_rows
        if n <= most:
            return cls(data, labels, n)
        rng = np.random.default_rng(seed)
        _, of_class = np.unique(labels, return_inverse=True)
        order = np.lexsort(
            (rng.random(n), of_class)
        )  # classes one after the other, shuffled within
        rows = np.sort(order[np.linspace(0, n - 1, most).round().astype(np.int64)])
        return cls(data.take(rows), labels[rows], n)

    @property
    def note(self) -> str:
        """A sentence where rows were left out; empty where none was."""
        if len(self.labels) == self.n_all:
            return ""
        return f"Measured on {len(self.labels):,} of {self.n_all:,} rows, drawn by chance."


def hold_out(y: Any, share: float = 0.3, seed: int = 0) -> NDArray[np.bool_]:
    """Flag the rows to hold out, the given share of every class, drawn with a seed.

    A class keeps at least one row for fitting, so one that has a single row is never held out.
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share}.")
    _, labels = np.unique(label_array(y), return_inverse=True)
    rng = np.random.default_rng(seed)
    held = np.zeros(len(labels), bool)
    for label in range(int(labels.max(initial=-1)) + 1):
        rows = rng.permutation(np.flatnonzero(labels == label))
        held[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return held


def hash_data(X: Any, y: Any) -> str:
    """Hash of names, values and labels of a data set, in the order given."""
    table = Table.read(X)
    digest = hashlib.sha256(_json([table.names, table.n_rows]))
    for column in table.columns:
        if column.dtype == object:
            digest.update(_json(column.tolist()))
        else:
            numbers = np.array(column, dtype="<f8")
            numbers[np.isnan(numbers)] = np.nan  # one bit pattern for all that are missing
            digest.update((numbers + 0.0).tobytes())  # and none for minus zero
    digest.update(_json([str(label) for label in label_array(y).tolist()]))
    return digest.hexdigest()


def hash_file(path: str | PathLike[str]) -> str:
    """Hash of a file's bytes, as the command ``sha256sum`` prints it."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


FORMAT, VERSION = "steadytree-rows", 1
SALT_BYTES = DIGEST_BYTES = 16
ENDING = ".rows.json"


class Fingerprints(Document):
    """Keyed hashes of rows, sorted, so that the file tells nothing of their order."""

    format: str
    version: int
    salt: str
    columns: list[str]
    rows: list[str]


def fingerprint_path(tree: str | PathLike[str]) -> Path:
    """Where the fingerprints of the rows of a tree's file lie: q1.rows.json for q1.tree.json."""
    path = Path(tree)
    return path.with_name(path.name.removesuffix(".json").removesuffix(".tree") + ENDING)


def fingerprints_of(X: Any, y: Any) -> Fingerprints:
    """Keyed hashes (BLAKE2b) of rows with their labels; the key is drawn at random."""
    table, salt = Table.read(X), secrets.token_bytes(SALT_BYTES)
    rows = sorted(_hashes(table, _names(table), y, salt))
    return Fingerprints(FORMAT, VERSION, salt.hex(), list(_names(table)), rows)


def write_fingerprints(path: str | PathLike[str], X: Any, y: Any) -> None:
    """Write fingerprints of the rows that a tree was learned from.

    The key of the hashes is in the file: whoever has it can test a guess of a row, so keep it as
    safe as the rows.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_fingerprints(f"{folder}/q1.rows.json", [[1.0, 2.0], [3.0, 4.0]], ["no", "yes"])
    ...     known = read_fingerprints(f"{folder}/q1.rows.json")
    >>> rows_in(known, [[3.0, 4.0], [5.0, 6.0]], ["yes", "no"])
    array([ True, False])
    """
    write_text_atomically(path, json.dumps(msgspec.to_builtins(fingerprints_of(X, y))) + "\n")


def read_fingerprints(path: str | PathLike[str]) -> Fingerprints:
    """Read a file that `write_fingerprints` wrote."""
    try:
        found = convert(parse_json(Path(path).read_bytes()), Fingerprints)
        if (found.format, found.version) != (FORMAT, VERSION):
            raise ValueError(f"format {found.format!r} of version {found.version}")
        bytes.fromhex(found.salt)
    except ValueError as error:
        raise TreeFileError(
            f"{path}: not a file of fingerprints ({error}). Pass one that fit --fingerprints wrote."
        ) from None
    return found


def rows_in(known: Fingerprints, X: Any, y: Any) -> NDArray[np.bool_]:
    """Which rows are among the known ones, each as often as it is among them."""
    table = Table.read(X)
    absent = [name for name in known.columns if name not in _names(table)]
    if absent:
        raise ValueError(
            f"the fingerprints are of rows with {quote(absent)}, which these rows lack: "
            "pass these columns too, or do without the fingerprints (omit seen; a file *.rows.json "
            "beside the tree in use is read unless it is moved away)."
        )
    left, found = Counter(known.rows), []
    for digest in _hashes(table, known.columns, y, bytes.fromhex(known.salt)):
        found.append(left[digest] > 0)
        left[digest] -= 1
    return np.array(found, dtype=bool)


def _names(table: Table) -> tuple[str, ...]:
    return table.names or tuple(f"x{j}" for j in range(table.n_columns))


def _hashes(table: Table, names: Any, y: Any, salt: bytes) -> Iterator[str]:
    """A hash for each row; columns in the order of their names, which may differ between files."""
    position = {name: j for j, name in enumerate(_names(table))}
    columns = [[*map(_cell, table.columns[position[name]].tolist())] for name in sorted(names)]
    labels = [value_text(label) for label in np.asarray(y).tolist()]
    for cells in zip(*columns, labels, strict=True):
        # each cell with its length, so that no two rows give the same text
        text = "".join("-" if cell is None else f"{len(cell)}:{cell}" for cell in cells)
        yield hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES, key=salt).hexdigest()


def _cell(value: Any) -> str | None:
    return None if value is None or value != value else value_text(value)
