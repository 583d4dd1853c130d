import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree._base.exceptions import UnsuitableDataError
from steadytree.comparison.compare import MOST_ROWS, _seeded, compare_learners
from steadytree.comparison.learners import Settings, make_learner
from steadytree.data.dataset import Sampled
from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import usual_perturbation
from steadytree.stability.steady_tree import SteadyTreeClassifier

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"age": rng.normal(50, 9, 150), "town": rng.choice(["Ulm", "Bonn"], 150), "n": 1.0}
    )
    X["n"] = rng.integers(0, 30, 150).astype(float)
    X.loc[::13, "age"] = np.nan
    return X, np.where(X["n"] + rng.normal(0, 5, 150) > 15, "ill", "well")


@pytest.fixture(scope="module")
def found(frame):
    models = ["cart", "stable", "pareto", "score", "private"]
    return st.compare(models, *frame, n_folds=3, max_depth=3)


def test_every_learner_is_measured_on_text_and_missing_values(found):
    assert [one.name for one in found.results] == ["cart", "stable", "pareto", "score", "private"]
    for one in found.results:
        assert {"accuracy", "size", "changed answers", "worst-case accuracy"} <= set(
            one.measurements
        )
        assert one.measurements["worst-case accuracy"].value <= one.measurements["accuracy"].value
        low, high = one.measurements["accuracy"].interval
        assert low <= one.measurements["accuracy"].value <= high
    assert found["private"].epsilon == 1.0
    assert found["cart"].epsilon is None
    assert found["cart"].exact_sensitivity
    assert "retraining distance" not in found["score"].measurements


@pytest.mark.filterwarnings("ignore:the noise is less than one step")
def test_numbers_are_those_of_the_public_functions(frame, found):
    X, y = frame
    settings = Settings(max_depth=3)
    cart = make_learner("cart", X, y, settings)
    exact = st.average_sensitivity(cart, X, y)
    assert found["cart"].measurements["sensitivity"].value == exact.value
    from sklearn.model_selection import StratifiedKFold

    parts = StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)
    models, right, worst, half, noise = [], 0, 0, 0, usual_perturbation(X)
    assert noise.scope == "row"
    for fit, held in parts:
        models.append(make_learner("cart", X, y, settings).fit(X.iloc[fit], y[fit]))
        right += (models[-1].predict(X.iloc[held]) == y[held]).sum()
        certificate = certify(models[-1], X.iloc[held], y[held], noise)
        worst += certificate.worst_case_accuracy * len(held)
        half += (certificate.right & (certificate.distance > noise.budget / 2)).sum()
    measurements = found["cart"].measurements
    assert measurements["accuracy"].value == right / len(y)
    assert measurements["worst-case accuracy"].value == pytest.approx(worst / len(y))
    assert measurements["certified accuracy"].value == pytest.approx(half / len(y))
    assert worst < half < right
    answers = [model.predict(X) for model in models]
    changed = [(answers[a] != answers[b]).mean() for a, b in ((0, 1), (0, 2), (1, 2))]
    assert measurements["changed answers"].value == pytest.approx(np.mean(changed))
    leaves = [model.tree_.n_leaves for model in models]
    assert measurements["size"].value == pytest.approx(np.mean(leaves))
    assert found.baseline == max(np.mean(y == "ill"), np.mean(y == "well"))
    apart = st.tree_distance(models, space=X)[np.triu_indices(3, 1)]
    assert measurements["retraining distance"].value == pytest.approx(apart.mean())


def test_noise_for_privacy_differs_between_folds(frame):
    private = make_learner("private", *frame, Settings(seed=4))
    seeds = [_seeded(private, fold).testing_seed for fold in range(3)]
    assert len({private.testing_seed, *seeds}) == 4
    assert _seeded(make_learner("cart", *frame, Settings(seed=4)), 1).random_state == 4


def test_own_learners_and_scikit_learn_trees_take_part():
    X, y = load_iris(return_X_y=True, as_frame=True)
    models = {"mine": DecisionTreeClassifier(max_depth=2, random_state=0)}
    with pytest.raises(ValueError, match="could not convert"):
        st.compare(models, X.assign(town="Ulm"), y, n_folds=3)
    found = st.compare(models, X, y, n_folds=3)
    assert found["mine"].measurements["accuracy"].value > 0.9
    assert not found["mine"].exact_sensitivity


def test_shows_itself(found, tmp_path):
    assert "cart" in str(found)
    assert repr(found) == "Comparison(cart, stable, pareto, score, private; 3 folds)"
    assert found._repr_html_().startswith("<iframe")
    found.write(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text("utf-8")
    assert page.count("<figure>") == 3
    assert json.dumps(found.to_dict(), allow_nan=False)
    assert pd.DataFrame(found.columns()).shape[0] == 5


def test_names_are_escaped():
    X, y = load_iris(return_X_y=True)
    learner = st.StableTreeClassifier(max_depth=1, random_state=0)
    found = st.compare({SCRIPT: learner, "b": learner}, X, y, n_folds=2)
    assert SCRIPT not in found.html


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        (["luck"], {}, "learners must be some of steady, cart"),
        ([], {}, "learners must be some of"),
        ({}, {}, "names no learner"),
        (["cart"], {"n_folds": 1}, "n_folds must be a whole number from 2 to 20"),
    ],
)
def test_wrong_use_is_refused(frame, models, options, message):
    with pytest.raises(ValueError, match=message):
        st.compare(models, *frame, **options)


