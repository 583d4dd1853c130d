"""The command `steadytree score`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import steadytree as st
from steadytree._base.files import check_can_write, write_text_atomically
from steadytree.cli.options import READS, WRITES, AsJson, Data, Drop
from steadytree.cli.output import (
    Progress,
    echo_json,
    names_of,
    say_written,
    warn_of_row_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = """\b
Examples:
  steadytree score patients.csv --target outcome --save outcome.card.json --svg outcome.svg
  steadytree score new.csv --card outcome.card.json --out scored.csv"""


class Loss(StrEnum):
    """The loss of a risk score."""

    AUTO = "auto"
    MAJORITY = "majority"
    LOGISTIC = "logistic"


def score(
    data: Data,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column to predict; fits a risk score.")
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A saved risk score (*.card.json) to apply."),
        READS,
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write scores and risks (csv)."),
        WRITES,
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to save the risk score (*.card.json)."),
        WRITES,
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to plot the sheet (SVG)."), WRITES
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write a printable page (HTML)."),
        WRITES,
    ] = None,
    drop: Drop = None,
    loss: Annotated[Loss, typer.Option(help="Loss function.")] = Loss.AUTO,
    tau: Annotated[
        str, typer.Option(help="Noise to be robust to, as a share of each range, or 1se.")
    ] = "1se",
    max_conditions: Annotated[int, typer.Option(min=1, help="Maximum number of conditions.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the cross-validation.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Fit a risk score to a file and print it, or apply a saved one to a file.

    Without --out, the scores and predictions of a saved risk score are printed as csv.
    """
    if (target is None) == (card is None):
        raise ValueError("pass --target to fit a risk score, or --card to apply a saved one.")
    noise = tau if tau == "1se" else _share(tau)
    for path in filter(None, (out, save, svg, html)):
        check_can_write(path)
    with Progress() as progress:
        progress.say(f"reading {data}")
        if card is not None:
            found = _read_card(card, data, drop or [])
        else:
            model = st.RiskScoreClassifier(loss.value, noise, max_conditions, random_state=seed)
            found = _fit_card(model, data, str(target), drop or [], progress.say)
    written = _write(found, {"out": out, "save": save, "svg": svg, "html": html}, target or "")
    if as_json:
        _show_json(found, written, scored=card is not None)
    elif card is not None and out is None:
        typer.echo(_scores(found), nl=False)
    else:
        _show(found)
        say_written(*written)


class Found(NamedTuple):
    """A scorecard, how it was fitted where that is known, and rows."""

    card: Any
    fitted: dict[str, Any]
    rows: Any


def _read_card(card: Path, data: Path, drop: list[str]) -> Found:
    from steadytree.data.readers import read_data

    found = st.load(card)
    if not isinstance(found, st.Scorecard):
        raise ValueError(f"{card} holds a tree, not a risk score.")
    return Found(found, {}, read_data(data, skip=drop))


def _fit_card(
    model: Any, data: Path, target: str, drop: list[str], on_progress: Callable[[str], None]
) -> Found:
    from steadytree.reporting.checks import check_texts
    from steadytree.reporting.data_set import DataSet

    given = DataSet.read(data, target, drop)
    check_texts(given.features)
    on_progress("fitting a risk score")
    _fit_quietly(model, given)
    warn_of_row_numbers(given.features)
    fitted = {
        "loss": model.loss_,
        "noise": model.tau_,
        "certified_accuracy": model.certified_accuracy_,
    }
    return Found(model.card_, fitted, given.features)


def _write(found: Found, paths: dict[str, Path | None], title: str) -> list[Path]:
    """Write the requested files; returns their paths."""
    if paths["save"] is not None:
        st.save(found.card, paths["save"])
    texts = {
        "svg": lambda: st.plot(found.card).svg,
        "html": lambda: st.plot(found.card, title=title).html,
        "out": lambda: _scores(found),
    }
    for name, text in texts.items():
        path = paths[name]
        if path is not None:
            write_text_atomically(path, text())
    return [path for path in paths.values() if path is not None]


def _show(found: Found) -> None:
    from steadytree.reporting.text import scorecard_text

    if found.fitted:
        loss, noise, accuracy = found.fitted.values()
        typer.echo(f"loss {loss}, noise {noise:g}, proven accuracy {accuracy:.3f}\n")
    typer.echo(scorecard_text(found.card))


def _show_json(found: Found, written: list[Path], scored: bool) -> None:
    from steadytree.models.documents import card_to_dict
    from steadytree.reporting.formatting import plain

    table = found.card.risk_table
    risks = [] if table is None else [vars(row) for row in table.rows]
    shown = {"card": card_to_dict(found.card), "risks": risks, **found.fitted}
    if scored:
        shown["totals"] = found.card.score(found.rows)
        shown["answers"] = found.card.predict(found.rows)
    echo_json({**plain(shown), "written": names_of(written)})


def _fit_quietly(model: Any, given: Any) -> None:
    """Fit without the warning of an empty scorecard: the printed sheet says it."""
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no condition was kept")
        model.fit(given.features, given.labels)


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--tau must be 1se or a number from 0 to 1, got {text!r}.") from None


def _scores(found: Found) -> str:
    """Scores, predictions and risks as csv, a line for each row; one column for two classes."""
    import csv
    import io

    card, rows = found.card, found.rows
    totals, names = card.score(rows), card.classes.tolist()
    heads = ["total"] if card.is_binary else [f"total {name}" for name in names]
    shown = slice(1, None) if card.is_binary else slice(None)
    risks = card.risk(totals)[:, shown] if card.gives_risks else [[]] * len(totals)
    heads += ["answer", *(f"risk {name}" for name in names[shown] if card.gives_risks)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    table = totals.reshape(len(totals), -1).tolist()
    for total, answer, risk in zip(table, card.predict(rows), risks, strict=True):
        writer.writerow([*total, answer, *(f"{one:.6g}" for one in risk)])
    return text.getvalue()
