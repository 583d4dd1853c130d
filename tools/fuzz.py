"""Changed command lines and files: is every failure one line, and is every input still there?

    python tools/fuzz.py --count 5000 --seed 0
    python tools/fuzz.py --count 50 --seed 0 --own

Commands run on a few rows in a temporary folder, 500 in a process, which builds the commands once;
with --own each is a process of its own, as a user starts it. Each run changes up to three things:
arguments are dropped, doubled, swapped, replaced or added; files are shortened, have bytes
changed, or have the content of another. A run fails where an exception gets through or is called
unexpected, where an exit code is none of 0, 2 and 3, where a refusal is not one line, where a
message stands twice, or where an input has changed.
"""

import argparse
import collections
import contextlib
import functools
import hashlib
import io
import multiprocessing
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import warnings

ROWS = ("rows.csv", "--target", "y")
COMMANDS = [
    ("fit", *ROWS, "--out", "new.tree.json"),
    ("fit", "rows.parquet", "--target", "y", "--learner", "stable", "--out", "new.tree.json"),
    ("predict", "old.tree.json", "rows.csv", "--out", "p.csv"),
    ("predict", "old.card.json", "rows.csv", "--keep", "b"),
    ("explain", "old.tree.json", "rows.csv", "--row", "1"),
    ("diff", "old.tree.json", "other.tree.json", "--data", "rows.csv", "--out", "d.svg"),
    ("retrain", *ROWS, "--previous", "old.tree.json", "--out", "new.tree.json"),
    ("certify", "old.tree.json", *ROWS, "--noise", "noise.toml"),
    ("score", "rows.csv", "--card", "old.card.json", "--out", "scored.csv"),
    ("export", "old.tree.json", "--to", "sql", "--out", "t.sql"),
    ("export", "old.card.json", "--to", "python"),
    ("private", "schema", *ROWS, "--out", "s2.toml"),
    ("private", "ledger", "spent.ledger", "--budget", "9"),
]
LEDGER = ("--schema", "s.toml", "--ledger", "spent.ledger", "--budget", "9", "--epsilon", "0.01")
MORE = [
    *COMMANDS,
    ("explain", "old.card.json", "rows.csv", "--row", "2"),
    ("score", *ROWS, "--positive", "yes", "--save", "new.card.json", "--bands", "b.svg"),
    ("private", "fit", *ROWS, *LEDGER, "--out", "p.tree.json"),
    ("private", "evaluate", "own.tree.json", *ROWS, *LEDGER),
    ("private", "ledger", "verify", "spent.ledger"),
    ("private", "ask", "plan.toml", "--out", "questions"),
    ("private", "merge", "plan.toml", "noise.toml"),
]
SLOW = [  # seconds each where nothing is wrong
    ("report", *ROWS, "--quick", "--out", "r.html"),
    ("compare", *ROWS, "--folds", "2", "--time-limit", "0.1", "--out", "c.html"),
    ("private", "simulate", "--schema", "s.toml", "--rows", "50", "--repeats", "2"),
]
OFTEN = 0.999  # of runs are of commands that take no seconds
PIECE = 500  # runs in a process
VALUES = [
    "",
    "0",
    "-1",
    "1e309",
    "nan",
    "a",
    "rows.csv",
    "old.tree.json",
    "nowhere/x",
    "\x1b[31m",
    "ä€",
    "x" * 5000,
    "99999999999999999999",
    "1%",
    "..",
    "/",
    "loop",
    "folder",
    "y",
    "--out",
    "--json",
    "--help",
    "\udcff",
    "{}",
    "None",
    "--trust",
]
TEXTS = [
    "",
    "\0",
    "nan",
    "inf",
    "-1e999",
    "1e400",
    "\ufeff",
    '"',
    "\r\n",
    ",,,",
    "null",
    "[[[[",
    "{" * 3000,
    "[" * 100_000,
    "é",
    "\x1a",
    "9" * 400,
    "x" * 5000,
    "True",
    "a=1",
]
CODES = {0, 2, 3}
WRITTEN = {"--out", "--save", "--bands"}
PLAN = """study = "one"
schema = "s.toml"
holders = ["north", "south", "east"]
minimum = 3
epsilon = 1.0
method = "delegate"
out = "plan.tree.json"
superlink = "localhost:9092"
"""


