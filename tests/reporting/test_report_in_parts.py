"""Reports and certificates of rows in files: the same figures as of the rows in memory."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from steadytree.data.parts import Parts
from steadytree.models.files import load
from steadytree.reporting.report import report
from steadytree.stability.stable_tree import StableTreeClassifier
from steadytree.stability.steady_tree import SteadyTreeClassifier
from tests.metrics.test_accuracy_in_parts import assert_same

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"weight": rng.integers(40, 90, 300) * 1.0, "income": rng.normal(size=300)})
    X["site"] = rng.choice(["north", "south"], 300)
    ill = X["weight"] + 9 * X["income"] + 5 * rng.normal(size=300) > 65
    return X.assign(outcome=np.where(ill, "ill", "well"))


@pytest.fixture
def folder(frame, tmp_path):
    (tmp_path / "rows").mkdir()
    frame[:120].to_parquet(tmp_path / "rows" / "a.parquet")
    frame[120:].to_parquet(tmp_path / "rows" / "b.parquet")
    return tmp_path / "rows"


@pytest.fixture(scope="module")
def tree(frame):
    model = StableTreeClassifier(3, random_state=0)
    return model.fit(frame[["weight", "income", "site"]], frame["outcome"]).tree_


def sample_of(monkeypatch, most):
    monkeypatch.setattr(Parts.sample, "__defaults__", (most, 0))


def test_few_rows_give_the_report_of_memory(frame, folder, tree):
    X, y = frame.drop(columns="outcome"), frame["outcome"].to_numpy()
    how = {"quick": True, "by": ["site"], "date": "2026-01-01"}
    assert report(tree, folder, "outcome", **how).data == report(tree, X, y, **how).data


def test_of_more_rows_counts_are_of_all_and_the_page_says_what_is_not(
    frame, folder, tree, monkeypatch
):
    sample_of(monkeypatch, 100)
    X, y = frame.drop(columns="outcome"), frame["outcome"].to_numpy()
    how = {"quick": True, "by": ["site"], "date": "2026-01-01"}
    found, near = report(tree, folder, "outcome", **how).data, report(tree, X, y, **how).data
    for name in ("confusion", "calibration", "groups", "origin"):
        assert_same(found[name], near[name])
    assert_same(found["readings"]["accuracy"], near["readings"]["accuracy"])
    assert (found["data"]["n_rows"], found["data"]["classes"]) == (300, near["data"]["classes"])
    assert found["headline"].startswith(near["headline"])
    assert "everything else is measured on 100 of 300 rows, drawn by chance." in found["headline"]
    with pytest.raises(TypeError, match="by must name columns"):
        report(tree, folder, "outcome", by={"site": frame["site"]})


def test_another_model_is_asked_about_the_sample(frame, folder, monkeypatch):
    sample_of(monkeypatch, 100)
    X, y = frame[["weight", "income"]], frame["outcome"]
    model = GaussianNB().fit(X, y)
    found = report(model, Parts(folder, "outcome", list(X.columns)), None, quick=True).data
    assert found["data"]["n_rows"] == 100
    assert "The rows are 100 of 300 rows, drawn by chance." in found["headline"]


def test_dask_gives_the_same_counts(frame, tree, monkeypatch):
    dask = pytest.importorskip("dask.dataframe")
    sample_of(monkeypatch, 100)
    far = dask.from_pandas(frame, npartitions=3)
    X, y = frame.drop(columns="outcome"), frame["outcome"].to_numpy()
    found = report(tree, far[["weight", "income", "site"]], far["outcome"], quick=True).data
    assert found["confusion"] == report(tree, X, y, quick=True).data["confusion"]


def test_commands_take_a_folder(run, frame, folder, tree, monkeypatch):
    sample_of(monkeypatch, 200)
    frame.to_csv("rows.csv", index=False)
    SteadyTreeClassifier().fit(frame[["weight", "income"]], frame["outcome"]).save("m.tree.json")
    asked = ("--target", "outcome", "--model", "m.tree.json", "--quick", "--json")
    far, near = (run("report", data, *asked) for data in ("rows", "rows.csv"))
    assert (far[0], near[0]) == (0, 0), (far, near)
    found, expected = (json.loads(out)["readings"]["accuracy"] for _, out, _ in (far, near))
    assert_same(found, expected)
    asked = ("--target", "outcome", "--radius", "weight=2", "--json")
    far, near = (run("certify", "m.tree.json", data, *asked) for data in ("rows", "rows.csv"))
    assert json.loads(far[1])["readings"] == json.loads(near[1])["readings"]
    refused = run("certify", "m.tree.json", "rows", *asked[:-1], "--weight", "income")
    assert refused[0] == 2
    assert "--weight needs the rows in memory" in refused[2]


def test_other_commands_refuse_a_folder_instead_of_sampling_it(run, folder, tree, tmp_path):
    tree.save(tmp_path / "m.tree.json")
    for command in (("compare", "rows"), ("diff", "m.tree.json", "m.tree.json", "--data", "rows")):
        code, _, err = run(*command, "--target", "outcome")
        assert code == 2
        assert "is a folder" in err


def test_a_steady_tree_of_a_folder_counts_all_rows(run, folder, tmp_path, monkeypatch):
    sample_of(monkeypatch, 150)
    code, out, _ = run(
        "fit", "rows", "--target", "outcome", "--learner", "steady", "--drop", "site"
    )
    assert code == 0
    assert "learned from 150 of 300 rows, drawn by chance; its leaves count all rows" in out
    tree = load(tmp_path / "fitted.tree.json")
    assert (tree.weight[0], tree.space.names) == (300, ("weight", "income"))


def test_without_a_model_a_sample_is_divided(run, folder, monkeypatch):
    sample_of(monkeypatch, 200)
    code, _, err = run("report", "rows", "--target", "outcome", "--quick")
    assert code == 0, err
    page = (folder.parent / "report.html").read_text("utf-8")
    assert "The rows are 200 of 300 rows, drawn by chance." in page
