"""A study by files: `steadytree private keys | ask | answer | merge` as users call them."""

import datetime
import json
import pathlib

import pytest

from steadytree.federated import framing as letters
from steadytree.federated import signed_files as files
from steadytree.federated import signed_files as signed
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.signed_files import read_request_file, write_requests
from steadytree.models.files import load
from steadytree.privacy.ledger import Ledger
from tests.federated import hospitals
from tests.federated.hospitals import NAMES, SCHEMA
from tests.federated.studies import make_plan

pytest.importorskip("cryptography")
COMMAND = ("private",)


@pytest.fixture
def study(run, tmp_path):
    """Files of three hospitals, a plan and keys."""
    hospitals.write_files(tmp_path)
    hospitals.write_plan(study="by-files", minimum=2)
    assert run("keys", "plan.toml")[0] == 0
    return run


def answer(run, question, holder, /, **changed):
    options = {"keys": f"keys/{holder}", "data": f"{holder}.csv", "schema": "schema.toml"}
    options |= {"ledger": f"{holder}.ledger", "budget": 4, "testing-seed": NAMES.index(holder)}
    options |= changed
    listed = [part for key, value in options.items() for part in (f"--{key}", value)]
    new = () if pathlib.Path(options["ledger"]).exists() else ("--new-ledger",)
    return run("answer", question, *listed, *new)


def test_a_mistyped_ledger_is_no_new_budget(study):
    study("ask", "plan.toml")
    question = questions(0)[0]
    name = name_of(question)
    listed = ("--keys", f"keys/{name}", "--data", f"{name}.csv", "--schema", "schema.toml")
    code, _, err = study("answer", question, *listed, "--ledger", "typo", "--budget", 4)
    assert code == 2
    assert "there is no ledger 'typo': check the path" in err
    assert not pathlib.Path("typo").exists()
    assert answer(study, question, name)[0] == 0
    account = ("--ledger", f"{name}.ledger", "--budget", 4)
    code, _, err = study("answer", question, *listed, *account, "--new-ledger")
    assert (code, "leave --new-ledger out" in err) == (2, True)


def test_a_study_costs_no_more_than_its_files_announce(study, monkeypatch):
    """Also where a gateway was started without --study, so that only its budget limits it."""
    folder = pathlib.Path.cwd()
    with hospitals.gateway_of(folder) as gateway:
        monkeypatch.setattr(letters, "carry", lambda path, letter, seconds: gateway.reply(letter))
        study("ask", "plan.toml")
        first = next(path for path in questions(0) if name_of(path) == "north")
        through = ("--keys", "keys/north", "--socket", "any")
        for _ in range(2):  # the second costs nothing
            code, out, _ = study("answer", first, *through)
            assert code == 0
            assert "spent on the study so far: 0.1 of 2" in out
        content = json.loads(first.read_text("utf-8"))
        for number, epsilon, wanted in ((1, 1.8, 0), (2, 0.15, 3), (3, 0.05, 0)):
            path = resigned(first, content, number, epsilon)
            code, _, err = study("answer", path, *through)
            assert code == wanted
            if wanted:
                assert "would cost more than the 2 that it announces" in err
        assert gateway.holder.ledger.spent == pytest.approx(1.95)


def resigned(path, content, number, epsilon):
    """The question again as the coordinator would sign it under another number."""
    changed = json.loads(json.dumps(content))
    del changed["signature"]
    changed |= {"number": number, "epsilon": epsilon}
    changed["letter"]["request"] |= {"round": number, "epsilon": epsilon}
    key = pathlib.Path("keys/coordinator/sign.key")
    changed["seals"] = {what: files._seal(changed, what, key) for what in ("letter", "hello")}
    new = path.with_name(path.name.replace("0000", f"{number:04d}"))
    signed.write_signed(new, changed, key)
    return new


def questions(number):
    return sorted(pathlib.Path("questions").glob(f"*.{number:04d}.*.question.json"))


def name_of(path):
    return path.name.split(".")[2]


def answered(path):
    return path.with_name(path.name.replace("question", "answer"))


def spent():
    return [Ledger(f"{name}.ledger", 4.0).spent for name in NAMES]


