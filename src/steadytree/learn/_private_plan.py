"""How a budget is divided and how deep to grow: from public numbers and the noisy row count."""

from dataclasses import dataclass, field

from steadytree.core.candidates import Candidates
from steadytree.core.space import FeatureSpace

ROWS_SHARE = 0.02
LARGEST_LEAF_SHARE, LEAST_LEAF_SHARE = 0.05, 0.01
TRIPLE_CANDIDATES = 160  # blocks of depth 3 take time with the third power of this
PAIR_CANDIDATES = 1_000
FINEST = 100  # bins of a numeric column
LAST_WEIGHT = 2.0  # the last block draws the labels too, and has fewer rows at each draw
# in units of epsilon * rows, below which more questions would only fit noise
SMALL, MEDIUM = 150.0, 2_000.0
ENOUGH_FOR_COUNTS = 1_000.0
LEAF_STRENGTH = 50.0  # of the leaf counts: noise of a third of a leaf in sixteen


@dataclass(frozen=True)
class Plan:
    """Depths of blocks (or one level each), epsilon of each, and epsilon of the leaf counts."""

    depths: tuple[int, ...]
    epsilons: tuple[float, ...]
    leaf_epsilon: float
    candidates: Candidates = field(repr=False)


def plan_blocks(
    space: FeatureSpace, epsilon: float, strength: float, max_depth: int | None, leaf_share: float
) -> Plan:
    """Blocks for the whole-tree mechanism; strength is epsilon times the noisy number of rows."""
    coarse = Candidates.at_most(space, FINEST, TRIPLE_CANDIDATES)
    fits = len(coarse) <= TRIPLE_CANDIDATES
    if max_depth is not None:
        depths = block_depths(max_depth, fits)
    elif strength < SMALL:
        depths = (2,)
    elif strength < MEDIUM and fits:
        depths = (3,)
    else:
        depths = (2, 2)
    candidates = coarse if 3 in depths else Candidates.at_most(space, FINEST, PAIR_CANDIDATES)
    leaf = epsilon * leaf_share
    weights = [1.0] * (len(depths) - 1) + [LAST_WEIGHT]
    epsilons = tuple((epsilon - leaf) * weight / sum(weights) for weight in weights)
    return Plan(depths, epsilons, leaf, candidates)


def gibbs_leaf_share(strength: float) -> float:
    """As much as counts of a certain precision need; nothing where they would mean nothing.

    Examples
    --------
    >>> gibbs_leaf_share(500.0), gibbs_leaf_share(1_000.0), gibbs_leaf_share(1e6)
    (0.0, 0.05, 0.01)
    """
    if strength < ENOUGH_FOR_COUNTS:
        return 0.0
    return max(LEAST_LEAF_SHARE, min(LARGEST_LEAF_SHARE, LEAF_STRENGTH / strength))


def block_depths(max_depth: int, triples: bool) -> tuple[int, ...]:
    """Blocks of depth 2, and one of 3 (or 1) where the depth is odd.

    Examples
    --------
    >>> block_depths(4, True), block_depths(5, True), block_depths(5, False), block_depths(1, True)
    ((2, 2), (2, 3), (2, 2, 1), (1,))
    """
    if max_depth % 2 == 0:
        return (2,) * (max_depth // 2)
    if triples and max_depth >= 3:
        return (*(2,) * ((max_depth - 3) // 2), 3)
    return (*(2,) * ((max_depth - 1) // 2), 1)


def greedy_depth(strength: float) -> int:
    """Levels of a greedy tree: one more for each doubling of epsilon times rows."""
    depth, needed = 2, 200.0
    while strength >= needed and depth < 6:
        depth, needed = depth + 1, needed * 4
    return depth


def greedy_leaf_share(strength: float, depth: int) -> float:
    """So much that wrongly labelled leaves cost about a hundredth of the rows, at most a half."""
    return min(0.5, 75.0 * 2**depth / max(strength, 1.0))
