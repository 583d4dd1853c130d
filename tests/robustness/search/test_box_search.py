"""Robust trees under noise by row: over any real threshold, no tree keeps more by certify."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from steadytree._base.clock import Limit
from steadytree.robustness._kernels import box_bounds, boxes
from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.robust_tree import RobustTreeClassifier
from tests._base.clocks import ToldClock

pytestmark = pytest.mark.usefixtures("no_time_passes")


def all_thresholds(low, high):
    """A threshold between any two neighbours among the ends of all boxes."""
    ends = np.unique(np.concatenate([low, high]))
    return (ends[1:] + ends[:-1]) / 2


def most_kept(X, y, weights, radius, penalty=0.0):
    """The most weight that a tree of depth 2 keeps, less penalties: every tree is tried."""
    low, high = X - radius, X + radius
    splits = [(j, t) for j in range(X.shape[1]) for t in all_thresholds(low[:, j], high[:, j])]
    can_left = np.array([low[:, j] <= t for j, t in splits])
    can_right = np.array([high[:, j] > t for j, t in splits])
    labels = np.unique(y)
    leaves = [(y == label, 0.0) for label in labels]
    stumps = leaves + [
        (((y == a) | ~can_left[k]) & ((y == b) | ~can_right[k]), penalty)
        for k in range(len(splits))
        for a, b in itertools.permutations(labels, 2)
    ]
    kept, charge = np.array([s[0] for s in stumps]), np.array([s[1] for s in stumps])
    best = (kept @ weights - charge).max()
    for left, right in zip(can_left, can_right, strict=True):
        both = ((kept | ~left) * weights) @ (kept | ~right).T
        best = max(best, (both - charge[:, None] - charge).max() - penalty)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_no_tree_of_depth_2_keeps_more(seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(6, 13)), 2
    X = rng.normal(size=(n, p)).round(int(rng.integers(1, 3)))  # with ties
    y = rng.integers(0, int(rng.integers(2, 4)), n)
    weights = rng.uniform(0.2, 2, n) if seed % 3 == 0 else np.ones(n)
    radius = rng.choice([0.0, 0.1, 0.35, 0.8], p)
    rate = 0.3 if seed % 4 == 0 else 0.0
    noise = Perturbation(radius={f"x{j}": float(r) for j, r in enumerate(radius)})
    model = RobustTreeClassifier(2, noise, regularisation=rate).fit(X, y, sample_weight=weights)
    most = most_kept(X, y, weights, radius * (1 + 1e-9) + 1e-12, rate / (1 - rate))
    assert model.proven_
    assert model.objective_ == pytest.approx(most)
    assert model.bound_ == pytest.approx(most)


def frame_with_all(rng, n=60):
    """Numbers, integers, bools, text, missing values, and labels that some of them decide."""
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n).round(2),
            "rank": rng.integers(0, 9, n),
            "flag": rng.random(n) < 0.4,
            "group": rng.choice(["a", "b", "c"], n),
        }
    )
    y = np.where((frame["size"] > 0) ^ (frame["group"] == "a"), "yes", "no")
    y[rng.random(n) < 0.2] = "maybe"
    frame.loc[::7, "size"] = np.nan
    frame.loc[3::9, "group"] = None
    return frame, y


def noise_of_all(rng):
    return Perturbation(
        radius={
            "size": float(rng.choice([0.0, 0.2, 0.5])),
            "rank": float(rng.choice([0.5, 1.0, 2.0])),
            "flag": float(rng.choice([0.0, 1.0])),
            "group": float(rng.choice([0.0, 0.5, 1.0])),
        },
        direction={"rank": str(rng.choice(["up", "down", "both"]))},
        frozen=["flag"] if rng.random() < 0.5 else [],
        missing_cost={"size": float(rng.choice([0.5, 2.0]))} if rng.random() < 0.5 else {},
        bounds={"rank": (0, 7)} if rng.random() < 0.5 else {},
        whole=[] if rng.random() < 0.3 else None,
        budget=float(rng.choice([0.5, 1.0, 1.5])),
    )


@pytest.mark.filterwarnings("ignore:the noise is less than one step")
@pytest.mark.parametrize("seed", range(12))
def test_the_objective_is_what_certify_counts(seed):
    rng = np.random.default_rng(seed)
    frame, y = frame_with_all(rng)
    noise = noise_of_all(rng)
    model = RobustTreeClassifier(1 + seed % 4, noise, max_nodes=12).fit(frame, y)
    kept = certify(model, frame, y, noise).worst_case_accuracy * len(y)
    assert kept == pytest.approx(model.objective_)
    assert model.majority_ <= model.objective_ <= model.bound_


@pytest.mark.parametrize("seed", range(4))
def test_proven_trees_of_mixed_columns_are_no_worse_than_the_search_over_lists(seed):
    """The same splits, given as cuts: two searches that share nothing."""
    rng = np.random.default_rng(seed)
    frame, y = frame_with_all(rng, 40)
    noise = noise_of_all(rng)
    cuts = {"size": [-0.6, 0.05, 0.7], "rank": [2, 5]}
    whole = {"flag": [0]}
    boxes = RobustTreeClassifier(2, noise, cuts={**cuts, **whole}).fit(frame, y)
    lists = clone(boxes).set_params(n_thresholds=1).fit(frame, y)
    assert boxes.proven_
    assert lists.proven_
    assert boxes.objective_ == lists.objective_
    assert boxes.tree_.n_leaves == lists.tree_.n_leaves  # with fewest splits
    deeper = clone(boxes).set_params(max_depth=3).fit(frame, y)
    assert deeper.proven_
    assert deeper.objective_ == clone(lists).set_params(max_depth=3).fit(frame, y).objective_


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_never_below_greedy_trees_with_the_same_noise(depth):
    X, y = load_iris(return_X_y=True)
    noise = Perturbation(radius=0.15)
    model = RobustTreeClassifier(depth, noise, max_nodes=8).fit(X, y)
    for tree in (
        DecisionTreeClassifier(max_depth=depth, random_state=0),
        DecisionTreeClassifier(max_depth=depth, random_state=0, criterion="entropy"),
    ):
        greedy = certify(tree.fit(X, y), X, y, noise).worst_case_accuracy
        assert model.objective_ / len(y) >= greedy
    assert model.objective_ <= model.bound_ <= len(y)


def test_work_allowed_decides_alone_and_more_is_never_worse():
    X, y = load_iris(return_X_y=True)
    noise, found = Perturbation(radius=0.2), []
    for steps in (1, 2, 4, 8, 16, 32):
        model = RobustTreeClassifier(3, noise, time_limit=math.inf, max_nodes=steps).fit(X, y)
        again = clone(model).fit(X, y)
        assert again.tree_ == model.tree_
        assert (again.bound_, again.status_) == (model.bound_, model.status_)
        found.append(model)
    assert found[0].status_ == "node limit"
    assert [m.objective_ for m in found] == sorted(m.objective_ for m in found)
    assert [m.bound_ for m in found] == sorted((m.bound_ for m in found), reverse=True)
    assert found[-1].bound_ < len(y)


def test_a_time_limit_is_looked_at_between_steps(monkeypatch):
    monkeypatch.setattr(RobustTreeClassifier, "_clock", ToldClock(tick=1.0))
    X, y = load_iris(return_X_y=True)
    model = RobustTreeClassifier(4, Perturbation(radius=0.2), time_limit=6).fit(X, y)
    assert model.status_ == "time limit"
    assert model.majority_ < model.objective_ < model.bound_ <= len(y)


RATE = 100_000_000  # values that a slow machine looks at in a second


@pytest.fixture
def working_clock(monkeypatch):
    """A clock that goes as loops count their work."""
    clock = ToldClock()

    def counted(loop, place):
        def run(*given):
            found = loop(*given)
            clock.sleep((found if place is None else found[place]) / RATE)
            return found

        return run

    for module, name, place in (
        (boxes, "search_trees", None),
        (box_bounds, "two_levels", None),
        (box_bounds, "two_splits", 2),
    ):
        monkeypatch.setattr(module, name, counted(getattr(module, name), place))
    return clock


@pytest.mark.parametrize("seconds", [0.25, 0.5, 4.0])
@pytest.mark.parametrize(("depth", "regularisation"), [(2, 0.0), (4, 0.0), (4, "auto")])
def test_a_limit_is_kept_to_where_a_step_is_much_of_it(
    monkeypatch, working_clock, seconds, depth, regularisation
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 30))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=1500) > 0).astype(int)
    limit = Limit(seconds, clock=working_clock)
    monkeypatch.setattr(RobustTreeClassifier, "_limit", lambda self: limit)
    noise = Perturbation(radius=0.3)
    model = RobustTreeClassifier(depth, noise, regularisation=regularisation).fit(X, y)
    assert model.status_ == "time limit"
    assert 0.8 * seconds < limit.elapsed < 1.05 * seconds


def test_a_given_tree_is_where_the_search_begins():
    X, y = load_iris(return_X_y=True)
    noise = Perturbation(radius=0.2)
    first = RobustTreeClassifier(3, noise, max_nodes=40).fit(X, y)
    hurried = RobustTreeClassifier(3, noise, max_nodes=1, warm_start=first).fit(X, y)
    assert hurried.objective_ >= first.objective_
    plain = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    started = RobustTreeClassifier(3, noise, max_nodes=1, warm_start=plain).fit(X, y)
    assert started.objective_ >= certify(plain, X, y, noise).worst_case_accuracy * len(y)


def test_interrupting_keeps_the_best_tree():
    X, y = load_iris(return_X_y=True)

    def interrupt(step):
        if step.incumbent < 40:
            raise KeyboardInterrupt

    model = RobustTreeClassifier(3, Perturbation(radius=0.2), progress=interrupt).fit(X, y)
    assert model.status_ == "interrupted"
    assert model.objective_ > model.majority_


def test_seconds_of_the_process_count_where_asked_for(monkeypatch):
    monkeypatch.setattr("steadytree.robustness.robust_tree.CPU_CLOCK", ToldClock(tick=1.0))
    X, y = load_iris(return_X_y=True)
    model = RobustTreeClassifier(4, Perturbation(radius=0.2), time_limit=6, clock="cpu").fit(X, y)
    assert model.status_ == "time limit"
    assert [step.seconds for step in model.history_] == sorted(
        step.seconds for step in model.history_
    )
    assert model.history_[-1].incumbent == len(y) - model.objective_
    assert model.history_[-1].bound == len(y) - model.bound_
    with pytest.raises(ValueError, match="clock must be one of"):
        RobustTreeClassifier(clock="sun").fit(X, y)
