import dataclasses
import logging
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from steadytree._base.exceptions import BudgetError
from steadytree.data.schema import Schema
from steadytree.models.files import load, save
from steadytree.privacy.growers import bound_rows
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.mechanisms import NOT_PRIVATE
from steadytree.privacy.private_tree import PrivateTreeClassifier

SCHEMA = Schema(
    bounds={"a": (0, 10), "b": (0, 10)},
    categories={"c": ["x", "y", "z"]},
    classes=["lo", "mid", "hi"],
    missing=["a"],
)
METHODS = ["gibbs", "greedy", "topdown"]


def frame(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.uniform(0, 10, n_rows),
            "b": rng.uniform(0, 10, n_rows),
            "c": rng.choice(["x", "y", "z"], n_rows),
        }
    )
    y = np.where(X["a"] <= 5, "lo", np.where(X["c"] == "x", "mid", "hi"))
    X.loc[rng.random(n_rows) < 0.05, "a"] = np.nan
    return X, y


def model(method="gibbs", **more):
    return PrivateTreeClassifier(
        **{"epsilon": 4.0, "testing_seed": 0, **more}, schema=SCHEMA, method=method
    )


@pytest.mark.parametrize("method", METHODS)
def test_three_classes_are_learned(method):
    X, y = frame(3_000)
    fitted = model(method).fit(X, y)
    assert fitted.score(*frame(1_000, 1)) > 0.9
    assert fitted.classes_.tolist() == ["lo", "mid", "hi"]


@pytest.mark.parametrize("method", METHODS)
def test_secure_noise_learns_too_and_says_that_it_is_private(method):
    pytest.importorskip("opendp")
    fitted = model(method, testing_seed=None, epsilon=20.0).fit(*frame(1_000))
    assert fitted.score(*frame(1_000, 1)) > 0.7
    assert fitted.privacy_.private
    assert "epsilon 20, add or remove one row" in fitted.privacy_.guarantee


def test_a_seed_makes_it_repeatable_and_not_private():
    X, y = frame(500)
    one, other = model(epsilon=0.5).fit(X, y), model(epsilon=0.5).fit(X, y)
    assert one.tree_ == other.tree_
    assert one.privacy_.guarantee.startswith("NOT PRIVATE")
    assert not one.privacy_.private


def test_without_a_seed_fits_differ():
    pytest.importorskip("opendp")
    X, y = frame(300)
    trees = {model(testing_seed=None, epsilon=0.2).fit(X, y).tree_ for _ in range(4)}
    assert len(trees) > 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_rows", [30, 3_000])
def test_what_was_spent_adds_up_to_epsilon(method, n_rows):
    fitted = model(method, epsilon=0.7).fit(*frame(n_rows))
    assert sum(fitted.privacy_.spent.values()) == pytest.approx(0.7)
    assert fitted.privacy_.to_dict()["relation"] == "add or remove one row"


@pytest.mark.parametrize("method", METHODS)
def test_leaf_counts_are_positive_and_add_up(method):
    tree = model(method, epsilon=0.3, leaf_share=0.3).fit(*frame(2_000)).tree_
    counts = tree.value * tree.weight[:, None]
    assert (tree.weight >= 0).all()
    for node in np.flatnonzero(~tree.is_leaf):
        children = counts[tree.left[node]] + counts[tree.right[node]]
        np.testing.assert_allclose(counts[node], children, atol=1e-6)


def test_nothing_exact_is_kept():
    """No number in the fitted model equals an exact count of the data by right."""
    X, y = frame(997)
    fitted = model(epsilon=0.05).fit(X, y)
    assert fitted.n_rows_ != 997
    assert fitted.tree_.weight[0] != 997
    held = {name for name in vars(fitted) if name.endswith("_")}
    assert held == {
        "classes_",
        "feature_names_in_",
        "n_features_in_",
        "n_rows_",
        "privacy_",
        "tree_",
    }


def test_the_model_depends_on_values_only_through_the_schema():
    X, y = frame(400)
    wild = X.assign(a=X["a"].where(X["a"] < 9.9, 1e12), b=X["b"].where(X["b"] > 0.05, -np.inf))
    tame = X.assign(
        a=X["a"].clip(0, 10).where(X["a"] < 9.9, 10.0), b=X["b"].where(X["b"] > 0.05, 0)
    )
    assert model().fit(wild, y).tree_ == model().fit(tame, y).tree_


def test_rows_of_undeclared_classes_are_left_out():
    X, y = frame(400)
    more = pd.concat([X, X[:5]]), np.concatenate([y, ["other"] * 5])
    assert model().fit(*more).tree_ == model().fit(X, y).tree_


