"""The papers' data as instances of the robust tree problem, for tests marked `data`."""

import os
import pathlib

import numpy as np
import pandas as pd

from steadytree.robustness.perturbation import Perturbation

RANKS = [["low", "med", "high", "vhigh"]] * 2 + [
    ["2", "3", "4", "5more"],
    ["2", "4", "more"],
    ["small", "med", "big"],
    ["low", "med", "high"],
]


def instance(name, confidence):
    """All rows of a set, with certainties drawn around 0.8."""
    file = pathlib.Path(os.environ["STEADYTREE_DATA"]) / f"{name}.csv.gz"
    frame = pd.read_csv(file, dtype=str)
    y = frame.pop("target").to_numpy()
    if name == "car":
        for column, ranks in zip(frame.columns, RANKS, strict=True):
            frame[column] = [ranks.index(value) for value in frame[column]]
    X = frame.astype(int)
    drawn = np.clip(np.random.default_rng(0).normal(0.8, 0.2, X.shape[1]), 0.01, 1.0)
    certainty = dict(zip(X.columns, drawn.tolist(), strict=True))
    return X, y, Perturbation.from_certainty(certainty, confidence)
