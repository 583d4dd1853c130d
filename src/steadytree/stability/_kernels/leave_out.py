"""What removing each single row would do to a tree, without growing n trees.

Removing a row changes every score by little, so at each node only rules near the winner can
win instead. Where the winner stays, the row's own child is looked at; where it changes, all rows
that lead to the same new winner share one look at the new children.
"""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.data._kernels import split_goes_left
from steadytree.models._kernels import hash_feature, hash_node, join, largest_uniform, leaf_tag
from steadytree.stability._kernels.choose import (
    COUNT,
    INVALID,
    LARGEST_GUMBEL,
    UNKNOWN,
    add_class,
    gumbel,
    pick_and_note,
    score_rules,
    split_score,
    surely_below,
)
from steadytree.stability._kernels.grow import (
    count_children,
    count_labels,
    count_present,
    count_rows,
    majority,
    rule_key,
    split_rows,
)

SLACK = 1e-6  # candidates are kept a little beyond what the bounds ask, for rounding
BECOMES_LEAF = -1


@kernel
def best_score(scores):
    """The largest score, INVALID where there is none."""
    best = INVALID
    for rule in range(scores.shape[0]):
        best = max(best, scores[rule])
    return best


@kernel
def valid_rules(scores):
    """Rules that leave no side empty."""
    found = np.empty(scores.shape[0], dtype=np.int64)
    n_found = 0
    for rule in range(scores.shape[0]):
        if scores[rule] >= 0.0:
            found[n_found] = rule
            n_found += 1
    return found[:n_found]


@kernel
def count_left(rules, counts, table):
    """Class counts (n_given, n_classes) on the left of the given rules, which come in order."""
    n_classes = counts.shape[1]
    left = np.empty((rules.shape[0], n_classes), dtype=np.int64)
    for class_ in range(n_classes):
        below, reached, before = 0, 0, -1
        for place in range(rules.shape[0]):
            rule = rules[place]
            feature, asked = table.feature[rule], table.bin[rule]
            start, size = table.bin_offsets[feature], table.bin_sizes[feature]
            if feature != before:
                below, reached, before = 0, 0, feature
            if asked < 0:
                asked = size - 1
            if table.by_value[feature] and table.bin[rule] >= 0:
                left[place, class_] = counts[start + asked, class_]
            else:
                for bin_ in range(reached, asked + 1):
                    below += counts[start + bin_, class_]
                reached = max(reached, asked + 1)
                left[place, class_] = below
            if table.missing_left[rule]:
                left[place, class_] += counts[start + size, class_]
    return left


@kernel
def score_without(left, totals, class_, was_left, score, min_leaf):
    """Score of a split when one row of a class is taken from one of its sides."""
    n_left, n_right, sum_left, sum_right = 0.0, 0.0, 0.0, 0.0
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
    return split_score(n_left, n_right, sum_left, sum_right, score, min_leaf, totals.shape[0])


@kernel
def score_moves(score):
    """How much closer two scores can come, and how far one can rise, when one row is removed.

    A score changes by 0 or -1 (COUNT), or by less than 1 either way (other scores).
    """
    return (1.0, 0.0) if score == COUNT else (2.0, 1.0)


@kernel
def note_noise(rule, table, node_bits, noted):
    """Draw and note the largest of the uniform numbers of a rule's thresholds, and whose it is."""
    bits = hash_feature(node_bits, table.feature[rule])
    noted[0][rule], noted[1][rule] = largest_uniform(
        bits, table.first[rule], table.last[rule], table.missing_left[rule]
    )


@kernel
def find_candidates(scores, table, draw, node_bits, winner, noted):
    """Rules that can win, or set the best score, after any one row is removed, in order.

    A key is linear in the slope, so its two ends are enough.
    """
    margin, rise = score_moves(draw.score)
    best, sharp = best_score(scores), draw.sharpness > 0.0
    flat, steep = draw.sharpness / (best + rise), draw.sharpness / max(best - 1.0, 0.5)
    uniform = noted[0]
    to_beat = (gumbel(uniform[winner]) if sharp else uniform[winner]) - SLACK
    found = np.empty(scores.shape[0], dtype=np.int64)
    n_found = 0
    for rule in range(scores.shape[0]):
        gap = scores[rule] - scores[winner] + margin
        needed = to_beat - max(flat * gap, steep * gap)
        sets_best = scores[rule] >= best - margin - SLACK
        if scores[rule] < 0.0 or not (sets_best or (sharp and needed <= LARGEST_GUMBEL)):
            continue
        if uniform[rule] == UNKNOWN:
            note_noise(rule, table, node_bits, noted)
        u = uniform[rule]
        if sets_best or not (surely_below(u, needed) or gumbel(u) < needed):
            found[n_found] = rule
            n_found += 1
    return found[:n_found]


