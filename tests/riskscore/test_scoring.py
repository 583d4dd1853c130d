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


def slow_remark(card, row):
    """What is unusual about one row, given as texts and numbers by the name of the column."""
    listed = []
    for variable in card.variables:
        column, value = variable.column, row[variable.column.name]
        if value is None or value != value:
            listed.append(f"{column.name}: missing")
        elif column.is_categorical and value not in column.categories:
            listed.append(f"{column.name}: unseen category")
        elif not column.is_categorical and not column.low <= value <= column.high:
            listed.append(f"{column.name}: outside the training range")
    return "; ".join(listed)


@pytest.mark.parametrize("seed", range(12))
def test_columns_row_by_row(seed):
    """Frames in any order of columns and arrays; ends of the range; groups from their least on."""
    rng = np.random.default_rng(seed)
    card = random_card(rng, n_conditions=6, n_classes=2 + seed % 2)
    rows = random_rows_of_card(rng, card, 25)
    for column in card.space:
        if not column.is_categorical:
            ends = [column.low, column.high, column.low - 1, column.high + 1]
            rows.loc[:3, column.name] = ends if column.kind != "binary" else [0, 1, 0, 1]
    names = [column.name for column in card.space]
    total = card.score(rows)
    if card.is_binary:
        least = sorted({int(t) for t in rng.choice(total, 3)})
        card = replace(card, risk_groups=[RiskGroup(f"g{t}", t) for t in least])
    expected = [slow_remark(card, dict(zip(names, row, strict=True))) for row in rows[names].values]
    for given in (rows, rows[names[::-1]], rows[names].to_numpy(dtype=object)):
        found = ScoredRows.of(card, given).columns()
        assert found["remarks"] == expected == remarks_on(card, given)
        heads = ["total"] if card.is_binary else [f"total {name}" for name in card.classes]
        assert [found[head] for head in heads] == total.reshape(25, -1).T.tolist()
        assert found["prediction"] == card.predict(rows).tolist()
        assert "score" not in found
        risks = [head for head in found if head.startswith("risk ") and head != "risk group"]
        shown = card.classes.tolist()[1:] if card.is_binary else card.classes.tolist()
        assert risks == ([f"risk {name}" for name in shown] if card.gives_risks else [])
        for head in risks:
            k = card.classes.tolist().index(head.removeprefix("risk "))
            rounded = [float(f"{risk:.6g}") for risk in card.predict_proba(rows)[:, k]]
            assert found[head] == rounded
        if card.is_binary:
            below = [[t for t in least[1:] if t <= own] for own in total]
            assert found["risk group"] == [f"g{[least[0], *each][-1]}" for each in below]
            for k in range(3):
                texts = [each[k : k + 1] for each in card.reasons(rows)]
                listed = [f"{t[0][0]} ({t[0][1]:+d})" if t else "" for t in texts]
                assert found[f"reason {k + 1}"] == listed
        assert "reason 4" not in found
        assert ("reason 1" in found) == card.is_binary
