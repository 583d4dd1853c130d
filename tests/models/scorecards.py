"""Random cards and rows to try them on."""

import numpy as np
import pandas as pd

from steadytree.models.condition import Condition
from steadytree.models.scorecard import Scorecard
from tests.models.trees import _random_space, random_texts

LABELS = ["no", "yes", "maybe", "never"]


def random_card(rng, n_conditions=5, n_numeric=3, n_categorical=1, n_classes=2):
    """A card with all sorts of conditions, points of both signs and a random offset."""
    space = _random_space(rng, n_numeric, n_categorical)
    drawn = {random_condition(rng, space) for _ in range(n_conditions)}
    conditions = sorted(drawn, key=lambda condition: repr(condition.key()))
    n_totals = 1 if n_classes == 2 else n_classes
    points = rng.integers(-3, 4, (len(conditions), n_totals))
    offset = rng.integers(-3, 4, n_totals)
    risks = (0.7, 0.1) if rng.integers(2) else ()
    return Scorecard(space, LABELS[:n_classes], conditions, points, offset, *risks)


def random_condition(rng, space):
    j = int(rng.integers(len(space)))
    if rng.random() < 0.15:
        return Condition(j, str(rng.choice(["missing", "present"])))
    if space[j].is_categorical:
        size = len(space[j].categories)
        return Condition(
            j, "among", categories=rng.choice(size, rng.integers(1, size + 1), replace=False)
        )
    threshold = rng.choice([rng.integers(-15, 11) / 10, rng.normal(), 1 / 3, 0.0, 1.0])
    return Condition(j, str(rng.choice(["at_least", "below"])), threshold)


def random_rows_of_card(rng, card, n=50):
    """Rows on, beside and far from the thresholds; whole numbers in whole columns."""
    columns = {}
    for j, column in enumerate(card.space):
        if column.is_categorical:
            columns[column.name] = random_texts(rng, column, n)
            continue
        at = np.array([c.threshold for c in card.conditions if c.feature == j])
        at = at[np.isfinite(at)]
        near = np.concatenate([at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf)])
        near = np.concatenate([near, [np.nan], rng.normal(size=4)])
        drawn = rng.choice(near, n)
        if column.kind in ("integer", "binary"):
            drawn = np.round(drawn)
        if column.kind == "binary":
            drawn = np.clip(drawn, 0, 1)
        columns[column.name] = drawn
    return pd.DataFrame(columns)
