"""Tree nodes: a tree and the rows that reach its nodes, as plain dicts."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import Column
from steadytree.models.tree import LEAF, Tree
from steadytree.reporting.formatting import number_text, plain_text

FINEST = 1e-3  # share of a column's range that rounding may move a threshold by
MOST_CATEGORIES = 4
LONGEST_CATEGORY = 24
MOST_LISTED = 50  # in a tooltip


@dataclass(frozen=True)
class Question:
    """One split as words.

    Parameters
    ----------
    feature : str
        Name of the column.
    test : str
        What is asked of it, such as ``≤ 43`` or ``in {red, blue}``; yes goes left.
    missing : str
        Where missing values go, ``"yes"`` or ``"no"``; empty where the column has none.
    exact : str
        The test without rounding or cutting.
    """

    feature: str
    test: str
    missing: str
    exact: str

    @property
    def text(self) -> str:
        return f"{self.feature} {self.test}"

    @property
    def full(self) -> str:
        """The whole question, with where missing values go."""
        where = f"; missing: {self.missing}" if self.missing else ""
        return f"{self.feature} {self.exact}{where}"


def ask(tree: Tree, node: int) -> Question:
    """The question of an inner node.

    Parameters
    ----------
    tree : Tree
    node : int

    Returns
    -------
    question : Question

    Examples
    --------
    >>> import numpy as np
    >>> from steadytree.data.feature_space import FeatureSpace
    >>> space = FeatureSpace.declare({"age": (18, 90)}, kinds={"age": "integer"}, missing=False)
    >>> tree = Tree(space, ["no", "yes"], [0, -1, -1], [43.5, np.nan, np.nan], [1, -1, -1],
    ...             [2, -1, -1], [[0.5, 0.5], [1, 0], [0, 1]], [2, 1, 1])
    >>> ask(tree, 0).text
    'age ≤ 43'
    """
    if tree.left[node] == LEAF:
        raise ValueError(f"node {node} is a leaf: it asks nothing.")
    column = tree.space[int(tree.feature[node])]
    side = ("yes" if tree.missing_left[node] else "no") if column.missing else ""
    if column.is_categorical:
        test, exact = _category_tests(column, tree.subset[node])
    else:
        test, exact = _number_tests(column, float(tree.threshold[node]), _cuts(tree, node))
    if test in ("is present", "is missing"):
        side = ""
    return Question(one_line(column.name), test, side, exact)


def conditions(tree: Tree, node: int) -> list[str]:
    """What holds for the rows of a node, one phrase a feature, in order of asking.

    Repeated questions about a feature are drawn together: ``43 < age ≤ 60``.
    """
    path = tree.path(node)
    phrases = {}
    for feature in dict.fromkeys(int(tree.feature[step]) for step in path[:-1]):
        steps = [
            (above, below)
            for above, below in itertools.pairwise(path)
            if tree.feature[above] == feature
        ]
        phrases[feature] = _phrase(tree, feature, steps)
    return list(phrases.values())


def _list_text(names: list[str], most: int, longest: int) -> str:
    """Names in a row, cut after a few."""
    shown = [cut_text(one_line(name), longest) for name in names[:most]]
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return ", ".join(shown + more)


def one_line(text: Any) -> str:
    r"""Text without line breaks and other characters that are not seen.

    Examples
    --------
    >>> one_line("age\n(years)\x1b[0m")
    'age (years)[0m'
    """
    spaced = " ".join(str(text).split())
    return "".join(letter for letter in spaced if letter.isprintable())


def label_text(label: Any) -> str:
    """A class as it is shown; one without any letters too.

    Examples
    --------
    >>> label_text("high risk"), label_text("")
    ('high risk', '(empty)')
    """
    return one_line(label) or "(empty)"


def cut_text(text: str, most: int) -> str:
    """Text of at most so many characters, the middle left out.

    Examples
    --------
    >>> cut_text("a_very_long_name_of_a_column", 15)
    'a_very_…_column'
    """
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def _number_tests(column: Column, threshold: float, cuts: NDArray[np.float64]) -> tuple[str, str]:
    if threshold == math.inf:
        return "is present", "is present"
    if threshold == -math.inf:
        return "is missing", "is missing"
    if column.kind == "binary" and 0 <= threshold < 1:
        return "= 0", "= 0"
    edge = _edge_text(column, threshold, cuts)
    exact = edge if column.kind == "integer" else plain_text(threshold)
    return f"≤ {edge}", f"≤ {exact}"


def _edge_text(column: Column, threshold: float, cuts: NDArray[np.float64]) -> str:
    if column.kind in ("integer", "binary"):
        return plain_text(float(math.floor(threshold)))
    tolerance = FINEST * ((column.high - column.low) or abs(threshold))
    others = cuts[cuts != threshold]
    if len(others):  # different thresholds must read differently
        tolerance = min(tolerance, float(np.abs(others - threshold).min()) / 4)
    return number_text(threshold, tolerance)


def _cuts(tree: Tree, node: int) -> NDArray[np.float64]:
    """All finite thresholds that the tree asks of a node's feature."""
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
    if len(outside) == 1 and len(inside) > 2:
        return f"≠ {_list_text(outside, 1, LONGEST_CATEGORY)}", exact
    return f"in {{{_list_text(inside, MOST_CATEGORIES, LONGEST_CATEGORY)}}}", exact


