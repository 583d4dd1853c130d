"""Sliders: other trees beside the model, and which leaves fall first under noise."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.dataset import Sampled
from steadytree.metrics.accuracy import accuracy, label_indices
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import Tree
from steadytree.reporting.formatting import one_line, plain
from steadytree.reporting.wording import build_nodes
from steadytree.robustness.certificate import Certificate
from steadytree.robustness.certify import certificate_of
from steadytree.robustness.perturbation import Perturbation
from steadytree.stability.refits import Refits

SIZES = (2, 3, 4, 6, 8, 12, 16)  # leaves of the smaller trees
MOST_NAMES = 8
MOST_ROWS = 5_000  # that a smaller tree is certified on
STEPS, FARTHEST = 41, 2.0  # positions of the slider, and times the perturbation at its end


def noise_steps(found: Certificate, fitted: Any) -> dict[str, Any] | None:
    """Certified accuracy by size, and the share of each leaf's correct rows that stay so."""
    if not isinstance(fitted, Tree) or found.perturbation.scope != "row":
        return None
    budget = found.perturbation.budget or 1.0
    sizes = np.linspace(0.0, FARTHEST * budget, STEPS)
    leaves = fitted.apply_encoded(found.rows)
    shown = []
    for leaf in np.flatnonzero(fitted.is_leaf).tolist():
        kept = found.distance[(leaves == leaf) & found.right]
        # as `Certificate.certified_accuracy`: what is within a rounding of the size counts as moved
        shares = [np.mean(kept > _limit(size)) if len(kept) else 1.0 for size in sizes]
        shown.append({"node": leaf, "n_rows": len(kept), "stays": plain(np.array(shares))})
    certified = [found.certified_accuracy(float(size)) for size in sizes]
    return {"size": plain(sizes), "certified_accuracy": certified, "leaves": shown}


def attacked_columns(found: Certificate) -> list[dict[str, Any]]:
    """Columns that change in the rows which the worst perturbation makes wrong, with the share."""
    start, end = found.rows[found.attacked], found.witness[found.attacked]
    changed = (start != end) & ~(np.isnan(start) & np.isnan(end))
    shares = changed.sum(axis=0) / max(len(changed), 1)
    ranked = sorted(zip(found.space.names, shares, strict=True), key=lambda one: -one[1])
    return [
        {"name": one_line(name), "share": float(share)}
        for name, share in ranked[:MOST_NAMES]
        if share
    ]


def _limit(size: float) -> float:
    return Perturbation(step_cost=0, budget=float(size)).spend(1.0)


def candidates(
    fitted: Tree, again: Refits, X: Any, y: Any, noise: Perturbation | None, seed: int
) -> list[dict[str, Any]]:
    """Trees beside the model, from the most accurate to the steadiest, none of them fitted anew.

    The tree pruned to fewer leaves: retrained trees are pruned alike, so that the share of changed
    decisions is that of the learner followed by the pruning. And the retrained trees themselves:
    some decide more like the others than the model does. A tree that another one equals or beats
    in both is left out, but for the model itself.
    """
    sizes = [size for size in SIZES if size < fitted.n_leaves]
    every: list[tuple[Tree, Tree, list[Tree]]] = [(fitted, again.whole, list(again.trees))]
    for size in sizes:
        others = [prune_to(one, size) for one in again.trees]
        every.append((prune_to(fitted, size), prune_to(again.whole, size), others))
    for k, tree in enumerate(again.trees):
        others = [again.whole, *again.trees[:k], *again.trees[k + 1 :]]
        every.append((tree, tree, others))
    found: list[dict[str, Any]] = [
        {
            "n_leaves": tree.n_leaves,
            "is_model": tree is fitted,
            "is_refit": k > len(sizes),
            "accuracy": accuracy(tree, X, y).accuracy,
            "changed_decisions": changed_decisions(whole, others, X),
        }
        for k, (tree, whole, others) in enumerate(every)
    ]
    kept = [k for k, one in enumerate(found) if k == 0 or not _is_beaten(one, found, k)]
    if len(kept) == 1:
        return []
    rows = Sampled.of(X, y, MOST_ROWS, seed)
    for k in kept:
        tree, worst = every[k][0], None
        if noise is not None and noise.budget is not None:
            worst = certificate_of(tree, rows.features, rows.labels, noise).worst_case_accuracy
        nodes = build_nodes(tree, X, label_indices(tree.classes, y))
        found[k] |= {"worst_case_accuracy": worst, "tree": nodes}
    chosen = [found[k] for k in kept]
    return sorted(chosen, key=lambda one: (-one["accuracy"], -one["changed_decisions"]))


def changed_decisions(whole: Tree | Scorecard, others: Sequence[Tree | Scorecard], X: Any) -> float:
    """Mean share of the rows that a retrained model decides otherwise."""
    own = whole.predict(X)
    return float(np.mean([np.mean(one.predict(X) != own) for one in others]))


def _is_beaten(one: dict[str, Any], others: list[dict[str, Any]], k: int) -> bool:
    """Whether another tree is at least as accurate and as steady, and better, smaller or first."""
    own = (one["accuracy"], -one["changed_decisions"], -one["n_leaves"], -k)
    figures = [
        (x["accuracy"], -x["changed_decisions"], -x["n_leaves"], -i) for i, x in enumerate(others)
    ]
    return any(x > own and x[0] >= own[0] and x[1] >= own[1] for x in figures)


def prune_to(tree: Tree, n_leaves: int) -> Tree:
    """The tree with at most so many leaves, pruned where the Gini impurity rises least."""
    impurity = tree.weight * (1.0 - (tree.value**2).sum(axis=1))
    leaf, pruned = tree.is_leaf.copy(), []
    while leaf[_reached(tree, leaf)].sum() > n_leaves:
        inner = [node for node in _reached(tree, leaf) if not leaf[node]]
        ends = [node for node in inner if leaf[tree.left[node]] and leaf[tree.right[node]]]
        rise = [
            impurity[node] - impurity[tree.left[node]] - impurity[tree.right[node]] for node in ends
        ]
        node = ends[int(np.argmin(rise))]
        leaf[node] = True
        pruned.append(node)
    return tree.restrict(pruned)


def _reached(tree: Tree, leaf: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Nodes from the root down to the given leaves."""
    reached = np.zeros(tree.n_nodes, bool)
    reached[0] = True
    for node in range(tree.n_nodes):
        if reached[node] and not leaf[node]:
            reached[[tree.left[node], tree.right[node]]] = True
    return np.flatnonzero(reached)
