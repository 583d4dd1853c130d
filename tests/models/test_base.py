"""Pickles of learners carry their layout."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import steadytree as st
from steadytree.data.table import Table
from steadytree.models.base import LAYOUT_KEY, check_weights

X, Y = [[0.0], [1.0], [2.0], [3.0]] * 5, ["no", "no", "yes", "yes"] * 5
LEARNERS = [
    st.StableTreeClassifier(max_depth=1, random_state=0),
    st.RobustTreeClassifier(max_depth=1, random_state=0),
    st.RiskScoreClassifier(random_state=0),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: type(each).__name__)
def test_a_pickle_of_another_layout_is_refused_in_one_line(learner):
    model = clone(learner).fit(X, Y)
    for back in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        assert LAYOUT_KEY not in vars(back)
        assert back.get_params() == model.get_params()
    for state in (vars(model), {**vars(model), LAYOUT_KEY: 1}):
        with pytest.raises(ValueError, match=r"another version .* fit the model again") as caught:
            type(model).__new__(type(model)).__setstate__(dict(state))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "model",
    [
        st.StableTreeClassifier(max_depth=3, random_state=0),
        st.RobustTreeClassifier(2, n_thresholds=4, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_class_weights_multiply_those_of_the_rows(model):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(120, 3)).round(1), rng.integers(0, 3, 120)
    y = np.where(X[:, 0] + rng.normal(size=120) > 1, "ill", "well")
    by_class = clone(model).set_params(class_weight={"ill": 3}).fit(X, y, weight)
    by_row = clone(model).fit(X, y, weight * np.where(y == "ill", 3, 1))
    assert by_class.tree_ == by_row.tree_
    balanced = clone(model).set_params(class_weight="balanced").fit(X, y, weight)
    repeated = clone(model).set_params(class_weight="balanced")
    repeated.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(balanced.tree_.value[0], 0.5)
    np.testing.assert_array_equal(balanced.predict(X), repeated.predict(X))
    with pytest.raises(ValueError, match="class_weight"):
        clone(model).set_params(class_weight="even").fit(X, y)
    with pytest.raises(ValueError, match="finite and not negative"):
        clone(model).set_params(class_weight={"ill": -1}).fit(X, y)


def test_masked_weights_are_refused():
    with pytest.raises(TypeError, match="sample_weight is a masked array"):
        check_weights(np.ma.masked_array([1.0, 2.0], mask=[False, True]), 2)
    assert check_weights(np.ma.masked_array([1.0, 2.0]), 2).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "learner", [st.StableTreeClassifier(), st.SteadyTreeClassifier(), st.ParetoTreeClassifier()]
)
def test_column_names_that_stand_twice_are_refused_in_one_line(learner):
    X = pd.DataFrame(np.arange(40.0).reshape(20, 2), columns=["a", "a"])
    with pytest.raises(ValueError, match=r"'a' appear more than once: rename or drop them\.$"):
        learner.fit(X, np.arange(20) % 2)


def test_texts_among_numbers_are_warned_of_once():
    random = np.random.default_rng(0)
    lab = random.normal(50, 10, 200).round(1).astype(object)
    lab[[3, 9, 20]] = ["<5", "lost", None]
    X = pd.DataFrame({"lab": lab, "age": random.integers(18, 90, 200)})
    y = random.random(200) < 0.4
    text = r"'lab' holds numbers, but also '<5', 'lost' in 2 of 200 rows"
    for learner in (
        st.SteadyTreeClassifier(),
        st.StableTreeClassifier(2),
        st.ParetoTreeClassifier(n_trees=4, random_state=0),
    ):
        with pytest.warns(UserWarning, match=text) as found:
            learner.fit(X, y)
        assert len(found) == 1
        assert found[0].filename == __file__
    st.StableTreeClassifier(2).fit(X.assign(lab=pd.to_numeric(X["lab"], errors="coerce")), y)
    st.StableTreeClassifier(2).fit(X.assign(lab=X["lab"].astype("category")), y)


def test_fewer_leaves_than_classes_are_warned_of():
    X, y = np.arange(120.0)[:, None], np.arange(120) // 12
    with pytest.warns(UserWarning, match="y has 10 classes and max_leaf_nodes=8, so 2 or more"):
        st.SteadyTreeClassifier().fit(X, y)
    st.SteadyTreeClassifier(max_leaf_nodes=10).fit(X, y)
    st.SteadyTreeClassifier().fit(Table.read(X), y)  # whoever read the rows says so


def test_code_without_a_module_is_warned_too():
    given = {"fit": st.SteadyTreeClassifier(max_leaf_nodes=2).fit}
    with pytest.warns(UserWarning, match="never predicted"):
        exec("fit([[k] for k in range(90)], [k // 30 for k in range(90)])", given)


@pytest.mark.parametrize("learner", [st.StableTreeClassifier(), st.ParetoTreeClassifier()])
def test_columns_that_number_the_rows_are_warned_of_by_name(learner):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"case_id": random.permutation(200), "day": np.arange(200)})
    X["age"], y = random.integers(18, 90, 200), random.random(200) < 0.4
    learner = clone(learner).set_params(random_state=0)
    text = "^column 'case_id' numbers the rows and cannot predict new rows: leave it out.$"
    with pytest.warns(UserWarning, match=text) as found:
        learner.fit(X, y)
    assert len(found) == 1
    learner.fit(X.drop(columns="case_id"), y)  # days may follow each other
