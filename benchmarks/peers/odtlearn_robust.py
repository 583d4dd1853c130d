"""One run of odtlearn's RobustOCT with CBC: an instance in, a tree out, as JSON."""

import json
import resource
import sys
import time

import numpy as np
import pandas as pd
from odtlearn.robust_oct import RobustOCT


def main():
    work = json.load(sys.stdin)
    X = pd.DataFrame(work["X"], columns=work["columns"]).astype(int)
    labels = np.unique(work["y"], return_inverse=True)[1]
    costs = pd.DataFrame([work["costs"]] * len(X), columns=work["columns"])
    limit = int(work["seconds"])
    # CBC does not look at its own limit while the callback adds rows
    resource.setrlimit(resource.RLIMIT_CPU, (limit + 5, limit + 5))
    model = RobustOCT(solver="cbc", depth=2, time_limit=limit, num_threads=1)
    start = time.process_time()
    model.fit(X, labels, costs=costs, budget=work["budget"])
    seconds = time.process_time() - start
    status = model._solver.model.status.name
    print(json.dumps({"status": status, "seconds": seconds, "tree": tree_of(model)}))


def tree_of(model, node=1):
    """Nested [column, threshold, left, right], or the place of a label; None without any tree."""
    if any(value is None for value in model.w_value.values()):
        return None
    for label in model._labels:
        if model.w_value[node, label] > 0.5:
            return int(label)
    for column, threshold in model._f_theta_indices:
        if model.b_value[node, column, threshold] > 0.5:
            below = [tree_of(model, 2 * node), tree_of(model, 2 * node + 1)]
            return [column, int(threshold), *below]
    return None


if __name__ == "__main__":
    main()
