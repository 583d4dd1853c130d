"""The banded risk score: from labelled rows to a scorecard with one row a variable."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from steadytree.data.labels import stratified_folds
from steadytree.models.risk_table import RiskGroup, RiskTable
from steadytree.models.scorecard import Scorecard
from steadytree.riskscore import banded
from steadytree.riskscore._kernels.bands import fit_line
from steadytree.riskscore.band_bins import ColumnBins
from steadytree.riskscore.band_points import (
    SEARCHED_LEFT_OUT,
    conditions_of,
    round_bands,
    shrinkage,
    start_for,
)
from steadytree.riskscore.band_regression import Bands, held_out_slope
from steadytree.riskscore.banded import BandSettings, BinnedRows
from steadytree.riskscore.boosting import TAUS, Points, last_within_error
from steadytree.riskscore.candidates import (
    SLACK,
    USUAL,
    LabelledRows,
    allowed_directions,
    check_forced,
)
from steadytree.riskscore.class_curves import with_class_curves
from steadytree.riskscore.logistic import joined_scorecard
from steadytree.riskscore.pool import ScorecardPool, search_pool

MOST_POINTS, NO_LIMIT = 10, 10**6
MANY, FEW_VARIABLES = 16, 6  # splits and trends, where variables are few
FOLDS, MOST_ROWS = 5, 10_000  # for the choice of the noise
GROUP_ODDS = 2.0  # below half of the mean odds is low risk, from twice of them on high

Floats = NDArray[np.float64]


class BandedScore(NamedTuple):
    """A scorecard, the noise it was fitted with, and others that are nearly as good."""

    scorecard: Scorecard
    noise: float
    pool: ScorecardPool | None


def fit_banded(estimator: Any, data: LabelledRows, fitting: Floats, seed: int) -> BandedScore:
    """Fit bands and points by weights `fitting`; risks are those of the rows' own weights."""
    noise = estimator.noise
    if noise == "1se":
        noise = _choose_noise(estimator, data, fitting, seed)
    noise = float(noise)
    if len(data.classes) > 2:
        return BandedScore(_several(estimator, data, fitting, noise), noise, None)
    settings, rows = _settings(estimator, data), _rows(estimator, data, fitting, 1, noise)

    def fit(excluded: frozenset[int]) -> Scorecard:
        own = replace(settings, excluded=excluded)
        return scorecard_of(estimator, data, rows, banded.grow_bands(rows, own), own, noise > 0)

    first = fit(frozenset())
    pool = search_pool(first, fit, lambda one: log_loss_of(one, data), estimator.pool_size)
    return BandedScore(first, noise, pool)


def _settings(estimator: Any, data: LabelledRows) -> BandSettings:
    limits = (estimator.max_conditions, estimator.max_variables)
    conditions, variables = (
        NO_LIMIT if limit in (None, "auto") else int(limit) for limit in limits
    )
    instead = None
    forced = check_forced(estimator, data)
    if estimator.max_conditions == "auto":
        conditions = USUAL
        if len(data.classes) == 2 and len(forced) <= FEW_VARIABLES:
            instead = MANY, min(variables, FEW_VARIABLES)
    smooth = not isinstance(estimator.noise, str) and estimator.noise == 0
    return BandSettings(conditions, variables, forced, instead=instead, smooth=smooth)


def _rows(estimator: Any, data: LabelledRows, fitting: Floats, event: int, noise: float):
    """Rows in bins, moved against their outcome by noise; moved columns once in each direction."""
    events = (data.labels == event).astype(np.float64)
    least = banded.least_weights(float(fitting.sum()))[0]
    directions, free = allowed_directions(estimator, data), free_columns(estimator)
    bins, binned, feature, sign, turn = [], [], [], [], []
    for j, (up, down) in directions.items():
        column, x = data.space[j], data.values[:, j]
        own = ColumnBins.of(column, x, fitting, least)
        moved = noise > 0 and column.kind in ("numeric", "integer") and column.low < column.high
        shift = noise * SLACK * (column.high - column.low) * (2 * events - 1) if moved else 0.0
        fixed = 0 if up and down else 1 if up else -1
        for way in ((1, -1) if fixed == 0 else (fixed,)) if moved else (fixed,):
            bins.append(own)
            binned.append(own.binned(x - way * shift))
            feature.append(j)
            sign.append(way)
            turn.append(0.0 if column.name in free or not own.is_ordered else banded.TURN)
    categorical = np.array([not own.is_ordered for own in bins], bool)
    return BinnedRows(
        tuple(bins),
        np.array(feature, np.int64),
        np.array(binned, np.uint16).reshape(len(bins), len(events)),
        events,
        fitting,
        categorical,
        np.array(sign, np.int64),
        np.array(turn),
    )


