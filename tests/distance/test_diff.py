"""The diff of two trees: statuses, rows, text and picture."""

import json
import math
import re
import sys
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

import steadytree
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.distance.diff import Values, _one_of
from steadytree.distance.path import path_distance
from steadytree.models.boxes import rebase, rename
from steadytree.models.tree import Tree
from steadytree.reporting.diff import diff
from tests.models.trees import random_rows, random_tree

SPACE = FeatureSpace.declare({"age": (0, 100), "size": (0, 10)}, {"town": ["Ulm", "Bonn", "Kiel"]})
NO_TOWN = [False] * 3


def leaf(label):
    return ("leaf", label)


def tree_of(plan, classes=("no", "yes"), missing_left=False):
    """A tree from nested tuples (feature, threshold or set of towns, left, right)."""
    rows = []

    def add(part):
        place = len(rows)
        rows.append(None)
        if part[0] == "leaf":
            rows[place] = (-1, np.nan, -1, -1, np.eye(2)[classes.index(part[1])], False, NO_TOWN)
            return place
        j, asked = SPACE.names.index(part[0]), part[1]
        towns = [name in asked for name in SPACE[2].categories] if j == 2 else NO_TOWN
        left, right = add(part[2]), add(part[3])
        threshold = np.nan if j == 2 else asked
        rows[place] = (j, threshold, left, right, np.full(2, 0.5), missing_left, towns)
        return place

    add(plan)
    feature, threshold, left, right, value, missing, subset = zip(*rows, strict=True)
    weight = np.ones(len(rows))
    return Tree(SPACE, classes, feature, threshold, left, right, value, weight, missing, subset)


NO, YES = leaf("no"), leaf("yes")


def statuses(old, new):
    return [node.status for node in diff(old, new).nodes]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (NO, NO, ["same"]),
        (NO, YES, ["relabelled"]),
        (("age", 40, NO, YES), ("age", 40, NO, YES), ["same"] * 3),
        (("age", 40, NO, YES), ("age", 41, NO, NO), ["adjusted", "same", "relabelled"]),
        (("age", 40, NO, YES), ("size", 4, NO, YES), ["replaced", "same", "same"]),
        (NO, ("age", 40, NO, YES), ["grown"] * 3),
        (("age", 40, NO, YES), NO, ["cut"] * 3),
        (
            ("town", {"Ulm"}, NO, YES),
            ("town", {"Ulm", "Kiel"}, NO, YES),
            ["adjusted", "same", "same"],
        ),
        (("town", {"Ulm"}, NO, YES), ("town", {"Ulm"}, NO, YES), ["same"] * 3),
        (
            ("age", 40, ("size", 2, NO, YES), YES),
            ("age", 40, NO, ("size", 3, NO, YES)),
            ["same", "cut", "cut", "cut", "grown", "grown", "grown"],
        ),
    ],
)
def test_each_place_has_its_status(old, new, expected):
    assert statuses(tree_of(old), tree_of(new)) == expected


def test_another_side_for_missing_values_is_a_move():
    for plan in (("age", 40, NO, YES), ("town", {"Ulm"}, NO, YES)):
        found = diff(tree_of(plan), tree_of(plan, missing_left=True))
        assert found.nodes[0].status == "adjusted"
        assert found.alike is False  # and where that is missing, they decide differently
        assert f"for example, where {plan[0]} is missing." in str(found)


