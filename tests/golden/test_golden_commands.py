"""What the commands print, on the same rows each time."""

import pathlib

import pytest

import steadytree as st
from tests.golden.golden_data import MAKERS, schema_of
from tests.golden.golden_models import tree_of

ROWS = ("rows.csv", "--target", "outcome")
PRIVATE = ("--schema", "s.toml", "--budget", 9)
COMMANDS = [
    ("report", *ROWS, "--quick", "--by", "sex", "--noise", "noise.toml"),
    ("compare", *ROWS, "--learners", "stable,score", "--folds", 2, "--max-depth", 3),
    ("fit", *ROWS, "--out", "fitted.tree.json"),
    ("diff", "old.tree.json", "new.tree.json", "--data", "rows.csv", "--out", "changes.svg"),
    ("diff", "old.tree.json", "new.tree.json", "--json", "--out", "changes.svg"),
    ("retrain", *ROWS, "--previous", "old.tree.json", "--picture", "again.svg"),
    ("certify", "old.tree.json", *ROWS, "--noise", "noise.toml"),
    ("score", *ROWS, "--noise", 0.02, "--save", "a.card.json"),
    ("score", "few.csv", "--card", "a.card.json"),
    ("private", "schema", *ROWS),
    ("private", "simulate", *PRIVATE[:2], "--rows", 80, "--epsilon", 1, "--repeats", 2),
    ("private", "ledger", "spent.ledger", "--budget", 9),
    ("reproduce",),
    ("fit", "rows.csv", "--target", "nobody"),
    ("certify", "rows.csv", *ROWS, "--noise", "noise.toml"),
]


@pytest.fixture
def files(command):
    """Rows, two trees, noise, a schema and a ledger."""
    rows = MAKERS["patients"]()
    rows.X.assign(outcome=rows.y).to_csv("rows.csv", index=False)
    rows.X[:6].to_csv("few.csv", index=False)
    for name, depth in (("old", 1), ("new", 2)):
        tree_of(rows, max_depth=depth, epsilon=0).save(f"{name}.tree.json")
    pathlib.Path("noise.toml").write_text("[radius]\nage = 1\n", "utf-8")
    schema_of(rows).save("s.toml")
    st.Ledger("spent.ledger", 9.0).spend(0.5, "tree", "whole tree")


def test_output_of_commands(command, files, golden, same_everywhere):
    pytest.importorskip("opendp")
    found = []
    for arguments in COMMANDS:
        code, out, err = command(*arguments)
        typed = " ".join(map(str, arguments))
        found.append(f"$ steadytree {typed}\n{out}{err}exit code {code}\n")
    golden("commands.txt", "\n".join(found))
