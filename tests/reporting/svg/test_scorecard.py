"""Risk scores as text, picture and page, and in the command line."""

import json
import pickle
import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.condition import Condition
from steadytree.models.documents import scorecard_from_dict, scorecard_to_dict
from steadytree.models.files import load, save
from steadytree.models.risk_table import RiskGroup, RiskTable
from steadytree.models.scorecard import Scorecard
from steadytree.models.variable import category_conditions, number_conditions
from steadytree.reporting.plot import plot
from steadytree.reporting.svg.canvas import text_width
from steadytree.reporting.svg.scorecard import plot_scorecard
from steadytree.riskscore.risk_score import RiskScoreClassifier
from tests.cli.commands import refused
from tests.models.scorecards import random_card

COMMAND = ("score",)
SPACE = FeatureSpace.declare(bounds={"a <b> & c": (0, 1)})
CARD = Scorecard(SPACE, ["no", "yes"], [Condition(0, "at_least", 0.5)], [3], -1, 2.0, 0.0)
TABLE = RiskTable.of(CARD, np.array([-1, -1, 2]), np.array([0, 0, 1]))
WITH_TABLE = replace(CARD, risk_table=TABLE)


def test_text_holds_every_condition_and_total():
    text = str(plot(WITH_TABLE))
    assert text.splitlines() == [
        "start with      -1",
        "a <b> & c",
        "  < 0.5          0",
        "  ≥ 0.5         +3",
        "  missing        0",
        "above 0: yes, else no",
        "",
        "total           risk    observed    95 % interval    rows",
        "-1              12 %         0 %        0 to 73 %       2",
        "2               98 %       100 %      20 to 100 %       1",
    ]


def test_text_of_several_classes_has_a_column_each():
    card = random_card(np.random.default_rng(0), n_classes=3)
    assert "points for" in str(plot(card))


def texts_of(svg):
    nodes = ElementTree.fromstring(str(svg)).iter()
    return [node.text for node in nodes if node.tag.endswith("text")]


def test_picture_is_whole_and_escaped():
    picture = plot(WITH_TABLE, title="<script>")
    svg = picture.svg
    assert "<script>" not in svg
    assert {"a <b> & c", "≥ 0.5", "+3", "above 0: yes, else no"} <= set(texts_of(svg))
    assert picture._repr_html_() == picture._repr_svg_() == svg
    assert "<script>" not in picture.html
    assert svg in picture.html


def test_picture_of_several_classes_has_points_boxes_and_totals_of_each():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 2)), np.arange(60) % 3
    conditions = [Condition(0, "at_least", 0.5), Condition(1, "below", 0.25)]
    space = FeatureSpace.declare(bounds={"x0": (0, 1), "x1": (0, 1)})
    names = ["red", "green", "blue"]
    card = Scorecard(space, names, conditions, [[1, 0, 2], [0, 4, 0]], [0, -1, 0], 1.0, 0.0)
    svg = plot(replace(card, risk_table=RiskTable.of(card, card.score(X), y))).svg
    texts = texts_of(svg)
    assert {*names, "+1", "+2", "+4", "-1", "Total"} <= set(texts)
    assert {f"Share of {name} by its total" for name in names} <= set(texts)
    boxes = [n for n in ElementTree.fromstring(str(svg)).iter() if n.get("height") == "26"]
    assert sum(n.get("class") == "paper" for n in boxes) == 3


def test_names_and_labels_that_are_not_seen_break_neither_text_nor_picture():
    space = FeatureSpace.declare(bounds={"a\n\x01b": (0, 1)}, categories={"kind": ["", "x"]})
    conditions = [Condition(0, "at_least", 0.5), Condition(1, "among", categories=(0,))]
    card = Scorecard(space, ["", "y\tes"], conditions, [1, 2], 0)
    assert {"a b", "≥ 0.5", '""', "x"} <= set(texts_of(plot(card).svg))
    assert str(plot(card)).splitlines() == [
        "a b",
        "  < 0.5                  0",
        "  ≥ 0.5                 +1",
        "  missing                0",
        "kind",
        "  x                      0",
        '  ""                    +2',
        "  missing or unknown     0",
        "above 0: y es, else (empty)",
    ]


