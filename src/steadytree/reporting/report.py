"""Report: one model evaluated on given rows, as a dict, a page or text."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

from steadytree._base.files import UsedPath, check_apart, check_can_write, write_text_atomically
from steadytree.data.dataset import Dataset
from steadytree.data.schema import Schema
from steadytree.data.table import Table, quote
from steadytree.privacy.ledger import Ledger
from steadytree.reporting.build import build_report
from steadytree.reporting.data_set import Origin
from steadytree.reporting.html import framed, render_html
from steadytree.reporting.limits import FAIL, UNMEASURED, Limits
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.text import render_text
from steadytree.robustness.perturbation import Perturbation


@dataclass(frozen=True, eq=False)
class Report:
    """Measurements of a tree or risk score; shows itself in a terminal and in a notebook.

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

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Limits that the model exceeds, or that could not be measured."""
        return [one for one in self.data["verdict"] if one["verdict"] in (FAIL, UNMEASURED)]

    def write(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        write_text_atomically(path, self.html)

    def __str__(self) -> str:
        return render_text(self.data)

    def __repr__(self) -> str:
        return f"Report({self.data['title']!r}: {self.data['headline']})"

    def _repr_html_(self) -> str:
        return framed(self.html, "tree report")


def report(
    model: Any,
    X: Any,
    y: Any,
    path: str | PathLike[str] | None = None,
    title: str | None = None,
    *,
    previous: Any = None,
    train: tuple[Any, Any] | None = None,
    learner: Any = None,
    perturbation: Perturbation | None = None,
    limits: Any = None,
    by: Any = (),
    card: Any = None,
    ledger: Ledger | None = None,
    schema: Schema | None = None,
    comparison: Any = None,
    quick: bool = False,
    random_state: int = 0,
    date: str | None = None,
    origin: Origin | None = None,
) -> Report:
    """Evaluate a tree or risk score on given rows: one page that answers "can I trust it?".

    Always included: the model, its rules, accuracy, calibration, complexity, robustness, the
    separability of the classes, and limitations. Further sections need more: changes need
    `previous`, stability needs `train`, groups need `by`, and so on. Slow sections use a sample of
    the rows, and state it.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner or fitted scikit-learn tree
    X : array-like or frame of shape (n_rows, n_features)
        Rows to evaluate the model on, preferably held out from fitting.
    y : array-like of shape (n_rows,)
        Their classes.
    path : str or path-like, optional
        Where to write the report as one offline HTML page.
    title : str, optional
    previous : Tree, fitted learner or fitted scikit-learn tree, optional
        The tree in use so far: adds what changed since, and which predictions.
    train : pair (X, y), optional
        The training rows: adds how the model changes when some of them are left out.
    learner : learner, optional
        How the model was fitted; by default `model`, where that can be fitted again.
    perturbation : Perturbation, optional
        How far inputs may change. By default every number by 2 % of its column's range.
    limits : mapping or path of a TOML file, optional
        Limits such as ``{"min_accuracy": 0.9}``, each of which passes, fails or is not measured.
    by : names of columns of X, or mapping of name to labels of the rows
        Groups in which the model is evaluated separately.
    card : Scorecard or fitted RiskScoreClassifier, optional
        A risk score to show beside the tree.
    ledger : Ledger, optional
        The record of privacy budget spent on the data.
    schema : Schema, optional
        Declared columns: adds accuracy against epsilon to the privacy section.
    comparison : Comparison, optional
        What `compare` returned: adds the comparison of learners.
    quick : bool, default=False
        Leave out stability and separation, and robustness too where no `perturbation` is given.
    random_state : int, default=0
        Seed of the samples.
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
        if isinstance(limits, str | PathLike):
            check_apart([UsedPath(limits, "read", "limits"), UsedPath(path, "write", "path")])
        check_can_write(path)
    if learner is None and hasattr(model, "fit"):
        learner = model
    data = Dataset.of(X, y)
    options = ReportOptions(
        title=title,
        date=date,
        origin=origin or Origin(),
        previous=previous,
        learner=learner,
        train=None if train is None else Dataset.of(*train),
        perturbation=perturbation,
        limits=Limits.of(limits),
        groups=_groups(by, data.table),
        scorecard=card,
        ledger=ledger,
        schema=schema,
        comparison=getattr(comparison, "formatted", comparison),
        quick=quick,
        seed=random_state,
    )
    made = Report(build_report(model, data, y, options))
    if path is not None:
        made.write(path)
    return made


def _groups(by: Any, table: Table) -> dict[str, Any]:
    """Labels of the rows by the name of the grouping."""
    if isinstance(by, Mapping):
        return dict(by)
    names = [by] if isinstance(by, str) else list(by)
    known = table.names or ()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"by names {quote(unknown)}, but the columns are {quote(known)}.")
    return {name: table.columns[known.index(name)] for name in names}
