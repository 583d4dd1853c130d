"""Sheet: the totals and risks it lists are those that rows get."""

from dataclasses import replace

import numpy as np
import pytest

from steadytree._base.intervals import wilson_interval
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.risk_table import RiskGroup, RiskTable
from steadytree.models.scorecard import Scorecard
from steadytree.models.variable import category_conditions, number_conditions
from steadytree.reporting.svg.sheet import (
    MOST_LINES,
    RiskLine,
    Sheet,
    interval_of,
    possible_totals,
    risk_text,
)
from tests.models.scorecards import random_card, random_rows_of_card


def counted(card, n=300, seed=0):
    rng = np.random.default_rng(seed)
    totals = card.score(random_rows_of_card(rng, card, n))
    return totals, replace(card, risk_table=RiskTable.of(card, totals, rng.integers(0, 2, n)))


@pytest.mark.parametrize("seed", range(20))
def test_every_row_finds_its_total_and_risk(seed):
    card = random_card(np.random.default_rng(seed), n_conditions=6)
    columns = tuple(replace(column, missing=True) for column in card.space)
    card = replace(card, space=FeatureSpace(columns), slope=0.5, intercept=0.1)
    totals, card = counted(card, seed=seed)
    [(label, lines)] = Sheet.of(card).risks
    assert label == "yes"
    assert set(totals.tolist()) <= possible_totals(card)
    for total in np.unique(totals):
        [line] = [line for line in lines if line.low <= total <= line.high]
        if line.low == line.high:
            assert line.risk == risk_text(card.risk([total])[0, 1])
            [row] = [row for row in card.risk_table.rows if row.total == total]
            assert (line.n_rows, line.n_label) == (row.n_rows, row.n_label)
            both = [wilson_interval(n, row.n_rows) for n in (row.n_label, row.n_rows * row.risk)]
            lows, highs = zip(*both, strict=True)
            assert line.interval == (min(lows), max(highs))
            assert line.interval == interval_of(card, row)
    assert sum(line.n_rows for line in lines) == len(totals)


def long_card(groups=()):
    space = FeatureSpace.declare(bounds={"a": (0, 1), "b": (0, 1)}, missing=False)
    pairs = number_conditions(0, [0.2, 0.5, 0.8], [0, 7, 31, 150], 0)
    pairs += number_conditions(1, np.linspace(0, 1, 32)[1:-1].tolist(), list(range(31)), 0)
    conditions, points = zip(*pairs, strict=True)
    card = Scorecard(space, [0, 1], conditions, points, 0, 0.1, -3.0, decision=9)
    return counted(replace(card, risk_groups=groups))[1]


def test_many_totals_share_lines_but_not_over_the_end_of_a_risk_group():
    card = long_card([RiskGroup("low", 0), RiskGroup("high", 44)])
    sheet = Sheet.of(card)
    [(_, lines)] = sheet.risks
    assert len(possible_totals(card)) > MOST_LINES >= len(lines) - 1
    assert any(line.low < line.high for line in lines)
    for line in lines:
        assert line.group == (line.low >= 44) == (line.high >= 44)
        own = [row for row in card.risk_table.rows if line.low <= row.total <= line.high]
        assert line.n_label == sum(row.n_label for row in own)
    assert sheet.groups == ("low: up to 43", "high: 44 or more")


def test_the_rule_is_the_decision():
    assert Sheet.of(long_card()).rule == "9 or more: 1, else 0"
    assert Sheet.of(replace(long_card(), decision=None)).rule == "above 0: 1, else 0"
    top = max(possible_totals(long_card()))
    assert Sheet.of(replace(long_card(), decision=top)).rule == f"{top} or more: 1, else 0"
    assert Sheet.of(replace(long_card(), decision=top + 1)).rule == "every total: 0"
    assert Sheet.of(replace(long_card(), decision=0)).rule == "every total: 1"
    card = replace(long_card(), title="A title")
    assert Sheet.of(card).title == "A title"
    assert Sheet.of(card, "Another").title == "Another"
    groups = [RiskGroup("a", 0), RiskGroup("b", 3), RiskGroup("c", 4)]
    assert Sheet.of(replace(card, risk_groups=groups)).groups == (
        "a: up to 2",
        "b: 3",
        "c: 4 or more",
    )


def test_missing_values_are_listed_where_there_were_any():
    names = [text for text, _ in Sheet.of(long_card()).blocks[0].bands]
    assert names == ["< 0.2", "0.2 to < 0.5", "0.5 to < 0.8", "≥ 0.8"]
    space = FeatureSpace.declare(bounds={"a": (0, 1)}, missing=False)
    pairs = number_conditions(0, [0.5], [0, 1], 2)
    conditions, points = zip(*pairs, strict=True)
    card = Scorecard(space, [0, 1], conditions, points, 0)
    assert Sheet.of(card).blocks[0].bands[-1] == ("missing", (2,))


@pytest.mark.parametrize("points", [0, 2])
def test_unknown_categories_are_not_taken_for_any_other(points):
    space = FeatureSpace.declare(categories={"site": list("abcdefghijk")}, missing=False)
    found = category_conditions(0, [points] * 8 + [5] * 3, 0)
    conditions, given = zip(*found, strict=True)
    [block] = Sheet.of(Scorecard(space, [0, 1], conditions, given, 0)).blocks
    listed = dict(block.bands)
    assert listed["any other"] == (points,)
    assert ("missing or unknown" in listed) == (points != 0)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (0.0004, "< 0.1 %"), (0.004, "0.4 %"), (0.0994, "9.9 %"), (0.0996, "10 %")]
    + [(0.5, "50 %"), (0.9949, "99 %"), (0.9951, "> 99 %"), (0.9999, "> 99 %"), (1, "100 %")]
    + [(0.00099, "< 0.1 %"), (0.00101, "0.1 %")],
)
def test_risks_as_text(share, text):
    assert risk_text(share) == text


def test_intervals_follow_the_prevalence_of_the_risks():
    card = replace(long_card(), provenance={"prevalence": 0.01})
    rows = card.risk_table.rows
    share = sum(row.n_label for row in rows) / sum(row.n_rows for row in rows)
    ratio = 0.01 / 0.99 / (share / (1 - share))  # of the odds, by Bayes' rule
    for line in Sheet.of(card).risks[0][1]:
        if line.n_rows:
            before = [r / (r + ratio * (1 - r)) for r in line.risks]
            ends = [e for r in before for e in wilson_interval(line.n_rows * r, line.n_rows)]
            ends += wilson_interval(line.n_label, line.n_rows)
            ends = [e * ratio / (e * ratio + 1 - e) for e in ends]
            assert line.interval == pytest.approx((min(ends), max(ends)))
    assert Sheet.of(card).note.endswith("at a prevalence of 1.0 %")


def test_an_interval_is_around_the_risk_and_around_the_share():
    line = RiskLine(3, 3, (0.2, 0.2), n_rows=100, n_label=60)
    assert line.interval == (wilson_interval(20, 100)[0], wilson_interval(60, 100)[1])
    assert RiskLine(3, 3, (0.6, 0.6), 100, 60).interval == wilson_interval(60, 100)
    assert RiskLine(3, 3, (0.6, 0.6), 0, 0).interval is None
