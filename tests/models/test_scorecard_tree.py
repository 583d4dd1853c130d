"""A scorecard as a tree; tests/models/test_scorecard.py compares the two on random cards."""

import numpy as np
import pytest

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.condition import Condition
from steadytree.models.scorecard import Scorecard
from steadytree.models.scorecard_tree import MOST_CONDITIONS, scorecard_to_tree

SPACE = FeatureSpace.declare(bounds={"a": (0, 20)})


def card(n_conditions):
    conditions = [Condition(0, "at_least", float(k)) for k in range(1, n_conditions + 1)]
    return Scorecard(SPACE, [0, 1], conditions, [1] * n_conditions, -2, 0.5, 0.1)


def test_a_card_without_conditions_is_one_leaf():
    assert scorecard_to_tree(Scorecard(SPACE, [0, 1], [], [], 1)).n_leaves == 1


def test_risks_at_and_just_below_each_threshold():
    given = card(4)
    at = np.array([[f(k)] for k in range(6) for f in (float, lambda k: np.nextafter(k, -1))])
    found = scorecard_to_tree(given).predict_proba(at)
    points = np.array([sum(x >= k for k in range(1, 5)) for (x,) in at]) - 2
    by_hand = 1 / (1 + np.exp(-(0.5 * points + 0.1)))
    by_hand = np.where(
        points > 0, np.maximum(by_hand, np.nextafter(0.5, 1)), np.minimum(by_hand, 0.5)
    )
    np.testing.assert_array_equal(found[:, 1], by_hand)


def test_a_card_of_too_many_conditions_is_refused():
    assert scorecard_to_tree(card(MOST_CONDITIONS)).n_leaves == 2**MOST_CONDITIONS
    with pytest.raises(ValueError, match="more than 8 levels is too large"):
        scorecard_to_tree(card(MOST_CONDITIONS + 1))
