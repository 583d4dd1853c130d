"""The robust tree is the best one: checked against every tree and every perturbation."""

import functools
import itertools
import math
import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.robust_tree import RobustTreeClassifier
from steadytree.robustness.search import bounds
from steadytree.robustness.search import branch_and_bound as search
from steadytree.robustness.search import subtrees as lists
from steadytree.robustness.search.branch_and_bound import Search
from steadytree.stability.stable_tree import StableTreeClassifier
from tests._base.clocks import LateInThreads, ToldClock

pytestmark = pytest.mark.usefixtures("no_time_passes")


@parametrize_with_checks([RobustTreeClassifier(max_depth=2, n_thresholds=4)])
def test_follows_the_sklearn_contract(estimator, check):
    check(estimator)


# ---- every tree tried ----
def all_trees(splits, labels, depth):
    """Every tree over the splits as nested tuples."""
    yield from labels
    if depth:
        below = list(all_trees(splits, labels, depth - 1))
        for question in splits:
            for left, right in itertools.product(below, below):
                yield (question, left, right)


def n_splits(tree):
    return 1 + n_splits(tree[1]) + n_splits(tree[2]) if isinstance(tree, tuple) else 0


def answer(tree, x):
    while isinstance(tree, tuple):
        (j, cut), left, right = tree
        tree = left if x[j] <= cut else right
    return tree


def attack_costs(tree, X, y, moves, points):
    """Cost for each row of its cheapest wrong answer, over all points."""
    answers = np.array([answer(tree, z) for z in points])
    gap = points[None] - X[:, None]
    with np.errstate(invalid="ignore"):
        cost = np.where(gap > 0, gap * moves.up, -gap * moves.down)
    cost = np.where(gap == 0, 0.0, cost)
    size = cost.max(axis=2) if moves.largest else cost.sum(axis=2)
    return np.where(answers[None] != y[:, None], size, np.inf).min(axis=1)


def kept_rows(costs, limit, scope):
    if scope == "row":
        return int((costs > limit).sum())
    return int(len(costs) - np.searchsorted(np.cumsum(np.sort(costs)), limit, side="right"))


def tiny_case(rng):
    """A few rows of small whole numbers, at most six splits, any budget."""
    high = [[1, 1, 1], [2, 1], [2, 2], [3, 1], [1, 1]][rng.integers(5)]
    n = int(rng.integers(5, 13))
    X = np.column_stack([rng.integers(0, h + 1, n) for h in high])
    X[0], X[1] = 0, high
    y = rng.integers(0, int(rng.integers(2, 4)), n)
    names = [f"x{j}" for j in range(len(high))]
    kind = str(rng.choice(["step_cost", "radius"]))
    given = {name: float(rng.uniform(0.3, 2.0)) for name in names}
    noise = Perturbation(
        **{kind: given},
        direction={name: str(rng.choice(["both", "both", "up", "down"])) for name in names},
        frozen=[name for name in names if rng.random() < 0.1],
        budget=float(rng.choice([0.0, 0.4, 1.0, 2.5])),
        scope=str(rng.choice(["row", "mean", "total"])),
    )
    return X, y, noise, high


def every_tree(X, y, moves, high):
    """Every tree of depth 2 over whole-number cuts, with each row's cost of a wrong answer."""
    points = np.array(list(itertools.product(*(range(-1, h + 2) for h in high))), float)
    points = np.unique(np.vstack([np.clip(points, moves.low, moves.high), X]), axis=0)
    splits = [(j, float(cut)) for j, h in enumerate(high) for cut in range(h)]
    for tree in all_trees(splits, sorted(set(y.tolist())), 2):
        yield tree, attack_costs(tree, X, y, moves, points)


@pytest.mark.filterwarnings("ignore:the noise is less than one step")
@pytest.mark.parametrize("local_search", [True, False])
@pytest.mark.parametrize("block", range(4))
def test_no_tree_is_better(block, local_search, monkeypatch):
    if not local_search:  # the proof must find the optimum by itself
        monkeypatch.setattr(Search, "_descend", lambda search: None)
    rng = np.random.default_rng(100 + block + 10 * local_search)
    for _ in range(6):
        X, y, noise, high = tiny_case(rng)
        model = RobustTreeClassifier(max_depth=2, perturbation=noise, random_state=0).fit(X, y)
        moves, limit = noise.moves(model.space_), noise.spend(len(y))
        best = (-1, 0)
        for tree, costs in every_tree(X, y, moves, high):
            best = max(best, (kept_rows(costs, limit, noise.scope), -n_splits(tree)))
        assert model.proven_
        assert model.optimality_gap_ == 0
        assert model.objective_ == model.bound_ == best[0]
        assert int((~model.tree_.is_leaf).sum()) == -best[1]
        worst = certify(model, X, y, noise).worst_case_accuracy
        assert worst * len(y) == pytest.approx(model.objective_)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("sharp", [True, False])
