"""How many robust trees of depth 5 are proven in a minute, on the four smallest sets of the study?

``python benchmarks/robust_depth_5.py [--names a,b] [--confidences 0.9,0.5] [--seconds 60]``; the
data folder is named by STEADYTREE_DATA. Instances are whole sets with certainties drawn around 0.8,
at the seven confidences of the study (``studies/robust_optimal``) unless told. Seconds are of CPU
time, to the proof where there is one.
"""

import argparse
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "studies/robust_optimal"))

from instances import instance  # noqa: E402

from steadytree import RobustTreeClassifier  # noqa: E402

NAMES = ("monks-1", "monks-2", "monks-3", "hayes-roth")
CONFIDENCES = (0.99, 0.97, 0.95, 0.9, 0.85, 0.75, 0.5)


def run(name, confidence, seconds):
    """The fitted model, and the CPU seconds to its proof or to the end."""
    X, y, noise = instance(name, confidence)
    at_proof, start = [], time.process_time()

    def note(step):
        if step.bound == step.incumbent:
            at_proof.append(time.process_time() - start)

    limit = {"time_limit": seconds, "clock": "cpu"}
    model = RobustTreeClassifier(5, noise, progress=note, random_state=0, **limit).fit(X, y)
    return model, at_proof[0] if at_proof else time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", default=",".join(NAMES))
    parser.add_argument("--confidences", default=",".join(map(str, CONFIDENCES)))
    parser.add_argument("--seconds", type=float, default=60, help="of CPU time, for each instance")
    given = parser.parse_args()
    run("monks-1", 0.99, given.seconds)  # compiles
    proven = []
    print("set, confidence, rows kept, at most, rows, CPU seconds")
    for name in given.names.split(","):
        for confidence in map(float, given.confidences.split(",")):
            model, seconds = run(name, confidence, given.seconds)
            proven.append(model.proven_)
            kept = f"{model.objective_:>5g} {model.bound_:>5g} {len(instance(name, 1)[1]):>5}"
            line = f"{name:<12} {confidence:<5} {kept} {seconds:>7.2f} s  {model.status_}"
            print(line, flush=True)
    print(f"{sum(proven)} of {len(proven)} proven, {sum(proven) / len(proven):.0%}")


if __name__ == "__main__":
    main()
