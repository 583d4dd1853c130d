"""The paper's mixed-integer model with lazy cuts, on SCIP: an independent check of the search.

Binary b[n, t] splits node n by t, binary w[n, k] makes it a leaf of label k; the weight T
kept correct is bounded by one cut for every perturbation that SCIP's trees turn out to be open to.
The cut follows each perturbed row down the tree: keeping the row correct needs another split at a
node it passed that sends it elsewhere, or its own label at the node where it stopped.
"""

import functools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.optional import require
from steadytree.robustness._kernels.cost import box_costs, robust_loss
from steadytree.robustness.search.problem import Encoding, Outcome, Problem

Nodes = dict[int, int]  # by number, the root being 1, children of n 2 n and 2 n + 1: as encoded
ENOUGH = 1e-6
CLOCKS = {"cpu": 1, "wall": 2}  # as SCIP counts kinds of time
# SCIP's status by that of the search
REASONS = {
    "optimal": "proven",
    "timelimit": "time limit",
    "nodelimit": "node limit",
    "totalnodelimit": "node limit",
    "userinterrupt": "interrupted",
}


@dataclass(eq=False)
class Attack:
    """The worst perturbation of one tree."""

    kept: float
    sides: NDArray[np.bool_]  # (n, n_candidates): splits that send the cheapest wrong point left
    moved: NDArray[np.float64]  # (n,): weight of each row that is moved there


@dataclass(eq=False)
class Model:
    """SCIP's model, its variables, and the best tree its callback has seen."""

    problem: Problem
    depth: int
    limits: tuple[float, int | None]  # seconds, nodes
    scip: Any
    # by node and what it may be, as encoded: a split, or -1 - label
    variables: dict[int, dict[int, Any]] = field(default_factory=dict)
    kept: Any = None
    best: Nodes = field(default_factory=dict)
    best_value: float = -math.inf
    clock: str = "wall"  # or "cpu": what the seconds are of


def solve_mio(
    problem: Problem,
    depth: int,
    limits: tuple[float, int | None],
    start: Encoding | None = None,
    clock: str = "wall",
) -> Outcome:
    """Solve the model within limits of seconds and nodes."""
    scip = require("pyscipopt", extra="mio", purpose="solving the mixed-integer model")
    model = Model(problem, depth, limits, scip.Model(), clock=clock)
    _build(model, scip)
    weights = np.bincount(problem.table.label, problem.table.weight)
    _offer(model, {1: -1 - int(weights.argmax())})
    if start is not None:
        _offer(model, _nodes(start, depth))
    model.scip.optimize()
    status = model.scip.getStatus()
    proven = status == "optimal"
    value = problem.total - model.best_value
    # stopped at once, SCIP has no bound; a loss is never below 0
    bound = value if proven else max(problem.total - model.scip.getDualbound(), 0.0)
    reason = REASONS.get(status, status)
    return Outcome(_encoding(model.best, depth), value, min(bound, value), proven, reason)


def _build(model: Model, scip: Any) -> None:
    problem, solver, total = model.problem, model.scip, scip.quicksum
    solver.hideOutput()
    n_inner, n_candidates = 2**model.depth - 1, len(problem.splits)
    # splits before labels: in this order SCIP proves small cases sooner
    binary = functools.partial(solver.addVar, vtype="B")
    splits = [{k: binary() for k in range(n_candidates)} for _ in range(n_inner)]
    for node in range(1, 2 * n_inner + 2):
        labels = {-1 - label: binary() for label in range(problem.table.n_classes)}
        model.variables[node] = labels | (splits[node - 1] if node <= n_inner else {})
    model.kept = solver.addVar(vtype="C", lb=0, ub=problem.total)
    for own in model.variables.values():
        solver.addCons(total(own.values()) == 1)
    chosen = [variable for own in splits for variable in own.values()]
    solver.setObjective(model.kept - problem.penalty * total(chosen), "maximize")
    about = _handler(scip, model), "attack", "no perturbation leaves less than is claimed"
    late = {"enfopriority": -5_000_000, "chckpriority": -5_000_000}
    never = {"sepafreq": -1, "propfreq": -1, "eagerfreq": -1}
    solver.includeConshdlr(*about, needscons=False, **late, **never)
    # cuts come late, so reductions that rely on knowing all constraints are wrong
    solver.setParam("misc/allowstrongdualreds", False)
    solver.setParam("misc/allowweakdualreds", False)
    seconds, nodes = model.limits
    solver.setParam("timing/clocktype", CLOCKS[model.clock])
    if math.isfinite(seconds):
        solver.setParam("limits/time", seconds)
    if nodes is not None:
        solver.setParam("limits/totalnodes", nodes)


