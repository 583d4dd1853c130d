"""Diff: two trees compared, shown as text, as a picture or as plain values."""

from dataclasses import fields
from functools import cached_property
from os import PathLike
from typing import Any

from steadytree.core.atomic import write_text_atomically
from steadytree.measure.diff import TreeChanges, find_changes
from steadytree.reporting.diff_svg import draw_diff
from steadytree.reporting.diff_text import diff_text
from steadytree.reporting.diff_words import collect_diff


class TreeDiff(TreeChanges):
    """What changed from one tree to another; shows itself in a terminal and in a notebook."""

    @cached_property
    def words(self) -> dict[str, Any]:
        """The changes with questions and answers as words, as plain values that JSON can hold."""
        return collect_diff(self)

    @cached_property
    def svg(self) -> str:
        """One picture that needs nothing else: both trees as one, and the rows that moved."""
        return str(draw_diff(self.words))

    def write(self, path: str | PathLike[str]) -> None:
        """Write the picture to an SVG file, whole or not at all."""
        write_text_atomically(path, self.svg)

    def __str__(self) -> str:
        return diff_text(self.words).plain

    def __repr__(self) -> str:
        return f"TreeDiff({self.words['headline']})"

    def _repr_html_(self) -> str:
        return self.svg


def diff(old: Any, new: Any, X: Any = None, y: Any = None) -> TreeDiff:
    """What changed from one tree to another, and which decisions change with it.

    The trees are laid over each other from the root down. A place is "same"; "moved" where the
    same feature is asked for another value; "replaced" where another feature is asked;
    "relabelled" where a leaf answers differently; "grown" or "cut" where one tree goes on and the
    other ends.

    Parameters
    ----------
    old, new : Tree, fitted learner of steadytree, or fitted scikit-learn tree classifier
        Over the same features.
    X : array-like or frame of shape (n_rows, n_features), optional
        Rows whose decisions are compared.
    y : array-like of shape (n_rows,), optional
        Their classes: which rows are put right, and which wrong. A class may be new: a tree is
        wrong on every row of a class that it does not know, and ``classes`` names such classes.

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
    TreeDiff(Questions: 1 moved; 1 of 4 decisions change (25.0%).)
    >>> found.rows.flipped.tolist()
    [1]
    """
    changes = find_changes(old, new, X, y)
    return TreeDiff(*(getattr(changes, item.name) for item in fields(changes)))
