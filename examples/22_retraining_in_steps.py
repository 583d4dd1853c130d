"""
Retraining in steps
===================

Data come in batches, and each time the tree is retrained. A plain refit gives another tree each
time; staying close changes fewer predictions.
"""

# %%
# Six batches, each adding rows to what is there. The tree in use has seen the earlier ones, so they
# do not judge it.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import steadytree as st

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=1, stratify=y)
ends = np.linspace(100, len(X), 6).astype(int)
settings = {"max_depth": 4, "epsilon": 0, "criterion": "gini", "random_state": 0}

# %%
# Distance to the tree before, and accuracy on rows that neither has seen.

steps = {"plain": [], "staying close": []}
accuracy = {"plain": [], "staying close": []}
for name in steps:
    previous, start = None, 0
    for end in ends:
        kept = previous if name == "staying close" else None
        learner = st.StableTreeClassifier(**settings)
        model = st.RetrainedTreeClassifier(previous=kept, estimator=learner)
        seen = None if kept is None else np.arange(end) < start
        model.fit(X[:end], y[:end], seen=seen)
        if previous is not None:
            apart = st.tree_distance(previous, model.tree_, kind="path", space=X)
            steps[name].append(apart)
        accuracy[name].append(model.score(X_test, y_test))
        previous, start = model.tree_, end
    print(f"{name}: mean distance {np.mean(steps[name]):.2f}, accuracy {accuracy[name][-1]:.3f}")

# %%
# The tree in use stays until it costs too much accuracy, and then changes once.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, colour in (("plain", "#0072B2"), ("staying close", "#D55E00")):
    left.plot(ends[1:], steps[name], "o-", color=colour, label=name)
    right.plot(ends, accuracy[name], "o-", color=colour, label=name)
left.set(xlabel="rows so far", ylabel="path distance to the tree before")
right.set(xlabel="rows so far", ylabel="test accuracy", ylim=(0.8, 1))
left.legend(frameon=False)
plt.show()
