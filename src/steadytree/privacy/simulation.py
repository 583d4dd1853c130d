"""Epsilon curve: how accurate a private tree is for what it may cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from steadytree._base.optional import require
from steadytree._base.validation import Integer
from steadytree.data.labels import label_array
from steadytree.data.schema import NO_CLASS, Schema, check_schema
from steadytree.data.table import Table
from steadytree.metrics.accuracy import accuracy
from steadytree.metrics.measurement import Measurement
from steadytree.metrics.sampling import hold_out
from steadytree.models.tree import Tree
from steadytree.privacy.mechanisms import check_epsilon
from steadytree.privacy.private_tree import PrivateTreeClassifier
from steadytree.privacy.tree_mechanism import MOST_ROWS

SYNTHETIC_NOISE = 0.1  # share of labels that no tree can know
LEAST_PUBLIC = 10


@dataclass(frozen=True)
class Simulation:
    """Accuracy to expect at each epsilon.

    Parameters
    ----------
    epsilons : tuple of float
    accuracies : array (n_epsilons, repeats)
        Test accuracy of each repeat.
    baseline : float
        Share of the largest class: what no tree at all would reach.
    """

    epsilons: tuple[float, ...]
    accuracies: NDArray[np.float64]
    baseline: float

    @property
    def measurements(self) -> list[Measurement]:
        """The mean at each epsilon, with the interval in which 90 % of single fits lie."""
        found = []
        for epsilon, scores in zip(self.epsilons, self.accuracies, strict=True):
            low, high = (float(v) for v in np.quantile(scores, [0.05, 0.95]))
            meaning = "accuracy to expect of one private fit, on data like those given"
            name = f"accuracy at epsilon {epsilon:g}"
            found.append(Measurement(name, float(scores.mean()), meaning, (low, high), level=0.9))
        return found

    def __str__(self) -> str:
        lines = [str(reading) for reading in self.measurements]
        return "\n".join([*lines, f"share of the largest class: {self.baseline:.4g}"])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        told = [
            {
                "epsilon": epsilon,
                "accuracy": reading.value,
                "low": reading.interval[0],
                "high": reading.interval[1],
            }
            for epsilon, reading in zip(self.epsilons, self.measurements, strict=True)
            if reading.interval is not None
        ]
        return {"fits": told, "level": 0.9, "largest_class": self.baseline}

    def plot(self, axes: Any = None) -> Any:
        """Accuracy against epsilon with intervals; returns the axes."""
        if axes is None:
            pyplot = require("matplotlib.pyplot", extra="plot", purpose="plotting a simulation")
            axes = pyplot.subplots(figsize=(6, 4), layout="constrained")[1]
        mean = 100 * self.accuracies.mean(axis=1)
        low, high = 100 * np.quantile(self.accuracies, [0.05, 0.95], axis=1)
        axes.fill_between(self.epsilons, low, high, alpha=0.2, label="90 % of fits")
        axes.plot(self.epsilons, mean, marker="o", label="mean")
        axes.axhline(100 * self.baseline, linestyle="--", color="grey", label="largest class")
        axes.set_xscale("log")
        axes.set_xticks(self.epsilons, [f"{epsilon:g}" for epsilon in self.epsilons])
        axes.minorticks_off()
        axes.set_xlabel("epsilon (less is more private)")
        axes.set_ylabel("test accuracy, %")
        axes.legend()
        return axes


def simulate(
    schema: Any,
    n_rows: int,
    epsilons: Sequence[float] | float,
    data: tuple[Any, Any] | None = None,
    *,
    method: str = "gibbs",
    repeats: int = 10,
    random_state: Any = None,
) -> Simulation:
    """Accuracy of private fits on public or made-up data of the size of the private data.

    Nothing private is touched, so nothing is spent: use it to choose epsilon.

    Parameters
    ----------
    schema : Schema, or path of a schema file
    n_rows : int
        Rows that the private fit will have, about.
    epsilons : float or list of float
    data : (X, y), optional
        PUBLIC data that resemble the private ones; drawn from with repetition for training,
        rows not drawn are the test. By default data are made up: values spread evenly over
        the schema, labels by a random tree of depth 3, one in ten by chance.
    method : {"gibbs", "greedy", "topdown"}, default="gibbs"
    repeats : int, default=10
        Fits at each epsilon.
    random_state : int, RandomState or None

    Examples
    --------
    >>> schema = Schema(bounds={"age": (0, 100)}, classes=["no", "yes"])
    >>> found = simulate(schema, 500, [0.1, 1.0], repeats=3, random_state=0)
    >>> [reading.name for reading in found.measurements]
    ['accuracy at epsilon 0.1', 'accuracy at epsilon 1']
    >>> print(str(found).splitlines()[1].split(":")[0])
    accuracy at epsilon 1
    """
    schema = check_schema(schema)
    Integer(1, MOST_ROWS).check(n_rows, "n_rows")
    Integer(2).check(repeats, "repeats")
    listed = tuple(check_epsilon(float(epsilon)) for epsilon in np.atleast_1d(epsilons))
    if not listed:
        raise ValueError("epsilons must be one number or more, got none.")
    random = check_random_state(random_state)
    accuracies = np.empty((len(listed), repeats))
    baselines = np.empty(repeats)
    for repeat in range(repeats):
        train, test = _resample(schema, int(n_rows), data, random)
        values = schema.encode(test[0])  # as a fit reads them, text of a file included
        baselines[repeat] = np.unique(test[1], return_counts=True)[1].max() / len(test[1])
        for place, epsilon in enumerate(listed):
            seed = int(random.randint(2**31 - 1))  # public data need no protection
            model = PrivateTreeClassifier(epsilon, schema, method, testing_seed=seed)
            accuracies[place, repeat] = _score(model.fit(*train).tree_, values, test[1])
    return Simulation(listed, accuracies, float(baselines.mean()))


def _score(tree: Tree, values: NDArray[np.float64], y: NDArray[Any]) -> float:
    found = tree.classes[tree.label[tree.apply_encoded(values)]]
    return float((found == y).mean())


def _resample(
    schema: Schema, n_rows: int, data: tuple[Any, Any] | None, random: Any
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    if data is None:
        return _made_up(schema, n_rows, random)
    X, y = data
    places = schema.encode_labels(y)
    if Table.read(X).n_rows != len(places):
        raise ValueError("X and y of data have different numbers of rows: pass one label a row.")
    y = np.array(schema.classes)[places]  # as the fitted tree writes them, and compares
    mixed = random.permutation(np.flatnonzero(places != NO_CLASS))
    if len(mixed) < LEAST_PUBLIC:
        raise ValueError(
            f"data must hold at least {LEAST_PUBLIC} public rows with a declared class, "
            f"got {len(mixed)}."
        )
    n_test = len(mixed) // 5
    chosen = random.choice(mixed[n_test:], n_rows)
    rest = mixed[:n_test]
    return (Table.pick(X, chosen), y[chosen]), (Table.pick(X, rest), y[rest])


def _made_up(schema: Schema, n_rows: int, random: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Rows spread evenly, and labels of a random tree."""
    planted = random.randint(0, 2**31 - 1)
    parts = []
    for size in (n_rows, 2_000):
        columns, places = {}, []
        for column in schema.space:
            place = random.random_sample(size)
            places.append(place)
            if column.is_categorical:
                listed = np.array(column.categories, dtype=object)
                columns[column.name] = listed[(place * len(listed)).astype(int)]
            else:
                columns[column.name] = column.low + place * (column.high - column.low)
        X = np.column_stack([np.asarray(values, dtype=object) for values in columns.values()])
        y = _planted_labels(np.column_stack(places), len(schema.classes), planted)
        flip = random.random_sample(size) < SYNTHETIC_NOISE
        y = np.where(flip, random.randint(0, len(schema.classes), size), y)
        parts.append((X, np.array(schema.classes)[y]))
    if not schema.space.categorical.any():
        parts = [(X.astype(np.float64), y) for X, y in parts]
    return parts[0], parts[1]


