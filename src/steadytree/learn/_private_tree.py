"""Drawn questions to a Tree: leaves that carry released counts or drawn labels, nothing else."""

import numpy as np
from numpy.typing import NDArray

from steadytree.core.candidates import Candidates
from steadytree.core.schema import Schema
from steadytree.core.tree import LEAF, Tree
from steadytree.privacy.drawn import Drawn

Floats = NDArray[np.float64]


def plausible_counts(noisy: NDArray[np.int64], labels: NDArray[np.int64] | None = None) -> Floats:
    """Noisy leaf counts made positive, and led by the drawn label where there is one."""
    counts = np.maximum(noisy, 0).astype(np.float64)
    if labels is not None:
        place = np.arange(len(counts)), labels
        highest = counts.max(axis=1)
        # a label drawn with more budget outranks a count: the count gives way
        counts[place] = np.where(counts[place] < highest, highest, counts[place])
        tied = (counts == highest[:, None]).sum(axis=1) > 1
        counts[place] += np.where(tied, 1e-9 * highest + 1e-9, 0.0)
    return counts


def counts_from_labels(labels: NDArray[np.int64], n_classes: int, n_rows: float) -> Floats:
    """Where no counts were released: each leaf as heavy as any other, and of one class."""
    counts = np.zeros((len(labels), n_classes))
    counts[np.arange(len(labels)), labels] = max(n_rows, 1.0) / len(labels)
    return counts


def build_tree(drawn: Drawn, candidates: Candidates, schema: Schema, counts: Floats) -> Tree:
    """A Tree whose leaves have the given counts, parents those of their children together.

    Sibling leaves with equal labels are merged. A leaf with no counts takes its parent's shares.
    """
    nodes: list[tuple[int, int, int]] = []  # question, yes, no; parents first
    leaf_node: list[int] = []

    def add(part: Drawn) -> int:
        here = len(nodes)
        nodes.append((-1, LEAF, LEAF))
        if part.is_leaf:
            leaf_node.append(here)
        else:
            yes = add(part.yes)
            nodes[here] = (part.question, yes, add(part.no))
        return here

    add(drawn)
    totals = np.zeros((len(nodes), counts.shape[1]))
    totals[leaf_node] = counts
    for here in range(len(nodes) - 1, -1, -1):
        if nodes[here][0] >= 0:
            totals[here] = totals[nodes[here][1]] + totals[nodes[here][2]]
    return _assemble(nodes, _shares(nodes, totals), totals.sum(axis=1), candidates, schema).prune()


def _shares(nodes: list[tuple[int, int, int]], totals: Floats) -> Floats:
    shares = np.full(totals.shape, 1.0 / totals.shape[1])
    weight = totals.sum(axis=1)
    for here, (question, yes, no) in enumerate(nodes):
        if weight[here] > 0:
            shares[here] = totals[here] / weight[here]
        if question >= 0:
            shares[yes] = shares[no] = shares[here]
    return shares


def _assemble(
    nodes: list[tuple[int, int, int]],
    shares: Floats,
    weight: Floats,
    candidates: Candidates,
    schema: Schema,
) -> Tree:
    width = max(len(column.categories) for column in schema.space)
    subset = np.zeros((len(nodes), width), bool)
    threshold = np.full(len(nodes), np.nan)
    feature = np.full(len(nodes), LEAF)
    for here, (question, _, _) in enumerate(nodes):
        if question >= 0:
            feature[here] = candidates.feature[question]
            threshold[here] = candidates.threshold(question)
            subset[here] = candidates.subset(question, width)
    return Tree(
        schema.space,
        np.array(schema.classes),
        feature,
        threshold,
        np.array([yes for _, yes, _ in nodes]),
        np.array([no for _, _, no in nodes]),
        shares,
        weight,
        np.zeros(len(nodes), bool),
        subset,
    )
