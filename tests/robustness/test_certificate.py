"""Notes, weights and words of certificates."""

import inspect
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.robustness.certify import certificate_of, certify
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.robust_tree import RobustTreeClassifier
from steadytree.robustness.shift import shift_accuracy
from steadytree.stability.stable_tree import StableTreeClassifier

DOORS = (certify, certificate_of)


def workers():
    ages = np.arange(40.0) * 7 % 13 + 20
    frame = pd.DataFrame({"job": ["clerk"] * 20 + ["miner"] * 20, "age": ages})
    return frame, np.where(frame["job"] == "miner", "ill", "well")


def test_an_unknown_category_is_named_and_may_turn_into_a_known_one():
    frame, y = workers()
    model = StableTreeClassifier(1, 0, random_state=0).fit(frame, y)
    rows = pd.DataFrame({"job": ["Clerk ", "miner", None], "age": [30.0, 30.0, 30.0]})
    truth = model.predict(rows)
    with pytest.warns(UserWarning, match=r"column 'job': the model does not know 'Clerk ' \(1 row"):
        found = certify(model, rows, truth, Perturbation(radius={"job": 1}))
    assert found.distance.tolist() == [1.0, 1.0, np.inf]  # what is missing stays missing
    assert "job from 'Clerk '" in str(found.counterexamples()[0])
    frozen = certificate_of(model, rows, truth, Perturbation(radius={"job": 1}, frozen=["job"]))
    assert np.isinf(frozen.distance).all()
    named = Perturbation(radius={"job": 1}, missing_cost={"job": 0.25})
    assert certificate_of(model, rows, truth, named).distance.tolist() == [1.0, 1.0, 0.25]
    # an unknown category stays with its certainty, and turns into either known one else
    chance = shift_accuracy(model, rows, truth, {"job": 0.8}, repeats=1).stays_right
    np.testing.assert_allclose(chance, [0.9, 0.8, 1.0])


def test_noise_below_one_step_is_warned_of():
    X = np.arange(8.0)[:, None]
    model = StableTreeClassifier(1, 0, random_state=0).fit(X, X[:, 0] > 3)
    with pytest.warns(UserWarning, match="less than one step of 'x0'"):
        found = certify(model, X, X[:, 0] > 3, Perturbation(radius={"x0": 0.6}))
    assert found.worst_case_accuracy == 1.0
    assert len(found.notes) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certify(model, X, X[:, 0] > 3, Perturbation(radius={"x0": 1.0}))
        # fractions may occur where that is said, and in a row that holds one
        free = certify(model, X, X[:, 0] > 3, Perturbation(radius={"x0": 0.6}, whole=[]))
    assert free.worst_case_accuracy < 1.0
    frame, y = workers()
    tree = StableTreeClassifier(1, 0, random_state=0).fit(frame, y)
    with pytest.warns(UserWarning, match="less than one step of 'job'"):
        certify(tree, frame, y, Perturbation(radius={"job": 0.5}))


def test_a_column_that_was_whole_in_training_takes_later_fractions():
    X = np.arange(8.0)[:, None]
    model = StableTreeClassifier(1, 0, random_state=0).fit(X, X[:, 0] > 3)
    later = np.array([[2.75], [3.0], [4.5]])
    found = certificate_of(model, later, later[:, 0] > 3, Perturbation(radius={"x0": 1.0}))
    at = model.tree_.threshold[0]
    moved = [at - 2.75, 1.0, 4.5 - at]  # to any number but from 3, which takes a whole step
    np.testing.assert_allclose(found.distance, moved, atol=1e-12)


FORMS = {
    "0/1": lambda flags: flags.astype(float),
    "integers": lambda flags: flags.astype(int),
    "bool": lambda flags: flags > 0,
    "text": lambda flags: np.where(flags > 0, "yes", "no"),
}


