"""The command `steadytree warm-up`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import steadytree as st
from steadytree._base.progress import Progress
from steadytree.cli.options import AsJson
from steadytree.cli.output import show

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXAMPLES = """\b
Example, in the recipe of a container:
  RUN pip install steadytree && steadytree warm-up

Loops are compiled when they are first used, which takes a minute in all, and kept in a cache of
the user (NUMBA_CACHE_DIR names another folder). A wheel for this platform brings them along."""
N_ROWS = 240


def warm_up(as_json: AsJson = False) -> None:
    """Compile all loops now, so that the first fit is quick.

    These are the loops of fits, predictions, reports and certificates.
    """
    steps = list(_steps())
    with Progress() as progress:
        for number, (what, work) in enumerate(steps, 1):
            progress.update(f"{number} of {len(steps)}: {what}", (number - 1) / len(steps))
            work()
    ready = [what for what, _ in steps]
    show({"ready": ready}, [f"Ready: {', '.join(ready)}."], as_json)


def _steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    """What to run, each with its name; on made-up rows with text, gaps and several classes."""
    import numpy as np

    from steadytree.data.binning import FEW_ROWS

    X, y, several = _made_up_rows(0)
    other, other_y, _ = _made_up_rows(1)
    mixed = _with_text(X)
    steady = st.SteadyTreeClassifier(random_state=0)
    stable = st.StableTreeClassifier(max_depth=3, random_state=0)
    score = st.RiskScoreClassifier(random_state=0)

    def fit_all(learner: Any) -> None:
        frame = np.asfortranarray(X)  # as the columns of a frame lie, which is not written to
        frame.setflags(write=False)
        for rows, labels in (
            (X, several),
            (mixed, y),
            (frame, y),
            (X.astype(int), y),
            (X[:, ::-1], y),
            (X, y),
        ):
            learner.fit(rows, labels).predict_proba(rows)

    yield "steady trees", lambda: fit_all(steady)
    yield "stable trees", lambda: fit_all(stable)
    times = -(-FEW_ROWS // N_ROWS)  # from so many rows on, bins take one byte
    bytes_ = st.StableTreeClassifier(max_depth=3, n_thresholds=100, random_state=0)
    yield "many rows", lambda: bytes_.fit(np.tile(X, (times, 1)), np.tile(y, times))
    yield (
        "reports",
        lambda: [st.report(model, other, other_y, train=(X, y)) for model in (steady, stable)],
    )
    yield "sensitivity", lambda: st.average_sensitivity(stable, X, y)
    yield "certificates", lambda: st.certify(steady, X, y, st.Perturbation(radius=1.0))
    yield (
        "retraining",
        lambda: st.RetrainedTreeClassifier(steady.tree_).fit(other, other_y),
    )
    yield "differences", lambda: st.diff(steady.tree_, stable.tree_)
    yield "Pareto trees", lambda: st.ParetoTreeClassifier(random_state=0).fit(X, y)
    yield "robust trees", lambda: _robust_trees(np.round(X[:60]), y[:60])
    yield "risk scores", lambda: st.report(score.fit(X, y), other, other_y, train=(X, y))


def _robust_trees(X: NDArray[Any], y: NDArray[Any]) -> None:
    from steadytree.robustness.search.box_search import load_box_loops
    from steadytree.robustness.search.branch_and_bound import load_loops

    for noise in (None, st.Perturbation(step_cost=1.0, budget=0.1, scope="mean")):
        st.RobustTreeClassifier(2, noise).fit(X, y)
    for depth in (1, 2, 3, 4):  # which differ in what they need
        load_box_loops(depth)
        load_loops(depth, sharp=depth > 2)


def _made_up_rows(seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    import numpy as np

    random = np.random.default_rng(seed)
    X = random.normal(size=(N_ROWS, 4))
    X[:, 3] = random.integers(0, 5, N_ROWS)
    score = X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=N_ROWS)
    return X, (score > 0).astype(int), np.digitize(score, [-1, 1])


def _with_text(X: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    mixed = X.astype(object)
    mixed[:, 3] = np.array(["north", "south", "east", "west", "centre"])[X[:, 3].astype(int)]
    mixed[::7, 1] = None
    return mixed
