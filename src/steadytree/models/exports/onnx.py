"""Trees as ONNX models that compare in float64, run once by onnxruntime."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.optional import require
from steadytree.data.table import quote
from steadytree.models.boxes import in_double
from steadytree.models.exports.probes import REFUSED, Check, Probes, used_features
from steadytree.models.tree import LEAF, Tree

OPSET, ML_OPSET = 18, 5  # ai.onnx.ml 5 has TreeEnsemble, whose thresholds may be float64
AT_MOST = 0  # the mode "left if x <= threshold"
SUM, NO_TRANSFORM = 1, 0
OUTPUTS = ("leaf", "shares", "label")


def tree_to_onnx(tree: Tree) -> tuple[bytes, Check]:
    """What `Tree.to_onnx` describes, and on what it was compared with the tree."""
    onnx = require("onnx", extra="onnx", purpose="an ONNX model")
    runtime = require("onnxruntime", extra="onnx", purpose="the check of an ONNX model")
    tree = in_double(tree)
    if "" in (tree.space[j].name for j in used_features(tree)):
        raise ValueError("a column has no name, which ONNX cannot write: name it.")
    taken = [tree.space[j].name for j in used_features(tree) if tree.space[j].name in OUTPUTS]
    if taken:
        raise ValueError(f"column(s) {quote(taken)} have the name of an output: rename them.")
    model = _Graph(onnx, tree).model().SerializeToString()
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    probes, used = Probes.of_tree(tree), used_features(tree)
    expected = probes.ask(tree.apply, used, REFUSED)
    given = {
        name: np.array(["" if v is None else v for v in values], object).reshape(-1, 1)
        if tree.space.categorical[tree.space.names.index(name)]
        else np.array(values, np.float64).reshape(-1, 1)
        for name, values in _with_absent(tree, probes).items()
    }
    leaf, shares, label = session.run(list(OUTPUTS), given)
    labels, table = _labels(tree), _table(tree)
    found = [
        own if np.array_equal(row, table[own], equal_nan=True) and name == labels[own] else None
        for own, row, name in zip(leaf.tolist(), shares, label.tolist(), strict=True)
    ]
    by = f"onnxruntime {runtime.__version__}"
    return model, probes.compare("the ONNX model", by, expected, found)


def _with_absent(tree: Tree, probes: Probes) -> dict[str, list[Any]]:
    """The columns of the probes, a missing text as one that the tree does not know."""
    columns = probes.columns(used_features(tree) or [0])
    for column in tree.space:
        if column.is_categorical and column.name in columns:
            absent = "missing"
            while absent in column.categories:
                absent += "_"
            columns[column.name] = [absent if v is None else v for v in columns[column.name]]
    return columns


def _table(tree: Tree) -> NDArray[np.float64]:
    """Shares by leaf; the last row is that of -1, where a number is infinite."""
    return np.vstack([tree.value, np.full((1, len(tree.classes)), np.nan)])


def _labels(tree: Tree) -> NDArray[Any]:
    """Class by leaf, and behind them what stands for a refusal: a label that no class has."""
    classes = tree.classes.tolist()
    if all(isinstance(label, str) for label in classes):
        refusal: Any = ""
        while refusal in classes:
            refusal += "?"
        return np.array([*(classes[k] for k in tree.label), refusal], object)
    if not all(isinstance(label, bool | int) for label in classes):
        numbers = [float(classes[k]) for k in tree.label]
        return np.array([*numbers, min(-1.0, min(map(float, classes)) - 1)])
    whole = [int(classes[k]) for k in tree.label]
    return np.array([*whole, min(-1, min(map(int, classes)) - 1)], np.int64)


class _Graph:
    """The graph: columns side by side, the tree, and what follows from the leaf."""

    def __init__(self, onnx: Any, tree: Tree) -> None:
        self._onnx, self._tree = onnx, tree
        self._nodes: list[Any] = []
        self._initial: list[Any] = []
        self._count = 0

    def model(self) -> Any:
        helper, proto = self._onnx.helper, self._onnx.TensorProto
        tree, used = self._tree, used_features(self._tree) or [0]
        texts = {j for j in used if tree.space[j].is_categorical}
        number = next((tree.space[j].name for j in used if j not in texts), None)
        columns, feature = self._columns(used, texts)
        leaf = self._leaf(columns, feature)
        if number is not None:
            leaf = self._refuse_infinite([tree.space[j].name for j in used if j not in texts], leaf)
        self._add("Identity", [leaf], "leaf")
        self._add("Gather", [self._constant(_table(tree)), "leaf"], "shares", axis=0)
        labels = _labels(tree)
        self._add("Gather", [self._constant(labels), "leaf"], "label", axis=0)
        kinds = {j: proto.STRING if j in texts else proto.DOUBLE for j in used}
        inputs = [(tree.space[j].name, kinds[j], [None, 1]) for j in used]
        kind = {"O": proto.STRING, "i": proto.INT64, "f": proto.DOUBLE}[labels.dtype.kind]
        outputs: list[Any] = [("leaf", proto.INT64, [None]), ("label", kind, [None])]
        outputs.append(("shares", proto.DOUBLE, [None, len(tree.classes)]))
        described = (
            [helper.make_tensor_value_info(*each) for each in listed]
            for listed in (inputs, outputs)
        )
        graph = helper.make_graph(self._nodes, "tree", *described, initializer=self._initial)
        sets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(
            graph, opset_imports=sets, ir_version=9, producer_name="steadytree"
        )
        self._onnx.checker.check_model(model)
        return model

    def _columns(self, used: list[int], texts: set[int]) -> tuple[str, NDArray[np.int64]]:
        """All columns of the splits side by side, and the one that each node asks about."""
        tree = self._tree
        names: list[str] = []
        feature = np.zeros(tree.n_nodes, np.int64)
        for j in used:
            own = np.flatnonzero(tree.feature == j)
            if j not in texts:
                feature[own] = len(names)
                names.append(tree.space[j].name)
                continue
            for node in own if len(own) else [0]:  # 0 goes left, 1 right
                feature[node] = len(names)
                names.append(self._side(j, int(node)))
        return self._add("Concat", names, axis=1), feature

    def _side(self, j: int, node: int) -> str:
        """Texts of a column as 0 where the node sends them left, else 1."""
        tree, column = self._tree, self._tree.space[j]
        left = tree.subset[node, : len(column.categories)]
        side = self._add(
            "LabelEncoder",
            [column.name],
            domain="ai.onnx.ml",
            keys_strings=list(column.categories),
            values_floats=np.where(left, 0.0, 1.0).tolist(),
            default_float=0.0 if tree.missing_left[node] else 1.0,
        )
        return self._add("Cast", [side], to=self._onnx.TensorProto.DOUBLE)

    def _leaf(self, columns: str, feature: NDArray[np.int64]) -> str:
        tree = self._tree
        inner, leaves = np.flatnonzero(~tree.is_leaf), np.flatnonzero(tree.is_leaf)
        left, right = tree.left[inner], tree.right[inner]
        threshold = np.where(np.isnan(tree.threshold[inner]), 0.5, tree.threshold[inner])
        missing, columns_of = tree.missing_left[inner], feature[inner]
        if not len(inner):  # a tree of one leaf: both sides of a split that means nothing
            left = right = leaves
            threshold, missing, columns_of = np.zeros(1), np.zeros(1, bool), np.zeros(1, np.int64)
        index = np.zeros(tree.n_nodes, np.int64)
        index[inner], index[leaves] = np.arange(len(inner)), np.arange(len(leaves))
        tensor = self._onnx.numpy_helper.from_array
        found = self._add(
            "TreeEnsemble",
            [columns],
            domain="ai.onnx.ml",
            tree_roots=[0],
            nodes_featureids=columns_of.tolist(),
            nodes_modes=tensor(np.full(len(threshold), AT_MOST, np.uint8), "modes"),
            nodes_splits=tensor(threshold.astype(np.float64), "splits"),
            nodes_missing_value_tracks_true=missing.astype(int).tolist(),
            nodes_truenodeids=index[left].tolist(),
            nodes_trueleafs=(tree.left[left] == LEAF).astype(int).tolist(),
            nodes_falsenodeids=index[right].tolist(),
            nodes_falseleafs=(tree.left[right] == LEAF).astype(int).tolist(),
            leaf_targetids=[0] * len(leaves),
            leaf_weights=tensor(leaves.astype(np.float64), "weights"),
            n_targets=1,
            aggregate_function=SUM,
            post_transform=NO_TRANSFORM,
        )
        flat = self._add("Reshape", [found, self._constant(np.array([-1]))])
        return self._add("Cast", [flat], to=self._onnx.TensorProto.INT64)

    def _refuse_infinite(self, numbers: list[str], leaf: str) -> str:
        """-1 instead of a leaf, which is the last row of every table that is gathered from."""
        side_by_side = self._add("Concat", numbers, axis=1)
        flags = self._add("IsInf", [side_by_side])
        as_numbers = self._add("Cast", [flags], to=self._onnx.TensorProto.INT32)
        axis = self._constant(np.array([1]))
        any_ = self._add("ReduceMax", [as_numbers, axis], keepdims=0)
        refused = self._add("Cast", [any_], to=self._onnx.TensorProto.BOOL)
        return self._add("Where", [refused, self._constant(np.array([REFUSED])), leaf])

    def _constant(self, values: NDArray[Any]) -> str:
        name = self._name()
        self._initial.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def _add(self, kind: str, inputs: list[str], output: str = "", **options: Any) -> str:
        output = output or self._name()
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [output], **options))
        return output

    def _name(self) -> str:
        """A name of the graph that no column has."""
        self._count += 1
        taken = set(self._tree.space.names)
        name = f"v{self._count}"
        while name in taken:
            name += "_"
        return name
