"""The stable tree as it is by default beside scikit-learn's tree of its depth: AUC of two classes.

``STEADYTREE_DATA=folder python studies/steady/stable.py [--repeats 5] [--sets NAME ...]``: every
set of the folder with two classes and at least 100 rows, at most 1,500 of them; five folds,
repeated, and another seed of the tree in each repeat. Intervals are those of Nadeau and Bengio
(2003).
"""

import argparse
import os
import pathlib

import numpy as np
from run import FIRST_SEED, area
from scipy import stats
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from data import Encoded, full_sets

LIMIT, LEAST_ROWS, MOST_ROWS, N_FOLDS = 0.01, 100, 1500, 5


def areas(X, y, repeats):
    """AUC of both (n_fits, 2)."""
    numbers, found = Encoded(X).numbers, []
    for repeat in range(repeats):
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=FIRST_SEED + repeat)
        for train, test in folds.split(y, y):
            ours = st.StableTreeClassifier(random_state=repeat).fit(X.iloc[train], y[train])
            theirs = DecisionTreeClassifier(max_depth=ours.max_depth, random_state=0)
            theirs.fit(numbers[train], y[train])
            shares = ours.predict_proba(X.iloc[test]), theirs.predict_proba(numbers[test])
            found.append([area(y[test], share) for share in shares])
    return np.array(found)


def main(arguments=None):
    """One line a set, then how many miss the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sets", nargs="*")
    asked = parser.parse_args(arguments)
    folder = pathlib.Path(os.environ.get("STEADYTREE_DATA", "."))
    names = asked.sets or sorted(path.name[:-7] for path in folder.glob("*.csv.gz"))
    lower, n_sets = [], 0
    print("| set | stable | scikit-learn | difference |\n| --- | ---: | ---: | ---: |")
    for name, X, y in full_sets(names, MOST_ROWS):
        if y.max() != 1 or len(y) < LEAST_ROWS:
            continue
        found = areas(X, y, asked.repeats)
        apart = found[:, 0] - found[:, 1]
        spread = apart.std(ddof=1) * np.sqrt(1 / len(apart) + 1 / (N_FOLDS - 1))
        half = stats.t.ppf(0.975, len(apart) - 1) * spread
        ours, theirs = found.mean(axis=0)
        print(f"| {name} | {ours:.3f} | {theirs:.3f} | {apart.mean():+.4f} +- {half:.4f} |")
        n_sets += 1
        if apart.mean() < -LIMIT:
            lower.append(name)
    lower = f"{len(lower)} {', '.join(lower)}".rstrip()
    print(f"\nof {n_sets} sets lower by more than {LIMIT}: {lower}")


if __name__ == "__main__":
    main()
