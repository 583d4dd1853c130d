import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from steadytree.models.files import load
from steadytree.stability._kernels.small_tree import grow_small
from steadytree.stability._kernels.steady import GROUPED, sample_poisson
from steadytree.stability.steady_tree import SteadyTreeClassifier
from tests.stability.reference_steady import squared_error


@parametrize_with_checks([SteadyTreeClassifier()])
def test_follows_the_sklearn_contract(estimator, check):
    check(estimator)


def additive(n=400, d=5, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(2)
    return X, (X[:, 0] + 0.8 * X[:, 1] + noise * rng.normal(size=n) > 0).astype(int)


def mixed_frame(n=300, seed=1):
    rng = np.random.default_rng(seed)
    town, size = rng.choice(list("abcdef"), n), rng.normal(10, 3, n).round(1)
    p = np.where(np.isin(town, ["b", "e", "f"]), 0.85, 0.15)
    y = np.where(rng.random(n) < p, "yes", "no")
    size[rng.random(n) < 0.2] = np.nan
    town = np.where(rng.random(n) < 0.1, None, town)
    return {"town": town, "size": size}, y


# ---- the tree ----
def test_has_the_leaves_asked_for_and_keeps_their_probabilities():
    X, y = additive()
    for n_leaves in (2, 5, 8, 12):
        tree = SteadyTreeClassifier(max_leaf_nodes=n_leaves).fit(X, y).tree_
        assert tree.n_leaves == n_leaves
        assert len(np.unique(tree.value[tree.is_leaf, 1])) == n_leaves
        reached = np.bincount(tree.apply(X), minlength=tree.n_nodes)
        np.testing.assert_allclose(tree.weight[tree.is_leaf], reached[tree.is_leaf])
    assert tree.prune().n_leaves < tree.n_leaves  # siblings of one label are not merged


def test_the_same_rows_give_the_same_tree_in_any_order():
    X, y = additive()
    X, y = np.vstack([X, X[:50]]), np.concatenate([y, y[:50]])  # some of them twice
    model = SteadyTreeClassifier().fit(X, y)
    assert model.tree_ == clone(model).fit(X, y).tree_
    order = np.random.default_rng(0).permutation(len(y))
    assert model.tree_ == SteadyTreeClassifier().fit(X[order], y[order]).tree_
    assert pickle.loads(pickle.dumps(model)).tree_ == model.tree_
    trees = {SteadyTreeClassifier(random_state=seed).fit(X, y).tree_ for seed in range(3)}
    assert len(trees) == 3


def test_changes_fewer_answers_than_cart_and_errs_no_more():
    X, y = additive(500, 6, seed=3)

    def changed_and_wrong(make):
        answers, wrong = [], []
        for train, test in KFold(5, shuffle=True, random_state=0).split(X):
            answers.append(make().fit(X[train], y[train]).predict(X))
            wrong.append((answers[-1][test] != y[test]).mean())
        pairs = itertools.combinations(answers, 2)
        return np.mean([(a != b).mean() for a, b in pairs]), np.mean(wrong)

    ours = changed_and_wrong(SteadyTreeClassifier)
    theirs = changed_and_wrong(
        lambda: DecisionTreeClassifier(max_leaf_nodes=8, min_samples_leaf=5, random_state=0)
    )
    assert ours[0] < theirs[0]
    assert ours[1] <= theirs[1]


def test_learns_several_classes():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = SteadyTreeClassifier().fit(X, y)
    assert model.score(X, y) > 0.94
    assert model.predict_proba(X).shape == (150, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


# ---- columns ----
def test_categories_are_split_in_groups_and_missing_ones_have_a_side(tmp_path):
    columns, y = mixed_frame()
    frames = pd.DataFrame(columns), pl.DataFrame({k: v.tolist() for k, v in columns.items()})
    models = [SteadyTreeClassifier().fit(frame, y) for frame in frames]
    tree = models[0].tree_
    assert tree == models[1].tree_
    names = np.array(tree.space[0].categories)
    sides = set(names[tree.subset[0]]), set(names[~tree.subset[0]])
    assert tree.feature[0] == 0
    assert {"b", "e", "f"} in sides
    models[0].save(tmp_path / "a.tree.json")
    other = pd.DataFrame({"town": ["b", "unknown", None], "size": [np.nan, 3.0, 3.0]})
    answers = models[0].predict(other)
    assert answers[0] == "yes"
    assert answers[1] == answers[2]  # both are missing to the tree
    assert (load(tmp_path / "a.tree.json").predict(other) == answers).all()


def test_missing_numbers_go_where_their_outcomes_are():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = (x > 0.5).astype(int)
    gone = rng.random(400) < 0.3
    X = np.where(gone, np.nan, x)[:, None]
    y[gone] = 1
    tree = SteadyTreeClassifier(max_leaf_nodes=2).fit(X, y).tree_
    assert not tree.missing_left[0]
    assert 0.2 < tree.threshold[0] < 0.8
    y[gone] = 0
    assert SteadyTreeClassifier(max_leaf_nodes=2).fit(X, y).tree_.missing_left[0]
    y = gone.astype(int)  # nothing but presence matters
    tree = SteadyTreeClassifier(max_leaf_nodes=2).fit(X, y).tree_
    assert tree.threshold[0] == np.inf
    assert (tree.predict(X) == y).all()


@pytest.mark.parametrize("seed", range(30))
def test_a_split_of_categories_is_the_best_of_all_groups(seed):
    rng = np.random.default_rng(seed)
    binned = rng.integers(0, 6, (40, 1)).astype(np.uint8)
    p, w = rng.random((40, 1)), rng.integers(1, 4, 40).astype(float)
    kind, none = np.array([GROUPED]), np.zeros(1, np.int64)
    flat = np.zeros((1, 64))
    _, bins, _, _ = grow_small(
        binned, p, w, np.array([6]), kind, none, flat, 2, 1.0, 0.0, 0.0, -1, 2
    )

    def loss(chosen):
        goes = np.isin(binned[:, 0], chosen)
        sides = [list(np.flatnonzero(goes)), list(np.flatnonzero(~goes))]
        return sum(squared_error(p, w, side) for side in sides) if all(sides) else np.inf

    groups = [g for k in range(1, 6) for g in itertools.combinations(range(6), k)]
    found = [b for b in range(6) if int(bins[0]) >> b & 1]
    assert loss(found) == pytest.approx(min(map(loss, groups)))


# ---- weights and constraints ----
def test_weights_count_as_repeated_rows():
    X, y = additive(150)
    weights = np.random.default_rng(1).integers(0, 4, 150)
    weighted = SteadyTreeClassifier().fit(X, y, weights)
    repeated = SteadyTreeClassifier().fit(np.repeat(X, weights, 0), np.repeat(y, weights))
    assert weighted.tree_ == repeated.tree_
    assert weighted.choice_ == repeated.choice_
    agreeing = weighted.choice_.agreement * weights.sum()  # a sum of weights, so a whole number
    assert agreeing == pytest.approx(round(agreeing), abs=1e-9)


def test_the_unit_of_small_weights_does_not_matter():
    X, y = additive(150)
    weights = np.random.default_rng(1).uniform(0.2, 0.9, 150)
    trees = [SteadyTreeClassifier().fit(X, y, weights * unit).tree_ for unit in (1, 2**-10)]
    assert (trees[0].threshold[~trees[0].is_leaf] == trees[1].threshold[~trees[1].is_leaf]).all()
    np.testing.assert_allclose(trees[0].value, trees[1].value)
    np.testing.assert_allclose(trees[1].weight[0], weights.sum() / 2**10)


def test_class_weights_are_weights_of_the_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3)).round(2)
    y = np.where(X[:, 0] + rng.normal(size=600) > 1.8, "ill", "well")
    plain = SteadyTreeClassifier().fit(X, y)
    heavy = SteadyTreeClassifier(class_weight={"ill": 4.0}).fit(X, y)
    assert heavy.tree_ == SteadyTreeClassifier().fit(X, y, np.where(y == "ill", 4.0, 1.0)).tree_
    balanced = SteadyTreeClassifier(class_weight="balanced").fit(X, y)
    assert balanced.tree_.value[0, 0] == pytest.approx(0.5, abs=0.05)
    assert balanced.tree_.weight[0] == pytest.approx(600)
    found = [(model.predict(X) == "ill").sum() for model in (plain, heavy, balanced)]
    assert found[0] < found[1] < found[2]