def test_depth_4_equals_every_labelling_of_four_bits(seed, shared, sharp, monkeypatch):
    """With 4 binary columns every labelling of the 16 intervals is a tree of depth 4."""
    if sharp:  # the bounds for hard instances, without a good tree to begin with
        monkeypatch.setattr(search, "MANY_LISTED", -1)
        monkeypatch.setattr(Search, "_descend", lambda search: None)
    rng = np.random.default_rng(seed)
    n = 30
    X = rng.integers(0, 2, (n, 4))
    X[0], X[1] = 0, 1
    y = ((X[:, 0] != X[:, 1]) ^ (X[:, 2] * X[:, 3] > 0) ^ (rng.random(n) < 0.15)).astype(int)
    costs = rng.uniform(0.2, 2.5, 4)
    noise = Perturbation(
        step_cost={f"x{j}": float(c) for j, c in enumerate(costs)},
        budget=float(rng.uniform(0.2, 0.2 * n)) if shared else float(rng.uniform(0, 2)),
        scope="total" if shared else "row",
    )
    model = RobustTreeClassifier(max_depth=4, perturbation=noise, random_state=0).fit(X, y)
    intervals = np.array(list(itertools.product([0, 1], repeat=4)), float)
    reach = (np.abs(intervals[:, None] - X[None]) * costs).sum(axis=2)
    codes = np.arange(2**16)
    labels = (codes[:, None] >> np.arange(16)) & 1
    cost = np.full((len(codes), n), np.inf)
    for cell in range(16):
        wrong = labels[:, cell, None] != y
        cost = np.where(wrong, np.minimum(cost, reach[cell]), cost)
    limit = noise.spend(n)
    if shared:
        kept = n - (np.cumsum(np.sort(cost, axis=1), axis=1) <= limit).sum(axis=1)
    else:
        kept = (cost > limit).sum(axis=1)
    assert model.proven_
    assert model.objective_ == kept.max()
    best = labels[kept == kept.max()].tolist()
    assert int((~model.tree_.is_leaf).sum()) == min(fewest_splits(tuple(each)) for each in best)


