"""Each finding on data made to trigger it, and on data that must not."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.reporting.findings.rules import CHECKS, FIGURES, Seen, level_of
from steadytree.reporting.options import RULES


def found(model, X, y, **options):
    """Levels of all findings by name, of a quick report."""
    report = st.report(model, X, y, quick=options.pop("quick", True), **options)
    return {one["name"]: one for one in report.data["findings"]}


def level(name, *case, **options):
    return found(*case, **options)[name]["level"]


def rows_of(n, seed=0, slope=4.0):
    """Two columns, of which the first decides, and their outcome."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"dose": rng.uniform(0, 1, n), "other": rng.uniform(0, 1, n)})
    chance = 1 / (1 + np.exp(-slope * (X["dose"] - 0.5) * 2))
    return X, np.where(rng.random(n) < chance, "yes", "no")


@pytest.fixture(scope="module")
def good():
    """A tree of four large leaves, and rows that were held out."""
    train = rows_of(2000, 1)
    return st.StableTreeClassifier(2, 0, random_state=0).fit(*train), *rows_of(1000, 2), train


def test_every_check_has_a_figure_a_limit_and_texts():
    assert [check.name for check in CHECKS] == list(FIGURES)
    for check in CHECKS:
        assert check.limit in RULES or check.name == "training rows"
        assert check.why.endswith(".")
        assert check.do.endswith(".")


def test_thresholds_are_those_of_the_page():
    """The table in docs/report.rst; points and per cent as shares."""
    text = (Path(__file__).parents[3] / "docs/report.rst").read_text(encoding="utf-8")
    lines = text[text.index("finding                  figure") :].splitlines()[2:]
    listed, shares = {}, {}
    for line in lines[: next(k for k, one in enumerate(lines) if one.startswith("==="))]:
        name, figure, *levels = (
            line[a:b].strip() for a, b in ((0, 25), (25, 50), (50, 62), (62, 73))
        )
        if any(levels):
            last = name.split(",")[0]
            listed[last] = [re.search(r"(above|below) (-?[\d.]+)( %)?", one) for one in levels]
        shares[last] = shares.get(last, False) or "points" in figure
    group = listed.pop("group accuracy")
    others = ("accuracy", "recall", "false positives", "calibration")
    for name in others:
        listed[f"group {name}"], shares[f"group {name}"] = group, True
    by_name = {check.name: check for check in CHECKS}
    assert set(listed) == set(by_name)
    for name, levels in listed.items():
        check = by_name[name]
        for found, own in zip(levels, (check.amber, check.red), strict=True):
            if found is None:
                assert name == "training rows" or np.isinf(own)
                continue
            scale = 100 if shares[name] or found[3] else 1
            if name == "protected columns":
                own = np.floor(own)  # any such column: more than half of one
            assert float(found[2]) == pytest.approx(scale * own, rel=0.02)
            assert (found[1] == "above") == check.high_is_bad


def test_a_good_tree_has_no_finding_but_green(good):
    model, X, y, train = good
    listed = found(model, X, y, train=train, perturbation=st.Perturbation(radius={"dose": 0.005}))
    assert {one["level"] for one in listed.values()} == {"green"}
    assert {"accuracy", "AUC", "recall", "calibration", "leaf rows", "robustness", "drift"} <= set(
        listed
    )


def test_training_rows_are_amber(good):
    model, _, _, (X, y) = good
    assert level("training rows", model, X, y) == "amber"


def test_accuracy_below_the_baseline_is_red(good):
    model, X, y, _ = good
    assert level("accuracy", model, X, np.where(y == "yes", "no", "yes")) == "red"
    assert level("AUC", model, X, np.where(y == "yes", "no", "yes")) == "red"


def test_low_auc():
    X, y = rows_of(3000, 3, slope=1.0)
    model = st.StableTreeClassifier(2, 0, random_state=0).fit(X[:1500], y[:1500])
    assert level("AUC", model, X[1500:], y[1500:]) in ("amber", "red")