# ---- ledger ----
def test_a_fit_is_paid_before_it_starts_and_refused_beyond_the_budget(tmp_path, caplog):
    ledger = Ledger(tmp_path / "l", budget=1.0)
    X, y = frame(200)
    model(epsilon=0.6, ledger=ledger).fit(X, y)
    assert ledger.left == 0.4
    refused = model(epsilon=0.6, ledger=ledger)
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(BudgetError, match=r"0\.4 of 1\.0 is left"),
    ):
        refused.fit(X, y)
    assert "refused" in caplog.text
    assert not hasattr(refused, "tree_")
    assert ledger.left == 0.4


# ---- as scikit-learn expects ----
def test_it_behaves_like_an_estimator(tmp_path):
    X, y = frame(600)
    estimator = model()
    again = clone(estimator)
    assert again.get_params()["schema"] == SCHEMA
    assert again.set_params(epsilon=2.0).epsilon == 2.0
    with pytest.raises(NotFittedError):
        estimator.predict(X)
    fitted = estimator.fit(X, y)
    assert fitted is estimator
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert cross_val_score(model(), X, y, cv=3).mean() > 0.6
    with pytest.warns(UserWarning, match="as its file states"):
        fitted.save(tmp_path / "a.tree.json")
    np.testing.assert_array_equal(load(tmp_path / "a.tree.json").predict(X), fitted.predict(X))


def test_arrays_work_where_all_columns_are_numbers():
    X, y = load_breast_cancer(return_X_y=True)
    schema = Schema(
        {f"x{j}": (0, float(2 ** np.ceil(np.log2(X[:, j].max() + 1)))) for j in range(30)},
        classes=[0, 1],
    )
    fitted = PrivateTreeClassifier(5.0, schema, testing_seed=1).fit(X, y)
    assert fitted.score(X, y) > 0.85
    assert fitted.to_sklearn().score(X, y) > 0.85


# ---- wrong use ----
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, "epsilon must be"),
        ({"epsilon": -1}, ValueError, "epsilon must be"),
        ({"epsilon": float("inf")}, ValueError, "epsilon must be"),
        ({"method": "magic"}, ValueError, "method must be one of"),
        ({"criterion": "x"}, ValueError, "criterion must be one of"),
        ({"budget": "x"}, ValueError, "budget must be one of"),
        ({"max_depth": 0}, ValueError, "max_depth"),
        ({"leaf_share": 1.5}, ValueError, "leaf_share"),
        ({"leaf_share": 0, "method": "greedy"}, ValueError, "leaf_share must be more than 0"),
        ({"public_rows": 0}, ValueError, "public_rows"),
        ({"ledger": "file"}, TypeError, "ledger must be a Ledger"),
        ({"schema": None}, TypeError, "needs bounds, categories and classes"),
    ],
)
def test_wrong_parameters_are_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        PrivateTreeClassifier(**{"schema": SCHEMA, "testing_seed": 0, **wrong}).fit(*frame(20))


def test_errors_about_rows_tell_no_number():
    X, y = frame(20)
    with pytest.raises(ValueError, match="different numbers of rows") as caught:
        model().fit(X, y[:-1])
    assert not any(character.isdigit() for character in str(caught.value))
    with pytest.raises(ValueError, match="lacks the column"):
        model().fit(X[["a"]], y)


def test_a_ledger_names_the_mechanism_of_private_releases(tmp_path):
    pytest.importorskip("opendp")
    ledger = Ledger(tmp_path / "l", 1.0)
    PrivateTreeClassifier(1.0, SCHEMA, ledger=ledger).fit(*frame(50, 0))
    assert ledger.entries[0].mechanism == "gibbs"


def test_a_seeded_tree_bears_a_mark_in_its_file(tmp_path):
    fitted = PrivateTreeClassifier(1.0, SCHEMA, testing_seed=0).fit(*frame(50, 0))
    path = tmp_path / "a.tree.json"
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        fitted.save(path)
    again = load(path)
    assert fitted.tree_.note == again.note == NOT_PRIVATE
    assert again == fitted.tree_
    assert NOT_PRIVATE in repr(again)
    assert NOT_PRIVATE in repr(pickle.loads(pickle.dumps(again)))
    assert again.prune().note == again.restrict([0]).note == NOT_PRIVATE
    save(again, path)  # and keeps it when it is handed on
    assert load(path).note == NOT_PRIVATE
    path.write_text(path.read_text("utf-8").replace(NOT_PRIVATE, "private"), "utf-8")
    with pytest.raises(ValueError, match="changed after saving"):
        load(path)


def test_a_private_tree_bears_no_mark(tmp_path):
    pytest.importorskip("opendp")
    path = tmp_path / "a.tree.json"
    PrivateTreeClassifier(1.0, SCHEMA).fit(*frame(50, 0)).save(path)
    assert load(path).note == ""
    assert "note" not in path.read_text("utf-8")


