"""Scaling: the odds double every so many points, but for the rounding of the bands."""

import math
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest

from steadytree.models.scorecard import Scorecard
from steadytree.riskscore.scaling import Scaling, _rounded
from tests.metrics.test_drift import CARD, ROWS
from tests.models.scorecards import random_card, random_rows_of_card


@pytest.mark.parametrize(
    ("pdo", "base_score", "base_odds"), [(20, 600, 50), (50, 500, 1), (1, 0, 2)]
)
@pytest.mark.parametrize("offset", [0, -3])
def test_scores_are_those_of_the_odds(pdo, base_score, base_odds, offset):
    card = replace(CARD, offset=[offset], risk_table=None)
    scores = Scaling.of(card, pdo, base_score, base_odds).score(ROWS)
    risk = card.predict_proba(ROWS)[:, 1]
    exact = base_score + pdo * np.log2((1 - risk) / risk / base_odds)
    assert np.abs(scores - exact).max() <= 0.5 * (len(card.variables) + 1) + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_points_add_up_by_hand_and_never_rise_with_the_risk(seed):
    rng = np.random.default_rng(seed)
    card = replace(random_card(rng, n_conditions=6), slope=0.4, intercept=-1.0)
    rows = random_rows_of_card(rng, card, 40)
    scaling = Scaling.of(card)
    for variable, points in zip(card.variables, scaling.points, strict=True):
        order = np.argsort([band.points[0] for band in variable.bands])
        assert (np.diff(np.array(points)[order]) <= 0).all()
    values = card.encode(rows)
    for row in range(40):
        total = scaling.start
        for variable, points in zip(card.variables, scaling.points, strict=True):
            total += points[int(variable.band_of(values[row : row + 1, variable.feature])[0])]
        assert scaling.score(rows)[row] == total


def test_bad_input_is_refused():
    for name, value in (("pdo", 0), ("base_odds", -1), ("base_score", math.inf)):
        with pytest.raises(ValueError, match=name):
            Scaling.of(CARD, **{name: value})
    with pytest.raises(ValueError, match="two classes and gives risks"):
        Scaling.of(Scorecard(CARD.space, [0, 1], [], [], 0))


def test_halves_are_rounded_away_from_zero_on_either_side():
    for value in np.arange(-8, 8.25, 0.25).tolist():
        assert _rounded(value) == int(Decimal(value).quantize(Decimal(1), ROUND_HALF_UP))


def test_the_usual_scale_doubles_the_odds_every_20_points_from_600_at_50_to_1():
    usual, named = Scaling.of(CARD), Scaling.of(CARD, pdo=20, base_score=600, base_odds=50)
    assert (usual.start, usual.points) == (named.start, named.points)
    np.testing.assert_array_equal(usual.score(ROWS), named.score(ROWS))
