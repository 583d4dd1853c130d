"""Columns of two trees together: widest bounds, all categories, each column once."""

from dataclasses import replace

import numpy as np
import pytest

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.boxes import shared_space, space_of_both, widen
from steadytree.models.tree import Tree
from tests.models.trees import deep_tree, random_tree

COLUMNS = ("a", "b", "c", "d")


def asking(known, asked):
    """A tree over some columns that asks about one of them."""
    space = FeatureSpace.declare(dict.fromkeys(known, (0, 4)))
    place = known.index(asked)
    shape = [place, -1, -1], [2.0, np.nan, np.nan], [1, -1, -1], [2, -1, -1]
    return Tree(space, ["no", "yes"], *shape, [[0.5, 0.5], [1, 0], [0, 1]], [2, 1, 1])


def test_a_tree_and_its_successor_over_other_columns():
    """Every pair of up to four columns: what only the old tree knows stays where it asks for it."""
    lists = [COLUMNS[:k] for k in (1, 2, 3)] + [COLUMNS[k:] for k in (1, 2)] + [("b", "a")]
    refused = 0
    for old_names in lists:
        for new_names in lists:
            for old_asks in old_names:
                for new_asks in new_names:
                    old, new = asking(old_names, old_asks), asking(new_names, new_asks)
                    only_old, only_new = old_asks not in new_names, new_asks not in old_names
                    other = set(old_names) != set(new_names)
                    renamed = only_old and only_new
                    if other and (renamed or not set(old_names) & set(new_names)):
                        refused += 1
                        with pytest.raises(ValueError, match="different features"):
                            space_of_both(old, new)
                        continue
                    found = space_of_both(old, new).names
                    if other:
                        assert found == (*new_names, *([old_asks] if only_old else []))
                    else:
                        assert sorted(found) == sorted(old_names)
    assert refused > 10


@pytest.mark.parametrize("seed", range(20))
def test_a_shared_column_holds_both(seed):
    rng = np.random.default_rng(seed)
    trees = []
    for _ in range(2):
        low, wide = rng.integers(-3, 3), rng.integers(1, 5)
        kind = str(rng.choice(["numeric", "integer"]))
        texts = tuple(f"c{k}" for k in rng.permutation(5)[: rng.integers(1, 5)])
        number = Column("n", kind, float(low), float(low + wide), missing=bool(rng.integers(2)))
        group = Column("g", "categorical", categories=texts, missing=bool(rng.integers(2)))
        trees.append(FeatureSpace((number, group)))
    (n, g), (other, more) = trees
    number, group = shared_space(trees)
    assert (number.low, number.high) == (min(n.low, other.low), max(n.high, other.high))
    assert number.kind == (n.kind if n.kind == other.kind else "numeric")
    assert number.missing == (n.missing or other.missing)
    assert group.missing == (g.missing or more.missing)
    added = [text for text in more.categories if text not in g.categories]
    assert list(group.categories) == [*g.categories, *added]


@pytest.mark.parametrize("seed", range(20))
def test_widened_bounds_hold_every_threshold(seed):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, n_numeric=1, n_categorical=0), deep_tree(3, lambda k: k - 2.0)]
    for tree in trees:
        (column,) = tree.space
        narrow = FeatureSpace((replace(column, low=-0.1, high=0.1),))
        (found,) = widen(narrow, [tree])
        at = [x for x in tree.threshold.tolist() if np.isfinite(x)]
        assert (found.low, found.high) == (min([-0.1, *at]), max([0.1, *at]))
