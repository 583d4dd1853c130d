"""No row's certificate depends on other rows, and no allowed move turns a certified row."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from steadytree.models.files import load, save
from steadytree.models.sklearn import from_sklearn
from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.robust_tree import RobustTreeClassifier
from steadytree.robustness.shift import shift_accuracy
from steadytree.stability.stable_tree import StableTreeClassifier

# noise of all sorts is sampled, also such that moves nothing, and rows with unknown categories
pytestmark = [
    pytest.mark.filterwarnings("ignore:the noise is less than one step"),
    pytest.mark.filterwarnings("ignore:column .* the model does not know"),
]

NUMBERS = ["size", "count", "flag", "rank"]


def rows_of(rng, n, fractions):
    """Numbers of all sorts; without fractions every value is whole, whatever its type."""
    frame = pd.DataFrame(
        {
            "size": rng.normal(5, 3, n).round(1),
            "count": rng.integers(0, 9, n),
            "flag": rng.integers(0, 2, n).astype(float),
            "rank": rng.integers(0, 5, n).astype(float),
        }
    )
    if not fractions:
        frame["size"] = frame["size"].round()
    label = frame["size"] + frame["count"] + 3 * frame["flag"] > 9.25
    return frame, np.where(label ^ (rng.random(n) < 0.1), "yes", "no")


FORMS = {
    "floats": lambda frame: frame.astype(float),
    "typed": lambda frame: frame,
    "bools": lambda frame: frame.assign(flag=frame["flag"] > 0),
    "nullable": lambda frame: frame.astype({"count": "Int64", "rank": "Int64"}),
    "array": lambda frame: frame.to_numpy(float),
    "whole array": lambda frame: frame.round().to_numpy().astype(int),
    "list": lambda frame: [
        [int(v) if v == int(v) else v for v in row] for row in frame.to_numpy(float).tolist()
    ],
    "table": lambda frame: Table.read(frame.astype(float)),
}
MODELS = {
    "sklearn": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "stable": lambda: StableTreeClassifier(3, 0, random_state=0),
    "robust": lambda: RobustTreeClassifier(
        2, Perturbation(radius=0.4), n_thresholds=4, random_state=0
    ),
    "card": lambda: RiskScoreClassifier(noise=0, max_conditions=4, random_state=0),
}


def pick(X, rows):
    return Table.pick(X, np.asarray(rows, np.int64))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MODELS)
def test_a_row_alone_is_certified_as_in_any_batch(name, form):
    rng = np.random.default_rng(0)
    for fractions in (True, False):  # when fitted
        fitted, labels = rows_of(rng, 150, fractions)
        model = MODELS[name]()
        # scikit-learn's refuses a list's or an array's rows where it was fitted on names
        model.fit(fitted.to_numpy(float), labels)
        frame, y = rows_of(rng, 24, fractions=True)
        frame.columns = [f"x{j}" for j in range(4)]
        X = renamed(FORMS[form], frame)
        noise = Perturbation(**{str(rng.choice(["radius", "step_cost"])): 0.6}, budget=1.0)
        found = certify(model, X, y, noise)
        for size in (1, 1, 1, 1, 2, 5):
            rows = rng.permutation(24)[:size]
            some = certify(model, pick(X, rows), y[rows], noise)
            np.testing.assert_array_equal(some.distance, found.distance[rows])
            np.testing.assert_array_equal(some.witness, found.witness[rows])
            np.testing.assert_array_equal(some.other, found.other[rows])


def renamed(form, frame):
    """The form of a frame whose columns are x0 to x3."""
    shown = form(frame.set_axis(NUMBERS, axis=1))
    if isinstance(shown, pd.DataFrame):
        return shown.set_axis(frame.columns, axis=1)
    return Table.read(frame.astype(float)) if isinstance(shown, Table) else shown


@pytest.mark.parametrize("name", ["sklearn", "stable", "card"])
def test_missing_values_alone_and_in_a_batch(name):
    """A column of which a row alone has nothing is no other column for that."""
    rng = np.random.default_rng(1)
    fitted, labels = rows_of(rng, 200, fractions=True)
    fitted = fitted.astype(float).mask(rng.random(fitted.shape) < 0.15)
    model = MODELS[name]().fit(fitted, labels)
    frame, y = rows_of(rng, 40, fractions=True)
    frame = frame.astype(float).mask(rng.random(frame.shape) < 0.3)
    noise = Perturbation(step_cost=1.0, missing_cost={"size": 0.5, "flag": 0.0}, budget=1.5)
    found = certify(model, frame, y, noise)
    for row in range(40):
        alone = certify(model, frame.iloc[[row]], y[[row]], noise)
        assert alone.distance[0] == found.distance[row]
        np.testing.assert_array_equal(alone.witness[0], found.witness[row])


def test_text_columns_alone_and_in_a_batch():
    rng = np.random.default_rng(2)
    fitted, labels = rows_of(rng, 200, fractions=True)
    fitted["town"] = rng.choice(["Ulm", "Bonn", "Kiel"], 200)
    model = StableTreeClassifier(4, 0, random_state=0).fit(fitted, labels)
    frame, y = rows_of(rng, 30, fractions=True)
    frame["town"] = rng.choice(["Ulm", "Bonn", "Kiel", "Rom", None], 30)
    found = certify(model, frame, y, Perturbation(step_cost=1.0, budget=1.5))
    for row in range(30):
        alone = certify(model, frame.iloc[[row]], y[[row]], found.perturbation)
        assert alone.distance[0] == found.distance[row]


def moves_in_steps(name, model, X, start):
    """Whether each value moves in whole steps, by the rule as it is documented, row by row."""
    types = Table.read(X).types or (None,) * 4
    if name == "sklearn":
        return np.tile([type_ is not None for type_ in types], (len(start), 1))
    space = model.card_.space if name == "card" else model.tree_.space
    known = np.array([column.kind in ("integer", "binary") for column in space])
    return known & (start == np.floor(start))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MODELS)
def test_no_allowed_move_turns_a_certified_row(name, form):
    """3,200 random moves a model and form, to any number where a value does not move in steps."""
    rng = np.random.default_rng(3)
    fitted, labels = rows_of(rng, 200, fractions=False)
    model = MODELS[name]().fit(fitted.to_numpy(float), labels)
    frame, y = rows_of(rng, 40, fractions=True)
    frame.loc[::2, "size"] = frame.loc[::2, "size"].round()  # every other row whole, as fitted
    frame.columns = [f"x{j}" for j in range(4)]
    X = renamed(FORMS[form], frame)
    radius = {"x0": 0.7, "x1": 1.2, "x2": 0.6, "x3": 1.4}
    found = certify(model, X, y, Perturbation(radius=radius))
    start = Table.read(X).select(frame.columns)
    start = FeatureSpace.observe(start).encode(start)
    steps = moves_in_steps(name, model, X, start)
    own = model.predict(start)
    for share in (0.3, 0.9, 0.999, 1.0):
        kept = found.distance > share
        for _ in range(20):
            moves = rng.uniform(-share, share, start.shape) * list(radius.values())
            ends = rng.random(start.shape) < 0.5  # as far as may be
            moves = np.where(ends, np.sign(moves) * share * np.array(list(radius.values())), moves)
            moves = np.where(steps, np.trunc(moves), moves * (1 - 1e-9))
            np.testing.assert_array_equal(model.predict(start + moves)[kept], own[kept])


@pytest.mark.parametrize("name", ["stable", "robust", "card"])
def test_a_fraction_makes_its_own_row_real_valued_alone(name):
    """A column that the model knows as integer; the same rows certified with `whole` are equal."""
    rng = np.random.default_rng(4)
    fitted, labels = rows_of(rng, 200, fractions=False)
    model = MODELS[name]().fit(fitted.to_numpy(float), labels)
    frame, y = rows_of(rng, 60, fractions=False)
    X = frame.to_numpy(float)
    noise = {"radius": {"x0": 0.7, "x1": 1.2, "x3": 1.4}}
    steps = certify(model, X, y, Perturbation(**noise, whole=["x0", "x1", "x2", "x3"]))
    np.testing.assert_array_equal(
        certify(model, X, y, Perturbation(**noise)).distance, steps.distance
    )
    X[1::3, 0] += 0.25
    X[2::3, 1] += 0.5
    X[4::9, 3] = np.nan
    found = certify(model, X, y, Perturbation(**noise))
    np.testing.assert_array_equal(found.distance[::3], steps.distance[::3])
    for start, real in ((0, []), (1, ["x0"]), (2, ["x1"])):
        whole = [f"x{j}" for j in range(4) if f"x{j}" not in real]
        declared = certify(model, X[start::3], y[start::3], Perturbation(**noise, whole=whole))
        np.testing.assert_array_equal(found.distance[start::3], declared.distance)
        np.testing.assert_array_equal(found.witness[start::3], declared.witness)


def test_a_random_shift_of_a_row_does_not_depend_on_others():
    """Every value shifts by whole steps from where it is, so no kind of column matters."""
    rng = np.random.default_rng(5)
    fitted, labels = rows_of(rng, 200, fractions=False)
    model = MODELS["stable"]().fit(fitted.to_numpy(float), labels)
    frame, y = rows_of(rng, 12, fractions=True)
    X = frame.to_numpy(float)
    found = shift_accuracy(model, X, y, 0.8, repeats=1, random_state=0)
    for row in range(12):
        alone = shift_accuracy(model, X[[row]], y[[row]], 0.8, repeats=1, random_state=0)
        assert alone.stays_right[0] == found.stays_right[row]


def test_a_batch_without_fractions_is_certified_as_one_with():
    rng = np.random.default_rng(0)
    X = rng.normal(50, 10, (400, 2)).round(1)
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, (X[:, 0] > 50.25) * 1)
    noise = Perturbation(radius=0.5)
    for batch in ([[50.0, 45.0], [51.0, 44.0]], [[50.0, 45.0], [51.5, 44.0]], [[50, 45], [51, 44]]):
        assert certify(model, batch, [0, 1], noise).distance[0] < 1
        assert certify(from_sklearn(model, batch), batch, [0, 1], noise).distance[0] < 1
    assert model.predict([[50.3, 45.0]])[0] == 1
    declared = Perturbation(radius=0.5, whole=["x0"])
    assert certify(model, [[50.0, 45.0]], [0], declared).distance[0] == 2
    assert certify(model, np.array([[50, 45]]), [0], noise).distance[0] == 2


def test_the_issue_of_whole_batches_of_floats():
    """A scikit-learn tree knows no integers: both batches have one row that turns."""
    rng = np.random.default_rng(0)
    X = rng.normal(50, 10, (400, 2)).round(1)
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, (X[:, 0] > 50.25) * 1)
    for batch in ([[50.0, 45.0], [51.0, 44.0]], [[50.0, 45.0], [51.5, 44.0]]):
        assert certify(model, batch, [0, 1], Perturbation(radius=0.5)).worst_case_accuracy == 0.5


def test_a_model_fitted_on_whole_numbers_knows_its_integers(tmp_path):
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = StableTreeClassifier(1, 0, random_state=0).fit(X, [0, 0, 1, 1])
    save(model.tree_, tmp_path / "a.tree.json")
    tree, noise = load(tmp_path / "a.tree.json"), Perturbation(radius=0.6)
    assert tree.space[0].kind == "integer"
    for rows in (X, X.tolist(), X.astype(int)):
        steps = certify(tree, rows, [0, 0, 1, 1], noise)
        assert steps.distance.min() == pytest.approx(1 / 0.6)
    # its own rows may still be declared real-valued, and a fraction is
    assert certify(tree, X, [0, 0, 1, 1], Perturbation(radius=0.6, whole=[])).distance.min() < 1
    mixed = certify(tree, [[1.0], [1.5], [2.0]], [0, 1, 1], noise)
    np.testing.assert_allclose(mixed.distance, [1 / 0.6, 0.5 / 0.6, 1 / 0.6])
    # integers of a column in which the model saw fractions: it is no column of whole numbers
    fractions = StableTreeClassifier(1, 0, random_state=0).fit(X + 0.25, [0, 0, 1, 1])
    assert certify(fractions, X.astype(int), [0, 0, 1, 1], noise).distance.min() < 1.6


def test_a_robust_tree_keeps_what_it_promises_of_floats():
    """Of integers, whatever their type, in whole steps; to any number where none is declared."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, (60, 2))
    y = (X[:, 0] > 3).astype(int)
    for rows in (X, X.astype(float)):
        for noise in (Perturbation(radius=0.4), Perturbation(radius=0.4, whole=["x0", "x1"])):
            model = RobustTreeClassifier(1, noise, random_state=0).fit(rows, y)
            assert model.objective_ == 60
            assert model.tree_.threshold[0] == 3
            assert certify(model, rows, y, noise).worst_case_accuracy == 1.0
    noise = Perturbation(radius=0.4, whole=[])
    model = RobustTreeClassifier(1, noise, random_state=0).fit(rows, y)
    assert model.objective_ == 60
    assert model.tree_.threshold[0] == 3.5
    assert certify(model, rows, y, noise).worst_case_accuracy == 1.0
    moved = X + rng.uniform(-0.4, 0.4, X.shape)
    assert (model.predict(moved) == y).all()


def test_the_objective_of_a_robust_tree_is_the_weight_certified():
    """Floats that hold whole numbers, fractions, and flags; budgets of each row and of all."""
    rng = np.random.default_rng(6)
    for scope in ("row", "total"):
        frame, labels = rows_of(rng, 40, fractions=True)
        X = frame.to_numpy(float)
        noise = Perturbation(step_cost={"x0": 1.5, "x1": 0.6, "x2": 0.8}, budget=1.0, scope=scope)
        model = RobustTreeClassifier(2, noise, n_thresholds=3, random_state=0).fit(X, labels)
        found = certify(model, X, labels, noise)
        assert found.worst_case_accuracy * 40 == pytest.approx(model.objective_)
