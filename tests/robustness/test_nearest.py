"""Certificates equal a slow, obvious one, for every kind of model, column and noise."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from steadytree._base import parallel
from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.robustness.certify import certificate_of
from steadytree.robustness.perturbation import Perturbation
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.models.scorecards import random_card
from tests.models.trees import random_rows, random_tree, typed_rows
from tests.robustness.brute_force import Raw, around, frame_of, least_move
from tests.robustness.pipeline_cases import pipeline_case
from tests.robustness.reference_attack import random_perturbation
from tests.robustness.test_certify import whole_where_declared
from tests.robustness.test_certify_scorecards import random_rows_of_card

ROWS = 5


def raw_columns(space, thresholds):
    """Raw columns of a model; `thresholds` has the values to try of each column of numbers."""
    found = {}
    for j, column in enumerate(space):
        if column.is_categorical:
            found[column.name] = Raw("category", categories=list(column.categories))
        else:
            kind = "whole" if column.kind in ("integer", "binary") else "number"
            bounds = (0.0, 1.0) if column.kind == "binary" else (-np.inf, np.inf)
            found[column.name] = Raw(kind, list(thresholds[j]), bounds=bounds)
    return found


def dicts(frame):
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in frame.astype(object).to_dict("records")
    ]


def tree_case(rng):
    """A tree over numbers, whole numbers, flags and categories, some missing or unknown."""
    tree = random_tree(
        rng,
        n_leaves=int(rng.integers(2, 7)),
        n_numeric=int(rng.integers(1, 3)),
        n_categorical=int(rng.integers(0, 2)),
        n_classes=int(rng.integers(2, 4)),
        single_precision=bool(rng.integers(2)),
    )
    frame = whole_where_declared(tree, random_rows(rng, tree, ROWS))
    ends = [
        [end for t in tree.threshold[tree.feature == j] for end in around(t, tree.single_precision)]
        for j in range(len(tree.space))
    ]
    return tree, frame, raw_columns(tree.space, ends), random_perturbation(rng, tree.space, True)


def score_case(rng):
    card = random_card(
        rng,
        n_conditions=int(rng.integers(1, 5)),
        n_numeric=int(rng.integers(1, 3)),
        n_categorical=int(rng.integers(0, 2)),
        n_classes=int(rng.integers(2, 4)),
    )
    frame = typed_rows(card.space, random_rows_of_card(rng, card, ROWS))
    noise = random_perturbation(rng, card.space, True)
    return card, frame, raw_columns(card.space, card_ends(card)), noise


def card_ends(card):
    """Values beside the thresholds of a risk score, by column."""
    found = [[] for _ in card.space]
    for condition in card.conditions:
        if np.isfinite(condition.threshold):
            beside = np.nextafter(condition.threshold, -np.inf)
            found[condition.feature] += [condition.threshold, beside]
    return found


def fitted_tree(rng, frame, n_classes=2):
    y = rng.integers(0, n_classes, len(frame))
    return DecisionTreeClassifier(max_leaf_nodes=6, random_state=0).fit(frame, y)


def sklearn_ends(model, frame):
    inside = model.tree_
    return {
        name: [end for t in inside.threshold[inside.feature == j] for end in around(t, True)]
        for j, name in enumerate(frame.columns)
    }


def any_noise(rng, names, counted=True, **others):
    """A perturbation of some columns of numbers, one-sided, bounded or counted."""
    kinds = ["radius", "step_cost", *(["change_cost"] if counted else [])]
    kind = str(rng.choice(kinds))
    if kind == "change_cost" and rng.integers(2):
        others["radius"] = {name: float(rng.choice([0.4, 1.0, 2.5])) for name in names}
    given = {name: float(rng.choice([0.4, 1.0, 2.5])) for name in names}
    ways = {name: str(rng.choice(["up", "down", "both", "both"])) for name in names}
    bounds = {name: (-1.5, 2.5) for name in names if rng.random() < 0.2}
    grouped = {name for group in others.get("one_hot", ()) for name in group}
    for name in grouped:
        given[name] = 0.7
        ways.pop(name, None)
        bounds.pop(name, None)
        if "radius" in others:
            others["radius"][name] = 1.2
    return Perturbation(**{kind: given}, direction=ways, bounds=bounds, budget=1.0, **others)


def one_hot_case(rng):
    """Dummies of one or two columns beside a number, of floats, integers or bools."""
    n = 40
    frame = pd.DataFrame({"a": rng.normal(size=n).round(1)})
    groups = []
    for stem in ("job", "town")[: rng.integers(1, 3)]:
        codes, names = rng.integers(0, 3, n), [f"{stem}_{k}" for k in range(3)]
        groups.append(names)
        for k, name in enumerate(names):
            frame[name] = (codes == k).astype([float, int, bool][rng.integers(3)])
    others = {}
    if rng.integers(3) == 0:  # missing as a whole
        names = groups[0]
        frame[names] = frame[names].astype(float)
        frame.loc[rng.random(n) < 0.3, names] = np.nan
        others["missing_cost"] = dict.fromkeys(names, 0.6) if rng.integers(2) else {}
    noise = any_noise(rng, list(frame.columns), one_hot=groups, **others)
    known = frame.drop(columns=[group[-1] for group in groups if rng.integers(3) == 0])
    kind = rng.integers(4)
    if kind == 0:
        card = RiskScoreClassifier(noise=0, max_conditions=4, random_state=0)
        card = card.fit(known, (frame["a"] > 0.3) | (frame["job_0"] == 1)).card_
        return card, frame[:ROWS], raw_columns(card.space, card_ends(card)), noise
    if kind == 1:
        y = (frame["a"] > 0.3) ^ (frame["job_0"] == 1) ^ (rng.random(n) < 0.2)
        tree = StableTreeClassifier(3, 0, random_state=0).fit(known, y).tree_
        ends = [list(tree.threshold[tree.feature == j]) for j in range(len(tree.space))]
        ends = [[end for t in own for end in around(t, False)] for own in ends]
        return tree, frame[:ROWS], raw_columns(tree.space, ends), noise
    model = fitted_tree(rng, known, int(rng.integers(2, 4)))
    raws = {name: Raw("number", ends) for name, ends in sklearn_ends(model, known).items()}
    return model, frame[:ROWS], raws, noise


def together_case(rng):
    """Two or three columns that move together, of whole numbers or any, beside others."""
    n, whole = 40, bool(rng.integers(2))
    frame = pd.DataFrame(rng.normal(size=(n, 4)) * 2, columns=list("abcd")).round(1)
    group = list("abc")[: rng.integers(2, 4)]
    if whole:
        frame[group] = frame[group].round().astype(int)
    elif rng.integers(2):
        frame.loc[::3, "a"] = np.nan
    flags = ["job_0", "job_1"] if rng.integers(3) == 0 else []
    for k, name in enumerate(flags):
        frame[name] = (np.arange(n) % 2 == k).astype(float)
    model = fitted_tree(rng, frame, int(rng.integers(2, 4)))
    ends = sklearn_ends(model, frame)
    raws = {
        name: Raw("whole" if whole and name in group else "number", ends[name]) for name in frame
    }
    radius = {name: 1.7 if whole else float(rng.choice([0.5, 1.3])) for name in frame}
    way = str(rng.choice(["up", "both"]))
    bounds = {"d": (-1.0, 1.0)} if rng.integers(2) else {"a": (-3.0, 2.0)}
    radius.update(dict.fromkeys(flags, 0.8))
    noise = Perturbation(
        radius=radius,
        together=[group],
        one_hot=[flags] if flags else [],
        direction=dict.fromkeys(group, way),
        bounds=bounds,
    )
    return model, frame[:ROWS], raws, noise


CASES = {
    "tree": tree_case,
    "score": score_case,
    "one-hot": one_hot_case,
    "together": together_case,
    "pipeline": pipeline_case,
}


@pytest.mark.parametrize("case", [tree_case, score_case, together_case])
def test_threads_find_the_same_certificates(case, monkeypatch):
    monkeypatch.setattr(parallel, "LEAST_WORK", 1)
    model, frame, raws, noise = case(np.random.default_rng(8))
    labels = np.asarray(model.predict(frame_of(frame.astype(object), raws)))
    alone = certificate_of(model, frame, labels, noise)
    with parallel.allow_threads(3):
        shared = certificate_of(model, frame, labels, noise)
    for name in ("distance", "witness", "answer"):
        np.testing.assert_array_equal(getattr(shared, name), getattr(alone, name))


def check_case(case, seed):
    """Distances and witnesses of a few rows of a random case."""
    rng = np.random.default_rng(seed)
    model, frame, raws, noise = CASES[case](rng)
    predicted = np.asarray(model.predict(frame_of(frame.astype(object), raws)))
    found = certificate_of(model, frame, predicted, noise)
    expected = [least_move(model, row, raws, noise) for row in dicts(frame)]
    np.testing.assert_allclose(found.distance, expected, rtol=1e-9, atol=1e-9)
    for row in np.flatnonzero(np.isfinite(found.distance)):
        assert found.classes[found.other[row]] != predicted[row]
        for group in noise.one_hot:  # possible people
            at = [k for k, name in enumerate(found.space.names) if name in group]
            held, lacks = found.witness[row, at], len(group) - len(at)
            assert set(held) <= {0.0, 1.0} or np.isnan(held).all()
            assert 1 - lacks <= held.sum() <= 1 or np.isnan(found.rows[row, at]).all()
    return len(frame)


def test_noise_may_name_whole_columns_that_the_model_lacks():
    frame = pd.DataFrame({"a": [0, 1, 2, 3], "b": [0.5, 0, 0, 0]})
    model = DecisionTreeClassifier(max_depth=1).fit(frame[["a"]], [0, 0, 1, 1])
    noise = Perturbation(radius={"a": 1.0, "b": 1.0}, whole=["a", "b"])
    found = certificate_of(model, frame, [0, 0, 1, 1], noise)
    assert found.distance.tolist() == [2.0, 1.0, 1.0, 2.0]
    assert found.unused == ("b",)


def test_a_one_hot_column_counts_as_used_where_its_group_is():
    frame = pd.DataFrame({"clerk": [0, 0, 1, 1], "miner": [1, 1, 0, 0], "age": [3, 4, 5, 6]})
    model = DecisionTreeClassifier(max_depth=1).fit(frame[["clerk"]], [0, 0, 1, 1])
    radius, truth = dict.fromkeys(frame, 1.0), [0, 0, 1, 1]
    alone = certificate_of(model, frame, truth, Perturbation(radius=radius))
    assert alone.unused == ("miner", "age")
    group = Perturbation(radius=radius, one_hot=[["clerk", "miner"]])
    assert certificate_of(model, frame, truth, group).unused == ("age",)


@pytest.mark.parametrize("case", CASES)
def test_certificates_equal_brute_force(case):
    """200 certificates; those of pipelines take longest."""
    cases = 4 if case == "pipeline" else 9
    assert sum(check_case(case, seed) for seed in range(cases)) == ROWS * cases


# of 100 certificates each; a pipeline is the slowest to ask
BLOCKS = {"tree": 60, "score": 60, "one-hot": 40, "together": 32, "pipeline": 8}


@pytest.mark.heavy
@pytest.mark.parametrize(("case", "block"), [(c, k) for c, n in BLOCKS.items() for k in range(n)])
def test_20_000_certificates_equal_brute_force(case, block):
    assert sum(BLOCKS.values()) == 200
    for seed in range(1000 + 20 * block, 1020 + 20 * block):
        assert check_case(case, seed) == ROWS
