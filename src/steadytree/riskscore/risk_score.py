"""RiskScoreClassifier: a risk score with small integer points, one row for each variable."""

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

from steadytree._base.validation import Integer, OneOf, Parameters, Real, Replaced, validate
from steadytree.data.dataset import Dataset
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.parts import Parts, is_parted
from steadytree.metrics.recount import recount_risks
from steadytree.models.base import LearnerMixin, fit_sample, read_rows, with_class_weight
from steadytree.models.risk_table import RiskTable
from steadytree.models.scorecard import Scorecard
from steadytree.riskscore import candidates
from steadytree.riskscore.banded_score import check_decision, described, empty_text, fit_banded
from steadytree.riskscore.candidates import USUAL, LabelledRows
from steadytree.riskscore.condition_score import NO_LIMIT, fit_conditions
from steadytree.riskscore.pool import ScorecardPool
from steadytree.robustness.certify import certificate_of
from steadytree.robustness.perturbation import Perturbation

PARAMETERS: Parameters = {
    "loss": Replaced("objective"),
    "tau": Replaced("noise"),
    "objective": OneOf("log_loss", "majority", "logistic", "published"),
    "noise": Real(0, 1, also=("1se",)),
    "max_conditions": Integer(1, also=(None, "auto")),
    "max_variables": Integer(1, also=(None,)),
    "max_points": Integer(1, also=(None,)),
    "pool_size": Integer(1, 100),
    "prevalence": Real(above=0, below=1, also=(None,)),
    "directions": OneOf("both", "up"),
    "gamma": Real(above=0, below=0.5, also=("cv",)),
    "n_rounds": Integer(1, 1000, also=("cv",)),
}