def free_columns(estimator: Any) -> set[str]:
    """Columns whose risk may rise and fall as it likes."""
    monotone = estimator.monotone or {}
    return {name for name, direction in monotone.items() if direction == "free"}


def _binary(estimator: Any, data: LabelledRows, fitting: Floats, noise: float) -> Scorecard:
    settings = _settings(estimator, data)
    rows = _rows(estimator, data, fitting, 1, noise)
    grown = banded.grow_bands(rows, settings)
    # one kind of slope for all sizes of noise, as they are compared
    return scorecard_of(estimator, data, rows, grown, settings, moved=True)


def scorecard_of(
    estimator: Any,
    data: LabelledRows,
    rows: BinnedRows,
    bands: Bands,
    settings: BandSettings,
    moved: bool = False,
) -> Scorecard:
    """The card of grown bands: integer points, the curve of risks, and the decision."""
    found = round_bands(rows, bands, most_points(estimator), settings.forced)
    given = conditions_of(rows, found)
    points = np.array(list(given.values()), np.int64)
    plain = Scorecard(data.space, data.classes, list(given), points, 0, decision=1)
    totals = data.totals(plain)
    counts = np.bincount(totals, data.weights)
    hits = np.bincount(totals, data.weights * (data.labels == 1))
    if moved:  # bands were fitted to rows that were moved
        slope, _, _ = fit_line(counts, hits, bands.ridge * found.spread, found.slope, found.start)
        slope = max(slope, 0.0) * shrinkage(bands)
    else:
        slope = found.slope * held_out_slope(bands) * shrinkage(bands, searched=SEARCHED_LEFT_OUT)
    share = float(np.clip(hits.sum() / counts.sum(), 1e-9, 1 - 1e-9))
    start = start_for(totals, data.weights, slope, share)
    if estimator.prevalence is not None:
        start += float(logit(estimator.prevalence) - logit(share))
    fitted = replace(plain, slope=slope, intercept=start)
    decision = estimator.decision
    if not isinstance(decision, Mapping) and estimator.class_weight is not None:
        factors = rows.weights / data.weights
        rest, event = (np.average(factors[data.labels == k]) for k in (0, 1))
        decision = decision * rest / (decision * rest + (1 - decision) * event)
    return replace(fitted, decision=_decision(decision, fitted, totals, data))


def _several(estimator: Any, data: LabelledRows, fitting: Floats, noise: float) -> Scorecard:
    """Points for each class against the rest, on one scale, with risks fitted jointly."""
    settings, classes = _settings(estimator, data), range(len(data.classes))
    rows = [_rows(estimator, data, fitting, k, noise) for k in classes]
    grown = [banded.grow_bands(one, settings) for one in rows]
    spans = [np.ptp(one.value[v]) for one in grown for v in one.used]
    scale = most_points(estimator) / max(spans, default=1.0)
    parts, ridge = [], 0.0
    for own, bands in zip(rows, grown, strict=True):
        found = round_bands(own, bands, most_points(estimator), settings.forced, scale)
        given = conditions_of(own, found)
        points = np.array(list(given.values()), np.int64)
        parts.append(Points(list(given), points, 0, np.zeros(len(data.labels), np.int64)))
        ridge += bands.ridge * found.spread
    scorecard = joined_scorecard(parts, data._replace(weights=fitting))
    if not scorecard.conditions:
        return scorecard
    totals = scorecard.holds_encoded(data.values) @ scorecard.points
    part = shrinkage(*grown)
    return with_class_curves(scorecard, data.labels, totals, fitting, ridge, part)


def most_points(estimator: Any) -> int:
    return MOST_POINTS if estimator.max_points is None else int(estimator.max_points)


# ---- decision and risk groups ----
def check_decision(decision: Any) -> None:
    """Refuse what names no threshold."""
    what = (
        "decision must be a risk above 0 and below 1, {'cost': c} with c above 0, or "
        "{'sensitivity': s} or {'specificity': s} with s above 0 and at most 1, "
        f"got {decision!r}."
    )
    number = decision
    if isinstance(decision, Mapping):
        if len(decision) != 1 or not set(decision) <= {"cost", "sensitivity", "specificity"}:
            raise ValueError(what)
        (number,) = decision.values()
    if isinstance(number, bool) or not isinstance(number, int | float | np.number):
        raise ValueError(what)
    top = np.inf if isinstance(decision, Mapping) and "cost" in decision else 1
    inside = 0 < number < top or (isinstance(decision, Mapping) and number == top)
    if not (inside and np.isfinite(number)):
        raise ValueError(what)


