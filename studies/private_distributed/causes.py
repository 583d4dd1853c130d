"""Why DP-TopDown used to grow its largest trees where the noise is, on one machine.

    python studies/private_distributed/causes.py DATA_FOLDER [--splits 3]

Lines change parts of today's rule back: counts were only made positive, each split
was judged by its own counts, the weight of a leaf was the sum of its positive counts, and half of
epsilon was kept for the leaves. Splits 100 and following, on which the rule was chosen too.
"""

import argparse
import pathlib

import numpy as np
from common import public_schema, read, single, split

from steadytree.privacy import topdown
from steadytree.privacy.topdown import Estimate
from steadytree.privacy.tree_mechanism import size_gains

SETS = {"kddcup99_10pct": 20_000, "mnist-blocks_train": 20_000, "skin": 60_000, "adult": 40_000}
EPSILONS = (0.1, 1.0, 8.0)
TODAY = topdown._judge


def positive(weigh_positive):
    """A split judged by its own counts, made positive."""

    def judge(leaf, counted, criterion, least):
        counts = np.asarray(counted.counts, float)
        kept = np.maximum(counts, 0.0)
        gains = size_gains(kept, criterion)
        best = int(np.argmax(gains))
        leaf.split, leaf.gain = int(counted.splits[best]), float(gains[best])
        precision = 1 / counted.variance
        leaf.estimate = Estimate(counts.sum(axis=1).mean(axis=0), len(counts) * precision / 2)
        leaf.sides = tuple(Estimate(side, precision) for side in counts[best])
        size = float((kept[best] if weigh_positive else leaf.estimate.counts).sum())
        leaf.worthwhile = size >= least and leaf.gain > topdown.LEAST_GAIN[criterion] * size

    return judge


RULES = {
    "before": (positive(True), 0.5),
    "before, a tenth for leaves": (positive(True), 0.1),
    "weights not only positive": (positive(False), 0.1),
    "today, half for leaves": (TODAY, 0.5),
    "today": (TODAY, 0.1),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--splits", type=int, default=3)
    asked = parser.parse_args()
    print(f"{'test % (leaves) at epsilon':46}" + "".join(f"{e:>16g}" for e in EPSILONS))
    for name, most in SETS.items():
        frame, y = read(asked.data, name)
        kept = np.random.default_rng(0).permutation(len(y))[:most]
        frame, y = frame.iloc[kept].reset_index(drop=True), y[kept]
        schema = public_schema(frame, y)
        for rule, (topdown._judge, share) in RULES.items():
            shown = []
            for epsilon in EPSILONS:
                make = single(schema, epsilon, method="topdown", leaf_share=share)
                found = []
                for seed in range(100, 100 + asked.splits):
                    train, test = split(len(y), seed)
                    model = make(frame.iloc[train], y[train], seed)
                    right = (model.predict(frame.iloc[test]) == y[test]).mean()
                    found.append((100 * right, model.tree_.n_leaves))
                shown.append("{:8.2f} ({:5.1f})".format(*np.mean(found, axis=0)))
            print(f"{name:20}{rule:26}" + "".join(f"{each:>16}" for each in shown), flush=True)


if __name__ == "__main__":
    main()