def _phrase(tree: Tree, feature: int, steps: list[tuple[int, int]]) -> str:
    column = tree.space[feature]
    missing = column.missing and all(
        tree.missing_left[above] == (tree.left[above] == below) for above, below in steps
    )
    nodes = [(above, tree.left[above] == below) for above, below in steps]
    if column.is_categorical:
        phrase = _category_phrase(tree, column, nodes)
    else:
        phrase = _number_phrase(tree, column, nodes)
    if phrase == "":
        name = one_line(column.name)
        return f"{name} is missing" if missing else f"impossible: no value of {name} fits"
    return f"{phrase} or missing" if missing else phrase


def _number_phrase(tree: Tree, column: Column, nodes: list[tuple[int, bool]]) -> str:
    cuts = _cuts(tree, nodes[0][0])
    high = min((float(tree.threshold[node]) for node, yes in nodes if yes), default=math.inf)
    low = max((float(tree.threshold[node]) for node, yes in nodes if not yes), default=-math.inf)
    if low >= high:
        return ""
    name = one_line(column.name)
    if math.isinf(low) and math.isinf(high):
        return f"{name} is present"
    if column.kind == "binary" and cuts[0] >= 0 and cuts[-1] < 1:
        return f"{name} = {0 if math.isinf(low) else 1}"
    below = "" if math.isinf(high) else _edge_text(column, high, cuts)
    above = "" if math.isinf(low) else _edge_text(column, low, cuts)
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


MOST_LEAVES = 64  # a picture with more cannot be read
DEEPEST = 10


def build_nodes(tree: Tree, X: Any, truth: NDArray[np.int64]) -> dict[str, Any]:
    """Nodes in the order root, left, right, with the rows of X that reach them.

    A tree with more than 64 leaves or 10 levels is cut back to its upper levels; the nodes that
    stand for a whole sub-tree say in ``n_below`` how many leaves it has.

    Parameters
    ----------
    tree : Tree
    X : rows to send down the tree
    truth : int64 array
        Place of each row's class in ``tree.classes``.

    Returns
    -------
    dict with classes, nodes, n_leaves (of the whole tree), n_leaves_shown and the tree's note
    """
    shown, original = cut_back(tree)
    counts = count_rows(shown, X, truth)
    n_leaves = leaves_below(tree)[original]
    places = {int(node): place for place, node in enumerate(shown.preorder)}
    return {
        "classes": [label_text(label) for label in tree.classes.tolist()],
        "nodes": [
            _node(shown, int(node), places, counts, int(original[node]), int(n_leaves[node]))
            for node in shown.preorder
        ],
        "n_leaves": tree.n_leaves,
        "n_leaves_shown": shown.n_leaves,
        "depth": tree.depth,
        "depth_shown": shown.depth,
        "note": tree.note,
    }


def cut_back(tree: Tree) -> tuple[Tree, NDArray[np.int64]]:
    """The upper levels that a picture has room for, and each node's index in the whole tree."""
    for depth in range(min(tree.depth, DEEPEST), 0, -1):
        below = tree.node_depth > depth
        ends = (tree.node_depth == depth) & ~tree.is_leaf
        n_leaves = int((tree.is_leaf & ~below).sum() + ends.sum())
        if n_leaves <= MOST_LEAVES or depth == 1:
            return tree.restrict(np.flatnonzero(ends)), np.flatnonzero(~below)
    return tree, np.arange(tree.n_nodes)


def count_rows(tree: Tree, X: Any, truth: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows that reach each node, by class: (n_nodes, n_classes)."""
    n_classes = len(tree.classes)
    cells = tree.apply(X) * n_classes + truth
    counts = np.bincount(cells, minlength=tree.n_nodes * n_classes)
    counts = counts.reshape(tree.n_nodes, n_classes)
    for node in np.flatnonzero(~tree.is_leaf)[::-1]:  # children come later
        counts[node] = counts[tree.left[node]] + counts[tree.right[node]]
    return counts


def leaves_below(tree: Tree) -> NDArray[np.int64]:
    """Number of leaves under each node; 1 for a leaf."""
    leaves = tree.is_leaf.astype(np.int64)
    for node in np.flatnonzero(~tree.is_leaf)[::-1]:
        leaves[node] = leaves[tree.left[node]] + leaves[tree.right[node]]
    return leaves


def _node(
    tree: Tree,
    node: int,
    places: dict[int, int],
    counts: NDArray[np.int64],
    original: int,
    n_below: int,
) -> dict[str, Any]:
    rows = int(counts[node].sum())
    parent = int(tree.parent[node])
    found = {
        "id": original,
        "place": places[node],
        "parent": places[parent] if node else None,
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
    question = ask(tree, node)
    threshold = float(tree.threshold[node])
    return found | {
        "left": places[int(tree.left[node])],
        "right": places[int(tree.right[node])],
        "feature": question.feature,
        "test": question.test,
        "missing": question.missing,
        "question": question.text,
        "full": question.full,
        "threshold": threshold if np.isfinite(threshold) else None,
    }
