"""Trees as ONNX models; `make test-interop` runs them in onnxruntime."""

import sys

import numpy as np
import pytest

from steadytree._base.exceptions import ExportError
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.exports.onnx import tree_to_onnx
from steadytree.models.tree import Tree
from tests.models.trees import deep_tree, random_rows, random_tree

interop = pytest.mark.interop
pytestmark = pytest.mark.filterwarnings("default")  # of other libraries


def run(content, rows):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    given = {}
    for one in session.get_inputs():
        column = rows[one.name].to_numpy()
        if one.type == "tensor(string)":
            column = np.array(["none of them" if v is None else v for v in column], object)
        given[one.name] = column.reshape(-1, 1)
    names = ["leaf", "label", "shares"]
    return dict(zip(names, session.run(names, given), strict=True))


@interop
@pytest.mark.parametrize("seed", range(12))
def test_onnxruntime_answers_as_the_tree_in_float64(seed):
    pytest.importorskip("onnx")
    rng = np.random.default_rng(seed)
    labels = ["int", "float", "bool", "str"][seed % 4]
    tree = random_tree(
        rng, n_leaves=1 + seed, labels=labels, n_classes=2, single_precision=seed > 8
    )
    rows = random_rows(rng, tree)
    found = run(tree.to_onnx(), rows)
    np.testing.assert_array_equal(found["leaf"], tree.apply(rows))
    np.testing.assert_array_equal(found["shares"], tree.predict_proba(rows))
    assert found["label"].tolist() == tree.predict(rows).tolist()


@interop
def test_times_are_compared_in_float64_and_infinity_is_refused():
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("onnx")
    tree = deep_tree(3, lambda level: 1.7e9 + level + 0.5)
    times = pd.DataFrame({"a": np.arange(1.7e9 - 300, 1.7e9 + 300)})
    np.testing.assert_array_equal(run(tree.to_onnx(), times)["leaf"], tree.apply(times))
    found = run(tree.to_onnx(), pd.DataFrame({"a": [np.inf, -np.inf, 0.0]}))
    assert found["leaf"].tolist()[:2] == [-1, -1]
    assert found["label"].tolist()[:2] == ["", ""]
    assert np.isnan(found["shares"][:2]).all()
    assert np.isfinite(found["shares"][2]).all()


@interop
def test_a_large_tree_and_one_that_differs(monkeypatch):
    pytest.importorskip("onnx")
    content, check = tree_to_onnx(deep_tree(2_000))
    assert len(content) > 10_000
    assert check.n_leaves > 1_000
    monkeypatch.setattr("steadytree.models.exports.onnx.AT_MOST", 1)  # "<" instead of "<="
    with pytest.raises(ExportError, match="the ONNX model differs from the model"):
        deep_tree(3).to_onnx()


@interop
@pytest.mark.parametrize(
    ("name", "message"),
    [("leaf", "'leaf' have the name of an output"), ("", "a column has no name")],
)
def test_a_column_that_onnx_cannot_name_is_refused(name, message):
    pytest.importorskip("onnx")
    space = FeatureSpace((Column(name, "numeric", 0, 1),))
    nodes = ([0, -1, -1], [0.5, np.nan, np.nan], [1, -1, -1], [2, -1, -1])
    tree = Tree(space, [0, 1], *nodes, [[0.5, 0.5], [1, 0], [0, 1]], [2, 1, 1])
    with pytest.raises(ValueError, match=message):
        tree.to_onnx()


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"an ONNX model needs onnx: pip install .*\[onnx\]"):
        deep_tree(1).to_onnx()
