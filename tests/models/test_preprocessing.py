"""Which steps of a pipeline are followed back, and how the others are refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, QuantileTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree._base.exceptions import NotATreeError
from steadytree.data.readers import read_data
from steadytree.models.preprocessing import ENCODED, FLAG, RAW, SCALED, Trace, follow

X = pd.DataFrame(
    {"a": [1.0, 2.0, np.nan, 4.0], "b": ["x", "y", "x", "z"], "c": [0.0, 1.0, 5.0, 3.0]}
)
y = [0, 1, 0, 1]


def test_columns_are_followed_through_every_step():
    steps = ColumnTransformer(
        [
            ("one", OneHotEncoder(drop=["x"]), ["b"]),
            ("two", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), [0]),
            ("none", "drop", []),
        ],
        remainder="passthrough",
    )
    found = follow(make_pipeline(steps, DecisionTreeClassifier()).fit(X, y))
    expected = [Trace(1, ENCODED), Trace(1, ENCODED), Trace(0, SCALED), Trace(0, FLAG)]
    assert found.traces == [*expected, Trace(2, RAW)]
    assert found.categories == {1: ["x", "y", "z"]}
    assert found.names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([SimpleImputer(), PCA(1)], r"step 'pca' \(PCA\) cannot be followed back"),
        ([QuantileTransformer(n_quantiles=3)], r"step 'quantiletransformer'"),
        ([StandardScaler(), OneHotEncoder()], "encodes values that another step has changed"),
        ([SimpleImputer(missing_values=5.0, fill_value=0)], r"step 'simpleimputer'"),
    ],
)
def test_a_step_that_mixes_or_bends_is_refused_by_name(steps, message):
    model = make_pipeline(*steps, DecisionTreeClassifier()).fit(X[["a", "c"]].fillna(0), y)
    with pytest.raises(NotATreeError, match=message) as caught:
        st.as_tree(model)
    assert "\n" not in str(caught.value)
    assert "model[-1]" in str(caught.value)  # the way on


def test_a_column_that_is_number_and_category_is_refused():
    both = ColumnTransformer([("one", OneHotEncoder(), ["c"]), ("two", StandardScaler(), ["c"])])
    model = make_pipeline(both, DecisionTreeClassifier()).fit(X, y)
    with pytest.raises(NotATreeError, match="column 'c' is used as a number and as a category"):
        st.as_tree(model)


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OrdinalEncoder()])
@pytest.mark.parametrize("gap", [[], [np.nan], [None]])
def test_truth_values_as_categories_are_followed_with_missing_ones_too(encoder, gap, tmp_path):
    """As pandas reads them: objects where some are missing."""
    rng = np.random.default_rng(0)
    given = rng.choice(np.array([True, False, *gap], object if gap else bool), 200)
    rows = pd.DataFrame({"f": given, "a": rng.normal(size=200)})
    found = np.logical_xor(rows["f"].eq(True), rows["a"] > 0).astype(int)
    steps = ColumnTransformer([("f", encoder, ["f"])], remainder="passthrough")
    model = make_pipeline(steps, DecisionTreeClassifier(random_state=0)).fit(rows, found)
    tree = st.as_tree(model)
    np.testing.assert_array_equal(tree.predict_proba(rows), model.predict_proba(rows))
    rows.to_csv(tmp_path / "rows.csv", index=False)  # True and False as text
    table = read_data(tmp_path / "rows.csv")
    np.testing.assert_array_equal(tree.predict(table), model.predict(rows))


@pytest.mark.interop
def test_a_forest_behind_truth_values_with_missing_ones_is_certified():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"f": rng.choice(np.array([True, False, np.nan], object), 60)})
    rows["a"] = rng.normal(size=60)
    found = np.logical_xor(rows["f"].eq(True), rows["a"] > 0).astype(int)
    steps = ColumnTransformer([("f", OneHotEncoder(), ["f"])], remainder="passthrough")
    forest = RandomForestClassifier(3, random_state=0)
    model = make_pipeline(steps, forest).fit(rows, found)
    proven = st.certify(model, rows, found, st.Perturbation(radius={"a": 0.0}))
    assert proven.accuracy == model.score(rows, found)
