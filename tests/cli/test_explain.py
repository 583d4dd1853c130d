"""`steadytree explain`: one row by its number or by an identifier."""

import json

import joblib
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import steadytree as st

COMMAND = ("explain",)


@pytest.fixture
def files(tmp_path):
    X = pd.DataFrame({"age": range(40), "dose": [k % 7 / 2 for k in range(40)]})
    y = ["ill" if age > 20 else "well" for age in X["age"]]
    st.save(st.StableTreeClassifier(2, 0, random_state=0).fit(X, y), tmp_path / "m.tree.json")
    X.assign(name=[f"p{k}" for k in range(40)], same="a").to_csv(tmp_path / "d.csv", index=False)
    return "m.tree.json", "d.csv"


def test_row_by_number_and_by_identifier(run, files):
    by_number = run(*files, "--row", 3)
    assert by_number == run(*files, "--id", "name=p3")
    code, out, _ = by_number
    assert code == 0
    assert out.startswith("row 3: well. Probability 96 %")
    assert "age from 3 to 2" in out


def test_json_holds_what_the_function_says(run, files, tmp_path):
    code, out, _ = run(*files, "--row", 30, "--json")
    row = pd.read_csv(tmp_path / "d.csv").iloc[[30]][["age", "dose"]].astype(float)
    assert code == 0
    assert json.loads(out) == st.explain(st.load(tmp_path / "m.tree.json"), row).to_dict()


def test_previous_model_and_frozen_columns(run, files, tmp_path):
    (tmp_path / "noise.toml").write_text('frozen = ["age"]\nstep_cost = 1.0\n', "utf-8")
    code, out, _ = run(*files, "--row", 3, "--noise", "noise.toml", "--previous", files[0])
    assert code == 0
    assert "No allowed change changes the prediction." in out
    assert "The previous model decided well (96 %): the same." in out


def test_a_pipeline_is_explained_in_the_columns_of_the_file(run, files, tmp_path):
    X = pd.read_csv(tmp_path / files[1])[["age", "dose"]].assign(
        sex=["f" if k % 3 else "m" for k in range(40)]
    )
    y = [
        "ill" if age > 20 and sex == "f" else "well" for age, sex in zip(X.age, X.sex, strict=True)
    ]
    before = make_column_transformer(
        (StandardScaler(), ["age", "dose"]), (OneHotEncoder(), ["sex"])
    )
    model = make_pipeline(before, DecisionTreeClassifier(random_state=0)).fit(X, y)
    joblib.dump(model, tmp_path / "m.joblib")
    X.to_csv(tmp_path / "rows.csv", index=False)
    case = ("m.joblib", "rows.csv", "--row", 25)
    assert y[25] == "ill"
    code, out, err = run(*case)
    assert (code, out) == (2, "")
    assert "--trust" in err
    code, out, err = run(*case, "--trust")
    assert (code, err) == (0, "")
    assert out.startswith("row 25: ill. Probability 100 %")
    assert "sex from 'f' to 'm'" in out  # not a one-hot column
    assert "age from 25 to 21.5" in out  # nor a standardised one


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name one row: pass --row NUMBER or --id COLUMN=VALUE."),
        (("--row", 1, "--id", "name=p1"), "name one row"),
        (("--row", 40), "--row must be at most 39, got 40."),
        (("--id", "name=p99"), "--id name=p99: 0 rows have this value"),
        (("--id", "same=a"), "--id same=a: 40 rows have this value"),
        (("--id", "name"), "--id must be COLUMN=VALUE, as in --id patient=A-1023, got 'name'."),
        (("--id", "nam=p1"), "did you mean 'name', 'same'?"),
    ],
)
def test_wrong_rows_are_refused_in_one_line(run, files, arguments, message):
    code, out, err = run(*files, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
