"""Diff words: the changes between two trees as plain dicts with words, ready to be shown."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.tree import Tree
from steadytree.measure.class_changes import ClassChange
from steadytree.measure.diff import NONE, NodeChange, RowChanges, TreeChanges
from steadytree.reporting.numbers import percent_text, rows_text
from steadytree.reporting.wording import ask, conditions, one_line

MOST_CLASSES = 8  # that are told one by one


def collect_diff(changes: TreeChanges) -> dict[str, Any]:
    """All that text and picture show of the changes.

    Returns
    -------
    dict with headline, counts, distance, classes that changed and lines on them, nodes
    (in the order root, left, right) and rows
    """
    old, new = changes.old, changes.new
    trees = {"old": old, "new": new}
    reached = {side: _rows_at_nodes(tree, changes, side) for side, tree in trees.items()}
    numbers = {side: _leaf_numbers(tree) for side, tree in trees.items()}
    data = changes.to_dict()
    nodes = [
        _node(changes, place, node, reached, numbers) for place, node in enumerate(changes.nodes)
    ]
    rows = data["rows"]
    if rows is not None:
        rows = rows | {
            "old_leaves": _leaves(old, reached["old"], numbers["old"]),
            "new_leaves": _leaves(new, reached["new"], numbers["new"]),
        }
    return {
        "headline": headline(changes),
        "counts": data["counts"],
        "distance": data["distance"],
        "classes": [one | {"label": one_line(one["label"])} for one in data["classes"]],
        "classes_text": class_texts(changes),
        "nodes": nodes,
        "rows": rows,
    }


def headline(changes: TreeChanges) -> str:
    """One sentence: what became of the questions, and how many decisions flip."""
    if changes.is_same:
        said = "The trees ask the same questions and give the same answers"
    else:
        asked = [node for node in changes.nodes if node.left != NONE]
        parts = []
        for status in ("same", "moved", "replaced", "grown", "cut"):
            n = sum(node.status == status for node in asked)
            if n:
                parts.append(f"{n} {status}")
        n = changes.counts["relabelled"]
        parts += [f"{n} answer{'s' if n > 1 else ''} relabelled"] if n else []
        said = f"Questions: {', '.join(parts)}" if asked else f"Changes: {', '.join(parts)}"
    if changes.rows is None:
        return f"{said}."
    n, total = len(changes.rows.flipped), changes.rows.n_rows
    share = f" ({changes.rows.flip_share:.1%})" if n else ""
    return f"{said}; {n:,} of {total:,} decisions change{share}."


def class_texts(changes: TreeChanges) -> list[str]:
    """A line on each class that is new, gone, or known to neither tree; many are counted."""
    said = [_class_text(one, changes.rows) for one in changes.classes]
    more = len(said) - MOST_CLASSES
    if more < 2:
        return said
    return [*said[:MOST_CLASSES], f"{more:,} more classes are new, gone or known to neither tree."]


def _class_text(change: ClassChange, rows: RowChanges | None) -> str:
    name = f"Class “{one_line(change.label)}”"
    if change.status == "gone":
        said = f"{name} is gone: no leaf of the new tree answers it."
    elif change.status == "unknown":
        said = f"{name} is in the rows, but neither tree knows it."
    else:
        which = "the old tree never answers" if change.answered else "neither tree ever answers"
        said = f"{name} is new: {which} it."
    if rows is None or change.n_rows is None:
        return said
    said += f" {change.n_rows:,} of {rows_text(rows.n_rows)} {_verb(change.n_rows)} it"
    if change.n_rows and change.answered:
        return f"{said}; {change.n_right:,} of them are decided rightly now."
    return f"{said}."


def _verb(count: int) -> str:
    return "has" if count == 1 else "have"


def _node(
    changes: TreeChanges,
    place: int,
    node: NodeChange,
    reached: dict[str, NDArray[np.float64]],
    numbers: dict[str, dict[int, int]],
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "place": place,
        "status": node.status,
        "parent": None if node.parent == NONE else node.parent,
        "side": node.side,
        "depth": node.depth,
        "old": _words(changes.old, node.old, numbers["old"]),
        "new": _words(changes.new, node.new, numbers["new"]),
        "old_rows": _amount(reached["old"], node.old),
        "new_rows": _amount(reached["new"], node.new),
        "old_share": _share(reached["old"], node.old),
        "new_share": _share(reached["new"], node.new),
    }
    if node.status == "moved" and found["old"]["text"] == found["new"]["text"]:
        for side in ("old", "new"):  # a move that rounding would hide
            found[side]["text"] = found[side]["full"]
    if node.left != NONE:
        found |= {"left": node.left, "right": node.right}
    return found


def _words(tree: Tree, node: int, numbers: dict[int, int]) -> dict[str, Any] | None:
    """What a tree says at a node: a question, or a numbered answer with the share behind it."""
    if node == NONE:
        return None
    if not tree.is_leaf[node]:
        question = ask(tree, node)
        missing = f" (missing: {question.missing})" if question.missing else ""
        return {"question": True, "text": question.text + missing, "full": question.full}
    label = one_line(tree.classes.tolist()[tree.label[node]])
    share = percent_text(float(tree.value[node].max()))
    said = " and ".join(conditions(tree, node))
    return {
        "question": False,
        "number": numbers[node],
        "label": label,
        "text": f"{label} {share}",
        "full": f"{label} if {said}" if said else label,
    }


def _leaf_numbers(tree: Tree) -> dict[int, int]:
    """Leaves numbered from 1 as they stand in the picture, from top to bottom."""
    leaves = [int(node) for node in tree.preorder if tree.is_leaf[node]]
    return {node: number for number, node in enumerate(leaves, start=1)}


def _rows_at_nodes(tree: Tree, changes: TreeChanges, side: str) -> NDArray[np.float64]:
    """Rows given that reach each node; without rows the weights from fitting."""
    if changes.rows is None:
        return tree.weight
    leaves = changes.rows.old_leaf if side == "old" else changes.rows.new_leaf
    counts = np.bincount(leaves, minlength=tree.n_nodes).astype(np.float64)
    for node in np.flatnonzero(~tree.is_leaf)[::-1]:  # children come later
        counts[node] = counts[tree.left[node]] + counts[tree.right[node]]
    return counts


def _amount(reached: NDArray[np.float64], node: int) -> float | None:
    return None if node == NONE else float(reached[node])


def _share(reached: NDArray[np.float64], node: int) -> float:
    return 0.0 if node == NONE else float(reached[node] / max(reached[0], 1e-300))


def _leaves(
    tree: Tree, reached: NDArray[np.float64], numbers: dict[int, int]
) -> list[dict[str, Any]]:
    return [
        {"node": node, "number": number, "n_rows": int(reached[node])}
        | {"label": one_line(tree.classes.tolist()[tree.label[node]])}
        for node, number in numbers.items()
    ]
