"""The page of a study that was run again, and the command that writes it."""

import importlib.util
import json
import re
import subprocess
import sys

import pytest

from steadytree.cli import reproduce
from steadytree.reporting.study import Results, blocks, study_page
from tests.cli.commands import names_in, refused

STUDY = '''"""A study <of> little.

More words.
"""
import argparse, os, pathlib, sys

parser = argparse.ArgumentParser()
parser.add_argument("--out", type=pathlib.Path)
for name in ("--fail", "--stop", "--say"):
    parser.add_argument(name, action="store_true")
asked = parser.parse_args()
if asked.stop or asked.say:
    sys.stderr.write("at work\\n")
if asked.stop:
    sys.exit("name another --out.")
if asked.say:
    sys.stderr.write("done\\n")
print("| set | value |\\n| --- | ---: |\\n| <b>x</b> | 0.5 |\\n")
print("as it stands:   1  2", os.environ.get("STEADYTREE_DATA", "no data"))
(asked.out / "a-curve.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
raise SystemExit(7 if asked.fail else 0)
'''


@pytest.fixture
def study(run, tmp_path, monkeypatch):
    """A folder with one study, in place of the real ones."""
    folder = tmp_path / "studies" / "little_one"
    folder.mkdir(parents=True)
    (folder / "run.py").write_text(STUDY, "utf-8")
    (folder / "results.txt").write_text("what we got: 0.4", "utf-8")
    monkeypatch.setattr(reproduce, "_folder", lambda: tmp_path / "studies")
    monkeypatch.delenv("STEADYTREE_DATA", raising=False)
    return run


def test_a_study_ends_in_a_page(study, tmp_path):
    code, out, err = study("reproduce", "little-one")
    assert (code, err) == (0, "")
    assert "| <b>x</b> | 0.5 |" in out
    assert "written: little_one_out/study.html" in out
    page = (tmp_path / "little_one_out" / "study.html").read_text("utf-8")
    assert '<td>&lt;b&gt;x&lt;/b&gt;</td><td class="number">0.5</td>' in page
    assert "A study &lt;of&gt; little." in page
    assert "as it stands:   1  2 no data" in page
    assert 'src="data:image/svg+xml;base64,' in page
    assert "what we got: 0.4" in page
    assert "steadytree reproduce little-one" in page
    data = json.loads(re.search(r'id="steadytree-data">(.*?)</script>', page, re.S)[1])
    assert "\n".join(data["output"]) in out


def test_data_and_folder_reach_the_study(study, tmp_path):
    (tmp_path / "sets").mkdir()
    asked = ("reproduce", "little_one", "--data", "sets", "--out", "here", "--json")
    code, out, err = study(*asked)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["written"] == ["here/study.html"]
    assert found["output"][-1] == f"as it stands:   1  2 {tmp_path / 'sets'}"


def test_a_study_gets_what_follows_its_name(study, tmp_path):
    code, out, _ = study("reproduce", "little_one", "--help")
    assert code == 0
    assert "usage: run.py" in out
    assert names_in(tmp_path) == ["studies"]


def test_options_that_a_study_refuses_are_one_line(study, tmp_path):
    code, _, err = study("reproduce", "little_one", "--bogus")
    assert code == 2
    assert err == (
        "error: the study 'little_one' refuses its options, unrecognized arguments: --bogus: "
        "steadytree reproduce little_one --help lists what is allowed.\n"
    )
    assert names_in(tmp_path) == ["studies"]


def test_what_a_study_says_last_is_its_error(study, tmp_path):
    code, _, err = study("reproduce", "little_one", "--stop")
    assert (code, err) == (2, "at work\nerror: the study 'little_one' ended: name another --out.\n")
    code, _, err = study("reproduce", "little_one", "--say")
    assert (code, err) == (0, "at work\ndone\n")


def test_a_study_that_fails_leaves_no_page(study, tmp_path):
    code, _, err = study("reproduce", "little_one", "--fail")
    assert code == 2
    assert err == "error: the study 'little_one' ended: exit code 7.\n"
    assert names_in(tmp_path / "little_one_out") == ["a-curve.svg"]


