"""Fits and sessions that can be told from schema and parameters to be too large."""

from steadytree.core.candidates import Candidates
from steadytree.core.schema import Schema
from steadytree.learn._private_plan import (
    DEEPEST_GREEDY,
    LEVEL_BINS,
    LEVEL_CANDIDATES,
    block_candidates,
    possible_depths,
)
from steadytree.learn._several import Table
from steadytree.privacy.limits import (
    MOST_RELEASED,
    check_block,
    check_released,
    check_scores,
    check_tree,
)
from steadytree.sources.messages import MOST_TREES

LEAST_PART = 0.2  # of epsilon: the least that a block gets
DEEPEST_LEVELS = 5  # of several holders' trees that are paid for level by level


def check_fit(
    schema: Schema, method: str, epsilon: float, max_depth: int | None, max_splits: int
) -> None:
    """Refuse a fit of `PrivateTreeClassifier` that could not end; epsilon is its smallest part."""
    n_classes = len(schema.classes)
    if method == "gibbs":
        for depths in possible_depths(schema.space, n_classes, max_depth):
            n_questions = len(block_candidates(schema.space, depths))
            for depth in set(depths):
                check_block(n_questions, n_classes, depth, epsilon)
            _check_leaves(schema, 2 ** sum(depths))
        return
    candidates = Candidates.at_most(schema.space, LEVEL_BINS, LEVEL_CANDIDATES)
    if method == "greedy":
        depth = max_depth or DEEPEST_GREEDY
        check_scores(_n_bins(candidates), n_classes, 2 ** (depth - 1))
        _check_leaves(schema, 2**depth)
    else:
        check_scores(_n_bins(candidates), n_classes, 1)
        _check_leaves(schema, max_splits + 1)


def check_session(
    table: Table, method: str, n_holders: int, most_released: int = MOST_RELEASED
) -> None:
    """Refuse a session among holders that one of them would have to refuse half-way."""
    n_classes, leaves = table.n_classes, 2 ** (DEEPEST_LEVELS - 1)
    n_questions, n_bins = len(table.candidates), _n_bins(table.candidates)
    trees = n_holders if method == "vote" else 2
    if trees > MOST_TREES:
        raise ValueError(
            f"method 'vote' compares at most {MOST_TREES} holders' trees, got {n_holders} holders: "
            "use 'delegate' or 'duel'."
        )
    _check_leaves(table.schema, 2 * leaves)
    check_released(trees * leaves * n_classes, most_released)
    if method in ("delegate", "duel", "vote"):
        check_block(n_questions, n_classes, 2, LEAST_PART * table.epsilon)
    elif method == "local_rnm":
        check_scores(n_bins, n_classes, 1)
        # a holder names one question a leaf, and all named ones are counted
        check_released(min(n_holders, n_questions) * leaves * 2 * n_classes, most_released)
    elif method == "noisy_counts":
        check_released(n_questions * leaves * 2 * n_classes, most_released)
    else:
        check_released(n_bins * leaves * n_classes, most_released)


def _n_bins(candidates: Candidates) -> int:
    return sum(column.n_bins + 1 for column in candidates.space)


def _check_leaves(schema: Schema, n_leaves: int) -> None:
    n_categories = max(len(column.categories) for column in schema.space)
    check_tree(n_leaves, n_categories, len(schema.classes))