class RiskScoreClassifier(LearnerMixin, ClassifierMixin, BaseEstimator):
    """A risk score: points for bands of each variable, whose total stands for a risk.

    Thresholds are round numbers, categories are grouped, missing values have points of their own,
    and the risk rises or falls along a variable unless the data contradict it. Points are whole
    numbers from 0; the band of a row in each variable is exactly one. Risks are shrunken by as
    much as the search for bands is expected to overfit. With three or more classes each class has
    its own points and the largest total wins.

    Parameters
    ----------
    objective : {"log_loss", "majority", "logistic"}, default="log_loss"
        "log_loss" learns bands and risks. "majority" (equal votes, Boost-by-Majority) and
        "logistic" learn conditions for the accuracy under noise.
    noise : float or "1se", default=0.0
        Noise that the fit is robust to, as a share of each column's range in the training rows;
        0/1 columns, categories and missing values are not moved by it. Rows are moved against
        their label while conditions are chosen. "1se" takes, out of a few sizes, the largest up
        to which the cross-validated log loss (for "majority" and "logistic" the accuracy) stays
        within one standard error of the best.
    max_conditions : int, "auto" or None, default="auto"
        Maximum number of thresholds and groups of categories (for each class, above two). "auto"
        is 10, or for "log_loss" up to 16 splits and trends of at most six columns, whichever
        promises the lower log loss on new rows. A trend is one coefficient along up to eight bands
        of a number.
    max_variables : int or None, default=None
        Maximum number of columns; for "log_loss".
    positive : label, optional
        The event of two classes, whose risk the points add up to. Without it the second label in
        sorted order, as of 0 and 1, False and True, "no" and "yes".
    class_weight : mapping or "balanced", optional
        Weights of the classes in the choice of bands and points, and in a decision by risk. The
        risks themselves are still those of the rows as they are. For "log_loss".
    prevalence : float, optional
        Share of events among the people the score is for, where it differs from the rows, as in
        case-control samples. Risks are corrected to it.
    decision : float or mapping, default=0.5
        When the event is predicted: above a risk; {"cost": c} where a missed event costs c times
        as much as a false positive; {"sensitivity": s} or {"specificity": s} for a share of the
        training rows.
    monotone : mapping of name to {"up", "down", "free"}, optional
        Columns whose larger values may only raise or lower the total of the event, or may do
        both at no price. For two classes; categories need an order.
    max_points : int or None, default=None
        Maximum points of one variable (of one condition for "majority" and "logistic"); None is
        10, for "logistic" 5.
    forced, forbidden : sequence of str, optional
        Columns that must be used, or must not. A forced column needs two values.
    pool_size : int, default=1
        Number of scorecards in ``pool_``: the fitted one, and others by different variables whose
        log loss on the training rows is at most 2 % higher. For two classes and "log_loss".
    directions : {"both", "up"}, default="both"
        Whether points are given for small values too, or for large ones only.
    gamma : float in (0, 0.5) or "cv", default="cv"
        For "majority": advantage over one half that every vote is expected to have.
    n_rounds : int or "cv", default="cv"
        For "majority": maximum number of votes.
    random_state : int, RandomState or None, default=None
        Seed for the folds that settings are chosen on. "log_loss" with a given noise uses none.
    loss, tau : None
        Former names of `objective` and `noise`.

    Attributes
    ----------
    card_ : Scorecard
    risk_table_ : RiskTable
        Totals with counts, shares and intervals on the training rows.
    certified_accuracy_ : float
        Share of training weight that is correct under every noise of size `noise_`.
    pool_ : ScorecardPool or None
        Scorecards that are nearly as good: which variables they share, and their spread of risk
        for a row. None above two classes, and for objectives other than "log_loss".
    noise_ : float
    gamma_, n_rounds_ : settings that were used; None unless the objective is "majority"
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X had column names

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = RiskScoreClassifier(max_variables=4, positive=0).fit(X, y)
    >>> len(model.card_.variables) <= 4, bool(model.score(X, y) > 0.93)
    (True, True)
    """

    card_: Scorecard
    pool_: ScorecardPool | None
    noise_: float
    gamma_: float | None
    n_rounds_: int | None

    def __init__(
        self,
        objective="log_loss",
        noise=0.0,
        max_conditions="auto",
        max_variables=None,
        positive=None,
        class_weight=None,
        prevalence=None,
        decision=0.5,
        monotone=None,
        max_points=None,
        forced=None,
        forbidden=None,
        pool_size=1,
        directions="both",
        gamma="cv",
        n_rounds="cv",
        random_state=None,
        loss=None,
        tau=None,
    ):
        self.objective = objective
        self.noise = noise
        self.max_conditions = max_conditions
        self.max_variables = max_variables
        self.positive = positive
        self.class_weight = class_weight
        self.prevalence = prevalence
        self.decision = decision
        self.monotone = monotone
        self.max_points = max_points
        self.forced = forced
        self.forbidden = forbidden
        self.pool_size = pool_size
        self.directions = directions
        self.gamma = gamma
        self.n_rounds = n_rounds
        self.random_state = random_state
        self.loss = loss
        self.tau = tau

    @classmethod
    def as_published(cls, noise: float = 0.05, gamma: float = 0.01) -> "RiskScoreClassifier":
        """BBM-RS as its authors ran it, for comparison.

        Points for large values only, gamma fixed, the last vote kept although it fails, no tuned
        offset, all columns moved by noise, settings chosen on all rows. It is for two classes and
        expects numbers scaled to [0, 1]; its intercept is a column of ones that the caller adds.
        """
        limits = {"max_conditions": None, "max_points": NO_LIMIT}
        return cls("published", noise, directions="up", gamma=gamma, **limits)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RiskScoreClassifier":
        """Fit the risk score.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Numbers, text, categories; may have missing values.
        y : array-like of shape (n_samples,)
            Class labels, at least two. X may be a Parquet or Arrow file or a folder of such, y
            then being the name of the target, or both may be Dask collections: of more than
            100,000 rows the points are learned from so many, drawn by chance, and the table of
            risks counts all rows.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w equal rows; rows of weight 0 are left out.

        Returns
        -------
        self : RiskScoreClassifier
        """
        self._check_parameters()
        if is_parted(X):
            return self._fit_parts(Parts.of(X, y), sample_weight)
        rows = read_rows(self, X, y, sample_weight)
        self.classes_ = np.unique(rows.labels)
        self._check_classes()
        data, weighted = self._labelled(rows), with_class_weight(rows, self.class_weight)
        if weighted.n_rows < rows.n_rows:
            raise ValueError("class_weight must be above 0 for every class.")
        fitting = data.weights if weighted.weights is None else weighted.weights
        seed = int(check_random_state(self.random_state).randint(2**31))
        if self.objective == "log_loss":
            self._fit_bands(data, rows, fitting, seed)
        else:
            found, self.pool_ = fit_conditions(self, data, seed), None
            self.card_, self.certified_accuracy_, self.noise_, self.gamma_, self.n_rounds_ = found
            totals = data.totals(self.card_)
            table = RiskTable.of(self.card_, totals, data.labels, data.weights)
            self.card_ = replace(self.card_, risk_table=table)
        self.risk_table_ = self.card_.risk_table
        if self.card_.n_conditions == 0:
            text = empty_text(self.objective, self.noise_, np.bincount(data.labels).min())
            warnings.warn(text, stacklevel=2)
        return self

    def _fit_parts(self, parts: Parts, sample_weight: Any) -> "RiskScoreClassifier":
        """Learn the points from a sample of the rows, and count all of them by their totals."""
        if fit_sample(self, parts, sample_weight, ("class_weight",)).note:
            self.card_ = recount_risks(self.card_, parts)
            self.risk_table_ = self.card_.risk_table
        return self

    def _labelled(self, rows: Dataset) -> LabelledRows:
        """Encoded rows with the event as the second of two classes."""
        space, classes = FeatureSpace.observe(rows), self.classes_
        if self._is_turned:
            classes = classes[::-1]
        labels = np.searchsorted(self.classes_, rows.labels)
        labels = 1 - labels if self._is_turned else labels
        weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
        values = np.asarray(space.encode(rows), np.float64)
        return LabelledRows(space, classes, values, labels, weights)

    @property
    def _is_turned(self) -> bool:
        """Whether the event is the first of two classes in sorted order."""
        return self.positive is not None and bool(self.classes_[0] == self.positive)

    def _fit_bands(
        self, data: LabelledRows, rows: Dataset, fitting: NDArray[np.float64], seed: int
    ) -> None:
        plain, self.noise_, self.pool_ = fit_banded(self, data, fitting, seed)
        made = {"objective": "log_loss", "noise": self.noise_, "rows": float(data.weights.sum())}
        if self.prevalence is not None:
            made["prevalence"] = float(self.prevalence)
        self.card_ = described(plain, data, made)
        self.gamma_ = self.n_rounds_ = None
        moved = {
            column.name: self.noise_ * (column.high - column.low) * (column.kind != "binary")
            for column in data.space
            if not column.is_categorical
        }
        correct = self.card_.answer_encoded(data.values) == data.labels
        if self.noise_ > 0:
            still = {column.name: 0.0 for column in data.space if column.is_categorical}
            moves = Perturbation(radius={**moved, **still}, whole=[])
            found = certificate_of(self.card_, rows, data.classes[data.labels], moves)
            correct = found.right & (found.distance > moves.spend(1.0))
        self.certified_accuracy_ = float(np.average(correct, weights=data.weights))

    def _check_parameters(self) -> None:
        """Refuse invalid parameters, before the data are read."""
        validate(self, PARAMETERS)
        check_decision(self.decision)
        if self.objective == "published" and self.directions != "up":
            raise ValueError("objective='published' needs directions='up': use as_published().")
        if self.objective != "log_loss":
            usual = dict.fromkeys(("max_variables", "class_weight", "prevalence"))
            usual |= {"decision": 0.5, "pool_size": 1}
            given = [name for name, value in usual.items() if getattr(self, name) != value]
            if given:
                raise ValueError(
                    f"{given[0]} is for objective='log_loss', got objective={self.objective!r}: "
                    "leave it out."
                )
        n_forced = len(candidates.names_of(self, "forced"))
        candidates.names_of(self, "forbidden")
        if self.monotone is not None and not isinstance(self.monotone, Mapping):
            kind = type(self.monotone).__name__
            raise ValueError(f"monotone must map names to 'up', 'down' or 'free', got a {kind}.")
        limits = ["max_conditions", "max_variables"]
        limits += ["n_rounds"] if self.objective in ("majority", "published") else []
        for limit in limits:
            most = getattr(self, limit)
            most = USUAL if most == "auto" else most
            if isinstance(most, Integral) and n_forced > most:
                raise ValueError(
                    f"forced names {n_forced} columns, more than {limit}={most} allows: raise it."
                )

    def _check_classes(self) -> None:
        """Refuse labels that the parameters do not fit."""
        classes = self.classes_
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class only, {str(classes[0])!r}: at least two are needed."
            )
        if self.objective == "published" and len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The published algorithm takes two "
                f"classes, but y has {len(classes)}: use another objective, or fit one class "
                "against the rest."
            )
        binary = {"positive": self.positive, "prevalence": self.prevalence}
        binary["decision"] = None if self.decision == 0.5 else self.decision
        binary["pool_size"] = None if self.pool_size == 1 else self.pool_size
        given = [name for name, value in binary.items() if value is not None]
        if given and len(classes) > 2:
            known = classes.tolist()
            label = self.positive if self.positive in known else known[-1]
            raise ValueError(
                f"{given[0]} is for two classes, but y has {len(classes)}: leave it out, or make y "
                f"tell one class from the rest, as in y == {label!r}."
            )
        if self.positive is not None and self.positive not in classes.tolist():
            raise ValueError(
                f"positive must be one of the labels {classes.tolist()}, got {self.positive!r}."
            )

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted class of each row; of two classes the event from the decision's total on."""
        table = self._check_rows(X)
        return self.card_.predict(table)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Risk of each class, in order of ``classes_``."""
        table = self._check_rows(X)
        return self.card_.predict_proba(table)[:, :: -1 if self._is_turned else 1]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Totals, for two classes from halfway below the decision; above 0 is ``classes_[1]``."""
        totals = self.total(X).astype(np.float64)
        if not self.card_.is_binary:
            return totals
        least = 1 if self.card_.decision is None else self.card_.decision
        return (totals - least + 0.5) * (-1 if self._is_turned else 1)

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
        tags.classifier_tags.multi_class = self.objective != "published"
        return tags
