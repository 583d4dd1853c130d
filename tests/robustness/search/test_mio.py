"""The search and the paper's mixed-integer model agree."""

import math

import numpy as np
import pandas as pd
import pytest

from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.robust_tree import RobustTreeClassifier
from steadytree.robustness.search import mio

pytestmark = pytest.mark.interop
pytest.importorskip("pyscipopt")


def small_case(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 30))
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 3, n),
            "b": rng.integers(0, 2, n),
            "c": rng.choice(["u", "v", "w"], n),
        }
    )
    if seed % 3 == 0:
        frame.loc[::5, "a"] = np.nan
    y = np.where(rng.random(n) < 0.2, 1 - (frame["b"] > 0), frame["b"] > 0).astype(int)
    y[: n // 4] = 2 * (seed % 2)
    costs = {name: float(rng.uniform(0.3, 2)) for name in frame}
    kind = "step_cost" if seed % 4 else "radius"
    noise = Perturbation(
        **{kind: costs},
        budget=float(rng.choice([0.05, 0.2, 0.5])),
        scope=str(rng.choice(["row", "mean"])),
        missing_cost={"a": 0.3} if seed % 2 else {},
    )
    return frame, y, noise


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 12))]
)
def test_search_equals_the_mixed_integer_model(seed):
    frame, y, noise = small_case(seed)
    regularisation = 0.4 if seed % 5 == 4 else 0.0
    model = RobustTreeClassifier(2, noise, regularisation=regularisation, random_state=0)
    searched = model.fit(frame, y)
    solved = RobustTreeClassifier(
        2, noise, regularisation=regularisation, solver="mio", time_limit=math.inf
    ).fit(frame, y)
    assert searched.proven_
    assert solved.proven_
    assert searched.objective_ == pytest.approx(solved.objective_)


@pytest.mark.parametrize(("clock", "kind"), [("cpu", 1), ("wall", 2)])
def test_seconds_of_scip_are_of_the_clock_asked_for(clock, kind, monkeypatch):
    kinds, build = [], mio._build

    def note(model, scip):
        build(model, scip)
        kinds.append(model.scip.getParam("timing/clocktype"))

    monkeypatch.setattr(mio, "_build", note)
    frame, y, noise = small_case(1)
    hurried = {"solver": "mio", "time_limit": 1e-300, "clock": clock}
    model = RobustTreeClassifier(2, noise, **hurried).fit(frame, y)
    assert model.status_ == "time limit"
    assert kinds == [kind]


@pytest.mark.parametrize(
    ("hurried", "status"),
    [({"max_nodes": 1}, "node limit"), ({"time_limit": 1e-300}, "time limit")],
)
def test_a_warm_start_is_kept_where_a_limit_is_reached_at_once(hurried, status):
    frame, y, noise = small_case(1)
    best = RobustTreeClassifier(2, noise, random_state=0).fit(frame, y)
    assert best.objective_ > best.majority_
    hurried = {"solver": "mio", **hurried}
    without = RobustTreeClassifier(2, noise, **hurried).fit(frame, y)
    assert without.status_ == status
    assert without.majority_ <= without.objective_
    assert best.objective_ <= without.bound_ <= len(y)
    started = RobustTreeClassifier(2, noise, warm_start=best, **hurried).fit(frame, y)
    assert started.objective_ == pytest.approx(best.objective_)
    assert started.bound_ >= started.objective_ - 1e-6
    with pytest.raises(TypeError, match="warm_start must be a bool or a tree"):
        RobustTreeClassifier(2, noise, warm_start="yes", **hurried).fit(frame, y)


@pytest.mark.parametrize("seed", range(3))
def test_a_warm_start_changes_no_proof(seed):
    frame, y, noise = small_case(seed)
    start = RobustTreeClassifier(1, noise, random_state=0).fit(frame, y)
    model = RobustTreeClassifier(2, noise, warm_start=start, solver="mio", time_limit=math.inf)
    best = RobustTreeClassifier(2, noise, random_state=0).fit(frame, y)
    assert model.fit(frame, y).proven_
    assert model.objective_ == pytest.approx(best.objective_)