def test_categories_are_compared_by_name():
    old = tree_of(("town", {"Ulm"}, NO, YES))
    columns = (*SPACE.columns[:2], replace(SPACE[2], categories=("Kiel", "Ulm", "Bonn")))
    new = replace(old, space=FeatureSpace(columns), subset=old.subset[:, [2, 0, 1]])
    assert statuses(old, new) == ["same"] * 3


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_facts_agree_with_the_trees(seed):
    rng = np.random.default_rng(seed)
    old = random_tree(rng, n_leaves=int(rng.integers(1, 9)), n_categorical=0)
    new = random_tree(rng, n_leaves=int(rng.integers(1, 9)), n_categorical=0)
    X = random_rows(rng, old, n=50)
    y = rng.choice(old.classes, 50)
    found = diff(old, new, X, y)
    # every node of either tree stands at one position; a move may copy or merge old ones
    for side, tree in (("old", old), ("new", new)):
        there = [getattr(node, side) for node in found.nodes if getattr(node, side) >= 0]
        if side == "new" or not found.counts["moved"]:
            assert sorted(there) == list(range(tree.n_nodes))
    was, now = old.predict(X), new.predict(X)
    np.testing.assert_array_equal(found.rows.flipped, np.flatnonzero(was != now))
    pairs = Counter(zip(old.apply(X).tolist(), new.apply(X).tolist(), strict=True))
    assert {(a, b): n for a, b, n, _ in found.rows.flows} == pairs
    assert sum(n for *_, n, flips in found.rows.flows if flips) == len(found.rows.flipped)
    assert found.rows.old_accuracy == pytest.approx((was == y).mean())
    assert found.rows.new_accuracy == pytest.approx((now == y).mean())
    assert found.rows.mended == ((was != y) & (now == y)).sum()
    assert found.rows.broken == ((was == y) & (now != y)).sum()
    assert found.distance == pytest.approx(path_distance(old, new).value)
    json.dumps(found.to_dict(), allow_nan=False)
    json.dumps(found.formatted, allow_nan=False)
    ElementTree.fromstring(found.svg)
    assert str(found).startswith(found.formatted["headline"])


@pytest.fixture(scope="module")
def retrained():
    """A depth-3 CART fitted on 420 rows, and again on all 569."""
    data = load_breast_cancer(as_frame=True)
    X, y = data.data, data.target_names[data.target]
    rows = np.random.default_rng(3).permutation(len(X))
    models = [
        DecisionTreeClassifier(max_depth=3, min_samples_leaf=10, random_state=0).fit(
            X.iloc[rows[:n]], y[rows[:n]]
        )
        for n in (420, 569)
    ]
    return *models, X, y


def test_every_row_count_in_the_picture_is_right(retrained):
    old, new, X, y = retrained
    found = diff(old, new, X, y)
    picture = ElementTree.fromstring(found.svg)
    texts = [part.text for part in picture.iter("{http://www.w3.org/2000/svg}text")]

    leaves = {"old": old.apply(X), "new": new.apply(X)}
    numbers, order = {}, {}
    for side, model in (("old", old), ("new", new)):
        order[side] = [k for k in range(model.tree_.node_count) if model.tree_.feature[k] < 0]
        numbers[side] = {
            node: k for k, node in enumerate(order[side], start=1)
        }  # stored in preorder
        for node in order[side]:
            label = model.classes_[model.tree_.value[node, 0].argmax()]
            n = int((leaves[side] == node).sum())
            line = f"{numbers[side][node]}: {label} ({n} row{'s' * (n != 1)})"
            assert texts.count(line) >= 1, line

    bands = picture.iter("{http://www.w3.org/2000/svg}path")
    drawn = Counter()
    for band in bands:
        if "data-rows" not in band.attrib:
            continue
        title = band.find("{http://www.w3.org/2000/svg}title").text
        n, a, b = map(int, re.match(r"(\d+) rows? from old (\d+) to new (\d+)", title).groups())
        assert n == int(band.attrib["data-rows"])
        assert (band.attrib["class"] == "flip") == ("changes" in title)
        drawn[a, b, band.attrib["class"]] += n
    was, now = old.predict(X), new.predict(X)
    expected = Counter(
        (numbers["old"][a], numbers["new"][b], "flip" if p != q else "stay")
        for a, b, p, q in zip(leaves["old"], leaves["new"], was, now, strict=True)
    )
    assert drawn == expected

    flips = int((was != now).sum())
    assert (
        f"Old and new leaves of 569 rows: {flips} predictions change ({flips / 569:.1%})" in texts
    )
    passed = {
        side: model.decision_path(X).sum(axis=0).A1 for side, model in (("old", old), ("new", new))
    }
    for node in found.nodes:
        n = [
            "—" if k < 0 else f"{int(passed[side][k])}"
            for side, k in (("old", node.old), ("new", node.new))
        ]
        assert (n[0] if n[0] == n[1] else f"{n[0]} → {n[1]}") in texts


def test_the_text_tells_what_the_picture_tells(retrained):
    old, new, X, y = retrained
    text = str(diff(old, new, X, y))
    assert "46 of 569 predictions change (8.1%)" in text
    assert "! worst perimeter ≤ 106 → worst radius ≤ 16.8" in text
    assert "+ │  └─ no: malignant 64 % → worst texture ≤ 25.7" in text
    without = diff(old, new)
    assert without.rows is None
    assert without.distance is None
    assert "decisions" not in str(without)


