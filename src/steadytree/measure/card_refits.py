"""Refits of cards: what comes out when a card is fitted again on part of its rows."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadytree.core.reading import Reading
from steadytree.core.scorecard import Scorecard


@dataclass(frozen=True, eq=False)
class CardRefits:
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

    def readings(self) -> tuple[Reading, ...]:
        """The numbers with what they mean."""
        own = columns_asked(self.whole)
        kept = [len(own & columns_asked(card)) / len(own) for card in self.cards] if own else [1.0]
        return (
            Reading(
                "same answers",
                100 * float(self.agreement.mean()),
                "share of rows that get the same answer from a card fitted again",
                None,
                "%",
            ),
            Reading(
                "least same answers",
                100 * float(self.agreement.min()),
                "the same for the card that differs most",
                None,
                "%",
            ),
            Reading(
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
