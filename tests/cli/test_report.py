"""The commands report, compare and reproduce as a user calls them."""

import inspect
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import steadytree as st
from steadytree.cli import report
from tests.cli.commands import as_ordinary_user, names_in, refused, steadytree

COMMANDS = ["report", "compare", "diff", "retrain", "certify", "score", "private", "reproduce"]
LIMITS = 'min_accuracy = "{}"\nmax_leaves = 30\n'


@pytest.fixture
def frame(tmp_path):
    rng = np.random.default_rng(0)
    n = 160
    frame = pd.DataFrame({"age": rng.normal(50, 12, n).round(1), "income": rng.gamma(3, 900, n)})
    frame["sex"] = rng.choice(["f", "m"], n)
    frame["outcome"] = np.where(frame["age"] + rng.normal(0, 6, n) > 52, "ill", "well")
    frame.to_csv(tmp_path / "data.csv", index=False)
    return frame


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "Examples:" in out
    assert f"steadytree {command}" in out


def test_every_command_is_listed(run):
    _, out, _ = run("--help")
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", out, re.M)


def test_completion_knows_the_commands(tmp_path, monkeypatch):
    monkeypatch.setenv("_STEADYTREE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "steadytree re")
    monkeypatch.setenv("COMP_CWORD", "1")
    _, out, _ = steadytree(tmp_path)
    assert out.split() == ["report", "retrain", "reproduce"]


def test_excel_exports_are_compared_like_plain_csv(tmp_path, frame):
    text = frame.to_csv(index=False, sep=";", decimal=",")
    (tmp_path / "excel.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    asked = ("--target", "outcome", "--learners", "cart,stable", "--folds", "2")
    found = []
    for name in ("data.csv", "excel.csv"):
        code, out, err = steadytree(tmp_path, "compare", name, *asked, "--json")
        assert (code, err) == (0, "")
        found.append(json.loads(out))
    assert found[0]["data_sha256"] == found[1]["data_sha256"]
    measurements = [page["comparison"]["learners"][0]["readings"]["accuracy"] for page in found]
    assert measurements[0] == measurements[1]
    assert "<section" in (tmp_path / "compare.html").read_text("utf-8")


def test_compare_prints_a_table_and_its_page_goes_into_a_report(run, frame, tmp_path):
    asked = ("data.csv", "--target", "outcome", "--learners", "cart,stable", "--folds", "2")
    code, out, err = run("compare", *asked)
    assert (code, err) == (0, "")
    assert re.search(r"^cart +\d", out, re.M)
    assert "written: compare.html" in out
    asked = ("data.csv", "--target", "outcome", "--comparison", "compare.html", "--json")
    code, out, _ = run("report", *asked, "--quick")
    assert code == 0
    assert [one["name"] for one in json.loads(out)["comparison"]["learners"]] == ["cart", "stable"]
    refused(run("report", *asked, "--drop", "sex", "--quick"), "other rows or columns")
    (tmp_path / "compare.html").write_text("nothing", "utf-8")
    refused(run("report", *asked), "holds no comparison")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--learners", "luck"], "learners must be some of steady, cart"),
        (["--folds", "1"], "--folds"),
        (["--noise", "none.toml"], "none.toml"),
        (["--out", "no/a.html"], "make its folder first"),
        (["--drop", "outcome"], "both the target and dropped"),
    ],
)
def test_wrong_comparisons_are_refused(run, frame, tmp_path, arguments, message):
    refused(run("compare", "data.csv", "--target", "outcome", *arguments), message)
    assert names_in(tmp_path) == ["data.csv"]


def test_the_event_can_be_named(run, frame):
    asked = ("data.csv", "--target", "outcome", "--quick", "--learners", "none", "--json")
    labels = sorted(set(frame["outcome"].astype(str)))
    for label in labels:
        code, out, _ = run("report", *asked, "--positive", label)
        assert code == 0
        assert json.loads(out)["validation"]["label"] == label
    refused(run("report", *asked, "--positive", "maybe"), "positive must be one of the classes")


