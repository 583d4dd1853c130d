"""Change one thing at a time in modules that compute numbers, and see whether their tests notice.

    python tools/mutate.py --count 100 --first 0 --seed 0 --jobs 2

Mutants are put in an order by a seed, and some are run: each against the nearest tests of its
module until the first failure, in a child of a process that has loaded the libraries, with a
copy of the source. Compiled loops run uncompiled then, against their twins: compiling would take
longer than the tests. Results are kept in build/mutants.jsonl by the text of the module and the
mutant, so that an interrupted run goes on where it stopped; --again runs survivors once more, and
keeps what was seen at first.
"""

import argparse
import ast
import collections
import copy
import hashlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback

PROJECT = pathlib.Path(__file__).parents[1]
SOURCE = PROJECT / "src"
RESULTS = PROJECT / "build/mutants.jsonl"
SECONDS = 90  # of the processor: a mutant that runs on is noticed, too
WAITED = 1_800  # seconds by the clock, where it waits for ever
BROKEN = 70  # exit code of a child that did not get as far as its tests
# modules whose numbers a page or a budget depends on, and tests beside that of the same name
MODULES = {
    "_base/intervals": [],
    "data/binning": ["data/test_feature_space.py"],
    "data/labels": [],
    "data/readers": [],
    "data/_kernels/bins": [],
    "data/_kernels/counts": [],
    "distance/_kernels": [],
    "distance/diff": [
        "distance/test_equivalence.py",
        "distance/test_new_class.py",
        "distance/test_regression_trees.py",
    ],
    "distance/path": ["distance/test_regression_trees.py"],
    "distance/tree_distance": [
        "distance/test_node_distance.py",
        "distance/test_collection.py",
        "distance/test_regression_trees.py",
    ],
    "metrics/accuracy": ["metrics/test_accuracy_in_parts.py"],
    "metrics/calibration": [],
    "metrics/complexity": ["metrics/test_measurement.py"],
    "metrics/drift": ["metrics/test_measurement.py"],
    "metrics/groups": [],
    "metrics/measurement": [],
    "metrics/validation": ["metrics/test_ranking.py"],
    "models/_kernels": [],
    "models/boxes": ["models/test_tree.py", "distance/test_path.py"],
    "models/condition": ["models/test_scorecard.py", "models/test_variable.py"],
    "models/one_hot": [],
    "models/risk_table": ["models/test_scorecard.py"],
    "models/variable": ["models/test_scorecard.py"],
    "models/exports/float32": [],
    "models/exports/probes": [],
    "models/exports/source": [],
    "models/exports/sql": [],
    "privacy/_kernels": [],
    "privacy/accounting": [],
    "privacy/budget": ["privacy/test_private_tree_budget.py"],
    "privacy/ledger": [
        "privacy/test_ledger_lines.py",
        "privacy/test_witness.py",
        "privacy/test_accounting.py",
    ],
    "privacy/ledger_lines": ["privacy/test_ledger.py", "privacy/test_accounting.py"],
    "reporting/formatting": ["comparison/test_learners.py"],
    "riskscore/pool": [],
    "riskscore/scaling": [],
    "riskscore/scoring": [],
    "robustness/certificate": [
        "robustness/test_certificate_counts.py",
        "robustness/test_certify.py",
    ],
    "robustness/certify": [
        "robustness/test_certificate.py",
        "robustness/test_certificate_counts.py",
    ],
    "stability/_kernels/choose": [],
    "stability/optimism": [],
    "stability/removal": ["stability/test_sensitivity.py"],
}
TOLERANCE = 1e-6  # numbers below are differences that do not count: twice as much is the same
UNCHANGED = {
    "strict",
    "stacklevel",
    "repr",
    "compare",
    "copy",
    "eager_only",
}  # arguments that change no number
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
    """Nodes whose change says nothing: annotations, decorators, messages, checks of lengths."""
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
        elif isinstance(node, ast.Constant) and type(node.value) is float:
            dropped = [node] if 0 < node.value <= TOLERANCE else []
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            dropped = [each for each in node.keywords if each.arg in UNCHANGED]
            dropped += [node] if name == "warn" else []
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


