"""Every number in the report is what the public functions return."""

import html.parser
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import steadytree as st
from steadytree.comparison.learners import usual_perturbation
from steadytree.reporting.options import RULES

SCRIPT = "<script>alert(1)</script>"
START, END = 'id="steadytree-data">', "</script>"


def make_rows(n, seed, names=("age", "income", "town")):
    rng = np.random.default_rng(seed)
    age, income = rng.normal(50, 12, n), rng.gamma(3, 900, n)
    town = rng.choice(["Ulm", "Bonn", "Köln"], n)
    X = pd.DataFrame(dict(zip(names, (age, income, town), strict=True)))
    y = np.where(age / 12 + income / 2000 + rng.normal(0, 0.7, n) > 5.5, "ill", "well")
    return X, y


@pytest.fixture(scope="module")
def case():
    train, rows = make_rows(240, 0), make_rows(120, 1)
    model = st.StableTreeClassifier(3, 0, random_state=0).fit(*train)
    old = st.StableTreeClassifier(2, 0, random_state=0).fit(*make_rows(200, 2))
    card = st.RiskScoreClassifier(noise=0.02, max_conditions=4, random_state=0).fit(*train)
    return {"train": train, "rows": rows, "model": model, "old": old, "card": card}


@pytest.fixture(scope="module")
def comparison(case):
    return st.compare(["cart", "stable"], *case["train"], n_folds=2, max_depth=2)


@pytest.fixture(scope="module")
def found(case, comparison):
    return st.report(
        case["model"],
        *case["rows"],
        previous=case["old"],
        train=case["train"],
        by=["town"],
        card=case["card"],
        comparison=comparison,
        limits={"min_accuracy": "50%", "max_leaves": 1, "max_epsilon": 1},
        date="2024-05-01",
    )


def measurements(section):
    return {one["name"]: one["value"] for one in section}


def of(measured):
    listed = measured.measurements
    return {one.name: one.value for one in (listed() if callable(listed) else listed)}


def test_accuracy_and_size_are_those_of_the_functions(found, case):
    X, y = case["rows"]
    shown = measurements(found.data["readings"]["accuracy"])
    assert shown["accuracy"] == case["model"].score(X, y)
    assert measurements(found.data["readings"]["complexity"]) == of(st.complexity(case["model"], X))


def test_stability_is_that_of_the_functions(found, case):
    section = found.data["stability"]
    exact = st.average_sensitivity(case["model"], *case["train"])
    assert section["exact"]
    assert measurements(section["readings"]) == of(exact)
    again = st.refits(case["model"], *case["train"], 20)
    assert measurements(section["refit_readings"]) == of(again)
    assert section["distances"] == again.distances.tolist()
    facts = st.collection_facts([case["model"], *again.trees])
    named = dict(zip(section["first"]["features"], section["first"]["shares"], strict=True))
    for place, feature, share in facts.most_chosen(1):
        where = section["first"]["places"].index(place)
        shown = "(an answer)" if feature == "(leaf)" else feature
        assert named[shown][where] == share
    for one in section["cuts"]:
        assert one["cuts"] == facts.thresholds[one["feature"]].tolist()
    others = [one for one in exact.alternatives if one.distance > 0][:3]
    assert [one["share"] for one in section["alternatives"]] == [one.share for one in others]


def test_robustness_and_separation_are_those_of_the_functions(found, case):
    X, y = case["rows"]
    section, exact = (
        found.data["robustness"],
        st.certify(case["model"], X, y, usual_perturbation(X)),
    )
    assert measurements(section["readings"]) == of(exact)
    assert section["curve"]["size"] == exact.curve()[0].tolist()
    assert section["curve"]["certified_accuracy"] == pytest.approx(exact.curve()[1].tolist())
    smallest = exact.counterexamples(5)
    assert [(one["row"], one["size"]) for one in section["attacks"]] == [
        (one.row, one.size) for one in smallest
    ]
    apart = {k: v for k, v in of(st.separation(X, y)).items() if np.isfinite(v)}
    shown = measurements(found.data["separation"]["readings"])
    assert {k: v for k, v in shown.items() if v is not None} == apart


