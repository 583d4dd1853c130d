import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.tree import DecisionTreeClassifier

from steadytree.data.feature_space import FeatureSpace
from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import Perturbation

SPACE = FeatureSpace.observe(
    pd.DataFrame({"age": [20, 30], "income": [1.5, 2.5], "job": ["a", "b"], "member": [0, 1]})
)


def test_costs_of_each_column():
    noise = Perturbation(
        radius={"age": 2, "income": 0.5, "job": 1},
        direction={"age": "up"},
        frozen=["income"],
        missing_cost={"job": 0.2, "income": 0.1},  # which is frozen, so its gaps stay
    )
    moves = noise.moves(SPACE)
    np.testing.assert_array_equal(moves.up, [0.5, np.inf, 1.0, np.inf])
    np.testing.assert_array_equal(moves.down, [np.inf, np.inf, 1.0, np.inf])
    np.testing.assert_array_equal(moves.missing, [np.inf, np.inf, 0.2, np.inf])
    np.testing.assert_array_equal(moves.integer, [True, False, False, True])
    np.testing.assert_array_equal(moves.high, [np.inf, np.inf, np.inf, 1.0])


def test_one_number_is_for_every_feature():
    np.testing.assert_array_equal(Perturbation(step_cost=3).moves(SPACE).down, [3, 3, 3, 3])


def test_whole_can_be_said():
    moves = Perturbation(step_cost=3, whole=["income"]).moves(SPACE)
    np.testing.assert_array_equal(moves.integer, [False, True, False, False])


@pytest.mark.parametrize("scope", ["row", "mean", "total"])
def test_budget_by_scope(scope):
    noise = Perturbation(step_cost=1, budget=0.5, scope=scope)
    assert noise.spend(10) == pytest.approx(5 if scope == "mean" else 0.5, rel=1e-8)


def test_certainty_follows_section_4():
    noise = Perturbation.from_certainty({"age": 0.9, "job": 1.0, "member": 0.25}, confidence=0.85)
    moves = noise.moves(SPACE)
    np.testing.assert_allclose(moves.up, [math.log(10), np.inf, np.inf, math.log(1 / 0.75)])
    assert noise.spend(124) == pytest.approx(-124 * math.log(0.85))
    assert Perturbation.from_certainty(0.5, confidence=1).budget == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "one of radius and step_cost"),
        ({"radius": 1, "step_cost": 1}, "one of radius and step_cost"),
        ({"step_cost": {"age": -1}}, "step_cost of 'age' must be a number of at least 0, got -1"),
        ({"radius": {"age": math.nan}}, "radius of 'age'"),
        ({"radius": {"age": math.inf}}, "a finite number"),
        ({"radius": {"age": "two"}}, "radius of 'age'"),
        (
            {"radius": 1, "budget": math.nan},
            "budget must be a finite number of at least 0, got nan",
        ),
        ({"radius": 1, "budget": -1}, "budget must be"),
        ({"radius": 1, "scope": "all"}, "scope must be one of"),
        ({"radius": 1, "direction": {"age": "sideways"}}, "direction of 'age'"),
        ({"radius": 1, "frozen": "age"}, "frozen must be a list"),
        ({"radius": 1, "bounds": {"age": 3}}, "bounds of 'age' must be two numbers"),
        ({"radius": 1, "bounds": {"age": ("a", "b")}}, "bounds of 'age' must be two numbers"),
        ({"radius": 1, "bounds": [0, 1]}, "bounds must map names"),
        ({"radius": 1, "direction": "up"}, "direction must map names"),
        ({"radius": 1, "missing_cost": 2.0}, "missing_cost must map names"),
        ({"radius": 1, "frozen": 3}, "frozen must be a list"),
        ({"radius": 1, "whole": 3}, "whole must be a list"),
        ({"radius": 1, "bounds": {"age": (3, 2)}}, "bounds of 'age' must be two numbers in order"),
        ({"radius": 1, "missing_cost": {"age": -2}}, "missing_cost of 'age'"),
    ],
)
def test_wrong_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Perturbation(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": {"Age": 1}}, "radius names 'Age', but the columns are 'age'"),
        ({"radius": 1, "frozen": ["salary"]}, "frozen names 'salary'"),
        ({"radius": 1, "direction": {"job": "up"}}, "categories have no order"),
        ({"radius": 1, "bounds": {"job": (0, 1)}}, "categories have no order"),
    ],
)
def test_what_does_not_fit_the_columns_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Perturbation(**arguments).moves(SPACE)


@pytest.mark.parametrize("certainty", [0, -0.1, 1.2, math.nan])
def test_certainty_outside_its_range_is_refused(certainty):
    with pytest.raises(ValueError, match="certainty of 'age' must be in"):
        Perturbation.from_certainty({"age": certainty}, confidence=0.9)


