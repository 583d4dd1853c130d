"""The command line as a user calls it; most of it in this process, a few runs in their own."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from steadytree.cli import app as cli
from steadytree.models.files import save
from tests.cli.commands import names_in, refused

COUNT_MODULES = """
import sys
from steadytree.cli.app import main
sys.argv = ["steadytree", {arguments}]
try:
    main()
finally:
    print(sorted({{"numpy", "sklearn", "numba", "jinja2", "pandas", "scipy"}} & set(sys.modules)))
"""


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "town": rng.choice(["Ulm", "Bonn", "Köln"], n),
            "income": rng.normal(size=n),
        }
    )
    frame["outcome"] = np.where(frame["age"] + 9 * frame["income"] > 50, "ill", "well")
    frame.loc[::11, "age"] = np.nan
    return frame


def in_own_process(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("arguments", ['"--help"', '"report", "--help"', ""])
def test_help_imports_nothing_heavy(arguments):
    code, out, _ = in_own_process(COUNT_MODULES.format(arguments=arguments))
    assert code == 0
    assert "Usage: steadytree" in out
    assert out.splitlines()[-1] == "[]"


def test_runs_as_a_module_with_built_in_data(tmp_path):
    command = [sys.executable, "-m", "steadytree", "report", "--max-depth", "3", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "benign" in done.stdout
    assert "written: report.html" in done.stdout
    assert names_in(tmp_path) == ["report.html"]


def test_version(run):
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("steadytree")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_reports_on_a_file(run, frame, tmp_path, ending):
    if ending == "csv":
        frame.to_csv(tmp_path / "data.csv", index=False)
    else:
        frame.to_parquet(tmp_path / "data.parquet")
    command = ("report", f"data.{ending}", "--target", "outcome", "--quick", "--out", "a.html")
    code, out, err = run(*command)
    assert (code, err) == (0, "")
    assert "60 rows held out" in out
    page = (tmp_path / "a.html").read_text("utf-8")
    assert f"steadytree report data.{ending} --target outcome" in page


def test_csv_and_parquet_say_the_same(run, frame, tmp_path):
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_parquet(tmp_path / "data.parquet")
    found = [
        json.loads(run("report", f"data.{ending}", "--target", "outcome", "--quick", "--json")[1])
        for ending in ("csv", "parquet")
    ]
    for part in ("readings", "tree", "model", "data"):
        assert found[0][part] == found[1][part]


def test_json_is_what_the_page_holds(run, frame, tmp_path):
    frame.to_csv(tmp_path / "data.csv", index=False)
    _, out, _ = run("report", "data.csv", "--target", "outcome", "--quick", "--json")
    data = json.loads(out)
    assert data["data"]["n_rows"] == 60
    page = (tmp_path / "report.html").read_text("utf-8")
    assert data["data"]["sha256"] in page
    assert data["readings"]["accuracy"][0]["shown"] in page


def test_same_seed_same_figures(run, frame, tmp_path):
    frame.to_csv(tmp_path / "data.csv", index=False)
    command = ("report", "data.csv", "--target", "outcome", "--quick", "--json", "--seed")
    first, second, other = (json.loads(run(*command, seed)[1]) for seed in (1, 1, 2))
    assert first == second
    assert first["data"]["sha256"] != other["data"]["sha256"]


def test_drop_leaves_columns_out(run, frame, tmp_path):
    frame.to_csv(tmp_path / "data.csv", index=False)
    command = ("report", "data.csv", "--target", "outcome", "--quick", "--json")
    found = json.loads(run(*command, "--drop", "town", "--drop", "age")[1])
    assert [column["name"] for column in found["data"]["columns"]] == ["income"]


def test_saved_tree_is_judged_on_all_rows(run, tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[::2], y[::2])
    save(model, tmp_path / "iris.tree.json")
    X.assign(species=y).to_csv(tmp_path / "iris.csv", index=False)
    command = ("report", "iris.csv", "--target", "species", "--model", "iris.tree.json")
    code, out, err = run(*command, "--json", "--quick")
    assert (code, err) == (0, "")
    assert json.loads(out)["readings"]["accuracy"][0]["value"] == pytest.approx(model.score(X, y))


BAD_DATA = {
    "empty file": ("", "is empty"),
    "names only": ("a,y\n", "no rows"),
    "one class": ("a,y\n" + "1,u\n2,u\n" * 9, "target 'y' has only one class, 'u'"),
    "all missing": ("a,b,y\n" + "1,,u\n2,,v\n" * 9, "'b' has no value at all.*--drop b"),
    "constant": ("a,b c,y\n" + "1,7,u\n2,7,v\n" * 9, "'b c' has one value only.*--drop 'b c'"),
    "two constants": ("a,b,c,y\n" + "1,7,x,u\n2,7,x,v\n" * 9, "'b', 'c' have.*--drop b --drop c"),
    "infinite": ("a,b,y\n" + "1,inf,u\n2,3,v\n" * 9, "'b' has infinite values"),
    "names twice": ("a,a,y\n1,2,u\n", "'a' appear more than once"),
    "unlabelled": ("a,y\n1,u\n2,\n3,v\n", "target 'y' is missing in 1 of 3 rows.*row 2"),
    "no target": ("a,outcom\n1,u\n2,v\n", "no column 'y' for the target: it has 'a', 'outcom'"),
    "ragged": ("a,y\n1,u\n2\n", "row 2 has 1 field"),
    "measured": ("a,y\n" + "1,0.5\n2,1.5\n3,2.25\n" * 9, "continuous numbers such as 0.5"),
    "amounts": ("a,y\n" + "".join(f"{k},{k}\n" for k in range(99)), "99 different values"),
    "no feature": ("y\nu\nv\n", "no column is left"),
    "unnamed": (",a,y\n" + "1,1,u\n2,2,v\n" * 9, r"no name in the header.*'\(unnamed 1\)'"),
    "few rows": ("a,y\n1,u\n2,v\n", "too few"),
    "identifier": (
        "a,id,y\n" + "".join(f"{k % 9},p{k},{'uv'[k % 2]}\n" for k in range(60)),
        "'id' has different texts for more than every second row.*--drop id",
    ),
    "not text": ("a,y\n1,\udcff\n", "not a csv file of UTF-8 text"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_are_one_line_and_exit_code_2(run, tmp_path, name):
    text, message = BAD_DATA[name]
    (tmp_path / "data.csv").write_text(text, encoding="utf-8", errors="surrogateescape")
    refused(run("report", "data.csv", "--target", "y"), message)
    assert names_in(tmp_path) == ["data.csv"]


def test_ten_thousand_categories_are_refused(run, tmp_path):
    rows = "".join(f"{k},id{k},{'uv'[k % 2]}\n" for k in range(10_000))
    (tmp_path / "data.csv").write_text("a,id,y\n" + rows, "utf-8")
    refused(
        run("report", "data.csv", "--target", "y"),
        "'id' has more than 1,000 different texts: correct it, or leave it out with --drop id",
    )
    assert run("report", "data.csv", "--target", "y", "--drop", "id", "--quick")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv", "--target", "outcome"], "there is no file 'none.csv'"),
        (["data.csv"], "--target NAME: the data have 'age', 'town'"),
        (["data.csv", "--target", "outcom"], "no column 'outcom'.*did you mean 'outcome'"),
        (["data.csv", "--target", "outcome", "--drop", "towm"], "--drop: did you mean 'town'"),
        (["data.csv", "--target", "outcome", "--out", "no/such/a.html"], "make its folder first"),
        (["data.csv", "--target", "outcome", "--out", "."], "cannot write '.': it is a folder"),
        (["none.csv", "--target", "outcome", "--out", "no/a.html"], "cannot write"),
        (["data.csv", "--target", "outcome", "--model", "no.tree.json"], "no.tree.json: No such"),
        (
            ["data.csv", "--target", "outcome", "--model", "data.csv"],
            "data.csv: a data file",
        ),
        (
            ["data.xlsx", "--target", "outcome"],
            "is a spreadsheet, which is not read: save the sheet as",
        ),
        (["data.csv", "--target", "age", "--drop", "age"], "both the target and dropped"),
        (["--drop", "mean radus"], "did you mean 'mean radius'"),
        (["--target", "outcome"], "--target needs data"),
        (["data.csv", "--max-depth", "0"], "--max-depth"),
        (["data.csv", "--criterion", "luck"], "--criterion"),
        (["data.csv", "--bogus"], "--bogus"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(run, frame, tmp_path, arguments, message):
    frame.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "data.xlsx").write_bytes(b"PK")
    refused(run("report", *arguments), message)
    assert names_in(tmp_path) == ["data.csv", "data.xlsx"]


def test_tree_for_other_columns_is_refused(run, frame, tmp_path):
    save(DecisionTreeClassifier().fit([[0.0], [1.0]], ["ill", "well"]), tmp_path / "a.tree.json")
    frame.to_csv(tmp_path / "data.csv", index=False)
    command = ("report", "data.csv", "--target", "outcome", "--model", "a.tree.json")
    refused(run(*command), r"lacks the column\(s\) 'x0'")


def test_a_value_that_is_no_choice_is_refused_in_plain_words(run):
    code, _, err = run("export", "a.tree.json", "--to", "luck")
    assert code == 2
    assert re.match(r"error: Invalid value for '--to': 'luck' is not one of .*sql.*onnx", err)


def test_unknown_command_is_refused(run):
    refused(run("reprot"), "No such command 'reprot'")


def test_old_report_stays_when_a_new_one_fails(run, tmp_path):
    (tmp_path / "report.html").write_text("old", "utf-8")
    (tmp_path / "data.csv").write_text("a,y\n1,u\n", "utf-8")
    assert run("report", "data.csv", "--target", "y")[0] == 2
    assert (tmp_path / "report.html").read_text("utf-8") == "old"


# ---- one guard for every command ----
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply: pass a smaller"),
        (MemoryError(), "not enough memory: pass fewer rows"),
        (
            KeyError("a\nb"),
            r"unexpected KeyError: 'a\\nb': please report it; STEADYTREE_TRACEBACK=1",
        ),
        (ZeroDivisionError(), "unexpected ZeroDivisionError: please report it"),
        (ValueError(), "unexpected ValueError: please report it"),
        (FileNotFoundError(2, "No such file", "rows.csv"), "rows.csv: No such file"),
        (BrokenPipeError("socket"), "socket"),
        (ValueError("two\nlines"), "error: two lines"),
    ],
)
def test_every_exception_is_one_line(run, monkeypatch, error, message):
    def fails(**options):
        raise error

    monkeypatch.setattr("steadytree.cli.app.app", fails)
    monkeypatch.delenv("STEADYTREE_TRACEBACK", raising=False)
    refused(run("fit"), message)
    monkeypatch.setenv("STEADYTREE_TRACEBACK", "1")
    with pytest.raises(type(error)):
        cli.main()


def test_links_in_a_circle_are_refused_where_something_is_written(run, frame, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "loop").symlink_to("loop")
    options = ("--target", "outcome", "--out")
    refused(run("fit", "rows.csv", *options, "loop"), "links lead in a circle, name another")
    refused(run("fit", "rows.csv", *options, "loop/tree.json"), "circle, name another")
    refused(run("fit", "loop", *options, "a.tree.json"), "loop")
    assert names_in(tmp_path) == ["loop", "rows.csv"]


def test_output_that_nobody_reads_ends_the_command_quietly(tmp_path):
    """As with `steadytree reproduce | head -1`; and a console without the signs gets the rest."""
    code = "import sys; sys.argv = ['steadytree', '--help']\n"
    code += "from steadytree.cli.app import main; main()"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.returncode in (1, 120, 141)  # by typer, by Python when it ends, by us
    assert b"Traceback" not in done.stderr
    signs = "from steadytree.cli import app; import typer\n"
    signs += "def fails(**options):\n    typer.echo('a ≥ b'); raise ValueError('c ≥ d')\n"
    signs += "app.app = fails; app.main()"
    done = subprocess.run(
        [sys.executable, "-c", signs],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
    )
    assert (done.returncode, done.stdout.split()) == (2, [b"a", b"\\u2265", b"b"])
    assert done.stderr.split() == [b"error:", b"c", b"\\u2265", b"d"]
