"""Card distance: how far rows are from another answer of a card of points."""

import numpy as np
from numpy.typing import NDArray

from steadytree.core.condition import Condition
from steadytree.core.moves import LARGEST, Moves
from steadytree.core.scorecard import Scorecard
from steadytree.kernels.card_moves import (
    CATEGORY,
    MISSING,
    NUMBER,
    CellTable,
    nearest_card_change,
)

NO_BOX = (np.nan, np.nan, np.inf, -np.inf)


def nearest_other_total(
    card: Scorecard, rows: NDArray[np.float64], own: NDArray[np.int64], moves: Moves
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Size of the least move of each encoded row to an answer not its own, and where to."""
    prices = np.stack([moves.up, moves.down, moves.missing], axis=1)
    # numbers may cost nothing to move, but staying is no move to another answer
    return nearest_card_change(rows, own, cells_of(card, moves), prices, moves.norm == LARGEST)


def cells_of(card: Scorecard, moves: Moves) -> CellTable:
    """The card's columns cut into cells within which all points stay."""
    columns = sorted({condition.feature for condition in card.conditions})
    start, sorts, boxes, points = [0], [], [], []
    for j in columns:
        places = [k for k, condition in enumerate(card.conditions) if condition.feature == j]
        asked = [card.conditions[k] for k in places]
        sort, box, probe = _column_cells(card, j, asked, moves)
        held = np.stack([condition.holds(probe) for condition in asked], axis=1)
        points.append(held @ card.class_points[places])
        sorts.append(sort)
        boxes.append(box)
        start.append(start[-1] + len(sort))
    n_classes = len(card.classes)
    return CellTable(
        np.array(columns, np.int64),
        np.array(start),
        np.concatenate([np.empty(0, np.int64), *sorts]),
        np.concatenate([np.empty((0, 4)), *boxes]),
        np.concatenate([np.empty((0, n_classes), np.int64), *points]),
        card.class_offset,
    )


def _column_cells(
    card: Scorecard, j: int, asked: list[Condition], moves: Moves
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Sort and box of each cell of a column, and a value in it."""
    column = card.space[j]
    if column.is_categorical:
        codes = np.arange(len(column.categories), dtype=float)
        box = np.tile(NO_BOX, (len(codes) + 1, 1))
        box[:-1, 0] = codes
        sort = np.append(np.full(len(codes), CATEGORY), MISSING)
        return sort, box, np.append(codes, np.nan)
    at = np.unique([c.threshold for c in asked if not np.isnan(c.threshold)])
    # a cell reaches from one threshold to just below the next: low < x <= high in float64
    edges = np.concatenate([[-np.inf], np.nextafter(at, -np.inf), [np.inf]])
    low, high = edges[:-1], edges[1:]
    least, greatest = moves.ends(np.full(len(low), j), low, high)
    box = np.concatenate([np.stack([low, high, least, greatest], axis=1), [NO_BOX]])
    sort = np.append(np.full(len(low), NUMBER), MISSING)
    inside = np.append(at, np.nan) if len(at) else np.array([np.nan])
    probe = np.concatenate([[at[0] - 1 if len(at) else 0.0], inside])
    if len(at):
        probe[0] = np.nextafter(at[0], -np.inf)
    return sort, box, probe
