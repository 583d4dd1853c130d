"""Ensemble: forests and boosted trees as flat arrays, over the columns that the model is given."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from steadytree._base.exceptions import NotATreeError, UnsuitableDataError
from steadytree._base.optional import PIPELINE, is_a
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table, text_values
from steadytree.models.black_box import BlackBox
from steadytree.models.boxes import double_thresholds
from steadytree.models.ensembles.boosters import READERS, Margins, Trees, leaf_of, refuse_categories
from steadytree.models.pipeline import Side, as_rows, raw_splits
from steadytree.models.tree import LEAF, Tree

READ = (
    "RandomForestClassifier, ExtraTreesClassifier, GradientBoostingClassifier, "
    "HistGradientBoostingClassifier, XGBClassifier, LGBMClassifier, and pipelines that end in one"
)
EXACT = 2.0**30  # leaf values that are multiples of its inverse add up without rounding
ROUNDING = 1e-9  # of sums of float64, beyond which no order of adding matters


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees whose leaf values add up to scores of classes; the greatest wins, the first on ties.

    All nodes stand in one array, a tree's beginning at its root. A value goes left where
    ``x <= threshold`` in float64, or where its category is in the subset; a missing value and a
    category that the space does not know go left where ``missing_left``.
    """

    space: FeatureSpace
    classes: NDArray[Any]
    root: NDArray[np.int64]  # (n_trees,)
    feature: NDArray[np.int64]  # (n_nodes,), LEAF at leaves, as left and right
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    subset: NDArray[np.bool_]  # (n_nodes, n_categories)
    value: NDArray[np.float64]  # (n_nodes, n_classes), of leaves
    base: NDArray[np.float64]  # (n_classes,)
    tolerance: float  # how much a score may differ from the model's own by rounding; 0: not at all
    model: BlackBox
    categories: dict[int, list[Any]]  # of columns, as the model was given them

    def scores(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores (n, n_classes) of encoded rows."""
        total = np.tile(self.base, (len(rows), 1))
        for root in self.root.tolist():
            total += self.value[self._leaves(rows, root)]
        return total

    def _leaves(self, rows: NDArray[np.float64], root: int) -> NDArray[np.int64]:
        node = np.full(len(rows), root)
        categorical = self.space.categorical
        while True:
            inner = np.flatnonzero(self.left[node] != LEAF)
            if not len(inner):
                return node
            at = node[inner]
            x = rows[inner, self.feature[at]]
            left = x <= self.threshold[at]
            named = categorical[self.feature[at]] & ~np.isnan(x)
            left[named] = self.subset[at[named], x[named].astype(np.int64)]
            left = np.where(np.isnan(x), self.missing_left[at], left)
            node[inner] = np.where(left, self.left[at], self.right[at])

    def predict(self, table: Table, moved: NDArray[np.float64] | None = None) -> NDArray[np.int64]:
        """The model's own predictions as indices of classes; `moved` are encoded rows to put in.

        Values that did not move, and columns that no tree sees, stay as the table has them.
        """
        if moved is not None:
            table = self._with_values(table, moved)
        index = {label: k for k, label in enumerate(self.classes.tolist())}
        return np.array([index[label] for label in self.model.predict(table).tolist()])

    def _with_values(self, table: Table, moved: NDArray[np.float64]) -> Table:
        start, columns, given = self.space.encode(table), list(table.columns), dict(table.as_given)
        names = self.space.names if table.names is None else table.names
        for j, name in enumerate(self.space.names):
            changed = (moved[:, j] != start[:, j]) & ~np.isnan(moved[:, j])
            values: NDArray[Any] = moved[changed, j]
            at = names.index(name)
            if j in self.categories:
                values = np.array(self.categories[j], dtype=object)[values.astype(np.int64)]
                columns[at] = columns[at].astype(object)
                if name in given:
                    cells = np.array(given[name].values, dtype=object)[given[name].of_row]
                    cells[changed] = values
                    given[name] = text_values(cells.tolist())
            else:
                columns[at] = start[:, j].astype(np.float64)
                given.pop(name, None)
            columns[at][changed] = values
        return Table(table.names, columns, {}, as_given=given)

    def check_answers(self, rows: NDArray[np.float64], own: NDArray[np.int64]) -> None:
        """Refuse an ensemble whose scores tell another class than the model's own predictions."""
        scores = self.scores(rows)
        behind = scores.max(axis=1) - scores[np.arange(len(rows)), own]
        wrong = np.flatnonzero(behind > self.tolerance)
        if len(wrong):
            raise UnsuitableDataError(
                f"{type(self.model.estimator).__name__}: its trees, added up, predict another "
                f"class than the model does in {len(wrong)} of {len(rows)} rows, the first being "
                f"row {wrong[0]}: rows hold what its trees cannot tell, such as a category that "
                "was not in training. Leave such rows out."
            )


def as_ensemble(model: Any, table: Table) -> Ensemble:
    """The trees of a fitted ensemble over the columns that it is given.

    Thresholds decide in float64 as the model does, also where it rounds its inputs to float32.
    """
    model = getattr(model, "estimator", model) if isinstance(model, BlackBox) else model
    model = getattr(model, "best_estimator_", model)  # of a search for settings
    last = model.steps[-1][1] if is_a(model, *PIPELINE) else model
    trees = _reader(last)(last)
    box = BlackBox(model, "certified as an ensemble")
    names = box.names or table.names
    found = _ensemble(trees, box, names)
    return _behind_steps(found, model, table) if is_a(model, *PIPELINE) else found


def _reader(estimator: Any) -> Callable[[Any], Trees]:
    for kind in type(estimator).__mro__:
        name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        if name in _OWN_READERS | READERS:
            return (_OWN_READERS | READERS)[name]
    raise NotATreeError(
        f"a tree or an ensemble of trees is needed, got {type(estimator).__name__}: certified are "
        f"trees, risk scores, {READ}."
    )


def _ensemble(trees: Trees, model: BlackBox, names: tuple[str, ...] | None) -> Ensemble:
    n_columns = trees.n_features
    if names is None or len(names) != n_columns:
        names = tuple(f"x{j}" for j in range(n_columns))
    space = FeatureSpace.declare(dict.fromkeys(names, (0.0, 1.0)))
    # kinds are not known to other packages, so none is ruled out
    space = FeatureSpace(tuple(replace(column, kind="integer") for column in space))
    value = trees.value
    if value.shape[1] == 1:  # the margin of the second class
        value = np.concatenate([np.zeros_like(value), value], axis=1)
    leaf = trees.left == LEAF
    threshold = np.where(leaf, np.nan, trees.threshold)
    nodes = (trees.root, trees.feature, threshold, trees.left, trees.right)
    sides = (trees.missing_left, np.zeros((len(leaf), 0), bool))
    base = np.zeros(value.shape[1])
    if trees.margins is None:
        scaled = value[leaf] * EXACT
        exact = (scaled == np.rint(scaled)).all()
        tolerance = 0.0 if exact else ROUNDING * len(trees.root)
    else:
        base, tolerance = _base(trees)
    classes = np.asarray(model.classes)
    return Ensemble(space, classes, *nodes, *sides, value, base, tolerance, model, {})


def _base(trees: Trees) -> tuple[NDArray[np.float64], float]:
    """What every row has, by one row's margin, and the rounding of sums."""
    margins: Margins = trees.margins  # type: ignore[assignment]
    leaves = leaf_of(trees, np.zeros(trees.n_features))
    own = margins.of_zeros - trees.value[leaves].sum(axis=0)
    most = np.array([np.abs(trees.value[tree]).max() for tree in _parts(trees.root, trees.left)])
    size = float(most.sum() + np.abs(margins.of_zeros).max())
    # sums may be taken in any order, here and in the verifier; probabilities of classes tie where
    # margins differ by a few units of their precision
    rounding = margins.precision * (4 * (len(trees.root) + 2) * (size + 1.0) + 8)
    return np.append(np.zeros(2 - len(own)), own) if len(own) == 1 else own, rounding


def _parts(root: NDArray[np.int64], left: NDArray[np.int64]) -> Iterable[slice]:
    ends = np.append(root[1:], len(left))
    return (slice(int(a), int(b)) for a, b in zip(root, ends, strict=True))


# ---- scikit-learn ----
def _from_sklearn(
    estimators: list[Any], value: Callable[[int, Any], NDArray[np.float64]], n_features: int
) -> dict[str, Any]:
    """Nodes of scikit-learn's trees in one array; `value` gives each tree's scores."""
    inside = [one.tree_ for one in estimators]
    for one in estimators:
        flags = getattr(one, "is_categorical_", None)  # 1.10
        if flags is not None and np.any(flags):
            refuse_categories(type(one).__name__)
    root = np.cumsum([0, *(tree.node_count for tree in inside)])
    left, right, feature = [], [], []
    for start, tree in zip(root, inside, strict=False):
        leaf = tree.children_left == LEAF
        left.append(np.where(leaf, LEAF, tree.children_left + start))
        right.append(np.where(leaf, LEAF, tree.children_right + start))
        feature.append(np.where(leaf, LEAF, tree.feature))
    thresholds = np.concatenate([tree.threshold for tree in inside])
    return {
        "root": root[:-1],
        "feature": np.concatenate(feature),
        "threshold": double_thresholds(thresholds),
        "left": np.concatenate(left),
        "right": np.concatenate(right),
        "missing_left": np.concatenate([tree.missing_go_to_left.astype(bool) for tree in inside]),
        "value": np.concatenate([value(k, tree) for k, tree in enumerate(inside)]),
        "n_features": n_features,
    }


def _read_forest(forest: Any) -> Trees:
    check_is_fitted(forest)
    if forest.n_outputs_ > 1:
        raise UnsuitableDataError(
            f"the forest predicts {forest.n_outputs_} targets at once: fit one for each target."
        )

    def shares(_: int, tree: Any) -> NDArray[np.float64]:
        value = tree.value[:, 0, :]
        return value / value.sum(axis=1, keepdims=True)

    return Trees(**_from_sklearn(list(forest.estimators_), shares, forest.n_features_in_))


def _read_boosting(model: Any) -> Trees:
    check_is_fitted(model)
    n_scores = model.estimators_.shape[1]

    def margin(k: int, tree: Any) -> NDArray[np.float64]:
        scores = np.zeros((tree.node_count, n_scores))
        scores[:, k % n_scores] = model.learning_rate * tree.value[:, 0, 0]
        return scores

    found = _from_sklearn(model.estimators_.ravel().tolist(), margin, model.n_features_in_)
    return Trees(**found, margins=Margins(_zeros_margin(model), np.finfo(np.float64).eps))


def _read_histogram_boosting(model: Any) -> Trees:
    """Its nodes are kept in a private attribute, and no public way leads to them."""
    check_is_fitted(model)
    predictors = [one for iteration in model._predictors for one in iteration]
    n_scores = len(model._predictors[0]) if predictors else 1
    nodes = [one.nodes for one in predictors]
    if any(one["is_categorical"].any() for one in nodes):
        refuse_categories(type(model).__name__)
    root = np.cumsum([0, *map(len, nodes)])
    joined = np.concatenate(nodes)
    start = np.repeat(root[:-1], [len(one) for one in nodes])
    leaf = joined["is_leaf"].astype(bool)
    score = np.repeat(np.arange(len(nodes)) % n_scores, [len(one) for one in nodes])
    value = np.zeros((len(joined), n_scores))
    value[np.arange(len(joined)), score] = np.where(leaf, joined["value"], 0.0)
    return Trees(
        root=root[:-1],
        feature=np.where(leaf, LEAF, joined["feature_idx"]).astype(np.int64),
        threshold=joined["num_threshold"].astype(np.float64),
        left=np.where(leaf, LEAF, joined["left"] + start).astype(np.int64),
        right=np.where(leaf, LEAF, joined["right"] + start).astype(np.int64),
        missing_left=joined["missing_go_to_left"].astype(bool),
        value=value,
        n_features=model.n_features_in_,
        margins=Margins(_zeros_margin(model), np.finfo(np.float64).eps),
    )


def _zeros_margin(model: Any) -> NDArray[np.float64]:
    """The margins that a model of scikit-learn gives a row of zeros."""
    names = tuple(getattr(model, "feature_names_in_", ()))
    columns = [np.zeros(1)] * model.n_features_in_
    return np.ravel(model.decision_function(as_rows(names, columns)))


_OWN_READERS: dict[str, Callable[[Any], Trees]] = {
    "sklearn.RandomForestClassifier": _read_forest,
    "sklearn.ExtraTreesClassifier": _read_forest,
    "sklearn.GradientBoostingClassifier": _read_boosting,
    "sklearn.HistGradientBoostingClassifier": _read_histogram_boosting,
}


# ---- behind the steps of a pipeline ----
def _behind_steps(found: Ensemble, pipeline: Any, table: Table) -> Ensemble:
    """The ensemble over the columns that the pipeline is given; all splits are mapped at once."""
    inner = np.flatnonzero(found.left != LEAF)
    keys = np.stack([found.feature[inner], found.threshold[inner], found.missing_left[inner]], 1)
    distinct, of_node = np.unique(keys, axis=0, return_inverse=True)
    splits = raw_splits(pipeline, _chain(distinct, len(found.space)), table)
    sides = [splits.sides[2 * k] for k in range(len(distinct))]
    width = max(len(column.categories) for column in splits.space)
    feature, threshold, left, right = (
        getattr(found, name).copy() for name in ("feature", "threshold", "left", "right")
    )
    missing, subset = found.missing_left.copy(), np.zeros((len(feature), width), bool)
    for node, k in zip(inner.tolist(), of_node.ravel().tolist(), strict=True):
        side: Side = sides[k]
        feature[node] = splits.position[int(distinct[k, 0])]
        threshold[node], missing[node] = side.threshold, side.missing
        subset[node, : len(side.known)] = side.known
        if side.to is not None:  # every value goes one way
            left[node] = right[node] = (found.left, found.right)[side.to][node]
            threshold[node] = np.inf
        elif side.swapped:
            left[node], right[node] = right[node], left[node]
    space = FeatureSpace(
        tuple(c if c.is_categorical else replace(c, kind="integer") for c in splits.space)
    )
    arrays = {"feature": feature, "threshold": threshold, "left": left, "right": right}
    arrays |= {"missing_left": missing, "subset": subset}
    return replace(found, space=space, categories=splits.categories, **arrays)


def _chain(splits: NDArray[np.float64], n_features: int) -> Tree:
    """A tree that asks every split in turn: inner nodes have even numbers."""
    n = len(splits)
    size = 2 * n + 1
    feature, threshold = np.full(size, LEAF), np.full(size, np.nan)
    left, right, missing = np.full(size, LEAF), np.full(size, LEAF), np.zeros(size, bool)
    inner = np.arange(0, 2 * n, 2)
    feature[inner], threshold[inner] = splits[:, 0].astype(np.int64), splits[:, 1]
    left[inner], right[inner], missing[inner] = inner + 1, inner + 2, splits[:, 2] > 0
    space = FeatureSpace.declare({f"x{j}": (0.0, 1.0) for j in range(n_features)})
    value = np.tile([1.0, 0.0], (size, 1))
    return Tree(space, np.arange(2), feature, threshold, left, right, value, np.ones(size), missing)
