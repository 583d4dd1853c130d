"""CPU time to a proven robust tree: our search, the paper's model on SCIP, odtlearn on CBC.

``python benchmarks/robust_search.py [--odtlearn] [--seconds 180]``; the data folder is named by
STEADYTREE_DATA, SCIP comes with the extra `mio`, odtlearn runs in an environment of its own. The
search's figure is the mean of several runs after a warm-up, as compiled code is kept between runs.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

from environment import python_for

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "studies/robust_optimal"))

from instances import instance  # noqa: E402

from steadytree import RobustTreeClassifier  # noqa: E402

CASES = [
    ("monks-1", 0.95),
    ("monks-1", 0.75),
    ("monks-3", 0.85),
    ("monks-2", 0.85),
    ("hayes-roth", 0.85),
    ("monks-1_enc", 0.85),
    ("soybean-small_enc", 0.85),
    ("balance-scale", 0.85),
]
ODTLEARN = ("odtlearn==1.1.0", "pandas", "scikit-learn")


def search(X, y, noise):
    """Objective and CPU seconds of our search, the mean of five runs."""
    RobustTreeClassifier(2, noise, random_state=0).fit(X, y)
    start = time.process_time()
    for _ in range(5):
        model = RobustTreeClassifier(2, noise, random_state=0).fit(X, y)
    return model.objective_, model.proven_, (time.process_time() - start) / 5


def scip(X, y, noise, seconds):
    """Objective and CPU seconds of the paper's model on SCIP."""
    start = time.process_time()
    model = RobustTreeClassifier(2, noise, solver="mio", time_limit=seconds).fit(X, y)
    return model.objective_, model.proven_, time.process_time() - start


def odtlearn(X, y, noise, seconds):
    """The same of odtlearn's RobustOCT with CBC, in its own process."""
    script = pathlib.Path(__file__).parent / "peers/odtlearn_robust.py"
    work = {
        "X": X.to_numpy().tolist(),
        "columns": list(X.columns),
        "y": [str(label) for label in y],
        "costs": [min(noise.step_cost[name], 1e6) for name in X.columns],
        "budget": noise.spend(len(y)),
        "seconds": seconds,
    }
    done = subprocess.run(
        [python_for("odtlearn", ODTLEARN), str(script)],
        input=json.dumps(work),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return found["objective"], found["proven"], found["seconds"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--odtlearn", action="store_true")
    parser.add_argument("--seconds", type=float, default=180)
    options = parser.parse_args()
    for name, confidence in CASES:
        X, y, noise = instance(name, confidence)
        ours = search(X, y, noise)
        print(f"{name} {confidence}: search {_shown(ours)}", end="", flush=True)
        theirs = scip(X, y, noise, options.seconds)
        print(f"; SCIP {_shown(theirs)}, {theirs[2] / ours[2]:,.0f} x", end="", flush=True)
        if options.odtlearn:
            print(
                f"; odtlearn {_shown(odtlearn(X, y, noise, options.seconds))}", end="", flush=True
            )
        print(flush=True)


def _shown(result):
    objective, proven, seconds = result
    return f"{objective:g} {'proven' if proven else 'NOT proven'} in {seconds:.3f} s"


if __name__ == "__main__":
    main()