def test_full_report_of_a_file(run, frame, tmp_path):
    (tmp_path / "noise.toml").write_text("[radius]\nage = 1.0\n", "utf-8")
    asked = ("--target", "outcome", "--by", "sex", "--noise", "noise.toml", "--learner", "stable")
    code, out, err = run("report", "data.csv", *asked, "--learners", "cart,stable", "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert data["robustness"]["perturbation"]["radius"] == {"age": 1.0}
    assert data["stability"]["learner"] == "StableTreeClassifier"
    assert {one["name"] for one in data["groups"][0]["groups"]} == {"f", "m"}
    assert data["card"] is not None
    assert "sensitivity" not in data["comparison"]["learners"][0]["readings"]  # compare has it
    assert data["origin"]["command"].startswith("steadytree report data.csv --target outcome")


def test_a_sign_off_file_is_shown_on_the_page(run, frame, tmp_path):
    (tmp_path / "sign.toml").write_text(
        'title = "Model <3>"\nowner = "Clinic"\ndecision = "approved"\nversion = "3.1"\n'
        '[[signatures]]\nname = "A. Validator"\nrole = "validation"\ndate = 2026-11-01\n',
        "utf-8",
    )
    asked = ("report", "data.csv", "--target", "outcome", "--learner", "cart", "--quick")
    code, out, err = run(*asked, "--sign-off", "sign.toml", "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert data["title"] == "Model <3>"
    signed = {"name": "A. Validator", "role": "validation", "date": "2026-11-01"}
    assert data["sign_off"]["signatures"] == [signed]
    page = (tmp_path / "report.html").read_text("utf-8").partition("<script")[0]
    for text in ("Model &lt;3&gt;", "Clinic", "approved", "3.1", "A. Validator", "2026-11-01"):
        assert text in page
    (tmp_path / "sign.toml").write_text('owners = "Clinic"\n', "utf-8")
    code, out, err = run(*asked, "--sign-off", "sign.toml", "--out", "other.html")
    assert (code, out) == (2, "")
    assert "sign.toml: unknown key 'owners'" in err
    assert not (tmp_path / "other.html").exists()


def test_noise_and_learners_that_are_named_are_measured_in_a_quick_report(run, frame, tmp_path):
    (tmp_path / "noise.toml").write_text("[radius]\nage = 1.0\n", "utf-8")
    asked = ("report", "data.csv", "--target", "outcome", "--quick", "--json")
    data = json.loads(run(*asked)[1])
    assert (data["robustness"], data["comparison"]) == (None, None)
    named = ("--noise", "noise.toml", "--learners", "cart,stable")
    data = json.loads(run(*asked, *named)[1])
    assert data["robustness"]["perturbation"]["radius"] == {"age": 1.0}
    assert [one["name"] for one in data["comparison"]["learners"]] == ["cart", "stable"]
    assert data["stability"] is None


COMMANDS_THAT_FIT = {
    "report": ("--quick",),
    "compare": ("--learners", "cart", "--folds", "2"),
    "fit": (),
    "score": ("--noise", "0"),
    "retrain": ("--previous", "a.tree.json"),
}


@pytest.mark.parametrize("command", COMMANDS_THAT_FIT)
def test_columns_that_name_or_number_rows_are_noticed(run, frame, tmp_path, command):
    rows = np.arange(len(frame))
    frame = frame.assign(case=rows + 7, note=[f"patient {k} felt unwell" for k in rows])
    frame.to_csv(tmp_path / "data.csv", index=False)
    model = st.StableTreeClassifier(2, 0, random_state=0)
    model.fit(frame.drop(columns=["outcome", "note"]), frame["outcome"]).save("a.tree.json")
    asked = (command, "data.csv", "--target", "outcome", *COMMANDS_THAT_FIT[command])
    refused(run(*asked), "'note' has different texts for .* free text have.*--drop note")
    code, _, err = run(*asked, "--drop", "note")
    assert code == 0
    assert re.match("warning: 'case' numbers the rows and cannot predict .* --drop case\n$", err)


def test_identifiers_are_noticed_in_blocks_too(run, frame, tmp_path):
    frame.assign(note=[f"patient {k}" for k in range(len(frame))]).to_parquet("data.parquet")
    refused(run("fit", "data.parquet", "--target", "outcome"), "'note' has different .*--drop note")
    assert run("fit", "data.parquet", "--target", "outcome", "--drop", "note")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "data.csv", "--target", "outcome", "--out", "locked/a.html"),
        ("compare", "data.csv", "--target", "outcome", "--out", "locked/a.html"),
        ("score", "data.csv", "--target", "outcome", "--save", "locked/a.card.json"),
        ("reproduce", "separation", "--quick", "--out", "locked/new"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_folder_that_may_not_be_written_to_is_left_as_it_was(frame, tmp_path, arguments):
    before = as_ordinary_user()
    if before is None:
        pytest.skip("this user may write everywhere")
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked").chmod(0o555)
    refused(steadytree(tmp_path, *arguments, before=before), "folder may not be written to")
    assert names_in(tmp_path / "locked") == []
    assert names_in(tmp_path) == ["data.csv", "locked"]


@pytest.mark.parametrize("n_rare", [1, 3])
def test_a_rare_class_does_not_keep_a_report_from_being_made(run, frame, n_rare):
    frame.loc[: n_rare - 1, "outcome"] = "odd"
    frame.to_csv("data.csv", index=False)
    code, out, err = run(
        "report", "data.csv", "--target", "outcome", "--learners", "cart", "--json"
    )
    assert (code, err) == (0, "")
    note = json.loads(out)["comparison"]["note"]
    assert note == "Classes with fewer than 3 rows are left out of the comparison: 'odd'."


def test_groups_may_be_a_column_the_tree_does_not_see(run, frame):
    asked = ("--target", "outcome", "--drop", "sex", "--by", "sex", "--quick", "--json")
    data = json.loads(run("report", "data.csv", *asked)[1])
    assert data["groups"][0]["column"] == "sex"
    assert "sex" not in [column["name"] for column in data["data"]["columns"]]


@pytest.mark.parametrize(("least", "code"), [("10%", 0), ("99.9%", 3)])
def test_limits_decide_the_exit_code(run, frame, tmp_path, least, code):
    (tmp_path / "limits.toml").write_text(LIMITS.format(least), "utf-8")
    asked = ("report", "data.csv", "--target", "outcome", "--limits", "limits.toml", "--quick")
    found, out, err = run(*asked)
    assert found == code
    assert f"Limits: {2 if code == 0 else 1} of 2 passed" in out
    assert len(out.splitlines()) <= 40
    said = "limit exceeded: share of rows predicted correctly (min_accuracy)" in err
    assert said == (code == 3)
    assert "report.html" in names_in(tmp_path)


def test_a_limit_that_nobody_measured_is_not_met(run, frame, tmp_path):
    (tmp_path / "limits.toml").write_text("max_epsilon = 1\n", "utf-8")
    asked = ("report", "data.csv", "--target", "outcome", "--limits", "limits.toml", "--quick")
    code, _, err = run(*asked)
    assert code == 3
    assert "could not be measured" in err


def test_model_and_previous_tree_from_files(run, frame, tmp_path):
    X, y = frame.drop(columns="outcome"), frame["outcome"]
    st.StableTreeClassifier(2, 0, random_state=0).fit(X, y).save(tmp_path / "new.tree.json")
    old = st.StableTreeClassifier(1, 0, random_state=0).fit(X[::2], y[::2])
    old.save(tmp_path / "old.tree.json")
    asked = ("report", "data.csv", "--target", "outcome", "--model", "new.tree.json", "--quick")
    data = json.loads(run(*asked, "--previous", "old.tree.json", "--json")[1])
    assert data["change"]["rows"]["n_rows"] == 160
    assert data["stability"] is None


def test_saved_cards_are_reported_on(run, frame, tmp_path):
    X, y = frame.drop(columns="outcome"), frame["outcome"]
    card = st.RiskScoreClassifier(noise=0.02, max_conditions=3, random_state=0).fit(X, y)
    card.save(tmp_path / "a.card.json")
    asked = ("report", "data.csv", "--target", "outcome", "--model", "a.card.json", "--quick")
    data = json.loads(run(*asked, "--json")[1])
    assert data["readings"]["accuracy"][0]["value"] == card.score(X, y)
    assert data["kind"] == "card"
    refused(run(*asked, "--learner", "stable"), "--model is a risk score")


def test_privacy_ledger_in_a_report(run, frame, tmp_path):
    ledger = st.Ledger(tmp_path / "a.ledger", budget=2.0)
    ledger.spend(0.5, "tree")
    asked = ("report", "data.csv", "--target", "outcome", "--quick", "--json")
    data = json.loads(run(*asked, "--ledger", "a.ledger", "--budget", "2")[1])
    assert data["privacy"]["ledger"]["spent"] == 0.5
    refused(run(*asked, "--ledger", "a.ledger"), "--ledger and --budget belong together")
    refused(run(*asked, "--ledger", "b.ledger", "--budget", "2"), "no such ledger")
    code, out, _ = run("private", "ledger", "a.ledger", "--budget", "2", "--json")
    assert code == 0
    assert json.loads(out)["left"] == 1.5


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ("min_acuracy = 0.9", "limits.toml: unknown limit 'min_acuracy'"),
        ("min_accuracy = 90", "must be a share"),
        ("nonsense", "is not a valid TOML file"),
    ],
)
def test_wrong_limits_are_refused_before_any_work(run, frame, tmp_path, limits, message):
    (tmp_path / "limits.toml").write_text(limits, "utf-8")
    refused(run("report", "data.csv", "--target", "outcome", "--limits", "limits.toml"), message)
    assert names_in(tmp_path) == ["data.csv", "limits.toml"]


