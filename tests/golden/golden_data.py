"""Six small data sets that are the same on every machine."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets

import steadytree as st


class Rows(NamedTuple):
    """Columns, labels and, where rows count differently, weights."""

    X: pd.DataFrame
    y: Any
    weight: Any = None


def built_in(name, columns, n_rows):
    """Some columns and evenly spread rows of a data set of scikit-learn; labels as text."""
    found = getattr(datasets, f"load_{name}")()
    rows = np.linspace(0, len(found.target) - 1, n_rows).astype(int)
    X = pd.DataFrame(found.data[rows][:, columns], columns=np.asarray(found.feature_names)[columns])
    return Rows(X, np.asarray(found.target_names)[found.target[rows]].astype(str))


def patients():
    """Numbers and text with missing values, two classes."""
    rng = np.random.default_rng(11)
    n = 150
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 90, n).astype(float),
            "dose": rng.integers(0, 80, n) / 10,
            "ward": np.array(["A", "B", "C"], dtype=object)[rng.integers(0, 3, n)],
            "sex": np.array(["f", "m"], dtype=object)[rng.integers(0, 2, n)],
        }
    )
    is_ill = (X["age"] + 4 * X["dose"] > 70) ^ (rng.integers(0, 10, n) == 0)
    X.loc[rng.integers(0, 10, n) == 0, "dose"] = np.nan
    X.loc[rng.integers(0, 12, n) == 0, "ward"] = None
    return Rows(X, np.where(is_ill, "ill", "well").astype(str))


def orders():
    """Whole numbers and weights, four classes that are numbers."""
    rng = np.random.default_rng(12)
    n = 140
    X = pd.DataFrame(
        {
            "items": rng.integers(1, 9, n),
            "price": rng.integers(5, 60, n),
            "returns": rng.integers(0, 3, n),
        }
    )
    y = (X["items"] > 4) * 2 + (X["price"] > 30) * 1
    y = np.where(rng.integers(0, 8, n) == 0, rng.integers(0, 4, n), y)
    return Rows(X, y.astype(np.int64), rng.integers(1, 5, n).astype(float))


def mushrooms():
    """Text only, with names and values beyond ASCII, and weights."""
    rng = np.random.default_rng(13)
    n = 120
    colours = np.array(["braun", "weiß", "grün", "<rot>"], dtype=object)
    X = pd.DataFrame(
        {
            "Hut & Farbe": colours[rng.integers(0, 4, n)],
            "Geruch": np.array(["süß", "faul", "kein"], dtype=object)[rng.integers(0, 3, n)],
            "Ring": np.array(["ja", "nein"], dtype=object)[rng.integers(0, 2, n)],
        }
    )
    is_bad = (X["Geruch"] == "faul") | ((X["Hut & Farbe"] == "<rot>") & (X["Ring"] == "ja"))
    is_bad ^= rng.integers(0, 15, n) == 0
    X.loc[rng.integers(0, 9, n) == 0, "Geruch"] = None
    weight = rng.integers(1, 4, n) / 2
    return Rows(X, np.where(is_bad, "giftig", "essbar").astype(str), weight)


MAKERS = {
    "iris": lambda: built_in("iris", [0, 1, 2, 3], 150),
    "tumours": lambda: built_in("breast_cancer", [0, 1, 4, 6, 7, 20], 160),
    "wine": lambda: built_in("wine", [0, 1, 6, 9, 12], 130),
    "patients": patients,
    "orders": orders,
    "mushrooms": mushrooms,
}


def schema_of(rows):
    """What a data holder would declare: wide bounds, all categories, no value of a row."""
    bounds, categories = {}, {}
    for name in rows.X.columns:
        column = rows.X[name]
        if not pd.api.types.is_numeric_dtype(column):
            categories[name] = sorted(column.dropna().unique().tolist())
        else:
            bounds[name] = (0.0, float(10 ** np.ceil(np.log10(column.max() + 1))))
    missing = [name for name in rows.X.columns if rows.X[name].isna().any()]
    classes = np.unique(rows.y).tolist()
    return st.Schema(bounds, categories, classes, missing=missing)