@kernel
def noise_of(rules, table, draw, node_bits, noted):
    """Noise of the given rules, as in `pick_rule`."""
    noise = np.empty(rules.shape[0])
    for place in range(rules.shape[0]):
        if noted[0][rules[place]] == UNKNOWN:
            note_noise(rules[place], table, node_bits, noted)
        u = noted[0][rules[place]]
        noise[place] = gumbel(u) if draw.sharpness > 0.0 else u
    return noise


@kernel
def score_after(left, totals, draw):
    """Scores (n_classes, n_splits, 2) after one row of a class leaves the left or the right side.

    left (n_splits, n_classes) holds the class counts on the left of each rule.
    """
    after = np.empty((totals.shape[0], left.shape[0], 2))
    for class_ in range(totals.shape[0]):
        for place in range(left.shape[0]):
            for side in range(2):
                after[class_, place, side] = score_without(
                    left[place], totals, class_, side == 0, draw.score, draw.min_leaf
                )
    return after


@kernel
def win_without(codes, row, candidates, after, table, noise, draw, own):
    """The rule that wins without a row, -1 where none is valid, and the best score then.

    after (n_candidates, 2) holds scores with the row taken from the left or the right side, noise
    (n_candidates,) what is added to them; own
    (at least n_candidates,) is overwritten: to make it anew for each row would cost most of all.
    """
    best = INVALID
    for place in range(candidates.shape[0]):
        rule = candidates[place]
        goes_left = split_goes_left(codes[table.feature[rule], row], table, rule)
        own[place] = after[place, 0 if goes_left else 1]
        best = max(best, own[place])
    winner, winning_key = -1, -np.inf
    if best < 0.0:
        return winner, best
    slope = draw.sharpness / best if best > 0.0 else 0.0
    for place in range(candidates.shape[0]):
        if own[place] < 0.0 or (draw.sharpness <= 0.0 and own[place] < best):
            continue
        key = noise[place]
        if draw.sharpness > 0.0:
            key = slope * (own[place] - best) + key
        if key > winning_key:
            winner, winning_key = candidates[place], key
    return winner, best


@kernel
def winners_without(
    codes, labels, asked, table, draw, scores, position, counts, totals, winner, noted
):
    """For each asked row the rule that wins without it, or BECOMES_LEAF.

    Notes the noise of each rule that could win.
    """
    result = np.full(asked.shape[0], BECOMES_LEAF)
    if asked.shape[0] == 0:
        return result
    floor = best_score(scores) - score_moves(draw.score)[0] - SLACK
    node_bits = hash_node(draw.seed, position)
    candidates = find_candidates(scores, table, draw, node_bits, winner, noted)
    noise = noise_of(candidates, table, draw, node_bits, noted)
    after = score_after(count_left(candidates, counts, table), totals, draw)
    of_winner = after[:, np.searchsorted(candidates, winner)]
    own = np.empty(scores.shape[0])
    n_present = count_present(totals)
    for place in range(asked.shape[0]):
        row = asked[place]
        class_ = labels[row]
        if n_present - (totals[class_] == 1) < 2:
            continue
        goes_left = split_goes_left(codes[table.feature[winner], row], table, winner)
        still = of_winner[class_, 0 if goes_left else 1]
        result[place], best = win_without(
            codes, row, candidates, after[class_], table, noise, draw, own
        )
        if still < 0.0 or best < floor:  # a side ran out of rows: look at every rule
            every = valid_rules(scores)
            of_every = score_after(count_left(every, counts, table), totals, draw)
            result[place], best = win_without(
                codes, row, every, of_every[class_], table,
                noise_of(every, table, draw, node_bits, noted), draw, own,
            )  # fmt: skip
    return result


@kernel
def set_distance(out, row, own, same_rule):
    """Record the distance from the whole sub-tree; the child's stands where the rule is kept."""
    label, size = out[0][row], out[1][row]
    if own[0] >= 0 and label >= 0:
        out[3][row] = 0 if own[0] == label else 2
    elif own[0] >= 0 or label >= 0 or not same_rule:
        out[3][row] = own[1] + size


@kernel
def leave_leaf(out, asked, labels, totals, own):
    """Record that without any one asked row the sub-tree is a leaf."""
    for place in range(asked.shape[0]):
        row = asked[place]
        totals[labels[row]] -= 1
        label = majority(totals)
        totals[labels[row]] += 1
        out[0][row], out[1][row], out[2][row] = label, 1, leaf_tag(label)
        set_distance(out, row, own, False)


