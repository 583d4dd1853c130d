"""The penalty chosen by cross-validation."""

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from steadytree._base.clock import Limit
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.robust_tree import RobustTreeClassifier
from steadytree.robustness.search import box_validation

pytestmark = pytest.mark.usefixtures("no_time_passes")


@pytest.fixture(autouse=True)
def little_work(monkeypatch):
    monkeypatch.setattr(box_validation, "FOLD_WORK", 100_000)


def test_labels_without_signal_get_no_tree_and_clear_ones_do():
    rng = np.random.default_rng(0)
    X = rng.random((80, 3))
    noise = Perturbation(radius=0.02)
    model = RobustTreeClassifier(2, noise, regularisation="auto")
    labels = rng.integers(0, 2, 80)
    by_chance = model.fit(X, labels)
    assert by_chance.regularisation_ > 0.5  # a split must win several rows
    free = RobustTreeClassifier(2, noise).fit(X, labels)
    assert free.regularisation_ == 0
    assert by_chance.tree_.n_leaves < free.tree_.n_leaves == 4
    clear = clone(model).fit(X, (X[:, 0] > 0.5).astype(int))
    assert clear.tree_.n_leaves == 2


def test_the_choice_is_repeated_and_shows_in_the_objective():
    X, y = load_iris(return_X_y=True)
    settings = {"regularisation": "auto", "time_limit": math.inf, "max_nodes": 500}
    first, second = (
        RobustTreeClassifier(2, Perturbation(radius=0.2), **settings).fit(X, y) for _ in range(2)
    )
    assert first.tree_ == second.tree_
    rate = first.regularisation_
    assert rate == second.regularisation_ > 0
    n_splits = int((~first.tree_.is_leaf).sum())
    kept = first.objective_ + n_splits * rate / (1 - rate)
    assert kept == pytest.approx(round(kept))


def test_folds_have_equal_shares_of_each_class():
    labels = np.repeat([0, 1, 2], [50, 25, 7])
    folds = box_validation._folds(labels, 0)
    for label in range(3):
        counts = np.bincount(folds[labels == label], minlength=box_validation.N_FOLDS)
        assert counts.max() - counts.min() <= 1
    assert (box_validation._folds(labels, 0) == folds).all()


def test_a_limit_ends_the_choice():
    X, y = load_iris(return_X_y=True)
    noise = Perturbation(radius=0.2)
    model = RobustTreeClassifier(3, noise, regularisation="auto", max_nodes=1).fit(X, y)
    assert model.status_ == "node limit"
    assert model.regularisation_ == 0
    assert Limit(steps=1).spend() == ""


def test_interrupting_the_choice_keeps_a_tree(monkeypatch):
    X, y = load_iris(return_X_y=True)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(box_validation, "_kept_by", interrupt)
    model = RobustTreeClassifier(3, Perturbation(radius=0.2), regularisation="auto").fit(X, y)
    assert model.status_ == "interrupted"
    assert model.regularisation_ == 0
    assert model.tree_.n_leaves > 1
    assert model.objective_ <= model.bound_ < np.inf


@pytest.mark.parametrize(
    "given",
    [
        {"perturbation": Perturbation(step_cost=1.0, budget=0.1, scope="mean")},
        {"n_thresholds": 5},
        {"solver": "mio"},
    ],
)
def test_it_is_refused_where_noise_is_not_by_row(given):
    with pytest.raises(ValueError, match="needs noise by row"):
        RobustTreeClassifier(2, regularisation="auto", **given).fit([[0.0], [1.0]], [0, 1])
