"""ScorecardPool: risk scores that fit about as well as the best, by other variables."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.models.scorecard import Scorecard

NEAR_EQUAL = 0.02  # a scorecard's log loss may be this much above the best, relative to it
TRIED = 4  # fits for each further scorecard that is wanted


@dataclass(frozen=True)
class ScorecardPool:
    """Scorecards of the same rows with nearly the same log loss, the fitted one first."""

    scorecards: tuple[Scorecard, ...]
    log_loss: tuple[float, ...]  # on the training rows

    def __len__(self) -> int:
        return len(self.scorecards)

    def variables(self) -> dict[str, float]:
        """Share of the scorecards that use each column, most used first."""
        used = [{variable.name for variable in one.variables} for one in self.scorecards]
        names = sorted(set().union(*used))
        shares = {name: sum(name in one for one in used) / len(used) for name in names}
        return dict(sorted(shares.items(), key=lambda item: -item[1]))

    def shared_variables(self) -> list[str]:
        """Columns that every scorecard uses."""
        return [name for name, share in self.variables().items() if share == 1]

    def risks(self, X: Any) -> NDArray[np.float64]:
        """Risk of the event by each scorecard: (n_rows, n_scorecards)."""
        return np.stack([one.predict_proba(X)[:, 1] for one in self.scorecards], axis=1)

    def spread(self, X: Any) -> NDArray[np.float64]:
        """Least and greatest risk of each row over the scorecards: (n_rows, 2)."""
        risks = self.risks(X)
        return np.stack([risks.min(axis=1), risks.max(axis=1)], axis=1)


def search_pool(
    first: Scorecard,
    fit: Callable[[frozenset[int]], Scorecard],
    log_loss: Callable[[Scorecard], float],
    size: int,
) -> ScorecardPool:
    """Leave out variables of the scorecards found so far, one more each time.

    `fit` returns the best scorecard without some columns.
    """
    found = {first: log_loss(first)}
    limit = (1 + NEAR_EQUAL) * found[first]
    queue, tried = [(first, frozenset[int]())], {frozenset[int]()}
    for scorecard, without in queue:  # which grows
        for variable in scorecard.variables:
            excluded = without | {variable.feature}
            if excluded in tried or len(tried) > TRIED * (size - 1):
                continue
            tried.add(excluded)
            other = fit(excluded)
            lost = log_loss(other)
            if lost <= limit and other not in found:
                found[other] = lost
                queue.append((other, excluded))
    order = sorted(found, key=lambda one: (one != first, found[one]))[:size]
    return ScorecardPool(tuple(order), tuple(found[one] for one in order))
