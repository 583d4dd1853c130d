"""Categories with an order: divided as numbers are, listed in order, kept in files."""

import numpy as np
import pandas as pd
import pytest

import steadytree as st
from steadytree.reporting.wording import describe_split

LEVELS = [f"grade {letter}" for letter in "ABCDEFG"]


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    code, age = random.integers(0, 7, 900), random.integers(18, 90, 900)
    y = random.random(900) < np.array([0.1, 0.2, 0.15, 0.5, 0.55, 0.8, 0.9])[code]
    grade = pd.Categorical.from_codes(np.where(age == 40, -1, code), LEVELS, ordered=True)
    return pd.DataFrame({"grade": grade, "age": age}), np.where(age == 40, np.nan, code), y


def test_a_tree_of_ordered_categories_is_that_of_their_numbers(rows):
    X, code, y = rows
    learner = st.StableTreeClassifier(4, 0, random_state=0)
    own = learner.fit(X, y).predict_proba(X)
    as_numbers = X.assign(grade=code)
    np.testing.assert_array_equal(own, learner.fit(as_numbers, y).predict_proba(as_numbers))


@pytest.mark.parametrize(
    "learner", [st.StableTreeClassifier(4, 0.1, random_state=0), st.SteadyTreeClassifier()]
)
def test_trees_divide_lower_from_higher_categories(rows, learner, tmp_path):
    X, _, y = rows
    model = learner.fit(X, y)
    tree = model.tree_
    splits = np.flatnonzero((tree.left >= 0) & (tree.feature == 0))
    assert len(splits)
    for node in splits:
        assert (np.diff(tree.subset[node][:7].astype(int)) != 0).sum() <= 1
        text = describe_split(tree, node)
        assert text.test.startswith(("≤ grade", "> grade", "= grade A", "= grade G", "is "))
    model.save(tmp_path / "a.tree.json")
    again = st.load(tmp_path / "a.tree.json")
    assert again.space[0].ordered
    assert describe_split(again, splits[0]) == describe_split(tree, splits[0])


def test_risk_scores_keep_the_order(rows, tmp_path):
    X, _, y = rows
    X = X.assign(grade=X["grade"].cat.rename_categories(["xs", "s", "m", "l", "xl", "xxl", "huge"]))
    model = st.RiskScoreClassifier().fit(X, y)
    variable = next(one for one in model.card_.variables if one.name == "grade")
    listed = [k for band in variable.bands for k in band.categories]
    assert listed == list(range(7))
    falling = st.RiskScoreClassifier().fit(X, ~y).card_
    variable = next(one for one in falling.variables if one.name == "grade")
    assert [k for band in variable.bands for k in band.categories] == list(range(7))
    model.save(tmp_path / "a.card.json")
    assert str(st.plot(st.load(tmp_path / "a.card.json"))) == str(st.plot(model))


def test_many_ordered_categories_share_bins():
    random = np.random.default_rng(1)
    code = random.integers(0, 90, 4_000)
    names = [f"c{k}" for k in range(100)]
    X = pd.DataFrame({"a": pd.Categorical.from_codes(code, names, ordered=True)})
    model = st.SteadyTreeClassifier().fit(X, random.random(4_000) < code / 90)
    inner = np.flatnonzero(model.tree_.left >= 0)
    assert len(inner) > 1
    for node in inner:
        assert (np.diff(model.tree_.subset[node].astype(int)) != 0).sum() == 1


@pytest.mark.parametrize(
    "learner",
    [
        st.RiskScoreClassifier(monotone={"grade": "up"}),
        st.SteadyTreeClassifier(monotonic_cst={"grade": 1}),
    ],
)
def test_risks_rise_with_ordered_categories_where_asked(rows, learner):
    X, _, y = rows
    random = np.random.default_rng(2)
    code = random.integers(0, 7, 900)
    y = random.random(900) < np.array([0.1, 0.4, 0.1, 0.7, 0.4, 0.9, 0.8])[code]  # up and down
    X = X.assign(grade=pd.Categorical.from_codes(code, LEVELS, ordered=True), age=50)
    model = learner.fit(X, y)
    each = pd.DataFrame({"grade": pd.Categorical(LEVELS, LEVELS, ordered=True), "age": 50})
    risks = model.predict_proba(each)[:, 1]
    assert (np.diff(risks) >= 0).all()
    assert risks[-1] > risks[0] + 0.3
    loose = X.assign(grade=X["grade"].astype(str))
    with pytest.raises(ValueError, match="make it an ordered Categorical"):
        learner.fit(loose, y)