def test_files_end_in_the_same_tree_as_one_process(study, tmp_path):
    for number in range(10):
        code, out, _ = study("ask", "plan.toml")
        assert code == 0
        if "nothing is left" in out:
            break
        assert study("ask", "plan.toml")[1] == out  # asking twice changes nothing
        for path in questions(number):
            assert answer(study, path, name_of(path))[0] == 0
            assert answer(study, path, name_of(path))[0] == 0  # costs nothing
        code, out, _ = study("merge", "plan.toml", *map(answered, questions(number)))
        assert code == 0
    assert number == 4
    (tmp_path / "twin").mkdir()
    holders = [hospitals.make_holder(tmp_path / "twin", n, seed=p) for p, n in enumerate(NAMES)]
    twin = Coordinator(holders, SCHEMA, 2.0, n_bins=4, testing_seed=3).fit()
    assert load("tree.json") == twin.tree_
    assert spent() == [holder.ledger.spent for holder in holders]


def test_a_question_can_be_read_by_people(study):
    study("ask", "plan.toml")
    content = json.loads(questions(0)[0].read_text("utf-8"))
    assert content["asks for"] == "leaf counts"
    assert content["epsilon"] == pytest.approx(0.1)
    assert content["epsilon of the study"] == 2.0
    assert content["number"] == 0


@pytest.fixture
def first(study):
    study("ask", "plan.toml")
    for path in questions(0):
        assert answer(study, path, name_of(path))[0] == 0
    return study


def test_a_changed_file_is_refused_on_both_sides(first):
    question = questions(0)[0]
    name = name_of(question)
    content = json.loads(question.read_text("utf-8"))
    content["letter"]["request"]["epsilon"] = content["epsilon"] = 1.0
    question.write_text(json.dumps(content), "utf-8")
    before = spent()
    code, _, err = answer(first, question, name)
    assert code == 2
    assert "was changed since" in err
    assert spent() == before
    path = answered(questions(0)[1])
    path.write_text(path.read_text("utf-8").replace('"number": 0', '"number": 1'), "utf-8")
    code, _, err = first("merge", "plan.toml", *map(answered, questions(0)))
    assert code == 2
    assert "was changed since" in err


def test_an_unregistered_key_signs_nothing(first):
    name = name_of(questions(0)[0])
    assert first("keys", "--holder", "stranger")[0] == 0
    pathlib.Path("stranger/coordinator.sign.pub").write_bytes(
        pathlib.Path(f"keys/{name}/coordinator.sign.pub").read_bytes()
    )
    assert answer(first, questions(0)[0], name, keys="stranger", name=name)[0] == 0
    code, _, err = first("merge", "plan.toml", *map(answered, questions(0)))
    assert code == 2
    assert "was not signed by the owner" in err


def test_answers_are_counted_and_numbered(first):
    paths = list(map(answered, questions(0)))
    code, _, err = first("merge", "plan.toml", *paths[:2])
    assert code == 2
    assert f"the answer of holder {name_of(paths[2])!r} to question 0 is missing" in err
    code, _, err = first("merge", "plan.toml", paths[0], *paths)
    assert code == 2
    assert "two answers" in err
    assert first("merge", "plan.toml", *paths)[0] == 0
    code, out, _ = first("merge", "plan.toml", *paths)  # again: they are merged already
    assert code == 0
    assert "answered so far: 1;" in out
    first("ask", "plan.toml")
    answer(first, questions(1)[0], name_of(questions(1)[0]))
    code, _, err = first("merge", "plan.toml", answered(questions(1)[0]), paths[0])
    assert code == 2
    assert "merge one number at a time, such as" in err
    assert ".0001.*.answer.json" in err


def test_a_study_goes_on_without_a_holder_where_the_plan_allows(first):
    paths = list(map(answered, questions(0)))
    gone = name_of(paths[2])
    assert first("merge", "plan.toml", *paths[:2], "--without", gone)[0] == 0
    first("ask", "plan.toml")
    assert gone not in [name_of(path) for path in questions(1)]
    code, _, err = first("merge", "plan.toml", *paths, "--without", "nobody")
    assert code == 2
    assert "not a holder of the plan" in err