def test_rare_classes_are_refused(frame):
    X, y = frame
    rare = np.where(np.arange(len(y)) == 3, "rare", y)
    with pytest.raises(ValueError, match="'rare' has 1"):
        st.compare(["cart"], X, rare)
    with pytest.raises(ValueError, match="only one class, 'same'"):
        st.compare(["cart"], X, np.full(len(y), "same"))


def test_large_data_are_sampled_and_said_so():
    rng = np.random.default_rng(0)
    y = (rng.random(20_000) < 0.1).astype(int)
    sample = Sampled.of(rng.random((20_000, 2)), y, MOST_ROWS)
    assert sample.features.n_rows == MOST_ROWS
    assert sample.labels.mean() == pytest.approx(y.mean(), abs=1e-3)
    assert sample.note == "Measured on 5,000 of 20,000 rows, drawn by chance."


def test_wide_whole_numbers_are_no_hindrance_to_the_robust_learner():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.integers(0, 6_000, 120), "children": rng.integers(0, 5, 120)})
    y = np.where(X["income"] > 2_500, "yes", "no")
    learner = make_learner("robust", X, y, Settings(time_limit=600.0)).fit(X, y)
    assert learner.score(X, y) > 0.8
    assert learner.proven_


class Failing(DecisionTreeClassifier):
    """Fails when it is fitted, with what it was told to."""

    def __init__(self, error=None):
        super().__init__()
        self.error = error

    def fit(self, X, y):
        raise self.error


def test_a_learner_that_refuses_the_rows_is_left_out_and_named(frame):
    X, y = frame
    picky = Failing(UnsuitableDataError("it asks too much of me."))
    models = {"cart": DecisionTreeClassifier(max_depth=2, random_state=0), "picky": picky}
    numbers = X[["n"]]
    found = st.compare(models, numbers, y, n_folds=2)
    assert [one.name for one in found.results] == ["cart"]
    assert found.note == "Left out: picky, since it asks too much of me."
    assert "Left out: picky" in str(found)
    with pytest.raises(ValueError, match="it asks too much of me"):
        st.compare({"picky": picky}, numbers, y, n_folds=2)


def test_a_fault_is_not_taken_for_a_refusal(frame):
    X, y = frame
    cart = DecisionTreeClassifier(max_depth=2, random_state=0)
    broken = Failing(ValueError("operands could not be broadcast"))
    with pytest.raises(ValueError, match="could not be broadcast"):
        st.compare({"cart": cart, "broken": broken}, X[["n"]], y, n_folds=2)


def test_tags_tell_who_does_not_take_text(frame):
    X, y = frame
    ours = st.StableTreeClassifier(max_depth=2, random_state=0)
    models = {"theirs": DecisionTreeClassifier(max_depth=2, random_state=0), "ours": ours}
    found = st.compare(models, X, y, n_folds=2)
    assert [one.name for one in found.results] == ["ours"]
    assert found.note.startswith("Left out: theirs, since could not convert string to float")


def test_many_categories_do_not_leave_the_robust_learner_out():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"code": rng.choice([f"c{k}" for k in range(90)], 400)})
    X = X.assign(**{f"code{k}": rng.permutation(X["code"]) for k in range(8)})
    y = rng.integers(0, 2, 400)
    found = st.compare(["cart", "robust"], X, y, n_folds=2, max_depth=2)
    assert [one.name for one in found.results] == ["cart", "robust"]


def test_more_questions_than_a_private_tree_can_choose_from_are_a_refusal():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"code{k}": rng.permutation(400).astype(str) for k in range(60)})
    with pytest.raises(UnsuitableDataError, match="the schema gives 24,000 candidate splits"):
        st.compare(["private"], X, rng.integers(0, 2, 400), n_folds=2)


def test_a_model_of_these_rows_is_not_fitted_again():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    settings = Settings(2)
    own = SteadyTreeClassifier(random_state=0).fit(X, y)
    other = SteadyTreeClassifier(4, random_state=0).fit(X, y)
    asked = (["steady"], X, y, settings, 2)
    plain = compare_learners(*asked)
    known = compare_learners(*asked, fitted={"steady": own})
    assert known["steady"].model is own
    unlike = compare_learners(*asked, fitted={"steady": other, "cart": own})
    assert unlike["steady"].model not in (own, other)  # of other settings
    for found in (known, unlike):
        figures = [one.to_dict()["readings"] for one in (found["steady"], plain["steady"])]
        for one in figures:
            del one["fit time"]
        assert figures[0] == figures[1]
