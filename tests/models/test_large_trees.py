"""A tree of half a million nodes, as unpruned trees on a million rows are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.models.sklearn import from_sklearn
from tests.cli.commands import steadytree

N_NODES = 500_000


@pytest.mark.heavy
def test_half_a_million_nodes_are_read_kept_and_drawn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800_000, 3)), rng.integers(0, 2, 800_000)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)  # learns the noise row by row
    frame, labels = pd.DataFrame(X[:2_000], columns=list("abc")), y[:2_000]
    model.feature_names_in_ = np.array(list("abc"), dtype=object)
    tree = from_sklearn(model, frame)
    assert len(tree.left) > N_NODES
    np.testing.assert_array_equal(tree.predict_proba(frame), model.predict_proba(frame))

    tree.save("large.tree.json")
    again = st.load("large.tree.json")
    np.testing.assert_array_equal(again.predict_proba(frame), tree.predict_proba(frame))
    np.testing.assert_array_equal(st.to_sklearn(again).predict(frame), model.predict(frame))
    assert st.diff(tree, again, frame, labels).rows.flip_share == 0
    certificate = st.certify(tree, frame, labels, st.Perturbation(radius=0.001))
    assert 0 < certificate.worst_case_accuracy <= certificate.accuracy
    assert len(st.plot(tree).svg) < 5_000_000
    for call in (tree.to_sql, tree.to_source):
        with pytest.raises(ValueError, match=r"too large for \w+, .* prune it, or use to_onnx"):
            call()
    with pytest.raises(ValueError, match="leaves, and the path distance compares at most"):
        st.tree_distance(tree, again)

    frame.assign(y=labels).to_csv("rows.csv", index=False)
    command = "report rows.csv --model large.tree.json --target y --quick --out page.html"
    code, out, err = steadytree(tmp_path, *command.split())
    assert (code, err) == (0, "")
    assert "written: page.html" in out
    assert (tmp_path / "page.html").stat().st_size < 5_000_000