def test_the_search_for_a_robust_tree_is_shown_over_time():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (40, 3))
    y = (X[:, 0] > 0).astype(int)
    noise = st.Perturbation(step_cost=1.0, budget=0.1, scope="mean")
    model = st.RobustTreeClassifier(2, noise, random_state=0).fit(X, y)
    found = st.report(model, X, y, perturbation=noise, quick=True)
    search = found.data["robustness"]["search"]
    assert search["kept"][-1] == search["bound"][-1] == model.objective_
    assert search["kept"] == sorted(search["kept"])
    assert search["bound"] == sorted(search["bound"], reverse=True)
    assert "No tree of this depth is correct on more" in found.html
    model.status_, model.optimality_gap_ = "time limit", 0.25
    page = st.report(model, X, y, perturbation=noise, quick=True).html
    assert "The search ended (time limit) with a gap of 25.0 %" in page
    assert "search" not in st.report(model.tree_, X, y, perturbation=noise).data["robustness"]


def test_calibration_and_groups_of_several_classes_are_about_no_single_one(case):
    X, y = case["rows"]
    y = np.where(X["town"] == "Ulm", "unsure", y)
    model = st.StableTreeClassifier(2, 0, random_state=0).fit(X, y)
    page = st.report(model, X, y, by=["town"], quick=True).html
    assert "Observed frequency of correct predictions" in page
    assert "Rates are those of" not in page


def test_calibration_groups_change_and_card_are_those_of_the_functions(found, case):
    X, y = case["rows"]
    model, data = case["model"], found.data
    assert measurements(data["calibration"]["readings"]) == of(st.calibration(model, X, y))
    groups = st.by_group(model, X, y, X["town"], "town")
    assert data["groups"][0]["gap"] == groups.gap
    assert [one["accuracy"] for one in data["groups"][0]["groups"]] == [
        one.accuracy for one in groups.groups
    ]
    change = st.diff(case["old"], model, X, y)
    assert data["change"]["headline"] == change.formatted["headline"]
    assert data["change"]["rows"]["n_flipped"] == len(change.rows.flipped)
    shown = measurements(data["card"]["readings"])
    assert shown["accuracy"] == case["card"].score(X, y)


def test_comparison_is_that_of_the_function(found, comparison):
    assert found.data["comparison"]["learners"] == comparison.formatted["learners"]


def test_page_shows_the_figures_of_the_data(found):
    page = found.html
    for section in found.data["readings"].values():
        for one in section:
            assert f'<td class="number">{one["shown"]}</td>' in page
    embedded = page[page.index(START) + len(START) :]
    embedded = json.loads(embedded[: embedded.index(END)])
    assert embedded == json.loads(json.dumps(found.data))


class Sections(html.parser.HTMLParser):
    """Sections with the tags in them."""

    def __init__(self, page):
        super().__init__()
        self.found, self.name = {}, None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "section":
            self.name = dict(attributes)["id"]
            self.found[self.name] = []
        elif self.name:
            self.found[self.name].append(tag)

    def handle_endtag(self, tag):
        if tag == "section":
            self.name = None


def test_every_section_opens_with_a_sentence_and_has_a_fold(found):
    sections = Sections(found.html).found
    assert list(sections) == [
        "findings",
        "short",
        "tree",
        "case",
        "change",
        "accuracy",
        "calibration",
        "validation",
        "groups",
        "stability",
        "candidates",
        "comparison",
        "robustness",
        "separation",
        "card",
        "complexity",
        "rules",
        "data",
        "limits",
        "origin",
        "sign-off",
    ]
    for name, tags in sections.items():
        assert tags[:2] == ["h2", "p"], name
        assert "details" in tags, name
    with_figures = {name for name, tags in sections.items() if "svg" in tags}
    assert with_figures == {
        "tree",
        "change",
        "calibration",
        "validation",
        "stability",
        "candidates",
        "comparison",
        "robustness",
        "separation",
        "card",
    }


def test_verdicts_pass_fail_and_not_measured(found):
    verdicts = {one["name"]: one["verdict"] for one in found.data["verdict"]}
    assert verdicts == {
        "min_accuracy": "pass",
        "max_leaves": "fail",
        "max_epsilon": "not measured",
    }
    assert [one["name"] for one in found.failed] == ["max_leaves", "max_epsilon"]
    assert "✗ fail" in found.html
    assert "? not measured" in found.html
    assert "not measured" in str(found)


