"""A pool of risk scores that are nearly as good as the best."""

from collections import namedtuple

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import log_loss

from steadytree.riskscore.pool import NEAR_EQUAL, search_pool
from steadytree.riskscore.risk_score import RiskScoreClassifier


@pytest.fixture(scope="module")
def twins():
    """Two columns that tell nearly the same, and one that every scorecard needs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    X[:, 1] = X[:, 0] + 0.05 * rng.normal(size=2000)
    y = X[:, 0] + 1.5 * X[:, 2] + rng.logistic(size=2000) > 0
    return X, y, RiskScoreClassifier(max_variables=2, pool_size=5).fit(X, y)


def test_scorecards_of_the_pool_are_nearly_as_good_and_differ(twins):
    X, y, model = twins
    pool = model.pool_
    assert 2 <= len(pool) <= 5
    assert pool.scorecards[0] == model.card_
    assert len(set(pool.scorecards)) == len(pool)
    for scorecard, stated in zip(pool.scorecards, pool.log_loss, strict=True):
        assert stated == pytest.approx(log_loss(y, scorecard.predict_proba(X)[:, 1]))
        assert stated <= (1 + NEAR_EQUAL) * pool.log_loss[0]


def test_shared_variables_are_those_no_scorecard_can_do_without(twins):
    pool = twins[2].pool_
    assert pool.shared_variables() == ["x2"]
    shares = pool.variables()
    assert 0 < shares["x0"] < 1
    assert 0 < shares["x1"] < 1
    used = [{v.name for v in one.variables} for one in pool.scorecards]
    assert shares == {name: np.mean([name in one for one in used]) for name in shares}


def test_the_spread_of_a_persons_risk_is_over_all_scorecards(twins):
    X, _, model = twins
    risks = model.pool_.risks(X[:50])
    np.testing.assert_array_equal(risks[:, 0], model.predict_proba(X[:50])[:, 1])
    low, high = model.pool_.spread(X[:50]).T
    np.testing.assert_array_equal(low, risks.min(axis=1))
    np.testing.assert_array_equal(high, risks.max(axis=1))
    assert (high - low).max() > 0.01


def test_the_usual_pool_is_the_card_alone():
    X, y = load_breast_cancer(return_X_y=True)
    model = RiskScoreClassifier(max_variables=3).fit(X, y)
    assert model.pool_.scorecards == (model.card_,)
    with pytest.raises(ValueError, match="pool_size is for two classes, but y has 3"):
        RiskScoreClassifier(pool_size=4).fit(*load_iris(return_X_y=True))
    assert RiskScoreClassifier().fit(*load_iris(return_X_y=True)).pool_ is None


def test_what_was_left_out_stays_out():
    """Of twenty columns that tell the same, each card uses the first that is left."""
    card, variable, asked = namedtuple("Card", "variables"), namedtuple("Variable", "feature"), []

    def fit(excluded):
        asked.append(set(excluded))
        return card((variable(min(set(range(20)) - excluded)),))

    pool = search_pool(fit(frozenset()), fit, lambda one: 1.0, 4)
    assert asked[1:5] == [set(range(k)) for k in range(1, 5)]
    assert [one.variables[0].feature for one in pool.scorecards] == [0, 1, 2, 3]


def test_a_scorecard_may_lose_two_per_cent_and_as_many_fits_are_tried_as_are_worth_it():
    card, variable = namedtuple("Card", "variables"), namedtuple("Variable", "feature")
    first = card(tuple(variable(k) for k in range(30)))
    losses, fitted = {first: 0.5}, []

    def fit(excluded):
        (left_out,) = excluded
        other = card((variable(100 + left_out),))
        losses[other] = 0.5 * (1.0199 if left_out < 2 else 1.0201)
        fitted.append(left_out)
        return other

    pool = search_pool(first, fit, losses.get, 4)
    assert fitted == [*range(12)]  # four for each of the three that are wanted
    assert pool.log_loss == pytest.approx([0.5] + [0.5 * 1.0199] * 2)
