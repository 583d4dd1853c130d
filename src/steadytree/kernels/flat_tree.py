"""A tree as plain arrays that can be compared: equal siblings merged, each sub-tree with a tag."""

from typing import NamedTuple

import numpy as np
from numba import njit

from steadytree.kernels.noise import mix


class FlatTree(NamedTuple):
    """Arrays (n_nodes,), parents before children.

    key numbers a node's question, equal numbers being equal questions; label is -1 where the
    sub-tree is no leaf; size counts the nodes of the sub-tree, and tag stands for its content.
    """

    key: np.ndarray  # int64
    left: np.ndarray  # int64, -1 at leaves
    right: np.ndarray  # int64, -1 at leaves
    label: np.ndarray  # int64
    size: np.ndarray  # int64
    tag: np.ndarray  # uint64


@njit(cache=True, nogil=True)
def leaf_tag(label):
    """64 bits that stand for a leaf."""
    return mix(np.uint64(label) + np.uint64(0x5851F42D4C957F2D))


@njit(cache=True, nogil=True)
def join_tag(key, left, right):
    """64 bits that stand for a question and what follows it."""
    bits = mix(np.uint64(key) ^ np.uint64(0x2545F4914F6CDD1D))
    bits = mix(bits ^ mix(np.uint64(left) + np.uint64(1)))
    return mix(bits + np.uint64(3) * mix(np.uint64(right)))


@njit(cache=True, nogil=True)
def join(key, left, right):
    """(label, size, tag) of a split from those of its children; equal labels merge.

    label is -1 unless the merged sub-tree is a leaf.
    """
    if left[0] >= 0 and left[0] == right[0]:
        return left[0], np.int64(1), leaf_tag(left[0])
    return np.int64(-1), 1 + left[1] + right[1], join_tag(key, left[2], right[2])


@njit(cache=True, nogil=True)
def flatten(key, left, right, label, merge):
    """A FlatTree from questions and leaf labels; `merge` makes leaves of equal siblings."""
    n_nodes = key.shape[0]
    shared, size = np.full(n_nodes, -1, dtype=np.int64), np.ones(n_nodes, dtype=np.int64)
    tag = np.empty(n_nodes, dtype=np.uint64)
    for node in range(n_nodes - 1, -1, -1):
        if left[node] < 0:
            shared[node], tag[node] = label[node], leaf_tag(label[node])
            continue
        a, b = left[node], right[node]
        one, other = (shared[a], size[a], tag[a]), (shared[b], size[b], tag[b])
        if merge or shared[a] < 0 or shared[a] != shared[b]:
            shared[node], size[node], tag[node] = join(key[node], one, other)
        else:
            size[node] = 1 + size[a] + size[b]
            tag[node] = join_tag(key[node], tag[a], tag[b])
    return FlatTree(key, left, right, shared, size, tag)