def _planted_labels(places: NDArray[np.float64], n_classes: int, seed: int) -> NDArray[np.int64]:
    random = np.random.default_rng(seed)
    node = np.zeros(len(places), np.int64)
    for depth in range(3):
        feature = random.integers(0, places.shape[1], 2**depth)
        cut = random.uniform(0.3, 0.7, 2**depth)
        node = 2 * node + (places[np.arange(len(places)), feature[node]] > cut[node])
    labels = random.permutation(np.arange(8) % n_classes)
    return labels[node]


EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SEEDS = 3


@dataclass(frozen=True)
class EpsilonPoint:
    """Accuracy on held-out rows at one epsilon: the mean over seeds, the least, the greatest."""

    epsilon: float
    accuracy: float
    least: float
    greatest: float


def epsilon_curve(
    schema: Any,
    X: Any,
    y: Any,
    method: str = "gibbs",
    seed: int = 0,
    epsilons: Sequence[float] = EPSILONS,
) -> list[EpsilonPoint]:
    """Fit private trees at several epsilons on 70 % of the rows, judge them on the others.

    The fits use testing seeds and are charged to no ledger: the curve itself is not private.

    Examples
    --------
    >>> from steadytree import Schema
    >>> schema = Schema(bounds={"age": (0, 100)}, classes=["no", "yes"])
    >>> X, y = [[20], [70]] * 200, ["no", "yes"] * 200
    >>> [point.accuracy for point in epsilon_curve(schema, X, y, epsilons=[1.0])]
    [1.0]
    """
    labels = label_array(y)
    held = hold_out(labels, 0.3, seed)
    fit, judged = np.flatnonzero(~held), np.flatnonzero(held)
    rows, truth = Table.pick(X, judged), labels[judged]
    points = []
    for epsilon in epsilons:
        found = []
        for place in range(SEEDS):
            model = PrivateTreeClassifier(epsilon, schema, method, testing_seed=seed + place)
            model.fit(Table.pick(X, fit), labels[fit])
            found.append(accuracy(model, rows, truth).accuracy)
        points.append(EpsilonPoint(epsilon, float(np.mean(found)), min(found), max(found)))
    return points
