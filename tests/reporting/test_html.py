import base64
import hashlib
import html.parser
import json
import re
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from steadytree.reporting import html as pages
from steadytree.reporting.build import build_report
from steadytree.reporting.html import render_html
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.text import indented_rules, leaf_rules, render_text
from steadytree.stability.stable_tree import StableTreeClassifier

EVIL = '</script><script>alert("1")</script><img src=x onerror=alert(1)>'
SECTIONS = ["findings", "short", "tree", "case", "accuracy", "calibration", "validation"]
SECTIONS += [
    "groups",
    "robustness",
    "separation",
    "complexity",
    "rules",
    "data",
    "limits",
    "origin",
    "sign-off",
]
VOID = {"meta", "br", "img", "input", "link", "hr"}


class Page(html.parser.HTMLParser):
    """Elements with their attributes, and whether all of them are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts = [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)


def mixed_data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            EVIL: rng.normal(size=n),
            "town": rng.choice(["Ulm", EVIL, "Bonn & co"], n),
            "age": rng.integers(18, 90, n).astype(float),
        }
    )
    X.loc[::9, "age"] = np.nan
    y = np.where(X[EVIL] + (X["town"] == EVIL) > 0.5, EVIL, "no")
    return X, y


@pytest.fixture(scope="module")
def data():
    X, y = mixed_data()
    model = StableTreeClassifier(max_depth=4, epsilon=0, random_state=0).fit(X[:200], y[:200])
    return build_report(model, X[200:], y[200:], ReportOptions(title=EVIL))


@pytest.fixture(scope="module")
def page(data):
    return render_html(data)


def test_page_has_all_sections_each_with_a_fold(page):
    found = Page(page)
    assert [a["id"] for tag, a in found.elements if tag == "section"] == SECTIONS
    assert found.texts.count("How to read this") == len(SECTIONS)


def test_page_runs_one_script_and_fetches_nothing(page):
    found = Page(page)
    scripts = [attributes for tag, attributes in found.elements if tag == "script"]
    assert [script.get("type") for script in scripts] == ["application/json", None]
    assert not {tag for tag, _ in found.elements} & {"img", "link", "iframe", "object", "base"}
    for _, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        assert attributes.get("href", "#").startswith("#")
    assert "http" not in page.replace("http-equiv", "")
    assert "@import" not in page
    assert "url(" not in page


def test_policy_lets_the_script_of_the_page_run_and_nothing_else(page):
    script = re.search(r"<script>(.*?)</script>", page, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    metas = [attributes for tag, attributes in Page(page).elements if tag == "meta"]
    policies = [one["content"] for one in metas if "http-equiv" in one]
    assert len(policies) == 1
    assert policies[0].startswith(f"default-src 'none'; script-src 'sha256-{digest}'; ")
    assert "unsafe-inline" not in policies[0].replace("style-src 'unsafe-inline'", "")


def test_contents_name_every_section(page):
    links = [a["href"] for tag, a in Page(page).elements if tag == "a"]
    assert links == [f"#{name}" for name in SECTIONS]


def test_names_and_values_are_escaped(page):
    assert "<script>alert" not in page
    assert "<img" not in page
    assert EVIL in "".join(Page(page).texts)


def test_embedded_json_is_the_data(page, data):
    embedded = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)[1]
    assert json.loads(embedded) == data


def test_every_number_is_on_the_page(page, data):
    texts = Page(page).texts
    for measurements in data["readings"].values():
        for reading in measurements:
            assert reading["shown"] in texts
            assert reading["shown_interval"] in texts or not reading["shown_interval"]
    for counts in data["confusion"]["counts"]:
        assert all(f"{count:,}" in texts for count in counts)


def test_page_is_made_of_the_dict_alone(data):
    assert render_html(json.loads(json.dumps(data))) == render_html(data)


def test_large_trees_stay_small_pages():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10_000, 6)), rng.integers(0, 3, 10_000)
    model = DecisionTreeClassifier().fit(X, y)
    page = render_html(build_report(model, X, y))
    assert len(page.encode()) < 1_500_000
    assert "too many to draw" in page


@pytest.mark.parametrize("n_classes", [2, 30, 200])
def test_many_classes_fit_on_a_page(n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 2)), np.arange(1000) % n_classes
    data = build_report(DecisionTreeClassifier(max_depth=5).fit(X, y), X, y)
    Page(render_html(data))
    assert render_text(data)


def test_a_single_leaf_has_a_page():
    data = build_report(DecisionTreeClassifier().fit([[0.0]], ["a"]), [[1.0]], ["a"])
    Page(render_html(data))
    assert "always" in render_html(data)


def test_terminal_text_says_the_same(data):
    text = render_text(data)
    for measurements in data["readings"].values():
        for reading in measurements:
            assert reading["shown"] in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_square_brackets_are_no_markup():
    data = build_report(
        DecisionTreeClassifier().fit(pd.DataFrame({"[red]x[/red]": [0.0, 1.0]}), ["[b]", "c"]),
        pd.DataFrame({"[red]x[/red]": [0.0, 1.0]}),
        ["[b]", "c"],
    )
    assert "[red]x[/red] = 0?" in render_text(data)
    assert "[b]" in render_text(data)


def test_rules_of_the_leaves_cover_every_row_once(data):
    rules = leaf_rules(data["tree"])
    assert sum(rule["n_rows"] for rule in rules) == data["data"]["n_rows"]
    right = sum(rule["n_correct"] for rule in rules)
    assert right / data["data"]["n_rows"] == data["readings"]["accuracy"][0]["value"]


def test_indented_rules_have_a_line_a_node(data):
    lines = indented_rules(data["tree"]).splitlines()
    assert len(lines) == len(data["tree"]["nodes"])
    for line, node in zip(lines, data["tree"]["nodes"], strict=True):
        assert len(line) - len(line.lstrip("│ ├└─")) == 3 * node["depth"]


def test_compiled_templates_are_kept_where_they_can_be_and_never_needed(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    page = pages._environment.__wrapped__().get_template("short.html.j2").filename
    for folder in (tmp_path / "kept", tmp_path / "file" / "below"):
        (tmp_path / "file").write_text("no folder", "utf-8")
        monkeypatch.setattr(pages, "COMPILED", folder)
        for _ in range(2):  # compiled, then read
            assert pages._environment.__wrapped__().get_template("short.html.j2").filename == page
    assert list((tmp_path / "kept").iterdir())
