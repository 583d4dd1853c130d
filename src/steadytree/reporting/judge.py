"""Judge: a file and what was asked become a report."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from steadytree.comparison.learners import NOISE_SHARE, Settings, make_learner
from steadytree.data.dataset import hash_data
from steadytree.data.schema import Schema
from steadytree.data.table import Table, quote
from steadytree.models.scorecard import Scorecard
from steadytree.privacy.ledger import Ledger
from steadytree.reporting.comparison import compare
from steadytree.reporting.data_set import DataSet
from steadytree.reporting.limits import Limits
from steadytree.reporting.report import Report, report
from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.robustness.perturbation import Perturbation
from steadytree.stability.stable_tree import StableTreeClassifier

TREE_LEARNERS = ("greedy", "cart", "stable", "pareto", "robust")
CARD_CONDITIONS = 6
MOST_CARD_ROWS = 50_000
FOLDS = 3
START, END = '<script type="application/json" id="steadytree-data">', "</script>"


@dataclass(frozen=True, eq=False)
class Plan:
    """What a report was asked for.

    Parameters
    ----------
    model : Tree, Scorecard or None
        To be judged on all rows; None fits one on 70 % of them and judges it on the others.
    learner : str or None
        How to fit it, one of `TREE_LEARNERS`; with a model, how it was learned.
    max_depth : int
    criterion : str
        For "greedy".
    previous : Tree or None
    perturbation, limits, ledger, schema : as in `report`
    learners : names of learners to compare with; may be empty
    comparison : path of a page that ``steadytree compare`` wrote, or None
    quick : bool
    seed, jobs : int
    command : str
    """

    model: Any = None
    learner: str | None = None
    max_depth: int = 5
    criterion: str = "count"
    previous: Any = None
    perturbation: Perturbation | None = None
    limits: Limits | None = None
    ledger: Ledger | None = None
    schema: Schema | None = None
    learners: Sequence[str] = ()
    comparison: str | PathLike[str] | None = None
    quick: bool = False
    seed: int = 0
    jobs: int = 1
    command: str = ""


def judge(rows: DataSet, plan: Plan, say: Callable[[str], None]) -> Report:
    """Fit what has to be fitted, measure, and make the report.

    Parameters
    ----------
    rows : DataSet
    plan : Plan
    say : callable
        Called with what is done next.

    Returns
    -------
    report : Report
    """
    words = None if plan.comparison is None else read_comparison(plan.comparison, rows)
    if plan.model is not None:
        return _judge_model(rows, plan, words, say)
    rows.check()
    fitting, held = rows.split(plan.seed)
    say("fitting a tree")
    learner = _learner(plan.learner or "greedy", fitting, plan)
    model = learner.fit(fitting.features, fitting.labels)
    card = None
    if not plan.quick and len(fitting.labels) <= MOST_CARD_ROWS:
        say("fitting a card of points")
        card = RiskScoreClassifier(
            tau=NOISE_SHARE, max_conditions=CARD_CONDITIONS, random_state=plan.seed
        ).fit(fitting.features, fitting.labels)
    train = fitting.features, fitting.labels
    words = words or _compare(fitting, plan, say)
    say("judging the tree")
    return _report(model, held, plan, words, seen=False, train=train, card=card, learner=learner)


def _judge_model(
    rows: DataSet, plan: Plan, words: dict[str, Any] | None, say: Callable[[str], None]
) -> Report:
    """A model that was fitted before, on all rows; its learner is known only if it is named."""
    model = plan.model
    if isinstance(model, Scorecard) and plan.learner is not None:
        raise ValueError("--learner says how a tree was learned, but --model is a card: drop it.")
    known: Table = rows.features.select(model.space.names)
    rows = DataSet(rows.name, rows.target, known, rows.labels, rows.file_sha256, rows.groups)
    learner = None if plan.learner is None else _learner(plan.learner, rows, plan)
    words = words or _compare(rows, plan, say)
    say("judging it")
    train = None if learner is None else (rows.features, rows.labels)
    return _report(model, rows, plan, words, seen=None, train=train, learner=learner)


def _report(
    model: Any, rows: DataSet, plan: Plan, words: dict[str, Any] | None, seen: bool | None, **known
) -> Report:
    return report(
        model,
        rows.features,
        rows.labels,
        title=rows.title,
        previous=plan.previous,
        perturbation=plan.perturbation,
        limits=plan.limits,
        by=rows.groups,
        ledger=plan.ledger,
        schema=plan.schema,
        comparison=words,
        quick=plan.quick,
        random_state=plan.seed,
        origin=rows.origin(plan.command, seen),
        **known,
    )


def _learner(name: str, rows: DataSet, plan: Plan) -> Any:
    if name not in TREE_LEARNERS:
        raise ValueError(f"--learner must be one of {', '.join(TREE_LEARNERS)}, got {name!r}.")
    if name == "greedy":
        return StableTreeClassifier(
            plan.max_depth, 0, criterion=plan.criterion, random_state=plan.seed
        )
    settings = Settings(plan.max_depth, plan.perturbation, seed=plan.seed)
    return make_learner(name, rows.features, rows.labels, settings)


def _compare(rows: DataSet, plan: Plan, say: Callable[[str], None]) -> dict[str, Any] | None:
    rare, kept = _without_rare(rows)
    if not plan.learners or kept is None:
        return None
    found = compare(
        plan.learners,
        kept.features,
        kept.labels,
        n_folds=FOLDS,
        max_depth=min(plan.max_depth, 5),
        perturbation=plan.perturbation,
        schema=plan.schema,
        n_jobs=plan.jobs,
        random_state=plan.seed,
        progress=say,
    )
    if not rare:
        return found.words
    note = f"Rows of {quote(rare)} are left out of it, since there are fewer than {FOLDS}."
    return {**found.words, "note": f"{found.words['note']} {note}".strip()}


def _without_rare(rows: DataSet) -> tuple[list[str], DataSet | None]:
    """Classes with too few rows for a comparison, and the others' rows; None where none is left."""
    classes, counts = np.unique(rows.labels, return_counts=True)
    rare = classes[counts < FOLDS]
    if not len(rare):
        return [], rows
    kept = rows.take(~np.isin(rows.labels, rare))
    return [str(one) for one in rare], kept if len(classes) - len(rare) > 1 else None


def read_comparison(path: str | PathLike[str], rows: DataSet) -> dict[str, Any]:
    """Figures of a comparison that was made before, out of its page or its JSON."""
    text = Path(path).read_text("utf-8")
    if START in text:
        text = text[text.index(START) + len(START) :]
        text = text[: text.index(END)]
    try:
        page = json.loads(text)
        words, sha256 = page["comparison"], page["data_sha256"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"{str(path)!r} holds no comparison: pass a page that steadytree compare wrote."
        ) from None
    if sha256 != hash_data(rows.features, rows.labels):
        raise ValueError(
            f"{str(path)!r} compares learners on other rows or columns: compare on these first."
        )
    return words
