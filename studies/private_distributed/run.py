"""Figures of private-distributed, with its mechanisms corrected, and our whole-tree method beside.

    STEADYTREE_DATA=folder python studies/private_distributed/run.py [--out FOLDER] [--sets a,b]
    python studies/private_distributed/run.py --quick

`--quick` takes two repeats, three epsilons and at most 4,000 rows of each set; without a folder of
data it stays with scikit-learn's breast cancer.

The data folder holds NAME.csv.gz files with the label in the last column, `target`. Writes one csv
of all runs and one picture a set: leaf share (figure 1), privacy curves (2 and 5), training size
(3 and 6), and a table of holders. Sets that are absent are left out. Noise is seeded and repeated
fits cost nothing here: these are published data.
"""

import argparse
import csv
import os
import pathlib

import matplotlib.pyplot as plt
import numpy as np
from common import public_schema, read, several, single, split
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

SETS = ("adult", "bank", "kddcup99_10pct", "mnist-blocks_train", "creditcard", "skin")
EPSILONS, QUICK_EPSILONS, QUICK_ROWS = (0.1, 0.5, 1.0, 2.0, 8.0), (0.1, 1.0, 8.0), 4_000
SHARES, QUICK_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9), (0.1, 0.5, 0.9)
SHARE_EPSILONS = (0.125, 1.0, 8.0)
HOLDER_METHODS = ("delegate", "duel", "vote", "local_rnm", "noisy_counts", "secure_sum")
COLUMNS = ("figure", "set", "method", "epsilon", "holders", "size", "seed", "part", "accuracy")


class Runs:
    """Accuracy of every setting, repeated; kept as rows for the csv."""

    def __init__(self, repeats, quick):
        self.repeats, self.rows = repeats, []
        self.epsilons = QUICK_EPSILONS if quick else EPSILONS
        self.shares = QUICK_SHARES if quick else SHARES

    def add(self, figure, name, data, setting, make, share=1.0):
        frame, y = data
        for seed in range(self.repeats):
            train, test = split(len(y), seed, share)
            predict = make(frame.iloc[train], y[train], seed)
            for part, rows in (("test", test), ("train", train[:20_000])):
                accuracy = float((predict(frame.iloc[rows]) == y[rows]).mean())
                self.rows.append((figure, name, *setting, share, seed, part, accuracy))
        done = [row[-1] for row in self.rows[-2 * self.repeats :] if row[-2] == "test"]
        print(figure, name, *setting, share, f"{100 * np.mean(done):.2f}", flush=True)

    def mean(self, figure, name, setting, share=1.0, part="test"):
        key = (figure, name, *setting, share)
        return 100 * np.mean([r[-1] for r in self.rows if r[:6] == key and r[-2] == part])


def cart(schema):
    def make(X, y, seed):
        model = DecisionTreeClassifier(max_depth=6, random_state=seed)
        model.fit(np.nan_to_num(schema.encode(X), nan=-1e6), y)
        return lambda Z: model.predict(np.nan_to_num(schema.encode(Z), nan=-1e6))

    return make


def study(name, data, runs, out):
    schema = public_schema(*data)
    for epsilon in SHARE_EPSILONS:
        for budget in ("decay", "uniform"):
            for share in runs.shares:
                make = single(schema, epsilon, method="topdown", budget=budget, leaf_share=share)
                runs.add("1", name, data, (f"{budget} {share}", epsilon, 1), make)
    for epsilon in runs.epsilons:
        for method in ("gibbs", "greedy", "topdown"):
            make = single(schema, epsilon, method=method)
            runs.add("2", name, data, (method, epsilon, 1), make)
        for method in HOLDER_METHODS:
            runs.add("2", name, data, (method, epsilon, 4), several(schema, epsilon, method))
    runs.add("2", name, data, ("cart", 0.0, 1), cart(schema))
    for size in (0.01, 0.1, 1.0):
        for epsilon in runs.epsilons:
            runs.add("3", name, data, ("gibbs", epsilon, 1), single(schema, epsilon), size)
    draw(name, runs, out)


def draw(name, runs, out):
    shares, epsilons = runs.shares, runs.epsilons
    figure, axes = plt.subplots(1, 4, figsize=(18, 4), layout="constrained")
    for epsilon in SHARE_EPSILONS:
        for budget, style in (("decay", "-"), ("uniform", "--")):
            means = [runs.mean("1", name, (f"{budget} {s}", epsilon, 1)) for s in shares]
            axes[0].plot(shares, means, style, label=f"{budget}, epsilon {epsilon:g}")
    axes[0].set(
        xlabel="leaf share", ylabel="test accuracy, %", title=f"{name}: leaf share, topdown"
    )
    for place, part in ((1, "test"), (2, "train")):
        for method, k in [(m, 1) for m in ("gibbs", "greedy", "topdown")] + [
            (m, 4) for m in HOLDER_METHODS
        ]:
            means = [runs.mean("2", name, (method, e, k), part=part) for e in epsilons]
            label = method if k == 1 else f"{method}, 4 holders"
            axes[place].semilogx(epsilons, means, "-" if k == 1 else ":", marker=".", label=label)
        axes[place].axhline(runs.mean("2", name, ("cart", 0.0, 1), part=part), color="grey")
        axes[place].set(xlabel="epsilon", title=f"{part} accuracy (grey: CART)")
    for size in (0.01, 0.1, 1.0):
        means = [runs.mean("3", name, ("gibbs", e, 1), size) for e in epsilons]
        axes[3].semilogx(epsilons, means, marker=".", label=f"{100 * size:g} % of the rows")
    axes[3].set(xlabel="epsilon", title="training size, gibbs")
    for one in axes:
        one.legend(fontsize=6)
    figure.savefig(out / f"figures-1-2-3-{name}.png", dpi=110)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("private_distributed_out"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--quick", action="store_true", help="two repeats, few settings and rows")
    options = parser.parse_args()
    folder = os.environ.get("STEADYTREE_DATA")
    if not folder and not options.quick:
        parser.error("name the folder with the data sets in STEADYTREE_DATA, or pass --quick")
    options.out.mkdir(parents=True, exist_ok=True)
    runs = Runs(2 if options.quick else options.repeats, options.quick)
    for name, frame, y in sets_at_hand(folder, options.sets.split(",")):
        if options.quick and len(y) > QUICK_ROWS:
            kept = np.random.default_rng(0).permutation(len(y))[:QUICK_ROWS]
            frame, y = frame.iloc[kept].reset_index(drop=True), y[kept]
        study(name, (frame, y), runs, options.out)
        write(runs, options.out)


def sets_at_hand(folder, names):
    """Name, rows and labels of every set in the folder; of breast cancer where none is named."""
    if not folder:
        frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
        yield "breast-cancer", frame, y.to_numpy()
        return
    for name in names:
        if (pathlib.Path(folder) / f"{name}.csv.gz").exists():
            yield name, *read(pathlib.Path(folder), name)


def write(runs, out):
    """All runs so far, and a table of the means on rows that were not learned from."""
    with (out / "runs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(runs.rows)
    settings = dict.fromkeys(row[:6] for row in runs.rows)
    with (out / "results.txt").open("w") as file:
        for figure, name, method, epsilon, k, share in settings:
            mean = runs.mean(figure, name, (method, epsilon, k), share)
            file.write(
                f"figure {figure}  {name:20} {method:14} epsilon {epsilon:<6g} holders {k}  "
                f"rows {share:<5g} {mean:6.2f}\n"
            )


if __name__ == "__main__":
    main()
