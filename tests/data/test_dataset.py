"""Dataset: read once, subsets share what was read."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.data.dataset import Dataset, Sampled, hash_data, hold_out
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from steadytree.stability.refits import refits


def make_frame(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "count": rng.integers(0, 9, n),
            "city": rng.choice(["Rome", "Oslo", "Lima"], n).astype(object),
            "size": pd.Categorical(rng.choice(["s", "m"], n), categories=["s", "m", "l"]),
        }
    )
    frame.loc[rng.random(n) < 0.1, "city"] = None
    y = ((frame["age"] > 50) ^ (frame["city"] == "Oslo")).astype(int).to_numpy()
    return frame, y


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Shapes of the frames and arrays that are read while a test runs."""
    found: list[tuple[int, int]] = []
    frame, array = Table._read_frame.__func__, Table._read_array.__func__

    def read_frame(cls, X):
        found.append(X.shape)
        return frame(cls, X)

    def read_array(cls, X):
        found.append(np.shape(X))
        return array(cls, X)

    monkeypatch.setattr(Table, "_read_frame", classmethod(read_frame))
    monkeypatch.setattr(Table, "_read_array", classmethod(read_array))
    return found


@pytest.mark.parametrize("form", ["frame", "array"])
@pytest.mark.parametrize("learner", ["stable", "sklearn"])
def test_a_full_report_reads_each_frame_once(form, learner, reads):
    train, test = make_frame(120, 0), make_frame(80, 1)
    if form == "array" or learner == "sklearn":
        train, test = ((X[["age", "count"]], y) for X, y in (train, test))
    if form == "array":
        train, test = ((X.to_numpy(), y) for X, y in (train, test))
    model = (
        st.StableTreeClassifier(max_depth=2, random_state=0)
        if learner == "stable"
        else DecisionTreeClassifier(max_depth=2, random_state=0)
    )
    model.fit(*train)
    previous = st.StableTreeClassifier(max_depth=1, random_state=0).fit(*train)
    reads.clear()
    by = {"city": make_frame(80, 1)[0]["city"]}
    st.report(model, *test, previous=previous, train=train, by=by)
    assert sorted(reads) == sorted([test[0].shape, train[0].shape])


def test_a_report_on_a_scorecard_reads_each_frame_once(reads):
    train, test = make_frame(60, 0), make_frame(40, 1)
    model = st.RiskScoreClassifier("majority", 0.02, max_conditions=2, random_state=0)
    model.fit(*train)
    reads.clear()
    st.report(model, *test, train=train)
    assert sorted(reads) == sorted([test[0].shape, train[0].shape])


@pytest.mark.parametrize("kept", [np.array([3, 1, 1, 7]), np.arange(30) % 3 == 0])
def test_subsets_equal_those_of_the_frame(kept):
    X, y = make_frame(30, 2)
    data = Dataset.of(X, y).take(np.arange(30)[::-1]).take(kept)
    part = X.iloc[::-1].iloc[np.arange(30)[kept]]
    assert data.native.equals(part)
    assert np.array_equal(data.labels, y[::-1][kept])
    space = FeatureSpace.observe(X)
    assert np.array_equal(space.encode(data), space.encode(part), equal_nan=True)
    assert FeatureSpace.observe(data) == FeatureSpace.observe(part)


def test_text_that_no_row_of_a_subset_has_is_no_category_of_it():
    X = pd.DataFrame({"a": ["u", "v", None, "w"]})
    part = Dataset.of(X).take(np.array([1, 3]))
    assert FeatureSpace.observe(part)[0].categories == ("v", "w")
    assert not FeatureSpace.observe(part)[0].missing


def test_selected_columns_keep_their_own_text():
    X, _ = make_frame(30, 3)
    table = Table.read(X)
    table.text(2)
    other = table.take(np.arange(20)).select(["size", "city"])
    space = FeatureSpace.observe(X[["size", "city"]])
    assert np.array_equal(
        space.encode(other), space.encode(X[["size", "city"]].iloc[:20]), equal_nan=True
    )


def test_other_estimators_get_the_form_that_was_passed():
    X, y = make_frame(40, 4)
    data = Dataset.of(X, y).take(np.arange(20))

    class Own(st.StableTreeClassifier):
        def fit(self, X, y, **more):
            return super().fit(X[["age"]], y)  # a Table has no such columns

    assert data.form_for(st.StableTreeClassifier()) is data
    for estimator in (Own(), DecisionTreeClassifier(), make_pipeline(DecisionTreeClassifier())):
        assert data.form_for(estimator).equals(X.iloc[:20])
    assert len(refits(Own(max_depth=2, random_state=0), X[["age"]], y, repeats=2).trees) == 2


