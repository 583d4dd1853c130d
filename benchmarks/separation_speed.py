"""How long does separation take, beside a k-d tree, and how does it grow with the rows?

Ours finds the pairs, the fewest rows to drop and the distance that is left; SciPy's k-d tree finds
the pairs only. `python benchmarks/separation_speed.py` measures both on data like bank2; with
STEADYTREE_DATA set to the data folder on bank2 itself, then ours alone, hyperplane included, on
growing parts of real sets, with the exponent of its CPU time. A million rows come from 70,000
images: rows drawn again, with noise of one hundredth of each range added.
"""

import os
import pathlib
import sys

import numpy as np
from side_by_side import Case, Contender, compare

R = 0.01
FEW = 20_000  # rows that the k-d tree is given
SIZES = (30_000, 100_000, 300_000, 1_000_000)


def steadytree_separation():
    """Ours, without a hyperplane."""
    from steadytree import separation

    return lambda X, y: separation(X, y, r=R, linear=False)


def steadytree_all():
    """Ours with its defaults, for classes that shall be 2 r apart."""
    from steadytree import separation

    return lambda X, y: separation(X, y, r=R)


def tree_of_points():
    """SciPy's k-d tree for each class, and the pairs between them."""
    from scipy.spatial import cKDTree

    def pairs(X, y):
        low, wide = X.min(axis=0), np.ptp(X, axis=0)
        X = (X - low) / np.where(wide > 0, wide, 1.0)
        first, second = cKDTree(X[y == 0]), cKDTree(X[y == 1])
        return first.query_ball_tree(second, 2 * R, p=np.inf)

    return pairs


def read(*names):
    """Files of the data folder in random order: numbers and the label."""
    import pandas as pd

    folder = pathlib.Path(os.environ["STEADYTREE_DATA"])
    frame = pd.concat([pd.read_csv(folder / f"{name}.csv.gz") for name in names])
    frame = frame.sample(frac=1.0, random_state=0)
    y = frame.pop("target").to_numpy()
    return frame.select_dtypes("number").to_numpy(float), y


def bank():
    X, y = read("bank2_sep_rebuilt")
    return X, (y == 1).astype(np.int64)


def network():
    """The twenty columns of most different values of the network connections of KDD Cup 1999."""
    X, y = read("kddcup99_10pct")
    levels = np.array([len(np.unique(column)) for column in X.T])
    return X[:, np.sort(np.argsort(-levels, kind="stable")[:20])], (y == "normal.").astype(np.int64)


def rna():
    X, y = read("cod-rna_train", "cod-rna_test")
    return X, (y == 1).astype(np.int64)


def images():
    """The twenty blocks of digits that vary most; is the digit below five?"""
    X, y = read("mnist-blocks_train", "mnist-blocks_test")
    return X[:, np.sort(np.argsort(-X.std(axis=0))[:20])], (y < 5).astype(np.int64)


def drawn_images():
    X, y = images()
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(y), SIZES[-1])
    noise = 0.01 * np.ptp(X, axis=0) * rng.normal(size=(len(rows), X.shape[1]))
    return X[rows] + noise, y[rows]


def like_bank():
    """Rows of 53 columns of 0 and 1 and 10 of numbers with few values; one row in nine is 1."""
    rng = np.random.default_rng(0)
    kinds = rng.random((400, 53)) < 0.2
    X = np.column_stack([kinds[rng.integers(0, 400, 41_188)], rng.integers(0, 60, (41_188, 10))])
    return X.astype(float), (rng.random(len(X)) < 0.11).astype(np.int64)


def first(made, n):
    X, y = made
    return X[:n], y[:n]


def grow(name, make):
    """CPU time on growing parts of a set, and the exponent that fits them."""
    made = make()
    sizes = [n for n in SIZES if n < len(made[1])] + [min(len(made[1]), SIZES[-1])]
    cases = [Case(f"{name} {n}", lambda n=n: first(made, n), repeats=1) for n in sizes]
    measured = compare(__file__, [Contender("steadytree", "steadytree_all")], cases)
    seconds = [runs["steadytree"].seconds[0] for runs in measured.values()]
    megabytes = [runs["steadytree"].bytes[0] / 2**20 for runs in measured.values()]
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"{name}: exponent {slope:.2f}, at most {max(megabytes):,.0f} MB beside the data\n")


OURS = Contender("steadytree", "steadytree_separation")
TREE = Contender("k-d tree", "tree_of_points")

if __name__ == "__main__":
    has_data = "STEADYTREE_DATA" in os.environ
    make, name = (bank, "bank2") if has_data else (like_bank, "like bank2")
    if "--only-growth" not in sys.argv:
        compare(__file__, [OURS], [Case(name, make, repeats=3)])
        some = Case(f"{name}, some rows", lambda: first(make(), FEW), repeats=3)
        compare(__file__, [OURS, TREE], [some])
    for each in (network, rna, images, drawn_images) if has_data else ():
        grow(each.__name__, each)
