"""What does it cost to know how a tree changes when rows are removed?

Exact leave-one-out and 100 sampled removals of one row, beside (a) cloning and refitting the same
learner and (b) refitting scikit-learn's tree once a row. Refits are counted in full for few rows;
for many rows ten are measured and the rest is extrapolated, as the last lines say. Run it with
`python benchmarks/stability_speed.py`, or with names of cases as arguments.
"""

import statistics
import sys

import numpy as np
from fit_speed import few_rows
from side_by_side import Case, Contender, compare

DEPTH = 5
REPEATS = 100
FULL, SAMPLED = 1_000, 10  # refit as often as stated up to FULL rows, else SAMPLED times


def learner(epsilon):
    """Ours, with everything else as it comes."""
    from steadytree import StableTreeClassifier

    return StableTreeClassifier(max_depth=DEPTH, epsilon=epsilon, random_state=0)


def fit_greedy():
    """One greedy fit, binning included."""
    return learner(0).fit


def fit_stable():
    """One stable fit, binning included."""
    return learner(0.1).fit


def exact_greedy():
    """Every single row removed in turn from a greedy tree."""
    return lambda X, y: measure(0, X, y, "all")


def exact_stable():
    """Every single row removed in turn from a stable tree."""
    return lambda X, y: measure(0.1, X, y, "all")


def sampled_greedy():
    """100 single rows removed from a greedy tree."""
    return lambda X, y: measure(0, X, y, REPEATS)


def sampled_stable():
    """100 single rows removed from a stable tree."""
    return lambda X, y: measure(0.1, X, y, REPEATS)


def measure(epsilon, X, y, repeats):
    """Average sensitivity through the public function."""
    from steadytree import average_sensitivity

    return average_sensitivity(learner(epsilon), X, y, repeats=repeats)


def clone_and_refit():
    """The same 100 removals by cloning, refitting and comparing."""
    from sklearn.base import clone

    from steadytree import tree_distance

    def task(X, y):
        whole = learner(0.1).fit(X, y)
        for row in range(n_refits(len(y), REPEATS)):
            other = clone(whole).fit(np.delete(X, row, 0), np.delete(y, row))
            tree_distance(whole, other)

    return task


def sklearn_refits():
    """Scikit-learn's tree, refitted without each row; not compared."""
    from sklearn.tree import DecisionTreeClassifier

    def task(X, y):
        for row in range(n_refits(len(y), len(y))):
            tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=0)
            tree.fit(np.delete(X, row, 0), np.delete(y, row))

    return task


def n_refits(n_rows, wanted):
    """How many of the wanted refits are measured."""
    return wanted if n_rows <= FULL else min(wanted, SAMPLED)


def rows(n):
    """N rows of 20 correlated floats; the label depends on few of them, with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 20))
    X[:, 10:15] += X[:, :5]
    signal = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3]) - np.abs(X[:, 4])
    return X, (signal + rng.standard_normal(n) > 0).astype(np.int64)


CONTENDERS = [
    Contender("exact, greedy", "exact_greedy"),
    Contender("exact, epsilon 0.1", "exact_stable"),
    Contender("100 rows, greedy", "sampled_greedy"),
    Contender("100 rows, epsilon 0.1", "sampled_stable"),
    Contender("clone and refit", "clone_and_refit"),
    Contender("scikit-learn refits", "sklearn_refits"),
    Contender("one fit, greedy", "fit_greedy"),
    Contender("one fit, epsilon 0.1", "fit_stable"),
]
CASES = [
    Case("few", few_rows, repeats=5),
    Case("ten thousand", lambda: rows(10_000), repeats=3),
    Case("hundred thousand", lambda: rows(100_000), repeats=3),
]


def summary(runs, n_rows):
    """The ratios that matter, medians over repeats, with what was extrapolated said."""

    def ratio(one, other, scale=1.0):
        pairs = zip(runs[one].seconds, runs[other].seconds, strict=True)
        return scale * statistics.median(a / b for a, b in pairs)

    cloned, refitted = n_refits(n_rows, REPEATS), n_refits(n_rows, n_rows)
    scale = (REPEATS + 1) / (cloned + 1)
    return "\n".join(
        [
            "exact leave-one-out, in fits: "
            f"greedy {ratio('exact, greedy', 'one fit, greedy'):.1f}, "
            f"epsilon 0.1 {ratio('exact, epsilon 0.1', 'one fit, epsilon 0.1'):.1f}",
            f"100 clones and refits ({cloned} measured) over 100 sampled rows, epsilon 0.1: "
            f"{ratio('clone and refit', '100 rows, epsilon 0.1', scale):.0f} x",
            f"{n_rows:,} scikit-learn refits ({refitted} measured) over exact leave-one-out: "
            f"greedy {ratio('scikit-learn refits', 'exact, greedy', n_rows / refitted):,.0f} x, "
            f"epsilon 0.1 "
            f"{ratio('scikit-learn refits', 'exact, epsilon 0.1', n_rows / refitted):,.0f} x",
            "",
        ]
    )


if __name__ == "__main__":
    wanted = sys.argv[1:] or [case.name for case in CASES]
    for case in CASES:
        if case.name in wanted:
            X, y = case.make()
            measure(0.1, X[:5000], y[:5000], 1)  # fills the cache of compiled code
            runs = compare(__file__, CONTENDERS, [case])[case.name]
            print(summary(runs, len(y)), flush=True)
