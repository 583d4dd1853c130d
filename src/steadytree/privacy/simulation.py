"""simulate, epsilon_curve: accuracy of private trees at several epsilons."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from steadytree._base.notebook import Shown
from steadytree._base.optional import require
from steadytree._base.validation import Integer
from steadytree.data.dataset import hold_out
from steadytree.data.labels import label_array
from steadytree.data.schema import NO_CLASS, Schema, check_schema
from steadytree.data.table import Table
from steadytree.metrics.accuracy import accuracy
from steadytree.metrics.measurement import Measurement
from steadytree.privacy.mechanisms import check_epsilon
from steadytree.privacy.private_tree import PrivateTreeClassifier
from steadytree.privacy.tree_mechanism import MOST_ROWS

SYNTHETIC_NOISE = 0.1  # share of labels that are random
LEAST_PUBLIC = 10
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SEEDS = 3


@dataclass(frozen=True, repr=False)
class Simulation(Shown):
    """Expected accuracy at each epsilon."""

    epsilons: tuple[float, ...]
    accuracies: NDArray[np.float64]  # (n_epsilons, repeats), on test rows
    baseline: float  # share of the largest class

    @property
    def measurements(self) -> list[Measurement]:
        """The mean at each epsilon, with the interval in which 90 % of single fits lie."""
        found, meaning = [], "accuracy to expect of one private fit, on data like those given"
        for epsilon, scores in zip(self.epsilons, self.accuracies, strict=True):
            low, high = np.quantile(scores, [0.05, 0.95]).tolist()
            name, mean = f"accuracy at epsilon {epsilon:g}", float(scores.mean())
            found.append(Measurement(name, mean, meaning, (low, high), level=0.9))
        return found

    def __str__(self) -> str:
        lines = [str(each) for each in self.measurements]
        return "\n".join([*lines, f"share of the largest class: {self.baseline:.4g}"])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        fits = []
        for epsilon, each in zip(self.epsilons, self.measurements, strict=True):
            low, high = each.interval or (None, None)
            fits.append({"epsilon": epsilon, "accuracy": each.value, "low": low, "high": high})
        return {"fits": fits, "level": 0.9, "largest_class": self.baseline}

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
        labels = {"xlabel": "epsilon (less is more private)", "ylabel": "test accuracy, %"}
        axes.set(xscale="log", **labels)
        axes.set_xticks(self.epsilons, [f"{epsilon:g}" for epsilon in self.epsilons])
        axes.minorticks_off()
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
    """Accuracy of private fits on public or synthetic data of the size of the private data.

    No private row is used, so nothing is spent: use it to choose epsilon.

    Parameters
    ----------
    schema : Schema, or path of a schema file
    n_rows : int
        Approximate number of rows of the private fit.
    epsilons : float or list of float
    data : (X, y), optional
        PUBLIC data that resemble the private ones; a fifth of the rows is held out for testing,
        the others are sampled with replacement for training. By default data are synthetic: values
        uniform over the schema, labels by a random tree of depth 3, one in ten at random.
    method : {"gibbs", "greedy", "topdown"}, default="gibbs"
    repeats : int, default=10
        Fits at each epsilon.
    random_state : int, RandomState or None

    Examples
    --------
    >>> schema = Schema(bounds={"age": (0, 100)}, classes=["no", "yes"])
    >>> found = simulate(schema, 500, [0.1, 1.0], repeats=3, random_state=0)
    >>> [each.name for each in found.measurements]
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
        values = schema.encode(test[0])  # as a fit reads them, text included
        baselines[repeat] = np.unique(test[1], return_counts=True)[1].max() / len(test[1])
        for index, epsilon in enumerate(listed):
            seed = int(random.randint(2**31 - 1))  # public data need no protection
            model = PrivateTreeClassifier(epsilon, schema, method, testing_seed=seed)
            tree = model.fit(*train).tree_
            predicted = tree.classes[tree.label[tree.apply_encoded(values)]]
            accuracies[index, repeat] = (predicted == test[1]).mean()
    return Simulation(listed, accuracies, float(baselines.mean()))