@pytest.mark.parametrize("seed", range(6))
def test_sharper_bounds_change_no_optimum(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n, depth = 70, 3 + seed % 2
    X = rng.integers(0, 3, (n, 4))
    y = (X[:, 0] + X[:, 1] + rng.integers(0, 3, n)) // (2 if seed < 3 else 3)
    noise = Perturbation(step_cost=1.2, budget=0.1, scope="mean" if seed % 3 else "row")
    fits = []
    for dear in (-1, math.inf):
        monkeypatch.setattr(search, "MANY_LISTED", dear)
        # lists that are soon too long: better bounds, smaller steps, then longer lists
        monkeypatch.setattr(lists, "FIRST_ROOM", 4 if dear < 0 else 2048)
        monkeypatch.setattr(bounds, "FIRST_LIST", 1e8 if dear < 0 else 1)
        model = RobustTreeClassifier(depth, noise, n_jobs=1 + seed % 2, random_state=0)
        fits.append(model.fit(X, y))
    assert all(model.proven_ for model in fits)
    assert fits[0].objective_ == fits[1].objective_
    sizes = [int((~model.tree_.is_leaf).sum()) for model in fits]
    assert sizes[0] == sizes[1]


def test_depth_3_equals_every_tree_over_three_questions():
    rng = np.random.default_rng(5)
    for _ in range(3):
        X = rng.integers(0, 2, (14, 3))
        X[0], X[1] = 0, 1
        y = rng.integers(0, 3, 14)
        noise = Perturbation(
            step_cost={f"x{j}": float(rng.uniform(0.3, 2)) for j in range(3)},
            budget=float(rng.uniform(0.5, 4)),
            scope="total",
        )
        model = RobustTreeClassifier(max_depth=3, perturbation=noise, random_state=0).fit(X, y)
        intervals = np.array(list(itertools.product([0, 1], repeat=3)), float)
        best = 0
        for labels in itertools.product(range(3), repeat=8):
            size = np.abs(intervals[None] - X[:, None]) @ np.array(list(noise.step_cost.values()))
            costs = np.where(np.array(labels)[None] != y[:, None], size, np.inf).min(axis=1)
            best = max(best, kept_rows(costs, noise.spend(14), "total"))
        assert model.objective_ == best


@functools.cache
def fewest_splits(labels):
    """Questions of the smallest tree that labels the intervals of some binary columns so."""
    if len(set(labels)) == 1:
        return 0
    n_columns = len(labels).bit_length() - 1
    intervals = np.arange(len(labels))
    sizes = []
    for j in range(n_columns):
        on_right = (intervals >> (n_columns - 1 - j)) & 1 == 1
        halves = [tuple(np.array(labels)[side].tolist()) for side in (~on_right, on_right)]
        sizes.append(1 + sum(map(fewest_splits, halves)))
    return min(sizes)


@pytest.mark.parametrize("seed", range(20))
def test_depth_3_has_fewest_questions(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 30))
    X = rng.integers(0, 2, (n, 3))
    X[0], X[1] = 0, 1
    y = (rng.random(n) < 0.3 + 0.4 * (X[:, 0] != X[:, 1])).astype(int)
    costs = rng.uniform(0.3, 3, 3)
    noise = Perturbation(
        step_cost={f"x{j}": float(c) for j, c in enumerate(costs)},
        budget=float(rng.uniform(0.02, 0.2)),
        scope="mean",
    )
    model = RobustTreeClassifier(max_depth=3, perturbation=noise, random_state=0).fit(X, y)
    intervals = np.array(list(itertools.product([0, 1], repeat=3)), float)
    size = (np.abs(intervals[None] - X[:, None]) * costs).sum(axis=2)
    best = (-1, 0)
    for labels in itertools.product([0, 1], repeat=8):
        wrong = np.where(np.array(labels)[None] != y[:, None], size, np.inf).min(axis=1)
        best = max(best, (kept_rows(wrong, noise.spend(n), "mean"), -fewest_splits(labels)))
    assert (model.objective_, -int((~model.tree_.is_leaf).sum())) == best


# ---- what else it can do ----
def mixed_frame(rng, n=60):
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n).round(2),
            "rank": rng.integers(0, 4, n),
            "group": rng.choice(["a", "b", "c"], n),
        }
    )
    y = np.where((frame["size"] > 0) ^ (frame["group"] == "a"), "yes", "no")
    frame.loc[::9, "size"] = np.nan
    return frame, y


def test_mixed_columns_with_missing_values():
    frame, y = mixed_frame(np.random.default_rng(0))
    noise = Perturbation(
        step_cost={"size": 1.0, "rank": 1.0, "group": 2.0},
        missing_cost={"size": 0.5},
        budget=0.05,
        scope="mean",
    )
    model = RobustTreeClassifier(2, noise, n_thresholds=5, random_state=0).fit(frame, y)
    assert model.proven_
    assert model.objective_ >= model.majority_
    worst = certify(model, frame, y, noise).worst_case_accuracy
    assert worst * len(y) == pytest.approx(model.objective_)


