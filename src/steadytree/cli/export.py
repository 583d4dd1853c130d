"""The command `steadytree export`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

import steadytree as st
from steadytree._base.files import check_can_write, write_text_atomically
from steadytree.cli.options import AsJson, MayWrite, ModelFile, Reads, Trust, option
from steadytree.cli.output import show

EXAMPLES = """\b
Examples:
  steadytree export model.tree.json --to sql
  steadytree export model.tree.json --to sql --label yes --dialect spark --out tree.sql
  steadytree export model.tree.json --to python --out tree.py
  steadytree export sheet.card.json --to onnx --out sheet.onnx

Every form is run and compared with the model at each threshold, one float64 beside it, and with
missing, infinite and unknown values; one that differs is not written. A risk score is exported to
SQL as its total, and to the other forms as a tree, for up to 8 conditions."""
Form = StrEnum("Form", "SQL PYTHON C ONNX")


def export(
    model: Annotated[Reads, typer.Argument(metavar="MODEL", help=ModelFile)],
    to: Annotated[Form, typer.Option("--to", help="The form to write.")],
    label: Annotated[
        str | None, option("CLASS", "For SQL: the class whose share (of a tree) or total is meant.")
    ] = None,
    dialect: Annotated[
        str, option("DIALECT", "For SQL: standard, mysql, bigquery or spark.")
    ] = "standard",
    out: Annotated[MayWrite, option("FILE", "Where to write it.")] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Export a model to SQL, Python, C or ONNX, and compare the two.

    Without --out the text is printed.
    """
    if out is not None:
        check_can_write(out)
    elif to is Form.ONNX:
        raise ValueError("an ONNX model is binary: name a file with --out.")
    if to is not Form.SQL and (label is not None or dialect != "standard"):
        raise ValueError(f"--label and --dialect are for SQL: leave them out with --to {to.value}.")
    content, check = _export(st.load(model, trust), to, label, dialect)
    if out is None and not as_json:
        typer.echo(content)
        typer.echo(str(check), err=True)
        return
    if out is not None:
        is_text = isinstance(content, str)
        write_text_atomically(out, f"{content.rstrip()}\n" if is_text else content)
    values = {"form": to.value, "n_rows_compared": check.n_rows, "compared_by": check.by}
    values |= {} if out is not None else {"content": content}
    show(values, [str(check)], as_json, [out])


def _export(model: Any, to: Form, label: str | None, dialect: str) -> tuple[Any, Any]:
    from steadytree.models.exports.onnx import tree_to_onnx
    from steadytree.models.exports.source import tree_to_source
    from steadytree.models.exports.sql import scorecard_to_sql, tree_to_sql

    if isinstance(model, st.Scorecard):
        if to is Form.SQL:
            return scorecard_to_sql(model, _label(label, model), dialect)
        model = model.to_tree()
    tree = st.as_tree(model)
    if to is Form.SQL:
        return tree_to_sql(tree, _label(label, tree), dialect)
    return tree_to_onnx(tree) if to is Form.ONNX else tree_to_source(tree, to.value)


def _label(text: str | None, model: Any) -> Any:
    """The class that is written as given; the text itself, which is then refused, if none is."""
    return next((c for c in model.classes.tolist() if text is not None and str(c) == text), text)
