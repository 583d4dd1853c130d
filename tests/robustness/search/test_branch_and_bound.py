"""What a search calls is compiled while its clock stands still, and no more than it needs."""

import json
import subprocess
import sys

# in a process of its own: other tests compile the same loops for other arguments
COUNT = """
import json, sys
from collections import Counter
from contextlib import contextmanager
import numpy as np
from numba.core.dispatcher import Dispatcher
from steadytree._base.clock import Limit
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.robust_tree import RobustTreeClassifier

def compiled():
    prefix = "steadytree.robustness._kernels"
    modules = [m for name, m in sys.modules.items() if name.startswith(prefix)]
    loops = {loop for module in modules for loop in vars(module).values()
             if isinstance(loop, Dispatcher)}
    return Counter({loop.py_func.__name__: len(loop.signatures) for loop in loops})

early, paused = Counter(), Limit.paused

@contextmanager
def noting(limit):
    before = compiled()
    with paused(limit):
        yield
    early.update(compiled() - before)

Limit.paused = noting
random = np.random.default_rng(0)
X = np.round(random.normal(size=(90, 4)), 1)
X[::7, 0] = np.nan
y = random.integers(0, 3, 90)
weight = random.random(90)
mean = Perturbation(radius=0.1, budget=0.3, scope="mean")
row = Perturbation(radius=0.1, budget=0.5, missing_cost={"x0": 0.2})
settings = [{"n_thresholds": 3} | more for more in (
    {}, {"perturbation": mean}, {"perturbation": row, "regularisation": 0.2}, {"n_jobs": 2}
)]
settings += [{"perturbation": row}, {"perturbation": row, "regularisation": "auto"}]
statuses = []
for depth in (1, 2, 3, 4):
    for more in settings if depth < 4 else settings[-2:]:
        model = RobustTreeClassifier(depth, max_nodes=3000, time_limit=1e9, random_state=0, **more)
        statuses.append(model.fit(X, y, sample_weight=weight).status_)
late = compiled() - early
print(json.dumps([late, statuses, len(early), early["exact_two_levels"]]))
"""
FIRST = """
import json
from steadytree.robustness._kernels import box_bounds, lists, search, sharing
from steadytree.robustness.search.box_search import load_box_loops
from steadytree.robustness.search.branch_and_bound import load_loops

def count(*loops):
    return [len(loop.signatures) for loop in loops]

found = [count(lists.two_level_list, search.exact_two_levels, sharing.least_two_levels)]
load_loops(3)
found.append(count(lists.two_level_list, search.exact_two_levels, sharing.least_two_levels))
load_loops(3, sharp=True)
found.append(count(lists.two_level_list, search.exact_two_levels, sharing.least_two_levels))
load_box_loops(3)
found.append(count(box_bounds.two_levels, box_bounds.two_splits))
load_box_loops(2)
found.append(count(box_bounds.two_levels, box_bounds.two_splits))
print(json.dumps(found))
"""


def printed(script):
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return json.loads(done.stdout)


def test_a_search_compiles_nothing_while_its_clock_runs():
    late, statuses, n_compiled, n_sharp = printed(COUNT)
    assert n_compiled > 20
    assert n_sharp > 0  # some of them turned to better bounds
    assert late == {}
    assert "proven" in statuses


def test_what_few_searches_need_waits_until_one_does():
    assert printed(FIRST) == [[0, 0, 0], [1, 0, 0], [1, 1, 1], [1, 0], [1, 1]]
