"""Optimal trees of pystreed, without noise: an instance in, rows right and seconds out, as JSON."""

import json
import sys
import time

import numpy as np
from pystreed import STreeDClassifier


def main():
    work = json.load(sys.stdin)
    X, y = np.array(work["X"]), np.unique(work["y"], return_inverse=True)[1]
    depth = work["depth"]
    model = STreeDClassifier(
        max_depth=depth, max_num_nodes=2**depth - 1, time_limit=work["seconds"], verbose=False
    )
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    right = int((np.asarray(model.predict(X)) == y).sum())
    proven = bool(model.fit_result.is_optimal())
    print(json.dumps({"kept": right, "proven": proven, "seconds": seconds}))


if __name__ == "__main__":
    main()
