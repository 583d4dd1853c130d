"""Report: one tree judged on given rows, as a dict, a page or text."""

import html
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

from steadytree.core.atomic import check_can_write, write_text_atomically
from steadytree.reporting.collect import collect
from steadytree.reporting.origin import Origin
from steadytree.reporting.render_html import render_html
from steadytree.reporting.render_text import render_text


@dataclass(frozen=True, eq=False)
class Report:
    """What was found out about a tree; shows itself in a terminal and in a notebook.

    Parameters
    ----------
    data : dict
        All figures, as plain values that JSON can hold.
    """

    data: dict[str, Any]

    @cached_property
    def html(self) -> str:
        """The report as one page that needs nothing else."""
        return render_html(self.data)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        write_text_atomically(path, self.html)

    def __str__(self) -> str:
        return render_text(self.data)

    def __repr__(self) -> str:
        return f"Report({self.data['title']!r}: {self.data['headline']})"

    def _repr_html_(self) -> str:
        # in a frame of its own, so that the styles of page and notebook do not mix
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox title="tree report" '
            'style="width:100%;height:760px;border:0"></iframe>'
        )


def report(
    model: Any,
    X: Any,
    y: Any,
    path: str | PathLike[str] | None = None,
    title: str | None = None,
    *,
    date: str | None = None,
    origin: Origin | None = None,
) -> Report:
    """Judge a tree on given rows: accuracy, size, the drawn tree and its rules.

    Parameters
    ----------
    model : Tree, fitted tree learner or fitted scikit-learn tree
    X : array-like or frame of shape (n_rows, n_features)
        Rows to judge the tree on, best such that it has not seen.
    y : array-like of shape (n_rows,)
        Their classes.
    path : str or path-like, optional
        Where to write the report as one offline HTML page.
    title : str, optional
    date : str, optional
        Date the report shows; today where it is not given. With it the same input gives the
        same file, byte for byte.
    origin : Origin, optional
        Where data and model came from.

    Returns
    -------
    report : Report

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"])
    >>> found = report(model, [[0], [1], [1]], ["no", "yes", "no"], title="A small tree")
    >>> found.data["readings"]["accuracy"][0]["shown"]
    '66.7 %'
    """
    if path is not None:
        check_can_write(path)
    made = Report(collect(model, X, y, title=title, date=date, origin=origin))
    if path is not None:
        made.write(path)
    return made
