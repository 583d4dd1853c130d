"""RiskScoreClassifier: what it guarantees holds, and what it is asked for it does."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.condition import Condition
from steadytree.riskscore.boosting import (
    Boosting,
    Points,
    boost,
    divisions_of,
    is_above,
    last_within_error,
    majority_shares,
    noisy_accuracy,
    ranking_auc,
    smallest_points,
)
from steadytree.riskscore.candidates import DerivedFeatures, LabelledRows, TrainingRows, ranks
from steadytree.riskscore.logistic import LogisticFit, round_points
from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import Perturbation


def quick(**changes):
    given = {"noise": 0.05, "gamma": 0.1, "n_rounds": 10, "random_state": 0}
    return RiskScoreClassifier(**{"objective": "majority", **given, **changes})


def mixed_data(seed, n=120):
    """Numbers, whole numbers, 0/1, categories; missing values among them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.integers(0, 20, n).astype(float),
            "c": rng.integers(0, 2, n).astype(float),
            "d": rng.choice(["u", "v", "w"], n).astype(object),
            "e": rng.choice(["p", "q"], n).astype(object),
        }
    )
    frame.loc[rng.random(n) < 0.15, "a"] = np.nan
    frame.loc[rng.random(n) < 0.15, "d"] = None
    signal = frame["a"].fillna(1.5) + 0.1 * frame["b"] + (frame["d"] == "u") + frame["c"]
    return frame, (signal + rng.normal(size=n) > 2.2).to_numpy().astype(int)


@pytest.mark.parametrize("values", [[], [2.0], [0.0, 1.0], [-1.5, 0.0, -0.0], [0.1, 0.2, 0.3]])
def test_ranks_are_those_of_sorting(values):
    x = np.random.default_rng(0).choice(values, 20) if values else np.empty(0)
    known, index = ranks(x)
    wanted, indices = np.unique(x, return_inverse=True)
    np.testing.assert_array_equal(known, wanted)
    np.testing.assert_array_equal(index, indices)


@pytest.mark.parametrize("loss", ["majority", "logistic"])
@pytest.mark.parametrize("seed", range(4))
def test_without_noise_what_is_proven_is_the_accuracy(loss, seed):
    X, y = mixed_data(seed)
    model = quick(objective=loss, noise=0.0, max_conditions=None).fit(X, y)
    assert model.certified_accuracy_ == pytest.approx(model.score(X, y))


