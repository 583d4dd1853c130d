"""The trees of XGBoost and LightGBM as flat arrays; neither package is imported."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import UnsuitableDataError
from steadytree.models.boxes import double_thresholds
from steadytree.models.tree import LEAF

ZERO = float(np.float32(1e-35))  # the greatest number that LightGBM takes as zero


class Margins(NamedTuple):
    """Scores that a boosted model itself gives."""

    of_zeros: NDArray[np.float64]  # (n_scores,): of a row of zeros
    precision: float  # relative, of its sums


class Trees(NamedTuple):
    """The nodes of all trees of an ensemble; ``x <= threshold`` goes left in float64."""

    root: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float64]  # (n_nodes, n_scores)
    n_features: int
    margins: Margins | None = None  # None where values are shares of classes


def leaf_of(trees: Trees, x: NDArray[np.float64]) -> NDArray[np.int64]:
    """The leaf of each tree that a row without missing values falls in."""
    found = []
    for root in trees.root.tolist():
        node = root
        while trees.left[node] != LEAF:
            is_left = x[trees.feature[node]] <= trees.threshold[node]
            node = int(trees.left[node] if is_left else trees.right[node])
        found.append(node)
    return np.array(found, dtype=np.int64)


def refuse_categories(model: str) -> NoReturn:
    """Refuse an ensemble with splits on categories."""
    raise UnsuitableDataError(
        f"{model} splits on categories itself, which the verifier does not take: encode them "
        "before fitting, such as by OneHotEncoder or OrdinalEncoder in a Pipeline."
    )


def _unsuitable(model: str, fault: str) -> UnsuitableDataError:
    return UnsuitableDataError(f"{model} {fault}, which cannot be certified: fit it without.")


def read_xgboost(model: Any) -> Trees:
    """An XGBClassifier; it rounds its inputs to float32 and sends values below a threshold left."""
    booster = model.get_booster()
    best = getattr(model, "best_iteration", None)  # of early stopping
    booster = booster if best is None else booster[: best + 1]
    found = json.loads(bytes(booster.save_raw("json")))["learner"]
    gradient = found["gradient_booster"]
    if gradient["name"] != "gbtree":
        raise _unsuitable("XGBClassifier", f"is of the booster {gradient['name']!r}")
    if not (model.missing is None or np.isnan(model.missing)):
        raise _unsuitable("XGBClassifier", f"takes {model.missing!r} as missing")
    parts = gradient["model"]["trees"]
    if "c" in found["feature_types"] or any(any(part["split_type"]) for part in parts):
        refuse_categories("XGBClassifier")
    if any(int(part["tree_param"]["size_leaf_vector"]) > 1 for part in parts):
        raise _unsuitable("XGBClassifier", "has several values a leaf")
    n_scores = max(int(found["learner_model_param"]["num_class"]), 1)
    root = np.cumsum([0, *(len(part["left_children"]) for part in parts)])

    def joined(key: str, dtype: Any) -> NDArray[Any]:
        return np.concatenate([np.array(part[key], dtype) for part in parts])

    start = np.repeat(root[:-1], np.diff(root))
    left, right = joined("left_children", np.int64), joined("right_children", np.int64)
    leaf = left == LEAF
    # x < t of float32 is x <= the float32 below t
    at = joined("split_conditions", np.float32)
    below = np.nextafter(at, np.float32(-np.inf)).astype(np.float64)
    value = np.zeros((len(leaf), n_scores))
    score = np.repeat(np.array(gradient["model"]["tree_info"]), np.diff(root))
    value[np.arange(len(leaf)), score] = np.where(leaf, at.astype(np.float64), 0.0)
    n_features = int(found["learner_model_param"]["num_feature"])
    zeros = model.predict(np.zeros((1, n_features)), output_margin=True, validate_features=False)
    return Trees(
        root[:-1],
        np.where(leaf, LEAF, joined("split_indices", np.int64)),
        double_thresholds(np.where(leaf, np.nan, below)),
        np.where(leaf, LEAF, left + start),
        np.where(leaf, LEAF, right + start),
        joined("default_left", bool),
        value,
        n_features,
        Margins(np.ravel(zeros).astype(np.float64), float(np.finfo(np.float32).eps)),
    )


def read_lightgbm(model: Any) -> Trees:
    """An LGBMClassifier; missing values are zero where no value was missing in training."""
    best = model.best_iteration_ or None  # of early stopping
    found = model.booster_.dump_model(num_iteration=best)
    if found.get("average_output"):
        raise _unsuitable("LGBMClassifier", "is a forest (boosting_type 'rf')")
    n_scores = found["num_tree_per_iteration"]
    rows: list[tuple[int, float, int, int, bool, float, int]] = []
    root = []
    for index, tree in enumerate(found["tree_info"]):
        root.append(len(rows))
        _add_node(tree["tree_structure"], index % n_scores, rows)
    feature, threshold, left, right, missing, leaf_value, score = zip(*rows, strict=True)
    value = np.zeros((len(rows), n_scores))
    value[np.arange(len(rows)), list(score)] = leaf_value
    n_features = found["max_feature_idx"] + 1
    zeros = model.booster_.predict(np.zeros((1, n_features)), raw_score=True, num_iteration=best)
    return Trees(
        np.array(root, dtype=np.int64),
        np.array(feature, dtype=np.int64),
        np.array(threshold, dtype=np.float64),
        np.array(left, dtype=np.int64),
        np.array(right, dtype=np.int64),
        np.array(missing, dtype=bool),
        value,
        n_features,
        Margins(np.ravel(zeros).astype(np.float64), float(np.finfo(np.float64).eps)),
    )


def _add_node(node: dict[str, Any], score: int, rows: list[Any]) -> int:
    """Append a node and all below it; returns its place."""
    own = len(rows)
    if "split_feature" not in node:
        if "leaf_coeff" in node:
            raise _unsuitable("LGBMClassifier", "has linear trees")
        rows.append((LEAF, np.nan, LEAF, LEAF, False, node["leaf_value"], score))
        return own
    if node["decision_type"] != "<=":
        refuse_categories("LGBMClassifier")
    if node["missing_type"] == "Zero":
        raise _unsuitable("LGBMClassifier", "takes zero as missing")
    at, kind = float(node["threshold"]), node["missing_type"]
    missing = node["default_left"] if kind == "NaN" else at >= 0.0
    if abs(at) <= ZERO:  # what is as near to zero as that is taken as zero
        at = ZERO if at >= 0.0 else float(np.nextafter(-ZERO, -np.inf))
    rows.append(None)
    left = _add_node(node["left_child"], score, rows)
    right = _add_node(node["right_child"], score, rows)
    rows[own] = (node["split_feature"], at, left, right, missing, 0.0, score)
    return own


READERS: dict[str, Callable[[Any], Trees]] = {
    "xgboost.XGBClassifier": read_xgboost,
    "lightgbm.LGBMClassifier": read_lightgbm,
}
