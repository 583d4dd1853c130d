"""Plans of the search as trees, and trees as plans."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.splits import SplitTable
from steadytree.models.builder import TreeBuilder
from steadytree.models.tree import LEAF, Tree
from steadytree.robustness.search.problem import Problem, Question

Plan = NDArray[np.int32]


class Stop(Exception):
    """The search ends here, for the reason given."""


class TooExpensive(Exception):
    """Lists grew beyond what they may for now."""


@dataclass(frozen=True)
class Progress:
    """Where a search stands: lost weight (with penalties) of the best tree, and what is certain."""

    seconds: float
    incumbent: float
    bound: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a search found.

    Parameters
    ----------
    plan : int32 array
        The best tree, in preorder at full size: a test, or -1 - label.
    value : float
        Its lost weight, with penalties.
    bound : float
        No tree has a smaller value.
    proven : bool
    reason : str
        "proven", "time limit", "node limit", "interrupted" or "too many candidates".
    shortest : bool
        Whether it is proven that no tree of the same value has fewer questions.
    """

    plan: Plan
    value: float
    bound: float
    proven: bool
    reason: str
    shortest: bool = False


def tree_of(
    plan: NDArray[np.int32],
    problem: Problem,
    space: FeatureSpace,
    classes: NDArray[Any],
    training: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]],
) -> Tree:
    """The tree a plan stands for, with the class shares of training rows (values, labels, weights).

    A leaf whose label is not its most frequent class (the search may have reasons) gets that label
    with certainty, so that the tree answers as planned.
    """
    values, labels, weights = training
    nodes: list[tuple[int, int, int, int]] = []  # split, left, right, label
    totals: list[NDArray[np.float64]] = []
    depth = int(np.log2(len(plan) + 1)) - 1

    def grow(place: int, height: int, rows: NDArray[np.int64]) -> int:
        own, chosen = len(nodes), int(plan[place])
        totals.append(np.bincount(labels[rows], weights[rows], len(classes)).astype(np.float64))
        nodes.append((-1, LEAF, LEAF, -1 - chosen))
        if chosen >= 0:
            on_left = answers(problem.questions[chosen], space, values[rows])
            left = grow(place + 1, height - 1, rows[on_left])
            right = grow(place + 1 + 2**height - 1, height - 1, rows[~on_left])
            nodes[own] = (chosen, left, right, -1)
        return own

    grow(0, depth, np.arange(len(values)))
    split, left, right, label = np.array(nodes).T.copy()
    builder = TreeBuilder(SplitTable.of(space), classes)
    return builder.build(split, left, right, np.array(totals), label=label)


def answers(
    question: Question, space: FeatureSpace, values: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which encoded rows go left."""
    x = values[:, question.column]
    left = x == question.category if np.isnan(question.cut) else x <= question.cut
    if space[question.column].is_categorical and np.isinf(question.cut):
        left = ~np.isnan(x)
    return np.where(np.isnan(x), question.missing_left, left)


def plan_of(
    tree: Tree, problem: Problem, space: FeatureSpace, classes: NDArray[Any], depth: int
) -> NDArray[np.int32]:
    """The plan of a tree over the problem's questions; refuses a tree that asks others."""
    if tree.space.names != space.names:
        raise ValueError(
            f"warm_start is a tree for other columns, {tree.space.names[:5]}: X has "
            f"{space.names[:5]}."
        )
    if tree.depth > depth:
        raise ValueError(
            f"warm_start has depth {tree.depth}, more than max_depth={depth}: give a smaller tree."
        )
    places = {_key(question): place for place, question in enumerate(problem.questions)}
    known = {label: place for place, label in enumerate(classes.tolist())}
    labels = tree.classes.tolist()
    plan = np.zeros(2 ** (depth + 1) - 1, np.int32)

    def fill(node: int, place: int, height: int) -> None:
        if tree.is_leaf[node]:
            plan[place] = -1 - known.get(labels[tree.label[node]], 0)
            return
        plan[place] = _place_of(tree, node, places, space)
        fill(int(tree.left[node]), place + 1, height - 1)
        fill(int(tree.right[node]), place + 1 + 2**height - 1, height - 1)

    fill(0, 0, depth)
    return plan


def _place_of(
    tree: Tree, node: int, places: dict[tuple[Any, ...], int], space: FeatureSpace
) -> int:
    j = int(tree.feature[node])
    category = -1
    if space[j].is_categorical and tree.subset[node].sum() == 1:
        category = int(tree.subset[node].argmax())
    cut = float(tree.threshold[node])
    for missing_left in (bool(tree.missing_left[node]), not tree.missing_left[node]):
        key = j, "category" if np.isnan(cut) else cut, category, missing_left
        if key in places:
            return places[key]
    raise ValueError(
        f"warm_start asks about {space[j].name!r} in a way that is not among the candidate "
        "questions: pass its thresholds in cuts, or leave it out."
    )


def _key(question: Question) -> tuple[Any, ...]:
    cut = "category" if np.isnan(question.cut) else question.cut
    return question.column, cut, question.category, question.missing_left
