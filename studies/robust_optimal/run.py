"""Figures 2 to 4 of robust-optimal: proofs over time, and what robustness gains under shifts.

``python studies/robust_optimal/run.py [proofs] [gains] [stages] [figures] [--quick | --full]
[--sets monks-1 car] [--depths 2 3] [--minutes 10] [--out robust_optimal_out]``. ``--full`` is the
paper's grid: 12 sets, depths 2 to 5, four means, seven confidences and the plain tree, a split of
the rows for each instance, 7,200 s an instance (``--seconds 2``: fewer). Finished instances are
kept in the folder `out` as lines of JSON, so that a run that was stopped goes on; ``--minutes``
ends it after so many minutes of CPU time. `figures` prints the tables and draws the figures from
what is there.
"""

import argparse
import pathlib
import time

import numpy as np
from instances import MADE, SETS, TWELVE, available, draw_certainty, finished, has_data, load
from measure import gain, proof
from one_stage import best_one_stage

from steadytree import Perturbation, RobustTreeClassifier

CONFIDENCES = (0.5, 0.75, 0.85, 0.9, 0.95, 0.97, 0.99)
MEANS = (0.6, 0.7, 0.8, 0.9)
DEEP = ("monks-1", "monks-2", "monks-3", "hayes-roth")  # where depth 5 ends at all
DEFAULT = {
    "names": (
        "monks-1",
        "monks-2",
        "monks-3",
        "hayes-roth",
        "balance-scale",
        "monks-1_enc",
        "hayes-roth_enc",
        "soybean-small_enc",
    ),
    "depths": (2, 3, 4, 5),
    "confidences": CONFIDENCES,
    "means": MEANS,
    "time_limit": 2,
    "own_split": False,
}
FULL = DEFAULT | {"names": TWELVE, "time_limit": 7200, "own_split": True}
QUICK = {
    "names": ("monks-1", "monks-3", "hayes-roth"),
    "depths": (2, 3),
    "confidences": (0.75, 0.85, 0.95),
    "means": (0.8,),
    "time_limit": 20,
    "own_split": False,
}


PARTS = ("proofs", "gains", "stages", "figures")


class OutOfTime(Exception):
    """The minutes given are over."""


def instances_of(settings):
    """Every combination of set, depth, mean certainty and confidence."""
    for name in available(settings["names"]):
        for depth in settings["depths"]:
            if depth > 4 and name not in DEEP and settings["names"] == DEFAULT["names"]:
                continue
            for mean in settings["means"]:
                for confidence in settings["confidences"]:
                    yield {"set": name, "depth": depth, "mean": mean, "confidence": confidence}


def proofs(settings, results, check):
    """Measure what is not there yet: CPU seconds to the proof, or the gap where there was none."""
    warm = {}
    for asked in instances_of(settings | {"confidences": settings["proof_confidences"]}):
        if results.find(study="proof", **asked) is not None:
            continue
        check()
        if asked["depth"] not in warm:  # compilation is left out, and takes long the first time
            for confidence in (0.75, 1.0):
                proof(*load(MADE[0]), asked | {"confidence": confidence}, 60)
            warm[asked["depth"]] = True
        own = settings["own_split"]
        found = proof(*load(asked["set"]), asked, settings["time_limit"], own)
        results.add({"study": "proof", **asked, **found})


def gains(settings, results, check):
    """Measure what is not there yet: worst and average accuracy of both trees under all shifts."""
    for asked in instances_of(settings):
        if results.find(study="gain", **asked) is None:
            check()
            own = settings["own_split"]
            found = gain(*load(asked["set"]), asked, settings["time_limit"], own)
            results.add({"study": "gain", **asked, **found})


def stages(settings):
    """Print the best trees of depth 2 decided before the shift beside those decided after it."""
    print("rows kept in the worst case by the best tree of depth 2: one stage, two stages, rows")
    for name in available(settings["names"]):
        X, y = load(name)
        if X.shape[1] > 6:
            continue
        certainty = draw_certainty(X.columns, 0.8)
        step_cost = -np.log1p(-np.array([*certainty.values()]).clip(max=1 - 1e-12))
        for confidence in settings["confidences"]:
            noise = Perturbation.from_certainty(certainty, confidence)
            after = RobustTreeClassifier(2, noise, random_state=0).fit(X, y)
            budget = -len(y) * np.log(confidence)
            before, _ = best_one_stage(X.to_numpy(), y, step_cost, budget)
            print(f"{name:>14} confidence {confidence:<5}: {before} {after.objective_:g} {len(y)}")


def figures(settings, results, folder):
    """Print tables and draw figures of what is there."""
    import pictures
    import tables

    asked = list(instances_of(settings))
    plain = list(instances_of(settings | {"confidences": (1.0,)}))
    proven = [cell for a in asked + plain if (cell := results.find(study="proof", **a)) is not None]
    gained = [cell for a in asked if (cell := results.find(study="gain", **a)) is not None]
    n_proofs = sum(cell["confidence"] < 1 for cell in proven)
    print(f"{n_proofs} proofs and {len(gained)} gains of {len(asked)} instances")
    if proven:
        print(tables.proofs(proven))
        pictures.proofs(proven, settings["time_limit"], folder / "figure-2-proofs-over-time.png")
    if gained:
        print(tables.gains(gained))
        for kind, number in (("worst", 3), ("average", 4)):
            pictures.gains(gained, kind, folder / f"figure-{number}-gain-{kind}.png")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all")
    much = parser.add_mutually_exclusive_group()
    much.add_argument("--quick", action="store_true", help="few small sets; needs no data")
    much.add_argument("--full", action="store_true", help="the paper's grid, 7,200 s an instance")
    parser.add_argument("--sets", nargs="*", choices=SETS, help="some of the sets")
    parser.add_argument("--depths", nargs="*", type=int, choices=(2, 3, 4, 5), help="some of them")
    parser.add_argument("--seconds", type=float, help="of CPU time an instance may take")
    parser.add_argument(
        "--split-per-instance",
        action="store_true",
        help="another split of the rows and other certainties for every instance",
    )
    parser.add_argument(
        "--confidences", nargs="*", type=float, help="some of the confidences; 1 is the plain tree"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of CPU time")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("robust_optimal_out"))
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}: choose some of {', '.join(PARTS)}")
    settings = QUICK if options.quick else FULL if options.full else DEFAULT
    asked = {"names": options.sets, "depths": options.depths, "time_limit": options.seconds}
    settings = settings | {
        name: tuple(v) if isinstance(v, list) else v for name, v in asked.items() if v
    }
    if options.confidences:
        settings = settings | {"confidences": tuple(c for c in options.confidences if c < 1)}
    settings = settings | {
        "own_split": options.split_per_instance or settings["own_split"],
        "proof_confidences": options.confidences or (*settings["confidences"], 1.0),
    }
    if options.quick and not options.sets and not has_data():
        settings = settings | {"names": MADE}
    shared = {"time_limit": settings["time_limit"], "own_split": settings["own_split"]}
    results = finished(options.out / "cells.jsonl", shared)  # whatever set, depth or confidence

    def check():
        if time.process_time() > 60 * options.minutes:
            raise OutOfTime

    parts = options.parts or PARTS
    try:
        if "proofs" in parts:
            proofs(settings, results, check)
        if "gains" in parts:
            gains(settings, results, check)
    except OutOfTime:
        print("out of time: run it again to go on")
    if "stages" in parts:
        stages(settings)
    if "figures" in parts:
        figures(settings, results, options.out)
    print(f"({time.process_time():.0f} s CPU)")


if __name__ == "__main__":
    main()
