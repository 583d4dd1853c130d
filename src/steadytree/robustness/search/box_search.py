"""BoxSearch: the tree that keeps most boxes, by local search, with a bound on all trees."""

from collections.abc import Callable
from functools import cache

import numpy as np

from steadytree._base.clock import Limit
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.robustness._kernels import box_bounds, box_splits, boxes
from steadytree.robustness._kernels.box_bounds import EXACT_ROUNDS
from steadytree.robustness._kernels.box_splits import ROUNDING
from steadytree.robustness._kernels.boxes import INDEX
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.search.box_proof import STEP_WORK, BoxProof, even_shares, first_bounds
from steadytree.robustness.search.boxes import BoxProblem, Nodes, empty_tree, rows_of
from steadytree.robustness.search.branch_and_bound import Progress, Stop
from steadytree.robustness.search.problem import Encoding, Floats, Outcome, Split

SEARCH_WORK = 400_000_000  # of the local search, where another search does not follow
FEW_WORK = 2_000_000
WORK_A_SECOND, LEAST_WORK = 4_000_000, 100_000  # of a step, for each second of the limit
SHORTENING_WORK = 400_000_000  # of the search for an equal tree of two splits
TILTS = (0.0, 0.5, 1.0)  # exponents by which greedy trees even out the classes
UNFINISHED = "bound limit"  # nothing lowers the bound further