def test_trees_of_another_version_or_other_columns_are_refused(run, frame, tmp_path):
    X, y = frame[["age"]], frame["outcome"]
    st.SteadyTreeClassifier(2).fit(X, y).save(tmp_path / "a.tree.json")
    text = (tmp_path / "a.tree.json").read_text("utf-8")
    (tmp_path / "b.tree.json").write_text(text.replace('"version": 1', '"version": 99'), "utf-8")
    (tmp_path / "other.csv").write_text("weight,outcome\n" + "1,ill\n2,well\n" * 20, "utf-8")
    asked = ("--target", "outcome", "--model")
    refused(run("report", "data.csv", *asked, "b.tree.json"), "version 99")
    refused(run("report", "other.csv", *asked, "a.tree.json"), r"lacks the column\(s\) 'age'")
    refused(run("report", "data.csv", "--target", "age"), "continuous numbers")


def test_too_many_classes_and_groups_are_refused(run, tmp_path):
    rows = "".join(f"{k},{k % 7},class {k % 250}\n" for k in range(1000))
    (tmp_path / "data.csv").write_text("a,b,y\n" + rows, "utf-8")
    refused(run("report", "data.csv", "--target", "y"), "250 different values")
    refused(run("report", "data.csv", "--target", "b", "--by", "a"), "--by a: .* 1,000 different")
    assert names_in(tmp_path) == ["data.csv"]


