"""The least moves of encoded rows to another prediction of a tree or scorecard."""

from __future__ import annotations  # those of inner functions would be made anew at each call

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.parallel import in_threads
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.condition import Condition
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import Tree
from steadytree.robustness._kernels import attack
from steadytree.robustness._kernels.attack import BinTable, MoveTable, NodeTable
from steadytree.robustness.joint import JointShifts, OneHotGroups, Splits
from steadytree.robustness.moves import Moves
from steadytree.robustness.perturbation import Perturbation

VISITS = 8  # of each value, about: a certificate takes so much longer than counting it
NO_BOX = (np.nan, np.nan, np.inf, -np.inf)


def nearest(
    model: Tree | Scorecard,
    rows: NDArray[np.float64],
    own: NDArray[np.int64],
    noise: Perturbation,
    allowed: tuple[FeatureSpace, Moves, Mapping[tuple[int, int], str]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Size of the least move of each encoded row to another prediction, and where it ends.

    `allowed` has the space with its kinds, the moves in it, and the unknown categories.
    """
    space, moves, unknown = allowed
    if isinstance(model, Scorecard) and noise.together:
        raise ValueError(
            "columns that move together are certified for trees, and this is a risk score: pass "
            "its to_tree(), a tree for up to 8 conditions."
        )
    groups = OneHotGroups.of(space, noise)
    shifts = JointShifts.of(space, noise, moves).beside(groups)
    start = groups.merge_rows(rows, space)
    distance, ends = np.empty(len(rows)), np.empty_like(start)
    for some, own_moves in moves.by_row(rows, unknown_flags(unknown, rows.shape)):
        allowed_moves = groups.merge_moves(own_moves, space)
        if isinstance(model, Scorecard):
            bins, prices = bins_of(model, allowed_moves, groups), allowed_moves.prices
            shared = bins, prices, moves.largest
            found = _in_ranges(attack.nearest_scorecard_change, start[some], own[some], *shared)
        else:
            wanted = groups.merge_splits(Splits.of(model)), start[some], own[some], allowed_moves
            found = _nearest_shift(*wanted, shifts) if shifts.groups else _nearest_leaf(*wanted)
        distance[some], ends[some] = found
    return distance, groups.part_rows(ends, rows)


def _nearest_leaf(
    splits: Splits, rows: NDArray[np.float64], own: NDArray[np.int64], moves: Moves
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes = node_table(splits, moves)
    table = MoveTable(moves.prices, moves.categorical, moves.largest)
    return _in_ranges(_least_moves, rows, own, nodes, table)


def _least_moves(
    rows: NDArray[np.float64], own: NDArray[np.int64], nodes: NodeTable, table: MoveTable
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    _, where = attack.nearest_change(rows, own, nodes, table)
    witness, distance = attack.move_rows_into(rows, where, nodes, table)
    return distance, witness


def _in_ranges(
    change: Callable[..., Any], rows: NDArray[np.float64], own: NDArray[np.int64], *shared: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``change(rows, own, *shared)``, in the threads that joblib is asked for."""

    def some(first: int, last: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return change(rows[first:last], own[first:last], *shared)

    found = in_threads(some, len(rows), rows.size * VISITS)
    distance, witness = zip(*found, strict=True)
    return np.concatenate(distance), np.concatenate(witness)


def _nearest_shift(
    splits: Splits,
    rows: NDArray[np.float64],
    own: NDArray[np.int64],
    moves: Moves,
    shifts: JointShifts,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Row by row, since the splits on a shift depend on where the row is."""
    sizes, ends = np.empty(len(rows)), np.empty_like(rows)
    for k, x in enumerate(rows):
        row, shifted, allowed, units = shifts.of_row(x, splits, moves)
        size, moved = _nearest_leaf(shifted, row[None], own[k : k + 1], allowed)
        sizes[k], ends[k] = size[0], shifts.ends(moved[0], x, units)
    return sizes, ends


def node_table(splits: Splits, moves: Moves) -> NodeTable:
    """The nodes of a tree as boxes, with where moves into them may end."""
    tree = splits.tree
    shape = tree.left, tree.right, tree.missing_left, splits.n_categories, splits.subset
    parent, column, before, low, high, allowed, missing = attack.narrow_nodes(
        splits.feature, splits.threshold, *shape
    )
    least, greatest = moves.ends(column, low, high)
    box = np.stack([low, high, least, greatest], axis=1)
    opened = np.where(moves.categorical[column], allowed.any(axis=1), least <= greatest)
    flags = np.stack([missing, opened], axis=1)
    only = attack.only_labels(tree.left, tree.right, tree.label)
    return NodeTable(tree.left, tree.right, parent, column, before, box, flags, allowed, only)


def bins_of(scorecard: Scorecard, moves: Moves, groups: OneHotGroups | None = None) -> BinTable:
    """The scorecard's columns in bins within which no condition changes.

    With `groups`, of which `moves` are, one-hot columns have a bin for each category.
    """
    used = {condition.feature for condition in scorecard.conditions}
    others = np.arange(len(scorecard.space)) if groups is None else groups.others
    columns: list[int] = []
    start, sorts = [0], [np.empty(0, np.int64)]
    boxes, points = [np.empty((0, 4))], [np.empty((0, len(scorecard.classes)), np.int64)]

    def add(column: int, sort: Any, box: Any, held: Any) -> None:
        columns.append(column)
        sorts.append(sort)
        boxes.append(box)
        points.append(held)
        start.append(start[-1] + len(sort))

    for position, j in enumerate(others.tolist()):
        if j in used:
            conditions = [one for one in scorecard.conditions if one.feature == j]
            sort, box, probe = _column_bins(scorecard.space[j], position, conditions, moves)
            add(position, sort, box, _points(scorecard, {j: probe}))
    for k, group in enumerate(() if groups is None else groups.groups):
        if used & set(group):
            sort, box = _category_bins(groups.sizes[k])  # type: ignore[union-attr]
            flags = {j: np.append(box[:-1, 0] == i, np.nan) for i, j in enumerate(group)}
            add(len(others) + k, sort, box, _points(scorecard, flags))
    joined = np.concatenate(sorts), np.concatenate(boxes), np.concatenate(points)
    return BinTable(np.array(columns, np.int64), np.array(start), *joined, scorecard.class_offset)


def _points(scorecard: Scorecard, probe: Mapping[int, Any]) -> NDArray[np.int64]:
    """Points (n_bins, n_classes) that the conditions on some columns add at values of them."""
    own = [k for k, one in enumerate(scorecard.conditions) if one.feature in probe]
    held = [scorecard.conditions[k].holds(probe[scorecard.conditions[k].feature]) for k in own]
    return np.stack(held, axis=1) @ scorecard.class_points[own]


def _category_bins(size: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Sort and box of each category, and of missing values."""
    box = np.tile(NO_BOX, (size + 1, 1))
    box[:-1, 0] = np.arange(size)
    return np.append(np.full(size, attack.CATEGORY), attack.MISSING), box


def _column_bins(
    column: Column, j: int, conditions: list[Condition], moves: Moves
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Sort and box of each bin of a column, and a value in it."""
    if column.is_categorical:
        sort, box = _category_bins(len(column.categories))
        return sort, box, box[:, 0]
    at = np.unique([c.threshold for c in conditions if not np.isnan(c.threshold)])
    # a bin reaches from one threshold to just below the next: low < x <= high in float64
    ends = np.concatenate([[-np.inf], np.nextafter(at, -np.inf), [np.inf]])
    reach = moves.ends(np.full(len(at) + 1, j), ends[:-1], ends[1:])
    box = np.concatenate([np.stack([ends[:-1], ends[1:], *reach], axis=1), [NO_BOX]])
    sort = np.append(np.full(len(at) + 1, attack.NUMBER), attack.MISSING)
    below = np.nextafter(at[0], -np.inf) if len(at) else 0.0
    return sort, box, np.concatenate([[below], at, [np.nan]])


def answers(model: Tree | Scorecard, rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Indices of the classes that encoded rows are predicted to be of."""
    if isinstance(model, Scorecard):
        return model.answer_encoded(rows)
    return model.label[model.apply_encoded(rows)]


def unknown_flags(
    unknown: Mapping[tuple[int, int], str], shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Where unknown categories stand."""
    flags = np.zeros(shape, bool)
    for cell in unknown:
        flags[cell] = True
    return flags
