"""Scoring: reasons by brute force, and what is said of unusual values."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from steadytree.models.risk_table import RiskGroup
from steadytree.riskscore.scaling import Scaling
from steadytree.riskscore.scoring import ScoredRows, remarks_on
from tests.metrics.test_drift import CARD, ROWS
from tests.models.scorecards import random_card, random_rows_of_card


@pytest.mark.parametrize("seed", range(10))
def test_a_reason_is_what_the_best_band_of_a_variable_would_save(seed):
    rng = np.random.default_rng(seed)
    card = random_card(rng, n_conditions=6)
    rows = random_rows_of_card(rng, card, 30)
    values, totals = card.encode(rows), card.score(rows)
    for row, reasons in enumerate(card.reasons(rows)):
        saved = {}
        for variable in card.variables:
            tried = []
            for band in variable.bands[:-1]:  # another value of this variable alone
                changed = values[row].copy()
                low = band.low if np.isfinite(band.low) else band.high - 1
                changed[variable.feature] = band.categories[0] if band.categories else low
                if not (band.categories or np.isfinite(low)):
                    changed[variable.feature] = 0.0  # one band for all numbers
                held = card.holds_encoded(changed[None])
                tried.append(int((held @ card.points)[0, 0] + card.offset[0]))
            saved[variable.name] = int(totals[row]) - min(tried)
        expected = {name: points for name, points in saved.items() if points > 0}
        assert {text.partition(": ")[0]: points for text, points in reasons} == expected
        assert [points for _, points in reasons] == sorted(expected.values(), reverse=True)


def test_unusual_values_are_remarked():
    rows = pd.DataFrame(
        {
            "age": [50, np.nan, 120, 17, 30],
            "smoker": [0, 1, np.nan, 1, 0],
            "ward": ["a", "z", "b", None, "c"],
        }
    )
    outside = "age: outside the training range"
    assert remarks_on(CARD, rows) == [
        "",
        "age: missing; ward: unseen category",
        f"{outside}; smoker: missing",
        f"{outside}; ward: missing",
        "",
    ]


def test_columns_are_those_of_the_card():
    card = replace(CARD, risk_groups=[RiskGroup("low", 0), RiskGroup("high", 4)])
    scaling = Scaling.of(card)
    found = pd.DataFrame(ScoredRows.of(card, ROWS, scaling).columns(2))
    assert found.columns.tolist() == [
        *("score", "total", "risk yes", "prediction", "risk group", "reason 1", "reason 2"),
        "remarks",
    ]
    assert found["total"].tolist() == card.score(ROWS).tolist()
    assert found["score"].tolist() == scaling.score(ROWS).tolist()
    assert found["prediction"].tolist() == card.predict(ROWS).tolist()
    np.testing.assert_allclose(found["risk yes"], card.predict_proba(ROWS)[:, 1], 1e-5)
    assert (found["risk group"] == np.where(card.score(ROWS) >= 4, "high", "low")).all()
    text, points = card.reasons(ROWS)[0][0]
    assert found["reason 1"][0] == f"{text} (+{points})"


def test_above_two_classes_there_are_totals_and_risks_of_each():
    rng = np.random.default_rng(0)
    card = replace(random_card(rng, n_classes=3), slope=0.7, intercept=0.1)
    found = ScoredRows.of(card, random_rows_of_card(rng, card, 5)).columns()
    classes = card.classes.tolist()
    heads = [f"total {c}" for c in classes] + [f"risk {c}" for c in classes]
    assert list(found) == [*heads, "prediction", "remarks"]
