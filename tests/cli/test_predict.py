"""`steadytree predict`: identifiers kept as written, probabilities and leaves of the model."""

import csv
import json
import pathlib
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from tests.cli.commands import names_in, refused


@pytest.fixture
def frame():
    """Rows with identifiers, and a tree for them, in files."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"id": [f"{k:04d}" for k in range(60)], "age": random.uniform(20, 90, 60).round(1)}
    )
    frame["ward"] = random.choice([*"AB"], 60)
    frame["outcome"] = np.where(frame["age"] > 50, "ill", "well")
    frame.to_csv("rows.csv", index=False)
    model = st.StableTreeClassifier(2, 0, random_state=0)
    model.fit(frame[["age", "ward"]], frame["outcome"]).save("model.tree.json")
    return frame


def read(path):
    return list(csv.DictReader(pathlib.Path(path).read_text("utf-8").splitlines()))


def test_every_row_has_its_identifier_probabilities_and_leaf(run, frame):
    asked = ("--keep", "id", "--out", "predicted.csv")
    code, out, _ = run("predict", "model.tree.json", "rows.csv", *asked)
    assert (code, out) == (0, "60 rows predicted\nwritten: predicted.csv\n")
    tree, rows = st.load("model.tree.json"), read("predicted.csv")
    assert list(rows[0]) == ["id", "prediction", "probability ill", "probability well", "leaf"]
    assert [row["id"] for row in rows] == frame["id"].tolist()  # with their leading zeros
    assert [row["prediction"] for row in rows] == tree.predict(frame).tolist()
    assert [int(row["leaf"]) for row in rows] == tree.apply(frame).tolist()
    shares = [[float(row["probability ill"]), float(row["probability well"])] for row in rows]
    np.testing.assert_allclose(shares, tree.predict_proba(frame), atol=1e-6)


def test_columns_that_the_model_does_not_use_are_kept_unless_some_are_named(run, frame):
    printed = run("predict", "model.tree.json", "rows.csv")[1].splitlines()
    assert printed[0].startswith("id,outcome,prediction,")
    assert len(printed) == 61
    document = json.loads(run("predict", "model.tree.json", "rows.csv", "--json")[1])
    assert document["columns"][:2] == ["id", "outcome"]
    assert document["n_rows"] == len(document["rows"]) == 60


def test_a_forest_and_a_risk_score(run, frame):
    forest = RandomForestClassifier(3, random_state=0).fit(frame[["age"]], frame["outcome"])
    pathlib.Path("forest.pkl").write_bytes(pickle.dumps(forest))
    run("predict", "forest.pkl", "rows.csv", "--trust", "--keep", "id", "--out", "out.csv")
    assert [row["prediction"] for row in read("out.csv")] == forest.predict(frame[["age"]]).tolist()
    assert "leaf" not in read("out.csv")[0]
    score = st.RiskScoreClassifier(noise=0.02, random_state=0)
    score.fit(frame[["age", "ward"]], frame["outcome"]).save("score.card.json")
    run("predict", "score.card.json", "rows.csv", "--out", "out.csv")
    expected = score.predict(frame[["age", "ward"]]).tolist()
    assert [row["prediction"] for row in read("out.csv")] == expected


def test_bad_input_is_one_line_and_nothing_is_written(run, frame, tmp_path):
    pathlib.Path("no_age.csv").write_text("id,ward\n1,A\n", "utf-8")
    unnamed = LogisticRegression().fit(frame[["age"]].to_numpy(), frame["outcome"])
    pathlib.Path("model.pkl").write_bytes(pickle.dumps(unnamed))
    before = names_in(tmp_path)
    for arguments, message in (
        (("model.tree.json", "no_age.csv"), "X lacks the column.s. 'age'"),
        (("rows.csv", "model.tree.json"), "looks like a data file"),
        (("model.tree.json", "rows.csv", "--keep", "idd"), "did you mean 'id'"),
        (("model.tree.json", "rows.csv", "--out", "rows.csv"), "rows.csv"),
        (("model.pkl", "rows.csv"), "--trust"),
        (("model.pkl", "rows.csv", "--trust"), "fitted to 1 columns without names"),
    ):
        refused(run("predict", *arguments), message)
    assert names_in(tmp_path) == before


def awkward_frame():
    """Text with spaces, a mark of missing values as a category, and bools with missing ones."""
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"answer": random.choice(["NO ", "NO", " yes", "?"], 300)})
    frame["smoker"] = pd.array(random.random(300) < 0.4, dtype="boolean")
    frame.loc[::17, "smoker"] = pd.NA
    frame["member"] = random.random(300) < 0.5
    frame["outcome"] = (frame["answer"] == "NO ") ^ frame["smoker"].fillna(False).astype(bool)
    frame.to_csv("rows.csv", index=False)
    return frame.drop(columns="outcome"), frame["outcome"]


@pytest.mark.parametrize("learner", [st.SteadyTreeClassifier, st.RiskScoreClassifier])
def test_a_model_of_a_frame_knows_its_cells_in_a_csv_file(run, learner):
    X, y = awkward_frame()
    model = learner().fit(X, y)
    st.save(model, path := f"model.{'card' if hasattr(model, 'card_') else 'tree'}.json")
    run("predict", path, "rows.csv", "--out", "predicted.csv")
    written = [float(row["probability True"]) for row in read("predicted.csv")]
    np.testing.assert_allclose(written, model.predict_proba(X)[:, 1], atol=1e-5)


@pytest.mark.parametrize("last", [DecisionTreeClassifier(max_depth=4), LogisticRegression()])
@pytest.mark.parametrize("columns", [["answer", "member"], ["answer"]])
def test_a_pipeline_of_a_frame_gets_cells_as_pandas_reads_them(run, last, columns):
    X, y = awkward_frame()
    encoder = ColumnTransformer([("text", OneHotEncoder(handle_unknown="ignore"), columns)])
    pipeline = make_pipeline(encoder, last).fit(X, y)
    pathlib.Path("pipeline.pkl").write_bytes(pickle.dumps(pipeline))
    run("predict", "pipeline.pkl", "rows.csv", "--trust", "--out", "predicted.csv")
    written = [float(row["probability True"]) for row in read("predicted.csv")]
    np.testing.assert_allclose(written, pipeline.predict_proba(X)[:, 1], atol=1e-5)
