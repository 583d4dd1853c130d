"""How long does a card take to fit, beside FasterRisk with ten conditions?

Ours includes choosing its settings by cross-validation; FasterRisk's includes turning columns
into conditions, at most 63 thresholds each. `python benchmarks/risk_score_speed.py`.
"""

import numpy as np
from side_by_side import Case, Contender, compare


def steadytree_fit():
    """Ours: at most ten conditions, no noise."""
    from steadytree import RiskScoreClassifier

    return RiskScoreClassifier(tau=0.0, max_conditions=10, random_state=0).fit


def fasterrisk_fit():
    """FasterRisk, ten conditions."""
    from fasterrisk.fasterrisk import RiskScoreOptimizer

    def fit(X, y):
        found = RiskScoreOptimizer(X=conditions(X), y=np.where(y > 0, 1.0, -1.0), k=10)
        found.optimize()
        return found

    return fit


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


CONTENDERS = [
    Contender("steadytree", "steadytree_fit"),
    Contender("fasterrisk", "fasterrisk_fit", requirements=("fasterrisk==0.1.10",)),
]

if __name__ == "__main__":
    compare(__file__, CONTENDERS, [Case("breast cancer", breast_cancer, repeats=3)])
