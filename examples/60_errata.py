"""
What the papers get wrong
=========================

Each error of the five papers that this package follows, with a few lines that show it; what is
right, and what the package does, is on :doc:`/errata`.
"""

# %%
# **Average sensitivity, Theorem 4.1.** Labels of leaves are not stabilised. Ten equal rows with a
# tie of labels: no split can be sampled, the printed bound is 0, and half of the removals turn the
# leaf.

import math

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

import steadytree as st

rng = np.random.default_rng(0)
labels = np.repeat([0, 1], 5)
learner = st.StableTreeClassifier(1, 0.3, criterion="count", random_state=0)
found = st.average_sensitivity(learner, np.zeros((10, 1)), labels, normalise=False)
print(f"nodes changed by a removal: {found.value:g}, printed bound: 0")
assert found.value == 1

# %%
# **Average sensitivity, Lemma A.2.** Its proof bounds nothing with the c it sets: the probability
# of a loss above c is bounded by 1. The claim holds all the same, with half of the printed lambda.

scores = np.sort(rng.integers(50, 101, 500))
for epsilon in (0.05, 0.3, 1.0):
    rate = np.log(len(scores)) / (epsilon * scores.max())  # half of 2 log #Omega / (epsilon opt)
    chances = np.exp(rate * (scores - scores.max()))
    mean = chances @ scores / chances.sum()
    print(f"epsilon {epsilon}: expected score {mean:.1f} >= {(1 - epsilon) * scores.max():.1f}")
    assert mean >= (1 - epsilon) * scores.max()

# %%
# **Average sensitivity, appendix C.1.** A proposal is accepted when the threshold *exceeds* its
# probability, says the text; Algorithm 4 does the opposite. Only the latter samples the splits with
# their probabilities.

wanted = np.array([0.7, 0.2, 0.1])
proposed, threshold = rng.integers(0, 3, 60_000), rng.random(60_000)
shares = {}
below = threshold < wanted[proposed]
for name, accepted in (("text", ~below), ("Algorithm 4", below)):
    shares[name] = np.bincount(proposed[accepted], minlength=3) / accepted.sum()
    print(name, shares[name].round(2))
assert np.abs(shares["Algorithm 4"] - wanted).max() < 0.02 < np.abs(shares["text"] - wanted).max()

# %%
# **Average sensitivity, Algorithm 3.** Every call passes the whole depth B on, so that no call is
# the last one: what is meant is the depth that is left. And a rule "at most the largest value"
# leaves a side without rows, whose label is left open.


def n_calls(depth, passed_on, most=1_000):
    """Calls of a recursion that is given a depth and passes another one on."""
    waiting, calls = [depth], 0
    while waiting and calls < most:
        calls, own = calls + 1, waiting.pop()
        waiting += [passed_on(own)] * (2 if own else 0)
    return calls


print(
    "calls for B = 3:", n_calls(3, lambda depth: depth - 1), "and", n_calls(3, lambda depth: depth)
)
assert n_calls(3, lambda depth: depth - 1) == 15
assert n_calls(3, lambda depth: depth) == 1_000
column = rng.random(20)
assert (column <= np.linspace(column.min(), column.max(), 500)[-1]).all()

# %%
# **Average sensitivity, appendix C.2.** Children get every other one of the random bits of their
# parent, from the first on: the left child, and the one left below it, start with the bit that the
# root has used. The authors' program seeds node k of tree s with s + k, so that a node of one tree
# has the bits of another tree's root.

bits = np.arange(1, 65)
shares = [bits, bits[::2], bits[::2][::2]]
print("first bits of the root and the nodes left below it:", [int(own[0]) for own in shares])
assert len({int(own[0]) for own in shares}) == 1

# %%
# **Average sensitivity, section 7.** One hundred sampled removals say little where few rows matter:
# the relative standard error is about one half here, and the exact figure costs less.

X, y = load_breast_cancer(return_X_y=True)
learner = st.StableTreeClassifier(5, 0.3, criterion="count", merge_leaves=True, random_state=0)
distances = st.average_sensitivity(learner, X, y).distances[0]
error = distances.std() / 10 / distances.mean()
print(f"relative standard error of 100 sampled removals: {error:.2f}")
assert error > 0.2

# %%
# **Average sensitivity, Algorithm 5.** Its distance takes two splits of one feature for the same,
# however far the threshold moves: stumps that disagree on nearly all rows are 0 apart.

