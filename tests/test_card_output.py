"""The card as people see it: text, picture, command line."""

import sys

import numpy as np
import pandas as pd
import pytest

from cards import random_card
from steadytree.cli import main
from steadytree.core.condition import Condition
from steadytree.core.risk_table import RiskTable
from steadytree.core.scorecard import Scorecard
from steadytree.core.space import FeatureSpace
from steadytree.interop.tree_file import load
from steadytree.reporting.card_svg import draw_card
from steadytree.reporting.card_text import card_text

SPACE = FeatureSpace.declare(bounds={"a <b> & c": (0, 1)})
CARD = Scorecard(SPACE, ["no", "yes"], [Condition(0, "at_least", 0.5)], [3], -1, 2.0, 0.0)
TABLE = RiskTable.of(CARD, np.array([-1, -1, 2]), np.array([0, 0, 1]))


def test_text_holds_every_condition_and_total():
    text = card_text(CARD, TABLE)
    assert "a <b> & c ≥ 0.5" in text
    assert "+3" in text
    assert "above 0: yes, else no" in text
    assert len(text.splitlines()) == 7


def test_text_of_several_classes_has_a_column_each():
    card = random_card(np.random.default_rng(0), n_classes=3)
    assert "points for" in card_text(card)
    with pytest.raises(ValueError, match="a column for each"):
        draw_card(card)


def test_picture_is_whole_and_escaped():
    from xml.etree import ElementTree

    svg = str(draw_card(CARD, TABLE, title="<script>"))
    assert "<script>" not in svg
    texts = [node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]
    assert "a <b> & c ≥ 0.5" in texts
    assert "+3" in texts


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["steadytree", "score", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_command_fits_prints_saves_and_scores(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(80), "b": rng.random(80)})
    frame["y"] = np.where(frame["a"] > 0.5, "yes", "no")
    data, card = tmp_path / "d.csv", tmp_path / "d.card.json"
    frame.to_csv(data, index=False)
    fit = ["--target", "y", "--tau", "0", "--save", card, "--svg", tmp_path / "d.svg"]
    assert run(monkeypatch, data, *fit) == 0
    assert "a ≥ 0." in capsys.readouterr().out
    assert (tmp_path / "d.svg").read_text().startswith("<svg")
    out = tmp_path / "scores.csv"
    assert run(monkeypatch, data, "--card", card, "--out", out) == 0
    assert (pd.read_csv(out)["answer"] == frame["y"]).all()
    assert load(card).predict(frame).tolist() == frame["y"].tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pass --target to fit a card"),
        (["--target", "y", "--tau", "much"], "--tau must be 1se or a number"),
        (["--target", "z"], "'z'"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(monkeypatch, capsys, tmp_path, arguments, message):
    data = tmp_path / "d.csv"
    pd.DataFrame({"a": [0.1, 0.2, 0.3, 0.4], "y": list("nnyy")}).to_csv(data, index=False)
    assert run(monkeypatch, data, *arguments) == 2
    assert message in capsys.readouterr().err
