"""Cards: what they answer, and every form they can take says the same."""

import json
import pickle
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from steadytree._base.exceptions import TreeFileError
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.readers import read_data
from steadytree.metrics.complexity import complexity
from steadytree.models.condition import Condition
from steadytree.models.documents import scorecard_from_dict, scorecard_to_dict
from steadytree.models.exports.sql import LEAST, scorecard_to_sql
from steadytree.models.files import load, save
from steadytree.models.risk_table import RiskTable
from steadytree.models.scorecard import Scorecard
from steadytree.models.scorecard_tree import scorecard_to_tree
from steadytree.models.sklearn import as_tree
from steadytree.reporting.plot import plot
from steadytree.riskscore.risk_score import RiskScoreClassifier
from tests.models.scorecards import LABELS, random_card, random_rows_of_card

SPACE = FeatureSpace.declare(bounds={"age": (18, 99)}, categories={"kind": ["a", "b", "c"]})
AGED = Condition(0, "at_least", 75.0)


def slow_total(card, row, place):
    """One row's total, condition by condition, from values as a person sees them."""
    total = int(card.offset[place])
    for condition, points in zip(card.conditions, card.points[:, place], strict=True):
        x = row[condition.feature]
        held = {
            "missing": np.isnan(x),
            "present": not np.isnan(x),
            "at_least": x >= condition.threshold,
            "below": x < condition.threshold,
            "among": x in condition.categories,
        }[condition.sort]
        total += int(points) if held else 0
    return total


@pytest.mark.parametrize("seed", range(40))
def test_every_form_of_a_card_gives_the_same_answers(seed, tmp_path):
    rng = np.random.default_rng(seed)
    card = random_card(rng, int(rng.integers(0, 7)), n_classes=int(rng.integers(2, 5)))
    rows = random_rows_of_card(rng, card, 30)
    encoded = card.space.encode(rows)
    totals = card.score(rows).reshape(30, -1)
    expected = [[slow_total(card, x, k) for k in range(totals.shape[1])] for x in encoded]
    np.testing.assert_array_equal(totals, expected)
    answers = card.predict(rows)
    for x, total in zip(answers, totals, strict=True):
        best = int(total[0] > 0) if card.is_binary else int(np.argmax(total))
        assert x == card.classes[best]
    save(card, tmp_path / "a.card.json")
    for other in (
        load(tmp_path / "a.card.json"),
        pickle.loads(pickle.dumps(card)),
        scorecard_from_dict(json.loads(json.dumps(scorecard_to_dict(card)))),
    ):
        assert other == card
        assert hash(other) == hash(card)
    tree = scorecard_to_tree(card)
    np.testing.assert_array_equal(tree.predict(rows), answers)
    if card.gives_risks:
        shares = card.predict_proba(rows)
        np.testing.assert_array_equal(card.classes[shares.argmax(axis=1)], answers)
        np.testing.assert_allclose(tree.predict_proba(rows), shares)
    check_sql(card, rows, totals)


def check_sql(card, rows, totals):
    with closing(sqlite3.connect(":memory:")) as base:
        rows.to_sql("t", base, index=False)
        for place in range(totals.shape[1]):
            label = None if card.is_binary else LABELS[place]
            found = base.execute(f"SELECT {card.to_sql(label)} FROM t").fetchall()
            assert [row[0] for row in found] == totals[:, place].tolist()


