"""Separation, risk scores and their robustness: paper, published way, ours, and peers.

    python studies/separation/run.py                quick: scikit-learn's data, under two minutes
    STEADYTREE_DATA=folder python studies/separation/run.py --full --peers groot imodels fasterrisk

Splits are train_test_split(test_size=0.33, random_state=seed), columns scaled to [0, 1] on the
training part. ER is the mean exact distance to another answer of the test rows that are right and
can be moved there; for the published way a column of ones, its intercept, may be moved too, as in
the paper. Finished cells are kept in the output folder, so a stopped run goes on where it was.
"""

import argparse
import pathlib
import sys

import numpy as np
import pandas as pd
import theory
from methods import METHODS, PEERS, box, judge, published, warm_up
from sklearn.tree import DecisionTreeClassifier
from tables import (
    PAIRS,
    bound_table,
    comparison_table,
    count_table,
    cut_table,
    error_table,
    figure_table,
    mean_table,
    paired_table,
    plane_table,
    separation_table,
)

from data import FILES, column_names, finished, full_sets, quick_sets, split
from steadytree import RiskScoreClassifier, separation
from steadytree.models.scorecard import as_scorecard

NOISES = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25)
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30)
PART = {"separation": "2", "methods": "3", "figures": "145", "cut": "5", "theory": "", "cards": "1"}


def main(arguments=None):
    """Measure what is not yet measured, then print tables and draw."""
    asked = read_arguments(arguments)
    results = finished(asked.out / "results.jsonl", {"sets": "full" if asked.full else "quick"})
    seeds = range(asked.first, asked.first + (asked.splits or (10 if asked.full else 2)))
    names = []
    if "methods" in asked.parts:
        warm_up(asked.methods)
    for name, X, y in full_sets(asked.sets) if asked.full else quick_sets():
        names.append(name)
        if "separation" in asked.parts:
            keep(results, {"set": name, "table": 2}, lambda X=X, y=y: apart(X, y))
        if "methods" in asked.parts:
            compare(results, name, X, y, seeds, asked)
        if "figures" in asked.parts:
            trade_offs(results, name, X, y, seeds)
        if "cut" in asked.parts:
            for seed in seeds:
                key = {"set": name, "method": "cut", "seed": seed}
                keep(results, key, lambda X=X, y=y, seed=seed: cut_card(*split(X, y, seed)))
        if "cards" in asked.parts and name == "bank":
            print(bank_card(*split(X, y, asked.first)[::2]), end="\n\n")
    show(results.cells, names, seeds, asked)