line = np.arange(100.0)[:, None]
stumps = [DecisionTreeClassifier(max_depth=1).fit(line, line[:, 0] > cut) for cut in (1, 97)]
apart = float(st.tree_distance(*stumps, kind="node-features"))
changed = (stumps[0].predict(line) != stumps[1].predict(line)).mean()
print(f"distance {apart:g}, answers that differ: {changed:.0%}")
assert apart == 0
assert changed > 0.9

# %%
# **Average sensitivity, the authors' program.** It loops for ever on equal rows with mixed labels,
# since no threshold parts them. Such rows have to be a leaf.

model = st.StableTreeClassifier(3, 0.3, random_state=0).fit(np.zeros((10, 2)), labels)
print("leaves of ten equal rows with two labels:", model.tree_.n_leaves)
assert model.tree_.n_leaves == 1

# %%
# **Tree distance, Proposition 1.** Not a metric among trees of different size: two stumps that cut
# off a hundredth at either end are far apart, and both are next to the single leaf.

ends = [[0.0], [0.01], [0.99], [1.0]]
low = DecisionTreeClassifier().fit([[0.0], [0.02]], [1, 0])
high = DecisionTreeClassifier().fit([[0.98], [1.0]], [0, 1])
leaf = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 0])
apart = st.tree_distance([low, leaf, high], space=ends)
print(apart.round(3))
assert apart[0, 2] > apart[0, 1] + apart[1, 2]

# %%
# **Tree distance, equation 1.** With the 2 below the line, paths of depth D are at most D apart in
# numeric features, not the 2 D of Proposition 2: 2 D features split at their ends give one half
# each. So lambda = 2 D weighs labels twice as much as the features, not the same.

depth, whole, narrow = 3, np.array([0.0, 1.0]), np.array([0.0, 1e-9])
numeric = 2 * depth * np.abs(whole - narrow).sum() / 2
print(f"largest numeric part of paths of depth {depth}: {numeric:.1f}, printed {2 * depth}")
assert numeric <= depth

# %%
# **Tree distance, equation 2.** A path without bounds weighs nothing, and one whose feature is
# hardly bounded the most. And a split that changes no answer makes trees differ.

unit = st.FeatureSpace.declare(bounds={"x": (0, 1)})
nan, none = np.nan, -1


def chain(*thresholds):
    """One split after the other on x: 0 below the first threshold, 1 above it."""
    n = len(thresholds)
    inner = np.arange(n)
    return st.Tree(
        unit,
        ["a", "b"],
        feature=[0] * n + [none] * (n + 1),
        threshold=[*thresholds, *[nan] * (n + 1)],
        left=[*(inner + n), *[none] * (n + 1)],
        right=[*inner[1:], 2 * n, *[none] * (n + 1)],
        value=[[0.5, 0.5]] * n + [[1, 0]] + [[0, 1]] * n,
        weight=[*range(n + 1, 1, -1), *[1] * (n + 1)],
    )


def path_weight(low, high):
    return (high - low) * ((low, high) != (0, 1))


print("weights:", path_weight(0, 1), path_weight(0, 0.01), path_weight(0, 0.99))
assert path_weight(0, 1) < path_weight(0, 0.01) < path_weight(0, 0.99)
apart = float(st.tree_distance(chain(0.5), chain(0.5, 0.8)))
print(f"two trees that are one function: {apart:.2f} apart")
assert apart > 0

# %%
# **Tree distance, sections 2.5 and 3.** Divided by the bound of its own depth, the deeper of two
# trees looks nearer although it is farther away.

base = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X[:280], y[:280])
small, deep = (
    DecisionTreeClassifier(max_depth=depth, random_state=1).fit(X[280:], y[280:])
    for depth in (2, 7)
)
raw = [float(st.tree_distance(base, other, space=X)) for other in (small, deep)]
own = [float(st.tree_distance(base, other, space=X, normalise=True)) for other in (small, deep)]
print(f"raw {raw[0]:.2f} and {raw[1]:.2f}, each over its own bound {own[0]:.4f} and {own[1]:.4f}")
assert raw[0] < raw[1]
assert own[0] > own[1]

# %%
# **Tree distance, section 3.1.** The best of many trees, chosen on the test rows, looks better than
# it is: here the labels are noise, and an AUC of one half is all there is.

coins = rng.integers(0, 2, 140)
values = rng.random((140, 5))
areas = []
for _ in range(50):
    rows = rng.choice(100, 100)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(values[rows], coins[rows])
    areas.append(roc_auc_score(coins[100:], tree.predict_proba(values[100:])[:, 1]))
print(f"mean AUC {np.mean(areas):.2f}, the best on the test rows {max(areas):.2f}")
assert max(areas) > np.mean(areas) + 0.08

