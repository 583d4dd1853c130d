"""Robust trees beside five peers in one run, each in an environment of its own.

``python benchmarks/robust_peers.py [--only groot,pystreed,...] [--seconds 60]``; the data folder is
named by STEADYTREE_DATA, SCIP comes with the extra `mio`. A line tells rows kept and CPU seconds of
the peer, then ours:

- pystreed: the optimal tree where nothing moves;
- SCIP and odtlearn: a budget that the rows share, depth 2;
- GROOT: noise of 5 % of every column's range, depth 3, half a CPU second for ours;
- veritas: rows that our tree under that noise keeps, beside `certify`.

A peer that cannot be installed, or fails, is named with its reason; the others go on.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from environment import python_for

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "studies/robust_real"))

import run as real  # noqa: E402

sys.path.pop(0)  # another study has a module of that name

import robust_search as shared  # noqa: E402

from steadytree import RobustTreeClassifier, certify  # noqa: E402

STREED = ("pystreed==1.4.0", "pandas", "scikit-learn")
VERITAS = ("dtai-veritas==0.3.1",)
STILL = ("monks-1_enc", "monks-3_enc", "hayes-roth_enc", "tic-tac-toe_enc")
BUDGETS = (("monks-1", 0.95), ("monks-3", 0.85), ("hayes-roth", 0.85))
NOISY = ("breast cancer", "diabetes", "heart", "ionosphere")
SHARE, DEPTH = 0.05, 3
PEERS = ("pystreed", "scip", "odtlearn", "groot", "veritas")


def ours(X, y, depth, noise=None, **settings):
    """Rows kept, whether that is proven, and the CPU seconds of a fit after a first one."""
    model = RobustTreeClassifier(depth, noise, random_state=0, **settings)
    model.fit(X, y)
    start = time.process_time()
    model.fit(X, y)
    return model, (model.objective_, model.proven_, time.process_time() - start)


def ask(name, requirements, script, work):
    """What a peer's script makes of an instance: rows kept, whether proven, seconds."""
    command = [python_for(name, requirements), str(HERE / "peers" / script)]
    done = subprocess.run(command, input=json.dumps(work), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    found = json.loads(done.stdout.splitlines()[-1])
    return found["kept"], found["proven"], found["seconds"]


def pystreed(seconds):
    for name in STILL:
        X, y, _ = shared.instance(name, 0.95)
        labels = [str(label) for label in y]
        work = {"X": X.to_numpy().tolist(), "y": labels, "depth": DEPTH, "seconds": seconds}
        theirs = ask("pystreed", STREED, "pystreed_tree.py", work)
        yield f"{name}, still", theirs, ours(X, y, DEPTH, time_limit=seconds)[1]


def with_budget(solve):
    def lines(seconds):
        for name, confidence in BUDGETS:
            X, y, noise = shared.instance(name, confidence)
            yield f"{name} {confidence}", solve(X, y, noise, seconds), ours(X, y, 2, noise)[1]

    return lines


def groot(seconds):
    with tempfile.TemporaryDirectory() as folder:
        cases = [(name, SHARE, DEPTH, 0) for name in NOISY]
        found = real.measure_groot(cases, real.groot_python(), pathlib.Path(folder))
    for name, theirs in zip(NOISY, found, strict=True):
        X, y = real.load(name)
        rows = real.split(y, 0)[0]
        mine = noisy_tree(X[rows], y[rows])[1]
        yield (
            f"{name}, noise {SHARE}",
            (theirs["train"] * len(rows), False, theirs["seconds"]),
            mine,
        )


def noisy_tree(X, y):
    limit = {"time_limit": real.SECONDS, "clock": "cpu"}
    return ours(X, y, DEPTH, real.noise_of(SHARE), **limit)


def veritas(seconds):
    for name in NOISY:
        X, y = real.load(name)
        model, noise = noisy_tree(X, y)[0], real.noise_of(SHARE)
        start = time.process_time()
        kept = certify(model, X, y, noise).worst_case_accuracy * len(y)
        mine = kept, True, time.process_time() - start
        theirs = ask("veritas", VERITAS, "veritas_tree.py", in_cells(model.tree_, X, y))
        yield f"{name}, noise {SHARE}", theirs, mine


def in_cells(tree, X, y):
    """The tree and the rows' boxes in cells between its thresholds, so that no rounding differs."""
    cuts = [np.unique(tree.threshold[tree.feature == j]) for j in range(X.shape[1])]
    reach = SHARE * (1 + 1e-9)  # as certify counts rows that are within the noise by rounding alone
    ends = [
        [np.searchsorted(own, x + side * reach).tolist() for own, x in zip(cuts, X.T, strict=True)]
        for side in (-1, 1)
    ]
    boxes = np.stack([np.transpose(end) for end in ends], axis=2).tolist()

    def nested(node):
        if tree.is_leaf[node]:
            return int(tree.classes[tree.label[node]])
        column = int(tree.feature[node])
        k = int(np.searchsorted(cuts[column], tree.threshold[node]))
        return [column, k, nested(tree.left[node]), nested(tree.right[node])]

    return {"tree": nested(0), "boxes": boxes, "y": y.tolist()}


LINES = {
    "pystreed": pystreed,
    "scip": with_budget(shared.scip),
    "odtlearn": with_budget(shared.odtlearn),
    "groot": groot,
    "veritas": veritas,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(PEERS))
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    for peer in given.only.split(","):
        try:
            for task, theirs, mine in LINES[peer](given.seconds):
                shown = shared._shown(theirs), shared._shown(mine)
                print(f"{task}: {peer} {shown[0]}; ours {shown[1]}", flush=True)
        except (RuntimeError, subprocess.CalledProcessError, ImportError) as error:
            print(f"{peer}: not measured, {error}", flush=True)


if __name__ == "__main__":
    main()
