"""Tree nodes: a tree and the rows that reach its nodes, as plain dicts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.tree import Tree
from steadytree.reporting.wording import ask, conditions, label_text

MOST_LEAVES = 64  # a picture with more cannot be read
DEEPEST = 10


def collect_tree(tree: Tree, X: Any, truth: NDArray[np.int64]) -> dict[str, Any]:
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
