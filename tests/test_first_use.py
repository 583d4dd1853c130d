"""What is compiled at a first use: little, and nothing again for rows with other labels."""

import ast

import pytest
from benchmarks import first_use

MOST = {"fit": 16, "report": 95}  # loops, with those of numba that they take in
FILLED = {"zeros", "ones", "full", "zeros_like", "ones_like", "full_like"}
ON_THE_WAY = [
    "data/_kernels/bins",
    "data/_kernels/counts",
    "distance/_kernels",
    "models/_kernels",
    "riskscore/_kernels/bands",
    "robustness/_kernels/attack",
    "stability/_kernels/choose",
    "stability/_kernels/small_tree",
    "stability/_kernels/steady",
]


@pytest.mark.slow
@pytest.mark.parametrize("command", MOST)
def test_few_loops_are_compiled_once(command, tmp_path):
    n_compiled = {}
    for when, labels in first_use.LABELS.items():
        rows = tmp_path / f"{when}.csv"
        first_use.write_rows(rows, labels)
        found = first_use.measure(first_use.SOURCE, command, rows, tmp_path, tmp_path / "cache")
        n_compiled[when] = len(found["loops"])
    assert 0 < n_compiled["first"] <= MOST[command]
    assert n_compiled["again"] == n_compiled["other"] == 0


@pytest.mark.parametrize("name", ON_THE_WAY)
def test_loops_of_a_first_report_make_no_filled_arrays(name):
    # numba compiles np.zeros and the like for long, and once for each kind of array
    source = (first_use.SOURCE / "steadytree" / name).with_suffix(".py").read_text("utf-8")
    loops = [one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef)]
    loops = [one for one in loops if "kernel" in map(ast.unparse, one.decorator_list)]
    assert loops
    asked = (node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Attribute))
    assert not [ast.unparse(node) for node in asked if node.attr in FILLED]
