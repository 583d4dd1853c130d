import json
import os
import pathlib
import pickle
import re
import struct
from dataclasses import replace

import hypothesis
import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree._base.documents import canonical_json, convert
from steadytree._base.exceptions import TreeFileError
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.boxes import rename
from steadytree.models.documents import (
    MAX_VALUES,
    ScorecardFile,
    TreeFile,
    json_schema,
    tree_from_dict,
    tree_to_dict,
)
from steadytree.models.files import _hash, load, model_hash, save
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from tests.models.trees import random_rows, random_tree, trees


@pytest.fixture
def tree():
    return random_tree(np.random.default_rng(1), n_leaves=6)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "q2.tree.json"


@pytest.fixture
def content(tree):
    """The tree part of a file, to be damaged."""
    return json.loads(json.dumps(tree_to_dict(tree)))


def leaf(classes):
    """A tree of one leaf with these labels."""
    n = len(classes)
    space = FeatureSpace.declare(bounds={"a": (0, 1)})
    return Tree(space, classes, [-1], [np.nan], [-1], [-1], [np.full(n, 1 / n)], [1])


def write_valid_hash(path, content, **other):
    """A file whose hash fits whatever it holds."""
    whole = {"format": "steadytree-tree", "version": 1, "sha256": _hash(content), "tree": content}
    path.write_text(json.dumps(whole | other), "utf-8")


@hypothesis.settings(max_examples=200)
@hypothesis.given(tree=trees())
def test_a_tree_comes_back_identical(tree, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "round.tree.json"
    save(tree, path)
    back = load(path)
    assert back == tree
    for name in ("feature", "threshold", "left", "right", "value", "weight", "missing_left"):
        np.testing.assert_array_equal(getattr(back, name), getattr(tree, name), strict=True)
    np.testing.assert_array_equal(back.subset, tree.subset, strict=True)
    assert [type(label) for label in back.classes.tolist()] == [
        type(label) for label in tree.classes.tolist()
    ]
    rows = random_rows(np.random.default_rng(0), tree, 30)
    np.testing.assert_array_equal(back.apply(rows), tree.apply(rows))


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["a", "b"], dtype=object),
        np.array([1, 2], dtype=np.int16),
        np.array([np.int64(5), np.float64(2.5)], dtype=object),
        np.array([1, "1"], dtype=object),
        np.array([1.0, 2.0], dtype=np.float32),
        np.array([2**70, 1], dtype=object),
        np.array(["tab\t", "line\nend", "\u2028"]),
    ],
)
def test_labels_keep_value_and_type(classes, path):
    save(leaf(classes), path)
    plain = [each.item() if isinstance(each, np.generic) else each for each in classes.tolist()]
    back = load(path).classes.tolist()
    assert back == plain
    assert list(map(type, back)) == list(map(type, plain))


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["2024-01-01"], dtype="datetime64[ns]"),
        np.array([b"a", b"b"]),
        np.array([None, "a"], dtype=object),
        np.array([np.inf, 0.0]),
        np.array([(1, 2), "a"], dtype=object),
    ],
)
def test_labels_that_are_no_json_are_refused(classes, path):
    with pytest.raises(ValueError, match="class label"):
        save(leaf(classes), path)
    assert not path.exists()


def test_numbers_come_back_bit_for_bit(path):
    thresholds = [0.1, np.float32(0.1), 5e-324, -1.7976931348623157e308, 1 / 3, -0.0, np.inf]
    space = FeatureSpace.declare(bounds={"a": (-1e300, 1e300)})
    for threshold in thresholds:
        value = [[0.1, 0.9], [1 / 3, 2 / 3], [1e-17, 1]]
        nodes = [0, -1, -1], [threshold, np.nan, np.nan], [1, -1, -1], [2, -1, -1]
        tree = Tree(space, [0, 1], *nodes, value, [0.1 + 0.2, 1e-300, 1e300])
        save(tree, path)
        assert load(path) == tree


def test_the_file_reads_well(tree, path):
    save(tree, path)
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) == tree.n_nodes + len(tree.space) + 13
    assert sum('"at_most"' in line or '"in"' in line for line in lines) == (~tree.is_leaf).sum()
    assert "größe" in text