def long_names():
    """A card with 20 bands, long names of columns, categories, classes and groups."""
    names = [f"county of {letter * 9} and its surroundings" for letter in "abcdefghijklmnopqrst"]
    space = FeatureSpace.declare(bounds={"x" * 90: (0, 20)}, categories={"site " * 12: names})
    pairs = number_conditions(0, list(range(1, 20)), list(range(0, 60, 3)), 0)
    pairs += category_conditions(1, [0] * 5 + [30] * 8 + [5] * 7, 2)
    conditions, points = zip(*pairs, strict=True)
    groups = [RiskGroup("a group with a long name " * 3, 0), RiskGroup("high", 40)]
    card = Scorecard(
        space,
        ["no", "an event with a name that is long enough to be broken"],
        conditions,
        points,
        0,
        0.1,
        -4.0,
        decision=40,
        title="A title that is too long for one line of a sheet and for two of them " * 2,
        units={"x" * 90: "millimetres of mercury"},
        risk_groups=groups,
    )
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x" * 90: rng.uniform(0, 20, 500), "site " * 12: rng.choice(names, 500)})
    labels = (rng.random(500) < card.predict_proba(rows)[:, 1]).astype(int)
    return replace(card, risk_table=RiskTable.of(card, card.score(rows), labels))


SIZES = {"title": 20, "quiet": 12, "points small": 12.5, "small": 12.5}


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize(
    "make", [long_names, lambda: random_card(np.random.default_rng(0), n_classes=4)]
)
def test_no_text_leaves_the_sheet(make, narrow):
    root = ElementTree.fromstring(str(plot_scorecard(make(), narrow=narrow)))
    width = float(root.get("width"))
    assert width <= (390 if narrow and make is long_names else 800)
    offsets = []

    def walk(node, x):
        shift = re.match(r"translate\(([-\d.]+)", node.get("transform", ""))
        x += float(shift[1]) if shift else 0.0
        if node.tag.endswith("text"):
            kind = node.get("class", "")
            wide = text_width(node.text, SIZES.get(kind, 14), kind in ("title", "points"))
            at = x + float(node.get("x")) - (wide if node.get("text-anchor") == "end" else 0)
            offsets.append((at, at + wide))
        for child in node:
            walk(child, x)

    walk(root, 0.0)
    assert min(low for low, _ in offsets) >= 0
    assert max(high for _, high in offsets) <= width


def test_every_group_of_categories_can_be_read_whole():
    texts = " ".join(texts_of(plot_scorecard(long_names())))
    missing = [letter for letter in "abcdenopqrst" if f"county of {letter * 9} and" not in texts]
    assert not missing  # those between are "any other"
    assert "any other" in texts


