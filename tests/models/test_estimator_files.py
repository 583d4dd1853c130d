"""Skops, pickle and joblib files: read as they were written, and nothing is run untrusted."""

import gzip
import os
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree._base.exceptions import TreeFileError
from steadytree.models.files import _is_sound, _trees_in

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
PIPELINE = make_pipeline(ColumnTransformer([("scale", StandardScaler(), [0, 2])]), clone(TREE))
MODELS = {
    "tree": TREE.fit(X, Y),
    "pipeline": PIPELINE.fit(X, Y),
    "search": GridSearchCV(PIPELINE, {"decisiontreeclassifier__max_depth": [1]}, cv=2).fit(X, Y),
    "forest": RandomForestClassifier(3, random_state=0).fit(X, Y),
    "boosting": HistGradientBoostingClassifier(max_iter=3).fit(X, Y),
}


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("write", [joblib.dump, pickle.dump], ids=["joblib", "pickle"])
def test_pickles_are_read_only_with_trust(name, write, tmp_path):
    path, model = tmp_path / "model.pkl", MODELS[name]
    if write is joblib.dump:
        joblib.dump(model, path, compress=3)
    else:
        path.write_bytes(pickle.dumps(model))
    with pytest.raises(TreeFileError, match="can run any code: pass --trust"):
        st.load(path)
    np.testing.assert_array_equal(st.load(path, trust=True).predict(X), model.predict(X))


def test_nothing_of_an_untrusted_pickle_is_run(tmp_path):
    for name in ("trap.pkl", "trap.json", "trap.joblib"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
        with pytest.raises(TreeFileError, match="a pickle"):
            st.load(tmp_path / name)
    assert not (tmp_path / "sprung").exists()
    with pytest.raises(TreeFileError, match="holds NoneType, not a fitted classifier"):
        st.load(tmp_path / "trap.pkl", trust=True)
    assert (tmp_path / "sprung").exists()  # the trap works


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps({"a": 1}), "holds dict, not a fitted classifier"),
        (pickle.dumps(DecisionTreeClassifier), "holds DecisionTreeClassifier, not a fitted"),
        (pickle.dumps(MODELS["tree"])[:-40], "cannot be read"),
        (pickle.dumps(MODELS["tree"]).replace(b"sklearn.tree", b"sklearn.twig"), "needs the pack"),
        (b"\x80\x02csteadytree.learn.stable\nStable\n.", "another version of steadytree.* fit the"),
        (b"not a pickle at all", "cannot be read"),
        (gzip.compress(b"neither", mtime=0), "cannot be read"),
    ],
)
def test_bad_pickles_are_refused_in_one_line(content, message, tmp_path):
    path = tmp_path / "model.pkl"
    path.write_bytes(content)
    with pytest.raises(TreeFileError, match=message) as caught:
        st.load(path, trust=True)
    assert "\n" not in str(caught.value)


def test_another_version_of_scikit_learn_is_one_line(tmp_path, monkeypatch):
    path = tmp_path / "model.pkl"
    monkeypatch.setattr("sklearn.base.__version__", "1.2.0")
    path.write_bytes(pickle.dumps(MODELS["tree"]))
    monkeypatch.undo()
    with pytest.raises(
        TreeFileError, match=r"fitted with scikit-learn 1\.2\.0, and this is"
    ) as one:
        st.load(path, trust=True)
    assert "\n" not in str(one.value)


def test_public_functions_take_a_path(tmp_path):
    path = tmp_path / "model.tree.json"
    st.as_tree(MODELS["tree"], X).save(path)
    assert st.report(path, X, Y, quick=True).data["kind"] == "tree"
    assert st.diff(path, MODELS["tree"], X).is_same
    noise = st.Perturbation({"x0": 1.0})
    assert st.certify(str(path), X, Y, noise).right.all()
    pickled = tmp_path / "model.pkl"
    pickled.write_bytes(pickle.dumps(MODELS["tree"]))
    with pytest.raises(TreeFileError, match="load\\(path, trust=True\\)"):
        st.report(pickled, X, Y)


@pytest.mark.interop
@pytest.mark.parametrize("name", MODELS)
def test_skops_files_are_read_without_trust(name, tmp_path):
    skops = pytest.importorskip("skops.io")
    path = tmp_path / "model.skops"
    skops.dump(MODELS[name], path)
    if name == "boosting":  # whose nodes could crash scikit-learn, and are not checked
        with pytest.raises(TreeFileError, match=r"not trusted: sklearn\..*TreePredictor"):
            st.load(path)
    found = st.load(path, trust=name == "boosting")
    np.testing.assert_array_equal(found.predict(X), MODELS[name].predict(X))


@pytest.mark.interop
def test_types_that_skops_does_not_trust_are_named(tmp_path):
    skops, path = pytest.importorskip("skops.io"), tmp_path / "model.skops"
    forest = RandomForestClassifier(2).fit(X, Y)
    forest.extra = st.Measurement("a", 1.0, "b")
    skops.dump(forest, path)
    with pytest.raises(TreeFileError, match=r"not trusted: steadytree\..*Measurement\. Nothing"):
        st.load(path)
    assert st.load(path, trust=True).extra.value == 1.0
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(TreeFileError):
        st.load(path)


@pytest.mark.interop
@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_boosting_of_other_packages_is_a_black_box(package, tmp_path):
    module = pytest.importorskip(package)
    name = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier"}[package]
    quiet = {"verbose": -1} if package == "lightgbm" else {}
    model = getattr(module, name)(n_estimators=3, **quiet).fit(X, Y)
    joblib.dump(model, tmp_path / "model.joblib")
    found = st.report(st.load(tmp_path / "model.joblib", trust=True), X, Y, quick=True)
    assert found.data["kind"] == "black_box"
    accuracy = found.data["readings"]["accuracy"][0]["value"]
    assert accuracy == (model.predict(X) == Y).mean()


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
@pytest.mark.parametrize("damage", ["none", "beyond the end", "a circle", "no such column"])
def test_trees_with_nodes_that_would_crash_are_noticed(kind, damage):
    """skops lets anybody write such files; scikit-learn walks them in C without a look."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    options = {} if kind is DecisionTreeClassifier else {"n_estimators": 3}
    model = make_pipeline(StandardScaler(), kind(random_state=0, **options))
    model.fit(X, (X[:, 0] > 0).astype(int) ^ (X[:, 1] > 0))
    trees = _trees_in({"inside": [model]})
    assert len(trees) == options.get("n_estimators", 1)
    nodes = trees[-1].__getstate__()["nodes"]
    field, value = {
        "none": ("left_child", nodes["left_child"][0]),
        "beyond the end": ("left_child", 2**30),
        "a circle": ("right_child", 0),
        "no such column": ("feature", 3),
    }[damage]
    state = trees[-1].__getstate__()
    state["nodes"] = nodes.copy()
    state["nodes"][field][0] = value
    trees[-1].__setstate__(state)
    assert all(map(_is_sound, trees)) == (damage == "none")
