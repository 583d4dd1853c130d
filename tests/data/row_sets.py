"""Small random data sets full of ties, duplicates, missing values and categories."""

import numpy as np
import pandas as pd

CLASSES = ("no", "yes", "maybe", "never")


def random_rows(rng, n=None, n_classes=None, missing=True, categories=True, names=None):
    """A frame of up to 40 rows and its labels; at least two rows, at least one label.

    Some of the columns, or the named ones.
    """
    n = int(rng.integers(2, 41)) if n is None else n
    n_classes = int(rng.integers(2, 5)) if n_classes is None else n_classes
    columns = {
        "few": rng.integers(0, 4, n).astype(float),
        "tenths": rng.integers(0, 15, n) / 10,
        "real": rng.normal(size=n),
        "constant": np.ones(n),
        "flag": rng.integers(0, 2, n).astype(float),
    }
    if categories:
        columns["group"] = rng.choice(list("uvwxyz")[: rng.integers(1, 7)], n).astype(object)
        columns["side"] = rng.choice(["left", "right"], n).astype(object)
    if names is None:
        names = rng.permutation(list(columns))[: rng.integers(1, len(columns) + 1)]
    frame = pd.DataFrame({name: columns[name] for name in names})
    if missing and rng.random() < 0.6:
        gone = rng.random(frame.shape) < rng.choice([0.03, 0.3])
        gone[-1] = False  # a column without any value is refused
        frame = frame.mask(gone)
    labels = signal(frame, rng) % n_classes
    noisy = rng.random(n) < 0.3
    labels[noisy] = rng.integers(0, n_classes, noisy.sum())
    if rng.random() < 0.5:  # duplicates, of which some have other labels
        copied = rng.integers(0, n, n // 2)
        frame.iloc[: len(copied)] = frame.iloc[copied].to_numpy()
    return frame, np.array(CLASSES)[labels]


def signal(frame, rng):
    """A number a row that depends on its values, so that splits are worth something."""
    total = np.zeros(len(frame), np.int64)
    for name in frame.columns:
        binned = pd.factorize(frame[name], sort=True)[0]
        total += (binned > rng.integers(0, binned.max() + 2)) * rng.integers(0, 3)
    return total


def check_same_fit(one, other):
    """Two learners found the same tree, for the same classes, with the same promise."""
    assert one.tree_ == other.tree_
    assert one.tree_.n_leaves > 2
    np.testing.assert_array_equal(one.tree_.weight, other.tree_.weight)
    assert one.score_bound_ == other.score_bound_
    assert one.classes_.tolist() == other.classes_.tolist()