def test_what_takes_a_card_takes_a_fitted_model_and_names_anything_else(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.random((50, 2)), np.arange(50) % 2
    X[:, 0] += y
    model = RiskScoreClassifier(noise=0.0, random_state=0).fit(X, y)
    card, table = model.card_, model.risk_table_
    assert card.risk_table == table
    assert plot(model) == plot(card)
    assert scorecard_to_sql(model) == scorecard_to_sql(card)
    assert scorecard_to_tree(model) == scorecard_to_tree(card)
    assert card.to_sql() == scorecard_to_sql(card)[0]
    assert card.to_tree() == scorecard_to_tree(card)
    for thing in (model, card):
        save(thing, tmp_path / "a.card.json")
        assert load(tmp_path / "a.card.json") == card
    for function in (scorecard_to_sql, scorecard_to_tree):
        with pytest.raises(TypeError, match="a card is needed, got LogisticRegression"):
            function(LogisticRegression())
    for thing in (model, card):
        with pytest.raises(TypeError, match=r"which is a risk score: pass its to_tree\(\)"):
            as_tree(thing)


def test_order_of_conditions_does_not_matter_for_equality():
    other = Condition(1, "among", categories=(0, 2))
    one = Scorecard(SPACE, ["no", "yes"], [AGED, other], [2, 1], -1)
    two = Scorecard(SPACE, ["no", "yes"], [other, AGED], [1, 2], -1)
    assert one == two
    assert hash(one) == hash(two)
    assert one != Scorecard(SPACE, ["no", "yes"], [AGED, other], [2, 2], -1)


FOUR = Column("kind", "categorical", categories=("a", "b", "c", "d"))


def test_conditions_in_words():
    texts = [
        (AGED, 0, "age ≥ 75"),
        (Condition(0, "below", 20.5), 0, "age < 20.5"),
        (Condition(0, "at_least", -0.0), 0, "age ≥ 0"),
        (Condition(0, "missing"), 0, "age is missing"),
        (Condition(1, "among", categories=(1,)), 1, "kind is b"),
        (Condition(1, "among", categories=(0, 1)), 1, "kind is known and not c"),
    ]
    assert [c.text(SPACE[j]) for c, j, _ in texts] == [text for _, _, text in texts]
    two = Column("sex", "categorical", categories=("f", "m"))
    assert Condition(0, "among", categories=(1,)).text(two) == "sex is m"
    assert Condition(0, "among", categories=(0, 1)).text(two) == "sex is one of f, m"
    assert Condition(0, "among", categories=(0, 3)).text(FOUR) == "kind is one of a, d"
    space = FeatureSpace.declare(bounds={"n": (0, 9)}, kinds={"n": "integer"})
    same = [Condition(0, "below", 1.5), Condition(0, "below", 2.0), Condition(0, "below", 4.5)]
    assert Scorecard(space, [0, 1], same, [1, 1, 1], 0).texts() == ["n < 1.5", "n < 2", "n < 5"]


def test_reasons_name_the_bands_that_raise_the_total():
    other = Condition(1, "among", categories=(0,))
    card = Scorecard(SPACE, ["no", "yes"], [other, AGED], [1, 3], -1)
    rows = {"age": [80.0, 20.0], "kind": ["a", "b"]}
    pandas = pytest.importorskip("pandas")
    assert card.reasons(pandas.DataFrame(rows)) == [[("age: ≥ 75", 3), ("kind: a", 1)], []]
    assert card.to_dict() == {
        "variable": ["kind"] * 3 + ["age"] * 3,
        "band": ["b, c", "a", "missing or unknown", "< 75", "≥ 75", "missing"],
        "points": [0, 1, 0, 0, 3, 0],
    }
    assert card.reasons(pandas.DataFrame(rows), "yes") == card.reasons(pandas.DataFrame(rows))
    for function in (
        lambda: card.reasons(pandas.DataFrame(rows), "no"),
        lambda: scorecard_to_sql(card, 7),
    ):
        with pytest.raises(ValueError, match="label must be 'yes' or left out"):
            function()


def test_a_file_that_lacks_a_column_keeps_its_cells(tmp_path):
    space = FeatureSpace.declare(bounds={"age": (18, 99)}, categories={"kind": ["a", "NO ", "?"]})
    kinds = [Condition(1, "among", categories=(k,)) for k in (1, 2)]
    card = Scorecard(space, ["no", "yes"], kinds, [2, 1], -1, 1.0, 0.0)
    (tmp_path / "rows.csv").write_text("kind\nNO \nNO\n?\na\n", encoding="utf-8")
    assert card.score(read_data(tmp_path / "rows.csv")).tolist() == [1, -1, 0, -1]


def test_a_frame_may_lack_what_no_condition_asks_about():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [80.0, 20.0], "other": [1, 2]})
    card = Scorecard(SPACE, ["no", "yes"], [AGED], [2], -1, 1.0, 0.0)
    assert card.predict(frame).tolist() == ["yes", "no"]
    assert card.score(frame).tolist() == [1, -1]
    assert card.reasons(frame) == [[("age: ≥ 75", 2)], []]
    numbers = Scorecard(SPACE, ["no", "yes"], [Condition(1, "missing")], [1], 0)
    assert numbers.predict(pandas.DataFrame({"kind": ["a", None]})).tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match=r"X lacks the column\(s\) 'kind'"):
        numbers.predict(frame)
    with pytest.raises(ValueError, match="X has 1 features, but 2 are expected"):
        card.predict([[80.0]])


def test_complexity_of_a_card():
    card = Scorecard(SPACE, ["no", "yes"], [AGED, Condition(1, "missing")], [2, 0], -1)
    found = complexity(card)
    assert (found.n_questions, found.depth, found.n_features, found.n_leaves) == (1, 1, 1, 2)


