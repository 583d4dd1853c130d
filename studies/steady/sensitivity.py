"""Average sensitivity of the stable tree: with shared bins, and of refits from scratch.

``STEADYTREE_DATA=folder python studies/steady/sensitivity.py [set ...]``: at most 600 rows of each
set, depth 4, epsilon 0.1, every row removed in turn. `shared` is what `average_sensitivity` reports
and what a refit with `bins=` of the first tree does; `from scratch` is the mean distance to refits
that make bins of their own. The last columns say in how many refits the two trees differ, and which
bins of the columns did: thresholds, categories that only the removed row had, or the order in which
categories are grouped.
"""

import sys

import numpy as np

import steadytree as st
from data import full_sets
from steadytree.distance.tree_distance import tree_distance

MOST_ROWS = 600
LEARNER = st.StableTreeClassifier(max_depth=4, epsilon=0.1, random_state=0)
CAUSES = ("thresholds", "categories", "order")


def differing(one, other):
    """What differs between the bins of two trees, as flags in the order of CAUSES."""
    pairs = list(zip(one.space, other.space, strict=True))
    return (
        any(not np.array_equal(a.thresholds, b.thresholds) for a, b in pairs),
        any(a.categories != b.categories for a, b in pairs),
        any(
            one.order.get(a.name) != other.order.get(a.name)
            for a, b in pairs
            if a.categories == b.categories
        ),
    )


def measure(X, y):
    """Distances with shared bins and from scratch, and how often each cause goes with a change."""
    shared = st.average_sensitivity(LEARNER, X, y, normalise=False).distances[0]
    whole = LEARNER.fit(X, y).tree_
    again = st.StableTreeClassifier(max_depth=4, epsilon=0.1, random_state=0, bins=whole)
    scratch, causes = np.zeros(len(y)), []
    for row in range(len(y)):
        kept = np.delete(np.arange(len(y)), row)
        tree = LEARNER.fit(X.iloc[kept], y[kept]).tree_
        scratch[row] = tree_distance(whole, tree, kind="node")
        own = differing(whole.bins, tree.bins)
        if any(own):
            same_bins = again.fit(X.iloc[kept], y[kept]).tree_
            if tree_distance(same_bins, tree, kind="node"):
                causes.append(own)
    return shared, scratch, np.array(causes, bool).reshape(-1, len(CAUSES))


def main(names):
    """One line for each set."""
    titles = ("set", "rows", "shared bins", "from scratch", "ratio", "other trees", *CAUSES)
    print(f"| {' | '.join(titles)} |")
    print("| --- |" + " ---: |" * (5 + len(CAUSES)))
    for name, X, y in full_sets(names, MOST_ROWS):
        shared, scratch, causes = measure(X, y)
        ratio = (scratch.mean() + 1e-3) / (shared.mean() + 1e-3)
        counts = " | ".join(map(str, causes.sum(axis=0)))
        print(
            f"| {name} | {len(y)} | {shared.mean():.3f} | {scratch.mean():.3f} | {ratio:.2f} |"
            f" {len(causes)} | {counts} |",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
