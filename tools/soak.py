"""Random commands with random faults: is every file whole, every input there, no budget won back?

    python tools/soak.py --minutes 10 --seed 0

Each command runs in a child of this process, in one folder that lives on from command to command.
Faults: none; killed at a random moment; a disk that is full after so many bytes of a file; a slow
disk; a clock that jumps by days. After each command all inputs must be as they were, every output
must be the old one or a whole new one, and a privacy ledger must show no less spent than before,
and more wherever a new private tree is there. Needs a POSIX system.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import fuzz

EPSILON = 0.001
BUDGET = 1000.0
PRIVATE = (
    "private",
    "fit",
    "rows.csv",
    "--target",
    "y",
    "--schema",
    "s.toml",
    "--epsilon",
    str(EPSILON),
    "--ledger",
    "own.ledger",
    "--budget",
    str(BUDGET),
    "--out",
    "p.tree.json",
)
COMMANDS = [command for command in fuzz.COMMANDS if command[:2] != ("private", "ledger")]
FAULTS = ("none", "killed", "full disk", "slow disk", "clock")
OLD = b"what was there before\n"


def make_files(folder):
    fuzz.make_files(folder)
    import steadytree as st

    schema = st.Schema({"a": (-4, 4), "c": (0, 5)}, {"b": [*"uvw"]}, ["no", "yes"])
    schema.save(folder / "s.toml")
    st.Ledger(folder / "own.ledger", BUDGET)


def outputs_of(arguments):
    return [arguments[k + 1] for k, word in enumerate(arguments[:-1]) if word == "--out"]


def plant(fault, choose):
    """In the child, before the command."""
    if fault == "full disk":
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = choose.choice([0, 1, 100, 1_000, 4_000])
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    elif fault == "slow disk":
        sync = os.fsync
        os.fsync = lambda handle: (time.sleep(choose.random() * 0.1), sync(handle))[1]
    elif fault == "clock":
        shift, now = choose.choice([-1e6, 1e6, 1e9]), time.time
        time.time = lambda: now() + shift


def run_child(arguments, fault, choose, log):
    child = os.fork()
    if not child:
        os.setsid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = 70
        try:
            plant(fault, choose)
            code, _, err, error = fuzz.call(list(arguments))
            fault_found = fuzz.fault_of(code, err, error)
            if fault_found and fault != "full disk":
                os.write(1, f"FAULT {fault_found}\n".encode("utf-8", "replace"))
        finally:
            os._exit(code if isinstance(code, int) else 71)
    if fault == "killed":
        time.sleep(choose.random() ** 3 * 1.5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def is_whole(path):
    """Whether an output is a whole file of its kind."""
    from steadytree import load

    content = path.read_bytes()
    if content == OLD:
        return True
    if path.name.endswith(".json"):
        try:
            load(path)
        except ValueError:
            return False
        return True
    ends = {".svg": b"</svg>", ".html": b"</html>"}
    return content.rstrip().endswith(ends.get(path.suffix, b"")) and len(content) > len(OLD)


def spent_in(folder):
    from steadytree import Ledger

    return Ledger(folder / "own.ledger", BUDGET).spent


def step(folder, inputs, choose, log):
    """One command with one fault; returns what was wrong, and the fault with the exit code."""
    is_private = choose.random() < 0.2
    arguments = PRIVATE if is_private else choose.choice(COMMANDS)
    fault = choose.choice(FAULTS)
    outputs = [folder / name for name in outputs_of(arguments)]
    for path in outputs:
        if choose.random() < 0.5:
            path.write_bytes(OLD)
        elif path.exists():
            path.unlink()
    before, spent = fuzz.digests(inputs), spent_in(folder)
    code = run_child(arguments, fault, choose, log)
    wrong = [
        f"{path.name} is not whole" for path in outputs if path.exists() and not is_whole(path)
    ]
    changed = [name for name, digest in fuzz.digests(inputs).items() if digest != before[name]]
    wrong += [f"inputs changed: {changed}"] if changed else []
    after = spent_in(folder)
    wrong += [f"spent {spent} before and {after} after"] if after < spent else []
    if is_private:
        made = outputs[0].exists() and outputs[0].read_bytes() != OLD
        if made and after < spent + EPSILON * 0.999:
            wrong.append("a private tree that was not paid for")
        if code == 0 and not made:
            wrong.append("exit code 0 without a tree")
    text = log.read_text("utf-8", "replace")
    wrong += [text.strip()[:300]] if text.startswith("FAULT") else []
    return [f"{' '.join(arguments)} [{fault}, {code}]: {each}" for each in wrong], (fault, code)


def soak(seconds, seed, most=None):
    """Run until the time is over, or `most` commands; returns what was wrong, and the counts."""
    choose, wrong, ends, here = random.Random(seed), [], collections.Counter(), pathlib.Path.cwd()
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as aside:
        folder = pathlib.Path(name)
        try:
            os.chdir(folder)
            make_files(folder)
            inputs = [
                path
                for path in sorted(folder.iterdir())
                if path.is_file() and ".ledger" not in path.name
            ]
            while time.monotonic() < end and (most is None or sum(ends.values()) < most):
                found, ended = step(folder, inputs, choose, pathlib.Path(aside, "log"))
                wrong += found
                ends[ended] += 1
            left = sorted(path.name for path in folder.iterdir() if path.name.endswith(".part"))
        finally:
            os.chdir(here)
    return wrong, ends, left


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wrong, ends, left = soak(60 * given.minutes, given.seed)
    for fault in FAULTS:
        codes = {code: n for (own, code), n in sorted(ends.items(), key=str) if own == fault}
        listed = ", ".join(f"{n} with {code}" for code, n in codes.items())
        sys.stdout.write(f"{fault:10} {sum(codes.values()):6,} commands: {listed}\n")
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(
        f"{sum(ends.values()):,} commands, seed {given.seed}: {len(wrong)} wrong; {len(left)} "
        "files of killed commands are left (.part)\n"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
