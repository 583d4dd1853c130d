"""Dask collections give the tree that the same rows give in memory."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import steadytree
from steadytree.data.dask import Runner
from steadytree.data.sources import Parted
from steadytree.privacy.private_tree import PrivateTreeClassifier
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.data.row_sets import check_same_fit, random_rows

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

ALL = ["few", "tenths", "real", "constant", "flag", "group", "side"]


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def rows(seed=0, n=300, missing=True):
    return random_rows(np.random.default_rng(seed), n, 3, names=ALL, missing=missing)


def frames(X, y, n):
    return dd.from_pandas(X, npartitions=n), dd.from_pandas(pd.Series(y), npartitions=n)


@pytest.mark.parametrize("n_partitions", [1, 2, 10])
@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0},
        {"epsilon": 0.2},
        {"epsilon": 0.2, "coupling": "rejection"},
        {"epsilon": 0, "criterion": "gini", "grid": "quantile", "n_thresholds": 20},
        {"epsilon": 0.1, "grid": "midpoint", "min_samples_leaf": 4},
    ],
)
def test_dataframe_gives_the_tree_of_rows_in_memory(changes, n_partitions):
    X, y = rows()
    model = StableTreeClassifier(random_state=0, **changes)
    far = clone(model).fit(*frames(X, y, n_partitions))
    near = model.fit(X, y)
    check_same_fit(far, near)
    assert far.feature_names_in_.tolist() == ALL
    assert far.split_probabilities() == near.split_probabilities()


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("chunks", [(300, 4), (150, 2), (37, 3)])
def test_array_gives_the_tree_of_rows_in_memory(chunks, scheduler):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(300, 3)), rng.integers(0, 6, 300)])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X).sum(axis=1) + rng.normal(size=300) > 2).astype(np.int64)
    model = StableTreeClassifier(random_state=0, epsilon=0.1)
    with dask.config.set(scheduler=scheduler):
        far = clone(model).fit(da.from_array(X, chunks=chunks), da.from_array(y, chunks=64))
    check_same_fit(far, model.fit(X, y))
    assert not hasattr(far, "feature_names_in_")
    assert far.n_features_in_ == 4


def test_unknown_chunk_sizes_do_where_the_chunks_go_together():
    X, y = rows(missing=False)
    X = X.drop(columns=["group", "side"])
    y = (y == "no").astype(np.int64)
    far_X, far_y = frames(X, y, 4)
    model = StableTreeClassifier(random_state=0, epsilon=0)
    far = clone(model).fit(far_X.to_dask_array(), far_y.to_dask_array())
    check_same_fit(far, model.fit(X.to_numpy(), y))


def test_categories_of_a_frame_come_through():
    X, y = rows(3)
    X["group"] = pd.Categorical(X["group"], categories=["x", "w", "v", "u", "never"])
    model = StableTreeClassifier(random_state=0, epsilon=0)
    far = clone(model).fit(*frames(X, y, 3))
    check_same_fit(far, model.fit(X, y))
    assert far.space_[5].categories == ("x", "w", "v", "u", "never")


def test_partitions_without_rows_change_nothing():
    X, y = rows()
    far_X, _ = frames(X.assign(label=y), y, 5)
    kept = far_X[far_X["real"] > 0.3]
    near = X[X["real"] > 0.3]
    model = StableTreeClassifier(random_state=0, epsilon=0)
    far = clone(model).fit(kept.drop(columns="label"), kept["label"])
    check_same_fit(far, model.fit(near, y[near.index]))


def test_a_level_with_many_counters_is_asked_in_blocks(monkeypatch):
    X, y = rows()
    model = StableTreeClassifier(random_state=0, epsilon=0)
    near = clone(model).fit(X, y)
    monkeypatch.setattr(Parted, "block_counters", 1)  # a node at a time
    check_same_fit(model.fit(*frames(X, y, 3)), near)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "apply"])
def test_predictions_of_a_collection_are_those_of_its_rows(method):
    X, y = rows()
    far_X, _ = frames(X, y, 3)
    model = StableTreeClassifier(random_state=0, epsilon=0).fit(X, y)
    lazy = getattr(model, method)(far_X)
    assert dask.is_dask_collection(lazy)
    np.testing.assert_array_equal(np.asarray(lazy.compute()), getattr(model, method)(X))
    numbers = X[["few", "real"]].to_numpy()
    model = StableTreeClassifier(random_state=0, epsilon=0).fit(numbers, y)
    lazy = getattr(model, method)(da.from_array(numbers, chunks=(70, 1)))
    assert lazy.shape == getattr(model, method)(numbers).shape
    np.testing.assert_array_equal(lazy.compute(), getattr(model, method)(numbers))


def test_other_learners_and_measures_say_that_they_need_the_rows():
    X, y = rows()
    far_X, far_y = frames(X, y, 3)
    with pytest.raises(TypeError, match=r"X is a Dask collection.* X\.compute\(\)"):
        steadytree.RobustTreeClassifier().fit(far_X, far_y)
    with pytest.raises(TypeError, match=r"X is a Dask collection.* X\.compute\(\)"):
        steadytree.average_sensitivity(StableTreeClassifier(), far_X, far_y)


# ---- the private learner ----
SCHEMA = steadytree.Schema(
    bounds={"few": (0, 4), "tenths": (0, 1.5), "real": (-3, 3)},
    categories={"group": list("uvwx"), "side": ["left", "right"]},
    classes=["no", "yes"],  # rows of the class "maybe" are left out
    kinds={"few": "integer"},
    missing=["few", "group"],
)


@pytest.mark.parametrize("n_partitions", [1, 2, 10])
@pytest.mark.parametrize("method", ["gibbs", "greedy", "topdown"])
def test_private_tree_is_that_of_rows_in_memory(method, n_partitions):
    X, y = rows()
    model = PrivateTreeClassifier(20.0, SCHEMA, method, testing_seed=1)
    far = clone(model).fit(*frames(X, y, n_partitions))
    near = model.fit(X, y)
    assert far.tree_ == near.tree_
    assert far.tree_.n_leaves > 2
    assert far.n_rows_ == near.n_rows_
    assert far.privacy_.to_dict() == near.privacy_.to_dict()


def test_private_partitions_that_do_not_fit_are_refused():
    X, y = rows()
    far_X, _ = frames(X, y, 2)
    short = da.from_array(y, chunks=((140, 160),))
    with pytest.raises(ValueError, match=r"partition [01]: X and y have different numbers"):
        PrivateTreeClassifier(1.0, SCHEMA, testing_seed=1).fit(far_X, short)


# ---- what is refused ----
def test_y_must_be_a_collection_where_x_is_one():
    X, y = rows()
    with pytest.raises(TypeError, match="X is a Dask collection, so y must be one too, got ndarr"):
        StableTreeClassifier().fit(frames(X, y, 2)[0], y)
    with pytest.raises(TypeError, match="y is a Dask collection, so X must be one too, got DataFr"):
        StableTreeClassifier().fit(X, frames(X, y, 2)[1])


def test_partitions_that_do_not_go_together_are_refused():
    X, y = rows()
    (far_X, _), (_, far_y) = frames(X, y, 4), frames(X, y, 3)
    with pytest.raises(ValueError, match="X has 4 partitions and y has 3"):
        StableTreeClassifier().fit(far_X, far_y)
    short = da.from_array(y, chunks=((70, 75, 75, 80),))
    with pytest.raises(ValueError, match=r"partition [03]: X and y have inconsistent"):
        StableTreeClassifier().fit(far_X, short)


def test_arrays_of_different_length_are_refused():
    X, y = da.zeros((10, 2), chunks=5), da.zeros(9, chunks=5)
    with pytest.raises(ValueError, match="10 rows, 9 labels"):
        StableTreeClassifier().fit(X, y)


def test_unknown_chunk_sizes_that_differ_say_what_to_call():
    X, y = rows(missing=False)
    X = X.drop(columns=["group", "side"])
    far_X = frames(X, y, 4)[0].to_dask_array()
    with pytest.raises(ValueError, match=r"unknown chunk sizes .* compute_chunk_sizes\(\)"):
        StableTreeClassifier().fit(far_X, da.from_array(y, chunks=100))


@pytest.mark.parametrize("shape", [(10,), (10, 2, 2)])
def test_x_must_be_a_table(shape):
    with pytest.raises(ValueError, match="X must be a table of rows and columns"):
        StableTreeClassifier().fit(da.zeros(shape), da.zeros(10))


def test_other_collections_are_refused():
    delayed = dask.delayed([[1.0]])
    with pytest.raises(TypeError, match="X must be a dask array or dataframe, got Delayed"):
        StableTreeClassifier().fit(delayed, da.zeros(1))
    with pytest.raises(TypeError, match="y must be a dask array or series, got Delayed"):
        StableTreeClassifier().fit(da.zeros((1, 1)), delayed)
    with pytest.raises(ValueError, match="y must be one column of labels, got 2"):
        StableTreeClassifier().fit(da.zeros((4, 1)), da.zeros((4, 2)))


def test_what_needs_all_rows_is_refused():
    data = da.zeros((10, 2)), da.zeros(10)
    with pytest.raises(ValueError, match="sample_weight needs the rows in memory"):
        StableTreeClassifier().fit(*data, sample_weight=np.ones(10))
    with pytest.raises(ValueError, match="lookahead above 1 needs the rows in memory"):
        StableTreeClassifier(lookahead=2, criterion="count").fit(*data)
    with pytest.raises(ValueError, match="previous was removed"):
        StableTreeClassifier(previous=object()).fit(*data)


def test_a_client_goes_with_collections_only():
    for model in (StableTreeClassifier(), PrivateTreeClassifier(1.0, SCHEMA)):
        with pytest.raises(ValueError, match="client goes with Dask collections"):
            model.fit([[0.0], [1.0]], [0, 1], client=object())
    pytest.importorskip("distributed")
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client, got str"):
        StableTreeClassifier().fit(da.zeros((10, 2)), da.zeros(10), client="here")


def test_bad_labels_tell_their_partition():
    X = da.zeros((10, 2), chunks=(5, 2))
    y = da.from_array(np.array([0, 1, 0, 1, 0, 1, np.nan, 1, 0, 1]), chunks=5)
    with pytest.raises(ValueError, match=r"partition 1: Input y contains NaN.* in row 1"):
        StableTreeClassifier().fit(X, y)


def test_without_dask_it_says_what_to_install(monkeypatch):
    X, y = da.zeros((10, 2)), da.zeros(10)
    monkeypatch.setitem(sys.modules, "dask", None)
    expected = r"^learning from a Dask collection needs dask: pip install 'steadytree\[dask\]'$"
    with pytest.raises(ImportError, match=expected):
        StableTreeClassifier().fit(X, y)
    with pytest.raises(ImportError, match=expected):
        PrivateTreeClassifier(1.0, SCHEMA).fit(X, y)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 37, 64, 131])
def test_each_partition_is_added_once_whatever_their_number(n, monkeypatch):
    """Sums are made in chains, whose number is that of the machine's threads."""
    for n_chains in (1, 7, 16):
        runner = Runner()
        monkeypatch.setattr(runner, "_n_chains", lambda n_chains=n_chains: n_chains)
        total = runner.get(runner.add_up(_alone, [(10**9 + 2**k,) for k in range(n)]))
        assert int(total[0]) == sum(10**9 + 2**k for k in range(n))


def _alone(number):
    return np.array([number], object)
