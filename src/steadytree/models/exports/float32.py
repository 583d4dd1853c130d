"""Where a tree decides otherwise once its inputs are rounded to float32, as scikit-learn does."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.models.boxes import exact_thresholds
from steadytree.models.tree import Tree

# Of a column's range: rounding a value as large as the range moves it by at most 6e-8 of it.
SMALL_SHARE = 1e-6


def warn_of_rounding(tree: Tree, X: Any = None) -> None:
    """Warn with the number of rows of X that change their leaf, or else of close thresholds."""
    if tree.single_precision:
        return
    if X is not None:
        values = tree.space.encode(X)
        leaves = (
            tree.apply_encoded(values),
            replace(tree, single_precision=True).apply_encoded(values),
        )
        differ = int((leaves[0] != leaves[1]).sum())
        what = f"{differ:,} of the {len(values):,} rows of X get another leaf"
    else:
        nodes = coarse_nodes(tree)
        differ = len(nodes)
        n_thresholds = int(np.isfinite(tree.threshold).sum())
        what = f"values near {differ:,} of {n_thresholds:,} thresholds get another leaf"
        if differ:
            column, at = tree.space[tree.feature[nodes[0]]].name, tree.threshold[nodes[0]]
            what += f", such as {column!r} near {at:.17g}"
    if differ:
        warnings.warn(
            f"scikit-learn rounds inputs to float32, and {what}: use to_onnx(), to_source() or "
            "to_sql() of the tree, which compare in float64, or subtract a constant from the "
            "column before fitting.",
            UserWarning,
            stacklevel=4,
        )


def coarse_nodes(tree: Tree) -> NDArray[np.int64]:
    """Splits with a share of their column's range, or an integer, that rounding moves across."""
    rounded = exact_thresholds(replace(tree, single_precision=True))
    nodes = np.flatnonzero(np.isfinite(tree.threshold))
    low = np.minimum(tree.threshold[nodes], rounded[nodes])
    high = np.maximum(tree.threshold[nodes], rounded[nodes])
    columns = [tree.space[j] for j in tree.feature[nodes]]
    width = np.array([column.high - column.low for column in columns])
    is_integer = np.array([column.kind in ("integer", "binary") for column in columns], bool)
    holds_integer = np.floor(high) > np.floor(low)  # in (low, high]
    is_coarse = high - low > SMALL_SHARE * width
    return nodes[np.where(is_integer, holds_integer, is_coarse & (width > 0))]
