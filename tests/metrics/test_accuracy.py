import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from steadytree.metrics.accuracy import (
    Accuracy,
    Answers,
    accuracy,
    group_names,
    label_indices,
    roc_area,
    summarise_answers,
    wilson_interval,
)


@pytest.fixture(params=[2, 4])
def fitted(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    labels = np.array(["a", "b", "c", "d"])[: request.param]
    y = labels[np.digitize(X[:, 0] + rng.normal(size=300), [0.0, 0.6, 1.1][: request.param - 1])]
    return DecisionTreeClassifier(max_depth=3).fit(X[:200], y[:200]), X[200:], y[200:]


def test_numbers_equal_those_of_scikit_learn(fitted):
    model, X, y = fitted
    found, answers, shares = accuracy(model, X, y), model.predict(X), model.predict_proba(X)
    assert found.accuracy == pytest.approx(model.score(X, y))
    assert found.balanced == pytest.approx(balanced_accuracy_score(y, answers))
    np.testing.assert_array_equal(found.confusion, confusion_matrix(y, answers))
    scores = shares[:, 1] if len(model.classes_) == 2 else shares
    assert found.auc == pytest.approx(roc_auc_score(y, scores, multi_class="ovr"))


@pytest.mark.parametrize(("right", "rows"), [(0, 5), (5, 5), (171, 200), (1, 1), (33, 1000)])
def test_interval_is_that_of_wilson(right, rows):
    expected = binomtest(right, rows).proportion_ci(method="wilson")
    assert wilson_interval(right, rows) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_baseline_is_the_most_frequent_class(fitted):
    model, X, y = fitted
    labels, counts = np.unique(y, return_counts=True)
    found = accuracy(model, X, y)
    assert found.baseline == counts.max() / len(y)
    assert found.baseline_label == labels[counts.argmax()]
    assert [reading.name for reading in found.measurements()][:2] == [
        "accuracy",
        "majority baseline",
    ]


@pytest.mark.parametrize("seed", range(20))
def test_shares_of_a_few_rows_by_hand(seed):
    """Classes without a row, and with one."""
    rng = np.random.default_rng(seed)
    truth, answer = rng.integers(0, 4, (2, rng.integers(1, 6)))
    found = Accuracy(["a", "b", "c", "d"], confusion_matrix(truth, answer, labels=range(4)), None)
    assert (found.n_rows, found.n_right) == (len(truth), sum(truth == answer))
    assert found.accuracy == np.mean(truth == answer)
    recalls = [np.mean(answer[truth == c] == c) for c in range(4) if c in truth]
    assert found.balanced == pytest.approx(np.mean(recalls))
    counts = [sum(truth == c) for c in range(4)]
    assert found.baseline == max(counts) / len(truth)
    assert found.baseline_label == "abcd"[counts.index(max(counts))]


def test_auc_is_left_out_where_a_class_has_no_rows(fitted):
    model, X, y = fitted
    there = y != "b"
    found = accuracy(model, X[there], y[there])
    assert found.auc is None
    assert "AUC" not in [reading.name for reading in found.measurements()]


@pytest.mark.parametrize(
    ("classes", "y"),
    [
        ([0, 1], [1, 0, 1]),
        ([0, 1], ["1", "0", "1"]),
        ([0, 1], [1.0, 0.0, 1.0]),
        (["0", "1"], [1, 0, 1]),
        (["0", "1"], [1.0, 0.0, 1.0]),
        ([False, True], [True, False, True]),
        ([0, 1], pd.Series([1, 0, 1], dtype="category")),
        ([0, 1], pd.DataFrame({"y": [1, 0, 1]})),
        ([0, 1], [[1], [0], [1]]),
    ],
)
def test_labels_are_found_whatever_their_type(classes, y):
    assert label_indices(np.array(classes), y).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "x", "b"], "label.* 'x', but the model knows 'a', 'b'"),
        (["a", None, "b"], "lacks the label of 1 row.* row 1"),
        ([["a", "b"]], "one label a row"),
    ],
)
def test_wrong_labels_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        label_indices(np.array(["a", "b"]), y)


def test_missing_numbers_as_labels_are_named():
    with pytest.raises(ValueError, match="lacks the label of 2 row"):
        label_indices(np.array([0, 1]), [0.0, np.nan, np.nan])


def test_rows_without_labels_are_refused(fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match="100 rows, but y has 99"):
        accuracy(model, X, y[:-1])
    with pytest.raises(ValueError, match="no rows"):
        accuracy(model, X[:0], y[:0])


def test_names_of_groups():
    given = ["north", 3.0, 2.5, None, np.nan, True]
    expected = ["north", "3", "2.5", "(missing)", "(missing)", "True"]
    assert group_names(given).tolist() == expected


def test_an_interval_has_95_per_cent_unless_another_level_is_given():
    counted = Accuracy(("no", "yes"), np.array([[30, 4], [6, 20]]), None)
    assert counted.interval == pytest.approx(wilson_interval(50, 60, 0.95), abs=1e-12)
    assert counted.level == 0.95


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.booleans(), st.integers(1, 3)), min_size=2, max_size=30
    )
)
def test_area_under_the_curve(rows):
    scores, event = np.array([r[0] / 3 for r in rows]), np.array([r[1] for r in rows])
    weights = np.array([r[2] for r in rows])
    if event.all() or not event.any():
        return
    assert roc_area(scores, event) == pytest.approx(roc_auc_score(event, scores))
    weighted = roc_auc_score(event, scores, sample_weight=weights)
    assert roc_area(scores, event, weights) == pytest.approx(weighted)


def test_the_other_class_as_the_event_turns_everything_round():
    rng = np.random.default_rng(0)
    truth, answer, risk = rng.integers(0, 2, 40), rng.integers(0, 2, 40), rng.random(40)
    shares, counts = np.column_stack([1 - risk, risk]), rng.integers(1, 5, 40)
    found = Answers(np.array(["no", "yes"]), truth, answer, shares, counts)
    turned = found.with_event("no")
    assert turned.classes.tolist() == ["yes", "no"]
    for own, other in ((found.truth, turned.truth), (found.answer, turned.answer)):
        assert turned.classes[other].tolist() == found.classes[own].tolist()
    np.testing.assert_array_equal(turned.shares[:, 1], 1 - risk)
    np.testing.assert_array_equal(turned.shares[:, 0], risk)
    np.testing.assert_array_equal(turned.weights, counts)
    assert found.with_event("yes") is found
    assert found.with_event(None) is found
    three = Answers(np.array(["a", "b", "c"]), truth, answer, np.eye(3)[answer])
    assert three.with_event("a") is three
    area = summarise_answers(turned).auc
    assert area == pytest.approx(summarise_answers(found).auc)
