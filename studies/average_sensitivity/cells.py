"""One cell of the study: a data set, an epsilon, and a number of rows removed."""

import numpy as np
from sklearn.base import clone

from steadytree import StableTreeClassifier, average_sensitivity

PUBLISHED = {"criterion": "count", "merge_leaves": True}


def measure_cell(data, epsilon, removed, plan):
    """Means over samples and seeds; one number a sample is kept for intervals and quartiles."""
    samples = [_measure_sample(data, epsilon, removed, plan, k) for k in range(plan["samples"])]
    names = ("sensitivity", "sensitivity_features", "train_accuracy", "test_accuracy")
    columns = zip(names, zip(*samples, strict=True), strict=True)
    return {name: list(values) for name, values in columns}


def _measure_sample(data, epsilon, removed, plan, sample):
    X, y = data.sample(sample)
    learner = StableTreeClassifier(max_depth=data.depth, epsilon=epsilon, **PUBLISHED)
    # seeds of its own for each sample: shared ones would make the means of all samples err alike
    seeds = range(sample * plan["seeds"], (sample + 1) * plan["seeds"])
    shared = (X, y, removed, None if removed == 1 else plan["repeats"], seeds)
    found = [
        average_sensitivity(learner, *shared, distance=distance, random_state=sample).value
        for distance in ("node", "node-features")
    ]
    accuracies = _accuracies(learner, X, y, data.test, seeds) if removed == 1 else (None, None)
    return *found, *accuracies


def _accuracies(learner, X, y, test, seeds):
    """Training and test accuracy, means over seeds."""
    scores = []
    for seed in seeds:
        model = clone(learner).set_params(random_state=seed).fit(X, y)
        scores.append((model.score(X, y), model.score(*test)))
    return np.mean(scores, axis=0).tolist()


def alternatives(data, epsilon, repeats=100):
    """The whole tree and the most frequent ones without a tenth of the rows (figure 3)."""
    X, y = data.sample(0)
    settings = {"max_depth": data.depth, "epsilon": epsilon, "random_state": 0}
    learner = StableTreeClassifier(**settings, **PUBLISHED)
    found = average_sensitivity(learner, X, y, removed=0.1, repeats=repeats, normalise=False)
    return learner.fit(X, y).tree_, found.alternatives[:3]
