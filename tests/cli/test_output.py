"""Every command with --json prints one document of JSON and nothing else."""

import json
import pathlib

import numpy as np
import pandas as pd
import pytest
import typer

from steadytree.cli import app as cli
from steadytree.data.schema import Schema
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.federated import hospitals

DAEMONS = {"private holder serve", "private holder join"}  # which end by being stopped, and log
ROWS = ("rows.csv", "--target", "outcome")
PRIVATE = ("--schema", "s.toml", "--epsilon", 1, "--ledger", "a.ledger", "--budget", 9)
PRIVATE += ("--new-ledger",)
CASES = {
    "report": (*ROWS, "--quick"),
    "compare": (*ROWS, "--learners", "cart,stable", "--folds", 2),
    "fit": ROWS,
    "diff": ("old.tree.json", "new.tree.json", "--data", "rows.csv", "--out", "changes.svg"),
    "retrain": (*ROWS, "--previous", "old.tree.json", "--picture", "changes.svg"),
    "certify": ("old.tree.json", *ROWS, "--noise", "noise.toml"),
    "explain": ("old.tree.json", "rows.csv", "--row", 0),
    "predict": ("old.tree.json", "rows.csv"),
    "export": ("old.tree.json", "--to", "sql"),
    "score": (*ROWS, "--noise", 0.02, "--save", "a.card.json"),
    "reproduce": (),
    "private schema": ROWS,
    "private fit": (*ROWS, *PRIVATE, "--out", "private.tree.json"),
    "private evaluate": ("old.tree.json", *ROWS, *PRIVATE),
    "private simulate": ("--schema", "s.toml", "--rows", 80, "--epsilon", 1, "--repeats", 2),
    "private ledger show": ("a.ledger", "--budget", 9),
    "private ledger verify": ("a.ledger",),
    "private holder status": ("--socket", "north.sock"),
    "private keys": ("plan.toml",),
    "private ask": ("plan.toml",),
    "private answer": (),
    "private merge": (),
    "private coordinate": ("plan.toml",),
}


def leaves(command, name=""):
    """All commands by what is typed to get there."""
    if not hasattr(command, "commands"):
        return {name.strip(): command}
    found = {}
    for word, inside in command.commands.items():
        found |= leaves(inside, f"{name} {word}")
    return found


def test_every_command_has_a_case_and_the_option():
    found = leaves(typer.main.get_command(cli.app))
    slow = {"warm-up", "private rehearse"}  # which have tests of their own
    assert set(found) == set(CASES) | DAEMONS | slow
    without = {
        name
        for name, command in found.items()
        if not any("--json" in option.opts for option in command.params)
    }
    assert without == DAEMONS


@pytest.fixture
def files(run):
    """Rows, two trees, noise and a schema."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(20, 90, 80).round(1), "ward": rng.choice([*"AB"], 80)})
    frame["outcome"] = np.where(frame["age"] > 50, "ill", "well")
    frame.to_csv("rows.csv", index=False)
    for name, depth in (("old", 1), ("new", 2)):
        model = StableTreeClassifier(depth, 0, random_state=0)
        model.fit(frame[["age", "ward"]], frame["outcome"]).save(f"{name}.tree.json")
    pathlib.Path("noise.toml").write_text("[radius]\nage = 1\n", "utf-8")
    Schema({"age": (0, 100)}, {"ward": ["A", "B"]}, ["ill", "well"]).save("s.toml")


@pytest.fixture
def study(request, run, files, tmp_path, monkeypatch):
    """What the commands for several holders need before they can be called."""
    name = request.node.callspec.params["name"]
    if name.startswith("private ledger"):
        run("private", "fit", *CASES["private fit"])
    if name not in ("private keys", "private ask", "private answer", "private merge"):
        return
    pytest.importorskip("cryptography")
    hospitals.write_files(tmp_path, n_rows=60)
    hospitals.write_plan()
    if name != "private keys":
        run("private", "keys", "plan.toml")
    if name in ("private answer", "private merge"):
        run("private", "ask", "plan.toml")
        if name == "private merge":
            for holder in hospitals.NAMES:
                assert run("private", "answer", *answer(holder))[0] == 0


def answer(holder):
    """Arguments to answer the first question as one of the hospitals."""
    [question] = pathlib.Path("questions").glob(f"*.0000.{holder}.question.json")
    rows = ("--data", f"{holder}.csv", "--schema", "schema.toml", "--testing-seed", 1)
    account = ("--ledger", f"{holder}.ledger", "--budget", 4, "--new-ledger")
    return (question, "--keys", f"keys/{holder}", *rows, *account)


class Link:
    """A SuperLink that has run a study as soon as it is asked to."""

    is_alive = True

    def __init__(self, study, plan, folder):
        self._facts = study.facts

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def register(self):
        return {}

    def run(self, nodes):
        self._facts.write_text(
            json.dumps({"ok": True, "rounds": 5, "epsilons": {"north": 2.0}}), "utf-8"
        )


@pytest.mark.parametrize("name", CASES)
def test_json_is_all_that_is_printed(run, study, name, tmp_path, monkeypatch):
    arguments = CASES[name]
    if name == "private answer":
        arguments = answer("north")
    if name == "private merge":
        arguments = ("plan.toml", *pathlib.Path("questions").glob("*.answer.json"))
    if name == "private coordinate":
        hospitals.SCHEMA.save("schema.toml")
        hospitals.write_plan()
        monkeypatch.setattr("steadytree.federated.flower.superlink.check_ready", lambda study: None)
        monkeypatch.setattr("steadytree.federated.flower.superlink.SuperLink", Link)
    if name == "private holder status":
        with hospitals.gateway_of(tmp_path) as gateway:
            carry = lambda socket, letter, seconds: gateway.reply(letter)  # noqa: E731
            monkeypatch.setattr("steadytree.federated.framing.carry", carry)
            code, out, err = run(*name.split(), *arguments, "--json")
    else:
        code, out, err = run(*name.split(), *arguments, "--json")
    assert code == 0, err
    assert err == "" or name == "private coordinate"  # which says whom it waits for
    found = json.loads(out)
    assert found
    for path in found.get("written", ()):
        assert pathlib.Path(path).exists() or name == "private coordinate"


def test_a_saved_card_prints_totals_and_answers(run, files):
    assert run("score", *CASES["score"])[0] == 0
    code, out, err = run("score", "rows.csv", "--card", "a.card.json", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert len(found["totals"]) == len(found["answers"]) == 80
    code, out, _ = run("score", "rows.csv", "--card", "a.card.json")
    lines = out.splitlines()
    at = lines[0].split(",").index("prediction")
    assert lines[0].startswith("age,ward,outcome,total,risk well,prediction")
    assert [line.split(",")[at] for line in lines[1:]] == found["answers"]
