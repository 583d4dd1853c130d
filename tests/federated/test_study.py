"""Studies among gateways: one tree, whatever carries the letters and whatever goes wrong."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from steadytree._base.exceptions import HolderError
from steadytree.data.schema import Schema
from steadytree.federated import coordinator as studies
from steadytree.federated.framing import Refusal, read, refusal, write
from steadytree.federated.strategies import METHODS
from steadytree.federated.study import StudyConfig
from steadytree.federated.transport import InMemory, Sockets
from steadytree.models.files import load
from steadytree.privacy.ledger import Ledger
from tests.federated import hospitals
from tests.federated.hospitals import NAMES, SCHEMA, unix_only
from tests.federated.studies import Faulty, gateways, in_process, make_plan, run_study


@pytest.mark.parametrize("method", sorted(METHODS))
def test_messages_change_nothing_of_a_study(tmp_path, method):
    plan = make_plan(tmp_path, method=method)
    with gateways(tmp_path) as served:
        study = run_study(plan, InMemory(served))
        spent = [gateway.holder.ledger.spent for gateway in served]
    assert (study.tree, spent) == in_process(tmp_path / "twin", plan)
    assert load(tmp_path / "tree.json") == study.tree
    facts = json.loads((tmp_path / "tree.json.study.json").read_text("utf-8"))
    assert facts["ok"]
    assert list(facts["epsilons"].values()) == pytest.approx(spent)
    assert len(facts["seconds"]) == facts["rounds"]
    assert "NOT PRIVATE" in facts["privacy"]["guarantee"]


@pytest.mark.parametrize("place", [None, 1])
def test_a_study_says_whom_all_of_its_holders_protect(tmp_path, place):
    """Persons, if every holder says so in its hello; one that does not makes it rows."""
    plan = make_plan(tmp_path)
    with gateways(tmp_path) as served:
        for index, gateway in enumerate(served):
            gateway.holder.rows_per_person = None if index == place else 2 + index
        study = run_study(plan, InMemory(served))
    persons = "add or remove one person with at most 4 rows of one holder"
    expected = persons if place is None else "add or remove one row of one holder"
    assert study.privacy.relation == expected


def test_every_level_is_one_round(tmp_path):
    rounds = {}
    for method in METHODS:
        folder = tmp_path / method
        folder.mkdir()
        plan = make_plan(folder, method=method)
        with gateways(folder) as served:
            rounds[method] = run_study(plan, InMemory(served)).rounds
    # rows, two blocks, leaves; a duel judges each block; a vote judges at the end
    assert rounds["delegate"] == rounds["vote"] == 4
    assert rounds["duel"] == 6
    assert rounds["noisy_counts"] <= 7


def test_the_holders_alone_replay_a_study_whose_checkpoint_is_lost(tmp_path):
    plan = make_plan(tmp_path)
    with gateways(tmp_path) as served:
        first = run_study(plan, InMemory(served))
        spent = [gateway.holder.ledger.spent for gateway in served]
        plan.checkpoint.unlink()
        again = run_study(plan, InMemory(served))
        assert again.tree == first.tree
        assert [gateway.holder.ledger.spent for gateway in served] == spent


class Stopped(Exception):
    pass


@pytest.mark.parametrize("after", range(4))
def test_a_stopped_coordinator_goes_on_where_it_was(tmp_path, after):
    plan, asked = make_plan(tmp_path), []

    def stops(name, message, reply):
        asked.append(read(message)["type"])
        if asked.count("question") > after:
            raise Stopped
        return reply

    with gateways(tmp_path) as served:
        with pytest.raises(Stopped):
            run_study(plan, Faulty(served, stops))
        study = run_study(plan, InMemory(served))
        spent = [gateway.holder.ledger.spent for gateway in served]
    assert (study.tree, spent) == in_process(tmp_path / "twin", plan)
    assert study.resumed == [0, 0, 0, 1][after]  # only whole rounds are in the checkpoint


def test_a_checkpoint_of_another_plan_is_refused(tmp_path):
    with gateways(tmp_path) as served:
        run_study(make_plan(tmp_path), InMemory(served))
        other = make_plan(tmp_path, epsilon=1.0)
        with pytest.raises(ValueError, match="another study, or the plan was changed"):
            run_study(other, InMemory(served))
        other.checkpoint.unlink()
        spent = [gateway.holder.ledger.spent for gateway in served]
        with pytest.raises(HolderError, match="another question was asked"):
            run_study(other, InMemory(served))
        assert [gateway.holder.ledger.spent for gateway in served] == spent


LIMITS = {"max_splits": 3, "error": 0.2, "budget": "uniform", "leaf_share": 0.4}


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("method", ["local_rnm", "noisy_counts"])
def test_the_limits_of_a_plan_are_those_of_its_tree(tmp_path, method, criterion):
    plan = make_plan(tmp_path, method=method, criterion=criterion, **LIMITS)
    with gateways(tmp_path) as served:
        study = run_study(plan, InMemory(served))
        spent = [gateway.holder.ledger.spent for gateway in served]
    assert (study.tree, spent) == in_process(tmp_path / "twin", plan)
    facts = json.loads((tmp_path / "tree.json.study.json").read_text("utf-8"))
    assert facts["numbers"] == study.numbers > 0
    # a number is eight bytes, in base64 eleven letters, beside the words of a message
    assert facts["bytes_in"] > 8 * study.numbers
    assert study.tree.n_leaves <= 4


@pytest.mark.parametrize("changed", [{"max_splits": 4}, {"criterion": "entropy"}, {"error": 0.3}])
def test_a_study_is_not_resumed_with_other_limits(tmp_path, changed):
    with gateways(tmp_path) as served:
        run_study(make_plan(tmp_path, method="local_rnm", **LIMITS), InMemory(served))
        other = make_plan(tmp_path, method="local_rnm", **{**LIMITS, **changed})
        with pytest.raises(ValueError, match="the plan was changed since: name another"):
            run_study(other, InMemory(served))


# ---- holders that misbehave ----
def changed_answer(reply, **fields):
    content = read(reply)
    if "answer" in content:
        content["answer"] |= fields
    return write(content)


def nan_answer(reply):
    return reply.replace(b'"numbers":"', b'"numbers":NaN,"was":"')


ONE_ZERO = "AAAAAAAAAAA="
LIES = {
    "nothing": (lambda reply: None, "no reply before the deadline"),
    "no JSON": (lambda reply: b"\x00\x01", "not JSON"),
    "wrong shape": (lambda reply: changed_answer(reply, numbers=ONE_ZERO), "were asked for"),
    "half a number": (lambda reply: changed_answer(reply, numbers="AAAA"), "not counts"),
    "no base64": (lambda reply: changed_answer(reply, numbers="!"), "no answer"),
    "too large": (lambda reply: changed_answer(reply, numbers="/////////38="), "not counts"),
    "NaN": (nan_answer, "not JSON"),
    "another study": (lambda reply: changed_answer(reply, session="other"), "another request"),
    "another round": (lambda reply: changed_answer(reply, round=99), "another request"),
    "another question": (
        lambda reply: changed_answer(reply, question="0" * 64),
        "another question",
    ),
    "another holder": (lambda reply: changed_answer(reply, holder="east"), "another holder's name"),
    "a refusal": (lambda reply: refusal(Refusal.LOST), "its stored answer is gone"),
    "an unknown code": (lambda reply: b'{"code":"ha","ok":false,"version":2}', "could not read"),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("minimum", [2, 3])
def test_a_holder_that_answers_wrong_is_left_out_or_ends_the_study(tmp_path, lie, minimum):
    plan = make_plan(tmp_path, minimum=minimum)
    change, message = LIES[lie]

    def lies(name, message, reply):
        asked = read(message)
        wrong = name == "south" and asked["type"] == "question" and asked["request"]["round"] == 0
        return change(reply) if wrong else reply

    with gateways(tmp_path) as served:
        if minimum == 3:
            with pytest.raises(ValueError, match=message):
                run_study(plan, Faulty(served, lies))
            assert not plan.out.exists()
        else:
            study = run_study(plan, Faulty(served, lies))
            assert study.missing == ("south",)
            assert study.epsilons["south"] == 0
            assert run_study(plan, InMemory(served)).tree == study.tree  # also when resumed
            X, y = hospitals.rows(50)
            assert (study.tree.predict(X) == y).mean() > 0.9
        # whatever happened, what was paid is what was answered, and never twice
        for gateway in served:
            requests = [entry.request for entry in gateway.holder.ledger.entries]
            assert len(requests) == len(set(requests))
            assert gateway.holder.ledger.spent <= plan.epsilon


@pytest.mark.parametrize("method", ["delegate", "duel", "vote", "local_rnm"])
@pytest.mark.parametrize("dead_from", [0, 1, 2, 3])
def test_any_holder_may_go_away_in_any_round(tmp_path, method, dead_from):
    for missing in NAMES:
        folder = tmp_path / missing
        folder.mkdir()
        plan = make_plan(folder, minimum=2, method=method)

        def goes(name, message, reply, missing=missing):
            asked = read(message)
            number = asked["request"]["round"] if asked["type"] == "question" else -1
            return None if name == missing and number >= dead_from else reply

        with gateways(folder) as served:
            study = run_study(plan, Faulty(served, goes))
            assert all(gateway.holder.ledger.spent <= plan.epsilon for gateway in served)
        X, y = hospitals.rows(50)
        assert (study.tree.predict(X) == y).mean() > 0.8


def test_blocks_that_are_no_trees_are_refused(tmp_path):
    plan = make_plan(tmp_path, minimum=2)

    def lies(name, message, reply):
        if (
            read(message).get("request", {}).get("kind") in ("block", "last block")
            and name == "north"
        ):
            return changed_answer(reply, numbers="AAAAAAAAAAA=")  # a question without sides
        return reply

    with gateways(tmp_path) as served:
        study = run_study(plan, Faulty(served, lies))
    assert study.missing in ((), ("north",))
    X, y = hospitals.rows(50)
    assert (study.tree.predict(X) == y).mean() > 0.8


def test_a_spent_budget_in_the_middle_stops_the_study(tmp_path):
    plan = make_plan(tmp_path)
    with gateways(tmp_path) as served:

        def spends(name, message, reply):
            if name == "south" and read(message)["type"] == "question":
                with contextlib.suppress(ValueError):
                    served[1].holder.ledger.spend(3.9, "elsewhere")
            return reply

        with pytest.raises(HolderError, match="budget does not cover") as stopped:
            run_study(plan, Faulty(served, spends))
    assert stopped.value.refusal == Refusal.BUDGET


# ---- before anything is spent ----
def hello_changed(**fields):
    def change(name, message, reply):
        return write({**read(reply), **fields}) if name == "south" else reply

    return change


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (hello_changed(holder="west"), "calls itself 'west'"),
        (hello_changed(time=0.0), "clock of holder 'south' is off"),
        (hello_changed(time=1e12), "clock of holder 'south' is off"),
        (hello_changed(enough=False), "has less left"),
        (hello_changed(schema={}), "'classes' are None"),
        (hello_changed(private="yes"), "does not speak"),
        (lambda *_: b"", "does not speak"),
        (lambda *_: refusal(Refusal.MALFORMED), "refused to begin"),
    ],
)
def test_a_holder_that_does_not_fit_stops_a_study_before_it_begins(tmp_path, fault, message):
    with gateways(tmp_path) as served:
        with pytest.raises(ValueError, match=message) as stopped:
            run_study(make_plan(tmp_path), Faulty(served, fault))
        assert "Nothing was spent" in str(stopped.value)
        assert [gateway.holder.ledger.spent for gateway in served] == [0, 0, 0]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            Schema({"age": (0, 90), "dose": (0, 8)}, {"ward": ["A", "B", "C"]}, ["ill", "well"]),
            "age",
        ),
        (Schema({"age": (0, 100), "dose": (0, 8)}, {"ward": ["A", "B"]}, ["ill", "well"]), "ward"),
        (Schema({"age": (0, 100)}, {"ward": ["A", "B", "C"]}, ["ill", "well"]), "dose"),
        (
            Schema(SCHEMA.bounds, SCHEMA.categories, ["ill", "well", "unknown"]),
            "classes",
        ),
    ],
)
def test_schemas_that_differ_are_named_by_their_field(tmp_path, other, message):
    plan = make_plan(tmp_path)
    other.save(tmp_path / "schema.toml")
    with gateways(tmp_path) as served:
        with pytest.raises(ValueError, match=message):
            run_study(StudyConfig.load(tmp_path / "plan.toml"), InMemory(served))
        assert [gateway.holder.ledger.spent for gateway in served] == [0, 0, 0]
    assert not plan.checkpoint.exists()


def test_too_few_holders_online_spends_nothing(tmp_path):
    plan = make_plan(tmp_path)
    with gateways(tmp_path) as served:

        def silent(name, message, reply):
            return None if name == "east" else reply

        with pytest.raises(ValueError, match=r"2 of 3 holders answered.*'east' .not online"):
            run_study(plan, Faulty(served, silent))
        assert [gateway.holder.ledger.spent for gateway in served] == [0, 0, 0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"minimum": 4}, "only 3 holders"),
        ({"minimum": 0}, "minimum must be"),
        ({"holders": []}, "holders must be"),
        ({"holders": ["a", "a"]}, "names that differ"),
        ({"holders": ["a b"]}, "holders must be"),
        ({"study": "a/b"}, "study must be"),
        ({"schema": "no.toml"}, "no schema"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"method": "magic"}, "method must be"),
        ({"deadline": -1}, "deadline must be"),
        ({"superlink": "here"}, "host:port"),
        ({"surprise": 1}, "is not a key of a plan"),
        ({"max_splits": 5}, "'max_splits' is for methods .*, not 'delegate': leave it out"),
        ({"method": "local_rnm", "max_splits": 0}, "max_splits must be a whole number from 1"),
        ({"method": "local_rnm", "leaf_share": 1}, "leaf_share must be less than 1"),
        ({"method": "noisy_counts", "criterion": "gin"}, "criterion must be one of"),
        ({"method": "noisy_counts", "error": "small"}, "error must be a number"),
    ],
)
def test_plans_are_checked_when_read(tmp_path, changed, message):
    with pytest.raises((ValueError, OSError), match=message):
        make_plan(tmp_path, **changed)


def test_a_plan_that_is_no_plan(tmp_path):
    (tmp_path / "plan.toml").write_text("study = ", "utf-8")
    with pytest.raises(ValueError, match="cannot be read as a plan"):
        StudyConfig.load(tmp_path / "plan.toml")
    (tmp_path / "plan.toml").write_text("study = 's'", "utf-8")
    with pytest.raises(ValueError, match="needs 'schema'"):
        StudyConfig.load(tmp_path / "plan.toml")
    with pytest.raises(FileNotFoundError, match="no plan"):
        StudyConfig.load(tmp_path / "none.toml")


# ---- real processes at sockets ----
COORDINATOR = """
import sys
from steadytree.federated.coordinator import run_study
from steadytree.federated.study import StudyConfig
from steadytree.federated.study import StudyConfig
from steadytree.federated.transport import Sockets
plan = StudyConfig.load("plan.toml")
run_study(plan, Sockets({name: f"{name}.sock" for name in plan.holders}))
"""


@unix_only
def test_processes_that_are_killed_and_started_again_end_in_the_same_tree(tmp_path, monkeypatch):
    """A holder is killed in the middle of a level, the coordinator too; nothing is lost."""
    hospitals.write_files(tmp_path)
    plan = make_plan(tmp_path, deadline=600, attempt=120, join=600)
    killer = (
        "import os, signal\n"
        "from steadytree.cli import app as cli\n"
        "from steadytree.federated.gateway import Gateway\n"
        "release = Gateway._release\n"
        "def killed(self, request, message):\n"
        "    found = release(self, request, message)\n"
        "    if request.round == 1: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return found\n"
        "Gateway._release = killed\n"
        "cli.main()\n"
    )
    drawer = NAMES[int(np.random.default_rng(3).permutation(3)[0])]  # who is asked in round 1
    started = {}
    monkeypatch.chdir(tmp_path)
    try:
        for place, name in enumerate(NAMES):
            program = ("-c", killer) if name == drawer else ("-m", "steadytree")
            started[name] = hospitals.start_gateway(tmp_path, name, seed=place, program=program)
        coordinator = subprocess.Popen([sys.executable, "-c", COORDINATOR], cwd=tmp_path)
        # it dies by its own hand, while the coordinator waits for it
        hospitals.wait_until(lambda: started[drawer].poll() is not None or coordinator.poll())
        assert coordinator.poll() is None
        assert hospitals.stop(started[drawer]) == -signal.SIGKILL
        os.kill(coordinator.pid, signal.SIGKILL)
        coordinator.wait(hospitals.PATIENCE)
        started[drawer] = hospitals.start_gateway(tmp_path, drawer, seed=NAMES.index(drawer))
        study = studies.run_study(plan, Sockets({name: f"{name}.sock" for name in NAMES}))
    finally:
        codes = [hospitals.stop(process) for process in started.values()]
    assert codes == [0, 0, 0]
    spent = [Ledger(tmp_path / f"{name}.ledger", 4.0).spent for name in NAMES]
    assert (study.tree, spent) == in_process(tmp_path / "twin", plan)
    assert study.resumed == 1
