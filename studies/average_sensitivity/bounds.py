"""The paper's bounds with their constants, and the exact distributions that they are about.

A rule is a column and a threshold; its score is the number of rows that the majorities of both
sides label correctly (section 3.1 with depth 1, as section 6 uses it). Sides may be empty here, as
in the paper, so that the set of rules is the same for all rows and for all but one.
"""

import math

import numpy as np


def rule_scores(sides, y, weights):
    """Score of every rule; sides (n_rules, n) says which rows go left, weights which rows count."""
    total = np.zeros(len(sides))
    classes = [(y == label) * weights.astype(float) for label in np.unique(y)]
    for side in (sides, ~sides):
        total += np.max([side @ own for own in classes], axis=0)
    return total


def all_sides(X, n_thresholds):
    """Rows that each of n_thresholds equidistant thresholds of each column sends left."""
    low, high = X.min(axis=0), X.max(axis=0)
    shares = np.arange(1, n_thresholds + 1) / (n_thresholds + 1)
    thresholds = low + shares[:, None] * (high - low)
    return np.concatenate([X[:, j] <= thresholds[:, [j]] for j in range(X.shape[1])])


def rate(n_rules, epsilon, best):
    """Algorithm 3: lambda = 2 log(n_rules) / (epsilon best)."""
    return 2 * math.log(n_rules) / (epsilon * best)


def chances(scores, sharpness):
    """Probability of every rule, proportional to exp(sharpness score)."""
    weights = np.exp(sharpness * (scores - scores.max()))
    return weights / weights.sum()


def total_variation(p, q):
    return np.abs(p - q).sum() / 2


def coupled_difference(p, q):
    """Algorithm 4 with shared bits: the exact probability that the two rules differ.

    The first proposal that either accepts is accepted by both with probability
    (1 - TV) / (1 + TV). Else the other one goes on, and may still end at the same rule.
    """
    more, less = np.maximum(p - q, 0), np.maximum(q - p, 0)
    apart = more @ (1 - q) + less @ (1 - p)
    return apart / (1 + total_variation(p, q))


def coupling_bound(variation):
    """Lemma C.1, sharpened: at most 2 TV / (1 + TV), which is below the printed 2 TV."""
    return 2 * variation / (1 + variation)


def removal_sums(sides, y, epsilon):
    """Sums over the removal of each row of what Lemmas A.3 and A.4 and Claims A.5, A.6 bound."""
    n = len(y)
    scores = rule_scores(sides, y, np.ones(n))
    sharpness = rate(len(sides), epsilon, scores.max())
    p, Z = chances(scores, sharpness), np.exp(sharpness * (scores - scores.max())).sum()
    found = {"loss": np.zeros(len(sides)), "best loss": 0.0}
    found |= {"variation": 0.0, "first part": 0.0, "second part": 0.0, "coupled": 0.0}
    for row in range(n):
        without = rule_scores(sides, y, np.arange(n) != row)
        own = rate(len(sides), epsilon, without.max())
        q = chances(without, own)
        # equation 3, both exponentials over the same largest one
        kept = np.exp(sharpness * (without - scores.max())) / Z
        found["loss"] += scores - without
        found["best loss"] += scores.max() - without.max()
        found["variation"] += total_variation(p, q)
        found["first part"] += (p - kept).sum()
        found["second part"] += np.maximum(kept - q, 0).sum()
        found["coupled"] += coupled_difference(p, q)
    return found | {"scores": scores, "lambda opt": sharpness * scores.max()}


def variation_bound(n_rules, epsilon):
    """Lemma A.4 with its constant: the sum of TV over all removals.

    Claim A.5 gives lambda opt. For Claim A.6 the smaller denominator only helps; what remains is TV
    between two Gibbs distributions over scores from 0 to M at rates lambda and lambda M' / M, at
    most a quarter of M times the difference of the rates, hence lambda opt / 4 in all. Together
    5/4 lambda opt = 2.5 log(n_rules) / epsilon.
    """
    return 2.5 * math.log(n_rules) / epsilon


def sensitivity_bound(depth, n_rules, epsilon, n, coupled=False):
    """Theorems 4.1 and 6.1 with their constants, 5.1 where coupled: nodes a removed row changes.

    A rule that changes at depth d costs both sub-trees, 2 (2^(B - d + 1) - 1) nodes at most, and a
    level has 2^d nodes. The last term, for labels of leaves, is not in the paper: each row lies in
    one leaf, and a label that turns costs 2.
    """
    nodes = sum(2**d * 2 * (2 ** (depth - d + 1) - 1) for d in range(depth))
    differ = (2 if coupled else 1) * variation_bound(n_rules, epsilon)
    return nodes * differ / n + 2


def private_bound(depth, epsilon):
    """Section 2: what differential privacy with the same epsilon would give, in order."""
    return epsilon * 2**depth


def table(data, learner, seeds, n_thresholds):
    """Bounds beside what one sample of a data set shows: exact removals, means over seeds."""
    from steadytree import average_sensitivity

    X, y = data.sample(0)
    sides = all_sides(X, n_thresholds)
    head = ("epsilon", "sum of TV", "its bound", "sum of P(differ)", "its bound")
    head += ("nodes changed", "bound of Theorem 5.1", "order of a private bound")
    lines = ["| " + " | ".join(head) + " |", "|" + " ---: |" * len(head)]
    for epsilon in (0.1, 0.3, 1.0):
        found = removal_sums(sides, y, epsilon)
        own = learner(max_depth=data.depth, epsilon=epsilon, n_thresholds=n_thresholds)
        measured = average_sensitivity(own, X, y, seeds=seeds, normalise=False).value
        limit = variation_bound(len(sides), epsilon)
        tree = sensitivity_bound(data.depth, len(sides), epsilon, len(y), coupled=True)
        values = (found["variation"], limit, found["coupled"], 2 * limit, measured, tree)
        cells = [f"{value:.3g}" for value in (*values, private_bound(data.depth, epsilon))]
        lines.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
