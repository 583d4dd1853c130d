"""Change one thing at a time in modules that compute numbers, and see whether their tests notice.

    python tools/mutate.py --count 60 --seed 0 --jobs 2

Mutants are sampled with a seed from all modules listed below. Each is run against the tests of its
module until the first failure, in a process of its own with a copy of the source. Results are kept
in build/mutants.jsonl by the text of the module and the mutant, so that an interrupted run goes on
where it stopped, and a mended test is seen by --again, which runs survivors once more.
"""

import argparse
import ast
import copy
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

PROJECT = pathlib.Path(__file__).parents[1]
SOURCE = PROJECT / "src"
RESULTS = PROJECT / "build/mutants.jsonl"
SECONDS = 180  # a mutant that runs on is noticed, too
BROKEN = 70  # exit code of a child that did not get as far as its tests
# modules whose numbers a page or a budget depends on, and tests beside that of the same name
MODULES = {
    "_base/intervals": [],
    "data/binning": [],
    "data/labels": [],
    "data/readers": ["data/test_dataset.py"],
    "distance/diff": ["distance/test_new_class.py"],
    "metrics/accuracy": [],
    "metrics/calibration": [],
    "metrics/complexity": [],
    "metrics/drift": [],
    "metrics/groups": [],
    "metrics/measurement": [],
    "metrics/ranking": [],
    "metrics/validation": [],
    "models/boxes": ["models/test_tree.py", "distance/test_path.py"],
    "models/condition": ["models/test_scorecard.py"],
    "models/one_hot": [],
    "models/risk_table": ["models/test_scorecard.py"],
    "models/variable": ["models/test_scorecard.py"],
    "models/exports/float32": [],
    "models/exports/probes": [],
    "models/exports/source": [],
    "models/exports/sql": [],
    "privacy/budget": [],
    "privacy/ledger": [],
    "privacy/ledger_lines": [],
    "reporting/formatting": [],
    "riskscore/scaling": [],
    "robustness/certify": [],
    "stability/removal": [],
}
COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
CALLED = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
    "sum": "mean",
    "mean": "sum",
    "cumsum": "cumprod",
}


# ---- mutants ----
def changes_of(node):
    """Each way to change a node, as a function that changes a copy of it in place."""
    if isinstance(node, ast.Compare):
        for k, sign in enumerate(node.ops):
            if type(sign) in COMPARED:
                other = COMPARED[type(sign)]
                yield lambda n, k=k, other=other: n.ops.__setitem__(k, other())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in COMPUTED:
        sign = COMPUTED[type(node.op)]
        yield lambda n: setattr(n, "op", sign())
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield lambda n: setattr(n, "op", other())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield lambda n: setattr(n, "op", ast.UAdd()) if isinstance(n.op, ast.USub) else None
        if not isinstance(node.op, ast.USub):
            yield lambda n: n.__dict__.update(op=ast.Not(), operand=ast.UnaryOp(n.op, n.operand))
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield lambda n: setattr(n, "value", n.value + 1 if n.value in (0, 1) else n.value * 2)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield lambda n: setattr(n, "value", not n.value)
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", None))
        field = "attr" if isinstance(node.func, ast.Attribute) else "id"
        if name in CALLED and not (field == "id" and CALLED[name] == "mean"):
            yield lambda n: setattr(n.func, field, CALLED[name])


def skipped(tree):
    """Nodes whose change says nothing: annotations, docstrings, messages, defaults of fields."""
    found = set()
    for node in ast.walk(tree):
        dropped = []
        if isinstance(node, ast.AnnAssign):
            dropped = [node.annotation]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            dropped = [
                node.returns,
                *(each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg)),
                *node.decorator_list,
            ]
        elif isinstance(node, ast.ClassDef):
            dropped = node.decorator_list
        elif isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            dropped = [node]
        for each in dropped:
            found |= set() if each is None else set(map(id, ast.walk(each)))
    return found


def mutants_of(module):
    """Mutants of a module: number of the node, of its change, its line, before and after."""
    tree = ast.parse((SOURCE / f"steadytree/{module}.py").read_text("utf-8"))
    left_out = skipped(tree)
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in left_out:
            continue
        for k, change in enumerate(changes_of(node)):
            other = copy.deepcopy(node)
            change(other)
            before, after = ast.unparse(node), ast.unparse(other)
            if before != after:
                yield {
                    "module": module,
                    "node": number,
                    "change": k,
                    "line": node.lineno,
                    "before": before[:120],
                    "after": after[:120],
                }


