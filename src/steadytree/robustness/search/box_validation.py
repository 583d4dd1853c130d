"""The penalty of a split, chosen by cross-validation of what trees keep on held-out rows."""

import numpy as np
from numpy.typing import NDArray

from steadytree._base.clock import Limit
from steadytree.robustness._kernels import boxes
from steadytree.robustness.search.box_search import BoxSearch
from steadytree.robustness.search.boxes import BoxProblem
from steadytree.robustness.search.branch_and_bound import Stop

UNITS = (0.0, 0.1, 0.25, 0.5, 0.75)  # standard errors of the weight kept, that a split must win
N_FOLDS = 5
FOLD_WORK = 2_000_000  # of the search for one tree
Penalties = NDArray[np.float64]


def choose_penalty(problem: BoxProblem, depth: int, limit: Limit, seed: int) -> float:
    """The largest penalty whose trees keep as much held-out weight as the best, within one error.

    The rule of one standard error is that of Breiman et al. (1984). Where a limit is reached, the
    folds finished so far decide; where the user interrupts, no further step is made.
    """
    folds, total = _folds(problem.table.label, seed), problem.total
    kept, seen = np.zeros(len(UNITS)), 0.0
    try:
        search = BoxSearch(problem, depth, limit, seed)
        search.begin()
        penalties = np.array(UNITS) * total * _error(problem, search.value / total)
        for fold in range(N_FOLDS):
            kept += _kept_by(problem, depth, folds == fold, penalties, limit, seed)
            seen += float(problem.table.weight[folds == fold].sum())
    except Stop:
        pass  # the search that follows ends soon, and says why
    except KeyboardInterrupt:
        limit.end("interrupted")  # it still makes a tree
    if seen == 0.0:
        return 0.0
    best = float(kept.max()) / seen
    return float(penalties[np.flatnonzero(kept / seen >= best - _error(problem, best)).max()])


def _error(problem: BoxProblem, share: float) -> float:
    """Standard error of a share of the rows."""
    weight = problem.table.weight
    # of weights that are no numbers of rows, Kish's (1965) number of rows
    n_rows = problem.total if problem.unit else weight.sum() ** 2 / (weight**2).sum()
    return float(np.sqrt(max(share * (1.0 - share), 0.0) / n_rows))


def _folds(labels: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """A fold for each row, each with the same share of every class."""
    folds = np.empty(len(labels), np.int64)
    random = np.random.default_rng(seed)
    for label in np.unique(labels):
        own = random.permutation(np.flatnonzero(labels == label))
        folds[own] = (np.arange(len(own)) + label) % N_FOLDS
    return folds


def _kept_by(
    problem: BoxProblem,
    depth: int,
    held_out: NDArray[np.bool_],
    penalties: Penalties,
    limit: Limit,
    seed: int,
) -> NDArray[np.float64]:
    """Weight of held-out rows that a tree of the others keeps, for each penalty."""
    rows, others = np.flatnonzero(~held_out), problem.part(np.flatnonzero(held_out), 0.0).table
    kept, start = np.zeros(len(penalties)), None
    if len(rows) == 0 or len(others.label) == 0:
        return kept
    part = float(problem.table.weight[rows].sum()) / problem.total
    marks = np.zeros((2, 2 ** (depth + 1), len(others.label)), bool)
    for k, penalty in enumerate(penalties):
        search = BoxSearch(problem.part(rows, penalty * part), depth, limit, seed)
        search.begin(start)
        search.kick(FOLD_WORK)
        start = search.centred(search.nodes)
        kept[k] = boxes.mark_rows(others, start, marks[0], marks[1])
    return kept
