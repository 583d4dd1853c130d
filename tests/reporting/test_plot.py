import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.reporting.svg.canvas import Picture


@pytest.fixture(scope="module")
def case():
    X, y = load_iris(return_X_y=True, as_frame=True)
    y = np.where(y == 2, "virginica", "other")
    return X, y, st.StableTreeClassifier(2, 0, random_state=0).fit(X, y)


def things(X, y, model):
    old = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    learner = st.StableTreeClassifier(max_depth=2, random_state=0)
    card = st.RiskScoreClassifier(tau=0.02, max_conditions=2, random_state=0).fit(X, y)
    yield model
    yield model.tree_
    yield old
    yield card
    yield card.card_
    yield st.certify(model, X, y, st.Perturbation(radius=0.1))
    yield st.calibration(model, X, y)
    yield st.compare(["cart", "stable"], X, y, n_folds=2, max_depth=2)
    yield st.diff(old, model, X, y)
    yield st.refits(learner, X, y, repeats=3)
    yield st.stability_curve(learner, X, y, epsilons=(0, 0.1, 1), n_folds=2, n_seeds=2)


def test_everything_that_is_measured_or_learned_is_drawn(case, tmp_path):
    for place, thing in enumerate(things(*case)):
        picture = st.draw(thing)
        assert isinstance(picture, Picture), type(thing)
        assert picture._repr_html_().startswith("<svg")
        picture.write(tmp_path / f"{place}.svg")
        root = ElementTree.parse(tmp_path / f"{place}.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert place == 10


def test_a_tree_shows_the_rows_it_is_given(case):
    X, y, model = case
    assert "30 rows" in st.draw(model, X[:30], y[:30])
    assert "150 rows" in st.draw(model)


def test_wrong_use_is_refused(case):
    X, _, model = case
    with pytest.raises(ValueError, match="pass both X and y"):
        st.draw(model, X)
    with pytest.raises(TypeError, match="a tree is needed"):
        st.draw("tree")
