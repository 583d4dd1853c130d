"""Average sensitivity over epsilon: figures 2 to 7 of the paper, corrected, with tables.

Run it with `python studies/average_sensitivity/run.py`; `--quick` takes two minutes at most.
Finished cells are kept in the output folder, so a run that was stopped goes on where it was.
"""

import argparse
import pathlib
import sys
import time
from functools import partial

import bounds
import counts
import figure_3
from cells import alternatives, measure_cell
from pictures import frequent_trees, over_epsilon, trade_off
from tables import table, verdict

from data import all_sets, finished, quick_sets
from steadytree import StableTreeClassifier

FULL = {"samples": 10, "seeds": 10, "repeats": 100}
PARTS = ("figures", "bounds", "counts", "figure-3")
QUICK = {"samples": 3, "seeds": 3, "repeats": 30}


def main(arguments=None):
    """Measure what is not yet measured, then print tables and draw."""
    asked = read_arguments(arguments)
    plan = {
        name: getattr(asked, name) or value
        for name, value in (QUICK if asked.quick else FULL).items()
    }
    results = finished(asked.out / "results.jsonl", plan)
    there = []
    for data in quick_sets() if asked.quick else all_sets():
        there.append(data.name)
        if asked.sets and data.name not in asked.sets:
            continue
        if "figures" in asked.parts:
            cells = [measured(results, data, *cell, plan) for cell in wanted(data, asked)]
            show(data, cells, asked.out)
        if not data.is_large:
            show_checks(data, results, asked)
    unknown = [name for name in asked.sets or () if name not in there]
    if unknown:
        known = ", ".join(dict.fromkeys(there))
        raise SystemExit(f"there is no set {unknown[0]!r} here: choose some of {known}.")


def read_arguments(arguments):
    """What to run, how often, and where to put it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="scikit-learn's breast cancer only")
    parser.add_argument("--sets", nargs="*", help="names of data sets; all that are there")
    parser.add_argument(
        "--parts", nargs="*", choices=PARTS, default=PARTS, help="some of the parts; all"
    )
    parser.add_argument("--removed", nargs="*", type=float, help="1, 0.01, 0.1 or 0.3; all of them")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("average_sensitivity_out"))
    for name in FULL:
        parser.add_argument(f"--{name}", type=int)
    return parser.parse_args(arguments)


def wanted(data, asked):
    """Every epsilon with every number of removed rows; half the epsilons in a quick run."""
    epsilons = (0.0, *data.epsilons[1::2]) if asked.quick else data.epsilons
    shares = [removed for removed in data.removed if removed in (asked.removed or data.removed)]
    return [(epsilon, removed) for removed in shares for epsilon in epsilons]


def measured(results, data, epsilon, removed, plan):
    """A cell from the file, or measured now and put there."""
    key = {"data": data.name, "depth": data.depth, "epsilon": epsilon, "removed": removed, **plan}
    cell = results.find(**key)
    if cell is None:
        start = time.monotonic()
        cell = key | measure_cell(data, epsilon, removed, plan)
        results.add(cell)
        took = time.monotonic() - start
        say(f"{data.name}: epsilon {epsilon:g}, removed {removed:g} in {took:.1f} s")
    return cell


def show(data, cells, folder):
    """Print the table of a set and draw its figures."""
    print(f"\n{data.name}, depth {data.depth}\n\n{table(cells)}\n\n{verdict(cells)}", flush=True)
    title = f"{data.name}, depth {data.depth}"
    stem = "".join(letter if letter.isalnum() else "-" for letter in f"{data.name} {data.depth}")
    over_epsilon(cells, title, folder / f"figures-2-5-6-over-epsilon-{stem}.png")
    trade_off(cells, title, folder / f"figures-4-7-trade-off-{stem}.png")
    if not data.is_large:
        rows = [
            (name, *alternatives(data, epsilon))
            for name, epsilon in (("greedy", 0), ("epsilon 0.3", 0.3))
        ]
        for name, _, others in rows:
            shares = ", ".join(f"{100 * o.share:.0f} (distance {o.distance:g})" for o in others)
            print(f"most frequent trees of 100 without 10 % of the rows, {name}: {shares}")
        frequent_trees(rows, title, data.names, folder / f"figure-3-frequent-trees-{stem}.png")


def show_checks(data, results, asked):
    """Print the paper's bounds beside what was measured, and figure 3's count examined."""
    if "bounds" in asked.parts:
        learner = partial(StableTreeClassifier, coupling="rejection", criterion="count")
        seeds, n_thresholds = (range(2), 20) if asked.quick else (range(5), 500)
        found = bounds.table(data, learner, seeds, n_thresholds)
        print(f"\n{data.name}, depth {data.depth}: bounds\n\n{found}", flush=True)
    if "counts" in asked.parts:
        found = counts.table(data, *((2, 2, 50) if asked.quick else (10, 10)))
        title = "most frequent of 100 trees, by the levels that are compared"
        print(f"\n{data.name}, depth {data.depth}: {title}\n\n{found}", flush=True)
    if "figure-3" in asked.parts and data.name == "breast cancer with identifier":
        found = figure_3.table(figure_3.measured(results, data))
        title = "figure 3 by the authors' protocol, most frequent of 100 trees"
        print(f"\n{data.name}: {title}\n\n{found}", flush=True)


def say(message):
    """Progress, apart from the tables."""
    sys.stderr.write(message + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
