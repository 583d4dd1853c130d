"""Report: one model evaluated on given rows or on a data file, as a dict, a page or text."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from steadytree._base.files import (
    UsedPath,
    check_apart,
    check_can_write,
    check_is_page,
    write_text_atomically,
)
from steadytree._base.progress import Progress, following
from steadytree.data.dataset import Dataset, hash_data
from steadytree.data.parts import Parts, is_parted
from steadytree.data.schema import Schema
from steadytree.data.table import Table, quote
from steadytree.metrics.accuracy import event_of_two
from steadytree.models.black_box import BlackBox, as_model
from steadytree.models.files import opened
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import Tree
from steadytree.privacy.ledger import Ledger
from steadytree.reporting.build import build_report
from steadytree.reporting.data_set import DataSet, Origin
from steadytree.reporting.html import framed, render_html
from steadytree.reporting.options import FAIL, UNMEASURED, Limits, ReportOptions, SignOff
from steadytree.reporting.text import render_text
from steadytree.robustness.perturbation import NOISE_SHARE, Perturbation
from steadytree.stability.stable_tree import StableTreeClassifier
from steadytree.stability.steady_tree import SteadyTreeClassifier

SCORECARD_CONDITIONS = 6
MOST_SCORECARD_ROWS = 50_000
FOLDS = 3
USUAL_DEPTH = 5  # of trees other than steady ones
START, END = '<script type="application/json" id="steadytree-data">', "</script>"


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
        check_is_page(path)
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
    sign_off: Any = None,
    by: Any = (),
    positive: Any = None,
    card: Any = None,
    ledger: Ledger | None = None,
    schema: Schema | None = None,
    comparison: Any = None,
    quick: bool = False,
    random_state: int = 0,
    date: str | None = None,
    origin: Origin | None = None,
    progress: bool | Callable[[str], None] | None = None,
) -> Report:
    """Evaluate a tree or risk score on given rows: one page that answers "can I trust it?".

    Always included: the model, its rules, accuracy, calibration, complexity, robustness, the
    separability of the classes, and limitations. Further sections need more: changes need
    `previous`, stability needs `train`, groups need `by`, and so on. Slow sections use a sample of
    the rows, and state it.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner, fitted scikit-learn tree or pipeline, or path of a file
        Any other fitted classifier with ``predict_proba`` is measured as a black box: the sections
        that apply are shown. A path is read by `load`, which refuses pickles.
    X : array-like or frame of shape (n_rows, n_features)
        Rows to evaluate the model on, preferably held out from fitting. A Parquet or Arrow file,
        a folder of such, or a Dask collection may have more rows than memory holds: accuracy,
        calibration, groups and numbers of rows are counted part by part, all else is measured on
        100,000 rows drawn by chance, and the page says so.
    y : array-like of shape (n_rows,)
        Their classes; the name of the target where X is a path.
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
    sign_off : mapping or path of a TOML file, optional
        Title, owner, intended_use, version, decision and signatures, which the page shows.
    by : names of columns of X, or mapping of name to labels of the rows
        Groups in which the model is evaluated separately.
    positive : label, optional
        The class that is the event: calibration, validation and the rates of groups are about it.
        By default the second of two; validation of more than two needs it.
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
    progress : bool or callable, optional
        True shows a bar with the time left, False none; by default one is shown in a terminal or
        notebook after 2 seconds. A function is called with what is measured next.

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
        check_is_page(path)
        for name, read in (("limits", limits), ("sign_off", sign_off)):
            if isinstance(read, str | PathLike):
                check_apart([UsedPath(read, "read", name), UsedPath(path, "write", "path")])
        check_can_write(path)
    model, previous = opened(model), opened(previous)
    if learner is None and hasattr(model, "fit"):
        learner = model
    parts, rows = None, None
    if is_parted(X):
        parts = Parts.of(X, y)
        rows = parts.sample(seed=random_state)
        X, y = rows.table, rows.labels
    data = Dataset.of(X, y)
    options = ReportOptions(
        parts=parts if rows is not None and rows.note else None,
        sampled="" if rows is None else rows.note,
        title=title,
        date=date,
        origin=origin or Origin(),
        previous=previous,
        learner=learner,
        train=None if train is None else Dataset.of(*train),
        perturbation=perturbation,
        limits=Limits.of(limits),
        sign_off=SignOff.of(sign_off),
        groups=_groups(by, data.table, parts is not None),
        positive=positive,
        scorecard=card,
        ledger=ledger,
        schema=schema,
        comparison=getattr(comparison, "formatted", comparison),
        quick=quick,
        seed=random_state,
    )
    with following(progress) as on_progress:
        options = replace(options, on_progress=on_progress)
        made = Report(build_report(model, data, y, options))
    if path is not None:
        made.write(path)
    return made


def _groups(by: Any, table: Table, in_parts: bool) -> dict[str, Any]:
    """Labels of the rows by the name of the grouping."""
    if isinstance(by, Mapping) and in_parts:
        raise TypeError("by must name columns where rows lie in files or are of Dask.")
    if isinstance(by, Mapping):
        return dict(by)
    names = [by] if isinstance(by, str) else list(by)
    known = table.names or ()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"by names {quote(unknown)}, but the columns are {quote(known)}.")
    return {name: table.columns[known.index(name)] for name in names}


