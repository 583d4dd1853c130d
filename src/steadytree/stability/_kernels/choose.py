"""Choose a rule at each open node: the best, or one drawn by the exponential mechanism."""

from typing import NamedTuple

import numpy as np

from steadytree._base.jit import kernel
from steadytree.models._kernels import hash_feature, hash_node, largest_uniform, uniform_at

GUMBEL, REJECTION = 0, 1


class Draw(NamedTuple):
    """One way to choose rules: a kind of score, the least weight of a side, and the noise.

    With sharpness 0 the best rule is taken; otherwise a rule is drawn with probability
    proportional to exp(sharpness * score / best score).
    """

    score: int
    min_leaf: float
    sharpness: float
    coupling: int
    seed: int


COUNT, GINI, ENTROPY = 0, 1, 2
INVALID = -1.0
EMPTY = 1e-10  # share of the rows below which a side is empty: weights do not add up exactly


@kernel
def add_class(sum_, count, score):
    """Take one class of a side into the side's running sum."""
    if score == COUNT:
        return max(sum_, count)
    if score == GINI:
        return sum_ + count * count
    return sum_ + count * np.log(count) if count > 0.0 else sum_


@kernel
def side_score(sum_, size, score, n_classes):
    """Score of one side: rows of its majority (COUNT), or rows times one minus its impurity.

    GINI: size * sum p^2. ENTROPY: size * (1 - entropy / log(classes)). All are `size` for a pure
    side, and 0 for an empty one.
    """
    if size <= 0.0:
        return 0.0
    if score == COUNT:
        return sum_
    if score == GINI:
        return sum_ / size
    if n_classes == 1:
        return size
    return size + (sum_ - size * np.log(size)) / np.log(n_classes)


@kernel
def split_score(n_left, n_right, sum_left, sum_right, score, min_leaf, n_classes):
    """Score of a split from the sizes and running sums of its sides, or INVALID.

    A split is invalid where a side is empty or lighter than min_leaf. A min_leaf of 1 only asks
    for sides that are not empty, so that fractional weights may be used.
    """
    lighter = min(n_left, n_right)
    if lighter <= EMPTY * (n_left + n_right) or (min_leaf > 1 and lighter < min_leaf):
        return INVALID
    left_score = side_score(sum_left, n_left, score, n_classes)
    return left_score + side_score(sum_right, n_right, score, n_classes)


@kernel
def score_rules(counts, table, score, min_leaf, scores):
    """Fill scores (n_splits,) for one node from its counts (n_bins, n_classes).

    `table` is a SplitArrays; a rule that leaves a side empty scores INVALID. Rules come by rising
    bin, so each bin is added to `below` once. One flat loop: arrays handed to a function a rule
    would cost four times as much.
    """
    n_classes, rule_bin, rule_missing_left = counts.shape[1], table.bin, table.missing_left
    totals, below = np.zeros(n_classes), np.zeros(n_classes)
    for bin_ in range(table.bin_offsets[0], table.bin_offsets[1]):
        for class_ in range(n_classes):
            totals[class_] += counts[bin_, class_]
    for feature in range(table.bin_sizes.shape[0]):
        start, size = table.bin_offsets[feature], table.bin_sizes[feature]
        has_missing = table.bin_offsets[feature + 1] - start > size
        by_value, reached = table.by_value[feature], 0
        below[:] = 0.0
        for rule in range(table.offsets[feature], table.offsets[feature + 1]):
            asked = rule_bin[rule]
            n_left, n_right, sum_left, sum_right = 0.0, 0.0, 0.0, 0.0
            for class_ in range(n_classes):
                if not by_value:
                    for bin_ in range(start + reached, start + asked + 1):
                        below[class_] += counts[bin_, class_]
                    left = below[class_]
                elif asked >= 0:
                    left = np.float64(counts[start + asked, class_])
                else:
                    left = totals[class_] - counts[start + size, class_]
                if has_missing and rule_missing_left[rule]:
                    left += counts[start + size, class_]
                right = totals[class_] - left
                n_left, n_right = n_left + left, n_right + right
                sum_left = add_class(sum_left, left, score)
                sum_right = add_class(sum_right, right, score)
            reached = max(reached, asked + 1)
            scores[rule] = split_score(
                n_left, n_right, sum_left, sum_right, score, min_leaf, n_classes
            )
    return scores


LARGEST_GUMBEL = 37.0  # -log(-log(u)) of the largest u that noise.uniform_at can return is 36.7
# Gumbel quantiles four to the unit from -4 up: a table look-up costs a tenth of two logarithms
STEPS, LOWEST_STEP = 4, -16
LEVELS = np.exp(-np.exp(-np.arange(LOWEST_STEP, 4 * int(LARGEST_GUMBEL)) / STEPS))
UNKNOWN = -1.0  # stands for a uniform number that nobody asked for
MOST_PROPOSALS = 60  # times the number of rules; more are needed with probability e^-60


@kernel
def gumbel(u):
    """The Gumbel quantile of u."""
    return -np.log(-np.log(u))


@kernel
def surely_below(u, needed):
    """Whether the Gumbel quantile of u is below `needed`; False where that takes a closer look."""
    step = np.int64(np.floor(needed * STEPS)) - 1 - LOWEST_STEP  # one lower, against rounding
    if step < 0:
        return False
    return step >= LEVELS.shape[0] or u < LEVELS[step]


