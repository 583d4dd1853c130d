"""
How private, how accurate?
==========================

Before any budget is spent, a simulation on public data of the same size shows what accuracy to
expect at each epsilon. Here breast cancer plays the public data.
"""

# %%
# Bounds are declared from general knowledge, not read off the rows.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from steadytree.data.schema import Schema
from steadytree.privacy.private_tree import PrivateTreeClassifier
from steadytree.privacy.simulation import simulate

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X[["mean radius", "mean texture", "worst perimeter", "worst concave points"]]
schema = Schema(
    bounds={
        "mean radius": (0, 30),
        "mean texture": (0, 40),
        "worst perimeter": (0, 300),
        "worst concave points": (0, 0.4),
    },
    classes=[0, 1],
)

# %%
# A fit says what it promises. The seed is for this page only: it makes the model not private.
model = PrivateTreeClassifier(epsilon=1.0, schema=schema, testing_seed=0).fit(X, y)
print(model.privacy_.guarantee)
print({purpose: round(amount, 3) for purpose, amount in model.privacy_.spent.items()})

# %%
# Accuracy to expect, for data of this size and of ten times this size.
epsilons = [0.05, 0.2, 1, 5]
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for one, n_rows in zip(axes, (569, 5690), strict=True):
    simulate(schema, n_rows, epsilons, (X, np.asarray(y)), repeats=4, random_state=0).plot(one)
    one.set_title(f"{n_rows:,} rows")
plt.show()
