"""RiskScoreClassifier by its defaults: bands, risks, events, decisions."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import Perturbation
from tests.riskscore.test_condition_score import mixed_data


def bands_of(model):
    return {
        variable.name: dict(
            zip(variable.texts(), (b.points[0] for b in variable.bands), strict=True)
        )
        for variable in model.card_.variables
    }


def patients(n=2000, seed=0, share=None):
    """Risk rises with age, is least at a middle pressure, differs by ward and missing sodium."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 95, n),
            "pressure": rng.normal(120, 20, n).round(),
            "ward": rng.choice(["a", "b", "c", "d"], n, p=[0.4, 0.3, 0.2, 0.1]).astype(object),
            "sodium": rng.normal(140, 5, n),
        }
    )
    level = 0.06 * (frame["age"] - 60) + ((frame["pressure"] - 120) / 20) ** 2
    level += 1.2 * frame["ward"].isin(["c", "d"])
    level = level + rng.logistic(size=n)
    y = (level > np.quantile(level, 1 - (share or 0.3))).to_numpy().astype(int)
    frame.loc[rng.random(n) < 0.1 + 0.3 * y, "sodium"] = np.nan
    return frame, y


def test_one_row_a_variable_with_whole_points_from_zero():
    X, y = patients()
    model = RiskScoreClassifier().fit(X, y)
    card = model.card_
    assert card.offset[0] == 0
    for variable in card.variables:
        points = [band.points[0] for band in variable.bands]
        assert min(points) == 0
        assert max(points) <= 10
    ten = RiskScoreClassifier(max_conditions=10).fit(X, y).card_  # the default may take a trend
    assert sum(len(v.bands) - 2 for v in ten.variables) <= 10
    assert all(len(v.bands) <= 9 for v in card.variables)
    assert (np.diff(list(bands_of(model)["age"].values())[:-1]) > 0).all()
    pressure = list(bands_of(model)["pressure"].values())[:-1]
    assert pressure[0] > min(pressure) < pressure[-1]  # a true valley is kept
    assert {"c, d", "a, b"} <= set(bands_of(model)["ward"])
    thresholds = np.concatenate([v.thresholds for v in card.variables if v.name != "ward"])
    assert all(len(f"{t:g}") <= 5 for t in thresholds)


def test_what_a_missing_value_tells_has_its_points():
    X, y = patients()
    model = RiskScoreClassifier(forced=["sodium"]).fit(X, y)
    sodium = bands_of(model)["sodium"]
    assert sodium["missing"] > 0
    gap = X.iloc[[0]].assign(sodium=np.nan)
    known = X.iloc[[0]].assign(sodium=140.0)
    assert model.total(gap)[0] > model.total(known)[0]


@pytest.mark.parametrize("seed", range(4))
def test_no_variable_turns_by_chance(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(800, 6))
    y = X @ [1.0, -0.8, 0.5, 0.3, 0, 0] + rng.logistic(size=800) > 0
    for variable in RiskScoreClassifier().fit(X, y).card_.variables:
        steps = np.diff([band.points[0] for band in variable.bands[:-1]])
        assert (steps > 0).all() or (steps < 0).all()


def test_directions_are_kept_where_they_are_asked_for():
    X, y = patients()
    for direction, sign in (("up", 1), ("down", -1)):
        model = RiskScoreClassifier(monotone={"pressure": direction, "age": "free"}).fit(X, y)
        at = np.sort(X["pressure"])
        frame = pd.concat([X.iloc[[0]]] * len(at), ignore_index=True).assign(pressure=at)
        assert (sign * np.diff(model.total(frame)) >= 0).all()


def test_weights_count_as_repeated_rows_and_the_order_of_rows_does_not():
    X, y = patients(500)
    rng = np.random.default_rng(1)
    weights, order = rng.integers(0, 4, 500), rng.permutation(500)
    found = RiskScoreClassifier().fit(X, y, weights).card_
    again = np.repeat(np.arange(500), weights)
    same = RiskScoreClassifier().fit(X.iloc[again], y[again]).card_
    assert found.conditions == same.conditions
    np.testing.assert_array_equal(found.points, same.points)
    assert found.slope == pytest.approx(same.slope, rel=1e-6)
    assert found.decision == same.decision
    plain = RiskScoreClassifier().fit(X, y).card_
    assert RiskScoreClassifier().fit(X.iloc[order], y[order]).card_ == plain


