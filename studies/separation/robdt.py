"""Trees by the robust split score of Chen et al. (2019), the paper's baseline RobDT.

H. Chen, H. Zhang, D. Boning and C.-J. Hsieh, *Robust Decision Trees Against Adversarial Examples*:
a split counts for what is left of its gain when an adversary moves every row by up to eps. Rows
within eps of the threshold may then go to either side. As in that paper's section on boosting, the
worst of four cases counts: all of them left, all right, as they are, and all on the other side.
One tree of a boosted ensemble is grown, with that program's usual settings (a penalty of 1 on
squared leaf values, a hessian of 1 in each child). Rows go down the tree as they are.
"""

import numpy as np
from peers import as_tree
from sklearn.model_selection import StratifiedKFold

LEAST = 4  # rows on each side: min_child_weight=1 at a hessian of a quarter a row


def kept(counts):
    """What a leaf of the first boosted tree gains, G^2 / (H + 1), from counts (..., 2)."""
    return (counts[..., 0] - counts[..., 1]) ** 2 / (counts.sum(axis=-1) + 4)


def split_gain(left, totals):
    """Gain when so many rows of each label go left."""
    return kept(left) + kept(totals - left) - kept(totals)


def worst_gain(least, most, plain, totals):
    """The least gain of the four cases, by counts of each label on the left.

    `least` are left for sure, `most` when all movable rows go left, `plain` as the rows are; where
    all change sides, least + most - plain are left.
    """
    cases = (least, most, plain, least + most - plain)
    return np.min([split_gain(left, totals) for left in cases], axis=0)


def best_split(X, y, eps):
    """Column, threshold and robust gain of the best split of the rows; gain 0: there is none."""
    best = (0, 0.0, 0.0)
    for j, column in enumerate(X.T):
        order = np.argsort(column)
        values, labels = column[order], y[order]
        counts = np.zeros((len(y) + 1, 2))
        np.cumsum(np.column_stack([labels == 0, labels == 1]), axis=0, out=counts[1:])
        places = np.flatnonzero(values[1:] != values[:-1]) + 1
        places = places[(places >= LEAST) & (places <= len(y) - LEAST)]
        if not len(places):
            continue
        cuts = (values[places - 1] + values[places]) / 2
        low = np.searchsorted(values, cuts - eps)
        high = np.searchsorted(values, cuts + eps, side="right")
        gains = worst_gain(counts[low], counts[high], counts[places], counts[-1])
        k = int(gains.argmax())
        if gains[k] > best[2] + 1e-9:  # above the error of rounding
            best = (j, float(cuts[k]), float(gains[k]))
    return best


def grow(X, y, eps, max_depth):
    """A tree as nested questions, as `peers.as_tree` reads them; inner nodes have a value too."""

    def node(rows, depth):
        counts = np.bincount(y[rows], minlength=2)
        found = {"value": counts / counts.sum()}
        if depth == max_depth or counts.min() == 0:
            return found
        column, threshold, gain = best_split(X[rows], y[rows], eps)
        if gain <= 0:
            return found
        left = X[rows, column] <= threshold
        sides = {"left_child": rows[left], "right_child": rows[~left]}
        below = {name: node(own, depth + 1) for name, own in sides.items()}
        return found | {"feature": column, "threshold": threshold} | below

    return node(np.arange(len(y)), 0)


def cut_off(root, max_depth):
    """What the same growing gives at a smaller depth."""
    if "threshold" not in root:
        return root
    if max_depth == 0:
        return {"value": root["value"]}
    sides = ("left_child", "right_child")
    return root | {name: cut_off(root[name], max_depth - 1) for name in sides}


def robdt(X, y, eps=0.05, depths=(5, 10, 15, 20, 25, 30)):
    """Nested questions, depth by 5-fold cross-validation of accuracy, as in the paper."""
    right = np.zeros(len(depths))
    for train, test in StratifiedKFold(5).split(X, y):
        grown = grow(X[train], y[train], eps, max(depths))
        for k, depth in enumerate(depths):
            tree = as_tree(cut_off(grown, depth), X.shape[1])
            right[k] += (tree.predict(X[test]) == y[test]).sum()
    return cut_off(grow(X, y, eps, max(depths)), depths[int(right.argmax())])
