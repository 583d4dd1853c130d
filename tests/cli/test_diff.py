"""The commands `diff` and `retrain`, as a pipeline calls them."""

import json
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner

from steadytree.cli.app import app
from steadytree.models.files import load, save
from steadytree.stability.stable_tree import StableTreeClassifier

run = CliRunner().invoke


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two trees, and a file of rows with their classes."""
    folder = tmp_path_factory.mktemp("files")
    frame = load_breast_cancer(as_frame=True).frame.iloc[::2, [0, 1, 7, 20, 22, 30]]
    frame = frame.assign(site=np.where(frame.iloc[:, 1] > 20, "left", "right"))
    X, y = frame.drop(columns="target"), frame["target"]
    for name, rows in (("old", slice(0, 150)), ("new", slice(None))):
        model = StableTreeClassifier(max_depth=2, epsilon=0, random_state=0)
        save(model.fit(X[rows], y[rows]), folder / f"{name}.tree.json")
    frame.to_csv(folder / "rows.csv", index=False)
    return folder


def test_diff_of_two_files(files):
    arguments = ["diff", str(files / "old.tree.json"), str(files / "new.tree.json")]
    found = run(app, arguments)
    assert found.exit_code == 0
    assert found.stdout.startswith("Splits:")
    rows = ["--data", str(files / "rows.csv"), "--target", "target"]
    found = run(app, [*arguments, *rows, "--json", "--out", str(files / "changes.svg")])
    assert found.exit_code == 0, found.stderr
    data = json.loads(found.stdout)
    table = pd.read_csv(files / "rows.csv")
    old, new = (load(files / f"{name}.tree.json").predict(table) for name in ("old", "new"))
    assert data["rows"]["n_flipped"] == (old != new).sum() > 0
    assert data["rows"]["new_accuracy"] == pytest.approx((new == table["target"]).mean())
    ElementTree.parse(files / "changes.svg")


def test_diff_ends_with_3_where_too_many_decisions_change(files):
    arguments = ["diff", str(files / "old.tree.json"), str(files / "new.tree.json")]
    arguments += ["--data", str(files / "rows.csv")]
    assert run(app, [*arguments, "--max-flips", "100%"]).exit_code == 0
    found = run(app, [*arguments, "--max-flips", "0"])
    assert found.exit_code == 3
    assert "limit exceeded" in found.stderr
    same = [arguments[0], arguments[1], *arguments[1:2], *arguments[3:], "--max-flips", "0%"]
    assert run(app, same).exit_code == 0


def test_retrain_writes_a_near_tree_and_shows_the_diff(files):
    out = files / "again.tree.json"
    arguments = ["retrain", str(files / "rows.csv"), "--target", "target", "--out", str(out)]
    arguments += ["--previous", str(files / "old.tree.json")]
    kept = run(app, [*arguments, "--max-loss", "100%", "--max-flips", "0"])
    assert kept.exit_code == 0, (kept.stdout, kept.exception)
    assert "the same splits" in kept.stdout
    rows = pd.read_csv(files / "rows.csv")
    old = load(files / "old.tree.json")
    np.testing.assert_array_equal(load(out).predict(rows), old.predict(rows))
    picture = str(files / "again.svg")
    found = run(app, [*arguments, "--max-loss", "0%", "--picture", picture])
    assert found.exit_code == 0
    ElementTree.parse(picture)


def test_retrain_shows_the_frontier_and_its_choice(files):
    out = str(files / "frontier.tree.json")
    arguments = ["retrain", str(files / "rows.csv"), "--target", "target", "--out", out]
    arguments += ["--previous", str(files / "old.tree.json"), "--score", "roc_auc"]
    found = run(app, arguments)
    assert found.exit_code == 0, found.exception
    assert "AUC" in found.stdout
    assert "plain refit" in found.stdout
    data = json.loads(run(app, [*arguments, "--json"]).stdout)["frontier"]
    assert data["choice"]["flips"] <= data["steps"]["flips"][-1]
    assert data["choice"]["reason"] in found.stdout
    wrong = run(app, [*arguments, "--score", "f1"])
    assert "--score must be one of ('accuracy', 'log_loss', 'roc_auc'), got 'f1'" in str(
        wrong.exception
    )


def test_retrain_takes_new_columns(files):
    path = files / "more.csv"
    rows = pd.read_csv(files / "rows.csv")
    rows.assign(visit=rows["target"] * 2.5).to_csv(path, index=False)
    arguments = ["retrain", str(path), "--target", "target", "--max-loss", "0%"]
    arguments += ["--previous", str(files / "old.tree.json"), "--out", str(files / "a.tree.json")]
    assert run(app, arguments).exit_code == 0
    assert "visit" in load(files / "a.tree.json").space.names
    trees = [str(files / "old.tree.json"), str(files / "a.tree.json")]
    shown = run(app, ["diff", *trees, "--data", str(path), "--target", "target"])
    assert shown.exit_code == 0, shown.exception
    assert "visit ≤" in shown.stdout
    report = [
        "report",
        str(path),
        "--target",
        "target",
        "--model",
        trees[1],
        "--previous",
        trees[0],
    ]
    told = run(app, [*report, "--previous", trees[0], "--quick", "--out", str(files / "more.html")])
    assert told.exit_code == 0, told.exception


def test_rows_that_the_tree_in_use_has_seen_come_from_a_file(files, monkeypatch):
    monkeypatch.chdir(files)
    rows = pd.read_csv("rows.csv")
    rows[:150].to_csv("first.csv", index=False)
    named = ["--target", "target", "--max-depth", "2", "--epsilon", "0", "--out", "own.tree.json"]
    assert run(app, ["fit", "first.csv", *named, "--fingerprints"]).exit_code == 0
    asked = ["retrain", "rows.csv", "--target", "target", "--previous", "own.tree.json"]
    beside = run(app, [*asked, "--out", "b.tree.json"])
    by_rows = run(app, [*asked, "--out", "b.tree.json", "--seen", "first.csv"])
    (files / "own.rows.json").rename(files / "kept.json")
    by_name = run(app, [*asked, "--out", "b.tree.json", "--seen", "kept.json"])
    without = run(app, [*asked, "--out", "b.tree.json"])
    assert beside.exit_code == 0, beside.exception
    assert beside.stdout == by_rows.stdout == by_name.stdout != without.stdout
    assert f"150 of {len(rows)} rows were fitted to before." in beside.stdout
    assert "fitted to before" not in without.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--max-flips", "5%"], "pass them with --data"),
        (["--data", "rows.csv", "--max-flips", "many"], "or a whole number of rows such as 12"),
        (["--data", "rows.csv", "--max-flips", "120%"], "must be a share such as 5%"),
        (["--data", "nothing.csv"], "there is no file"),
        (["--data", "rows.csv", "--target", "outcome"], "no column 'outcome'"),
        (["--out", "nowhere/changes.svg"], "make its folder first"),
    ],
)
def test_wrong_use_is_explained(files, monkeypatch, more, message):
    monkeypatch.chdir(files)
    found = run(app, ["diff", "old.tree.json", "new.tree.json", *more])
    assert found.exit_code == 1  # the exception itself; main turns it into one line and code 2
    assert message in str(found.exception)