def test_html_in_a_file_is_escaped(run, tmp_path):
    rng = np.random.default_rng(0)
    bad = "<script>alert(1)</script>"
    frame = pd.DataFrame({f"a{bad}": rng.normal(size=90), "b": rng.choice([bad, "x"], 90)})
    frame["y"] = np.where(frame.iloc[:, 0] > 0, bad, "<img src=x>")
    frame.to_csv(tmp_path / "data.csv", index=False)
    code, _, _ = run("report", "data.csv", "--target", "y", "--by", "b", "--quick")
    assert code == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    assert bad not in page
    assert "<img" not in page


def test_score_as_json(run, frame):
    code, out, _ = run("score", "data.csv", "--target", "outcome", "--noise", "0.02", "--json")
    assert code == 0
    told = {"card", "risks", "objective", "noise", "certified_accuracy", "written"}
    assert set(json.loads(out)) == told


def test_studies_are_listed_and_found(run, tmp_path):
    code, out, _ = run("reproduce", "--json")
    assert code == 0
    assert set(json.loads(out)) >= {"average_sensitivity", "separation", "tree_distance"}
    refused(run("reproduce", "separaton"), "did you mean 'separation'")
    refused(run("reproduce", "separation", "--data", "none"), "is not a folder")


def test_text_among_numbers_is_noticed_when_a_tree_is_fitted(run, tmp_path):
    rows = pd.DataFrame({"age": [*range(30)] * 4, "outcome": ["a", "b"] * 60})
    rows = rows.astype({"age": object})
    rows.loc[5, "age"] = "forty"
    rows.to_csv(tmp_path / "data.csv", index=False)
    code, _, err = run("fit", "data.csv", "--target", "outcome", "--learner", "stable")
    assert code == 0
    assert err.startswith("warning: 'age' holds numbers, but also text such as 'forty', so each")


def test_a_quick_report_loads_only_what_it_uses(frame, tmp_path):
    script = (
        "import sys; from steadytree.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted(sys.modules), file=open('loaded', 'w'))"
    )
    asked = ("report", "data.csv", "--target", "outcome", "--quick")
    subprocess.run([sys.executable, "-c", script, *asked], cwd=tmp_path, check=True)
    assert (tmp_path / "report.html").exists()
    loaded = (tmp_path / "loaded").read_text("utf-8").split()
    # what dependencies load by themselves: old ones load more
    script = "import sys, sklearn.base, narwhals, numba, scipy.special; print(*sys.modules)"
    anyway = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    anyway = anyway.stdout.split()
    for name in ("pandas.core", "scipy.stats.distributions", "scipy.optimize", "sklearn.tree"):
        assert name not in loaded or name in anyway
    assert "sklearn.base" in loaded


def test_a_page_is_not_written_as_another_kind_of_file(run, frame, tmp_path):
    for command in ("report", "compare"):
        asked = (command, "data.csv", "--target", "outcome", "--out", "page.pdf")
        refused(run(*asked), "'page.pdf' must end in .html")
    assert names_in(tmp_path) == ["data.csv"]


def test_help_lists_every_option_under_a_title():
    parameters = set(inspect.signature(report.report).parameters) - {"data"}
    assert set(report.TITLES) == parameters


def test_titles_are_shown(run):
    code, out, _ = run("report", "--help")
    assert code == 0
    assert all(f"\n{title}:\n" in out for title in report.LISTED)
