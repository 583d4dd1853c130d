"""Scaling: points of a scorecard as a credit score, in which the odds double every few points."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.validation import Real
from steadytree.models.scorecard import Scorecard, scorecard_of


@dataclass(frozen=True, eq=False)
class Scaling:
    """Whole points for each band such that a higher score is a lower risk.

    The score is `start` plus the points of one band of each variable, so that it can be added up
    by hand. Points are rounded band by band: a score differs by at most half a point a variable
    from ``base_score + pdo / ln 2 * ln(odds / base_odds)``, the odds being those against the event.

    Examples
    --------
    >>> from steadytree import FeatureSpace, Scorecard
    >>> from steadytree.models.condition import Condition
    >>> space = FeatureSpace.declare(bounds={"age": (18, 99)})
    >>> card = Scorecard(space, ["pays", "defaults"], [Condition(0, "below", 30)], [2], 0, 0.7, -4)
    >>> scaling = Scaling.of(card, pdo=20, base_score=600, base_odds=50)
    >>> scaling.start, scaling.points, scaling.score([[25], [40]]).tolist()
    (603, ((-40, 0, 0),), [563, 603])
    """

    scorecard: Scorecard
    start: int
    points: tuple[tuple[int, ...], ...]  # of each band of each variable

    @classmethod
    def of(
        cls, model: Any, pdo: float = 20.0, base_score: float = 600.0, base_odds: float = 50.0
    ) -> "Scaling":
        """From a scorecard of two classes with risks.

        Parameters
        ----------
        model : Scorecard or fitted RiskScoreClassifier
        pdo : float, default=20
            Points by which the odds against the event double.
        base_score : float, default=600
            Score at which these odds are `base_odds`.
        base_odds : float, default=50
        """
        scorecard = scorecard_of(model)
        Real(above=0, below=math.inf).check(pdo, "pdo")
        Real(above=0, below=math.inf).check(base_odds, "base_odds")
        Real(above=-math.inf, below=math.inf).check(base_score, "base_score")
        if not scorecard.is_binary or not scorecard.gives_risks:
            raise ValueError("a risk score is scaled where it has two classes and gives risks.")
        factor = pdo / math.log(2)
        against = -(scorecard.intercept + scorecard.slope * int(scorecard.offset[0]))
        start = base_score + factor * (against - math.log(base_odds))
        points = tuple(
            tuple(-_rounded(factor * scorecard.slope * band.points[0]) for band in variable.bands)
            for variable in scorecard.variables
        )
        return cls(scorecard, _rounded(start), points)

    def score(self, X: Any) -> NDArray[np.int64]:
        """The score of each row."""
        values = self.scorecard.encode(X)
        found = np.full(len(values), self.start)
        for variable, points in zip(self.scorecard.variables, self.points, strict=True):
            found += np.array(points)[variable.band_of(values[:, variable.feature])]
        return found


def _rounded(value: float) -> int:
    """The nearest whole number, halves away from zero, so that points of both signs mirror."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))
