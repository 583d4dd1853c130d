"""RiskScoreClassifier: a risk score with small integer points, robust to noise."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from steadytree._base.validation import Boolean, Integer, OneOf, Parameters, Real, validate
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.base import LearnerMixin, read_rows
from steadytree.models.risk_table import RiskTable
from steadytree.models.scorecard import Scorecard
from steadytree.riskscore import boosting, candidates, logistic
from steadytree.riskscore.boosting import Boosting, Points
from steadytree.riskscore.candidates import DerivedFeatures, LabelledRows, TrainingRows

MOST_POINTS = {"majority": 10, "logistic": 5}
NO_LIMIT = 10**6
PARAMETERS: Parameters = {
    "loss": OneOf("auto", "majority", "logistic"),
    "directions": OneOf("both", "up"),
    "as_published": Boolean(),
    "tau": Real(0, 1, also=("1se",)),
    "gamma": Real(above=0, below=0.5, also=("cv",)),
    "n_rounds": Integer(1, 1000, also=("cv",)),
    "max_conditions": Integer(1, also=(None,)),
    "max_points": Integer(1, also=(None,)),
}


class RiskScoreClassifier(LearnerMixin, ClassifierMixin, BaseEstimator):
    """A risk score: conditions with small integer points, robust to noise by construction.

    Conditions are chosen on rows that noise of size `tau` has moved against their label. Every
    training row that is correct after that move is correct after any move of that size, so
    `certified_accuracy_` is proven for the training rows; `steadytree.certify` gives the exact
    value for any rows. With three or more classes each class has its own points and the largest
    total wins.

    Parameters
    ----------
    loss : {"auto", "majority", "logistic"}, default="auto"
        "majority" boosts equal votes (Boost-by-Majority). "logistic" minimises the logistic loss
        of the moved rows and rounds the weights. "auto" is "majority", unless its accuracy is not
        above the share of the most frequent class by two standard errors, as with a rare outcome:
        then "logistic", provided that its totals rank held-out rows better than chance.
    tau : float or "1se", default="1se"
        Noise that the fit is robust to, as a share of each column's range in the
        training rows; 0/1 columns, categories and missing values are not moved by it. "1se" takes,
        out of a few sizes, the largest up to which the cross-validated accuracy stays within one
        standard error of the best, the error of differences on the same held-out rows. "logistic"
        compares areas under the ROC curve instead where no size has an accuracy above the share
        of the most frequent class by two standard errors.
    max_conditions : int or None, default=10
        Maximum number of conditions (for each class, above two).
    directions : {"both", "up"}, default="both"
        Whether points are given for small values too, or for large ones only.
    monotone : mapping of name to {"up", "down"}, optional
        Columns whose larger values may only raise ("up") or lower ("down") the total of the
        second class. For two classes.
    max_points : int or None, default=None
        Maximum points of one condition; None is 10 for "majority" and 5 for "logistic".
    forced, forbidden : sequence of str, optional
        Columns that must be used, or must not. A forced column needs two values.
    gamma : float in (0, 0.5) or "cv", default="cv"
        Advantage over one half that every vote is expected to have; not used by "logistic".
    n_rounds : int or "cv", default="cv"
        Maximum number of votes; not used by "logistic".
    as_published : bool, default=False
        The published algorithm without changes, for two classes: see `published`.
    random_state : int, RandomState or None, default=None
        Seed for the rows that settings are chosen on, where there are more than 10,000, and for
        the folds of up to 1,000 rows for "1se".

    Attributes
    ----------
    card_ : Scorecard
    risk_table_ : RiskTable
        Totals with counts, shares and intervals on the training rows.
    certified_accuracy_ : float
        Share of training weight that is correct under every noise of size `tau_`: a proven lower
        bound on the astuteness on the training rows.
    loss_ : {"majority", "logistic"}
        The loss that was used.
    tau_, gamma_, n_rounds_ : settings that were used; the last two None for "logistic"
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X had column names

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = RiskScoreClassifier(tau=0.05, max_conditions=5, random_state=0).fit(X, y)
    >>> model.card_.n_conditions <= 5, bool(model.score(X, y) > 0.93)
    (True, True)
    """

    card_: Scorecard
    tau_: float
    gamma_: float | None
    n_rounds_: int | None

    def __init__(
        self,
        loss="auto",
        tau="1se",
        max_conditions=10,
        directions="both",
        monotone=None,
        max_points=None,
        forced=None,
        forbidden=None,
        gamma="cv",
        n_rounds="cv",
        as_published=False,
        random_state=None,
    ):
        self.loss = loss
        self.tau = tau
        self.max_conditions = max_conditions
        self.directions = directions
        self.monotone = monotone
        self.max_points = max_points
        self.forced = forced
        self.forbidden = forbidden
        self.gamma = gamma
        self.n_rounds = n_rounds
        self.as_published = as_published
        self.random_state = random_state

    @classmethod
    def published(cls, tau: float = 0.05, gamma: float = 0.01) -> "RiskScoreClassifier":
        """BBM-RS as its authors ran it, for comparison.

        Points for large values only, gamma fixed, the last vote kept although it fails, no tuned
        offset, all columns moved by noise, settings chosen on all rows. It is for two classes and
        expects numbers scaled to [0, 1]; its intercept is a column of ones that the caller adds.
        """
        limits = {"max_conditions": None, "max_points": NO_LIMIT}
        return cls("majority", tau, directions="up", gamma=gamma, as_published=True, **limits)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RiskScoreClassifier":
        """Fit the risk score.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Numbers, text, categories; may have missing values.
        y : array-like of shape (n_samples,)
            Class labels, at least two.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w equal rows; rows of weight 0 are left out.

        Returns
        -------
        self : RiskScoreClassifier
        """
        self._check_parameters()
        rows = read_rows(self, X, y, sample_weight)
        self.classes_, labels = np.unique(rows.labels, return_inverse=True)
        self._check_classes()
        space = FeatureSpace.observe(rows)
        values = np.asarray(space.encode(rows), np.float64)
        weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
        self._fit_rows(LabelledRows(space, self.classes_, values, labels, weights))
        totals = self.card_.holds_encoded(values) @ self.card_.points + self.card_.offset
        totals = totals[:, 0] if self.card_.is_binary else totals
        self.risk_table_ = RiskTable.of(self.card_, totals, labels, weights)
        self.card_ = replace(self.card_, risk_table=self.risk_table_)
        if self.card_.n_conditions == 0:
            warnings.warn(
                f"no condition was kept with loss={self.loss_!r} and tau={self.tau_:g}: the score "
                "is empty and always predicts the most frequent class, with its share as the risk.",
                stacklevel=2,
            )
        return self

    def _check_parameters(self) -> None:
        """Refuse invalid parameters, before the data are read."""
        validate(self, PARAMETERS)
        if self.as_published and (self.loss == "logistic" or self.directions != "up"):
            raise ValueError("as_published needs loss='majority' and directions='up'.")
        n_forced = len(candidates.names_of(self, "forced"))
        candidates.names_of(self, "forbidden")
        if self.monotone is not None and not isinstance(self.monotone, Mapping):
            kind = type(self.monotone).__name__
            raise ValueError(f"monotone must map names to 'up' or 'down', got a {kind}.")
        for limit in ("max_conditions", "n_rounds")[: 1 if self.loss == "logistic" else 2]:
            most = getattr(self, limit)
            if isinstance(most, Integral) and n_forced > most:
                raise ValueError(
                    f"forced names {n_forced} columns, more than {limit}={most} allows: raise it."
                )

    def _check_classes(self) -> None:
        """Refuse numbers of classes that the algorithm does not support."""
        classes = self.classes_
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class only, {str(classes[0])!r}: at least two are needed."
            )
        if self.as_published and len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The published algorithm takes two "
                f"classes, but y has {len(classes)}: leave as_published out, or fit one class "
                "against the rest."
            )

    def _fit_rows(self, data: LabelledRows) -> None:
        """Fit by votes or by the logistic loss; "auto" tries votes first."""
        features = DerivedFeatures.of(self, data)
        targets = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        labels, weights = data.labels, data.weights
        rows = [TrainingRows(features, np.where(labels == k, 1, -1), weights) for k in targets]
        forced = candidates.check_forced(self, data)
        seed = int(check_random_state(self.random_state).randint(2**31))
        if self.loss != "logistic":
            self.loss_ = "majority"
            self._set_scorecard(self._fit_votes(rows, forced, seed), data)
            answer = self.card_.answer_encoded(data.values)
            if self.loss == "majority" or self.as_published:
                return
            if boosting.beats_most_frequent(answer, labels, weights):
                return
        tau, ranks = self._logistic_noise(rows, forced, seed)
        if ranks or self.loss == "logistic":
            self.loss_, self.tau_, self.gamma_, self.n_rounds_ = "logistic", tau, None, None
            self._set_scorecard([self._logistic(one, tau, forced) for one in rows], data)

    def _set_scorecard(self, found: list[Points], data: LabelledRows) -> None:
        if len(found) == 1:
            self.card_ = logistic.binary_scorecard(found[0], data)
            correct = (found[0].worst_totals > 0) == (data.labels == 1)
        else:
            self.card_, worst = logistic.joint_scorecard(found, data)
            correct = worst.argmax(axis=1) == data.labels
        self.certified_accuracy_ = float(np.average(correct, weights=data.weights))

    def _fit_votes(
        self, rows: list[TrainingRows], forced: tuple[int, ...], seed: int
    ) -> list[Points]:
        """Points of each class against the rest, all with the same settings."""
        settings = self._settings(forced)
        if self.tau == "1se":
            how = boosting.choose_noise(rows, boosting.TAUS, settings, seed)
        else:
            how = settings[0] if len(settings) == 1 else boosting.choose(rows, settings, seed)[0]
        self.tau_, self.gamma_, self.n_rounds_ = how.tau, how.gamma, how.rounds
        found = [self._majority(one, how) for one in rows]
        # totals of several classes are compared with each other, so their points are not divided
        several = len(found) > 1 or self.as_published
        return found if several else [boosting.smallest_points(found[0])]

    def _settings(self, forced: tuple[int, ...]) -> list[Boosting]:
        usual = boosting.PUBLISHED_ROUNDS if self.as_published else boosting.ROUNDS
        if self.n_rounds == "cv":  # each forced column takes a vote
            rounds = [r for r in usual if r >= len(forced)] or [len(forced)]
        else:
            rounds = [self.n_rounds]
        gammas = boosting.GAMMAS if self.gamma == "cv" else (self.gamma,)
        tau = 0.0 if self.tau == "1se" else float(self.tau)
        fixed = tau, self._most, forced, self.as_published
        return [Boosting(int(r), float(g), *fixed) for r in rounds for g in gammas]

    def _majority(self, rows: TrainingRows, how: Boosting) -> Points:
        found, most = boosting.boost(rows, how), self._most_points("majority")
        if not (found.points > most).any():
            return found
        points = np.minimum(found.points, most)
        limited = replace(found, points=points, offset=0)
        count = boosting.worst_totals(limited, rows, how.tau * candidates.SLACK)
        offset = boosting.tuned_offset(count, rows, -(int(points.sum()) // 2))
        return Points(found.conditions, points, offset, count + offset)

    def _logistic(
        self, rows: TrainingRows, tau: float, forced: tuple[int, ...], thresholds: Any = None
    ) -> Points:
        fit = logistic.fit_logistic(rows, tau, self._most, forced, thresholds)
        most = self._most_points("logistic")
        return logistic.round_points(fit, rows.labels, rows.weights, most)

    def _logistic_noise(
        self, rows: list[TrainingRows], forced: tuple[int, ...], seed: int
    ) -> tuple[float, bool]:
        """Noise level, and whether held-out rows are ranked better than by chance."""
        sizes = boosting.TAUS if self.tau == "1se" else (float(self.tau),)
        if not rows[0].features.moved.any():
            sizes = sizes[:1]  # noise moves no column, so all sizes are the same
        if len(sizes) == 1 and self.loss == "logistic":
            return sizes[0], True
        divisions = boosting.divisions_of(len(rows[0].labels), seed)
        samples = [one.sample(boosting.MOST_ROWS, seed) for one in rows]
        folds = [pair for one in samples for pair in one.folds(divisions)]
        if len(folds) < 2:
            return sizes[0], False
        correct, ranked = np.empty((2, len(sizes), len(folds)))
        for k, (fit, held) in enumerate(folds):
            thresholds = logistic.thresholds_of(fit)
            for size, tau in enumerate(sizes):
                found = self._logistic(fit, tau, forced, thresholds)
                correct[size, k] = boosting.noisy_accuracy(found, held, 0.0)
                ranked[size, k] = boosting.ranking_auc(found, held)
        frequent = np.array([held.most_frequent for _, held in folds])
        # where accuracy is no better than the most frequent class, an empty score looks as good
        best = correct[correct.mean(axis=1).argmax()]
        is_informative = boosting.is_above(best, frequent, errors=2)
        chosen = boosting.last_within_error(list(correct if is_informative else ranked))
        # not the error over folds: they share rows, and the best of several levels was taken
        chance = max(boosting.chance_error(one) for one in samples if one.most_frequent < 1)
        return sizes[chosen], bool(ranked[chosen].mean() > 0.5 + 2 * chance)

    @property
    def _most(self) -> int:
        return NO_LIMIT if self.max_conditions is None else int(self.max_conditions)

    def _most_points(self, loss: str) -> int:
        return MOST_POINTS[loss] if self.max_points is None else int(self.max_points)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted class of each row; of two classes the second where the total is above 0."""
        table = self._check_rows(X)
        return self.card_.predict(table)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Risk of each class, in order of ``classes_``."""
        table = self._check_rows(X)
        return self.card_.predict_proba(table)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Totals, minus one half for two classes; one column per class above two."""
        totals = self.total(X).astype(np.float64)
        return totals - 0.5 if self.card_.is_binary else totals

    def total(self, X: Any) -> NDArray[np.int64]:
        """Points with the offset: (n_rows,), or (n_rows, n_classes) above two classes."""
        table = self._check_rows(X)
        return self.card_.score(table)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the card to a ``*.card.json`` file; `steadytree.load` reads it back."""
        from steadytree.models.files import save

        check_is_fitted(self)
        save(self.card_, path)

    def to_sklearn(self) -> Any:
        """The card as a genuine scikit-learn tree; for cards of up to 8 conditions.

        Categories become 0/1 columns: it predicts on ``one_hot(card_.to_tree(), X)``.
        """
        from steadytree.models.sklearn import to_sklearn

        check_is_fitted(self)
        return to_sklearn(self.card_.to_tree())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # with points for large values only, small values cannot be told apart
        tags.classifier_tags.poor_score = self.directions == "up"
        tags.classifier_tags.multi_class = not self.as_published
        return tags
