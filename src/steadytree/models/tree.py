"""The one tree every learner returns and every measure reads."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from steadytree._base.notebook import Shown
from steadytree._base.parallel import in_threads
from steadytree.data.column import ByKey
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.splits import Bins
from steadytree.models._kernels import (
    find_leaves,
    preorder_nodes,
    prune_to,
    uniform_nodes,
)
from steadytree.models.walk import Walk

LEAF = -1
_TYPES: dict[str, type[np.generic]] = dict.fromkeys(("feature", "left", "right"), np.int64)
_TYPES |= dict.fromkeys(("threshold", "value", "weight"), np.float64)
_TYPES |= dict.fromkeys(("missing_left", "subset"), np.bool_)


@dataclass(frozen=True, eq=False)
class Tree(ByKey, Shown):
    """A binary tree as flat, read-only arrays; node 0 is the root, parents come first.

    A row goes left when ``x[feature] <= threshold``, or, where the feature is categorical, when
    its category is in the node's subset. A missing value and a category the space does not know
    go left where ``missing_left``. A threshold of infinity asks only whether the value is there.

    Parameters
    ----------
    space : FeatureSpace
        The columns of the splits; kept without candidate thresholds.
    classes : array of shape (n_classes,)
        Labels, in order of the columns of `value`.
    feature, left, right : int64 arrays of shape (n_nodes,), LEAF at leaves
    threshold : float64 array of shape (n_nodes,), nan at leaves and category nodes
    value : float64 array of shape (n_nodes, n_classes), rows sum to 1
    weight : float64 array of shape (n_nodes,)
        Training rows (or their summed weights) that reached each node.
    missing_left : bool array of shape (n_nodes,)
    subset : bool array of shape (n_nodes, n_categories)
        Categories that go left, by index; as wide as the column with most categories.
    single_precision : bool, default=False
        Round inputs to float32 before they are compared, as scikit-learn's trees do.
    note : str, default=""
        What whoever reads the tree must be told, such as that it is not private; it goes into
        the tree's file and is no part of what makes two trees equal.
    bins : Bins, optional
        Candidate splits and seed that the tree was learned with, to be used again by the next fit;
        kept in the tree's file, too, and no part of what makes two trees equal.

    Examples
    --------
    >>> space = FeatureSpace.observe([[0.0], [1.5]])
    >>> tree = Tree(space, ["no", "yes"], [0, -1, -1], [0.5, np.nan, np.nan], [1, -1, -1],
    ...             [2, -1, -1], [[0.5, 0.5], [1, 0], [0, 1]], [2, 1, 1])
    >>> tree.predict([[0.2], [0.9]])
    array(['no', 'yes'], dtype='<U3')
    >>> tree.depth, tree.n_leaves
    (1, 2)
    """

    space: FeatureSpace
    classes: NDArray[Any]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: NDArray[np.float64]
    weight: NDArray[np.float64]
    missing_left: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))
    subset: NDArray[np.bool_] = field(default_factory=lambda: np.empty((0, 0), bool))
    single_precision: bool = False
    note: str = ""
    bins: Bins | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.note, str):
            raise TypeError(f"note must be text, got {type(self.note).__name__}.")
        given = self.space
        object.__setattr__(self, "space", given.bare())
        kept = None if self.bins is None else self.bins.space
        if kept is not None and kept is not given and kept.bare() != self.space:
            object.__setattr__(self, "bins", None)  # of other columns
        n_nodes = len(self.feature)
        width = max(len(column.categories) for column in self.space)
        if len(self.missing_left) == 0:
            object.__setattr__(self, "missing_left", np.zeros(n_nodes, bool))
        if np.size(self.subset) == 0:
            object.__setattr__(self, "subset", np.zeros((n_nodes, width), bool))
        for name, dtype in _TYPES.items():
            freeze(self, name, np.array(getattr(self, name), dtype=dtype))
        freeze(self, "classes", np.array(self.classes))
        _check_shapes(self, width)
        _check_shape_of_tree(self)
        _check_nodes(self)
        # one form of what means the same: a leaf sends nothing left, and nan has one bit pattern
        freeze(self, "missing_left", self.missing_left & ~self.is_leaf)
        freeze(self, "threshold", np.where(np.isnan(self.threshold), np.nan, self.threshold))

    def __reduce__(self) -> tuple[Any, ...]:
        # through the constructor, so that an unpickled tree is checked and read-only again
        return Tree, tuple(getattr(self, item.name) for item in fields(self))

    # ---- what it is ----
    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        return self.left == LEAF

    @property
    def n_leaves(self) -> int:
        return int(self.is_leaf.sum())

    @cached_property
    def node_depth(self) -> NDArray[np.int64]:
        """Depth of each node, the root's being 0."""
        depth, here = np.zeros(self.n_nodes, np.int64), np.zeros(1, np.int64)
        while len(here):
            inner = here[self.left[here] != LEAF]
            below = depth[inner] + 1
            depth[self.left[inner]] = depth[self.right[inner]] = below
            here = np.concatenate([self.left[inner], self.right[inner]])
        return depth

    @property
    def depth(self) -> int:
        return int(self.node_depth.max())

    @cached_property
    def parent(self) -> NDArray[np.int64]:
        """Parent of each node; LEAF (-1) for the root."""
        parent = np.full(self.n_nodes, -1)
        inner = np.flatnonzero(~self.is_leaf)
        parent[self.left[inner]] = parent[self.right[inner]] = inner
        return parent

    @property
    def label(self) -> NDArray[np.int64]:
        """Index of each node's most frequent class; the first one on ties."""
        return self.value.argmax(axis=1)

    @cached_property
    def preorder(self) -> NDArray[np.int64]:
        """Nodes in the order root, left sub-tree, right sub-tree."""
        return preorder_nodes(self.left, self.right)

    # ---- what it does ----
    def apply(self, X: Any) -> NDArray[np.int64]:
        """Index of the leaf each row falls in."""
        return self.apply_encoded(self.space.encode(X))

    def apply_encoded(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """As `apply`, for rows as `FeatureSpace.encode` returns them."""
        walk, depth, leaves = self._walk, self.depth, np.empty(len(values), np.int64)
        if self.single_precision:
            with np.errstate(over="ignore"):
                values = values.astype(np.float32, copy=False)

        def find(first: int, last: int) -> None:
            find_leaves(values[first:last], walk, depth, leaves[first:last])

        in_threads(find, len(values), len(values) * depth)
        return leaves

    @cached_property
    def _walk(self) -> Walk:
        return Walk.of(self, self.space.categorical)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class shares of the leaf each row falls in, in order of `classes`."""
        return self.value[self.apply(X)]

    def predict(self, X: Any) -> NDArray[Any]:
        """Most frequent class of the leaf each row falls in."""
        return self.classes[self.label[self.apply(X)]]

    def decision_path(self, X: Any) -> sparse.csr_matrix:
        """Nodes each row passes, as a sparse indicator matrix (n_rows, n_nodes)."""
        leaves = self.apply(X).tolist()
        paths = {leaf: self.path(leaf) for leaf in set(leaves)}
        lengths = np.array([len(paths[leaf]) for leaf in leaves], dtype=np.int64)
        columns = np.array([node for leaf in leaves for node in paths[leaf]], dtype=np.int64)
        pointers = np.concatenate([[0], np.cumsum(lengths)])
        ones = np.ones(len(columns), np.int64)
        return sparse.csr_matrix((ones, columns, pointers), shape=(len(leaves), self.n_nodes))

    def path(self, node: int) -> list[int]:
        """Nodes from the root to the given one, both included."""
        nodes = [int(node)]
        while nodes[-1] != 0:
            nodes.append(int(self.parent[nodes[-1]]))
        return nodes[::-1]

    # ---- smaller trees ----
    def restrict(self, nodes: Iterable[int]) -> "Tree":
        """The tree cut back so that the given nodes are leaves; the rest keeps its order."""
        pruned = np.zeros(self.n_nodes, bool)
        pruned[np.fromiter(nodes, np.int64)] = True
        if not (pruned & ~self.is_leaf).any():
            return self
        kept, left, right = prune_to(self.left, self.right, pruned)
        leaf = left == LEAF
        feature = np.where(leaf, LEAF, self.feature[kept])
        threshold = np.where(leaf, np.nan, self.threshold[kept])
        arrays = (feature, threshold, left, right, self.value[kept], self.weight[kept])
        sides = (self.missing_left[kept] & ~leaf, self.subset[kept] & ~leaf[:, None])
        return Tree(
            self.space, self.classes, *arrays, *sides, self.single_precision, self.note, self.bins
        )

    def prune(self) -> "Tree":
        """Merge sibling leaves with equal labels, upwards; predictions stay, shares may coarsen."""
        return self.restrict(np.flatnonzero(uniform_nodes(self.left, self.right, self.label)))

    def with_note(self, note: str) -> "Tree":
        """The same tree with another note."""
        return replace(self, note=note)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tree to a ``*.tree.json`` file; `steadytree.load` reads it back."""
        from steadytree.models.files import save

        save(self, path)

    # ---- other forms, each compared with the tree at every threshold before it is returned ----
    def to_sql(self, label: Any = None, dialect: str = "standard") -> str:
        """The predicted class as an SQL expression, or the share of the class `label`.

        NULL, NaN and unknown categories count as missing; an infinite number, which trees refuse,
        gives NULL. `dialect` is that of `Scorecard.to_sql`.
        """
        from steadytree.models.exports.sql import tree_to_sql

        return tree_to_sql(self, label, dialect)[0]

    def to_source(self, language: str = "python") -> str:
        """The tree as a Python module, or as "c" source (C99), with nothing else to install."""
        from steadytree.models.exports.source import tree_to_source

        return tree_to_source(self, language)[0]

    def to_onnx(self) -> bytes:
        """The tree as an ONNX model that compares in float64; needs the extra ``onnx``.

        It has an input (n, 1) of doubles or texts for each column of a split, and the outputs
        ``leaf``, ``label`` and ``shares``. A text that is not known counts as missing.
        """
        from steadytree.models.exports.onnx import tree_to_onnx

        return tree_to_onnx(self)[0]

    # ---- equality ----
    def key(self) -> tuple[Any, ...]:
        """What makes two trees equal: the same nodes, whatever order they are stored in."""
        order = self.preorder
        arrays = [getattr(self, name)[order] for name in _TYPES if name not in ("left", "right")]
        own = (self.space, tuple(self.classes.tolist()), self.single_precision)
        return (*own, *(array.tobytes() for array in arrays))

    def __repr__(self) -> str:
        return (
            f"Tree({self.n_nodes} nodes, {self.n_leaves} leaves, depth {self.depth}, "
            f"{len(self.space)} features, {len(self.classes)} classes"
            f"{', ' + self.note if self.note else ''})"
        )


def freeze(model: Any, name: str, array: NDArray[Any]) -> None:
    """Set a read-only array on a frozen dataclass."""
    array.flags.writeable = False
    object.__setattr__(model, name, array)


def _check_shapes(tree: Tree, width: int) -> None:
    n = len(tree.feature)
    if n == 0:
        raise ValueError("Tree: needs at least one node.")
    if tree.classes.ndim != 1 or len(set(tree.classes.tolist())) != len(tree.classes):
        raise ValueError("Tree: classes must be a list of labels that differ.")
    expected = dict.fromkeys(_TYPES, (n,)) | {"value": (n, len(tree.classes)), "subset": (n, width)}
    for name, shape in expected.items():
        found = getattr(tree, name).shape
        if found != shape:
            raise ValueError(f"Tree: {name} must have shape {shape}, got {found}.")


def _check_shape_of_tree(tree: Tree) -> None:
    """Node 0 is the root, each other node has one parent, and parents come first."""
    inner = np.flatnonzero((tree.left != LEAF) | (tree.right != LEAF))
    pairs = np.array([tree.left[inner], tree.right[inner]])
    children = np.sort(pairs, axis=None)
    if not np.array_equal(children, np.arange(1, tree.n_nodes)):
        if LEAF in children:
            raise ValueError("Tree: a node needs two children or none.")
        raise ValueError(
            "Tree: every node but the root needs exactly one parent, "
            f"got child indices {children[:20].tolist()} for {tree.n_nodes} nodes."
        )
    if (pairs <= inner).any():
        raise ValueError("Tree: a parent must come before its children.")


def _check_nodes(tree: Tree) -> None:
    inner = ~tree.is_leaf
    if (tree.feature[~inner] != LEAF).any() or not np.isnan(tree.threshold[~inner]).all():
        raise ValueError(f"Tree: a leaf needs feature {LEAF} and threshold nan.")
    feature = tree.feature[inner]
    if feature.size and not 0 <= feature.min() <= feature.max() < len(tree.space):
        raise ValueError(f"Tree: feature must be in 0..{len(tree.space) - 1} at inner nodes.")
    by_value = tree.space.categorical[feature]
    if (np.isnan(tree.threshold[inner]) != by_value).any():
        raise ValueError("Tree: a split on numbers needs a threshold, one on categories a subset.")
    if tree.subset.size:
        _check_subsets(tree, inner, feature)
    if not np.isfinite(tree.value).all() or (tree.value < 0).any():
        raise ValueError("Tree: value must be finite and not negative.")
    if (np.abs(tree.value.sum(axis=1) - 1.0) > 1e-6).any():
        raise ValueError("Tree: each node's value must sum to 1.")
    if not np.isfinite(tree.weight).all() or (tree.weight < 0).any():
        raise ValueError("Tree: weight must be finite and not negative.")


def _check_subsets(tree: Tree, inner: NDArray[np.bool_], feature: NDArray[np.int64]) -> None:
    sizes = tree.space.n_categories[feature]
    beyond = np.arange(tree.subset.shape[1]) >= sizes[:, None]
    if tree.subset[~inner].any() or (tree.subset[inner] & beyond).any():
        raise ValueError("Tree: a subset may only hold categories of its node's feature.")
    if (tree.subset[inner].any(axis=1) != (sizes > 0)).any():
        raise ValueError("Tree: a category node needs a subset that is not empty.")
