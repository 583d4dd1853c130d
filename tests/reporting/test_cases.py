"""The script of a page decides, prices and turns decisions as the package does."""

import json
from importlib.resources import files

import numpy as np
import pytest
from sklearn.datasets import load_iris

import steadytree as st
from steadytree.data.table import Table
from steadytree.reporting.cases import MOST_CASES, build_cases
from steadytree.reporting.formatting import label_text
from steadytree.reporting.options import ReportOptions
from tests.models.scorecards import random_card, random_rows_of_card
from tests.models.trees import random_rows, random_tree, typed_rows
from tests.reporting.browser import Browser, find_browser
from tests.robustness import test_certify
from tests.robustness.reference_attack import random_perturbation

PAGE = """<!doctype html><meta charset="utf-8">
<script type="application/json" id="steadytree-data">{}</script><script>{}</script>"""
in_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no chromium is installed"),
]


def random_case(rng, n=12):
    if rng.integers(2):
        model = random_tree(rng, int(rng.integers(2, 9)), 2, 2, int(rng.integers(2, 4)))
        return model, test_certify.whole_where_declared(model, random_rows(rng, model, n))
    model = random_card(rng, int(rng.integers(1, 6)), 2, 1, int(rng.integers(2, 4)))
    return model, typed_rows(model.space, random_rows_of_card(rng, model, n))


def cases_of(model, rows, **options):
    truth = np.zeros(len(rows), np.int64)
    made = ReportOptions(**options)
    return build_cases(model, Table.read(rows), truth, made, is_private=False)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(find_browser(), tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("stated", [True, False], ids=["stated", "default"])
class TestScript:
    pytestmark = in_browser

    def test_says_what_explain_says(self, browser, tmp_path, seed, stated):
        rng = np.random.default_rng(seed)
        model, rows = random_case(rng)
        noise = random_perturbation(rng, model.space) if stated else None
        previous, _ = random_case(rng) if seed % 3 == 0 else (None, None)
        if previous is not None and not set(previous.space.names) <= set(rows.columns):
            previous = None
        cases = cases_of(model, rows, perturbation=noise, previous=previous)
        if cases is None:  # a card without conditions that matter
            return
        script = (files("steadytree.reporting") / "templates/report.js").read_text("utf-8")
        data = {"cases": cases, "robustness": None, "tree": None}
        path = tmp_path / "page.html"
        path.write_text(PAGE.format(json.dumps(data).replace("<", "\\u003c"), script), "utf-8")
        browser.open(path.as_uri(), 800)
        assert browser.complaints() == []
        for one in cases["rows"]:
            found = browser.run(f"steadytree.explain({json.dumps(one['values'])})")
            row = rows.iloc[[one["row"]]]
            self.compare(
                found, st.explain(model, row, perturbation=noise, previous=previous), model
            )
            self.check_ends(found, model, cases, one["values"], row)

    def compare(self, found, expected, model):
        classes = model.classes.tolist()
        assert classes[found["decision"]] == expected.decision
        assert found["share"] == pytest.approx(expected.probability, abs=1e-12)
        assert found["interval"] == pytest.approx(expected.interval, abs=1e-9)
        stages = [(one["text"], one["holds"]) for one in found["stages"]]
        assert stages == [(one.text, one.holds) for one in expected.path]
        sizes = [one["size"] for one in found["changes"]]
        expected_sizes = [one.size for one in expected.changes]
        assert len(sizes) >= 1 if expected.changes else not sizes
        if sizes:
            assert sizes[0] == pytest.approx(expected_sizes[0], rel=1e-12, abs=1e-12)
            # where several changes are least, either may be named first, and again by itself
            assert set(np.round(sizes, 9)) == set(np.round(expected_sizes, 9))
        inside = np.inf if found["inside"] is None else found["inside"]
        assert inside == pytest.approx(expected.inside, rel=1e-12, abs=1e-12)
        if expected.previous is not None:
            assert found["before"]["share"] == pytest.approx(expected.previous_probability)

    def check_ends(self, found, model, cases, values, row):
        """The model does decide otherwise at the end of each change."""
        names = [column["name"] for column in cases["columns"]]
        own = np.asarray(model.space.encode(row), float)[0]
        for change in found["changes"]:
            moved = own.copy()
            for j, end in change["ends"].items():
                moved[model.space.names.index(names[int(j)])] = np.nan if end is None else end
            if isinstance(model, st.Tree):
                label = model.label[model.apply_encoded(moved[None])[0]]
            else:
                label = model.answer_encoded(moved[None])[0]
            assert label == change["decision"] != found["decision"]


def test_rows_to_pick_are_few_and_hold_their_values():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = st.StableTreeClassifier(2, 0, random_state=0).fit(X, y)
    cases = cases_of(model.tree_, X)
    used = [column["name"] for column in cases["columns"]]
    assert 10 <= len(cases["rows"]) <= MOST_CASES
    for row in cases["rows"]:
        assert row["values"] == X.iloc[row["row"]][used].tolist()
        assert row["actual"] == label_text(0)
    assert cases["example"]["decision"] == model.predict(X.iloc[[cases["example"]["row"]]])[0]


def test_half_of_the_rows_to_pick_are_wrong_where_there_are_as_many():
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = st.StableTreeClassifier(2, 0, random_state=0).fit(X, y).tree_
    truth = y.to_numpy().copy()
    truth[::2] = (truth[::2] + 1) % 3  # half of the rows are wrong
    cases = build_cases(tree, Table.read(X), truth, ReportOptions(), is_private=False)
    picked = [row["row"] for row in cases["rows"]]
    right = tree.predict(X.iloc[picked]) == truth[picked]
    assert (right.sum(), len(picked), len(set(picked))) == (15, 30, 30)


def test_no_row_of_a_private_model_is_in_the_page():
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = st.StableTreeClassifier(2, 0, random_state=0).fit(X, y).tree_
    truth = np.zeros(len(X), np.int64)
    cases = build_cases(tree, Table.read(X), truth, ReportOptions(), is_private=True)
    assert cases["rows"] == []
    assert cases["example"] is None


def test_a_tree_that_is_too_large_has_no_cases():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000)
    tree = st.StableTreeClassifier(14, 0, random_state=0).fit(X, y).tree_
    assert tree.n_nodes > 600
    assert cases_of(tree, X) is None


def test_a_single_leaf_has_no_cases():
    tree = st.StableTreeClassifier(1, 0, random_state=0).fit([[0.0]] * 5, ["a"] * 5).tree_
    assert cases_of(tree, [[0.0]] * 5) is None
