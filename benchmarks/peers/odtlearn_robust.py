"""One run of odtlearn's RobustOCT: reads the instance from standard input, writes what it found."""

import json
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
    model = RobustOCT(solver="cbc", depth=2, time_limit=int(work["seconds"]), verbose=False)
    start = time.process_time()
    model.fit(X, labels, costs=costs, budget=work["budget"])
    seconds = time.process_time() - start
    kept = float(model.optim_gap) if hasattr(model, "optim_gap") else float("nan")
    proven = seconds < work["seconds"] and not kept > 1e-6
    objective = float(model._solver.objective_value or float("nan"))
    print(json.dumps({"objective": objective, "proven": bool(proven), "seconds": seconds}))


if __name__ == "__main__":
    main()
