"""Proven robust trees of depth 3 to 5: CPU time beside the time listed for each instance.

``python benchmarks/robust_listed.py [depth ...] [--names a,b] [--slow] [--seconds 300]``; the data
folder is named by STEADYTREE_DATA. Instances are whole sets with certainties drawn around 0.8. A
first fit of each depth is left out, as compiled code is kept between runs; of instances under two
seconds the median of three runs counts. The time runs from the call of `fit` to the proof; "in all"
adds the search for an equally good tree with fewer questions. ``--slow`` adds instances of over
half a minute.
"""

import argparse
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "studies/robust_optimal"))

from instances import instance  # noqa: E402

from steadytree import RobustTreeClassifier  # noqa: E402

# depth: {set: {confidence: (rows kept right, CPU seconds to stay within twice of)}}
LISTED = {
    3: {
        "monks-1": {0.75: (84, 0.07), 0.85: (96, 0.06), 0.95: (108, 0.05)},
        "monks-2": {0.75: (105, 0.07), 0.85: (105, 0.09), 0.95: (120, 0.07)},
        "monks-3": {0.75: (87, 0.07), 0.85: (100, 0.06), 0.95: (111, 0.05)},
        "hayes-roth": {0.75: (68, 0.14), 0.85: (79, 0.11), 0.95: (89, 0.10)},
        "balance-scale": {0.75: (373, 1.7), 0.85: (419, 1.4), 0.95: (463, 1.0)},
        "car": {0.75: (1210, 3.3), 0.85: (1243, 3.9), 0.95: (1355, 2.9)},
        "monks-1_enc": {0.75: (85, 0.12), 0.85: (97, 0.09), 0.95: (109, 0.07)},
        "monks-2_enc": {0.75: (105, 0.12), 0.85: (105, 0.16), 0.95: (118, 0.10)},
        "monks-3_enc": {0.75: (91, 0.10), 0.85: (101, 0.09), 0.95: (111, 0.07)},
        "hayes-roth_enc": {0.75: (71, 0.25), 0.85: (81, 0.19), 0.95: (92, 0.18)},
        "balance-scale_enc": {0.75: (358, 2.1), 0.85: (385, 2.5), 0.95: (432, 1.6)},
        "car_enc": {0.75: (1210, 4.7), 0.85: (1210, 6.2), 0.95: (1263, 6.5)},
        "breast-cancer-ljubljana_enc": {0.75: (197, 1.8), 0.85: (197, 3.8), 0.95: (211, 1.6)},
        "tic-tac-toe_enc": {0.75: (626, 2.8), 0.85: (626, 3.9), 0.95: (694, 2.5)},
        "soybean-small_enc": {0.75: (41, 5.1), 0.85: (44, 4.1), 0.95: (46, 3.6)},
        "kr-vs-kp_enc": {0.75: (1951, 109), 0.85: (2342, 21), 0.95: (2791, 11)},
    },
    4: {
        "monks-1": {0.85: (105, 0.3), 0.95: (117, 0.3)},
        "monks-2": {0.85: (115, 1.2), 0.95: (131, 0.3)},
        "monks-3": {0.85: (102, 0.6), 0.95: (113, 0.3)},
        "hayes-roth": {0.85: (96, 0.5), 0.95: (106, 0.4)},
        "monks-1_enc": {0.85: (107, 0.4), 0.95: (119, 0.3)},
        "monks-3_enc": {0.85: (104, 4.4), 0.95: (114, 0.4)},
        "monks-2_enc": {0.85: (None, None), 0.95: (129, 0.7)},
        "hayes-roth_enc": {0.85: (91, 6.4), 0.95: (104, 1.8)},
        "balance-scale": {0.85: (457, 9.8), 0.95: (503, 4.9)},
        "balance-scale_enc": {0.95: (458, 7.1)},
        "soybean-small_enc": {0.85: (None, None), 0.95: (None, None)},
    },
    5: {"monks-1": {0.95: (119, 2.5)}},
}
SLOW = {("kr-vs-kp_enc", 3, 0.75), ("monks-2_enc", 4, 0.85)}


def run(name, depth, confidence, seconds=300):
    """The fitted model, CPU seconds to its proof, and in all."""
    X, y, noise = instance(name, confidence)
    at_proof, start = [], time.process_time()

    def note(step):
        if step.bound == step.incumbent:
            at_proof.append(time.process_time() - start)

    model = RobustTreeClassifier(
        depth, noise, time_limit=seconds, progress=note, random_state=0
    ).fit(X, y)
    return model, at_proof[0] if at_proof else float("nan"), time.process_time() - start


def line(name, depth, confidence, limit):
    """Time one instance and print it beside what is listed; returns whether it keeps to twice."""
    optimum, seconds = LISTED[depth][name][confidence]
    runs = [run(name, depth, confidence, limit)]
    while len(runs) < 3 and runs[0][2] < 2:
        runs.append(run(name, depth, confidence, limit))
    model, spent = runs[0][0], statistics.median(found[1] for found in runs)
    in_all = statistics.median(found[2] for found in runs)
    listed = "not proven" if seconds is None else f"{seconds:g} s"
    ratio = "" if seconds is None else f"{spent / seconds:.2f} x"
    status = model.status_ if optimum in (None, model.objective_) else f"NOT the listed {optimum}"
    print(
        f"{name:<28} {depth} {confidence:<5} {model.objective_:>5g} {model.majority_:>6g} "
        f"{listed:>11} {spent:>8.2f} s {in_all:>8.2f} s {ratio:>7} {status}",
        flush=True,
    )
    return seconds is None or spent <= 2 * seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("depths", nargs="*", type=int)
    parser.add_argument("--names")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--seconds", type=float, default=300, help="limit of a fit")
    options = parser.parse_args()
    print("set, depth, confidence, rows kept right, majority, listed, to the proof, in all")
    for depth in options.depths or LISTED:
        run("monks-1", depth, 0.95)
        run("hayes-roth_enc", min(depth, 4), 0.95)
        names = options.names.split(",") if options.names else LISTED[depth]
        kept = [
            line(name, depth, confidence, options.seconds)
            for name in names
            for confidence in LISTED[depth].get(name, ())
            if options.slow or (name, depth, confidence) not in SLOW
        ]
        print(f"depth {depth}: {sum(kept)} of {len(kept)} within twice the listed time", flush=True)


if __name__ == "__main__":
    main()
