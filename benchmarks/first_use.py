"""What do a first fit and a first report cost, while the cache of compiled loops is empty?

CPU seconds of `steadytree fit` and `steadytree report` on scikit-learn's breast cancer data, and of
robust trees on real-valued and on whole-number rows ("robust-real", "robust-whole"), each in
processes with a cache folder of their own: the first time, again, and on the rows with other
labels. Beside them, how many loops were compiled, and the seconds of that.

    python benchmarks/first_use.py                          # this folder's source; two minutes
    python benchmarks/first_use.py --package FOLDER         # an unpacked wheel, loops compiled
    python benchmarks/first_use.py --commands fit --loops   # and the dearest loops
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "src"
ROBUST = ("robust-real", "robust-whole")
LABELS = {"first": ("malignant", "benign"), "again": ("malignant", "benign"), "other": ("1", "0")}
MOST_LOOPS = 12


def write_rows(path, labels):
    """The data with labels of one's own."""
    from sklearn.datasets import load_breast_cancer

    frame = load_breast_cancer(as_frame=True).frame
    frame["target"] = [labels[label] for label in frame["target"]]
    frame.to_csv(path, index=False)


def run(arguments):
    """Run a command in this process; print CPU seconds and compiled loops as JSON."""
    import time

    from numba.core import event

    open_ones, seconds = [], {}

    class Listener(event.Listener):
        def on_start(self, event):
            function = event.data["dispatcher"].py_func
            open_ones.append((f"{function.__module__}.{function.__qualname__}", clock(), [0.0]))

        def on_end(self, event):
            name, start, inside = open_ones.pop()
            took = clock() - start
            seconds[name] = seconds.get(name, 0.0) + took - inside[0]
            if open_ones:
                open_ones[-1][2][0] += took

    clock = time.process_time
    event.register("numba:compile", Listener())
    fit_robust(*arguments) if arguments[0] in ROBUST else command_line(arguments)
    total = sum(os.times()[:4])  # that of children too
    print(json.dumps({"cpu": total, "loops": seconds}))


def command_line(arguments):
    """What `steadytree` does with these arguments."""
    from steadytree.cli.app import main

    sys.argv = ["steadytree", *arguments]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise


def fit_robust(kind, rows, *_):
    """A robust tree of depth 3 of the rows, or of whole numbers made of them."""
    import pandas

    from steadytree import Perturbation, RobustTreeClassifier

    X = pandas.read_csv(rows)
    y = X.pop("target")
    noise = Perturbation(radius="2 %")
    if kind == "robust-whole":
        X = X.iloc[:200, :6].rank(pct=True).mul(3).round().astype(int)
        y, noise = y[:200], Perturbation.from_certainty(dict.fromkeys(X, 0.8), confidence=0.85)
    # few steps: what is measured is how soon the first one is made
    RobustTreeClassifier(3, noise, max_nodes=200, time_limit=1e9).fit(X, y)


def measure(package, command, rows, folder, cache):
    """What `run` prints in a process of its own."""
    where = {"PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(cache)}
    out = folder / ("page.html" if command == "report" else "fitted.tree.json")
    arguments = [command, str(rows), "--target", "target", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, __file__, "--run", *arguments],
        env=os.environ | where,
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main():
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--package", default=SOURCE, type=pathlib.Path)
    parser.add_argument("--commands", nargs="+", default=["fit", "report"])
    parser.add_argument("--loops", action="store_true", help="list the dearest ones")
    given = parser.parse_args()
    print(f"{'':14} {'CPU s':>6} {'compiled':>9} {'CPU s of it':>12}")
    for command in given.commands:
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made)
            for when, labels in LABELS.items():
                rows = folder / f"{when}.csv"
                write_rows(rows, labels)
                found = measure(given.package.resolve(), command, rows, folder, folder / "cache")
                loops = found["loops"]
                took = f"{found['cpu']:6.1f} {len(loops):9} {sum(loops.values()):12.1f}"
                print(f"{command + ', ' + when:14} {took}", flush=True)
                dearest = sorted(loops, key=loops.get, reverse=True)[:MOST_LOOPS]
                for name in dearest if given.loops else ():
                    print(f"    {loops[name]:5.2f} {name.removeprefix('steadytree.')}")


if __name__ == "__main__":
    main()
