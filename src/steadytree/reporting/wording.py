"""Wording of trees: splits and conditions as text, nodes as plain dicts."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import Column
from steadytree.models.tree import LEAF, Tree
from steadytree.reporting.formatting import label_text, number_text, one_line, plain_text, shorten

FINEST = 1e-3  # share of a column's range that rounding may move a threshold by
MOST_CATEGORIES = 4
LONGEST_CATEGORY = 24
MOST_LISTED = 50  # in a tooltip


@dataclass(frozen=True)
class SplitText:
    """One split as text."""

    feature: str
    test: str  # such as ``≤ 43`` or ``in {red, blue}``; yes goes left
    missing: str  # branch of missing values, "yes" or "no"; empty where the column has none
    exact: str  # the test without rounding or shortening

    @property
    def text(self) -> str:
        return f"{self.feature} {self.test}"

    @property
    def full(self) -> str:
        """The exact split, with the branch of missing values."""
        where = f"; missing: {self.missing}" if self.missing else ""
        return f"{self.feature} {self.exact}{where}"


def describe_split(tree: Tree, node: int) -> SplitText:
    """The split of an inner node as text."""
    if tree.left[node] == LEAF:
        raise ValueError(f"node {node} is a leaf: it has no split.")
    column = tree.space[int(tree.feature[node])]
    side = ("yes" if tree.missing_left[node] else "no") if column.missing else ""
    if column.is_categorical:
        test, exact = _category_tests(column, tree.subset[node])
    else:
        test, exact = _number_tests(column, float(tree.threshold[node]), _thresholds(tree, node))
    if test in ("is present", "is missing"):
        side = ""
    return SplitText(one_line(column.name), test, side, exact)


def conditions(tree: Tree, node: int) -> list[str]:
    """Conditions that the rows of a node meet, one a feature, from the root down.

    Repeated splits on a feature are merged: ``43 < age ≤ 60``.
    """
    by_feature: dict[int, list[tuple[int, bool]]] = {}
    for above, below in itertools.pairwise(tree.path(node)):
        step = above, bool(tree.left[above] == below)
        by_feature.setdefault(int(tree.feature[above]), []).append(step)
    return [_phrase(tree, tree.space[feature], steps) for feature, steps in by_feature.items()]


def _list_text(names: list[str], most: int, longest: int) -> str:
    """A list of names, shortened after a few."""
    shown = [shorten(label_text(name), longest) for name in names[:most]]
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return ", ".join(shown + more)


def _number_tests(
    column: Column, threshold: float, thresholds: NDArray[np.float64]
) -> tuple[str, str]:
    if math.isinf(threshold):
        text = "is present" if threshold > 0 else "is missing"
        return text, text
    if column.kind == "binary" and 0 <= threshold < 1:
        return "= 0", "= 0"
    text = _threshold_text(column, threshold, thresholds)
    exact = text if column.kind == "integer" else plain_text(threshold)
    return f"≤ {text}", f"≤ {exact}"


def _threshold_text(column: Column, threshold: float, thresholds: NDArray[np.float64]) -> str:
    if column.kind in ("integer", "binary"):
        return plain_text(float(math.floor(threshold)))
    tolerance = FINEST * ((column.high - column.low) or abs(threshold))
    others = thresholds[thresholds != threshold]
    if len(others):  # different thresholds must read differently
        tolerance = min(tolerance, float(np.abs(others - threshold).min()) / 4)
    return number_text(threshold, tolerance)


def _thresholds(tree: Tree, node: int) -> NDArray[np.float64]:
    """All finite thresholds of a node's feature in the tree."""
    same = tree.threshold[(tree.feature == tree.feature[node]) & (tree.left != LEAF)]
    return np.unique(same[np.isfinite(same)])


