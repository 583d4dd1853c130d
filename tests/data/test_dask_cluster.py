"""On a cluster of processes: the same trees, also when a worker is killed in the middle."""

import os
import pathlib
import signal

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

from steadytree.data.dask import DaskRows
from steadytree.privacy.private_tree import PrivateTreeClassifier
from steadytree.reporting.comparison import compare
from steadytree.stability.pareto_tree import ParetoTreeClassifier
from steadytree.stability.sensitivity import average_sensitivity
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.data.row_sets import random_rows
from tests.data.test_dask import SCHEMA

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

pytestmark = [
    pytest.mark.federated,
    # a killed worker's connections end when they end
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ALL = ["few", "tenths", "real", "constant", "flag", "group", "side"]


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes; a killed one is started again."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


def rows(n=3_000):
    X, y = random_rows(np.random.default_rng(0), n, 3, names=ALL)
    return X, y


def frames(X, y, n):
    return dd.from_pandas(X, npartitions=n), dd.from_pandas(pd.Series(y), npartitions=n)


@pytest.mark.parametrize("n_partitions", [1, 2, 10])
def test_tree_is_that_of_rows_in_memory(client, n_partitions):
    X, y = rows()
    model = StableTreeClassifier(epsilon=0.1, random_state=0)
    named = clone(model).fit(*frames(X, y, n_partitions), client=client)
    active = clone(model).fit(*frames(X, y, n_partitions))
    assert named.tree_ == active.tree_ == model.fit(X, y).tree_
    assert named.tree_.n_leaves > 4


@pytest.mark.parametrize("level", [1, 3])
def test_a_killed_worker_changes_nothing(client, monkeypatch, level):
    X, y = rows()
    model = StableTreeClassifier(max_depth=5, epsilon=0, random_state=0)
    near = clone(model).fit(X, y)
    n_levels, killed = [0], []
    advance = DaskRows.advance

    def kill_then_advance(source, splits):
        n_levels[0] += 1
        if n_levels[0] == level:
            workers = client.run(os.getpid)
            held = client.has_what()
            address = max(workers, key=lambda each: len(held[each]))  # it must lose something
            assert held[address]
            os.kill(workers[address], signal.SIGKILL)
            killed.append(address)
        advance(source, splits)

    monkeypatch.setattr(DaskRows, "advance", kill_then_advance)
    far = model.fit(*frames(X, y, 6), client=client)
    assert killed
    assert far.tree_ == near.tree_
    np.testing.assert_array_equal(far.tree_.weight, near.tree_.weight)


@pytest.mark.parametrize("method", ["gibbs", "greedy", "topdown"])
def test_private_tree_is_that_of_rows_in_memory(client, method):
    X, y = rows()
    model = PrivateTreeClassifier(5.0, SCHEMA, method, testing_seed=1)
    assert clone(model).fit(*frames(X, y, 3), client=client).tree_ == model.fit(X, y).tree_


def test_errors_come_back_with_their_partition(client):
    y = np.array([0.0, 1, 0, 1, 0, np.nan])
    with pytest.raises(ValueError, match="partition 1: Input y contains NaN"):
        StableTreeClassifier().fit(da.zeros((6, 2), chunks=(3, 2)), da.from_array(y, chunks=3))


# ---- many fits ----
def test_sensitivity_fans_out_on_the_cluster(client):
    X, y = load_breast_cancer(return_X_y=True)
    cart = DecisionTreeClassifier(max_depth=3, random_state=0)
    here = average_sensitivity(cart, X, y, repeats=60)
    with joblib.parallel_config("dask"):
        there = average_sensitivity(cart, X, y, repeats=60)
    np.testing.assert_array_equal(here.distances, there.distances)
    stable = StableTreeClassifier(max_depth=3, epsilon=0.3)
    here = average_sensitivity(stable, X, y, seeds=6)
    with joblib.parallel_config("dask"):
        there = average_sensitivity(stable, X, y, seeds=6)
    np.testing.assert_array_equal(here.distances, there.distances)
    assert there.alternatives[0].tree == here.alternatives[0].tree


def test_pareto_fans_out_on_the_cluster(client):
    X, y = load_breast_cancer(return_X_y=True)
    model = ParetoTreeClassifier(n_trees=30, random_state=0)
    here = clone(model).fit(X, y)
    with joblib.parallel_config("dask"):
        there = model.fit(X, y)
    assert here.tree_ == there.tree_
    np.testing.assert_array_equal(here.candidates_["distance"], there.candidates_["distance"])


def test_compare_fans_out_on_the_cluster(client):
    X, y = load_breast_cancer(return_X_y=True)
    here = compare(["cart", "stable"], X, y, n_folds=3)
    with joblib.parallel_config("dask"):
        there = compare(["cart", "stable"], X, y, n_folds=3)
    for one, other in zip(here.results, there.results, strict=True):
        told = [
            {
                name: str(reading)
                for name, reading in each.measurements.items()
                if name != "fit time"
            }
            for each in (one, other)
        ]
        assert told[0] == told[1]
        assert "accuracy" in told[0]


class Counted:
    """Data that say in which process they were unpacked."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return _unpack, (self.place,)


def _unpack(place):
    with pathlib.Path(place).open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    return Counted(place)


def _nothing(item, counted):
    return os.getpid()


def test_shared_data_are_sent_to_a_worker_once(client, tmp_path):
    from steadytree._base.parallel import fan_out

    place = tmp_path / "unpacked"
    with joblib.parallel_config("dask"):
        ran = fan_out(_nothing, list(range(200)), Counted(str(place)))
    assert len(ran) == 200
    unpacked = place.read_text("utf-8").split()
    assert 1 <= len(unpacked) <= len(set(ran))
