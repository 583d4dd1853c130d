"""Candidate trees from bootstrap samples, their scores, and the Pareto frontier."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from steadytree._base.exceptions import UnsuitableDataError
from steadytree._base.optional import is_a
from steadytree._base.parallel import fan_out
from steadytree.data.dataset import Dataset
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.labels import match_labels
from steadytree.data.table import Table
from steadytree.metrics.accuracy import roc_area
from steadytree.models.boxes import rebase, with_classes
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree

PAPER_GRID = {"max_depth": list(range(3, 13)), "min_samples_leaf": [3, 5, 10, 30, 50]}
Settings = dict[str, Any]
LOG_LOSS, LEAST_SHARE = "neg_log_loss", 1e-3  # a smaller share counts as this one in a log loss


@dataclass(frozen=True, eq=False)
class Sample:
    """Training rows in the form that the learner accepts."""

    X: Any  # a float array for scikit-learn's trees, a table for ours, else as the user passed it
    values: NDArray[Any]  # (n, p), encoded by `space`
    labels: NDArray[np.int64]
    classes: NDArray[Any]  # those of the rows and of a tree in use
    space: FeatureSpace
    weights: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        estimator: Any,
        y: NDArray[Any],
        space: FeatureSpace,
        table: Table,
        classes: NDArray[Any],
        weights: NDArray[np.float64] | None = None,
    ) -> "Sample":
        """The user's data in the form that the estimator accepts."""
        labels = np.array(match_labels(y.tolist(), classes.tolist()))
        values = space.encode(table)
        if is_a(estimator, "sklearn.tree", "DecisionTreeClassifier"):
            if space.categorical.any():
                text = [column.name for column in space if column.is_categorical]
                raise UnsuitableDataError(
                    f"column(s) {text} hold text, which {type(estimator).__name__} does not take: "
                    "leave estimator=None, or use StableTreeClassifier."
                )
            X = values
        else:  # a learner of ours gets columns as they were read: text stays text in each part
            X = Dataset(table, given=X).form_for(estimator)
            X = getattr(X, "table", X)
        return cls(X, values, labels.astype(np.int64), classes, space, weights)

    def fit(
        self, estimator: Any, settings: Settings, rows: NDArray[np.int64], **options: Any
    ) -> Tree:
        """A tree fitted to some of the rows, over the sample's space and classes."""
        learner = clone(estimator).set_params(**settings)
        part = pick_rows(self.X, self.values, rows)
        weights = {} if self.weights is None else {"sample_weight": self.weights[rows]}
        tree = as_tree(learner.fit(part, self.classes[self.labels[rows]], **weights, **options))
        if is_a(estimator, "sklearn.tree", "DecisionTreeClassifier"):
            tree = replace(tree, space=self.space, subset=np.empty((0, 0), bool))
        else:
            tree = rebase(tree, self.space)
        return with_classes(tree, self.classes)


