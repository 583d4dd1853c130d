"""The command `steadytree score`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import steadytree as st
from steadytree._base.files import check_can_write, write_text_atomically
from steadytree._base.progress import Progress
from steadytree.cli.options import (
    WRITES,
    AsJson,
    Data,
    Drop,
    MayRead,
    MayWrite,
    option,
    parse_share,
)
from steadytree.cli.output import show, warn_of_columns
from steadytree.cli.scored_rows import (
    Checks,
    bands_csv,
    check_sheets,
    described,
    parse_decision,
    parse_scaling,
    scored_csv,
    sheet_texts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = """\b
Examples:
  steadytree score patients.csv --target outcome --save outcome.card.json --sheet outcome.svg
  steadytree score new.csv --card outcome.card.json --out scored.csv
  steadytree score q3.csv --card outcome.card.json --out q3.scored.csv --outcome died \\
      --max-psi 0.25 --max-miscalibration 20%

Exit code 3 if a limit on new rows is exceeded; the scores are written anyway."""

# titles of options in the help
FITTING, ROWS = "To fit, with --target", "Rows with scores"
LIMITS, SHEET = "To watch new rows, with --card", "The risk score itself"
Objective = StrEnum("Objective", "LOG_LOSS MAJORITY LOGISTIC")


def score(
    data: Data,
    target: Annotated[
        str | None, option("COLUMN", "The column to predict; fits a risk score.")
    ] = None,
    card: Annotated[MayRead, option("FILE", "A saved risk score (*.card.json) to apply.")] = None,
    drop: Drop = None,
    positive: Annotated[
        str | None, option("LABEL", "The event that is scored; usually the last label.", FITTING)
    ] = None,
    objective: Annotated[
        Objective,
        typer.Option(help="Minimise log loss, or errors under noise.", rich_help_panel=FITTING),
    ] = Objective.LOG_LOSS,
    noise: Annotated[
        str, option("SHARE", "Noise to withstand, as a share of each range, or 1se.", FITTING)
    ] = "0",
    max_variables: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of columns.", rich_help_panel=FITTING)
    ] = None,
    max_conditions: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of thresholds and groups; default: chosen by the fit.",
            rich_help_panel=FITTING,
        ),
    ] = None,
    decision: Annotated[
        str,
        option(
            "RULE",
            "Predict the event above a risk (0.2), where a missed event costs C false "
            "positives (cost=C), or for a share of rows (sensitivity=S, specificity=S).",
            FITTING,
        ),
    ] = "0.5",
    prevalence: Annotated[
        str | None, option("SHARE", "Share of events among people the score is for.", FITTING)
    ] = None,
    seed: Annotated[
        int,
        typer.Option(min=0, help="Random seed of the cross-validation.", rich_help_panel=FITTING),
    ] = 0,
    reasons: Annotated[
        int,
        typer.Option(min=0, help="Maximum number of reasons for each row.", rich_help_panel=ROWS),
    ] = 3,
    scaling: Annotated[
        str | None,
        option(
            "PDO[,SCORE,ODDS]",
            "Add a credit score: points that double the odds, and its score at some odds against "
            "the event; 20 is 20,600,50.",
            ROWS,
        ),
    ] = None,
    out: Annotated[
        MayWrite, option("FILE", "Where to write the rows with scores and reasons (csv).", ROWS)
    ] = None,
    outcome: Annotated[
        str | None, option("COLUMN", "Known outcomes, to check calibration.", LIMITS)
    ] = None,
    max_psi: Annotated[
        float | None, option("NUMBER", "Largest population stability index.", LIMITS)
    ] = None,
    max_miscalibration: Annotated[
        str | None,
        option(
            "SHARE", "With --outcome: how far events may be from their expected number.", LIMITS
        ),
    ] = None,
    save: Annotated[
        MayWrite, option("FILE", "Where to save the risk score (*.card.json).", SHEET)
    ] = None,
    sheet: Annotated[
        list[Path] | None,
        option("FILE", "Where to draw it: *.svg, or *.html to print; may be repeated.", SHEET),
        WRITES,
    ] = None,
    bands: Annotated[
        MayWrite,
        option("FILE", "Where to write bands with points, rows, WoE and IV (csv).", SHEET),
    ] = None,
    title: Annotated[str | None, option("TEXT", "Title of the sheet.", SHEET)] = None,
    unit: Annotated[
        list[str] | None,
        option("COLUMN=UNIT", "Unit of a column, for the sheet; may be repeated.", SHEET),
    ] = None,
    loss: Annotated[str | None, typer.Option(hidden=True)] = None,
    tau: Annotated[str | None, typer.Option(hidden=True)] = None,
    as_json: AsJson = False,
) -> None:
    """Fit a risk score and print it, or apply a saved one.

    A saved risk score is applied to every row: all columns are kept, and total, risk, prediction,
    reasons and remarks are added. Without --out they are printed as csv.
    """
    if (target is None) == (card is None):
        raise ValueError("pass --target to fit a risk score, or --card to apply a saved one.")
    for former, value, name in (("loss", loss, "objective"), ("tau", tau, "noise")):
        if value is not None:
            raise ValueError(f"--{former} was removed: use --{name}.")
    checks = Checks.of(outcome, max_psi, max_miscalibration, is_fitted=card is None)
    size = noise if noise == "1se" else _share(noise)
    fits = {"positive": positive, "prevalence": prevalence, "max_variables": max_variables}
    fits["decision"] = None if decision == "0.5" else decision
    needless = [name for name, value in fits.items() if value is not None]
    if card is not None and needless:
        name = needless[0].replace("_", "-")
        raise ValueError(f"--{name} is for a fit: leave it out, or pass --target and no --card.")
    rule, scale = parse_decision(decision), parse_scaling(scaling)
    share = None if prevalence is None else parse_share(prevalence, "--prevalence")
    sheets = check_sheets(sheet or [])
    for path in filter(None, (out, save, bands, *sheets)):
        check_can_write(path)
    with Progress() as progress:
        progress.update(f"reading {data}")
        if card is not None:
            found = _read_scorecard(card, data, drop or [])
        else:
            limits = {"max_conditions": max_conditions or "auto", "max_variables": max_variables}
            risks = {"decision": rule, "prevalence": share, "random_state": seed}
            model = st.RiskScoreClassifier(objective.value, size, **limits, **risks)
            found = _fit_scorecard(model, data, str(target), drop or [], positive, progress)
    found = found._replace(scorecard=described(found.scorecard, title, unit or []))
    drift = None if card is None else checks.drift(found)
    scored = ""
    if out or card:
        scored = scored_csv(found, data, drop or [], scale, reasons, is_fitted=card is None)
    texts = {out: scored, bands: bands_csv(found.scorecard, scale) if bands else ""}
    texts |= sheet_texts(found.scorecard, sheets, found.scorecard.title or target or "")
    if save is not None:
        st.save(found.scorecard, save)
    for file, text in texts.items():
        if file is not None:
            write_text_atomically(file, text)
    if not as_json and card is not None and out is None:
        typer.echo(scored, nl=False)
    else:
        values = _values(found, card is not None, drift) if as_json else {}
        show(values, _lines(found, drift), as_json, (out, save, bands, *sheets))
    checks.stop_if_exceeded(drift)


class Found(NamedTuple):
    """A scorecard, how it was fitted where that is known, and rows."""

    scorecard: Any
    fitted: dict[str, Any]
    rows: Any


def _read_scorecard(path: Path, data: Path, drop: list[str]) -> Found:
    from steadytree.data.readers import read_data

    found = st.load(path)
    if not isinstance(found, st.Scorecard):
        raise ValueError(f"{path} holds a tree, not a risk score.")
    return Found(found, {}, read_data(data, skip=drop))


def _fit_scorecard(
    model: Any, data: Path, target: str, drop: list[str], positive: str | None, progress: Progress
) -> Found:
    import warnings

    from steadytree.reporting.checks import check_texts
    from steadytree.reporting.data_set import DataSet

    given = DataSet.read(data, target, drop)
    check_texts(given.features)
    if positive is not None:
        model.set_params(positive=_label(positive, given.labels))
    progress.update("fitting a risk score")
    with warnings.catch_warnings():  # the printed sheet shows that a scorecard is empty
        warnings.filterwarnings("ignore", "no condition was kept")
        model.fit(given.features, given.labels)
    warn_of_columns(given.features)
    fitted = {"objective": model.objective, "noise": model.noise_}
    fitted["certified_accuracy"] = model.certified_accuracy_
    return Found(model.card_, fitted, given.features)


def _lines(found: Found, drift: Any) -> Iterator[str]:
    from steadytree.reporting.text import scorecard_text

    if found.fitted:
        objective, noise, accuracy = found.fitted.values()
        which = "proven" if noise > 0 else "training"
        yield f"objective {objective}, noise {noise:g}, {which} accuracy {accuracy:.3f}\n"
    if drift is None:
        yield scorecard_text(found.scorecard)
    else:
        yield f"new rows: {drift.n_rows:,}"
        yield from (f"{one}; {one.meaning}" for one in drift.measurements())


def _values(found: Found, scored: bool, drift: Any) -> dict[str, Any]:
    from steadytree.models.documents import scorecard_to_dict
    from steadytree.reporting.formatting import plain

    table = found.scorecard.risk_table
    risks = [] if table is None else [vars(row) for row in table.rows]
    values = {"card": scorecard_to_dict(found.scorecard), "risks": risks, **found.fitted}
    if scored:
        values["totals"] = found.scorecard.score(found.rows)
        values["answers"] = found.scorecard.predict(found.rows)
        values["drift"] = None if drift is None else drift.to_dict()
    return dict(plain(values))


def _label(text: str, labels: Any) -> Any:
    """The label that is written as given."""
    import numpy as np

    known = np.unique(labels).tolist()
    for label in known:
        if str(label) == text:
            return label
    raise ValueError(f"--positive must be one of the labels {known}, got {text!r}.")


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--noise must be 1se or a number from 0 to 1, got {text!r}.") from None
