"""Certified accuracy of GROOT's trees; runs where groot is installed and steadytree is not."""

import json
import pathlib
import sys
import time

import numpy as np
from groot.model import GrootTreeClassifier

TIGHT = 1 + 1e-9  # as certify counts rows that are within the noise by rounding alone


def keeps(node, X, y, radius):
    """Rows that reach leaves of their label only, wherever they move within the radius."""
    if node.is_leaf():
        return y == int(np.argmax(np.ravel(node.value)))
    x = X[:, node.feature]
    left = keeps(node.left_child, X, y, radius) | (x - radius > node.threshold)
    right = keeps(node.right_child, X, y, radius) | (x + radius <= node.threshold)
    return left & right


def main():
    few = np.linspace(0.0, 1.0, 8).reshape(-1, 1)  # compiles, which is left out
    GrootTreeClassifier(max_depth=2, attack_model=[0.1]).fit(few, (few[:, 0] > 0.5).astype(int))
    for job in json.loads(pathlib.Path(sys.argv[1]).read_text("utf-8")):
        data = np.load(job["file"])
        X, y = data["X"], data["y"]
        model = GrootTreeClassifier(
            max_depth=job["depth"], attack_model=[job["share"]] * X.shape[1], random_state=0
        )
        start = time.process_time()
        model.fit(X[job["train"]], y[job["train"]])
        found = {"seconds": time.process_time() - start}
        for part in ("train", "test"):
            rows = job[part]
            kept = keeps(model.root_, X[rows], y[rows], job["share"] * TIGHT)
            found[part] = float(kept.mean())
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
