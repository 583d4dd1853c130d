"""The command `steadytree private simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadytree.cli._method import Method
from steadytree.cli._options import AsJson
from steadytree.cli._output import echo_json, names_of, say_written
from steadytree.cli._places import READS, WRITES

DEFAULT_EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
PICTURES = (".png", ".svg", ".pdf")


def simulate(
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The filled-in schema."), READS],
    rows: Annotated[int, typer.Option(help="Rows that the private fit will have, about.")],
    epsilon: Annotated[
        list[float] | None, typer.Option(help="What a fit may cost; may be given several times.")
    ] = None,
    public_data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="PUBLIC rows, csv or parquet; NEVER the private ones: nothing protects these. "
            "Without it, rows are made up from the schema.",
        ),
        READS,
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The public data's column to predict.")
    ] = None,
    method: Annotated[Method, typer.Option(help="How to grow the trees.")] = Method.GIBBS,
    repeats: Annotated[int, typer.Option(help="Fits at each epsilon.", min=2)] = 10,
    seed: Annotated[int, typer.Option(help="For the same figures again.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to draw it (png, svg, pdf)."), WRITES
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell how accurate private trees would be, before anything is spent.

    Only for public or made-up rows: what is printed is exact, charged to no ledger and protects
    nobody. Choosing epsilon by trying it on the private rows is a release of its own.
    """
    from steadytree.core.atomic import check_can_write
    from steadytree.core.extras import require
    from steadytree.core.schema import Schema
    from steadytree.learn.simulate import simulate as simulate_fits

    if (public_data is None) != (target is None):
        raise ValueError("--public-data and --target belong together.")
    if out is not None:
        check_can_write(out)
        require("matplotlib", extra="plot", purpose="--out")
        if out.suffix not in PICTURES:
            raise ValueError(f"--out must end in one of {', '.join(PICTURES)}, got {str(out)!r}.")
    declared, data = Schema.load(schema), None
    if public_data is not None and target is not None:
        data = _public_rows(public_data, declared, target)
    found = simulate_fits(
        declared,
        rows,
        epsilon or DEFAULT_EPSILONS,
        data,
        method=method.value,
        repeats=repeats,
        random_state=seed,
    )
    if out is not None:
        found.plot().figure.savefig(out)
    if as_json:
        echo_json({**found.to_dict(), "written": names_of([out])})
        return
    typer.echo(str(found))
    source = "made-up rows" if data is None else f"{public_data}, taken to be public"
    typer.echo(f"from {source}: nothing was spent, and nothing of this is private")
    say_written(out)


def _public_rows(path: Path, declared: object, target: str) -> tuple[object, object]:
    from steadytree.cli.private import read_rows
    from steadytree.interop.data_file import column_names

    if target not in column_names(path):
        raise ValueError(f"--target {target!r} is no column of the data.")
    return read_rows(path, declared, target)  # type: ignore[arg-type]
