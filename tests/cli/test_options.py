"""No command writes over, or into, what it reads or writes otherwise."""

import inspect
import os
import pathlib
import random
from itertools import permutations
from typing import Annotated, get_type_hints

import pytest
import typer

import steadytree
from steadytree._base.files import UsedPath, check_apart
from steadytree.cli import app as cli
from steadytree.cli.options import READS, WRITES, App, keeps_apart, paths_used, roles_of, shown_name
from steadytree.federated.study import StudyConfig
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.cli.commands import refused
from tests.cli.test_output import leaves
from tests.federated import hospitals

COMMANDS = leaves(typer.main.get_command(cli.app))
FUNCTIONS = {name: command.callback.__wrapped__ for name, command in COMMANDS.items()}
ROLES = {name: roles_of(function) for name, function in FUNCTIONS.items()}
VALUES = {"study": "average-sensitivity", "method": "gibbs", "to": "sql"}


def pairs():
    """Every output of every command with every other place that it names."""
    for name, roles in ROLES.items():
        named = {key: does.role for key, does in roles.items() if does.role is not None}
        for out, other in permutations(named, 2):
            if named[out] != "read":
                yield name, out, other


PAIRS = list(pairs())
WITH_FOLDERS = [
    (name, out, other)
    for name, out, other in PAIRS
    if ROLES[name][other].role in ("read", "fill") and "holder" not in (out, other)
]


def paths_of(name):
    """Parameters whose type says path, however it is wrapped."""
    hints = get_type_hints(FUNCTIONS[name])
    return {key for key, hint in hints.items() if "Path" in str(hint)}


def arguments(name, paths):
    """A call of a command with the given paths and anything else that it cannot do without."""
    listed, named, known = [], [], paths_of(name)
    for option in COMMANDS[name].params:
        if option.name in paths:
            value = paths[option.name]
        elif option.name in VALUES or (option.required and option.name not in known):
            value = VALUES.get(option.name, "1")
        else:
            continue
        if option.param_type_name == "argument":
            listed.append(value)
        else:
            named += [option.opts[0], value]
    return (*name.split(), *listed, *named)


def call(name, paths):
    """The command as typer calls it, with its defaults."""
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    values = {
        key: None if one.default is inspect.Parameter.empty else one.default
        for key, one in parameters.items()
    }
    values |= {key: value for key, value in VALUES.items() if key in values}
    keeps_apart(FUNCTIONS[name])(**values | paths)


