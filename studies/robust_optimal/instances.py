"""Data sets and perturbations of the study, as in section 5 of the paper.

The folder with the data is named by STEADYTREE_DATA. The paper does not name its 12 sets; these are
the ones of its authors' earlier work that fit its description, and a few that nearly do. Files
ending in _enc hold 0/1 columns. Without a folder, two of the MONK's problems can be made from the
rules that define them: as many rows as were published, but other ones.
"""

import os
import pathlib
import sys

import numpy as np
import pandas as pd

from steadytree import Perturbation

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from shared import finished  # noqa: F401

INTEGER = ("monks-1", "monks-2", "monks-3", "hayes-roth", "balance-scale", "car")
ENCODED = (
    "monks-1_enc",
    "monks-2_enc",
    "monks-3_enc",
    "hayes-roth_enc",
    "balance-scale_enc",
    "car_enc",
    "breast-cancer-ljubljana_enc",
    "tic-tac-toe_enc",
    "soybean-small_enc",
    "kr-vs-kp_enc",
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


def available(names=INTEGER + ENCODED):
    """The sets whose files are there."""
    return [name for name in names if name in MADE or _file(name).is_file()]


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
