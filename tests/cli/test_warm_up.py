"""`steadytree warm-up`: every step works, and what it compiles serves other data."""

import json

import numpy as np
import pytest

import steadytree as st
from steadytree.cli import warm_up


@pytest.mark.slow
def test_the_command_names_what_is_ready(run):
    exit_code, out, _ = run("warm-up", "--json")
    assert exit_code == 0
    assert json.loads(out)["ready"][:3] == ["steady trees", "stable trees", "many rows"]


def test_a_fit_on_other_data_needs_nothing_new(run):
    from steadytree.stability._kernels.small_tree import add_rows, walk_rows
    from steadytree.stability._kernels.steady import fill_bag, fill_deep, walk_together

    kernels = (add_rows, walk_rows, fill_bag, fill_deep, walk_together)
    [work] = [work for what, work in warm_up._steps() if what == "steady trees"]
    work()
    known = [len(kernel.signatures) for kernel in kernels]
    assert min(known) > 0
    random = np.random.default_rng(3)
    X = random.normal(size=(150, 7))
    st.SteadyTreeClassifier().fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    assert [len(kernel.signatures) for kernel in kernels] == known
