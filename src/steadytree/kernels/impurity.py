"""Scores of every question at a node, in rows: what one row more changes is bounded."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def side_impurity(counts, entropy):
    """Rows times Gini impurity, or rows times entropy in bits; 0 for an empty side."""
    size, total = 0.0, 0.0
    for count in counts:
        if count > 0:
            size += count
            total += count * np.log2(count) if entropy else count * count
    if size == 0.0:
        return 0.0
    return size * np.log2(size) - total if entropy else size - total / size


@njit(cache=True, nogil=True)
def impurity_scores(counts, bin_offsets, feature, bin_, by_value, entropy):
    """Minus the summed impurity of both sides of every question, for every node: (n_nodes, m).

    counts (n_nodes, n_bins, n_classes) as `count_classes` gives them, a feature's missing bin last;
    questions of a feature come by rising bin. Empty sides score like any other.
    """
    n_nodes, n_classes = counts.shape[0], counts.shape[2]
    scores = np.empty((n_nodes, feature.shape[0]))
    whole, yes = np.empty(n_classes), np.empty(n_classes)
    for node in range(n_nodes):
        for question in range(feature.shape[0]):
            start, end = bin_offsets[feature[question]], bin_offsets[feature[question] + 1]
            if question == 0 or feature[question] != feature[question - 1]:
                running, below = np.zeros(n_classes), 0
                for class_ in range(n_classes):
                    whole[class_] = counts[node, start:end, class_].sum()
            asked = bin_[question]
            for class_ in range(n_classes):
                if by_value[question]:
                    yes[class_] = counts[node, start + asked, class_]
                else:
                    for each in range(start + below, start + asked + 1):
                        running[class_] += counts[node, each, class_]
                    yes[class_] = running[class_]
            if not by_value[question]:
                below = asked + 1
            no = whole - yes
            scores[node, question] = -(side_impurity(yes, entropy) + side_impurity(no, entropy))
    return scores
