"""Plans of the search as trees, and trees as plans."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.feature_space import FeatureSpace
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
    """What a search found."""

    plan: Plan  # the best tree, in preorder at full size: a test, or -1 - label
    value: float  # its lost weight, with penalties
    bound: float  # no tree has a smaller value
    proven: bool
    reason: str  # "proven", "time limit", "node limit", "interrupted" or "too many candidates"
    # whether it is proven that no tree of the same value has fewer questions
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
    nodes: list[dict[str, Any]] = []
    depth = int(np.log2(len(plan) + 1)) - 1

    def grow(place: int, height: int, rows: NDArray[np.int64]) -> int:
        own = len(nodes)
        counts = np.bincount(labels[rows], weights[rows], len(classes))
        nodes.append({"counts": counts, "asked": None, "label": -1 - int(plan[place])})
        if plan[place] >= 0:
            question = problem.questions[plan[place]]
            on_left = answers(question, space, values[rows])
            left = grow(place + 1, height - 1, rows[on_left])
            right = grow(place + 1 + 2**height - 1, height - 1, rows[~on_left])
            nodes[own] |= {"asked": question, "left": left, "right": right}
        return own

    grow(0, depth, np.arange(len(values)))
    return _flat_tree(nodes, space, classes, values).prune()


def answers(
    question: Question, space: FeatureSpace, values: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which encoded rows go left."""
    x = values[:, question.column]
    left = x == question.category if np.isnan(question.cut) else x <= question.cut
    if space[question.column].is_categorical and np.isinf(question.cut):
        left = ~np.isnan(x)
    return np.where(np.isnan(x), question.missing_left, left)


def _flat_tree(
    nodes: list[dict[str, Any]],
    space: FeatureSpace,
    classes: NDArray[Any],
    values: NDArray[np.float64],
) -> Tree:
    n, width = len(nodes), max(len(column.categories) for column in space)
    feature, left, right = np.full(n, LEAF), np.full(n, LEAF), np.full(n, LEAF)
    threshold, subset = np.full(n, np.nan), np.zeros((n, width), bool)
    missing_left = np.zeros(n, bool)
    weight = np.array([node["counts"].sum() for node in nodes])
    value = np.array([_shares(node, len(classes)) for node in nodes])
    for place, node in enumerate(nodes):
        asked: Question | None = node["asked"]
        if asked is None:
            continue
        feature[place], left[place], right[place] = asked.column, node["left"], node["right"]
        column = space[asked.column]
        if column.is_categorical:
            subset[place, : len(column.categories)] = (
                True if np.isinf(asked.cut) else np.arange(len(column.categories)) == asked.category
            )
        else:
            threshold[place] = asked.cut
        # a column without missing values in training sends later ones where most rows went
        seen = np.isnan(values[:, asked.column]).any()
        larger = weight[node["left"]] >= weight[node["right"]]
        missing_left[place] = asked.missing_left if seen else larger
    return Tree(
        space, classes, feature, threshold, left, right, value, weight, missing_left, subset
    )


def _shares(node: dict[str, Any], n_classes: int) -> NDArray[np.float64]:
    counts = node["counts"]
    if node["asked"] is not None and counts.sum() > 0:
        return counts / counts.sum()
    label = node["label"] if node["asked"] is None else 0
    if counts.sum() > 0 and counts.argmax() == label:
        return counts / counts.sum()
    return np.eye(n_classes)[label]


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
