"""`steadytree private` as a user calls it."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from steadytree.data.schema import Schema
from steadytree.models.files import load

COMMAND = ("private",)


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(0, 90, 400), "ward": rng.choice(["A", "B"], 400)})
    frame["outcome"] = np.where(frame["age"] > 45, "ill", "well")
    frame.to_csv(tmp_path / "patients.csv", index=False)
    schema = Schema({"age": (0, 100)}, {"ward": ["A", "B"]}, ["ill", "well"])
    schema.save(tmp_path / "filled.toml")
    return "patients.csv"


def fit(run, data, epsilon):
    new = () if Path("p.ledger").exists() else ("--new-ledger",)
    return run(
        *("fit", data, "--target", "outcome", "--schema", "filled.toml", "--epsilon", epsilon),
        *("--ledger", "p.ledger", "--budget", 10, "--out", "a.tree.json", *new),
    )


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_a_mistyped_ledger_is_no_new_budget(run, data, tmp_path, command):
    pytest.importorskip("opendp")
    assert fit(run, data, 1)[0] == 0
    files = ("evaluate", "a.tree.json", data) if command == "evaluate" else ("fit", data)
    more = () if command == "evaluate" else ("--out", "b.tree.json")
    asked = (*files, "--target", "outcome", "--schema", "filled.toml", "--epsilon", 1, *more)
    code, _, err = run(*asked, "--ledger", "q.ledger", "--budget", 10)
    assert code == 2
    assert "there is no ledger 'q.ledger': check the path" in err
    assert not (tmp_path / "q.ledger").exists()
    code, _, err = run(*asked, "--ledger", "p.ledger", "--budget", 10, "--new-ledger")
    assert code == 2
    assert "leave --new-ledger out" in err
    assert run(*asked, "--ledger", "q.ledger", "--budget", 10, "--new-ledger")[0] == 0


@pytest.mark.parametrize("harm", ["emptied", "cut", "unmarked", "unmarked and emptied"])
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_a_damaged_ledger_is_no_new_budget(run, data, tmp_path, command, harm):
    pytest.importorskip("opendp")
    assert [fit(run, data, 4)[0], fit(run, data, 5)[0]] == [0, 0]
    path = tmp_path / "p.ledger"
    lines = path.read_bytes().splitlines(keepends=True)
    if "emptied" in harm or harm == "cut":
        path.write_bytes(lines[0] if harm == "cut" else b"")
    if "unmarked" in harm:
        (tmp_path / "p.ledger.mark").unlink()
    found = path.read_bytes()
    files = ("evaluate", "a.tree.json", data) if command == "evaluate" else ("fit", data)
    more = () if command == "evaluate" else ("--out", "b.tree.json")
    asked = (*files, "--target", "outcome", "--schema", "filled.toml", "--epsilon", 4, *more)
    code, _, err = run(*asked, "--ledger", "p.ledger", "--budget", 10)
    assert code == 2
    assert "restore the newest 'p.ledger' and 'p.ledger.mark' together" in " ".join(err.split())
    assert path.read_bytes() == found
    assert not (tmp_path / "b.tree.json").exists()


def test_a_ledger_of_version_1_is_upgraded_by_command(run, data, tmp_path):
    pytest.importorskip("opendp")
    path = tmp_path / "p.ledger"
    path.write_bytes(
        b"steadytree ledger 1 budget 10.0 delta 0.0\n"
        b'8.0 0.0 2f6c6f0c ["private tree", "gibbs", "", "", ""] 00000000\n'
    )
    code, _, err = fit(run, data, 4)
    assert code == 2
    assert "--upgrade" in err
    code, _, err = run("ledger", "p.ledger", "--budget", 10, "--upgrade")
    assert code == 2
    assert "truncated or altered line" in " ".join(err.split())
    path.write_bytes(b"steadytree ledger 1 budget 10.0 delta 0.0\n")
    code, out, _ = run("ledger", "p.ledger", "--budget", 10, "--upgrade")
    assert code == 0
    assert "spent 0, left 10 of 10" in out
    assert fit(run, data, 4)[0] == 0


def test_a_template_is_written_once_and_shows_no_value(run, data, tmp_path):
    code, out, _ = run("schema", data, "--target", "outcome", "--out", "s.toml")
    assert code == 0
    assert "written: s.toml" in out
    text = (tmp_path / "s.toml").read_text("utf-8")
    assert "outcome" not in text
    assert "ill" not in text.replace("fill", "").replace("Fill", "")
    assert text.count("[columns.") == 2
    code, _, err = run("schema", data, "--target", "outcome", "--out", "s.toml")
    assert code == 2
    assert "exists" in err


def test_a_template_does_not_depend_on_values(run, data, tmp_path):
    for name in ("one.toml", "two.toml"):
        assert run("schema", data, "--target", "outcome", "--out", name)[0] == 0
        with (tmp_path / data).open("a", encoding="utf-8") as file:
            file.write("text,7,ill\n")
    text = (tmp_path / "one.toml").read_text("utf-8")
    assert text == (tmp_path / "two.toml").read_text("utf-8")
    (tmp_path / "filled.toml").write_text(text, "utf-8")
    code, _, err = fit(run, data, 1)
    assert code == 2
    assert "fill in" in err


def test_a_bad_row_is_not_told_of(run, data, tmp_path):
    with (tmp_path / data).open("a", encoding="utf-8") as file:
        file.write("secret\n")
    code, _, err = fit(run, data, 1)
    assert code == 2
    assert "rows that do not fit" in err
    assert "secret" not in err
    assert "401" not in err


def test_a_fit_is_charged_shown_and_refused(run, data, tmp_path):
    pytest.importorskip("opendp")
    code, out, _ = fit(run, data, 8)
    assert code == 0
    assert "epsilon 8, add or remove one row" in out
    assert "left in the ledger: 2" in out
    frame = pd.read_csv(tmp_path / data)
    assert (load(tmp_path / "a.tree.json").predict(frame) == frame["outcome"]).mean() > 0.8
    code, _, err = fit(run, data, 4)
    assert code == 3
    assert "2.0 of 10.0 is left" in err
    code, out, _ = run("ledger", "p.ledger", "--budget", 10)
    assert code == 0
    assert "spent 8, left 2 of 10" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["schema", "patients.csv", "--target", "nobody"], "is not a column"),
        (["ledger", "none.ledger", "--budget", "1"], "no such ledger"),
        (["schema", "absent.csv", "--target", "y"], "absent.csv"),
    ],
)
def test_wrong_use_is_one_line(run, data, arguments, message):
    code, _, err = run(*arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_a_tree_is_evaluated_for_a_price(run, data, tmp_path):
    pytest.importorskip("opendp")
    assert fit(run, data, 9)[0] == 0
    arguments = (
        *("evaluate", "a.tree.json", data, "--target", "outcome", "--schema", "filled.toml"),
        *("--epsilon", 1, "--ledger", "p.ledger", "--budget", 10),
    )
    code, out, _ = run(*arguments)
    assert code == 0
    assert out.startswith("accuracy ")
    assert float(out.split()[1].rstrip(",")) > 0.8  # noise of a dozen rows at most, of 400
    assert "Whoever sees this answer" in out
    assert "left in the ledger: 0" in out
    code, out, err = run(*arguments)
    assert (code, out) == (3, "")
    assert err.startswith("refused: ")


def test_a_fit_and_an_evaluation_protect_persons(run, data, tmp_path):
    pytest.importorskip("opendp")
    frame = pd.read_csv(tmp_path / data)
    frame.insert(0, "patient", [f"p{k // 4}" for k in range(len(frame))])
    frame.to_csv(tmp_path / data, index=False)
    persons = ("--persons", "patient", "--rows-per-person", 2)
    named = "one person with at most 2 rows"
    rows = (data, "--target", "outcome", "--schema", "filled.toml", "--ledger", "p.ledger")
    made = ("--budget", 10, "--epsilon", 3)
    new = ("--new-ledger", "--out", "a.tree.json")
    code, out, _ = run("fit", *rows, *made, *new, *persons)
    assert code == 0
    assert named in out
    code, out, _ = run("evaluate", "a.tree.json", *rows, *made, *persons)
    assert code == 0
    assert named in out
    ledger = run("ledger", "p.ledger", "--budget", 10, "--json")[1]
    assert ledger.count(named) == 2
    code, _, err = run("evaluate", "a.tree.json", *rows, *made, *persons[:2])
    assert code == 2
    assert "go together" in err


# ---- simulate ----
def simulated(run, *more):
    return run("simulate", "--schema", "filled.toml", "--rows", 400, "--repeats", 2, *more)


def test_a_simulation_needs_no_rows_and_no_ledger(run, data, tmp_path):
    code, out, _ = simulated(run, "--epsilon", 0.5, "--epsilon", 4)
    assert code == 0
    assert out.count("accuracy at epsilon") == 2
    assert "from generated rows: no budget was spent, and these results are not private" in out
    assert not list(tmp_path.glob("*.ledger"))
    assert simulated(run, "--epsilon", 0.5, "--epsilon", 4)[1] == out


def test_a_simulation_of_public_rows(run, data, tmp_path):
    pytest.importorskip("matplotlib")
    public = ("--public-data", data, "--target", "outcome", "--epsilon", 4)
    code, out, _ = simulated(run, *public, "--out", "curve.png")
    assert code == 0
    assert "patients.csv, taken to be public" in out
    assert (tmp_path / "curve.png").stat().st_size > 1_000
    told = json.loads(simulated(run, *public, "--json")[1])
    assert told["fits"][0]["epsilon"] == 4.0
    assert told["fits"][0]["accuracy"] > 0.8


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--public-data", "patients.csv"), "belong together"),
        (("--public-data", "patients.csv", "--target", "nobody"), "is not a column"),
        (("--epsilon", 0), "epsilon must be"),
        (("--out", "nowhere/curve.png"), "make its folder first"),
    ],
)
def test_a_wrong_simulation_is_refused_in_one_line(run, data, more, message):
    code, _, err = simulated(run, *more)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_the_help_warns_of_private_rows(run):
    out = run("simulate", "--help")[1]
    assert "NEVER the private ones" in " ".join(out.split())
