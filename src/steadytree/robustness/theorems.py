"""Theorems: what separation implies, each with its assumptions and whether they hold."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Statement:
    """A consequence of separation."""

    says: str  # what follows, with the numbers of the data
    assumes: str  # what it needs
    holds: bool  # whether the data meet that; if not, `says` is not claimed

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'does not apply'}: {self.says} (needs {self.assumes})"


def all_statements(found: Any, error: float) -> tuple[Statement, ...]:
    """All statements about a `Separation`."""
    listed = [
        _of_rows(found),
        _of_distance(found),
    ]
    if found.linear is not None:
        listed += _of_hyperplane(
            found.linear, round(found.linear.separateness * found.n_rows), error
        )
    return tuple(listed)


def _of_rows(found: Any) -> Statement:
    """A lower bound holds however long it took to find rows that suffice."""
    least, n = found.least_dropped, len(found.dropped)
    says = f"the classes are apart once {n:,} rows are dropped, and no fewer will do"
    if n == 0:
        says = "the classes are apart as they are: no row has to go"
    elif not found.exact:
        says = f"at least {least:,} rows must be dropped for the classes to be apart; {n:,} will do"
    return Statement(says, "nothing", True)


def _of_distance(found: Any) -> Statement:
    stay = f"all {found.n_rows - len(found.dropped):,} rows that stay"
    bound = f"{found.depth_bound:,.0f}" if np.isfinite(found.depth_bound) else "without a limit"
    if np.isinf(found.two_r):
        says = f"{stay} are of one class: nothing is left to tell apart"
    elif found.depth_says_something:
        says = f"some tree of depth {bound} is right on {stay}"
    else:
        says = (
            f"the distance of the classes promises nothing useful: a tree of depth {bound} that is "
            f"right on {stay}, where one of depth {found.depth_anyway:,} exists for any labels"
        )
    return Statement(
        says, "classes apart once rows are dropped, columns of bounded range", found.two_r > 0
    )


def _of_hyperplane(linear: Any, n_right: int, error: float) -> list[Statement]:
    margin = f"a hyperplane that is right on {n_right:,} rows with a margin"
    holds = linear.gamma > 0
    # moved rows keep half the margin, so votes have half the edge and four times as many are needed
    size, hardened = linear.card_size(error), 4 * linear.card_size(error)
    return [
        Statement(
            f"under any weights of those rows some condition is right on {0.5 + linear.edge:.4g}",
            f"{margin}, conditions in both directions",
            holds,
        ),
        Statement(
            f"a card of {size:,.0f} votes errs on at most {error:.0%} of those rows",
            f"{margin}, every vote the best condition",
            holds,
        ),
        Statement(
            f"chosen on moved rows, a card of {hardened:,.0f} votes errs on at most {error:.0%} of "
            f"them under any noise of {linear.noise:.3g} of each range",
            f"{margin}, every vote the best condition, and no more noise than that",
            holds,
        ),
    ]
