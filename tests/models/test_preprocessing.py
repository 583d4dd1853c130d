"""Which steps of a pipeline are followed back, and how the others are refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, QuantileTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree._base.exceptions import NotATreeError
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


def test_truth_values_as_categories_are_refused():
    flags = pd.DataFrame({"f": [True, False, True, False]})
    model = make_pipeline(OrdinalEncoder(), DecisionTreeClassifier()).fit(flags, y)
    with pytest.raises(NotATreeError, match="neither text nor numbers"):
        st.as_tree(model)
