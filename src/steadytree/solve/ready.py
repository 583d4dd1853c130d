"""Loops compiled, or loaded, before a search looks at the clock."""

from functools import cache

import numpy as np

from steadytree.core.column import Column
from steadytree.core.perturbation import Perturbation
from steadytree.core.space import FeatureSpace
from steadytree.solve.problem import Problem, make_problem
from steadytree.solve.search import Search

N_ROWS, N_COLUMNS, HIGHEST = 24, 3, 2


def load_loops(depth: int) -> None:
    """Compile, or load, whatever a search of that depth may call: no time limit is spent on it."""
    _search_few_rows(2, sharp=False)
    if depth > 2:
        _search_few_rows(4, sharp=False)
        _search_few_rows(4, sharp=True)


@cache
def _search_few_rows(depth: int, sharp: bool) -> None:
    search = Search(_small_problem(), depth)
    if sharp:  # from the start, where other searches turn to it only if a proof is hard
        search.bounds.sharpen()
    search.run()


def _small_problem() -> Problem:
    random = np.random.default_rng(0)
    columns = [
        Column(f"x{j}", "integer", 0.0, float(HIGHEST)).with_cuts(np.arange(HIGHEST, dtype=float))
        for j in range(N_COLUMNS)
    ]
    space = FeatureSpace(tuple(columns))
    values = random.integers(0, HIGHEST + 1, (N_ROWS, N_COLUMNS)).astype(np.float64)
    labels = random.integers(0, 2, N_ROWS).astype(np.int64)
    moves = Perturbation(step_cost=1.0, budget=2.0, scope="total").moves(space)
    return make_problem(space, moves, values, labels, np.ones(N_ROWS), (2.0, True, 0.0))