@pytest.mark.parametrize("scope", ["row", "mean"])
def test_whole_weights_are_repeated_rows(scope):
    rng = np.random.default_rng(1)
    X, y, weights = rng.integers(0, 3, (20, 3)), rng.integers(0, 2, 20), rng.integers(0, 4, 20)
    noise = Perturbation(step_cost=1.0, budget=0.3, scope=scope)
    model = RobustTreeClassifier(2, noise, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.objective_ == repeated.objective_
    assert (weighted.predict(X) == repeated.predict(X)).mean() > 0.5


def kept_weight(costs, weights, limit, scope):
    """Weight that stays when parts of rows may be lost, cheapest first."""
    if scope == "row":
        return weights[costs > limit].sum()
    kept, left = weights.sum(), limit
    for row in np.argsort(costs):
        if np.isinf(costs[row]):
            break
        part = min(weights[row], left / costs[row]) if costs[row] > 0 else weights[row]
        kept, left = kept - part, left - part * costs[row]
    return kept


@pytest.mark.parametrize("seed", [*range(6), 61])
def test_fractional_weights_and_penalties(seed, monkeypatch):
    """The proof alone, without the local search that finds most optima before it."""
    monkeypatch.setattr(Search, "_descend", lambda search: None)
    rng = np.random.default_rng(seed)
    X, y, noise, high = tiny_case(rng)
    weights, rate = rng.uniform(0.1, 2, len(y)), float(rng.choice([0, 0, 0.3]))
    model = RobustTreeClassifier(2, noise, regularisation=rate, random_state=0)
    model.fit(X, y, sample_weight=weights)
    moves, limit = noise.moves(model.space_), noise.spend(weights.sum())
    best = max(
        kept_weight(costs, weights, limit, noise.scope) - rate / (1 - rate) * n_splits(tree)
        for tree, costs in every_tree(X, y, moves, high)
    )
    assert model.proven_
    assert model.objective_ == pytest.approx(best)


def test_without_perturbation_it_is_the_optimal_tree():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (40, 5)).astype(float)
    y = (X[:, 0] != X[:, 1]).astype(int)
    assert RobustTreeClassifier(2, random_state=0).fit(X, y).score(X, y) == 1.0  # greedy trees fail
    noisy = np.where(rng.random(40) < 0.1, 1 - y, y)
    free = RobustTreeClassifier(3, random_state=0).fit(X, noisy)
    dear = RobustTreeClassifier(3, regularisation=0.9, random_state=0).fit(X, noisy)
    assert dear.tree_.n_leaves < free.tree_.n_leaves
    splits = int((~dear.tree_.is_leaf).sum())
    assert dear.objective_ == pytest.approx((dear.predict(X) == noisy).sum() - 9 * splits)
    assert free.score(X, noisy) >= DecisionTreeClassifier(max_depth=3).fit(X, noisy).score(X, noisy)


def test_without_a_random_state_a_fit_can_be_repeated():
    """Several trees are equally good here; which one is found must not be left to chance."""
    X, y = load_wine(return_X_y=True)
    rows = np.linspace(0, len(y) - 1, 130).astype(int)
    X, y = X[rows][:, [0, 1, 6, 9, 12]], y[rows]
    cuts = {f"x{j}": np.quantile(X[:, j], [0.3, 0.5, 0.7]).round(2) + 0.001 for j in range(5)}
    model = RobustTreeClassifier(2, Perturbation(radius=0.5), math.inf, 0.01, cuts=cuts)
    found = []
    for state in range(6):
        np.random.seed(state)  # noqa: NPY002
        found.append(model.fit(X, y).tree_)
    assert all(tree == found[0] for tree in found)


def test_one_class_and_no_question():
    assert RobustTreeClassifier().fit([[1], [2]], ["a", "a"]).tree_.n_nodes == 1
    model = RobustTreeClassifier().fit([[1], [1], [1]], ["a", "b", "b"])
    assert model.tree_.n_nodes == 1
    assert model.objective_ == model.majority_ == 2


def hard_problem():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (150, 30)), rng.integers(0, 2, 150)
    return X, y, Perturbation(step_cost=1.0, budget=0.15, scope="mean")


@pytest.mark.parametrize("limit", ["time limit", "node limit"])
def test_a_limit_keeps_the_best_tree_with_a_gap(monkeypatch, limit):
    X, y, noise = hard_problem()
    seen = []
    model = RobustTreeClassifier(4, noise, progress=seen.append, random_state=0)
    if limit == "time limit":  # a search that looks at the clock a hundred times takes 60 s
        monkeypatch.setattr(RobustTreeClassifier, "_clock", ToldClock(tick=0.6))
    else:
        model.set_params(max_nodes=100)
    model.fit(X, y)
    assert not model.proven_
    assert not model.is_shortest_
    assert model.status_ == limit
    assert model.majority_ <= model.objective_ < model.bound_
    assert 0 < model.optimality_gap_ < 1
    assert seen
    assert all(step.bound <= step.incumbent for step in seen)
    assert all(0 <= step.seconds <= 61 for step in seen)
    worst = certify(model, X, y, noise).worst_case_accuracy
    assert worst * len(y) == pytest.approx(model.objective_)


def test_noise_is_taken_in_shares_of_the_training_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), rng.normal(100, 50, 60), rng.integers(0, 2, 60)])
    X[0, 1] = 1e6  # mistyped: it does not decide
    y = (X[:, 0] + X[:, 2] > 0.3).astype(int)
    stated = Perturbation(radius={"x0": "5 %", "x1": "0.5 sd"})
    found = RobustTreeClassifier(2, stated, max_nodes=50).fit(X, y)
    units = stated.scaled_to(X)
    expected = RobustTreeClassifier(2, units, max_nodes=50).fit(X, y)
    assert found.perturbation_ == units
    np.testing.assert_array_equal(found.tree_.feature, expected.tree_.feature)
    np.testing.assert_array_equal(found.tree_.threshold, expected.tree_.threshold)
    assert found.objective_ == pytest.approx(
        len(y) * certify(found, X, y, units).worst_case_accuracy
    )


