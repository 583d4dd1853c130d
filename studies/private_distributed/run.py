"""Figures of private-distributed, its mechanisms corrected, with whole-tree draws beside them.

    python studies/private_distributed/run.py [--data FOLDER] [--out FOLDER] [--repeats 3]
        [--sets adult bank] [--figures 1 2 3] [--methods local_rnm] [--epsilons 1 8]
        [--minutes 10] [--quick | --full]

`--full` is the paper's protocol for its three algorithms: all rows, its split classes, entropy,
M = 512, epsilon from 1/8 to 512, half of it for the leaves, nine rows in ten to learn from (60,000
of MNIST's 70,000, as published), two classes of KDDCup; 10 repeats, where the paper has 100.

FOLDER holds NAME.csv.gz files with the label in the last column, `target`; by default the one that
STEADYTREE_DATA names. Sets that are absent are left out. Every finished fit is kept in the output
folder, so a run that was stopped, or whose minutes were over, goes on where it was. Writes
results.txt and the figures 1 (leaf share), 2 and 5 (privacy curves, tree sizes), 3 and 6 (training
size). `--quick` takes scikit-learn's breast cancer and needs no folder. Noise is seeded and
repeated fits cost nothing here: these are published data.
"""

import argparse
import os
import pathlib
import sys
import time
from functools import partial
from itertools import chain, product

import numpy as np
import topdown
from common import Runs, at_hand, public_schema, read, several, single, split
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
# the paper's protocol
PAPER = {"criterion": "entropy", "max_splits": 512, "error": 0.1, "budget": "decay"}
PAPER |= {"leaf_share": 0.5}
PAPER_EPSILONS = tuple(2.0**k for k in range(-3, 10))
FIXED = {"mnist-blocks": 60_000}  # rows to learn from where the set is published in two parts
KEY = ("figure", "set", "method", "epsilon", "holders", "size", "seed")
COLUMNS = (*KEY, "test", "train", "depth", "nodes", "seconds")
QUICK_ROWS = 3_000


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
    tree = getattr(model, "tree_", model)
    return tree.classes[tree.label[tree.apply_encoded(values)]]


def published(name, schema, epsilon, method, size=1.0, figure="2", **changes):
    """One setting of the paper's protocol; `changes` are told in its name."""
    alone, how = method == "topdown", PAPER | changes
    fit = topdown.one_machine if alone else topdown.several
    used = (topdown.N_BINS.get(name, 11), how)

    def make(X, y, seed):
        return fit("rnm" if alone else method, schema, epsilon, seed, *used, X, y)[0]

    told = " ".join([method, *map(str, changes.values())])
    return figure, told, epsilon, 1 if alone else 4, size, make


def as_published(name, schema, figure):
    """Figures 2 and 5, 1 and 4, or 3 and 6 with the paper's settings."""
    if figure == "1":
        for epsilon, budget, share in product(SHARE_EPSILONS, ("decay", "uniform"), SHARES):
            for method in TOP_DOWN:
                more = {"figure": "1", "budget": budget, "leaf_share": share}
                yield published(name, schema, epsilon, method, **more)
        return
    for epsilon, size in product((*PAPER_EPSILONS, NO_NOISE), SIZES if figure == "3" else (1.0,)):
        for method in TOP_DOWN:
            yield published(name, schema, epsilon, method, size, figure)


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


def measure(data, values, make, size, seed, cut=(0.8, None)):
    """Test and training accuracy in percent, depth, nodes and seconds of CPU of one fit."""
    frame, y = data
    train, test = split(len(y), seed, size, *cut)
    start = time.process_time()
    model = make(frame.iloc[train], y[train], seed)
    seconds = time.process_time() - start
    found = [
        round(100 * float((predict(model, values[rows]) == y[rows]).mean()), 4)
        for rows in (test, train[:20_000])
    ]
    tree = getattr(model, "tree_", model)
    return *found, tree.depth, tree.n_nodes, round(seconds, 3)


def study(name, data, runs, asked, seed):
    """Fit what is not yet fitted of one repeat; False where the time was over before that."""
    schema = public_schema(*data)
    values = schema.encode(data[0])
    cut = (0.9, FIXED.get(name)) if asked.full else (0.8, None)
    settings = chain(
        *(
            as_published(name, schema, figure) if asked.full else FIGURES[figure](schema)
            for figure in asked.figures
        )
    )
    for figure, method, epsilon, holders, size, make in settings:
        key = (figure, name, method, epsilon, holders, size, seed)
        wanted = method.split()[0] in asked.methods and epsilon in (asked.epsilons or (epsilon,))
        if key in runs or not wanted:
            continue
        if time.process_time() > 60 * asked.minutes:
            return False
        # all rows: the fit of figure 2 is the same
        found = runs.find(("2", *key[1:])) or measure(data, values, make, size, seed, cut)
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
    """Every wanted set that is there; scikit-learn's breast cancer where nothing is asked for."""
    if asked.sets is None:
        frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
        return {"breast-cancer": (frame, y.to_numpy())}
    if asked.full:
        there = [name for name in asked.sets if at_hand(asked.data, *topdown.FILES[name])]
        return {name: topdown.load(asked.data, name, float("inf")) for name in there}
    there = [name for name in asked.sets if at_hand(asked.data, name)]
    most = dict.fromkeys(there, QUICK_ROWS) if asked.quick else SETS
    return {name: load(asked.data, name, most[name]) for name in there}


def read_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=pathlib.Path, default=os.environ.get("STEADYTREE_DATA") or None
    )
    parser.add_argument("--out", type=pathlib.Path, default="private_distributed_out")
    parser.add_argument("--repeats", type=int, help="3; 10 with --full, 1 with --quick")
    known = [*dict.fromkeys([*SETS, *topdown.FILES])]
    parser.add_argument("--sets", nargs="*", choices=known, help="some of the sets; all")
    parser.add_argument("--figures", nargs="*", default=[*FIGURES], choices=FIGURES)
    known = [*ALONE, *HOLDERS, "cart"]
    parser.add_argument("--methods", nargs="*", default=known, choices=known)
    parser.add_argument("--epsilons", nargs="*", type=float, help="some of the epsilons; all")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="CPU time to stop after"
    )
    much = parser.add_mutually_exclusive_group()
    much.add_argument("--quick", action="store_true", help="scikit-learn's data")
    much.add_argument("--full", action="store_true", help="the paper's protocol, 10 repeats")
    asked = parser.parse_args(arguments)
    sets = topdown.FILES if asked.full else SETS
    if not asked.quick:
        asked.sets = asked.sets or [*sets]
    unknown = [name for name in asked.sets or () if name not in sets]
    if unknown:
        parser.error(f"there is no set {unknown[0]!r} here: choose some of {', '.join(sets)}.")
    asked.repeats = asked.repeats or (10 if asked.full else 1 if asked.quick else 3)
    if asked.sets is not None and not (asked.data and asked.data.is_dir()):
        parser.error("--data must name a folder with NAME.csv.gz files, or take --quick.")
    if asked.quick:
        FIGURES["1"] = partial(leaf_shares, shares=SHARES[::3])
    return asked


def main(arguments=None):
    asked = read_arguments(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    data = sets_at_hand(asked)
    rows = QUICK_ROWS if asked.quick else PAPER if asked.full else SETS
    runs = Runs(asked.out / "runs.csv", {"rows": rows}, len(KEY), COLUMNS)
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
