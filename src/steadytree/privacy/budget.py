"""Budgets: limits on requests, the allocation of epsilon, and the statement of what was spent.

Limits depend on the schema and on parameters alone, so a refusal reveals nothing about rows.
"""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from steadytree._base.exceptions import UnsuitableDataError
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.privacy.mechanisms import score_slack
from steadytree.privacy.tree_mechanism import sampler_slack

# candidate splits of a block, by its depth: memory and time grow with their power
MOST_CANDIDATES = {1: 100_000, 2: 20_000, 3: 400}
TRIPLE_CANDIDATES = 160  # the most at which blocks of depth 3 are chosen by default
MOST_COUNTERS = 10**8  # numbers in one table: 0.8 GB
MOST_WEIGHED = 4 * 10**9  # class counts read by the sum over all trees of a block: a minute
MOST_RELEASED = 20_000_000  # numbers in one answer
LEAST_KEPT = 0.5  # of a part of epsilon, after the cost of rounding errors
ROWS_SHARE = 0.02  # of epsilon, for the noisy number of rows
LARGEST_LEAF_SHARE, LEAST_LEAF_SHARE = 0.1, 0.01
PAIR_CANDIDATES = 1_000  # time of blocks of depth 2 grows with the square of this
FINEST, COARSEST = 100, 8  # bins of a numeric column; with fewer, a third level gains nothing
LEVEL_BINS, LEVEL_CANDIDATES = 32, 4_000  # for methods that score splits level by level
DEEPEST_GREEDY = 6  # by default
LAST_WEIGHT = 2.0  # the last block samples labels too, from fewer rows each
# in units of epsilon * rows; below these, more splits would only fit noise
SMALL, MEDIUM, LARGE = 150.0, 2_000.0, 20_000.0
FEW_CANDIDATES = 64  # at which two blocks of depth 3 take less than a second
FEW_DEPTHS: list[tuple[float, tuple[int, ...]]] = [
    *((0.0, (2,)), (SMALL, (3,)), (400.0, (2, 3)), (MEDIUM, (3, 3)), (4_000.0, (2, 2, 2, 2))),
]
FEW_CLASSES = 4  # a tree of depth 4 has four leaves for each; more classes need a third block
ENOUGH_FOR_COUNTS = 1_000.0
LEAF_STRENGTH = 3.125  # of the counts of each leaf: noise of a third of it
RELATION = "add or remove one row"


def relation(most: int | None) -> str:
    """Which data sets are neighbours: those that differ by one row, or by one person's rows.

    >>> relation(None), relation(3)
    ('add or remove one row', 'add or remove one person with at most 3 rows')
    """
    if most is None:
        return RELATION
    return f"add or remove one person with at most {most} row{'s' * (most > 1)}"


def check_block(n_splits: int, n_classes: int, depth: int, epsilon: float) -> None:
    """Refuse a block that needs too much memory or time, or loses its epsilon to rounding."""
    most = MOST_CANDIDATES[depth]
    if n_splits > most:
        raise UnsuitableDataError(
            f"the schema gives {n_splits:,} candidate splits, and blocks of depth {depth} may have "
            f"at most {most:,}: declare fewer categories, or use fewer bins or another method."
        )
    if 4 * n_splits**depth * n_classes > MOST_WEIGHED:
        raise UnsuitableDataError(
            f"{n_splits:,} candidate splits and {n_classes:,} classes are too many for blocks of "
            f"depth {depth}: declare fewer categories or classes, or use another method."
        )
    if sampler_slack(epsilon, depth, n_splits, n_classes) > (1 - LEAST_KEPT) * epsilon:
        raise UnsuitableDataError(
            f"rounding errors of {n_splits:,} candidate splits and {n_classes:,} classes would use "
            f"up most of epsilon {epsilon:g}: declare fewer, or use a larger epsilon."
        )


def check_scores(n_bins: int, n_classes: int, n_nodes: int) -> None:
    """Refuse to score the splits of too many nodes at once; n_bins counts all columns."""
    _check_table(n_nodes * n_bins * n_classes, f"{n_bins:,} bins", n_classes, n_nodes)
    score_slack(n_classes)


def check_leaves(schema: Schema, n_leaves: int) -> None:
    """Refuse a tree with too many leaves for a file."""
    n_classes = len(schema.classes)
    n_categories = max(len(column.categories) for column in schema.space)
    counters = 2 * n_leaves * (n_categories + n_classes)
    _check_table(counters, f"{n_categories:,} categories", n_classes, n_leaves)


