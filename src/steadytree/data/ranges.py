"""Categories that are ranges of numbers, and their order."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NUMBER = r"(-?\d+(?:\.\d+)?)"
# "30-39", "30 to 39", "<30", "under 30", ">= 60", "60+"; a plain number may be a code
SIDE = r"(<=?|>=?|≤|≥|under|over|up to)"
RANGE = re.compile(rf"{SIDE}?\s*{NUMBER}(?:\s*(?:-|–|to)\s*{NUMBER}|\s*\+)?")


def order_of_ranges(categories: Sequence[object]) -> NDArray[np.int64] | None:
    """Ranks of at least three categories that are ranges of numbers; None where one is not."""
    found = [RANGE.fullmatch(str(category).strip()) for category in categories]
    ranges = [one for one in found if one is not None]
    plain = sum(one[0] == one[2] for one in ranges)
    if len(ranges) < len(found) or len(found) < 3 or plain > len(found) / 2:
        return None
    # what is below a number comes before what begins at it, and what is above it after both
    sides = {"<": -1, "under": -1, "<=": 0, "≤": 0, "up to": 0, ">=": 1, "≥": 1, ">": 2, "over": 2}
    keys = [(float(one[2]), sides.get(one[1], 1), float(one[3] or one[2])) for one in ranges]
    if len(set(keys)) < len(keys):
        return None
    ranks = np.empty(len(keys), np.int64)
    ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return ranks
