"""Figures of private-distributed, its mechanisms corrected, with whole-tree draws beside them.

    python studies/private_distributed/run.py [--data FOLDER] [--out FOLDER] [--repeats 3]
        [--sets adult bank] [--figures 1 2 3] [--minutes 10] [--quick]

FOLDER holds NAME.csv.gz files with the label in the last column, `target`; by default the one that
STEADYTREE_DATA names. Sets that are absent are left out. Every finished fit is kept in the output
folder, so a run that was stopped, or whose minutes were over, goes on where it was. Writes
results.txt and the figures 1 (leaf share), 2 and 5 (privacy curves, tree sizes), 3 and 6 (training
size). `--quick` needs no folder. Noise is seeded and repeated fits cost nothing here: these are
published data.
"""

import argparse
import csv
import json
import os
import pathlib
import sys
import time
from functools import partial
from itertools import chain, product

import numpy as np
from common import at_hand, public_schema, read, several, single, split
from pictures import TOP_DOWN, draw_all
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier
from tables import write_results

# most rows of each set that are used, taken by a fixed seed, so that all fits end in an hour
SETS = {
    "adult": 40_000,
    "bank": 50_000,
    "kddcup99_10pct": 20_000,
    "mnist-blocks_train": 10_000,
    "creditcard": 30_000,
    "skin": 60_000,
    "ctr": 60_000,
}
EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
SHARES, SHARE_EPSILONS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99), (0.125, 1.0, 8.0)
SIZES, SIZE_EPSILONS = (0.01, 0.05, 0.1, 1.0), (0.1, 1.0, 8.0)
ALONE = ("gibbs", "greedy", "topdown")
HOLDERS = ("delegate", "duel", "vote", "local_rnm", "noisy_counts", "secure_sum")
NO_NOISE = 1e6  # the largest epsilon there is: next to no noise
KEY = ("figure", "set", "method", "epsilon", "holders", "size", "seed")
COLUMNS = (*KEY, "test", "train", "depth", "nodes", "seconds")
QUICK_ROWS = 3_000


class Runs:
    """Finished fits in a file, one a line; those of other settings are refused."""

    def __init__(self, path, settings):
        self.path, self.rows = path, []
        noted = path.with_suffix(".json")
        if noted.exists() and json.loads(noted.read_text()) != settings:
            raise SystemExit(
                f"{path} was made with {noted.read_text().strip()}, this command has "
                f"{json.dumps(settings)}: continue with the old settings, or name another --out."
            )
        noted.write_text(json.dumps(settings) + "\n")
        if path.exists():
            with path.open(newline="") as file:
                self.rows = [tuple(row) for row in csv.reader(file)][1:]
        else:
            self._append(COLUMNS)
        self._done = {row[: len(KEY)]: row[len(KEY) :] for row in self.rows}

    def has(self, key):
        return tuple(map(str, key)) in self._done

    def find(self, key):
        """What was measured, or None."""
        return self._done.get(tuple(map(str, key)))

    def add(self, key, found):
        row = tuple(map(str, (*key, *found)))
        self._append(row)
        self.rows.append(row)
        self._done[row[: len(KEY)]] = row[len(KEY) :]

    def _append(self, row):
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerow(row)


class Cart:
    """scikit-learn's tree without privacy, on values as the schema reads them."""

    def __init__(self, schema, X, y):
        self.model = DecisionTreeClassifier(max_depth=6, random_state=0)
        self.model.fit(self._filled(schema.encode(X)), y)
        self.depth, self.n_nodes = self.model.get_depth(), self.model.tree_.node_count

    def predict(self, values):
        return self.model.predict(self._filled(values))

    @staticmethod
    def _filled(values):
        return np.nan_to_num(values, nan=-1e6)


def predict(model, values):
    """Answers for rows as a schema reads them, which is done once for all models."""
    if isinstance(model, Cart):
        return model.predict(values)
    tree = model.tree_
    return tree.classes[tree.label[tree.apply_encoded(values)]]


def curves(schema):
    """Figures 2 and 5: every method at every epsilon."""
    yield "2", "cart", 0.0, 1, 1.0, lambda X, y, seed: Cart(schema, X, y)
    for epsilon in (*EPSILONS, NO_NOISE):
        published = epsilon == NO_NOISE  # the paper's baselines: its methods without noise
        for method in ALONE[2:] if published else ALONE:
            yield "2", method, epsilon, 1, 1.0, single(schema, epsilon, method=method)
        for method in HOLDERS[3:5] if published else HOLDERS:
            yield "2", method, epsilon, 4, 1.0, several(schema, epsilon, method)


