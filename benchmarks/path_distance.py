"""How long does a path distance take beside the package dt-distance's, and are they equal?

Pairs of trees of depth 4, 8 and 12, and all distances among 50 trees of depth 6. Both packages are
given the bounds of the features and trees that they have read before, in a form of their own;
"from scikit-learn" adds the reading of both trees. The peer has an environment of its own with the
same scikit-learn; runs alternate.
"""

import json
import statistics
import subprocess
import sys
import time

PEER = "dt-distance==0.1.4"
REPEATS = 3


def make_trees(depth, n_trees, rows=None):
    """Trees on bootstraps of breast cancer data, or of so many rows of made-up data."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer, make_classification
    from sklearn.tree import DecisionTreeClassifier

    if rows is None:
        X, y = load_breast_cancer(return_X_y=True)
    else:
        X, y = make_classification(rows, 20, n_informative=10, flip_y=0.1, random_state=0)
    rng = np.random.default_rng(depth)
    samples = rng.integers(0, len(X), (n_trees, len(X)))
    trees = [
        DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X[s], y[s]) for s in samples
    ]
    return X, y, trees


CASES = {  # depth, trees, rows, whether reading is part of the time
    "depth 4": (4, 2, None, False),
    "depth 8": (8, 2, None, False),
    "depth 8, from scikit-learn": (8, 2, None, True),
    "depth 12, 3,000 rows": (12, 2, 3_000, False),
    "50 x 50, depth 6": (6, 50, None, False),
}


def our_task(X, y, estimators, reading):
    """Distances by this package, in the peer's reading of the definition."""
    from steadytree.data.feature_space import FeatureSpace
    from steadytree.distance.path import path_distance, path_distances
    from steadytree.models.sklearn import from_sklearn

    space = FeatureSpace.observe(X)
    options = {"matching": "surjective", "space": space}
    trees = estimators if reading else [from_sklearn(one, X) for one in estimators]
    if len(trees) == 2:
        return lambda: path_distance(*trees, **options).value
    return lambda: float(path_distances(trees, **options).sum() / 2)


def peer_task(X, y, estimators, reading):
    """Distances by dt-distance; among n trees each pair once."""
    from itertools import combinations

    from dt_distance.data_processor import DataProcessor
    from dt_distance.distance_calculator import DistanceCalculator
    from dt_distance.tree_parser import TreeParser

    params = DataProcessor(data=X, target=y).get_problem_params()
    read = [TreeParser(estimator, params).get_paths() for estimator in estimators]
    paths = estimators if reading else read

    def task():
        return sum(
            DistanceCalculator(
                a, b, params, max_depth=12, normalize_distance=False, round_digits=15
            ).compute_tree_distance()
            for a, b in combinations(paths, 2)
        )

    return task


def measure(case, who):
    """CPU seconds of one call, and the distance it returned."""
    *size, reading = CASES[case]
    data = make_trees(*size)
    task = (our_task if who == "ours" else peer_task)(*data, reading)
    value, calls, start = task(), 0, time.process_time()
    while calls == 0 or time.process_time() - start < 0.5:
        task()
        calls += 1
    leaves = [int(tree.get_n_leaves()) for tree in data[2][:2]]
    return {"seconds": (time.process_time() - start) / calls, "value": value, "leaves": leaves}


def run(python, case, who):
    command = [python, __file__, case, who]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def main():
    import sklearn
    from environment import python_for

    peer = python_for("dt-distance", (PEER, f"scikit-learn=={sklearn.__version__}"))
    pythons = {"ours": sys.executable, PEER: peer}
    print(f"{'':28}{'ours':>12}{PEER:>20}{'ratio':>8}   range        largest difference")
    for case in CASES:
        runs = {who: [] for who in pythons}
        for repeat in range(REPEATS):
            for who in list(pythons)[:: 1 if repeat % 2 == 0 else -1]:
                runs[who].append(run(pythons[who], case, who))
        seconds = {who: statistics.median(r["seconds"] for r in runs[who]) for who in runs}
        pairs = list(zip(runs["ours"], runs[PEER], strict=True))
        ratios = sorted(theirs["seconds"] / ours["seconds"] for ours, theirs in pairs)
        apart = max(abs(ours["value"] - theirs["value"]) for ours, theirs in pairs)
        print(
            f"{case:28}{1e3 * seconds['ours']:9.3f} ms{1e3 * seconds[PEER]:17.2f} ms"
            f"{statistics.median(ratios):8.0f}   {ratios[0]:.0f} .. {ratios[-1]:.0f}"
            f"   {apart:.1e}   leaves {runs['ours'][0]['leaves']}",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        json.dump(measure(*sys.argv[1:]), sys.stdout)
    else:
        main()
