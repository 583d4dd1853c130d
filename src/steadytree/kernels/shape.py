"""The shape of a flat tree whose parents come before their children."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def is_tree(left, right):
    """Whether node 0 is the root, each other node has one parent, and parents come first."""
    n_nodes = left.shape[0]
    parents = np.zeros(n_nodes, dtype=np.int64)
    for node in range(n_nodes):
        if (left[node] < 0) != (right[node] < 0):
            return False
        if left[node] < 0:
            continue
        for child in (left[node], right[node]):
            if child <= node or child >= n_nodes:
                return False
            parents[child] += 1
    return (parents[1:] == 1).all()


@njit(cache=True, nogil=True)
def node_depths(left, right):
    """Depth of each node, the root's being 0."""
    depth = np.zeros(left.shape[0], dtype=np.int64)
    for node in range(left.shape[0]):
        if left[node] >= 0:
            depth[left[node]] = depth[node] + 1
            depth[right[node]] = depth[node] + 1
    return depth


@njit(cache=True, nogil=True)
def preorder_nodes(left, right):
    """Nodes in the order root, left sub-tree, right sub-tree."""
    order = np.empty(left.shape[0], dtype=np.int64)
    stack = np.empty(left.shape[0] + 1, dtype=np.int64)
    stack[0], height, filled = 0, 1, 0
    while height > 0:
        height -= 1
        node = stack[height]
        order[filled] = node
        filled += 1
        if left[node] >= 0:
            stack[height], stack[height + 1] = right[node], left[node]
            height += 2
    return order


@njit(cache=True, nogil=True)
def cut_back(left, right, cut):
    """Make leaves of the flagged nodes.

    Returns the nodes that stay (n_kept,), in order, and their children among them, -1 at leaves.
    """
    n_nodes = left.shape[0]
    gone, place = np.zeros(n_nodes, dtype=np.bool_), np.empty(n_nodes, dtype=np.int64)
    n_kept = 0
    for node in range(n_nodes):
        if left[node] >= 0:
            gone[left[node]] = gone[right[node]] = cut[node] or gone[node]
        place[node] = n_kept
        n_kept += not gone[node]
    kept = np.empty(n_kept, dtype=np.int64)
    new_left, new_right = np.full(n_kept, -1), np.full(n_kept, -1)
    for node in range(n_nodes):
        if not gone[node]:
            kept[place[node]] = node
            if left[node] >= 0 and not cut[node]:
                new_left[place[node]] = place[left[node]]
                new_right[place[node]] = place[right[node]]
    return kept, new_left, new_right


@njit(cache=True, nogil=True)
def uniform_nodes(left, right, label):
    """Flag every inner node whose leaves all have one label."""
    shared = np.full(left.shape[0], -1, dtype=np.int64)
    uniform = np.zeros(left.shape[0], dtype=np.bool_)
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] < 0:
            shared[node] = label[node]
        elif shared[left[node]] == shared[right[node]]:
            shared[node] = shared[left[node]]
            uniform[node] = shared[node] >= 0
    return uniform