def test_no_condition_stands_twice_where_two_categories_ask_the_same():
    """With missing values, "p" and "not q" are one condition that two questions lead to."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"e": rng.choice(["p", "q"], 200).astype(object)})
    y = np.where(rng.random(200) < 0.8, X["e"] == "p", X["e"] == "q").astype(int)
    X.loc[rng.random(200) < 0.2, "e"] = None
    scorecard = quick(objective="logistic", noise=0.0).fit(X, y).card_
    assert scorecard.n_conditions > 1
    assert len(set(scorecard.conditions)) == scorecard.n_conditions


def test_more_forced_columns_than_usual_rounds_are_all_asked():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 45)), columns=[f"c{j}" for j in range(45)])
    model = RiskScoreClassifier(
        noise=0.0, gamma=0.1, max_conditions=None, forced=list(X), random_state=0
    )
    scorecard = model.fit(X, (X["c0"] > 0).to_numpy()).card_
    assert {condition.feature for condition in scorecard.conditions} == set(range(45))


@pytest.mark.parametrize("loss", ["majority", "logistic"])
@pytest.mark.parametrize("seed", range(8))
def test_certified_accuracy_is_a_lower_bound_on_astuteness(loss, seed):
    frame, y = mixed_data(seed)
    if seed % 2:
        y = y + 2 * (frame["b"] > 14).to_numpy()  # four classes
    tau = [0.0, 0.03, 0.1, 0.2][seed % 4]
    model = quick(objective=loss, noise=tau).fit(frame, y)
    ranges = {name: float(np.ptp(frame[name].dropna())) * tau for name in "abc"}
    noise = Perturbation(radius={**ranges, "d": 0, "e": 0}, whole=[])
    proven = certify(model, frame, y, noise)
    assert proven.worst_case_accuracy >= model.certified_accuracy_ - 1e-12
    assert model.certified_accuracy_ <= model.score(frame, y) + 1e-12
    if tau == 0:
        assert model.certified_accuracy_ == pytest.approx(model.score(frame, y))


def test_weights_count_as_repeated_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 2, 80)
    weights = rng.integers(0, 4, 80)
    for loss in ("majority", "logistic"):
        weighted = quick(objective=loss, max_conditions=4).fit(X, y, weights).card_
        repeated = quick(objective=loss, max_conditions=4).fit(
            np.repeat(X, weights, 0), np.repeat(y, weights)
        )
        assert weighted.conditions == repeated.card_.conditions
        np.testing.assert_array_equal(weighted.points, repeated.card_.points)


def test_monotone_columns_never_turn_the_wrong_way():
    rng = np.random.default_rng(1)
    X, y = make_classification(400, 5, n_informative=4, n_redundant=1, random_state=0)
    for direction, sign in (("up", 1), ("down", -1)):
        for loss in ("majority", "logistic"):
            model = quick(objective=loss, monotone={"x1": direction}).fit(X, y)
            moved = X.copy()
            moved[:, 1] += sign * rng.random(len(X))
            assert (model.total(moved) >= model.total(X)).all()


@pytest.mark.parametrize("loss", ["majority", "logistic"])
def test_limits_on_the_card_are_kept(loss):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = quick(
        objective=loss,
        max_conditions=4,
        max_points=3,
        forced=["mean smoothness"],
        forbidden=["worst area", "worst perimeter"],
    ).fit(X, y)
    names = [model.card_.space[c.feature].name for c in model.card_.conditions]
    assert model.card_.n_conditions <= 4
    assert model.card_.points.max() <= 3
    assert not {"worst area", "worst perimeter"} & set(names)
    assert "mean smoothness" in names
    assert model.score(X, y) > 0.88


@pytest.mark.parametrize("loss", ["majority", "logistic"])
def test_a_forced_column_of_no_use_is_on_the_card_and_costs_no_answer(loss):
    rng = np.random.default_rng(0)
    X = rng.random((200, 3))
    y = (X[:, 0] > 0.6).astype(int)
    X[:, 2] = 1 - y + 0.0  # against the only direction that it may be asked in
    model = quick(objective=loss, noise=0.0, forced=["x2"], monotone={"x2": "up"}).fit(X, y)
    assert "x2" in {model.card_.space[c.feature].name for c in model.card_.conditions}
    assert model.score(X, y) > 0.95
    alone = quick(objective=loss, forced=["x2"], forbidden=["x0", "x1"], monotone={"x2": "up"})
    assert alone.fit(X, y).score(X, y) == pytest.approx(max(y.mean(), 1 - y.mean()))


@pytest.mark.parametrize("loss", ["majority", "logistic"])
def test_a_forced_column_with_one_value_is_refused_not_left_out(loss):
    X, y = np.random.default_rng(0).random((40, 3)), np.arange(40) % 2
    X[:, 0] += y
    X[:, 2] = 7.0
    with pytest.raises(ValueError, match="forced names 'x2', which holds one value only"):
        quick(objective=loss, forced=["x2"]).fit(X, y)


def test_a_forced_column_that_folds_cannot_ask_does_not_end_their_votes():
    """One row alone has another value, so four of five folds see a constant."""
    X, y = np.random.default_rng(0).random((40, 2)), np.arange(40) % 2
    X[:, 0] += y
    X[:, 1] = np.arange(40) == 3
    data = LabelledRows(FeatureSpace.observe(X), np.arange(2), X, y, np.ones(40))
    features = DerivedFeatures.of(RiskScoreClassifier(), data)
    rows = TrainingRows(features, 2 * y - 1, np.ones(40)).take(np.arange(40) != 3)
    how = Boosting(rounds=10, gamma=0.1, tau=0.0, most=5, forced=(1,))
    found = boost(rows, how)
    assert noisy_accuracy(found, rows, 0.0) == 1.0


def test_more_forced_columns_than_usual_rounds_are_all_on_the_card():
    X = np.random.default_rng(0).random((60, 12))
    names = [f"x{j}" for j in range(12)]
    model = quick(forced=np.array(names), max_conditions=None, n_rounds="cv").fit(X, X[:, 0] > 0.5)
    assert {condition.feature for condition in model.card_.conditions} == set(range(12))


def test_boosting_weights_are_the_chance_to_decide():
    """Against the definition: binomial probabilities that the margin ends at zero or one."""
    from math import comb

    shares = majority_shares(5, 0.1) - 1e-6
    for turn in range(5):
        left = 4 - turn
        for margin in range(-turn, turn + 1):
            k = (left - margin + 1) // 2
            expected = comb(left, k) * 0.6**k * 0.4 ** (left - k) / 2 if 0 <= k <= left else 0
            assert shares[turn, margin + 5] == pytest.approx(expected)


def test_the_published_algorithm_gives_points_for_large_values_only():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    scorecard = RiskScoreClassifier.as_published().fit(X, 1 - y).card_
    assert {condition.sort for condition in scorecard.conditions} == {"at_least"}
    assert scorecard.offset[0] == -(scorecard.points.sum() // 2)


def test_what_the_published_algorithm_certifies_holds_with_missing_values():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = rng.random((30, 2)).round(1), np.arange(30) % 2
        X[:, 0] = np.where(rng.random(30) < 0.2, np.nan, X[:, 0] + 0.3 * y)
        model = RiskScoreClassifier.as_published(noise=0.0).fit(X, y)
        assert model.certified_accuracy_ == pytest.approx(model.score(X, y))


def test_the_published_algorithm_is_for_two_classes():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="takes two classes, but y has 3"):
        RiskScoreClassifier.as_published().fit(X, y)


def test_risk_table_counts_all_rows():
    X, y = load_breast_cancer(return_X_y=True)
    model = quick().fit(X, y)
    table = model.risk_table_.to_dict()
    assert sum(table["n_rows"]) == len(y)
    assert sum(table["n_label"]) == y.sum()
    assert all(
        low <= share <= high
        for share, (low, high) in zip(table["share"], table["interval"], strict=True)
    )
    assert np.diff(table["risk"]).min() >= 0


def test_each_of_several_classes_has_its_points():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = quick(max_conditions=3).fit(X, y)
    assert model.card_.points.shape[1] == 3
    assert model.score(X, y) > 0.9
    assert (model.to_sklearn().predict(X) == model.predict(X)).mean() > 0.99


def test_data_without_any_useful_condition_give_an_empty_card_that_says_so():
    X, y = np.ones((30, 2)), np.repeat([0, 1], [20, 10])
    for loss in ("log_loss", "majority", "logistic"):
        with pytest.warns(UserWarning, match="no condition was kept"):
            model = quick(objective=loss).fit(X, y)
        assert model.card_.n_conditions == 0
        assert (model.predict(X) == 0).all()
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / 3, atol=1e-6)


def rare_outcome(n, share, seed):
    """Rows of which so few are positive, by a logistic model of three of eight columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    level = X[:, 0] + 0.8 * X[:, 1] - 0.6 * X[:, 2] + rng.logistic(size=n)
    return X, (level > np.quantile(level, 1 - share)).astype(int)