def test_answers_of_another_study_are_refused(first):
    hospitals.write_plan(study="other", minimum=2)
    code, _, err = first("merge", "plan.toml", *map(answered, questions(0)))
    assert code == 2
    assert "another study" in err


def test_wrong_files_and_keys_spend_nothing(study):
    study("ask", "plan.toml")
    question = questions(0)[0]
    name = name_of(question)
    other = next(each for each in NAMES if each != name)
    hospitals.Schema({"age": (0, 90), "dose": (0, 8)}, SCHEMA.categories, SCHEMA.classes).save(
        "other.toml"
    )
    pathlib.Path("no.json").write_text("{}", "utf-8")
    cases = [
        ({"keys": "nowhere"}, "is missing"),
        ({"schema": "other.toml"}, "'high' of column 'age' is 90.0, the plan says 100.0"),
        ({"budget": 4, "ledger": "missing/l"}, "make its folder first"),
    ]
    for changed, message in cases:
        code, _, err = answer(study, question, name, **changed)
        assert (code, message in err) == (2, True), err
    code, _, err = answer(study, "no.json", name)
    assert (code, "not a signed file" in err) == (2, True)
    code, _, err = study("answer", question, "--keys", f"keys/{name}")
    assert (code, "name --socket, or" in err) == (2, True)
    code, _, err = study("answer", question, "--keys", f"keys/{name}", "--socket", "no.sock")
    assert (code, "no gateway serves" in err) == (2, True)
    code, _, err = answer(study, question, name, budget=1, ledger="small")
    assert (code, "less is left" in err) == (3, True)
    code, _, err = answer(study, question, other)
    assert (code, f"is for {name!r}" in err) == (2, True)
    assert spent() == [0, 0, 0]
    code, _, err = study("merge", "plan.toml", pathlib.Path("questions/a.json"))
    assert (code, "is not named" in err) == (2, True)


def test_clocks_that_disagree_are_told(study):
    study("ask", "plan.toml")
    question = questions(0)[0]
    content = json.loads(question.read_text("utf-8"))
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=2)
    content["made"] = later.isoformat()
    del content["signature"]
    signed.write_signed(question, content, pathlib.Path("keys/coordinator/sign.key"))
    code, _, err = answer(study, question, name_of(question))
    assert code == 2
    assert "the clocks disagree" in err
    assert spent() == [0, 0, 0]


def test_keys_are_never_overwritten_and_private_ones_are_private(study):
    code, _, err = study("keys", "plan.toml")
    assert code == 2
    assert "so that no key is lost" in err
    for path in pathlib.Path("keys").rglob("*.key"):
        assert path.stat().st_mode & 0o077 == 0
    for folder in pathlib.Path("keys").iterdir():
        assert folder.stat().st_mode & 0o077 == 0
    assert study("keys")[0] == 2
    assert study("keys", "--holder", "north")[0] == 0
    assert study("keys", "--holder", "north")[0] == 2


def test_a_signed_file_shows_what_it_asks(tmp_path, keys):
    from steadytree.federated.signed_files import write_signed

    plan = make_plan(tmp_path)
    path = write_requests(plan, {"north": hospitals.ask(session="s1")}, tmp_path / "q")[0]
    whole = path.read_text("utf-8")
    read_request_file(path, keys / "north")
    path.write_text(whole.replace('"asks for"', '"asks for": "nothing",\n"asks for"'), "utf-8")
    with pytest.raises(ValueError, match="not a signed file"):
        read_request_file(path, keys / "north")
    other = json.loads(whole)["schema"] | {"classes": ["other", "well"]}
    for shown in ({"asks for": "leaf counts"}, {"schema": other}, {"schema": None}):
        content = {**json.loads(whole), **shown}
        del content["signature"]
        write_signed(path, content, keys / "coordinator" / "sign.key")
        with pytest.raises(ValueError, match="do not answer it"):
            read_request_file(path, keys / "north")


def test_holders_whose_names_end_alike_are_told_apart(tmp_path):
    from steadytree.federated.signed_files import _holder_of

    plan = make_plan(tmp_path, holders=["north", "a.north"])
    for name in plan.holders:
        assert _holder_of(tmp_path / f"s1.0000.{name}.answer.json", plan) == name
