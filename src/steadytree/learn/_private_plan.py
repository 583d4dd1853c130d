"""How a budget is divided and how deep to grow: from public numbers and the noisy row count."""

from dataclasses import dataclass, field
from functools import lru_cache

from steadytree.core.candidates import Candidates
from steadytree.core.space import FeatureSpace
from steadytree.privacy.limits import TRIPLE_CANDIDATES, weighs_triples

ROWS_SHARE = 0.02
LARGEST_LEAF_SHARE, LEAST_LEAF_SHARE = 0.05, 0.01
PAIR_CANDIDATES = 1_000  # blocks of depth 2 take time with the square of this
FINEST = 100  # bins of a numeric column
LEVEL_BINS, LEVEL_CANDIDATES = 32, 4_000  # where questions are scored level by level
DEEPEST_GREEDY = 6  # where nobody asks for another depth
LAST_WEIGHT = 2.0  # the last block draws the labels too, and has fewer rows at each draw
# in units of epsilon * rows, below which more questions would only fit noise
SMALL, MEDIUM = 150.0, 2_000.0
FEW_CLASSES = 4  # of which a tree of depth 4 has four leaves each; more need a third block
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
    space: FeatureSpace,
    n_classes: int,
    epsilon: float,
    strength: float,
    max_depth: int | None,
    leaf_share: float,
) -> Plan:
    """Blocks for the whole-tree mechanism; strength is epsilon times the noisy number of rows."""
    options = possible_depths(space, n_classes, max_depth)
    if strength < SMALL:
        depths = options[0]
    elif strength < MEDIUM:
        depths = options[min(1, len(options) - 1)]
    else:
        depths = options[-1]
    leaf = epsilon * leaf_share
    weights = [1.0] * (len(depths) - 1) + [LAST_WEIGHT]
    epsilons = tuple((epsilon - leaf) * weight / sum(weights) for weight in weights)
    return Plan(depths, epsilons, leaf, block_candidates(space, depths))


def possible_depths(
    space: FeatureSpace, n_classes: int, max_depth: int | None
) -> list[tuple[int, ...]]:
    """Depths of blocks that a fit may take, those that need most rows last."""
    n_questions = len(Candidates.at_most(space, FINEST, TRIPLE_CANDIDATES))
    triples = weighs_triples(n_questions, n_classes)
    if max_depth is not None:
        return [block_depths(max_depth, triples)]
    deep = (2, 2) if n_classes <= FEW_CLASSES else (2, 2, 2)
    return [(2,), (3,), deep] if triples else list(dict.fromkeys([(2,), (2, 2), deep]))


def block_candidates(space: FeatureSpace, depths: tuple[int, ...]) -> Candidates:
    """The questions of blocks; fewer where one of them has depth 3."""
    most = TRIPLE_CANDIDATES if 3 in depths else PAIR_CANDIDATES
    return Candidates.at_most(space, FINEST, most)


@lru_cache(maxsize=16)  # of a space of many columns it takes a second
def bins_within(space: FeatureSpace, n_bins: int) -> int:
    """Bins of numeric columns, at most `n_bins`, that give a number of questions soon weighed.

    Examples
    --------
    >>> wide = FeatureSpace.declare(bounds={f"x{j}": (0, 1) for j in range(100)})
    >>> bins_within(wide, 64), bins_within(wide, 4)
    (10, 4)
    """
    for size in range(n_bins, 2, -1):
        if len(Candidates.of(space, size)) <= PAIR_CANDIDATES:
            return size
    return 2


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
    """Levels of a greedy tree: one more for each fourfold of epsilon times rows."""
    depth, needed = 2, 200.0
    while strength >= needed and depth < DEEPEST_GREEDY:
        depth, needed = depth + 1, needed * 4
    return depth


def greedy_leaf_share(strength: float, depth: int) -> float:
    """So much that wrongly labelled leaves cost about a hundredth of the rows, at most a half."""
    return min(0.5, 75.0 * 2**depth / max(strength, 1.0))
