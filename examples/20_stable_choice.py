"""
Choosing a stable tree
======================

Many trees predict about equally well. Some of them would look much the same had a few other rows
been at hand, others would not. This example chooses one of the former.
"""

# %%
# A third of the rows is kept for the end. Nothing below looks at it before.

from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import steadytree as st

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=1 / 3, random_state=0, stratify=y
)

# %%
# Two collections of trees are learned from bootstrap samples, the first from half of the rows. A
# tree of the second is stable if it is close to those of the first. Of the trees on the Pareto
# frontier of distance and validation score, the one at its knee is taken.

model = st.ParetoTreeClassifier(n_trees=100, random_state=0).fit(X_train, y_train)
print(f"{len(model.frontier_)} trees on the frontier; chosen: {model.tree_}")
print(f"AUC on unseen rows: {roc_auc_score(y_test, model.predict_proba(X_test)[:, 1]):.3f}")

# %%
# What do all hundred trees agree on? Few features are used at the root, and many somewhere.

facts = st.collection_facts(model.trees_)
for place, feature, share in facts.most_chosen():
    print(f"{place:6} {feature:25} {share:4.0%}")

# %%
st.plot(facts)

# %%
# And the frontier:

st.plot(model, kind="frontier")