def test_the_least_leaf_is_a_share_of_real_and_made_up_rows():
    X, y = additive(200)
    sizes = []
    for least in (5, 60, 90, 101):
        model = SteadyTreeClassifier(min_samples_leaf=least).fit(X, y)
        assert model.choice_.teacher
        sizes.append(model.tree_.n_leaves)
        assert model.tree_.n_leaves <= max(200 // least, 1)
    assert sizes[0] > sizes[1] > sizes[3] == 1


@pytest.mark.parametrize("seed", range(4))
def test_monotone_columns_never_turn(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3)).round(1)
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=300) > 0).astype(int)
    grid = np.linspace(-3, 3, 61)

    def turns(model, way):
        rows = np.repeat(X[:60], len(grid), axis=0)
        rows[:, 0] = np.tile(grid, 60)
        curves = model.predict_proba(rows)[:, 1].reshape(60, -1)
        return (way * np.diff(curves, axis=1) < 0).any()

    assert turns(SteadyTreeClassifier(max_leaf_nodes=12).fit(X, y), 1)
    for way, given in ((1, [1, 0, 0]), (-1, {"x0": -1})):
        model = SteadyTreeClassifier(max_leaf_nodes=12, monotonic_cst=given).fit(X, y)
        assert not turns(model, way)
        assert model.tree_.n_leaves > 4


