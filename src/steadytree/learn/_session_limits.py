"""Sessions among holders that can be told from schema and parameters to be too large."""

from steadytree.learn._private_limits import check_leaves, count_bins_of
from steadytree.learn._several import Table
from steadytree.privacy.limits import MOST_RELEASED, check_block, check_released, check_scores
from steadytree.sources.messages import MOST_TREES

LEAST_PART = 0.2  # of epsilon: the least that a block gets
DEEPEST_LEVELS = 5  # of several holders' trees that are paid for level by level


def check_session(
    table: Table, method: str, n_holders: int, most_released: int = MOST_RELEASED
) -> None:
    """Refuse a session among holders that one of them would have to refuse half-way."""
    n_classes, leaves = table.n_classes, 2 ** (DEEPEST_LEVELS - 1)
    n_questions, n_bins = len(table.candidates), count_bins_of(table.candidates)
    trees = n_holders if method == "vote" else 2
    if trees > MOST_TREES:
        raise ValueError(
            f"method 'vote' compares at most {MOST_TREES} holders' trees, got {n_holders} holders: "
            "use 'delegate' or 'duel'."
        )
    check_leaves(table.schema, 2 * leaves)
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