@pytest.mark.parametrize("radius", [0.4, 1.0, 3.0])
def test_one_fact_in_any_coding_has_one_certificate_and_one_law_of_shifts(radius):
    rng = np.random.default_rng(0)
    flags, size = rng.integers(0, 2, 80), rng.normal(size=80)
    y = (flags + size > 0.5).astype(int)
    found = {}
    for name, form in FORMS.items():
        X = pd.DataFrame({"smokes": form(flags), "size": size})
        model = StableTreeClassifier(3, 0, random_state=0).fit(X, y)
        noise = Perturbation(radius={"smokes": radius, "size": 0.1})
        distance = certificate_of(model, X, y, noise).distance
        chance = shift_accuracy(model, X, y, {"smokes": 0.8}, repeats=1).stays_right
        found[name] = distance, chance
    for distance, chance in found.values():
        np.testing.assert_allclose(distance, found["text"][0])
        np.testing.assert_allclose(chance, found["text"][1])


def test_a_scikit_learn_tree_shifts_flags_as_flags():
    flags = np.arange(40) % 2
    for form in ("0/1", "integers", "bool"):
        X = pd.DataFrame({"smokes": FORMS[form](flags)})
        model = DecisionTreeClassifier().fit(X, flags)
        found = shift_accuracy(model, X, flags, {"smokes": 0.8}, repeats=1)
        assert found.average == pytest.approx(0.8)
        stepped = shift_accuracy(model, X, flags, {"smokes": 0.8}, repeats=1, flip_flags=False)
        assert stepped.average == pytest.approx(0.9)


def exhaustive_loss(distance, right, weight, limit):
    """Most weight lost, over all numbers of copies of each row."""
    best, rows = 0.0, np.flatnonzero(right & np.isfinite(distance))
    for copies in itertools.product(*(range(int(weight[row]) + 1) for row in rows)):
        if (np.array(copies) * distance[rows]).sum() <= limit:
            best = max(best, sum(copies))
    return best


def test_a_report_searches_as_long_as_a_certificate():
    found = {inspect.signature(one).parameters["max_steps"].default for one in DOORS}
    assert found == {10_000}  # as the docstring says


@pytest.mark.parametrize("scope", ["row", "mean", "total"])
def test_weights_count_rows_several_times(scope):
    rng = np.random.default_rng(3)
    for _ in range(20):
        X = rng.normal(size=(6, 2)).round(2)
        y = rng.integers(0, 2, 6)
        model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        weight = rng.integers(0, 4, 6).astype(float)
        weight[0] += 1
        noise = Perturbation(step_cost=1.0, budget=float(rng.uniform(0, 1)), scope=scope)
        found = certify(model, X, y, noise, sample_weight=weight)
        copies = np.repeat(np.arange(6), weight.astype(int))
        each = certify(model, X[copies], y[copies], noise)
        assert found.worst_case_accuracy == pytest.approx(each.worst_case_accuracy)
        assert found.accuracy == pytest.approx(each.accuracy)
        assert found.baseline == pytest.approx(each.baseline)
        assert found.baseline == pytest.approx(max(np.bincount(y[copies])) / len(copies))
        assert found.accuracy == pytest.approx(np.mean(model.predict(X[copies]) == y[copies]))
        assert found.certified_accuracy(0.2) == pytest.approx(each.certified_accuracy(0.2))
        sizes, shares = found.curve()
        for size, share in zip(sizes, shares, strict=True):
            assert each._share(each.right & (each.distance > size)) == pytest.approx(share)
        both = [one.measurements()[-1] for one in (found, each)]
        assert both[0].name == both[1].name
        if both[0].name == "median distance":
            half = sorted(each.distance[each.right])
            middle = half[(len(half) - 1) // 2], half[len(half) // 2]
            assert [one.value for one in both] == [pytest.approx(sum(middle) / 2)] * 2
        if scope != "row":
            total = weight.sum()
            limit = noise.spend(total)
            lost = exhaustive_loss(found.distance, found.right, weight, limit)
            kept = weight[found.right].sum() - lost
            assert found.worst_case_accuracy == pytest.approx(kept / total)


def test_a_row_at_exactly_the_size_is_lost_and_sizes_are_checked():
    X = np.array([[0.0], [1.0], [2.0], [4.0], [5.0]])
    y = X[:, 0] > 3
    model = DecisionTreeClassifier().fit(X, y)  # at 3: moves of 3, 2, 1, 1 and 2
    noise = Perturbation(step_cost=1.0, budget=2.5)
    found = certify(model, X, y, noise)
    np.testing.assert_allclose(found.distance, [3, 2, 1, 1, 2], atol=1e-6)
    at = sorted(found.distance)
    for size in (0, 0.0, *at, 2.5, np.int64(2), np.float32(1.5)):
        expected = sum(distance > size for distance in at) / 5
        assert found.certified_accuracy(size) == pytest.approx(expected, abs=1e-12)
    assert found.certified_accuracy() == found.certified_accuracy(2.5) == 1 / 5
    for wrong in (-0.1, np.inf, np.nan, "1", [1]):
        with pytest.raises(ValueError, match="size must be a finite number of at least 0"):
            found.certified_accuracy(wrong)
    shared = certify(model, X, y, Perturbation(step_cost=1.0, budget=2.0, scope="mean"))
    with pytest.raises(ValueError, match="no single size follows from it"):
        shared.certified_accuracy()


def test_weights_agree_with_the_robust_tree():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, (30, 2)), rng.integers(0, 2, 30)
    for weight in (rng.integers(1, 4, 30).astype(float), rng.uniform(0.1, 2, 30)):
        noise = Perturbation(step_cost=1.0, budget=0.4, scope="mean")
        model = RobustTreeClassifier(2, noise, random_state=0).fit(X, y, sample_weight=weight)
        found = certify(model, X, y, noise, sample_weight=weight)
        assert found.worst_case_accuracy * weight.sum() == pytest.approx(model.objective_)


