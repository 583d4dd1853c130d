"""How long does a card take to fit, beside imodels' and FasterRisk's with ten conditions?

Ours are cards of both losses; "majority" chooses its settings by cross-validation. Theirs turn
columns into conditions first, FasterRisk's at most 63 thresholds each, imodels' nine. Accuracies on
the same splits are in studies/separation. `python benchmarks/risk_score_speed.py`; with
STEADYTREE_DATA set to a folder, also on some of the paper's sets that are there.
"""

import os
import pathlib

import numpy as np
from side_by_side import Case, Contender, compare


def majority_fit():
    """Ours by majority: at most ten conditions, no noise."""
    from steadytree import RiskScoreClassifier

    return RiskScoreClassifier("majority", noise=0.0, max_conditions=10, random_state=0).fit


def logistic_fit():
    """Ours by logistic loss: at most ten conditions, no noise."""
    from steadytree import RiskScoreClassifier

    return RiskScoreClassifier("logistic", noise=0.0, max_conditions=10, random_state=0).fit


def fasterrisk_fit():
    """FasterRisk, ten conditions."""
    from fasterrisk.fasterrisk import RiskScoreOptimizer

    def fit(X, y):
        found = RiskScoreOptimizer(X=conditions(X), y=np.where(y > 0, 1.0, -1.0), k=10)
        found.optimize()
        return found

    return fit


def imodels_fit():
    """FastRiskScore of imodels, ten conditions."""
    from imodels import FastRiskScoreClassifier

    return FastRiskScoreClassifier(k=10).fit


def conditions(X, most=63):
    """Columns of 0 and 1, one a threshold."""
    found = []
    for column in X.T:
        values = np.unique(column)
        cuts = (values[1:] + values[:-1]) / 2
        if len(cuts) > most:
            cuts = np.unique(np.quantile(column, np.arange(1, most + 1) / (most + 1)))
        found += [column >= cut for cut in cuts]
    return np.stack(found, axis=1).astype(float)


def breast_cancer():
    """569 rows of 30 numbers."""
    from sklearn.datasets import load_breast_cancer

    return load_breast_cancer(return_X_y=True)


def set_of(path):
    """A function that reads one of the paper's sets, in random order."""

    def made():
        import pandas as pd

        frame = pd.read_csv(path)
        y = frame.pop("target" if "target" in frame else frame.columns[-1]).to_numpy()
        order = np.random.default_rng(0).permutation(len(y))
        return frame.to_numpy(float)[order], (y == 1).astype(np.int64)[order]

    return made


CONTENDERS = [
    Contender("majority", "majority_fit"),
    Contender("logistic", "logistic_fit"),
    Contender("imodels", "imodels_fit", requirements=("imodels==3.0.4", "numba", "six")),
    Contender("fasterrisk", "fasterrisk_fit", requirements=("fasterrisk==0.1.10",)),
]

if __name__ == "__main__":
    cases = [Case("breast cancer", breast_cancer, repeats=3)]
    folder = pathlib.Path(os.environ.get("STEADYTREE_DATA", ""))
    for name in ("heart_sep", "diabetes_sep", "careval_sep"):
        if (folder / f"{name}.csv.gz").is_file():
            cases.append(Case(name, set_of(folder / f"{name}.csv.gz"), repeats=3))
    compare(__file__, CONTENDERS, cases)