def leaf_shares(schema, shares=SHARES):
    """Figure 1: the leaves' share of the budget."""
    for epsilon, budget, share in product(SHARE_EPSILONS, ("decay", "uniform"), shares):
        more = {"budget": budget, "leaf_share": share}
        for method in TOP_DOWN:
            alone = method == "topdown"
            make = (single if alone else several)(schema, epsilon, method=method, **more)
            yield "1", f"{method} {budget} {share}", epsilon, 1 if alone else 4, 1.0, make


def sizes(schema):
    """Figures 3 and 6: parts of the training rows."""
    for size, epsilon in product(SIZES, SIZE_EPSILONS):
        for method in ("gibbs", "topdown"):
            yield "3", method, epsilon, 1, size, single(schema, epsilon, method=method)
        for method in ("delegate", *TOP_DOWN[1:]):
            yield "3", method, epsilon, 4, size, several(schema, epsilon, method)
    for size, method in product(SIZES, TOP_DOWN):  # the paper's baselines
        alone = method == "topdown"
        make = (single if alone else several)(schema, NO_NOISE, method=method)
        yield "3", method, NO_NOISE, 1 if alone else 4, size, make


FIGURES = {"2": curves, "1": leaf_shares, "3": sizes}


def measure(data, values, make, size, seed):
    """Test and training accuracy in percent, depth, nodes and seconds of CPU of one fit."""
    frame, y = data
    train, test = split(len(y), seed, size)
    start = time.process_time()
    model = make(frame.iloc[train], y[train], seed)
    seconds = time.process_time() - start
    found = [
        round(100 * float((predict(model, values[rows]) == y[rows]).mean()), 4)
        for rows in (test[:20_000], train[:20_000])
    ]
    tree = getattr(model, "tree_", model)
    return *found, tree.depth, tree.n_nodes, round(seconds, 3)


def study(name, data, runs, asked, seed):
    """Fit what is not yet fitted of one repeat; False where the time was over before that."""
    schema = public_schema(*data)
    values = schema.encode(data[0])
    settings = chain(*(FIGURES[figure](schema) for figure in asked.figures))
    for figure, method, epsilon, holders, size, make in settings:
        key = (figure, name, method, epsilon, holders, size, seed)
        if runs.has(key) or method.split()[0] not in asked.methods:
            continue
        if time.process_time() > 60 * asked.minutes:
            return False
        # all rows: the fit of figure 2 is the same
        found = runs.find(("2", *key[1:])) or measure(data, values, make, size, seed)
        runs.add(key, found)
        print(*key, *found, file=sys.stderr, flush=True)
    return True


def load(folder, name, most):
    """A set, or a part of it taken by a fixed seed."""
    frame, y = read(folder, name)
    if len(y) > most:
        kept = np.random.default_rng(0).permutation(len(y))[:most]
        frame, y = frame.iloc[kept].reset_index(drop=True), y[kept]
    return frame, y


def sets_at_hand(asked):
    """Every wanted set that is there; scikit-learn's breast cancer where no folder is named."""
    if asked.data is None:
        frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
        return {"breast-cancer": (frame, y.to_numpy())}
    there = [name for name in asked.sets if at_hand(asked.data, name)]
    most = dict.fromkeys(there, QUICK_ROWS) if asked.quick else SETS
    return {name: load(asked.data, name, most[name]) for name in there}


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=pathlib.Path, default=os.environ.get("STEADYTREE_DATA") or None
    )
    parser.add_argument("--out", type=pathlib.Path, default="private_distributed_out")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sets", nargs="*", default=[*SETS], choices=SETS)
    parser.add_argument("--figures", nargs="*", default=[*FIGURES], choices=FIGURES)
    known = [*ALONE, *HOLDERS, "cart"]
    parser.add_argument("--methods", nargs="*", default=known, choices=known)
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="CPU time to stop after"
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} rows, two repeats")
    asked = parser.parse_args()
    if not (asked.quick and asked.data is None) and not (asked.data and asked.data.is_dir()):
        parser.error("--data must name a folder with NAME.csv.gz files, or take --quick.")
    if asked.quick:
        asked.repeats = min(asked.repeats, 2)
        FIGURES["1"] = partial(leaf_shares, shares=SHARES[::3])
    return asked


def main():
    asked = read_arguments()
    asked.out.mkdir(parents=True, exist_ok=True)
    data = sets_at_hand(asked)
    runs = Runs(asked.out / "runs.csv", {"rows": QUICK_ROWS if asked.quick else SETS})
    # all sets before the next repeat, so that a run that ends early has something of each
    for seed, name in product(range(asked.repeats), data):
        if not study(name, data[name], runs, asked, seed):
            print("the minutes are over: run the same command again to go on")
            break
    write_results(runs.rows, asked.out / "results.txt")
    print((asked.out / "results.txt").read_text())
    draw_all(runs.rows, asked.out)


if __name__ == "__main__":
    main()
