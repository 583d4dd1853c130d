"""`steadytree certify` as a user calls it."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from steadytree.stability.stable_tree import StableTreeClassifier
from tests.cli.commands import refused

COMMAND = ("certify", "model.tree.json", "rows.csv", "--target", "outcome")


@pytest.fixture(autouse=True)
def files(run, tmp_path):
    """A small tree, its rows and noise."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 90, 200), "income": rng.normal(size=200).round(3)}
    )
    frame["outcome"] = np.where(frame["age"] > 50, "ill", "well")
    frame.to_csv("rows.csv", index=False)
    model = StableTreeClassifier(2, epsilon=0, random_state=0)
    model.fit(frame[["age", "income"]], frame["outcome"]).save("model.tree.json")
    (tmp_path / "noise.toml").write_text("[radius]\nage = 5\n", "utf-8")


def test_shows_figures_and_counterexamples(run):
    code, out, err = run("--noise", "noise.toml")
    assert (code, err) == (0, "")
    assert "worst-case accuracy: 0." in out
    assert "age from" in out


def test_limit_decides_the_exit_code(run):
    assert run("--noise", "noise.toml", "--min-certified", 0.5)[0] == 0
    code, _, err = run("--noise", "noise.toml", "--min-certified", 0.99)
    assert code == 3
    assert "--min-certified is 0.99" in err
    assert run("--noise", "noise.toml", "--min-certified", "50%")[0] == 0
    assert run("--noise", "noise.toml", "--min-certified", "high")[0] == 2


def test_rows_before_the_tree_are_noticed(run, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "COMMAND", ())
    asked = ("--target", "outcome", "--noise", "noise.toml")
    right = "steadytree certify model.tree.json rows.csv"
    refused(run("certify", "rows.csv", "model.tree.json", *asked), right)
    refused(run("certify", "rows.csv", "rows.csv", *asked), "a data file, where a saved model")


def test_json(run):
    code, out, _ = run("--noise", "noise.toml", "--min-certified", 0.99, "--json")
    found = json.loads(out)
    assert code == 3
    assert found["passed"] is False
    assert found["perturbation"]["radius"] == {"age": 5}
    accuracies = found["curve"]["certified_accuracy"]
    assert accuracies == sorted(accuracies, reverse=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[radius]\nAge = 5", "radius names 'Age'"),
        ("[step_cost]\nage = -1", "step_cost of 'age' must be"),
        ("[step_cost]\nage = 1", "needs a budget"),
        ("budget = nan\n[step_cost]\nage = 1", "budget must be"),
    ],
)
def test_wrong_noise_is_one_line(run, tmp_path, text, message):
    (tmp_path / "noise.toml").write_text(text, "utf-8")
    code, out, err = run("--noise", "noise.toml", "--min-certified", 0.5)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_noise_that_is_not_there(run):
    code, _, err = run("--noise", "no.toml")
    assert code == 2
    assert "no such file" in err


def test_noise_as_people_state_it(run, tmp_path):
    code, out, _ = run("--radius", "5%", "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found["perturbation"]["radius"]) == {"age", "income"}
    code, out, _ = run("--radius", "age=2", "--radius", "income=0.5 sd", "--json")
    assert json.loads(out)["perturbation"]["radius"]["age"] == 2
    code, out, _ = run("--wrong-values", 1, "--json")
    assert json.loads(out)["perturbation"] == {"change_cost": 1.0, "budget": 1.0, "scope": "row"}
    pairs = pd.DataFrame({"who": np.repeat(np.arange(30), 2), "age": np.arange(60) % 2 * 2.0})
    pairs.to_csv(tmp_path / "twice.csv", index=False)
    code, out, _ = run("--repeated", "twice.csv", "--by", "who", "--json")
    assert (code, json.loads(out)["perturbation"]["radius"]) == (0, {"age": 2.0})


def test_shares_refer_to_the_reference_rows(run, tmp_path):
    frame = pd.read_csv(tmp_path / "rows.csv")
    frame.assign(age=frame["age"] * 10).to_csv(tmp_path / "train.csv", index=False)
    near = json.loads(run("--radius", "5%", "--json")[1])["perturbation"]["radius"]
    far = json.loads(run("--radius", "5%", "--reference", "train.csv", "--json")[1])
    assert far["perturbation"]["radius"]["age"] == pytest.approx(10 * near["age"])


def test_weights_and_notes(run, tmp_path):
    frame = pd.read_csv(tmp_path / "rows.csv")
    frame["count"] = np.where(frame["age"].between(46, 55), 0, 1)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    code, out, _ = run("--radius", "age=4", "--weight", "count", "--json")
    worst = {one["name"]: one["value"] for one in json.loads(out)["readings"]}
    assert (code, worst["worst-case accuracy"]) == (0, 1.0)
    code, out, _ = run("--radius", "age=0.5", "--radius", "income=1")
    assert "note: the noise is less than one step of 'age'" in out
    assert "note: the model does not use 'income'" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "state the noise in one way"),
        (("--radius", "5%", "--noise", "noise.toml"), "state the noise in one way"),
        (("--repeated", "rows.csv"), "--repeated needs --by"),
        (("--radius", "5%", "--radius", "age=2"), "--radius must be one amount"),
        (("--radius", "age=5 ells"), "radius of 'age' must be a number of units"),
        (("--radius", "5%", "--weight", "mass"), "--weight names 'mass'"),
        (("--radius", "Age=5%"), "radius names 'Age'"),
    ],
)
def test_noise_that_is_not_understood_is_one_line(run, options, message):
    code, out, err = run(*options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.interop
def test_a_forest_in_a_file(run, tmp_path, monkeypatch):
    pytest.importorskip("veritas")
    io = pytest.importorskip("skops.io")
    from sklearn.ensemble import RandomForestClassifier

    frame = pd.read_csv(tmp_path / "rows.csv")
    model = RandomForestClassifier(5, max_depth=3, random_state=0)
    model.fit(frame[["age", "income"]], frame["outcome"])
    io.dump(model, tmp_path / "forest.skops")
    monkeypatch.setattr(sys.modules[__name__], "COMMAND", ())
    asked = ("--target", "outcome", "--radius", "2%", "--json")
    code, out, _ = run("certify", "forest.skops", "rows.csv", *asked)
    found = json.loads(out)
    assert code == 0
    assert found["status"]["undecided"] == 0
    assert found["status"]["attacked"] > 0
