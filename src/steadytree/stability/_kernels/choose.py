"""Choose a split at each open node: the best, or one sampled by the exponential mechanism."""

from typing import NamedTuple

import numpy as np

from steadytree._base.jit import kernel
from steadytree.models._kernels import hash_feature, hash_node, largest_uniform, uniform_at

GUMBEL, REJECTION = 0, 1


class SplitSampling(NamedTuple):
    """How a split is chosen.

    With sharpness 0 the best split is taken; otherwise a split is sampled with probability
    proportional to exp(sharpness * score / best score).
    """

    score: int  # COUNT or GINI
    min_leaf: float  # least weight of a side
    sharpness: float
    coupling: int  # GUMBEL or REJECTION
    seed: int
    merge: bool  # make one leaf of sibling leaves with equal labels


COUNT, GINI = 0, 1
INVALID = -1.0
EMPTY = 1e-10  # share of the rows below which a side is empty: weights do not add up exactly
NO_GAIN = 1e-12  # a gain below this share of the rows is a rounding error


@kernel
def add_class(sum_, count, score):
    """Add one class of a side to the running sum of that side."""
    return max(sum_, count) if score == COUNT else sum_ + count * count


@kernel
def side_score(sum_, size, score):
    """Rows of a side's majority (COUNT), or its rows times the sum of squared shares (GINI)."""
    if size <= 0.0:
        return 0.0
    return sum_ if score == COUNT else sum_ / size


@kernel
def split_score(n_left, n_right, sum_left, sum_right, sum_both, score, min_leaf):
    """Score of a split from the sizes and running sums of its sides and of both, or INVALID.

    COUNT: rows in the majority of their side. GINI: rows times the decrease of impurity. A split
    is invalid where a side is empty or lighter than min_leaf. With a min_leaf of 1 a side must
    only be non-empty, so that fractional weights may be used.
    """
    lighter, size = min(n_left, n_right), n_left + n_right
    if lighter <= EMPTY * size or (min_leaf > 1 and lighter < min_leaf):
        return INVALID
    after = side_score(sum_left, n_left, score) + side_score(sum_right, n_right, score)
    if score == COUNT:
        return after
    gain = after - side_score(sum_both, size, score)
    return gain if gain > NO_GAIN * size else 0.0


@kernel
def score_thresholds(counts, totals, sum_both, splits, score, min_leaf, below, scores):
    """Fill the scores of one feature's thresholds, where no value is missing.

    counts (n_bins, n_classes) and splits (n_splits,), the last bin on the left of each, are the
    feature's own. A bin without rows leaves both sides as they are, and most bins of a small node
    have none.
    """
    n_classes, reached, found = counts.shape[1], 0, INVALID
    for class_ in range(n_classes):
        below[class_] = 0.0
    for split in range(splits.shape[0]):
        end, is_same = splits[split] + 1, split > 0
        for bin_ in range(reached, end):
            # two classes, the usual number, need no loop here
            if counts[bin_, 0] != 0 or counts[bin_, n_classes - 1] != 0:
                is_same = False
            for class_ in range(1, n_classes - 1):
                is_same = is_same and counts[bin_, class_] == 0
        if is_same:
            scores[split], reached = found, end
            continue
        n_left, n_right, sum_left, sum_right = 0.0, 0.0, 0.0, 0.0
        for class_ in range(n_classes):
            for bin_ in range(reached, end):
                below[class_] += counts[bin_, class_]
            left, right = below[class_], totals[class_] - below[class_]
            n_left, n_right = n_left + left, n_right + right
            sum_left = add_class(sum_left, left, score)
            sum_right = add_class(sum_right, right, score)
        reached = end
        found = split_score(n_left, n_right, sum_left, sum_right, sum_both, score, min_leaf)
        scores[split] = found


@kernel
def add_bins(counts, n_bins, totals):
    """Fill totals (n_classes,) with the sum of the first bins of counts."""
    for class_ in range(counts.shape[1]):
        totals[class_] = 0.0
        for bin_ in range(n_bins):
            totals[class_] += counts[bin_, class_]


@kernel
def score_splits(counts, table, score, min_leaf, scores):
    """Fill scores (n_rules,) for one node from its counts (n_bins, n_classes).

    `table` is a SplitArrays; a split that leaves a side empty scores INVALID. Splits are ordered
    by bin, so each bin is added to `below` once. One flat loop: a function call with arrays for
    each split would take four times as long.
    """
    sums = np.empty((2, counts.shape[1]))
    add_bins(counts, table.bin_offsets[1], sums[0])  # any feature's bins hold all rows
    return fill_scores(counts, table, score, min_leaf, scores, sums)


