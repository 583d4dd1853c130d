"""Fingerprints: sha256 of data and files, the same whichever frame library read them."""

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from steadytree.data.labels import label_array
from steadytree.data.table import Table


def hash_data(X: Any, y: Any) -> str:
    """Hash of names, values and labels of a data set, in the order given.

    Examples
    --------
    >>> hash_data([[0.5], [1.5]], ["a", "b"])[:12]
    '8170eed43824'
    >>> hash_data([[0.5], [1.5]], ["a", "b"]) == hash_data([[0.5], [1.5]], ["b", "a"])
    False
    """
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
