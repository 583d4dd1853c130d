"""How rules are scored and drawn, as numbers that kernels read."""

from typing import NamedTuple

GUMBEL, REJECTION = 0, 1


class Draw(NamedTuple):
    """One way to choose rules: a kind of score, the least weight of a side, and the noise.

    With sharpness 0 the best rule is taken; otherwise a rule is drawn with probability
    proportional to exp(sharpness * score / best score).
    """

    score: int
    min_leaf: float
    sharpness: float
    coupling: int
    seed: int
