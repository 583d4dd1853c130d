"""Section 2.6 and appendix B: how the distance answers to changed thresholds and changed rows."""

from dataclasses import replace

import numpy as np
from methods import cross_validated
from tables import show, spread

from steadytree.distance.path import path_distance
from steadytree.models.sklearn import from_sklearn

SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
REPLACED = (0.2, 0.4, 0.6, 0.8, 1.0)


def study(name, X, y, n_repeats=5, n_moves=20):
    """Print both tables; the distance is in % of the bound at the depth of the tree, and of 12."""
    moved, replaced = {s: [] for s in SHARES}, {s: [] for s in REPLACED}
    for seed in range(n_repeats):
        rng = np.random.default_rng(seed)
        tree = from_sklearn(cross_validated(X, y, seed), X)
        for share in SHARES:
            for _ in range(n_moves):
                other = move_thresholds(tree, share, rng)
                moved[share].append(100 * path_distance(tree, other, normalise=True).value)
        rows = rng.permutation(len(X))
        first, second = rows[: len(X) // 2], rows[len(X) // 2 :]
        base = from_sklearn(cross_validated(X.iloc[first], y[first], seed), X)
        for share in REPLACED:
            n = int(share * min(len(first), len(second)))
            own = np.concatenate([second[:n], first[n:]])
            other = from_sklearn(cross_validated(X.iloc[own], y[own], seed), X)
            replaced[share].append(100 * path_distance(base, other, normalise=12).value)
    rows = [(f"{share:.0%}", spread(moved[share])) for share in SHARES]
    show(f"{name}: thresholds moved by up to", ("", "distance, % of the bound"), rows)
    rows = [(f"{share:.0%}", spread(replaced[share])) for share in REPLACED]
    show(f"{name}: rows replaced", ("", "distance, % of the bound at depth 12"), rows)
    return moved, replaced


def move_thresholds(tree, most, rng):
    """Each threshold times a factor drawn evenly from 1 - most to 1 + most."""
    factor = 1 + most * (2 * rng.random(tree.n_nodes) - 1)
    return replace(tree, threshold=tree.threshold * factor)
