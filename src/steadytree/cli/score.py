"""The command `steadytree score`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLES = """\b
Examples:
  steadytree score patients.csv --target outcome --save outcome.card.json --svg outcome.svg
  steadytree score new.csv --card outcome.card.json --out scored.csv"""


class Loss(StrEnum):
    """What a card is fitted to."""

    MAJORITY = "majority"
    LOGISTIC = "logistic"


def score(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A csv or parquet file.")],
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column to predict; fits a card.")
    ] = None,
    card: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A saved card (*.card.json) to score with.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write totals and risks (csv)."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to save the card (*.card.json).")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to draw the card.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write a page to print.")
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated."),
    ] = None,
    loss: Annotated[Loss, typer.Option(help="What the card is fitted to.")] = Loss.MAJORITY,
    tau: Annotated[
        str, typer.Option(help="Noise to withstand, as a share of a column's range, or 1se.")
    ] = "1se",
    max_conditions: Annotated[int, typer.Option(min=1, help="Most conditions.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Which rows settings are chosen on.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Fit a card of points to a file and print it, or score a file with a saved card."""
    if (target is None) == (card is None):
        raise ValueError("pass --target to fit a card, or --card to score with a saved one.")
    from steadytree.core.atomic import check_can_write, write_text_atomically
    from steadytree.core.scorecard import Scorecard
    from steadytree.interop.card_file import save_card
    from steadytree.interop.data_file import read_data
    from steadytree.interop.tree_file import load
    from steadytree.learn.risk_score import RiskScoreClassifier
    from steadytree.reporting.card_html import card_html
    from steadytree.reporting.card_svg import draw_card
    from steadytree.reporting.card_text import card_text
    from steadytree.reporting.data_set import DataSet
    from steadytree.reporting.progress import Progress

    for path in (out, save, svg, html):
        if path is not None:
            check_can_write(path)
    if card is not None:
        found, table, fitted = load(card), None, {}
        if not isinstance(found, Scorecard):
            raise ValueError(f"{card} holds a tree, not a card of points.")
        rows = read_data(data, skip=drop or [])
    else:
        noise = tau if tau == "1se" else _share(tau)
        model = RiskScoreClassifier(loss.value, noise, max_conditions, random_state=seed)
        with Progress() as progress:
            progress.say(f"reading {data}")
            given = DataSet.read(data, target, drop or [])
            progress.say("fitting a card")
            _fit_quietly(model, given)
        found, table, rows = model.card_, model.risk_table_, given.features
        fitted = {"noise": model.tau_, "certified_accuracy": model.certified_accuracy_}
        if not as_json:
            typer.echo(f"noise {model.tau_:g}, proven accuracy {model.certified_accuracy_:.3f}\n")
    if as_json:
        _show_json(found, table, fitted)
    else:
        typer.echo(card_text(found, table))
    if save is not None:
        save_card(found, save)
    if svg is not None:
        write_text_atomically(svg, str(draw_card(found, table)))
    if html is not None:
        write_text_atomically(html, card_html(found, table, title=target or ""))
    if out is not None:
        write_text_atomically(out, _scores(found, rows))


def _show_json(card: Any, table: Any, fitted: dict[str, float]) -> None:
    import json

    from steadytree.interop.card_dict import card_to_dict
    from steadytree.reporting.plain import plain

    risks = [] if table is None else [vars(row) for row in table.rows]
    shown = plain({"card": card_to_dict(card), "risks": risks, **fitted})
    typer.echo(json.dumps(shown, ensure_ascii=False, allow_nan=False))


def _fit_quietly(model: Any, given: Any) -> None:
    """Fit; that a card is empty is said by the card itself, without a line of source code."""
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no condition is better than chance")
        model.fit(given.features, given.labels)


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--tau must be 1se or a number from 0 to 1, got {text!r}.") from None


def _scores(card, rows) -> str:
    """Totals, answers and risks as csv, a line for each row; two classes have one of each."""
    import csv
    import io

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
