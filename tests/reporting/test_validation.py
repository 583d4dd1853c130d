"""The section "Validation": figures of the public function, and sentences where there are none."""

import numpy as np
import pandas as pd
import pytest

import steadytree as st
from steadytree.metrics.validation import validate
from steadytree.reporting.data_set import Origin
from tests.models.scorecards import random_card

RNG = np.random.default_rng(8)
X = pd.DataFrame({"a": RNG.random(400).round(2), "<b>": RNG.random(400).round(2)})
Y = np.where(RNG.random(400) < X["a"], "<i>yes", "no")
Y = np.where(Y == "no", "<a>", Y)
MODEL = st.StableTreeClassifier(2, 0, random_state=0).fit(X[:200], Y[:200])


def test_the_section_holds_the_figures_of_validate():
    report = st.report(MODEL, X[200:], Y[200:], quick=True)
    found, section = validate(MODEL, X[200:], Y[200:]), report.data["validation"]
    values = {one["name"]: one["value"] for one in section["readings"]}
    assert values == pytest.approx({one.name: one.value for one in found.measurements()})
    assert [one["risk"] for one in section["cutoffs"]] == [one.risk for one in found.cutoffs]
    assert section["optimism"] is None
    assert section["label"] == "<i>yes"
    assert "<i>yes" not in report.html.partition("<script")[0]
    assert "Decision curve" in report.html
    assert "false-positive rate" in st.plot(found).svg
    assert "Validation" in str(report)


def test_optimism_needs_the_training_rows():
    report = st.report(MODEL, X[200:], Y[200:], train=(X[:200], Y[:200]))
    found = report.data["validation"]["optimism"]
    assert found["readings"][0]["name"] == "corrected AUC"
    assert found["note"] == ""


def test_rows_held_out_need_no_correction():
    train = X[:200], Y[:200]
    report = st.report(MODEL, X[200:], Y[200:], train=train, origin=Origin(seen=False))
    assert report.data["validation"]["optimism"] is None


def test_limits_of_ranking_and_calibration():
    limits = {"min_ks": 0.99, "min_gini": 0.01, "min_calibration_slope": 0.1}
    report = st.report(MODEL, X[200:], Y[200:], limits=limits, quick=True)
    assert [one["verdict"] for one in report.data["verdict"]] == ["fail", "pass", "pass"]


@pytest.mark.parametrize(
    ("y", "sentence"),
    [(np.arange(400) % 3, "The model has 3 classes"), (Y, "All rows are of one class")],
)
def test_a_sentence_says_why_there_are_no_figures(y, sentence):
    model = st.StableTreeClassifier(1, 0, random_state=0).fit(X, y)
    own = y == y[0] if len(set(y.tolist())) == 2 else np.ones(400, bool)
    report = st.report(model, X[own], y[own], quick=True)
    assert sentence in report.data["validation"]["why_not"]
    assert sentence in report.html


def test_a_card_without_risks_gives_predictions_only():
    card = next(
        card
        for card in (random_card(np.random.default_rng(k), n_categorical=0) for k in range(20))
        if not card.gives_risks
    )
    rows = pd.DataFrame(RNG.random((40, len(card.space))), columns=card.space.names)
    report = st.report(card, rows, ["no", "yes"] * 20, quick=True)
    assert report.data["validation"]["why_not"] == "The model gives predictions and no risks."


def test_gaps_between_groups_are_on_the_page():
    groups = np.where(X["a"] > 0.5, "high", "low")
    report = st.report(MODEL, X, Y, by={"part": groups}, quick=True)
    gaps = report.data["groups"][0]["gaps"]
    assert [one["name"] for one in gaps][-1] == "calibration"
    assert "percentage points higher for" in report.html


def test_the_event_that_is_named_is_measured_throughout():
    groups = {"half": np.arange(200) % 2}
    options = {"train": (X[:200], Y[:200]), "by": groups}
    report = st.report(MODEL, X[200:], Y[200:], positive="<a>", **options)
    found, section = validate(MODEL, X[200:], Y[200:], "<a>"), report.data["validation"]
    values = {one["name"]: one["value"] for one in section["readings"]}
    assert values == pytest.approx({one.name: one.value for one in found.measurements()})
    by_hand = st.by_group(MODEL, X[200:], Y[200:], groups["half"], positive="<a>")
    assert report.data["groups"][0]["groups"][0]["found"] == by_hand.groups[0].found
    parts = (section, report.data["groups"][0], report.data["calibration"])
    assert [one["label"] for one in parts] == ["<a>"] * 3
    # of two classes Brier score and AUC are the same for either event, the slope too
    plain = st.report(MODEL, X[200:], Y[200:], **options).data["validation"]
    shown = [one["value"] for one in section["optimism"]["readings"]]
    assert shown == pytest.approx([one["value"] for one in plain["optimism"]["readings"]])


def test_one_of_three_classes_is_measured_against_the_others():
    y = np.arange(400) % 3
    model = st.StableTreeClassifier(3, 0, random_state=0).fit(X, y)
    report, found = st.report(model, X, y, positive=2, quick=True), validate(model, X, y, 2)
    section = report.data["validation"]
    assert section["why_not"] == ""
    assert section["readings"][0]["value"] == found.ranking.auc
    assert "risks of “2”" in report.html
    some = y != 2
    none = st.report(model, X[some], y[some], positive=2, quick=True).data["validation"]
    assert "All rows are of one class" not in none["why_not"]
    assert "no row has the event" in none["why_not"]


def test_an_event_that_is_no_class_is_refused_before_anything_is_measured():
    with pytest.raises(ValueError, match="positive must be one of the classes"):
        st.report(MODEL, X, Y, positive="maybe")