def report_file(
    rows: DataSet, model: Any, options: ReportOptions, progress: Progress
) -> tuple[Report, Any]:
    """Report on a model on all rows; without one, fit a tree to 70 % of them and hold out the rest.

    Also returns the model that was measured.
    """
    options = replace(options, on_progress=progress.update, sampled=rows.sampled)
    if model is not None:
        options = replace(options, parts=rows.parts)
    if options.comparison_file is not None:
        comparison = read_comparison(options.comparison_file, rows)
        options = replace(options, comparison=comparison, compared_learners=())
    seen, name, own = None, options.learner_name, None
    if model is None:
        rows.check()
        fitting, rows = rows.split(options.seed)
        model, options = _fit(fitting, options)
        seen, own = False, model
    else:
        fitted = as_model(model, rows.features)
        if not isinstance(fitted, Tree) and name is not None:
            kind = "a risk score" if isinstance(fitted, Scorecard) else type(model).__name__
            raise ValueError(
                f"--learner names the learner of a tree, but --model is {kind}: omit --learner."
            )
        names = fitted.names if isinstance(fitted, BlackBox) else fitted.space.names
        if names is not None:
            rows = replace(rows, features=rows.features.select(names))
        fitting = rows
        if name is not None:  # else it is not known how the model was fitted
            train = Dataset.of(rows.features, rows.labels)
            options = replace(options, learner=_learner(name, rows, options), train=train)
    options = _with_comparison(fitting, options, progress, own)
    progress.update("measuring the model", 0.5)
    origin = rows.origin(options.command, seen)
    options = replace(options, title=rows.title, groups=rows.groups, origin=origin)
    return Report(build_report(model, rows.features, rows.labels, options)), model


def _fit(rows: DataSet, options: ReportOptions) -> tuple[Any, ReportOptions]:
    """A fitted tree, and the options with all that was fitted."""
    options.on_progress("fitting a tree", 0.0)
    learner = _learner(options.learner_name or "steady", rows, options)
    model, scorecard = learner.fit(rows.features, rows.labels), None
    if not options.quick and len(rows.labels) <= MOST_SCORECARD_ROWS:
        from steadytree.riskscore.risk_score import RiskScoreClassifier  # not for quick reports

        options.on_progress("fitting a risk score", 0.2)
        scorecard = RiskScoreClassifier(
            noise=NOISE_SHARE,
            max_conditions=SCORECARD_CONDITIONS,
            positive=event_of_two(np.unique(rows.labels), options.positive),
            random_state=options.seed,
        ).fit(rows.features, rows.labels)
    train = Dataset.of(rows.features, rows.labels)
    own = getattr(model, "tree_", None)
    whole = own if isinstance(own, Tree) else None
    return model, replace(options, learner=learner, train=train, whole=whole, scorecard=scorecard)


def _learner(name: str, rows: DataSet, options: ReportOptions) -> Any:
    depth, seed = options.max_depth or USUAL_DEPTH, options.seed
    if name == "steady":
        return SteadyTreeClassifier(
            options.max_leaf_nodes, max_depth=options.max_depth, random_state=seed
        )
    if name == "greedy":
        return StableTreeClassifier(depth, 0, criterion=options.criterion, random_state=seed)
    from steadytree.comparison.learners import Settings, make_learner

    settings = Settings(depth, options.perturbation, seed=seed)
    return make_learner(name, rows.features, rows.labels, settings)


def _with_comparison(
    rows: DataSet, options: ReportOptions, progress: Progress, model: Any
) -> ReportOptions:
    """The options with a comparison of learners, where some are named and two classes have rows.

    `model` is what was fitted to these rows; None where it is not known what was.
    """
    classes, counts = np.unique(rows.labels, return_counts=True)
    rare = classes[counts < FOLDS]
    if not options.compared_learners or (len(rare) and len(classes) - len(rare) < 2):
        return options
    from steadytree.comparison.compare import compare_learners
    from steadytree.comparison.learners import Settings
    from steadytree.reporting.comparison import Comparison

    kept = rows.take(~np.isin(rows.labels, rare))
    settings = Settings(
        min(options.max_depth or USUAL_DEPTH, USUAL_DEPTH),
        options.perturbation,
        schema=options.schema,
        seed=options.seed,
        max_leaf_nodes=options.max_leaf_nodes,
    )
    found = compare_learners(
        options.compared_learners,
        kept.features,
        kept.labels,
        settings,
        FOLDS,
        options.n_jobs,
        progress.update,
        sensitivity=False,  # leaving out single rows takes longer than all else on the page
        fitted=None if len(rare) or model is None else {"steady": model},
    )
    comparison = dict(Comparison.of(found).formatted)
    if len(rare):
        names = quote([str(label) for label in rare])
        note = f"Classes with fewer than {FOLDS} rows are left out of the comparison: {names}."
        comparison["note"] = f"{comparison['note']} {note}".strip()
    return replace(options, comparison=comparison)


def read_comparison(path: str | PathLike[str], rows: DataSet) -> dict[str, Any]:
    """The figures of an earlier comparison of the same rows, from its page or its JSON."""
    text = Path(path).read_text("utf-8")
    if START in text:
        text = text.partition(START)[2].partition(END)[0]
    try:
        page = json.loads(text)
        comparison, sha256 = page["comparison"], page["data_sha256"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"{str(path)!r} holds no comparison: pass a page that steadytree compare wrote."
        ) from None
    if sha256 != hash_data(rows.features, rows.labels):
        raise ValueError(
            f"{str(path)!r} compares learners on other rows or columns: run steadytree compare on "
            "these data."
        )
    return comparison