def read_arguments(arguments):
    """What to run, how often, and where to put it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="scikit-learn's data, 2 splits (usual)")
    size.add_argument("--full", action="store_true", help="the paper's sets, 10 splits")
    parser.add_argument("--sets", nargs="*", choices=FILES, help="names of sets; all of them")
    parser.add_argument("--parts", nargs="*", choices=PART, default=list(PART))
    peers = ("groot", "imodels", "fasterrisk")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--peers", nargs="*", choices=peers, default=[])
    parser.add_argument("--peer-splits", type=int, default=1)
    parser.add_argument("--splits", type=int)
    parser.add_argument("--first", type=int, default=0, help="the first split's seed")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("separation_out"))
    return parser.parse_args(arguments)


def keep(results, key, measure):
    """A cell from the file, or measured now and put there."""
    if results.find(**key) is None:
        results.add(key | measure())
        sys.stderr.write(" ".join(map(str, key.values())) + "\n")


def is_binary(X):
    """Whether all columns have two values: then noise below one half changes no answer."""
    return all(len(np.unique(column)) <= 2 for column in X.T)


def apart(X, y):
    """A row of Table 2."""
    found = separation(X, y, r=1e-5)
    return {
        "rows": len(y),
        "columns": X.shape[1],
        "binary": sum(len(np.unique(column)) == 2 for column in X.T),
        "positive": float(y.mean()),
        "separateness": found.separateness,
        "two_r": found.two_r,
        "linear": found.linear.separateness,
        "gamma": found.linear.gamma,
        "separateness_05": separation(X, y, r=0.05).separateness,
    }


def cut_card(a, b, c, d):
    """Figure 5: accuracy on test rows of the published card after its first votes."""
    a, b = (np.column_stack([part, np.ones(len(part))]) for part in (a, b))
    return {"accuracies": theory.cut_accuracies(theory.boost_votes(a, c), b, d)}


def bank_card(X, y):
    """Table 1: the published card of bank with 19 votes; the last column is ones."""
    frame = pd.DataFrame(np.column_stack([X, np.ones(len(X))]))
    frame.columns = [*column_names("bank"), "(ones)"]
    card = as_scorecard(RiskScoreClassifier.as_published().set_params(n_rounds=19).fit(frame, y))
    lines = ["| condition of the published card of bank | points |", "| --- | ---: |"]
    for condition, points in zip(card.conditions, card.points, strict=True):
        lines.append(f"| {frame.columns[condition.feature]} | {int(points[-1])} |")
    return "\n".join([*lines, f"| bias | {int(card.offset[-1])} |"])


def compare(results, name, X, y, seeds, asked):
    """Tables 3 and 4: every method on every split."""
    peers = {m: run for m, run in PEERS.items() if m.split(",")[0].lower() in asked.peers}
    for seed in seeds:
        parts = split(X, y, seed)
        ours = {method: METHODS[method] for method in asked.methods}
        chosen = ours | (peers if seed < seeds[0] + asked.peer_splits else {})
        for method, run in chosen.items():
            key = {"set": name, "method": method, "seed": seed}
            keep(results, key, lambda run=run, parts=parts, seed=seed: run(*parts, seed))


def trade_offs(results, name, X, y, seeds):
    """Figures 1 and 4 over noise, figure 5 over the number of conditions."""
    for seed in seeds:
        a, b, c, d = split(X, y, seed)

        def ours(a=a, b=b, c=c, d=d, **changes):
            changes = {"objective": "majority", "max_conditions": None} | changes
            model = RiskScoreClassifier(random_state=0, **changes).fit(a, c)
            return judge(model, b, d, box(a, b))

        def theirs(a=a, b=b, c=c, d=d, **changes):
            return published(a, b, c, d, 0, **changes)

        for tau in () if is_binary(X) else NOISES:
            for who, run in (("published", theirs), ("ours", ours)):
                key = {"set": name, "method": f"noise {who}", "setting": tau, "seed": seed}
                keep(results, key, lambda run=run, tau=tau: run(noise=tau))
        for size in SIZES:
            for who, run, more in (
                ("published", theirs, {"n_rounds": size}),
                ("ours", ours, {"noise": 0.05, "max_conditions": size}),
            ):
                key = {"set": name, "method": f"size {who}", "setting": size, "seed": seed}
                keep(results, key, lambda run=run, more=more: run(**more))


def show(cells, names, seeds, asked):
    """Print the tables and draw the figures of what is there."""
    cells = [c for c in cells if c["set"] in names and c.get("seed", seeds[0]) in seeds]
    rows = [c for c in cells if c.get("table") == 2]
    if rows:
        print(separation_table(rows), end="\n\n")
        print(bound_table(rows), end="\n\n")
    if "theory" in asked.parts:
        print(construction_table(), end="\n\n")
    ran = [c for c in cells if c.get("method") in METHODS | PEERS]
    if ran:
        methods = [m for m in METHODS | PEERS if any(c["method"] == m for c in ran)]
        print(comparison_table(ran, methods), end="\n\n")
        print(error_table(ran, methods), end="\n\n")
        counted = count_table(ran)
        if counted:
            print(counted, end="\n\n")
        planes = [c for c in ran if c.get("er_moved") is not None]
        if planes:
            print(plane_table(planes), end="\n\n")
        own = [m for m in methods if m in METHODS]  # peers may have been run on fewer sets
        several = len({c["set"] for c in ran}) > 1
        for listed in ((own, methods) if own and own != methods else (methods,)) if several else ():
            print(mean_table(ran, listed), end="\n\n")
        if any({*pair} <= {*methods} for pair in PAIRS):
            print(paired_table(ran), end="\n\n")
    cut = [c for c in cells if c.get("method") == "cut"]
    if cut:
        print(cut_table(cut), end="\n\n")
    draw(cells, names, asked.out)


def construction_table():
    """Trees on the data of Theorems 1 and 3, beside the accuracy that no tree exceeds."""
    lines = ["| data | points | leaves | accuracy of CART | no tree exceeds |"]
    lines.append("| --- " + "| ---: " * 4 + "|")
    made = [("Theorem 1", *theory.staircase(250), theory.staircase_limit, 1000)]
    made.append(("Theorem 3, d = 10", *theory.parity(10), theory.parity_limit, 10))
    for name, X, y, limit, size in made:
        for n_leaves in (2, 8, 32, 128, 512, None):
            tree = DecisionTreeClassifier(max_leaf_nodes=n_leaves, random_state=0).fit(X, y)
            own, most = tree.get_n_leaves(), min(limit(tree.get_n_leaves(), size), 1.0)
            lines.append(f"| {name} | {len(y):,} | {own} | {tree.score(X, y):.4f} | {most:.4f} |")
    return "\n".join(dict.fromkeys(lines))  # a tree may have fewer leaves than it is allowed


def draw(cells, names, folder):
    """Print and draw the figures of which there is something."""
    from pictures import noise_picture, size_picture

    for kind, picture, file in (
        ("noise", noise_picture, "figures-1-4-noise.png"),
        ("size", size_picture, "figure-5-size.png"),
    ):
        methods = {f"{kind} published", f"{kind} ours"}
        ran = {c["set"] for c in cells if c.get("method") in methods}
        drawn = [name for name in names if name in ran]
        if drawn:
            print(figure_table(cells, kind), end="\n\n")
            picture(cells, drawn, folder / file)


if __name__ == "__main__":
    main()
