"""Pages in a real browser: nothing cut, nothing overlapping, nothing fetched.

Needs Chromium (`make test-browser` says how to get it). With STEADYTREE_SHOTS naming a folder,
screenshots and printed pages are kept there to be looked at.
"""

import os
import pathlib
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from tests.cli.commands import steadytree
from tests.reporting.browser import Browser, find_browser
from tests.reporting.svg.test_scorecard import long_names

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no chromium is installed"),
]
WIDTHS = (1280, 390)

MEASURE = """
(() => {
  const found = {wide: document.documentElement.scrollWidth - innerWidth, cut: [], over: [],
                 empty: [], outside: []};
  const shown = e => e.getClientRects().length > 0 && getComputedStyle(e).visibility != "hidden";
  for (const svg of document.querySelectorAll("svg")) {
    if (!shown(svg)) continue;
    const box = svg.getBoundingClientRect();
    const marks = svg.querySelectorAll("path, rect, circle, line").length;
    if (box.width < 50 || box.height < 20 || marks < 2) found.empty.push(svg.ariaLabel);
    const texts = [...svg.querySelectorAll("text")].filter(t => t.textContent.trim());
    const boxes = texts.map(t => [t.getBoundingClientRect(), t.textContent]);
    for (const [b, t] of boxes)
      if (b.left < box.left - 2 || b.right > box.right + 2 || b.top < box.top - 2 ||
          b.bottom > box.bottom + 2) found.cut.push(svg.ariaLabel + ": " + t);
    for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
      const [a, b] = [boxes[i][0], boxes[j][0]];
      const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (x > 2 && y > 4) found.over.push(svg.ariaLabel + ": " + boxes[i][1] + " | " + boxes[j][1]);
    }
  }
  for (const img of document.querySelectorAll("img"))
    if (!img.complete || img.naturalWidth < 50) found.empty.push(img.alt);
  for (const e of document.querySelectorAll("h1, h2, h3, p, li, td, th, summary, figcaption")) {
    if (!shown(e) || e.closest(".scroll, .picture, .chart, pre, svg")) continue;
    const b = e.getBoundingClientRect();
    if (b.right > innerWidth + 1) found.outside.push(e.tagName + ": " + e.textContent.slice(0, 40));
  }
  return found;
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(find_browser(), tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def halves():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X["ward"] = np.where(X["mean area"] > 600, "north", "south")
    y = np.where(y == 1, "benign", "malignant")
    rows = np.random.default_rng(0).permutation(len(y))
    return (X.iloc[rows[:300]], y[rows[:300]]), (X.iloc[rows[300:]], y[rows[300:]])


def retraining(halves, path):
    """A tree that was retrained, beside the one in use."""
    train, rows = halves
    old = st.StableTreeClassifier(4, 0, random_state=0).fit(*rows)
    model = st.RetrainedTreeClassifier(old, n_repeats=1).fit(*train)
    limits = {"min_accuracy": 0.9, "max_flips": 0.01, "max_epsilon": 1}
    st.report(
        model, *rows, path, previous=old, train=train, by=["ward"], limits=limits, title="Quarter 2"
    )


def sign_off(halves, path):
    """A tree signed off for noise, with a card and other learners beside it."""
    train, rows = halves
    numbers = train[0].drop(columns="ward")
    noise = st.Perturbation(radius=dict(numbers.std() / 20))
    model = st.StableTreeClassifier(4, 0, random_state=0).fit(numbers, train[1])
    card = st.RiskScoreClassifier(noise=0.02, max_conditions=5, random_state=0)
    card.fit(numbers, train[1])
    beside = st.compare(["cart", "stable", "score"], numbers, train[1], n_folds=3)
    judged = rows[0].drop(columns="ward"), rows[1]
    limits = {"min_worst_case_accuracy": 0.5}
    st.report(model, *judged, path, perturbation=noise, card=card, comparison=beside, limits=limits)


def ward_card(halves, path):
    """A card of ten conditions by itself."""
    train, rows = halves
    model = st.RiskScoreClassifier("logistic", noise=0.02, random_state=0).fit(*train)
    st.report(model, *rows, path, train=train, by=["ward"], limits={"min_accuracy": 0.9})


def long_sheet(halves, path):
    """A sheet with 20 bands and long names of everything."""
    st.plot(long_names()).write(path)


def hospitals(halves, path):
    """A private tree with its ledger."""
    train, rows = halves
    names = ["mean radius", "mean texture", "worst area"]
    bounds = {"mean radius": (0, 40), "mean texture": (0, 50), "worst area": (0, 5000)}
    schema = st.Schema(bounds, classes=["benign", "malignant"])
    ledger = st.Ledger(path.parent / "a.ledger", budget=3.0)
    model = st.PrivateTreeClassifier(1.0, schema, "greedy", ledger=ledger)
    model.fit(train[0][names], train[1])
    st.report(model, rows[0][names], rows[1], path, limits={"max_epsilon": 1})


def many_leaves(halves, path):
    """A tree of 60 leaves over columns with long names."""
    rng = np.random.default_rng(0)
    long = "a measurement whose name says what it is, how it was taken and in which unit"
    X = pd.DataFrame(rng.normal(size=(4000, 5)), columns=[f"{long} ({k})" for k in range(5)])
    y = rng.choice(["an outcome with a rather long name", "b"], 4000)
    model = DecisionTreeClassifier(max_leaf_nodes=60, random_state=0).fit(X, y)
    st.report(model, X[:900], y[:900], path, quick=True)


def compared(halves, path):
    """All learners side by side."""
    X, y = halves[0]
    names = ["cart", "stable", "pareto", "robust", "score", "private"]
    st.compare(names, X.iloc[:, :8], y, n_folds=2, time_limit=0.5, path=path)


def reproduced(halves, path):
    """A paper's study, run again as the command does."""
    few = ("--samples", "2", "--seeds", "2", "--repeats", "5")
    asked = ("reproduce", "average-sensitivity", "--quick", *few, "--out", "out")
    code, _, err = steadytree(path.parent, *asked)
    assert code == 0, err
    (path.parent / "out" / "study.html").rename(path)