@pytest.mark.parametrize("scope", ["row", "mean"])
def test_a_bound_is_there_before_any_step(scope):
    X, y = np.repeat(np.arange(4), 5)[:, None], [0, 0, 0, 0, 1] * 2 + [0, 1, 1, 1, 1] * 2
    noise = Perturbation(step_cost=1.0, budget=0.1, scope=scope)
    first = RobustTreeClassifier(3, noise, max_nodes=1).fit(X, y)
    assert first.bound_ == 16  # of each value one row is wrong whatever it is taken for
    assert RobustTreeClassifier(3, noise).fit(X, y).objective_ <= first.bound_


def small_problem(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (60, 8)), rng.integers(0, 2, 60)
    return X, y, Perturbation(step_cost=1.0, budget=0.03, scope="mean")


def test_whatever_the_work_allowed_the_bound_is_true_and_the_tree_the_same():
    X, y, noise = small_problem(0)
    best = RobustTreeClassifier(3, noise, random_state=0).fit(X, y)
    assert best.proven_
    objectives, bounds_, statuses = [], [], []
    for max_nodes in (2**k for k in range(20)):
        model = RobustTreeClassifier(3, noise, max_nodes=max_nodes, random_state=0).fit(X, y)
        again = clone(model).fit(X, y)
        assert again.tree_ == model.tree_
        assert (again.bound_, again.status_) == (model.bound_, model.status_)
        assert model.objective_ <= best.objective_ <= model.bound_
        assert model.proven_ == (model.status_ == "proven") == (model.optimality_gap_ == 0)
        objectives.append(model.objective_)
        bounds_.append(model.bound_)
        statuses.append(model.status_)
    assert objectives == sorted(objectives)  # more work never ends in a worse tree,
    assert bounds_ == sorted(bounds_, reverse=True)  # nor in a looser bound
    changes = statuses.index("proven")
    assert changes > 0
    assert statuses == ["node limit"] * changes + ["proven"] * (len(statuses) - changes)
    assert (model.objective_, model.is_shortest_) == (best.objective_, True)
    assert model.tree_ == best.tree_


def test_interrupting_keeps_the_best_tree():
    X, y, noise = hard_problem()
    # a run in the background may have been started with this signal ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt(_):
        if threading.current_thread() is threading.main_thread():
            os.kill(os.getpid(), signal.SIGINT)

    model = RobustTreeClassifier(4, noise, progress=interrupt, random_state=0).fit(X, y)
    assert model.status_ == "interrupted"
    assert not model.proven_
    assert len(model.predict(X)) == 150


@pytest.mark.parametrize("seed", range(3))
def test_threads_find_the_same_objective(seed):
    X, y, noise = small_problem(seed)
    one = RobustTreeClassifier(3, noise, random_state=0).fit(X, y)
    two = RobustTreeClassifier(3, noise, n_jobs=2, random_state=0).fit(X, y)
    assert one.proven_
    assert two.proven_
    assert one.is_shortest_
    assert two.is_shortest_
    assert one.objective_ == two.objective_
    assert one.tree_.n_leaves == two.tree_.n_leaves


def test_threads_stop_in_time(monkeypatch):
    monkeypatch.setattr(RobustTreeClassifier, "_clock", LateInThreads())
    X, y, noise = small_problem(0)
    one = RobustTreeClassifier(3, noise, random_state=0).fit(X, y)
    assert one.proven_
    two = RobustTreeClassifier(3, noise, n_jobs=2, random_state=0).fit(X, y)
    assert two.status_ == "time limit"
    assert not two.is_shortest_
    assert two.objective_ <= one.objective_ <= two.bound_


def test_threads_share_the_work_allowed():
    X, y, noise = hard_problem()
    model = RobustTreeClassifier(4, noise, n_jobs=2, max_nodes=100, random_state=0).fit(X, y)
    assert model.status_ == "node limit"
    assert not model.is_shortest_


