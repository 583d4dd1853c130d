"""The explanation of one row: path, probability, and changes that no smaller one replaces."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree._base.intervals import wilson_interval
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.variable import category_conditions, number_conditions
from steadytree.reporting.explain import range_costs
from steadytree.reporting.svg.sheet import interval_of
from steadytree.robustness.certify import used_columns
from tests.models.scorecards import random_card, random_rows_of_card
from tests.models.trees import random_rows, random_tree, typed_rows
from tests.robustness import test_certify, test_certify_scorecards
from tests.robustness.reference_attack import random_perturbation


@pytest.fixture(scope="module")
def tumours():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = st.StableTreeClassifier(4, 0, random_state=0).fit(X, y)
    return model, X, y


def random_model(rng):
    """A tree or a card, rows of the types it knows, and the brute force that goes with it."""
    if rng.integers(2):
        model = random_tree(rng, int(rng.integers(2, 9)), 2, 1, int(rng.integers(2, 4)))
        rows = test_certify.whole_where_declared(model, random_rows(rng, model, 5))
        return model, rows, test_certify.least_move
    model = random_card(rng, int(rng.integers(1, 6)), 2, 1, int(rng.integers(2, 4)))
    rows = typed_rows(model.space, random_rows_of_card(rng, model, 5))
    return model, rows, test_certify_scorecards.least_move


def label_of(model, x):
    return list(model.classes).index(model.predict(x)[0])


def check_changes(rng, model, rows, least_move):
    """The first change is the least of all, the others are the least of single columns."""
    noise = random_perturbation(rng, model.space)
    allowed = test_certify.allowed_of(model.space, rows, noise.moves(model.space))
    for k, moves in enumerate(allowed):
        row = rows.iloc[[k]]
        x = np.asarray(model.space.encode(row), float)[0]
        found, label = st.explain(model, row, perturbation=noise), label_of(model, row)
        least = least_move(model, moves, x, label)
        if np.isinf(least):
            assert found.changes == ()
            continue
        assert found.changes[0].size == pytest.approx(least, rel=1e-12, abs=1e-12)
        assert all(change.decision != found.decision for change in found.changes)
        if k:  # single columns are tried on every fifth row
            continue
        sizes = alone(model, moves, x, label, least_move)
        shown = {change.steps[0].feature: change.size for change in found.changes[1:]}
        for name, size in shown.items():
            assert size == pytest.approx(sizes[name], rel=1e-12, abs=1e-12)
        only = [step.feature for step in found.changes[0].steps]
        missing = set(sizes) - set(shown)
        assert not missing or missing == set(only)


def alone(model, moves, x, label, least_move):
    """Size of the least change of each column by itself, where one turns the decision."""
    sizes = {}
    for j in used_columns(model):
        prices = {name: np.full(len(x), np.inf) for name in ("up", "down", "missing")}
        for name, price in prices.items():
            price[j] = getattr(moves, name)[j]
        size = least_move(model, type(moves)(**{**vars(moves), **prices}), x, label)
        if np.isfinite(size):
            sizes[model.space.names[j]] = size
    return sizes


@pytest.mark.parametrize("block", range(2))
def test_changes_equal_brute_force(block):
    """200 rows of trees and cards, both norms, frozen, one-sided and bounded columns."""
    rng = np.random.default_rng(block)
    for _ in range(20):
        check_changes(rng, *random_model(rng))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10, 19))
def test_changes_equal_brute_force_in_many_cases(block):
    """1,800 rows more: 2,000 in all."""
    rng = np.random.default_rng(block)
    for _ in range(40):
        check_changes(rng, *random_model(rng))


def test_path_and_probability_are_those_of_the_tree(tumours):
    model, X, _ = tumours
    tree = model.tree_
    for k in range(0, 200, 20):
        found = st.explain(model, X.iloc[k])
        leaf = int(tree.apply(X.iloc[[k]])[0])
        assert found.decision == model.predict(X.iloc[[k]])[0]
        assert found.probability == model.predict_proba(X.iloc[[k]]).max()
        assert found.n_rows == tree.weight[leaf]
        n_own = found.probability * found.n_rows
        assert found.interval == wilson_interval(n_own, found.n_rows)
        path = tree.path(leaf)
        assert [one.holds for one in found.path] == [
            tree.left[a] == b for a, b in itertools.pairwise(path)
        ]


def test_inside_is_the_least_change_into_another_leaf(tumours):
    model, X, _ = tumours
    noise = range_costs(model.tree_.space)
    for k in range(0, 100, 10):
        row = X.iloc[[k]]
        size, leaf = st.explain(model, row).inside, model.tree_.apply(row)[0]
        assert size > 0
        moves = noise.moves(model.tree_.space)
        x, found = row.to_numpy(float)[0], []
        for j in used_columns(model.tree_):
            for at in model.tree_.threshold[model.tree_.feature == j]:
                for z in (at, np.nextafter(at, np.inf)):
                    moved = x.copy()
                    moved[j] = z
                    if model.tree_.apply_encoded(moved[None])[0] != leaf:
                        found.append(test_certify.cost_of(moves, j, x[j], z))
        # of the sum of costs, leaving a leaf takes one column
        assert size == pytest.approx(min(found), rel=1e-9)


def test_points_to_another_decision_of_a_card(tumours):
    _, X, y = tumours
    card = st.RiskScoreClassifier("logistic", noise=0.02, random_state=0).fit(X, y).card_
    decided = set()
    for k in range(0, 100, 10):
        found = st.explain(card, X.iloc[k])
        total = int(card.score(X.iloc[[k]])[0])
        needed = 1 if card.decision is None else card.decision  # the least total that says yes
        assert found.inside == (total - needed + 1 if total >= needed else needed - total)
        assert sum(one.points for one in found.path if one.holds) + card.offset[0] == total
        rows = {row.total: row for row in card.risk_table.rows}
        assert found.n_rows == rows[total].n_rows
        assert found.probability == card.predict_proba(X.iloc[[k]]).max()
        low, high = interval_of(card, rows[total])  # of the second class
        is_second = found.decision == card.classes[1]
        assert found.interval == ((low, high) if is_second else (1 - high, 1 - low))
        decided.add(is_second)
    assert decided == {True, False}


def test_a_risk_score_is_explained_by_the_band_of_each_variable():
    space = FeatureSpace.declare(bounds={"age": (0, 100)}, categories={"ward": ["a", "b", "c"]})
    pairs = number_conditions(0, [40.0, 60.0], [0, 2, 5], 1)
    pairs += category_conditions(1, [3, 0, 0], 0)
    card = st.Scorecard(space, ["no", "yes"], *map(list, zip(*pairs, strict=True)), 0, 1.0, -4.0)

    def lines(age, ward):
        return str(st.explain(card, {"age": age, "ward": ward})).splitlines()[1:3]

    assert lines(60, "a") == ["  age: ≥ 60, +5 (it is 60)", "  ward: a, +3 (it is a)"]
    assert lines(40, "c") == ["  age: 40 to < 60, +2 (it is 40)", "  ward: b, c, 0 (it is c)"]
    assert lines(None, "b")[0] == "  age: missing, +1 (it is missing)"
    found = st.explain(card, {"age": 55, "ward": "a"})
    assert (found.path[0].margin, found.path[0].margin_share) == (5.0, 0.05)
    assert found.path[1].margin is None
    assert "<b>+2</b>" in found._repr_html_()


def test_above_two_classes_the_points_are_those_of_the_predicted_class():
    rng, decided = np.random.default_rng(0), set()
    for _ in range(10):
        card = random_card(rng, 4, 2, 1, 3)
        for row in typed_rows(card.space, random_rows_of_card(rng, card, 3)).iloc:
            found = st.explain(card, row)
            own = card.classes.tolist().index(found.decision)
            [total] = card.score(row.to_frame().T.infer_objects())[:, own]
            assert sum(one.points for one in found.path) + card.offset[own] == total
            decided.add(own)
    assert decided == {0, 1, 2}


def test_the_nearest_threshold_is_the_one_of_the_least_share_of_its_range():
    space = FeatureSpace.declare(bounds={"age": (0, 100), "dose": (0, 10)})
    none = np.nan
    tree = st.Tree(
        space,
        ["no", "yes"],
        [0, 1, -1, -1, -1],
        [40.0, 5.5, none, none, none],
        [1, 3, -1, -1, -1],
        [2, 4, -1, -1, -1],
        [[0.5, 0.5], [0.5, 0.5], [0, 1], [1, 0], [0, 1]],
        [8, 4, 4, 2, 2],
    )
    # 2 of 100 years are less than 0.5 of 10
    text = str(st.explain(tree, {"age": 38, "dose": 5}))
    assert "the nearest threshold on its path is 2 away (age ≤ 40)" in text
    text = str(st.explain(tree, {"age": 30, "dose": 5}))
    assert "the nearest threshold on its path is 0.5 away (dose ≤ 5.5)" in text
    assert "dose from 5 to above 5.5" in text  # 5.5 itself does not turn it


def test_frozen_and_one_sided_columns_are_respected(tumours):
    model, X, _ = tumours
    free = st.explain(model, X.iloc[3])
    moved = {step.feature for step in free.changes[0].steps}
    costs = range_costs(model.tree_.space).step_cost
    frozen = st.Perturbation(step_cost=costs, frozen=list(moved))
    for change in st.explain(model, X.iloc[3], perturbation=frozen).changes:
        assert not moved & {step.feature for step in change.steps}
        assert change.size >= free.changes[0].size
    up = st.Perturbation(step_cost=costs, direction=dict.fromkeys(X.columns, "up"))
    for k in range(20):
        for change in st.explain(model, X.iloc[k], perturbation=up).changes:
            assert all(step.end > step.start for step in change.steps)


def test_previous_model_is_asked_too(tumours):
    model, X, y = tumours
    old = DecisionTreeClassifier(max_depth=1).fit(X, 1 - y)
    found = st.explain(model, X.iloc[0], previous=old)
    assert found.previous == old.predict(X.iloc[[0]])[0]
    assert found.previous_probability == old.predict_proba(X.iloc[[0]]).max()
    assert "another decision" in str(found)
    assert "previous" not in str(st.explain(model, X.iloc[0]))


def test_forms_of_a_row_mean_the_same(tumours):
    model, X, _ = tumours
    used = [model.tree_.space.names[j] for j in used_columns(model.tree_)]
    row = X.iloc[7]
    forms = [row, X.iloc[[7]], dict(row), {name: row[name] for name in used}, row.tolist()]
    texts = {str(st.explain(model, form)) for form in [*forms, row.to_numpy()[None]]}
    assert len(texts) == 1


def test_categories_and_missing_values():
    X = pd.DataFrame(
        {"colour": ["red", "blue", None, "red"] * 10, "size": [1.0, 2.0, np.nan, 3.0] * 10}
    )
    y = ["a", "b", "b", "a"] * 10
    model = st.StableTreeClassifier(2, 0, random_state=0).fit(X, y)
    found = st.explain(model, {"colour": None, "size": None})
    assert found.path[0].value == "missing"
    assert st.explain(model, {"colour": "red", "size": 1}).decision == "a"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"mean radius": 1.0}, r"row lacks the column\(s\) 'mean smoothness'"),
        ([[1.0] * 30] * 2, "row must hold one row, got 2"),
        ([1.0, 2.0], "X has 2 features, but 30 are expected"),
    ],
)
def test_wrong_rows_are_refused(tumours, row, message):
    with pytest.raises(ValueError, match=message):
        st.explain(tumours[0], row)


def test_text_in_place_of_a_number_is_refused(tumours):
    model, X, _ = tumours
    with pytest.raises(ValueError, match=r"'worst radius' holds numbers for the model, got 'x'"):
        st.explain(model, {**X.iloc[0], "worst radius": "x"})
    with pytest.raises(TypeError, match="perturbation must be a Perturbation, got dict"):
        st.explain(model, X.iloc[0], perturbation={})


def test_html_in_names_is_escaped():
    X = pd.DataFrame({"<b>x": [0.0, 1.0, 2.0, 3.0] * 5})
    y = ["<i>no", "<i>no", "yes&", "yes&"] * 5
    model = st.StableTreeClassifier(1, 0, random_state=0).fit(X, y)
    page = st.explain(model, {"<b>x": 0.0})._repr_html_()
    assert "&lt;b&gt;x" in page
    assert "&lt;i&gt;no" in page
    assert "<b>x" not in page
    assert "<i>no" not in page


def test_a_value_of_yes_or_no_is_told_as_its_band_is():
    space = FeatureSpace.declare(bounds={"smoker": (0, 1)}, kinds={"smoker": "binary"})
    pairs = number_conditions(0, [0.5], [0, 2], 1)
    card = st.Scorecard(space, ["no", "yes"], *map(list, zip(*pairs, strict=True)), 0, 1.0, -4.0)
    assert str(st.explain(card, {"smoker": 0})).splitlines()[1] == "  smoker: no, 0 (it is no)"
    assert str(st.explain(card, {"smoker": 1})).splitlines()[1] == "  smoker: yes, +2 (it is yes)"
