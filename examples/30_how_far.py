"""
How far can inputs move?
========================

A tree is right on 9 rows of 10. How many of those answers would survive if the measurements were
a little off?
"""

# %%
# Any fitted scikit-learn tree will do. The perturbation is in the features' own units: here each
# of the ten mean values of a cell may be off by a tenth of its standard deviation.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import steadytree as st

data = load_breast_cancer(as_frame=True)
X, y = data.data.filter(like="mean"), data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
deep = DecisionTreeClassifier(random_state=0).fit(X_train, y_train)
shallow = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X_train, y_train)

noise = st.Perturbation(radius=(0.1 * X_train.std()).to_dict())
certificate = st.certify(deep, X_test, y_test, noise)
print(certificate)

# %%
# The smallest moves that turn a right answer wrong, in words.

for example in certificate.counterexamples(5):
    print(example)

# %%
# The certified accuracy at every size of move; 1 is a tenth of a standard deviation. The dashed
# lines answer "benign" for everyone: no move can lower that.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for model, name in ((deep, "grown in full"), (shallow, "depth 2")):
    found = st.certify(model, X_test, y_test, noise)
    sizes, shares = found.curve()
    axes.step(np.append(sizes, 10), np.append(shares, shares[-1]), where="post", label=name)
axes.axhline(found.baseline, color="grey", linestyle="--", label="most frequent answer")
axes.set(xlim=(0, 6), ylim=(0, 1), xlabel="size of move", ylabel="certified accuracy")
legend = axes.legend()
