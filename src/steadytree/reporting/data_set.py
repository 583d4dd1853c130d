"""DataSet: features and labels with where they came from; trees are fitted and judged on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.table import Table, quote
from steadytree.core.tree import Tree
from steadytree.interop.data_file import column_names, read_data
from steadytree.learn.stable import StableTreeClassifier
from steadytree.measure.holdout import hold_out
from steadytree.reporting.fingerprint import hash_file
from steadytree.reporting.origin import Origin
from steadytree.reporting.report import Report, report
from steadytree.reporting.table_checks import check_classes, check_features, check_names, labels_of

SHARE = 0.3  # of the rows is held out
FEWEST = 2  # rows to hold out, so that there is something to judge


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows to learn from and to judge trees on.

    Parameters
    ----------
    name, target : str
        What the data are called, and the column to predict.
    features : Table
    labels : array of int or str
    file_sha256 : str
        Hash of the file the rows came from; empty where they came from none.
    """

    name: str
    target: str
    features: Table
    labels: NDArray[Any]
    file_sha256: str = ""

    @classmethod
    def read(
        cls, path: str | PathLike[str], target: str | None, drop: Sequence[str] = ()
    ) -> "DataSet":
        """Read a csv or parquet file; `target` names the column to predict."""
        names = column_names(path)
        if not target:
            raise ValueError(
                f"say which column to predict, with --target NAME: the data have {quote(names)}."
            )
        check_names(names, [target], "the target")
        check_names(names, drop, "--drop")
        if target in drop:
            raise ValueError(f"column {target!r} is both the target and dropped: choose one.")
        table = read_data(path, skip=drop)
        features = table.select([name for name in names if name != target and name not in drop])
        labels = labels_of(table, target)
        return cls(Path(path).name, target, features, labels, hash_file(path))

    @classmethod
    def breast_cancer(cls, drop: Sequence[str] = ()) -> "DataSet":
        """scikit-learn's breast cancer data, for a first look."""
        from sklearn.datasets import load_breast_cancer

        bunch = load_breast_cancer()
        names = tuple(str(name) for name in bunch.feature_names)
        check_names(names, drop, "--drop")
        table = Table(names, bunch.data.T, {}, bunch.data)
        features = table.select([name for name in names if name not in drop])
        labels = np.asarray(bunch.target_names, dtype=str)[bunch.target]
        return cls("breast cancer (scikit-learn)", "diagnosis", features, labels)

    @classmethod
    def open(
        cls, path: str | PathLike[str] | None, target: str | None, drop: Sequence[str] = ()
    ) -> "DataSet":
        """A file, or the built-in data where none is named."""
        if path is not None:
            return cls.read(path, target, drop)
        if target is not None:
            raise ValueError("--target names a column of no data: pass a csv or parquet file too.")
        return cls.breast_cancer(drop)

    def check(self) -> None:
        """Refuse columns and classes that no tree can be fitted on."""
        check_features(self.features)
        check_classes(self.labels, self.target)

    @property
    def title(self) -> str:
        return f"{self.name}: {self.target}"

    def fit_and_judge(
        self, max_depth: int = 5, criterion: str = "count", seed: int = 0, command: str = ""
    ) -> Report:
        """Fit a tree on 70 % of the rows of every class, and judge it on the other 30 %."""
        self.check()
        held = hold_out(self.labels, SHARE, seed)
        if held.sum() < FEWEST:
            raise ValueError(
                f"{len(self.labels)} rows are too few to hold some out for judging: pass more."
            )
        model = StableTreeClassifier(
            max_depth=max_depth, epsilon=0, criterion=criterion, random_state=seed
        )
        model.fit(self.features.take(~held), self.labels[~held])
        rows = self.features.take(held)
        origin = self.origin(command, seen=False)
        return report(model, rows, self.labels[held], title=self.title, origin=origin)

    def judge(self, tree: Tree, command: str = "") -> Report:
        """Judge a tree that was fitted before, on all rows."""
        rows = self.features.select(tree.space.names)
        origin = self.origin(command, seen=None)
        return report(tree, rows, self.labels, title=self.title, origin=origin)

    def origin(self, command: str, seen: bool | None) -> Origin:
        """Where the rows come from, for a page to show."""
        return Origin(self.name, self.file_sha256, command, seen)
