"""Groups: rates of each group equal those of its rows alone."""

import numpy as np
import pandas as pd
import pytest

from steadytree import StableTreeClassifier, by_group

RNG = np.random.default_rng(1)
X = RNG.uniform(0, 1, (300, 2)).round(2)
Y = np.where(RNG.random(300) < X[:, 0], 1, 0)
MODEL = StableTreeClassifier(2, 0, random_state=0).fit(X, Y)
GROUPS = RNG.choice(["a", "b", "c"], 300, p=[0.6, 0.35, 0.05])


def test_every_rate_by_hand():
    found = by_group(MODEL, X, Y, GROUPS, "ward")
    predicted = MODEL.predict(X)
    assert [one.name for one in found.groups] == ["a", "b", "c"]
    for one in found.groups:
        rows = one.name == GROUPS
        assert one.n_rows == rows.sum()
        assert one.accuracy == pytest.approx((predicted == Y)[rows].mean())
        assert one.answered == pytest.approx((predicted[rows] == 1).mean())
        assert one.true_share == pytest.approx((Y[rows] == 1).mean())
        assert one.found == pytest.approx((predicted[rows & (Y == 1)] == 1).mean())
        assert one.false_alarm == pytest.approx((predicted[rows & (Y == 0)] == 1).mean())
    large = [one.accuracy for one in found.groups if one.n_rows >= 30]
    assert found.gap == pytest.approx(max(large) - min(large))
    assert found.worst.accuracy == min(large)
    assert found.to_dict()["groups"][2]["is_small"]


def test_rates_without_rows_are_none():
    found = by_group(MODEL, X[:2], [1, 1], ["a", "a"])
    assert found.groups[0].false_alarm is None
    assert found.groups[0].found is not None


def test_names_of_groups():
    given = pd.DataFrame({"g": [1.0, None, 2.0] * 100})
    found = by_group(MODEL, X, Y, given)
    assert sorted(one.name for one in found.groups) == ["(missing)", "1", "2"]


def test_above_two_classes_there_are_no_rates_of_the_second():
    y = np.digitize(X[:, 0], [0.3, 0.6])
    model = StableTreeClassifier(2, 0, random_state=0).fit(X, y)
    found = by_group(model, X, y, GROUPS)
    assert found.label == ""
    assert all(one.answered is None for one in found.groups)


def test_bad_groups_are_refused():
    with pytest.raises(ValueError, match="groups must name one a row, 300, got 2"):
        by_group(MODEL, X, Y, ["a", "b"])
    with pytest.raises(ValueError, match="room for 50 groups"):
        by_group(MODEL, X, Y, np.arange(300), "id")
    with pytest.raises(ValueError, match="groups must be one column"):
        by_group(MODEL, X, Y, pd.DataFrame({"g": GROUPS, "h": GROUPS}))
