"""What does it cost to certify 10,000 rows against a tree of 400 leaves, and to shift 1,000 rows?

Exact l_inf distances to another answer: ours beside looking at every leaf's box with numpy, and
beside GROOT's attack, which runs in an environment of its own as it does not import with NumPy 2.
`certify` also counts the checks of its input, the witnesses and the curve. The second table is
`shift_accuracy` with 5,000 shifts. Run it with `python benchmarks/certify_speed.py [repeats]`.
"""

import sys

import numpy as np
from side_by_side import Case, Contender, compare

GROOT = ("groot-trees==0.0.17", "numpy<2", "scikit-learn==1.3.2", "setuptools<70")
COLUMNS, LEAVES = 20, 400


def rows(n):
    """Normal rows; the sign of a product of two columns is the class, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    return X, (X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)


def tree():
    """A scikit-learn tree learned from the same rows wherever this runs."""
    from sklearn.tree import DecisionTreeClassifier

    X, y = rows(10_000)
    return DecisionTreeClassifier(max_leaf_nodes=LEAVES, random_state=0).fit(X, y)


def ours():
    """Through the public function."""
    from steadytree import Perturbation, certify

    model, noise = tree(), Perturbation(radius=1.0)
    return lambda X, y: certify(model, X, y, noise)


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
    waiting = [(0, np.full(COLUMNS, -np.inf), np.full(COLUMNS, np.inf))]
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


def groot_attack():
    """GROOT's mean least distance over the leaves of another class (0 for rows already wrong)."""
    from groot.adversary import DecisionTreeAdversary

    attack = DecisionTreeAdversary(
        tree(), "sklearn", attack_model=[1.0] * COLUMNS, is_numeric=[True] * COLUMNS
    )
    return lambda X, y: attack.average_attack_distance(X, y, order=np.inf)


def shifts():
    """5,000 shifts of rows of whole numbers, every column certain with probability 0.8."""
    from sklearn.tree import DecisionTreeClassifier

    from steadytree import shift_accuracy

    X, y = whole_rows()
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, y)
    certainty = {f"x{j}": 0.8 for j in range(X.shape[1])}
    return lambda X, y: shift_accuracy(model, X, y, certainty, repeats=5000, random_state=0)


def whole_rows():
    """1,000 rows of 10 columns of whole numbers."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, (1_000, 10)).astype(float)
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=1_000) > 7).astype(int)


if __name__ == "__main__":
    contenders = [
        Contender("GROOT", "groot_attack", GROOT),
        Contender("all boxes", "all_boxes"),
        Contender("steadytree", "ours"),
    ]
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    compare(
        __file__, [Contender("steadytree", "shifts")], [Case("5,000 shifts", whole_rows, repeats)]
    )
    compare(__file__, contenders, [Case(f"{LEAVES} leaves", lambda: rows(10_000), repeats)])
