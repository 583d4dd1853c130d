"""Retraining after 60 tiny drifts, beside every small tree there is.

``python studies/steady/retrain_tiny.py [--first SEED] [--count N]``: two columns of four values, 60
rows before and 60 after a drift, trees of depth 2. Counted are the drifts after which some tree of
depth 2, without an empty leaf, is nearer to the tree in use by path distance and decides at
least as many of the new rows correctly; those after which such a tree also changes no more
decisions than the plain refit, a limit that the retrained tree keeps; and those after which it
changes no more than the retrained one. Seeds below 60, and 60 from 3000 and 6000 on, were looked
at while this was made.
"""

import argparse
from itertools import product

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.distance.path import distances_between
from steadytree.stability.new_rows import Leaf, NewRows, Split

N_VALUES, N_ROWS = 4, 60
EVEN = np.array([0.5, 0.5])


def draw(rng, chances):
    X = rng.integers(0, N_VALUES, (N_ROWS, 2)).astype(float)
    cell = X.astype(int)
    return X, (chances[cell[:, 0], cell[:, 1]] > rng.random(N_ROWS)).astype(int)


def drifts(first, count):
    """The tree in use, its learner, and rows after a drift: a region, a shift, or none."""
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        chances = np.where(rng.random((N_VALUES, N_VALUES)) < 0.5, 0.15, 0.85)
        learner = DecisionTreeClassifier(max_leaf_nodes=4, max_depth=2, random_state=0)
        old = learner.fit(*draw(rng, chances))
        if seed % 3 == 0:
            row = rng.integers(N_VALUES)
            chances[row] = 1 - chances[row]
        elif seed % 3 == 1:
            chances = np.roll(chances, 1, axis=0)
        yield seed, st.as_tree(old), learner, *draw(rng, chances)


def small_trees():
    """All trees of depth 2, nested."""
    cuts = np.arange(N_VALUES - 1) + 0.5
    splits = [Split(j, cut, np.zeros(0, bool), False) for j in (0, 1) for cut in cuts]
    ends = [Leaf(label, EVEN) for label in (0, 1)]
    sides = [*ends, *product(splits, ends, ends)]
    return [*ends, *product(splits, sides, sides)]


def nearer(model, X, y):
    """Whether a small tree is nearer and as accurate; and flips no more than refit; than model."""
    old = model.previous_tree_
    rows = NewRows(old, X, y, np.ones(len(y)), log_loss=False)
    loss, flips = rows.measure(model.tree_)[:2]
    limits, found = (np.inf, rows.measure(model.refit_)[1], flips), []
    for nested in small_trees():
        worth, changed, empty = worth_of(rows, nested, rows.everyone)
        if worth <= loss and not empty:
            found.append((nested, [changed <= limit for limit in limits]))
    if not found:
        return [False] * len(limits)
    trees = [rows.tree_of(nested) for nested, _ in found]
    near = distances_between(trees, [old], old.space)[:, 0] < model.choice_.distance - 1e-6
    return [bool((near & few).any()) for few in np.array([few for _, few in found]).T]


def worth_of(rows, nested, own):
    """Loss, flips and empty leaves."""
    if isinstance(nested, Leaf):
        return *rows.leaf_point(*rows.counts(own), nested), int(len(own) == 0)
    goes = rows.goes_left(nested[0], own)
    sides = worth_of(rows, nested[1], own[goes]), worth_of(rows, nested[2], own[~goes])
    return tuple(map(sum, zip(*sides, strict=True)))


def main(arguments=None):
    """Count over all drifts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--count", type=int, default=60)
    asked = parser.parse_args(arguments)
    found = []
    for seed, old, learner, X, y in drifts(asked.first, asked.count):
        model = st.RetrainedTreeClassifier(old, learner, random_state=seed).fit(X, y)
        found.append(nearer(model, X, y))
    near, allowed, few = np.sum(found, axis=0)
    print(
        f"of {len(found)} drifts: a small tree is nearer and as accurate after {near}, "
        f"changes no more decisions than the refit too after {allowed}, "
        f"and no more than the retrained tree after {few}"
    )


if __name__ == "__main__":
    main()
