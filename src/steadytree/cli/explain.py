"""The command `steadytree explain`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import steadytree as st
from steadytree.cli.options import AsJson, Data, MayRead, ModelFile, Reads, Trust, option
from steadytree.cli.output import check_order, show

EXAMPLES = """\b
Examples:
  steadytree explain model.tree.json new.csv --row 17
  steadytree explain model.tree.json new.csv --id patient=A-1023 --previous old.tree.json
\b
noise.toml, for example (columns that are not named do not change):
  frozen = ["age"]
  [step_cost]
  income = 0.001
  [direction]
  income = "up" """


def explain(
    model: Annotated[Reads, typer.Argument(metavar="MODEL", help=ModelFile)],
    data: Data,
    row: Annotated[
        int | None, typer.Option(min=0, help="Number of the row; the first one is 0.")
    ] = None,
    id: Annotated[
        str | None, option("COLUMN=VALUE", "The row that has this value in a column.")
    ] = None,
    noise: Annotated[
        MayRead, option("FILE", "Cost of changes (TOML); default: shares of each range.")
    ] = None,
    previous: Annotated[MayRead, option("FILE", "The model in use so far.")] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Explain the prediction for one row, and what would change it."""
    check_order("explain", model, data)
    if (row is None) == (id is None):
        raise ValueError("name one row: pass --row NUMBER or --id COLUMN=VALUE.")
    from steadytree.data.readers import read_data

    perturbation = None if noise is None else st.Perturbation.from_toml(noise)
    fitted, before = st.load(model, trust), None if previous is None else st.load(previous, trust)
    table: Any = read_data(data)
    number = _row_number(table, id) if row is None else row
    if number >= table.n_rows:
        raise ValueError(f"--row must be at most {table.n_rows - 1}, got {number}.")
    own = table.take([number])
    found = st.explain(fitted, own, perturbation=perturbation, previous=before)
    show(found.to_dict(), [f"row {number}: {found}"], as_json)


def _row_number(table: Any, named: str | None) -> int:
    """The one row with a value in a column."""
    from steadytree.reporting.checks import check_names

    column, sign, value = str(named).partition("=")
    if not sign:
        raise ValueError(f"--id must be COLUMN=VALUE, as in --id patient=A-1023, got {named!r}.")
    names = table.names or ()
    check_names(names, [column], "--id")
    text = table.text(names.index(column))
    wanted = text.values.index(value) if value in text.values else -2
    rows = [k for k, own in enumerate(text.of_row.tolist()) if own == wanted]
    if len(rows) != 1:
        raise ValueError(
            f"--id {named}: {len(rows):,} rows have this value, and one is needed: "
            "pass a column of identifiers, or --row NUMBER."
        )
    return rows[0]
