"""Peers, each in an environment of its own: what they fit comes back as a Tree or a Scorecard.

Run as a script it is the worker inside that environment, where steadytree is not installed.
"""

import json
import pathlib
import sys
import tempfile
import time

import numpy as np

PINS = {
    "groot": ("groot-trees==0.0.17", "setuptools<81"),
    "imodels": ("imodels==3.0.4", "numba", "six"),
    "fasterrisk": ("fasterrisk==0.1.10",),
}


def fit_elsewhere(name, X, y):
    """Fit a peer in its environment; returns the model as ours, and CPU seconds of the fit."""
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data.npz"
        np.savez(data, X=X, y=y)
        sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))
        from environment import ask

        found = ask(__file__, name, PINS[name], data)
    build = as_tree if name == "groot" else as_scorecard
    return build(found["model"], X.shape[1]), found["seconds"]


def _space(n_columns):
    from steadytree.data.feature_space import FeatureSpace

    return FeatureSpace.declare(bounds={f"x{j}": (0.0, 1.0) for j in range(n_columns)})


def as_scorecard(model, n_columns):
    """Conditions [column, "at_least" or "below", threshold, points] and an offset as a card."""
    from steadytree.models.condition import Condition
    from steadytree.models.scorecard import Scorecard

    points = {}
    for column, sort, threshold, given in model["conditions"]:
        condition = Condition(column, sort, threshold)
        points[condition] = points.get(condition, 0) + given
    listed = list(points.values())
    return Scorecard(_space(n_columns), [0, 1], list(points), listed, model["offset"])


def as_tree(root, n_columns):
    """Nested questions as a tree."""
    from steadytree.models.tree import LEAF, Tree

    rows, queue = [], [root]
    for node in queue:  # parents before children
        leaf = "threshold" not in node
        children = [] if leaf else [node["left_child"], node["right_child"]]
        place = len(queue)
        queue += children
        rows.append(
            (
                LEAF if leaf else node["feature"],
                np.nan if leaf else node["threshold"],
                LEAF if leaf else place,
                LEAF if leaf else place + 1,
                node["value"] if leaf else [0.5, 0.5],
            )
        )
    feature, threshold, left, right, value = map(np.array, zip(*rows, strict=True))
    zeros = np.zeros(len(rows), bool)
    weight = np.ones(len(rows))
    subset = np.empty((len(rows), 0), bool)
    space = _space(n_columns)
    return Tree(space, [0, 1], feature, threshold, left, right, value, weight, zeros, subset)


def fit_groot(X, y):
    """GROOT with noise 0.05 in every column."""
    from groot.model import GrootTreeClassifier

    model = GrootTreeClassifier(max_depth=5, attack_model=[0.05] * X.shape[1], random_state=0)
    return model.fit(X, y).to_json(output_file=None)["tree"]


def fit_imodels(X, y):
    """FastRiskScore with ten conditions; a 0/1 column's cut is put in the middle."""
    from imodels import FastRiskScoreClassifier

    model = FastRiskScoreClassifier(k=10).fit(X, y)
    conditions = []
    for k in np.flatnonzero(model.coef_):
        column, sort, value, _ = model.binarizer_.rules_[k]
        if sort == "eq":
            low = X[:, column].min()
            how = "at_least", (low + value) / 2
        else:
            how = "below", float(np.nextafter(value, np.inf))
        conditions.append([int(column), *how, int(model.coef_[k])])
    # the risk is above one half where the total is above -intercept / scale
    cut = np.floor(-model.intercept_ / model.scale_) if model.scale_ > 0 else 0
    return {"conditions": conditions, "offset": -int(cut)}


def fit_fasterrisk(X, y, most=63):
    """FasterRisk with ten conditions out of at most 63 thresholds a column."""
    from fasterrisk.fasterrisk import RiskScoreOptimizer

    asked = []
    for j, column in enumerate(X.T):
        values = np.unique(column)
        cuts = (values[1:] + values[:-1]) / 2
        if len(cuts) > most:
            cuts = np.unique(np.quantile(column, np.arange(1, most + 1) / (most + 1)))
        asked += [(j, cut) for cut in cuts]
    held = np.stack([X[:, j] >= cut for j, cut in asked], axis=1).astype(float)
    search = RiskScoreOptimizer(X=held, y=np.where(y > 0, 1.0, -1.0), k=10)
    search.optimize()
    _, start, weights = search.get_models(model_index=0)
    used = np.flatnonzero(weights)
    conditions = [[asked[k][0], "at_least", asked[k][1], round(weights[k])] for k in used]
    return {"conditions": conditions, "offset": round(start)}


def work(name):
    """Fit whatever files are named on standard input; on a few rows first, to compile."""
    fit = {"groot": fit_groot, "imodels": fit_imodels, "fasterrisk": fit_fasterrisk}[name]
    warm = name == "fasterrisk"  # which has nothing to compile
    for line in sys.stdin:
        data = np.load(line.strip())
        X, y = data["X"], data["y"]
        if not warm:
            few = np.concatenate([np.flatnonzero(y == k)[:50] for k in (0, 1)])
            fit(X[few], y[few])
            warm = True
        start = time.process_time()
        model = fit(X, y)
        found = {"model": model, "seconds": time.process_time() - start}
        print(json.dumps(found, default=lambda value: value.item()), flush=True)


if __name__ == "__main__":
    work(*sys.argv[1:])