def test_wrong_weights_are_refused():
    model = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    for weight, message in (([1.0], "one number a row"), ([1.0, -1.0], "not negative")):
        with pytest.raises(ValueError, match=message):
            certify(model, [[0.0], [1.0]], [0, 1], Perturbation(radius=1.0), sample_weight=weight)


def test_noise_on_columns_that_the_model_does_not_use_is_told():
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [5.0, 5.0, 5.0, 5.0]})
    model = DecisionTreeClassifier().fit(X, [0, 0, 1, 1])
    found = st.certify(model, X, [0, 0, 1, 1], Perturbation(radius={"a": 0.1, "b": 1.0}))
    assert found.unused == ("b",)
    assert "the model does not use 'b': noise there changes nothing" in str(found)
    assert found.to_dict()["unused"] == ["b"]
    X["c"] = 1.0 - X["b"].eq(5.0)
    X["b"] = 1.0 - X["c"]
    group = Perturbation(radius={"a": 0.1, "b": 1.0, "c": 1.0}, one_hot=[["b", "c"]])
    used = DecisionTreeClassifier().fit(X, [0, 0, 1, 1])
    assert st.certify(used, X, [0, 0, 1, 1], group).unused == ("b", "c")
    with pytest.raises(ValueError, match="radius names 'd', but the columns are 'a', 'b', 'c'"):
        st.certify(used, X, [0, 0, 1, 1], Perturbation(radius={"d": 0.1}))


