"""
Pictures without further packages
=================================

``st.plot`` plots models and what was measured about them: SVG for notebooks, pages and files.
"""

# %%
# A tree shows the rows it is given, not only those it was fitted on.

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import steadytree as st

data = load_breast_cancer(as_frame=True)
y = data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(data.data, y, random_state=0, stratify=y)
model = st.StableTreeClassifier(max_depth=3, epsilon=0.1, random_state=0).fit(X_train, y_train)
st.plot(model, X_test, y_test)

# %%
# Certified accuracy: each number may be off by a twentieth of its standard deviation, times the
# size of the move.

noise = st.Perturbation(radius=(X_train.std() / 20).to_dict())
st.plot(st.certify(model, X_test, y_test, noise))

# %%
# Thresholds of trees refitted to nine tenths of the rows. Thick lines are those of the tree itself;
# ``write`` saves a picture.

again = st.refits(model, X_train, y_train, repeats=20)
print(*again.measurements(), sep="\n")
st.plot(again)
