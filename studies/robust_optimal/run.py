"""Figures 2 to 4 of robust-optimal: proofs over time, and what robustness gains under shifts.

``python studies/robust_optimal/run.py [proofs] [gains] [--quick] [--names a,b] [--depths 2,3]
[--means 0.8] [--time-limit 300] [--out FOLDER]``. Per instance, 80 % of the rows
train a robust tree and a regularised plain one (its regulariser chosen on a fifth of the training
rows); both are judged on the other 20 %, shifted 5,000 times as expected and otherwise.
"""

import argparse
import pathlib
import time

import numpy as np
from instances import MADE, available, draw_certainty, has_data, load, make
from pictures import gain_picture, proof_picture
from sklearn.model_selection import train_test_split

from steadytree import Perturbation, RobustTreeClassifier, shift_accuracy

CONFIDENCES = (0.5, 0.75, 0.85, 0.9, 0.95, 0.97, 0.99)
MEANS = (0.6, 0.7, 0.8, 0.9)
REGULARISERS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9)
SHIFTS = {
    "as expected": {},
    "-0.2": {"offset": -0.2},
    "-0.1": {"offset": -0.1},
    "+0.1": {"offset": 0.1},
    "within 0.05": {"spread": 0.05},
    "within 0.1": {"spread": 0.1},
    "within 0.15": {"spread": 0.15},
    "within 0.2": {"spread": 0.2},
}
FULL = {
    "names": None,
    "depths": (2, 3, 4),
    "confidences": CONFIDENCES,
    "means": MEANS,
    "time_limit": 300,
}
QUICK = {
    "names": ("monks-1", "monks-3", "hayes-roth"),
    "depths": (2, 3),
    "confidences": (0.75, 0.85, 0.95),
    "means": (0.8,),
    "time_limit": 20,
}


def instances_of(settings):
    """Every combination of set, depth, mean certainty and confidence."""
    for name in settings["names"] or available():
        for depth in settings["depths"]:
            for mean in settings["means"]:
                for confidence in settings["confidences"]:
                    yield name, depth, mean, confidence


def proofs(settings):
    """Figure 2: CPU seconds to the proof, or the gap where there was none."""
    print("set depth mean confidence objective bound majority proven CPU")
    seconds, gaps = [], []
    for name, depth, mean, confidence in instances_of(settings):
        X, y = load(name)
        noise = Perturbation.from_certainty(draw_certainty(X.columns, mean), confidence)
        start = time.process_time()
        model = RobustTreeClassifier(
            depth, noise, time_limit=settings["time_limit"], random_state=0
        ).fit(X, y)
        spent = time.process_time() - start
        figures = f"{model.objective_:g} {model.bound_:g} {model.majority_:g} {model.proven_}"
        print(name, depth, mean, confidence, figures, f"{spent:.2f}", flush=True)
        seconds.append(spent if model.proven_ else np.inf)
        gaps.append(model.optimality_gap_)
    for limit in (0.1, 1, 10, 60, 300):
        solved = np.mean(np.array(seconds) <= limit)
        print(f"proven within {limit:g} s CPU: {solved:.0%} of {len(seconds)}")
    print(f"largest gap: {max(gaps):.1%}")
    if settings["out"] is not None:
        proof_picture(seconds, settings["out"] / "figure-2-proofs-over-time.png")


def gains(settings):
    """Figures 3 and 4: gain of the robust tree over the regularised plain one, in points."""
    rows = {(shift, c): [] for shift in SHIFTS for c in settings["confidences"]}
    plain_trees = {}
    for name, depth, mean, confidence in instances_of(settings):
        X, y = load(name)
        certainty = draw_certainty(X.columns, mean)
        parts = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
        X_train, X_test, y_train, y_test = parts
        if (name, depth) not in plain_trees:
            plain_trees[name, depth] = plain_tree(X_train, y_train, depth, settings["time_limit"])
        noise = Perturbation.from_certainty(certainty, confidence)
        robust = RobustTreeClassifier(
            depth, noise, time_limit=settings["time_limit"], random_state=0
        ).fit(X_train, y_train)
        for shift, arguments in SHIFTS.items():
            pair = [
                shift_accuracy(model, X_test, y_test, certainty, random_state=1, **arguments)
                for model in (robust, plain_trees[name, depth])
            ]
            worst, average = (100 * (getattr(pair[0], k) - getattr(pair[1], k)) for k in KINDS)
            rows[shift, confidence].append((worst, average))
    print("gain in points: median (least to largest) over instances; worst case | average")
    for (shift, confidence), values in rows.items():
        texts = [spread(column) for column in np.array(values).T]
        print(f"{shift:>12} confidence {confidence}: {texts[0]} | {texts[1]}", flush=True)
    if settings["out"] is not None:
        gain_picture(
            rows, "as expected", settings["out"] / "figure-3-gains-over-the-plain-tree.png"
        )


KINDS = ("worst", "average")


def spread(values):
    """Median and range as text."""
    return f"{np.median(values):+.2f} ({values.min():+.2f} to {values.max():+.2f})"


def plain_tree(X, y, depth, time_limit):
    """The optimal tree without perturbation, its regulariser chosen on held-out training rows."""
    X_fit, X_hold, y_fit, y_hold = train_test_split(X, y, test_size=0.2, random_state=1)

    def fitted(regulariser, X, y):
        return RobustTreeClassifier(
            depth, regularisation=regulariser, time_limit=time_limit, random_state=0
        ).fit(X, y)

    scores = [
        fitted(regulariser, X_fit, y_fit).score(X_hold, y_hold) for regulariser in REGULARISERS
    ]
    best = max(range(len(scores)), key=lambda place: (scores[place], place))
    return fitted(REGULARISERS[best], X, y)


def settings_of(options):
    """The quick or the full settings, with what was given in their place."""
    settings = dict(QUICK if options.quick else FULL)
    settings["out"] = options.out
    if options.quick and not has_data():
        settings["names"] = MADE
    if options.names:
        settings["names"] = options.names.split(",")
    if options.depths:
        settings["depths"] = [int(depth) for depth in options.depths.split(",")]
    if options.means:
        settings["means"] = [float(mean) for mean in options.means.split(",")]
    if options.time_limit:
        settings["time_limit"] = options.time_limit
    return settings


def compile_first():
    """Let the loops be compiled before anything is timed: the first run ever takes seconds."""
    X, y = make(MADE[0])
    noise = Perturbation.from_certainty(draw_certainty(X.columns), 0.9)
    for depth in (2, 3):
        RobustTreeClassifier(depth, noise, time_limit=60, random_state=0).fit(X[:12], y[:12])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", choices=["proofs", "gains", []])
    parser.add_argument("--quick", action="store_true", help="few small instances; needs no data")
    parser.add_argument("--out", type=pathlib.Path, help="a folder for pictures")
    for name in ("names", "depths", "means"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--time-limit", type=float)
    options = parser.parse_args()
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    compile_first()
    for study in (proofs, gains):
        if study.__name__ in (options.studies or ["proofs", "gains"]):
            start = time.process_time()
            study(settings_of(options))
            print(f"({study.__name__}: {time.process_time() - start:.0f} s CPU)", flush=True)


if __name__ == "__main__":
    main()
