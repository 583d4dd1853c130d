"""Three users, from their files to what they sign: every command in a process of its own."""

import csv
import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from tests.cli.commands import refused, steadytree

pytestmark = pytest.mark.slow


def patients(n, seed):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"patient": [f"{k:05d}" for k in range(n)]})
    frame["age"] = random.uniform(18, 95, n).round(1)
    frame["pressure"] = random.normal(130, 20, n).round()
    frame.loc[random.random(n) < 0.1, "pressure"] = np.nan
    frame["ward"] = random.choice(["north", "south", "east"], n)
    risk = (frame["age"] > 60) ^ ((frame["ward"] == "north") & (frame["pressure"] > 140))
    frame["outcome"] = np.where(risk ^ (random.random(n) < 0.05), "ill", "well")
    return frame


def test_a_credit_scientist_retrains_and_checks_limits(tmp_path):
    for name, seed in (("q1", 0), ("q2", 1)):
        patients(400, seed).to_csv(tmp_path / f"{name}.csv.gz", index=False)
    (tmp_path / "limits.toml").write_text('min_accuracy = "80%"\nmax_flips = "20%"\n', "utf-8")
    rows = ("--target", "outcome", "--drop", "patient")
    fit = ("--criterion", "gini", "--out", "q1.tree.json")
    code, out, err = steadytree(tmp_path, "fit", "q1.csv.gz", *rows, *fit)
    assert (code, err) == (0, "")
    again = ("retrain", "q2.csv.gz", *rows, "--previous", "q1.tree.json", "--out", "q2.tree.json")
    code, _, err = steadytree(tmp_path, *again, "--max-flips", "20%")
    assert (code, err) == (0, "")
    models = ("--model", "q2.tree.json", "--previous", "q1.tree.json", "--limits", "limits.toml")
    report = ("report", "q2.csv.gz", "--target", "outcome", *models, "--quick")
    code, out, err = steadytree(tmp_path, *report, "--out", "q2.html")
    assert (code, err) == (0, "")
    assert "Limits: 2 of 2 passed" in out
    assert len(out.splitlines()) <= 40
    (tmp_path / "limits.toml").write_text('min_accuracy = "99.9%"\n', "utf-8")
    code, _, err = steadytree(tmp_path, *report, "--out", "q2.html")
    assert code == 3
    assert "limit exceeded" in err


def test_a_validator_with_a_pickled_pipeline(tmp_path):
    train, rows = patients(400, 2), patients(200, 3)
    rows.to_csv(tmp_path / "new.csv", index=False)
    steps = [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "pressure"]),
        ("texts", OneHotEncoder(handle_unknown="ignore"), ["ward"]),
    ]
    tree = DecisionTreeClassifier(max_leaf_nodes=6, random_state=0)
    model = make_pipeline(ColumnTransformer(steps), tree).fit(train, train["outcome"])
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    report = ("report", "new.csv", "--target", "outcome", "--model", "model.pkl", "--by", "ward")
    refused(steadytree(tmp_path, *report), "can run any code: pass --trust")
    assert not (tmp_path / "report.html").exists()
    more = ("--trust", "--quick", "--save-model", "model.tree.json", "--json")
    code, out, err = steadytree(tmp_path, *report, *more)
    assert (code, err) == (0, "")
    found = json.loads(out)
    accuracy = float((model.predict(rows) == rows["outcome"]).mean())
    assert found["readings"]["accuracy"][0]["value"] == accuracy
    assert found["model"]["kind"] == "Pipeline of DecisionTreeClassifier"
    mapped = st.load(tmp_path / "model.tree.json")
    np.testing.assert_array_equal(mapped.predict_proba(rows), model.predict_proba(rows))
    (tmp_path / "noise.toml").write_text("budget = 1\n[radius]\nage = 1\npressure = 5\n", "utf-8")
    noise = ("--target", "outcome", "--noise", "noise.toml", "--trust", "--json")
    code, out, _ = steadytree(tmp_path, "certify", "model.pkl", "new.csv", *noise)
    assert code == 0
    assert json.loads(out)["readings"]
    asked = ("new.csv", "--keep", "patient", "--out", "predicted.csv", "--trust")
    assert steadytree(tmp_path, "predict", "model.pkl", *asked)[0] == 0
    lines = list(csv.DictReader((tmp_path / "predicted.csv").read_text("utf-8").splitlines()))
    assert [line["patient"] for line in lines] == rows["patient"].tolist()
    assert [line["prediction"] for line in lines] == model.predict(rows).tolist()
    rows.drop(columns="age").to_csv(tmp_path / "no_age.csv", index=False)
    refused(steadytree(tmp_path, "predict", "model.pkl", "no_age.csv", "--trust"), "'age'")


RESEARCH = """
import pandas as pd, steadytree as st
frame = pd.read_csv("rows.csv").drop(columns="patient")
X, y = frame.drop(columns="outcome"), frame["outcome"]
steps = []
found = st.compare(["cart", "stable"], X, y, n_folds=2, max_depth=3, progress=steps.append)
assert steps == ["comparing cart (1 of 2)", "comparing stable (2 of 2)"], steps
model = st.StableTreeClassifier(3, random_state=0).fit(X, y)
sensitivity = st.average_sensitivity(model, X, y)
refits = st.refits(model, X, y, repeats=3, progress=steps.append)
assert steps[-1] == "refit 3 of 3"
report = st.report(model, X, y, "report.html", train=(X, y), comparison=found, progress=False)
assert report.data["readings"]["stability"][0]["value"] == sensitivity.value
for shown in (found, model, sensitivity, refits, report):
    assert shown._repr_html_() and len(repr(shown)) < 500
print("done")
"""


def test_a_researcher_compares_learners_in_python(tmp_path):
    patients(200, 4).to_csv(tmp_path / "rows.csv", index=False)
    called = [sys.executable, "-c", RESEARCH]
    done = subprocess.run(called, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert (tmp_path / "report.html").stat().st_size > 10_000
