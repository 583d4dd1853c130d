"""Loops over flat trees: rows to leaves, shape, comparable form, and the shared noise.

The noise of a split is a hash of the seed, the node's position in the full binary tree, the feature
and the threshold. Two fits on slightly different data therefore share it: no random stream is
consumed by one and not by the other. It breaks ties and samples splits; it gives no privacy.
"""

from typing import NamedTuple

import numpy as np

from steadytree._base.jit import kernel

FEATURES = np.uint32(2**24 - 1)  # parts of a split; see `models.walk`
MISSING_BITS, BY_VALUE, LEFT_BITS = np.uint64(24), np.uint64(2**25), np.uint64(32)


@kernel
def next_node(X, row, node, walk):
    """The node that a row goes to from another; a leaf leads to itself.

    Unsigned numbers all through, and no branch that depends on a number: several rows are on their
    way at once. Categories are indices; one outside the subset's width is unknown, and missing.
    """
    split = walk.split[node]
    x, left = np.float64(X[row, np.uint32(split) & FEATURES]), np.uint32(split >> LEFT_BITS)
    missing_right = np.uint32(split >> MISSING_BITS) & np.uint32(1)
    if split & BY_VALUE:
        category = np.int64(x) if x == x else -1
        if category < 0 or category >= walk.subset.shape[1]:
            return left + missing_right
        return left + np.uint32(not walk.subset[node, category])
    return left + (np.uint32(x > walk.threshold[node]) | (np.uint32(x != x) & missing_right))


@kernel
def find_leaves(X, walk, depth, leaves):
    """Fill leaves (n,) with the leaf of each row of X (n, p) float, in a tree of some depth.

    `walk` is that of `models.walk`. Four rows go down together, so that none waits for the values
    of another; the last row goes with itself where others are wanting.
    """
    last, root = X.shape[0] - 1, np.uint32(0)
    for row in range(0, last + 1, 4):
        second, third, fourth = min(row + 1, last), min(row + 2, last), min(row + 3, last)
        a, b, c, d = root, root, root, root
        for _ in range(depth):
            to_a, to_b = next_node(X, row, a, walk), next_node(X, second, b, walk)
            to_c, to_d = next_node(X, third, c, walk), next_node(X, fourth, d, walk)
            moved = (a ^ to_a) | (b ^ to_b) | (c ^ to_c) | (d ^ to_d)
            a, b, c, d = to_a, to_b, to_c, to_d
            if moved == 0:
                break
        leaves[row], leaves[second] = walk.number[a], walk.number[b]
        leaves[third], leaves[fourth] = walk.number[c], walk.number[d]


@kernel
def copy_into(values, out):
    """Write values (n,) to out; numba compiles ``out[:] = values`` for seconds."""
    for k in range(values.shape[0]):
        out[k] = values[k]


@kernel
def set_all(out, value):
    """Write one value to all of out (n,); numba compiles ``np.zeros`` and the like for long."""
    for k in range(out.shape[0]):
        out[k] = value


def preorder_nodes(left, right):
    """Nodes in the order root, left sub-tree, right sub-tree."""
    left, right, order, stack = left.tolist(), right.tolist(), [], [0]
    while stack:
        node = stack.pop()
        order.append(node)
        if left[node] >= 0:
            stack += [right[node], left[node]]
    return np.array(order, np.int64)


def prune_to(left, right, pruned):
    """Make leaves of the flagged nodes.

    Returns the nodes that stay (n_kept,), in order, and their children among them, -1 at leaves.
    """
    removed, inner = np.zeros(len(left), bool), np.flatnonzero(left >= 0)
    ends = pruned.copy()
    for node in inner.tolist():  # parents come first
        if ends[node]:
            children = [left[node], right[node]]
            removed[children] = ends[children] = True
    kept = np.flatnonzero(~removed)
    index = np.full(len(left) + 1, -1)  # the last entry is that of no child
    index[kept] = np.arange(len(kept))
    stays = ~pruned[kept]
    return kept, index[np.where(stays, left[kept], -1)], index[np.where(stays, right[kept], -1)]


