"""How long does r-separation take, beside finding the close pairs with a k-d tree?

Ours finds the pairs, the fewest rows to drop and the distance that is left; the k-d tree finds
the pairs only. `python benchmarks/separation_speed.py`; with STEADYTREE_DATA set to a folder that
holds bank2_sep_rebuilt.csv.gz also on those data, whole for ours alone.
"""

import os
import pathlib

import numpy as np
from side_by_side import Case, Contender, compare

R = 0.01
FEW = 20_000  # rows that the k-d tree is given


def steadytree_separation():
    """Ours, without a hyperplane."""
    from steadytree import separation

    return lambda X, y: separation(X, y, r=R, linear=False)


def tree_of_points():
    """SciPy's k-d tree for each class, and the pairs between them."""
    from scipy.spatial import cKDTree

    def pairs(X, y):
        low, wide = X.min(axis=0), np.ptp(X, axis=0)
        X = (X - low) / np.where(wide > 0, wide, 1.0)
        first, second = cKDTree(X[y == 0]), cKDTree(X[y == 1])
        return first.query_ball_tree(second, 2 * R, p=np.inf)

    return pairs


def bank():
    """The rows of bank2 in random order."""
    import pandas as pd

    frame = pd.read_csv(pathlib.Path(os.environ["STEADYTREE_DATA"]) / "bank2_sep_rebuilt.csv.gz")
    y = frame.pop("target" if "target" in frame else frame.columns[-1]).to_numpy()
    order = np.random.default_rng(0).permutation(len(y))
    return frame.to_numpy(float)[order], (y == 1).astype(np.int64)[order]


def like_bank():
    """Rows of 53 columns of 0 and 1 and 10 of numbers with few values; one row in nine is 1."""
    rng = np.random.default_rng(0)
    kinds = rng.random((400, 53)) < 0.2
    X = np.column_stack([kinds[rng.integers(0, 400, 41_188)], rng.integers(0, 60, (41_188, 10))])
    return X.astype(float), (rng.random(len(X)) < 0.11).astype(np.int64)


def few(make):
    """The first rows only."""

    def made():
        X, y = make()
        return X[:FEW], y[:FEW]

    return made


OURS = Contender("steadytree", "steadytree_separation")
TREE = Contender("k-d tree", "tree_of_points")

if __name__ == "__main__":
    make = bank if "STEADYTREE_DATA" in os.environ else like_bank
    name = "bank2" if make is bank else "like bank2"
    compare(__file__, [OURS], [Case(name, make, repeats=3)])
    compare(__file__, [OURS, TREE], [Case(f"{name}, some rows", few(make), repeats=3)])