def contents(folder):
    """All that is in a folder, links not followed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        what = path.readlink() if path.is_symlink() else path.is_file() and path.read_bytes()
        found[str(path)] = (what, path.lstat().st_ino)
    return found


def in_all_ways(path):
    """Other spellings of a path, each of which is the same file or folder."""
    folder = path.parent
    yield "same", path
    (folder / "aside").mkdir(exist_ok=True)
    yield "relative", os.path.relpath(folder / "aside" / ".." / path.name)
    yield "round about", f"{folder}/aside/../{path.name}"
    (folder / "link").symlink_to(path)
    yield "link", folder / "link"
    if not (folder / "here").exists():
        (folder / "here").symlink_to(folder)
    yield "linked folder", folder / "here" / path.name
    if path.is_file():
        os.link(path, folder / "hard")
        yield "hard link", folder / "hard"


# ---- no command can forget it ----
def test_every_command_is_checked_and_every_path_has_a_role():
    for name, command in COMMANDS.items():
        assert command.callback is not FUNCTIONS[name], name
        assert paths_of(name) <= set(ROLES[name]), name
    assert {name for name in COMMANDS if paths_of(name)} == set(COMMANDS) - {"warm-up"}
    assert len(PAIRS) > 70


def test_options_whose_help_says_so_write():
    for name, command in COMMANDS.items():
        for option in command.params:
            if (getattr(option, "help", "") or "").startswith(("Where to", "For pictures")):
                assert ROLES[name][option.name].role in ("write", "fill"), (name, option.name)


def test_a_path_without_a_role_is_refused():
    def forgets(data: Annotated[pathlib.Path | None, typer.Option()] = None) -> None:
        """A command."""

    def forgets_a_list(data: list[pathlib.Path]) -> None:
        """A command."""

    for function in (forgets, forgets_a_list):
        with pytest.raises(TypeError, match="'data' has no role: write READS"):
            roles_of(function)


def test_an_app_checks_whatever_is_added_to_it():
    seen, app = [], App()

    @app.command()
    def copy(
        data: Annotated[pathlib.Path, typer.Argument(), READS],
        out: Annotated[pathlib.Path, typer.Option("--to"), WRITES],
    ) -> None:
        """A command."""
        seen.append(data)

    with pytest.raises(ValueError, match="--to is 'a', which DATA reads"):
        app(["a", "--to", "a"], standalone_mode=False)
    assert not seen
    app(["a", "--to", "b"], standalone_mode=False)
    assert seen == [pathlib.Path("a")]
    assert [place.role for place in paths_used(copy, {"data": "a", "out": "b"})] == [
        "read",
        "write",
    ]


# ---- every command, every pair ----
@pytest.fixture
def files(run, tmp_path):
    """A folder with a plan that can be read; paths for a command are made in it."""
    hospitals.SCHEMA.save("schema.toml")
    hospitals.write_plan()

    def make(name):
        paths = {"plan": tmp_path / "plan.toml"}
        for key, does in ROLES[name].items():
            if key == "holder" or (does.role is None and key == "plan"):
                continue  # a name instead of a plan
            paths.setdefault(key, tmp_path / f"{key}.place")
            if does.role in ("read", "change"):
                content = random.Random(key).randbytes(200)
                if not paths[key].exists():
                    paths[key].write_bytes(content)
        return {key: path for key, path in paths.items() if key in ROLES[name]}

    return make


@pytest.mark.parametrize(("name", "out", "other"), PAIRS)
def test_an_output_that_is_another_place_is_refused_first(run, files, tmp_path, name, out, other):
    paths = files(name)
    if "holder" in (out, other):
        paths["holder"] = tmp_path / "holder"
    names = [shown_name(FUNCTIONS[name], key) for key in (out, other)]
    refused(run(*arguments(name, paths | {out: paths[other]})), "so that nothing is lost")
    for way, spelled in in_all_ways(paths[other]):
        before = contents(tmp_path)
        with pytest.raises(ValueError, match="so that nothing is lost") as error:
            call(name, paths | {out: pathlib.Path(spelled)})
        assert all(one in str(error.value) for one in names), way
        assert contents(tmp_path) == before, way


@pytest.mark.parametrize(("name", "out", "other"), WITH_FOLDERS)
def test_a_folder_that_is_read_or_filled_keeps_others_out(files, tmp_path, name, out, other):
    paths = files(name)
    role = ROLES[name][other].role
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "linked").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").write_text("an input by a link", "utf-8")
    outputs = [folder / "new", folder / "below" / "new", f"{folder}/below/../new"]
    outputs += [tmp_path / "outside"] if role == "read" else []
    for place in outputs:
        before = contents(tmp_path)
        with pytest.raises(ValueError, match="so that nothing is lost"):
            call(name, paths | {other: folder, out: pathlib.Path(place)})
        assert contents(tmp_path) == before


def test_two_outputs_that_are_not_there_yet_and_meet_by_links(run, files, tmp_path):
    files("score")
    (tmp_path / "rows.csv").write_text("a,y\n1,0\n2,1\n", "utf-8")
    for link in ("one", "two"):
        (tmp_path / link).symlink_to(tmp_path / "nothing.svg")
    result = run("score", "rows.csv", "--target", "y", "--save", "one", "--bands", "two")
    refused(result, "--bands is 'two', which --save writes too: name another file")
    assert not (tmp_path / "nothing.svg").exists()


def test_links_in_a_circle_are_left_to_whoever_opens_them(run, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    code, _, err = run("fit", "loop", "--target", "y", "--out", "tree.json")
    assert code == 2
    assert "lost" not in err


def test_a_default_output_counts_too(run, tmp_path):
    (tmp_path / "report.html").write_text("a,y\n1,0\n", "utf-8")
    refused(run("report", "report.html", "--target", "y"), "--out is 'report.html', which DATA")
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "average_sensitivity_out").mkdir()
    os.chdir(tmp_path / "rows")
    refused(run("reproduce", "average-sensitivity", "--data", "."), "the folder of the study is")


# ---- what no option names ----
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"out": "plan.toml"}, "the plan's out is .*, which the plan reads"),
        ({"out": "schema.toml"}, "which the plan's schema reads"),
        ({"out": "keys/coordinator/sign.key"}, "inside the folder .* that the plan's folder of"),
        ({"checkpoint": "tree.json"}, "the plan's out is .*, the same as the plan's checkpoint"),
        ({"checkpoint": "schema.toml"}, "the plan's checkpoint is .*, which the plan's schema"),
        ({"checkpoint": "tree.json.study.json"}, "the plan's out with .study.json is"),
    ],
)
@pytest.mark.parametrize("name", ["ask", "merge", "coordinate", "keys"])
def test_a_plan_that_writes_over_what_it_reads(run, tmp_path, changed, message, name):
    hospitals.SCHEMA.save("schema.toml")
    (tmp_path / "keys" / "coordinator").mkdir(parents=True)
    hospitals.write_plan(**changed)
    before = contents(tmp_path)
    more = ["a.answer.json"] if name == "merge" else []
    refused(run("private", name, "plan.toml", *more), message)
    assert contents(tmp_path) == before
    with pytest.raises(ValueError, match=message):
        StudyConfig.load("plan.toml")


def test_the_files_of_a_plan_and_the_options_beside_it(run, files, tmp_path):
    files("private merge")
    (tmp_path / "tree.json").write_text("an answer", "utf-8")
    refused(run("private", "merge", "plan.toml", "tree.json"), "the plan's out is .*which ANSWER")
    refused(run("private", "ask", "plan.toml", "--out", "."), "--out is '.', a folder that holds")
    refused(run("private", "coordinate", "plan.toml", "--logs", "."), "--logs is '.', a folder")
    assert (tmp_path / "tree.json").read_text("utf-8") == "an answer"


def test_what_an_answer_and_a_gateway_write_beside(run, tmp_path):
    for name in ("q.question.json", "q.answer.json", "rows.csv", "l", "l.sock", "s.toml"):
        (tmp_path / name).write_text(name, "utf-8")
    before = contents(tmp_path)
    asked = ("private", "answer", "q.question.json", "--keys", "keys", "--budget", 1)
    account = ("--schema", "s.toml", "--ledger", "l")
    refused(run(*asked, *account, "--data", "q.answer.json"), "the answer to QUESTION is")
    refused(
        run(*asked, "--schema", "s.toml", "--data", "rows.csv", "--ledger", "q.answer.json"),
        "the answer to QUESTION is 'q.answer.json', the same as --ledger",
    )
    serve = ("private", "holder", "serve", *account, "--budget", 1)
    refused(run(*serve, "--data", "l.sock"), "the socket of --ledger is 'l.sock', which --data")
    refused(run(*serve, "--data", "l.answers/rows.csv"), "the store of --ledger is 'l.answers'")
    assert contents(tmp_path) == before


# ---- from Python ----
def test_a_report_does_not_write_over_its_limits(tmp_path):
    limits = tmp_path / "limits.toml"
    limits.write_text("min_accuracy = 0.5\n", "utf-8")
    model = StableTreeClassifier(1, 0).fit([[0.0], [1.0]], ["no", "yes"])
    os.link(limits, tmp_path / "page.html")
    refusals = {
        limits: "must end in .html",
        tmp_path / "page.html": "path is .*, which limits reads",
    }
    for path, refusal in refusals.items():
        with pytest.raises(ValueError, match=refusal):
            steadytree.report(model, [[0.0], [1.0]], ["no", "yes"], path, limits=limits)
    assert limits.read_text("utf-8") == "min_accuracy = 0.5\n"


def test_a_cache_is_no_folder_of_rows(tmp_path):
    frames = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frames.DataFrame({"a": [1.0, 2.0], "y": ["n", "y"]}).to_parquet(tmp_path / "rows.parquet")
    before = contents(tmp_path)
    for paths in (tmp_path, tmp_path / "rows.parquet"):
        with pytest.raises(ValueError, match=r"cache is .*, a folder that holds other files"):
            StableTreeClassifier(1, 0).fit_files(paths, "y", cache=tmp_path)
    assert contents(tmp_path) == before


def test_what_may_be_the_same():
    check_apart(
        [UsedPath("a", "read", "OLD"), UsedPath("./a", "read", "NEW"), UsedPath("b", "write", "o")]
    )
    check_apart(
        [UsedPath("a", "write", "x"), UsedPath("a.html", "write", "y"), UsedPath("c", "fill", "z")]
    )
