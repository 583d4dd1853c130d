"""How the removal of each single row changes a tree, without growing n trees.

Removing a row changes every score by little, so at each node only splits near the winner can
win instead. Where the winner stays, the search goes on in the row's own child; where it changes,
all rows that lead to the same new winner share one evaluation of the new children.
"""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.data._kernels.counts import split_goes_left
from steadytree.models._kernels import hash_feature, hash_node, join, largest_uniform, leaf_tag
from steadytree.stability._kernels.choose import (
    COUNT,
    INVALID,
    LARGEST_GUMBEL,
    UNKNOWN,
    add_class,
    gumbel,
    pick_and_note,
    score_splits,
    split_score,
    surely_below,
)
from steadytree.stability._kernels.grow import (
    count_children,
    count_labels,
    count_observed,
    count_rows,
    majority,
    partition_rows,
    split_key,
)

LEFT, RIGHT = np.int64(1), np.int64(0)  # flags of `flag_left`
OTHER_SPLIT = np.bool_(False)  # a plain False would be a type of its own for numba
SLACK = 1e-6  # candidates are kept a little beyond the bounds, against rounding errors
BECOMES_LEAF = np.int64(-1)  # of one type with splits: `select` is compiled for each type apart
STEEPEST = 1e300  # the best score may fall to nothing


@kernel
def best_score(scores):
    """The largest score, INVALID where there is none."""
    best = INVALID
    for split in range(scores.shape[0]):
        best = max(best, scores[split])
    return best


@kernel
def valid_splits(scores):
    """Splits that leave no side empty."""
    found = np.empty(scores.shape[0], dtype=np.int64)
    n_found = 0
    for split in range(scores.shape[0]):
        if scores[split] >= 0.0:
            found[n_found] = split
            n_found += 1
    return found[:n_found]


@kernel
def count_left(splits, counts, table):
    """Class counts (n_given, n_classes) on the left of the given splits, which come in order."""
    n_classes = counts.shape[1]
    left = np.empty((splits.shape[0], n_classes), dtype=np.int64)
    for class_ in range(n_classes):
        below, reached, before = 0, 0, -1
        for index in range(splits.shape[0]):
            split = splits[index]
            feature, bin_index = table.feature[split], table.bin[split]
            start, size = table.bin_offsets[feature], table.bin_sizes[feature]
            if feature != before:
                below, reached, before = 0, 0, feature
            if bin_index < 0:
                bin_index = size - 1
            if table.by_value[split]:
                left[index, class_] = counts[start + bin_index, class_]
            else:
                for bin_ in range(reached, bin_index + 1):
                    below += counts[start + bin_, class_]
                reached = max(reached, bin_index + 1)
                left[index, class_] = below
            if table.missing_left[split]:
                left[index, class_] += counts[start + size, class_]
    return left


@kernel
def score_without(left, totals, class_, was_left, score, min_leaf):
    """Score of a split when one row of a class is taken from one of its sides."""
    n_left, n_right, sum_left, sum_right, sum_both = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(totals.shape[0]):
        on_left = np.float64(left[k])
        on_right = np.float64(totals[k]) - on_left
        if k == class_ and was_left:
            on_left -= 1.0
        elif k == class_:
            on_right -= 1.0
        n_left, n_right = n_left + on_left, n_right + on_right
        sum_left = add_class(sum_left, on_left, score)
        sum_right = add_class(sum_right, on_right, score)
        sum_both = add_class(sum_both, on_left + on_right, score)
    return split_score(n_left, n_right, sum_left, sum_right, sum_both, score, min_leaf)


@kernel
def score_moves(score):
    """How much closer two scores can come, how far one can rise, and fall, without one row.

    COUNT changes by 0 or -1. The rows times squared shares of a side change by less than 1 either
    way, and so do those of the undivided node, which all splits have in common (GINI).
    """
    return (1.0, 0.0, 1.0) if score == COUNT else (2.0, 2.0, 2.0)


@kernel
def note_noise(split, table, node_bits, noted):
    """Note the largest uniform number among those of a split's thresholds, and its threshold."""
    bits = hash_feature(node_bits, table.feature[split])
    noted[0][split], noted[1][split] = largest_uniform(
        bits, table.first[split], table.last[split], table.missing_left[split]
    )


@kernel
def find_candidates(scores, table, sampling, node_bits, winner, noted):
    """Splits that can win, or set the best score, after any one row is removed, in order.

    A key is linear in the slope, so its two ends are enough.
    """
    margin, rise, fall = score_moves(sampling.score)
    best, sharp = best_score(scores), sampling.sharpness > 0.0
    flat = sampling.sharpness / (best + rise)
    steep = sampling.sharpness / (best - fall) if best > fall else STEEPEST
    uniform = noted[0]
    to_beat = (gumbel(uniform[winner]) if sharp else uniform[winner]) - SLACK
    found = np.empty(scores.shape[0], dtype=np.int64)
    n_found = 0
    for split in range(scores.shape[0]):
        gap = scores[split] - scores[winner] + margin
        needed = to_beat - max(flat * gap, steep * gap)
        sets_best = scores[split] >= best - margin - SLACK
        if scores[split] < 0.0 or not (sets_best or (sharp and needed <= LARGEST_GUMBEL)):
            continue
        if uniform[split] == UNKNOWN:
            note_noise(split, table, node_bits, noted)
        u = uniform[split]
        if sets_best or not (surely_below(u, needed) or gumbel(u) < needed):
            found[n_found] = split
            n_found += 1
    return found[:n_found]