def test_toml_says_the_same(tmp_path):
    file = tmp_path / "noise.toml"
    file.write_text(
        'frozen = ["job"]\nbudget = 2\n[radius]\nage = 2\nincome = 0.5\n'
        '[direction]\nage = "up"\n[bounds]\nincome = [0, 10]\n',
        "utf-8",
    )
    expected = Perturbation(
        radius={"age": 2, "income": 0.5},
        frozen=["job"],
        budget=2,
        direction={"age": "up"},
        bounds={"income": (0, 10)},
    )
    assert Perturbation.from_toml(file) == expected
    assert Perturbation.from_dict(expected.to_dict()) == expected
    file.write_text("confidence = 0.85\n[certainty]\nage = 0.9\n", "utf-8")
    assert Perturbation.from_toml(file) == Perturbation.from_certainty({"age": 0.9}, 0.85)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("radius = ", "is not valid TOML"),
        ("[raduis]\nage = 1", "unknown key.s. 'raduis'"),
        ("confidence = 0.9\nradius = 1", "needs a table"),
        ("[certainty]\nage = 0.5", "certainty needs confidence"),
        ("confidence = 0.9\nbudget = 1\n[certainty]\nage = 0.5", "certainty sets 'budget' itself"),
        ("radius = 1\n[bounds]\nage = 3", "must be two numbers in order"),
        ('radius = 1\n[bounds]\nage = ["a", "b"]', "must be two numbers in order"),
        ('confidence = "a"\n[certainty]\nage = 0.8', "confidence must be in"),
    ],
)
def test_wrong_toml_is_refused(tmp_path, text, message):
    file = tmp_path / "noise.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        Perturbation.from_toml(file)


def test_toml_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        Perturbation.from_toml(tmp_path / "noise.toml")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_readings_taken_twice(frame):
    first = frame({"age": list(range(40)), "job": ["a", "b"] * 20})
    second = frame({"age": [k + (k % 4) for k in range(40)], "job": ["a"] * 40})
    noise = Perturbation.from_readings(first, second, coverage=0.9)
    assert noise.radius == {"age": 3.0, "job": 1.0}
    sure = Perturbation.from_readings(first, second, confidence=0.85)
    assert sure.step_cost["age"] == pytest.approx(-math.log(1 - 40 / (40 + 60)))
    assert sure.step_cost["job"] == pytest.approx(-math.log(1 - 40 / 60))


def test_a_new_pair_is_covered_as_often_as_said():
    # coverage is at least 0.9 in expectation; the mean over 2,000 runs has standard error < 0.0012
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2000, 31))
    radii = [
        Perturbation.from_readings(np.zeros((30, 1)) + 0.5, 0.5 + row[:30, None], 0.9).radius["x0"]
        for row in noise
    ]
    assert (np.abs(noise[:, 30]) <= radii).mean() > 0.9 - 4 * np.sqrt(0.9 * 0.1 / 2000)


def test_wrong_readings_are_refused():
    with pytest.raises(ValueError, match="2 rows, second 3"):
        Perturbation.from_readings([[1.0], [2.0]], [[1.0], [2.0], [3.0]])
    with pytest.raises(ValueError, match=r"too few for coverage=0\.95: at least 19"):
        Perturbation.from_readings(np.ones((5, 1)), np.ones((5, 1)))
    with pytest.raises(ValueError, match="coverage must be between"):
        Perturbation.from_readings(np.ones((5, 1)), np.ones((5, 1)), coverage=1)
    with pytest.raises(ValueError, match="no pair of measurements"):
        Perturbation.from_readings([[1.0], [2.0]], [[np.nan], [np.nan]], coverage=0.5)


def test_whole_steps_end_at_whole_numbers_within_fractional_bounds():
    space = FeatureSpace.observe(pd.DataFrame({"a": [0, 1, 2, 3, 4]}))
    moves = Perturbation(radius=1, bounds={"a": (0.5, 3.5)}).moves(space)
    everything, above = np.array([-np.inf, 2.0]), np.array([np.inf, np.inf])
    least, greatest = moves.ends(np.array([0, 0]), everything, above)
    assert (least.tolist(), greatest.tolist()) == ([1.0, 3.0], [3.0, 3.0])
    least, greatest = moves.ends(np.array([0]), np.array([3.0]), np.array([np.inf]))
    assert least[0] > greatest[0]  # 4 is out of bounds, and 3.5 is no whole number
    tree = DecisionTreeClassifier().fit([[0], [1], [2], [3], [4]], [0, 0, 0, 0, 1])
    X = pd.DataFrame({"x0": [0, 1, 2, 3, 4]})
    bounded = Perturbation(step_cost=1, bounds={"x0": (0.5, 3.5)}, whole=["x0"])
    found = certify(tree, X.to_numpy(), [0, 0, 0, 0, 1], bounded)
    assert found.distance.tolist() == [np.inf, np.inf, np.inf, np.inf, 1.0]


def test_a_column_is_stuck_where_its_least_step_costs_more_than_allowed():
    space = FeatureSpace.observe(pd.DataFrame({"n": [1, 2, 3], "x": [0.5, 1.5, 2.5]}))
    changes = Perturbation(change_cost=2.0, budget=1.0).all_moves(space)
    assert changes.stuck(1.0).tolist() == [True, False]  # a change costs 2, however small
    assert changes.stuck(2.0).tolist() == [False, False]
    small = Perturbation(radius=0.5).all_moves(space)
    assert small.stuck(1.0).tolist() == [True, False]
    assert small.stuck(2.0).tolist() == [False, False]
