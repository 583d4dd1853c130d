"""Peers in environments of their own: what they fit comes back as lists of a tree's nodes.

Run as a script it is the worker inside that environment, where steadytree is not installed.
"""

import json
import pathlib
import sys
import tempfile

import numpy as np

PINS = {
    "hierarchical shrinkage": ("imodels==3.0.4", "six", "numba"),
    "optimal": ("pystreed", "scikit-learn"),
}
N_THRESHOLDS = 10  # a column, for the optimal tree: its time grows with the square of the splits
SECONDS = 60


def fit_elsewhere(name, leaves, X, y):
    """The nodes of the tree that a peer fits."""
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data.npz"
        np.savez(data, X=X, y=y, leaves=leaves)
        sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))
        from environment import ask

        return ask(__file__, name, PINS[name], data)


def fit_shrinkage(X, y, leaves):
    """HSTreeClassifierCV of imodels: CART with shrunken probabilities, strength by its own CV."""
    from imodels import HSTreeClassifierCV

    least = 5 if len(y) >= 200 else 2
    model = HSTreeClassifierCV(max_leaf_nodes=leaves, min_samples_leaf=least, random_state=0)
    tree = model.fit(X, y).estimator_.tree_
    return {
        "feature": tree.feature.tolist(),
        "threshold": tree.threshold.tolist(),
        "left": tree.children_left.tolist(),
        "right": tree.children_right.tolist(),
        "value": np.clip(tree.value[:, 0], 1e-9, None).tolist(),
    }


def fit_optimal(X, y, leaves):
    """STreeDClassifier: most training rows right with so many leaves and depth 3 at most."""
    from pystreed import STreeDClassifier

    asked = []
    for j, column in enumerate(X.T):
        values = np.unique(column)
        cuts = (values[1:] + values[:-1]) / 2
        if len(cuts) > N_THRESHOLDS:
            shares = np.arange(1, N_THRESHOLDS + 1) / (N_THRESHOLDS + 1)
            cuts = np.unique(np.quantile(column, shares))
        asked += [(j, float(cut)) for cut in cuts]
    held = np.stack([X[:, j] > cut for j, cut in asked], axis=1).astype(int)
    settings = {"max_depth": 3, "max_num_nodes": leaves - 1, "time_limit": SECONDS}
    model = STreeDClassifier("accuracy", **settings).fit(held, y)
    nodes = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
    queue = [(model.get_tree(), np.ones(len(y), bool))]
    for node, rows in queue:  # parents before children
        leaf = node.is_leaf_node()
        j, cut = (-1, -2.0) if leaf else asked[node.feature]
        children = len(queue)
        if not leaf:
            right = held[:, node.feature] == 1
            queue += [(node.left_child, rows & ~right), (node.right_child, rows & right)]
        counts = np.bincount(y[rows], minlength=int(y.max()) + 1) + 1e-9
        for name, value in (
            ("feature", j),
            ("threshold", cut),
            ("left", -1 if leaf else children),
            ("right", -1 if leaf else children + 1),
            ("value", counts.tolist()),
        ):
            nodes[name].append(value)
    return nodes


def main(name):
    fit = {"hierarchical shrinkage": fit_shrinkage, "optimal": fit_optimal}[name]
    for line in sys.stdin:
        with np.load(line.strip()) as data:
            found = fit(data["X"], data["y"], int(data["leaves"]))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
