"""Regression trees of scikit-learn: distances, collections and differences."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import steadytree as st
from steadytree.distance.diff import _digits
from steadytree.distance.tree_distance import collection_facts
from steadytree.models.sklearn import regression_tree
from tests.distance.test_path import literal_paths, literal_weight


@pytest.fixture(scope="module")
def data():
    return load_diabetes(return_X_y=True, as_frame=True)


def learned(seed, n_leaves, target=None):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (60, 3)).astype(float)
    y = X @ rng.normal(size=3) + rng.normal(size=60) if target is None else target(X)
    return X, DecisionTreeRegressor(max_leaf_nodes=n_leaves, random_state=seed).fit(X, y)


def literal_pair(p, q, space, class_weight, target_range):
    """Equation 1 with the scaled difference of the predictions in place of the labels."""
    total = class_weight * abs(p[3] - q[3]) / target_range
    for j in p[0]:
        gap = abs(p[0][j] - q[0][j]) + abs(p[1][j] - q[1][j])
        total += gap / (2 * (space[j].high - space[j].low))
    return total


def literal_distance(a, b, class_weight, target_range):
    """The least over all matchings, tried one by one."""
    many, few = sorted((literal_paths(a), literal_paths(b)), key=len, reverse=True)
    best = np.inf
    for chosen in itertools.permutations(range(len(many)), len(few)):
        pairs = zip(chosen, few, strict=True)
        cost = sum(literal_pair(many[k], q, a.space, class_weight, target_range) for k, q in pairs)
        alone = set(range(len(many))) - set(chosen)
        best = min(best, cost + sum(literal_weight(many[k], a.space) for k in alone))
    return best


@pytest.mark.parametrize("seed", range(20))
def test_distance_equals_all_matchings(seed):
    sizes = np.random.default_rng(seed).integers(2, 7, 2)
    (X, a), (other, b) = learned(seed, int(sizes[0])), learned(seed + 100, int(sizes[1]))
    rows = np.vstack([X, other])
    weight = 0.5 + seed % 3
    space = st.FeatureSpace.observe(rows)
    trees = [regression_tree(model, rows) for model in (a, b)]
    values = np.concatenate([model.predict(rows) for model in (a, b)])
    expected = literal_distance(*trees, weight, np.ptp(values))
    found = st.tree_distance(a, b, class_weight=weight, space=space)
    assert float(found) == pytest.approx(expected, abs=1e-9)
    fixed = st.tree_distance(a, b, class_weight=weight, space=rows, target_range=7.0)
    assert float(fixed) == pytest.approx(literal_distance(*trees, weight, 7.0), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_a_metric_among_trees_with_equally_many_paths(seed):
    learners = [learned(seed * 10 + k, 4)[1] for k in range(4)]
    distance = st.tree_distance(learners, space=[[0.0] * 3, [8.0] * 3], target_range=3.0)
    np.testing.assert_allclose(distance, distance.T)
    assert (distance.diagonal() == 0).all()
    for a, b, c in itertools.permutations(range(4), 3):
        assert distance[a, c] <= distance[a, b] + distance[b, c] + 1e-12


def test_a_read_tree_predicts_as_before(data):
    X, y = data
    for criterion in ("squared_error", "absolute_error"):
        model = DecisionTreeRegressor(max_depth=4, criterion=criterion, random_state=0).fit(X, y)
        np.testing.assert_array_equal(regression_tree(model, X).predict(X), model.predict(X))


def test_nodes_are_compared_by_equal_predictions(data):
    X, y = data
    model = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    shifted = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y + 1)
    assert float(st.tree_distance(model, model, kind="node")) == 0
    assert float(st.tree_distance(model, shifted, kind="node")) == 2 * 4
    assert st.tree_distance([model, shifted], kind="node").tolist() == [[0, 8], [8, 0]]


def test_facts_of_a_forest_are_scikit_learns(data):
    X, y = data
    forest = RandomForestRegressor(8, max_depth=3, random_state=0).fit(X, y)
    facts = collection_facts(forest.estimators_)
    np.testing.assert_allclose(facts.importances.mean(axis=0), forest.feature_importances_)
    swapped = X[X.columns[::-1]]
    pair = [
        DecisionTreeRegressor(max_depth=2, random_state=0).fit(rows, y) for rows in (X, swapped)
    ]
    facts = collection_facts(pair)
    np.testing.assert_allclose(facts.importances[0], facts.importances[1])


def test_differences_count_rounded_predictions(data):
    X, y = data
    old = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    near = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y + 1e-3)
    found = st.diff(old, near, X)
    assert found.is_same
    assert found.alike
    assert 0 < found.distance < 1e-3
    moved = y + 50 * (X["bmi"] > 0.1)
    new = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, moved)
    found = st.diff(old, new, X)
    values = [regression_tree(model, X).predict(X) for model in (old, new)]
    spread = np.ptp(np.concatenate(values))
    apart = np.abs(values[0] - values[1]) > 0.01 * spread
    flipped = np.isin(np.arange(len(X)), found.rows.flipped)
    assert flipped[apart].all()
    assert apart.any()
    assert found.classes == ()
    assert "100 %" not in str(found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r, c, X, y: st.tree_distance(r, c, space=X), "1 of the 2 trees are regression"),
        (lambda r, c, X, y: st.tree_distance([r, r, c], kind="node"), "2 of the 3 trees are reg"),
        (lambda r, c, X, y: collection_facts([r, c]), "1 of the 2 trees are regression"),
        (lambda r, c, X, y: st.diff(r, c), "compare trees of one kind"),
        (lambda r, c, X, y: st.diff(r, r, X, y), "y is for trees that predict classes"),
        (lambda r, c, X, y: st.tree_distance(r, r, leaves="distribution", space=X), "leave it out"),
        (lambda r, c, X, y: st.tree_distance(c, c, target_range=2, space=X), "for regression"),
        (lambda r, c, X, y: st.tree_distance(r, r, target_range=0, space=X), "above 0, got 0"),
        (lambda r, c, X, y: regression_tree(c), "a regression tree is needed, got DecisionTreeC"),
        (lambda r, c, X, y: st.as_tree(r), "whose leaves hold numbers and not classes"),
        (lambda r, c, X, y: st.complexity(r), "whose leaves hold numbers and not classes"),
    ],
)
def test_the_wrong_kind_of_tree_is_refused_in_one_line(call, message, data):
    X, y = data
    number = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    label = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y > 140)
    with pytest.raises((TypeError, ValueError), match=message) as error:
        call(number, label, X, y)
    assert "\n" not in str(error.value)


def test_too_large_and_too_many_targets_are_refused():
    rng = np.random.default_rng(0)
    X = rng.random((1500, 1))
    large = DecisionTreeRegressor().fit(X, rng.random(1500))
    with pytest.raises(ValueError, match="at most 2,000 nodes here, got 2,999"):
        st.tree_distance(large, large, space=X)
    two = DecisionTreeRegressor(max_depth=1).fit(X, rng.random((1500, 2)))
    with pytest.raises(ValueError, match="predicts 2 targets at once"):
        st.tree_distance(two, two, space=X)


@pytest.mark.parametrize("seed", range(5))
def test_impurity_of_leaves_is_compared_by_its_difference(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 5, (40, 2)).astype(float), columns=["a", "b"])
    y, z = rng.integers(0, 3, (2, 40))
    models = [DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, t) for t in (y, z)]
    trees = [st.as_tree(model, X) for model in models]
    paths = [literal_paths(tree) for tree in trees]
    best = np.inf
    for order in itertools.permutations(range(3)):
        total = 0.0
        for p, k in zip(paths[0], order, strict=True):
            q = paths[1][k]
            gini = [1 - sum(share**2 for share in path[4].values()) for path in (p, q)]
            bounds = literal_pair((*p[:3], 0), (*q[:3], 0), trees[0].space, 0.0, 1.0)
            total += bounds + 2.0 * abs(gini[0] - gini[1])
        best = min(best, total)
    found = st.tree_distance(*trees, leaves="impurity", class_weight=2.0)
    assert float(found) == pytest.approx(best, abs=1e-9)


def test_predictions_are_compared_to_a_hundredth_of_their_range():
    """Of 0 to 100: 97 is another prediction than 100, 99.7 is not."""
    X = np.arange(8.0)[:, None]

    def stump(high):
        return DecisionTreeRegressor(max_depth=1).fit(X, np.where(X[:, 0] < 4, 0.0, high))

    assert len(st.diff(stump(100.0), stump(97.0), X).rows.flipped) == 4
    assert len(st.diff(stump(100.0), stump(99.7), X).rows.flipped) == 0


@pytest.mark.parametrize("scale", [3e-7, 0.02, 0.1, 1.0, 9.99, 250.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, 40.0])
def test_predictions_are_compared_to_a_thousandth_to_a_hundredth_of_their_range(scale, offset):
    X = np.arange(4.0)[:, None]
    trees = [
        DecisionTreeRegressor().fit(X, offset + scale * np.array(values))
        for values in ([0.0, 0.2, 0.4, 0.5], [0.1, 0.2, 0.4, 1.0])
    ]
    step = 10.0 ** -_digits(trees)
    assert 0.001 * (1 - 1e-9) <= step / scale <= 0.01 * (1 + 1e-9)
    constant = DecisionTreeRegressor().fit(X, np.full(4, -scale))
    assert 0.001 * (1 - 1e-9) <= 10.0 ** -_digits([constant]) / scale <= 0.01 * (1 + 1e-9)
    assert _digits([DecisionTreeRegressor().fit(X, np.zeros(4))]) == 2