def test_low_recall_of_a_rare_class():
    X, y = rows_of(4000, 4, slope=1.0)
    kept = np.flatnonzero((y == "no") | (np.arange(4000) % 12 == 0))  # “yes” becomes rare
    X, y = X.iloc[kept], y[kept]
    model = st.StableTreeClassifier(1, 0, random_state=0).fit(X, y)
    listed = found(model, X, y)
    assert listed["recall"]["level"] == "red"
    assert listed["accuracy"]["level"] == "green"
    assert "“yes”, 0 % are predicted as such" in listed["recall"]["sentence"]


def test_low_recall_of_few_rows_is_amber_only():
    check = next(check for check in CHECKS if check.name == "recall")
    assert level_of(check, Seen(0.3, "", "", mild=0.45)) == "red"
    assert level_of(check, Seen(0.3, "", "", mild=0.6)) == "amber"
    assert level_of(check, Seen(0.6, "", "", mild=0.7)) == "green"


def test_calibration(good):
    model, X, y, _ = good
    rng = np.random.default_rng(0)
    flipped = np.where(rng.random(len(y)) < 0.3, "no", y)  # fewer cases than predicted
    assert level("calibration", model, X, y) == "green"
    assert level("calibration", model, X, flipped) == "red"


def test_leaves_of_few_rows():
    X, y = rows_of(400, 5)
    deep = DecisionTreeClassifier(random_state=0).fit(X[:200], y[:200])
    large = DecisionTreeClassifier(min_samples_leaf=30, random_state=0).fit(X[:200], y[:200])
    listed = found(deep, X[200:], y[200:])
    assert listed["leaf rows"]["level"] == "amber"
    assert listed["leaf rows"]["figure"] == "1 row"
    assert listed["tiny leaves"]["level"] == "red"
    listed = found(large, X[200:], y[200:])
    assert listed["leaf rows"]["level"] == listed["tiny leaves"]["level"] == "green"


@pytest.mark.slow
def test_decisions_that_change_on_retraining(good):
    X, y = rows_of(200, 6, slope=0.5)
    deep = DecisionTreeClassifier(random_state=0).fit(X, y)
    fresh = rows_of(200, 7, slope=0.5)
    assert level("retraining", deep, *fresh, train=(X, y), quick=False) == "red"
    limits = {"max_changed_decisions": 0.1}
    report = st.report(deep, *fresh, train=(X, y), limits=limits)
    assert [one["name"] for one in report.failed] == ["max_changed_decisions"]
    model, X, y, train = good
    few = train[0][:500], train[1][:500]
    assert level("retraining", model, X[:200], y[:200], train=few, quick=False) == "green"


def test_accuracy_that_falls_fast_names_the_column(good):
    model, X, y, _ = good
    noise = st.Perturbation(radius={"dose": 0.2, "other": 0.001})
    listed = found(model, X, y, perturbation=noise)
    assert listed["robustness"]["level"] in ("amber", "red")
    assert "mostly by “dose”" in listed["robustness"]["sentence"]
    calm = st.Perturbation(radius={"dose": 0.001})
    assert level("robustness", model, X, y, perturbation=calm) == "green"


# ---- groups ----
def compas_like(n=3000, seed=0, unequal=True):
    """Made-up rows in which one race is flagged more often than its outcomes say."""
    rng = np.random.default_rng(seed)
    race = rng.choice(["African-American", "Caucasian", "Hispanic"], n, p=[0.5, 0.35, 0.15])
    policed = (race == "African-American") & unequal
    priors = rng.poisson(np.where(policed, 4.0, 2.0))
    years = rng.integers(18, 70, n)
    risk = 1 / (1 + np.exp(-(0.5 * (priors - np.where(policed, 4.0, 2.0)) - 0.03 * (years - 35))))
    again = np.where(rng.random(n) < risk, "yes", "no")
    X = pd.DataFrame({"priors": priors, "years": years, "race": race})
    return X, again


