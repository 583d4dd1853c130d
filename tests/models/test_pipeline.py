"""Trees of pipelines decide on raw rows as the pipelines do, at the last float."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.models.pipeline import Side, _number_side, raw_splits

SCALERS = ["passthrough", StandardScaler(), MinMaxScaler((-3, 0.7)), MaxAbsScaler(), RobustScaler()]
IMPUTERS = [
    "passthrough",
    SimpleImputer(),
    SimpleImputer(strategy="median", add_indicator=True),
    SimpleImputer(strategy="constant", fill_value=-7.5),
]
ENCODERS = [
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="ignore", sparse_output=False, drop="first"),
    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=20),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=9, encoded_missing_value=-5),
]
TEXT_IMPUTERS = ["passthrough", SimpleImputer(strategy="most_frequent")]
COLUMNS = ["age", "income", "colour", "grade"]


def rows(seed, n=150):
    random = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": random.integers(18, 90, n).astype(float),
            "income": random.lognormal(9, 2, n),
            "colour": random.choice(["red", "green", "blue", "grey"], n, p=[0.4, 0.3, 0.25, 0.05]),
            "grade": random.integers(1, 5, n),
        }
    )
    X.loc[random.random(n) < 0.15, ["income", "colour"]] = np.nan
    wanted = (X.age > 45) ^ (X.colour == "red") ^ (X.grade > 2) | (X.income > 20_000)
    return X, np.where(wanted ^ (random.random(n) < 0.1), "yes", "no")


def fitted(parts, X, y, depth=6):
    imputer, scaler, text_imputer, encoder, numbers = parts
    steps = ColumnTransformer(
        [
            ("numbers", make_pipeline(imputer, scaler), ["age", "income"]),
            ("texts", make_pipeline(text_imputer, encoder), ["colour"]),
            ("grades", numbers, ["grade"]),
        ]
    )
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
    return Pipeline([("prepare", steps), ("tree", tree)]).fit(X, y)


def clone_or_name(step):
    return step if isinstance(step, str) else clone(step)


def hard_rows(tree, X, seed):
    """Rows at every threshold and one float to either side, with missing and unseen values."""
    random = np.random.default_rng(seed)
    found = X.sample(1500, replace=True, random_state=seed).reset_index(drop=True)
    for name in ("age", "income"):
        at = tree.threshold[tree.feature == COLUMNS.index(name)]
        at = at[np.isfinite(at)]
        near = np.concatenate([at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf), [np.nan]])
        own = random.random(len(found)) < 0.7
        found.loc[own, name] = random.choice(near, own.sum())
    found["colour"] = random.choice(["red", "green", "blue", "grey", "unseen", None], len(found))
    found["colour"] = found["colour"].astype(object).where(found["colour"].notna(), np.nan)
    return found


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("seed", range(18))
def test_a_mapped_tree_decides_as_its_pipeline_at_every_float(seed):
    random = np.random.default_rng(seed)
    lists = (IMPUTERS, SCALERS, TEXT_IMPUTERS, ENCODERS)
    parts = [clone_or_name(one[random.integers(len(one))]) for one in lists]
    numbers = ["passthrough", OneHotEncoder(handle_unknown="ignore"), StandardScaler()][seed % 3]
    X, y = rows(seed)
    model = fitted((*parts, numbers), X, y)
    tree = st.as_tree(model)
    assert tree.space.names == tuple(COLUMNS)
    assert not tree.single_precision
    hard = hard_rows(tree, X, seed)
    if "colour" in tree.note:  # missing and unseen values go different ways in the pipeline
        hard = hard[hard["colour"] != "unseen"]
    else:
        assert (hard["colour"] == "unseen").any()
    np.testing.assert_array_equal(tree.predict_proba(hard), model.predict_proba(hard))
    np.testing.assert_array_equal(tree.predict(hard), model.predict(hard))


def test_a_threshold_is_the_last_float_that_goes_left():
    X, y = rows(3)
    model = fitted(
        (SimpleImputer(), StandardScaler(), *TEXT_IMPUTERS[1:], ENCODERS[0], "drop"), X, y
    )
    tree = st.as_tree(model)
    inside = model[-1].tree_
    ages = tree.threshold[tree.feature == 0]
    scaler = model["prepare"].named_transformers_["numbers"][-1]
    scaled = np.float32((ages - scaler.mean_[0]) / scaler.scale_[0]).astype(float)
    beyond = np.float32((np.nextafter(ages, np.inf) - scaler.mean_[0]) / scaler.scale_[0])
    known = inside.threshold[inside.feature == 0]
    assert len(ages) == len(known) > 0
    for one, other in zip(np.sort(scaled), np.sort(beyond.astype(float)), strict=True):
        between = known[(known >= one) & (known < other)]
        assert len(between) >= 1  # a threshold of the pipeline's tree lies between the two


def test_categories_of_numbers_and_columns_without_names():
    X, y = rows(4)
    values = X[["age", "grade"]].to_numpy(float)
    steps = ColumnTransformer(
        [("one", OneHotEncoder(handle_unknown="ignore"), [1])], remainder=MinMaxScaler()
    )
    model = make_pipeline(steps, DecisionTreeClassifier(max_depth=5, random_state=0))
    model.fit(values, y)
    tree = st.as_tree(model, values)
    assert [column.kind for column in tree.space] == ["integer", "categorical"]
    assert set(tree.space[1].categories) == {"1", "2", "3", "4"}
    shifted = np.concatenate([values, values + [0, 7]])  # grades that were not seen
    np.testing.assert_array_equal(tree.predict_proba(shifted), model.predict_proba(shifted))


def test_selected_columns_and_dropped_ones():
    X, y = rows(5)
    steps = make_pipeline(SimpleImputer(), VarianceThreshold(), SelectKBest(k=1))
    chosen = ColumnTransformer([("two", steps, slice("age", "income"))])
    model = make_pipeline(chosen, DecisionTreeClassifier(max_depth=3)).fit(X, y)
    tree = st.as_tree(model)
    assert len(tree.space) == 1  # only what the tree can ask about is needed of a row
    np.testing.assert_array_equal(
        tree.predict_proba(X[list(tree.space.names)]), model.predict_proba(X)
    )


def test_a_tree_of_steadytree_behind_a_scaler_and_a_search_for_settings():
    X, y = rows(6)
    values = X[["age", "grade"]].astype(float)
    own = make_pipeline(StandardScaler(), st.StableTreeClassifier(3, random_state=0))
    own.fit(values, y)
    near = pd.concat([values, values + 0.5])
    np.testing.assert_array_equal(st.as_tree(own).predict(near), own.predict(near))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)),
        {"decisiontreeclassifier__max_depth": [1, 3]},
    ).fit(values, y)
    assert st.as_tree(search) == st.as_tree(search.best_estimator_)
    np.testing.assert_array_equal(
        st.as_tree(search).predict_proba(near), search.predict_proba(near)
    )


def test_bounds_come_from_rows_where_there_are_any():
    X, y = rows(7)
    model = fitted((IMPUTERS[1], SCALERS[1], TEXT_IMPUTERS[1], ENCODERS[0], "passthrough"), X, y)
    space = st.as_tree(model, X).space
    assert (space[0].low, space[0].high) == (X.age.min(), X.age.max())
    assert space[0].kind == "integer"
    assert space[2].categories == ("blue", "green", "grey", "red")
    assert st.as_tree(model).space[0].kind == "numeric"


def test_certificates_and_diffs_take_a_pipeline():
    X, y = rows(8)
    parts = (IMPUTERS[1], SCALERS[1], TEXT_IMPUTERS[1], ENCODERS[0], "passthrough")
    model = fitted(parts, X, y, depth=3)
    noise = st.Perturbation({"age": 1.0}, budget=2.0)
    found = st.certify(model, X, y, noise)
    assert found.worst_case_accuracy <= (model.predict(X) == y).mean()
    moved = found.counterexamples(3)
    for example in moved:
        row = X.iloc[[example.row]].copy()
        for step in example.steps:
            row[step.feature] = step.end
        assert model.predict(row)[0] == example.other
    assert moved
    other = fitted(parts, X, y, depth=2)
    rows_changed = st.diff(model, other, X, y).rows
    assert len(rows_changed.flipped) == (model.predict(X) != other.predict(X)).sum()


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("imputed", [True, False])
def test_the_note_says_where_missing_and_unseen_categories_part(imputed):
    X, _ = rows(2)
    X = X[["colour"]].fillna("red")
    y = np.where(X.colour == "red", "yes", "no")
    steps = [SimpleImputer(strategy="most_frequent")] if imputed else []
    encoder = OneHotEncoder(handle_unknown="ignore")
    model = make_pipeline(*steps, encoder, DecisionTreeClassifier()).fit(X, y)
    odd = pd.DataFrame({"colour": [np.nan, "unseen"]})
    parted = len(set(model.predict(odd))) > 1  # red for want of a value, or nothing known at all
    assert parted == imputed == ("go with missing values" in st.as_tree(model).note)
    (known,) = raw_splits(model, st.as_tree(model[-1])).categories.values()
    assert sorted(known) == sorted(set(X.colour))


def test_a_tree_with_categories_of_its_own_is_not_behind_steps():
    X, y = rows(3)
    own = st.StableTreeClassifier(3, 0, random_state=0).fit(X[["colour", "grade"]], y)
    assert own.tree_.space.categorical.tolist() == [True, False]
    steps = ColumnTransformer([("all", "passthrough", ["colour", "grade"])]).fit(X)
    with pytest.raises(TypeError, match="other columns than the steps"):
        raw_splits(Pipeline([("steps", steps), ("tree", own)]), own.tree_)


@pytest.mark.parametrize("names", [True, False])
def test_a_tree_without_any_step_before_it(names):
    X, y = rows(9)
    X = X[["age", "grade"]].astype(float)
    X = X if names else X.to_numpy()
    model = Pipeline([("nothing", "passthrough"), ("tree", DecisionTreeClassifier(max_depth=4))])
    model.fit(X, y)
    np.testing.assert_array_equal(st.as_tree(model).predict_proba(X), model.predict_proba(X))


def test_a_split_that_no_value_passes_is_left_out_unless_missing_ones_part_there():
    nothing_left, all_left = -np.inf, np.inf
    assert _number_side(nothing_left, missing=True, may_miss=False) == Side(to=1)
    assert _number_side(nothing_left, missing=False, may_miss=True) == Side(to=1)
    assert _number_side(nothing_left, missing=True, may_miss=True).swapped
    assert _number_side(all_left, missing=False, may_miss=False) == Side(to=0)
    assert _number_side(all_left, missing=True, may_miss=True) == Side(to=0)
    assert _number_side(all_left, missing=False, may_miss=True).threshold == np.inf
