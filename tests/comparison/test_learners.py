"""Learners that exist for comparisons only: cross-validated CART and a boosted ensemble."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.comparison.learners import BoostedTrees, CrossValidatedCart
from steadytree.data.table import Table


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(3)
    X = pd.DataFrame(
        {"n": random.normal(size=240), "town": random.choice(["Ulm", "Bonn", None], 240)}
    )
    X.loc[::17, "n"] = np.nan
    y = np.where((X["n"].fillna(0) > 0.3) ^ (X["town"] == "Ulm"), "ill", "well")
    return X, np.where(random.random(240) < 0.1, "ill", y)


def grown(rows, labels, n_leaves, least=5):
    return DecisionTreeClassifier(
        max_leaf_nodes=n_leaves, min_samples_leaf=least, random_state=0
    ).fit(rows, labels)


def impurity(y, leaves):
    sizes = [np.bincount(y[leaves == leaf]) for leaf in np.unique(leaves)]
    return sum(size.sum() - (size**2).sum() / size.sum() for size in sizes)


@pytest.mark.parametrize("n_leaves", [2, 5, 8])
def test_cart_of_so_many_leaves_is_as_pure_as_scikit_learns(n_leaves):
    X, y = load_wine(return_X_y=True)
    trees = CrossValidatedCart(8, 0)._trees(Table.read(X), y, 5)
    ours, peer = trees[n_leaves - 2], grown(X, y, n_leaves)
    assert ours.n_leaves == peer.get_n_leaves()
    assert impurity(y, ours.apply(X)) == pytest.approx(impurity(y, peer.apply(X)))
    leaf = np.flatnonzero(ours.is_leaf)[0]
    inside = np.bincount(y[ours.apply(X) == leaf], minlength=3)
    np.testing.assert_allclose(ours.value[leaf], (inside + 1) / (inside.sum() + 3))


def test_cross_validated_cart_is_the_best_of_its_settings_on_held_out_rows():
    X, y = load_wine(return_X_y=True)
    X = X[:, :4]
    model = CrossValidatedCart(8, 0).fit(X, y)
    counts = {}
    for size in range(2, 9):
        for least in (20, 5):
            folds = StratifiedKFold(5, shuffle=True, random_state=0).split(y, y)
            counts[size, least] = sum(
                int((grown(X[a], y[a], size, least).predict(X[b]) == y[b]).sum()) for a, b in folds
            )
    expected = grown(X, y, *max(counts, key=counts.get))  # the first of equals
    assert model.tree_.n_leaves == expected.get_n_leaves() < 8
    assert (model.predict(X) == expected.predict(X)).all()


def test_cross_validated_cart_takes_text_and_missing_values(rows):
    model = CrossValidatedCart(8, 0).fit(*rows)
    assert 2 < model.tree_.n_leaves <= 8
    assert (model.tree_.predict(rows[0]) == rows[1]).mean() > 0.85


def test_a_class_of_one_row_leaves_nothing_to_cross_validate(rows):
    X, y = rows
    assert CrossValidatedCart(4, 0).fit(X[:40], ["rare", *y[1:40]]).tree_.n_leaves <= 4


def test_the_ensemble_is_scikit_learns_on_encoded_columns(rows):
    X, y = rows
    model = BoostedTrees(0).fit(X, y)
    codes = np.column_stack([X["n"], pd.Categorical(X["town"]).codes]).astype(float)
    codes[codes[:, 1] < 0, 1] = np.nan
    peer = HistGradientBoostingClassifier(categorical_features=[False, True], random_state=0)
    np.testing.assert_allclose(
        model.predict_proba(X), peer.fit(codes, y).predict_proba(codes), atol=1e-12
    )


def test_an_ensemble_is_compared_by_its_predictions(rows):
    found = st.compare(["steady", "boosted"], *rows, n_folds=3)
    measured = set(found["boosted"].measurements)
    assert measured == {"accuracy", "AUC", "changed answers", "fit time"}
    X, y = rows
    correct = 0
    for a, b in StratifiedKFold(3, shuffle=True, random_state=0).split(y, y):
        correct += (BoostedTrees(0).fit(X.iloc[a], y[a]).predict(X.iloc[b]) == y[b]).sum()
    assert found["boosted"].measurements["accuracy"].value == correct / len(y)
    assert "Price of being readable" in str(found)
    assert "steady" in found.html
    assert "boosted" in found.html


@pytest.mark.parametrize(
    ("best", "other", "overlap"),
    [((0.9, 0.96), (0.85, 0.92), True), ((0.9, 0.96), (0.8, 0.88), False)],
)
def test_overlapping_intervals_are_said(best, other, overlap):
    from steadytree.reporting.formatting import _comparison_cautions

    def learner(name, interval):
        accuracy = {"value": sum(interval) / 2, "interval": interval}
        return {"name": name, "readings": {"accuracy": accuracy, "size": {"value": 8}}}

    found = _comparison_cautions([learner("one", other), learner("two", best)])
    assert (found == []) is not overlap
    if overlap:
        assert found == [
            "The accuracy intervals of two and of one overlap: these rows do not tell which of "
            "them is more accurate."
        ]


@pytest.mark.parametrize(
    ("boosted", "text"),
    [
        (0.93, "Price of being readable: big is 3.0 points more accurate than small, the most "),
        (0.88, "Price of being readable: none here, big is 2.0 points less accurate than small, "),
    ],
)
def test_the_price_of_being_readable(boosted, text):
    from steadytree.reporting.formatting import _comparison_cautions

    def learner(name, value, **others):
        accuracy = {"value": value, "interval": (value - 0.001, value + 0.001)}
        return {"name": name, "readings": {"accuracy": accuracy, **others}}

    size = {"value": 8}
    listed = [learner("tiny", 0.8, size=size), learner("small", 0.9, size=size)]
    (found,) = _comparison_cautions([learner("big", boosted), *listed])
    assert found.startswith(text)
