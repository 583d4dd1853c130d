"""
Is my data separable?
=====================

A small robust model can only exist where rows of different classes are apart. How far is each row
from the nearest row of another class, and how many rows would have to be dropped?
"""

# %%
# Distances are l_inf with every column scaled to its range.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris

import steadytree as st

data = {
    "breast cancer": load_breast_cancer(return_X_y=True, as_frame=True),
    "iris": load_iris(return_X_y=True, as_frame=True),
}
found = {name: st.separation(X, y) for name, (X, y) in data.items()}
print(found["breast cancer"])

# %%
# Which rows would have to go for a radius of 0.05?

asked = st.separation(*data["iris"], r=0.05)
print(f"iris, r = 0.05: drop {len(asked.dropped)} of {asked.n_rows} rows: {asked.dropped.tolist()}")

# %%
# The share of rows whose nearest row of another class is at least that far away. No model can be
# both correct and robust on two such rows at a radius of more than half their distance.

figure, ax = plt.subplots(figsize=(6.6, 4), layout="constrained")
for (name, one), colour in zip(found.items(), ("#0072B2", "#D55E00"), strict=True):
    distance = np.sort(one.nearest_other_class)
    share = 100 * (1 - np.arange(len(distance)) / len(distance))
    ax.step(distance, share, where="post", label=name, color=colour)
ax.set_xlabel("distance to the nearest row of another class")
ax.set_ylabel("rows at least so far away (%)")
ax.legend(frameon=False)
plt.show()
