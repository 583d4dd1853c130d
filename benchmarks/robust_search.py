"""CPU time to a proven robust tree: our search, the paper's model on SCIP, odtlearn on CBC.

``python benchmarks/robust_search.py [names of sets] [--odtlearn] [--seconds 180] [--deep]``; the
data folder is named by STEADYTREE_DATA, SCIP comes with the extra `mio`, odtlearn runs in an
environment of its own. The search's figure is the mean of several runs after a warm-up, as compiled
code is kept between runs. ``--deep`` times the search alone on the hard instances of depth 3 and 4;
with the proof it counts the search for the fewest questions that follows.
"""

import argparse
import json
import math
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
from environment import python_for

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "studies/robust_optimal"))

from instances import instance  # noqa: E402

from steadytree import RobustTreeClassifier, Tree, certify  # noqa: E402
from steadytree.data.feature_space import FeatureSpace  # noqa: E402
from steadytree.models.tree import LEAF  # noqa: E402

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
DEEP = [
    ("kr-vs-kp_enc", 3, 0.75),
    ("kr-vs-kp_enc", 3, 0.85),
    ("kr-vs-kp_enc", 3, 0.95),
    ("balance-scale", 4, 0.85),
    ("hayes-roth_enc", 4, 0.85),
    ("soybean-small_enc", 4, 0.95),
    ("soybean-small_enc", 4, 0.85),
    ("monks-2_enc", 4, 0.85),
    ("balance-scale_enc", 4, 0.85),
    ("breast-cancer-ljubljana_enc", 4, 0.95),
    ("breast-cancer-ljubljana_enc", 4, 0.85),
]
ODTLEARN = ("odtlearn[cbc]==1.1.0", "pandas", "scikit-learn")


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
    limit = {"time_limit": seconds, "clock": "cpu"}
    model = RobustTreeClassifier(2, noise, solver="mio", **limit).fit(X, y)
    return model.objective_, model.proven_, time.process_time() - start


def odtlearn(X, y, noise, seconds):
    """The same of odtlearn's RobustOCT with CBC, in a process that ends after so many seconds.

    What its tree keeps right is worked out by `certify`, as CBC may call a wrong tree optimal.
    """
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
        check=False,
        text=True,
    )
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return math.nan, False, seconds
    if done.returncode:
        raise RuntimeError(f"odtlearn ended with code {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    kept = kept_right(found["tree"], X, y, noise)
    return kept, found["status"] == "OPTIMAL", found["seconds"]


def kept_right(nested, X, y, noise):
    """Rows that a tree of nested [column, threshold, left, right] keeps right; nan for None."""
    if nested is None:
        return math.nan
    classes = np.unique(y)
    feature, threshold, left, right, value = [], [], [], [], []

    def grow(node):
        place, leaf = len(feature), not isinstance(node, list)
        feature.append(LEAF if leaf else X.columns.get_loc(node[0]))
        threshold.append(math.nan if leaf else float(node[1]))
        value.append(np.eye(len(classes))[node if leaf else 0])
        left.append(LEAF), right.append(LEAF)
        if not leaf:
            left[place], right[place] = grow(node[2]), grow(node[3])
        return place

    grow(nested)
    arrays = [np.array(column) for column in (feature, threshold, left, right, value)]
    tree = Tree(FeatureSpace.observe(X), classes, *arrays, np.ones(len(feature)))
    return round(certify(tree, X, y, noise).worst_case_accuracy * len(y))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--odtlearn", action="store_true")
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.deep:
        deep(options.names, options.seconds)
        return
    for name, confidence in CASES:
        if options.names and name not in options.names:
            continue
        X, y, noise = instance(name, confidence)
        ours = search(X, y, noise)
        print(f"{name} {confidence}: search {_shown(ours)}", end="", flush=True)
        theirs = scip(X, y, noise, options.seconds)
        least = "" if theirs[1] else "at least "
        print(f"; SCIP {_shown(theirs)}, {least}{theirs[2] / ours[2]:,.0f} x", end="", flush=True)
        if options.odtlearn:
            print(
                f"; odtlearn {_shown(odtlearn(X, y, noise, options.seconds))}", end="", flush=True
            )
        print(flush=True)


def deep(names, seconds):
    """Print objective, bound and CPU time of the search on each hard instance."""
    for name, depth, confidence in DEEP:
        if names and name not in names:
            continue
        X, y, noise = instance(name, confidence)
        steps, start = [], time.process_time()
        model = RobustTreeClassifier(
            depth,
            noise,
            time_limit=seconds,
            progress=lambda step, steps=steps: steps.append((step, time.process_time())),
            random_state=0,
        ).fit(X, y)
        spent = time.process_time() - start
        certain = next((at for step, at in steps if step.bound == step.incumbent), math.nan)
        bound = f"{model.objective_:g}, bound {model.bound_:g}, majority {model.majority_:g}"
        questions = int((~model.tree_.is_leaf).sum())
        print(
            f"{name} depth {depth} {confidence}: {bound}, {questions} questions, "
            f"{model.status_} after {certain - start:.1f} s, {spent:.1f} s in all",
            flush=True,
        )


def _shown(result):
    objective, proven, seconds = result
    return f"{objective:g} {'proven' if proven else 'NOT proven'} in {seconds:.3f} s"


if __name__ == "__main__":
    main()
