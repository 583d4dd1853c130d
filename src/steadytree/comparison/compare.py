"""Compare: every learner on the same folds, by the same measures."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from steadytree._base.exceptions import UnsuitableDataError
from steadytree._base.intervals import wilson_interval
from steadytree._base.parallel import check_jobs
from steadytree._base.progress import OnProgress
from steadytree._base.validation import Integer
from steadytree.comparison.learners import (
    DESCRIPTIONS,
    BoostedTrees,
    Settings,
    fit_or_refuse,
    make_learners,
)
from steadytree.data.dataset import Sampled
from steadytree.data.labels import stratified_folds
from steadytree.data.table import Table
from steadytree.distance.tree_distance import tree_distance
from steadytree.metrics.accuracy import Answers, accuracy, label_indices, summarise_answers
from steadytree.metrics.measurement import Measurement
from steadytree.models.scorecard import Scorecard, as_scorecard
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.robustness.certificate import Certificate, thin_curve
from steadytree.robustness.certify import certificate_of
from steadytree.robustness.perturbation import Perturbation, usual_perturbation
from steadytree.stability.removal import affordable, fresh, is_repeatable
from steadytree.stability.sensitivity import average_sensitivity, mean_interval

MOST_ROWS = 5_000
REPEATS = 10  # removals of one row where trying all takes too long
NOT_REPEATED = {
    "RobustTreeClassifier": "a search takes too long to repeat",
    "PrivateTreeClassifier": "its noise differs at every fit: see the retraining distance",
    "RiskScoreClassifier": "a risk score is not a tree",
    "BoostedTrees": "it is an ensemble, which is compared by its predictions only",
    "CrossValidatedCart": "a cross-validation takes too long to repeat for single rows",
}
# what is fitted together compiles much the same; long ones first keep all processes busy
ORDER = ("robust", "cart", "private", "score", "stable", "pareto", "boosted", "steady", "cart-cv")
HELD_OUT = "share of held-out rows"
Part = tuple[NDArray[np.int64], NDArray[np.int64]]  # rows to fit to, and rows held out


@dataclass(frozen=True, eq=False)
class Result:
    """The measurements of one learner.

    These are accuracy, AUC (where every fold has rows of every class), size, sensitivity (where it
    was measured), changed answers, retraining distance (of trees), certified accuracy, worst-case
    accuracy and fit time.
    """

    name: str
    description: str
    measurements: dict[str, Measurement]
    epsilon: float | None  # privacy budget; None where nothing is promised
    exact_sensitivity: bool  # whether every single row was removed in turn
    notes: tuple[str, ...]  # what was not measured, and why
    # sizes of moves, and the certified accuracy at each; empty for an ensemble
    curve: tuple[NDArray[np.float64], NDArray[np.float64]]
    model: Any  # the learner fitted on all rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "description": self.description,
            "readings": {
                name: one.to_dict()
                | {"interval": None if one.interval is None else [*one.interval]}
                for name, one in self.measurements.items()
            },
            "epsilon": self.epsilon,
            "exact_sensitivity": self.exact_sensitivity,
            "notes": list(self.notes),
            "curve": {"size": self.curve[0].tolist(), "certified_accuracy": self.curve[1].tolist()},
        }


@dataclass(frozen=True, eq=False)
class Results:
    """All learners on the same folds."""

    results: tuple[Result, ...]
    perturbation: Perturbation  # what certified and worst-case accuracy are about
    stated: bool  # whether the caller stated it; else numbers move by 2 % of their column's range
    n_rows: int
    n_folds: int
    max_depth: int
    note: str  # what was sampled, and which learners refused the rows; may be empty
    baseline: float  # accuracy of always predicting the most frequent class

    def __getitem__(self, name: str) -> Result:
        return next(one for one in self.results if one.name == name)

    def columns(self) -> dict[str, list[Any]]:
        """One row a learner; ``pandas.DataFrame`` makes a frame of it."""
        names = dict.fromkeys(name for one in self.results for name in one.measurements)
        found: dict[str, list[Any]] = {"learner": [one.name for one in self.results]}
        for name in names:
            each = [one.measurements.get(name) for one in self.results]
            found[name] = [None if one is None else one.value for one in each]
        return found | {"epsilon": [one.epsilon for one in self.results]}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "learners": [one.to_dict() for one in self.results],
            "perturbation": self.perturbation.to_dict(),
            "perturbation_stated": self.stated,
            "n_rows": self.n_rows,
            "n_folds": self.n_folds,
            "max_depth": self.max_depth,
            "note": self.note,
            "baseline": self.baseline,
        }


def compare_learners(
    models: Sequence[str] | Mapping[str, Any],
    X: Any,
    y: Any,
    settings: Settings,
    n_folds: int = 5,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
    sensitivity: bool = True,
    fitted: Mapping[str, Any] | None = None,
) -> Results:
    """Fit and measure every learner; see `steadytree.compare`.

    `fitted` holds models by the name of their learner that were fitted to these very rows: where
    settings agree and all rows are compared, such a one is not fitted again.
    """
    rows = Sampled.of(X, y, MOST_ROWS, settings.seed)
    labels = rows.labels
    Integer(2, 20).check(n_folds, "n_folds")
    classes, counts = np.unique(labels, return_counts=True)
    rarest = str(classes[counts.argmin()])
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {rarest!r}: add rows of another class, or compare on another y."
        )
    if counts.min() < n_folds:
        raise ValueError(
            f"each class needs at least n_folds={n_folds} rows, but {rarest!r} "
            f"has {counts.min()}: leave it out, or ask for fewer folds."
        )
    sample = rows.features.native
    stated = settings.perturbation
    noise = usual_perturbation(sample) if stated is None else stated.scaled_to(sample)
    learners = make_learners(models, sample, labels, settings)
    parts = list(stratified_folds(labels, n_folds, settings.seed))
    known = (
        {}
        if rows.note
        else {
            name: model
            for name, model in (fitted or {}).items()
            if name in learners
            and type(model) is type(learners[name])
            and model.get_params() == learners[name].get_params()
        }
    )
    case = sample, labels, parts, noise, sensitivity, known
    results, refusals = _measure_all(
        learners, case, n_jobs, on_progress or (lambda message, share: None)
    )
    note = " ".join([rows.note, *refusals]).strip()
    return Results(
        tuple(results),
        noise,
        stated is not None,
        len(labels),
        n_folds,
        settings.max_depth,
        note,
        float(counts.max() / len(labels)),
    )


def _measure_all(
    learners: dict[str, Any], case: tuple[Any, ...], n_jobs: int | None, on_progress: OnProgress
) -> tuple[list[Result], list[str]]:
    """Results in the order of the learners, and a sentence for each that refuses these rows."""
    named = list(learners)
    queue = sorted(named, key=lambda name: ORDER.index(name) if name in ORDER else -1)
    check_jobs(n_jobs)
    if n_jobs in (None, 1):
        queue = named
    on_progress(f"comparing {queue[0]} (1 of {len(queue)})", 0.0)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    found = {}
    jobs = (delayed(_measure_or_refuse)(name, learners[name], *case) for name in queue)
    for name, result in parallel(jobs):
        found[name] = result
        done = len(found)
        if done < len(queue):
            on_progress(f"comparing {queue[done]} ({done + 1} of {len(queue)})", done / len(queue))
    refused = {name: one for name in named if isinstance(one := found[name], UnsuitableDataError)}
    if len(refused) == len(named):
        raise refused[named[0]]
    results = [one for name in named if isinstance(one := found[name], Result)]
    return results, [f"Left out: {name}, since {error}" for name, error in refused.items()]


def _measure_or_refuse(name: str, *case: Any) -> tuple[str, Result | UnsuitableDataError]:
    """A learner that refuses these rows does not keep the others from being compared."""
    try:
        return name, _measure(name, *case)
    except UnsuitableDataError as error:
        return name, error


def _measure(
    name: str,
    learner: Any,
    X: Any,
    labels: NDArray[Any],
    parts: list[Part],
    noise: Perturbation,
    sensitivity: bool,
    known: Mapping[str, Any],
) -> Result:
    # compiles what it needs, so that folds are timed fairly
    fitted = known.get(name) or fit_or_refuse(fresh(learner), X, labels)
    folds = [
        _measure_fold(_seeded(learner, fold), X, labels, part, noise)
        for fold, part in enumerate(parts)
    ]
    measurements = _pooled(folds, X)
    exact, notes = False, []
    kind = type(learner).__name__
    if sensitivity and kind in NOT_REPEATED:
        notes.append(f"sensitivity was not measured: {NOT_REPEATED[kind]}")
    elif sensitivity:
        exact = is_repeatable(learner)
        repeats = None if exact else affordable(learner, len(labels), REPEATS)
        found = average_sensitivity(learner, X, labels, repeats=repeats)
        measurements["sensitivity"], measurements["changed trees"] = found.measurements[:2]
    epsilon = getattr(getattr(fitted, "privacy_", None), "epsilon", None)
    if epsilon is not None and not fitted.privacy_.private:
        notes.append("fitted with a seed, and bounds may come from the data: for comparison only")
    if getattr(fitted, "proven_", True) is False:
        notes.append(f"the search ended by its {fitted.status_}, so a better tree may exist")
    certificates = [fold.certificate for fold in folds if fold.certificate is not None]
    curve = np.empty(0), np.empty(0)
    if certificates:
        correct = np.concatenate([one.right for one in certificates])
        curve = thin_curve(correct, np.concatenate([one.distance for one in certificates]))
    about = DESCRIPTIONS.get(name, kind)
    return Result(name, about, measurements, epsilon, exact, tuple(notes), curve, fitted)


@dataclass(frozen=True, eq=False)
class _Fold:
    accuracy: Any
    certificate: Certificate | None  # None for an ensemble
    model: Tree | Scorecard | None
    answers: NDArray[Any]
    seconds: float


def _measure_fold(
    learner: Any, X: Any, labels: NDArray[Any], part: Part, noise: Perturbation
) -> _Fold:
    fit, held = part
    rows, truth = Table.pick(X, held), labels[held]
    start = time.process_time()
    model = learner.fit(Table.pick(X, fit), labels[fit])
    seconds = time.process_time() - start
    if isinstance(model, BoostedTrees):
        shares, truth = model.predict_proba(rows), label_indices(model.classes_, truth)
        answers = Answers(model.classes_, truth, shares.argmax(axis=1), shares)
        return _Fold(summarise_answers(answers), None, None, model.predict(X), seconds)
    fitted = as_scorecard(model) or as_tree(model, X)
    found = accuracy(model, rows, truth), certificate_of(model, rows, truth, noise)
    return _Fold(*found, fitted, fitted.predict(X), seconds)


def _seeded(learner: Any, fold: int) -> Any:
    """A copy; noise for privacy differs from fold to fold, as it would from fit to fit."""
    copy = fresh(learner)
    seed = copy.get_params().get("testing_seed")
    return copy if seed is None else copy.set_params(testing_seed=seed + fold + 1)


def _pooled(folds: list[_Fold], X: Any) -> dict[str, Measurement]:
    models = [fold.model for fold in folds if fold.model is not None]
    correct, rows = (sum(getattr(f.accuracy, n) for f in folds) for n in ("n_right", "n_rows"))
    within = wilson_interval(correct, rows)
    found = [Measurement("accuracy", correct / rows, f"{HELD_OUT} that are right", within)]
    areas = [fold.accuracy.auc for fold in folds]
    if all(area is not None for area in areas):
        meaning = "mean over folds, with Student's interval"
        within = mean_interval(np.array(areas, float), 0.0, 1.0)
        found.append(Measurement("AUC", float(np.mean(areas)), meaning, within))
    sizes = [one.n_leaves if isinstance(one, Tree) else one.n_bands for one in models]
    if models:
        unit = "leaves" if isinstance(models[0], Tree) else "bands"
        meaning = "how much there is to read, mean over folds"
        found.append(Measurement("size", float(np.mean(sizes)), meaning, unit=unit))
    differ = [np.mean(a.answers != b.answers) for a, b in combinations(folds, 2)]
    meaning = "share of rows that get another answer from the model of another fold"
    found.append(Measurement("changed answers", float(np.mean(differ)), meaning))
    trees = [model for model in models if isinstance(model, Tree)]
    if len(trees) == len(folds):
        apart = tree_distance(trees, space=X)[np.triu_indices(len(folds), 1)]
        meaning = "mean path distance between the trees of two folds"
        found.append(Measurement("retraining distance", float(apart.mean()), meaning))
    found += _pooled_robustness(folds)
    seconds = float(np.mean([fold.seconds for fold in folds]))
    found.append(Measurement("fit time", seconds, "processor time of one fit", unit="s"))
    return {one.name: one for one in found}


def _pooled_robustness(folds: list[_Fold]) -> list[Measurement]:
    """What stays correct under the perturbation; nothing where it states no budget."""
    certificates = [fold.certificate for fold in folds if fold.certificate is not None]
    budget = certificates[0].perturbation.budget if certificates else None
    if budget is None:
        return []
    noise, weights = certificates[0].perturbation, [fold.accuracy.n_rows for fold in folds]

    def pooled(name: str, shares: list[float], meaning: str) -> Measurement:
        share = float(np.average(shares, weights=weights))
        return Measurement(name, share, f"{HELD_OUT} {meaning}")

    worst = [one.worst_case_accuracy for one in certificates]
    meaning = "predicted correctly under the worst perturbation within the budget"
    found = [pooled("worst-case accuracy", worst, meaning)]
    if noise.scope == "row":
        half = [one.certified_accuracy(budget / 2) for one in certificates]
        meaning = "predicted correctly under every perturbation of half the stated size"
        found.insert(0, pooled("certified accuracy", half, meaning))
    return found
