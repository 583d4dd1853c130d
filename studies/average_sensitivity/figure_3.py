"""Figure 3 as the authors made it: which of 100 trees are equal, for one sample and one seed.

The paper's text gives the set (breast cancer, ten columns), epsilon 0.3 and 10 % of the rows
removed. The notebook that the paper links to (`exp/plot_trees.ipynb`) tells the rest: epsilon is
10^-0.5, the sample is that of seed 0 out of ten, the random bits those of seed 2 out of ten, and
trees are compared down to depth 3; Table 1 has depth 5 for this set. The learner here is written
from the paper: Algorithm 3 with a rate of each node's own, Algorithm 4 for its draws, Q = 500
thresholds a column from its least value on, equal sibling leaves merged. Its random bits are those
of numpy's legacy generator, in batches of 10,000, as theirs are: the counts come out to the digit.
"""

from collections import Counter
from itertools import product

import numpy as np
from sklearn.model_selection import train_test_split

Q = 500
BATCH = 10_000
DEPTHS = (3, 5)
LEARNERS = (("greedy", 0.0), ("epsilon 0.316", 10**-0.5))
PRINTED = (0, 2)  # the sample and the seed of figure 3


class Learner:
    """Trees of parts of the rows with the same random bits; a leaf is its label."""

    def __init__(self, X, y, epsilon, seed, depth):
        low, high = X.min(axis=0), X.max(axis=0)
        thresholds = np.linspace(low, high, Q + 1)[:-1]
        columns = zip(thresholds.T, X.T, strict=True)
        # a row goes left at threshold q where its code is at most q
        self.codes = np.stack([np.searchsorted(cuts, own) for cuts, own in columns], axis=1)
        self.y, self.n_columns = y, X.shape[1]
        self.cells = np.arange(self.n_columns) * (Q + 1) + self.codes
        self.epsilon, self.seed, self.depth, self.bits = epsilon, seed, depth, {}

    def tree(self, kept):
        """Nested (rule, label, left, right) of the rows of a mask."""
        self._kept = kept
        return self._node(np.arange(len(self.y)), 0)

    def scores(self, rows):
        """Kept rows that both sides' majorities label rightly; -1 where a side has no row at all.

        A side that only removed rows are left of counts as one with rows, as in the authors' code.
        """
        counts = np.zeros((3, self.n_columns * (Q + 1)))
        labels = np.where(self._kept[rows], self.y[rows], 2)
        for label in range(3):
            own = self.cells[rows[labels == label]].ravel()
            counts[label] = np.bincount(own, minlength=counts.shape[1])
        below = counts.reshape(3, self.n_columns, Q + 1).cumsum(axis=2)
        left, right = below[:, :, :Q], below[:, :, -1:] - below[:, :, :Q]
        parted = (left.sum(axis=0) > 0) & (right.sum(axis=0) > 0)
        right_labels = left[:2].max(axis=0) + right[:2].max(axis=0)
        return np.where(parted, right_labels, -1).ravel()

    def _node(self, rows, position, depth=0):
        counts = np.bincount(self.y[rows[self._kept[rows]]], minlength=2)
        label = int(counts[1] > counts[0])
        if depth == self.depth or counts.min() == 0:
            return label
        scores = self.scores(rows)
        if scores.max() < 0:
            return label
        rule = self._draw(scores, position)
        left = self.codes[rows, rule // Q] <= rule % Q
        below = [
            self._node(rows[side], 2 * position + 1 + k, depth + 1)
            for k, side in enumerate((left, ~left))
        ]
        return label if below == [label, label] else (rule, label, *below)

    def chances(self, scores):
        """Of each rule: Algorithm 3, or even among the best ones."""
        best = scores.max()
        if self.epsilon == 0:
            weights = (scores == best).astype(float)
        else:
            rate = 2 * np.log((scores >= 0).sum()) / (self.epsilon * best)
            weights = np.where(scores < 0, 0.0, np.exp(rate * (scores - best)))
        return weights / weights.sum()

    def _draw(self, scores, position):
        """The first proposal whose chance is above its number."""
        chances, batch = self.chances(scores), 0
        while True:
            rules, numbers = self._proposals(position, batch, len(scores))
            accepted = np.flatnonzero(numbers < chances[rules])
            if len(accepted):
                return int(rules[accepted[0]])
            batch += 1

    def _proposals(self, position, batch, n_rules):
        """Rules proposed at a position, a number from 0 to 1 of each; kept for other trees."""
        fresh = np.random.RandomState(self.seed + position), []
        state, made = self.bits.setdefault(position, fresh)
        while len(made) <= batch:
            made.append((state.choice(n_rules, BATCH), state.random_sample(BATCH)))
        return made[batch]


def cut(tree, levels):
    """Rules of the upper levels of a tree and the labels below them, equal ones merged."""
    if isinstance(tree, int):
        return tree
    rule, label, *below = tree
    sides = [cut(side, levels - 1) for side in below] if levels else [label, label]
    return label if sides == [label, label] else (rule, *sides)


def distance(a, b):
    """Nodes that are left of both trees once their common top is taken away."""
    if isinstance(a, int) or isinstance(b, int) or a[0] != b[0]:
        return 0 if a == b else n_nodes(a) + n_nodes(b)
    return distance(a[1], b[1]) + distance(a[2], b[2])


def n_nodes(tree):
    return 1 if isinstance(tree, int) else 1 + n_nodes(tree[1]) + n_nodes(tree[2])


def frequencies(data, sample, seed, n_sets=100):
    """By learner and depth: how often each tree occurs, and its distance from that of all rows."""
    X, _, y, _ = train_test_split(*data.train, train_size=0.8, random_state=sample)
    chance, n = np.random.RandomState(sample), len(y)
    masks = [np.ones(n, bool)]
    for _ in range(n_sets):
        masks.append(~np.isin(np.arange(n), chance.choice(n, n // 10, replace=False)))
    found = {}
    for name, epsilon in LEARNERS:
        learner = Learner(X, y, epsilon, seed, max(DEPTHS))
        whole, *trees = [learner.tree(mask) for mask in masks]
        for depth in DEPTHS:
            ordered = Counter(cut(tree, depth) for tree in trees).most_common()
            original = cut(whole, depth)
            found[f"{name}, {depth}"] = [[k, distance(tree, original)] for tree, k in ordered]
    return found


def measured(results, data):
    """The cell of each sample and seed, from the file or measured now."""
    for sample, seed in product(range(10), range(10)):
        key = {"figure": 3, "sample": sample, "seed": seed}
        if results.find(**key) is None:
            results.add(key | frequencies(data, sample, seed))
        yield results.find(**key)


def table(cells):
    """The printed cell, and all samples and seeds around it."""
    head = ("learner", "depth", "sample 0, seed 2: most frequent (nodes changed)", "trees")
    head += ("all samples and seeds", "72 or more")
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    cells = {(cell["sample"], cell["seed"]): cell for cell in cells}
    for (name, _), depth in product(LEARNERS, DEPTHS):
        own = {key: cell[f"{name}, {depth}"] for key, cell in cells.items()}
        printed, most = own[PRINTED], [found[0][0] for found in own.values()]
        row = [name, depth, ", ".join(f"{k} ({d})" for k, d in printed[:3]), len(printed)]
        row.append(f"{np.mean(most):.0f} ({min(most)} to {max(most)})")
        row.append(f"{sum(count >= 72 for count in most)} of {len(most)}")
        lines.append("| " + " | ".join(map(str, row)) + " |")
    return "\n".join(lines)
