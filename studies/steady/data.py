"""The data sets of the study, in two halves: those the recipe was chosen on, and the others.

Quick mode has scikit-learn's sets only. Larger sets are sampled to `most` rows with a fixed seed.
"""

import os
import pathlib

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_wine

DEVELOPMENT = (
    *("heart", "tic-tac-toe", "spambase_sep", "adult", "ionosphere", "breast-cancer-ljubljana"),
    *("cod-rna_train", "kr-vs-kp", "monks-1", "car"),
)
CONFIRMATION = (
    *("diabetes", "bank-additional", "breast-cancer-wisconsin", "fico_sep", "higgs_sample", "skin"),
    *("mushroom", "monks-2", "monks-3", "balance-scale", "hayes-roth", "covtype_random10k"),
)
HALVES = {"development": DEVELOPMENT, "confirmation": CONFIRMATION}


def quick_sets():
    """Breast cancer (two classes) and wine (three)."""
    for name, load in (("breast cancer", load_breast_cancer), ("wine", load_wine)):
        bunch = load(as_frame=True)
        yield name, bunch.data, bunch.target.to_numpy()


def full_sets(names, most):
    """The named sets of the folder STEADYTREE_DATA, or all of both halves."""
    folder = pathlib.Path(os.environ.get("STEADYTREE_DATA", "."))
    for name in names or (*DEVELOPMENT, *CONFIRMATION):
        path = folder / f"{name}.csv.gz"
        if not path.exists():
            raise SystemExit(f"{path} is not there: set STEADYTREE_DATA to the data folder.")
        frame = pd.read_csv(path)
        frame = frame.sample(min(len(frame), most), random_state=0)
        # a class with fewer rows than folds cannot be in every fold
        counts = frame["target"].value_counts()
        frame = frame[frame["target"].isin(counts[counts >= 10].index)].reset_index(drop=True)
        y = pd.factorize(frame["target"], sort=True)[0]
        yield name, frame.drop(columns="target"), y


class Encoded:
    """A frame as numbers for learners that take nothing else, and their trees taken back.

    A category becomes 0/1 columns; a missing number lies below all others, a missing category has
    zeros only. Trees are returned over the frame's own columns, so that every method's distances
    are measured in one space.
    """

    def __init__(self, X):
        columns, self.meaning = [], []
        for j, name in enumerate(X.columns):
            values = X[name]
            if pd.api.types.is_numeric_dtype(values):
                columns.append(values.fillna(values.min() - 1).to_numpy(float))
                self.meaning.append((j, None))
            else:
                for category in sorted(values.dropna().unique()):
                    columns.append((values == category).to_numpy(float))
                    self.meaning.append((j, category))
        self.numbers = np.column_stack(columns)

    def tree(self, space, classes, nodes):
        """A `Tree` over the raw columns; `nodes` holds lists of a tree over the encoded ones."""
        from steadytree.models.tree import LEAF, Tree

        feature, threshold = np.array(nodes["feature"]), np.array(nodes["threshold"], float)
        left, right = np.array(nodes["left"]), np.array(nodes["right"])
        inner = np.flatnonzero(left >= 0)
        raw, at = np.full(len(left), LEAF), np.full(len(left), np.nan)
        missing_left = np.zeros(len(left), bool)
        subset = np.zeros((len(left), max(len(column.categories) for column in space)), bool)
        for node in inner:
            column, category = self.meaning[feature[node]]
            raw[node], missing_left[node] = column, True
            if category is None:
                at[node] = threshold[node]
            else:  # zeros, so every other category, go left
                known = np.array(space[column].categories)
                subset[node, : len(known)] = known != category
        left, right = np.where(left >= 0, left, LEAF), np.where(right >= 0, right, LEAF)
        weight = np.array(nodes.get("weight", np.ones(len(left))), float)
        value = np.array(nodes["value"], float)
        value /= value.sum(axis=1, keepdims=True)
        return Tree(space, classes, raw, at, left, right, value, weight, missing_left, subset)
