"""
The most robust tree
====================

Two trees of the same depth: the one that is right most often on the rows as they are, and the one
that stays right most often when values shift. Both are proven best at what they do.
"""

# %%
# A small survey with answers from 0 to 3. Pain tells most, but people often tick the wrong box;
# the measured walking speed and age tell a little less and are seldom wrong.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import steadytree as st

rng = np.random.default_rng(0)
n = 200
ill = rng.random(n) < 0.45


def answers(agreement):
    """Answers from 0 to 3 that are high for the ill with the given probability."""
    high = np.where(rng.random(n) < agreement, ill, ~ill)
    return 2 * high + rng.integers(0, 2, n)


X = pd.DataFrame({"pain": answers(0.94), "mood": answers(0.8), "speed": answers(0.88)})
X["age"] = answers(0.86)
y = np.where(ill, "refer", "wait")
certainty = {"pain": 0.5, "mood": 0.5, "speed": 0.95, "age": 0.98}

# %%
# The search ends with a proof. Beside the objective stands what always giving the most frequent
# answer would keep.

noise = st.Perturbation.from_certainty(certainty, confidence=0.85)
robust = st.RobustTreeClassifier(max_depth=3, perturbation=noise, random_state=0).fit(X, y)
plain = st.RobustTreeClassifier(max_depth=3, random_state=0).fit(X, y)
for model, name in ((plain, "plain"), (robust, "robust")):
    worst = st.certify(model, X, y, noise).worst_case_accuracy
    print(f"{name}: right {model.score(X, y):.3f}, after the worst shift {worst:.3f}, ", end="")
    print(f"proven {model.proven_}, {model.tree_.n_leaves} leaves")
print(f"most frequent answer: {robust.majority_ / len(y):.3f}")

# %%
# Worst-case accuracy of both trees as the adversary's budget grows, and under random shifts.

confidences = np.array([0.999, 0.99, 0.98, 0.97, 0.95, 0.93, 0.9, 0.87, 0.84, 0.8])
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for model, name in ((plain, "plain"), (robust, "robust")):
    kept = [
        st.certify(
            model, X, y, st.Perturbation.from_certainty(certainty, confidence=c)
        ).worst_case_accuracy
        for c in confidences
    ]
    left.plot(-np.log(confidences), kept, marker="o", label=name)
    shifts = st.shift_accuracy(model, X, y, certainty, random_state=0)
    right.hist(shifts.sampled, bins=25, alpha=0.6, label=f"{name}: worst {shifts.worst:.2f}")
left.axhline(robust.majority_ / len(y), color="grey", linestyle="--", label="most frequent answer")
left.set(xlabel="budget per row", ylabel="worst-case accuracy")
right.set(xlabel="accuracy after a random shift", ylabel="shifts out of 5,000")
left.legend()
legend = right.legend()
