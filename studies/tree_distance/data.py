"""The data sets of the study: one comes with scikit-learn, the others from a data folder.

The paper's other five sets are not public. The folder is named by STEADYTREE_DATA; without it the
study runs on breast cancer alone.
"""

import os
import pathlib

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

FILES = {
    "Pima diabetes": ("diabetes", []),
    "heart (Statlog)": ("heart", []),
    "ionosphere": ("ionosphere", []),
    "Wisconsin (original)": ("breast-cancer-wisconsin", ["sample_code_number"]),
}


def data_sets():
    """Name, features (frame of numbers) and 0/1 labels of each set at hand."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    yield "breast cancer (WDBC)", X, y.to_numpy()
    folder = os.environ.get("STEADYTREE_DATA")
    if not folder:
        return
    for name, (file, drop) in FILES.items():
        frame = pd.read_csv(pathlib.Path(folder) / f"{file}.csv.gz").dropna()
        labels = np.unique(frame.pop("target").to_numpy(), return_inverse=True)[1]
        yield name, frame.drop(columns=drop).astype(float), labels