def test_names_that_are_left_out_are_counted():
    """A group of very many long names ends with how many more there are, after whole names."""
    names = [f"ward {k:02d} of the hospital by the river" for k in range(90)]
    space = FeatureSpace.declare(categories={"ward": names})
    pairs = category_conditions(0, [0] * 50 + [3] * 37 + [5] * 3, 3)
    conditions, points = zip(*pairs, strict=True)
    card = Scorecard(space, ["no", "yes"], conditions, points, 0, 0.5, -2.0)
    svg = str(plot_scorecard(card))
    shown = " ".join(texts_of(svg))
    found = re.search(r"(ward 50 .*?) and (\d+) more, listed in the file", shown)
    listed = found[1].split(", ")
    assert listed == names[50 : 50 + len(listed)]
    assert len(listed) + int(found[2]) == 37
    assert all(name in svg for name in names[50:])  # in the tooltip
    assert "…" not in shown
    assert names[-1] in shown
    below = plot(card).html.partition('<section class="below">')[2]
    assert f"<p><b>ward, +3</b>: {', '.join(names[50:87])}</p>" in below
    assert below.count("<p>") == 1
    assert "below" not in plot(CARD).html.partition("<body>")[2]


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize(("points", "slope"), [(1, 0.9), (11, 0.11), (130, 0.009)])
def test_totals_risks_and_intervals_stay_clear_of_each_other(points, slope, narrow):
    ends, bands = [k / 10 for k in range(1, 10)], [k * points for k in range(10)]
    pairs = number_conditions(0, ends, bands, 0)
    conditions, given = zip(*pairs, strict=True)
    card = Scorecard(SPACE, ["no", "yes"], conditions, given, 0, slope, -8.0)
    rows = np.random.default_rng(0).random((5_000, 1))
    table = RiskTable.of(card, card.score(rows), np.arange(5_000) // 4_900)
    svg = plot_scorecard(replace(card, risk_table=table), narrow=narrow)
    lines = {}
    for node in ElementTree.fromstring(str(svg)).iter():
        if node.tag.endswith("text") and "small" in node.get("class", ""):
            wide = text_width(node.text, 12.5, "points" in node.get("class"))
            ends = float(node.get("x")) - wide, float(node.get("x"))
            lines.setdefault(node.get("y"), []).append(ends)
    assert "< 0.1 " in str(svg).replace("&lt;", "<")
    for ends in lines.values():
        assert all(two[0] >= one[1] + 3 for one, two in pairwise(sorted(ends)))


def test_long_points_stay_clear_of_those_before_them():
    card = Scorecard(SPACE, ["a", "b", "c"], [], [], [12345, 0, -54321], 1e-3, 0.0)
    nodes = ElementTree.fromstring(plot(card).svg).iter()
    ends = {n.text: float(n.get("x")) for n in nodes if n.tag.endswith("text")}
    assert ends["-54321"] - text_width("-54321", 14, True) > ends["0"] + 5


def test_picture_of_an_empty_card_says_so():
    empty = plot(Scorecard(SPACE, [0, 1], [], [], 1))
    assert "no conditions: every row gets the same prediction" in empty.svg


def test_command_fits_prints_saves_and_scores(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(80), "b": rng.random(80)})
    frame["y"] = np.where(frame["a"] > 0.5, "yes", "no")
    data, card = tmp_path / "d.csv", tmp_path / "d.card.json"
    frame.to_csv(data, index=False)
    fit = ["--target", "y", "--noise", "0", "--save", card, "--sheet", tmp_path / "d.svg"]
    fit += ["--sheet", tmp_path / "d.html"]
    code, printed, _ = run(data, *fit)
    assert code == 0
    assert "  ≥ 0." in printed
    assert (tmp_path / "d.svg").read_text("utf-8").startswith("<svg")
    assert (tmp_path / "d.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    out = tmp_path / "scores.csv"
    assert run(data, "--card", card, "--out", out)[0] == 0
    scored = pd.read_csv(out)
    assert scored.columns.tolist() == [
        *("a", "b", "y", "total", "risk yes", "prediction", "risk group"),
        *("reason 1", "reason 2", "reason 3", "remarks"),
    ]
    assert (scored["prediction"] == frame["y"]).all()
    np.testing.assert_allclose(scored["risk yes"], load(card).predict_proba(frame)[:, 1], 1e-5)
    assert load(card).predict(frame).tolist() == frame["y"].tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_saved_card_is_shown_as_it_was_before(tmp_path, n_classes):
    rng = np.random.default_rng(n_classes)
    X = pd.DataFrame({"a": rng.random(120), "b": rng.choice(["u", "v"], 120)})
    y = np.array(["no", "yes", "maybe"])[(X["a"] * n_classes).astype(int)]
    model = RiskScoreClassifier(noise=0.0, gamma=0.1, n_rounds=10, random_state=0)
    model.fit(X, y, sample_weight=rng.random(120))
    for saved in (model, model.card_):
        save(saved, tmp_path / "a.card.json")
        loaded = load(tmp_path / "a.card.json")
        assert loaded.risk_table == model.risk_table_
        assert plot(loaded) == plot(model)
    assert "observed" in str(plot(loaded))
    save(loaded, tmp_path / "b.card.json")
    assert (tmp_path / "b.card.json").read_bytes() == (tmp_path / "a.card.json").read_bytes()
    assert pickle.loads(pickle.dumps(loaded)).risk_table == model.risk_table_


def test_a_card_file_without_risks_loads(tmp_path):
    path = tmp_path / "a.card.json"
    save(CARD, path)
    assert "risks" not in json.loads(path.read_text("utf-8"))["card"]
    assert load(path).risk_table is None
    assert "observed" not in str(plot(load(path)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "no"}, "label of a row of risks must be one of"),
        ({"total": 0.5}, "total: expected an integer"),
        ({"n_rows": 0}, "n_rows must be above 0"),
        ({"n_label": 9.0}, "n_label from 0 to n_rows"),
        ({"risk": 0.5}, "unknown field 'risk'"),
    ],
)
def test_risks_that_cannot_be_are_refused(change, message):
    content = scorecard_to_dict(replace(CARD, risk_table=TABLE))
    assert scorecard_from_dict(content).risk_table == TABLE
    content["risks"][0] |= change
    with pytest.raises(ValueError, match=message):
        scorecard_from_dict(content)


