"""The Pareto frontier of candidates, and how to choose on it."""

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = Mapping[str, NDArray[Any]]
Select = str | float | Callable[[Columns], Any]
NAMED = ("knee", "tolerance")


def on_frontier(costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Flag rows of costs (n, k) that no other row beats: nowhere worse and somewhere better.

    Examples
    --------
    >>> on_frontier(np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 3.0]])).tolist()
    [True, True, False]
    """
    beaten = np.zeros(len(costs), bool)
    for row, cost in enumerate(costs):
        beaten[row] = ((costs <= cost).all(axis=1) & (costs < cost).any(axis=1)).any()
    return ~beaten


def check_select(select: Any) -> None:
    """Refuse what `choose` cannot use."""
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
    """Place of the chosen candidate, one on the frontier.

    Parameters
    ----------
    columns : mapping
        "distance" and "score" of every candidate, and whatever else a function may ask for.
    frontier : int64 array
        Places of candidates on the frontier.
    select : {"knee", "tolerance"}, float, or callable
        The point that bulges most from the line between the frontier's ends; the nearest tree
        within `max_score_loss` of the best score; the greatest weighted sum, where closeness has
        this weight and both are scaled to the frontier; or the greatest value of a function.
    max_score_loss : float
    """
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
        worth = np.where(score >= score.max() - max_score_loss - 1e-12, -distance, -np.inf)
    else:
        weight = 0.5 if select == "knee" else float(select)
        worth = weight * (1 - _unit(distance)) + (1 - weight) * _unit(score)
    best = np.flatnonzero(worth == worth.max())
    return int(frontier[best[score[best].argmax()]])


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values scaled to 0..1; all 0 where they are equal."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(len(values))