@kernel
def noise_of(splits, table, sampling, node_bits, noted):
    """Noise of the given splits, as in `pick_split`."""
    noise = np.empty(splits.shape[0])
    for index in range(splits.shape[0]):
        if noted[0][splits[index]] == UNKNOWN:
            note_noise(splits[index], table, node_bits, noted)
        u = noted[0][splits[index]]
        noise[index] = gumbel(u) if sampling.sharpness > 0.0 else u
    return noise


@kernel
def score_after(left, totals, sampling):
    """Scores (n_classes, n_rules, 2) after one row of a class leaves the left or the right side.

    left (n_rules, n_classes) holds the class counts on the left of each split.
    """
    after = np.empty((totals.shape[0], left.shape[0], 2))
    for class_ in range(totals.shape[0]):
        for index in range(left.shape[0]):
            for side in range(2):
                after[class_, index, side] = score_without(
                    left[index], totals, class_, side == 0, sampling.score, sampling.min_leaf
                )
    return after


@kernel
def win_without(binned, row, candidates, after, table, noise, sampling, own):
    """The split that wins without a row, -1 where none is valid, and the best score then.

    after (n_candidates, 2) holds scores with the row taken from the left or the right side, noise
    (n_candidates,) is added to them; own (at least n_candidates,) is a buffer, reused for speed.
    """
    best = INVALID
    for index in range(candidates.shape[0]):
        split = candidates[index]
        goes_left = split_goes_left(np.int64(binned[table.feature[split], row]), table, split)
        own[index] = after[index, 0 if goes_left else 1]
        best = max(best, own[index])
    winner, winning_key = -1, -np.inf
    if best < 0.0:
        return winner, best
    slope = sampling.sharpness / best if best > 0.0 else 0.0
    for index in range(candidates.shape[0]):
        if own[index] < 0.0 or (sampling.sharpness <= 0.0 and own[index] < best):
            continue
        key = noise[index]
        if sampling.sharpness > 0.0:
            key = slope * (own[index] - best) + key
        if key > winning_key:
            winner, winning_key = candidates[index], key
    return winner, best


@kernel
def winners_without(
    binned, labels, removed, table, sampling, scores, position, counts, totals, winner, noted
):
    """For each removed row the split that wins without it, or BECOMES_LEAF.

    Notes the noise of each split that could win.
    """
    result = np.full(removed.shape[0], BECOMES_LEAF)
    if removed.shape[0] == 0:
        return result
    floor = best_score(scores) - score_moves(sampling.score)[0] - SLACK
    node_bits = hash_node(sampling.seed, position)
    candidates = find_candidates(scores, table, sampling, node_bits, winner, noted)
    noise = noise_of(candidates, table, sampling, node_bits, noted)
    after = score_after(count_left(candidates, counts, table), totals, sampling)
    chosen = 0
    for index in range(candidates.shape[0]):  # in order; numba compiles np.searchsorted for long
        chosen = index if candidates[index] == winner else chosen
    of_winner = after[:, chosen]
    own = np.empty(scores.shape[0])
    n_observed = count_observed(totals)
    for index in range(removed.shape[0]):
        row = removed[index]
        class_ = labels[row]
        if n_observed - (totals[class_] == 1) < 2:
            continue
        bin_index = np.int64(binned[table.feature[winner], row])
        goes_left = split_goes_left(bin_index, table, winner)
        still = of_winner[class_, 0 if goes_left else 1]
        result[index], best = win_without(
            binned, row, candidates, after[class_], table, noise, sampling, own
        )
        if still < 0.0 or best < floor:  # a side ran out of rows: try every split
            every = valid_splits(scores)
            of_every = score_after(count_left(every, counts, table), totals, sampling)
            result[index], best = win_without(
                binned, row, every, of_every[class_], table,
                noise_of(every, table, sampling, node_bits, noted), sampling, own,
            )  # fmt: skip
    return result


@kernel
def set_distance(out, row, own, same_split):
    """Record the distance from the whole sub-tree; that of the child where the split is kept."""
    label, size = out[0][row], out[1][row]
    if own[0] >= 0 and label >= 0:
        out[3][row] = 0 if own[0] == label else 2
    elif own[0] >= 0 or label >= 0 or not same_split:
        out[3][row] = own[1] + size


