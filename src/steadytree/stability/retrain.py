"""RetrainedTreeClassifier: a tree learned again with the fewest changed decisions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from steadytree._base.exceptions import UnsuitableDataError
from steadytree._base.validation import Integer, OneOf, Parameters, Real, validate
from steadytree.data.dataset import read_fingerprints, rows_in
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from steadytree.models.base import TreeClassifierMixin, read_rows
from steadytree.models.boxes import in_double
from steadytree.models.tree import Tree
from steadytree.stability.approach import Approach
from steadytree.stability.bootstrap import Sample, mean_area
from steadytree.stability.neighbours import RATES, Neighbours
from steadytree.stability.new_rows import NewRows, read_previous, row_losses
from steadytree.stability.steady_tree import SteadyTreeClassifier

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
N_FOLDS = 5
FEW_ROWS, MOST_REPEATS = 1_000, 5  # fewer rows are divided several times
LEAST_ROWS = 4
MOST_LEAVES = 32  # of the steady tree
MOST_TRIED = 50  # points whose distance is looked at for one rate
NAMES = {"accuracy": "accuracy", "log_loss": "log loss", "roc_auc": "AUC"}
PARAMETERS: Parameters = {
    "max_score_loss": Real(0),
    "scoring": OneOf(*NAMES),
    "n_repeats": Integer(1, also=(None,)),
}


class RetrainChoice(NamedTuple):
    """What was chosen, what it costs, and why; scores are on held-out rows."""

    reason: str
    step: int  # index in `steps_`
    score: float  # a loss for "log_loss"
    refit_score: float
    flips: float  # changed decisions of the new rows
    changed_splits: int
    distance: float  # path distance to the tree in use


class RetrainedTreeClassifier(TreeClassifierMixin, ClassifierMixin, BaseEstimator):
    """A tree for new rows that changes few decisions of the tree in use.

    At each node of the tree in use, with the new rows that reach it, the split may stay, move to
    another threshold, set of categories or side of missing values, or give way to the best new
    one above the old branches; the node may become a leaf, or any pruning of a sub-tree grown from
    the new rows (at the root: of a plain refit). Loss, changed decisions, changed splits and leaves
    add over the branches, so the Pareto frontier of all these trees is found exactly. Along it,
    cross-fitting finds how little must change so that the score is at most `max_score_loss` below
    that of a plain refit. The tree never changes more decisions of the new rows than the refit,
    and never lies farther from the tree in use by path distance.

    Parameters
    ----------
    previous : Tree, fitted learner or fitted scikit-learn tree, default=None
        The tree in use, kept by ``clone``. The new tree has its classes and those of ``y``. None
        gives the plain refit.
    estimator : tree learner, default=None
        Learner of the plain refit. By default that of `previous` where it is a fitted learner,
        else `SteadyTreeClassifier` with as many leaves, and two more for each class that
        `previous` never predicts.
    max_score_loss : float, default=0.01
        Score that may be given up against the plain refit; infinity keeps the tree in use.
    scoring : {"accuracy", "log_loss", "roc_auc"}, default="accuracy"
        What the limit is on. The frontier is of wrong decisions for "accuracy", else of log loss.
    n_repeats : int or None, default=None
        How often the rows are divided into 5 folds; by default once from 1,000 rows on, and up
        to 5 times below.
    previous_names : mapping, default=None
        New names of columns that were renamed since `previous` was learned.
    random_state : int, RandomState or None, default=0
        Seed of the folds, and of `estimator` where it has none.

    Attributes
    ----------
    tree_ : Tree
        The chosen tree.
    choice_ : RetrainChoice
        Why it was chosen and what the limit cost; None without `previous`.
    steps_ : dict of arrays
        Trees along the frontier, from keeping the tree in use to the plain refit: ``score`` on rows
        not learned from, ``flips``, ``changed_splits``, ``n_leaves``, ``distance`` and the
        ``point`` of the frontier. Empty without `previous`, as is `frontier_`.
    frontier_ : dict of arrays
        ``loss``, ``flips``, ``changed_splits`` and ``n_leaves`` on the new rows of all trees on
        the frontier; ``frontier_tree(k)`` makes the k-th.
    exact_ : bool
        Whether the frontier is complete; one of very many points is thinned.
    refit_ : Tree
        The plain refit.
    previous_tree_ : Tree or None
        The tree in use over the columns and classes of `tree_`.
    estimator_ : tree learner
        The learner of the plain refit, not fitted.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X had column names

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> old = DecisionTreeClassifier(max_leaf_nodes=6, random_state=0).fit(X[:250], y[:250])
    >>> model = RetrainedTreeClassifier(previous=old).fit(X[250:], y[250:])
    >>> flips = model.steps_["flips"]
    >>> bool(flips[model.choice_.step] < flips[-1])  # fewer than by the plain refit
    True
    """

    def __init__(
        self,
        previous=None,
        estimator=None,
        max_score_loss=0.01,
        scoring="accuracy",
        n_repeats=None,
        previous_names=None,
        random_state=0,
    ):
        self.previous = previous
        self.estimator = estimator
        self.max_score_loss = max_score_loss
        self.scoring = scoring
        self.n_repeats = n_repeats
        self.previous_names = previous_names
        self.random_state = random_state

    def __sklearn_clone__(self) -> "RetrainedTreeClassifier":
        # the tree in use is data: a fitted learner must stay fitted
        parameters = self.get_params(deep=False)
        copied = {
            name: clone(value, safe=False)
            for name, value in parameters.items()
            if name != "previous"
        }
        return type(self)(previous=self.previous, **copied)

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, seen: Any = None
    ) -> "RetrainedTreeClassifier":
        """Learn from new rows, near the tree in use.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Numbers, text, categories; may have missing values, new columns and new categories.
        y : array-like of shape (n_samples,)
            Class labels, new ones too.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w equal rows; rows of weight 0 are left out.
        seen : bool array-like of shape (n_samples,), or path of a fingerprint file, optional
            Rows that `previous` was learned from. They are learned from, but do not judge it, since
            it looks better on them than it is.

        Returns
        -------
        self : RetrainedTreeClassifier
        """
        validate(self, PARAMETERS)
        data = read_rows(self, X, y, sample_weight)
        weights = np.asarray(sample_weight)
        used = np.flatnonzero(weights)
        if weights.ndim == 1 and len(used) < len(weights):  # rows of weight 0 are left out
            X = Table.pick(X, used)
            if seen is not None and not isinstance(seen, str | Path):
                seen = np.asarray(seen)[used]
        space, classes = FeatureSpace.observe(data).bare(), np.unique(data.labels)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        old = None
        if self.previous is not None:
            old, space = read_previous(self.previous, space, classes, self.previous_names)
            classes = old.classes
        self.estimator_ = self._learner(old, seed)
        sample = Sample.of(X, self.estimator_, data.labels, space, data.table, classes)
        rows = _Rows(sample, self.estimator_, data.weights)
        self.previous_tree_ = old
        self.refit_ = rows.refit(np.arange(data.n_rows))
        self.tree_, self.exact_ = self.refit_, True
        self.choice_: RetrainChoice | None = None
        self.steps_: dict[str, NDArray[Any]] = {}
        self.frontier_: dict[str, NDArray[Any]] = {}
        if old is not None:
            judged = _unseen(seen, data.table, data.labels)
            self._choose(rows, old, judged, seed)
        elif seen is not None:
            raise ValueError("seen marks the rows previous was learned from: give previous too.")
        self.classes_ = self.tree_.classes
        return self

    def frontier_tree(self, point: int) -> Tree:
        """The tree of a point of ``frontier_``."""
        Integer(0, len(self.frontier_["loss"]) - 1).check(point, "point")
        return self._neighbours.build(point)

    def frontier_text(self) -> str:
        """Why the tree was chosen, and the steps along the frontier as a table.

        Returns
        -------
        str
            Empty without `previous`.
        """
        check_is_fitted(self)
        if self.choice_ is None:
            return ""
        points, last = self.steps_["point"], len(self.steps_["point"]) - 1
        lines = [self.choice_.reason, "", "changed decisions  splits  leaves  distance  score"]
        for k in range(last + 1):
            if k not in (0, last, self.choice_.step) and points[k] == points[k - 1]:
                continue  # the next rate finds the same tree
            shown = [self.steps_[name][k] for name in (*FRONTIER[1:], "distance")]
            if k == self.choice_.step:  # which was drawn nearer
                made = self.choice_
                shown = [made.flips, made.changed_splits, self.tree_.n_leaves, made.distance]
            flips, splits, leaves, distance = shown
            score = self.steps_["score"][k]
            notes = {0: "tree in use", last: "plain refit"} | {self.choice_.step: "chosen"}
            line = f"{flips:17,.0f}  {splits:6.0f}  {leaves:6.0f}  {distance:8.2f}  {score:.3f}"
            lines.append(f"{line}  {notes.get(k, '')}".rstrip())
        return "\n".join(lines)

    def _learner(self, old: Tree | None, seed: int) -> Any:
        """An unfitted learner of the plain refit."""
        if self.estimator is not None:
            learner = clone(self.estimator)
        elif isinstance(self.previous, BaseEstimator):
            learner = clone(getattr(self.previous, "estimator_", self.previous))
        else:
            learner = SteadyTreeClassifier(random_state=seed)
            if old is not None:  # as large, and with room for classes it never predicts
                n_new = len(old.classes) - len(np.unique(old.label[old.is_leaf]))
                size = min(max(old.n_leaves + 2 * n_new, 2), MOST_LEAVES)
                learner.set_params(max_leaf_nodes=size)
        known = learner.get_params(deep=False)
        for name in ("ledger", "monotonic_cst"):
            if known.get(name) is not None and old is not None:
                why = "spends a budget at every fit" if name == "ledger" else "is not kept"
                raise ValueError(
                    f"estimator has {name}, which {why} where the tree stays near previous: "
                    "pass another estimator, or fit it without previous."
                )
        if known.get("random_state", 0) is None:  # ties are broken by it too
            learner.set_params(random_state=seed)
        return learner

    def _choose(self, rows: "_Rows", old: Tree, judged: Integers, seed: int) -> None:
        """Find by cross-fitting how little may change, then solve on all rows."""
        repeats = self.n_repeats or int(min(MOST_REPEATS, -(-FEW_ROWS // len(judged))))
        scores, changes = np.zeros(len(RATES) + 1), np.zeros(len(RATES) + 1)
        labels, weights = rows.sample.labels, rows.weights
        for held in _folds(labels, judged, repeats, seed):
            kept = np.setdiff1d(np.arange(len(labels)), held)
            found = rows.solve(old, rows.refit(kept), kept, self.scoring)
            trees, points, _ = _ladder(found)
            share = weights[held].sum() / weights[judged].sum() / repeats
            scores += share * np.array([rows.score(tree, held, self.scoring) for tree in trees])
            changes += share * found.change(points)
        sign = -1 if self.scoring == "log_loss" else 1
        allowed = np.flatnonzero(sign * (scores - scores[-1]) >= -self.max_score_loss - 1e-12)
        step = int(allowed[np.argsort(changes[allowed], kind="stable")[0]])
        found = rows.solve(old, self.refit_, np.arange(len(labels)), self.scoring)
        trees, points, index = _ladder(found)
        thresholds = [column.thresholds for column in found.bins.space]
        self.tree_ = Approach(found.rows, trees[step], thresholds).nearest()
        self._neighbours, self.exact_ = found, found.exact
        self.frontier_ = dict(zip(FRONTIER, found.frontier.points.T.copy(), strict=True))
        self.steps_ = {
            "score": scores,
            **dict(zip(FRONTIER[1:], points.T[1:].copy(), strict=True)),
            "distance": found.rows.distance(trees),
            "point": index,
        }
        flips, changes = found.rows.measure(self.tree_).tolist()[1:3]
        self.choice_ = RetrainChoice(
            self._reason(step, flips, changes, weights.sum()),
            step,
            float(scores[step]),
            float(scores[-1]),
            flips,
            int(changes),
            float(found.rows.distance([self.tree_])[0]),
        )

    def _reason(self, step: int, flips: float, changes: float, total: float) -> str:
        """What was chosen against the plain refit, and what a better step would cost."""
        score, cost, name = self.steps_["score"], self.steps_["flips"], NAMES[self.scoring]
        sign = -1 if self.scoring == "log_loss" else 1
        splits = "1 split changes" if changes == 1 else f"{changes:.0f} splits change"
        text = (
            f"{name} {score[step]:.3f} on held-out rows, {score[-1]:.3f} by a plain refit "
            f"(limit {self.max_score_loss:g}). {flips:,.0f} of {total:,.0f} decisions change, "
            f"{cost[-1]:,.0f} by the refit; {splits}, "
            f"{self.steps_['changed_splits'][-1]:.0f} by the refit."
        )
        gain, more = sign * (score - score[step]), cost - flips
        better = np.flatnonzero((gain > 1e-9) & (more > 0))
        if len(better) == 0:
            return text
        least = (more[better] / gain[better]).min() / 100
        what = "0.01 less log loss" if sign < 0 else f"One more point of {name}"
        return f"{text} {what} costs {least:,.0f} changed decisions."


FRONTIER = ("loss", "flips", "changed_splits", "n_leaves")


class _Rows:
    """The new rows, how a plain refit learns from some of them, and scores on others."""

    def __init__(self, sample: Sample, learner: Any, weights: Floats | None) -> None:
        self.sample, self.learner, self.given = sample, learner, weights
        self.weights = np.ones(len(sample.labels)) if weights is None else weights
        self.values = np.asarray(sample.values, np.float64)

    def refit(self, rows: Integers) -> Tree:
        weights = {} if self.given is None else {"sample_weight": self.given[rows]}
        return in_double(self.sample.fit(self.learner, {}, rows, **weights))

    def solve(self, old: Tree, refit: Tree, rows: Integers, scoring: str) -> Neighbours:
        part = self.values[rows], self.sample.labels[rows], self.weights[rows]
        return Neighbours(NewRows(old, *part, log_loss=scoring != "accuracy"), refit)

    def score(self, tree: Tree, held: Integers, scoring: str) -> float:
        """Score on some rows; a loss for "log_loss"."""
        leaves, labels = tree.apply_encoded(self.values[held]), self.sample.labels[held]
        if scoring == "roc_auc":
            return mean_area(tree.value[leaves], labels, self.weights[held])
        losses = row_losses(tree, leaves, labels, scoring == "log_loss")
        loss = np.average(losses, weights=self.weights[held])
        return float(loss) if scoring == "log_loss" else 1 - float(loss)


def _ladder(found: Neighbours) -> tuple[list[Tree], Floats, Integers]:
    """For each rate the best tree not farther than the refit, and the refit at last.

    With loss, flips, changed splits and leaves of each, and its point of the frontier, -1 for the
    refit.
    """
    made: dict[int, tuple[Tree, bool]] = {}
    farthest = found.rows.distance([found.refit])[0] + 1e-9

    def is_near(point: int) -> bool:
        if point not in made:
            tree = found.build(point)
            made[point] = tree, bool(found.rows.distance([tree])[0] <= farthest)
        return made[point][1]

    picked: list[int] = []
    for rate in RATES:
        ranking = found.ranking(found.frontier.points, rate)[:MOST_TRIED].tolist()
        # the first is the tree in use, which lies nearest of all
        picked.append(next(filter(is_near, ranking), picked[-1] if picked else ranking[0]))
    trees = [made[point][0] for point in picked]
    points = np.vstack([found.frontier.points[picked], found.refit_point])
    return [*trees, found.refit], points, np.array([*picked, -1])


def _folds(labels: Integers, judged: Integers, repeats: int, seed: int) -> Iterator[Integers]:
    """Rows held out in turn, each class spread over the folds, several times over."""
    rng, n_folds = np.random.default_rng(seed), min(N_FOLDS, len(judged))
    for _ in range(repeats):
        order = rng.permutation(judged)
        order = order[np.argsort(labels[order], kind="stable")]
        for fold in range(n_folds):
            yield order[fold::n_folds]


def _unseen(seen: Any, table: Table, labels: NDArray[Any]) -> Integers:
    """Rows that the tree in use was not learned from."""
    if isinstance(seen, str | Path):
        seen = rows_in(read_fingerprints(seen), table, labels)
    flags = np.zeros(len(labels), bool) if seen is None else np.asarray(seen)
    if flags.shape != labels.shape or flags.dtype != bool:
        raise ValueError(
            f"seen must hold True or False for each row, {len(labels)} in all, "
            f"got shape {flags.shape} of {flags.dtype}."
        )
    unseen = np.flatnonzero(~flags)
    if len(unseen) < LEAST_ROWS:
        what = "rows" if seen is None else "rows that previous was not learned from"
        raise UnsuitableDataError(
            f"n_samples={len(unseen)} {what} are too few to learn from and to judge by: "
            f"at least {LEAST_ROWS} are needed."
        )
    return unseen