def make_files(folder):
    """Small inputs of every kind that commands read."""
    import numpy as np
    import pandas as pd

    import steadytree as st

    random_ = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random_.normal(size=40).round(2), "b": random_.choice([*"uvw"], 40)})
    frame["c"] = random_.integers(0, 5, 40)
    frame["y"] = np.where(frame["a"] + (frame["b"] == "u") > 0.3, "yes", "no")
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    columns = frame[["a", "b", "c"]]
    for name, depth in (("old", 2), ("other", 3)):
        model = st.StableTreeClassifier(max_depth=depth, random_state=0)
        model.fit(columns, frame["y"]).save(folder / f"{name}.tree.json")
    card = st.RiskScoreClassifier(max_conditions=3, random_state=0).fit(columns, frame["y"])
    card.save(folder / "old.card.json")
    (folder / "noise.toml").write_text("budget = 0.2\n[radius]\na = 0.1\n", "utf-8")
    st.Ledger(folder / "spent.ledger", 9.0).spend(0.5, "tree", "whole tree")
    schema = st.Schema({"a": (-4, 4), "c": (0, 5)}, {"b": [*"uvw"]}, ["no", "yes"])
    schema.save(folder / "s.toml")
    model = st.PrivateTreeClassifier(1.0, schema, testing_seed=0).fit(columns, frame["y"])
    with warnings.catch_warnings(action="ignore"):  # seeded, so that runs can be repeated
        model.save(folder / "own.tree.json")
    (folder / "plan.toml").write_text(PLAN, "utf-8")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")


def changed_arguments(given, choose):
    arguments = list(given)
    k = choose.randrange(len(arguments))
    way = choose.choice(["drop", "double", "swap", "replace", "replace", "add"])
    if way == "drop":
        del arguments[k]
    elif way == "double":
        arguments.insert(k, arguments[k])
    elif way == "swap":
        other = choose.randrange(len(arguments))
        arguments[k], arguments[other] = arguments[other], arguments[k]
    elif way == "replace":
        arguments[k] = choose.choice(VALUES)
    else:
        arguments.insert(k + 1, choose.choice(VALUES))
    return arguments


def change_file(path, files, choose):
    content = path.read_bytes()
    way = choose.choice(["shorten", "bytes", "insert", "other", "line", "empty"])
    at = choose.randrange(len(content) + 1)
    if way == "shorten":
        content = content[:at]
    elif way == "bytes":
        changed = bytearray(content)
        for _ in range(choose.randint(1, 4)):
            if changed:
                changed[choose.randrange(len(changed))] = choose.randrange(256)
        content = bytes(changed)
    elif way == "insert":
        content = (
            content[:at] + choose.choice(TEXTS).encode("utf-8", "surrogatepass") + content[at:]
        )
    elif way == "other":
        content = choose.choice(files).read_bytes()
    elif way == "line":
        lines = content.splitlines(keepends=True)
        content = b"".join(choose.sample(lines, len(lines)) + choose.choices(lines or [b""], k=1))
    else:
        content = b""
    path.write_bytes(content)


def build_once():
    """Let typer keep what it builds of an app: a tenth of a second a call, and always the same."""
    import typer

    if not hasattr(typer.main.get_command, "cache_info"):
        typer.main.get_command = functools.cache(typer.main.get_command)


def call_own(arguments):
    """The same in a process of its own."""
    given = [sys.executable, "-W", "ignore", "-m", "steadytree", *arguments]
    ended = subprocess.run(given, capture_output=True, stdin=subprocess.DEVNULL)
    out, err = (text.decode("utf-8", "backslashreplace") for text in (ended.stdout, ended.stderr))
    return ended.returncode, out, err, None


def call(arguments):
    """Exit code, output, errors, and an exception that got through."""
    from steadytree.cli import app as cli

    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["steadytree", *arguments]
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            cli.main()
    except SystemExit as end:
        return end.code, out.getvalue(), err.getvalue(), None
    except BaseException as error:
        return None, out.getvalue(), err.getvalue(), error
    finally:
        sys.argv = before
    return None, out.getvalue(), err.getvalue(), RuntimeError("main returned")