def roc_area(model, X, y):
    return roc_auc_score(y, model.predict_proba(X)[:, 1])


@pytest.mark.parametrize("share", [0.1, 0.02, 0.01])
def test_a_default_card_ranks_a_rare_outcome_where_logistic_regression_does(share):
    X, y = rare_outcome(8_000, share, 1)
    fit, held = slice(None, 4_000), slice(4_000, None)
    model = RiskScoreClassifier(random_state=0).fit(X[fit], y[fit])
    regression = LogisticRegression().fit(X[fit], y[fit])
    assert model.card_.n_conditions > 0
    gained, possible = (roc_area(one, X[held], y[held]) - 0.5 for one in (model, regression))
    assert possible > 0.2
    assert gained > 0.6 * possible


def test_votes_that_are_asked_for_stay_votes():
    X, y = rare_outcome(2_000, 0.02, 3)
    with pytest.warns(UserWarning, match="objective='majority'.*take objective='log_loss'"):
        model = quick(objective="majority").fit(X, y)
    assert model.card_.n_conditions == 0
    RiskScoreClassifier.as_published().fit(X, y)


def test_shares_of_folds_are_above_chance_by_standard_errors():
    shares = np.array([0.6, 0.7, 0.8])  # mean 0.7, standard error 0.1 / sqrt(3)
    just = 0.2 * np.sqrt(3) / 0.1
    assert is_above(shares, 0.5, just - 0.01)
    assert not is_above(shares, 0.5, just + 0.01)
    assert not is_above(shares, shares, 1)
    assert not is_above(np.full(3, 0.1 + 0.2), 0.3, 1)  # above by rounding alone
    assert is_above(np.full(3, 0.9), 0.5, 2)


