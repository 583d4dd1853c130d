"""RobustTreeClassifier: the tree with the least loss under the worst perturbation, proven."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state

from steadytree._base.clock import CLOCK, CPU_CLOCK, Limit
from steadytree._base.parallel import check_jobs
from steadytree._base.validation import Instance, Integer, OneOf, Parameters, Real, validate
from steadytree.data.binning import quantile_thresholds
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.base import TreeClassifierMixin, read_rows, with_class_weight
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.robustness.perturbation import Moves, Perturbation, check_integers, check_names
from steadytree.robustness.search.box_search import UNFINISHED, BoxSearch, load_box_loops
from steadytree.robustness.search.box_validation import choose_penalty
from steadytree.robustness.search.boxes import BoxProblem, box_thresholds, moves_in_boxes, reach
from steadytree.robustness.search.branch_and_bound import Progress, Search, load_loops
from steadytree.robustness.search.problem import Floats, Outcome, Problem, tree_of

PARAMETERS: Parameters = {
    "max_depth": Integer(1, 8),
    "n_thresholds": Integer(1, also=(None,)),
    "regularisation": Real(least=0, below=1, also=("auto",)),
    "time_limit": Real(above=0),
    "clock": OneOf("wall", "cpu"),
    "memory_limit": Real(above=0),
    "max_nodes": Integer(1, also=(None,)),
    "perturbation": Instance(Perturbation, "a Perturbation"),
    "solver": OneOf("search", "mio"),
    "n_jobs": Integer(-1_000, also=(None,)),  # joblib counts backwards from all cores below 0
    "cuts": Instance(Mapping, "a mapping from names to thresholds"),
}
USUAL_THRESHOLDS = 10  # of a column, with a budget that rows share
FEW_SPLITS = 100  # of which the exact search over lists of sub-trees proves depth 3 and more
Training = tuple[Floats, NDArray[np.int64], Floats]  # values, labels, weights
Spending = tuple[float, bool, float]  # what may be spent, whether by all rows, and the penalty


class RobustTreeClassifier(TreeClassifierMixin, ClassifierMixin, BaseEstimator):
    """The tree of given depth that keeps most rows correct after the worst perturbation.

    The adversary sees the tree, then moves the rows as the perturbation allows, to make as many
    wrong as the budget can pay for. Two searches find the tree that loses least to it, each where
    it is the right one. Where each row may move within a box of its own (`radius`, or nothing
    moves), trees over all thresholds that matter are improved by local search from greedy ones, so
    that none of these is better; depth 1 and 2 are proven, deeper trees get a bound. Where rows
    share a budget, or costs add up over columns, an exact search over candidate splits proves the
    tree. When a limit of time or work is reached first, the best tree found is kept together with a
    bound that no tree can exceed. Without a perturbation it is the optimal tree of that depth.

    Parameters
    ----------
    max_depth : int, default=3
        Most splits from root to leaf, 1 to 8.
    perturbation : Perturbation, optional
        With a budget. Shares ("5 %") and standard deviations are those of the training rows. By
        default nothing moves.
    time_limit : float, default=60
        Seconds of a fit after which the best tree so far is kept; compiling, which takes a while
        once after installation, does not count. No step is begun that would take longer, if it
        takes as long as the last ones.
    regularisation : float or "auto", default=0
        R in [0, 1): maximises (1 - R) times the rows kept correct minus R times the splits. "auto"
        chooses it by cross-validation of the rows kept, for noise by row.
    n_thresholds : int, optional
        Most candidate thresholds of a column: between rows, at equal shares of them. Those of whole
        numbers are whole, or halfway to the next where the perturbation's `whole` lets them move by
        less than whole steps; every whole number between the bounds is one where these are few. By
        default all that matter where each row moves in a box of its own, else 10.
    cuts : mapping of name to thresholds, optional
        Candidate thresholds of some columns, in place of those.
    warm_start : bool, Tree or fitted tree, default=False
        A tree to begin with; True is the one of the last fit, if any. Where rows share a budget
        its splits must be among the candidate splits.
    solver : {"search", "mio"}, default="search"
        "mio" solves the paper's mixed-integer model with SCIP, to compare (extra ``mio``). It uses
        one thread and no random numbers, and reports no progress.
    n_jobs : int, optional
        Threads among which the splits at the root are shared where rows share a budget; None is
        one, -1 all cores. The objective is the same for any number; of equally good trees another
        may be found.
    progress : callable, optional
        Called with a `Progress` (seconds, incumbent, bound: robust loss) when either improves.
    random_state : int, RandomState or None, default=None
        Seed of the trees that the search starts from; None is 0, so that a fit can be repeated.
    max_nodes : int, optional
        Steps after which the best tree so far is kept: each bounds a part of the search tree, lists
        the sub-trees in it, starts from a random tree, or looks at some ten million values. With
        one thread and ``time_limit=math.inf`` the result is the same on every machine. Of "mio",
        nodes of SCIP's.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with those of the rows.
    clock : {"wall", "cpu"}, default="wall"
        Whether `time_limit` counts seconds of the clock on the wall, or of this process at work.
    memory_limit : float, default=3000
        Megabytes that the lists and bounds of the exact search may take, beside the data and the
        program itself. Where they would take more, the search ends with "too many candidates".

    Attributes
    ----------
    tree_ : Tree
    objective_ : float
        Weight of rows kept correct, less the penalty ``R / (1 - R)`` for every split.
    bound_ : float
        No tree over the candidate splits has a larger objective.
    optimality_gap_ : float
        ``(bound_ - objective_) / bound_``; 0 where proven.
    proven_ : bool
    status_ : str
        "proven", "time limit", "node limit", "interrupted", "too many candidates", or "bound limit"
        where nothing lowers the bound further.
    history_ : list of Progress
        Robust loss of the best tree and its bound, whenever either improved.
    perturbation_ : Perturbation
        The perturbation in the columns' own units.
    regularisation_ : float
        R, as given or chosen.
    is_shortest_ : bool
        Whether it is proven, too, that no equally good tree has fewer splits.
    majority_ : float
        Weight of the most frequent class: always predicting it is not affected by moves.
    n_questions_ : int
        Candidate splits searched over.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X had column names

    Examples
    --------
    >>> X = [[0, 0], [0, 1], [0, 1], [3, 0], [3, 1], [3, 1]]
    >>> y = [0, 0, 0, 1, 1, 1]
    >>> noise = Perturbation(step_cost={"x0": 1.0, "x1": 1.0}, budget=1.0)
    >>> model = RobustTreeClassifier(max_depth=2, perturbation=noise, random_state=0).fit(X, y)
    >>> model.objective_, model.proven_, model.majority_
    (6.0, True, 3.0)
    >>> float(model.tree_.threshold[0])
    1.0
    """

    _clock = CLOCK  # that measures time_limit

    def __init__(
        self,
        max_depth=3,
        perturbation=None,
        time_limit=60,
        regularisation=0.0,
        n_thresholds=None,
        cuts=None,
        warm_start=False,
        solver="search",
        n_jobs=None,
        progress=None,
        random_state=None,
        max_nodes=None,
        class_weight=None,
        clock="wall",
        memory_limit=3000,
    ):
        self.max_depth = max_depth
        self.perturbation = perturbation
        self.time_limit = time_limit
        self.regularisation = regularisation
        self.n_thresholds = n_thresholds
        self.cuts = cuts
        self.warm_start = warm_start
        self.solver = solver
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state
        self.max_nodes = max_nodes
        self.class_weight = class_weight
        self.clock = clock
        self.memory_limit = memory_limit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RobustTreeClassifier":
        """Find the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Numbers, whole numbers, 0/1 and categories. An order of categories is not used: give
            their codes (``X[c].cat.codes``) where lower ones are to be split from higher ones.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w equal rows, each of which costs what it costs to move;
            of fractional weights any part may be moved.

        Returns
        -------
        self : RobustTreeClassifier
        """
        self._validate()
        limit = self._limit()
        data = with_class_weight(read_rows(self, X, y, sample_weight), self.class_weight)
        self.classes_, labels = np.unique(data.labels, return_inverse=True)
        space = FeatureSpace.observe(data)
        values = np.asarray(space.encode(data), np.float64)
        noise = self.perturbation or Perturbation(step_cost=math.inf, budget=0.0)
        noise = self.perturbation_ = noise.scaled_to(data)
        moves = noise.moves(space.typed_like(data, fitted=True))
        check_integers(noise, space, values)
        weights = np.ones(len(values)) if data.weights is None else data.weights
        training = values, labels.astype(np.int64), weights
        total = float(weights.sum())
        shared = noise.scope != "row"
        by_row = self.n_thresholds is None and moves_in_boxes(moves, shared)
        in_boxes = by_row and self.solver == "search"
        if self.regularisation == "auto" and not in_boxes:
            raise ValueError(
                "regularisation='auto' needs noise by row (radius=, scope='row', or none), "
                "n_thresholds=None and solver='search': pass a number instead."
            )
        self.history_: list[Progress] = []
        chosen = self.regularisation == "auto"
        self.regularisation_ = 0.0 if chosen else float(self.regularisation)
        penalty = self.regularisation_ / (1 - self.regularisation_)
        spending = noise.spend(total), shared, penalty
        reaches = self._reaches(moves, values, spending[0]) if in_boxes else None
        self.space_ = self._with_thresholds(space, moves, training, reaches)
        solve = self._solve_boxes if in_boxes else self._solve
        outcome = solve(moves, training, spending, limit)
        self.objective_, self.bound_ = total - outcome.value, total - outcome.bound
        self.proven_, self.status_ = outcome.proven, outcome.reason
        self.is_shortest_ = outcome.shortest
        gap = self.bound_ - self.objective_
        self.optimality_gap_ = 0.0 if self.proven_ else float(gap / max(abs(self.bound_), 1e-12))
        self.majority_ = float(np.bincount(labels, weights).max())
        return self

    def _solve_boxes(
        self, moves: Moves, training: Training, spending: Spending, limit: Limit
    ) -> Outcome:
        """Search trees over rows in boxes; a proof over few splits is left to the exact search."""
        problem = BoxProblem.of(self.space_, moves, training, spending[0], spending[2])
        given = self._given()
        start = None if given is None else problem.nodes_of(given, self.classes_, self.max_depth)
        few = self.max_depth > 2 and problem.n_splits <= FEW_SPLITS
        with limit.paused():
            load_box_loops(self.max_depth, prove=not few)
        if self.regularisation == "auto":
            penalty = choose_penalty(problem, self.max_depth, limit.half(), self._seed())
            self.regularisation_ = penalty / (1.0 + penalty)
            problem = problem.part(np.arange(len(problem.table.label)), penalty)
            spending = *spending[:2], penalty
        search = BoxSearch(problem, self.max_depth, limit, self._seed(), self._report)
        outcome = search.run(start, prove=not few)
        self.n_questions_ = problem.n_splits
        form = search.space, search.splits, outcome.encoding
        self.tree_ = tree_of(*form, self.classes_, training)
        if few and not outcome.proven and outcome.reason == UNFINISHED:
            return self._solve(moves, training, spending, limit, self.tree_, outcome.bound)
        return outcome

    def _solve(
        self,
        moves: Moves,
        training: Training,
        spending: Spending,
        limit: Limit,
        given: Tree | None = None,
        bound: float = 0.0,
    ) -> Outcome:
        """Search trees over the candidate splits, from a tree and a bound where these are known."""
        problem = Problem.of(self.space_, moves, *training, spending)
        given = self._given() if given is None else given
        depth = self.max_depth
        start = None if given is None else problem.encoding_of(given, self.classes_, depth)
        if self.solver == "mio":
            from steadytree.robustness.search.mio import solve_mio

            limits = self.time_limit, self.max_nodes
            outcome = solve_mio(problem, depth, limits, start, self.clock)
        else:
            with limit.paused():
                load_loops(depth)
            threads, memory = effective_n_jobs(self.n_jobs), 1e6 * self.memory_limit
            search = Search(problem, depth, limit, self._seed(), self._report, threads, memory)
            outcome = search.run(start, bound)
        self.n_questions_ = len(problem.splits)
        form = self.space_, problem.splits, outcome.encoding
        self.tree_ = tree_of(*form, self.classes_, training)
        return outcome

    def _limit(self) -> Limit:
        clock = CPU_CLOCK if self.clock == "cpu" else self._clock
        return Limit(self.time_limit, self.max_nodes, clock)

    def _report(self, state: Progress) -> None:
        self.history_.append(state)
        if self.progress is not None:
            self.progress(state)

    def _seed(self) -> int:
        # None is 0: which of several equally good trees is found must not change between runs
        state = 0 if self.random_state is None else self.random_state
        return int(check_random_state(state).randint(np.iinfo(np.int32).max))

    def _given(self) -> Tree | None:
        """The tree to begin with, where there is one."""
        given = getattr(self, "tree_", None) if self.warm_start is True else self.warm_start
        if given is None or given is False:
            return None
        try:
            return as_tree(given)
        except TypeError as error:
            raise TypeError(f"warm_start must be a bool or a tree: {error}") from error

    def _validate(self) -> None:
        validate(self, PARAMETERS)
        if self.perturbation is not None:
            self.perturbation.spend(1.0)
        check_jobs(self.n_jobs)

    def _reaches(self, moves: Moves, values: Floats, limit: float) -> list[tuple[Floats, Floats]]:
        """Ends of the rows' boxes in each column; of categories they do not count."""
        return [reach(moves, j, x, limit) for j, x in enumerate(values.T)]

    def _with_thresholds(
        self,
        space: FeatureSpace,
        moves: Moves,
        training: Training,
        reaches: list[tuple[Floats, Floats]] | None,
    ) -> FeatureSpace:
        """The space with candidate thresholds: declared ones, those between boxes, or some."""
        # where an integer column may move by less than a step, the least move would cross a
        # threshold at an integer: thresholds then lie halfway to the next
        steps = moves.integer | np.isinf(np.minimum(moves.up, moves.down))
        most = self.n_thresholds or USUAL_THRESHOLDS
        declared, columns = self.cuts or {}, list(space)
        check_names("cuts", declared, space.names)
        for j, column in enumerate(space):
            name, x = column.name, training[0][:, j]
            if column.is_categorical and name in declared:
                raise ValueError(f"cuts of {name!r}: categories are split off one by one.")
            if column.is_categorical:
                continue
            whole = column.kind != "numeric"
            if name in declared:
                thresholds = _declared_thresholds(name, declared[name])
            elif reaches is not None:
                thresholds = box_thresholds(*reaches[j], bool(whole and steps[j]))
            elif whole:
                few = column.high - column.low <= most
                between = np.floor(quantile_thresholds(x, most, training[2]))
                integers = np.arange(column.low, column.high) if few else between
                thresholds = np.unique(integers) + (0.0 if steps[j] else 0.5)
            else:
                thresholds = quantile_thresholds(x, most, training[2])
            columns[j] = column.with_thresholds(thresholds)
        return FeatureSpace(tuple(columns))


def _declared_thresholds(name: str, given: Any) -> Floats:
    try:
        return np.unique(np.asarray(given, dtype=float))
    except (TypeError, ValueError):
        raise ValueError(f"cuts of {name!r} must be a list of numbers, got {given!r}.") from None