def _resample(
    schema: Schema, n_rows: int, data: tuple[Any, Any] | None, random: Any
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    if data is None:
        return _synthetic(schema, n_rows, random)
    X, y = data
    encoded = schema.encode_labels(y)
    if Table.read(X).n_rows != len(encoded):
        raise ValueError("X and y of data have different numbers of rows: pass one label a row.")
    y = np.array(schema.classes)[encoded]  # as the fitted tree predicts them
    mixed = random.permutation(np.flatnonzero(encoded != NO_CLASS))
    if len(mixed) < LEAST_PUBLIC:
        wanted = f"at least {LEAST_PUBLIC} public rows with a declared class"
        raise ValueError(f"data must hold {wanted}, got {len(mixed)}.")
    rest, others = np.split(mixed, [len(mixed) // 5])
    chosen = random.choice(others, n_rows)
    return (Table.pick(X, chosen), y[chosen]), (Table.pick(X, rest), y[rest])


def _synthetic(schema: Schema, n_rows: int, random: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Uniform rows, labelled by a random tree; training rows, then test rows."""
    planted = random.randint(0, 2**31 - 1)
    parts = []
    for size in (n_rows, 2_000):
        columns, shares = [], []
        for column in schema.space:
            share = random.random_sample(size)
            shares.append(share)
            if column.is_categorical:
                listed = np.array(column.categories, dtype=object)
                columns.append(listed[(share * len(listed)).astype(int)])
            else:
                columns.append(column.low + share * (column.high - column.low))
        X = np.column_stack([np.asarray(values, dtype=object) for values in columns])
        y = _planted_labels(np.column_stack(shares), len(schema.classes), planted)
        flip = random.random_sample(size) < SYNTHETIC_NOISE
        y = np.where(flip, random.randint(0, len(schema.classes), size), y)
        parts.append((X, np.array(schema.classes)[y]))
    if not schema.space.categorical.any():
        parts = [(X.astype(np.float64), y) for X, y in parts]
    return parts[0], parts[1]


def _planted_labels(shares: NDArray[np.float64], n_classes: int, seed: int) -> NDArray[np.int64]:
    random = np.random.default_rng(seed)
    node = np.zeros(len(shares), np.int64)
    for depth in range(3):
        feature = random.integers(0, shares.shape[1], 2**depth)
        threshold = random.uniform(0.3, 0.7, 2**depth)
        node = 2 * node + (shares[np.arange(len(shares)), feature[node]] > threshold[node])
    labels = random.permutation(np.arange(8) % n_classes)
    return labels[node]


@dataclass(frozen=True)
class EpsilonPoint:
    """Accuracy on held-out rows at one epsilon: mean, minimum and maximum over seeds."""

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
    """Fit private trees at several epsilons on 70 % of the rows, and evaluate them on the others.

    The fits use testing seeds and are charged to no ledger: the curve itself is not private.

    >>> from steadytree import Schema
    >>> schema = Schema(bounds={"age": (0, 100)}, classes=["no", "yes"])
    >>> X, y = [[20], [70]] * 200, ["no", "yes"] * 200
    >>> [point.accuracy for point in epsilon_curve(schema, X, y, epsilons=[1.0])]
    [1.0]
    """
    labels = label_array(y)
    held = hold_out(labels, 0.3, seed)
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    rows, truth = Table.pick(X, test), labels[test]
    points = []
    for epsilon in epsilons:
        found = []
        for testing_seed in range(seed, seed + SEEDS):
            model = PrivateTreeClassifier(epsilon, schema, method, testing_seed=testing_seed)
            model.fit(Table.pick(X, train), labels[train])
            found.append(accuracy(model, rows, truth).accuracy)
        points.append(EpsilonPoint(epsilon, float(np.mean(found)), min(found), max(found)))
    return points
