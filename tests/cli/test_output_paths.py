"""A place that cannot be written is refused before anything is read or spent."""

import pathlib

import pytest
import typer

from steadytree.cli import app as cli
from tests.cli.commands import names_in, refused
from tests.cli.test_output import leaves
from tests.federated import hospitals

NOWHERE = pathlib.Path("/proc/nothing.html")
ROWS = ("none.csv", "--target", "outcome")
PRIVATE = ("--schema", "none.toml", "--epsilon", 1, "--ledger", "l", "--budget", 1)
# none of the files that commands read is there: what they say first is about the place
CASES = {
    "report": (ROWS, ["--out", "--save-model"]),
    "compare": (ROWS, ["--out"]),
    "fit": (ROWS, ["--out"]),
    "diff": (("none.tree.json", "none.tree.json"), ["--out"]),
    "retrain": ((*ROWS, "--previous", "none.tree.json"), ["--out", "--picture"]),
    "score": (ROWS, ["--out", "--save", "--sheet", "--bands"]),
    "export": (("none.tree.json", "--to", "sql"), ["--out"]),
    "predict": (("none.tree.json", "none.csv"), ["--out"]),
    "reproduce": (("average-sensitivity", "--quick"), ["--out"]),
    "private schema": (ROWS, ["--out"]),
    "private fit": ((*ROWS, *PRIVATE, "--new-ledger"), ["--out"]),
    "private simulate": (("--schema", "none.toml", "--rows", 9), ["--out"]),
    "private ask": (("plan.toml",), ["--out"]),
}
WAYS = [(name, option) for name, (_, options) in CASES.items() for option in options]
proc_only = pytest.mark.skipif(not NOWHERE.parent.is_dir(), reason="there is no /proc")


def test_every_option_that_names_a_place_to_write_is_tried():
    found = {
        (name, option.opts[0])
        for name, command in leaves(typer.main.get_command(cli.app)).items()
        for option in command.params
        if (getattr(option, "help", "") or "").startswith("Where to")
    }
    assert found == set(WAYS)


@pytest.fixture
def plan(run):
    hospitals.SCHEMA.save("schema.toml")
    hospitals.write_plan()


@proc_only
@pytest.mark.parametrize(("name", "option"), WAYS)
def test_a_folder_that_takes_no_files_is_refused_first(run, plan, tmp_path, name, option):
    before = names_in(tmp_path)
    refused(run(*name.split(), *CASES[name][0], option, NOWHERE), "cannot write")
    assert names_in(tmp_path) == before


@pytest.mark.parametrize(("name", "option"), WAYS)
def test_a_file_is_no_folder(run, plan, tmp_path, name, option):
    before = names_in(tmp_path)
    refused(run(*name.split(), *CASES[name][0], option, "plan.toml/a.html"), "cannot write")
    assert names_in(tmp_path) == before


def test_a_picture_that_cannot_be_drawn_is_refused_first(run):
    pytest.importorskip("matplotlib")
    asked = CASES["private simulate"][0]
    refused(run("private", "simulate", *asked, "--out", "a.html"), "--out must end in one of .png")


@proc_only
@pytest.mark.parametrize("out", ["../../../../../../../../../../proc/tree.json", "plan.toml/tree"])
def test_a_study_whose_tree_cannot_be_written_merges_nothing(run, plan, out):
    pytest.importorskip("cryptography")
    hospitals.write_plan(out=out)
    refused(run("private", "merge", "plan.toml", "none.answer.json"), "cannot write")


@pytest.mark.skipif(not pathlib.Path("/proc/self").is_dir(), reason="there is no /proc")
def test_no_budget_is_spent_on_an_answer_that_cannot_be_written(run, tmp_path, monkeypatch):
    pytest.importorskip("cryptography")
    hospitals.write_files(tmp_path, n_rows=60)
    hospitals.write_plan()
    assert run("private", "keys", "plan.toml")[0] == 0
    assert run("private", "ask", "plan.toml")[0] == 0
    question = next(pathlib.Path("questions").glob("*.0000.north.question.json"))
    monkeypatch.setattr("steadytree.federated.signed_files.answer_path", lambda asked: NOWHERE)
    rows = ("--data", "north.csv", "--schema", "schema.toml", "--ledger", "l", "--budget", 4)
    asked = (question, "--keys", "keys/north", *rows, "--new-ledger")
    refused(run("private", "answer", *asked), "cannot write")
    assert not pathlib.Path("l").exists()
