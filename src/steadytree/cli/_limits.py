"""Limits given on the command line: shares, and numbers of rows."""

from __future__ import annotations

import typer

EXCEEDED = 3


def parse_share(text: str, option: str) -> float:
    """A share: "1%", "1 %" or "0.01".

    Examples
    --------
    >>> parse_share("5%", "--max-loss"), parse_share("0.01", "--max-loss")
    (0.05, 0.01)
    """
    bare = text.strip().removesuffix("%")
    try:
        share = float(bare) / (100 if bare != text.strip() else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"{option} must be a share such as 5% or 0.05, got {text!r}.")
    return share


def parse_flips(text: str, n_rows: int) -> float:
    """Most rows whose decision may change: "5%" of them, "0.05" of them, or "12" rows.

    Examples
    --------
    >>> parse_flips("5%", 200), parse_flips("12", 200)
    (10.0, 12.0)
    """
    if text.strip().isdigit():
        return float(text)
    try:
        return parse_share(text, "--max-flips") * n_rows
    except ValueError:
        raise ValueError(
            "--max-flips must be a share such as 5% or 0.05, or a whole number of rows such as 12, "
            f"got {text!r}."
        ) from None


def stop_if_exceeded(n_flips: int, n_rows: int, limit: str | None) -> None:
    """End with exit code 3 where more decisions change than were allowed."""
    if limit is None:
        return
    if n_flips > parse_flips(limit, n_rows) + 1e-9:
        typer.echo(
            f"limit exceeded: {n_flips:,} of {n_rows:,} decisions change, "
            f"and --max-flips allows {limit}.",
            err=True,
        )
        raise typer.Exit(EXCEEDED)