# %%
# **Private trees, report noisy max.** The winning score must not be released with the noise that
# chose it. Where one row raises all ten scores by one, a low value is e^(10 alpha / 2) times
# likelier on one side, not e^alpha: the density of (who, value) is one density times nine
# distributions.

alpha, scale, value = 1.0, 2.0, -40.0
laplace = stats.laplace(scale=scale)
loss = laplace.logpdf(value) - laplace.logpdf(value - 1)
loss += 9 * (laplace.logcdf(value) - laplace.logcdf(value - 1))
print(f"privacy loss {loss:.2f}, promised {alpha:g}")
assert loss > 4.9 * alpha

# %%
# **Private trees, Lemma 11.** The noise follows the size m of the leaf, which is private, and at
# m = 1 the scale 10 lg(m) / m of appendix A.3 is 0, although a second row can raise J from 0 to 1.
# The proof sketches of Lemmas 4 and 6 print the noise as growing with alpha.

print("scale at m = 1, 2, 4, 1000:", [round(10 * math.log2(m) / m, 1) for m in (1, 2, 4, 1000)])
assert 10 * math.log2(1) / 1 == 0

# %%
# **Private trees, "differ on at most one point".** A replaced row leaves one leaf and enters
# another: with counts of both leaves released at alpha, as parallel composition is used, the loss
# is 2 alpha. For a row that is added or removed it is alpha.

loss = {"replaced": [(1, 0), (0, 1)], "removed": [(1, 0), (0, 0)]}
loss = {name: alpha * sum(map(abs, np.subtract(*two).tolist())) for name, two in loss.items()}
print(loss)
assert loss == {"replaced": 2 * alpha, "removed": alpha}

# %%
# **Private trees, appendix A.4.** Three kinds of counts for each of #H splits, each with
# 3 alpha / #H, cost nine times alpha; the proof has the noise of alpha / (3 #H).

cost = 3 * 159 * 3 * alpha / 159
print(f"{cost:g} times alpha")
assert cost == 9 * alpha

# %%
# **Private trees, evenly spaced thresholds.** Taken from the range of the data they tell whether
# the row with the largest value is there: not one is the same without it. Ranges must be declared.

values = np.append(rng.random(50), 3.0)
grids = [np.linspace(own.min(), own.max(), 12)[1:-1] for own in (values, values[:-1])]
print("thresholds in common:", len(np.intersect1d(*grids)))
assert not len(np.intersect1d(*grids))

# %%
# **Private trees, Lemma 20.** The root of Gini's index is not 10/m sensitive: at a pure node one
# row changes 2 sqrt(q (1 - q)) by about 2 / sqrt(m).

for m in (100, 10_000):
    q = 1 / m
    change = 2 * np.sqrt(q * (1 - q))
    print(f"m = {m:,}: changed by {change:.4f}, printed bound {10 / m:.4f}")
    assert change > 10 / m

# %%
# **Separation, Algorithm 1.** For an even number of rounds the published weights choose one
# condition again and again.

points = np.column_stack([rng.random((200, 3)), np.ones(200)])
truth = (points[:, :3].sum(axis=1) + 0.3 * rng.random(200) > 1.65).astype(int)
for rounds in (10, 15):
    card = st.RiskScoreClassifier.as_published().set_params(n_rounds=rounds).fit(points, truth)
    size = st.complexity(card).n_questions
    print(f"T = {rounds}: {size} condition(s)")
    assert (size == 1) == (rounds == 10)

# %%
# **Separation, Table 3.** An empirical robustness of 0.50 on 0/1 columns says nothing: every tree
# has it, at every row, for its thresholds lie at one half. And "at least T / 2 votes" and
# "score > 0" disagree at a tie.

flags = rng.integers(0, 2, (200, 6)).astype(float)
tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(flags, flags[:, 0] != flags[:, 1])
reach = st.certify(tree, flags, flags[:, 0] != flags[:, 1], st.Perturbation(radius=1.0, whole=[]))
print("distances to another answer:", np.unique(reach.distance.round(3)))
assert set(reach.distance.round(3)) <= {0.5, np.inf}
votes = np.array([1, 1, 0, 0])
assert (votes.sum() >= len(votes) / 2) != ((2 * votes - 1).sum() > 0)

# %%
# **Separation, the robustness of LCPA's cards.** Where 0/1 flags are moved linearly, a total can be
# brought to 0 by less than one half. No flag of a row can change by that little.

card = np.array([5, 2, -1, 1])
total = card @ np.array([1, 0, 1, 0]) - 3  # of a row with two of the four flags, and a bias
print(f"linear distance {abs(total) / np.abs(card).sum():.2f}")
assert abs(total) / np.abs(card).sum() < 0.5

