"""Random pipelines before a tree, and rows to certify in the units of the raw columns."""

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

from steadytree.robustness.perturbation import Perturbation
from tests.robustness.brute_force import Raw

JOBS, TOWNS, GRID = (
    ["chef", "clerk", "miner", "nurse"],
    ["Bonn", "Kiel"],
    list(np.arange(-4.0, 10.0)),
)


def any_of(rng, choices):
    return choices[rng.integers(len(choices))]


def raw_frame(rng, n):
    """Raw numbers are whole, so that all of them can be tried."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 9, n),
            "size": rng.integers(-3, 4, n).astype(float),
            "extra": rng.integers(0, 4, n).astype(float),
            "job": rng.choice(JOBS, n, p=[0.1, 0.4, 0.3, 0.2]),
            "town": rng.choice(TOWNS, n),
        }
    )
    frame.loc[rng.random(n) < 0.2, "size"] = np.nan
    return frame


def columns_of(rng):
    """Scalers and imputers, encoders that drop or join categories, columns left out or as is."""
    scaler = any_of(
        rng,
        [
            StandardScaler(),
            MinMaxScaler(),
            MinMaxScaler(clip=True),
            MaxAbsScaler(),
            RobustScaler(),
            "passthrough",
        ],
    )
    strategy = any_of(rng, ["median", "mean", "most_frequent", "constant"])
    imputer = SimpleImputer(strategy=strategy, add_indicator=bool(rng.integers(2)))
    joins = {"handle_unknown": "infrequent_if_exist", "min_frequency": 9}
    flags = [
        {"handle_unknown": "ignore"},
        joins,
        {"drop": "first", "handle_unknown": "ignore"},
        {"drop": "if_binary"},
    ]
    encoders = [OneHotEncoder(sparse_output=False, **one) for one in flags]
    encoders.append(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1))
    towns = [
        OrdinalEncoder(),
        OrdinalEncoder(categories=[TOWNS[::-1]]),
        OneHotEncoder(drop="if_binary", sparse_output=False),
    ]
    parts = [
        ("numbers", make_pipeline(imputer, scaler), ["age", "size"]),
        ("job", any_of(rng, encoders), ["job"]),
        ("town", any_of(rng, towns), ["town"]),
    ]
    rest = any_of(rng, ["drop", "passthrough"])
    return ColumnTransformer(parts, remainder=rest, sparse_threshold=0)


def pipeline_case(rng):
    """A fitted pipeline, rows, their raw columns, and noise."""
    n = 60
    frame = raw_frame(rng, n)
    steps = [columns_of(rng)]
    steps += [VarianceThreshold(0.01)] if rng.integers(4) == 0 else []
    steps += [SelectKBest(k=4)] if rng.integers(3) == 0 else []
    steps += [StandardScaler()] if rng.integers(4) == 0 else []
    model = make_pipeline(*steps, DecisionTreeClassifier(max_leaf_nodes=7, random_state=0))
    score = frame["age"] + frame["size"].fillna(0.0) + frame["extra"]
    score += 3 * (frame["job"] == "miner") + 2 * (frame["town"] == "Kiel")
    model.fit(frame, (score > 7) ^ (rng.random(n) < 0.1))
    numbers = ["age", "size", "extra"]
    raws = {name: Raw("whole", GRID) for name in numbers}
    raws |= {"job": Raw("category", categories=JOBS), "town": Raw("category", categories=TOWNS)}
    kind = any_of(rng, ["radius", "step_cost", "change_cost"])
    noise = Perturbation(
        **{kind: {name: float(rng.choice([0.6, 1.0, 2.5])) for name in frame}},
        whole=numbers,
        direction={"age": any_of(rng, ["up", "both"])},
        missing_cost={"size": 0.8} if rng.integers(2) else {},
        bounds={"extra": (0.0, 3.0)} if rng.integers(2) else {},
        budget=1.0,
    )
    return model, frame[:5], raws, noise
