"""`steadytree export`: the text, the file, the count, and what does not go together."""

import json
import pathlib

import numpy as np
import pytest

import steadytree as st
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.condition import Condition
from tests.cli.commands import names_in, refused
from tests.models.trees import random_tree


@pytest.fixture
def models(run):
    """A tree with text columns and a risk score, in files."""
    tree = random_tree(np.random.default_rng(2), n_leaves=6, labels="int", n_classes=2)
    tree.save("model.tree.json")
    space = FeatureSpace.declare(bounds={"age": (0, 120)})
    card = st.Scorecard(space, ["no", "yes"], [Condition(0, "at_least", 65.0)], [3], -1, 1.0, 0.0)
    card.save("model.card.json")
    return tree, card


def test_the_text_is_printed_and_what_was_compared_beside_it(run, models):
    code, out, err = run("export", "model.tree.json", "--to", "sql")
    assert (code, out) == (0, models[0].to_sql() + "\n")
    assert err.startswith("agrees with the model on ")
    assert "rows at its thresholds, by SQLite 3." in err
    label = ("--label", 1, "--dialect", "spark")
    out = run("export", "model.tree.json", "--to", "sql", *label)[1]
    assert out == models[0].to_sql(models[0].classes.tolist()[1], "spark") + "\n"


@pytest.mark.parametrize("form", ["python", "c", "sql"])
@pytest.mark.parametrize("model", ["model.tree.json", "model.card.json"])
def test_a_file_is_written_with_the_count(run, models, form, model):
    code, out, err = run("export", model, "--to", form, "--out", "exported", "--json")
    found = json.loads(out)
    assert (code, err, found["written"]) == (0, "", ["exported"])
    assert found["n_rows_compared"] > 4
    given = models[0] if "tree" in model else models[1]
    if form != "sql":
        given = given if "tree" in model else given.to_tree()
        expected = given.to_source(form)
    else:
        expected = given.to_sql()
    assert pathlib.Path("exported").read_text("utf-8") == expected.rstrip() + "\n"


def test_what_does_not_go_together_is_refused_and_nothing_is_written(run, models, tmp_path):
    before = names_in(tmp_path)
    ways = [
        (("--to", "onnx"), "name a file with --out"),
        (("--to", "c", "--label", "1"), "--label and --dialect are for SQL"),
        (("--to", "python", "--dialect", "spark"), "--label and --dialect are for SQL"),
        (("--to", "sql", "--label", "nobody"), "label must be one of .*'nobody'"),
        (("--to", "sql", "--dialect", "cobol"), "dialect must be one of .*'cobol'"),
        (("--to", "sql", "--out", "model.tree.json"), "which MODEL reads: name another file"),
    ]
    for options, message in ways:
        refused(run("export", "model.tree.json", *options), message)
    assert names_in(tmp_path) == before