def test_every_limit_is_found_where_it_is_measured(case, found, tmp_path):
    ledger = st.Ledger(tmp_path / "a.ledger", budget=2.0)
    ledger.spend(0.5, "tree")
    everything = dict.fromkeys(RULES, 1)
    rows = make_rows(600, 1)  # enough of each class in each town to compare them
    full = st.report(
        case["model"],
        *rows,
        previous=case["old"],
        train=case["train"],
        by=["town"],
        ledger=ledger,
        limits=everything,
    )
    values = {one["name"]: one["value"] for one in full.data["verdict"]}
    assert None not in values.values()
    assert values["max_epsilon"] == 0.5
    assert values["min_accuracy"] == case["model"].score(*rows)
    assert full.data["privacy"]["ledger"]["left"] == 1.5


def test_private_models_show_their_guarantee_and_a_curve(case):
    X, y = case["rows"]
    schema = st.Schema(
        {"age": (0, 120), "income": (0, 20_000)},
        {"town": ["Bonn", "Köln", "Ulm"]},
        classes=["ill", "well"],
    )
    model = st.PrivateTreeClassifier(1.0, schema, "greedy", testing_seed=0).fit(*case["train"])
    shown = st.report(model, X, y, quick=False).data["privacy"]
    assert shown["statement"] == model.privacy_.to_dict()
    assert shown["epsilon"] == 1.0
    assert [point["epsilon"] for point in shown["curve"]] == [0.1, 0.3, 1.0, 3.0, 10.0]


def test_quick_leaves_out_slow_sections(case):
    data = st.report(case["model"], *case["rows"], train=case["train"], quick=True).data
    assert data["stability"] is data["robustness"] is data["separation"] is None


def test_columns_that_the_perturbation_does_not_change_are_named(case):
    noise = st.Perturbation(radius={"age": 2.0})
    made = st.report(case["old"], *case["rows"], perturbation=noise, quick=True)
    asked = {case["old"].tree_.space.names[k] for k in case["old"].tree_.feature if k >= 0}
    fixed = sorted(asked - {"age"}, key=case["old"].tree_.space.names.index)
    expected = (
        f"The perturbation does not change {len(fixed)} of the {len(asked)} columns that the tree "
        f"uses: {', '.join(fixed)}."
    )
    assert fixed
    assert made.data["robustness"]["note"] == expected
    assert expected in made.html
    assert expected in " ".join(str(made).split())


@pytest.mark.parametrize("size", [3, 10])
def test_a_scorecard_of_any_size_is_reported_on(case, size):
    model = st.RiskScoreClassifier("logistic", noise=0.02, max_conditions=size, random_state=0)
    X, y = case["rows"]
    found = st.report(model.fit(*case["train"]), X, y, train=case["train"])
    data = found.data
    assert data["kind"] == "card"
    assert model.card_.n_conditions == size
    assert measurements(data["readings"]["accuracy"])["accuracy"] == model.score(X, y)
    noise = st.Perturbation(**data["robustness"]["perturbation"])
    certified = measurements(data["robustness"]["readings"])["worst-case accuracy"]
    assert certified == st.certify(model, X, y, noise).worst_case_accuracy
    again = measurements(data["readings"]["refits"])
    assert 50 < again["least same answers"] <= again["same answers"] <= 100
    assert next(one["own"] for one in data["stability"]["columns"])
    assert (data["tree"], data["change"]) == (None, None)
    still = st.Perturbation(radius={model.feature_names_in_[0]: 1e-3})
    note = st.report(model, X, y, perturbation=still, quick=True).data["robustness"]["note"]
    asked = {model.feature_names_in_[c.feature] for c in model.card_.conditions}
    still = f"{len(asked - {model.feature_names_in_[0]})} of the {len(asked)} columns"
    assert note.startswith(f"The perturbation does not change {still} that the risk score uses")
    assert data["card"]["text"] in str(found)
    assert "Can this risk score be trusted?" in found.html
    assert (
        "how much the risk score changes when it is retrained"
        in st.report(model, X, y, quick=True).html
    )
    for formatted in ("this tree", "The tree", "the tree "):
        assert formatted not in found.html.split('<script type="application/json"')[0]


def test_the_learner_must_fit_the_kind_of_model(case):
    tree, card = case["model"], case["card"]
    with pytest.raises(ValueError, match="learner fits trees, but the model is a risk score"):
        st.report(card, *case["rows"], train=case["train"], learner=tree)
    with pytest.raises(ValueError, match="learner fits risk scores, but the model is a tree"):
        st.report(tree, *case["rows"], train=case["train"], learner=card)