def check_released(n_numbers: int, most: int = MOST_RELEASED) -> None:
    if n_numbers > most:
        raise ValueError(
            f"an answer would hold {n_numbers:,} numbers, more than {most:,}: request fewer "
            "leaves or splits, or declare fewer classes."
        )


def weighs_triples(n_splits: int, n_classes: int) -> bool:
    """Whether blocks of depth 3 are fast enough to be chosen by default."""
    return n_splits <= TRIPLE_CANDIDATES and 4 * n_splits**3 * n_classes <= MOST_WEIGHED


def _check_table(n_counters: int, what: str, n_classes: int, n_nodes: int) -> None:
    if n_counters > MOST_COUNTERS:
        raise UnsuitableDataError(
            f"{what} and {n_classes:,} classes at {n_nodes:,} nodes need a table of {n_counters:,} "
            f"numbers, more than {MOST_COUNTERS:,}: declare fewer, or use a smaller max_depth."
        )


class BudgetAllocation(NamedTuple):
    """Depths and epsilons of the blocks, epsilon of the leaf counts, and the candidate splits."""

    depths: tuple[int, ...]
    epsilons: tuple[float, ...]
    leaf_epsilon: float
    candidates: SplitTable


def allocate_blocks(
    space: FeatureSpace,
    n_classes: int,
    epsilon: float,
    strength: float,
    max_depth: int | None,
    leaf_share: float | str,
) -> BudgetAllocation:
    """Allocate epsilon to blocks; strength is epsilon times the noisy number of rows."""
    options = possible_depths(space, n_classes, max_depth)
    depths = [listed for least, listed in options if least <= max(strength, 0.0)][-1]
    share = gibbs_leaf_share(strength, 2 ** sum(depths)) if leaf_share == "auto" else leaf_share
    leaf = epsilon * float(share)
    weights = [1.0] * (len(depths) - 1) + [LAST_WEIGHT]
    epsilons = tuple((epsilon - leaf) * weight / sum(weights) for weight in weights)
    return BudgetAllocation(depths, epsilons, leaf, block_candidates(space, depths))


def possible_depths(
    space: FeatureSpace, n_classes: int, max_depth: int | None
) -> list[tuple[float, tuple[int, ...]]]:
    """Depths of blocks that a fit may choose, and the epsilon times rows from which it does.

    Deeper trees need more rows for each leaf, and more for each of many candidate splits.
    """
    n_splits = len(SplitTable.at_most(space, FINEST, TRIPLE_CANDIDATES))
    fine = len(SplitTable.declared(space, COARSEST)) <= TRIPLE_CANDIDATES
    triples = fine and weighs_triples(n_splits, n_classes)
    if max_depth is not None:
        return [(0.0, block_depths(max_depth, triples))]
    if triples and n_splits <= FEW_CANDIDATES:
        return FEW_DEPTHS
    deep = (2, 2) if n_classes <= FEW_CLASSES else (2, 2, 2)
    return [(0.0, (2,)), (SMALL, (3,) if triples else (2, 2)), (MEDIUM, deep), (LARGE, (2, 2, 2))]


def block_candidates(space: FeatureSpace, depths: tuple[int, ...]) -> SplitTable:
    """The candidate splits of blocks; fewer if one of them has depth 3."""
    most = TRIPLE_CANDIDATES if 3 in depths else PAIR_CANDIDATES
    return SplitTable.at_most(space, FINEST, most)


@lru_cache(maxsize=16)  # with many columns it takes a second
def bins_within(space: FeatureSpace, n_bins: int) -> int:
    """Bins of numeric columns, at most `n_bins`, with at most PAIR_CANDIDATES splits in all.

    >>> wide = FeatureSpace.declare(bounds={f"x{j}": (0, 1) for j in range(100)})
    >>> bins_within(wide, 64), bins_within(wide, 4)
    (10, 4)
    """
    for size in range(n_bins, 2, -1):
        if len(SplitTable.declared(space, size)) <= PAIR_CANDIDATES:
            return size
    return 2