def test_names_are_escaped_in_the_picture():
    columns = (replace(SPACE[0], name="<b>&"), *SPACE.columns[1:])
    old = replace(tree_of(("age", 40, NO, YES)), space=FeatureSpace(columns))
    svg = diff(old, old).svg
    assert "<b>" not in svg
    ElementTree.fromstring(svg)


def test_a_large_tree_is_drawn_in_its_upper_levels():
    rng = np.random.default_rng(0)
    X, y = rng.random((3000, 4)), rng.integers(0, 2, 3000)
    a, b = (
        DecisionTreeClassifier(max_depth=9, random_state=k).fit(X[k::2], y[k::2]) for k in (0, 1)
    )
    ElementTree.fromstring(diff(a, b, X).svg)


def test_a_successor_may_know_other_columns():
    old, both = tree_of(("age", 40, NO, YES)), tree_of(("age", 40, NO, ("size", 2, NO, YES)))
    fewer = FeatureSpace((SPACE[0],))
    rows = pd.DataFrame({"age": [30.0, 50, 50], "size": [1.0, 1, 5], "town": "Ulm"})
    wanted = diff(old, both, rows)
    assert wanted.rows.flipped.tolist() == [1]
    new_columns = diff(rebase(old, fewer), both, rows)  # size is asked, town is not
    assert new_columns.to_dict() == wanted.to_dict()
    gone_columns = diff(both, rebase(old, fewer), rows)
    assert gone_columns.to_dict() == diff(both, old, rows).to_dict()
    # a column that neither asks about need not be in the rows
    assert diff(both, rebase(old, fewer), rows[["age", "size"]]).rows.flipped.tolist() == [1]


def test_bad_input_is_explained():
    old = tree_of(("age", 40, NO, YES))
    with pytest.raises(ValueError, match="only the first has 'age', only the other has 'years'"):
        diff(old, rename(old, {"age": "years"}))
    with pytest.raises(ValueError, match="y was given without X"):
        diff(old, old, y=["no"])
    with pytest.raises(ValueError, match="has no rows"):
        diff(old, old, np.empty((0, 3)))
    with pytest.raises(
        FileNotFoundError, match=r"no model was read; check the path: 'q2\.tree\.json"
    ):
        diff(old, "q2.tree.json")
    with pytest.raises(TypeError, match="a tree is needed"):
        diff(old, 3)


def texts_of(svg):
    """All texts of a picture with the place they are drawn at, in pixels from its corner."""
    root = ElementTree.fromstring(svg)
    group = root.find("{http://www.w3.org/2000/svg}g")
    right, down = map(float, re.findall(r"[\d.]+", group.get("transform")))
    return root, [
        (text.text, float(text.get("x")) + right, float(text.get("y")) + down)
        for text in root.iter("{http://www.w3.org/2000/svg}text")
    ]


def test_names_of_forty_leaves_are_apart_and_inside_the_picture():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(4000, 3))  # most rows are in a few leaves, and the last are tiny
    y = rng.integers(0, 2, 4000)
    models = [
        DecisionTreeClassifier(max_leaf_nodes=40, random_state=0).fit(X[k:], y[k:]) for k in (0, 9)
    ]
    root, texts = texts_of(diff(*models, X, y).svg)
    names = [one for one in texts if re.fullmatch(r"\d+: \d \([\d,]+ rows?\)", one[0])]
    assert len(names) == 80
    for x in {x for _, x, _ in names}:
        heights = [height for _, own, height in names if own == x]
        assert np.diff(heights).min() > 14
        assert 0 < heights[0] < heights[-1] < float(root.get("height")) - 8