def mutated_text(mutant):
    tree = ast.parse((SOURCE / f"steadytree/{mutant['module']}.py").read_text("utf-8"))
    node = list(ast.walk(tree))[mutant["node"]]
    list(changes_of(node))[mutant["change"]](node)
    return ast.unparse(ast.fix_missing_locations(tree))


def key_of(mutant):
    text = (SOURCE / f"steadytree/{mutant['module']}.py").read_text("utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{mutant['module']}:{digest}:{mutant['node']}:{mutant['change']}"


# ---- runs ----
def tests_of(module):
    folder, _, name = module.rpartition("/")
    own = f"{folder}/test_{name}.py"
    listed = ([own] if (PROJECT / "tests" / own).is_file() else []) + MODULES[module]
    return [f"tests/{each}" for each in listed]


def preload():
    """What every run imports, once; nothing of steadytree."""
    import numba  # noqa: F401
    import pandas  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.ensemble
    import sklearn.model_selection  # noqa: F401


def start(mutant, folder):
    """Run the tests of a mutant in a child; returns its process id."""
    child = os.fork()
    if child:
        return child
    code = BROKEN
    try:
        os.setsid()
        code = run_tests(mutant, pathlib.Path(folder))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_tests(mutant, folder):
    """In the child: write the mutant into the copy, and test that copy."""
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    target = folder / f"src/steadytree/{mutant['module']}.py"
    target.write_text(mutated_text(mutant), encoding="utf-8")
    os.chdir(PROJECT)
    sys.path[:0] = [str(folder / "src"), str(PROJECT)]
    os.environ["PYTHONPATH"] = str(folder / "src")  # of commands that tests start
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no"]
    marks = "not (data or slow or heavy or federated or browser or interop)"
    return int(pytest.main([*options, "-m", marks, *tests_of(mutant["module"])]))


def wait(child):
    """How the child ended: the exit code of pytest, or None where it ran on."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def run(mutant, folder):
    target = pathlib.Path(folder, f"src/steadytree/{mutant['module']}.py")
    try:
        code = wait(start(mutant, folder))
    finally:
        shutil.copy2(SOURCE / f"steadytree/{mutant['module']}.py", target)
    if code not in (None, 0, 1, 2):  # 2: not even collected, as with an endless import
        tail = pathlib.Path(folder, "output").read_text("utf-8", "replace")[-600:]
        raise RuntimeError(f"{mutant}: pytest ended with {code}\n{tail}")
    return "survived" if code == 0 else "ran on" if code is None else "killed"


def worker(mutants, results):
    """Run some mutants one after the other, each kept as soon as it is known."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SOURCE, pathlib.Path(folder, "src"))  # compiled loops, too
        for mutant in mutants:
            outcome = run(mutant, folder)
            line = json.dumps({"key": key_of(mutant), **mutant, "outcome": outcome})
            with results.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
            sys.stdout.write(
                f"{outcome:9} {mutant['module']}:{mutant['line']}: "
                f"{mutant['before']}  ->  {mutant['after']}\n"
            )
            sys.stdout.flush()


def known_results(results):
    lines = results.read_text("utf-8").splitlines() if results.is_file() else []
    return {found["key"]: found for found in map(json.loads, lines)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60, help="mutants to sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", help="modules that begin so, such as metrics/")
    parser.add_argument("--again", action="store_true", help="run survivors once more")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    given = parser.parse_args()
    names = [name for name in MODULES if name.startswith(given.only or "")]
    every = [mutant for name in names for mutant in mutants_of(name)]
    sampled = random.Random(given.seed).sample(every, min(given.count, len(every)))
    given.results.parent.mkdir(parents=True, exist_ok=True)
    known = known_results(given.results)
    settled = {k for k, found in known.items() if not given.again or found["outcome"] != "survived"}
    open_ = [mutant for mutant in sampled if key_of(mutant) not in settled]
    preload()
    children = []
    for k in range(given.jobs):
        child = os.fork()
        if not child:
            worker(open_[k :: given.jobs], given.results)
            os._exit(0)
        children.append(child)
    failed = [os.waitpid(child, 0)[1] for child in children]
    known = known_results(given.results)
    outcomes = [known[key_of(m)]["outcome"] for m in sampled if key_of(m) in known]
    survived = outcomes.count("survived")
    sys.stdout.write(
        f"{len(outcomes) - survived} of {len(outcomes)} killed, of {len(every):,} "
        f"mutants of {len(names)} modules, seed {given.seed}\n"
    )
    sys.exit(1 if any(failed) else 0)


if __name__ == "__main__":
    main()
