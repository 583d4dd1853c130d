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
# **Tree distance, sections 2.5 and 3.** Divided by the bound of its own depth, the deeper of two
# trees looks nearer although it is farther away.

X, y = load_breast_cancer(return_X_y=True)
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
# **Robust trees, section 3.3.** A path may test one feature several times. The cost of reaching a
# leaf is the distance to its interval, not the sum over the tests.

space = st.FeatureSpace.declare(bounds={"x": (0, 5)}, kinds={"x": "integer"})
nan, none = np.nan, -1
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
