"""Certificates of cards are exact: every combination of values that could matter is tried."""

import itertools

import numpy as np
import pytest

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.condition import Condition
from steadytree.models.scorecard import Scorecard
from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import Perturbation
from tests.models.scorecards import random_card, random_rows_of_card
from tests.models.trees import typed_rows
from tests.riskscore.test_risk_score import patients
from tests.robustness.reference_attack import random_perturbation
from tests.robustness.test_certify import allowed_of, cost_of, reachable

# noise of all sorts is sampled, also such that moves nothing, and rows with unknown categories
pytestmark = [
    pytest.mark.filterwarnings("ignore:the noise is less than one step"),
    pytest.mark.filterwarnings("ignore:column .* the model does not know"),
]


def candidates(card, moves, j, x):
    """All values of a column at which a least move can end."""
    if np.isnan(x) and np.isinf(moves.missing[j]):
        return [x]
    if card.space[j].is_categorical:
        return [x, *map(float, range(len(card.space[j].categories)))]
    at = np.array([c.threshold for c in card.conditions if c.feature == j])
    at = at[np.isfinite(at)]
    ends = np.concatenate([at, np.nextafter(at, -np.inf)])
    if moves.integer[j]:
        ends = np.concatenate([np.ceil(at), np.ceil(at) - 1])
    return [x, *reachable(moves, j, x, ends)]


def least_move(card, moves, x, own):
    asked = sorted({condition.feature for condition in card.conditions})
    if not asked:
        return np.inf
    options = [candidates(card, moves, j, x[j]) for j in asked]
    prices = [
        np.array([cost_of(moves, j, x[j], z) for z in zs])
        for j, zs in zip(asked, options, strict=True)
    ]
    points = np.tile(x, (int(np.prod([len(zs) for zs in options])), 1))
    points[:, asked] = np.array(list(itertools.product(*options)))
    grids = np.meshgrid(*prices, indexing="ij")
    total = np.max(grids, axis=0) if moves.largest else np.sum(grids, axis=0)
    other = card.answer_encoded(points) != own
    return np.ravel(total)[other].min(initial=np.inf)


@pytest.mark.parametrize("block", range(10))
def test_distance_equals_brute_force(block):
    """2,000 rows in all, two to four classes, both norms, frozen, one-sided, bounded columns."""
    check_against_brute_force(np.random.default_rng(block), n_cards=20, most_classes=4)


@pytest.mark.slow
@pytest.mark.parametrize("most_classes", [2, 4])
@pytest.mark.parametrize("block", range(10, 20))
def test_distance_equals_brute_force_in_many_cases(block, most_classes):
    """5,000 rows of two classes, and as many of two to four."""
    check_against_brute_force(np.random.default_rng(block), 50, most_classes)


def check_against_brute_force(rng, n_cards, most_classes):
    for _ in range(n_cards):
        card = random_card(
            rng,
            n_conditions=int(rng.integers(0, 7)),
            n_numeric=int(rng.integers(1, 4)),
            n_categorical=int(rng.integers(0, 2)),
            n_classes=int(rng.integers(2, most_classes + 1)),
        )
        rows = typed_rows(card.space, random_rows_of_card(rng, card, 10))
        noise = random_perturbation(rng, card.space)
        allowed = allowed_of(card.space, rows, noise.moves(card.space))
        found = certify(card, rows, rng.choice(card.classes, 10), noise)
        encoded = card.space.encode(rows)
        expected = [
            least_move(card, moves, x, own)
            for x, own, moves in zip(encoded, found.answer, allowed, strict=True)
        ]
        np.testing.assert_allclose(found.distance, expected, rtol=1e-12, atol=1e-12)
        check_witnesses(card, allowed, encoded, found)


def check_witnesses(card, allowed, encoded, found):
    reached = np.isfinite(found.distance)
    answers = card.answer_encoded(np.where(reached[:, None], found.witness, encoded))
    np.testing.assert_array_equal(answers != found.answer, reached)
    for row in np.flatnonzero(reached):
        x, z, size, moves = encoded[row], found.witness[row], found.distance[row], allowed[row]
        costs = [cost_of(moves, j, x[j], z[j]) for j in range(len(x))]
        assert (max(costs) if moves.largest else sum(costs)) <= size * (1 + 1e-12) + 1e-12


def test_a_move_touches_no_more_columns_than_it_needs():
    space = FeatureSpace.declare(bounds={"a": (0, 1), "b": (0, 1)})
    conditions = [Condition(0, "at_least", 0.5), Condition(1, "at_least", 0.4)]
    card = Scorecard(space, ["no", "yes"], conditions, [3, 1], 0)
    found = certify(card, [[0.0, 0.0]], ["no"], Perturbation(radius=1.0))
    assert found.distance[0] == pytest.approx(0.4)
    assert [step.feature for step in found.counterexamples()[0].steps] == ["b"]


def test_a_card_without_conditions_never_changes_its_answer():
    space = FeatureSpace.declare(bounds={"a": (0, 1)})
    card = Scorecard(space, ["no", "yes"], [], [], 1)
    found = certify(card, [[0.0], [1.0]], ["yes", "no"], Perturbation(radius=1.0))
    assert np.isinf(found.distance).all()
    assert found.worst_case_accuracy == 0.5


@pytest.mark.parametrize("decision", [0.5, {"sensitivity": 0.9}])
def test_certificates_of_bands_equal_brute_force_on_10_000_rows(decision):
    """Each variable moves alone, so every combination of bands may be the end of a least move."""
    X, y = patients(10_000)
    model = RiskScoreClassifier(max_variables=4, max_conditions=8, decision=decision)
    card = model.fit(X[:2000], y[:2000]).card_
    radius = {"age": 7.7, "pressure": 12.0, "sodium": 2.0, "ward": 0.0}
    found = certify(card, X, y, Perturbation(radius=radius, whole=[]))
    values, costs = card.encode(X), []
    for variable in card.variables:
        x, unit = values[:, variable.feature], radius[variable.name]
        own = variable.band_of(x)
        cost = np.full((len(x), len(variable.bands)), np.inf)
        for k, band in enumerate(variable.bands):
            if unit and not band.is_missing:
                past = np.where(x < band.low, band.low - x, x - np.nextafter(band.high, -np.inf))
                cost[:, k] = np.where(np.isnan(x), np.inf, np.maximum(past, 0) / unit)
        cost[np.arange(len(x)), own] = 0
        costs.append(cost)
    least = np.full(len(X), np.inf)
    for bands in itertools.product(*(range(len(v.bands)) for v in card.variables)):
        total = sum(v.bands[k].points[0] for v, k in zip(card.variables, bands, strict=True))
        moved = np.max([cost[:, k] for cost, k in zip(costs, bands, strict=True)], axis=0)
        other = (total >= card.decision) != (found.answer == 1)
        least = np.where(other, np.minimum(least, moved), least)
    assert np.isfinite(least).mean() > 0.9
    np.testing.assert_allclose(found.distance, least, rtol=1e-9, atol=1e-9)
