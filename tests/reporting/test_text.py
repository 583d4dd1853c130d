"""Rules and risk scores as text."""

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.condition import Condition
from steadytree.models.scorecard import Scorecard
from steadytree.models.variable import category_conditions
from steadytree.reporting.text import indented_rules, scorecard_text


def test_rules_are_indented_below_their_split():
    root = {"parent": None, "side": None, "question": "age ≤ 43", "missing": "no"}
    leaf = {"parent": 0, "n_below": 1}
    yes = leaf | {"side": "yes", "answer": 0, "counts": [9, 1], "n_rows": 10}
    no = leaf | {"side": "no", "answer": 1, "counts": [0, 3], "n_rows": 3}
    assert indented_rules({"classes": ["well", "ill"], "nodes": [root, yes, no]}).splitlines() == [
        "age ≤ 43? (missing: no)",
        "├─ yes: well (90 % of 10 rows correct)",
        "└─ no: ill (100 % of 3 rows correct)",
    ]


def test_points_of_a_risk_score_are_aligned():
    space = FeatureSpace.declare(bounds={"age": (18, 99)})
    scorecard = Scorecard(space, ["stays", "goes"], [Condition(0, "at_least", 75)], [2], -1)
    assert scorecard_text(scorecard).splitlines() == [
        "start with      -1",
        "age",
        "  < 75           0",
        "  ≥ 75          +2",
        "  missing        0",
        "above 0: goes, else stays",
    ]


def test_many_categories_of_a_risk_score_fill_lines_of_their_own():
    towns = [f"Market Town upon River {letter}" for letter in "ABCDEFGHI"]
    space = FeatureSpace.declare(bounds={}, categories={"town": towns})
    found = category_conditions(0, [0] * 4 + [3] * 5, missing=0)
    conditions, points = zip(*found, strict=True)
    text = scorecard_text(Scorecard(space, ["no", "yes"], conditions, points, 0, 0.7, -2.0))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 75
    assert [line.split()[-1] for line in lines if line.endswith("+3")] == ["+3"]
    words = " ".join(line.removesuffix("+3").removesuffix(" 0") for line in lines).split()
    assert ", ".join(towns[:4]) in " ".join(words)
