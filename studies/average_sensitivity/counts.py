"""Figure 3 examined: how often the same tree comes out, by how much of it is compared."""

from collections import Counter

import numpy as np

from steadytree import StableTreeClassifier
from steadytree.stability._kernels.grow import grow_rows

LEVELS = (1, 2, 3, 5)


def table(data, n_samples, n_seeds, n_sets=100):
    """Most frequent form among 100 trees: mean (least to most) over samples and seeds."""
    lines = ["| rows removed | learner | " + " | ".join(map(_head, LEVELS)) + " |"]
    lines.append("| --- |" + " --- |" * (1 + len(LEVELS)))
    for removed in (0.1, 0.01):
        for name, epsilon in (("greedy", 0.0), ("epsilon 0.3", 0.3)):
            found = [
                most_frequent(data, epsilon, removed, sample, seed, n_sets)
                for sample in range(n_samples)
                for seed in range(n_seeds)
            ]
            columns = zip(*found, strict=True)
            cells = [f"{np.mean(own):.0f} ({min(own)} to {max(own)})" for own in columns]
            lines.append(f"| {removed:.0%} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def most_frequent(data, epsilon, removed, sample, seed, n_sets):
    """Of every 100 trees from fewer rows, how many are alike in their upper levels."""
    X, y = data.sample(sample)
    settings = {"max_depth": data.depth, "epsilon": epsilon, "criterion": "count"}
    prepared = StableTreeClassifier(**settings, random_state=0).prepare(X, y)
    sampling, rng = prepared.with_seed(seed).sampling, np.random.default_rng([sample, seed])
    shared = (prepared.binned, prepared.labels, prepared.n_classes, prepared.splits.table)
    kept = len(y) - int(removed * len(y))
    trees = []
    for _ in range(n_sets):
        rows = np.sort(rng.choice(len(y), kept, replace=False))
        trees.append(grow_rows(*shared, sampling, rows, data.depth))
    return [
        Counter(form(tree, 0, levels) for tree in trees).most_common(1)[0][1] * 100 // n_sets
        for levels in LEVELS
    ]


def form(tree, node, levels):
    """Splits and labels of the upper levels below a node, in brackets."""
    if tree.key[node] < 0:
        return f"leaf {tree.label[node]}"
    if levels == 0:
        return "more"
    sides = [form(tree, side[node], levels - 1) for side in (tree.left, tree.right)]
    return f"{tree.key[node]}({sides[0]}, {sides[1]})"


def _head(levels):
    return "root" if levels == 1 else f"upper {levels} levels"