def test_a_scorecard_on_its_training_rows_is_noted(case):
    X, y = case["train"]
    assert st.report(case["card"], X, y, quick=True).data["origin"]["seen"]
    assert not st.report(case["card"], X[1:], y[1:], quick=True).data["origin"]["seen"]
    assert st.report(case["card"].card_, X, y, quick=True).data["origin"]["seen"]
    bare = replace(case["card"].card_, risk_table=None)  # knows of no rows
    assert not st.report(bare, X, y, quick=True).data["origin"]["seen"]
    other = np.where(np.arange(len(y)) == 0, "ill" if np.asarray(y)[0] == "well" else "well", y)
    assert not st.report(case["card"], X, other, quick=True).data["origin"]["seen"]


def test_changes_are_shown_for_small_scorecards_only(case):
    found = st.report(case["card"], *case["rows"], previous=case["old"], quick=True)
    assert found.data["change"]["rows"]["n_rows"] == len(case["rows"][1])
    large = st.RiskScoreClassifier("logistic", noise=0.0, random_state=0).fit(*case["train"])
    assert large.card_.n_conditions > 8
    with pytest.raises(ValueError, match="risk scores of up to 8 conditions, but this one has 10"):
        st.report(large, *case["rows"], previous=case["old"], quick=True)


def test_html_in_names_and_values_is_escaped():
    names = (SCRIPT, f"b{SCRIPT}", f"</style>{SCRIPT}")
    X, y = make_rows(150, 0, names)
    X[names[2]] = X[names[2]].map(lambda town: f'{town}"{SCRIPT}')
    y = np.where(y == "ill", f"</script>{SCRIPT}", "<img src=x onerror=alert(1)>")
    half = np.arange(150) < 75
    model = st.StableTreeClassifier(3, 0, random_state=0).fit(X[half], y[half])
    old = st.StableTreeClassifier(1, 0, random_state=0).fit(X[half], y[half])
    card = st.RiskScoreClassifier(noise=0.02, max_conditions=3).fit(X[half], y[half])
    found = st.report(
        model,
        X[~half],
        y[~half],
        title=SCRIPT,
        sign_off={
            "owner": SCRIPT,
            "intended_use": SCRIPT,
            "version": SCRIPT,
            "decision": SCRIPT,
            "signatures": [{"name": SCRIPT, "role": SCRIPT, "date": SCRIPT}],
        },
        previous=old,
        train=(X[half], y[half]),
        by=[names[2]],
        card=card,
        comparison=st.compare({SCRIPT: old, "b": old}, X, y, n_folds=2),
    )
    body = found.html
    start = body.index(START) + len(START)
    assert "<" not in body[start : body.index(END, start)]
    assert SCRIPT not in body
    assert "<img" not in body
    assert body.count("<script") == body.count("</script>") == 2  # the data and the page's own
    assert body.count("</style>") == body.count("<style>")


def test_large_data_are_sampled_and_the_note_states_it(monkeypatch, case):
    monkeypatch.setattr("steadytree.reporting.stability.MOST_ROWS", 50)
    monkeypatch.setattr("steadytree.reporting.robustness.MOST_CERTIFIED", 50)
    monkeypatch.setattr("steadytree.reporting.sections.MOST_SEPARATED", 40)
    found = st.report(case["model"], *case["rows"], train=case["train"])
    sampled = "Measured on 50 of 120 rows, drawn by chance."
    assert found.data["robustness"]["note"].startswith(sampled)
    assert sampled in str(found)
    assert found.data["stability"]["n_rows"] == 50
    assert "Measured on 40 of 120 rows" in found.html


def test_unknown_groups_are_refused(case):
    with pytest.raises(ValueError, match="by names 'twon'"):
        st.report(case["model"], *case["rows"], by=["twon"])
    with pytest.raises(ValueError, match="120 different values"):
        st.report(case["model"], *case["rows"], by=["age"])


def test_a_tree_in_use_stays_fitted_when_its_learner_is_fitted_again(case):
    model = st.RetrainedTreeClassifier(case["old"], n_repeats=1)
    again = st.refits(model, *case["train"], repeats=2)
    with_tree = st.RetrainedTreeClassifier(case["old"].tree_, case["old"], n_repeats=1)
    assert (
        again.distances.tolist()
        == st.refits(with_tree, *case["train"], repeats=2).distances.tolist()
    )
    assert st.average_sensitivity(model, *case["train"], repeats=2).distances.shape == (1, 2)
