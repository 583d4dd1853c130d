"""Figure 3 examined: which reading of Algorithm 3 gives 72 equal trees out of 100.

A plain implementation beside the package's: Q = 500 equidistant thresholds a column from its least
to its greatest value, equal sibling leaves merged, whole trees compared rule by rule. Algorithm 3
draws a rule with probability proportional to exp(lambda score), lambda = 2 log|rules| / (eps opt).
With "a node's own rate" opt is that of the rows of the node, as in Algorithm 3; with "the root's
rate" lambda is computed once, for all rows. Random bits are shared between trees in two ways:
Gumbel noise for each rule of each position, or the proposals of Algorithm 4.
"""

from collections import Counter

import numpy as np

Q = 500
PROPOSALS = 60_000  # of Algorithm 4 at a position; one in |rules| is accepted, on average
READINGS = (
    ("greedy", 0.0, False, "Gumbel"),
    ("epsilon 0.3, a node's own rate, Gumbel", 0.3, False, "Gumbel"),
    ("epsilon 0.3, a node's own rate, Algorithm 4", 0.3, False, "Algorithm 4"),
    ("epsilon 0.3, the root's rate, Gumbel", 0.3, True, "Gumbel"),
    ("epsilon 0.3, the root's rate, Algorithm 4", 0.3, True, "Algorithm 4"),
)


class Learner:
    """Trees of subsets of the rows with the same random bits; a leaf is its label."""

    def __init__(self, X, y, epsilon, root_rate, draw, seed, depth=5):
        low, high = X.min(axis=0), X.max(axis=0)
        thresholds = low + np.linspace(0, 1, Q)[:, None] * (high - low)
        columns = zip(thresholds.T, X.T, strict=True)
        # a row goes left at threshold q where its code is at most q
        self.codes = np.stack([np.searchsorted(cuts, own) for cuts, own in columns], axis=1)
        self.y, self.n_columns = y, X.shape[1]
        self.cells = (np.arange(self.n_columns) * (Q + 1) + self.codes) * 2 + y[:, None]
        self.epsilon, self.root_rate, self.draw = epsilon, root_rate, draw
        self.seed, self.depth, self.bits = seed, depth, {}

    def scores(self, rows):
        """Rows that the majorities of both sides label correctly, for every rule."""
        counts = np.bincount(self.cells[rows].ravel(), minlength=self.n_columns * (Q + 1) * 2)
        below = counts.reshape(self.n_columns, Q + 1, 2).cumsum(axis=1)
        left = below[:, :Q]
        return (left.max(axis=2) + (below[:, -1:] - left).max(axis=2)).ravel()

    def tree(self, rows):
        """Nested (rule, left, right) of some rows, equal leaves merged."""
        return self._node(rows, 0, 1, None)

    def _node(self, rows, depth, position, opt):
        counts = np.bincount(self.y[rows], minlength=2)
        label = int(counts[1] > counts[0])
        if depth == self.depth or counts.min() == 0:
            return label
        scores = self.scores(rows)
        opt = scores.max() if opt is None or not self.root_rate else opt
        rule = self._pick(scores, opt, position)
        left = self.codes[rows, rule // Q] <= rule % Q
        below = [
            self._node(rows[side], depth + 1, 2 * position + k, opt) if side.any() else label
            for k, side in enumerate((left, ~left))
        ]
        return label if below == [label, label] else (rule, *below)

    def _pick(self, scores, opt, position):
        if position not in self.bits:
            rng, n = np.random.default_rng([self.seed, position]), len(scores)
            if self.draw == "Gumbel":
                self.bits[position] = rng.gumbel(size=n)
            else:
                self.bits[position] = rng.integers(0, n, PROPOSALS), rng.random(PROPOSALS)
        bits = self.bits[position]
        if self.epsilon == 0:
            return int(np.where(scores == scores.max(), bits, -np.inf).argmax())
        logs = 2 * np.log(len(scores)) / (self.epsilon * opt) * (scores - scores.max())
        if self.draw == "Gumbel":
            return int((logs + bits).argmax())
        chances = np.exp(logs) / np.exp(logs).sum()
        accepted = np.flatnonzero(chances[bits[0]] > bits[1])
        return int(bits[0][accepted[0]]) if len(accepted) else int(chances.argmax())


def table(data, n_samples, n_seeds, n_sets=100):
    """Most frequent of 100 trees without 10 % of the rows, over samples and seeds, by reading."""
    head = ("reading", "most frequent tree", "at least 72", "training accuracy")
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for name, *reading in READINGS:
        found = [
            most_frequent(data, reading, sample, seed, n_sets)
            for sample in range(n_samples)
            for seed in range(n_seeds)
        ]
        counts, right = np.array(found).T
        shown = f"{counts.mean():.0f} ({counts.min():.0f} to {counts.max():.0f})"
        enough = f"{(counts >= 72).mean():.0%}"
        lines.append(f"| {name} | {shown} | {enough} | {right.mean():.3f} |")
    return "\n".join(lines)


def most_frequent(data, reading, sample, seed, n_sets):
    """Of every 100 trees, how many are equal to the most frequent; accuracy of that of all rows."""
    X, y = data.sample(sample)
    X, y = np.asarray(X, float), np.asarray(y)
    learner, rng, n = (
        Learner(X, y, *reading, seed, data.depth),
        np.random.default_rng(sample),
        len(y),
    )
    kept = [np.sort(rng.choice(n, n - n // 10, replace=False)) for _ in range(n_sets)]
    most = Counter(learner.tree(rows) for rows in kept).most_common(1)[0][1]
    whole = learner.tree(np.arange(n))
    right = np.mean(
        [answer(whole, codes) == own for codes, own in zip(learner.codes, y, strict=True)]
    )
    return most * 100 // n_sets, right


def answer(tree, codes):
    """The label of a row."""
    while not isinstance(tree, int):
        rule, left, right = tree
        tree = left if codes[rule // Q] <= rule % Q else right
    return tree