def test_command_shows_a_saved_card_as_it_was_fitted(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(80), "b": rng.random(80)})
    frame["y"] = np.where(frame["a"] + rng.random(80) / 4 > 0.6, "yes", "no")
    data, card = tmp_path / "d.csv", tmp_path / "d.card.json"
    frame.to_csv(data, index=False)

    def shown(name, *arguments):
        svg, html = tmp_path / f"{name}.svg", tmp_path / f"{name}.html"
        code, printed, _ = run(data, *arguments, "--sheet", svg, "--sheet", html)
        assert code == 0
        return printed, svg.read_text("utf-8"), html.read_text("utf-8")

    fitted = shown("one", "--target", "y", "--noise", "0", "--save", card)
    loaded = shown("two", "--card", card, "--out", tmp_path / "o.csv")
    text = str(plot(load(card)))
    assert "observed" in text
    assert text in fitted[0]
    assert text not in loaded[0]  # rows were scored: the sheet is in the files
    assert loaded[1] == fitted[1]
    # a page's title is the column that was fitted to, which a card does not know
    drawn = [
        re.findall(r">([^<>]+)</text>", page.partition("Total<")[2])
        for page in (fitted[2], loaded[2])
    ]
    assert drawn[0] != []
    assert [text for text in drawn[0] if text != "y"] == drawn[1]
    told = json.loads(run(data, "--card", card, "--json")[1])
    assert len(told["risks"]) == len(load(card).risk_table.rows) > 1


def test_command_says_that_a_card_is_empty_and_scores_each_class(run, tmp_path):
    data, out = tmp_path / "d.csv", tmp_path / "o.csv"
    frame = pd.DataFrame({"a": np.ones(30), "y": np.repeat(["p", "q", "r"], [15, 10, 5])})
    frame.to_csv(data, index=False)
    code, printed, warned = run(data, "--target", "y", "--out", out)
    assert code == 0
    assert "no conditions: every row gets the same prediction" in printed
    assert "UserWarning" not in warned
    heads = ["total p", "total q", "total r", "risk p", "risk q", "risk r", "prediction"]
    heads = ["a", "y", *heads, "remarks"]
    assert pd.read_csv(out).columns.tolist() == heads
    np.testing.assert_allclose(pd.read_csv(out)["risk q"], 1 / 3, atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pass --target to fit a risk score"),
        (["--target", "y", "--noise", "much"], "--noise must be 1se or a number"),
        (["--target", "z"], "'z'"),
    ],
)
def test_wrong_use_is_refused(run, tmp_path, arguments, message):
    data = tmp_path / "d.csv"
    pd.DataFrame({"a": [0.1, 0.2, 0.3, 0.4], "y": list("nnyy")}).to_csv(data, index=False)
    refused(run(data, *arguments), message)