# ---- persons with several rows ----
def visits(n_persons=60, most=7, seed=0):
    """Rows of persons who came different numbers of times, in a mixed order."""
    rng = np.random.default_rng(seed)
    whose = rng.permutation(np.repeat(np.arange(n_persons), rng.integers(1, most, n_persons)))
    age = rng.uniform(0, 100, len(whose))
    return [[value] for value in age.tolist()], np.where(age > 50, "yes", "no"), whose


PERSONS = Schema(bounds={"age": (0, 100)}, classes=["no", "yes"])


@pytest.mark.parametrize("method", ["gibbs", "greedy", "topdown"])
def test_persons_are_protected_by_fewer_rows_at_less_epsilon_each(method, tmp_path):
    X, y, whose = visits()
    first = [k for k in range(len(whose)) if (whose[:k] == whose[k]).sum() < 3]
    ledger = Ledger(tmp_path / "persons.ledger", 3.0)
    model = PrivateTreeClassifier(
        3.0, PERSONS, method, testing_seed=1, ledger=ledger, rows_per_person=3
    ).fit(X, y, persons=whose)
    twin = PrivateTreeClassifier(1.0, PERSONS, method, testing_seed=1)
    assert model.tree_ == twin.fit([X[k] for k in first], y[first]).tree_
    assert ledger.spent == model.privacy_.epsilon == 3.0
    assert sum(model.privacy_.spent.values()) == pytest.approx(3.0)
    assert model.privacy_.relation == "add or remove one person with at most 3 rows"
    named = dataclasses.replace(model.privacy_, private=True).guarantee
    assert "of any one person, present or not" in named


def test_which_rows_of_a_person_are_kept_depends_on_nobody_else():
    X, y, whose = visits()
    kept = bound_rows(X, y, whose, 2)[0]
    for gone in np.unique(whose):
        others = np.flatnonzero(whose != gone)
        without = bound_rows([X[k] for k in others], y[others], whose[others], 2)[0]
        own = {X[k][0] for k in np.flatnonzero(whose == gone)}
        assert without == [row for row in kept if row[0] not in own]
        assert len(kept) - len(without) <= 2


def test_rows_of_nobody_are_left_out_and_equal_names_are_one_person():
    persons = [1, 1.0, "1", None, float("nan"), np.int64(1)]
    kept, labels = bound_rows([[k] for k in range(6)], list("abcdef"), persons, 1)
    assert (kept, labels.tolist()) == ([[0]], ["a"])


@pytest.mark.parametrize(
    ("persons", "n_persons"),
    [
        ([2**53, 2**53 + 1, np.int64(2**53 + 1), str(2**53 + 1)], 2),
        (["1e5", "100000", 100_000, "12e4", "5e400", "7e400"], 5),
        ([2**53, f"{2**53 + 1}.0", "2", "\u00b2", "\uff12"], 5),
        (["p", " p ", "e\u0301", "\xe9"], 2),
        (["", " ", None, pd.NA, pd.NaT], 0),
        ([1, 1.0, "1", "1.0", "01", True], 1),
        ([0.5, "0.5", 10**400, 10**400 + 1], 3),
    ],
)
def test_two_persons_have_two_names(persons, n_persons):
    """Rows of two persons under one name would depend on each other."""
    X = [[k] for k in range(len(persons))]
    kept = bound_rows(X, ["a"] * len(X), persons, 1)[0]
    assert len(kept) == n_persons


@pytest.mark.parametrize(
    ("most", "persons", "message"),
    [(3, None, "go together"), (None, [1] * 4, "go together"), (2, [1] * 3, "one person a row")],
)
def test_persons_must_be_given_for_each_row(most, persons, message):
    model = PrivateTreeClassifier(1.0, PERSONS, testing_seed=0, rows_per_person=most)
    with pytest.raises(ValueError, match=message):
        model.fit([[1], [2], [3], [4]], ["no", "yes"] * 2, persons=persons)


@pytest.mark.parametrize("method", ["gibbs", "greedy", "topdown"])
@pytest.mark.parametrize("persons", [None, [None] * 3])
def test_a_list_without_a_row_is_no_error(method, persons):
    """Else an error would tell that there is none; so it would if nobody's rows are left out."""
    most = None if persons is None else 2
    X, y = ([], []) if persons is None else ([[1], [2], [3]], ["no", "yes", "no"])
    model = PrivateTreeClassifier(1.0, PERSONS, method, testing_seed=0, rows_per_person=most)
    assert model.fit(X, y, persons=persons).n_features_in_ == 1
