"""The tools of maintainers: mutants, changed commands, compared exports, what we are made of."""

import ast
import importlib.util
import json
import pathlib
import sys

import numpy as np
import pytest

PROJECT = pathlib.Path(__file__).parents[1]


def tool(name):
    spec = importlib.util.spec_from_file_location(name, PROJECT / f"tools/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- mutate ----
def test_every_mutant_is_python_that_differs():
    mutate = tool("mutate")
    whole = (PROJECT / "src/steadytree/metrics/measurement.py").read_text("utf-8")
    mutants = list(mutate.mutants_of("metrics/measurement"))
    assert len(mutants) > 5
    for mutant in mutants:
        text = mutate.mutated_text(mutant)
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(whole))
        assert mutant["before"] != mutant["after"]
    assert len({mutate.key_of(mutant) for mutant in mutants}) == len(mutants)


def test_each_change_is_made(monkeypatch, tmp_path):
    mutate = tool("mutate")
    folder = tmp_path / "steadytree/a"
    folder.mkdir(parents=True)
    text = "def f(x: int = 3) -> 'int | str':\n"
    text += "    return -x + 2 * max(x, 0) if x <= 1 and not x else True"
    (folder / "b.py").write_text(text, "utf-8")
    monkeypatch.setattr(mutate, "SOURCE", tmp_path)
    changes = {(each["before"], each["after"]) for each in mutate.mutants_of("a/b")}
    assert {
        ("x <= 1", "x < 1"),
        ("-x", "+x"),
        ("-x + 2 * max(x, 0)", "-x - 2 * max(x, 0)"),
        ("2 * max(x, 0)", "2 / max(x, 0)"),
        ("max(x, 0)", "min(x, 0)"),
        ("x <= 1 and (not x)", "x <= 1 or not x"),
        ("not x", "not not x"),
        ("2", "4"),
        ("0", "1"),
        ("1", "2"),
        ("3", "6"),
        ("True", "False"),
    } == changes


def test_modules_and_their_tests_are_there():
    mutate = tool("mutate")
    for module in mutate.MODULES:
        assert (mutate.SOURCE / f"steadytree/{module}.py").is_file()
        assert mutate.tests_of(module), module
        paths = [each for each in mutate.tests_of(module) if each.startswith("tests/")]
        assert all((PROJECT / path).is_file() for path in paths)


# ---- changed commands ----
def test_changed_commands_fail_in_one_line_and_lose_no_input():
    faults, ends = tool("fuzz").fuzz(count=20, seed=1)
    assert not faults
    assert ends[0] > 2
    assert ends[2] > 5


def test_a_fault_is_seen():
    fault_of = tool("fuzz").fault_of
    assert fault_of(0, "", None) == fault_of(2, "error: no.\n", None) == fault_of(3, "", None) == ""
    for code, err, error in [
        (None, "", KeyError("a")),
        (1, "", None),
        (2, "error: a\nb\n", None),
        (2, "Traceback\n", None),
        (2, "error: unexpected KeyError: please report it; \n", None),
        (0, "warning: a\nwarning: a\n", None),
    ]:
        assert fault_of(code, err, error)


# ---- exports ----
def test_random_exports_agree():
    compare = tool("compare_exports")
    differ, random = compare.collections.Counter(), np.random.default_rng(9)
    for _ in range(3):
        compare.compare_tree(random, differ, ["duckdb", "onnxruntime"])
        compare.compare_card(random, differ, ["duckdb", "onnxruntime"])
    assert len(differ) == 5
    assert not any(differ.values())


# ---- supply ----
def test_dependencies_have_licences_that_go_with_ours():
    from importlib import metadata

    supply = tool("supply")
    found = supply.closure(metadata.distribution("steadytree"))
    assert {"numpy", "scipy", "scikit-learn", "numba", "llvmlite", "rich"} <= set(found)
    assert not [
        name for name, one in found.items() if not supply.is_permissive(supply.licence_of(one))
    ]
    assert not any(supply.is_permissive(text) for text in ("GPL-3.0", "Proprietary", "", "AGPL"))
    document = json.loads(json.dumps(supply.sbom("1.0", found)))
    assert document == supply.sbom("1.0", found)
    assert [one["name"] for one in document["components"]] == list(found)
    assert all(one["version"] and one["licenses"] for one in document["components"])


# ---- soak ----
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and signals")
def test_a_few_commands_with_faults():
    wrong, ends, _ = tool("soak").soak(seconds=600, seed=3, most=25)
    assert not wrong
    assert sum(ends.values()) == 25