@pytest.fixture(scope="module")
def compas():
    X, y = compas_like()
    old = compas_like(seed=1)
    model = st.StableTreeClassifier(3, 0, random_state=0).fit(old[0][["priors", "years"]], old[1])
    return model, X, y


def test_gaps_between_races_are_flagged_without_limits_and_without_by(compas):
    listed = found(*compas)
    assert listed["group false positives"]["level"] == "red"
    assert "By race, the false-positive rate differs" in listed["group false positives"]["sentence"]
    assert "“African-American” (higher)" in listed["group false positives"]["sentence"]
    assert listed["protected columns"]["level"] == "green"  # the tree does not see the race
    assert listed["group recall"]["level"] in ("amber", "red")


def test_equal_groups_are_not_flagged():
    X, y = compas_like(unequal=False)
    old = compas_like(seed=1, unequal=False)
    model = st.StableTreeClassifier(3, 0, random_state=0).fit(old[0][["priors", "years"]], old[1])
    listed = found(model, X, y)
    assert {listed[name]["level"] for name in listed if name.startswith("group")} == {"green"}


def test_gaps_that_few_rows_cannot_show_are_green(compas):
    model, X, y = compas
    listed = found(model, X[:150], y[:150])
    for name in ("group accuracy", "group calibration"):
        assert listed.get(name, {"level": "green"})["level"] == "green"


def test_limits_hold_group_gaps_in_any_metric(compas):
    limits = {"max_false_positive_gap": 0.1, "max_recall_gap": 0.9, "max_calibration_gap": 1}
    report = st.report(*compas, quick=True, limits=limits)
    verdicts = {one["name"]: one["verdict"] for one in report.data["verdict"]}
    assert verdicts == {
        "max_false_positive_gap": "fail",
        "max_recall_gap": "pass",
        "max_calibration_gap": "pass",
    }


@pytest.mark.parametrize(
    "limits",
    [
        {"min_leaf_rows": 1},
        {"min_recall": 0.01},
        {"max_tiny_leaf_share": 1},
        {"max_protected_columns": 0},
        {"max_single_column_auc": 1},
        {"max_drift": 9},
    ],
)
def test_each_figure_can_be_a_limit(compas, limits):
    assert st.report(*compas, quick=True, limits=limits).failed == []


def test_protected_columns_that_are_used_are_amber():
    X, y = compas_like()
    X["race"] = np.where(y == "yes", "Caucasian", X["race"])  # worth a split
    model = st.StableTreeClassifier(2, 0, random_state=0).fit(X, y)
    listed = found(model, X, y)
    assert listed["protected columns"]["level"] == "amber"
    assert "uses “race”" in listed["protected columns"]["sentence"]


# ---- columns ----
def test_a_column_that_nearly_decides_is_leakage(good):
    X, y = rows_of(600, 7)
    X["paid back"] = np.where(y == "yes", 1.0, 0.0) + np.random.default_rng(0).normal(0, 0.01, 600)
    model = st.StableTreeClassifier(1, 0, random_state=0).fit(X[:300], y[:300])
    listed = found(model, X[300:], y[300:])
    assert listed["leakage"]["level"] == "red"
    assert "“paid back”" in listed["leakage"]["sentence"]
    assert level("leakage", *good[:3]) == "green"


def test_a_category_that_nearly_decides_is_leakage():
    X, y = rows_of(600, 7)
    X["status"] = np.where(y == "yes", "closed", "open")
    model = st.StableTreeClassifier(1, 0, random_state=0).fit(X[:300], y[:300])
    assert level("leakage", model, X[300:], y[300:]) == "red"


def test_a_range_that_outliers_make_is_amber(good):
    X, y = rows_of(400, 8)
    model = st.StableTreeClassifier(1, 0, random_state=0).fit(X, y)
    assert level("outliers", model, X, y, quick=False) == "green"
    X = X.copy()
    X.loc[0, "dose"] = 1000.0
    listed = found(model, X, y, quick=False)
    assert listed["outliers"]["level"] == "amber"
    assert "“dose”" in listed["outliers"]["sentence"]
    stated = st.Perturbation(radius={"dose": 0.01})
    assert "outliers" not in found(model, X, y, perturbation=stated)


