"""DP-TopDown with its three ways to find a split, at equal budgets, splits and limits.

    python studies/private_distributed/topdown.py --data FOLDER --out FOLDER [--repeats 10]
        [--sets adult skin] [--criterion entropy] [--max-splits 512] [--rows 60000] [--minutes 10]

RNM on one machine, LocalRNM and NoisyCounts among four holders; `gibbs` on one machine, `delegate`
and `vote` among the holders beside them. Candidate splits are the published ones: 10 thresholds a
numeric column (Skin 32, MNIST blocks 3), single categories. KDDCup has two classes, malicious and
normal. Nine rows in ten are learned from. Every finished fit is a line in FOLDER/topdown.csv; the
same command goes on where it stopped. Noise is seeded: nothing here is private.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time
from itertools import pairwise, product

import numpy as np
from common import Runs, at_hand, public_schema, read, share_out

from steadytree.federated.answer_store import AnswerStore
from steadytree.federated.coordinator import bins_of
from steadytree.federated.gateway import Gateway
from steadytree.federated.holder import Holder, schema_digest
from steadytree.federated.session import Session
from steadytree.federated.strategies import METHODS
from steadytree.federated.transport import InMemory, RemoteHolders
from steadytree.privacy.growers import build_tree, plausible_counts
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.private_tree import PrivateTreeClassifier
from steadytree.privacy.topdown import TopDown

FILES = {
    "adult": ("adult",),
    "bank": ("bank",),
    "kddcup": ("kddcup99_10pct",),
    "mnist-blocks": ("mnist-blocks_train", "mnist-blocks_test"),
    "skin": ("skin",),
    "creditcard": ("creditcard",),
    "ctr": ("ctr",),  # with 32 thresholds a column; published are 4 to 100
}
N_BINS = {"mnist-blocks": 4, "skin": 33, "ctr": 33}  # one more than the published thresholds
PUBLISHED = ("rnm", "local_rnm", "noisy_counts")
OURS = ("gibbs", "delegate", "vote")
EPSILONS = (0.125, 0.5, 1.0, 2.0, 8.0, 64.0)
HOLDERS = 4
KEY = ("set", "method", "epsilon", "seed")
FOUND = ("test", "train", "depth", "leaves", "rounds", "numbers", "bytes", "seconds")


def load(folder, name, most):
    """Rows and labels, at most `most` of them by a fixed seed."""
    frame, y = read(folder, *FILES[name])
    if name == "kddcup":
        y = np.where(np.char.startswith(y.astype(str), "normal"), "normal", "malicious")
    if len(y) > most:
        kept = np.random.default_rng(0).permutation(len(y))[:most]
        frame, y = frame.iloc[kept].reset_index(drop=True), y[kept]
    return frame, y


def one_machine(method, schema, epsilon, seed, n_bins, limits, X, y):
    """The tree, and nothing that is sent."""
    chosen = {"method": "gibbs"}
    if method == "rnm":
        chosen = {"method": "topdown", "n_bins": n_bins, **limits}
    model = PrivateTreeClassifier(epsilon, schema, testing_seed=seed, **chosen).fit(X, y)
    return model.tree_, (0, 0, 0)


def several(method, schema, epsilon, seed, n_bins, limits, X, y):
    """The tree, and rounds, numbers and bytes of the messages of all holders."""
    part = share_out(y, HOLDERS, None, np.random.default_rng(seed))
    with tempfile.TemporaryDirectory() as folder:
        gateways = []
        for j in range(HOLDERS):
            ledger = Ledger(f"{folder}/{j}", epsilon)
            rows = (X[part == j], y[part == j], ledger)
            holder = Holder(f"h{j}", schema, *rows, testing_seed=1_000 * seed + j)
            store = AnswerStore(
                pathlib.Path(folder) / f"{j}.answers", holder.name, schema_digest(schema)
            )
            gateways.append((Gateway(holder, store), store))
        reached = RemoteHolders(InMemory([gateway for gateway, _ in gateways]), False)
        bins = n_bins if method in PUBLISHED else bins_of(method, schema, 64)
        session = Session(reached, schema, epsilon, "study", bins, limits=TopDown(**limits))
        order = np.random.default_rng(seed).permutation(HOLDERS).tolist()
        sampled, counts = METHODS[method](session, order)
        for _, store in gateways:
            store.close()
    tree = build_tree(sampled, session.candidates, schema, plausible_counts(counts))
    traffic = reached.traffic
    sent = (len(traffic.seconds), session.numbers, traffic.bytes_in + traffic.bytes_out)
    return tree, sent


def measure(data, schema, values, method, epsilon, seed, n_bins, limits):
    """One fit: accuracy, size, and what was sent."""
    frame, y = data
    mixed = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(mixed, [int(0.9 * len(y))])
    start = time.process_time()
    fit = one_machine if method in ("rnm", "gibbs") else several
    tree, sent = fit(method, schema, epsilon, seed, n_bins, limits, frame.iloc[train], y[train])
    seconds = time.process_time() - start
    predicted = tree.classes[tree.label[tree.apply_encoded(values)]]
    right = [round(100 * float((predicted[rows] == y[rows]).mean()), 4) for rows in (test, train)]
    return *right, tree.depth, tree.n_leaves, *sent, round(seconds, 3)


def table(runs, settings):
    """Means, standard errors, and whether RNM >= LocalRNM >= NoisyCounts, as text."""
    groups = {}
    for name, method, epsilon, seed, *numbers in runs.rows:
        own = groups.setdefault((name, float(epsilon)), {}).setdefault(method, {})
        own[seed] = [float(number) for number in numbers]
    lines = [json.dumps(settings), "", f"{'set':13}{'eps':>6}  {'method':13}" + HEAD]
    verdicts = []
    for name, epsilon in sorted(groups):
        methods = groups[name, epsilon]
        for method in (*PUBLISHED, *OURS):
            if method in methods:
                numbers = np.array(list(methods[method].values()))
                error = numbers[:, 0].std(ddof=1) / len(numbers) ** 0.5 if len(numbers) > 1 else 0
                means = numbers.mean(axis=0)
                lines.append(
                    f"{name:13}{epsilon:6g}  {method:13}{len(numbers):7d}{means[0]:8.2f} "
                    f"± {error:4.2f}{means[1]:8.2f}{means[2]:7.1f}{means[3]:8.1f}{means[4]:7.1f}"
                    f"{means[5]:11.0f}{means[6]:12.0f}{means[7]:7.2f}"
                )
        for better, worse in pairwise(PUBLISHED):
            both = sorted(set(methods.get(better, ())) & set(methods.get(worse, ())))
            if len(both) > 1:
                gaps = np.array([methods[better][s][0] - methods[worse][s][0] for s in both])
                error = gaps.std(ddof=1) / len(gaps) ** 0.5
                holds = "holds" if gaps.mean() >= -2 * error else "FAILS"
                verdicts.append(
                    f"{name:13}{epsilon:6g}  {better} - {worse}: "
                    f"{gaps.mean():+.2f} ± {error:.2f} ({len(gaps)} pairs), >= 0 {holds}"
                )
    return (
        "\n".join([*lines, "", "differences of test accuracy, paired by split", *verdicts]) + "\n"
    )


HEAD = (
    f"{'fits':>7}{'test %':>15}{'train %':>8}{'depth':>7}{'leaves':>8}{'rounds':>7}"
    f"{'numbers':>11}{'bytes':>12}{'CPU s':>7}"
)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--sets", nargs="*", default=[*FILES], choices=FILES)
    parser.add_argument("--methods", nargs="*", default=[*PUBLISHED, *OURS])
    parser.add_argument("--epsilons", nargs="*", type=float, default=[*EPSILONS])
    parser.add_argument("--criterion", default="gini")
    parser.add_argument("--budget", default="decay")
    parser.add_argument("--leaf-share", type=float, default=0.1)
    parser.add_argument("--max-splits", type=int, default=512)
    parser.add_argument("--rows", type=int, default=60_000, help="most rows of a set")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="CPU time")
    return parser.parse_args()


def main():
    asked = read_arguments()
    limits = {"criterion": asked.criterion, "budget": asked.budget}
    limits |= {"leaf_share": asked.leaf_share, "max_splits": asked.max_splits, "error": 0.1}
    TopDown(**limits)
    settings = {**limits, "rows": asked.rows}
    runs = Runs(asked.out / "topdown.csv", settings, len(KEY))
    there = [name for name in asked.sets if at_hand(asked.data, *FILES[name])]
    data = {name: load(asked.data, name, asked.rows) for name in there}
    schemas = {name: public_schema(*data[name]) for name in there}
    values = {name: schemas[name].encode(data[name][0]) for name in there}
    # all sets before the next repeat, so that a run that ends early has something of each
    everything = product(range(asked.repeats), there, asked.epsilons, asked.methods)
    for seed, name, epsilon, method in everything:
        key = (name, method, epsilon, seed)
        if key in runs:
            continue
        if time.process_time() > 60 * asked.minutes:
            print("the minutes are over: run the same command again to go on")
            break
        how = (method, epsilon, seed, N_BINS.get(name, 11), limits)
        found = measure(data[name], schemas[name], values[name], *how)
        runs.add(key, found)
        print(*key, *found, file=sys.stderr, flush=True)
    (asked.out / "topdown.txt").write_text(table(runs, settings))
    print((asked.out / "topdown.txt").read_text())


if __name__ == "__main__":
    main()
