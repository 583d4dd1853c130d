"""Models learned from a sample of files or partitions count all rows."""

import numpy as np
import pandas as pd
import pytest

from steadytree.data import parts as parts_module
from steadytree.data.parts import Parts
from steadytree.metrics.recount import recount_risks, recount_tree
from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.stability.steady_tree import LEAF_PRIOR, SteadyTreeClassifier

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=400), "b": rng.choice(["u", "v", "w"], 400)})
    return X.assign(label=np.where(X["a"] + (X["b"] == "u") + rng.normal(size=400) > 0.5, "y", "n"))


@pytest.fixture
def folder(frame, tmp_path):
    for k in range(2):
        part = pa.Table.from_pandas(frame.iloc[200 * k : 200 * (k + 1)], preserve_index=False)
        pq.write_table(part, tmp_path / f"{k}.parquet")
    return tmp_path


def few_rows(monkeypatch, most):
    monkeypatch.setattr(Parts.sample, "__defaults__", (most, 0))


@pytest.mark.parametrize("learner", [SteadyTreeClassifier(), RiskScoreClassifier(random_state=0)])
def test_few_rows_in_files_give_the_model_of_memory(frame, folder, learner):
    X, y = frame[["a", "b"]], frame["label"].to_numpy()
    near = learner.fit(X, y)
    expected = getattr(near, "tree_", None) or near.card_
    far = learner.fit(folder, "label")
    assert (getattr(far, "tree_", None) or far.card_) == expected
    assert far.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(far.predict(X), near.predict(X))


def test_leaves_of_a_sampled_tree_count_all_rows(frame, folder, monkeypatch):
    few_rows(monkeypatch, 150)
    X, y = frame[["a", "b"]], frame["label"].to_numpy()
    model = SteadyTreeClassifier().fit(folder, "label")
    tree = model.tree_
    assert "learned from 150 of 400 rows, drawn by chance" in tree.note
    rows = Parts(folder, "label").sample(
        150, int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    )
    small = SteadyTreeClassifier().fit(rows.table, rows.labels).tree_
    np.testing.assert_array_equal(tree.feature, small.feature)
    leaves = tree.apply(X)
    for leaf in np.flatnonzero(tree.left < 0):
        here = y[leaves == leaf]
        expected = [
            (here == c).sum() + LEAF_PRIOR * p for c, p in zip("ny", small.value[leaf], strict=True)
        ]
        np.testing.assert_allclose(tree.value[leaf], np.array(expected) / (len(here) + LEAF_PRIOR))
        assert tree.weight[leaf] == len(here)
    assert tree.weight[0] == 400
    np.testing.assert_allclose(tree.value.sum(axis=1), 1)


def test_risks_of_a_sampled_score_count_all_rows(frame, folder, monkeypatch):
    few_rows(monkeypatch, 200)
    X, y = frame[["a", "b"]], frame["label"].to_numpy()
    model = RiskScoreClassifier(random_state=0).fit(folder, "label")
    totals = model.card_.score(X)
    found = {row.total: (row.n_rows, row.n_label) for row in model.risk_table_.rows}
    expected = {
        int(t): ((totals == t).sum(), ((totals == t) & (y == "y")).sum()) for t in np.unique(totals)
    }
    assert found == expected
    assert model.card_.risk_table is model.risk_table_


def test_recounting_in_files_and_on_a_cluster_is_the_same(frame, folder):
    dask = pytest.importorskip("dask.dataframe")
    far = dask.from_pandas(frame, npartitions=3)
    both = Parts(folder, "label"), Parts(far[["a", "b"]], far["label"])
    tree = SteadyTreeClassifier().fit(frame[["a", "b"]], frame["label"]).tree_
    one, other = (recount_tree(tree, parts, 1.0) for parts in both)
    np.testing.assert_array_equal(one.value, other.value)
    card = RiskScoreClassifier(random_state=0).fit(frame[["a", "b"]], frame["label"]).card_
    assert recount_risks(card, both[0]).risk_table == recount_risks(card, both[1]).risk_table


@pytest.mark.parametrize(
    ("learner", "given", "name"),
    [
        (SteadyTreeClassifier(class_weight="balanced"), None, "class_weight"),
        (SteadyTreeClassifier(monotonic_cst={"a": 1}), None, "monotonic_cst"),
        (RiskScoreClassifier(), [1.0], "sample_weight"),
    ],
)
def test_what_needs_rows_in_memory_is_refused(folder, learner, given, name):
    assert parts_module.MOST_SAMPLED == 100_000
    with pytest.raises(ValueError, match=f"{name} needs the rows in memory"):
        learner.fit(folder, "label", sample_weight=given)
