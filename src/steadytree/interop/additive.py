"""Weights that add up, as libraries that read trees expect."""

from dataclasses import replace

import numpy as np

from steadytree.core.tree import Tree


def make_additive(tree: Tree) -> Tree:
    """The tree with positive weights that add up, and shares that are the children's mean.

    Other libraries rely on both. A tree that has them is returned as it is; else leaves keep
    their shares and weights (a weight of zero becomes a millionth of the least positive one), and
    inner nodes are summed from them.
    """
    inner = np.flatnonzero(~tree.is_leaf)
    left, right = tree.left[inner], tree.right[inner]
    weight, mass = tree.weight.copy(), tree.weight[:, None] * tree.value
    beside = np.abs(mass[inner] - mass[left] - mass[right])  # shares sum to 1: weights are in it
    if (weight > 0).all() and (beside <= 1e-9 * weight[inner, None]).all():
        return tree
    positive = weight[tree.is_leaf & (weight > 0)]
    least = positive.min() * 1e-6 if len(positive) else 1.0
    weight = np.maximum(weight, least)
    mass = weight[:, None] * tree.value
    for node, low, high in zip(inner[::-1], left[::-1], right[::-1], strict=True):
        weight[node] = weight[low] + weight[high]
        mass[node] = mass[low] + mass[high]
    value = np.where(tree.is_leaf[:, None], tree.value, mass / weight[:, None])
    return replace(tree, weight=weight, value=value)
