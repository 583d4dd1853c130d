"""Figures that only findings need: protected columns, leakage, outliers and drift."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import steadytree as st
from steadytree._base.intervals import wilson_interval
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from steadytree.metrics.drift import psi
from steadytree.models.tree import Tree
from steadytree.reporting.data_set import Origin
from steadytree.reporting.findings.screening import (
    _bins,
    _drift,
    _leaf_rows,
    _outliers,
    _recall,
    _single_auc,
    _stability_index,
    _tiny_leaf_share,
    looks_protected,
    protected_groups,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("race", True), ("applicantSex", True), ("Age at visit", True), ("GENDER_CODE", True)]
    + [("mileage", False), ("stage", False), ("sextant", False), ("trace", False)],
)
def test_names_that_look_protected(name, expected):
    assert looks_protected(name) == expected


def test_groups_are_made_of_protected_columns_with_few_values():
    rows = pd.DataFrame(
        {
            "sex": ["f", "m"] * 20,
            "age": [20, 30, 50, np.nan] * 10,
            "age in days": np.arange(40.0) * 700,
            "religion": [f"no. {k}" for k in range(40)],  # too many to compare
            "gender": ["x"] * 40,  # one group is none
            "town": ["Ulm", "Bonn"] * 20,
        }
    )
    found = protected_groups(Table.read(rows), {})
    assert list(found) == ["sex", "age", "age in days"]
    assert set(found["age in days"]) == {"under 25", "65 and above"}
    assert list(protected_groups(Table.read(rows), {"sex": rows["sex"]})) == ["age", "age in days"]


def test_ages_are_put_in_four_groups():
    ages = np.array([18.0, 24.9, 25.0, 44.0, 45.0, 64.0, 65.0, 99.0, np.nan, 1, 2, 3, 4, 5])
    found = protected_groups(Table.read(pd.DataFrame({"age": ages})), {})["age"]
    assert found[:9].tolist() == ["under 25"] * 2 + ["25 to 44"] * 2 + ["45 to 64"] * 2 + [
        "65 and above",
        "65 and above",
        None,
    ]


def test_auc_of_a_column_is_that_of_its_order_or_better():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=400), rng.integers(0, 2, 400)
    for sign in (1, -1):
        shifted = x + sign * y
        expected = max(roc_auc_score(y, shifted), roc_auc_score(y, -shifted))
        assert _single_auc(shifted, y) == pytest.approx(expected, abs=0.02)
    middle = (np.abs(x) < 0.6).astype(int)  # no order, but bins tell
    assert _single_auc(x, middle) > 0.95
    assert _single_auc(x, y) < 0.65


def test_missing_values_that_tell_the_class_are_seen():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    x = np.where(y == 1, np.nan, rng.normal(size=300))
    assert _single_auc(x, y) == 1.0


def test_bins_hold_about_equally_many_rows_and_missing_ones_apart():
    x = np.append(np.random.default_rng(0).exponential(size=1000), [np.nan] * 7)
    counts = np.bincount(_bins(x, x, 10))
    assert counts[:10].tolist() == [100] * 10
    assert counts[-1] == 7


def test_outliers_make_the_default_perturbation_wide():
    x = np.linspace(0, 1, 1000)
    assert _outliers(x[:, None], [0], ["x"])["value"] == pytest.approx(0.02 / 0.9, rel=0.01)
    x[-1] = 100.0
    assert _outliers(x[:, None], [0], ["x"]) == {
        "column": "x",
        "value": pytest.approx(2.0 / 0.9, rel=0.01),
    }
    assert _outliers(np.zeros((10, 1)), [0], ["x"]) is None


def test_chance_alone_exceeds_the_bound_of_drift_once_in_a_hundred():
    """Of 2,000 samples without drift about 20 exceed it; more than 40 in one run of 100,000."""
    rng = np.random.default_rng(0)
    shares = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    above = 0
    for _ in range(2000):
        old, new = rng.multinomial(800, shares), rng.multinomial(400, shares)
        above += _stability_index(old, new, 1)[1] > 0
    assert 5 <= above <= 40


def test_drift_is_seen():
    index, more = _stability_index(np.array([500, 500]), np.array([700, 300]), 1)
    assert index == pytest.approx(0.2 * np.log(0.7 / 0.5) - 0.2 * np.log(0.3 / 0.5), abs=0.002)
    assert more > 0


def test_drift_of_many_columns_must_be_larger_to_be_no_chance():
    old, new = np.array([500, 500]), np.array([480, 520])
    # chi-squared with one degree of freedom: 6.635 at 1 %, 10.828 at 0.1 %
    for n_compared, bound in ((1, 6.635), (10, 10.828)):
        index, more = _stability_index(old, new, n_compared)
        assert index - more == pytest.approx(bound * (1 / 1000 + 1 / 1000), rel=1e-3)


def test_a_column_that_falls_as_the_outcome_rises_tells_as_much():
    x = np.arange(60.0)
    truth = (x < 7).astype(np.int64)  # of which two bins of 30 rows see little
    assert _single_auc(x, truth) == _single_auc(-x, truth) == 1.0


def test_leaves_of_five_rows_are_not_tiny_and_classes_of_ten_have_a_recall():
    space = FeatureSpace.declare(bounds={"x": (0, 9)})
    leaves = [[0.5, 0.5], [1, 0], [0, 1], [1, 0], [0, 1]]
    none = np.nan
    tree = Tree(
        space,
        ["no", "yes"],
        [0, 0, -1, -1, -1],
        [6.0, 3.0, none, none, none],
        [1, 3, -1, -1, -1],
        [2, 4, -1, -1, -1],
        leaves,
        [16, 9, 7, 4, 5],
    )
    # two rows in the leaf of four training rows, one in that of five, one in that of seven
    assert _tiny_leaf_share(tree, np.array([[1.0], [2.0], [5.0], [8.0]])) == 0.5
    assert _leaf_rows(tree) == 4.0
    assert _recall(tree, np.array([[9, 0], [4, 6]])) == {
        "label": "yes",  # the other has nine rows
        "value": 0.6,
        "interval": wilson_interval(6, 10),
        "n_rows": 10,
    }
    assert _recall(tree, np.array([[9, 0], [4, 5]])) is None


def index_by_hand(old, new):
    """Population stability index of values: sum of (q - p) log(q / p), as the house smooths it."""
    values = sorted(set(old) | set(new))
    return psi(
        np.array([list(old).count(v) for v in values]),
        np.array([list(new).count(v) for v in values]),
    )


def drift_of(model, X, **options):
    fitted = model.tree_ if hasattr(model, "tree_") else model.card_
    values = np.asarray(fitted.space.encode(Table.read(X)), np.float64)
    given = SimpleNamespace(origin=Origin(seen=options.pop("seen", False)), train=None, **options)
    if hasattr(given, "before"):
        given.train = SimpleNamespace(n_rows=len(given.before), table=Table.read(given.before))
    return _drift(fitted, values, given, list(fitted.space.names))


def test_drift_of_a_tree_and_its_columns_is_the_index_of_counts():
    rng = np.random.default_rng(1)
    before = pd.DataFrame({"grade": rng.choice([0.0, 1.0, 2.0], 300, p=[0.6, 0.3, 0.1])})
    after = pd.DataFrame({"grade": rng.choice([0.0, 1.0, 2.0, 3.0], 80, p=[0.2, 0.1, 0.3, 0.4])})
    model = st.StableTreeClassifier(1, 0, random_state=0).fit(before, before["grade"] > 0)
    left = [before["grade"] > 0.5, after["grade"] > 0.5]
    found = drift_of(model, after)
    assert found["what"] == "its leaves"
    assert found["value"] == pytest.approx(index_by_hand(*left))
    found = drift_of(model, after, before=before)  # in the column there is more of it
    # values above all earlier ones share a bin of their own
    assert found["what"] == "grade"
    assert found["value"] == pytest.approx(index_by_hand(before["grade"], after["grade"]))
    assert drift_of(model, after, before=before[:49])["what"] == "its leaves"  # too few rows
    assert drift_of(model, after[:49]) is None
    assert drift_of(model, after, seen=True) is None


def test_drift_of_a_risk_score_is_the_index_of_its_bands():
    rng = np.random.default_rng(2)
    before = pd.DataFrame({"a": rng.integers(0, 4, 500), "b": rng.integers(0, 3, 500)}).astype(
        float
    )
    event = rng.random(500) < 0.1 + 0.2 * before["a"]
    model = st.RiskScoreClassifier(random_state=0).fit(before, np.where(event, "yes", "no"))
    after = before.assign(a=before["a"].where(before.index % 3 > 0, 0.0))
    (variable,) = [v for v in model.card_.variables if v.feature == 0]
    old, new = (variable.band_of(rows["a"].to_numpy()) for rows in (before, after))
    found = drift_of(model, after)
    assert found["what"] == "a"
    assert found["value"] == pytest.approx(index_by_hand(old.tolist(), new.tolist()))
