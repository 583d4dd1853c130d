"""The steady tree beside CART and others: accuracy, AUC, changed decisions, distance.

    python studies/steady/run.py                    quick: scikit-learn's data, 2 x 5 folds
    STEADYTREE_DATA=folder python studies/steady/run.py --full --peers

Five folds, repeated. `changed` is the share of all rows whose prediction differs between the trees
of two folds of one repeat; `distance` is the path distance of these trees over the raw columns.
The recipe was chosen on the development sets only, with other folds than these. Finished cells are
kept in the output folder, so a stopped run goes on where it was.
"""

import argparse
import itertools
import pathlib
import sys
import time
from types import SimpleNamespace

import numpy as np
from methods import OTHERS, PEERS, fit, methods
from pictures import draw
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from tables import report

import steadytree as st
from data import Encoded, full_sets, quick_sets
from steadytree.data.feature_space import FeatureSpace
from steadytree.reporting.study import Results

FIRST_SEED = 500  # of the divisions into folds; those that chose the recipe have smaller ones


def main(arguments=None):
    """Measure what is not yet measured, then print tables and draw."""
    asked = read_arguments(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    results = Results(asked.out / "results.jsonl")
    sets = full_sets(asked.sets, asked.most) if asked.full else quick_sets()
    wanted = methods(asked.methods, PEERS if asked.peers else ())
    names = []
    for name, X, y in sets:
        names.append(name)
        space, encoded = FeatureSpace.observe(X), Encoded(X)
        case = SimpleNamespace(X=X, y=y, space=space, encoded=encoded, n_classes=int(y.max()) + 1)
        for (method, leaves), repeat in itertools.product(wanted, range(asked.repeats)):
            key = {"set": name, "method": method, "leaves": leaves, "repeat": repeat}
            key |= {"most": asked.most, "first": asked.first}
            if results.find(**key) is None:
                found = measure(method, leaves, case, asked.first + repeat)
                results.add(key | found)
                sys.stderr.write(f"{name}: {method} {leaves or ''} {repeat}\n")
    cells = [cell for cell in results.cells if cell["set"] in names]
    cells = [c for c in cells if c["most"] == asked.most and c["first"] == asked.first]
    print(report(cells, asked.full))
    draw(cells, asked.out)


def read_arguments(arguments):
    """What to run, how often, and where to put it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="scikit-learn's data, 2 repeats (usual)")
    size.add_argument("--full", action="store_true", help="the sets of STEADYTREE_DATA, 5 repeats")
    parser.add_argument("--sets", nargs="*", help="names of sets; usually both halves")
    parser.add_argument("--methods", nargs="*", choices=OTHERS, help="beside CART and the steady")
    parser.add_argument("--peers", action="store_true", help="imodels and pystreed too")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="seed of the first folds")
    parser.add_argument("--most", type=int, default=1500, help="rows of a set at the most")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("steady_out"))
    asked = parser.parse_args(arguments)
    asked.repeats = asked.repeats or (5 if asked.full else 2)
    asked.methods = OTHERS if asked.methods is None else asked.methods
    return asked


def measure(method, leaves, case, seed):
    """One method on one division into five folds."""
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    trees, accuracy, auc, loss, seconds = [], [], [], [], []
    for train, test in folds.split(case.y, case.y):
        start = time.process_time()
        tree = fit(method, leaves, case, train)
        seconds.append(time.process_time() - start)
        shares = tree.predict_proba(case.X.iloc[test])
        truth = case.y[test]
        accuracy.append(float(np.mean(shares.argmax(axis=1) == truth)))
        auc.append(area(truth, shares))
        picked = shares[np.arange(len(truth)), truth]
        loss.append(float(-np.log(np.clip(picked, 1e-3, 1)).mean()))
        trees.append(tree)
    answers = [tree.predict(case.X) for tree in trees]
    changed = [float(np.mean(a != b)) for a, b in itertools.combinations(answers, 2)]
    apart = st.tree_distance(trees, space=case.space)[np.triu_indices(5, 1)]
    return {
        "accuracy": accuracy,
        "auc": auc,
        "loss": loss,
        "changed": float(np.mean(changed)),
        "distance": float(np.mean(apart)),
        "size": float(np.mean([tree.n_leaves for tree in trees])),
        "seconds": float(np.mean(seconds)),
    }


def area(truth, shares):
    """AUC; with several classes the mean of one against the rest."""
    if shares.shape[1] == 2:
        return float(roc_auc_score(truth, shares[:, 1]))
    each = [roc_auc_score(truth == k, shares[:, k]) for k in np.unique(truth)]
    return float(np.mean(each))


if __name__ == "__main__":
    main()