@kernel
def join_rows(out, share, is_left, key, left, right, own, same_rule):
    """Put the question's other child beside what each row's own child became."""
    for place in range(share.shape[0]):
        row = share[place]
        mine = (out[0][row], out[1][row], out[2][row])
        joined = join(key, mine, right) if is_left[place] else join(key, left, mine)
        out[0][row], out[1][row], out[2][row] = joined
        set_distance(out, row, own, same_rule)


@kernel
def select(rows, values, wanted):
    """Rows whose value is the wanted one. Plain loops compile many times faster than masks."""
    chosen = np.empty_like(rows)
    n_chosen = 0
    for place in range(rows.shape[0]):
        if values[place] == wanted:
            chosen[n_chosen] = rows[place]
            n_chosen += 1
    return chosen[:n_chosen]


@kernel
def list_winners(winners, first, n_splits):
    """The rules that win for some row, each once, `first` being the first of them."""
    seen = np.zeros(n_splits, dtype=np.bool_)
    listed = np.empty(winners.shape[0] + 1, dtype=np.int64)
    listed[0], seen[first], n_listed = first, True, 1
    for place in range(winners.shape[0]):
        rule = winners[place]
        if rule >= 0 and not seen[rule]:
            listed[n_listed], seen[rule] = rule, True
            n_listed += 1
    return listed[:n_listed]


@kernel
def flag_left(codes, rows, table, rule):
    """Which rows go left by a rule."""
    flags = np.empty(rows.shape[0], dtype=np.bool_)
    for place in range(rows.shape[0]):
        flags[place] = split_goes_left(codes[table.feature[rule], rows[place]], table, rule)
    return flags


@kernel
def leave_out(codes, labels, n_classes, table, draw, rows, asked, position, levels, out):
    """Sub-tree on `rows`, and for each asked row the sub-tree on the others.

    levels is how many levels of questions are left; position is that of the node in the full
    binary tree. Returns (label, size, tag) of the sub-tree with equal siblings merged: label -1
    unless it is a leaf, tag standing for its whole content. Fills out = (label, size, tag,
    distance) at each asked row for the sub-tree without it, distance being that of node_distance
    to the whole sub-tree.
    """
    counts = np.empty((table.bin_offsets[-1], n_classes), dtype=np.int64)
    if levels > 0:
        count_rows(codes, labels, rows, table, counts)
    return leave_out_counted(codes, labels, counts, table, draw, rows, asked, position, levels, out)


@kernel
def leave_out_counted(codes, labels, counts, table, draw, rows, asked, position, levels, out):
    """As `leave_out`; counts (n_bins, n_classes) are those of `rows`, not read at level 0."""
    totals = count_labels(labels, rows, counts.shape[1])
    label = majority(totals)
    own = (label, np.int64(1), leaf_tag(label))
    rule, threshold = -1, -1
    scores = np.empty(table.feature.shape[0])
    noted = (np.empty(scores.shape[0]), np.empty(scores.shape[0], dtype=np.int64))
    if levels > 0 and count_present(totals) > 1:
        score_rules(counts, table, draw.score, draw.min_leaf, scores)
        node_bits = hash_node(draw.seed, position)
        rule, threshold = pick_and_note(scores, table, draw.sharpness, node_bits, noted)
    if rule < 0:
        leave_leaf(out, asked, labels, totals, own)
        return own
    winners = winners_without(
        codes, labels, asked, table, draw, scores, position, counts, totals, rule, noted
    )
    for chosen in list_winners(winners, rule, scores.shape[0]):
        share = select(asked, winners, chosen)
        is_left = flag_left(codes, share, table, chosen)
        to_left, to_right = split_rows(codes, rows, table, chosen)
        below = np.uint64(2) * position + np.uint64(1)
        of_left, of_right = counts, counts
        if levels > 1:
            of_left, of_right = count_children(codes, labels, to_left, to_right, table, counts)
        left = leave_out_counted(
            codes, labels, of_left, table, draw, to_left, select(share, is_left, True),
            below, levels - 1, out,
        )  # fmt: skip
        right = leave_out_counted(
            codes, labels, of_right, table, draw, to_right, select(share, is_left, False),
            below + np.uint64(1), levels - 1, out,
        )  # fmt: skip
        key = rule_key(table, chosen, threshold if chosen == rule else noted[1][chosen])
        if chosen == rule:
            own = join(key, left, right)
        join_rows(out, share, is_left, key, left, right, own, chosen == rule)
    leave_leaf(out, select(asked, winners, BECOMES_LEAF), labels, totals, own)
    return own
