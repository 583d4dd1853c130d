"""RiskTable: counts by total, and what follows from them."""

import numpy as np
import pytest

from steadytree._base.intervals import wilson_interval
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.condition import Condition
from steadytree.models.risk_table import RiskTable
from steadytree.models.scorecard import Scorecard

CARD = Scorecard(
    FeatureSpace.declare(bounds={"age": (18, 99)}),
    ["no", "yes"],
    [Condition(0, "at_least", 40), Condition(0, "at_least", 60)],
    [1, 2],
    0,
    0.9,
    -1.5,
    decision=2,
)


def test_each_total_has_the_rows_with_it():
    rng = np.random.default_rng(0)
    X = rng.integers(18, 99, (200, 1))
    labels, weights = rng.integers(0, 2, 200), rng.integers(1, 4, 200).astype(float)
    totals = CARD.score(X)
    table = RiskTable.of(CARD, totals, labels, weights)
    assert [row.total for row in table.rows] == [0, 1, 3]
    for row in table.rows:
        own = totals == row.total
        assert row.n_rows == weights[own].sum()
        assert row.n_label == weights[own & (labels == 1)].sum()
        assert row.interval == wilson_interval(row.n_label, row.n_rows)
        assert row.risk == pytest.approx(1 / (1 + np.exp(1.5 - 0.9 * row.total)))
    assert set(table.to_dict()) >= {"label", "total", "n_rows", "n_label", "share", "interval"}
