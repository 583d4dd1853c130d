"""The command `steadytree predict`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

import steadytree as st
from steadytree._base.files import check_can_write, write_text_atomically
from steadytree.cli.options import AsJson, Data, MayWrite, ModelFile, Reads, Trust, option
from steadytree.cli.output import check_order, csv_text, show

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = """\b
Examples:
  steadytree predict model.tree.json new.csv --out predicted.csv
  steadytree predict pipeline.skops new.csv --keep patient --out predicted.csv

Each line has the kept columns, the prediction, the probability of each class and, for a tree, the
number of the leaf. By default all columns that the model does not use are kept."""


def predict(
    model: Annotated[Reads, typer.Argument(metavar="MODEL", help=ModelFile)],
    data: Data,
    out: Annotated[MayWrite, option("FILE", "Where to write the predictions (csv).")] = None,
    keep: Annotated[
        list[str] | None, option("COLUMN", "A column to copy into the output; may be repeated.")
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Predict the rows of a file.

    The result is csv with the identifiers, predictions, probabilities and the leaf. Without --out
    it is printed.
    """
    check_order("predict", model, data)
    if out is not None:
        check_can_write(out)
    from steadytree.data.readers import column_names, read_data
    from steadytree.models.black_box import BlackBox, as_model
    from steadytree.reporting.checks import check_names

    fitted = as_model(st.load(model, trust))
    names = column_names(data)
    used = fitted.names if isinstance(fitted, BlackBox) else fitted.space.names
    if used is None and keep is None:
        keep = []  # the columns of such a model are not known by name
    kept = [name for name in names if name not in (used or ())] if keep is None else keep
    check_names(names, kept, "--keep")
    table = read_data(data, skip=[name for name in kept if used is None or name not in used])
    predictions, shares, leaves = _predict(fitted, table)
    heads = [*kept, "prediction", *(f"probability {name}" for name in fitted.classes.tolist())]
    heads += [] if leaves is None else ["leaf"]
    ends = [[]] * len(predictions) if leaves is None else [[leaf] for leaf in leaves]
    lines = [heads] + [
        [*own, prediction, *(f"{share:.6g}" for share in row), *end]
        for own, prediction, row, end in zip(
            _kept(data, kept, len(predictions)), predictions, shares, ends, strict=True
        )
    ]
    if out is not None:
        write_text_atomically(out, csv_text(lines))
    elif not as_json:
        typer.echo(csv_text(lines), nl=False)
        return
    values = {"columns": heads, "n_rows": len(predictions)}
    values |= {} if out is not None else {"rows": lines[1:]}
    show(values, [f"{len(predictions):,} rows predicted"], as_json, [out])


def _predict(fitted: Any, table: Any) -> tuple[list[Any], Any, list[int] | None]:
    """Classes, probabilities, and leaves where there are any."""
    if isinstance(fitted, st.Tree):
        leaves = fitted.apply(table)
        answers = fitted.classes[fitted.label[leaves]]
        return answers.tolist(), fitted.value[leaves].tolist(), leaves.tolist()
    if isinstance(fitted, st.Scorecard):
        from steadytree.metrics.accuracy import predict_scorecard

        answer, shares = predict_scorecard(fitted, table)
        return fitted.classes[answer].tolist(), shares.tolist(), None
    return fitted.predict(table).tolist(), fitted.predict_proba(table).tolist(), None


def _kept(data: Path, names: list[str], n_rows: int) -> list[list[str]]:
    """The kept columns of each row, as the file writes them."""
    from steadytree.data.readers import read_texts

    texts = read_texts(data) if names else {}
    return [[texts[name][row] for name in names] for row in range(n_rows)]
