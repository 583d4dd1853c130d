"""Exported trees in the libraries people use on scikit-learn's; `make test-interop` runs these."""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.one_hot import one_hot, one_hot_tree
from steadytree.models.sklearn import from_sklearn, to_sklearn
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.models.trees import deep_tree, random_rows, random_tree, to_float32

# What these libraries do with numpy, pandas and matplotlib is theirs to mend.
pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]


def learned():
    """A learned tree on numbers, with the rows it saw as float32."""
    rows, labels = load_iris(return_X_y=True, as_frame=True)
    model = StableTreeClassifier(max_depth=4, epsilon=0, random_state=0).fit(rows, labels)
    return model.tree_, rows.astype(np.float32)


def mixed(seed=28):
    """A tree with sets of categories and empty leaves, and rows without missing values."""
    tree = random_tree(np.random.default_rng(seed), n_leaves=9)
    tree = replace(tree, classes=[0, 1, 2])  # dtreeviz takes no other labels
    exported = one_hot_tree(tree)
    assert exported.n_nodes > tree.n_nodes
    assert 0 < exported.weight.min() < 1e-5 < tree.weight[tree.weight > 0].min()
    rows = to_float32(random_rows(np.random.default_rng(0), tree, 400))
    complete = one_hot(tree, rows).notna().all(axis=1).to_numpy()
    assert complete.sum() > 50
    return tree, rows[complete]


def infinite():
    """The same, with a question about missing values only."""
    tree, rows = mixed(seed=69)
    assert np.isinf(tree.threshold).any()
    return tree, rows


@pytest.fixture(params=[learned, mixed, infinite], ids=lambda make: make.__name__)
def example(request):
    """Our tree, rows for it, its export, and the rows as the export takes them."""
    tree, rows = request.param()
    return tree, rows, to_sklearn(tree), one_hot(tree, rows).astype(np.float32)


def test_shap_values_add_up_to_the_prediction(example):
    shap = pytest.importorskip("shap")
    tree, rows, exported, columns = example
    explainer = shap.TreeExplainer(exported)
    values = explainer(columns)  # checks additivity itself, roughly
    total = values.values.sum(axis=1) + values.base_values
    np.testing.assert_allclose(total, tree.predict_proba(rows), atol=1e-6)
    np.testing.assert_allclose(values.base_values[0], exported.tree_.value[0, 0], atol=1e-6)


def test_onnx_runtime_gives_the_same_labels(example):
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    tree, rows, exported, columns = example
    matrix = columns.to_numpy(np.float32)
    model = skl2onnx.to_onnx(exported, matrix[:1], options={"zipmap": False})
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    labels, shares = session.run(None, {session.get_inputs()[0].name: matrix})
    np.testing.assert_array_equal(labels, tree.predict(rows))
    np.testing.assert_allclose(shares, tree.predict_proba(rows), atol=1e-6)


def test_skops_brings_it_back(example):
    skops = pytest.importorskip("skops.io")
    _, _, exported, columns = example
    data = skops.dumps(exported)
    back = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    np.testing.assert_array_equal(back.predict_proba(columns), exported.predict_proba(columns))
    assert from_sklearn(back) == from_sklearn(exported)


@pytest.fixture
def seen_by_dtreeviz(example):
    dtreeviz = pytest.importorskip("dtreeviz")
    pytest.importorskip("matplotlib").use("Agg")
    tree, rows, exported, columns = example
    return dtreeviz.model(
        exported,
        columns.to_numpy(np.float64),
        np.arange(len(rows)) % 3,  # every class must be there
        feature_names=list(exported.feature_names_in_),
        target_name="class",
        class_names=[str(label) for label in tree.classes],
    )


def test_dtreeviz_reads_every_node(seen_by_dtreeviz, example):
    _, _, exported, columns = example
    shadow = seen_by_dtreeviz.shadow_tree
    assert len(shadow.leaves) == exported.get_n_leaves()
    assert len(shadow.internal) == exported.tree_.node_count - exported.get_n_leaves()
    told = seen_by_dtreeviz.explain_prediction_path(columns.to_numpy(np.float64)[0])
    assert told.count("\n") > 0


@pytest.mark.skipif(shutil.which("dot") is None, reason="dtreeviz draws with Graphviz's dot")
def test_dtreeviz_draws_it(seen_by_dtreeviz, example):
    _, _, exported, _ = example
    if np.isinf(exported.tree_.threshold).any():
        pytest.skip("dtreeviz has no place for an infinite threshold, scikit-learn's own included")
    drawn = seen_by_dtreeviz.view().svg()
    assert drawn.count("<title>leaf") == exported.get_n_leaves()


def test_shap_explains_the_exported_tree_where_rounding_moves_a_row():
    """Such rows add up to the shares of the leaf that float32 leads to, not to the model's."""
    shap = pytest.importorskip("shap")
    tree = deep_tree(2, lambda level: 1.7e9 + 100 * level + 0.5)
    tree = replace(tree, space=FeatureSpace((replace(tree.space[0], low=1.7e9, high=1.8e9),)))
    times = pd.DataFrame({"a": np.arange(1.7e9 - 200, 1.7e9 + 400)})
    with pytest.warns(UserWarning, match="rows of X get another leaf"):
        exported = to_sklearn(tree, times)
    moved = exported.predict(times) != tree.predict(times)
    assert moved.any()
    values = shap.TreeExplainer(exported)(times)
    total = values.values.sum(axis=1) + values.base_values
    np.testing.assert_allclose(total, exported.predict_proba(times), atol=1e-6)
    assert (np.abs(total - tree.predict_proba(times)).max(axis=1) > 0.1).tolist() == moved.tolist()
