"""Build a wheel for this platform that brings its compiled loops along.

    python tools/compiled_wheel.py dist

Everything that `steadytree warm-up` uses is compiled for processors of the last ten years
(x86-64-v3; elsewhere for any), then run again without a cache: it must compile nothing, and give
the same trees. What that run did not read is left out. The wheel serves one version of Python and
of numba; with any other, or on an older processor, loops are compiled on first use as before.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PROCESSOR = {"x86_64": "x86-64-v3", "AMD64": "x86-64-v3"}.get(platform.machine(), "generic")
CHECK = """
import sys
from pathlib import Path
from numba.core import caching, event
compiled, read = [], set()
class Listener(event.Listener):
    def on_start(self, one):
        compiled.append(one.data["dispatcher"].py_func.__qualname__)
    def on_end(self, one):
        pass
event.register("numba:compile", Listener())
load_data = caching.IndexDataCacheFile._load_data
def note(self, name):
    read.add(name)
    return load_data(self, name)
caching.IndexDataCacheFile._load_data = note
import steadytree
from steadytree.cli.warm_up import warm_up
assert Path(steadytree.__file__).parents[1] == Path(sys.argv[1]), steadytree.__file__
warm_up()
Path(sys.argv[2]).write_text("\\n".join(sorted(read)))
sys.exit(f"compiled again: {sorted(set(compiled))}" if compiled else 0)
"""
TREES = """
import numpy as np, steadytree as st
random = np.random.default_rng(5)
X = random.normal(size=(900, 6)); y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
for learner in (st.SteadyTreeClassifier, st.StableTreeClassifier, st.ParetoTreeClassifier):
    tree = learner(random_state=0).fit(X, y).tree_
    print(tree.feature.tolist(), tree.threshold.tolist(), tree.label.tolist())
"""


def main() -> None:
    """Compile, check, and build."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the wheel goes")
    out = parser.parse_args().folder.resolve()
    with tempfile.TemporaryDirectory() as made:
        package = Path(made) / "package"
        shutil.copytree(
            PROJECT / "src", package, ignore=shutil.ignore_patterns("__pycache__", "_compiled")
        )
        compiled = Path(made) / "compiled"
        compiled.mkdir()
        run = Runner(package, Path(made))
        run("-m", "steadytree", "warm-up", STEADYTREE_COMPILED=compiled, NUMBA_CPU_NAME=PROCESSOR)
        expected = run("-c", TREES)
        shutil.copytree(compiled, package / "steadytree" / "_compiled")
        used = Path(made) / "used"
        run("-c", CHECK, str(package), str(used))
        if run("-c", TREES) != expected:
            sys.exit("compiled code gives other trees: no wheel is built.")
        keep_only(compiled, used.read_text("utf-8").split())
        environment = os.environ | {"STEADYTREE_COMPILED_FOR_WHEEL": str(compiled)}
        build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(out), str(PROJECT)]
        subprocess.run(build, check=True, env=environment)


def keep_only(compiled: Path, used: list[str]) -> None:
    """Leave out the code of inner loops, which their callers hold too."""
    kept = {name.rsplit(".", 2)[0] for name in used}
    for path in compiled.iterdir():
        is_index = path.suffix == ".nbi"
        if (path.stem not in kept) if is_index else (path.name not in used):
            path.unlink()


class Runner:
    """Runs Python on a copy of the package, each time with an empty cache of its own."""

    def __init__(self, package: Path, made: Path) -> None:
        self.package, self.made, self.count = package, made, 0

    def __call__(self, *arguments: str, **settings: object) -> str:
        """Run, and return what was printed."""
        self.count += 1
        cache = self.made / f"cache{self.count}"
        settings |= {"PYTHONPATH": self.package, "NUMBA_CACHE_DIR": cache}
        environment = os.environ | {name: str(value) for name, value in settings.items()}
        done = subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            cwd=self.made,
            stdout=subprocess.PIPE,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{arguments[0]} {arguments[1][:30]!r} ended with {done.returncode}.")
        return done.stdout


if __name__ == "__main__":
    main()
