"""Files that version 1 wrote go on loading, and mean the same.

The files in `formats` are never written anew: a format that changes gets a new file beside them.
"""

import pathlib
import shutil

import pytest

import steadytree as st
from tests.golden.golden_data import MAKERS
from tests.golden.golden_models import card_line, card_of, tree_line, tree_of
from tests.golden.golden_study import NAMES, answer, fix_keys, rows

FORMATS = pathlib.Path(__file__).parent / "formats"


@pytest.fixture
def patients():
    return MAKERS["patients"]()


def test_a_tree(patients):
    tree = st.load(FORMATS / "patients.tree.json")
    published = {"criterion": "count", "merge_leaves": True}  # what was the default then
    expected = tree_of(patients, **published).tree_.with_note("made for a test")
    assert tree == expected
    assert tree_line(tree) == tree_line(expected)
    assert tree.note == "made for a test"


@pytest.mark.parametrize("name", ["patients", "iris"])
def test_a_card(name):
    model = card_of(MAKERS[name]())
    card = st.load(FORMATS / f"{name}.card.json")
    assert card.texts() == model.card_.texts()

    class Loaded:
        card_ = card

    assert card_line(Loaded) == card_line(model)


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_schema(ending):
    schema = st.Schema.load(FORMATS / f"patients.schema.{ending}")
    expected = st.Schema(
        {"age": (0, 100), "dose": (0, 10)},
        {"ward": ["A", "B", "C"], "sex": ["f", "m"]},
        ["ill", "well"],
        missing=["dose", "ward"],
    )
    assert schema.key() == expected.key()


def test_noise():
    found = st.Perturbation.from_toml(FORMATS / "noise.toml")
    assert found == st.Perturbation(
        step_cost={"age": 0.5, "dose": 2.0},
        frozen=("sex",),
        direction={"age": "up"},
        missing_cost={"ward": 1.5},
        bounds={"dose": (0.0, 8.0)},
        whole=("age",),
        budget=3.0,
    )


def test_a_ledger_of_version_1_is_upgraded(tmp_path, command):
    shutil.copy(FORMATS / "spent.ledger", tmp_path)
    with pytest.raises(ValueError, match="is a ledger of version 1"):
        st.Ledger(tmp_path / "spent.ledger", 5.0, 1e-6)
    upgrade = ("--budget", "5.0", "--delta", "1e-6", "--upgrade")
    assert command("private", "ledger", tmp_path / "spent.ledger", *upgrade)[0] == 0
    ledger = st.Ledger(tmp_path / "spent.ledger", 5.0, 1e-6)
    assert ledger.spent == pytest.approx(0.5 + 0.3 + 0.25)  # leaves share no row: the dearer counts
    assert ledger.spent_delta == pytest.approx(1e-7)
    assert ledger.answered("study:3")
    assert not ledger.answered("study:4")
    ledger.spend(1.0, "tree")
    again = st.Ledger(tmp_path / "spent.ledger", 5.0, 1e-6)
    assert again.left == pytest.approx(5 - 2.05)


def test_limits_and_a_page_of_comparison(patients, command):
    X, y, _ = patients
    X.assign(outcome=y).to_csv("rows.csv", index=False)
    code, out, err = command(
        *("report", "rows.csv", "--target", "outcome", "--model", FORMATS / "patients.tree.json"),
        *("--comparison", FORMATS / "comparison.html", "--limits", FORMATS / "limits.toml"),
        *("--noise", FORMATS / "noise.toml", "--quick", "--out", "report.html"),
    )
    assert code == 3, err  # the tree is deeper than the limit
    assert "max_depth" in out + err
    report = pathlib.Path("report.html").read_text("utf-8")
    assert "made for a test" in report
    assert "score" in report


def test_a_study_of_an_older_version_is_read_and_costs_nothing_more(command):
    """Plan, checkpoint, stored answers and ledgers; `delegate` asks other questions since then."""
    pytest.importorskip("opendp")
    pytest.importorskip("cryptography")
    here = pathlib.Path.cwd()
    shutil.copytree(FORMATS / "study", here, dirs_exist_ok=True)
    for name in NAMES:
        X, y = rows(name)
        X.assign(outcome=y).to_csv(f"{name}.csv", index=False)
        pathlib.Path(f"{name}.ledger").chmod(0o600)
        upgrade = ("--budget", "9.0", "--upgrade")
        assert command("private", "ledger", f"{name}.ledger", *upgrade)[0] == 0
    assert command("private", "keys", "plan.toml")[0] == 0
    fix_keys()
    before = pathlib.Path("north.ledger").read_bytes()
    question = next(here.glob("questions/*.0000.north.question.json"))
    code, _, err = answer(command, question, "north")
    assert code == 2
    assert "is of version 1, of an older steadytree: update" in err
    assert len(err.strip().splitlines()) == 1
    [checkpoint] = here.glob("*.checkpoint.json")
    checkpoint.rename("kept")  # so that the first round is asked once more
    assert command("private", "ask", "plan.toml")[0] == 0
    code, _, err = answer(command, question, "north")
    assert code == 2
    assert "another question was asked under the same study and number" in err
    assert pathlib.Path("north.ledger").read_bytes() == before
    pathlib.Path("kept").rename(checkpoint)
    code, _, err = command("private", "ask", "plan.toml")
    assert code == 2
    assert "of another plan or version. Give the study another name and checkpoint" in err