def gibbs_leaf_share(strength: float, n_leaves: int) -> float:
    """As much as counts of a certain precision need; 0 if they would be mostly noise.

    >>> gibbs_leaf_share(500.0, 16), gibbs_leaf_share(1_000.0, 16), gibbs_leaf_share(1e6, 16)
    (0.0, 0.05, 0.01)
    """
    if strength < ENOUGH_FOR_COUNTS:
        return 0.0
    return max(LEAST_LEAF_SHARE, min(LARGEST_LEAF_SHARE, LEAF_STRENGTH * n_leaves / strength))


def block_depths(max_depth: int, triples: bool) -> tuple[int, ...]:
    """Blocks of depth 2, and one of 3 (or 1) if the depth is odd.

    >>> block_depths(4, True), block_depths(5, True), block_depths(5, False), block_depths(1, True)
    ((2, 2), (2, 3), (2, 2, 1), (1,))
    """
    last = 0 if max_depth % 2 == 0 else 3 if triples and max_depth >= 3 else 1
    return (2,) * ((max_depth - last) // 2) + ((last,) if last else ())


def greedy_depth(strength: float) -> int:
    """Levels of a greedy tree: one more for each factor of 4 in epsilon times rows."""
    depth, needed = 2, 200.0
    while strength >= needed and depth < DEEPEST_GREEDY:
        depth, needed = depth + 1, needed * 4
    return depth


def greedy_leaf_share(strength: float, depth: int) -> float:
    """Share at which wrong labels of leaves cost about 1 % of the rows; at most a half."""
    return min(0.5, 75.0 * 2**depth / max(strength, 1.0))


def check_fit(
    schema: Schema,
    method: str,
    epsilon: float,
    max_depth: int | None,
    max_splits: int,
    n_bins: int | None = None,
) -> None:
    """Refuse a fit that would need too much memory or time; epsilon is its smallest part."""
    n_classes = len(schema.classes)
    if method == "gibbs":
        for _, depths in possible_depths(schema.space, n_classes, max_depth):
            n_splits = len(block_candidates(schema.space, depths))
            for depth in set(depths):
                check_block(n_splits, n_classes, depth, epsilon)
            check_leaves(schema, 2 ** sum(depths))
        return
    depth = (max_depth or DEEPEST_GREEDY) if method == "greedy" else 1
    check_scores(level_candidates(schema.space, n_bins).n_bins, n_classes, 2 ** (depth - 1))
    check_leaves(schema, 2**depth if method == "greedy" else max_splits + 1)


def level_candidates(space: FeatureSpace, n_bins: int | None = None) -> SplitTable:
    """The candidate splits of methods that score them level by level."""
    return SplitTable.at_most(space, n_bins or LEVEL_BINS, LEVEL_CANDIDATES)


@contextlib.contextmanager
def logged_refusal(log: logging.Logger, what: str) -> Iterator[None]:
    """Log what was refused and why, which must not depend on rows, and raise the error again."""
    try:
        yield
    except (TypeError, ValueError) as error:
        log.warning("%s: %s", what, error)
        raise


@dataclass(frozen=True)
class PrivacyStatement:
    """What a release cost, by purpose, and its guarantee in one sentence.

    >>> print(PrivacyStatement(0.5, 0.0, {"tree": 0.5}, "gibbs").guarantee)
    Whoever sees this model learns of any one row, present or not, at most a factor of 1.65 in \
odds (epsilon 0.5, add or remove one row).
    """

    epsilon: float
    delta: float
    spent: dict[str, float]  # epsilon by purpose; adds up to at most `epsilon`
    method: str
    private: bool = True  # False if the noise came from a testing seed: there is no guarantee
    relation: str = RELATION  # which data sets are neighbours

    @property
    def guarantee(self) -> str:
        if not self.private:
            return "NOT PRIVATE: the noise came from a testing seed, so nothing is promised."
        factor = 2.718281828459045 ** min(self.epsilon, 300.0)
        text, unless = f"epsilon {self.epsilon:g}", ""
        if self.delta:
            text += f", delta {self.delta:g}"
            unless = f", except with probability about {self.delta:g}"
        seen = "answer" if self.method == "accuracy" else "model"
        whom = "person" if self.relation.startswith("add or remove one person") else "row"
        return (
            f"Whoever sees this {seen} learns of any one {whom}, present or not, at most a factor "
            f"of {factor:.3g} in odds{unless} ({text}, {self.relation})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "guarantee": self.guarantee}