@pytest.mark.parametrize("rule", ["sensitivity", "specificity"])
def test_weights_count_as_repeated_rows_in_all_that_a_card_tells(rule):
    """Events weigh more, so that sums of rows and of weights differ everywhere."""
    X, y = patients(600)
    weights = np.where(y == 1, 5, 1) + 2 * X["ward"].eq("a").to_numpy()
    again = np.repeat(np.arange(600), weights)
    model = RiskScoreClassifier(decision={rule: 0.8}).fit(X, y, weights)
    card, totals = model.card_, model.total(X)
    for variable, counts in zip(card.variables, card.profile, strict=True):
        bands = variable.band_of(card.encode(X.iloc[again])[:, variable.feature])
        for k in range(len(variable.bands)):
            assert counts[k].tolist() == [((bands == k) & (y[again] == c)).sum() for c in (0, 1)]
    risk = card.predict_proba(X.iloc[again])[:, 1]
    own = np.where(y[again] == 1, risk, 1 - risk)
    assert model.pool_.log_loss[0] == pytest.approx(-np.log(own).mean())
    odds, mean = card.risk(np.arange(totals.max() + 1))[:, 1], risk.mean()
    times = odds / (1 - odds) / (mean / (1 - mean))
    names = np.where(times < 0.5, "low", np.where(times >= 2 - 1e-9, "high", "medium"))
    starts = {name: int(np.flatnonzero(names == name)[0]) for name in names}
    known = {group.name: group.least for group in card.risk_groups}
    assert {name: known[name] for name in starts} == starts

    def rate(least):
        chosen = totals[again] >= least
        return (
            chosen[y[again] == 1].mean()
            if rule == "sensitivity"
            else (~chosen)[y[again] == 0].mean()
        )

    kept = [t for t in range(totals.max() + 2) if rate(t) >= 0.8 - 1e-9]
    assert card.decision == (max(kept) if rule == "sensitivity" else min(kept))


def test_the_mean_risk_is_the_share_of_events():
    X, y = patients(1500, share=0.12)
    model = RiskScoreClassifier().fit(X, y)
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(0.12, abs=1e-6)


def test_few_rows_state_no_certain_risk():
    X, y = np.arange(12.0)[:, None], np.arange(12) > 5
    model = RiskScoreClassifier().fit(X, y)
    assert model.score(X, y) == 1
    assert model.predict_proba(X).max() < 0.9


def test_the_event_may_be_either_class():
    X, y = patients()
    labels = np.where(y == 1, "dead", "well")
    dead = RiskScoreClassifier(positive="dead").fit(X, labels)
    usual = RiskScoreClassifier().fit(X, y)
    assert dead.card_.positive == "dead"
    assert dead.classes_.tolist() == ["dead", "well"]
    np.testing.assert_allclose(dead.predict_proba(X)[:, 0], usual.predict_proba(X)[:, 1])
    np.testing.assert_array_equal(dead.predict(X) == "dead", usual.predict(X) == 1)
    np.testing.assert_array_equal(dead.decision_function(X) < 0, dead.predict(X) == "dead")
    assert bands_of(dead) == bands_of(usual)


def test_prevalence_shifts_the_log_odds():
    X, y = patients()
    usual, rare = (RiskScoreClassifier(prevalence=p).fit(X, y) for p in (None, 0.02))
    shift = logit(rare.predict_proba(X)[:, 1]) - logit(usual.predict_proba(X)[:, 1])
    np.testing.assert_allclose(shift, logit(0.02) - logit(y.mean()))
    np.testing.assert_array_equal(rare.total(X), usual.total(X))


def test_decisions_are_what_they_are_asked_to_be():
    X, y = patients()
    totals = RiskScoreClassifier().fit(X, y).total(X)
    for decision in ({"sensitivity": 0.9}, {"specificity": 0.9}, {"cost": 9}, 0.2):
        model = RiskScoreClassifier(decision=decision).fit(X, y)
        chosen, risk = model.predict(X) == 1, model.predict_proba(X)[:, 1]
        np.testing.assert_array_equal(chosen, totals >= model.card_.decision)
        if decision == {"sensitivity": 0.9}:
            assert chosen[y == 1].mean() >= 0.9
            assert (totals[y == 1] >= model.card_.decision + 1).mean() < 0.9
        elif decision == {"specificity": 0.9}:
            assert (~chosen[y == 0]).mean() >= 0.9
            assert (totals[y == 0] < model.card_.decision - 1).mean() < 0.9
        else:
            np.testing.assert_array_equal(chosen, risk > (0.1 if decision == {"cost": 9} else 0.2))


@pytest.mark.parametrize("decision", [0.2, 0.5, 0.95, {"cost": 3}])
def test_a_total_that_no_training_row_has_predicts_the_event_where_its_risk_says_so(decision):
    groups = np.repeat([0, 1, 2], 200)
    X = pd.DataFrame({"smokes": groups == 1, "drinks": groups == 2})  # nobody does both
    y = np.tile(np.arange(200), 3) < np.array([10, 60, 60])[groups]
    model = RiskScoreClassifier(decision=decision).fit(X, y)
    both = sum(max(band.points[0] for band in one.bands) for one in model.card_.variables)
    assert both > model.total(X).max()
    totals = np.arange(both + 1)
    least = decision if isinstance(decision, float) else 0.25
    chosen = totals >= model.card_.decision
    np.testing.assert_array_equal(chosen, model.card_.risk(totals)[:, 1] > least)


