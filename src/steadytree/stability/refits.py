"""Refits: trees that come out when a learner is fitted again on part of its rows."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.parallel import fan_out
from steadytree._base.validation import check_whole_number
from steadytree.data.labels import label_array
from steadytree.data.table import Table
from steadytree.distance.collection import CollectionFacts, collection_facts
from steadytree.distance.tree_distance import tree_distance
from steadytree.metrics.measurement import Measurement
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import Tree
from steadytree.stability.removal import fit_model
from steadytree.stability.sensitivity import mean_interval


@dataclass(frozen=True, eq=False)
class ScorecardRefits:
    """A card and those fitted again on part of the rows.

    Parameters
    ----------
    whole : Scorecard
        From all rows.
    cards : tuple of Scorecard
    agreement : float64 array (n_cards,)
        Share of all rows to which each gives the same answer as the whole one.
    """

    whole: Scorecard
    cards: tuple[Scorecard, ...]
    agreement: NDArray[np.float64]

    def columns(self) -> dict[str, float]:
        """Share of the cards that ask about each column; those of the whole card first."""
        own = columns_asked(self.whole)
        asked = Counter(name for card in self.cards for name in columns_asked(card))
        names = sorted(own | set(asked), key=lambda name: (name not in own, -asked[name], name))
        return {name: asked[name] / len(self.cards) for name in names}

    def cuts(self, name: str) -> NDArray[np.float64]:
        """Thresholds that the cards fitted again have for a column."""
        found = [thresholds(card, name) for card in self.cards]
        return np.sort(np.concatenate(found)) if found else np.empty(0)

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        own = columns_asked(self.whole)
        kept = [len(own & columns_asked(card)) / len(own) for card in self.cards] if own else [1.0]
        return (
            Measurement(
                "same answers",
                100 * float(self.agreement.mean()),
                "share of rows that get the same answer from a card fitted again",
                None,
                "%",
            ),
            Measurement(
                "least same answers",
                100 * float(self.agreement.min()),
                "the same for the card that differs most",
                None,
                "%",
            ),
            Measurement(
                "same columns",
                100 * float(np.mean(kept)),
                "share of its columns that a card fitted again asks about too",
                None,
                "%",
            ),
        )


def columns_asked(card: Scorecard) -> set[str]:
    """Names of the columns a card gives points for."""
    return {card.space.names[condition.feature] for condition in card.conditions}


def thresholds(card: Scorecard, name: str) -> NDArray[np.float64]:
    """A card's thresholds for a column of numbers, lowest first."""
    feature = card.space.names.index(name)
    found = [c.threshold for c in card.conditions if c.feature == feature]
    return np.sort([value for value in found if np.isfinite(value)])


KEPT = 0.9


@dataclass(frozen=True, eq=False)
class Refits:
    """A tree and those learned again on part of the rows.

    Parameters
    ----------
    whole : Tree
        From all rows.
    trees : tuple of Tree
    distances : float64 array (n_trees,)
        Path distance of each to the whole one.
    agreement : float64 array (n_trees,)
        Share of all rows to which each gives the same answer as the whole one.
    """

    whole: Tree
    trees: tuple[Tree, ...]
    distances: NDArray[np.float64]
    agreement: NDArray[np.float64]

    @property
    def value(self) -> float:
        """Mean distance."""
        return float(self.distances.mean())

    @cached_property
    def facts(self) -> CollectionFacts:
        """What all the trees have in common, the whole one among them."""
        return collection_facts([self.whole, *self.trees])

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        several = len(self.trees) > 1
        return (
            Measurement(
                "retraining distance",
                self.value,
                "mean path distance to trees learned again on part of the rows",
                mean_interval(self.distances) if several else None,
            ),
            Measurement(
                "same answers",
                100 * float(self.agreement.mean()),
                "share of rows that get the same answer from a tree learned again",
                None,
                "%",
            ),
            Measurement(
                "same tree",
                100 * float((self.distances == 0).mean()),
                "share of refits that give the very same tree",
                None,
                "%",
            ),
        )


def refits(
    estimator: Any,
    X: Any,
    y: Any,
    repeats: int = 20,
    kept: float = KEPT,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Refits | ScorecardRefits:
    """Fit a learner again on parts of its rows, and measure how far the trees are apart.

    Of a learner of cards: how many answers and columns stay the same.

    Every refit uses the learner as it is, its ``random_state`` included, on rows drawn without
    replacement: it shows what other rows do, not what other seeds do.

    Parameters
    ----------
    estimator : a learner of ours, a scikit-learn tree classifier, or any with a tree or card inside
        Fitted or not; it is not changed.
    X, y : training data
    repeats : int, default=20
    kept : float, default=0.9
        Share of the rows that each refit gets.
    n_jobs : int or None, default=None
        Processes, as in joblib.
    random_state : int, default=0
        Which rows.

    Returns
    -------
    refits : Refits, or ScorecardRefits of a learner of cards

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steadytree import StableTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> found = refits(StableTreeClassifier(max_depth=2, random_state=0), X, y, repeats=3)
    >>> len(found.trees), bool(found.value >= 0)
    (3, True)
    """
    check_whole_number(repeats, "repeats", 1)
    if not (isinstance(kept, Real) and 0 < kept < 1):
        raise ValueError(f"kept must be a share between 0 and 1, got {kept!r}.")
    labels, n_rows = label_array(y), Table.read(X).n_rows
    size = int(kept * n_rows)
    rng = np.random.default_rng(random_state)
    sets = [np.sort(rng.choice(n_rows, size, replace=False)) for _ in range(repeats)]
    whole = fit_model(np.arange(n_rows), estimator, X, labels)
    found = tuple(fan_out(fit_model, sets, estimator, X, labels, n_jobs=n_jobs))
    own = whole.predict(X)
    agreement = np.array([float(np.mean(one.predict(X) == own)) for one in found])
    if isinstance(whole, Scorecard):
        return ScorecardRefits(whole, found, agreement)
    return Refits(whole, found, tree_distance([whole], found, space=X)[0], agreement)