def test_a_scikit_learn_tree_is_saved_as_ours(path):
    model = DecisionTreeClassifier(random_state=0).fit([[0.1], [0.7]], ["no", "yes"])
    save(model, path)
    assert load(path).predict([[0.2]]) == ["no"]
    assert load(path).single_precision


# ---- files and hashes are those of version 1, byte by byte ----
def test_canonical_text_of_random_floats_is_that_of_the_standard_library():
    """Hashes in files hang on how numbers are written: 1e-07, where msgspec writes 1e-7."""
    bits = np.random.default_rng(0).integers(0, 2**64, 20_000, dtype=np.uint64)
    found = [struct.unpack("<d", int(each).to_bytes(8, "little"))[0] for each in bits]
    floats = [each for each in found if np.isfinite(each)] + [1e-7, 1e22, 1e16, -0.0, 5e-324, 100.0]
    assert canonical_json(floats) == f"[{','.join(map(repr, floats))}]".encode()
    assert canonical_json({"b": "ü", "a": [True, None]}) == b'{"a":[true,null],"b":"\\u00fc"}'


@pytest.mark.parametrize("name", ["patients.tree", "patients.card", "iris.card"])
def test_files_of_version_1_are_written_as_before(name, tmp_path):
    before = pathlib.Path(__file__).parents[1] / "golden" / "formats" / f"{name}.json"
    save(load(before), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == before.read_bytes()
    assert model_hash(load(before)) == json.loads(before.read_text("utf-8"))["sha256"]
    whole = TreeFile if name.endswith("tree") else ScorecardFile
    assert convert(json.loads(before.read_text("utf-8")), whole).sha256 == model_hash(load(before))


def test_the_published_json_schema_is_up_to_date():
    path = pathlib.Path(__file__).parents[2] / "docs" / "model_files.schema.json"
    assert json.loads(path.read_text("utf-8")) == json_schema()


# ---- files that are not trees ----
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_refused_with_what_to_do(protocol, path, tree):
    path.write_bytes(pickle.dumps(tree, protocol))
    with pytest.raises(TreeFileError, match=r"a pickle, .* pass --trust") as caught:
        load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["patients.tree", "iris.card"])