def test_class_weights_move_the_decision_and_leave_the_risks_honest():
    X, y = patients(share=0.1)
    model = RiskScoreClassifier(class_weight="balanced").fit(X, y)
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(0.1, abs=1e-6)
    np.testing.assert_array_equal(model.predict(X) == 1, model.predict_proba(X)[:, 1] > 0.1)


def test_the_card_tells_how_it_was_made():
    X, y = patients(800)
    card = RiskScoreClassifier().fit(X, y).card_
    assert card.provenance == {"objective": "log_loss", "noise": 0.0, "rows": 800.0}
    for variable, counts in zip(card.variables, card.profile, strict=True):
        bands = variable.band_of(card.encode(X)[:, variable.feature])
        for k in range(len(variable.bands)):
            assert counts[k].tolist() == [((bands == k) & (y == c)).sum() for c in (0, 1)]
    groups = card.risk_groups
    assert [group.name for group in groups] == ["low", "medium", "high"]
    odds = logit(card.risk([groups[1].least, groups[2].least])[:, 1]) - logit(y.mean())
    assert odds[0] >= -np.log(2) - 0.01
    assert odds[1] >= np.log(2) - 0.01
    assert sum(row.n_rows for row in card.risk_table.rows) == 800


def rare_outcome(n, share, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    level = X[:, 0] + 0.8 * X[:, 1] - 0.6 * X[:, 2] + rng.logistic(size=n)
    return X, (level > np.quantile(level, 1 - share)).astype(int)


@pytest.mark.parametrize("share", [0.1, 0.02, 0.005])
def test_a_rare_outcome_is_ranked_about_as_by_logistic_regression(share):
    X, y = rare_outcome(16_000, share, 1)
    fit, held = slice(None, 8_000), slice(8_000, None)
    model = RiskScoreClassifier().fit(X[fit], y[fit])
    regression = LogisticRegression().fit(X[fit], y[fit])
    found, possible = (
        roc_auc_score(y[held], one.predict_proba(X[held])[:, 1]) for one in (model, regression)
    )
    assert possible > 0.7
    # bands of numbers that act linearly; the rarest outcome has 40 events
    assert found > possible - (0.06 if share == 0.005 else 0.04)


def test_ranges_as_text_are_bands_in_their_order():
    """The risk rises with age, in no group against its neighbours; texts sort otherwise."""
    rng = np.random.default_rng(0)
    age = rng.integers(0, 80, 2000)
    text = np.array([f"{10 * (a // 10)}-{10 * (a // 10) + 9}" if a > 4 else "<5" for a in age])
    y = rng.random(2000) < 1 / (1 + np.exp(-(age - 40) / 15))
    card = RiskScoreClassifier().fit(pd.DataFrame({"age": text}), y).card_
    names = ["<5", *(f"{k}-{k + 9}" for k in range(0, 80, 10))]
    totals = card.score(pd.DataFrame({"age": names}))
    assert (np.diff(totals) >= 0).all()
    assert len(np.unique(totals)) >= 4


def test_many_sites_are_grouped_by_what_their_rows_tell():
    rng = np.random.default_rng(0)
    site, effect = rng.integers(0, 60, 8000), rng.normal(size=60) * 0.8
    y = rng.random(8000) < expit(effect[site] - 2)
    X = pd.DataFrame({"site": [f"s{k}" for k in site]})
    model = RiskScoreClassifier().fit(X[:5000], y[:5000])
    possible = roc_auc_score(y[5000:], effect[site[5000:]])
    assert roc_auc_score(y[5000:], model.predict_proba(X[5000:])[:, 1]) > possible - 0.03
    assert len(model.card_.variables[0].bands) <= 12
    with pytest.warns(UserWarning, match="no condition was kept.*add rows or other columns"):
        RiskScoreClassifier().fit(X[:5000], rng.permutation(y[:5000]))


def test_each_of_several_classes_has_its_points():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = RiskScoreClassifier(max_conditions=4).fit(X, y)
    assert model.card_.points.shape[1] == 3
    assert model.score(X, y) > 0.93
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("classes", [2, 3])
def test_certified_accuracy_is_that_of_the_certificate(classes):
    frame, y = mixed_data(3, 400)
    if classes == 3:
        y = y + (frame["b"] > 14).to_numpy()
    plain, hard = (RiskScoreClassifier(noise=noise).fit(frame, y) for noise in (0.0, 0.1))
    assert plain.certified_accuracy_ == pytest.approx(plain.score(frame, y))
    ranges = {name: float(np.ptp(frame[name].dropna())) * 0.1 for name in "ab"}
    moves = Perturbation(radius={**ranges, "c": 0, "d": 0, "e": 0}, whole=[])
    found = [certify(model, frame, y, moves).worst_case_accuracy for model in (plain, hard)]
    assert hard.certified_accuracy_ == pytest.approx(found[1])
    assert found[1] >= found[0]


def test_noise_by_one_standard_error_is_free_where_a_gap_is_wide():
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 2)), np.arange(200) % 2
    X[:, 0] = 0.2 * X[:, 0] + 0.8 * y
    model = RiskScoreClassifier(noise="1se", random_state=0).fit(X, y)
    assert model.noise_ == 0.2
    assert model.certified_accuracy_ == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positive": "maybe"}, r"positive must be one of the labels \[0, 1\], got 'maybe'"),
        ({"prevalence": 1.0}, "prevalence must be None or a number above 0 and below 1"),
        ({"decision": 1.5}, "decision must be a risk above 0 and below 1"),
        ({"decision": {"cost": -1}}, "decision must be"),
        ({"decision": {"recall": 0.9}}, "decision must be"),
        ({"decision": {"sensitivity": 0.9, "cost": 2}}, "decision must be"),
        ({"max_variables": 0}, "max_variables must be None or a whole number of at least 1"),
        ({"max_variables": 1, "forced": ["x0", "x1"]}, "more than max_variables=1 allows"),
        ({"loss": "logistic"}, "loss was removed: use objective"),
        ({"tau": 0.1}, "tau was removed: use noise"),
        ({"objective": "majority", "prevalence": 0.1}, "prevalence is for objective='log_loss'"),
        ({"class_weight": {0: 1, 1: 0}}, "class_weight must be above 0 for every class"),
        ({"monotone": {"x0": "sideways"}}, "must be 'up', 'down' or 'free'"),
    ],
)
def test_bad_parameters_are_one_clear_line(changes, message):
    X, y = np.random.default_rng(0).random((40, 2)), np.arange(40) % 2
    with pytest.raises(ValueError, match=message) as caught:
        RiskScoreClassifier(**changes).fit(X, y)
    assert "\n" not in str(caught.value)