@kernel
def fill_scores(counts, table, score, min_leaf, scores, sums):
    """As `score_splits`, with the node's class counts in sums[0]; sums[1] is scratch."""
    n_classes, split_bin, split_missing_left = counts.shape[1], table.bin, table.missing_left
    split_by_value = table.by_value
    totals, below = sums[0], sums[1]
    sum_both = 0.0
    for class_ in range(n_classes):
        sum_both = add_class(sum_both, totals[class_], score)
    for feature in range(table.bin_sizes.shape[0]):
        start, size = table.bin_offsets[feature], table.bin_sizes[feature]
        has_missing = table.bin_offsets[feature + 1] - start > size
        first, last, reached = table.offsets[feature], table.offsets[feature + 1], 0
        if last > first and not has_missing and not split_by_value[first]:
            score_thresholds(
                counts[start : start + size], totals, sum_both, split_bin[first:last], score,
                min_leaf, below, scores[first:last],
            )  # fmt: skip
            continue
        for class_ in range(n_classes):
            below[class_] = 0.0
        for split in range(first, last):
            bin_index = split_bin[split]
            n_left, n_right, sum_left, sum_right = 0.0, 0.0, 0.0, 0.0
            for class_ in range(n_classes):
                if split_by_value[split]:
                    left = np.float64(counts[start + bin_index, class_])
                elif bin_index >= 0:
                    for bin_ in range(start + reached, start + bin_index + 1):
                        below[class_] += counts[bin_, class_]
                    left = below[class_]
                else:
                    left = totals[class_] - counts[start + size, class_]
                if has_missing and split_missing_left[split]:
                    left += counts[start + size, class_]
                right = totals[class_] - left
                n_left, n_right = n_left + left, n_right + right
                sum_left = add_class(sum_left, left, score)
                sum_right = add_class(sum_right, right, score)
            if not split_by_value[split]:
                reached = max(reached, bin_index + 1)
            scores[split] = split_score(
                n_left, n_right, sum_left, sum_right, sum_both, score, min_leaf
            )
    return scores


LARGEST_GUMBEL = 37.0  # -log(-log(u)) of the largest u that noise.uniform_at can return is 36.7
# Gumbel quantiles four to the unit from -4 up: a table look-up costs a tenth of two logarithms
STEPS, LOWEST_STEP = 4, -16
LEVELS = np.exp(-np.exp(-np.arange(LOWEST_STEP, 4 * int(LARGEST_GUMBEL)) / STEPS))
UNKNOWN = -1.0  # a uniform number that was not needed
MOST_PROPOSALS = 60  # times the number of rules; more are needed with probability e^-60


@kernel
def gumbel(u):
    """The Gumbel quantile of u."""
    return -np.log(-np.log(u))


@kernel
def surely_below(u, needed):
    """Whether the Gumbel quantile of u is surely below `needed`; False where it is not known."""
    step = np.int64(np.floor(needed * STEPS)) - 1 - LOWEST_STEP  # one lower, against rounding
    if step < 0:
        return False
    return step >= LEVELS.shape[0] or u < LEVELS[step]


@kernel
def pick_split(scores, table, sharpness, node_bits):
    """Return (split, threshold) for one node, (-1, -1) where no split is valid.

    A split stands for the thresholds first..last, which divide the data alike. With sharpness 0
    the best score wins and ties go to the largest hash. Otherwise a threshold is sampled with
    probability proportional to exp(sharpness / best * score), by the Gumbel-max trick on hashed
    noise: neighbouring data sets share the noise and so mostly the winner.
    """
    noted = (np.empty(0), np.empty(0, dtype=np.int64))
    return pick_and_note(scores, table, sharpness, node_bits, noted)


@kernel
def pick_and_note(scores, table, sharpness, node_bits, noted):
    """As `pick_split`; fills noted = (largest uniform number, its threshold) of each split.

    The number is UNKNOWN where it was not needed to find the winner. Empty arrays are not filled.
    """
    for split in range(noted[0].shape[0]):
        noted[0][split] = UNKNOWN
    leader, best = -1, INVALID
    for split in range(scores.shape[0]):
        if scores[split] > best:
            leader, best = split, scores[split]
    if leader < 0:
        return -1, -1
    found = pick_among(scores, table, sharpness, node_bits, noted, leader, best, 0, -1, -np.inf)
    return found[0], found[1]


@kernel
def pick_among(
    scores, table, sharpness, node_bits, noted, leader, best, column, winner, winning_key
):
    """Split, threshold and key of the largest key; the threshold is -1 where none is large enough.

    Splits are of some columns, from `column` on, and `best` is the best score of all columns. A key
    must be above `winning_key`, or equal to it with a split before `winner`.
    """
    threshold, slope = -1, sharpness / best if best > 0.0 else 0.0
    feature_before, feature_bits = -1, np.uint64(0)
    least = best if sharpness <= 0.0 else 0.0  # scores below it cannot win
    for turn in range(-1, scores.shape[0]):  # the leader first, so that most others need no noise
        split = leader if turn < 0 else turn
        if scores[split] < least or turn == leader:
            continue
        if table.feature[split] != feature_before:
            feature_before = table.feature[split]
            feature_bits = hash_feature(node_bits, column + feature_before)
        loss = slope * (scores[split] - best)
        if loss + LARGEST_GUMBEL < winning_key:
            continue
        u, where = largest_uniform(
            feature_bits, table.first[split], table.last[split], table.missing_left[split]
        )
        if noted[0].shape[0] > 0:
            noted[0][split], noted[1][split] = u, where
        if sharpness > 0.0 and surely_below(u, winning_key - loss):
            continue
        key = loss + gumbel(u) if sharpness > 0.0 else u
        if key > winning_key or (key == winning_key and split < winner):
            winner, threshold, winning_key = split, where, key
            if slope > 0.0:  # a little lower, against rounding
                least = max(best - 1e-12 * best + (key - LARGEST_GUMBEL - 1e-9) / slope, 0.0)
    return winner, threshold, winning_key


