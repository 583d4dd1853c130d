"""Choose a split at each open node from counts of some columns at a time."""

import numpy as np

from steadytree.models._kernels import hash_node
from steadytree.stability._kernels.choose import INVALID, LARGEST_GUMBEL, fill_scores, pick_among


def choose_by_column(counts, positions, sampling, scores):
    """As `choose_splits`, for CountsByColumn; fills scores (n_nodes, n_splits).

    Without rows in `scores` none is kept: blocks in which a split can win are scored twice, first
    for the best score of all. No other block is looked at again.
    """
    splits, thresholds = np.full((2, len(positions)), -1)
    blocks, no_note = counts.blocks, (np.empty(0), np.empty(0, np.int64))
    room = np.empty(max(len(block.table.feature) for block in blocks))
    for node, position in enumerate(positions):
        sums = np.zeros((2, counts.totals.shape[1]))
        sums[0] = counts.totals[node]
        if np.count_nonzero(sums[0] > 0) < 2:
            continue

        def score(block, node=node, sums=sums):
            here = counts.count(block)[node]
            own = room[: len(block.table.feature)]
            fill_scores(here, block.table, sampling.score, sampling.min_leaf, own, sums)
            if len(scores):
                scores[node, block.first_split : block.first_split + len(own)] = own
            return own

        best_of = np.array([score(block).max(initial=INVALID) for block in blocks])
        best, leading = best_of.max(), int(best_of.argmax())
        if best < 0:
            continue
        slope = sampling.sharpness / best if best > 0 else 0.0
        reach = slope * (best_of - best) + LARGEST_GUMBEL
        can_win = best_of == best if sampling.sharpness <= 0 else best_of >= 0
        bits, key = np.uint64(hash_node(sampling.seed, position)), -np.inf
        for turn in sorted(np.flatnonzero(can_win).tolist(), key=lambda turn: turn != leading):
            block = blocks[turn]
            if reach[turn] < key:
                continue
            own = score(block)
            # of equal keys the first split wins: any in a block before that of the winner
            before = len(own) if block.first_split < splits[node] else -1
            how = own, block.table, sampling.sharpness, bits, no_note, int(own.argmax())
            found = pick_among(*how, best, block.first, before, key)
            if found[1] >= 0:
                splits[node], thresholds[node] = block.first_split + found[0], found[1]
                key = found[2]
    return splits, thresholds
