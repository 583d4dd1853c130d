"""What a search tells while it runs, and in the end."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Plan = NDArray[np.int32]


class Stop(Exception):
    """The search ends here, for the reason given."""


class TooDear(Exception):
    """Lists grew beyond what they may for now."""


@dataclass(frozen=True)
class Progress:
    """Where a search stands: lost weight (with penalties) of the best tree, and what is certain."""

    seconds: float
    incumbent: float
    bound: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a search found.

    Parameters
    ----------
    plan : int32 array
        The best tree, in preorder at full size: a test, or -1 - label.
    value : float
        Its lost weight, with penalties.
    bound : float
        No tree has a smaller value.
    proven : bool
    reason : str
        "proven", "time limit", "node limit", "interrupted" or "too many candidates".
    shortest : bool
        Whether it is proven that no tree of the same value has fewer questions.
    """

    plan: Plan
    value: float
    bound: float
    proven: bool
    reason: str
    shortest: bool = False