def _category_tests(column: Column, subset: NDArray[np.bool_]) -> tuple[str, str]:
    flags = subset[: len(column.categories)]
    inside = [name for name, flag in zip(column.categories, flags, strict=True) if flag]
    outside = [name for name, flag in zip(column.categories, flags, strict=True) if not flag]
    if not outside:
        return "is present", "is present"
    if len(inside) == 1:
        return f"= {_list_text(inside, 1, LONGEST_CATEGORY)}", f"= {_list_text(inside, 1, 200)}"
    exact = f"in {{{_list_text(inside, MOST_LISTED, longest=200)}}}"
    if column.ordered and tuple(inside) == column.categories[: len(inside)]:
        return f"≤ {_list_text(inside[-1:], 1, LONGEST_CATEGORY)}", exact
    if column.ordered and tuple(outside) == column.categories[: len(outside)]:
        return f"> {_list_text(outside[-1:], 1, LONGEST_CATEGORY)}", exact
    if len(outside) == 1 and len(inside) > 2:
        return f"≠ {_list_text(outside, 1, LONGEST_CATEGORY)}", exact
    return f"in {{{_list_text(inside, MOST_CATEGORIES, LONGEST_CATEGORY)}}}", exact


def _phrase(tree: Tree, column: Column, steps: list[tuple[int, bool]]) -> str:
    """The condition of all nodes on a path that split a column; True where the path goes left."""
    missing = column.missing and all(tree.missing_left[node] == yes for node, yes in steps)
    describe = _category_phrase if column.is_categorical else _number_phrase
    phrase = describe(tree, column, steps)
    if phrase == "":
        name = one_line(column.name)
        return f"{name} is missing" if missing else f"impossible: no value of {name} fits"
    return f"{phrase} or missing" if missing else phrase


def _number_phrase(tree: Tree, column: Column, nodes: list[tuple[int, bool]]) -> str:
    thresholds = _thresholds(tree, nodes[0][0])
    high = min((float(tree.threshold[node]) for node, yes in nodes if yes), default=math.inf)
    low = max((float(tree.threshold[node]) for node, yes in nodes if not yes), default=-math.inf)
    if low >= high:
        return ""
    name = one_line(column.name)
    if math.isinf(low) and math.isinf(high):
        return f"{name} is present"
    if column.kind == "binary" and thresholds[0] >= 0 and thresholds[-1] < 1:
        return f"{name} = {0 if math.isinf(low) else 1}"
    below = "" if math.isinf(high) else _threshold_text(column, high, thresholds)
    above = "" if math.isinf(low) else _threshold_text(column, low, thresholds)
    if above and below:
        return f"{above} < {name} ≤ {below}"
    return f"{name} ≤ {below}" if below else f"{name} > {above}"


def _category_phrase(tree: Tree, column: Column, nodes: list[tuple[int, bool]]) -> str:
    flags = np.ones(len(column.categories), bool)
    for node, yes in nodes:
        flags &= tree.subset[node][: len(flags)] == yes
    if not flags.any():
        return ""
    return f"{one_line(column.name)} {_category_tests(column, flags)[0]}"


N_BINS, MOST_BARS = 16, 40  # of a node's histogram
MOST_LEAVES = 64  # a picture with more cannot be read
DEEPEST = 10


def build_nodes(tree: Tree, X: Any, truth: NDArray[np.int64]) -> dict[str, Any]:
    """Nodes in the order root, left, right, with the rows of X that reach them.

    A tree with more than 64 leaves or 10 levels is cut back to its upper levels; ``n_below`` is the
    number of leaves that a node stands for. `truth` holds the index of each row's class.
    """
    shown, original = upper_levels(tree)
    values = np.asarray(tree.space.encode(X), np.float64)
    leaves = shown.apply_encoded(values)
    counts = count_rows(shown, leaves, truth)
    n_leaves = sum_over_leaves(tree, tree.is_leaf.astype(np.int64))[original]
    indices = {int(node): index for index, node in enumerate(shown.preorder)}
    nodes = []
    for node in shown.preorder.tolist():
        own = _node(shown, node, indices, counts, int(original[node]), int(n_leaves[node]))
        if "left" in own:
            rows = np.isin(leaves, _leaves_below(shown, node))
            x = values[rows, shown.feature[node]]
            own["histogram"] = _histogram(shown, node, x, truth[rows])
        nodes.append(own)
    return {
        "classes": [label_text(label) for label in tree.classes.tolist()],
        "nodes": nodes,
        "n_leaves": tree.n_leaves,
        "n_leaves_shown": shown.n_leaves,
        "depth": tree.depth,
        "depth_shown": shown.depth,
        "note": tree.note,
    }