# %%
# **Separation, Algorithm 1.** "Without loss of generality w >= 0" needs columns of known sign.
# Conditions "at least" alone cannot use a column that falls with the outcome: the printed accuracy
# of diabetes, 0.65, is the share of the larger class, 500 of 768.

falling, outcome = np.linspace(0, 1, 100), np.repeat([1, 0], 50)
best = {
    way: max(float(((side * falling >= side * cut) == outcome).mean()) for cut in falling)
    for way, side in (("at least", 1), ("at most", -1))
}
print(f"best single condition: {best}; diabetes: {500 / 768:.2f}")
assert best == {"at least": 0.5, "at most": 1.0}

# %%
# **Separation, appendix B.** "Whether the sample is benign", "whether patients have diabetes": the
# positive shares of Table 2, 0.35 and 0.65, are those of the 239 malignant samples of 683 and of
# the 500 patients of 768 without diabetes.

print(round(239 / 683, 2), round(500 / 768, 2))
assert (round(239 / 683, 2), round(500 / 768, 2)) == (0.35, 0.65)

# %%
# **Separation, section 6.1.** "Nine datasets have gamma >= 0.001"; Table 2 prints these margins:

gamma = [0.001, 0.33, 0.00002, 0.0003, 0.003, 0.2, 0.0008, 0.33]  # adult to ficobin
gamma += [0.0003, 0.0007, 0.14, 0.02, 0.000002]  # heart to spambase
print(f"{sum(value >= 0.001 for value in gamma)} of {len(gamma)}")
assert sum(value >= 0.001 for value in gamma) == 7

# %%
# **Private trees, MNIST.** The text averages the pixels 0, 1, 28 and 29 for the first block: 2 x 2,
# which makes 196 blocks. Blocks of 4 x 4, as it names them, make 49.

print((28 // 2) ** 2, "and", (28 // 4) ** 2, "blocks")
assert (28 // 4) ** 2 == 49

# %%
# **Private trees, Adult.** 159 splits are 10 thresholds of each of six numbers and 99 categories:
# missing is none of them, though three columns have missing values.

categories = [8, 16, 7, 14, 6, 5, 2, 41]  # work class, education, ... , sex, country
print(6 * 10 + sum(categories))
assert 6 * 10 + sum(categories) == 159

# %%
# **Robust trees, section 3.3.** A path may test one feature several times. The cost of reaching a
# leaf is the distance to its interval, not the sum over the tests.

space = st.FeatureSpace.declare(bounds={"x": (0, 5)}, kinds={"x": "integer"})
tree = st.Tree(
    space,
    ["a", "b"],
    feature=[0, 0, none, none, none],
    threshold=[3.5, 1.5, nan, nan, nan],
    left=[1, 3, none, none, none],
    right=[2, 4, none, none, none],
    value=[[0.3, 0.7], [0.5, 0.5], [0, 1], [1, 0], [0, 1]],
    weight=[6, 4, 2, 2, 2],
)
result = st.certify(tree, pd.DataFrame({"x": [5]}), ["b"], st.Perturbation(step_cost=1.0))
print(f"steps from 5 to the leaf x <= 1: {result.distance[0]:g}, summed over its two tests: 2 + 4")
assert result.distance[0] == 4

# %%
# **Robust trees, equation 3.** The costs of a shift sum to at most epsilon there, and to less than
# the budget in section 3.3. Here a shift that costs just the budget is one: the row can be moved.

row, step = pd.DataFrame({"x": [5]}), st.Perturbation(step_cost=1.0, budget=4.0)
kept = st.certify(tree, row, ["b"], step).certified_accuracy(4.0)
print(f"certified at a budget of just the distance: {kept:g}")
assert kept == 0

# %%
# **Robust trees, equations 8 to 10.** The step from (9) to (10) drops the factor 1/2 of each moved
# value: the likelihood ratio of a shift is smaller than (10) says. And certainties drawn from a
# normal with deviation 0.2 leave (0, 1].

certainty, moved = 0.8, 2
exact = np.log(certainty) - np.log(0.5 * certainty * (1 - certainty) ** moved)
printed = moved * np.log(1 / (1 - certainty))
print(f"log likelihood ratio {exact:.3f}, by equation 10 {printed:.3f}")
assert np.isclose(exact - printed, np.log(2))
outside = (rng.normal(0.9, 0.2, 10_000) > 1).mean()
print(f"certainties above 1 at mean .9: {outside:.0%}")
assert outside > 0.25