@pytest.mark.parametrize("with_hash", [False, True])
def test_mutated_bytes_are_refused_in_one_line(name, with_hash, tmp_path):
    """500 mutations each; what still loads is the same model, or fits its hash by construction."""
    whole = (pathlib.Path(__file__).parents[1] / "golden" / "formats" / f"{name}.json").read_bytes()
    part, rng, path = name.split(".")[1], np.random.default_rng(1), tmp_path / "m.json"
    path.write_bytes(whole)
    model, refused = load(path), []
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            at, count = rng.integers(len(data)), rng.integers(0, 3)
            data[at : at + count] = rng.choice(list(b'0123456789eE+-.,:[]{}" aA\n\xff'), 1).tolist()
        path.write_bytes(bytes(data))
        if with_hash:  # so that what is behind the hash is reached
            try:
                content = json.loads(data)
                content["sha256"] = _hash(content[part])
            except (ValueError, KeyError, TypeError):
                continue
            path.write_text(json.dumps(content), "utf-8")
        try:
            assert with_hash or load(path) == model
            load(path)
        except TreeFileError as error:
            refused.append(str(error))
    assert len(refused) > (50 if with_hash else 400)
    for message in refused:
        assert message.startswith(str(path))
        assert "\n" not in message
        assert len(message) < len(str(path)) + 400


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not whole JSON"),
        (b"hello", "not whole JSON"),
        (b"\xff\xfe\x00", "not text"),
        (b"[1, 2]", "not a model file of steadytree"),
        (b"null", "not a model file of steadytree"),
        (b'{"format": "other"}', "not a model file of steadytree"),
        (b'{"format": "steadytree-tree"}', "must hold format, version 1 to 2, sha256 and tree"),
        (b'{"format": "steadytree-tree", "version": true}', "must hold format, version 1"),
        (b'{"format": "steadytree-tree", "version": 3}', "upgrade"),
        (b'{"format": "steadytree-tree", "version": 1}', "must hold format, version 1"),
        (b'{"format": "a", "format": "steadytree-tree"}', "appears twice"),
        (b'{"format": NaN}', "NaN is not valid JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "not strict JSON"),
        (b"cos\nsystem\n(S'touch hacked'\ntR.", "not whole JSON"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_what_is_no_tree_file_is_refused_in_one_line(data, message, path):
    path.write_bytes(data)
    with pytest.raises(TreeFileError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_every_cut_off_file_is_refused(tree, path):
    save(tree, path)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 3, 97):
        path.write_bytes(whole[:length])
        with pytest.raises(TreeFileError, match="not whole JSON"):
            load(path)


def test_every_changed_digit_is_noticed(tree, path):
    save(tree, path)
    text = path.read_text(encoding="utf-8")
    start = text.index('"tree"')
    places = [match.start() for match in re.finditer(r"\d", text) if match.start() > start]
    for place in places[::7]:
        digit = "1" if text[place] != "1" else "2"
        path.write_text(text[:place] + digit + text[place + 1 :], encoding="utf-8")
        with pytest.raises(TreeFileError, match=r"does not fit its hash|not whole JSON"):
            load(path)


def test_spaces_do_not_matter(tree, path):
    save(tree, path)
    path.write_text(
        "\ufeff" + json.dumps(json.loads(path.read_text(encoding="utf-8")), indent=1), "utf-8"
    )
    assert load(path) == tree


def set_in(place, value):
    def change(content):
        inside = content
        for key in place[:-1]:
            inside = inside[key]
        inside[place[-1]] = value

    return change


def drop(*place):
    def change(content):
        inside = content
        for key in place[:-1]:
            inside = inside[key]
        del inside[place[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("classes"), "missing required field 'classes'"),
        (set_in(["more"], 1), "unknown field 'more'"),
        (set_in(["classes"], "ab"), "classes: expected a list, got text"),
        (set_in(["classes", 0], [1]), r"classes\[0\]: expected .* or text, got a list"),
        (set_in(["classes", 0], "yes"), "labels that differ"),
        (set_in(["single_precision"], 1), "single_precision: expected true or false"),
        (set_in(["features"], []), "at least one column"),
        (set_in(["features", 0], 3), r"features\[0\]: expected an object"),
        (
            set_in(["features", 0, "kind"], "picture"),
            r"features\[0\].kind: invalid enum value 'picture'",
        ),
        (set_in(["features", 0, "name"], 3), r"features\[0\].name: expected text, got an integer"),
        (
            set_in(["features", 0, "missing"], "no"),
            r"features\[0\].missing: expected true or false",
        ),
        (drop("features", 0, "name"), r"features\[0\]: .*missing required field 'name'"),
        (set_in(["nodes"], {}), "nodes: expected a list, got an object"),
        (set_in(["nodes"], []), "at least one node"),
        (set_in(["nodes", 0], None), r"nodes\[0\]: expected an object, got null"),
        (drop("nodes", 0, "left"), "has feature, "),
        (drop("features", 0, "kind"), "missing required field 'kind'"),
        (drop("nodes", 0, "feature"), "a leaf has weight and value alone"),
        (drop("nodes", 0, "weight"), r"nodes\[0\]: .*missing required field 'weight'"),
        (set_in(["nodes", 0, "weight"], -1), "weight must be finite and not negative"),
        (set_in(["nodes", 0, "weight"], "inf"), r"nodes\[0\].weight: expected a number, got text"),
        (set_in(["nodes", 0, "weight"], True), r"nodes\[0\].weight: expected a number, got true"),
        (set_in(["nodes", 0, "weight"], 10**400), r"nodes\[0\].weight: number out of range"),
        (set_in(["nodes", 0, "value"], [1]), "one number for each class"),
        (set_in(["nodes", 0, "value"], [0, 0, 0]), "must sum to 1"),
        (set_in(["nodes", 0, "feature"], "nothing"), "feature does not know 'nothing'"),
        (set_in(["nodes", 0, "feature"], ["a"]), r"nodes\[0\].feature: expected text, got a list"),
        (set_in(["nodes", 0, "left"], 0), "number of another node"),
        (set_in(["nodes", 0, "left"], -1), "number of another node"),
        (set_in(["nodes", 0, "left"], 10**30), "number of another node"),
        (set_in(["nodes", 0, "left"], 1.0), r"nodes\[0\].left: expected an integer, got a number"),
        (set_in(["nodes", 0, "left"], True), r"nodes\[0\].left: expected an integer, got true"),
        (set_in(["nodes", 0, "missing"], "up"), r"nodes\[0\].missing: invalid enum value 'up'"),
        (set_in(["nodes", 0, "run"], "code"), r"nodes\[0\]: .*unknown field 'run'"),
    ],
)
def test_what_is_no_tree_is_refused(change, message, content, path):
    change(content)
    with pytest.raises(ValueError, match=message):
        tree_from_dict(content)
    write_valid_hash(path, content)
    with pytest.raises(TreeFileError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_splits_are_checked(content, tree):
    splits = [k for k in range(tree.n_nodes) if tree.left[k] > 0]
    by_group = next(k for k in splits if "in" in content["nodes"][k])
    by_number = next(k for k in splits if "at_most" in content["nodes"][k])
    for node, key, value, message in [
        (by_group, "in", [], "not empty"),
        (by_group, "in", ["no such"], "does not know 'no such'"),
        (by_group, "in", "c0", "expected a list"),
        (by_number, "at_most", "nan", "at_most: invalid enum value 'nan'"),
        (by_number, "in", ["c0"], "has feature, at_most, missing, left, right"),
        (by_number, "at_most", None, "at_most: expected a number or text, got null"),
    ]:
        damaged = json.loads(json.dumps(content))
        damaged["nodes"][node][key] = value
        with pytest.raises(ValueError, match=message):
            tree_from_dict(damaged)


def test_two_parents_and_loops_are_refused(content):
    children = content["nodes"][0]["left"], content["nodes"][0]["right"]
    set_in(["nodes", 0, "left"], children[1])(content)
    with pytest.raises(ValueError, match="exactly one parent"):
        tree_from_dict(content)


def test_too_many_nodes_are_refused_before_memory_is_taken(content):
    content["features"][0] = {
        "name": "many",
        "kind": "categorical",
        "missing": False,
        "categories": [str(k) for k in range(1000)],
    }
    content["nodes"] = [content["nodes"][0]] * (MAX_VALUES // 1000)
    with pytest.raises(ValueError, match="more than a tree file may hold"):
        tree_from_dict(content)


def test_numbers_beyond_floats_are_refused(content, path):
    write_valid_hash(path, content)
    text = re.sub(r'"weight": [0-9.]+', '"weight": 1e999', path.read_text("utf-8"), count=1)
    path.write_text(text, "utf-8")
    with pytest.raises(TreeFileError, match="not JSON compliant"):
        load(path)


def test_large_files_are_refused(path, monkeypatch, tree):
    monkeypatch.setattr("steadytree.models.files.MAX_BYTES", 1000)
    path.write_bytes(b" " * 1001)
    with pytest.raises(TreeFileError, match="larger than"):
        load(path)
    with pytest.raises(ValueError, match="prune it"):
        save(tree, path)
    assert path.read_bytes() == b" " * 1001


# ---- places ----
def test_a_path_that_is_not_there_is_named(tmp_path, tree):
    with pytest.raises(FileNotFoundError, match=r"check the path.*none\.tree\.json"):
        load(tmp_path / "none.tree.json")
    with pytest.raises(FileNotFoundError, match=r"cannot write .*deep.*make its folder"):
        save(tree, tmp_path / "deep" / "q2.tree.json")
    with pytest.raises(TreeFileError, match="not a file"):
        load(tmp_path)
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        save(tree, tmp_path)
    assert not list(tmp_path.parent.glob(".*part"))


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_what_was_there(step, tree, path, monkeypatch):
    path.write_text("before", "utf-8")

    def fail(*_):
        raise OSError(28, "No space left on device")

    target = {"fsync": "os.fsync", "replace": "pathlib.Path.replace"}[step]
    with monkeypatch.context() as patch:
        patch.setattr(target, fail)
        with pytest.raises(OSError, match="No space left on device, so nothing was written"):
            save(tree, path)
    assert path.read_text("utf-8") == "before"
    assert list(path.parent.iterdir()) == [path]


def test_saving_again_replaces_and_leaves_nothing_else(tree, path):
    save(tree, path)
    save(tree, str(path))
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="modes and links are POSIX")
def test_mode_and_link_stay(tree, path, tmp_path):
    save(tree, path)
    assert path.stat().st_mode & 0o777 == 0o666 & ~os.umask(os.umask(0o22))
    path.chmod(0o640)
    link = tmp_path / "latest.tree.json"
    link.symlink_to(path)
    save(tree, link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert load(link) == tree


def test_half_characters_are_refused(path):
    with pytest.raises(ValueError, match="cannot be written as text"):
        save(leaf(["a\ud800", "b"]), path)
    assert not path.exists()


def test_a_node_of_a_tree_as_plain_values():
    value = [[0.5, 0.5], [1, 0], [0, 1]]
    split = ([0, -1, -1], [40.0, np.nan, np.nan], [1, -1, -1], [2, -1, -1], value, [2, 1, 1])
    tree = Tree(FeatureSpace.declare(bounds={"age": (0, 120)}), ["no", "yes"], *split)
    node = {"feature": "age", "at_most": 40.0, "missing": "right", "left": 1, "right": 2}
    assert tree_to_dict(tree)["nodes"][0] == node | {"weight": 2.0, "value": [0.5, 0.5]}
    assert tree_from_dict(tree_to_dict(tree)) == tree


def test_the_hash_of_a_model_is_that_of_its_tree():
    model = DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    assert model_hash(model) == model_hash(as_tree(model))


def with_bins():
    rows = pd.DataFrame({"a": np.arange(200) / 3, "b": list("uvwxy") * 40, "c": range(200)})
    return st.StableTreeClassifier(2, random_state=5).fit(rows, [0, 0, 1, 0, 1] * 40).tree_


def test_a_tree_keeps_its_bins_and_files_without_them_stay_as_they_were(path):
    tree = with_bins()
    save(tree, path)
    content = json.loads(path.read_text("utf-8"))
    assert content["version"] == 2
    bins = content["tree"]["bins"]
    assert (bins["seed"], bins["thresholds"]) == (5, [500, [], 200])
    assert sorted(bins["order"]["b"]) == list("uvwxy")
    read = load(path)
    assert read == tree
    assert (read.bins.space, read.bins.order) == (tree.bins.space, tree.bins.order)
    assert pickle.loads(pickle.dumps(tree)).bins.space == tree.bins.space
    save(replace(tree, bins=None), path)
    assert json.loads(path.read_text("utf-8"))["version"] == 1
    assert load(path) == tree
    assert load(path).bins is None
    assert tree.prune().bins is tree.bins
    assert not tree.is_leaf[0]
    assert tree.restrict([0]).bins is tree.bins
    assert rename(tree, {"b": "other"}).bins is None  # they are of other columns


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"thresholds": [500]}, "thresholds must be given for each feature"),
        ({"thresholds": [0, [], 200]}, "not a valid number of thresholds of 'a'"),
        ({"thresholds": [500, 3, 200]}, "not a valid number of thresholds of 'b'"),
        ({"thresholds": [[2.0, 1.0], [], 200]}, "thresholds"),
        ({"order": {"d": ["u"]}}, "'d'"),
        ({"order": {"b": ["u"]}}, "order of 'b' must hold each of its categories once"),
        ({"seed": 1.5}, "seed"),
    ],
)
def test_wrong_bins_are_refused(change, message):
    content = tree_to_dict(with_bins())
    content["bins"] |= change
    with pytest.raises(ValueError, match=message):
        tree_from_dict(content)


def test_an_onnx_model_is_refused_with_what_to_ask_for(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x09\x12\xff\xfe")
    with pytest.raises(TreeFileError, match="an ONNX model, which is not read: ask for the fitted"):
        load(path)
