import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from steadytree.models.sklearn import as_tree
from steadytree.reporting.wording import DEEPEST, MOST_LEAVES, build_nodes
from tests.models import trees


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_counted_on_the_given_data(seed):
    rng = np.random.default_rng(seed)
    tree = trees.random_tree(rng, n_leaves=10)
    X = trees.random_rows(rng, tree)
    truth = rng.integers(0, 3, len(X))
    paths = tree.decision_path(X).toarray().astype(bool)
    for node in build_nodes(tree, X, truth)["nodes"]:
        here = paths[:, node["id"]]
        assert node["n_rows"] == here.sum()
        assert node["counts"] == np.bincount(truth[here], minlength=3).tolist()


def test_nodes_come_in_reading_order_with_links():
    tree = trees.random_tree(np.random.default_rng(0), n_leaves=10)
    X = trees.random_rows(np.random.default_rng(1), tree, 5)
    nodes = build_nodes(tree, X, np.zeros(5, int))["nodes"]
    assert [node["id"] for node in nodes] == tree.preorder.tolist()
    for place, node in enumerate(nodes):
        assert node["place"] == place
        if "left" in node:
            assert nodes[node["left"]]["parent"] == nodes[node["right"]]["parent"] == place
            assert (nodes[node["left"]]["side"], nodes[node["right"]]["side"]) == ("yes", "no")


def test_a_tree_too_large_to_draw_is_cut_back():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), rng.integers(0, 2, 2000)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    found = build_nodes(as_tree(model), X, y)
    leaves = [node for node in found["nodes"] if "left" not in node]
    assert found["n_leaves"] == model.get_n_leaves() > MOST_LEAVES >= len(leaves)
    assert found["depth_shown"] <= DEEPEST
    assert sum(node["n_below"] for node in leaves) == model.get_n_leaves()
    assert sum(node["n_rows"] for node in leaves) == 2000
    answers = model.tree_.value[[node["id"] for node in leaves], 0].argmax(axis=1)
    assert [node["answer"] for node in leaves] == answers.tolist()


def test_a_chain_is_cut_at_its_depth():
    X = np.arange(40.0)[:, None]
    model = DecisionTreeClassifier(random_state=0).fit(X, np.arange(40) % 2)
    assert build_nodes(as_tree(model), X, np.arange(40) % 2)["depth_shown"] <= DEEPEST