def test_wrong_places_are_refused(study, tmp_path):
    refused(study("reproduce", "little_one", "--out", "no/where"), "make its folder first")
    (tmp_path / "file").write_text("", "utf-8")
    refused(study("reproduce", "little_one", "--out", "file"), "is a file, not a folder")
    assert names_in(tmp_path) == ["file", "studies"]


def test_a_missing_package_is_named(study, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused(study("reproduce", "little_one"), r"needs matplotlib: pip install 'steadytree\[plot\]'")


def test_a_page_of_nothing_says_so():
    assert "produced no output" in study_page("a", "b", [], [])


@pytest.mark.parametrize("name", sorted(reproduce._studies()))
def test_every_study_has_a_quick_mode_and_a_place_for_pictures(name):
    text = reproduce._studies()[name].read_text("utf-8")
    assert 'add_argument("--quick"' in text
    assert 'add_argument("--out"' in text


def test_runs_of_lines_become_tables_and_text():
    found = blocks(["a", "", "| x |", "| ---: |", "| 1 |", "b"])
    assert [block["kind"] for block in found] == ["text", "table", "text"]
    page = study_page("a study", "of little", ["| x |", "| --- |", "| 1 |"], [])
    assert "<th>x</th>" in page


def test_finished_cells_are_found_again(tmp_path):
    Results(tmp_path / "cells.jsonl").add({"set": "iris", "seed": 0, "accuracy": 0.9})
    assert Results(tmp_path / "cells.jsonl").find(set="iris", seed=0)["accuracy"] == 0.9


def test_cells_of_other_settings_are_refused_in_one_line(tmp_path):
    path = tmp_path / "cells.jsonl"
    Results(path, {"splits": 10, "sets": [1]}).add({"set": "iris", "accuracy": 0.9})
    again = Results(path, {"splits": 10, "sets": [1]})
    assert again.cells == [{"set": "iris", "accuracy": 0.9}]
    before = path.read_text("utf-8")
    with pytest.raises(ValueError, match=r'made with {"splits": 10, .*has {"splits": 2}: go on w'):
        Results(path, {"splits": 2})
    Results(tmp_path / "old.jsonl").add({"set": "iris"})
    with pytest.raises(ValueError, match="no settings"):
        Results(tmp_path / "old.jsonl", {"splits": 2})
    assert path.read_text("utf-8") == before


OTHER = {
    "average_sensitivity": ("results.jsonl", '{"settings": {"samples": 77}}'),
    "robust_optimal": ("cells.jsonl", '{"settings": {"time_limit": 77}}'),
    "tree_distance": ("results.jsonl", '{"settings": {"quick": false}}'),
    "separation": ("results.jsonl", '{"settings": {"sets": "full"}}'),
    "private_distributed": ("runs.json", '{"rows": 77}'),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHER)
def test_a_study_resumed_with_other_settings_ends_in_one_line(name, tmp_path, monkeypatch):
    monkeypatch.delenv("STEADYTREE_DATA", raising=False)
    file, text = OTHER[name]
    (tmp_path / file).write_text(text + "\n", "utf-8")
    command = [sys.executable, str(reproduce._studies()[name]), "--quick", "--out", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr.count("\n") == 1
    assert "name another --out" in found.stderr
    assert names_in(tmp_path) == [file]


@pytest.fixture
def shared():
    path = reproduce._folder() / "shared.py"
    spec = importlib.util.spec_from_file_location("shared", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_set_that_is_not_there_is_asked_for_with_its_columns(shared, tmp_path, capsys):
    pd = pytest.importorskip("pandas")
    asked = (tmp_path, "mammo", 2, "numbers; labels 0/1")
    assert shared.read_set(*asked) is None
    assert capsys.readouterr().out == (
        "left out: mammo.csv.gz is not in the data folder; expected are 2 columns "
        "(numbers; labels 0/1) and the label in `target`.\n"
    )
    pd.DataFrame({"a": [1], "b": [2], "target": [0]}).to_csv(tmp_path / "mammo.csv.gz", index=False)
    assert list(shared.read_set(*asked)) == ["a", "b", "target"]
    with pytest.raises(SystemExit, match=r"expected are 3 columns .*it has 3 columns, first a, b"):
        shared.read_set(tmp_path, "mammo", 3, "numbers")
