"""Trees and cards fitted again: shares are those of counting by hand."""

import numpy as np
import pandas as pd
import pytest

import steadytree as st
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.condition import Condition
from steadytree.models.scorecard import Scorecard
from steadytree.stability.refits import Refits, ScorecardRefits


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    X["d"] = rng.choice(["u", "v"], 120)
    y = (X["a"] + (X["d"] == "u") + rng.normal(size=120) / 2 > 0.5).to_numpy()
    return X, y


@pytest.fixture(scope="module")
def found(rows):
    learner = st.RiskScoreClassifier("logistic", noise=0.02, max_conditions=4, random_state=0)
    return st.refits(learner, *rows, repeats=5, random_state=3)


def test_cards_are_those_of_fitting_by_hand(rows, found):
    X, y = rows
    rng = np.random.default_rng(3)
    for card in found.scorecards:
        kept = np.sort(rng.choice(120, 108, replace=False))
        again = st.RiskScoreClassifier("logistic", noise=0.02, max_conditions=4, random_state=0)
        assert again.fit(X.iloc[kept], y[kept]).card_ == card


def test_readings_and_columns_are_counted(rows, found):
    X, _ = rows
    own = found.whole.predict(X)
    same = [np.mean(card.predict(X) == own) for card in found.scorecards]
    np.testing.assert_allclose(found.agreement, same)
    values = {reading.name: reading.value for reading in found.measurements()}
    assert values["same answers"] == pytest.approx(100 * np.mean(same))
    assert values["least same answers"] == pytest.approx(100 * np.min(same))
    asked = [{X.columns[c.feature] for c in card.conditions} for card in found.scorecards]
    first = {X.columns[c.feature] for c in found.whole.conditions}
    shared = [len(one & first) / len(first) for one in asked]
    assert values["same columns"] == pytest.approx(100 * np.mean(shared))
    for name, share in found.columns().items():
        assert share == pytest.approx(np.mean([name in one for one in asked]))
    assert set(list(found.columns())[: len(first)]) == first


def test_columns_of_the_card_come_first_and_the_most_frequent_before_others():
    space = FeatureSpace.declare(bounds=dict.fromkeys("abcd", (0.0, 1.0)))

    def card(*asked):
        listed = [Condition("abcd".index(name), "at_least", 0.5) for name in asked]
        return Scorecard(space, [0, 1], listed, [1] * len(listed), 0)

    scorecards = card("b", "d"), card("b", "d", "c"), card("a", "b", "d")
    found = ScorecardRefits(card("a", "b"), scorecards, np.ones(3))
    assert list(found.columns().items()) == [("b", 1.0), ("a", 1 / 3), ("d", 1.0), ("c", 1 / 3)]


def test_cut_points_are_drawn(found):
    thresholds = [
        c.threshold for card in found.scorecards for c in card.conditions if c.feature == 0
    ]
    np.testing.assert_array_equal(found.thresholds("a"), np.sort(thresholds))
    assert "% of fits" in st.plot(found).svg


def test_an_empty_card_keeps_all_its_columns():
    X, y = np.zeros((40, 1)), np.arange(40) % 2
    learner = st.RiskScoreClassifier("majority", gamma=0.1, n_rounds=10, random_state=0)
    with pytest.warns(UserWarning, match="no condition was kept"):
        found = st.refits(learner, X, y, repeats=2)
    assert [reading.value for reading in found.measurements()] == [100, 100, 100]
    assert found.columns() == {}


def test_trees_fitted_again_are_counted(rows):
    X, y = rows
    learner = st.StableTreeClassifier(2, 0, n_thresholds=4, random_state=0)
    found = st.refits(learner, X, y, repeats=8, kept=0.95, random_state=1)
    rng, whole = np.random.default_rng(1), st.StableTreeClassifier(2, 0, 4, random_state=0)
    own, distances, same = whole.fit(X, y).predict(X), [], []
    for _ in range(8):
        kept = np.sort(rng.choice(120, 114, replace=False))
        again = st.StableTreeClassifier(2, 0, 4, random_state=0).fit(X.iloc[kept], y[kept])
        distances.append(float(st.tree_distance(whole, again, space=X)))
        same.append(np.mean(again.predict(X) == own))
    assert 0 < np.count_nonzero(distances) < 8
    np.testing.assert_allclose(found.distances, distances)
    distance, answers, trees = found.measurements()
    assert distance.value == pytest.approx(np.mean(distances))
    reach = 2.364624 * np.std(distances, ddof=1) / 8**0.5  # Student's, 7 degrees of freedom
    expected = max(np.mean(distances) - reach, 0.0), np.mean(distances) + reach
    assert distance.interval == pytest.approx(expected, rel=1e-6)
    assert answers.value == pytest.approx(100 * np.mean(same))
    reach = 2.364624 * 100 * np.std(same, ddof=1) / 8**0.5
    expected = 100 * np.mean(same) - reach, min(100 * np.mean(same) + reach, 100.0)
    assert answers.interval == pytest.approx(expected, rel=1e-6)
    assert trees.value == pytest.approx(100 * distances.count(0) / 8)


def test_a_tree_that_is_known_is_not_fitted_again(rows):
    learner = st.StableTreeClassifier(2, 0, random_state=0)
    known = st.StableTreeClassifier(2, 0, random_state=0).fit(*rows).tree_
    found = st.refits(learner, *rows, repeats=3, random_state=1, whole=known)
    again = st.refits(learner, *rows, repeats=3, random_state=1)
    assert found.whole is known
    assert found.distances.tolist() == again.distances.tolist()
    assert found.agreement.tolist() == again.agreement.tolist()


def test_the_interval_of_a_share_ends_at_0_and_100(rows):
    tree = st.StableTreeClassifier(1, 0, random_state=0).fit(*rows).tree_
    found = Refits(tree, (tree,) * 3, np.zeros(3), np.array([1.0, 1.0, 0.1]))
    assert found.measurements()[1].interval == (0.0, 100.0)


def test_the_interval_of_a_distance_is_not_below_0(rows):
    tree = st.StableTreeClassifier(1, 0, random_state=0).fit(*rows).tree_
    found = Refits(tree, (tree,) * 5, np.array([0.0, 0, 0, 0, 1]), np.ones(5))
    low, high = found.measurements()[0].interval
    # Student's: 0.2 -+ 2.776 * 0.447 / sqrt(5)
    assert low == 0.0
    assert high == pytest.approx(0.2 + 2.776445 * 0.4472136 / 5**0.5)


def test_a_known_tree_must_be_a_tree():
    with pytest.raises(ValueError, match="whole must be the Tree fitted to all rows, got int"):
        st.refits(st.StableTreeClassifier(), [[0.0], [1.0]], [0, 1], whole=3)
