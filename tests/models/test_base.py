"""Pickles of learners carry their layout."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import steadytree as st
from steadytree.models.base import LAYOUT_KEY

X, Y = [[0.0], [1.0], [2.0], [3.0]] * 5, ["no", "no", "yes", "yes"] * 5
LEARNERS = [
    st.StableTreeClassifier(max_depth=1, random_state=0),
    st.RobustTreeClassifier(max_depth=1, random_state=0),
    st.RiskScoreClassifier(random_state=0),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: type(each).__name__)
def test_a_pickle_of_another_layout_is_refused_in_one_line(learner):
    model = clone(learner).fit(X, Y)
    for back in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        assert LAYOUT_KEY not in vars(back)
        assert back.get_params() == model.get_params()
    for state in (vars(model), {**vars(model), LAYOUT_KEY: 1}):
        with pytest.raises(ValueError, match=r"another version .* fit the model again") as caught:
            type(model).__new__(type(model)).__setstate__(dict(state))
        assert "\n" not in str(caught.value)