def test_refits_of_a_dataset_equal_those_of_the_frame():
    X, y = make_frame(90, 5)
    learner = st.StableTreeClassifier(max_depth=3, random_state=0)
    one, other = (refits(learner, rows, y, repeats=3) for rows in (X, Dataset.of(X, y)))
    by_hand = [
        clone(learner).fit(X.iloc[rows], y[rows]).tree_
        for rows in _rows_of_refits(len(y), repeats=3)
    ]
    assert list(one.trees) == list(other.trees) == by_hand


def _rows_of_refits(n: int, repeats: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [np.sort(rng.choice(n, int(0.9 * n), replace=False)) for _ in range(repeats)]


def test_pipelines_see_frames_in_refits():
    X, y = make_frame(60, 6)
    seen = []

    def numbers(frame):
        seen.append(type(frame))
        return frame[["age"]].to_numpy()

    model = make_pipeline(FunctionTransformer(numbers), DecisionTreeClassifier(max_depth=1))
    data = Dataset.of(X, y).take(np.arange(30))
    model.fit(data.form_for(model), data.labels)
    assert seen == [pd.DataFrame]


def test_a_schema_reads_a_dataset_value_by_value():
    """One text among numbers types the whole column of a Table; a schema must not see that."""
    X = pd.DataFrame(
        {"age": [31, "unknown", 47.0, 1e3], "ward": ["A", 1, True, None]}, dtype=object
    )
    schema = st.Schema({"age": (0, 120)}, {"ward": ["A", "1"]}, classes=[0, 1])
    rows = np.array([2, 1, 0, 3])
    found = schema.encode(Dataset.of(X).take(rows))
    assert np.array_equal(found, schema.encode(X.iloc[rows]), equal_nan=True)
    assert found[0].tolist() == [47.0, 1.0]


def test_a_report_on_a_private_tree_measures_accuracy_against_epsilon():
    train, test = make_frame(200, 7), make_frame(80, 8)
    schema = st.Schema(
        {"age": (0, 120), "count": (0, 9)},
        {"city": ["Rome", "Oslo", "Lima"], "size": ["s", "m", "l"]},
        classes=[0, 1],
    )
    model = st.PrivateTreeClassifier(1.0, schema, method="greedy", testing_seed=0).fit(*train)
    found = st.report(model, *test, train=train)
    assert len(found.data["privacy"]["curve"]) > 1


def test_the_hash_of_a_data_set_depends_on_the_order_of_its_labels():
    assert hash_data([[0.5], [1.5]], ["a", "b"])[:12] == "8170eed43824"
    assert hash_data([[0.5], [1.5]], ["a", "b"]) != hash_data([[0.5], [1.5]], ["b", "a"])


def test_the_hash_of_a_data_set_is_of_values_not_of_bits():
    other = np.array([0x7FF8000000000123], np.uint64).view(np.float64)[0]  # nan too
    plain = hash_data(np.array([[0.0, np.nan], [1.0, 2.0]]), [0, 1])
    assert hash_data(np.array([[-0.0, other], [1.0, 2.0]]), [0, 1]) == plain
    assert hash_data(np.array([[0.0, np.nan], [1.0, -2.0]]), [0, 1]) != plain


def test_a_sample_holds_each_class_in_its_proportion():
    y = np.random.default_rng(0).permutation(np.repeat(["a", "b", "c"], [1700, 290, 10]))
    sample = Sampled.of(np.arange(2000.0)[:, None], y, 500, seed=3)
    rows = sample.features.table.columns[0].astype(int)
    np.testing.assert_array_equal(sample.labels, y[rows])
    found = [int((sample.labels == label).sum()) for label in "abc"]
    np.testing.assert_allclose(found, [425, 72.5, 2.5], atol=1)
    assert len(np.unique(rows)) == 500
    other = Sampled.of(np.arange(2000.0)[:, None], y, 500, seed=4)
    assert (other.features.table.columns[0] != rows).any()


def test_every_class_gives_its_share():
    y = np.repeat(["a", "b", "c"], [100, 50, 10])
    held = hold_out(y, 0.3, seed=1)
    assert [int(held[y == label].sum()) for label in "abc"] == [30, 15, 3]


def test_same_seed_same_rows():
    y = np.arange(100) % 3
    np.testing.assert_array_equal(hold_out(y, seed=5), hold_out(y, seed=5))
    assert (hold_out(y, seed=5) != hold_out(y, seed=6)).any()


@pytest.mark.parametrize("share", [0.3, 0.99])
def test_a_class_keeps_a_row_for_fitting(share):
    y = np.array(["a"] * 20 + ["b"] + ["c"] * 2)
    held = hold_out(y, share)
    assert set(y[~held]) == {"a", "b", "c"}


@pytest.mark.parametrize("share", [0, 1, -0.5])
def test_share_must_leave_both_parts(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        hold_out([0, 1], share)
