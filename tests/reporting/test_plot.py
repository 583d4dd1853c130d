import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.privacy.simulation import Simulation
from steadytree.reporting.plot import Picture
from steadytree.stability.curve import CurvePoint, StabilityCurve


@pytest.fixture(scope="module")
def case():
    X, y = load_iris(return_X_y=True, as_frame=True)
    y = np.where(y == 2, "virginica", "other")
    return X, y, st.StableTreeClassifier(2, 0, random_state=0).fit(X, y)


def things(X, y, model):
    old = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    learner = st.StableTreeClassifier(max_depth=2, random_state=0)
    card = st.RiskScoreClassifier(noise=0.02, max_conditions=2, random_state=0).fit(X, y)
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
    yield st.refits(st.RiskScoreClassifier(noise=0.02, max_conditions=2), X, y, repeats=2)
    yield st.stability_curve(learner, X, y, epsilons=(0, 0.1, 1), n_folds=2, n_seeds=2)
    yield st.collection_facts([model, old])
    yield Simulation((0.1, 1.0), np.array([[0.5, 0.6], [0.8, 0.9]]), 0.4)


def test_everything_that_is_measured_or_learned_is_drawn(case, tmp_path):
    for place, thing in enumerate(things(*case)):
        picture = st.plot(thing)
        assert isinstance(picture, Picture), type(thing)
        assert picture._repr_html_().startswith("<svg")
        assert picture._repr_svg_() == picture.svg
        picture.write(tmp_path / f"{place}.svg")
        root = ElementTree.parse(tmp_path / f"{place}.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert place == 13


def test_a_tree_shows_the_rows_it_is_given(case):
    X, y, model = case
    assert "30 rows" in st.plot(model, X[:30], y[:30]).svg
    assert "150 rows" in st.plot(model).svg


def test_wrong_use_is_refused(case):
    X, _, model = case
    with pytest.raises(ValueError, match="pass both X and y"):
        st.plot(model, X)
    with pytest.raises(ValueError, match="X and y are for trees only, got StabilityCurve"):
        st.plot(curve(0, 1), X)
    with pytest.raises(TypeError, match="a tree is needed"):
        st.plot("tree")
    with pytest.raises(ValueError, match="kind must be one of model, frontier, got 'all'"):
        st.plot(model, kind="all")
    with pytest.raises(TypeError, match="needs a fitted ParetoTreeClassifier, got Stable"):
        st.plot(model, kind="frontier")
    with pytest.raises(ValueError, match="no point with epsilon above 0"):
        st.plot(curve(0))


def texts_of(picture):
    root = ElementTree.fromstring(picture.svg)
    return [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_suffix_decides_what_is_written(case, tmp_path):
    picture = st.plot(case[2], title="<Iris>")
    for suffix, expected in (
        (".svg", picture.svg),
        (".html", picture.html),
        (".TXT", str(picture)),
    ):
        picture.write(tmp_path / f"tree{suffix}")
        assert (tmp_path / f"tree{suffix}").read_text("utf-8").rstrip() == expected.rstrip()
    assert picture.svg in picture.html
    assert "<title>&lt;Iris&gt;</title>" in picture.html
    assert "├─ yes:" in str(picture)
    with pytest.raises(ValueError, match=r"path must end in one of \.svg, \.html, \.txt, got"):
        picture.write(tmp_path / "tree.png")
    with pytest.raises(ValueError, match="has no text form"):
        st.plot(curve(0, 1)).write(tmp_path / "curve.txt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tree.TXT", "tree.html", "tree.svg"]


def test_results_with_a_text_form_print_it(case):
    X, y, model = case
    old = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    changes = st.diff(old, model, X, y)
    assert str(st.plot(changes)) == str(changes)
    assert str(st.plot(curve(0, 1))) == "Picture('Stability curve')"


def curve(*epsilons, removed=1):
    points = [CurvePoint(e, 0.3 / (1 + e), (0.1, 0.4), 0.95, 0.9, (0.88, 0.92)) for e in epsilons]
    return StabilityCurve(tuple(points), removed)


@pytest.mark.parametrize(
    ("removed", "axis"),
    [
        (1, "sensitivity, without one row"),
        (5, "sensitivity, without 5 rows"),
        (0.1, "sensitivity, without 10 % of the rows"),
    ],
)
def test_a_stability_curve_has_two_panels_and_the_greedy_tree(removed, axis):
    with_greedy = texts_of(st.plot(curve(0, 0.1, 1, removed=removed)))
    assert {axis, "accuracy", "stable", "greedy"} <= set(with_greedy)
    assert {f"{a}, {b}" for a in ("stable", "greedy") for b in ("held out", "training")} <= {
        *with_greedy
    }
    assert not any("greedy" in text for text in texts_of(st.plot(curve(0.1, 1))))


def test_a_collection_shows_importances_first_splits_and_thresholds(case):
    X, y, model = case
    stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    facts = st.collection_facts([model, stump])
    texts = texts_of(st.plot(facts))
    assert texts[:4] == ["importance", "first split", "next, if yes", "next, if no"]
    shares = facts.columns()
    assert f"{100 * shares['root'][0]:.0f} %" in texts
    assert f"{100 * shares['importance'][0]:.0f} ± {100 * shares['deviation'][0]:.0f} %" in texts
    drawn = st.plot(facts).svg.count('class="cut"')
    assert drawn == sum(len(facts.thresholds[name]) for name in shares["feature"].tolist())


def test_the_frontier_of_a_pareto_tree_shows_every_candidate(case):
    X, y, _ = case
    model = st.ParetoTreeClassifier(n_trees=6, random_state=0).fit(X, y)
    picture = st.plot(model, kind="frontier")
    n_dots = picture.svg.count("<circle")
    in_legend = 1 + bool((~model.candidates_["on_frontier"]).any())
    assert n_dots == len(model.trees_) + 1 + in_legend  # the chosen tree is drawn again
    assert {"frontier", "chosen", "score on validation rows"} <= set(texts_of(picture))
    assert st.plot(model).title == "Decision tree"
