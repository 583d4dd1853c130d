"""Fits that can be told from schema and parameters to be too large."""

from steadytree.core.candidates import Candidates
from steadytree.core.schema import Schema
from steadytree.learn._private_plan import (
    DEEPEST_GREEDY,
    LEVEL_BINS,
    LEVEL_CANDIDATES,
    block_candidates,
    possible_depths,
)
from steadytree.privacy.limits import (
    check_block,
    check_scores,
    check_tree,
)


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
            check_leaves(schema, 2 ** sum(depths))
        return
    candidates = Candidates.at_most(schema.space, LEVEL_BINS, LEVEL_CANDIDATES)
    if method == "greedy":
        depth = max_depth or DEEPEST_GREEDY
        check_scores(count_bins_of(candidates), n_classes, 2 ** (depth - 1))
        check_leaves(schema, 2**depth)
    else:
        check_scores(count_bins_of(candidates), n_classes, 1)
        check_leaves(schema, max_splits + 1)


def count_bins_of(candidates: Candidates) -> int:
    return sum(column.n_bins + 1 for column in candidates.space)


def check_leaves(schema: Schema, n_leaves: int) -> None:
    n_categories = max(len(column.categories) for column in schema.space)
    check_tree(n_leaves, n_categories, len(schema.classes))