def fault_of(code, err, error):
    """What is wrong with how a run ended; empty where nothing is."""
    if error is not None:
        return f"{type(error).__name__} got through: {error}"
    if code not in CODES:
        return f"exit code {code}"
    if "Traceback (most recent" in err:
        return err.strip()[-300:]
    if "unexpected " in err and "please report it" in err:
        return err.strip()[:300]
    if code == 2 and (err.count("\n") != 1 or not err.startswith("error: ")):
        return f"not one line: {err[:300]!r}"
    lines = [line for line in err.splitlines() if line.strip()]
    if len(set(lines)) < len(lines):
        return f"a message stands twice: {err[:300]!r}"
    return ""


def digests(files):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def fuzz(count, seed, call=call):
    """Run so many changed commands; returns faults and how many runs ended with each code."""
    choose, faults, ends = random.Random(seed), [], collections.Counter()
    here = pathlib.Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name, "above", "here")  # ".." is a place of our own, too
        folder.mkdir(parents=True)
        before, os.environ["XDG_STATE_HOME"] = os.environ.get("XDG_STATE_HOME"), name
        try:
            os.chdir(folder)
            make_files(folder)
            kept = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
            for number in range(count):
                arguments, fault, code = run(folder, kept, choose, call)
                ends[code] += 1
                if fault:
                    faults.append((seed, number, [each[:80] for each in arguments], fault))
        finally:
            os.chdir(here)
            os.environ.pop("XDG_STATE_HOME")
            os.environ |= {} if before is None else {"XDG_STATE_HOME": before}
    return faults, ends


def run(folder, kept, choose, call):
    """One changed command: its arguments, what was wrong, and its exit code."""
    inputs = [folder / each for each in sorted(kept)]
    arguments = list(choose.choice(MORE if choose.random() < OFTEN else SLOW))
    if choose.random() < 0.5:
        change_file(choose.choice(inputs), inputs, choose)
    for _ in range(choose.choice([0, 1, 1, 2])):
        arguments = changed_arguments(arguments, choose)
    before = {path.name: path.read_bytes() for path in inputs}
    code, _, err, error = call(arguments)
    fault = fault_of(code, err, error)
    lost = [path.name for path in inputs if not is_kept(path, before[path.name])]
    lost = [name for name in lost if not is_output(name, arguments)]
    fault = fault or (f"inputs changed: {lost}" if lost else "")
    for name in kept:  # a ledger that went back would be refused from now on
        if is_ledger(name) and before[name] == kept[name] and (folder / name).is_file():
            kept[name] = (folder / name).read_bytes()
    restore(folder, kept)
    return arguments, fault, code


def is_ledger(name):
    return name.startswith("spent.ledger")


def is_output(name, arguments):
    """Whether a file is there to be written, and read nowhere."""
    before = arguments[arguments.index(name) - 1] if arguments.count(name) == 1 else ""
    return before in WRITTEN


def is_kept(path, content):
    """Whether an input is as it was; a ledger may have become longer, and its mark another."""
    if not path.is_file():
        return False
    if not is_ledger(path.name):
        return path.read_bytes() == content
    return path.suffix == ".mark" or path.read_bytes().startswith(content)


def restore(folder, kept):
    """The folder as it was: inputs as they were, outputs removed."""
    for path in [*folder.iterdir(), *(folder / "folder").iterdir(), *folder.parent.iterdir()]:
        if path.name in {*kept, "folder", "loop"} or path == folder:
            continue
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, content in kept.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)


def piece(given):
    count, seed, own = given
    build_once()
    return fuzz(count, seed, call_own if own else call)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--own", action="store_true", help="each command in a process of its own")
    given = parser.parse_args()
    starts = range(0, given.count, PIECE)
    pieces = [(min(PIECE, given.count - k), f"{given.seed}+{k}", given.own) for k in starts]
    faults, ends = [], collections.Counter()
    with multiprocessing.Pool(1, maxtasksperchild=1) as pool:
        for found, ended in pool.imap(piece, pieces):
            faults += found
            ends += ended
            sys.stdout.write("".join(f"{fault}\n" for fault in found))
            sys.stdout.flush()
    listed = ", ".join(f"{ends[code]:,} with {code}" for code in sorted(ends, key=str))
    own = ", each in a process" if given.own else ""
    sys.stdout.write(
        f"{sum(ends.values()):,} runs, seed {given.seed}{own}: {len(faults)} faults; {listed}\n"
    )
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