@kernel
def leave_leaf(out, removed, labels, totals, own):
    """Record that without any one of the removed rows the sub-tree is a leaf."""
    for index in range(removed.shape[0]):
        row = removed[index]
        totals[labels[row]] -= 1
        label = majority(totals)
        totals[labels[row]] += 1
        out[0][row], out[1][row], out[2][row] = label, 1, leaf_tag(label)
        set_distance(out, row, own, OTHER_SPLIT)


@kernel
def join_rows(out, share, is_left, key, left, right, own, same_split, merge):
    """Join the other child of a split with what each row's own child became."""
    for index in range(share.shape[0]):
        row = share[index]
        mine = (out[0][row], out[1][row], out[2][row])
        sides = (mine, right) if is_left[index] else (left, mine)
        joined = join(key, sides[0], sides[1], merge)
        out[0][row], out[1][row], out[2][row] = joined
        set_distance(out, row, own, same_split)


@kernel
def select(rows, values, wanted):
    """Rows whose value is the wanted one. Plain loops compile many times faster than masks."""
    chosen = np.empty(rows.shape[0], dtype=np.int64)
    n_chosen = 0
    for index in range(rows.shape[0]):
        if values[index] == wanted:
            chosen[n_chosen] = rows[index]
            n_chosen += 1
    return chosen[:n_chosen]


@kernel
def list_winners(winners, first, n_splits):
    """The splits that win for some row, each once, starting with `first`."""
    seen = np.zeros(n_splits, dtype=np.bool_)
    listed = np.empty(winners.shape[0] + 1, dtype=np.int64)
    listed[0], seen[first], n_listed = first, True, 1
    for index in range(winners.shape[0]):
        split = winners[index]
        if split >= 0 and not seen[split]:
            listed[n_listed], seen[split] = split, True
            n_listed += 1
    return listed[:n_listed]


@kernel
def flag_left(binned, rows, table, split):
    """LEFT for each row that a split sends left, else RIGHT."""
    flags = np.empty(rows.shape[0], dtype=np.int64)
    for index in range(rows.shape[0]):
        bin_index = np.int64(binned[table.feature[split], rows[index]])
        flags[index] = split_goes_left(bin_index, table, split)
    return flags


def leave_out(binned, labels, n_classes, table, sampling, rows, removed, position, levels, out):
    """Sub-tree on `rows`, and for each removed row the sub-tree on the others.

    levels is how many levels of splits are left; position is that of the node in the full
    binary tree. Returns (label, size, tag) of the sub-tree: label -1 unless it is a leaf, tag a
    hash of its whole content. Fills out = (label, size, tag, distance) at each removed row for the
    sub-tree without it, where distance is its node distance to the whole sub-tree.
    """
    counts = np.empty((table.bin_offsets[-1], n_classes), dtype=np.int64)
    if levels > 0:
        count_rows(binned, labels, rows, table, counts)
    return leave_out_counted(
        binned, labels, counts, table, sampling, rows, removed, position, levels, out
    )


@kernel
def leave_out_counted(
    binned, labels, counts, table, sampling, rows, removed, position, levels, out
):
    """As `leave_out`; counts (n_bins, n_classes) are those of `rows`, not read at level 0."""
    totals = count_labels(labels, rows, counts.shape[1])
    label = majority(totals)
    own = (label, np.int64(1), leaf_tag(label))
    split, threshold = -1, -1
    scores = np.empty(table.feature.shape[0])
    noted = (np.empty(scores.shape[0]), np.empty(scores.shape[0], dtype=np.int64))
    if levels > 0 and count_observed(totals) > 1:
        score_splits(counts, table, sampling.score, sampling.min_leaf, scores)
        node_bits = hash_node(sampling.seed, position)
        split, threshold = pick_and_note(scores, table, sampling.sharpness, node_bits, noted)
    if split < 0:
        leave_leaf(out, removed, labels, totals, own)
        return own
    winners = winners_without(
        binned, labels, removed, table, sampling, scores, position, counts, totals, split, noted
    )
    for chosen in list_winners(winners, split, scores.shape[0]):
        share = select(removed, winners, chosen)
        is_left = flag_left(binned, share, table, chosen)
        to_left, to_right = partition_rows(binned, rows, table, chosen)
        below = np.uint64(2) * position + np.uint64(1)
        of_left, of_right = counts, counts
        if levels > 1:
            of_left, of_right = count_children(binned, labels, to_left, to_right, table, counts)
        left = leave_out_counted(
            binned, labels, of_left, table, sampling, to_left, select(share, is_left, LEFT),
            below, levels - 1, out,
        )  # fmt: skip
        right = leave_out_counted(
            binned, labels, of_right, table, sampling, to_right, select(share, is_left, RIGHT),
            below + np.uint64(1), levels - 1, out,
        )  # fmt: skip
        key = split_key(table, chosen, threshold if chosen == split else noted[1][chosen])
        if chosen == split:
            own = join(key, left, right, sampling.merge)
        join_rows(out, share, is_left, key, left, right, own, chosen == split, sampling.merge)
    leave_leaf(out, select(removed, winners, BECOMES_LEAF), labels, totals, own)
    return own
