"""What `steadytree score` writes about new rows, and the limits it checks on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from steadytree.cli.options import parse_share
from steadytree.cli.output import csv_text, stop

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Checks(NamedTuple):
    """Limits on new rows."""

    outcome: str | None
    max_psi: float | None
    max_miss: float | None

    @classmethod
    def of(
        cls, outcome: str | None, max_psi: float | None, miss: str | None, is_fitted: bool
    ) -> Checks:
        """Refuse options that do not go together."""
        if is_fitted and not (outcome is None and max_psi is None and miss is None):
            raise ValueError(
                "--outcome, --max-psi and --max-miscalibration are about new rows: pass --card."
            )
        if miss is not None and outcome is None:
            raise ValueError("--max-miscalibration needs known outcomes: pass --outcome too.")
        if max_psi is not None and not 0 <= max_psi < float("inf"):
            raise ValueError(f"--max-psi must be a number of at least 0, got {max_psi}.")
        share = None if miss is None else parse_share(miss, "--max-miscalibration")
        return cls(outcome, max_psi, share)

    def drift(self, found: Any) -> Any:
        """New rows beside the training rows; None where there is no profile and none is needed."""
        from steadytree.data.table import quote
        from steadytree.metrics.drift import drift

        if not found.scorecard.profile and self == (None, None, None):
            return None
        names = found.rows.names
        if self.outcome is not None and self.outcome not in names:
            raise ValueError(f"--outcome {self.outcome!r} is none of the columns {quote(names)}.")
        known = None if self.outcome is None else found.rows.columns[names.index(self.outcome)]
        return drift(found.scorecard, found.rows, known)

    def stop_if_exceeded(self, drift: Any) -> None:
        """End with exit code 3 where a limit is exceeded."""
        exceeded = [] if drift is None else drift.exceeded(self.max_psi, self.max_miss)
        if exceeded:
            stop("\n".join(f"limit exceeded: {one}" for one in exceeded))


def parse_decision(text: str) -> float | dict[str, float]:
    """When the event is predicted: "0.2", "cost=5", "sensitivity=0.9", "specificity=90%".

    >>> parse_decision("cost=5"), parse_decision("0.2")
    ({'cost': 5.0}, 0.2)
    """
    from steadytree.riskscore.banded_score import check_decision

    rule, _, number = text.rpartition("=")
    try:
        value = float(number) if rule == "cost" else parse_share(number, "--decision")
        found = {rule: value} if rule else value
        check_decision(found)
    except ValueError:
        raise ValueError(
            "--decision must be a risk between 0 and 1, cost=C above 0, or sensitivity=S or "
            f"specificity=S up to 1, got {text!r}."
        ) from None
    return found


def parse_scaling(text: str | None) -> tuple[float, float, float] | None:
    """Points that double the odds, and the credit score at some odds against the event.

    >>> parse_scaling("20"), parse_scaling("40,500,30")
    ((20.0, 600.0, 50.0), (40.0, 500.0, 30.0))
    """
    if text is None:
        return None
    try:
        pdo, *rest = (float(part) for part in text.split(","))
        score, odds = rest or (600.0, 50.0)
    except ValueError:
        raise ValueError(
            f"--scaling must be PDO or PDO,SCORE,ODDS, such as 20,600,50, got {text!r}."
        ) from None
    return pdo, score, odds


def check_sheets(paths: Sequence[Path]) -> list[Path]:
    """Refuse what is no picture and no page."""
    for path in paths:
        if path.suffix not in (".svg", ".html"):
            raise ValueError(f"--sheet must name a file *.svg or *.html, got {str(path)!r}.")
    return list(paths)


def sheet_texts(scorecard: Any, paths: Sequence[Path], title: str) -> dict[Path | None, str]:
    """The sheet as a picture or as a page that prints it."""
    import steadytree as st

    pages = {
        ".svg": lambda: st.plot(scorecard).svg,
        ".html": lambda: st.plot(scorecard, title=title).html,
    }
    return {path: pages[path.suffix]() for path in paths}


def described(scorecard: Any, title: str | None, units: Sequence[str]) -> Any:
    """The scorecard with another title and further units."""
    from dataclasses import replace

    from steadytree.data.table import quote

    pairs = dict(scorecard.units)
    for text in units:
        name, sign, unit = text.partition("=")
        if not sign or name not in scorecard.space.names:
            raise ValueError(
                "--unit must be COLUMN=UNIT with a column of the risk score, one of "
                f"{quote(scorecard.space.names)}, got {text!r}."
            )
        pairs[name] = unit
    return replace(scorecard, title=scorecard.title if title is None else title, units=pairs)


def scored_csv(
    found: Any,
    data: Path,
    drop: list[str],
    scaling: tuple[float, float, float] | None,
    n_reasons: int,
    is_fitted: bool = False,
) -> str:
    """All columns of the file as they stand there, and those of the scores.

    What a fit leaves out, such as identifiers, stays in the rows, unless scores have that name.
    """
    from steadytree.data.readers import read_texts
    from steadytree.data.table import quote
    from steadytree.riskscore.scaling import Scaling
    from steadytree.riskscore.scoring import ScoredRows

    scale = None if scaling is None else Scaling.of(found.scorecard, *scaling)
    added = ScoredRows.of(found.scorecard, found.rows, scale).columns(n_reasons)
    left_out = [name for name in drop if not is_fitted or name in added]
    given = read_texts(data, skip=left_out)
    both = [name for name in added if name in given]
    if both:
        raise ValueError(
            f"the data have the column(s) {quote(both)}, which the scores are written to: rename "
            "them, or leave them out with --drop."
        )
    return _csv(given | added)


def bands_csv(scorecard: Any, scaling: tuple[float, float, float] | None) -> str:
    """Bands with points, training rows, WoE and IV; with a scale, the points on it too."""
    from steadytree.metrics.drift import band_table
    from steadytree.riskscore.scaling import Scaling

    table = band_table(scorecard)
    if scaling is not None:
        scale = Scaling.of(scorecard, *scaling)
        points = {
            (variable.name, text): own
            for variable, listed in zip(scorecard.variables, scale.points, strict=True)
            for text, own in zip(variable.texts(), listed, strict=True)
        }
        pairs = zip(table["variable"], table["band"], strict=True)
        table["scaled points"] = [points[pair] for pair in pairs]
    for name in ("event share", "WoE", "IV"):
        table[name] = [f"{value:.6g}" for value in table[name]]
    for name in ("rows", "events"):
        table[name] = [f"{value:.15g}" for value in table[name]]
    return _csv(table)


def _csv(columns: dict[str, list[Any]]) -> str:
    return csv_text([columns, *zip(*columns.values(), strict=True)])