def test_one_hot_columns_that_are_not_declared_are_warned_of():
    rng = np.random.default_rng(0)
    frame = pd.get_dummies(pd.DataFrame({"job": rng.choice(["a", "b", "c"], 40)})).astype(int)
    y = frame["job_b"].to_numpy()
    model = DecisionTreeClassifier(random_state=0).fit(frame, y)
    noise = Perturbation(radius=1.0)
    with pytest.warns(UserWarning, match="'job_a', 'job_b', 'job_c' look like one-hot columns"):
        certify(model, frame, y, noise)
    declared = Perturbation(radius=1.0, one_hot=[["job_a", "job_b", "job_c"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = certify(model, frame, y, declared)
    assert (found.witness.sum(axis=1) == 1).all()
    two = frame[:3].assign(job_a=1, job_b=1, job_c=0)
    with pytest.raises(ValueError, match="row 0 holds 1, 1, 0 in the one-hot group 'job_a'"):
        certify(model, two, y[:3], declared)
    uneven = Perturbation(
        radius={"job_a": 1.0, "job_b": 2.0, "job_c": 1.0}, one_hot=declared.one_hot
    )
    with pytest.raises(ValueError, match="need one common radius or cost"):
        certify(model, frame, y, uneven)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": 1.0, "one_hot": [["a"]]}, "one_hot must be a list of lists of at least two"),
        ({"radius": 1.0, "together": "ab"}, "together must be a list of lists"),
        ({"radius": 1.0, "together": [["a", "b"], ["b", "c"]]}, "names 'b' more than once"),
        ({"step_cost": 1.0, "together": [["a", "b"]]}, "together needs radius alone"),
        ({"radius": 1.0, "together": [["a", "b"]], "one_hot": [["b", "c"]]}, "'b' more than once"),
        ({"radius": 1.0, "step_cost": 1.0, "change_cost": 1.0}, "give one of radius and step_cost"),
        ({"change_cost": -1.0}, "change_cost of 'every feature' must be a number of at least 0"),
    ],
)
def test_wrong_groups_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Perturbation(**arguments)


def test_columns_that_cannot_move_together_are_refused():
    frame = pd.DataFrame({"a": [0.5, 1.5, 2.5, 3.5], "b": [1, 2, 3, 4], "c": list("xyxy")})
    y = [0, 0, 1, 1]
    model = StableTreeClassifier(1, 0, random_state=0).fit(frame, y)
    for group, message in (
        (["a", "b"], "must all move in whole steps"),
        (["a", "c"], "must hold numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            certify(model, frame, y, Perturbation(radius=1.0, together=[group]))
    groups = {"together": [["a", "b"]], "whole": ["a", "b"]}
    noise = Perturbation(radius=1.0, missing_cost={"a": 1}, **groups)
    with pytest.raises(ValueError, match="can have no missing_cost"):
        certify(model, frame.round(), y, noise)
    for still in ({"radius": {"a": 1, "b": 0}}, {"radius": 1.0, "frozen": ["b"]}):
        with pytest.raises(ValueError, match="all need a radius above 0, and none may be frozen"):
            certify(model, frame.round(), y, Perturbation(**still, **groups))
    with pytest.raises(ValueError, match="change_cost, one_hot or together"):
        RobustTreeClassifier(1, Perturbation.wrong_values(1)).fit(frame[["a"]], y)


def test_wrong_values_are_counted():
    X = np.array([[0.0, 0.0, 0.0]])
    frame = pd.DataFrame(np.eye(3) * 9, columns=list("abc"))
    model = DecisionTreeClassifier(random_state=0).fit(
        np.vstack([X, frame, frame.sum()]), [0] * 4 + [1]
    )
    noise = Perturbation.wrong_values(1)
    found = certify(model, X, [0], noise)
    assert found.distance[0] in (1.0, 2.0, 3.0)
    near = Perturbation.wrong_values(3, radius=0.5)
    assert np.isinf(certify(model, X, [0], near).distance[0])
    assert Perturbation.from_dict({"wrong_values": 1}) == noise
    with pytest.raises(ValueError, match="wrong_values sets change_cost and budget itself"):
        Perturbation.from_dict({"wrong_values": 1, "budget": 2})
    with pytest.raises(TypeError, match="wrong_values must be a whole number"):
        Perturbation.wrong_values(1.5)
    with pytest.raises(ValueError, match="a whole number of at least 1, got 0"):
        Perturbation.wrong_values(0)


def test_unseen_categories_that_a_pipeline_sends_elsewhere_are_refused():
    frame, y = workers()
    frame["job"] = np.where(np.arange(40) % 3 == 0, None, frame["job"])
    y = np.where(frame["job"].isna(), "ill", "well")  # what is missing is ill, what is unseen not
    steps = make_pipeline(
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        DecisionTreeClassifier(random_state=0),
    ).fit(frame[["job"]], y)
    rows = pd.DataFrame({"job": ["clerk", "nurse"]})
    assert steps.predict(rows).tolist() == ["well", "well"]
    with pytest.raises(ValueError, match="row 1 holds a category that was not in training"):
        certify(steps, rows, ["well", "well"], Perturbation(radius=1.0))
    mixed = make_pipeline(StandardScaler(), PCA(1), DecisionTreeClassifier()).fit(
        [[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]], [0, 1, 1]
    )
    with pytest.raises(TypeError, match=r"step 'pca' \(PCA\) cannot be followed back"):
        certify(mixed, [[0.0, 1.0]], [0], Perturbation(radius=1.0))
