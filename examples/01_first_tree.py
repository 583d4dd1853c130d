"""
A first tree
============

Fit a small tree, look at it, and write the report.
"""

# %%
# The data are scikit-learn's breast cancer measurements: 569 tumours, 30 numbers each. A third
# is kept aside, so that the accuracy below is on rows the tree has not seen.

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import steadytree as st

data = load_breast_cancer(as_frame=True)
y = data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(
    data.data, y, test_size=1 / 3, random_state=0, stratify=y
)

model = st.StableTreeClassifier(max_depth=4, epsilon=0, random_state=0).fit(X_train, y_train)
print(f"accuracy on unseen rows: {model.score(X_test, y_test):.3f}")

# %%
# Every learner leaves its result in ``tree_``: flat arrays that cannot be changed.

model.tree_

# %%
# The report shows itself in a notebook, and here. With ``path="report.html"`` it is written to
# a single file that needs no network.

st.report(model, X_test, y_test)

# %%
# The tree travels. As a scikit-learn tree it can be drawn by everything that draws those.

import matplotlib.pyplot as plt
from sklearn.tree import plot_tree

figure, axes = plt.subplots(figsize=(12, 6), layout="constrained")
drawing = plot_tree(
    model.to_sklearn(),
    feature_names=list(X_train.columns),
    class_names=list(model.classes_),
    impurity=False,
    filled=True,
    fontsize=7,
    ax=axes,
)