def test_pure_noise_seldom_makes_a_card():
    """Chance seldom gains more than the price of a search."""
    taken = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(300, 4)), np.arange(300) < 30
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            taken += RiskScoreClassifier().fit(X, y).card_.n_conditions > 0
    assert taken <= 3


def test_ranks_of_held_out_rows_are_the_area_under_the_roc_curve():
    space = FeatureSpace.declare(bounds={"a": (0.0, 3.0)})
    X, labels = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1, 1, -1, 1])
    data = LabelledRows(space, np.arange(2), X, labels > 0, np.ones(4))
    rows = TrainingRows(DerivedFeatures.of(RiskScoreClassifier(), data), labels, data.weights)
    conditions = [Condition(0, "at_least", float(k)) for k in (1, 2, 3)]
    graded = Points(conditions, np.array([1, 1, 1]), -1, np.zeros(4, np.int64))
    assert ranking_auc(graded, rows) == 0.75  # three of four pairs in order
    assert ranking_auc(Points([], np.zeros(0, np.int64), 0, np.zeros(4, np.int64)), rows) == 0.5


@pytest.mark.parametrize("loss", ["majority", "logistic"])
def test_an_empty_card_of_several_classes_gives_their_shares(loss):
    X, y = np.ones((20, 2)), np.repeat(["a", "b", "c"], [6, 10, 4])
    with pytest.warns(UserWarning, match="no condition was kept"):
        model = quick(objective=loss).fit(X, y)
    assert (model.predict(X) == "b").all()
    assert model.certified_accuracy_ == 0.5
    np.testing.assert_allclose(model.predict_proba(X)[0], [0.3, 0.5, 0.2], atol=5e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"monotone": {"z": "up"}}, "monotone names 'z'"),
        ({"monotone": {"x0": "sideways"}}, "must be 'up', 'down' or 'free'"),
        ({"forced": ["z"]}, "forced names 'z'"),
        ({"forced": ["x0"], "forbidden": ["x0"]}, "both forced and forbidden"),
        ({"forced": "x0"}, "forced must be a list of names"),
        ({"objective": "hinge"}, "objective must be one of"),
        ({"directions": "down"}, "directions must be one of"),
        ({"noise": -0.1}, "noise must be '1se' or a number from 0 to 1, got -0.1"),
        ({"noise": "2se"}, "noise must be '1se' or a number from 0 to 1, got '2se'"),
        ({"noise": float("nan")}, "noise must be '1se' or a number from 0 to 1, got nan"),
        ({"gamma": "best"}, "gamma must be 'cv' or a number"),
        ({"gamma": 0.5}, "gamma must be 'cv' or a number above 0 and below 0.5, got 0.5"),
        ({"n_rounds": "all"}, "n_rounds must be 'cv' or a whole number"),
        ({"monotone": ["x0"]}, "monotone must map names to 'up', 'down' or 'free', got a list"),
        (
            {"forced": ["x0"], "directions": "up", "monotone": {"x0": "down"}},
            "'x0' is forced, but",
        ),
        (
            {"directions": "up", "monotone": {"x0": "down"}},
            "directions='up' gives points for large",
        ),
        ({"forced": 5}, "forced must be a list of names, got 5"),
        ({"objective": "published"}, "needs directions='up'"),
        ({"loss": "logistic"}, "loss was removed: use objective"),
        ({"tau": 0.1}, "tau was removed: use noise"),
        ({"forced": ["x0", "x1"], "n_rounds": 1}, "more than n_rounds=1 allows"),
        ({"max_conditions": 0}, "max_conditions must be None or 'auto' or a whole number"),
        ({"max_conditions": 1, "forced": ["x0", "x1"]}, "more than max_conditions=1"),
    ],
)
def test_bad_parameters_are_one_clear_line(changes, message):
    X, y = np.random.default_rng(0).random((20, 2)), np.arange(20) % 2
    with pytest.raises(ValueError, match=message):
        quick(**changes).fit(X, y)


