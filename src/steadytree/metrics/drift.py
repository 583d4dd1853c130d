"""Drift: how new rows differ from the training rows of a scorecard, band by band."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri

from steadytree._base.notebook import Shown
from steadytree.data.labels import label_array, missing_labels
from steadytree.metrics.accuracy import label_indices
from steadytree.metrics.calibration import CalibrationLine
from steadytree.metrics.measurement import Measurement
from steadytree.models.scorecard import Scorecard, scorecard_of

SCORE_BINS = 10  # of the score, each with about as many training rows
BY_CHANCE = 0.99  # share of samples without drift that stay below `Stability.by_chance`


@dataclass(frozen=True)
class Stability:
    """Population stability of one variable, or of the score."""

    name: str
    psi: float  # population stability index
    by_chance: float  # which 99 of 100 samples without drift stay below
    bands: tuple[str, ...]
    expected: tuple[float, ...]  # share of training rows in each band
    actual: tuple[float, ...]  # share of new rows


@dataclass(frozen=True, eq=False, repr=False)
class Drift(Shown):
    """New rows beside the training rows of a scorecard."""

    n_rows: int
    score: Stability
    variables: tuple[Stability, ...]
    # where outcomes are known: events, the sum of the risks, and the difference of both as a
    # number of standard deviations
    observed: int | None = None
    expected: float | None = None
    z: float | None = None
    line: CalibrationLine | None = None  # where outcomes of both classes are known

    def exceeded(self, max_psi: float | None = None, max_miss: float | None = None) -> list[str]:
        """Sentences on limits that are not met.

        Parameters
        ----------
        max_psi : float, optional
            Largest stability index, of the score and of each variable. One that chance explains
            is not counted.
        max_miss : float, optional
            Largest share by which the number of events may differ from the sum of the risks. A
            difference that chance explains is not counted.
        """
        found = []
        limit = math.inf if max_psi is None else max_psi
        for one in (self.score, *self.variables):
            if one.psi > max(limit, one.by_chance):
                found.append(f"PSI of {one.name} is {one.psi:.3f}, and {max_psi:g} is allowed.")
        if max_miss is not None and self.observed is not None:
            missed = abs(self.observed - self.expected) > max_miss * self.expected  # type: ignore[operator]
            if missed and abs(self.z) > float(ndtri((1 + BY_CHANCE) / 2)):  # type: ignore[arg-type]
                found.append(
                    f"{self.observed:,} events were observed where the risks add up to "
                    f"{self.expected:,.1f}, and a difference of {100 * max_miss:g} % is allowed."
                )
        return found

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        meaning = "population stability index against the training rows; by chance up to {:.3f}"
        found = [
            Measurement(f"PSI of {one.name}", one.psi, meaning.format(one.by_chance))
            for one in (self.score, *self.variables)
        ]
        return tuple(found) + (() if self.line is None else self.line.measurements())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        line = None if self.line is None else asdict(self.line)
        parts = {"score": asdict(self.score), "variables": [asdict(v) for v in self.variables]}
        events = {"observed": self.observed, "expected": self.expected, "z": self.z}
        return {"n_rows": self.n_rows, **parts, "events": events, "calibration": line}


def drift(model: Any, X: Any, y: Any = None) -> Drift:
    """How new rows differ from those a scorecard was fitted to, and whether its risks still hold.

    Parameters
    ----------
    model : Scorecard or fitted RiskScoreClassifier of two classes
        With a training profile and a risk table, which its file keeps.
    X : array-like or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), optional
        Outcomes, missing where they are not known yet: adds calibration.

    Returns
    -------
    drift : Drift
    """
    scorecard = scorecard_of(model)
    check_profile(scorecard)
    values = scorecard.encode(X)
    if len(values) == 0:
        raise ValueError("X has no rows: at least one is needed.")
    found = []
    for variable, counts in zip(scorecard.variables, scorecard.profile, strict=True):
        bands = variable.band_of(values[:, variable.feature])
        actual = np.bincount(bands, minlength=len(variable.bands)).astype(float)
        found.append(_stability(variable.name, variable.texts(), counts.sum(axis=1), actual))
    totals = scorecard.holds_encoded(values) @ scorecard.points[:, 0] + scorecard.offset[0]
    known = () if y is None else _outcomes(scorecard, totals, y)
    return Drift(len(values), _score_stability(scorecard, totals), tuple(found), *known)


def _outcomes(scorecard: Scorecard, totals: NDArray[np.int64], y: Any) -> tuple[Any, ...]:
    """Events, their expected number, how far apart these are, and the calibration line."""
    labels = label_array(y)
    if len(labels) != len(totals):
        raise ValueError(f"X has {len(totals)} rows, but y has {len(labels)} labels.")
    there = ~missing_labels(labels)
    if not there.any():
        raise ValueError("y has no outcome: pass those that are known, or leave y out.")
    event = label_indices(scorecard.classes, labels[there]) == 1
    risk = scorecard.risk(totals[there])[:, 1]
    z = float((event.sum() - risk.sum()) / np.sqrt((risk * (1 - risk)).sum()))
    line = CalibrationLine.of(risk, event) if 0 < event.sum() < len(event) else None
    return int(event.sum()), float(risk.sum()), z, line


def check_profile(scorecard: Scorecard) -> None:
    """Refuse a scorecard without what new rows are compared with."""
    if not scorecard.is_binary or not scorecard.gives_risks:
        raise ValueError("drift is measured of a risk score of two classes that gives risks.")
    if not scorecard.profile or scorecard.risk_table is None or not scorecard.risk_table.rows:
        raise ValueError(
            "this risk score has no training profile, with which new rows could be compared: fit "
            "and save it again."
        )


def psi(expected: NDArray[np.float64], actual: NDArray[np.float64]) -> float:
    """Population stability index of two rows of counts.

    The sum of (a - e) ln(a / e) over shares a and e. To both counts one row is added, spread as in
    both together, so that an empty band has no infinite weight.
    """
    both = expected + actual
    pooled = both[both > 0] / both.sum()
    e, a = ((counts[both > 0] + pooled) / (counts.sum() + 1) for counts in (expected, actual))
    return float(((a - e) * np.log(a / e)).sum())


def _stability(
    name: str, bands: list[str], expected: NDArray[np.float64], actual: NDArray[np.float64]
) -> Stability:
    n_bands = int(((expected + actual) > 0).sum())
    # without drift PSI is about chi-square times this, a sum of squares of standardised shares
    scale = 1 / max(expected.sum(), 1.0) + 1 / actual.sum()
    chance = float(chdtri(n_bands - 1, 1 - BY_CHANCE)) * scale if n_bands > 1 else 0.0
    shares = (tuple((counts / max(counts.sum(), 1e-300)).tolist()) for counts in (expected, actual))
    return Stability(name, psi(expected, actual), chance, tuple(bands), *shares)


def _score_stability(scorecard: Scorecard, totals: NDArray[np.int64]) -> Stability:
    """Stability of the total, in bins of about equally many training rows."""
    rows = scorecard.risk_table.rows  # type: ignore[union-attr]
    known, counts = (np.array([getattr(row, key) for row in rows]) for key in ("total", "n_rows"))
    middle = np.cumsum(counts) - counts / 2
    group = np.minimum(middle * SCORE_BINS // counts.sum(), SCORE_BINS - 1)
    starts = known[np.flatnonzero(np.diff(group, prepend=-1))]
    bins = [np.searchsorted(starts[1:], values, side="right") for values in (known, totals)]
    expected = np.bincount(bins[0], counts, len(starts)).astype(np.float64)
    actual = np.bincount(bins[1], minlength=len(starts)).astype(float)
    ends = [*(starts[1:] - 1).tolist(), None]
    texts = [
        f"{first} or more" if last is None else f"{first} to {last}"
        for first, last in zip(starts.tolist(), ends, strict=True)
    ]
    return _stability("the score", texts, expected, actual)


def band_table(model: Any) -> dict[str, list[Any]]:
    """Bands of a scorecard with points, training rows, weight of evidence (WoE) and IV.

    WoE is the log of the share of all events in a band by the share of all other rows in it, with
    half a row added to each count; the information value of a band is WoE times the difference of
    these shares. Columns of plain values, which pandas and polars take as they are.
    """
    scorecard = scorecard_of(model)
    check_profile(scorecard)
    names = ("variable", "band", "points", "rows", "events", "event share", "WoE", "IV")
    table: dict[str, list[Any]] = {name: [] for name in names}
    for variable, counts in zip(scorecard.variables, scorecard.profile, strict=True):
        kept = np.flatnonzero(counts.sum(axis=1) > 0)
        shares = (counts[kept] + 0.5) / (counts[kept] + 0.5).sum(axis=0)
        texts = variable.texts()
        for index, (others, events) in zip(kept.tolist(), shares.tolist(), strict=True):
            n_rows, n_events = float(counts[index].sum()), float(counts[index, 1])
            woe = math.log(events / others)
            points = variable.bands[index].points[0]
            row = (variable.name, texts[index], points, n_rows, n_events, n_events / n_rows)
            for name, value in zip(names, (*row, woe, (events - others) * woe), strict=True):
                table[name].append(value)
    return table