def pick_rows(X: Any, values: NDArray[Any], rows: NDArray[np.int64]) -> Any:
    """Some rows of X in the form the user passed; values (n, p) are all rows, encoded.

    Learners refuse a column without any observed value. Such a column gets a constant here, on
    which no tree splits.
    """
    picked = Table.pick(X, rows)
    empty = np.flatnonzero(np.isnan(values[rows]).all(axis=0))
    if len(empty) == 0:
        return picked
    if isinstance(picked, Table):
        constant = np.zeros(len(rows))
        columns = [constant if j in empty else c for j, c in enumerate(picked.columns)]
        return replace(picked, columns=columns, matrix=None)
    frame = nw.from_native(picked, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        constants = [nw.lit(0.0).alias(frame.columns[j]) for j in empty]
        return nw.to_native(frame.with_columns(*constants))
    if isinstance(picked, list):
        return [[0.0 if j in empty else v for j, v in enumerate(row)] for row in picked]
    picked[:, empty] = 0.0  # a copy already, since rows are picked by number
    return picked


def stratified_flags(
    labels: NDArray[np.int64], share: float, seed: int | np.random.Generator
) -> NDArray[np.bool_]:
    """Flag a share of the rows of every class, at least one and never all where it has two."""
    rng = np.random.default_rng(seed)
    flags = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        wanted = min(max(round(share * len(rows)), 1), len(rows) - 1)
        flags[rows[:wanted]] = True
    return flags


def check_grid(estimator: Any, grid: Mapping[str, Sequence[Any]]) -> list[Settings]:
    """All settings of a grid; parameters that the learner does not have are refused."""
    from sklearn.model_selection import ParameterGrid  # and all its searches

    settings = list(ParameterGrid(dict(grid)))
    known = estimator.get_params()
    unknown = sorted({name for one in settings for name in one} - set(known))
    if unknown:
        raise ValueError(
            f"grid sets {unknown}, which {type(estimator).__name__} does not have; "
            f"it has {sorted(known)}."
        )
    return settings


def bootstrap_trees(
    sample: Sample,
    estimator: Any,
    settings: list[Settings],
    rows: NDArray[np.int64],
    rng: np.random.Generator,
    many: Callable[..., list[Tree]] = fan_out,
) -> list[Tree]:
    """One tree for each of the settings, each from its own bootstrap sample."""
    seeded = "random_state" in estimator.get_params()
    jobs = []
    for one in settings:
        sampled = rng.choice(rows, len(rows))
        seed = {"random_state": int(rng.integers(2**31 - 1))} if seeded else {}
        jobs.append((one | seed, sampled))
    return many(fit_one, jobs, sample, estimator)


def fit_one(job: tuple[Settings, NDArray[np.int64]], sample: Sample, estimator: Any) -> Tree:
    """A tree with the given settings, from the given rows."""
    return sample.fit(estimator, *job)


def spread_settings(
    settings: list[Settings], n_trees: int, rng: np.random.Generator
) -> list[Settings]:
    """`n_trees` settings, each about equally often, in random order."""
    order = [k for _ in range(-(-n_trees // len(settings))) for k in rng.permutation(len(settings))]
    return [settings[k] for k in order[:n_trees]]


class ScoredTree:
    """A tree as a classifier of the observed classes, for scikit-learn's scorers."""

    _estimator_type = "classifier"

    def __init__(self, tree: Tree, classes: NDArray[Any]) -> None:
        self.tree, self.classes_ = tree, classes
        self._columns = match_labels(classes.tolist(), tree.classes.tolist())

    def __sklearn_tags__(self) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier().__sklearn_tags__()

    def fit(self, X: Any, y: Any) -> "ScoredTree":
        """Scorers expect the method; the tree is fitted already."""
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return self.tree.predict_proba(X)[:, self._columns]

    def predict(self, X: Any) -> NDArray[Any]:
        return self.tree.predict(X)


def score_trees(
    trees: Sequence[Tree], sample: Sample, held: NDArray[np.int64], X: Any, scoring: Any
) -> NDArray[np.float64]:
    """Score of each tree on held-out rows; by default the area under the ROC curve."""
    truth, values = sample.labels[held], sample.values[held]
    if scoring is None:
        return np.array(
            [mean_area(tree.value[tree.apply_encoded(values)], truth) for tree in trees]
        )
    weights = {} if sample.weights is None else {"sample_weight": sample.weights[held]}
    if scoring == LOG_LOSS:  # classes that the rows lack, or trees do not know, included
        given = [tree.value[tree.apply_encoded(values)] for tree in trees]
        own = [np.log(p[np.arange(len(held)), truth].clip(LEAST_SHARE)) for p in given]
        return np.array([float(np.average(p, weights=weights.get("sample_weight"))) for p in own])
    from sklearn.metrics import get_scorer

    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    rows, y = Table.pick(X, held), sample.classes[truth]
    observed = sample.classes[np.unique(sample.labels)]
    return np.array(
        [float(scorer(ScoredTree(tree, observed), rows, y, **weights)) for tree in trees]
    )


def mean_area(
    shares: NDArray[np.float64],
    truth: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
) -> float:
    """Area under the ROC curve; above two classes the mean of each class against the rest."""
    observed = np.unique(truth)
    if len(observed) < 2:
        return float(np.average(shares.argmax(axis=1) == truth, weights=weights))
    scored = observed[1:] if len(observed) == 2 else observed
    areas = [roc_area(shares[:, label], truth == label, weights) for label in scored]
    return float(np.mean(areas))


Columns = Mapping[str, NDArray[Any]]
Select = str | float | Callable[[Columns], Any]
NAMED = ("knee", "tolerance", "relative-tolerance", "mean")


def on_frontier(costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Flag rows of costs (n, k) that no other row dominates: nowhere worse and somewhere better."""
    dominated = np.zeros(len(costs), bool)
    for row, cost in enumerate(costs):
        dominated[row] = ((costs <= cost).all(axis=1) & (costs < cost).any(axis=1)).any()
    return ~dominated


def check_select(select: Any) -> None:
    """Refuse a value of `select` that `choose` cannot use."""
    number = isinstance(select, Real) and not isinstance(select, bool)
    share = number and 0 <= float(select) <= 1
    if not (share or callable(select) or (isinstance(select, str) and select in NAMED)):
        raise ValueError(
            f"select must be one of {NAMED}, a weight of closeness from 0 to 1, or a function of "
            f"the candidates that returns a value for each, got {select!r}."
        )


def choose(
    columns: Columns, frontier: NDArray[np.int64], select: Select, max_score_loss: float
) -> int:
    """Index of the chosen candidate, one of those on the frontier.

    "knee" is the point farthest from the line between the ends of the frontier; "tolerance" the
    nearest tree within `max_score_loss` of the best score, "relative-tolerance" within that share
    of it (eq. 4, first form); "mean" the largest (score - distance) / 2 (eq. 4, second form), the
    distance divided by the largest one of trees of the greatest depth (Proposition 2); a number the
    weight of closeness in a sum of closeness and score, both scaled to the frontier; a callable
    maps the columns to values, of which the largest wins.
    """
    # by decisions where they were measured; between equal ones the nearer tree
    changed = columns.get("changed", columns["distance"])[frontier]
    distance, score = columns["distance"][frontier], columns["score"][frontier]
    if callable(select):
        values = np.asarray(select(columns), dtype=np.float64)
        if values.shape != columns["score"].shape:
            raise ValueError(
                f"select must return one value a candidate, {len(columns['score'])} in all, "
                f"got shape {values.shape}."
            )
        return int(frontier[values[frontier].argmax()])
    if select == "tolerance":
        utility = np.where(score >= score.max() - max_score_loss - 1e-12, -changed, -np.inf)
    elif select == "relative-tolerance":
        enough = score >= score.max() - max_score_loss * abs(score.max()) - 1e-12
        utility = np.where(enough, -distance, -np.inf)
    elif select == "mean":
        depth = max(int(columns["depth"].max()), 1)
        utility = (score - distance / (2**depth * (2 * depth + 1))) / 2
    else:
        weight = 0.5 if select == "knee" else float(select)
        steady = 1 - (_unit(changed) + _unit(distance)) / 2
        utility = weight * steady + (1 - weight) * _unit(score)
    best = np.flatnonzero(utility == utility.max())
    return int(frontier[best[np.lexsort((distance[best], -score[best]))[0]]])


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values scaled to 0..1; all 0 where they are equal."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def check_enough_rows(labels: NDArray[np.int64]) -> None:
    """At least two rows of some class: one for training and one for validation."""
    if len(labels) < 4 or np.bincount(labels).max() < 2:
        raise UnsuitableDataError(
            f"n_samples={len(labels)} rows are too few for training and validation: "
            "at least 4 are needed, 2 of them of one class."
        )


def list_candidates(
    trees: Sequence[Tree],
    columns: Mapping[str, NDArray[Any]],
    scores: NDArray[np.float64],
    origin: Sequence[str],
    settings: Sequence[Settings],
    complexity: bool,
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    """The table of candidates, and those on the frontier, nearest first.

    columns are costs, `distance` among them; a setting that a candidate lacks is None.
    """
    leaves = np.array([tree.n_leaves for tree in trees])
    costs = [*columns.values(), -scores, *([leaves] if complexity else [])]
    flags = on_frontier(np.stack(costs, axis=1).astype(np.float64))
    frontier = np.flatnonzero(flags)
    frontier = frontier[np.lexsort((-scores[frontier], columns["distance"][frontier]))]
    table = {
        **columns,
        "score": scores,
        "n_leaves": leaves,
        "depth": np.array([tree.depth for tree in trees]),
        "origin": np.array(origin),
        "on_frontier": flags,
    }
    for name in sorted({name for one in settings for name in one}):
        table[f"param_{name}"] = np.array([one.get(name) for one in settings], dtype=object)
    return table, frontier
