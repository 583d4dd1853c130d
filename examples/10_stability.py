"""
Will my tree change?
====================

Remove every row in turn, see what becomes of the tree, and choose how much accuracy a steadier
tree may cost.
"""

# %%
# The greedy tree first. The figure is exact: all 569 trees without one row are compared.

from sklearn.datasets import load_breast_cancer

import steadytree as st

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
greedy = st.StableTreeClassifier(max_depth=4, epsilon=0, random_state=0)
found = st.average_sensitivity(greedy, X, y)
print(found)

# %%
# The rows whose removal changes most, and the most frequent other trees.

for rows, distance in found.worst(3):
    print(f"without row {rows[0]}: distance {distance:.3f}")
for other in found.alternatives:
    print(f"{100 * other.share:.1f} % of the rows lead to {other.tree}")

# %%
# A stable tree gives up a little training accuracy at each split. Which other splits were
# likely at its root?

stable = st.StableTreeClassifier(max_depth=4, epsilon=0.3, random_state=0).fit(X, y)
for split in stable.split_probabilities()[:3]:
    print(f"{split.feature} <= {split.low:.4g}: {split.probability:.2f}")
print(st.average_sensitivity(stable, X, y))

# %%
# What does stability cost? Folds judge accuracy on rows that the tree has not seen.

curve = st.stability_curve(
    st.StableTreeClassifier(max_depth=4), X, y, epsilons=(0, 0.01, 0.1, 0.3, 1), n_seeds=3
)
chosen = curve.epsilon_for(max_accuracy_loss=0.01)
print(f"epsilon {chosen.epsilon:g}: sensitivity {chosen.sensitivity:.4f}")

# %%
# Both panels share epsilon; horizontal lines are the greedy tree, whiskers 95 % intervals.

st.plot(curve)
