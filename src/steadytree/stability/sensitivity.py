"""Average sensitivity: how the removal of rows changes a tree."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.utils import check_random_state

from steadytree._base.notebook import Shown
from steadytree._base.parallel import fan_out
from steadytree._base.progress import following
from steadytree._base.validation import Integer, OneOf
from steadytree.data.dataset import Dataset
from steadytree.distance.tree_distance import Distance
from steadytree.metrics.measurement import Measurement
from steadytree.models.base import check_weights
from steadytree.stability.removal import (
    Alternative,
    Removal,
    Variant,
    fresh,
    is_repeatable,
    refit,
    remove_from_prepared,
    repeat_fit,
    sample_variant,
)

DEFAULT_REPEATS = 100
N_ALTERNATIVES = 5
CHANGES = {
    "remove": "without {rows}",
    "labels": "after {rows} got another label",
    "features": "after {rows} got another value in one column",
    "bootstrap": "from a bootstrap sample of the rows",
}


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Shown):
    """How a tree changes when rows are removed from its training data, or changed.

    Alternatives are the most frequent trees without some rows, for the first seed; the tree on all
    rows may be among them, at distance 0.
    """

    distances: NDArray[np.float64]  # (n_seeds, n_sets), from the tree on all rows of that seed
    removed: NDArray[np.int64]  # (n_seeds, n_sets, n_removed): rows removed, changed or drawn
    alternatives: tuple[Alternative, ...]
    exact: bool  # every single row was removed in turn; otherwise sets were sampled
    change: str = "remove"  # as in `average_sensitivity`
    bins: str = "shared"  # or "own": those that each refit makes of its rows

    @property
    def value(self) -> float:
        """Mean distance."""
        return float(self.distances.mean())

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the mean: over seeds if there are several, else over sampled sets."""
        n_seeds, n_sets = self.distances.shape
        if n_seeds > 1:
            return mean_interval(self.distances.mean(axis=1), 0.0)
        return None if self.exact or n_sets < 2 else mean_interval(self.distances[0], 0.0)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The values with their meanings."""
        changed = (self.distances > 0).mean(axis=1)
        interval = mean_interval(changed, 0.0, 1.0) if len(changed) > 1 else None
        return (
            Measurement(
                "average sensitivity",
                self.value,
                f"mean distance to the tree that is {self._how}",
                self.interval,
            ),
            Measurement(
                "changed trees",
                100 * float(changed.mean()),
                f"share of trees {self._how} that differ at all",
                None if interval is None else (100 * interval[0], 100 * interval[1]),
                "%",
            ),
            Measurement(
                "largest change",
                float(self.distances.max()),
                f"largest distance to a tree that is {self._how}",
            ),
        )

    @property
    def _how(self) -> str:
        n_removed = self.removed.shape[2]
        rows = "one row" if n_removed == 1 else f"{n_removed:,} rows"
        bins = "the same bins" if self.bins == "shared" else "bins of its own"
        return f"learned {CHANGES[self.change].format(rows=rows)}, with {bins}"

    def worst(self, n: int = 10) -> list[tuple[tuple[int, ...], float]]:
        """The sets of rows whose removal or change changes the tree of the first seed most."""
        order = np.argsort(-self.distances[0], kind="stable")[:n]
        return [
            (tuple(self.removed[0, index].tolist()), float(self.distances[0, index]))
            for index in order
        ]

    def __str__(self) -> str:
        measured = f"trees {self._how}, {'each row in turn' if self.exact else 'sampled'}"
        return "\n".join([*map(str, self.measurements), f"measured: {measured}"])


def average_sensitivity(
    estimator: Any,
    X: Any,
    y: Any,
    removed: float = 1,
    repeats: int | str | None = None,
    seeds: int | Sequence[int] | None = None,
    distance: Distance = "node",
    normalise: bool = True,
    n_jobs: int | None = None,
    random_state: Any = 0,
    sample_weight: Any = None,
    change: str = "remove",
    bins: str = "shared",
    progress: bool | Callable[[str], None] = False,
) -> Sensitivity:
    """Mean distance between the tree on all rows and the trees without some of them.

    `StableTreeClassifier` is repeated with the bins and the noise of the fit on all rows, as a
    refit with its parameter `bins` does; every single row is removed in turn, exactly, at the cost
    of a few fits (without weights and look-ahead). Any other estimator is cloned and refitted, a
    pipeline or search as a whole: each refit then makes bins, transforms and choices of its own.

    Parameters
    ----------
    estimator : StableTreeClassifier, scikit-learn tree classifier, or any with a tree inside
        Also a pipeline that ends in one, or a search for its settings. Fitted or not; it is not
        changed.
    X, y : training data
    removed : int or float, default=1
        Rows removed (or changed) at a time: a number, or a share between 0 and 1.
    repeats : "all", int or None, default=None
        "all" removes each single row in turn; a number samples as many sets. None means "all"
        for one row at a time, else 100.
    seeds : int, sequence of int or None, default=None
        Seeds of the learner to average over: a number of them, or the seeds themselves; None is
        the estimator's own, or a random one where it has none.
    distance : {"node", "node-features"} or callable, default="node"
        As in `tree_distance`; a callable gets two trees.
    normalise : bool, default=True
        Divide node distances by 2^(B + 2) - 2, B being the learner's depth limit (for other
        estimators, the depth of the deepest tree).
    n_jobs : int or None, default=None
        Processes, as in joblib: for cloned refits, or for the seeds of steadytree's own learners.
        ``joblib.parallel_config("dask")`` sends batches of them to a cluster.
    random_state : int, RandomState or None, default=0
        For sampled sets, and for the seed of a learner that has none.
    sample_weight : array-like of shape (n_samples,), optional
    change : {"remove", "labels", "features", "bootstrap"}, default="remove"
        What is done to the sets of rows: removed; given the label of a row of another class; or
        given, in a column chosen at random, the value of another row. "bootstrap" draws as many
        rows as there are, with replacement, whatever `removed` is.
    bins : {"shared", "own"}, default="shared"
        For StableTreeClassifier: "own" refits it from scratch, which moves thresholds too. The
        result's `bins` says what was measured.
    progress : bool or callable, default=False
        True shows a bar with the time left while an estimator is refitted; a function is called
        with each step.

    Returns
    -------
    Sensitivity

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from steadytree import StableTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> greedy = StableTreeClassifier(max_depth=3, epsilon=0, random_state=0)
    >>> stable = StableTreeClassifier(max_depth=3, epsilon=0.5, random_state=0)
    >>> average_sensitivity(stable, X, y).value < average_sensitivity(greedy, X, y).value
    True
    """
    OneOf(*CHANGES).check(change, "change")
    OneOf("shared", "own").check(bins, "bins")
    data = Dataset.of(X, y)
    n_rows = data.n_rows
    if sample_weight is not None:
        data = replace(data, weights=check_weights(sample_weight, n_rows))
        if data.weights is not None and not data.weights.all():
            raise ValueError("sample_weight is 0 for some rows: leave them out.")
    n_removed = n_rows if change == "bootstrap" else _check_removed(removed, n_rows)
    n_sets = _check_repeats(repeats, n_removed)
    random = _generator(random_state)
    shared = bins == "shared" and is_repeatable(estimator)
    jobs = [
        (one, _choose_sets(n_rows, n_removed, n_sets, random, change), index == 0)
        for index, one in enumerate(_with_seeds(estimator, seeds, random))
    ]
    seed = int(random.integers(2**31 - 1))
    if shared:
        removals = fan_out(_repeat, jobs, data, distance, change, seed, n_jobs=n_jobs)
    else:
        with following(progress) as on_progress:
            heard = None if progress is False else on_progress
            removals = [
                refit(
                    one, data, _variants(change, sets, data, seed), sets, distance, N_ALTERNATIVES,
                    n_jobs, heard,
                )
                for one, sets, _ in jobs
            ]  # fmt: skip
    scale = 1.0
    if normalise and distance in ("node", "node-features"):
        scale = 2.0 ** (max(removal.depth for removal in removals) + 2) - 2
    return Sensitivity(
        np.stack([removal.distances / scale for removal in removals]),
        np.stack([removal.removed for removal in removals]),
        tuple(replace(each, distance=each.distance / scale) for each in removals[0].alternatives),
        n_sets is None and change == "remove",
        change,
        "shared" if shared else "own",
    )


def _variants(change: str, sets: NDArray[np.int64], data: Dataset, seed: int) -> list[Variant]:
    random, n_columns = np.random.default_rng(seed), len(data.table.columns)
    return [sample_variant(change, rows, data.labels, n_columns, random) for rows in sets]


def _repeat(
    job: tuple[Any, NDArray[np.int64], bool],
    data: Dataset,
    distance: Distance,
    change: str,
    seed: int,
) -> Removal:
    """Removals for one seed; alternatives are kept for the first seed only."""
    estimator, sets, is_first = job
    estimator = copy(estimator)  # the caller's estimator must stay as it is
    n_alternatives = N_ALTERNATIVES if is_first else 0
    prepared = estimator.prepare(data.form_for(estimator), data.labels, data.weights)
    if change == "remove" and prepared.lookahead == 1 and prepared.weights is None:
        return remove_from_prepared(estimator, prepared, sets, distance, n_alternatives)
    variants = _variants(change, sets, data, seed)
    return repeat_fit(estimator, prepared, variants, sets, distance, n_alternatives)


def _with_seeds(
    estimator: Any, seeds: int | Sequence[int] | None, random: np.random.Generator
) -> list[Any]:
    """The estimator with each seed, since all refits must share their randomness.

    An estimator that has its seed is returned itself: refits work on copies.
    """
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"average_sensitivity needs a learner with fit, got {type(estimator).__name__}: "
            "pass the estimator, not its tree."
        )
    given = estimator.get_params()
    names = [name for name in given if f"__{name}".endswith("__random_state")]  # and of its parts
    unseeded = [name for name in names if given[name] is None]
    if seeds is None and not unseeded:
        return [estimator]
    if seeds is None:
        seeds, names = [int(random.integers(np.iinfo(np.int32).max))], unseeded
    if not names:
        raise ValueError(f"seeds given, but {type(estimator).__name__} has no random_state.")
    if isinstance(seeds, bool):
        raise TypeError(f"seeds must be a number of seeds or a list of them, got {seeds}.")
    listed = list(range(seeds) if isinstance(seeds, int) else seeds)
    if len(listed) == 0:
        raise ValueError("seeds must name at least one seed.")
    return [fresh(estimator).set_params(**dict.fromkeys(names, int(seed))) for seed in listed]


def _check_removed(removed: float, n_rows: int) -> int:
    message = f"removed must be a number of rows, or a share between 0 and 1, got {removed!r}."
    if isinstance(removed, bool) or not isinstance(removed, Real):
        raise TypeError(message)
    if isinstance(removed, Integral):
        number = int(removed)
    elif 0 < removed < 1:
        number = max(1, round(float(removed) * n_rows))
    else:
        raise ValueError(message)
    if not 1 <= number < n_rows:
        raise ValueError(
            f"removed={removed} of {n_rows} rows: at least one must be removed and one kept."
        )
    return number


def _check_repeats(repeats: int | str | None, n_removed: int) -> int | None:
    """Number of sampled sets; None for every single row."""
    if repeats is None:
        return None if n_removed == 1 else DEFAULT_REPEATS
    if repeats == "all":
        if n_removed > 1:
            raise ValueError(
                f"repeats='all' removes one row at a time, but removed={n_removed}: "
                "give a number of sets to sample, such as repeats=100."
            )
        return None
    return Integer(1, also=("all",)).check(repeats, "repeats")


def _choose_sets(
    n_rows: int, n_removed: int, n_sets: int | None, random: np.random.Generator, change: str
) -> NDArray[np.int64]:
    if change == "bootstrap":
        return np.sort(random.integers(n_rows, size=(n_sets or 1, n_rows)), axis=1)
    if n_sets is None:
        return np.arange(n_rows)[:, None]
    if n_removed == 1:
        return random.integers(n_rows, size=(n_sets, 1))
    chosen = [random.choice(n_rows, n_removed, replace=False, shuffle=False) for _ in range(n_sets)]
    return np.sort(np.array(chosen, dtype=np.int64), axis=1)


def _generator(random_state: Any) -> np.random.Generator:
    """A generator from a seed (ten times faster) or from a RandomState."""
    if isinstance(random_state, Integral):
        return np.random.default_rng(int(random_state))
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return np.random.default_rng(seed)


def mean_interval(
    values: NDArray[np.float64], least: float = -np.inf, most: float = np.inf
) -> tuple[float, float]:
    """Student's 95 % interval of a mean, of which only what lies in the values' range can be true.

    Cut at `least` and `most`, it covers the mean as often as before.
    """
    mean, error = float(values.mean()), float(values.std(ddof=1)) / np.sqrt(len(values))
    reach = float(stdtrit(len(values) - 1, 0.975) * error)
    return max(mean - reach, least), min(mean + reach, most)
