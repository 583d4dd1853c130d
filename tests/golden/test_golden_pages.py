"""Reports, comparisons, differences and pictures are what they were, figure by figure."""

import json
import re

import numpy as np
import pytest

import steadytree as st
from tests.golden.golden_data import MAKERS, schema_of
from tests.golden.golden_models import card_of, rounded, tree_of

DATE = "2024-02-29"
LONG = re.compile(r"\d+\.\d{8,}(?:e-?\d+)?")  # numbers within text
LIMITS = {"min_accuracy": 0.75, "max_leaves": 4, "min_group_accuracy": 0.7}


@pytest.fixture
def fixed_date():
    """For pages that do not take a date: the day they say they were made."""
    return lambda text: re.sub(r"\b20\d\d-\d\d-\d\d\b", DATE, text)


@pytest.fixture
def patients():
    return MAKERS["patients"]()


def as_json(data):
    return json.dumps(rounded(data), indent=1, ensure_ascii=False)


def as_lines(page):
    """A page with each element on a line, styles and scripts shortened to their length.

    Data are rounded before: the last digits of a number depend on the processor.
    """

    def shortened(found):
        text = found[2]
        if "application/json" in found[1]:
            text = json.dumps(rounded(json.loads(text)))
        return f"{found[1]}({len(text)} characters){found[3]}"

    page = re.sub(r"(<style[^>]*>)(.*?)(</style>)", shortened, page, flags=re.S)
    page = re.sub(r"(<script[^>]*>)(.*?)(</script>)", shortened, page, flags=re.S)
    return "\n".join(line.strip() for line in page.replace("><", ">\n<").splitlines())


def check(golden, name, report):
    golden(f"report-{name}.json", as_json(report.data))
    golden(f"report-{name}.html", as_lines(report.html))
    golden(f"report-{name}.txt", str(report))


# ---- reports ----
def test_report_on_a_tree(golden, same_everywhere):
    rows = MAKERS["wine"]()
    tree = tree_of(rows)
    check(golden, "tree", st.report(tree, rows.X, rows.y, date=DATE, title="Wine & <more>"))


def test_report_with_all_that_can_be_asked(golden, same_everywhere, patients):
    X, y, _ = patients
    previous = tree_of(patients, max_depth=2, epsilon=0)
    report = st.report(
        tree_of(patients),
        X,
        y,
        previous=previous,
        train=(X, y),
        perturbation=st.Perturbation(radius={"age": 2.0, "dose": 0.5}, frozen=["sex"]),
        limits=LIMITS,
        by=["sex", "ward"],
        date=DATE,
    )
    check(golden, "all", report)


def test_report_on_a_card(golden, same_everywhere, patients):
    X, y, _ = patients
    card = card_of(patients)
    noise = st.Perturbation(radius={"age": 2.0})
    report = st.report(card, X, y, perturbation=noise, by="sex", date=DATE)
    check(golden, "card", report)


def test_report_on_a_tree_and_a_card_beside_it(golden, same_everywhere):
    rows = MAKERS["tumours"]()
    card = card_of(rows)
    found = st.compare(["stable", "score"], rows.X, rows.y, n_folds=2, max_depth=3)
    report = st.report(
        tree_of(rows), rows.X, rows.y, card=card, comparison=found, quick=True, date=DATE
    )
    check(golden, "beside", report)


def test_report_on_a_private_tree(golden, same_everywhere, patients, tmp_path):
    pytest.importorskip("opendp")
    ledger, schema = st.Ledger(tmp_path / "spent.ledger", 5.0), schema_of(patients)
    model = st.PrivateTreeClassifier(2.0, schema, ledger=ledger, testing_seed=1)
    model.fit(patients.X, patients.y)
    more = {"ledger": ledger, "schema": schema, "quick": True, "date": DATE}
    check(golden, "private", st.report(model, patients.X, patients.y, **more))


# ---- comparisons ----
def test_comparison(golden, same_everywhere, fixed_date, patients):
    noise = st.Perturbation(radius={"age": 2.0})
    found = st.compare(
        ["stable", "score"], *patients[:2], n_folds=3, max_depth=3, perturbation=noise
    )
    golden("comparison.json", as_json(found.formatted))
    golden("comparison.html", fixed_date(as_lines(found.html)))
    golden("comparison.txt", str(found))


# ---- differences ----
@pytest.mark.parametrize("rows", ["with rows", "without rows"])
def test_difference(golden, patients, rows):
    old = tree_of(patients, max_depth=2, epsilon=0)
    new = tree_of(patients, max_depth=3, epsilon=0.1)
    name = f"difference-{rows.replace(' ', '-')}"
    found = st.diff(old, new, *(patients[:2] if rows == "with rows" else ()))
    golden(f"{name}.txt", str(found))
    golden(f"{name}.svg", as_lines(found.svg))
    golden(f"{name}.json", as_json(found.formatted))


# ---- pictures ----
def test_pictures_of_trees_and_cards(golden, patients):
    X, y, _ = patients
    golden("tree.svg", as_lines(st.plot(tree_of(patients), X, y).svg))
    model = card_of(patients)
    golden("card.svg", as_lines(st.plot(model).svg))
    golden("card.txt", str(st.plot(model)))
    golden("card.html", as_lines(st.plot(model, title="Ill?").html))
    golden("card.sql", model.card_.to_sql())


# ---- figures of the measures ----
def test_figures_of_measures(golden, patients):
    X, y, _ = patients
    model, other = tree_of(patients), tree_of(patients, max_depth=2, epsilon=0)
    noise = st.Perturbation(radius={"age": 2.0, "dose": 0.5})
    greedy = st.StableTreeClassifier(2, 0.1, n_thresholds=20, random_state=0)
    certificate = st.certify(model, X, y, noise)
    again = st.refits(greedy, X, y, repeats=4)
    distances = {kind: float(st.tree_distance(model, other, kind)) for kind in ("path", "node")}
    found = {
        "complexity": str(st.complexity(model, X)),
        "distances": distances,
        "worst-case accuracy": float(certificate.worst_case_accuracy),
        "certified": str(certificate),
        "calibration": st.calibration(model, X, y).to_dict(),
        "groups": st.by_group(model, X, y, X["sex"], "sex").to_dict(),
        "sensitivity": str(st.average_sensitivity(greedy, X, y, seeds=2)),
        "retraining": again.distances.tolist(),
        "shift": st.shift_accuracy(model, X, y, 0.9, repeats=50, random_state=0).stays_right.mean(),
        "separation": str(st.separation(X[["age"]].to_numpy(), np.asarray(y), r=0.5)),
    }
    golden("measures.json", LONG.sub(lambda number: f"{float(number[0]):.7g}", as_json(found)))
