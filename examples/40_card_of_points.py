"""
A risk score, and how much noise it withstands
==============================================

Two risk scores are fitted to the same rows: one hardened against noise of 5 % of each column's
range, one not. Both are certified exactly on rows that they have not seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import steadytree as st

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = np.where(y == 0, "malignant", "benign")
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.33, random_state=0)

# %%
# The hardened score, as text.
hardened = st.RiskScoreClassifier(noise=0.05, max_conditions=6, random_state=0)
hardened.fit(X_train, y_train)
print(st.plot(hardened))

# %%
# Its sheet; ``st.plot(hardened).write("sheet.html")`` makes a page to print.
st.plot(hardened)

# %%
# How the share of rows that stay right falls with the size of the noise.
plain = st.RiskScoreClassifier(noise=0.0, max_conditions=6, random_state=0).fit(X_train, y_train)
ranges = {name: float(np.ptp(X_train[name])) for name in X_train}
figure, axes = plt.subplots(figsize=(6, 4))
for name, model in (("hardened, noise 0.05", hardened), ("plain", plain)):
    found = st.certify(model, X_test, y_test, st.Perturbation(radius=ranges))
    sizes, shares = found.curve()
    axes.step(sizes, shares, where="post", label=name)
axes.set(xlim=(0, 0.15), ylim=(0, 1), xlabel="noise, as a share of each column's range")
axes.set_ylabel("rows certified right")
axes.legend()
figure.tight_layout()
plt.show()
