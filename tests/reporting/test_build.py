import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.data.dataset import hash_data
from steadytree.data.table import Table
from steadytree.metrics.accuracy import accuracy
from steadytree.metrics.complexity import complexity
from steadytree.models.files import load, save
from steadytree.reporting.build import build_report
from steadytree.reporting.data_set import Origin
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.text import render_text
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.models import trees


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, load_iris().target_names[y]


@pytest.fixture(scope="module")
def model(iris):
    X, y = iris
    return StableTreeClassifier(max_depth=3, epsilon=0, random_state=0).fit(X[::2], y[::2])


def test_dict_is_json(model, iris):
    data = build_report(model, *iris)
    assert json.loads(json.dumps(data, allow_nan=False)) == data


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("labels", ["str", "int", "float", "bool"])
def test_any_tree_can_be_collected(seed, labels):
    rng = np.random.default_rng(seed)
    tree = trees.random_tree(rng, n_classes=2, labels=labels)
    X = trees.random_rows(rng, tree)
    data = build_report(tree, X, rng.choice(tree.classes, len(X)))
    json.dumps(data, allow_nan=False)
    assert data["data"]["n_missing"] == int(X.isna().sum().sum())


def test_readings_are_those_of_the_public_functions(model, iris):
    data = build_report(model, *iris)
    for name, found in [
        ("accuracy", accuracy(model, *iris)),
        ("complexity", complexity(model, iris[0])),
    ]:
        values = [reading["value"] for reading in data["readings"][name]]
        assert values == [reading.value for reading in found.measurements()]
    assert data["confusion"]["counts"] == accuracy(model, *iris).confusion.tolist()


def test_same_input_and_date_same_dict(model, iris):
    X, y = iris
    first = build_report(model, X, y, ReportOptions(date="2024-05-01"))
    assert first == build_report(model, X.copy(), list(y), ReportOptions(date="2024-05-01"))
    assert first["made"]["date"] == "2024-05-01"


def test_rows_that_look_like_those_of_fitting_are_noticed(model, iris):
    X, y = iris
    assert build_report(model, X[::2], y[::2])["origin"]["seen"] is True
    assert build_report(model, X[1::3], y[1::3])["origin"]["seen"] is None
    assert (
        build_report(model, X[::2], y[::2], ReportOptions(origin=Origin(seen=False)))["origin"][
            "seen"
        ]
        is False
    )


def test_hash_of_the_model_is_the_one_in_its_file(model, iris, tmp_path):
    save(model, tmp_path / "a.tree.json")
    written = json.loads((tmp_path / "a.tree.json").read_text("utf-8"))["sha256"]
    assert build_report(model, *iris)["model"]["sha256"] == written
    assert build_report(load(tmp_path / "a.tree.json"), *iris)["model"]["sha256"] == written


def test_hash_of_data_does_not_depend_on_who_read_them(iris):
    polars = pytest.importorskip("polars")
    X, y = iris
    named = Table(tuple(X.columns), list(X.to_numpy().T), {})
    hashes = {hash_data(frame, y) for frame in (X, polars.from_pandas(X), named)}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.rename(columns={X.columns[0]: "other"}),
        lambda X: X.iloc[::-1],
        lambda X: X.assign(**{X.columns[0]: np.nan}),
        lambda X: X.iloc[:, ::-1],
    ],
)
def test_hash_of_data_changes_with_them(iris, change):
    X, y = iris
    assert hash_data(X, y) != hash_data(change(X), y)


def test_a_tree_of_scikit_learn_gets_names_and_kinds_from_the_rows(iris):
    X, y = iris
    unnamed = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X.to_numpy(), y)
    root = build_report(unnamed, X, y)["tree"]["nodes"][0]
    assert root["feature"] in X.columns
    assert root["missing"] == ""
    assert len(root["test"]) <= len("≤ 12.34")


def test_columns_the_tree_does_not_know_are_marked(model, iris):
    X, y = iris
    listed = build_report(model, X.assign(extra=1), y)["data"]["columns"]
    assert {column["name"]: column["kind"] for column in listed}["extra"] == "not used"


def test_labels_without_letters_are_shown():
    X = pd.DataFrame({"x": [0.0, 1.0]})
    model = DecisionTreeClassifier().fit(X, ["", "a"])
    assert build_report(model, X, ["", "a"])["tree"]["classes"] == ["(empty)", "a"]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (st.SteadyTreeClassifier(), "fitted to an ensemble that predicts held-out rows"),
        (st.ParetoTreeClassifier(n_trees=8, random_state=0), "whose refits agree on "),
        (st.StableTreeClassifier(random_state=0), ""),
    ],
)
def test_what_the_learner_chose_is_said(model, said):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    fitted = model.fit(X, y)
    data = build_report(fitted, X, y, ReportOptions(quick=True))
    assert said in data["model"]["learned"]
    assert bool(said) == bool(data["model"]["learned"])
    assert (data["model"]["learned"] in render_text(data, 2000)) is True
    if hasattr(fitted, "agreement_"):
        assert f"{100 * fitted.agreement_:.0f} %" in data["model"]["learned"]
