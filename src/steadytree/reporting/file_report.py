"""Report on a data file: fits the models that were not given, and reports on them."""

import json
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from steadytree.comparison.learners import Settings, make_learner
from steadytree.data.dataset import Dataset, hash_data
from steadytree.data.table import quote
from steadytree.models.scorecard import Scorecard
from steadytree.reporting.build import build_report
from steadytree.reporting.comparison import compare
from steadytree.reporting.data_set import DataSet
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.report import Report
from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.robustness.perturbation import NOISE_SHARE
from steadytree.stability.stable_tree import StableTreeClassifier

TREE_LEARNERS = ("greedy", "cart", "stable", "pareto", "robust")
SCORECARD_CONDITIONS = 6
MOST_SCORECARD_ROWS = 50_000
FOLDS = 3
START, END = '<script type="application/json" id="steadytree-data">', "</script>"


def report_file(
    rows: DataSet, model: Any, options: ReportOptions, on_progress: Callable[[str], None]
) -> Report:
    """Report on a model on all rows; without one, fit a tree to 70 % of them and hold out the rest.

    `on_progress` is called with the next step.
    """
    if options.comparison_file is not None:
        comparison = read_comparison(options.comparison_file, rows)
        options = replace(options, comparison=comparison, compared_learners=())
    if model is None:
        model, rows, options = _fit(rows, options, on_progress)
        seen = False
    else:
        rows, options = _prepare(rows, model, options, on_progress)
        seen = None
    on_progress("measuring the model")
    options = replace(
        options, title=rows.title, groups=rows.groups, origin=rows.origin(options.command, seen)
    )
    return Report(build_report(model, rows.features, rows.labels, options))


def _fit(
    rows: DataSet, options: ReportOptions, on_progress: Callable[[str], None]
) -> tuple[Any, DataSet, ReportOptions]:
    """A fitted tree, the rows held out, and the options with all that was fitted."""
    rows.check()
    fitting, held_out = rows.split(options.seed)
    on_progress("fitting a tree")
    learner = _learner(options.learner_name or "greedy", fitting, options)
    model = learner.fit(fitting.features, fitting.labels)
    scorecard = None
    if not options.quick and len(fitting.labels) <= MOST_SCORECARD_ROWS:
        on_progress("fitting a risk score")
        scorecard = RiskScoreClassifier(
            tau=NOISE_SHARE, max_conditions=SCORECARD_CONDITIONS, random_state=options.seed
        ).fit(fitting.features, fitting.labels)
    options = replace(
        options,
        learner=learner,
        train=Dataset.of(fitting.features, fitting.labels),
        scorecard=scorecard,
    )
    return model, held_out, _with_comparison(fitting, options, on_progress)


def _prepare(
    rows: DataSet, model: Any, options: ReportOptions, on_progress: Callable[[str], None]
) -> tuple[DataSet, ReportOptions]:
    """The columns of a model that was fitted before; its learner is known only if it is named."""
    name = options.learner_name
    if isinstance(model, Scorecard) and name is not None:
        raise ValueError(
            "--learner names the learner of a tree, but --model is a risk score: omit --learner."
        )
    rows = replace(rows, features=rows.features.select(model.space.names))
    if name is not None:
        learner = _learner(name, rows, options)
        options = replace(options, learner=learner, train=Dataset.of(rows.features, rows.labels))
    return rows, _with_comparison(rows, options, on_progress)


def _learner(name: str, rows: DataSet, options: ReportOptions) -> Any:
    if name not in TREE_LEARNERS:
        raise ValueError(f"--learner must be one of {', '.join(TREE_LEARNERS)}, got {name!r}.")
    depth, seed = options.max_depth, options.seed
    if name == "greedy":
        return StableTreeClassifier(depth, 0, criterion=options.criterion, random_state=seed)
    settings = Settings(depth, options.perturbation, seed=seed)
    return make_learner(name, rows.features, rows.labels, settings)


def _with_comparison(
    rows: DataSet, options: ReportOptions, on_progress: Callable[[str], None]
) -> ReportOptions:
    """The options with a comparison of learners, where some are named and two classes have rows."""
    classes, counts = np.unique(rows.labels, return_counts=True)
    rare = classes[counts < FOLDS]
    if not options.compared_learners or (len(rare) and len(classes) - len(rare) < 2):
        return options
    kept = rows.take(~np.isin(rows.labels, rare))
    found = compare(
        options.compared_learners,
        kept.features,
        kept.labels,
        n_folds=FOLDS,
        max_depth=min(options.max_depth, 5),
        perturbation=options.perturbation,
        schema=options.schema,
        n_jobs=options.n_jobs,
        random_state=options.seed,
        progress=on_progress,
    )
    comparison = dict(found.formatted)
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