# ---- the teacher ----
def test_says_whether_a_teacher_was_used_and_why():
    X, y = additive()
    choice = SteadyTreeClassifier().fit(X, y).choice_
    assert choice.teacher
    assert choice.teacher_loss < choice.share_loss == pytest.approx(np.log(2), abs=0.01)
    assert choice.agreement > 0.75
    assert "held-out rows" in choice.reason


def test_says_why_the_first_question_is_not_the_greedy_one():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(1000, 5)).round(2), columns=list("abcde"))
    z = 5 * np.where(X["a"] > 0, X["b"] > 0, X["c"] > 0.3) - 2.5
    y = (rng.random(1000) < 1 / (1 + np.exp(-z))).astype(int)
    model = SteadyTreeClassifier(max_leaf_nodes=4).fit(X, y)
    assert model.tree_.space.names[model.tree_.feature[0]] == "a"  # tells nothing by itself
    assert "A first split on 'a' explains" in model.choice_.reason
    cart = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y)
    assert model.score(X, y) > cart.score(X, y) + 0.05
    assert "first" not in SteadyTreeClassifier().fit(*additive()).choice_.reason


def test_a_teacher_that_learns_nothing_is_not_used():
    rng = np.random.default_rng(0)
    used = []
    for _ in range(10):
        X, y = rng.normal(size=(200, 4)), rng.integers(0, 2, 200)
        choice = SteadyTreeClassifier().fit(X, y).choice_
        used.append(choice.teacher)
        assert choice.teacher == (choice.teacher_loss < choice.share_loss)
        assert choice.teacher or "to the labels" in choice.reason
    assert sum(used) < 5


def test_poisson_numbers_have_their_distribution():
    for mean in (0.3, 1.0, 40.0):
        drawn = np.array([sample_poisson(np.uint64(k * 7919), mean) for k in range(20_000)])
        # mean and variance within 4.5 standard errors: level about 1e-5 each
        assert abs(drawn.mean() - mean) < 4.5 * np.sqrt(mean / 20_000)
        fourth = mean + 3 * mean**2
        assert abs(drawn.var() - mean) < 4.5 * np.sqrt((fourth - mean**2) / 20_000)