def test_drift_of_the_leaves_and_of_columns(good):
    model, X, y, train = good
    assert level("drift", model, X, y, train=train) == "green"
    moved = X.assign(dose=X["dose"] ** 3)
    listed = found(model, moved, y)
    assert listed["drift"]["level"] == "red"
    assert "its leaves" in listed["drift"]["sentence"]
    assert "“dose”" in found(model, moved, y, train=train)["drift"]["sentence"]


def test_without_drift_findings_are_as_rare_as_stated(good):
    """At a rate of 1 % each, 25 held-out samples give more than 3 findings once in 10,000 runs."""
    model, _, _, train = good
    levels = [level("drift", model, *rows_of(200, 100 + k), train=train) for k in range(25)]
    assert sum(one != "green" for one in levels) <= 3


def test_breast_cancer_with_a_good_tree_has_no_red_finding():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    for seed in range(3):
        held = np.random.default_rng(seed).random(len(y)) < 0.3
        model = st.SteadyTreeClassifier(random_state=0).fit(X[~held], y[~held])
        noise = st.Perturbation(radius=dict(X.std() / 20))
        listed = found(model, X[held], y[held], train=(X[~held], y[~held]), perturbation=noise)
        assert "red" not in {one["level"] for one in listed.values()}


def seen(name, **data):
    return FIGURES[name](data)


def test_the_mild_end_of_recall_is_the_upper_one():
    recall = {"value": 0.3, "interval": [0.108, 0.603], "n_rows": 10, "label": "ill"}
    figure = seen("recall", screening={"recall": recall})
    assert figure.mild == 0.603
    check = next(check for check in CHECKS if check.name == "recall")
    assert level_of(check, figure) == "amber"  # 3 of 10 may well be 6 of 10


def test_sure_miscalibration_is_what_lies_outside_the_intervals():
    bins = [
        {"n_rows": 10, "interval": [0.2, 0.4], "stated": 0.1},  # 0.1 below
        {"n_rows": 20, "interval": [0.5, 0.7], "stated": 0.6},  # inside
        {"n_rows": 10, "interval": [0.6, 0.8], "stated": 0.95},  # 0.15 above
    ]
    data = {"calibration": {"error": 0.2, "bins": bins}, "card": None, "tree": {}}
    figure = seen("calibration", **data)
    assert figure.value == 0.2
    assert figure.mild == pytest.approx((10 * 0.1 + 10 * 0.15) / 40)


def test_a_clear_gap_goes_before_a_larger_one_that_may_be_chance():
    def gap(value, clear, low):
        ends = {"interval": [low, 0.9], "high": "a", "low": "b"}
        return {"name": "recall", "value": value, "is_clear": clear} | ends

    groups = [{"column": "sex", "gaps": [gap(0.4, False, -0.1)]}]
    groups += [{"column": "ward", "gaps": [gap(0.2, True, 0.06)]}]
    figure = seen("group recall", groups=groups)
    assert (figure.value, figure.mild) == (0.2, 0.06)
    assert figure.sentence.startswith("By ward, recall differs by 20.0 points")
    assert "which may be chance" in seen("group recall", groups=groups[:1]).sentence


def test_drift_is_proven_by_what_chance_does_not_explain():
    figure = seen("drift", screening={"drift": {"value": 0.3, "low": -0.1, "what": "age"}})
    assert (figure.value, figure.mild) == (0.3, -0.1)
    check = next(check for check in CHECKS if check.name == "drift")
    assert level_of(check, figure) == "green"


def test_accuracy_is_judged_against_the_baseline():
    shown = [
        {"name": "accuracy", "value": 0.9, "shown": "90 %"},
        {"name": "majority baseline", "value": 0.93, "shown": "93 %"},
    ]
    figure = seen("accuracy", readings={"accuracy": shown})
    assert figure.value == pytest.approx(-0.03)
