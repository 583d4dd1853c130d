"""The rows that exports are compared on: every threshold is among them, in reach."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from steadytree._base.exceptions import ExportError
from steadytree.data.column import Column
from steadytree.models.boxes import Boxes, double_thresholds, exact_thresholds
from steadytree.models.exports.probes import REFUSED, Probes, _differ, _probe_values, used_features
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


def slow_numbers(at):
    """Each bound with its neighbours of both widths, and the ends of the numbers."""
    largest = np.finfo(float).max
    tried = {0.0, largest, -largest, np.inf, -np.inf, *at}
    for bound in at:
        tried |= {np.nextafter(bound, way) for way in (-np.inf, np.inf)}
        with np.errstate(over="ignore"):
            single = np.nextafter(np.float32(bound), np.array([-np.inf, np.inf], np.float32))
        tried |= {float(each) for each in single if np.isfinite(each)}
    return {*map(repr, map(float, tried)), "nan"}


def slow_texts(column):
    known = column.categories
    beside = [t for text in known for t in (text.swapcase(), text + " ", " " + text)]
    return {*map(repr, (*known, *beside, "", "not known before", None))}


def slow_probes(tree):
    """The rows of each leaf that can be reached, values as text, walked from the root."""
    exact, every = exact_thresholds(tree), []

    def visit(node, turns):
        if tree.left[node] >= 0:
            visit(tree.left[node], [*turns, (node, True)])
            visit(tree.right[node], [*turns, (node, False)])
            return
        start = [None if c.is_categorical else 0.0 for c in tree.space]
        tried = {}
        for j in dict.fromkeys(tree.feature[n] for n, _ in turns):
            column, own = tree.space[j], [(n, left) for n, left in turns if tree.feature[n] == j]
            stays = all(tree.missing_left[n] == left for n, left in own)
            if column.is_categorical:
                codes = range(len(column.categories))
                kept = [k for k in codes if all(tree.subset[n, k] == left for n, left in own)]
                known = column.categories[kept[0]] if kept else None
                if not kept and not stays:
                    return
                start[j], tried[j] = known, slow_texts(column)
                continue
            ends = [[(exact[n], n) for n, left in own if left is side] for side in (True, False)]
            high = min((at for at, _ in ends[0]), default=np.inf)
            low = max((at for at, _ in ends[1]), default=-np.inf)
            if low < high:
                start[j] = high if high < np.inf else float(np.nextafter(low, np.inf))
            elif stays:
                start[j] = np.nan
            else:
                return
            nodes = [
                next((n for at, n in side if at == end), None)
                for side, end in ((ends[0], high), (ends[1], low))
            ]
            at = {float(t[n]) for n in nodes if n is not None for t in (tree.threshold, exact)}
            tried[j] = slow_numbers({bound for bound in at if np.isfinite(bound)})
        texts = [*map(repr, (x if x is None or isinstance(x, str) else float(x) for x in start))]
        every.append({tuple(texts)})
        for j, values in tried.items():
            every[-1] |= {(*texts[:j], value, *texts[j + 1 :]) for value in values}

    visit(0, [])
    return every


@pytest.mark.parametrize("seed", range(25))
def test_rows_are_those_of_each_leaf_with_one_value_moved(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_leaves=int(rng.integers(1, 9)), single_precision=bool(seed % 2))
    found, expected = Probes.of_tree(tree), slow_probes(tree)
    rows = [
        tuple(repr(x if x is None or isinstance(x, str) else float(x)) for x in row)
        for row in found.rows
    ]
    assert found.n_leaves == len(expected)
    assert set(rows) == set().union(*expected)
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_a_card_are_its_bands_one_by_one_and_mixed(seed):
    card = random_card(np.random.default_rng(seed), n_conditions=5)
    rows = Probes.of_scorecard(card).rows
    start = tuple(None if column.is_categorical else 0.0 for column in card.space)
    assert rows[0] == start
    expected = {}
    for variable in card.variables:
        j = variable.feature
        values = slow_texts(card.space[j])
        if not card.space[j].is_categorical:
            values = slow_numbers(variable.thresholds.tolist())
        expected[j] = values
        alone = {
            repr(row[j]) for row in rows if row[:j] + row[j + 1 :] == start[:j] + start[j + 1 :]
        }
        assert alone == values | {repr(start[j])}
    for row in rows:
        assert all(repr(row[j]) in values | {repr(start[j])} for j, values in expected.items())
        assert all(row[j] == start[j] for j in range(len(row)) if j not in expected)
    n_alone = 1 + sum(len(values - {repr(start[j])}) for j, values in expected.items())
    assert len(rows) <= n_alone + 200
    if math.prod(map(len, expected.values())) > 10_000:  # few are drawn twice
        assert len(rows) > n_alone + 150


def test_answers_differ_by_any_part_and_by_length():
    nan = float("nan")
    alike = [(1, 1), (nan, nan), ([1, nan], [1, nan]), ((), ()), ("a", "a"), (None, None)]
    apart = [(1, 2), (nan, 1), (1, nan), ([1, 2], [1, 3]), ([1, 2], [3, 2]), ([1], [1, 2])]
    assert not any(_differ(*pair) for pair in alike)
    assert all(_differ(*pair) for pair in apart)
