"""The data sets of the study: one comes with scikit-learn, the others from a data folder.

The paper's other five sets are not public. The folder is named by STEADYTREE_DATA; without it the
study runs on breast cancer alone.
"""

import os
import pathlib
import sys

import numpy as np
from sklearn.datasets import load_breast_cancer

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from shared import finished, read_set  # noqa: F401

# file, number of columns, and columns that are left out
FILES = {
    "Pima diabetes": ("diabetes", 8, []),
    "heart (Statlog)": ("heart", 13, []),
    "ionosphere": ("ionosphere", 34, []),
    "Wisconsin (original)": ("breast-cancer-wisconsin", 10, ["sample_code_number"]),
}


FIRST = "breast cancer (WDBC)"


def data_sets(wanted=None):
    """Name, features (frame of numbers) and 0/1 labels of each set at hand, or of some of them."""
    wanted = wanted or (FIRST, *FILES)
    if FIRST in wanted:
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        yield FIRST, X, y.to_numpy()
    folder = os.environ.get("STEADYTREE_DATA")
    if not folder:
        return
    for name in (name for name in FILES if name in wanted):
        file, n_columns, drop = FILES[name]
        frame = read_set(folder, file, n_columns, "numbers; two classes")
        if frame is None:
            continue
        frame = frame.dropna()
        labels = np.unique(frame.pop("target").to_numpy(), return_inverse=True)[1]
        yield name, frame.drop(columns=drop).astype(float), labels
