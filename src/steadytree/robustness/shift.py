"""Random shifts of inputs: how large, by repeated measurements, and accuracy under them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from sklearn.utils import check_random_state

from steadytree._base.notebook import Shown
from steadytree._base.validation import Boolean, Integer, Real
from steadytree.data.table import Table
from steadytree.metrics.measurement import Measurement
from steadytree.models.boxes import Boxes
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.robustness.certify import labelled_rows, unknown_categories
from steadytree.robustness.nearest import unknown_flags
from steadytree.robustness.perturbation import certainty_cost, check_names, is_number

LEAST_CERTAINTY = 0.01
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ShiftAccuracy(Shown):
    """Accuracy of a tree when inputs shift at random."""

    stays_right: Floats  # (n,): exact probability that a row is correct after a shift
    sampled: Floats  # (repeats,): accuracies of sampled shifts of the data set

    @property
    def average(self) -> float:
        """Expected accuracy; exact, not sampled."""
        return float(self.stays_right.mean())

    @property
    def worst(self) -> float:
        """Least accuracy among the sampled shifts."""
        return float(self.sampled.min())

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        expected = "expected share correct after a random shift"
        least = f"lowest share correct among {len(self.sampled):,} random shifts"
        average = Measurement("average accuracy", self.average, expected)
        return average, Measurement("worst accuracy", self.worst, least)


def shift_accuracy(
    model: Any,
    X: Any,
    y: Any,
    certainty: Mapping[str, float] | float,
    repeats: int = 5000,
    offset: float = 0.0,
    spread: float = 0.0,
    random_state: Any = None,
    flip_flags: bool = True,
) -> ShiftAccuracy:
    """Average and worst accuracy when values shift as their certainties say.

    A value of feature f stays with probability q_f and moves by k whole steps, up or down, with
    probability ``q_f (1 - q_f)^k / 2`` each; a category turns into any other with equal
    probability, an unknown one into any known. A value 0 or 1 turns into the other with probability
    ``1 - q_f``, as the same fact in words does: in columns of type bool, in those that a model of
    ours knows as 0 and 1 alone, and in those that a scikit-learn tree splits only between 0 and 1.
    Shifts of different rows and features are independent, so each row's chance of
    staying right is computed exactly, and the accuracy of a whole shifted data set follows a
    Poisson-binomial law, from which `repeats` are sampled: the same as shifting the rows.

    Parameters
    ----------
    model : Tree, fitted tree learner or fitted scikit-learn tree
    X : array-like or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    certainty : mapping of name to float in (0, 1], or one such number
        A feature that is not named does not shift.
    repeats : int, default=5000
        Shifts sampled.
    offset : float, default=0
        Added to every certainty (kept within 0.01 and 1), to see what errors in them would do.
    spread : float, default=0
        Certainties are sampled uniformly within this distance.
    random_state : int, RandomState or None, default=None
    flip_flags : bool, default=True
        Whether 0 and 1 turn into each other; if not, they shift by steps as other numbers do, as in
        (8) of the paper, and half of the shifts leave the column.

    Returns
    -------
    result : ShiftAccuracy

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = [[0], [1], [4], [5]], ["no", "no", "yes", "yes"]
    >>> model = DecisionTreeClassifier().fit(X, y)
    >>> found = shift_accuracy(model, X, y, {"x0": 0.5}, random_state=0)
    >>> found.average, found.worst
    (0.90625, 0.25)
    """
    tree = as_tree(model)
    rng = check_random_state(random_state)
    Integer(1).check(repeats, "repeats")
    Real(-1, 1).check(offset, "offset")
    Real(0, 1).check(spread, "spread")
    Boolean().check(flip_flags, "flip_flags")
    sure = _certainties(tree, certainty)
    if offset or spread:
        moved = sure + offset + (rng.uniform(-spread, spread, len(sure)) if spread else 0.0)
        # a certainty of 1 stays: the column does not shift
        sure = np.where(sure == 1.0, 1.0, np.clip(moved, LEAST_CERTAINTY, 1.0))
    table = Table.read(X)
    rows, truth = labelled_rows(tree, table, y, "accuracy")
    unknown = unknown_flags(unknown_categories(tree.space, table), rows.shape)
    flags = flag_columns(tree, table) if flip_flags else None
    found = answer_chances(tree, rows, sure, flags, unknown)
    chances = found[np.arange(len(rows)), truth]
    law = count_law(chances)
    sampled = np.searchsorted(np.cumsum(law), rng.uniform(size=repeats) * law.sum(), side="right")
    return ShiftAccuracy(chances, np.minimum(sampled, len(rows)) / len(rows))


def flag_columns(tree: Tree, table: Table) -> NDArray[np.bool_]:
    """Columns in which 0 and 1 are no and yes."""
    learned = not tree.single_precision  # a scikit-learn tree keeps no kinds of columns
    kinds = [column.kind for column in tree.space.typed_like(table, fitted=learned)]
    flags = np.array([kind == "binary" for kind in kinds])
    if not learned:
        for j in np.unique(tree.feature[tree.feature >= 0]):
            at = tree.threshold[tree.feature == j]
            flags[j] |= bool(((at >= 0.0) & (at < 1.0)).all())
    return flags


def answer_chances(
    tree: Tree,
    rows: Floats,
    certainty: Floats,
    flags: NDArray[np.bool_] | None = None,
    unknown: NDArray[np.bool_] | None = None,
) -> Floats:
    """Probability (n, n_classes) of each prediction when the encoded rows shift.

    `flags` (p,) are columns in which 0 and 1 turn into each other, `unknown` (n, p) values that are
    categories which the tree does not know.
    """
    boxes = Boxes.of(tree)
    flags = np.zeros(len(tree.space), bool) if flags is None else flags
    unknown = np.zeros(rows.shape, bool) if unknown is None else unknown
    chances = np.zeros((len(rows), len(tree.classes)))
    for leaf, label in enumerate(boxes.label):
        inside = np.ones(len(rows))
        for j in np.unique(tree.feature[tree.path(int(boxes.leaf[leaf]))[:-1]]):
            x, q = rows[:, j], certainty[j]
            if tree.space[j].is_categorical:
                size = len(tree.space[j].categories)
                own = _category_chance(x, q, boxes.categories[leaf, j, :size])
            else:
                high, low = boxes.high[leaf, j], boxes.low[leaf, j]
                own = step_law(steps_within(x, high), q) - step_law(steps_within(x, low), q)
                own = np.maximum(own, 0.0)  # a box can be empty
                if flags[j]:
                    turned = np.where((low < 1.0 - x) & (1.0 - x <= high), 1.0 - q, 0.0)
                    stays = np.where((low < x) & (x <= high), q, 0.0)
                    own = np.where((x == 0.0) | (x == 1.0), stays + turned, own)
            missing = boxes.missing[leaf, j]
            if unknown[:, j].any():
                known = boxes.categories[leaf, j, :size].mean()
                own = np.where(unknown[:, j], q * missing + (1.0 - q) * known, own)
            inside *= np.where(np.isnan(x) & ~unknown[:, j], missing, own)
        chances[:, label] += inside
    return np.clip(chances, 0.0, 1.0)


def steps_within(x: Floats, end: float) -> Floats:
    """The most whole steps k with ``x + k <= end``, for x + k as a float, which the tree sees."""
    steps = np.floor(end - x)  # which rounding can make one too many or too few
    steps = np.where(x + steps > end, steps - 1.0, steps)
    return np.where(x + (steps + 1.0) <= end, steps + 1.0, steps)


def step_law(steps: Floats, certainty: float) -> Floats:
    """Probability that a shift is at most the given number of steps (two-sided geometric)."""
    away = 1.0 - certainty
    with np.errstate(over="ignore", invalid="ignore"):
        below = 0.5 * away ** np.maximum(-steps, 1.0)
        above = 1.0 - 0.5 * away ** (np.maximum(steps, 0.0) + 1.0)
    return np.where(steps < 0, below, above)


def count_law(chances: Floats) -> Floats:
    """Distribution of the number of correct rows: probabilities of 0, 1, ..., n."""
    # distributions of halves are convolved: directly while small, then by Fourier transform, whose
    # rounding (about 1e-16 a term) is far below what samples can show
    laws = [np.array([1.0 - p, p]) for p in chances]
    while len(laws) > 1:
        pairs = zip(laws[::2], laws[1::2], strict=False)
        rest = laws[-1:] if len(laws) % 2 else []
        laws = [_convolve(one, other) for one, other in pairs] + rest
    return np.maximum(laws[0], 0.0)


def _convolve(one: Floats, other: Floats) -> Floats:
    if min(len(one), len(other)) < 64:
        return np.convolve(one, other)
    return np.asarray(fftconvolve(one, other))


def _category_chance(x: Floats, certainty: float, allowed: NDArray[np.bool_]) -> Floats:
    size = len(allowed)
    stays = allowed[np.clip(np.nan_to_num(x).astype(np.int64), 0, size - 1)]
    others = allowed.sum() - stays
    away = (1.0 - certainty) / (size - 1) if size > 1 else 0.0
    return np.where(stays, 1.0 if size == 1 else certainty, 0.0) + others * away


def _certainties(tree: Tree, certainty: Mapping[str, float] | float) -> Floats:
    names = tree.space.names
    if not isinstance(certainty, Mapping):
        if not is_number(certainty):
            raise TypeError(
                "certainty must be a number, or a dict of names to numbers, in (0, 1]: the "
                f"probability that a value is correct, got {type(certainty).__name__}. A "
                "Perturbation is for certify."
            )
        certainty_cost("every feature", certainty)
        return np.full(len(names), float(certainty))
    check_names("certainty", certainty, names)
    for name, q in certainty.items():
        certainty_cost(name, q)
    return np.array([float(certainty.get(name, 1.0)) for name in names])
