"""Figures of the sliders are those of the public functions."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import steadytree as st
from steadytree.reporting.robustness import attacked_columns, noise_steps
from steadytree.reporting.stability import candidates, prune_to


@pytest.fixture(scope="module")
def case():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = st.StableTreeClassifier(3, 0, random_state=0).fit(X[:300], y[:300])
    noise = st.Perturbation(radius=dict(X.std() / 10))
    return model, X[300:], y[300:], noise, (X[:300], y[:300])


def test_noise_steps_are_those_of_certify(case):
    model, X, y, noise, _ = case
    found = st.certify(model, X, y, noise)
    steps = noise_steps(found, model.tree_)
    for size, share in zip(steps["size"], steps["certified_accuracy"], strict=True):
        assert share == found.certified_accuracy(size)
    assert steps["certified_accuracy"][0] == model.score(X, y)
    # leaves add up to the whole
    for k in range(len(steps["size"])):
        kept = sum(leaf["n_rows"] * leaf["stays"][k] for leaf in steps["leaves"])
        assert kept / len(X) == pytest.approx(steps["certified_accuracy"][k])
    assert [leaf["node"] for leaf in steps["leaves"]] == np.flatnonzero(
        model.tree_.is_leaf
    ).tolist()


def test_a_shared_budget_has_no_steps(case):
    model, X, y, noise, _ = case
    shared = st.Perturbation(radius=noise.radius, budget=0.1, scope="mean")
    assert noise_steps(st.certify(model, X, y, shared), model.tree_) is None


def test_columns_that_turn_rows_are_those_of_the_witnesses(case):
    model, X, y, noise, _ = case
    found = st.certify(model, X, y, noise)
    listed = attacked_columns(found)
    examples = [one for one in found.counterexamples(10**6) if one.row in set(found.attacked)]
    for one in listed:
        moved = [one["name"] in {step.feature for step in example.steps} for example in examples]
        assert one["share"] == pytest.approx(np.mean(moved))
    assert [one["share"] for one in listed] == sorted([one["share"] for one in listed])[::-1]


def test_candidates_have_the_figures_of_the_functions(case):
    model, X, y, noise, train = case
    again = st.refits(model, *train, 4)
    found = candidates(model.tree_, again, X, y, noise, seed=0)
    assert len(found) > 1
    assert sum(one["is_model"] for one in found) == 1
    for one in [one for one in found if not one["is_refit"]]:
        tree = prune_to(model.tree_, one["n_leaves"])
        assert one["accuracy"] == (tree.predict(X) == y).mean()
        certified = st.certify(tree, X, y, noise)
        assert one["worst_case_accuracy"] == certified.worst_case_accuracy
        own = prune_to(again.whole, one["n_leaves"]).predict(X)
        changed = [(prune_to(t, one["n_leaves"]).predict(X) != own).mean() for t in again.trees]
        assert one["changed_decisions"] == pytest.approx(np.mean(changed))
        assert one["tree"]["n_leaves"] == one["n_leaves"]


def test_retrained_trees_are_candidates(case):
    model, X, y, noise, train = case
    again = st.refits(model, *train, 4)
    found = candidates(model.tree_, again, X, y, noise, seed=0)
    figures = []
    for tree in again.trees:
        others = [one for one in (again.whole, *again.trees) if one is not tree]
        changed = np.mean([(one.predict(X) != tree.predict(X)).mean() for one in others])
        figures.append((float((tree.predict(X) == y).mean()), float(changed), tree.n_leaves))
    shown = [(one["accuracy"], one["changed_decisions"], one["n_leaves"]) for one in found]
    refits = [k for k, one in enumerate(found) if one["is_refit"]]
    assert refits
    assert {shown[k] for k in refits} <= set(figures)
    for figure in figures:  # one that is left out is equalled or beaten in both
        assert any(one[0] >= figure[0] and one[1] <= figure[1] for one in shown)
    assert len(set(shown)) == len(shown)
    for k in refits:
        tree = again.trees[figures.index(shown[k])]
        worst = st.certify(tree, X, y, noise).worst_case_accuracy
        assert found[k]["worst_case_accuracy"] == worst
        assert found[k]["tree"]["n_leaves"] == tree.n_leaves


def test_candidates_go_from_the_most_accurate_to_the_steadiest(case):
    model, X, y, noise, train = case
    found = candidates(model.tree_, st.refits(model, *train, 4), X, y, noise, seed=0)
    accuracies = [one["accuracy"] for one in found]
    assert accuracies == sorted(accuracies)[::-1]
    others = [one["changed_decisions"] for one in found if not one["is_model"]]
    assert others == sorted(others)[::-1]


def test_pruning_keeps_the_most_informative_splits(case):
    tree = case[0].tree_
    assert prune_to(tree, tree.n_leaves) is tree
    assert prune_to(tree, 1).n_leaves == 1
    sizes = [prune_to(tree, n).n_leaves for n in range(1, tree.n_leaves + 1)]
    assert sizes == list(range(1, tree.n_leaves + 1))

    def impurity(one):
        leaves = one.is_leaf
        return (one.weight * (1 - (one.value**2).sum(axis=1)))[leaves].sum()

    # one leaf less: no other single merge leaves less impurity
    smaller = prune_to(tree, tree.n_leaves - 1)
    ends = [
        n
        for n in np.flatnonzero(~tree.is_leaf)
        if tree.is_leaf[[tree.left[n], tree.right[n]]].all()
    ]
    assert impurity(smaller) == pytest.approx(min(impurity(tree.restrict([n])) for n in ends))