PAGES = {
    "retraining": (retraining, {"change", "stability", "groups", "robustness", "calibration"}),
    "sign_off": (sign_off, {"robustness", "comparison", "card", "separation"}),
    "ward_card": (ward_card, {"card", "stability", "robustness", "calibration", "groups"}),
    "long_sheet": (long_sheet, set()),
    "hospitals": (hospitals, {"privacy"}),
    "many_leaves": (many_leaves, {"tree", "rules"}),
    "compared": (compared, {"comparison"}),
    "reproduced": (reproduced, {"pictures", "tables", "kept", "limits", "origin"}),
}


@pytest.fixture(scope="module", params=PAGES)
def page(request, halves, tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / f"{request.param}.html"
    make, sections = PAGES[request.param]
    make(halves, path)
    return path, sections


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_is_cut_or_fetched(browser, page, width, dark):
    path, sections = page
    browser.open(path.as_uri(), width, dark)
    keep(f"{path.stem}-{width}{'-dark' if dark else ''}.png", browser.picture(width))
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]
    listed = set(browser.run("[...document.querySelectorAll('section')].map(s => s.id)"))
    assert sections <= listed
    found = browser.run(MEASURE)
    assert found["wide"] <= 0
    assert found["outside"] == []
    assert found["empty"] == []
    assert found["cut"] == []
    assert found["over"] == []


def test_folds_open_without_scripts_and_stay_within_the_page(browser, page):
    path, _ = page
    browser.open(path.as_uri(), 390)
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = browser.run(MEASURE)
    assert found["wide"] <= 0
    assert found["outside"] == []


def test_page_prints(browser, page):
    path, _ = page
    browser.open(path.as_uri(), 1280)
    printed = browser.pdf()
    keep(f"{path.stem}.pdf", printed)
    assert printed.startswith(b"%PDF")
    n_pages = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 1 <= n_pages <= (1 if path.stem == "long_sheet" else 30)


@pytest.fixture(scope="module")
def steady_page(halves, tmp_path_factory):
    path = tmp_path_factory.mktemp("tried") / "tried.html"
    retraining(halves, path)
    return path


def test_a_case_can_be_picked_and_changed(browser, steady_page):
    browser.open(steady_page.as_uri(), 1280)
    shown = "document.getElementById('explanation').textContent"
    first = browser.run(shown)
    browser.run(
        "(() => { const p = document.getElementById('case-pick'); p.selectedIndex = 3;"
        "p.dispatchEvent(new Event('change')); })()"
    )
    second = browser.run(shown)
    assert first != second
    browser.run(
        "(() => { const f = [...document.querySelectorAll('#case-form input')];"
        "f.forEach(one => { one.value = ''; });"
        "f[0].dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    assert "missing" in browser.run(shown)
    assert browser.run("document.querySelectorAll('#tree .on-path').length") > 1
    assert browser.complaints() == []


def test_sliders_show_the_figures_of_the_data(browser, steady_page):
    browser.open(steady_page.as_uri(), 1280)
    data = "JSON.parse(document.getElementById('steadytree-data').textContent)"
    steps = browser.run(f"{data}.robustness.steps")
    for k in (0, 10, 40):
        browser.run(
            f"(() => {{ const s = document.getElementById('noise-slider'); s.value = {k};"
            "s.dispatchEvent(new Event('input')); })()"
        )
        shown = browser.run("document.getElementById('noise-accuracy').textContent")
        assert shown == f"{100 * steps['certified_accuracy'][k]:.1f} %"
    listed = browser.run(f"{data}.stability.candidates.map(one => one.n_leaves)")
    for k, n_leaves in enumerate(listed):
        browser.run(
            f"(() => {{ const s = document.getElementById('candidate-slider'); s.value = {k};"
            "s.dispatchEvent(new Event('input')); })()"
        )
        shown = browser.run(
            "[...document.querySelectorAll('.candidate')].filter(c => !c.hidden)"
            ".map(c => c.querySelector('figcaption').textContent)"
        )
        assert len(shown) == 1
        assert shown[0].startswith(f"{n_leaves} leaves")


def test_another_script_does_not_run(browser, steady_page):
    path = steady_page.with_name("evil.html")
    page = steady_page.read_text("utf-8")
    path.write_text(page.replace("</body>", "<script>window.evil = 1</script></body>"), "utf-8")
    browser.open(path.as_uri(), 1280)
    assert browser.run("window.evil === undefined && window.steadytree !== undefined")


def keep(name, content):
    folder = os.environ.get("STEADYTREE_SHOTS")
    if folder:
        pathlib.Path(folder, name).write_bytes(content)
    else:
        assert len(content) > 10_000
