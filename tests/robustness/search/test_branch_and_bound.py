"""What a search calls is compiled before its clock starts."""

import json
import subprocess
import sys

# in a process of its own: other tests compile the same loops for other arguments
COUNT = """
import json, sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.robust_tree import RobustTreeClassifier
from steadytree.robustness.search.branch_and_bound import load_loops

def compiled():
    prefix = "steadytree.robustness._kernels"
    modules = [m for name, m in sys.modules.items() if name.startswith(prefix)]
    loops = [loop for module in modules for loop in vars(module).values()]
    loops = [loop for loop in loops if isinstance(loop, Dispatcher)]
    return {loop.py_func.__name__: len(loop.signatures) for loop in loops}

random = np.random.default_rng(0)
X = np.round(random.normal(size=(90, 4)), 1)
X[::7, 0] = np.nan
y = random.integers(0, 3, 90)
mean = Perturbation(radius=0.1, budget=0.3, scope="mean")
row = Perturbation(radius=0.1, budget=0.5, missing_cost={"x0": 0.2})
settings = {}, {"perturbation": mean}, {"perturbation": row, "regularisation": 0.2}, {"n_jobs": 2}
late, statuses = {}, []
for depth in (2, 3):
    load_loops(depth)
    before = compiled()
    for more in settings:
        model = RobustTreeClassifier(depth, n_thresholds=3, time_limit=1e9, random_state=0, **more)
        statuses.append(model.fit(X, y, sample_weight=random.random(90)).status_)
    late |= {name: n for name, n in compiled().items() if n > before.get(name, 0)}
print(json.dumps([late, statuses, len(before)]))
"""


def test_a_search_compiles_nothing_after_its_start():
    command = [sys.executable, "-c", COUNT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    late, statuses, n_compiled = json.loads(done.stdout)
    assert n_compiled > 20
    assert late == {}
    assert "proven" in statuses
