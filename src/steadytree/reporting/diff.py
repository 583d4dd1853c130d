"""Diff: two trees compared, shown as text, as a picture or as plain values."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from steadytree._base.files import write_text_atomically
from steadytree.distance.alignment import STATUSES, NodeChange
from steadytree.distance.diff import ClassChange, RowChanges, TreeChanges, find_changes
from steadytree.distance.subtrees import NONE
from steadytree.models.files import opened
from steadytree.models.sklearn import REGRESSION
from steadytree.models.tree import Tree
from steadytree.reporting.formatting import label_text, percent_text, plain_text, rows_text
from steadytree.reporting.svg.diff import plot_diff, upper_levels
from steadytree.reporting.wording import (
    MOST_CATEGORIES,
    conditions,
    describe_split,
    sum_over_leaves,
)

MOST_CLASSES = 8  # that get a line each
MOST_VALUES = 6  # of an example
DEEPEST = 60  # level that is still shown,
MOST_POSITIONS = 3_000  # unless the levels above have more positions


def build_diff(changes: TreeChanges) -> dict[str, Any]:
    """All that text and picture show of the changes; of deep trees the upper levels."""
    old, new = changes.old, changes.new
    trees = {"old": old, "new": new}
    reached = {side: _rows_at_nodes(tree, changes, side) for side, tree in trees.items()}
    numbers = {side: _leaf_numbers(tree) for side, tree in trees.items()}
    data = changes.to_dict()
    above = np.cumsum(np.bincount([node.depth for node in changes.nodes])[: DEEPEST + 1])
    deepest = max(int(np.searchsorted(above, MOST_POSITIONS, side="right")) - 1, 0)
    nodes = [
        _node(changes, index, node, reached, numbers)
        for index, node in enumerate(changes.nodes)
        if node.depth <= deepest
    ]
    _describe_moves(changes.nodes, nodes)
    rows = data["rows"]
    if rows is not None:
        rows = rows | {
            "old_leaves": _leaves(old, reached["old"], numbers["old"]),
            "new_leaves": _leaves(new, reached["new"], numbers["new"]),
        }
    return {
        "headline": headline(changes),
        "counts": data["counts"],
        "n_edits": data["n_edits"],
        "alike": data["alike"],
        "example": data["example"],
        "alike_text": alike_text(changes),
        "distance": data["distance"],
        "classes": [one | {"label": label_text(one["label"])} for one in data["classes"]],
        "classes_text": class_texts(changes),
        "nodes": upper_levels(nodes, deepest),
        "n_nodes": len(changes.nodes),
        "rows": rows,
    }


def _describe_moves(changes: Sequence[NodeChange], nodes: list[dict[str, Any]]) -> None:
    """Add to each node where what stands there came from, and where what stood there went."""
    shown = {node["place"]: node for node in nodes}
    for node in nodes:
        change, notes = changes[node["place"]], []
        if change.move in ("up", "swap"):
            notes.append("moved up" if change.move == "up" else "swapped with a split below")
        if change.came_from != NONE:
            notes.append(f"moved from {_where(shown, change.came_from)}")
        if change.went_to != NONE:
            target = shown.get(change.went_to)
            node["away"] = _split_text(target) if target else "a subtree"
            notes.append(f"{node['away']} moved to {_where(shown, change.went_to)}")
        node["note"] = "; ".join(notes)


def _where(shown: dict[int, dict[str, Any]], index: int) -> str:
    """A position by the split above it."""
    if index not in shown:
        return "a deeper level"
    parent = shown[index]["parent"]
    if parent is None:
        return "the top"
    return f"“{_split_text(shown[parent])}”: {shown[index]['side']}"


def _split_text(node: dict[str, Any]) -> str:
    """The new split of a position, or the old one where there is no other."""
    own = next(node[side] for side in ("new", "old") if node[side] and node[side]["question"])
    return own["text"].removesuffix(own["missing"])


def alike_text(changes: TreeChanges) -> str:
    """Whether both trees decide alike on every input, with an example where not."""
    if changes.alike is None:
        return "Not decided within the limit of work: whether both decide alike on every input."
    if changes.alike:
        return ""  # the headline says so
    values = [_value_text(*one) for one in (changes.equivalence.example or {}).items()]
    if not values:
        return "Predictions differ for every input."
    more = f" and {len(values) - MOST_VALUES} more values" if len(values) > MOST_VALUES else ""
    listed = ", ".join(values[:MOST_VALUES]) + more
    return f"Predictions differ, for example, where {listed}."


def _value_text(name: str, value: Any) -> str:
    if value is None:
        return f"{label_text(name)} is missing"
    text = plain_text(value) if isinstance(value, float) else label_text(value)
    return f"{label_text(name)} = {text}"


def headline(changes: TreeChanges) -> str:
    """One sentence on the changed splits and the number of changed predictions."""
    if changes.is_same:
        text = "The trees have the same splits and predictions"
    else:
        splits = Counter(node.status for node in changes.nodes if node.left != NONE)
        parts = [f"{splits[status]} {status}" for status in STATUSES if splits[status]]
        n = changes.counts["relabelled"]
        parts += [f"{n} {'leaves' if n > 1 else 'leaf'} relabelled"] if n else []
        text = f"{'Splits' if splits else 'Changes'}: {', '.join(parts)}"
    if changes.alike and not changes.is_same:
        text += "; the same decisions on every possible input"
    if changes.rows is None:
        return f"{text}."
    n, total = len(changes.rows.flipped), changes.rows.n_rows
    share = f" ({changes.rows.flip_share:.1%})" if n else ""
    return f"{text}; {n:,} of {total:,} predictions change{share}."


def class_texts(changes: TreeChanges) -> list[str]:
    """A line on each class that is new, gone, or unknown to both trees; many are only counted."""
    texts = [_class_text(one, changes.rows) for one in changes.classes]
    more = len(texts) - MOST_CLASSES
    if more < 2:
        return texts
    return [*texts[:MOST_CLASSES], f"{more:,} more classes are new, removed or unknown to both."]


def _class_text(change: ClassChange, rows: RowChanges | None) -> str:
    name = f"Class “{label_text(change.label)}”"
    if change.status == "gone":
        text = f"{name} was removed: no leaf of the new tree predicts it."
    elif change.status == "unknown":
        text = f"{name} is in the rows but unknown to both trees."
    else:
        which = "the old tree never predicts" if change.answered else "neither tree ever predicts"
        text = f"{name} is new: {which} it."
    if rows is None or change.n_rows is None:
        return text
    verb = "has" if change.n_rows == 1 else "have"
    text += f" {change.n_rows:,} of {rows_text(rows.n_rows)} {verb} it"
    if change.n_rows and change.answered:
        return f"{text}; {change.n_right:,} of them are predicted correctly now."
    return f"{text}."


def _node(
    changes: TreeChanges,
    index: int,
    node: NodeChange,
    reached: dict[str, NDArray[np.float64]],
    numbers: dict[str, dict[int, int]],
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "place": index,
        "status": node.status,
        "parent": None if node.parent == NONE else node.parent,
        "side": node.side,
        "depth": node.depth,
        "old": _node_text(changes.old, node.old, numbers["old"]),
        "new": _node_text(changes.new, node.new, numbers["new"]),
    }
    own = {"old": node.old, "new": node.new}
    rows = {side: None if k == NONE else float(reached[side][k]) for side, k in own.items()}
    found |= {f"{side}_rows": n for side, n in rows.items()}
    found |= {f"{s}_share": (n or 0.0) / max(float(reached[s][0]), 1e-300) for s, n in rows.items()}
    if node.status == "adjusted" and found["old"]["text"] == found["new"]["text"]:
        for side in ("old", "new"):  # rounding would hide the difference
            full = found[side]["full"]
            found[side] |= {"text": full, "test": full.removeprefix(found[side]["feature"] + " ")}
    if node.left != NONE:
        found |= {"left": node.left, "right": node.right}
    return found


def _node_text(tree: Tree, node: int, numbers: dict[int, int]) -> dict[str, Any] | None:
    """The split of a node, or its numbered leaf with the share of the predicted class."""
    if node == NONE:
        return None
    if not tree.is_leaf[node]:
        split = describe_split(tree, node)
        missing = f" (missing: {split.missing})" if split.missing else ""
        return {
            "question": True,
            "feature": split.feature,
            "test": split.test + missing,
            "missing": missing,
            **_categories(tree, node, split.test),
            "text": split.text + missing,
            "full": split.full,
        }
    label = label_text(tree.classes.tolist()[tree.label[node]])
    share = "" if tree.note == REGRESSION else f" {percent_text(float(tree.value[node].max()))}"
    rule = " and ".join(conditions(tree, node))
    return {
        "question": False,
        "number": numbers[node],
        "label": label,
        "text": label + share,
        "full": f"{label} if {rule}" if rule else label,
    }


def _categories(tree: Tree, node: int, test: str) -> dict[str, Any]:
    """The relation of a test, the first categories that it names, and how many there are."""
    categories = tree.space[int(tree.feature[node])].categories
    relation = test.split(" ")[0]
    flags = tree.subset[node][: len(categories)] != (relation == "≠")
    names = [name for name, flag in zip(categories, flags, strict=True) if flag]
    listed = [label_text(name) for name in names[:MOST_CATEGORIES]]
    return {"relation": relation, "categories": listed, "n_categories": len(names)}


def _leaf_numbers(tree: Tree) -> dict[int, int]:
    """Leaves numbered from 1 as they stand in the picture, from top to bottom."""
    order = tree.preorder
    return {node: k for k, node in enumerate(order[tree.is_leaf[order]].tolist(), start=1)}


def _rows_at_nodes(tree: Tree, changes: TreeChanges, side: str) -> NDArray[np.float64]:
    """Rows given that reach each node; without rows the weights from fitting."""
    if changes.rows is None:
        return tree.weight
    leaves = changes.rows.old_leaf if side == "old" else changes.rows.new_leaf
    return sum_over_leaves(tree, np.bincount(leaves, minlength=tree.n_nodes).astype(np.float64))


def _leaves(
    tree: Tree, reached: NDArray[np.float64], numbers: dict[int, int]
) -> list[dict[str, Any]]:
    labels = tree.classes[tree.label].tolist()
    return [
        {"node": node, "number": number, "n_rows": int(reached[node])}
        | {"label": label_text(labels[node])}
        for node, number in numbers.items()
    ]


SIGNS = {  # and styles
    "same": (" ", "dim"),
    "moved": (">", "blue"),
    "moved away": ("<", "blue"),
    "adjusted": ("~", "yellow"),
    "replaced": ("!", "red"),
    "relabelled": ("!", "red"),
    "grown": ("+", "green"),
    "cut": ("-", "magenta"),
}
LEGEND = "  same   > moved   < moved away   ~ adjusted   ! replaced or relabelled   + grown   - cut"
MOST_ROWS = 20


def diff_text(data: dict[str, Any]) -> Text:
    """The changes as coloured lines, with a sign for each colour."""
    text = Text(data["headline"] + "\n")
    for line in data["classes_text"]:
        text.append(line + "\n", style="bold")
    text.append("\n")
    stems = [""] * len(data["nodes"])
    for node in data["nodes"]:
        stem, branch = "", ""
        if node["parent"] is not None:
            last = node["side"] == "no"
            stem = stems[node["parent"]]
            branch = f"{'└─' if last else '├─'} {node['side']}: "
            stems[node["place"]] = stem + ("   " if last else "│  ")
        sign, style = SIGNS[node["status"]]
        text.append(f"{sign} ", style=style)
        text.append(stem + branch, style="dim")
        text.append(_change_text(node) + "\n", style=style)
    if len(data["nodes"]) < data["n_nodes"]:
        deepest = max(node["depth"] for node in data["nodes"])
        text.append(f"  (the upper {deepest} levels of {data['n_nodes']:,} positions)\n")
    text.append(f"\n{LEGEND}\n", style="dim")
    if data["alike_text"]:
        text.append(data["alike_text"] + "\n")
    if data["rows"] is not None:
        text.append(_rows(data["rows"]))
    if data["distance"] is not None:
        text.append(f"Path distance {data['distance']:.3g}.\n")
    text.rstrip()
    return text


def _change_text(node: dict[str, Any]) -> str:
    old, new = (node[side]["text"] if node[side] else "" for side in ("old", "new"))
    if node["status"] == "moved":  # only where it stands changed
        old = ""
    text = f"{old} → {new}" if old and new and old != new else new or old
    return f"{text} ({node['note']})" if text and node["note"] else text or node["note"]


def _rows(rows: dict[str, Any]) -> str:
    lines = [f"{rows['n_flipped']:,} of {rows_text(rows['n_rows'])} get another prediction."]
    if rows["n_flipped"]:
        listed = ", ".join(str(row) for row in rows["flipped"][:MOST_ROWS])
        more = rows["n_flipped"] - MOST_ROWS
        lines.append(f"Rows (from 0): {listed}{f' and {more:,} more' if more > 0 else ''}.")
    if rows["old_accuracy"] is not None:
        lines.append(
            f"Accuracy {rows['old_accuracy']:.1%} before, {rows['new_accuracy']:.1%} now: "
            f"{rows_text(rows['mended'])} corrected, {rows['broken']:,} now wrong."
        )
    return "\n".join(lines) + "\n"


class TreeDiff(TreeChanges):
    """The changes from one tree to another; shows itself in a terminal and in a notebook."""

    @cached_property
    def formatted(self) -> dict[str, Any]:
        """The changes with splits and predictions as text, as plain values that JSON can hold."""
        return build_diff(self)

    @cached_property
    def svg(self) -> str:
        """One picture that needs nothing else: both trees as one, and the rows that moved."""
        return str(plot_diff(self.formatted))

    def write(self, path: str | PathLike[str]) -> None:
        """Write the picture to an SVG file, whole or not at all."""
        write_text_atomically(path, self.svg)

    def __str__(self) -> str:
        return diff_text(self.formatted).plain

    def __repr__(self) -> str:
        return f"TreeDiff({self.formatted['headline']})"

    def _repr_html_(self) -> str:
        return self.svg


def diff(old: Any, new: Any, X: Any = None, y: Any = None) -> TreeDiff:
    """Changes from one tree to another, and the predictions that change with them.

    Nodes are matched so that few edits are needed. A node is "same"; "moved" where a split or a
    subtree stood elsewhere, and its former place is "moved away"; "adjusted" where the same feature
    has another threshold; "replaced" where another feature is used; "relabelled" where a leaf
    predicts another class; "grown" or "cut" where one tree has a split and the other none.

    ``alike`` says whether both trees decide alike on every possible input, categories and missing
    values included. It is exact, and None where a limit of work was reached first.

    Parameters
    ----------
    old, new : Tree, fitted learner, fitted scikit-learn tree or pipeline, or path of a file
        Over the same features. Predictions of regression trees are compared after rounding to a
        power of ten that is 0.1 to 1 % of their range; the path distance is that of exact ones.
    X : array-like or frame of shape (n_rows, n_features), optional
        Rows whose predictions are compared.
    y : array-like of shape (n_rows,), optional
        Their classes, to count corrected and new errors. A class may be new: a tree is wrong on
        every row of a class that it does not know, and ``classes`` names such classes.

    Returns
    -------
    diff : TreeDiff
        Prints itself as text and draws itself in a notebook; ``write`` makes an SVG file,
        ``to_dict`` plain values.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = [[0.0], [1.0], [2.0], [4.0]]
    >>> old = DecisionTreeClassifier().fit(X, ["no", "no", "yes", "yes"])
    >>> new = DecisionTreeClassifier().fit(X, ["no", "yes", "yes", "yes"])
    >>> found = diff(old, new, X)
    >>> found
    TreeDiff(Splits: 1 adjusted; 1 of 4 predictions change (25.0%).)
    >>> found.rows.flipped.tolist()
    [1]
    """
    changes = find_changes(opened(old), opened(new), X, y)
    return TreeDiff(*(getattr(changes, item.name) for item in fields(changes)))
