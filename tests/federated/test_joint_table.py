"""JointTable: every row is in the cell of its answers, and the tree is the best of all trees."""

import itertools

import numpy as np
import pytest

from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.federated.joint_table import PENALTY, JointTable
from steadytree.privacy.growers import RowsInMemory
from steadytree.privacy.sampled_tree import leaves_of
from steadytree.privacy.tree_mechanism import leaf_counts

SCHEMA = Schema({"a": (0, 8)}, {"c": ["x", "y", "z"], "d": ["n", "y"]}, classes=["no", "yes"])
CANDIDATES = SplitTable.declared(SCHEMA.space, 4)
# one row a combination, "?" and None stand for all that is not declared
SPACE = list(itertools.product([1, 3, 5, 7, None], ["x", "y", "z", "?"], ["n", "y", "?"]))


def block(rows=SPACE, labels=None):
    labels = ["no"] * len(rows) if labels is None else labels
    return RowsInMemory(SCHEMA, [list(row) for row in rows], labels).block(CANDIDATES)


def answers(split):
    """By brute force: 0 for each row on the split's yes side, 1 for the others."""
    return np.where(CANDIDATES.goes_left(block().binned, split), 0, 1)


@pytest.mark.parametrize("n_splits", [1, 2, 3, 4])
def test_every_row_is_in_the_cell_of_its_answers(n_splits):
    for splits in itertools.combinations(range(len(CANDIDATES)), n_splits):
        table = JointTable.of(splits, CANDIDATES)
        own = np.array([answers(split) for split in splits]).T
        expected = {tuple(row): (own == row).all(axis=1).sum() for row in own}
        counts = leaf_counts(table.tree, block(), CANDIDATES)[:, 0]
        found = {tuple(row): n for row, n in zip(table.answers, counts, strict=True)}
        # cells that no row can be in are left out: thresholds of one column, two of its categories
        assert found == expected


def best_value(rows, labels, splits, variance, n_cells):
    """The value of the best tree by trying all: a leaf, or a split with two best trees below."""
    leaf = np.bincount(labels[rows], minlength=2).max() - PENALTY * np.sqrt(
        variance * n_cells(rows)
    )
    values = [leaf]
    for split in splits:
        sides = [rows[answers(split)[rows] == side] for side in (0, 1)]
        if all(map(len, sides)):
            below = (best_value(side, labels, splits, variance, n_cells) for side in sides)
            values.append(sum(below))
    return max(values)


@pytest.mark.parametrize("seed", range(6))
def test_the_tree_is_the_best_of_all_trees_of_its_splits(seed):
    rng = np.random.default_rng(seed)
    splits = tuple(rng.choice(len(CANDIDATES), 3, replace=False).tolist())
    labels, variance = rng.integers(0, 2, len(SPACE)), float(rng.choice([0.0, 0.05, 0.6]))
    table, own = JointTable.of(splits, CANDIDATES), np.array([answers(split) for split in splits]).T
    exact = leaf_counts(table.tree, block(SPACE, np.array(["no", "yes"])[labels]), CANDIDATES)
    tree, counts = table.best_tree(exact, variance)
    assert (
        leaf_counts(tree, block(SPACE, np.array(["no", "yes"])[labels]), CANDIDATES) == counts
    ).all()

    def n_cells(rows):
        return len({tuple(row) for row in own[rows]})

    sizes = [n_cells(np.flatnonzero(part)) for part in _leaf_masks(tree)]
    value = counts.max(axis=1).sum() - PENALTY * np.sqrt(variance * np.array(sizes)).sum()
    assert len(sizes) == len(leaves_of(tree)) == len(counts)
    every = np.arange(len(SPACE))
    assert value == pytest.approx(best_value(every, labels, splits, variance, n_cells))


def _leaf_masks(tree, rows=None):
    rows = np.ones(len(SPACE), bool) if rows is None else rows
    if tree.is_leaf:
        return [rows]
    yes = answers(tree.split) == 0
    return [*_leaf_masks(tree.yes, rows & yes), *_leaf_masks(tree.no, rows & ~yes)]


def test_leaves_that_noise_makes_are_few():
    """64 cells without a row: the penalty of leaves leaves less than a quarter of them."""
    schema = Schema({}, {f"c{k}": ["n", "y"] for k in range(6)}, classes=["no", "yes"])
    table = JointTable.of(range(6), SplitTable.declared(schema.space, 2))
    noisy = np.random.default_rng(0).normal(0, 5, (20, 64, 2))
    sizes = [[len(table.best_tree(each, known)[1]) for each in noisy] for known in (25.0, 0.0)]
    assert np.mean(sizes[0]) < np.mean(sizes[1]) / 4
