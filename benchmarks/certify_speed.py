"""CPU time of exact l_inf distances: ours beside looking at every leaf's box with numpy.

``python benchmarks/certify_speed.py``: 10,000 rows and a scikit-learn tree of 400 leaves. GROOT's
attack cannot be had beside current versions: it does not import with NumPy 2.
"""

import numpy as np
from side_by_side import Case, Contender, compare

OURS = Contender("steadytree", "ours")
BOXES = Contender("all boxes, numpy", "all_boxes")


def rows(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    return X, (X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(float)


def tree():
    from sklearn.tree import DecisionTreeClassifier

    X, y = rows(10_000)
    return DecisionTreeClassifier(max_leaf_nodes=400, random_state=0).fit(X, y)


def ours():
    from steadytree import Perturbation, certify

    model, noise = tree(), Perturbation(radius=1.0)
    return lambda X, y: certify(model, X, y, noise).distance


def all_boxes():
    """The least distance over all leaves of another class, one row at a time."""
    model = tree()
    lows, highs, labels = leaf_boxes(model.tree_)

    def distances(X, y):
        own = model.predict(X)
        found = np.empty(len(X))
        for row, x in enumerate(X):
            gaps = np.maximum(np.maximum(lows - x, x - highs), 0).max(axis=1)
            found[row] = gaps[labels != own[row]].min()
        return found

    return distances


def leaf_boxes(inside):
    """Lower and upper edges and label of every leaf of a scikit-learn tree."""
    low, high, label = [], [], []
    waiting = [(0, np.full(20, -np.inf), np.full(20, np.inf))]
    while waiting:
        node, lows, highs = waiting.pop()
        if inside.children_left[node] < 0:
            low.append(lows)
            high.append(highs)
            label.append(inside.value[node, 0].argmax())
            continue
        j, at = inside.feature[node], inside.threshold[node]
        below, above = highs.copy(), lows.copy()
        below[j], above[j] = min(below[j], at), max(above[j], at)
        waiting += [(inside.children_left[node], lows, below)]
        waiting += [(inside.children_right[node], above, highs)]
    return np.array(low), np.array(high), np.array(label)


if __name__ == "__main__":
    compare(__file__, [OURS, BOXES], [Case("400 leaves", lambda: rows(10_000), repeats=3)])
