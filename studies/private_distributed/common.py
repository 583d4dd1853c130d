"""What the scripts of this study share: published data, their schema, splits and models."""

import csv
import json
import pathlib
import sys
import tempfile

import numpy as np
import pandas as pd

from steadytree.data.schema import Schema
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.holder import Holder
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.private_tree import PrivateTreeClassifier

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from shared import read_set

MOST_CATEGORIES = 200
# columns of each file, with what the paper says of those that few people have
COLUMNS = {
    "adult": (14, "numbers and categories"),
    "bank": (16, "numbers and categories"),
    "kddcup99_10pct": (41, "numbers and categories; normal. or the name of an attack"),
    "mnist-blocks_train": (49, "mean grey values of blocks of 4 x 4 pixels; digits"),
    "mnist-blocks_test": (49, "mean grey values of blocks of 4 x 4 pixels; digits"),
    "skin": (3, "B, G, R from 0 to 255"),
    "creditcard": (23, "X1 to X23 of default of credit card clients, 30,000 rows; 0 or 1"),
    "ctr": (8, "C1, C14 to C17, C19 to C21 of Avazu's click-through rates; 0 or 1"),
}


class Runs:
    """Finished fits in a file, one a line, as text; those of other settings are refused.

    The first `n_keys` values of a line tell the fit. A line that a killed run left unfinished is
    dropped.
    """

    def __init__(self, path, settings, n_keys, head=()):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._n_keys, noted = path, n_keys, path.with_suffix(".json")
        if noted.exists() and json.loads(noted.read_text()) != settings:
            raise SystemExit(
                f"{path} was made with {noted.read_text().strip()}, this command has "
                f"{json.dumps(settings)}: go on with the old settings, or name another --out."
            )
        noted.write_text(json.dumps(settings) + "\n")
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
        whole = whole or ",".join(head)
        path.write_text(whole + "\n" if whole else "")
        self.rows = [tuple(row) for row in csv.reader(whole.splitlines())][bool(head) :]
        self._done = {row[:n_keys]: row[n_keys:] for row in self.rows}

    def __contains__(self, key):
        return tuple(map(str, key)) in self._done

    def find(self, key):
        """What was measured, or None."""
        return self._done.get(tuple(map(str, key)))

    def add(self, key, found):
        row = tuple(map(str, (*key, *found)))
        with self._path.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(row)
        self.rows.append(row)
        self._done[row[: self._n_keys]] = row[self._n_keys :]


def at_hand(folder, *names):
    """Whether all files of a set are there with their columns; a line tells what is expected."""
    return all(read_set(folder, name, *COLUMNS[name], 0) is not None for name in names)


def read(folder, *names):
    """Rows and labels of one set, or of several files one below the other."""
    frame = pd.concat([pd.read_csv(folder / f"{n}.csv.gz") for n in names], ignore_index=True)
    return frame, frame.pop("target").to_numpy()


def public_schema(frame, y):
    """Ranges and categories of published data, taken as known."""
    bounds, categories, kinds, missing = {}, {}, {}, []
    for name, column in frame.items():
        if column.dtype.kind in "if":
            if column.min() < column.max():
                bounds[name] = (float(column.min()), float(column.max()))
                if column.dtype.kind == "i":
                    kinds[name] = "integer"
        elif column.nunique() <= MOST_CATEGORIES:
            categories[name] = sorted(column.dropna().unique())
        if column.isna().any() and name in {*bounds, *categories}:
            missing.append(name)
    names = [name for name in frame if name in {*bounds, *categories}]
    return Schema(bounds, categories, np.unique(y).tolist(), kinds, missing, names)


def split(n_rows, seed, share=1.0, train=0.8, fixed=None):
    """Rows to learn from, four in five or a share of them, and the others.

    Where `fixed` is told, the first so many rows are those to learn from, as a set was published.
    """
    random = np.random.default_rng(seed)
    if fixed:
        order = np.r_[random.permutation(fixed), np.arange(fixed, n_rows)]
    else:
        order = random.permutation(n_rows)
    n_train = fixed or int(train * n_rows)
    return order[: max(int(share * n_train), 20)], order[n_train:]


def single(schema, epsilon, **more):
    """A learner on one machine: rows, labels and a seed to a fitted model."""

    def make(X, y, seed):
        return PrivateTreeClassifier(epsilon, schema, testing_seed=seed, **more).fit(X, y)

    return make


def several(schema, epsilon, method, k=4, skew=None, **more):
    """A learner among k holders; `skew` is the Dirichlet parameter of unlike holders."""

    def make(X, y, seed):
        part = share_out(y, k, skew, np.random.default_rng(seed))
        with tempfile.TemporaryDirectory() as folder:
            holders = [
                Holder(f"h{j}", schema, X[part == j], y[part == j],
                       Ledger(f"{folder}/{j}", epsilon, more.get("delta", 0.0)),
                       testing_seed=1_000 * seed + j)
                for j in range(k)
            ]  # fmt: skip
            model = Coordinator(holders, schema, epsilon, method, testing_seed=seed, **more)
            return model.fit()

    return make


def share_out(y, k, skew, random):
    """The holder of each row: by chance, or with shares of each class drawn by Dirichlet."""
    if skew is None:
        return random.permutation(len(y)) % k
    part = np.zeros(len(y), int)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        part[rows] = random.choice(k, len(rows), p=random.dirichlet(np.full(k, skew)))
    return part
