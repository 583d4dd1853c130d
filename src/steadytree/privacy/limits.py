"""Limits: what schema and parameters alone show to be too large, refused before it is paid for.

Nothing here depends on rows, so a refusal tells nothing of them.
"""

from steadytree.core.refusal import UnsuitableDataError
from steadytree.privacy.mechanisms import score_slack
from steadytree.privacy.whole_tree import sampler_slack

# questions that a block may choose from, by its depth: memory and time grow with their power
MOST_CANDIDATES = {1: 100_000, 2: 20_000, 3: 400}
TRIPLE_CANDIDATES = 160  # blocks of depth 3 are taken up to so many
MOST_CELLS = 10**8  # numbers in one table: 0.8 GB
MOST_WEIGHED = 4 * 10**9  # class counts that the sum over all trees of a block looks at: a minute
MOST_RELEASED = 20_000_000  # numbers in one answer
LEAST_KEPT = 0.5  # of a part of epsilon, after rounding errors are paid for


def check_block(n_questions: int, n_classes: int, depth: int, epsilon: float) -> None:
    """Refuse a whole-tree draw that would not fit in memory, end, or keep any epsilon.

    Examples
    --------
    >>> check_block(584, 2, 2, 1.0)
    >>> check_block(400_000, 2, 2, 1.0)
    Traceback (most recent call last):
        ...
    steadytree.core.refusal.UnsuitableDataError: the schema gives 400,000 questions, and \
blocks of depth 2 choose from at most 20,000: declare fewer categories, or take \
fewer bins or another method.
    """
    most = MOST_CANDIDATES[depth]
    if n_questions > most:
        raise UnsuitableDataError(
            f"the schema gives {n_questions:,} questions, and blocks of depth {depth} choose from "
            f"at most {most:,}: declare fewer categories, or take fewer bins or another method."
        )
    if 4 * n_questions**depth * n_classes > MOST_WEIGHED:
        raise UnsuitableDataError(
            f"{n_questions:,} questions and {n_classes:,} classes are too many for blocks of depth "
            f"{depth}: declare fewer categories or classes, or take another method."
        )
    if sampler_slack(epsilon, depth, n_questions, n_classes) > (1 - LEAST_KEPT) * epsilon:
        raise UnsuitableDataError(
            f"rounding errors of {n_questions:,} questions and {n_classes:,} classes would take "
            f"most of epsilon {epsilon:g}: declare fewer, or give more."
        )


def check_scores(n_bins: int, n_classes: int, n_nodes: int) -> None:
    """Refuse to score the questions of so many nodes at once; n_bins are those of all columns."""
    _check_cells(n_nodes * n_bins * n_classes, f"{n_bins:,} bins", n_classes, n_nodes)
    score_slack(n_classes)


def check_tree(n_leaves: int, n_categories: int, n_classes: int) -> None:
    """Refuse a tree of so many leaves that no file could hold it."""
    cells = 2 * n_leaves * (n_categories + n_classes)
    _check_cells(cells, f"{n_categories:,} categories", n_classes, n_leaves)


def check_released(n_numbers: int, most: int = MOST_RELEASED) -> None:
    """Refuse an answer of too many numbers."""
    if n_numbers > most:
        raise ValueError(
            f"an answer would hold {n_numbers:,} numbers, more than {most:,}: ask about fewer "
            "leaves or questions, or declare fewer classes."
        )


def weighs_triples(n_questions: int, n_classes: int) -> bool:
    """Whether blocks of depth 3 are quick enough to be taken without being asked for."""
    return n_questions <= TRIPLE_CANDIDATES and 4 * n_questions**3 * n_classes <= MOST_WEIGHED


def _check_cells(n_cells: int, what: str, n_classes: int, n_nodes: int) -> None:
    if n_cells > MOST_CELLS:
        raise UnsuitableDataError(
            f"{what} and {n_classes:,} classes at {n_nodes:,} nodes need a table of {n_cells:,} "
            f"numbers, more than {MOST_CELLS:,}: declare fewer, or take a smaller max_depth."
        )
