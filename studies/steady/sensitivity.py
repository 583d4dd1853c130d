"""Average sensitivity of the stable tree: as reported, and of real refits.

``STEADYTREE_DATA=folder python studies/steady/sensitivity.py [set ...]``: at most 600 rows of each
set, depth 4, epsilon 0.1, every row removed in turn. Columns, distances being in nodes:

reported    what `average_sensitivity` says
file        mean distance to refits with ``bins=`` the tree's file
differ      rows for which these two are not equal
scratch     mean distance to refits that make bins of their own, and its ratio to what is reported
other       refits from scratch that give another tree than with the file's bins; which of their
            bins differ: thresholds, categories (that only the removed row had), or the order in
            which categories are grouped
twice       distance of two trees learned from the same rows; and of two steady trees
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import steadytree as st
from data import full_sets
from steadytree.distance.tree_distance import tree_distance

MOST_ROWS = 600
CAUSES = ("thresholds", "categories", "order")
TITLES = (
    *("rows", "reported", "file", "differ", "scratch", "ratio"),
    *("other", *CAUSES, "twice", "steady"),
)
WIDTHS = [max(len(title), 5) + 2 for title in TITLES]


def learner(**options):
    """The stable tree that is measured."""
    return st.StableTreeClassifier(max_depth=4, epsilon=0.1, **options)


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


def measure(X, y, path):
    """Distances as reported, with the file's bins and from scratch, and the causes of changes."""
    scratch_learner = learner(random_state=0)
    reported = st.average_sensitivity(scratch_learner, X, y, normalise=False).distances[0]
    whole = scratch_learner.fit(X, y).tree_
    st.save(whole, path)
    again = learner(random_state=None, bins=st.load(path))  # with its seed too
    kept_bins, scratch, causes = np.zeros(len(y)), np.zeros(len(y)), []
    for row in range(len(y)):
        kept = np.delete(np.arange(len(y)), row)
        same_bins = again.fit(X.iloc[kept], y[kept]).tree_
        tree = scratch_learner.fit(X.iloc[kept], y[kept]).tree_
        kept_bins[row] = tree_distance(whole, same_bins, kind="node")
        scratch[row] = tree_distance(whole, tree, kind="node")
        if tree_distance(same_bins, tree, kind="node"):
            causes.append(differing(whole.bins, tree.bins))
    return reported, kept_bins, scratch, np.array(causes, bool).reshape(-1, len(CAUSES))


def learned_twice(estimator, X, y):
    """Distance of two trees from the same rows."""
    trees = [type(estimator)(**estimator.get_params()).fit(X, y).tree_ for _ in range(2)]
    return tree_distance(*trees, kind="node") + tree_distance(*trees, kind="path")


def main(names):
    """One line for each set."""
    print_line("set", TITLES)
    with tempfile.TemporaryDirectory() as folder:
        for name, X, y in full_sets(names, MOST_ROWS):
            reported, kept, scratch, causes = measure(X, y, Path(folder) / "a.tree.json")
            ratio = (scratch.mean() + 1e-3) / (reported.mean() + 1e-3)
            learners = learner(random_state=0), st.SteadyTreeClassifier()
            twice = [f"{learned_twice(one, X, y):g}" for one in learners]
            means = [f"{each.mean():.3f}" for each in (reported, kept, scratch)]
            n_other, differ = [len(causes), *causes.sum(axis=0)], (reported != kept).sum()
            values = (len(y), *means[:2], differ, means[2], f"{ratio:.2f}", *n_other, *twice)
            print_line(name, values)


def print_line(name, values):
    """One line of the table."""
    cells = (f"{value:>{width}}" for value, width in zip(values, WIDTHS, strict=True))
    print(f"{name:24}{''.join(cells)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
