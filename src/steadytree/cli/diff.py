"""The commands `steadytree diff` and `steadytree retrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import steadytree as st
from steadytree._base.files import check_can_write
from steadytree._base.progress import Progress
from steadytree.cli import options
from steadytree.cli.options import AsJson, Drop, MaxFlips, MayRead, MayWrite, Reads, Writes, option
from steadytree.cli.output import show, warn_of_columns

DIFF_EXAMPLES = """\b
Examples:
  steadytree diff q1.tree.json q2.tree.json
  steadytree diff q1.tree.json q2.tree.json --data q2.csv --target outcome --out changes.svg
  steadytree diff q1.tree.json q2.tree.json --data q2.csv --max-flips 5%

Exit code 3 if more predictions change than --max-flips allows."""
RETRAIN_EXAMPLES = """\b
Examples:
  steadytree retrain q2.csv --target outcome --previous q1.tree.json
  steadytree retrain q2.csv --target outcome --previous q1.tree.json --max-loss 2% \\
      --out q2.tree.json --picture changes.svg --max-flips 5%
  steadytree retrain q2.csv --target outcome --previous q1.tree.json --seen q1.csv

Exit code 3 if more predictions change than --max-flips allows; the tree is written anyway."""


def diff(
    old: Annotated[Reads, typer.Argument(metavar="OLD", help=options.ModelFile)],
    new: Annotated[Reads, typer.Argument(metavar="NEW", help="The tree to compare it with.")],
    data: Annotated[
        MayRead, option("FILE", "Rows to compare predictions on (csv or parquet).")
    ] = None,
    target: options.TrueClasses = None,
    max_flips: MaxFlips = None,
    out: Annotated[MayWrite, option("FILE", "Where to write the plot (SVG).")] = None,
    trust: options.Trust = False,
    as_json: AsJson = False,
) -> None:
    """Show what changed from one tree to another.

    With rows, also which of their predictions change.
    """
    if data is None and (max_flips is not None or target is not None):
        raise ValueError("--max-flips and --target need rows: pass them with --data.")
    _check_before_work(max_flips, out)
    rows, labels = (None, None) if data is None else _read(data, target)
    found = st.diff(st.load(old, trust), st.load(new, trust), rows, labels)
    if out is not None:
        found.write(out)
    _show(found, max_flips, as_json, out)


def retrain(
    data: Annotated[Reads, typer.Argument(metavar="DATA", help="New rows (csv or parquet).")],
    target: options.Target,
    previous: Annotated[Reads, option("FILE", "The tree in use (*.tree.json).")],
    max_loss: Annotated[
        str, option("SHARE", "Score that may be lost to change few decisions.")
    ] = "1%",
    score: Annotated[
        str, option("SCORE", "What may be lost: accuracy, log_loss or roc_auc.")
    ] = "accuracy",
    seen: Annotated[
        MayRead,
        option(
            "FILE",
            "Rows the tree in use was fitted to: a data file or fingerprints. By default the "
            "fingerprints beside it, where there are any.",
        ),
    ] = None,
    out: Annotated[Writes, option("FILE", "Where to write the new tree.")] = Path(
        "retrained.tree.json"
    ),
    picture: Annotated[MayWrite, option("FILE", "Where to plot what changed (SVG).")] = None,
    max_flips: MaxFlips = None,
    drop: Drop = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the held-out rows.")] = 0,
    trust: options.Trust = False,
    as_json: AsJson = False,
) -> None:
    """Fit a tree to new rows that changes few predictions.

    Among trees close to the one in use it takes the tree with the fewest changed predictions. Its
    score on held-out rows is at most --max-loss below that of a plain refit.
    """
    loss = options.parse_share(max_loss, "--max-loss")
    from steadytree._base.validation import OneOf

    OneOf("accuracy", "log_loss", "roc_auc").check(score, "--score")
    _check_before_work(max_flips, out, picture)
    from steadytree.data.labels import labels_like
    from steadytree.models.boxes import rebase
    from steadytree.reporting.checks import check_texts
    from steadytree.reporting.data_set import DataSet

    with Progress() as progress:
        progress.update(f"reading {data}")
        old, data_set = st.as_tree(st.load(previous, trust)), DataSet.read(data, target, drop or [])
        check_texts(data_set.features)
        labels = labels_like(data_set.labels, old.classes)
        flags = _seen_rows(seen, previous, data_set, target, drop or [])
        progress.update("retraining")
        model = st.RetrainedTreeClassifier(old, None, loss, score, random_state=seed)
        model.fit(data_set.features, labels, seen=flags)
        # measured in the bounds of the new columns, as the frontier's distances are; the old tree
        # keeps its own classes, so that new ones are named
        found = st.diff(rebase(old, model.tree_.space), model, data_set.features, labels)
        st.save(model.tree_, out)
        if picture is not None:
            found.write(picture)
    warn_of_columns(data_set.features)
    steps = {name: values.tolist() for name, values in model.steps_.items()}
    frontier: dict[str, Any] = {
        "choice": model.choice_._asdict() if model.choice_ else {},
        "steps": steps,
    }
    text = model.frontier_text()
    if flags is not None:
        frontier["n_seen"] = int(flags.sum())
        text = f"{flags.sum():,} of {len(flags):,} rows were fitted to before.\n{text}"
    _show(found, max_flips, as_json, out, picture, frontier=frontier, text=text)


def _seen_rows(
    seen: Path | None, previous: Path, data_set: Any, target: str, drop: list[str]
) -> Any:
    """Rows that the tree in use was fitted to, as far as a file tells; None without one."""
    from steadytree.data.dataset import (
        fingerprint_path,
        fingerprints_of,
        read_fingerprints,
        rows_in,
    )
    from steadytree.reporting.data_set import DataSet

    if seen is None and not fingerprint_path(previous).exists():
        return None
    path = seen or fingerprint_path(previous)
    if path.suffix.lower() == ".json":
        known = read_fingerprints(path)
    else:
        rows = DataSet.read(path, target, drop)
        known = fingerprints_of(rows.features, rows.labels)
    return rows_in(known, data_set.features, data_set.labels)


def _check_before_work(max_flips: str | None, *outputs: Path | None) -> None:
    """Refuse a limit that cannot be parsed and a file that cannot be written."""
    if max_flips is not None:
        options.parse_flips(max_flips, 1)
    for path in filter(None, outputs):
        check_can_write(path)


def _show(
    found: Any,
    max_flips: str | None,
    as_json: bool,
    *written: Path | None,
    frontier: Any = None,
    text: str = "",
) -> None:
    """Print a diff, with colours in a terminal, or as JSON; exit 3 where a limit is exceeded."""
    if not as_json:
        from rich.console import Console

        from steadytree.reporting.diff import diff_text

        console = Console()
        if console.is_terminal:
            console.print(diff_text(found.formatted), soft_wrap=True)
        else:
            typer.echo(str(found))
        if text:
            typer.echo(f"\n{text}\n")
    more = {} if frontier is None else {"frontier": frontier}
    show({**found.formatted, **more}, [], as_json, written)
    if found.rows is not None:
        options.stop_if_exceeded(len(found.rows.flipped), found.rows.n_rows, max_flips)


def _read(path: Path, target: str | None) -> tuple[Any, Any]:
    """Rows of a file, and their classes where a column is named."""
    from steadytree.data.readers import read_data
    from steadytree.reporting.checks import check_names, labels_of

    table = read_data(path)
    if target is None:
        return table, None
    check_names(table.names or (), [target], "the target")
    return table, labels_of(table, target)