def upper_levels(tree: Tree) -> tuple[Tree, NDArray[np.int64]]:
    """The upper levels that a picture has room for, and each node's index in the whole tree."""
    for depth in range(min(tree.depth, DEEPEST), 0, -1):
        below = tree.node_depth > depth
        ends = (tree.node_depth == depth) & ~tree.is_leaf
        n_leaves = int((tree.is_leaf & ~below).sum() + ends.sum())
        if n_leaves <= MOST_LEAVES or depth == 1:
            return tree.restrict(np.flatnonzero(ends)), np.flatnonzero(~below)
    return tree, np.arange(tree.n_nodes)


def _leaves_below(tree: Tree, node: int) -> NDArray[np.int64]:
    flags = np.zeros(tree.n_nodes, bool)
    flags[node] = True
    for above in range(node, tree.n_nodes):  # children come later
        if flags[above] and not tree.is_leaf[above]:
            flags[[tree.left[above], tree.right[above]]] = True
    return np.flatnonzero(flags & tree.is_leaf)


def _histogram(
    tree: Tree, node: int, x: NDArray[np.float64], truth: NDArray[np.int64]
) -> dict[str, Any] | None:
    """Rows of a node by class in bins of its column, and where the split divides them (0 to 1).

    Categories on the yes side come first. None where no value is known.
    """
    known = ~np.isnan(x)
    x, truth = x[known], truth[known]
    if not len(x):
        return None
    column, at = tree.space[int(tree.feature[node])], float(tree.threshold[node])
    if column.is_categorical:
        order = np.argsort(~tree.subset[node][: len(column.categories)], kind="stable")
        position = np.argsort(order)[x.astype(np.int64)]
        n_bins, divided = len(order), int(tree.subset[node].sum()) / len(order)
    else:
        low, high = np.quantile(x, [0.01, 0.99])  # outliers would leave one bar
        if np.isfinite(at):
            low, high = min(low, at), max(high, at)
        width = (high - low) or 1.0
        n_bins, divided = N_BINS, float(np.clip((at - low) / width, 0.0, 1.0))
        position = np.clip(((x - low) / width * N_BINS).astype(np.int64), 0, N_BINS - 1)
    counts = np.zeros((n_bins, len(tree.classes)), np.int64)
    np.add.at(counts, (position, truth), 1)
    return {"counts": counts[:MOST_BARS].tolist(), "at": divided}


def count_rows(
    tree: Tree, leaves: NDArray[np.int64], truth: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rows that reach each node, by class: (n_nodes, n_classes); `leaves` holds each row's leaf."""
    n_classes = len(tree.classes)
    counts = np.bincount(leaves * n_classes + truth, minlength=tree.n_nodes * n_classes)
    return sum_over_leaves(tree, counts.reshape(tree.n_nodes, n_classes))


def sum_over_leaves(tree: Tree, values: NDArray[Any]) -> NDArray[Any]:
    """Values of the leaves, summed up for the nodes above them."""
    total = values.copy()
    for node in np.flatnonzero(~tree.is_leaf)[::-1]:  # children come later
        total[node] = total[tree.left[node]] + total[tree.right[node]]
    return total


def _node(
    tree: Tree,
    node: int,
    indices: dict[int, int],
    counts: NDArray[np.int64],
    original: int,
    n_below: int,
) -> dict[str, Any]:
    rows = int(counts[node].sum())
    parent = int(tree.parent[node])
    found = {
        "id": original,
        "place": indices[node],
        "parent": indices[parent] if node else None,
        "side": ("yes" if tree.left[parent] == node else "no") if node else None,
        "depth": int(tree.node_depth[node]),
        "n_rows": rows,
        "share": rows / max(int(counts[0].sum()), 1),
        "counts": counts[node].tolist(),
        "answer": int(tree.label[node]),
        "n_below": n_below,
        "fitted_weight": float(tree.weight[node]),
        "fitted_shares": [round(float(share), 6) for share in tree.value[node]],
    }
    if tree.is_leaf[node]:
        return found | {"conditions": conditions(tree, node)}
    split = describe_split(tree, node)
    threshold = float(tree.threshold[node])
    return found | {
        "left": indices[int(tree.left[node])],
        "right": indices[int(tree.right[node])],
        "feature": split.feature,
        "test": split.test,
        "missing": split.missing,
        "question": split.text,
        "full": split.full,
        "threshold": threshold if np.isfinite(threshold) else None,
    }