def _offer(model: Model, nodes: Nodes) -> None:
    """Hand SCIP a tree to begin with, so that there is a solution however short the time."""
    attack = _attack_and_note(model, nodes)
    solution = model.scip.createSol()
    for node, own in model.variables.items():
        which = nodes.get(node, -1)  # nodes that nothing reaches: any label
        model.scip.setSolVal(solution, own[which], 1.0)
    model.scip.setSolVal(solution, model.kept, attack.kept)
    model.scip.addSol(solution)


def _attack_and_note(model: Model, nodes: Nodes) -> Attack:
    """The worst attack on a tree, kept where the tree is the best so far."""
    attack = worst_attack(model.problem, nodes, model.depth)
    n_splits = sum(which >= 0 for which in nodes.values())
    value = attack.kept - model.problem.penalty * n_splits
    if value > model.best_value:
        model.best, model.best_value = nodes, value
    return attack


def _handler(scip: Any, model: Model) -> Any:
    """A constraint handler that attacks every tree SCIP proposes."""
    result = scip.SCIP_RESULT

    class Handler(scip.Conshdlr):
        def _is_wrong(self, solution: Any, add_constraint: bool) -> bool:
            nodes = _read(model, solution)
            attack = _attack_and_note(model, nodes)
            if model.scip.getSolVal(solution, model.kept) <= attack.kept + ENOUGH:
                return False
            if (
                add_constraint
            ):  # T is at most what other splits or labels could keep correct (cut 7)
                table = model.problem.table
                moved = _constraint_terms(model, nodes, attack.sides, attack.moved)
                rest = _constraint_terms(model, nodes, table.on_left.T, table.weight - attack.moved)
                model.scip.addCons(model.kept <= scip.quicksum([*moved, *rest]))
            return True

        def conscheck(self, constraints, solution, *_unused):
            wrong = self._is_wrong(solution, add_constraint=False)
            return {"result": result.INFEASIBLE if wrong else result.FEASIBLE}

        def consenfolp(self, *_unused):
            wrong = self._is_wrong(None, add_constraint=True)
            return {"result": result.CONSADDED if wrong else result.FEASIBLE}

        consenfops = consenfolp

        def conslock(self, constraint, locktype, up, down):
            choices = (variable for own in model.variables.values() for variable in own.values())
            for variable in (*choices, model.kept):
                model.scip.addVarLocks(variable, up + down, up + down)

    return Handler()


def _read(model: Model, solution: Any) -> Nodes:
    """The tree in a solution."""
    nodes: Nodes = {}
    waiting = [1]
    while waiting:
        node = waiting.pop()
        own = {w: model.scip.getSolVal(solution, v) for w, v in model.variables[node].items()}
        nodes[node] = max(own, key=own.__getitem__)
        if nodes[node] >= 0:
            waiting += [2 * node, 2 * node + 1]
    return nodes


def worst_attack(problem: Problem, nodes: Nodes, depth: int) -> Attack:
    """The cheapest way to turn as much weight wrong as the budget allows (section 3.3)."""
    # paths may split on one column several times; what counts is the distance to the leaf's box
    table = problem.table
    n = len(table.label)
    cost, target = np.full(n, np.inf), np.full(n, -1)
    leaves = [node for node, which in nodes.items() if which < 0]
    for leaf in leaves:
        reach = np.empty(n)
        if not box_costs(*_path(nodes, leaf, depth), table, reach):
            continue
        closer = (table.label != -1 - nodes[leaf]) & (reach < cost)
        cost[closer], target[closer] = reach[closer], leaf
    lost = robust_loss(cost, table.weight, problem.limit, problem.shared, problem.integer)
    moved = _moved_weight(problem, cost)
    sides = table.on_left.T.copy()
    for leaf in leaves:
        rows = np.flatnonzero((target == leaf) & (moved > 0) & (cost > 0))
        _move_sides(problem, nodes, leaf, rows, sides)
    return Attack(problem.total - lost, sides, moved)