def _decision(decision: Any, scorecard: Scorecard, totals: NDArray[np.int64], data: LabelledRows):
    """The least total that predicts the event."""
    tried = np.arange(_top(scorecard) + 2)
    (rule, number), *_ = decision.items() if isinstance(decision, Mapping) else [("risk", decision)]
    if rule in ("risk", "cost"):
        # a missed event costs `number` times as much as a false positive
        level = number if rule == "risk" else 1 / (1 + number)
        above = scorecard.risk(tried)[:, 1] > level
        return int(tried[np.argmax(above)]) if above[:-1].any() else int(tried[-1])
    event = data.labels == 1
    own = event if rule == "sensitivity" else ~event
    whole = data.weights[own].sum()
    at_least = np.array([data.weights[own & (totals >= t)].sum() for t in tried]) / whole
    if rule == "sensitivity":
        return int(tried[np.flatnonzero(at_least >= number - 1e-9)[-1]])
    return int(tried[np.flatnonzero(1 - at_least >= number - 1e-9)[0]])


def _top(scorecard: Scorecard) -> int:
    """The largest total that can occur."""
    return sum(max(band.points[0] for band in variable.bands) for variable in scorecard.variables)


def risk_groups(scorecard: Scorecard, mean_risk: float) -> tuple[RiskGroup, ...]:
    """Low, medium and high risk, by odds below half and from twice the mean odds on."""
    totals = np.arange(_top(scorecard) + 1)
    odds = logit(np.clip(scorecard.risk(totals)[:, 1], 1e-12, 1 - 1e-12)) - logit(mean_risk)
    index = 1 - (odds < -np.log(GROUP_ODDS)) + (odds >= np.log(GROUP_ODDS) - 1e-12)
    names = ("low", "medium", "high")
    return tuple(RiskGroup(names[k], int(totals[np.argmax(index == k)])) for k in np.unique(index))


def described(scorecard: Scorecard, data: LabelledRows, provenance: Mapping[str, Any]) -> Scorecard:
    """The card with its risk table, training profile and risk groups."""
    totals = data.totals(scorecard)
    table = RiskTable.of(scorecard, totals, data.labels, data.weights)
    counts, n_classes = [], len(data.classes)
    for variable in scorecard.variables:
        key = variable.band_of(data.values[:, variable.feature]) * n_classes + data.labels
        size = len(variable.bands) * n_classes
        summed = np.bincount(key, data.weights, minlength=size).astype(np.float64)
        counts.append(summed.reshape(-1, n_classes))
    groups: tuple[RiskGroup, ...] = ()
    if scorecard.is_binary:
        risk = scorecard.risk(totals)[:, 1]
        mean = float(np.average(risk, weights=data.weights))
        groups = risk_groups(scorecard, float(np.clip(mean, 1e-9, 1 - 1e-9)))
    return replace(
        scorecard, risk_table=table, profile=counts, risk_groups=groups, provenance=provenance
    )


# ---- noise ----
def _choose_noise(estimator: Any, data: LabelledRows, fitting: Floats, seed: int) -> float:
    """The largest noise whose held-out log loss is within one standard error of the least."""
    moved = [c for c in data.space if c.kind in ("numeric", "integer") and c.low < c.high]
    counts = np.bincount(data.labels)
    if not moved or counts.min() < 2:
        return 0.0
    rng = np.random.default_rng(seed)
    kept = np.sort(rng.choice(len(data.labels), min(MOST_ROWS, len(data.labels)), replace=False))
    n_folds = min(FOLDS, int(counts.min()))
    lost: list[list[float]] = [[] for _ in TAUS]
    for fit, held in stratified_folds(data.labels[kept], n_folds, seed):
        part, own = (data.take(kept[rows]) for rows in (fit, held))
        for k, noise in enumerate(TAUS):
            fitted = _binary if len(data.classes) == 2 else _several
            card = fitted(estimator, part, fitting[kept[fit]], noise)
            lost[k].append(log_loss_of(card, own))
    return TAUS[last_within_error([-np.array(each) for each in lost])]


def log_loss_of(scorecard: Scorecard, data: LabelledRows) -> float:
    """Mean log loss of a card's risks."""
    risks = scorecard.risk(data.totals(scorecard))
    own = np.clip(risks[np.arange(len(data.labels)), data.labels], 1e-12, 1.0)
    return float(np.average(-np.log(own), weights=data.weights))


def empty_text(objective: str, noise: float, n_rarest: int) -> str:
    """What is said of a score without conditions, and what may be done."""
    advice = "add rows or other columns, or name columns to keep with forced="
    if objective != "log_loss":
        advice = "take objective='log_loss', which ranks rare events too"
    elif noise > 0:
        advice = "lower the noise"
    return (
        f"no condition was kept with objective={objective!r} and noise={noise:g}: the score is "
        "empty and always predicts the most frequent class, with its share as the risk. The rarest "
        f"class has {n_rarest:,} rows, and no column tells who is in it better than chance: "
        f"{advice}."
    )
