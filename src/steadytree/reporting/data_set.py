"""DataSet: features and labels with where they came from."""

import datetime
import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.dataset import hash_file, hold_out
from steadytree.data.readers import column_names, read_data
from steadytree.data.table import Table, quote
from steadytree.reporting.checks import (
    check_classes,
    check_features,
    check_groups,
    check_names,
    labels_of,
)

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


SHARE = 0.3  # of the rows is held out
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

    @classmethod
    def open(
        cls,
        path: str | PathLike[str] | None,
        target: str | None,
        drop: Sequence[str] = (),
        by: Sequence[str] = (),
    ) -> "DataSet":
        """A file, or the built-in data where none is named."""
        if path is not None:
            return cls.read(path, target, drop, by)
        if target is not None:
            raise ValueError("--target names a column of no data: pass a csv or parquet file too.")
        return cls.breast_cancer(drop, by)

    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        target: str | None,
        drop: Sequence[str] = (),
        by: Sequence[str] = (),
    ) -> "DataSet":
        """Read a csv or parquet file; `target` names the column to predict."""
        names = column_names(path)
        if not target:
            raise ValueError(
                f"name the column to predict with --target NAME: the data have {quote(names)}."
            )
        check_names(names, [target], "the target")
        check_names(names, drop, "--drop")
        check_names(names, by, "--by")
        if target in drop:
            raise ValueError(f"column {target!r} is both the target and dropped: choose one.")
        table = read_data(path, skip=[name for name in drop if name not in by])
        check_groups(table, by)
        kept = [name for name in names if name != target and name not in drop]
        groups = {name: table.select([name]).columns[0] for name in by}
        labels = labels_of(table, target)
        return cls(Path(path).name, target, table.select(kept), labels, hash_file(path), groups)

    @classmethod
    def breast_cancer(cls, drop: Sequence[str] = (), by: Sequence[str] = ()) -> "DataSet":
        """scikit-learn's breast cancer data, for a first look."""
        from sklearn.datasets import load_breast_cancer

        bunch = load_breast_cancer()
        names = tuple(str(name) for name in bunch.feature_names)
        check_names(names, drop, "--drop")
        check_names(names, by, "--by")
        table = Table(names, bunch.data.T, {}, bunch.data)
        check_groups(table, by)
        features = table.select([name for name in names if name not in drop])
        groups = {name: table.select([name]).columns[0] for name in by}
        labels = np.asarray(bunch.target_names, dtype=str)[bunch.target]
        return cls("breast cancer (scikit-learn)", "diagnosis", features, labels, "", groups)

    def check(self) -> None:
        """Refuse columns and classes that no tree can be fitted to."""
        check_features(self.features)
        check_classes(self.labels, self.target)

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
        return DataSet(self.name, self.target, *kept, self.file_sha256, groups)
