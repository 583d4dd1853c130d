"""Twin of the kernel that grows a whole tree of few rows, one list of rows a node."""

import numpy as np

from steadytree.stability._kernels.grow import IS_OPEN, LEFT, LEVEL, POSITION, SPLIT, THRESHOLD
from tests.stability.reference import choose_splits, row_goes_left

COMPARED_APART = {"grow_by_level"}  # its scratch arrays mean nothing


def grow_by_level(data, table, sampling, max_depth, nodes, totals, rows, kept, counts, work):
    binned, labels, weights = data
    heavy = weights if len(weights) else np.ones(len(labels))
    queue, n_kept, node = [(np.arange(len(labels)), 0, 0)], 0, 0
    while node < len(queue):
        here, position, level = queue[node]
        for label in range(totals.shape[1]):
            totals[node, label] = heavy[here][labels[here] == label].sum()
        is_open = node == 0 or (np.count_nonzero(totals[node]) > 1 and level < max_depth)
        nodes[[SPLIT, LEFT], node] = -1
        nodes[[LEVEL, IS_OPEN, POSITION], node] = level, is_open, position
        if is_open:
            own = np.zeros((1, table.bin_offsets[-1], totals.shape[1]))
            for j, start in enumerate(table.bin_offsets[:-1]):
                np.add.at(own[0], (start + binned[j, here], labels[here]), heavy[here])
            splits, thresholds, scores = choose_splits(own, [position], table, sampling)
            if position < kept[1]:
                kept[0][n_kept] = scores[0]
                n_kept += 1
            nodes[[SPLIT, THRESHOLD], node] = splits[0], thresholds[0]
            if splits[0] >= 0:
                nodes[LEFT, node] = len(queue)
                left = np.array([row_goes_left(binned, table, splits[0], row) for row in here])
                queue += [(here[left], 2 * position + 1, level + 1)]
                queue += [(here[~left], 2 * position + 2, level + 1)]
        node += 1
    return len(queue), n_kept