# ---- bad input ----
def test_data_that_cannot_be_divided_give_one_leaf():
    X, y = additive(50)
    for rows, labels, why in (
        (X, np.ones(50), "one class"),
        (np.ones((50, 2)), y, "no column varies"),
    ):
        model = SteadyTreeClassifier().fit(rows, labels)
        assert model.tree_.n_nodes == 1
        assert why in model.choice_.reason
        assert (model.predict(rows) == model.classes_[model.tree_.label[0]]).all()
    np.testing.assert_allclose(model.tree_.value[0, 1], y.mean())


def test_few_rows_and_rare_outcomes_give_probabilities():
    X, y = additive(20)
    assert SteadyTreeClassifier().fit(X, y).tree_.n_leaves <= 8
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    y = np.zeros(2000, int)
    y[np.argsort(X[:, 0] + 0.3 * rng.normal(size=2000))[-20:]] = 1
    model = SteadyTreeClassifier().fit(X, y)
    p = model.predict_proba(X)[:, 1]
    assert model.choice_.teacher
    assert p[y == 1].mean() > 10 * p[y == 0].mean()
    assert p.mean() == pytest.approx(0.01, abs=0.005)


@pytest.mark.parametrize("n_levels", [60, 900])
def test_many_categories_are_grouped(n_levels):
    rng = np.random.default_rng(0)
    binned = rng.integers(0, n_levels, 5000)
    y = (rng.random(5000) < np.where(binned % 2, 0.8, 0.2)).astype(int)
    frame = pd.DataFrame({"shop": [f"c{k}" for k in binned], "x": rng.normal(size=5000)})
    model = SteadyTreeClassifier().fit(frame[:4000], y[:4000])
    assert model.tree_.n_leaves <= 8
    if n_levels == 60:  # with five rows each, 900 tell nothing
        assert model.score(frame[4000:], y[4000:]) > 0.75


def test_an_identifier_is_refused():
    frame, y = pd.DataFrame({"id": [f"id{k}" for k in range(10_000)]}), np.arange(10_000) % 2
    with pytest.raises(ValueError, match="group them, or drop the column"):
        SteadyTreeClassifier().fit(frame, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_leaf_nodes": 1}, "max_leaf_nodes must be a whole number from 2 to 32, got 1"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be a whole number of at least 1"),
        ({"class_weight": "heavy"}, "class_weight must be None, 'balanced' or a dict"),
        ({"class_weight": {0: -1}}, "class_weight must be above 0 and finite, got -1 for 0"),
        ({"monotonic_cst": [1]}, "must hold -1, 0 or 1 for each of 5 columns"),
        ({"monotonic_cst": {"age": 1}}, "names 'age', which X does not have"),
    ],
)
def test_wrong_parameters_are_told_at_once(parameters, message):
    X, y = additive(30)
    with pytest.raises(ValueError, match=message):
        SteadyTreeClassifier(**parameters).fit(X, y)


def test_constraints_need_numbers_and_two_classes():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="needs two classes, got 3"):
        SteadyTreeClassifier(monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    columns, y = mixed_frame()
    with pytest.raises(ValueError, match="column 'town' holds categories"):
        SteadyTreeClassifier(monotonic_cst={"town": 1}).fit(pd.DataFrame(columns), y)


def test_separates_what_a_public_set_holds():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = SteadyTreeClassifier().fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9
    tree = model.to_sklearn()
    assert (tree.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("max_depth", [1, 2, 3])
def test_depth_is_limited_where_asked(max_depth):
    X, y = load_breast_cancer(return_X_y=True)
    model = SteadyTreeClassifier(max_depth=max_depth).fit(X, y)
    assert model.tree_.depth == max_depth
    assert model.tree_.n_leaves <= min(2**max_depth, 8)
