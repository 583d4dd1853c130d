"""DataSet: features and labels with where they came from."""

import datetime
import hashlib
import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.blocks import ARROW_ENDINGS, DataFiles, list_files
from steadytree.data.dataset import hash_file, hold_out
from steadytree.data.parts import Parts
from steadytree.data.readers import column_names, is_csv, read_data
from steadytree.data.table import Table, quote
from steadytree.reporting import checks

PACKAGES = ("steadytree", "numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class Origin:
    """Where data and model came from, as far as the caller knows."""

    data: str = ""  # name of the data
    file_sha256: str = ""
    command: str = ""
    seen: bool | None = None  # whether the rows were used in fitting; None where not known

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def made_with(date: str | None = None) -> dict[str, Any]:
    """Date and versions."""
    return {
        "date": date or datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


Names = Sequence[str]
SHARE = 0.3  # of the rows is held out
MOST_ROWS = 1_000_000  # of a Parquet file that is read as a whole
FEWEST = 2  # rows to hold out


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows to fit and evaluate models on, and where they came from."""

    name: str
    target: str
    features: Table
    labels: NDArray[Any]  # of int or str
    file_sha256: str = ""  # empty where the rows came from no file
    groups: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # need not be features
    parts: Parts | None = None  # all rows, where these are a sample of them
    sampled: str = ""  # which sample that is

    @classmethod
    def open(
        cls,
        path: Path | None,
        target: str | None,
        drop: Names = (),
        by: Names = (),
        any_size: bool = False,
    ) -> "DataSet":
        """A file, or scikit-learn's breast cancer data where none is named."""
        if path is not None:
            return cls.read(path, target, drop, by, any_size)
        if target is not None:
            raise ValueError("--target names a column of no data: pass a csv or parquet file too.")
        from sklearn.datasets import load_breast_cancer

        bunch = load_breast_cancer()
        names = tuple(str(name) for name in bunch.feature_names)
        checks.check_names(names, drop, "--drop")
        checks.check_names(names, by, "--by")
        table = Table(names, bunch.data.T, {}, bunch.data)
        labels = np.asarray(bunch.target_names, dtype=str)[bunch.target]
        name, groups = "breast cancer (scikit-learn)", _groups(table, by)
        kept = [name for name in names if name not in drop]
        return cls(name, "diagnosis", table.select(kept), labels, "", groups)

    @classmethod
    def read(
        cls,
        path: Path,
        target: str | None,
        drop: Names = (),
        by: Names = (),
        any_size: bool = False,
    ) -> "DataSet":
        """Read a csv or parquet file; `target` names the column to predict.

        With `any_size` a folder of Parquet or Arrow files, an Arrow file and a Parquet file of more
        than a million rows are read part by part, and a sample of the rows is kept.
        """
        in_parts = any_size and (path.is_dir() or path.suffix.lower() in ARROW_ENDINGS)
        names = DataFiles.columns_of(path) if in_parts else column_names(path)
        if not target:
            raise ValueError(
                f"name the column to predict with --target NAME: the data have {quote(names)}."
            )
        checks.check_names(names, [target], "the target")
        checks.check_names(names, drop, "--drop")
        checks.check_names(names, by, "--by")
        if target in drop:
            raise ValueError(f"column {target!r} is both the target and dropped: choose one.")
        kept = [name for name in names if name != target and name not in drop]
        if in_parts or (any_size and _is_large(path, target)):
            parts = Parts(path, target, list(dict.fromkeys([*kept, *by])))
            rows = parts.sample()
            groups, labels = _groups(rows.table, by), rows.labels
            column = labels.astype(object if labels.dtype.kind in "OUS" else np.float64)
            labels = checks.labels_of(Table((target,), [column], {}), target)
            own = cls(path.name, target, rows.table.select(kept), labels, _hash(path), groups)
            return replace(own, parts=parts if rows.note else None, sampled=rows.note)
        table = read_data(path, skip=[name for name in drop if name not in by])
        groups, labels = _groups(table, by), checks.labels_of(table, target)
        return cls(path.name, target, table.select(kept), labels, hash_file(path), groups)

    def check(self) -> None:
        """Refuse columns and classes that no tree can be fitted to."""
        checks.check_features(self.features)
        checks.check_classes(self.labels, self.target)

    def split(self, seed: int = 0) -> tuple["DataSet", "DataSet"]:
        """70 % of the rows of every class for fitting, and the other 30 % held out."""
        held = hold_out(self.labels, SHARE, seed)
        if held.sum() < FEWEST:
            raise ValueError(
                f"{len(self.labels)} rows are too few to hold some out for evaluation: pass more."
            )
        return self.take(~held), self.take(held)

    @property
    def title(self) -> str:
        return f"{self.name}: {self.target}"

    def origin(self, command: str, seen: bool | None) -> Origin:
        """Where the rows come from, for a page to show."""
        return Origin(self.name, self.file_sha256, command, seen)

    def take(self, rows: NDArray[np.bool_]) -> "DataSet":
        """Some of the rows."""
        groups = {name: labels[rows] for name, labels in self.groups.items()}
        kept = self.features.take(rows), self.labels[rows]
        return DataSet(
            self.name, self.target, *kept, self.file_sha256, groups, sampled=self.sampled
        )


def _is_large(path: Path, target: str) -> bool:
    """Whether a Parquet file has more rows than are read as a whole."""
    if is_csv(path):
        return False
    try:
        return (DataFiles(path, target).n_rows or 0) > MOST_ROWS
    except ImportError:  # polars reads it as a whole
        return False


def _hash(path: Path) -> str:
    """The hash of a file, or of the hashes of a folder's files in order of their names."""
    if not path.is_dir():
        return hash_file(path)
    return hashlib.sha256("".join(map(hash_file, list_files(path))).encode()).hexdigest()


def _groups(table: Table, names: Names) -> dict[str, NDArray[Any]]:
    checks.check_groups(table, names)
    return {name: table.select([name]).columns[0] for name in names}
