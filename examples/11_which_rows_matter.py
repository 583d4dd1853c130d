"""
Which rows matter most?
=======================

Exact leave-one-out measures, for every row, how much the tree would change without it. Rows far to
the left are worth a check: are they correct, and should one row have so much influence?
"""

# %%
# Every row is removed in turn, for the greedy tree and for a steadier one.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import steadytree as st

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
found = {
    name: st.average_sensitivity(
        st.StableTreeClassifier(max_depth=4, epsilon=epsilon, random_state=0), X, y
    )
    for name, epsilon in (("greedy", 0), ("epsilon 0.3", 0.3))
}
for name, one in found.items():
    moved = (one.distances[0] > 0).mean()
    print(f"{name}: {moved:.1%} of the rows change the tree, mean distance {one.value:.4f}")

# %%
# All rows, the most important first. Both curves fall to zero early: most rows do not
# matter.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, one), colour in zip(found.items(), ("#0072B2", "#D55E00"), strict=True):
    share = 100 * (np.arange(len(y)) + 1) / len(y)
    ax.step(share, np.sort(one.distances[0])[::-1], where="pre", label=name, color=colour)
ax.set_xlim(0, 10)
ax.set_xlabel("rows, the most important first (%)")
ax.set_ylabel("distance of the tree without the row")
ax.legend(frameon=False)
plt.show()