def test_warm_start():
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 2, (60, 5)).astype(float), rng.integers(0, 2, 60)
    noise = Perturbation(step_cost=1.0, budget=0.05, scope="mean")
    first = RobustTreeClassifier(3, noise, random_state=0).fit(X, y)
    again = RobustTreeClassifier(3, noise, warm_start=first, random_state=1).fit(X, y)
    assert again.objective_ == first.objective_
    # with next to no work allowed, all there is to keep is the tree of the last fit
    first.set_params(warm_start=True, max_nodes=1).fit(X, y)
    assert (first.objective_, first.status_) == (again.objective_, "node limit")
    with pytest.raises(ValueError, match="more than max_depth=1"):
        RobustTreeClassifier(1, noise, warm_start=first).fit(X, y)
    with pytest.raises(TypeError, match="warm_start must be a bool or a tree"):
        RobustTreeClassifier(1, noise, warm_start="yes").fit(X, y)
    with pytest.raises(ValueError, match="other columns"):
        RobustTreeClassifier(3, warm_start=first).fit(X[:, :2], y)
    other = StableTreeClassifier(3, random_state=0).fit(X / 3, y)
    with pytest.raises(ValueError, match="not among the candidate"):
        RobustTreeClassifier(3, noise, warm_start=other).fit(X, y)


def test_declared_cuts_are_the_only_ones():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    model = RobustTreeClassifier(2, cuts={"x0": [0.25], "x1": [0.5, -0.5]}).fit(X, y)
    asked = model.tree_.threshold[~model.tree_.is_leaf]
    assert model.n_questions_ == 3
    assert set(asked) <= {0.25, 0.5, -0.5}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"time_limit": 0}, ValueError, "time_limit must be a number above 0, got 0"),
        ({"time_limit": math.nan}, ValueError, "time_limit must be a number above 0, got nan"),
        ({"max_nodes": 0}, ValueError, "max_nodes must be None or a whole number of at least 1"),
        ({"max_nodes": 2.5}, TypeError, "max_nodes must be None or a whole number of at least 1"),
        (
            {"regularisation": 1},
            ValueError,
            "regularisation must be 'auto' or a number of at least 0 and below 1, got 1",
        ),
        ({"perturbation": 0.1}, TypeError, "must be a Perturbation"),
        ({"perturbation": Perturbation(step_cost=1)}, ValueError, "has no budget"),
        ({"perturbation": Perturbation(radius={"age": 1})}, ValueError, "radius names 'age'"),
        ({"solver": "gurobi"}, ValueError, "solver must be one of"),
        ({"cuts": {"age": [1]}}, ValueError, "cuts names 'age'"),
        (
            {"cuts": [1]},
            TypeError,
            "cuts must be a mapping from names to thresholds or None, got list",
        ),
        ({"cuts": {"x0": ["a"]}}, ValueError, "cuts of 'x0' must be a list of numbers"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None, -1 or a number"),
        ({"memory_limit": 0}, ValueError, "memory_limit must be a number above 0, got 0"),
        (
            {"perturbation": Perturbation(radius=0.1, one_hot=[["x0", "x1"]])},
            ValueError,
            "only certify takes a perturbation with change_cost, one_hot or together",
        ),
        ({"max_depth": 0}, ValueError, "max_depth"),
        (
            {"perturbation": Perturbation(radius=1, whole=["x0"])},
            ValueError,
            "whole numbers, but holds",
        ),
    ],
)
def test_wrong_parameters_are_refused_before_any_search(arguments, error, message):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), [0, 1] * 10
    with pytest.raises(error, match=message):
        RobustTreeClassifier(**arguments).fit(X, y)


def test_whole_numbers_get_as_many_thresholds_as_others():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 500, (300, 1)), rng.integers(0, 2, 300)
    for scale, whole in ((1, True), (0.5, False)):
        model = RobustTreeClassifier(1, n_thresholds=10).fit(X * scale, y)
        found = model.space_[0].thresholds
        assert len(found) == 10
        assert (found == np.floor(found)).all() == whole
        assert model.n_questions_ == 10
    few = RobustTreeClassifier(1, n_thresholds=10).fit(X % 8, y).space_[0].thresholds
    assert few.tolist() == list(range(7))


def test_too_many_splits_are_refused():
    X, y = np.arange(1000).reshape(-1, 1), [0, 1] * 500
    with pytest.raises(ValueError, match=r"X gives 999 splits, more than the 400"):
        RobustTreeClassifier(n_thresholds=1000).fit(X, y)
    X = np.column_stack([X % 300, X % 200])
    with pytest.raises(ValueError, match=r"X gives 498 splits.*299 on 'x0', 199 on 'x1'"):
        RobustTreeClassifier(n_thresholds=300).fit(X, y)
    assert RobustTreeClassifier(1, cuts={"x0": [100, 200], "x1": [50]}).fit(X, y).n_questions_ == 3