def _moved_weight(problem: Problem, cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weight of each row that the attack turns wrong."""
    weight, moved = problem.table.weight, np.zeros(len(cost))
    if not problem.shared:
        return np.where(cost <= problem.limit, weight, 0.0)
    left = problem.limit
    for row in np.argsort(cost, kind="stable"):
        if not np.isfinite(cost[row]):
            break
        part = weight[row] if cost[row] * weight[row] <= left else left / cost[row]
        moved[row] = math.floor(part) if problem.integer else part
        left -= moved[row] * cost[row]
        if moved[row] < weight[row]:
            break
    return moved


def _path(nodes: Nodes, leaf: int, depth: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    splits, sides = np.zeros((2, depth + 1), np.int64)
    path_length = leaf.bit_length() - 1
    for level in range(path_length):
        splits[level] = nodes[leaf >> (path_length - level)]
        sides[level] = leaf >> (path_length - level - 1) & 1
    return splits, sides, path_length


def _move_sides(
    problem: Problem, nodes: Nodes, leaf: int, rows: NDArray[np.int64], sides: NDArray[np.bool_]
) -> None:
    """Sides of the rows after they are moved into a leaf's box, as little as can be."""
    table = problem.table
    splits, ways, path_length = _path(nodes, leaf, len(bin(max(nodes))))
    for feature in np.unique(table.feature[splits[:path_length]]):
        allowed = np.ones(table.left_bins.shape[1], bool)
        for split, way in zip(splits[:path_length], ways[:path_length], strict=True):
            if table.feature[split] == feature:
                allowed &= table.left_bins[split] if way == 0 else table.right_bins[split]
        bins = np.flatnonzero(allowed[:-1]) if allowed[:-1].any() else np.flatnonzero(allowed)
        about = np.flatnonzero(table.feature == feature)
        for row in rows:
            own = problem.bins[feature, row]
            if not allowed[own]:
                nearest = bins[np.abs(bins - own).argmin()]
                sides[row, about] = table.left_bins[about, nearest]


def _constraint_terms(
    model: Model, nodes: Nodes, sides: NDArray[np.bool_], weight: NDArray[np.float64]
) -> list[Any]:
    label, terms = model.problem.table.label, []
    here = {1: np.flatnonzero(weight > 0)}
    while here:
        node, rows = here.popitem()
        if len(rows) == 0:
            continue
        own = model.variables[node]
        counts = np.bincount(label[rows], weight[rows], model.problem.table.n_classes)
        terms += [count * own[-1 - k] for k, count in enumerate(counts) if count]
        if nodes[node] < 0:
            gains = np.full(sides.shape[1] if 0 in own else 0, weight[rows].sum())
        else:
            on_left = sides[rows, nodes[node]]
            gains = (weight[rows, None] * (sides[rows] != on_left[:, None])).sum(axis=0)
            here[2 * node], here[2 * node + 1] = rows[on_left], rows[~on_left]
        terms += [gain * own[split] for split, gain in enumerate(gains) if gain]
    return terms


def _indices(depth: int) -> dict[int, int]:
    """Index in an encoding of every node of a full tree, parents first."""
    index = {1: 0}
    for node in range(1, 2**depth):
        height = depth + 1 - node.bit_length()
        index[2 * node], index[2 * node + 1] = index[node] + 1, index[node] + 2**height
    return index


def _encoding(nodes: Nodes, depth: int) -> Encoding:
    encoding, index = np.zeros(2 ** (depth + 1) - 1, np.int32), _indices(depth)
    for node, which in nodes.items():
        encoding[index[node]] = which
    return encoding


def _nodes(encoding: Encoding, depth: int) -> Nodes:
    """The inverse of `_encoding`."""
    nodes: Nodes = {}
    for node, index in _indices(depth).items():
        if node == 1 or nodes.get(node // 2, -1) >= 0:
            nodes[node] = int(encoding[index])
    return nodes
