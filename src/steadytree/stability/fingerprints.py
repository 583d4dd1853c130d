"""Fingerprints of rows: which rows a tree was learned from, in a file beside the tree's."""

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steadytree._base.documents import Document, convert, parse_json
from steadytree._base.exceptions import TreeFileError
from steadytree._base.files import write_text_atomically
from steadytree.data.table import Table, quote, value_text

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
            f"{path}: no file of fingerprints ({error}). Pass one that fit --fingerprints wrote."
        ) from None
    return found


def rows_in(known: Fingerprints, X: Any, y: Any) -> NDArray[np.bool_]:
    """Which rows are among the known ones, each as often as it is among them."""
    table = Table.read(X)
    absent = [name for name in known.columns if name not in _names(table)]
    if absent:
        raise ValueError(
            f"the fingerprints are of rows with {quote(absent)}, which these rows lack: "
            "pass the columns that the tree in use was learned from, or leave seen out."
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
    place = {name: j for j, name in enumerate(_names(table))}
    columns = [[*map(_cell, table.columns[place[name]].tolist())] for name in sorted(names)]
    labels = [value_text(label) for label in np.asarray(y).tolist()]
    for cells in zip(*columns, labels, strict=True):
        # each cell with its length, so that no two rows give the same text
        text = "".join("-" if cell is None else f"{len(cell)}:{cell}" for cell in cells)
        yield hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES, key=salt).hexdigest()


def _cell(value: Any) -> str | None:
    return None if value is None or value != value else value_text(value)
