import numpy as np
import pytest

from steadytree.data.schema import Schema
from steadytree.privacy.simulation import simulate

SCHEMA = Schema({"a": (0, 1)}, {"c": ["x", "y", "z"]}, classes=["no", "yes"])


def test_more_budget_is_expected_to_help():
    found = simulate(SCHEMA, 2_000, [0.01, 5.0], repeats=4, random_state=0)
    assert found.accuracies.shape == (2, 4)
    low, high = found.accuracies.mean(axis=1)
    assert high > low
    assert high > 0.85
    assert all(
        0 <= measurement.interval[0] <= measurement.value for measurement in found.measurements
    )


def test_public_data_are_sampled():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(300), rng.random(300)])
    y = np.where(X[:, 0] > 0.5, 1, 0)
    schema = Schema({"u": (0, 1), "v": (0, 1)}, classes=[0, 1])
    found = simulate(schema, 1_000, 2.0, (X, y), repeats=2, random_state=0)
    assert found.measurements[0].value > 0.9


def test_a_simulation_draws_itself():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = simulate(SCHEMA, 100, [0.5, 1.0], repeats=2, random_state=0).plot()
    assert axes.get_xlabel().startswith("epsilon")
    pyplot.close(axes.figure)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_rows": 0}, "n_rows must be"),
        ({"n_rows": 10**12}, "n_rows must be a whole number from 1 to"),
        ({"epsilons": []}, "one number or more"),
        ({"epsilons": [1.0, float("inf")]}, "epsilon must be"),
        ({"data": ([[1, "x"]] * 20, ["no"] * 19)}, "different numbers of rows"),
        ({"repeats": 1}, "repeats must be"),
        ({"epsilons": 0.0}, "epsilon must be"),
        ({"data": ([[1, "x"]], ["no"])}, "at least 10"),
    ],
)
def test_wrong_numbers_are_refused(wrong, message):
    arguments = {"n_rows": 50, "epsilons": 1.0, "repeats": 2, "random_state": 0, **wrong}
    with pytest.raises(ValueError, match=message):
        simulate(SCHEMA, **arguments)


def test_labels_are_compared_as_the_schema_reads_them():
    rng = np.random.default_rng(0)
    X = rng.random((300, 1))
    y = np.where(X[:, 0] > 0.5, "1", "0")
    y[:30] = "undeclared"
    found = simulate(
        Schema({"u": (0, 1)}, classes=[0, 1]), 500, 4.0, (X, y), repeats=2, random_state=0
    )
    assert found.measurements[0].value > 0.9
    told = found.to_dict()
    assert told["fits"][0]["epsilon"] == 4.0
    assert told["fits"][0]["low"] <= told["fits"][0]["accuracy"] <= told["fits"][0]["high"]
