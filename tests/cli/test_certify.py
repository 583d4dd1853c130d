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
    (tmp_path / "noise.toml").write_text("[radius]\nage = 5\n")


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
    (tmp_path / "noise.toml").write_text(text)
    code, out, err = run("--noise", "noise.toml", "--min-certified", 0.5)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_noise_that_is_not_there(run):
    code, _, err = run("--noise", "no.toml")
    assert code == 2
    assert "no such file" in err