def test_what_is_for_two_classes_is_refused_with_three():
    X, y = load_iris(return_X_y=True)
    for changes in ({"positive": 1}, {"prevalence": 0.1}, {"decision": {"cost": 2}}):
        with pytest.raises(ValueError, match="is for two classes, but y has 3: leave it out"):
            RiskScoreClassifier(**changes).fit(X, y)


def test_a_column_of_one_value_is_of_no_use_and_one_without_any_is_refused():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RiskScoreClassifier(max_variables=3).fit(X.assign(same=7.0), y)
    assert "same" not in bands_of(model)
    with pytest.raises(ValueError, match="'same' holds no value at all"):
        RiskScoreClassifier().fit(X.assign(same=np.nan), y)


def test_chance_seldom_makes_a_card():
    made = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(300, 8)), np.arange(300) < 60
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            made += RiskScoreClassifier().fit(X, y).card_.n_conditions > 0
    assert made <= 3


@pytest.mark.parametrize("parameter", ["forced", "forbidden"])
def test_unknown_columns_are_named(parameter):
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    with pytest.raises(ValueError, match=f"{parameter} names 'z', but the columns are 'x0'"):
        RiskScoreClassifier(**{parameter: ["z"]}).fit(X, y)


def test_a_category_that_training_did_not_see_counts_as_the_rare_ones():
    rng = np.random.default_rng(0)
    common = np.repeat(["a", "b"], 500)
    rare = np.repeat([f"site {k}" for k in range(60)], 2)  # too few each for a bin of their own
    X = pd.DataFrame({"site": np.concatenate([common, rare])})
    y = (rng.random(len(X)) < np.repeat([0.1, 0.7], [len(common), len(rare)])).astype(int)
    model = RiskScoreClassifier().fit(X, y)
    new = pd.DataFrame({"site": ["a", "site 7", "never seen", None]})
    usual, *others = model.total(new).tolist()
    assert others == [others[0]] * 3
    assert others[0] > usual


def test_a_row_that_noise_of_just_that_size_turns_is_not_certified():
    x = np.repeat(np.arange(9.0), 20)
    y = (x >= 4).astype(int)
    model = RiskScoreClassifier(noise=0.125).fit(x[:, None], y)  # moves by up to 1
    within, beyond = (
        np.mean([(model.predict(x[:, None] + move) == y) for move in (-by, by)], axis=0) == 1
        for by in (1, 1 + 1e-9)
    )
    assert beyond.mean() < within.mean() < 1  # one side is turned by just that, the other by more
    assert model.certified_accuracy_ == pytest.approx(beyond.mean())
