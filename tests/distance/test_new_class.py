"""Trees and rows whose classes differ: what is new, what is gone, and who is right."""

import json
import pathlib
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import steadytree
from steadytree.data.labels import match_labels, unite_classes
from steadytree.distance.tree_distance import tree_distance
from steadytree.models.boxes import with_classes
from steadytree.reporting.diff import diff
from steadytree.stability.retrain import RetrainedTreeClassifier
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.models.trees import random_rows, random_tree


def rows_of_two_quarters():
    """Rows with the classes of two quarters: "c" comes in the second."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 1, (300, 2)), columns=["p", "q"])
    first = np.where(X["p"] > 0.5, "b", "a")
    return X, first, np.where(X["q"] > 0.7, "c", first)


@pytest.fixture(scope="module")
def quarters():
    X, first, second = rows_of_two_quarters()
    learner = StableTreeClassifier(3, 0, random_state=0, criterion="count", merge_leaves=True)
    old, new = (learner.fit(X, y).tree_ for y in (first, second))
    return X, first, second, old, new


def renamed(tree, classes):
    return replace(tree, classes=np.array(classes))


@given(st.integers(0, 2**32 - 1))
def test_rows_are_counted_as_by_hand(seed):
    rng = np.random.default_rng(seed)
    names = [*"abcdef"]
    old = random_tree(rng, n_leaves=6, n_classes=3)
    old, new = (
        renamed(tree, rng.choice(names[:5], 3, replace=False)) for tree in (old, regrown(rng, old))
    )
    X = random_rows(rng, old, 60)
    y = rng.choice(names, 60)
    found = diff(old, new, X, y)
    was, now = old.predict(X), new.predict(X)
    assert found.rows.flipped.tolist() == [k for k in range(60) if was[k] != now[k]]
    assert found.rows.old_accuracy == sum(was == y) / 60
    assert found.rows.new_accuracy == sum(now == y) / 60
    assert found.rows.mended == sum((was != y) & (now == y))
    assert found.rows.broken == sum((was == y) & (now != y))
    assert sum(flow[2] for flow in found.rows.flows if flow[3]) == len(found.rows.flipped)
    by_label = {one.label: one for one in found.classes}
    known, answered = (
        [set(tree.classes.tolist()) for tree in (old, new)],
        [set(tree.classes[tree.label[tree.is_leaf]].tolist()) for tree in (old, new)],
    )
    expected = dict.fromkeys(known[1] - known[0], "new")
    expected |= dict.fromkeys(answered[0] - answered[1], "gone")
    expected |= dict.fromkeys(set(y.tolist()) - known[0] - known[1], "unknown")
    assert {label: one.status for label, one in by_label.items()} == expected
    for label, one in by_label.items():
        assert one.n_rows == sum(y == label)
        assert one.n_right == sum((y == label) & (now == y))
        assert one.answered == (label in answered[1])
    json.dumps(found.formatted)
    ElementTree.fromstring(found.svg)


def regrown(rng, tree):
    """A tree over the same columns, with other answers."""
    shares = rng.dirichlet([0.3] * len(tree.classes), tree.n_nodes)
    return replace(tree, value=shares)


def test_the_new_class_is_named_wherever_the_change_is_told(quarters):
    X, _, y, old, new = quarters
    found = diff(old, new, X, y)
    n_rows = int((y == "c").sum())
    n_right = int(((y == "c") & (new.predict(X) == "c")).sum())
    said = (
        f"Class “c” is new: the old tree never predicts it. {n_rows} of 300 rows have it; "
        f"{n_right} of them are predicted correctly now."
    )
    assert found.formatted["classes_text"] == [said]
    assert str(found).splitlines()[1] == said
    drawn = [text.text for text in ElementTree.fromstring(found.svg).iter() if text.text]
    assert said in drawn
    assert found.to_dict()["classes"] == [
        {"label": "c", "status": "new", "answered": True, "n_rows": n_rows, "n_right": n_right}
    ]
    page = steadytree.report(new, X, y, previous=old)
    assert f"<strong>{said}</strong>" in page.html
    assert said in " ".join(str(page).split())


def test_lines_on_classes_stand_above_the_legend_and_inside_the_picture(quarters):
    X, _, y, old, new = quarters
    root = ElementTree.fromstring(diff(old, renamed(new, ["a", "b" * 300, "c"]), X, y).svg)
    width = float(root.get("width"))
    shift = float(root.find(".//{*}g").get("transform").split()[1].rstrip(")"))
    texts = list(root.iter("{http://www.w3.org/2000/svg}text"))
    heights = [float(one.get("y")) + shift for one in texts[:4]]
    assert heights == sorted(set(heights)), "headline, three classes"
    assert heights[0] > 10
    legend = next(one for one in texts if one.text == "same")
    assert float(legend.get("y")) + shift > heights[-1] + 10
    assert all(len(one.text) * 4 < width for one in texts[:4])


def test_a_class_that_is_gone_and_one_that_neither_tree_knows(quarters):
    X, first, second, old, new = quarters
    assert diff(new, old, X, first).formatted["classes_text"] == [
        "Class “c” was removed: no leaf of the new tree predicts it. 0 of 300 rows have it."
    ]
    y = np.where(np.arange(300) == 7, "d", first)
    found = diff(old, old, X, y)
    assert found.formatted["classes_text"] == [
        "Class “d” is in the rows but unknown to both trees. 1 of 300 rows has it."
    ]
    assert found.rows.old_accuracy == (old.predict(X) == y).mean()
    assert diff(old, new).formatted["classes_text"] == [
        "Class “c” is new: the old tree never predicts it."
    ]
    assert diff(old, old, X, first).formatted["classes_text"] == []
    kept = with_classes(old, np.array(["a", "b", "c"]))
    said = diff(old, kept, X, second).formatted["classes_text"][0]
    assert said.startswith("Class “c” is new: neither tree ever predicts it. ")


def test_many_classes_are_counted(quarters):
    X, _, _, old, _ = quarters
    y = np.array([f"k{k % 40}" for k in range(300)])
    said = diff(old, old, X, y).formatted["classes_text"]
    assert len(said) == 9
    assert said[-1] == "32 more classes are new, removed or unknown to both."


def test_numbers_that_a_new_text_label_turns_into_text_are_the_same_classes(quarters):
    X, _, y, old, new = quarters
    numbers = renamed(old, [0, 1])
    texts = renamed(new, ["0", "1", "unclear"])
    told = np.select([y == "a", y == "b"], ["0", "1"], "unclear")
    found, plain = diff(numbers, texts, X, told), diff(old, new, X, y)
    assert [one.label for one in found.classes] == ["unclear"]
    assert found.rows.to_dict() == plain.rows.to_dict()
    assert found.distance == plain.distance
    back = diff(texts, numbers, X, np.where(y == "b", 1, 0))
    assert [(one.label, one.status) for one in back.classes] == [("unclear", "gone")]
    assert back.rows.new_accuracy == (numbers.predict(X) == np.where(y == "b", 1, 0)).mean()


@pytest.mark.parametrize("kind", ["path", "node", "node-features"])
def test_a_class_that_one_tree_lacks_differs_from_all_of_its_classes(quarters, kind):
    _, _, _, old, _ = quarters
    other = renamed(old, ["a", "new"])
    expected = tree_distance(old, renamed(old, ["b", "a"]), kind)
    assert old.n_leaves == 2
    one = tree_distance(old, other, kind)
    assert one == tree_distance(other, old, kind)
    assert one == (1.0 if kind == "path" else expected / 2)  # one leaf of two has another label
    shares = tree_distance(old, other, "path", leaves="distribution")
    moved = old.value[old.is_leaf][:, 1].sum()  # all share of "b" went to "new"
    assert shares == pytest.approx(moved)


@pytest.mark.parametrize(
    "learner",
    [
        RetrainedTreeClassifier(estimator=StableTreeClassifier(3, 0, random_state=0)),
        RetrainedTreeClassifier(n_repeats=1, scoring="roc_auc"),
        RetrainedTreeClassifier(n_repeats=1, scoring="log_loss"),
    ],
)
def test_retraining_learns_the_new_class_and_keeps_the_old_ones(quarters, learner):
    X, _, y, old, _ = quarters
    model = learner.set_params(previous=old).fit(X, y)
    assert model.classes_.tolist() == model.tree_.classes.tolist() == ["a", "b", "c"]
    assert model.score(X, y) > 0.9
    assert (model.predict(X) == "c").any()
    np.testing.assert_array_equal(
        model.classes_[model.predict_proba(X).argmax(1)], model.predict(X)
    )


@pytest.mark.parametrize(
    "learner",
    [
        RetrainedTreeClassifier(estimator=StableTreeClassifier(3, 0, random_state=0)),
        RetrainedTreeClassifier(n_repeats=1),
        RetrainedTreeClassifier(n_repeats=1, scoring="roc_auc"),
    ],
)
@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_a_class_without_new_rows_stays_a_class(quarters, learner, loss):
    X, y, _, _, new = quarters
    previous = renamed(new, ["b", "c", "a"])  # so that the class without rows comes first
    y = np.where(y == "a", "b", "c")
    model = learner.set_params(previous=previous, max_score_loss=loss).fit(X, y)
    assert sorted(model.classes_.tolist()) == ["a", "b", "c"]
    assert model.predict_proba(X).shape == (300, 3)
    if loss:  # anything goes, so the nearest tree is the one in use
        np.testing.assert_array_equal(model.predict(X), previous.predict(X))
    else:
        assert model.score(X, y) > 0.9


def test_ties_of_the_tree_in_use_fall_as_before(quarters):
    X, y, _, old, _ = quarters
    shares = np.zeros((old.n_nodes, 3))
    shares[:, [0, 1]] = 0.5
    tied = replace(old, classes=np.array(["a", "b", "z"]), value=shares)
    y = np.where(y == "a", "b", "c")
    learner = RetrainedTreeClassifier(tied, max_score_loss=np.inf, n_repeats=1).fit(X, y)
    assert set(learner.predict(X)) == {"a"}
    assert learner.classes_.tolist() == ["a", "b", "c", "z"]


def test_labels_in_another_form(quarters):
    X, first, second, old, _ = quarters
    text = np.select([second == "a", second == "b"], ["0", "1"], "unclear")
    model = RetrainedTreeClassifier(renamed(old, [0, 1]), n_repeats=1).fit(X, text)
    assert model.classes_.tolist() == ["0", "1", "unclear"]
    with pytest.raises(ValueError, match=r"one of them is text.*use one form for all labels"):
        RetrainedTreeClassifier(old).fit(X, np.where(first == "a", 0, 1))


def test_places_and_unions():
    assert match_labels([1.0, 2.0, 9.0], ["2", "1"]) == [1, 0, -1]
    assert match_labels([1, "x"], [1, "1"]) == [0, -1]
    assert unite_classes(np.array([2, 1]), np.array([0, 2])).tolist() == [2, 1, 0]
    assert unite_classes(np.array([1, 5]), np.array([0, 9])).tolist() == [0, 1, 5, 9]
    assert unite_classes(np.array(["no"]), np.array(["maybe"])).tolist() == ["maybe", "no"]


def test_commands_on_a_file_with_a_new_class(run, quarters):
    X, first, second, *_ = quarters
    X.assign(y=second).to_csv("new.csv", index=False)
    StableTreeClassifier(3, 0, random_state=0).fit(X, first).save("old.tree.json")
    options = ("--target", "y", "--previous", "old.tree.json")
    code, out, err = run("retrain", "new.csv", *options, "--picture", "changes.svg")
    assert (code, err) == (0, "")
    assert "Class “c” is new: the old tree never predicts it." in out
    assert "Class “c” is new" in pathlib.Path("changes.svg").read_text("utf-8")
    trees = ("old.tree.json", "retrained.tree.json", "--data", "new.csv", "--target", "y")
    code, out, _ = run("diff", *trees, "--json")
    assert code == 0
    assert [one["status"] for one in json.loads(out)["classes"]] == ["new"]
    judged = ("--model", "retrained.tree.json", "--previous", "old.tree.json", "--quick")
    assert run("report", "new.csv", "--target", "y", *judged)[0] == 0
    assert "Class “c” is new" in pathlib.Path("report.html").read_text("utf-8")


def test_retrain_on_numbers_that_were_text_beside_a_class_that_is_gone(run, quarters):
    X, first, second, *_ = quarters
    text = np.select([second == "a", second == "b"], ["0", "1"], "unclear")
    StableTreeClassifier(3, 0, random_state=0).fit(X, text).save("old.tree.json")
    X.assign(y=np.where(first == "a", 0, 1)).to_csv("new.csv", index=False)
    options = ("--target", "y", "--previous", "old.tree.json")
    code, out, err = run("retrain", "new.csv", *options)
    assert (code, err) == (0, "")
    assert "Class “unclear” was removed" in out
