"""Changed command lines and files: is every failure one line, and is every input still there?

    python tools/fuzz.py --count 2000 --seed 0

Commands run in this process on a few rows in a temporary folder. Each run changes one to three
things: arguments are dropped, doubled, swapped, replaced or added; files are shortened, have bytes
changed, or have the content of another. A run fails where an exception gets through or is called
unexpected, where an exit code is none of 0, 2 and 3, where a refusal is not one line, where a
message stands twice, or where an input has changed.
"""

import argparse
import collections
import contextlib
import hashlib
import io
import os
import pathlib
import random
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


def fuzz(count, seed, report=lambda text: None):
    """Run so many changed commands; returns faults and how many runs ended with each code."""
    choose, faults, ends = random.Random(seed), [], collections.Counter()
    here = pathlib.Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            os.chdir(folder)
            make_files(folder)
            kept = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
            inputs = [folder / each for each in sorted(kept)]
            for number in range(count):
                arguments = list(choose.choice(COMMANDS))
                if choose.random() < 0.5:
                    change_file(choose.choice(inputs), inputs, choose)
                for _ in range(choose.choice([0, 1, 1, 2])):
                    arguments = changed_arguments(arguments, choose)
                before = digests(inputs)
                code, _, err, error = call(arguments)
                ends[code] += 1
                fault = fault_of(code, err, error)
                lost = [
                    one
                    for one, digest in before.items()
                    if not (folder / one).is_file() or digests([folder / one])[one] != digest
                ]
                lost = [one for one in lost if one != "spent.ledger"]  # which is appended to
                if lost:
                    fault = fault or f"inputs changed: {lost}"
                if fault:
                    faults.append((number, [each[:80] for each in arguments], fault))
                    report(f"{faults[-1]}")
                _restore(folder, kept)
        finally:
            os.chdir(here)
    return faults, ends


def _restore(folder, kept):
    """The folder as it was: inputs as they were, outputs removed."""
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink() and path.name not in kept:
            path.unlink()
    for name, content in kept.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    faults, ends = fuzz(given.count, given.seed, lambda text: sys.stdout.write(text + "\n"))
    listed = ", ".join(f"{ends[code]:,} with {code}" for code in sorted(ends, key=str))
    sys.stdout.write(f"{given.count:,} runs, seed {given.seed}: {len(faults)} faults; {listed}\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
