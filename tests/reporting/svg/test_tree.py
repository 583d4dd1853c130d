import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from steadytree.reporting.svg.canvas import fit_text, text_width
from steadytree.reporting.svg.tree import BOX_HEIGHT, lay_out, picture_size, plot_tree
from steadytree.reporting.wording import build_nodes
from tests.models import trees

EVIL = """<script>alert("x")</script> & 'more' ]]>"""


def collected(seed, n_leaves=12, n_classes=3):
    rng = np.random.default_rng(seed)
    tree = trees.random_tree(rng, n_leaves=n_leaves, n_classes=n_classes)
    X = trees.random_rows(rng, tree)
    return build_nodes(tree, X, rng.integers(0, n_classes, len(X)))


def texts_of(svg):
    return [element.text for element in ET.fromstring(svg).iter("text")]


@pytest.mark.parametrize("seed", range(10))
def test_picture_is_xml_with_every_node(seed):
    tree = collected(seed)
    root = ET.fromstring(plot_tree(tree))
    assert len(list(root.iter("title"))) == len(tree["nodes"])
    branches = [path for path in root.iter("path") if path.get("class") == "edge"]
    assert len(branches) == len(tree["nodes"]) - 1
    groups = [group.get("data-node") for group in root.iter("g") if group.get("data-node")]
    assert groups == [str(node["id"]) for node in tree["nodes"]]
    sides = [element.text for element in root.iter("text") if "side" in element.get("class", "")]
    assert sides.count("yes") == sides.count("no") == len(tree["nodes"]) // 2


@pytest.mark.parametrize("n_leaves", [1, 2, 32, 60])
def test_boxes_do_not_overlap_and_stay_inside(n_leaves):
    tree = collected(0, n_leaves)
    layout = lay_out(tree["nodes"])
    width, height = picture_size(tree)
    inner = [node for node in tree["nodes"] if "left" in node]
    for one in inner:
        assert layout.right_edge(one) < layout.leaves_x < width
        assert 0 <= layout.y[one["place"]] <= layout.height < height
        for other in inner:
            if one["place"] < other["place"] and one["depth"] == other["depth"]:
                apart = abs(layout.y[one["place"]] - layout.y[other["place"]])
                assert apart > BOX_HEIGHT
    leaves = [layout.y[node["place"]] for node in tree["nodes"] if "left" not in node]
    assert len(set(np.diff(leaves))) <= 1


def test_a_single_leaf_is_drawn():
    tree = collected(0, n_leaves=1)
    assert tree["classes"][tree["nodes"][0]["answer"]] in " ".join(texts_of(plot_tree(tree)))


def test_many_classes_share_one_colour_for_the_rest():
    tree = collected(0, n_classes=3)
    many = tree | {"classes": [f"class {k}" for k in range(40)]}
    bars = {"counts": [list(range(40))] * 16, "at": 0.5}
    many["nodes"] = [
        node | {"counts": list(range(40)), "histogram": bars} for node in tree["nodes"]
    ]
    root = ET.fromstring(plot_tree(many))
    kinds = {element.get("class") for tag in ("rect", "path") for element in root.iter(tag)}
    assert kinds <= {"box", "empty", "edge", *(f"c{k}" for k in range(8))}


def test_names_are_escaped():
    tree = collected(0)
    evil = tree | {"classes": [EVIL] * 3}
    evil["nodes"] = [
        node | {"feature": EVIL, "test": EVIL, "full": EVIL} if "left" in node else node
        for node in tree["nodes"]
    ]
    svg = plot_tree(evil)
    assert "<script" not in svg
    titles = [element.text for element in ET.fromstring(svg).iter("title")]
    assert any(EVIL in title for title in titles)


def test_bars_show_the_shares():
    tree = collected(3)
    groups = ET.fromstring(plot_tree(tree)).find("g").findall("g")
    for node, group in zip(tree["nodes"], groups, strict=True):
        if node.get("histogram"):
            continue
        bars = [rect for rect in group.iter("rect") if rect.get("height") == "9"]
        frame, parts = float(bars[0].get("width")), bars[1:]
        for rect in parts:
            label = int(rect.get("class")[1:])
            share = node["counts"][label] / node["n_rows"]
            assert float(rect.get("width")) == pytest.approx(frame * share, abs=0.06)
        assert len(parts) == np.count_nonzero(node["counts"])


def test_histograms_show_the_rows_of_a_node_by_class():
    tree = collected(3)
    groups = ET.fromstring(plot_tree(tree)).find("g").findall("g")
    shown = 0
    for node, group in zip(tree["nodes"], groups, strict=True):
        if not node.get("histogram"):
            continue
        counts = np.array(node["histogram"]["counts"])
        heights = {}
        for path in group.iter("path"):
            bars = re.findall(r"v-([\d.]+)h", path.get("d"))
            heights[int(path.get("class")[1:])] = sum(map(float, bars))
        for label in np.flatnonzero(counts.sum(axis=0)):
            expected = 16 * counts[:, label].sum() / counts.sum(axis=1).max()
            assert heights[label] == pytest.approx(expected, abs=0.06 * len(counts))
        shown += 1
    assert shown > 3


@pytest.mark.parametrize("name", ["x" * 200, "W" * 50, "größe_" * 30, "変数" * 40])
def test_long_names_are_cut_to_their_room(name):
    cut = fit_text(name, 150, 12)
    assert "…" in cut
    assert text_width(cut, 12) <= 150


def test_a_split_stands_between_its_leaves():
    leaf = {"depth": 1}
    root = {"depth": 0, "left": 1, "right": 2, "feature": "age", "test": "≤ 4", "missing": ""}
    assert lay_out([root, leaf, leaf]).y == [35.0, 17.5, 52.5]
