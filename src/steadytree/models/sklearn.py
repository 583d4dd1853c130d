"""Trees from and to scikit-learn: the one file that touches its internals."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from steadytree._base.exceptions import NotATreeError, UnsuitableDataError
from steadytree._base.optional import PIPELINE, is_a
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table, quote
from steadytree.models.exports.float32 import warn_of_rounding
from steadytree.models.exports.probes import Probes, used_features
from steadytree.models.one_hot import make_additive, one_hot, one_hot_tree
from steadytree.models.pipeline import pipeline_tree, widen
from steadytree.models.scorecard import as_scorecard
from steadytree.models.tree import LEAF, Tree

if TYPE_CHECKING:  # loaded where a tree is made: it brings half of scikit-learn along
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
    from sklearn.tree._tree import Tree as SklearnTree

UNDEFINED = -2  # scikit-learn's feature and threshold of a leaf
MOST_ROWS = 2**53
MOST_REGRESSION_NODES = 2_000  # a column of `value` for each prediction
EXACT_DIGITS = 17
REGRESSION = "regression tree: its classes are the values it predicts"
LEAF_SPLIT, NUMERIC_SPLIT = -1, 0  # its kinds of split, from 1.10 on


def as_tree(model: Any, X: Any = None) -> Tree:
    """The tree inside a model.

    A scikit-learn tree predicts as before, bit for bit: it rounds its inputs to float32 before they
    are compared (``single_precision``). scikit-learn keeps no bounds, so without `X` a column
    reaches from its least to its greatest threshold (0 to 1 where no split uses it), is numeric,
    and may be missing where the estimator takes missing values. The weight of a node is
    scikit-learn's ``weighted_n_node_samples``.

    Parameters
    ----------
    model : Tree, fitted learner of steadytree, or fitted scikit-learn tree classifier
        Also a fitted ``Pipeline`` that ends in one, whose splits are mapped back to the columns
        that the pipeline is given, and a fitted search for settings such as ``GridSearchCV``.
    X : array-like or frame of shape (n_samples, n_features), optional
        For a scikit-learn tree: rows to read kinds, bounds and missing values off, as the estimator
        sees them; bounds are widened where a threshold lies outside. Other models have their own.

    Returns
    -------
    tree : Tree

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> as_tree(DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"]))
    Tree(3 nodes, 2 leaves, depth 1, 1 features, 2 classes)
    >>> as_tree("q2.tree.json")
    Traceback (most recent call last):
        ...
    steadytree._base.exceptions.NotATreeError: a tree is needed, got str: pass a Tree, a fitted \
learner of steadytree, or a fitted scikit-learn DecisionTreeClassifier.
    """
    if isinstance(model, Tree):
        return model
    inside = getattr(model, "tree_", None)
    if isinstance(inside, Tree):
        return inside
    model = getattr(model, "best_estimator_", model)  # of a search for settings
    if is_a(model, *PIPELINE):
        return pipeline_tree(model, as_tree(model.steps[-1][1]), X)
    return from_sklearn(model, X)


def from_sklearn(estimator: "DecisionTreeClassifier", X: Any = None) -> Tree:
    """A fitted scikit-learn tree as `as_tree` reads it."""
    _check_readable(estimator)
    value = estimator.tree_.value[:, 0, :]
    total = value.sum(axis=1, keepdims=True)
    if not np.allclose(total, 1.0):  # counts, from before 1.3
        value = value / total
    return _read_nodes(estimator, X, estimator.classes_, value)


def _read_nodes(estimator: Any, X: Any, classes: NDArray[Any], value: NDArray[np.float64]) -> Tree:
    inside = estimator.tree_
    leaf = inside.children_left == LEAF
    feature = np.where(leaf, LEAF, inside.feature)
    threshold = np.where(leaf, np.nan, inside.threshold)
    children, weight = (inside.children_left, inside.children_right), inside.weighted_n_node_samples
    space, sides = _space_of(estimator, feature, threshold, X), inside.missing_go_to_left
    arrays = (feature, threshold, *children, value, weight, sides)
    return Tree(space, classes, *arrays, single_precision=True)


def regression_tree(estimator: "DecisionTreeRegressor", X: Any = None, digits: int = 17) -> Tree:
    """A fitted scikit-learn regression tree as a Tree whose classes are the values it predicts.

    Distances and differences of regression trees are measured on it. `digits` rounds predictions
    to that many decimals; 17 leaves them as they are.
    """
    if not is_a(estimator, "sklearn.tree", "DecisionTreeRegressor"):
        raise TypeError(
            f"a regression tree is needed, got {type(estimator).__name__}: pass a fitted "
            "scikit-learn DecisionTreeRegressor."
        )
    _check_single(estimator)
    inside = estimator.tree_
    if inside.node_count > MOST_REGRESSION_NODES:
        raise UnsuitableDataError(
            f"a regression tree may have at most {MOST_REGRESSION_NODES:,} nodes here, got "
            f"{inside.node_count:,}: limit it with max_leaf_nodes."
        )
    predicted = inside.value[:, 0, 0]
    classes, label = np.unique(
        predicted if digits == EXACT_DIGITS else predicted.round(digits), return_inverse=True
    )
    return _read_nodes(estimator, X, classes, np.eye(len(classes))[label]).with_note(REGRESSION)


def from_sklearn_for(estimator: Any, table: Table) -> Tree:
    """The tree for rows of a table, of which it takes names (where it has none) and types alone.

    Nothing is read off the values, as what is said of one row must not depend on others.
    """
    tree = as_tree(estimator)
    table.check_not_empty()
    names = tree.space.names
    if is_a(estimator, "sklearn.tree", "DecisionTreeClassifier"):
        names = _names_for(estimator, table)
    # scikit-learn keeps no kinds, so none is ruled out
    columns = (
        c if c.is_categorical else replace(c, name=n, kind="integer")
        for c, n in zip(tree.space, names, strict=True)
    )
    space = FeatureSpace(tuple(columns)).typed_like(table)
    return replace(tree, space=space)


def to_sklearn(model: Any, X: Any = None) -> "DecisionTreeClassifier":
    """A fitted scikit-learn tree that makes the same predictions on float32 data.

    Nodes and thresholds stay as they are, in number, order and bits; before it is returned it is
    compared with the model on float32 values at and beside every threshold. scikit-learn rounds
    inputs to float32, so a float64 value that rounds across a threshold may fall on the other side;
    trees read from scikit-learn do the same here, and learned thresholds are chosen to avoid it.
    Where that concerns more than a millionth of a column's range or an integer, such as times near
    1.7e9, a warning says so; shap explains the exported tree, the rounding included.

    Sets of categories become 0/1 columns named ``feature=category``: predict on ``one_hot(tree,
    X)`` of ``steadytree.models.one_hot``. Weights are exported as they are where they are positive
    and add up, else inner nodes are summed from the leaves (`make_additive`); ``n_node_samples`` is
    the weight rounded, at least 1, and the impurity is Gini's. Names ``x0``, ``x1``, ... stand for
    columns without names. scikit-learn and shap send missing values where the tree does; skl2onnx
    (1.20) does not, not for scikit-learn's own trees either.

    Parameters
    ----------
    model : Tree, fitted learner of steadytree, or fitted scikit-learn tree classifier
    X : array-like or frame, optional
        Rows as the model takes them; the warning then counts those that get another leaf.

    Returns
    -------
    estimator : DecisionTreeClassifier

    Examples
    --------
    >>> space = FeatureSpace.declare(bounds={"age": (0, 120)})
    >>> tree = Tree(space, ["no", "yes"], [0, -1, -1], [40.0, np.nan, np.nan], [1, -1, -1],
    ...             [2, -1, -1], [[0.5, 0.5], [1, 0], [0, 1]], [2, 1, 1])
    >>> from sklearn.tree import export_text
    >>> print(export_text(to_sklearn(tree), feature_names=["age"]))
    |--- age <= 40.00
    |   |--- class: no
    |--- age >  40.00
    |   |--- class: yes
    """
    from sklearn.tree import DecisionTreeClassifier

    given = as_tree(model)
    warn_of_rounding(given, X)
    tree = make_additive(one_hot_tree(given))
    names = tree.space.names
    estimator = DecisionTreeClassifier(max_depth=max(tree.depth, 1))
    estimator.tree_ = _sklearn_tree(tree)
    estimator.n_features_in_ = estimator.max_features_ = len(names)
    estimator.n_outputs_ = 1
    estimator.classes_ = tree.classes.copy()
    estimator.n_classes_ = np.intp(len(tree.classes))
    if names != _default_names(len(names)):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if hasattr(estimator, "_fit_categorical_features"):  # 1.10
        estimator.is_categorical_ = estimator._categorical_encoder = None
    _compare(given, estimator)
    return estimator


# ---- reading ----
def _check_readable(estimator: Any) -> None:
    """Refuse what is no single fitted classification tree over numbers."""
    if not is_a(estimator, "sklearn.tree", "DecisionTreeClassifier"):
        raise NotATreeError(f"a tree is needed, got {_what_instead(estimator)}")
    _check_single(estimator)


def _check_single(estimator: Any) -> None:
    """Refuse a tree that is not fitted, or for several targets, or over categories."""
    check_is_fitted(estimator)
    if estimator.n_outputs_ > 1:
        raise ValueError(
            f"the tree predicts {estimator.n_outputs_} targets at once, and trees here predict "
            "one: fit one tree for each target."
        )
    nodes = estimator.tree_.__getstate__()["nodes"]
    flags = getattr(estimator, "is_categorical_", None)  # 1.10
    by_category = flags is not None and np.any(flags)
    if "split_kind" in nodes.dtype.names:
        by_category = by_category or (nodes["split_kind"] > NUMERIC_SPLIT).any()
    if by_category:
        raise UnsuitableDataError(
            "the tree splits on categories, which cannot be read from scikit-learn: encode them "
            "as numbers before fitting, or use a learner of steadytree, which takes text."
        )


def _what_instead(model: Any) -> str:
    """Name a thing that is no classification tree, and say what to pass."""
    name = type(model).__name__
    if as_scorecard(model) is not None:
        return f"{name}, which is a risk score: pass its to_tree(), a tree for up to 8 conditions."
    if is_a(model, "sklearn.tree", "DecisionTreeRegressor"):
        return f"{name}, whose leaves hold numbers and not classes: cut the target into classes."
    if hasattr(model, "estimators_"):
        return f"{name}, which holds many trees: pass one of its estimators_ to look at it alone."
    if hasattr(model, "n_estimators"):
        return f"{name}, which holds many trees."
    if hasattr(model, "fit") and hasattr(model, "classes_"):
        return (
            f"{name}, which is not a decision tree: pass a decision tree, or a pipeline that ends "
            "in one."
        )
    if hasattr(model, "fit"):
        name += ", which holds none (is it fitted?)"
    return (
        f"{name}: pass a Tree, a fitted learner of steadytree, or a fitted scikit-learn "
        "DecisionTreeClassifier."
    )


def _space_of(
    estimator: "DecisionTreeClassifier",
    feature: NDArray[np.int64],
    threshold: NDArray[np.float64],
    X: Any,
) -> FeatureSpace:
    """Columns as the estimator names them, reaching as far as X and the thresholds do."""
    thresholds = [threshold[feature == j] for j in range(estimator.n_features_in_)]
    if X is not None:
        table = Table.read(X)
        names = _names_for(estimator, table)
        observed = FeatureSpace.observe(table.select(names))
        return FeatureSpace(tuple(map(widen, observed, names, thresholds)))
    missing = bool(get_tags(estimator).input_tags.allow_nan)
    columns = []
    for name, used in zip(_names_of(estimator), thresholds, strict=True):
        finite = used[np.isfinite(used)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        columns.append(Column(name, "numeric", float(low), float(high), missing=missing))
    return FeatureSpace(tuple(columns))


def _names_for(estimator: "DecisionTreeClassifier", table: Table) -> tuple[str, ...]:
    """The estimator's names or, where it has none, the table's; refuses columns of categories."""
    names = _names_of(estimator)
    if not hasattr(estimator, "feature_names_in_") and table.names is not None:
        unnamed = replace(table, names=None)
        unnamed.select(names)  # refuses another number of columns
        names = table.names
    seen = zip(names, table.select(names).columns, strict=True)
    text = [name for name, column in seen if column.dtype == object or name in table.declared]
    if text:
        raise ValueError(
            f"column(s) {quote(text)} of X hold categories, and a scikit-learn tree splits on "
            "numbers: pass X as the tree saw it."
        )
    return names


def _names_of(estimator: "DecisionTreeClassifier") -> tuple[str, ...]:
    given = getattr(estimator, "feature_names_in_", None)
    return _default_names(estimator.n_features_in_) if given is None else tuple(map(str, given))


def _default_names(n: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(n))


# ---- writing ----
def _sklearn_tree(tree: Tree) -> "SklearnTree":
    from sklearn.tree._tree import Tree as SklearnTree

    n_features = len(tree.space)
    arguments = (n_features, np.array([len(tree.classes)], dtype=np.intp), 1)
    try:
        made = SklearnTree(*arguments)
    except TypeError:  # 1.10 takes the number of categories of each feature, -1 for numbers
        made = SklearnTree(*arguments, np.full(n_features, -1, dtype=np.intp))
    sizes = {"max_depth": tree.depth, "node_count": tree.n_nodes}
    values = np.ascontiguousarray(tree.value[:, None, :])
    made.__setstate__({**sizes, "nodes": _node_array(tree), "values": values})
    return made


def _compare(tree: Tree, estimator: "DecisionTreeClassifier") -> None:
    """Refuse an export that gives other shares on the float32 values at and beside thresholds."""
    probes = Probes.of_tree(tree).in_single()
    used = used_features(tree)
    kept = ~probes.refused(used)
    expected = probes.ask(tree.predict_proba, used, None)
    columns = probes.ask(lambda table: one_hot(tree, table), used, None)
    matrix = np.array([row for row in columns if row is not None], np.float32)
    found = iter(estimator.tree_.predict(matrix).reshape(len(matrix), -1).tolist())
    answers = [next(found) if known else None for known in kept.tolist()]
    probes.compare("the scikit-learn tree", "scikit-learn", expected, answers)


def _node_array(tree: Tree) -> NDArray[Any]:
    """The nodes in scikit-learn's layout; fields that only categories use stay zero."""
    from sklearn.tree._tree import NODE_DTYPE

    leaf = tree.is_leaf
    nodes = np.zeros(tree.n_nodes, dtype=np.dtype(NODE_DTYPE))
    nodes["left_child"], nodes["right_child"] = tree.left, tree.right
    nodes["feature"] = np.where(leaf, UNDEFINED, tree.feature)
    nodes["threshold"] = np.where(leaf, UNDEFINED, tree.threshold)
    nodes["impurity"] = np.maximum(1.0 - (tree.value**2).sum(axis=1), 0.0)
    nodes["n_node_samples"] = np.clip(np.rint(tree.weight), 1, MOST_ROWS)
    nodes["weighted_n_node_samples"] = tree.weight
    nodes["missing_go_to_left"] = tree.missing_left & ~leaf
    if "split_kind" in nodes.dtype.names:  # 1.10
        nodes["split_kind"] = np.where(leaf, LEAF_SPLIT, NUMERIC_SPLIT)
    return nodes