@pytest.mark.parametrize("seed", range(30))
def test_leaves_of_a_card_are_the_totals_that_rows_have(seed):
    rng = np.random.default_rng(seed)
    card = random_card(rng, int(rng.integers(0, 7)), n_classes=int(rng.integers(2, 4)))
    totals = card.score(random_rows_of_card(rng, card, 4000)).reshape(4000, -1)
    assert complexity(card).n_leaves >= len(np.unique(totals, axis=0))
    conditions = [Condition(0, "at_least", 30.0), Condition(0, "at_least", 60.0)]
    older = Scorecard(SPACE, ["no", "yes"], conditions, [1, 2], 0)
    assert complexity(older).n_leaves == 3  # 0, 1 and 3: who is 60 is 30 too
    conditions = [Condition(1, "present"), Condition(1, "among", categories=(0, 1, 2))]
    either = Scorecard(SPACE, ["no", "yes"], conditions, [1, 2], 0)
    assert complexity(either).n_leaves == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points": [1.5]}, "points must be whole numbers"),
        ({"points": [1, 2]}, r"points must have shape \(1, 1\)"),
        ({"conditions": [AGED, AGED], "points": [1, 1]}, "appears twice"),
        ({"classes": ["no"]}, "at least two labels that differ"),
        ({"conditions": [Condition(7, "missing")]}, r"feature must be in 0\.\.1"),
        ({"conditions": [Condition(1, "at_least", 3)]}, "has categories, not numbers"),
        ({"conditions": [Condition(1, "among", categories=(9,))]}, "lacks such categories"),
        ({"slope": 1.0}, "both slope and intercept"),
        ({"slope": -1.0, "intercept": 0.0}, "slope must be at least 0"),
    ],
)
def test_a_card_that_is_none_cannot_be_made(changes, message):
    given = {"classes": ["no", "yes"], "conditions": [AGED], "points": [1], "offset": 0}
    with pytest.raises(ValueError, match=message):
        Scorecard(SPACE, **{**given, **changes})


def test_a_card_cannot_be_changed():
    card = Scorecard(SPACE, ["no", "yes"], [AGED], [2], -1)
    with pytest.raises(ValueError, match="read-only"):
        card.points[0] = 1


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "a.card.json"
    save(Scorecard(SPACE, ["no", "yes"], [AGED], [2], -1), path)
    path.write_text(path.read_text("utf-8").replace("75.0", "57.0"), "utf-8")
    with pytest.raises(TreeFileError, match="does not fit its hash"):
        load(path)


def test_a_name_that_is_no_text_is_not_saved(tmp_path):
    space = FeatureSpace.declare(bounds={"\ud800": (0, 1)})
    with pytest.raises(ValueError, match="in a name or label cannot be written as text"):
        save(Scorecard(space, [0, 1], [], [], 0), tmp_path / "a.card.json")


def test_a_large_card_is_no_tree():
    conditions = [Condition(0, "at_least", float(k)) for k in range(20, 29)]
    card = Scorecard(SPACE, ["no", "yes"], conditions, [1] * 9, -4)
    with pytest.raises(ValueError, match="9 conditions"):
        scorecard_to_tree(card)


def test_a_small_card_as_plain_values_sql_and_tree():
    space = FeatureSpace.declare(bounds={"age": (18, 99)})
    card = Scorecard(space, ["no", "yes"], [Condition(0, "at_least", 75)], [2], -1)
    condition = {"feature": "age", "sort": "at_least", "points": [2], "at_least": 75.0}
    assert scorecard_to_dict(card)["conditions"] == [condition]
    assert scorecard_from_dict(scorecard_to_dict(card)) == card
    known = '"age" BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308'
    inner = 'CASE WHEN "age" >= 75 THEN 2 ELSE 0 END'
    infinite = f'"age" < {LEAST} OR 0e0 - "age" < {float(LEAST)!r}'
    outer = f"CASE WHEN {known} THEN {inner} WHEN {infinite} THEN NULL ELSE 0 END"
    assert card.to_sql() == f"-1 + ({outer})"
    assert scorecard_to_tree(card).predict([[74.0], [75.0]]).tolist() == ["no", "yes"]


def test_rows_of_a_risk_table():
    space = FeatureSpace.declare(bounds={"age": (18, 99)})
    card = Scorecard(space, ["no", "yes"], [Condition(0, "at_least", 75)], [1], 0, 2.0, -1.0)
    table = RiskTable.of(card, card.score([[80], [90], [20]]), np.array([1, 0, 0]))
    found = [(row.total, row.n_rows, row.share) for row in table.rows]
    assert found == [(0, 1.0, 0.0), (1, 2.0, 0.5)]


def test_which_questions_fit_a_column():
    texts = Column("g", "categorical", categories=("a", "b", "c"))
    number = Column("n", "numeric", 0.0, 1.0)
    for k in range(5):
        asked = Condition(0, "among", categories=(0, k))
        if k < 3:
            asked.check(texts)
        else:
            with pytest.raises(ValueError, match="lacks such categories"):
                asked.check(texts)
        with pytest.raises(ValueError, match="lacks such categories"):
            asked.check(number)
    for sort in ("at_least", "below"):
        Condition(0, sort, 0.5).check(number)
        with pytest.raises(ValueError, match="has categories, not numbers"):
            Condition(0, sort, 0.5).check(texts)
    for sort in ("missing", "present"):
        for column in (texts, number):
            Condition(0, sort).check(column)
