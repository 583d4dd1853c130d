"""Cases: a model, the cost of changes and some rows, as the script of a page evaluates them."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from steadytree.models.boxes import exact_thresholds
from steadytree.models.scorecard import Scorecard, as_scorecard
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.reporting.explain import (
    SHARES_OF_RANGE,
    STATED,
    columns_of,
    explain,
    range_costs,
)
from steadytree.reporting.formatting import label_text, one_line, plain
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.wording import describe_split
from steadytree.robustness.certify import bins_of
from steadytree.robustness.perturbation import Moves

MOST_NODES = 600  # a larger tree is left to `explain`
MOST_CASES = 30  # rows to pick from
LARGEST = float(np.finfo(np.float64).max)


def build_cases(
    fitted: Tree | Scorecard,
    table: Table,
    truth: NDArray[np.int64],
    options: ReportOptions,
    is_private: bool,
) -> dict[str, Any] | None:
    """Model, columns, costs and some rows; None where the model is too large for a page."""
    earlier = options.previous
    previous = None if earlier is None else as_scorecard(earlier) or as_tree(earlier, table)
    models = [model for model in (fitted, previous) if model is not None]
    if any(isinstance(model, Tree) and model.n_nodes > MOST_NODES for model in models):
        return None
    names = list(dict.fromkeys(m.space.names[j] for m in models for j in columns_of(m)))
    if not names or not set(names) <= set(table.names or fitted.space.names):
        return None
    noise = options.perturbation or range_costs(fitted.space)
    learned = isinstance(fitted, Scorecard) or not fitted.single_precision  # as in `certify`
    space = fitted.space.typed_like(table, fitted=learned)
    moves = noise.moves(space)
    picked = _pick(fitted, table, truth)
    return {
        "measure": SHARES_OF_RANGE if options.perturbation is None else STATED,
        "largest": moves.largest,
        "columns": [_column(name, models, space, moves) for name in names],
        "model": _model(fitted, names, moves),
        "previous": None if previous is None else _model(previous, names, moves),
        # no row of a private model's data is shown
        "rows": [] if is_private else _rows(models, names, table, truth, picked),
        "example": None
        if is_private
        else explain(
            fitted, table.take(picked[:1]), perturbation=noise, previous=options.previous
        ).to_dict()
        | {"row": int(picked[0])},
    }


def _pick(fitted: Tree | Scorecard, table: Table, truth: NDArray[np.int64]) -> NDArray[np.int64]:
    """Some rows, spread evenly: half of them wrong where there are as many."""
    own = fitted.predict(table.select(fitted.space.names))
    wrong = own != fitted.classes[truth]
    some = [_spread(np.flatnonzero(flags), MOST_CASES // 2) for flags in (wrong, ~wrong)]
    return np.concatenate(some)


def _spread(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]


def _rows(
    models: list[Any],
    names: list[str],
    table: Table,
    truth: NDArray[np.int64],
    picked: NDArray[np.int64],
) -> list[dict[str, Any]]:
    columns = []
    for name in names:
        model = next(model for model in models if name in model.space.names)
        encoded = model.space.encode(table.take(picked).select(model.space.names))
        columns.append(np.asarray(encoded, np.float64)[:, model.space.names.index(name)])
    values, labels = np.stack(columns, axis=1), models[0].classes.tolist()
    return [
        {"row": int(row), "actual": label_text(labels[truth[row]]), "values": plain(values[k])}
        for k, row in enumerate(picked)
    ]


def _column(name: str, models: list[Any], space: FeatureSpace, moves: Moves) -> dict[str, Any]:
    """A column with what changes of it cost; null stands for infinity."""
    known = next(model.space for model in models if name in model.space.names)
    column = known[known.names.index(name)]
    found = {
        "name": one_line(name),
        "categories": [label_text(one) for one in column.categories],
        "range": [column.low, column.high],
    }
    if name not in space.names:  # of the previous model alone, so nothing depends on it
        return dict(plain(found | {"up": None, "down": None, "missing": None, "integer": False}))
    j = space.names.index(name)
    costs = {key: float(getattr(moves, key)[j]) for key in ("up", "down", "missing", "low", "high")}
    return dict(plain(found | costs | {"integer": bool(moves.integer[j])}))


def _model(model: Tree | Scorecard, names: list[str], moves: Moves) -> dict[str, Any]:
    index = {j: names.index(model.space.names[j]) for j in columns_of(model)}
    classes = [label_text(label) for label in model.classes.tolist()]
    if isinstance(model, Tree):
        return {"kind": "tree", "classes": classes, **_tree(model, index)}
    return {"kind": "card", "classes": classes, **_scorecard(model, index, moves)}


def _tree(tree: Tree, index: dict[int, int]) -> dict[str, Any]:
    inner = ~tree.is_leaf
    return {
        "column": [index.get(int(j), -1) for j in tree.feature],
        # beyond the greatest number there is none, so it stands for infinity
        "threshold": [_finite(at) for at in exact_thresholds(tree)],
        "categories": [np.flatnonzero(row).tolist() if row.any() else None for row in tree.subset],
        "left": tree.left.tolist(),
        "right": tree.right.tolist(),
        "missing_left": tree.missing_left.tolist(),
        "text": [
            describe_split(tree, node).text if inner[node] else "" for node in range(tree.n_nodes)
        ],
        "label": tree.label.tolist(),
        "share": [float(tree.value[k, label]) for k, label in enumerate(tree.label)],
        "weight": tree.weight.tolist(),
    }


def _finite(threshold: float) -> float | None:
    return None if np.isnan(threshold) else float(np.clip(threshold, -LARGEST, LARGEST))


def _scorecard(card: Scorecard, index: dict[int, int], moves: Moves) -> dict[str, Any]:
    free = replace(moves, integer=np.zeros_like(moves.integer))
    bins = bins_of(card, free)  # ends of bins do not depend on the costs
    parts = []
    for entry, j in enumerate(bins.column.tolist()):
        own = slice(bins.start[entry], bins.start[entry + 1])
        kinds = zip(bins.sort[own].tolist(), bins.box[own], bins.points[own].tolist(), strict=True)
        parts.append({"column": index[j], "bins": [_bin(*one) for one in kinds]})
    return {
        "parts": parts,
        "offset": card.class_offset.tolist(),
        "conditions": [
            {
                "text": one_line(text),
                "column": index[condition.feature],
                "sort": condition.sort,
                "threshold": _finite(condition.threshold),
                "categories": list(condition.categories),
                "points": points,
            }
            for text, condition, points in zip(
                card.texts(), card.conditions, card.class_points.tolist(), strict=True
            )
        ],
        "risks": _risks(card),
    }


def _bin(sort: int, box: NDArray[np.float64], points: list[int]) -> dict[str, Any]:
    low, high = plain(box[:2])
    return {"sort": int(sort), "low": low, "high": high, "points": points}


def _risks(card: Scorecard) -> list[dict[str, Any]]:
    """Risk of each total of two classes that occurred; above two classes none."""
    if not card.is_binary or card.risk_table is None:
        return []
    margin = int(card.offset[0] - card.class_offset[1])
    return [
        {
            "total": row.total - margin,
            "risk": row.risk if card.gives_risks else None,
            "interval": list(row.interval),
            "n_rows": row.n_rows,
        }
        for row in card.risk_table.rows
    ]