def in_order(mutants, seed):
    """In an order by hashes of what is changed, which a change of other lines does not disturb."""
    seen = collections.Counter()

    def digest(mutant):
        what = mutant["module"], mutant["before"], mutant["after"]
        seen[what] += 1
        return hashlib.sha256(repr((seed, *what, seen[what])).encode()).digest()

    return sorted(mutants, key=digest)


def mutated_text(mutant):
    tree = ast.parse((SOURCE / f"steadytree/{mutant['module']}.py").read_text("utf-8"))
    if mutant["node"] is not None:
        node = list(ast.walk(tree))[mutant["node"]]
        list(changes_of(node))[mutant["change"]](node)
    return ast.unparse(ast.fix_missing_locations(tree))


def key_of(mutant):
    text = (SOURCE / f"steadytree/{mutant['module']}.py").read_text("utf-8")
    if mutant["node"] is None:  # that its tests pass is known of these tests alone
        paths = [PROJECT / each for each in tests_of(mutant["module"]) if each.endswith(".py")]
        text += "".join(path.read_text("utf-8") for path in paths)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{mutant['module']}:{digest}:{mutant['node']}:{mutant['change']}"


# ---- runs ----
def is_kernel(module):
    return "_kernels" in module


def tests_of(module):
    """Arguments for pytest: the test file of the same name, and those that are listed."""
    if is_kernel(module):
        text = (SOURCE / f"steadytree/{module}.py").read_text("utf-8")
        loops = [part.name for part in ast.parse(text).body if isinstance(part, ast.FunctionDef)]
        named = " or ".join(f"reference[{name}]" for name in loops)
        return ["tests/test_kernels.py", "-k", named]
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


class QuickestFirst:
    """A plugin of pytest: tests in the order of how long they took when all passed."""

    def __init__(self, path):
        self.path, self.seconds = path, {}
        self.known = json.loads(path.read_text("utf-8")) if path.is_file() else {}

    def pytest_collection_modifyitems(self, items):
        items.sort(key=lambda item: self.known.get(item.nodeid, 0.0))

    def pytest_runtest_logreport(self, report):
        known = self.seconds.get(report.nodeid, 0.0)
        self.seconds[report.nodeid] = known + report.duration

    def pytest_sessionfinish(self, exitstatus):
        if exitstatus == 0:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.seconds), "utf-8")


def start(mutant, folder, times):
    """Run the tests of a mutant in a child; returns its process id."""
    child = os.fork()
    if child:
        return child
    code = BROKEN
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        code = run_tests(mutant, pathlib.Path(folder), times)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_tests(mutant, folder, times):
    """In the child: write the mutant into the copy, and test that copy."""
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    target = folder / f"src/steadytree/{mutant['module']}.py"
    target.write_text(mutated_text(mutant), encoding="utf-8")
    os.chdir(PROJECT)
    sys.path[:0] = [str(folder / "src"), str(PROJECT)]
    os.environ["PYTHONPATH"] = str(folder / "src")  # of commands that tests start
    marks = "not (data or slow or heavy or federated or browser or interop)"
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "-m", marks]
    if is_kernel(mutant["module"]):
        import numba

        numba.config.DISABLE_JIT = 1
        options += ["-W", "ignore::RuntimeWarning"]  # hashes are meant to overflow
    else:
        options += ["--doctest-modules", str(target)]  # its own examples
    import pytest

    plugins = [QuickestFirst(times / f"{mutant['module'].replace('/', '.')}.json")]
    return int(pytest.main([*options, *tests_of(mutant["module"])], plugins))


def wait(child):
    """The exit code of pytest, or None where it ran on, and seconds of the processor."""
    end = time.monotonic() + WAITED
    status = None
    try:
        while status is None and time.monotonic() < end:
            time.sleep(0.05)
            ended, found, used = os.wait4(child, os.WNOHANG)
            status = found if ended else None
    finally:  # with this process, too
        if status is None:
            os.killpg(child, signal.SIGKILL)
            used = os.wait4(child, 0)[2]
    code = None if status is None else os.waitstatus_to_exitcode(status)
    code = None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code
    return code, used.ru_utime + used.ru_stime


