"""`steadytree score`: what it adds to a file, the limits it checks, and what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from steadytree.models.files import load, save
from steadytree.models.risk_table import RiskGroup
from tests.cli.commands import names_in, refused
from tests.metrics.test_drift import CARD, ROWS, rows_of
from tests.models.test_variable import banded

COMMAND = ("score",)


@pytest.fixture
def files(tmp_path):
    """A saved card, and a file of new rows with identifiers."""
    card = replace(CARD, risk_groups=[RiskGroup("low", 0), RiskGroup("high", 4)])
    save(card, tmp_path / "a.card.json")
    rng = np.random.default_rng(5)
    rows = rows_of(rng, 300)
    rows.insert(0, "id", [f"{k:05d}" for k in range(300)])
    rows["note"] = '"quoted", with comma'
    risk = CARD.predict_proba(rows)[:, 1]
    rows["died"] = np.where(rng.random(300) < risk, "yes", "no")
    rows.loc[0, "ward"] = "z"
    rows.to_csv(tmp_path / "new.csv", index=False)
    return card, rows, tmp_path


def test_identifiers_and_columns_are_kept(run, files):
    card, rows, folder = files
    given = ["--card", folder / "a.card.json", "--out", folder / "o.csv", "--reasons", "1"]
    code, printed, _ = run(folder / "new.csv", *given)
    assert code == 0
    found = pd.read_csv(folder / "o.csv", dtype={"id": str})
    added = ["total", "risk yes", "prediction", "risk group", "reason 1", "remarks"]
    assert found.columns.tolist() == [*rows.columns, *added]
    assert found["id"].tolist() == rows["id"].tolist()
    assert found["note"].tolist() == rows["note"].tolist()
    assert found["total"].tolist() == card.score(rows).tolist()
    assert found["remarks"][0].endswith("ward: unseen category")
    assert "PSI of the score" in printed
    assert printed.startswith("new rows: 300\n")  # the sheet was printed when it was fitted
    code, printed, _ = run(folder / "new.csv", "--card", folder / "a.card.json", "--drop", "note")
    assert code == 0
    assert printed.splitlines()[0].startswith("id,age,smoker,ward,died,total,")


def test_rows_of_a_fit_keep_columns_that_it_leaves_out(run, files):
    _, rows, folder = files
    given = ["--target", "died", "--drop", "id", "--drop", "note", "--out", folder / "o.csv"]
    assert run(folder / "new.csv", *given)[0] == 0
    found = pd.read_csv(folder / "o.csv", dtype={"id": str})
    assert found["id"].tolist() == rows["id"].tolist()
    assert found.columns.tolist()[: rows.shape[1]] == rows.columns.tolist()
    rows.assign(total=1).to_csv(folder / "old.csv", index=False)
    assert run(folder / "old.csv", *given, "--drop", "total")[0] == 0
    again = pd.read_csv(folder / "o.csv", dtype={"id": str})
    pd.testing.assert_frame_equal(again, found)


def test_limits_end_with_exit_code_3_and_the_scores_are_written(run, files):
    _, rows, folder = files
    given = ["--card", folder / "a.card.json", "--out", folder / "o.csv", "--outcome", "died"]
    limits = ["--max-psi", "0.2", "--max-miscalibration", "25%"]
    assert run(folder / "new.csv", *given, *limits)[0] == 0
    moved = rows.assign(age=rows["age"] + 25, died="no")
    moved.to_csv(folder / "moved.csv", index=False)
    (folder / "o.csv").unlink()
    code, _, warned = run(folder / "moved.csv", *given, *limits)
    assert code == 3
    assert "limit exceeded: PSI of age is" in warned
    assert "limit exceeded: 0 events were observed" in warned
    assert len(pd.read_csv(folder / "o.csv")) == 300
    found = json.loads(run(folder / "moved.csv", *given, "--json")[1])
    assert found["drift"]["score"]["psi"] > 0.2
    assert found["drift"]["events"]["observed"] == 0


def test_credit_scores_and_bands(run, files):
    card, rows, folder = files
    given = ["--card", folder / "a.card.json", "--out", folder / "o.csv", "--scaling", "20"]
    assert run(folder / "new.csv", *given, "--bands", folder / "b.csv")[0] == 0
    scores, bands = pd.read_csv(folder / "o.csv")["score"], pd.read_csv(folder / "b.csv")
    risk = card.predict_proba(rows)[:, 1]
    assert np.abs(scores - (600 + 20 * np.log2((1 - risk) / risk / 50))).max() <= 2
    assert {"WoE", "IV", "scaled points"} <= set(bands.columns)
    assert bands["rows"].sum() == 3 * len(ROWS)


def test_title_and_units_are_saved(run, files):
    _, _, folder = files
    given = ["--card", folder / "a.card.json", "--save", folder / "b.card.json"]
    more = ["--title", "Admission", "--unit", "age=years", "--out", folder / "o.csv"]
    assert run(folder / "new.csv", *given, *more)[0] == 0
    again = load(folder / "b.card.json")
    assert (again.title, again.units) == ("Admission", {"age": "years"})


def without_profile(folder):
    save(banded(), folder / "a.card.json")


def damaged(folder):
    path = folder / "a.card.json"
    path.write_text(path.read_text("utf-8").replace('"profile"', '"profil"'), "utf-8")


def lacking(folder):
    pd.read_csv(folder / "new.csv").drop(columns="age").to_csv(folder / "new.csv", index=False)


def taken(folder):
    frame = pd.read_csv(folder / "new.csv")
    frame.assign(total=1).to_csv(folder / "new.csv", index=False)


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (without_profile, ["--max-psi", "0.1"], "has no training profile.*fit and save it again"),
        (without_profile, ["--bands", "b.csv"], "has no training profile"),
        (damaged, [], "does not fit its hash"),
        (lacking, [], "'age'"),
        (taken, [], "'total'.*rename"),
        (None, ["--outcome", "alive"], "--outcome 'alive' is none of the columns"),
        (None, ["--outcome", "id"], "y holds the label"),
        (None, ["--max-miscalibration", "5%"], "pass --outcome too"),
        (None, ["--outcome", "died", "--max-miscalibration", "5"], "must be a share such as"),
        (None, ["--max-psi", "-1"], "--max-psi must be a number of at least 0"),
        (None, ["--scaling", "0"], "pdo must be"),
        (None, ["--scaling", "20,600"], "--scaling must be PDO or PDO,SCORE,ODDS"),
        (None, ["--sheet", "o.pdf"], "--sheet must name a file"),
        (None, ["--decision", "cost=5"], "--decision is for a fit"),
        (None, ["--positive", "1"], "--positive is for a fit"),
        (None, ["--unit", "age"], "--unit must be COLUMN=UNIT"),
        (
            None,
            ["--unit", "height=cm"],
            "--unit must be .* one of 'age', .*'height=cm'",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_and_nothing_is_written(
    run, files, monkeypatch, change, arguments, message
):
    folder = files[2]
    monkeypatch.chdir(folder)
    if change is not None:
        change(folder)
    before = names_in(folder)
    given = ["new.csv", "--card", "a.card.json", "--out", "o.csv", "--sheet", "o.svg"]
    refused(run(*given, *arguments), message)
    assert names_in(folder) == before


def test_limits_on_new_rows_need_a_saved_card(run, files):
    folder = files[2]
    given = [folder / "new.csv", "--target", "died", "--max-psi", "0.1"]
    refused(run(*given), "are about new rows: pass --card")


def test_a_decision_by_cost_and_a_prevalence_reach_the_fit(run, files):
    """The cheaper a false alarm, the more rows are called events; risks follow the prevalence."""
    folder = files[2]
    given = [folder / "new.csv", "--target", "died", "--drop", "id"]
    cards = {}
    for name, options in {
        "usual": [],
        "risk": ["--decision", "20%"],
        "cost": ["--decision", "cost=4"],
        "all": ["--decision", "sensitivity=1"],
        "rare": ["--prevalence", "1%"],
    }.items():
        assert run(*given, *options, "--save", folder / f"{name}.card.json")[0] == 0
        cards[name] = load(folder / f"{name}.card.json")
    assert cards["cost"] == cards["risk"] != cards["usual"]
    assert cards["all"].decision <= cards["cost"].decision < cards["usual"].decision
    rows = pd.read_csv(folder / "new.csv")
    assert "no" not in cards["all"].predict(rows)[rows["died"] == "yes"]
    assert cards["rare"].predict_proba(rows)[:, 1].mean() < 0.1
    for wrong in ("2", "cost=0", "loss=3", "sensitivity=1.5", ""):
        refused(run(*given, "--decision", wrong), "--decision must be a risk between 0 and 1")