def test_categories_keep_some_letters_and_are_named_in_full_in_the_tooltip():
    names = [f"University hospital of the city number {k}, department {k}" for k in range(9)]
    long = "place where the treatment of the patient began, as the letter says"
    space = FeatureSpace.declare({}, {long: names})
    arrays = ([0, -1, -1], [np.nan] * 3, [1, -1, -1], [2, -1, -1])
    subset = np.zeros((3, 9), bool)
    subset[0, :3] = True
    old = Tree(space, ["no", "yes"], *arrays, np.eye(2)[[0, 0, 1]], np.ones(3), subset=subset)
    subset[0, 3] = True
    new = replace(old, subset=subset.copy())
    _, texts = texts_of(diff(old, new).svg)
    tests = [text for text, *_ in texts if text.startswith("in {")]
    assert len(tests) == 2
    for text in tests:
        assert re.match(r"in \{Univ.*….+, \d more\} \(missing: no\)", text), text
    svg = diff(old, new).svg
    assert all(name in svg for name in names[:4])
    assert long in svg


def test_categories_and_classes_without_letters_have_a_name():
    towns = ["", "Ulm", "Kiel"]
    space = FeatureSpace.declare({}, {"town": towns})
    arrays = ([0, -1, -1], [np.nan] * 3, [1, -1, -1], [2, -1, -1])
    subset = np.zeros((3, 3), bool)
    subset[0, :2] = True
    old = Tree(space, ["", "yes"], *arrays, np.eye(2)[[0, 0, 1]], np.ones(3), subset=subset)
    first = subset.copy()
    first[0, 1] = False
    found = diff(old, replace(old, subset=first, value=np.eye(2)[[0, 1, 1]]))
    for shown in (str(found), found.svg):
        assert "in {(empty), Ulm}" in shown
        assert "“(empty)”" in shown  # a class that is gone
    assert "yes: (empty) 100 % → yes 100 %" in str(found)
    assert "where town = (empty)." in str(found)


def test_moves_and_examples_are_in_text_and_picture():
    old = tree_of(("age", 40, ("size", 2, NO, YES), YES))
    new = tree_of(("age", 40, NO, ("size", 2, NO, YES)))
    found = diff(old, new)
    assert "< ├─ yes: no 100 % (size ≤ 2 moved to “age ≤ 40”: no)" in str(found)
    assert "> └─ no: size ≤ 2 (missing: no) (moved from “age ≤ 40”: yes)" in str(found)
    assert "Predictions differ, for example, where age = 20, size = 6." in str(found)
    texts = [text for text, *_ in texts_of(found.svg)[1]]
    assert "moved from “age ≤ 40”: yes" in texts
    assert "Predictions differ, for example, where age = 20, size = 6." in texts
    swapped = diff(old, tree_of(("size", 2, ("age", 40, NO, YES), YES)))
    assert repr(swapped) == (
        "TreeDiff(Splits: 1 same, 1 moved; the same decisions on every possible input.)"
    )
    page = steadytree.report(new, *rows_of(new), previous=old, quick=True).html
    assert "Predictions differ, for example, where age = 20, size = 6." in page
    assert "box moved" in page


def test_an_example_of_whole_numbers_is_whole():
    column = Column("age", "integer", 50, 100)
    for low, high, value in ((-math.inf, 7.25, 7), (60.5, 70.5, 61), (120.5, 130.5, 121)):
        found = _one_of(column, Values(low, high, 0, False))
        assert found == value
        assert low < found <= high
    numeric = Column("age", "numeric", 50, 100)  # few digits, one beyond an end that is open
    assert _one_of(numeric, Values(-math.inf, 40.5, 0, False)) == 40
    assert _one_of(numeric, Values(-math.inf, 7.25, 0, False)) == 6
    assert _one_of(numeric, Values(120.5, sys.float_info.max, 0, False)) == 122


def rows_of(tree):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, 40),
            "size": rng.uniform(0, 10, 40),
            "town": rng.choice(["Ulm", "Bonn", "Kiel"], 40),
        }
    )
    return X, tree.predict(X)


def test_what_was_not_decided_is_said(monkeypatch):
    monkeypatch.setattr("steadytree.distance.diff.compare_decisions.__defaults__", (0,))
    found = diff(tree_of(("age", 40, NO, YES)), tree_of(("age", 41, NO, YES)))
    assert found.alike is None
    assert "Not decided within the limit of work" in str(found)
    assert found.to_dict()["alike"] is None


def test_bounds_are_those_of_the_one_tree_that_keeps_them():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 3 == 0
    kept = steadytree.StableTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    other = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X[3:17], y[3:17])
    for pair in ((kept, other), (other, kept)):
        found = diff(*pair)
        assert found.distance == path_distance(*pair, space=kept.tree_.space).value