def run(mutant, folder, times):
    target = pathlib.Path(folder, f"src/steadytree/{mutant['module']}.py")
    try:
        code, seconds = wait(start(mutant, folder, times))
    finally:
        shutil.copy2(SOURCE / f"steadytree/{mutant['module']}.py", target)
    if code not in (None, 0, 1, 2):  # 2: not even collected, as with an endless import
        tail = pathlib.Path(folder, "output").read_text("utf-8", "replace")[-600:]
        raise RuntimeError(f"{mutant}: pytest ended with {code}\n{tail}")
    return "survived" if code == 0 else "ran on" if code is None else "killed", seconds


def worker(mutants, results):
    """Run some mutants one after the other, each kept as soon as it is known.

    Before the first of a module its tests must pass unchanged, or every mutant would seem killed.
    """
    n_begun = len(kept_lines(results))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SOURCE, pathlib.Path(folder, "src"))  # compiled loops, too
        for mutant in mutants:
            lines = kept_lines(results)
            passed = {found["key"] for found in lines}
            if key_of(mutant) in {found["key"] for found in lines[n_begun:]}:
                continue  # by another process that shares the file
            same = {"module": mutant["module"], "node": None, "change": None}
            for each in [mutant] if key_of(same) in passed else [same, mutant]:
                outcome, seconds = run(each, folder, results.parent / "times")
                found = {"key": key_of(each), **each, "outcome": outcome, "seconds": seconds}
                if each is same and outcome != "survived":
                    raise RuntimeError(f"the tests of {mutant['module']} fail unchanged")
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
            sys.stdout.write(
                f"{outcome:9} {mutant['module']}:{mutant['line']}: "
                f"{mutant['before']}  ->  {mutant['after']}\n"
            )
            sys.stdout.flush()


def kept_lines(results):
    lines = results.read_text("utf-8").splitlines() if results.is_file() else []
    return [json.loads(line) for line in lines]


def outcomes_of(sampled, results):
    """Outcome at first sight and now of each mutant that was run."""
    first, last = {}, {}
    for found in kept_lines(results):
        first.setdefault(found["key"], found["outcome"])
        last[found["key"]] = found["outcome"]
    known = [key_of(mutant) for mutant in sampled if key_of(mutant) in last]
    return [first[key] for key in known], [last[key] for key in known]


def count_killed(outcomes):
    return sum(outcome != "survived" for outcome in outcomes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="mutants to run")
    parser.add_argument("--first", type=int, default=0, help="mutants of the order to leave out")
    parser.add_argument("--seed", type=int, default=0, help="which order")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", help="modules that begin so, such as metrics/")
    parser.add_argument("--again", action="store_true", help="run survivors once more")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # copies of the source are removed
    names = [name for name in MODULES if name.startswith(given.only or "")]
    every = in_order([mutant for name in names for mutant in mutants_of(name)], given.seed)
    sampled = every[given.first : given.first + given.count]
    given.results.parent.mkdir(parents=True, exist_ok=True)
    now = {found["key"]: found["outcome"] for found in kept_lines(given.results)}
    settled = {key for key, outcome in now.items() if not given.again or outcome != "survived"}
    open_ = [mutant for mutant in sampled if key_of(mutant) not in settled]
    random.shuffle(open_)  # several processes may share the work
    preload()
    children = []
    for k in range(given.jobs):
        child = os.fork()
        if not child:
            worker(open_[k :: given.jobs], given.results)
            os._exit(0)
        children.append(child)
    failed = [os.waitpid(child, 0)[1] for child in children]
    first, last = outcomes_of(sampled, given.results)
    sys.stdout.write(
        f"{len(last)} of {len(every):,} mutants of {len(names)} modules, seed {given.seed}: "
        f"{count_killed(first)} killed at first sight, {count_killed(last)} now\n"
    )
    sys.exit(1 if any(failed) else 0)


if __name__ == "__main__":
    main()