class BoxSearch:
    """One search; `run` may be called once."""

    def __init__(
        self,
        problem: BoxProblem,
        depth: int,
        limit: Limit | None = None,
        seed: int = 0,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.problem, self.depth, self.table = problem, depth, problem.table
        self.limit, self.progress = limit or Limit(), progress
        self.state = np.array([2 * seed + 1], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        self.m, n = 2**depth, len(self.table.label)
        marks = np.zeros((2, 2 * self.m, n), bool)
        self.correct, self.counts = marks[0], marks[1]
        # of one step: no more than a hundredth or so of the time, however little there is
        self.work = int(min(STEP_WORK, max(LEAST_WORK, WORK_A_SECOND * self.limit.seconds)))
        self.slack = 0.5 * (problem.unit or problem.total / max(n, 1))
        self.label = int(np.bincount(self.table.label, self.table.weight).argmax())
        self.nodes, self.value, self.n_splits = empty_tree(depth, self.label), -np.inf, 0
        self.bound = problem.total
        self.shortest = False  # whether no equally good tree has fewer splits

    def run(self, start: Nodes | None = None, prove: bool = True) -> Outcome:
        """Search until a tree is proven best, nothing more can be done, or a limit is reached."""
        reason = UNFINISHED
        try:
            self.begin(start)
            with self.limit.rehearsed():
                self._encoded()
            if self.depth == 1 or self.table.n_classes < 2:
                self.bound = self.value
            else:
                self._search(prove)
        except Stop as stop:
            reason = str(stop)
        except KeyboardInterrupt:
            reason = "interrupted"
        self.bound = max(self.bound, self.value)
        proven = self.bound <= self.value + ROUNDING
        counted = self.problem.unit > 0 and (self.n_splits < 3 or self.shortest)
        shortest = proven and (counted or self.n_splits == 0)
        total = self.problem.total
        self.space, self.splits, encoding = self._encoded()
        losses = total - self.value, total - self.bound
        return Outcome(encoding, *losses, proven, "proven" if proven else reason, shortest)

    def begin(self, start: Nodes | None = None) -> None:
        """Trees of at most one split, the one given, and greedy ones, as far as they improve."""
        self._offer(empty_tree(self.depth, self.label))
        self._offer(self._stump())
        if self.depth == 1 or self.table.n_classes < 2:
            return
        if start is not None:
            self._descend(start.copy())
        for tilt in TILTS:
            trees = np.array([empty_tree(self.depth, self.label)] * 3)
            self._run(trees, np.zeros(3), (0, 0, tilt))
            self._descend(trees[2])

    def _search(self, prove: bool) -> None:
        self._begin_step("conflicts")
        self._lower(self.problem.most_kept())
        self.kick(SEARCH_WORK if self.depth > 2 and prove else FEW_WORK)
        if self.depth == 2:
            self._prove_two()
            self._shorten()
        elif prove:
            self._prove_deep()

    def _descend(self, nodes: Nodes) -> None:
        self._offer(nodes)  # it is there whatever the limit
        trees, values = np.array([nodes] * 3), np.array([0.0, 0.0, boxes.GIVEN])
        while values[2] != boxes.NONE:
            self._begin_step("descent")
            self._run(trees, values, (0, self.work, -1.0))
            self._offer(trees[2])

    def _run(self, trees: Nodes, values: Floats, plan: tuple[int, int, float]) -> int:
        marks = self.correct, self.counts
        given = self.table, trees, values, marks, self.slack, self.state, plan
        return int(boxes.search_trees(*given))

    def kick(self, budget: float) -> None:
        """Local search from kicked trees, and better sub-trees of two levels in between."""
        trees, values = np.array([self.nodes] * 3), np.array([self.value, self.value, boxes.NONE])
        turn = 0
        while (budget > 0 or values[2] != boxes.NONE) and self.value < self.bound - ROUNDING:
            self._begin_step("kicks")
            work = int(min(budget, self.work))  # kicks; a tree under way may take as much again
            budget -= self._run(trees, values, (work, 2 * self.work, -1.0))
            self._offer(trees[1])
            if self.depth > 2:
                budget -= self._replace_two(turn)
            trees[1], values[1], turn = self.nodes, self.value, turn + 1

    def _replace_two(self, turn: int) -> float:
        """Look for a better sub-tree of two levels at one node; returns the work."""
        v = self.m // 4 + turn % (self.m // 4)
        boxes.mark_rows(self.table, self.nodes, self.correct, self.counts)
        rows = np.flatnonzero(self.counts[v])
        if len(rows) < 2:
            return 0.0
        self._begin_step("sub-tree")
        table = rows_of(self.table, rows, self.table.weight)
        known = float(table.weight[self.correct[v, rows]].sum())
        known -= table.penalty * boxes.splits_under(self.nodes, v)
        levels, small, unit = np.array([known, -np.inf]), empty_tree(2), self.problem.unit
        stump = float(box_splits.one_level(table, table.weight, 0)[0])
        shares = even_shares(table)
        near, sides = first_bounds(table, table.weight, shares[0], stump, float(table.weight.sum()))
        given = table, table.weight, near, sides, shares, levels, 0.0, EXACT_ROUNDS, unit
        work = box_bounds.two_levels(*given, self.work, np.zeros(2, np.int64), small)
        if levels[0] > known + ROUNDING:
            tree = self.nodes.copy()
            tree[v], tree[2 * v : 2 * v + 2], tree[4 * v : 4 * v + 4] = (
                small[1],
                small[2:4],
                small[4:],
            )
            self._descend(tree)
        return float(work)

    def _prove_two(self) -> None:
        """Settle every root of two levels."""
        levels, small, weight = np.array([self.value, -np.inf]), empty_tree(2), self.table.weight
        stump, unit = float(box_splits.one_level(self.table, weight, 0)[0]), self.problem.unit
        shares = even_shares(self.table)
        near, sides = first_bounds(self.table, weight, shares[0], stump, self.bound)
        given = self.table, weight, near, sides, shares, levels, 0.0, EXACT_ROUNDS, unit
        resume = np.zeros(2, np.int64)
        while near.max(initial=-np.inf) > levels[0] + ROUNDING:
            self._begin_step("two levels")
            box_bounds.two_levels(*given, self.work, resume, small)
            if levels[0] > self.value + ROUNDING:
                self._offer(small)
            self._lower(float(max(levels[0], near.max())))
        self._lower(self.value)

    def _shorten(self) -> None:
        """Look for an equally good tree of two splits; one of one split was offered before."""
        if self.problem.unit == 0 or self.n_splits < 3:
            return
        small, root, left = empty_tree(2), 0, SHORTENING_WORK
        while root < self.problem.n_splits and left > 0:
            self._begin_step("two splits")
            root, found, work = box_bounds.two_splits(
                self.table, self.value, root, self.work // 4, small
            )
            left -= work
            if found:
                self._offer(small)
                break
        self.shortest = self.n_splits < 3 or root >= self.problem.n_splits

    def _prove_deep(self) -> None:
        """Lower the bound root by root, until it is reached or nothing lowers it."""
        known = self.depth, self.bound, self._begin_step, self.work
        proof = BoxProof(self.problem, *known)
        while proof.lower(self.value):
            self._lower(proof.bound)
        self._lower(max(self.value, proof.bound))

    def _encoded(self) -> tuple[FeatureSpace, tuple[Split, ...], Encoding]:
        return self.problem.encode(self.centred(self.nodes))

    def centred(self, nodes: Nodes) -> Nodes:
        """The same tree with thresholds midway between the rows that matter to them."""
        nodes, table = nodes.copy(), self.table
        for v in range(1, self.m):
            boxes.mark_rows(table, nodes, self.correct, self.counts)
            j, k = nodes[v, :2].tolist()
            if j < 0 or not self.counts[v].any() or self.problem.columns[j].category >= 0:
                continue
            low, high = self.problem.ends_of(j)
            left = self.counts[v] & self.correct[2 * v] & (table.left_from[j] <= k)
            right = self.counts[v] & self.correct[2 * v + 1] & (k < table.right_below[j])
            left &= ~self.correct[2 * v + 1] & ~np.isnan(low)
            right &= ~self.correct[2 * v] & ~np.isnan(low)
            thresholds = self.problem.columns[j].thresholds
            if not left.any() or not right.any() or np.isinf(thresholds[k]):
                continue
            first, last = table.left_from[j][left].max(), table.right_below[j][right].min()
            middle = high[left].max() / 2 + low[right].min() / 2
            nodes[v, INDEX] = first + np.abs(thresholds[first:last] - middle).argmin()
        return nodes

    def _stump(self) -> Nodes:
        _, column, index, left, right = box_splits.one_level(self.table, self.table.weight, 0)
        nodes = empty_tree(self.depth, self.label)
        if column >= 0:
            boxes.put_stump(nodes, 1, column, index, left, right)
        return nodes

    def _offer(self, nodes: Nodes) -> None:
        value = float(boxes.mark_rows(self.table, nodes, self.correct, self.counts))
        n_splits = int(boxes.splits_under(nodes, 1))
        equal = value > self.value - ROUNDING and n_splits < self.n_splits
        if value > self.value + ROUNDING or equal:
            self.nodes, self.value, self.n_splits = nodes.copy(), value, n_splits
            self._report()

    def _lower(self, bound: float) -> None:
        if bound < self.bound - ROUNDING:
            self.bound = max(bound, self.value)
            self._report()

    def _report(self) -> None:
        if self.progress is not None:
            total = self.problem.total
            losses = total - self.value, total - max(self.bound, self.value)
            self.progress(Progress(self.limit.elapsed, *losses))

    def _begin_step(self, kind: str) -> None:
        reason = self.limit.spend(kind)
        if reason:
            raise Stop(reason)


@cache
def load_box_loops(depth: int, prove: bool = True) -> None:
    """Compile or load the kernels of a search, before its time limit starts."""
    random = np.random.default_rng(0)
    values, labels = random.normal(size=(24, 2)), random.integers(0, 2, 24)
    thresholds = np.linspace(-1.0, 1.0, 5)
    columns = [Column(f"x{j}", "numeric", -3.0, 3.0).with_thresholds(thresholds) for j in (0, 1)]
    space = FeatureSpace(tuple(columns))
    moves = Perturbation(radius=0.1).moves(space)
    problem = BoxProblem.of(space, moves, (values, labels, np.ones(24)), 1.0, 0.0)
    few, small = BoxSearch(problem, min(depth, 3)), empty_tree(2)
    few.begin()
    problem.most_kept()
    few.kick(1)
    if depth == 2:
        few._prove_two()
        box_bounds.two_splits(problem.table, few.value, 0, few.work // 4, small)
    elif depth > 2 and prove:  # one root will do
        BoxProof(problem, 3, problem.total, few._begin_step).lower(-np.inf)
