"""Complexity: how much a person has to read to understand a tree."""

from dataclasses import dataclass
from operator import add
from typing import Any

import numpy as np

from steadytree.metrics.measurement import Measurement
from steadytree.models.scorecard import Scorecard, as_scorecard
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree

MOST_TOTALS = 100_000  # counted no further


@dataclass(frozen=True)
class Complexity:
    """Sizes of one tree."""

    # n_nodes counts splits and leaves
    n_leaves: int
    depth: int
    n_nodes: int
    n_features: int  # distinct features of the splits
    # distinct pairs of a feature and a threshold (or a set of categories): the interpretation
    # complexity. A split that stands in two places counts once
    n_questions: int
    mean_questions: float  # splits on the path of a row, on average

    def measurements(self) -> tuple[Measurement, ...]:
        """The sizes with what they mean."""
        pairs = "different splits: pairs of a column and a threshold or set of categories"
        mean = "splits on the path of a row on average"
        return (
            Measurement("leaves", self.n_leaves, "number of leaves, each with a prediction"),
            Measurement("depth", self.depth, "most splits on the path of any row"),
            Measurement("nodes", self.n_nodes, "splits and leaves together"),
            Measurement("features", self.n_features, "different columns in the splits"),
            Measurement("interpretation complexity", self.n_questions, pairs),
            Measurement("mean questions", self.mean_questions, mean),
        )


def complexity(model: Any, X: Any = None) -> Complexity:
    """Sizes of a tree or scorecard: leaves, depth, splits.

    Thresholds and groups of categories of a scorecard are its splits, which every row passes; its
    leaves are the totals that can occur, of which about 100,000 are counted.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner or fitted scikit-learn tree
    X : array-like or frame, optional
        Rows over which the mean number of splits is taken; without it, the training rows.

    Returns
    -------
    complexity : Complexity

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0], [1], [2], [3]], ["a", "b", "a", "a"])
    >>> complexity(model)
    Complexity(n_leaves=3, depth=2, n_nodes=5, n_features=1, n_questions=2, mean_questions=1.5)
    >>> complexity(model, [[3], [3]]).mean_questions
    1.0
    """
    scorecard = as_scorecard(model)
    if scorecard is not None:
        return _scorecard_complexity(scorecard)
    tree = as_tree(model)
    return Complexity(
        n_leaves=tree.n_leaves,
        depth=tree.depth,
        n_nodes=tree.n_nodes,
        n_features=len(np.unique(tree.feature[~tree.is_leaf])),
        n_questions=len(distinct_splits(tree)),
        mean_questions=_mean_questions(tree, X),
    )


def _scorecard_complexity(scorecard: Scorecard) -> Complexity:
    """Every threshold and group is a split that every row passes; the leaves are the totals."""
    used = [v for v in scorecard.variables if len({band.points for band in v.bands}) > 1]
    totals, splits = _totals(scorecard), 0
    for variable in used:
        *known, missing = (band.points for band in variable.bands)
        splits += len(known) - 1 + (missing not in known)
    return Complexity(
        n_leaves=len(totals),
        depth=splits,
        n_nodes=splits + len(totals),
        n_features=len(used),
        n_questions=splits,
        mean_questions=float(splits),
    )


def _totals(scorecard: Scorecard) -> set[tuple[int, ...]]:
    """Totals that can occur: conditions on one column cannot hold in every combination."""
    totals = {tuple(scorecard.offset.tolist())}
    for feature in sorted({condition.feature for condition in scorecard.conditions}):
        own = [
            k for k, condition in enumerate(scorecard.conditions) if condition.feature == feature
        ]
        column = scorecard.space[feature]
        tried = np.arange(float(len(column.categories)))
        if not column.is_categorical:  # from each threshold to the next all is the same
            at = np.array([scorecard.conditions[k].threshold for k in own])
            tried = np.append(np.ceil(at) if column.kind in ("integer", "binary") else at, -np.inf)
        tried = np.append(tried, np.nan)
        held = np.stack([scorecard.conditions[k].holds(tried) for k in own], axis=1)
        given = set(map(tuple, (held @ scorecard.points[own]).tolist()))
        totals = {tuple(map(add, total, points)) for total in totals for points in given}
        if len(totals) > MOST_TOTALS:
            break
    return totals


def distinct_splits(tree: Tree) -> set[tuple[int, float, bytes]]:
    """Feature, threshold and set of categories of every split, each once."""
    inner = np.flatnonzero(~tree.is_leaf)
    thresholds = np.nan_to_num(tree.threshold[inner], posinf=np.inf, neginf=-np.inf)  # nan as 0
    subsets = [tree.subset[node].tobytes() for node in inner]
    return set(zip(tree.feature[inner].tolist(), thresholds.tolist(), subsets, strict=True))


def _mean_questions(tree: Tree, X: Any) -> float:
    if X is not None:
        leaves = tree.apply(X)
        if len(leaves) == 0:
            raise ValueError("X has no rows: the mean number of splits needs at least one.")
        return float(tree.node_depth[leaves].mean())
    leaves = np.flatnonzero(tree.is_leaf)
    weight = tree.weight[leaves]
    if not weight.any():  # a tree without training weights: every leaf counts once
        weight = np.ones(len(leaves))
    return float(np.average(tree.node_depth[leaves], weights=weight))
