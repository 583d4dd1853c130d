"""The paper's data, splits and scaling, and what the paper printed."""

import os
import pathlib
import sys

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from shared import finished, read_set  # noqa: F401

# small sets first, so that a stopped run has as much as can be
FILES = {
    "heart": "heart_sep",
    "ionosphere": "ionosphere_sep",
    "breastcancer": "breastcancer_sep",
    "diabetes": "diabetes_sep",
    "mammo": "mammo_sep",
    "careval": "careval_sep",
    "spambase": "spambase_sep",
    "compasbin": "compas_sep",
    "ficobin": "fico_sep",
    "mushroom": "mushroom_sep",
    "adult": "adult_sep",
    "bank": "bank_sep_rebuilt",
    "bank2": "bank2_sep_rebuilt",
}
# Table 2: r-separateness, 2 r, linear separateness, gamma
SEPARATION = {
    "adult": (0.88, 1.0, 0.84, 0.001),
    "bank": (0.97, 1.0, 0.90, 0.33),
    "bank2": (1.00, 0.0004, 0.91, 0.00002),
    "breastcancer": (1.00, 0.11, 0.97, 0.0003),
    "careval": (1.00, 1.0, 0.96, 0.003),
    "compasbin": (0.68, 1.0, 0.65, 0.20),
    "diabetes": (1.00, 0.11, 0.77, 0.0008),
    "ficobin": (0.79, 1.0, 0.70, 0.33),
    "heart": (1.00, 0.13, 0.89, 0.0003),
    "ionosphere": (1.00, 0.80, 0.95, 0.0007),
    "mammo": (0.83, 0.33, 0.79, 0.14),
    "mushroom": (1.00, 1.0, 1.00, 0.02),
    "spambase": (1.00, 0.000063, 0.94, 0.000002),
}
# Tables 3 and 4: questions, accuracy, ER and depth of DT, RobDT, LCPA and BBM-RS
NAMES = ("paper: DT", "paper: RobDT", "paper: LCPA", "paper: BBM-RS")
PRINTED = {
    "adult": ((414.2, 287.9, 14.9, 6.0), (0.83, 0.83, 0.82, 0.81), (0.50, 0.50, 0.12, 0.50)),
    "bank": ((30.7, 26.8, 8.9, 8.0), (0.90, 0.90, 0.90, 0.90), (0.50, 0.50, 0.20, 0.50)),
    "bank2": ((30.0, 30.7, 13.8, 4.5), (0.91, 0.90, 0.90, 0.90), (0.12, 0.18, 0.10, 0.50)),
    "breastcancer": ((15.2, 7.4, 6.0, 11.0), (0.94, 0.94, 0.96, 0.96), (0.23, 0.29, 0.28, 0.27)),
    "careval": ((59.3, 28.2, 10.1, 8.7), (0.97, 0.96, 0.91, 0.77), (0.50, 0.50, 0.19, 0.50)),
    "compasbin": ((67.8, 33.7, 5.4, 7.6), (0.67, 0.67, 0.65, 0.66), (0.50, 0.50, 0.15, 0.33)),
    "diabetes": ((31.2, 27.9, 6.0, 2.1), (0.74, 0.73, 0.76, 0.65), (0.08, 0.08, 0.09, 0.15)),
    "ficobin": ((30.6, 59.6, 6.4, 11.8), (0.71, 0.71, 0.71, 0.72), (0.50, 0.50, 0.22, 0.50)),
    "heart": ((20.3, 13.6, 11.9, 9.5), (0.76, 0.79, 0.82, 0.82), (0.23, 0.31, 0.14, 0.32)),
    "ionosphere": ((11.3, 8.6, 17.9, 6.8), (0.89, 0.92, 0.88, 0.86), (0.15, 0.25, 0.07, 0.28)),
    "mammo": ((27.4, 12.4, 7.2, 1.9), (0.79, 0.79, 0.79, 0.77), (0.47, 0.50, 0.21, 0.50)),
    "mushroom": ((10.8, 9.1, 23.8, 9.9), (1.00, 1.00, 1.00, 0.97), (0.50, 0.50, 0.10, 0.50)),
    "spambase": ((153.9, 72.3, 29.5, 5.6), (0.92, 0.87, 0.88, 0.79), (0.00, 0.04, 0.02, 0.05)),
}
DEPTHS = {
    "adult": (10.0, 12.5),
    "bank": (5.0, 6.0),
    "bank2": (5.0, 6.0),
    "breastcancer": (6.0, 5.2),
    "careval": (12.3, 11.4),
    "compasbin": (7.4, 7.9),
    "diabetes": (6.0, 7.5),
    "ficobin": (5.0, 7.0),
    "heart": (6.0, 6.1),
    "ionosphere": (6.0, 7.9),
    "mammo": (5.6, 6.2),
    "mushroom": (5.8, 6.0),
    "spambase": (17.4, 17.6),
}


# Table 2: columns of each set, and how many of them are 0/1
COLUMNS = {
    "heart": (20, 13),
    "ionosphere": (34, 1),
    "breastcancer": (9, 0),
    "diabetes": (8, 0),
    "mammo": (14, 13),
    "careval": (15, 15),
    "spambase": (57, 0),
    "compasbin": (12, 12),
    "ficobin": (17, 17),
    "mushroom": (113, 113),
    "adult": (36, 36),
    "bank": (57, 57),
    "bank2": (63, 53),
}


def full_sets(names):
    """Names and data of the sets that are in the folder named by STEADYTREE_DATA."""
    for name in names or FILES:
        n_columns, binary = COLUMNS[name]
        about = f"numbers, {binary} of them 0/1, as in Table 2 of the paper; labels 0/1"
        frame = read_set(os.environ["STEADYTREE_DATA"], FILES[name], n_columns, about)
        if frame is not None:
            y = frame.pop("target")
            yield name, frame.to_numpy(float), (y == 1).to_numpy().astype(int)


def column_names(name):
    """Names of the columns of a set in the folder."""
    import pandas as pd

    path = pathlib.Path(os.environ["STEADYTREE_DATA"]) / f"{FILES[name]}.csv.gz"
    return [column for column in pd.read_csv(path, nrows=0).columns if column != "target"]


def quick_sets():
    """Two sets that scikit-learn brings along."""
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast (WDBC)", X, 1 - y
    X, y = load_wine(return_X_y=True)
    yield "wine (second)", X, (y == 1).astype(int)


def split(X, y, seed):
    """Training and test part, scaled to [0, 1] on the training part."""
    a, b, c, d = train_test_split(X, y, test_size=0.33, random_state=seed)
    low, wide = a.min(axis=0), np.ptp(a, axis=0)
    wide = np.where(wide > 0, wide, 1.0)
    return (a - low) / wide, (b - low) / wide, c, d
