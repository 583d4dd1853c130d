"""Cases: a model, the cost of changes and some rows, as the script of a page evaluates them."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from steadytree.models.boxes import exact_thresholds
from steadytree.models.scorecard import Scorecard, as_scorecard
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.models.variable import Variable
from steadytree.reporting.explain import (
    SHARES_OF_RANGE,
    STATED,
    band_texts,
    explain,
    range_costs,
)
from steadytree.reporting.formatting import label_text, one_line, plain
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.svg.sheet import interval_of
from steadytree.reporting.wording import describe_split
from steadytree.robustness.certify import used_columns
from steadytree.robustness.nearest import bins_of
from steadytree.robustness.perturbation import Moves

UNKNOWN = -1
MOST_NODES = 600  # a larger tree is left to `explain`
MOST_CASES = 30  # rows to pick from


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
    names = list(dict.fromkeys(m.space.names[j] for m in models for j in used_columns(m)))
    if not names or not set(names) <= set(table.names or fitted.space.names):
        return None
    stated = options.perturbation
    noise = stated if stated is not None and stated.is_separate else range_costs(fitted.space)
    learned = isinstance(fitted, Scorecard) or not fitted.single_precision  # as in `certify`
    space = fitted.space.typed_like(table, fitted=learned)
    moves = noise.moves(space)
    columns = [_column(name, models, space, moves) for name in names]
    picked = _pick(fitted, table, truth)
    return {
        "measure": STATED if noise is stated else SHARES_OF_RANGE,
        "largest": moves.largest,
        "columns": columns,
        "model": _model(fitted, columns, names),
        "previous": None if previous is None else _model(previous, columns, names),
        # no row of a private model's data is shown
        "rows": [] if is_private else _rows(fitted, columns, table, truth, picked, names),
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
    fitted: Tree | Scorecard,
    columns: list[dict[str, Any]],
    table: Table,
    truth: NDArray[np.int64],
    picked: NDArray[np.int64],
    names: list[str],
) -> list[dict[str, Any]]:
    """Values of some rows: numbers, and categories by their index on the page or UNKNOWN."""
    own, known = table.take(picked), list(table.names or fitted.space.names)
    values = []
    for name, column in zip(names, columns, strict=True):
        j = known.index(name)
        if column["categories"]:
            text, index = own.text(j), {one: k for k, one in enumerate(column["categories"])}
            listed = [index.get(value, UNKNOWN) for value in text.values]
            values.append([None if k < 0 else listed[k] for k in text.of_row.tolist()])
        else:
            values.append(plain(np.asarray(own.columns[j], np.float64)))
    labels = fitted.classes.tolist()
    return [
        {
            "row": int(row),
            "actual": label_text(labels[truth[row]]),
            "values": [x[k] for x in values],
        }
        for k, row in enumerate(picked)
    ]


def _column(name: str, models: list[Any], space: FeatureSpace, moves: Moves) -> dict[str, Any]:
    """A column with what changes of it cost; null stands for infinity."""
    known = [model.space for model in models if name in model.space.names]
    listed = [one[one.names.index(name)] for one in known]
    found = {
        "name": one_line(name),
        "categories": list(dict.fromkeys(text for one in listed for text in one.categories)),
        "range": [listed[0].low, listed[0].high],
    }
    if name not in space.names:  # of the previous model alone, so nothing depends on it
        return dict(plain(found | {"up": None, "down": None, "missing": None, "integer": False}))
    j = space.names.index(name)
    costs = {key: float(getattr(moves, key)[j]) for key in ("up", "down", "missing", "low", "high")}
    return dict(plain(found | costs | {"integer": bool(moves.integer[j])}))


def _model(
    model: Tree | Scorecard, columns: list[dict[str, Any]], names: list[str]
) -> dict[str, Any]:
    index = {j: names.index(model.space.names[j]) for j in used_columns(model)}
    found = {
        "classes": [label_text(label) for label in model.classes.tolist()],
        # of each column, which category of the model each category of the page is
        "known": [_known(model.space, name, one) for name, one in zip(names, columns, strict=True)],
    }
    if isinstance(model, Tree):
        return {"kind": "tree", **found, **_tree(model, index)}
    return {"kind": "card", **found, **_scorecard(model, index)}


def _known(space: FeatureSpace, name: str, column: dict[str, Any]) -> list[int | None] | None:
    """None for numbers; a category that the model does not know counts as missing."""
    if not column["categories"]:
        return None
    if name not in space.names:
        return [None] * len(column["categories"])
    own = space[space.names.index(name)].index_of
    return [own.get(text) for text in column["categories"]]


def _tree(tree: Tree, index: dict[int, int]) -> dict[str, Any]:
    inner = ~tree.is_leaf
    return {
        "column": [index.get(int(j), -1) for j in tree.feature],
        "threshold": [_number(at) for at in exact_thresholds(tree).tolist()],
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


def _number(threshold: float) -> float | str | None:
    """A threshold as the script reads it; JSON has no infinity."""
    if math.isinf(threshold):
        return "Infinity" if threshold > 0 else "-Infinity"
    return None if math.isnan(threshold) else threshold


def _scorecard(card: Scorecard, index: dict[int, int]) -> dict[str, Any]:
    bins = bins_of(card, range_costs(card.space).moves(card.space))  # where they end, at any cost
    parts = []
    for entry, j in enumerate(bins.column.tolist()):
        own = slice(bins.start[entry], bins.start[entry + 1])
        kinds = zip(bins.sort[own].tolist(), bins.box[own], bins.points[own].tolist(), strict=True)
        parts.append({"column": index[j], "bins": [_bin(*one) for one in kinds]})
    return {
        "parts": parts,
        "offset": card.class_offset.tolist(),
        "variables": [_variable(variable, index) for variable in card.variables],
        "risks": _risks(card),
        "slope": None if card.is_binary or not card.gives_risks else card.slope,
    }


def _variable(variable: Variable, index: dict[int, int]) -> dict[str, Any]:
    categories = np.arange(len(variable.column.categories), dtype=np.float64)
    return {
        "column": index[variable.feature],
        "thresholds": variable.thresholds.tolist(),
        "band": variable.band_of(categories).tolist(),  # of each category
        "texts": band_texts(variable),
        "points": [list(band.points) for band in variable.bands],
    }


def _bin(sort: int, box: NDArray[np.float64], points: list[int]) -> dict[str, Any]:
    low, high = plain(box[:2])
    return {"sort": int(sort), "low": low, "high": high, "points": points}


def _risks(card: Scorecard) -> list[dict[str, Any]]:
    """Risk of each total that two classes can have; above two classes the slope gives it."""
    if not card.is_binary:
        return []
    margin = int(card.offset[0] - card.class_offset[1])
    points, known = card.points[:, 0], card.risk_table.rows if card.risk_table is not None else ()
    rows = {row.total: row for row in known}
    least, most = (int(f(points, 0).sum() + card.offset[0]) for f in (np.minimum, np.maximum))
    found = []
    for total in range(least, most + 1):
        row = rows.get(total)
        found.append(
            {
                "total": total - margin,
                "risk": float(card.risk([total])[0, 1]) if card.gives_risks else None,
                "interval": None if row is None else list(interval_of(card, row)),
                "n_rows": None if row is None else row.n_rows,
            }
        )
    return found