def uniform_nodes(left, right, label):
    """Flag every inner node whose leaves all have one label."""
    shared, left, right = label.tolist(), left.tolist(), right.tolist()
    uniform = [False] * len(left)
    for node in range(len(left) - 1, -1, -1):
        if left[node] >= 0:
            one, other = shared[left[node]], shared[right[node]]
            shared[node] = one if one == other else -1
            uniform[node] = shared[node] >= 0
    return np.array(uniform, bool)


GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
UNIT = 1.0 / 4503599627370496.0  # 2 ** -52; with the half below, never 0 and never 1


@kernel
def mix(z):
    """Scramble 64 bits (the SplitMix64 finaliser)."""
    z = np.uint64(z)
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))


@kernel
def hash_node(seed, position):
    """64 bits for a node: position is its index in the full binary tree, the root's being 0."""
    return mix(mix(np.uint64(seed) + GOLDEN) + (np.uint64(position) + np.uint64(1)) * GOLDEN)


@kernel
def hash_feature(node_bits, feature):
    """64 bits for a feature asked at a node."""
    return mix(np.uint64(node_bits) ^ mix((np.uint64(feature) + np.uint64(1)) * SECOND))


@kernel
def uniform_at(feature_bits, threshold):
    """A number strictly inside (0, 1) for one threshold of a feature asked at a node."""
    bits = mix(np.uint64(feature_bits) + (np.uint64(threshold) + np.uint64(1)) * GOLDEN)
    return (np.float64(bits >> np.uint64(12)) + 0.5) * UNIT


def mix_all(z):
    """`mix` of an array."""
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))


def hash_all(bits, features):
    """`hash_feature` of arrays of 64 bits."""
    return mix_all(bits ^ mix_all((features + np.uint64(1)) * SECOND))


def uniform_all(bits, threshold):
    """`uniform_at` of an array of 64 bits, for one threshold."""
    start = np.array((threshold + 1) * int(GOLDEN) % 2**64, np.uint64)
    return ((mix_all(bits + start) >> np.uint64(12)).astype(np.float64) + 0.5) * UNIT


@kernel
def largest_uniform(feature_bits, first, last, side):
    """The largest number among thresholds first..last with one missing side, and whose it is."""
    best, where = -1.0, first
    for threshold in range(first, last + 1):
        u = uniform_at(feature_bits, 2 * threshold + side)
        if u > best:
            best, where = u, threshold
    return best, where


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


@kernel
def leaf_tag(label):
    """64 bits that stand for a leaf."""
    return mix(np.uint64(label) + np.uint64(0x5851F42D4C957F2D))


@kernel
def join_tag(key, left, right):
    """64 bits that stand for a question and what follows it."""
    bits = mix(np.uint64(key) ^ np.uint64(0x2545F4914F6CDD1D))
    bits = mix(bits ^ mix(np.uint64(left) + np.uint64(1)))
    return mix(bits + np.uint64(3) * mix(np.uint64(right)))


@kernel
def join(key, left, right, merge):
    """(label, size, tag) of a split from those of its children; `merge` joins equal labels.

    label is -1 unless the sub-tree is a leaf.
    """
    if merge and left[0] >= 0 and left[0] == right[0]:
        return left[0], np.int64(1), leaf_tag(left[0])
    return np.int64(-1), 1 + left[1] + right[1], join_tag(key, left[2], right[2])


@kernel
def flatten(key, left, right, label, merge):
    """A FlatTree from questions and leaf labels; `merge` makes leaves of equal siblings."""
    n_nodes = key.shape[0]
    shared, size = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    tag = np.empty(n_nodes, np.uint64)
    for node in range(n_nodes - 1, -1, -1):
        if left[node] < 0:
            shared[node], size[node], tag[node] = label[node], 1, leaf_tag(label[node])
            continue
        a, b = left[node], right[node]
        one, other = (shared[a], size[a], tag[a]), (shared[b], size[b], tag[b])
        shared[node], size[node], tag[node] = join(key[node], one, other, merge)
    return FlatTree(key, left, right, shared, size, tag)
