"""Certificates are exact: checked against every point that could matter, and random ones."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.boxes import exact_thresholds
from steadytree.models.tree import Tree
from steadytree.robustness.certificate import Step, thin_curve
from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import Perturbation
from tests.models.trees import random_rows, random_tree, typed_rows
from tests.robustness.reference_attack import random_perturbation

# noise of all sorts is sampled, also such that moves nothing, and rows with unknown categories
pytestmark = [
    pytest.mark.filterwarnings("ignore:the noise is less than one step"),
    pytest.mark.filterwarnings("ignore:column .* the model does not know"),
]


def allowed_of(space, rows, moves):
    """What each row may do: a category that is not known may turn into any at its cost."""
    columns = [rows[column.name].tolist() for column in space]
    found = []
    for values in zip(*columns, strict=True):
        strange = [
            column.is_categorical and isinstance(value, str) and value not in column.categories
            for column, value in zip(space, values, strict=True)
        ]
        found.append(replace(moves, missing=np.where(strange, moves.up, moves.missing)))
    return found


def candidates(tree, moves, j, x):
    """All values of a column at which a least move can end."""
    if np.isnan(x) and np.isinf(moves.missing[j]):
        return [x]
    if tree.space[j].is_categorical:
        return [x, *map(float, range(len(tree.space[j].categories)))]
    at = exact_thresholds(tree)[(tree.feature == j)]
    at = at[np.isfinite(at)]
    ends = np.concatenate([at, np.nextafter(at, np.inf)])
    if moves.integer[j]:
        ends = np.concatenate([np.floor(at), np.floor(at) + 1])
    return [x, *reachable(moves, j, x, ends)]


def reachable(moves, j, x, ends):
    """Those of the ends within the bounds, and the bounds: a row outside may come in that far."""
    bounds = np.array([moves.low[j], moves.high[j]])
    bounds = np.array([np.ceil(bounds[0]), np.floor(bounds[1])]) if moves.integer[j] else bounds
    ends = np.concatenate([ends, bounds[np.isfinite(bounds)]])
    ends = ends[(ends >= moves.low[j]) & (ends <= moves.high[j])]
    inside = np.clip(0.0, moves.low[j], moves.high[j])
    return np.unique(np.append(ends, inside) if np.isnan(x) else ends).tolist()


def cost_of(moves, j, x, z):
    if x == z or (np.isnan(x) and np.isnan(z)):
        return 0.0
    if np.isnan(x):
        return moves.missing[j]
    if moves.categorical[j]:
        return moves.up[j]
    return (z - x) * moves.up[j] if z > x else (x - z) * moves.down[j]


def least_move(tree, moves, x, label):
    """Size of the least move to another label, by trying every combination of candidates."""
    asked = np.unique(tree.feature[tree.feature >= 0])
    if len(asked) == 0:
        return np.inf
    options = [candidates(tree, moves, j, x[j]) for j in asked]
    prices = [
        np.array([cost_of(moves, j, x[j], z) for z in zs])
        for j, zs in zip(asked, options, strict=True)
    ]
    points = np.tile(x, (int(np.prod([len(zs) for zs in options])), 1))
    points[:, asked] = np.array(list(itertools.product(*options))).reshape(len(points), len(asked))
    grids = np.meshgrid(*prices, indexing="ij")
    total = np.max(grids, axis=0) if moves.largest else np.sum(grids, axis=0)
    other = tree.label[tree.apply_encoded(points)] != label
    return np.ravel(total)[other].min(initial=np.inf)


@pytest.mark.parametrize("block", range(10))
def test_distance_equals_brute_force(block):
    """5,000 rows in all: numbers, whole numbers, categories, missing values, one-sided moves."""
    rng = np.random.default_rng(block)
    for _ in range(50):
        tree = random_tree(
            rng,
            n_leaves=int(rng.integers(1, 9)),
            n_numeric=int(rng.integers(1, 4)),
            n_categorical=int(rng.integers(0, 2)),
            n_classes=int(rng.integers(2, 4)),
            single_precision=bool(rng.integers(2)),
        )
        rows = whole_where_declared(tree, random_rows(rng, tree, 10))
        noise = random_perturbation(rng, tree.space)
        allowed = allowed_of(tree.space, rows, noise.moves(tree.space))
        found = certify(tree, rows, rng.choice(tree.classes, 10), noise)
        encoded = tree.space.encode(rows)
        expected = [
            least_move(tree, moves, x, label)
            for x, label, moves in zip(encoded, found.answer, allowed, strict=True)
        ]
        np.testing.assert_allclose(found.distance, expected, rtol=1e-12, atol=1e-12)
        check_witnesses(tree, allowed, encoded, found)


def check_witnesses(tree, allowed, encoded, found):
    """Every witness has another answer, and its move costs what is said."""
    reached = np.isfinite(found.distance)
    answers = tree.label[tree.apply_encoded(np.where(reached[:, None], found.witness, encoded))]
    np.testing.assert_array_equal(answers != found.answer, reached)
    np.testing.assert_array_equal(found.other, np.where(reached, answers, -1))
    for row in np.flatnonzero(reached):
        x, z, size, moves = encoded[row], found.witness[row], found.distance[row], allowed[row]
        costs = [cost_of(moves, j, x[j], z[j]) for j in range(len(x))]
        assert (max(costs) if moves.largest else sum(costs)) == pytest.approx(size, abs=1e-12)


def whole_where_declared(tree, rows):
    for column in tree.space:
        if column.kind in ("integer", "binary"):
            rows[column.name] = rows[column.name].round()
            if column.kind == "binary":
                rows[column.name] = rows[column.name].clip(0, 1)
    return typed_rows(tree.space, rows)


@pytest.mark.parametrize("norm", ["radius", "step_cost"])
def test_no_point_strictly_inside_changes_the_answer(norm):
    rng = np.random.default_rng(3)
    X, y = make_classification(200, 5, random_state=0)
    model = DecisionTreeClassifier(max_leaf_nodes=60, random_state=0).fit(X, y)
    scale = {f"x{j}": float(rng.uniform(0.5, 2)) for j in range(5)}
    found = certify(model, X, y, Perturbation(**{norm: scale}, budget=1.0))
    units = np.array([scale[f"x{j}"] for j in range(5)])
    n_probes = 0
    for row in range(50):
        directions = rng.normal(size=(200, 5))
        sizes = (
            np.abs(directions / units).max(axis=1)
            if norm == "radius"
            else np.abs(directions * units).sum(axis=1)
        )
        probes = X[row] + directions / sizes[:, None] * found.distance[row] * rng.uniform(
            0.9, 1 - 1e-9, (200, 1)
        )
        assert (model.predict(probes) == model.classes_[found.answer[row]]).all()
        n_probes += len(probes)
    assert n_probes == 10_000
    reached = np.isfinite(found.distance)
    assert (model.predict(found.witness[reached]) != model.predict(X[reached])).all()


def exhaustive_worst_case(distance, right, budget):
    """Most right rows that can be lost, over all subsets."""
    costs = distance[right]
    best = 0
    for chosen in itertools.product([0, 1], repeat=len(costs)):
        picked = np.array(chosen, bool)
        if np.isfinite(costs[picked]).all() and costs[picked].sum() <= budget:
            best = max(best, picked.sum())
    return (right.sum() - best) / len(right)


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 10))]
)
def test_shared_budget_equals_all_subsets(block):
    """Data sets of ten rows: 5,000 rows in all with the slow ones."""
    for seed in range(50 * block, 50 * (block + 1)):
        check_shared_budget(np.random.default_rng(seed))


def check_shared_budget(rng):
    tree = random_tree(rng, n_categorical=1, n_numeric=2)
    rows = whole_where_declared(tree, random_rows(rng, tree, 10))
    scope = str(rng.choice(["mean", "total"]))
    budget = float(rng.choice([0.0, 0.1, 0.5, 2.0]))
    noise = random_perturbation(rng, tree.space, budget=budget, scope=scope)
    found = certify(tree, rows, rng.choice(tree.classes, 10), noise)
    expected = exhaustive_worst_case(found.distance, found.right, noise.spend(10))
    assert found.worst_case_accuracy == pytest.approx(expected)


def test_budget_per_row_is_the_certified_accuracy_at_that_size():
    X, y = make_classification(300, 4, random_state=1)
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, y)
    found = certify(model, X, y, Perturbation(radius=0.1, budget=0.5))
    assert found.worst_case_accuracy == found.certified_accuracy() == found.certified_accuracy(0.5)
    sizes, accuracies = found.curve()
    assert accuracies[0] <= found.accuracy
    assert (np.diff(accuracies) < 0).all()
    for place in (1, len(sizes) // 2, len(sizes) - 1):
        assert found.certified_accuracy(float(sizes[place])) == pytest.approx(accuracies[place])


def test_float32_rounding_of_scikit_learn_is_kept():
    X = np.array([[0.1], [0.2], [0.30000001], [0.4]])
    model = DecisionTreeClassifier().fit(X, [0, 0, 1, 1])
    found = certify(model, X, [0, 0, 1, 1], Perturbation(radius=1.0))
    threshold = model.tree_.threshold[0]
    for z, other in zip(found.witness, found.other, strict=True):
        assert model.predict(z[None])[0] == other
        back = np.nextafter(z, z + (-1 if other == 1 else 1))
        assert model.predict(back[None])[0] != other
    assert abs(found.witness[0, 0] - threshold) < 1e-7


def test_counterexamples_are_readable():
    frame = pd.DataFrame({"age": [30, 31, 50, 60], "job": ["clerk", "clerk", "chef", "chef"]})
    space = FeatureSpace.observe(frame)
    tree = Tree(
        space,
        ["no", "yes"],
        [0, 1, -1, -1, -1],
        [40, np.nan, np.nan, np.nan, np.nan],
        [1, 3, -1, -1, -1],
        [2, 4, -1, -1, -1],
        [[0.5, 0.5], [0.5, 0.5], [0, 1], [1, 0], [0, 1]],
        [4, 2, 2, 1, 1],
        subset=[[0, 0], [0, 1], [0, 0], [0, 0], [0, 0]],
    )
    found = certify(
        tree, frame, ["no", "no", "yes", "yes"], Perturbation(step_cost={"age": 0.1, "job": 2.0})
    )
    np.testing.assert_allclose(found.distance, [1.1, 1.0, 3.0, 4.0])
    texts = [str(example) for example in found.counterexamples()]
    assert texts[:2] == [
        "row 1: 'no' becomes 'yes' at size 1: age from 31 to 41",
        "row 0: 'no' becomes 'yes' at size 1.1: age from 30 to 41",
    ]
    assert texts[2].endswith("age from 50 to 40, job from 'chef' to 'clerk'")
    only_job = certify(
        tree, frame, ["no", "no", "yes", "yes"], Perturbation(step_cost={"job": 2.0})
    )
    assert "job from 'clerk' to 'chef'" in str(only_job)
    assert only_job.to_dict()["counterexamples"][0]["size"] == 2.0


def test_counterexamples_are_the_ten_rows_with_the_least_moves():
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    y = (X[:, 0] > 0.5).astype(int)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    found = certify(model, X, y, Perturbation(radius=0.1))
    order = sorted(np.flatnonzero(np.isfinite(found.distance)), key=lambda k: found.distance[k])
    for most, listed in ((10, found.counterexamples()), (3, found.counterexamples(3))):
        assert [one.row for one in listed] == order[:most]


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (44.0, np.nextafter(45.5, 99), "44 to above 45.5"),  # 45.5 itself is not enough
        (50.0, np.nextafter(45.5, 0), "50 to below 45.5"),
        (44.0, 46.0, "44 to 46"),
        (50.0, 45.5, "50 to 45.5"),
        (-1.0, 5e-324, "-1 to above 0"),
        (1.0, -5e-324, "1 to below 0"),
        (45.4999999, np.nextafter(45.5, 99), "45.4999999 to above 45.5"),
        (2.3, 2.50000011920929, "2.3 to above 2.5"),  # of single precision
        (0.5, 1 / 3, "0.5 to 0.3333"),  # beyond the end
        (0.2, 1 / 3, "0.2 to above 0.3333333"),
        (1e6, 1_234_567.5, "1000000 to 1234600"),
    ],
)
def test_the_end_of_a_step_is_enough(start, end, text):
    assert str(Step("age", start, float(end))) == f"age from {text}"
    shown = text.split(" to ")[1]
    at = float(shown.split()[-1])
    toward = np.inf if end > start else -np.inf
    # what is shown, or the next number of single precision after it, is at the end or beyond
    after = float(np.nextafter(np.float32(at), np.float32(toward))) if " " in shown else at
    assert (after >= end) if end > start else (after <= end)


def test_what_cannot_be_certified_is_said():
    X, y = make_classification(50, 4, random_state=1)
    model = DecisionTreeClassifier().fit(X, y)
    noise = Perturbation(radius=0.1)
    with pytest.raises(TypeError, match="must be a Perturbation"):
        certify(model, X, y, 0.1)
    with pytest.raises(ValueError, match="radius names 'age'"):
        certify(model, X, y, Perturbation(radius={"age": 1}))
    with pytest.raises(ValueError, match="features"):
        certify(model, X[:, :2], y, noise)
    with pytest.raises(ValueError, match="50 rows, but y has 49"):
        certify(model, X, y[:-1], noise)
    with pytest.raises(ValueError, match="0 sample"):
        certify(model, X[:0], y[:0], noise)
    tree = random_tree(np.random.default_rng(0), n_numeric=4, n_categorical=0)
    whole = [column.name for column in tree.space if column.kind == "integer"]
    rows = (
        random_rows(np.random.default_rng(0), tree, 5)
        .fillna(0.5)
        .assign(**dict.fromkeys(whole, 0.5))
    )
    assert whole
    with pytest.raises(ValueError, match=r"whole numbers, but holds 0\.5"):
        certify(tree, rows, tree.predict(rows), Perturbation(radius=0.1, whole=whole))
    certify(tree, rows, tree.predict(rows), noise)  # not declared: fractions move to any number
    shared = certify(model, X, y, Perturbation(step_cost=1, budget=0.1, scope="mean"))
    with pytest.raises(ValueError, match="shared among rows"):
        shared.certified_accuracy()
    with pytest.raises(ValueError, match="no budget"):
        certify(model, X, y, Perturbation(step_cost=1)).worst_case_accuracy


@pytest.mark.parametrize("seed", range(10))
def test_curves_count_the_correct_rows_beyond_each_size(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (60, 2)).astype(float)
    y = (X[:, 0] + rng.normal(0, 2, 60) > 4).astype(int)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    found = certify(model, X, y, Perturbation(radius={"x0": 2.0, "x1": 1.0}))
    every = np.unique(found.distance[found.right & np.isfinite(found.distance)])
    sizes, shares = found.curve()
    assert np.array_equal(sizes, np.unique([0.0, *every]))
    for some in ((sizes, shares), thin_curve(found.right, found.distance, most=5)):
        beyond = [(found.right & (found.distance > size)).mean() for size in some[0]]
        assert some[1] == pytest.approx(beyond)
    assert len(thin_curve(found.right, found.distance, most=5)[0]) <= 6


def test_a_curve_of_many_sizes_ends_with_the_largest():
    right, distance = np.arange(900) % 9 > 0, np.arange(900) % 450 + 1.0
    sizes, shares = thin_curve(right, distance)
    assert len(sizes) == 201
    assert sizes[[0, 1, -1]].tolist() == [0, *np.sort(distance[right])[[0, -1]]]
    assert shares == pytest.approx([np.mean(right & (distance > size)) for size in sizes])