@kernel
def find_candidate(candidate, table):
    """Split and threshold of one candidate; split -1 where no row is left that tells it apart.

    Candidates are all splits before merging, feature by feature, by rising threshold, missing on
    the right before missing on the left; `candidate_offsets` counts them.
    """
    feature = np.searchsorted(table.candidate_offsets, candidate, side="right") - 1
    n_bins = table.bin_offsets[feature + 1] - table.bin_offsets[feature]
    has_missing = n_bins > table.bin_sizes[feature]
    if has_missing and candidate + 1 == table.candidate_offsets[feature + 1]:
        missing_split = table.offsets[feature + 1] - 1  # observed or missing
        return missing_split, np.int64(table.first[missing_split])
    own = candidate - table.candidate_offsets[feature]
    threshold, side = (own >> 1, own & 1) if has_missing else (own, 0)
    low, high = table.offsets[feature], table.offsets[feature + 1]
    while low < high:  # the first split that reaches the threshold
        middle = (low + high) >> 1
        if table.last[middle] < threshold:
            low = middle + 1
        else:
            high = middle
    while low < table.offsets[feature + 1] and table.first[low] <= threshold:
        if table.missing_left[low] == (side == 1):
            return low, threshold
        low += 1
    return -1, threshold


@kernel
def reject_split(scores, table, sharpness, node_bits):
    """As `pick_split`, by rejection: propose a candidate and a level, accept where p is above it.

    The published coupling: neighbouring data sets share the proposals. It samples from the same
    distribution as `pick_split`, but neighbouring data sets differ more often.
    """
    best, total = -1.0, 0.0
    for split in range(scores.shape[0]):
        best = max(best, scores[split])
    if best < 0.0:
        return -1, -1
    slope = sharpness / best if best > 0.0 else 0.0
    for split in range(scores.shape[0]):
        if scores[split] >= 0.0:
            size = np.int64(table.last[split]) - np.int64(table.first[split]) + 1
            total += size * np.exp(slope * (scores[split] - best))
    n_candidates = table.candidate_offsets[-1]
    for proposal in range(MOST_PROPOSALS * n_candidates):
        candidate = np.int64(uniform_at(node_bits, 2 * proposal) * n_candidates)
        split, threshold = find_candidate(candidate, table)
        if split < 0 or scores[split] < 0.0:
            continue
        level = uniform_at(node_bits, 2 * proposal + 1)
        if np.exp(slope * (scores[split] - best)) > level * total:
            return split, threshold
    return pick_split(scores, table, sharpness, node_bits)


@kernel
def sample_split(scores, table, sampling, position):
    """Return (split, threshold) by the given sampling, at a position of the full tree."""
    node_bits = hash_node(sampling.seed, position)
    if sampling.coupling == REJECTION and sampling.sharpness > 0.0:
        return reject_split(scores, table, sampling.sharpness, node_bits)
    return pick_split(scores, table, sampling.sharpness, node_bits)


def choose_splits(counts, positions, table, sampling):
    """Return split, threshold and all scores of every open node.

    counts (n_nodes, n_bins, n_classes); positions (n_nodes,) are indices in the full binary tree.
    A node of one class gets split -1 and scores of -1.
    """
    splits, thresholds = np.full((2, len(counts)), -1)
    scores = np.full((len(counts), len(table.feature)), -1.0)
    work = np.empty((2, counts.shape[2])), np.empty(0), np.empty(0, np.int64)
    pick_splits(counts, positions, table, sampling, splits, thresholds, scores, work)
    if sampling.coupling == REJECTION and sampling.sharpness > 0.0:  # compiled where it is used
        for node, position in enumerate(positions):
            chosen = sample_split(scores[node], table, sampling, position)
            splits[node], thresholds[node] = chosen
    return splits, thresholds, scores


@kernel
def pick_splits(counts, positions, table, sampling, splits, thresholds, scores, work):
    """Fill what `choose_splits` returns, by Gumbel noise; work is for `fill_scores`."""
    sums, noted = work[0], (work[1], work[2])
    for node in range(counts.shape[0]):
        n_observed = 0
        add_bins(counts[node], table.bin_offsets[1], sums[0])  # any feature's bins hold all rows
        for class_ in range(counts.shape[2]):
            n_observed += sums[0, class_] > 0
        if n_observed < 2:
            continue
        own = scores[node]
        fill_scores(counts[node], table, sampling.score, sampling.min_leaf, own, sums)
        bits = hash_node(sampling.seed, positions[node])
        picked = pick_and_note(own, table, sampling.sharpness, bits, noted)
        splits[node], thresholds[node] = picked