@pytest.mark.parametrize("loss", ["majority", "logistic"])
def test_a_column_too_wide_for_numbers_is_named(loss):
    y = np.arange(10) % 2
    with pytest.raises(ValueError, match=r"column 'x0' reaches from .*, too far for any number"):
        quick(objective=loss).fit(np.where(y == 1, 1.7e308, -1.7e308)[:, None], y)
    with pytest.raises(ValueError, match=r"column 'x0' ranges from .*, too far for noise"):
        quick(objective=loss).fit(np.where(y == 1, 1.7e308, 0.0)[:, None], y)


def test_an_almost_flat_curve_starts_near_the_points():
    """Two forced conditions that tell next to nothing, which made an offset of -5 * 10^16."""
    first = np.array([1, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0])
    second = np.array([0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1])
    labels = np.array([-1, -1, 1, -1, 1, 1, 1, -1, -1, -1, -1, 1, -1, -1, -1, -1, -1])
    asked = [Condition(0, "at_least", 1.0), Condition(1, "at_least", 1.0)]
    worst = np.stack([first, second], axis=1).astype(float)
    fit = LogisticFit(
        asked, worst, np.array([0.03170965877081112, 0.0]), -0.894, np.array([True, True])
    )
    found = round_points(fit, labels, np.ones(17), 5)
    assert abs(found.offset) <= 10 * found.points.sum()
    assert (found.worst_totals <= 0).all()  # the most frequent class, as the curve says


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class only, '1'"):
        quick().fit([[0.0], [1.0]], [1, 1])


def test_monotone_of_several_classes_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="3 classes"):
        quick(monotone={"x0": "up"}).fit(X, y)


def test_noise_is_the_largest_before_accuracy_falls_by_more_than_its_error():
    hard = np.array([0.7, 0.8, 0.9])  # held-out rows that are hard for one size are so for all
    differ = np.array([-0.02, 0.0, 0.02])  # a standard error of 0.0115
    sizes = [hard - 0.01, hard, hard - 0.005 + differ, hard - 0.02, hard - 0.001]
    assert last_within_error(sizes) == 2  # the last is beyond a dip
    assert last_within_error(sizes[:3]) == 2
    assert last_within_error([hard, hard - 0.001]) == 0  # worse in every fold
    assert last_within_error([hard, hard]) == 1
    assert last_within_error([np.array([0.5])]) == 0


def test_few_rows_are_divided_more_often_than_many():
    assert len(divisions_of(100, 0)) == 5
    assert len(divisions_of(800, 0)) == 2
    assert divisions_of(1001, 0) == [None]
    assert divisions_of(100, 0) == divisions_of(100, 0) != divisions_of(100, 1)


@pytest.mark.parametrize("loss", ["majority", "logistic"])
def test_noise_by_one_standard_error_is_repeated_by_the_same_seed(loss):
    """One column tells the classes apart by a wide gap, so much noise costs nothing."""
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    y = np.arange(60) % 2
    X[:, 0] = 0.2 * X[:, 0] + 0.8 * y
    given = {"noise": "1se", "max_conditions": 2, "random_state": 3}
    made = [quick(objective=loss, **given).fit(X, y) for _ in range(2)]
    assert made[0].noise_ == made[1].noise_ == 0.2
    assert made[0].card_ == made[1].card_
    assert made[0].certified_accuracy_ == 1.0


@pytest.mark.parametrize("offset", range(-9, 5))
def test_points_are_divided_by_what_divides_them_all(offset):
    worst = np.array([0, 2, 4, 6, 10]) + offset
    found = smallest_points(Points([], np.array([4, 6]), offset, worst))
    assert found.points.tolist() == [2, 3]
    np.testing.assert_array_equal(found.worst_totals > 0, worst > 0)
    np.testing.assert_array_equal(found.worst_totals, np.array([0, 1, 2, 3, 5]) + found.offset)


def test_weighted_auc_is_that_of_scikit_learn(monkeypatch):
    from sklearn.metrics import roc_auc_score

    from steadytree.riskscore import boosting

    rng = np.random.default_rng(0)
    for _ in range(20):
        total, labels, weights = rng.integers(0, 6, 30), rng.choice([-1, 1], 30), rng.random(30)
        monkeypatch.setattr(boosting, "worst_totals", lambda *_, total=total: total)
        rows = SimpleNamespace(labels=labels, weights=weights)
        expected = roc_auc_score(labels, total, sample_weight=weights)
        assert boosting.ranking_auc(None, rows) == pytest.approx(expected, abs=1e-12)