@kernel
def pick_rule(scores, table, sharpness, node_bits):
    """Return (rule, threshold) for one node, (-1, -1) where no rule is valid.

    A rule stands for the thresholds first..last, which divide the data alike. With sharpness 0
    the best score wins and ties fall to the largest hash. Otherwise a threshold is drawn with
    probability proportional to exp(sharpness / best * score), by the Gumbel-max trick on hashed
    noise: neighbouring data sets share the noise and so mostly the winner.
    """
    n_splits = scores.shape[0]
    noted = (np.empty(n_splits), np.empty(n_splits, dtype=np.int64))
    return pick_and_note(scores, table, sharpness, node_bits, noted)


@kernel
def pick_and_note(scores, table, sharpness, node_bits, noted):
    """As `pick_rule`; fills noted = (largest uniform number, its threshold) of each rule.

    The number is UNKNOWN where it was not needed to tell the winner.
    """
    noted[0][:] = UNKNOWN
    leader = 0
    for rule in range(scores.shape[0]):
        leader = rule if scores[rule] > scores[leader] else leader
    winner, threshold, winning_key = -1, -1, -np.inf
    if scores.shape[0] == 0 or scores[leader] < 0.0:
        return winner, threshold
    best = scores[leader]
    slope = sharpness / best if best > 0.0 else 0.0
    feature_before, feature_bits = -1, np.uint64(0)
    for turn in range(-1, scores.shape[0]):  # the leader first, so that most others need no noise
        rule = leader if turn < 0 else turn
        if scores[rule] < 0.0 or turn == leader or (sharpness <= 0.0 and scores[rule] < best):
            continue
        if table.feature[rule] != feature_before:
            feature_before = table.feature[rule]
            feature_bits = hash_feature(node_bits, feature_before)
        loss = slope * (scores[rule] - best)
        if loss + LARGEST_GUMBEL < winning_key:
            continue
        u, where = largest_uniform(
            feature_bits, table.first[rule], table.last[rule], table.missing_left[rule]
        )
        noted[0][rule], noted[1][rule] = u, where
        if sharpness > 0.0 and surely_below(u, winning_key - loss):
            continue
        key = loss + gumbel(u) if sharpness > 0.0 else u
        if key > winning_key or (key == winning_key and rule < winner):
            winner, threshold, winning_key = rule, where, key
    return winner, threshold


@kernel
def find_candidate(candidate, table):
    """Rule and threshold of one candidate; rule -1 where no row is left to tell it apart.

    Candidates are all rules before merging, feature by feature, by rising threshold, missing on
    the right before missing on the left; `candidate_offsets` counts them.
    """
    feature = np.searchsorted(table.candidate_offsets, candidate, side="right") - 1
    n_bins = table.bin_offsets[feature + 1] - table.bin_offsets[feature]
    has_missing = n_bins > table.bin_sizes[feature]
    if has_missing and candidate + 1 == table.candidate_offsets[feature + 1]:
        presence = table.offsets[feature + 1] - 1  # asks only whether the value is there
        return presence, table.first[presence]
    own = candidate - table.candidate_offsets[feature]
    threshold, side = (own >> 1, own & 1) if has_missing else (own, 0)
    low, high = table.offsets[feature], table.offsets[feature + 1]
    while low < high:  # the first rule that reaches the threshold
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
def reject_rule(scores, table, sharpness, node_bits):
    """As `pick_rule`, by rejection: propose a candidate and a level, accept where p is above it.

    The published coupling: neighbouring data sets share the proposals. It draws from the same
    distribution as `pick_rule` and changes its mind more often.
    """
    best, total = -1.0, 0.0
    for rule in range(scores.shape[0]):
        best = max(best, scores[rule])
    if best < 0.0:
        return -1, -1
    slope = sharpness / best if best > 0.0 else 0.0
    for rule in range(scores.shape[0]):
        if scores[rule] >= 0.0:
            size = table.last[rule] - table.first[rule] + 1
            total += size * np.exp(slope * (scores[rule] - best))
    n_candidates = table.candidate_offsets[-1]
    for proposal in range(MOST_PROPOSALS * n_candidates):
        place = np.int64(uniform_at(node_bits, 2 * proposal) * n_candidates)
        rule, threshold = find_candidate(place, table)
        if rule < 0 or scores[rule] < 0.0:
            continue
        level = uniform_at(node_bits, 2 * proposal + 1)
        if np.exp(slope * (scores[rule] - best)) > level * total:
            return rule, threshold
    return pick_rule(scores, table, sharpness, node_bits)


@kernel
def draw_rule(scores, table, draw, position):
    """Return (rule, threshold) by the given way of drawing, at a position of the full tree."""
    node_bits = hash_node(draw.seed, position)
    if draw.coupling == REJECTION and draw.sharpness > 0.0:
        return reject_rule(scores, table, draw.sharpness, node_bits)
    return pick_rule(scores, table, draw.sharpness, node_bits)


@kernel
def choose_rules(counts, positions, table, draw):
    """Return rule, threshold and all scores of every open node.

    counts (n_nodes, n_bins, n_classes); positions (n_nodes,) are indices in the full binary tree.
    A node of one class gets rule -1 and scores of -1.
    """
    n_nodes = counts.shape[0]
    rules = np.full(n_nodes, -1, dtype=np.int64)
    thresholds = np.full(n_nodes, -1, dtype=np.int64)
    scores = np.full((n_nodes, table.feature.shape[0]), -1.0)
    for node in range(n_nodes):
        n_present = 0
        for class_ in range(counts.shape[2]):
            total = 0.0
            for bin_ in range(table.bin_offsets[0], table.bin_offsets[1]):
                total += counts[node, bin_, class_]
            n_present += total > 0
        if n_present < 2:
            continue
        score_rules(counts[node], table, draw.score, draw.min_leaf, scores[node])
        rules[node], thresholds[node] = draw_rule(scores[node], table, draw, positions[node])
    return rules, thresholds, scores
