"""The command `fit`, as a pipeline calls it."""

import json

import numpy as np
import pandas as pd
import pytest

from steadytree.models.files import load
from steadytree.stability.stable_tree import StableTreeClassifier
from steadytree.stability.steady_tree import SteadyTreeClassifier

pytest.importorskip("pyarrow")
COMMAND = ("fit",)


def write(folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 90, 200), "income": rng.normal(size=200)})
    frame["outcome"] = np.where(frame["age"] + 9 * frame["income"] > 50, "ill", "well")
    folder.mkdir()
    frame[:120].to_parquet(folder / "a.parquet")
    frame[120:].to_parquet(folder / "b.parquet")
    return frame


def test_fit_writes_the_tree_of_all_files(run, tmp_path):
    frame = write(tmp_path / "rows")
    code, out, _ = run(
        "rows", "--target", "outcome", "--max-depth", 3, "--epsilon", 0, "--cache", "m"
    )
    assert code == 0
    assert out.startswith("stable tree: 200 rows, ")
    model = StableTreeClassifier(max_depth=3, epsilon=0, random_state=0)
    near = model.fit(frame[["age", "income"]], frame["outcome"]).tree_
    assert load(tmp_path / "fitted.tree.json") == near
    assert (tmp_path / "m" / "map.json").exists()


def test_some_columns_and_some_files(run, tmp_path):
    write(tmp_path / "rows")
    code, _, _ = run(
        "rows/a.parquet", "rows/b.parquet", "--target", "outcome", "--drop", "income", "--out", "x"
    )
    assert code == 0
    assert load(tmp_path / "x").space.names == ("age",)


def test_a_text_file_gives_the_same_tree(run, tmp_path):
    write(tmp_path / "rows").to_csv(tmp_path / "rows.csv", index=False)
    asked = ("--learner", "stable", "--out", "text")
    assert run("rows.csv", "--target", "outcome", *asked)[0] == 0
    assert run("rows", "--target", "outcome", "--out", "blocks")[0] == 0
    assert load(tmp_path / "text") == load(tmp_path / "blocks")


def test_bins_and_seed_of_a_tree_are_used_again(run, tmp_path):
    frame = write(tmp_path / "rows")
    frame.to_csv(tmp_path / "all.csv", index=False)
    frame[1:].to_csv(tmp_path / "fewer.csv", index=False)
    first = ("--target", "outcome", "--learner", "stable", "--max-depth", 3, "--seed", 7)
    assert run("all.csv", *first, "--out", "a.tree.json")[0] == 0
    again = (*first[:-2], "--bins", "a.tree.json")
    assert run("all.csv", *again, "--out", "same")[0] == 0
    assert load(tmp_path / "same") == load(tmp_path / "a.tree.json")
    assert run("fewer.csv", *again, "--out", "b")[0] == 0
    model = StableTreeClassifier(max_depth=3, bins=load(tmp_path / "a.tree.json"))
    expected = model.fit(frame[1:][["age", "income"]], frame[1:]["outcome"]).tree_
    assert load(tmp_path / "b") == expected
    assert expected.bins.seed == 7
    assert run("all.csv", "--target", "outcome", "--out", "steady")[0] == 0
    code, _, err = run("all.csv", "--target", "outcome", "--bins", "steady")
    assert code == 2
    assert "this one keeps none" in err


def test_one_file_gives_a_steady_tree(run, tmp_path):
    frame = write(tmp_path / "rows")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    for name in ("rows.csv", "rows.parquet"):
        code, out, _ = run(name, "--target", "outcome", "--max-leaves", 5, "--max-depth", 3)
        assert code == 0
        assert out.startswith("steady tree: 200 rows, ")
        model = SteadyTreeClassifier(5, max_depth=3)
        expected = model.fit(frame[["age", "income"]], frame["outcome"]).tree_
        assert load(tmp_path / "fitted.tree.json") == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--target", "outcome"], "there is no file or folder 'nowhere'"),
        (["rows", "--target", "result"], "target 'result' is not a column of the files"),
        (["rows", "--target", "outcome", "--cache", "rows"], "holds other files"),
        (["rows", "--target", "outcome", "--out", "no/such/x.json"], "no/such"),
        (["rows"], "--target"),
        (["rows", "--target", "outcome", "--drop", "pay"], "--drop names 'pay'"),
        (["a.csv", "b.csv", "--target", "outcome"], "a csv file is read as a whole"),
        (["a.csv", "--target", "outcome", "--cache", "m"], "a csv file is read as a whole"),
        (["rows", "--target", "outcome", "--fingerprints"], "needs the rows in memory"),
        (
            ["a.csv", "--target", "outcome", "--learner", "steady", "--epsilon", "0.1"],
            "--epsilon belongs to a stable tree: add --learner stable",
        ),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(run, tmp_path, arguments, message):
    write(tmp_path / "rows")
    code, _, err = run(*arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("*.json"))


def test_why_a_steady_tree_is_as_it_is_is_said(run, tmp_path):
    frame = pd.DataFrame({"age": [1, 1, 1, 1], "outcome": [0, 1, 0, 1]})
    frame.to_csv(tmp_path / "same.csv", index=False)
    _, out, _ = run("same.csv", "--target", "outcome")
    assert "4 rows, 1 leaf, depth 0\nno column varies: a single leaf.\n" in out
    _, out, _ = run("same.csv", "--target", "outcome", "--json")
    assert json.loads(out)["choice"] == "no column varies: a single leaf."


@pytest.mark.parametrize("file", ["rows.csv", "rows"])
def test_a_target_of_many_numbers_is_refused_as_in_report(run, tmp_path, file):
    frame = write(tmp_path / "rows")
    for part in ("a", "b"):
        frame.assign(outcome=range(200)).to_parquet(tmp_path / "rows" / f"{part}.parquet")
    frame.assign(outcome=range(200)).to_csv(tmp_path / "rows.csv", index=False)
    code, _, err = run(file, "--target", "outcome")
    assert code == 2
    assert err == (
        "error: target 'outcome' holds 200 different values, which look like an amount or a name "
        "rather than classes: group them, or name another target.\n"
    )
    assert not (tmp_path / "fitted.tree.json").exists()
