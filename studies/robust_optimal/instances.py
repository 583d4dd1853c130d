"""Data sets and perturbations of the study, as in section 5 of the paper.

The folder with the data is named by STEADYTREE_DATA; for sets that are not in it a line tells what
is expected. The paper does not name its 12 sets; these are the 12 of its authors' earlier work,
some in two forms: files ending in _enc hold 0/1 columns. Ten fit the paper's description, monks-3
and soybean-small have fewer rows than the 124 it tells. Without a folder, two of the MONK's
problems can be made from the rules that define them: as many rows as published, but other ones.
"""

import functools
import os
import pathlib
import sys

import numpy as np
import pandas as pd

from steadytree import Perturbation

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from shared import finished, read_set  # noqa: F401

# columns of each file, and what they hold
NUMBERS, FLAGS = "whole numbers", "0/1 columns of the categories"
SETS = {
    "monks-1": (6, NUMBERS),
    "monks-2": (6, NUMBERS),
    "monks-3": (6, NUMBERS),
    "hayes-roth": (4, NUMBERS),
    "balance-scale": (4, NUMBERS),
    "car": (6, "buying, maint, doors, persons, lug_boot and safety, as texts"),
    "monks-1_enc": (15, FLAGS),
    "monks-2_enc": (15, FLAGS),
    "monks-3_enc": (15, FLAGS),
    "hayes-roth_enc": (15, FLAGS),
    "balance-scale_enc": (20, FLAGS),
    "car_enc": (19, FLAGS),
    "breast-cancer-ljubljana_enc": (38, FLAGS),
    "tic-tac-toe_enc": (27, FLAGS),
    "soybean-small_enc": (45, FLAGS),
    "kr-vs-kp_enc": (38, FLAGS),
    "house-votes-84_enc": (16, "0/1 votes of the rows without missing ones"),
    "spect_enc": (22, "0/1 columns"),
}
# one form of each of the 12 sets: whole numbers where there are any
TWELVE = (
    *("monks-1", "monks-2", "monks-3", "hayes-roth", "balance-scale", "car"),
    *("soybean-small_enc", "breast-cancer-ljubljana_enc", "tic-tac-toe_enc", "kr-vs-kp_enc"),
    *("house-votes-84_enc", "spect_enc"),
)
MADE = ("made monks-1", "made monks-3")
RANKS = {
    "buying": ["low", "med", "high", "vhigh"],
    "maint": ["low", "med", "high", "vhigh"],
    "doors": ["2", "3", "4", "5more"],
    "persons": ["2", "4", "more"],
    "lug_boot": ["small", "med", "big"],
    "safety": ["low", "med", "high"],
}


def available(names):
    """The sets whose files are there."""
    return [name for name in names if name in MADE or _is_there(name)]


@functools.cache
def _is_there(name):
    """Whether a file is there with its columns; once, a line tells what is expected."""
    path = _file(name)
    return read_set(path.parent, name, *SETS[name], 0) is not None


def load(name):
    """Whole-number features and labels of a set."""
    if name in MADE:
        return make(name)
    frame = pd.read_csv(_file(name), dtype=str)
    labels = frame.pop("target").to_numpy()
    if name == "car":
        for column, ranks in RANKS.items():
            frame[column] = [ranks.index(value) for value in frame[column]]
    return frame.astype(int), labels


def make(name, seed=0):
    """Rows of a MONK's problem drawn from all 432, labelled by its rule; the third has noise."""
    sizes = (3, 3, 2, 3, 4, 2)
    whole = np.stack([axis.ravel() for axis in np.indices(sizes)], axis=1) + 1
    rng = np.random.default_rng(seed)
    rows = whole[rng.permutation(len(whole))[:124]]
    frame = pd.DataFrame(rows, columns=[f"a{k}" for k in range(1, 7)])
    if name == "made monks-1":
        labels = (frame["a1"] == frame["a2"]) | (frame["a5"] == 1)
    else:
        labels = ((frame["a5"] == 3) & (frame["a4"] == 1)) | (
            (frame["a5"] != 4) & (frame["a2"] != 3)
        )
        labels ^= rng.random(len(frame)) < 0.05
    return frame, labels.to_numpy().astype(int).astype(str)


def has_data():
    """Whether a folder with the data sets is named."""
    return bool(os.environ.get("STEADYTREE_DATA"))


def draw_certainty(columns, mean=0.8, seed=0):
    """Certainties drawn from a normal with deviation 0.2, kept in (0, 1]."""
    drawn = np.random.default_rng(seed).normal(mean, 0.2, len(columns))
    return dict(zip(columns, np.clip(drawn, 0.01, 1.0).tolist(), strict=True))


def instance(name, confidence, mean=0.8, seed=0):
    """Features, labels and perturbation of one instance on the whole set."""
    X, y = load(name)
    return X, y, Perturbation.from_certainty(draw_certainty(X.columns, mean, seed), confidence)


def _file(name):
    folder = os.environ.get("STEADYTREE_DATA")
    if not folder:
        raise SystemExit("name the folder with the data sets in STEADYTREE_DATA")
    return pathlib.Path(folder) / f"{name}.csv.gz"
