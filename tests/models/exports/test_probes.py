"""The rows that exports are compared on: every threshold is among them, in reach."""

import numpy as np
import pytest
from hypothesis import given, settings

from steadytree._base.exceptions import ExportError
from steadytree.data.column import Column
from steadytree.models.boxes import Boxes, double_thresholds
from steadytree.models.exports.probes import REFUSED, Probes, _probe_values, used_features
from steadytree.models.sklearn import to_sklearn
from tests.models.scorecards import random_card
from tests.models.trees import deep_tree, random_tree, trees


def leaf_by_hand(tree, row):
    """The leaf of one row, walked value by value."""
    node = 0
    while tree.left[node] >= 0:
        column, value = tree.space[tree.feature[node]], row[tree.feature[node]]
        goes_left = bool(tree.missing_left[node])
        if column.is_categorical:
            if value in column.categories:
                goes_left = bool(tree.subset[node, column.categories.index(value)])
        elif not np.isnan(value):
            compared = float(np.float32(value)) if tree.single_precision else value
            goes_left = compared <= tree.threshold[node]
        node = tree.left[node] if goes_left else tree.right[node]
    return int(node)


@settings(max_examples=30, deadline=None)
@given(trees())
def test_rows_reach_every_leaf_that_can_be_reached_and_both_sides_of_each_split(tree):
    probes = Probes.of_tree(tree)
    with np.errstate(over="ignore"):
        by_hand = [leaf_by_hand(tree, row) for row in probes.rows]
    used = used_features(tree)
    refused = [
        any(np.isinf(row[j]) for j in used if isinstance(row[j], float)) for row in probes.rows
    ]
    assert probes.refused(used).tolist() == refused
    expected = [REFUSED if bad else leaf for bad, leaf in zip(refused, by_hand, strict=True)]
    assert probes.ask(tree.apply, used, REFUSED) == expected
    assert probes.n_leaves == len(set(expected) - {REFUSED})


@pytest.mark.parametrize("single", [False, True])
def test_each_threshold_is_tried_with_its_neighbours(single):
    tree = random_tree(np.random.default_rng(3), n_leaves=12, single_precision=single)
    probes = Probes.of_tree(tree)
    boxes = Boxes.of(tree)
    for low, high, is_empty in zip(boxes.low, boxes.high, boxes.is_empty, strict=True):
        for j, at in enumerate([] if is_empty else np.stack([low, high], axis=1)):
            tried = {row[j] for row in probes.rows}
            for bound in at[np.isfinite(at)]:
                assert {bound, np.nextafter(bound, np.inf), np.nextafter(bound, -np.inf)} <= tried
    assert set(tree.threshold[np.isfinite(tree.threshold)]) & {
        value for row in probes.rows for value in row
    }
    for j in used_features(tree):
        tried = [row[j] for row in probes.rows]
        if tree.space[j].is_categorical:
            assert {None, *tree.space[j].categories} < set(tried)  # and unknown ones
        else:
            assert {np.inf, -np.inf, 0.0} < set(tried)
            assert any(np.isnan(value) for value in tried)


def test_every_band_of_a_card_is_tried():
    card = random_card(np.random.default_rng(1), n_conditions=7)
    probes = Probes.of_scorecard(card)
    for variable in card.variables:
        rows = [row for row in probes.rows if row[variable.feature] not in (np.inf, -np.inf)]
        column = np.array([row[variable.feature] for row in rows], object)
        if not variable.column.is_categorical:
            bands = variable.band_of(column.astype(float))
        else:
            known = variable.column.index_of
            bands = variable.band_of(np.array([known.get(text, np.nan) for text in column]))
        assert set(bands.tolist()) == set(range(len(variable.bands)))


def test_a_large_tree_is_sampled_with_a_fixed_seed(monkeypatch):
    monkeypatch.setattr("steadytree.models.exports.probes.MOST_ROWS", 300)
    first, second = (Probes.of_tree(deep_tree(3_000)) for _ in range(2))
    assert 100 < len(first.rows) < 400
    assert repr(first.rows) == repr(second.rows)
    assert first.n_leaves < 3_001


def test_the_comparison_names_the_first_row_that_differs():
    tree = deep_tree(1)
    probes = Probes.of_tree(tree)
    right = probes.ask(tree.apply, [0], REFUSED)
    assert probes.compare("it", "hand", right, right).n_rows == len(probes.rows)
    wrong = [*right[:2], 7, *right[3:]]
    with pytest.raises(ExportError, match=r"it differs .* on 1 of .*by hand, such as 7 instead of"):
        probes.compare("it", "hand", right, wrong)
    shares = [[np.nan, 0.5]] * len(right)
    assert probes.compare("it", "hand", shares, [list(row) for row in shares])
    with pytest.raises(ExportError):
        probes.compare("it", "hand", shares, [[0.0, 0.5]] * len(right))


def test_single_precision_rows_are_float32_values():
    rows = Probes.of_tree(deep_tree(3, lambda level: level + 0.1)).in_single().rows
    numbers = np.array([row[0] for row in rows])
    finite = numbers[np.isfinite(numbers)]
    np.testing.assert_array_equal(finite, finite.astype(np.float32).astype(float))
    assert np.isnan(numbers).any()
    assert not np.isinf(numbers).any()


def test_texts_beside_known_ones_are_tried():
    tried = list(_probe_values(Column("g", "categorical", categories=("ab", "AB", "")), []))
    assert set(tried) == {"ab", "AB", "", None, "ab ", " ab", "AB ", " AB", " ", "not known before"}


def test_rows_in_single_precision_are_kept_where_numbers_are_beyond_it():
    """A tree whose thresholds are all larger than float32 has rows to compare as well."""
    tree = deep_tree(2, lambda level: 1e39 * (level + 1))
    rows = Probes.of_tree(tree).in_single().rows
    largest = float(np.finfo(np.float32).max)
    assert {abs(value) for row in rows for value in row if value == value} <= {0.0, largest}
    with pytest.warns(UserWarning, match="2 of 2 thresholds"):
        exported = to_sklearn(tree)
    X = np.array([[largest], [-largest], [0.0]])
    found = exported.tree_.predict(X.astype(np.float32)).reshape(3, 2)
    np.testing.assert_array_equal(found, tree.predict_proba(X))


@pytest.mark.parametrize(
    "threshold", [3.4028234663852886e38, -3.5e38, 1e39, -1e300, 1.5, 0.0, 1e-46]
)
def test_a_threshold_in_double_precision_parts_numbers_as_float32_does(threshold):
    at = double_thresholds(np.array([threshold]))[0]
    near = [at, threshold, -threshold, 1e300, -1e300, 0.0, 3.5e38]
    near += [np.nextafter(value, way) for value in near for way in (-np.inf, np.inf)]
    with np.errstate(over="ignore"):
        single = np.array(near).astype(np.float32).astype(np.float64)
    np.testing.assert_array_equal(np.array(near) <= at, single <= threshold)
