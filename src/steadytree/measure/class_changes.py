"""Class changes: classes that one tree has and the other has not."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steadytree.core.labels import UNKNOWN, label_as_text, place_labels
from steadytree.core.tree import Tree

ClassStatus = Literal["new", "gone", "unknown"]


@dataclass(frozen=True)
class ClassChange:
    """A class that is not the same matter for both trees.

    Parameters
    ----------
    label : label
    status : str
        "new", the old tree does not know it and so never answers it; "gone", the old tree answers
        it somewhere and no leaf of the new one does; "unknown", rows have it and neither tree
        knows it.
    answered : bool
        Whether some leaf of the new tree answers it.
    n_rows : int or None
        Rows given that have it; None without labels.
    n_right : int or None
        Of those, the rows that the new tree decides rightly.
    """

    label: Any
    status: ClassStatus
    answered: bool
    n_rows: int | None
    n_right: int | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return dict(vars(self))


def class_changes(
    old: Tree,
    new: Tree,
    classes: list[Any],
    truth: NDArray[np.int64] | None = None,
    new_leaf: NDArray[np.int64] | None = None,
) -> tuple[ClassChange, ...]:
    """Classes that are new, gone or known to neither tree, in the order of `classes`.

    Parameters
    ----------
    old, new : Tree
    classes : list of labels
        All of both trees, then those that only rows have.
    truth, new_leaf : int64 arrays (n_rows,), optional
        Place of each row's class, and the leaf of the new tree that the row reaches.
    """
    known = [tree.classes.tolist() for tree in (old, new)]
    answers = [
        {labels[k] for k in tree.label[tree.is_leaf]}
        for tree, labels in zip((old, new), known, strict=True)
    ]
    found = []
    for place, label in enumerate(classes):
        status: ClassStatus
        if label not in known[0]:
            status = "new" if label in known[1] else "unknown"
        elif label in answers[0] and label not in answers[1]:
            status = "gone"
        else:
            continue
        n_rows = n_right = None
        if truth is not None and new_leaf is not None:
            own = new.label[new_leaf[truth == place]]
            n_rows = len(own)
            n_right = int((own == known[1].index(label)).sum()) if label in known[1] else 0
        found.append(ClassChange(label, status, label in answers[1], n_rows, n_right))
    return tuple(found)


def labels_alike(old: Tree, new: Tree) -> tuple[Tree, Tree]:
    """Both trees with labels as text, where no two are equal otherwise and some are as text."""
    own, others = old.classes.tolist(), new.classes.tolist()
    if set(own) & set(others) or set(place_labels(own, others)) == {UNKNOWN}:
        return old, new
    return _as_text(old), _as_text(new)


def _as_text(tree: Tree) -> Tree:
    return replace(tree, classes=np.array([*map(label_as_text, tree.classes.tolist())]))
