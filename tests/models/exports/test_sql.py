"""Trees and risk scores as SQL: the same answers on many rows, in SQLite and in DuckDB."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from steadytree._base.exceptions import ExportError
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.condition import Condition
from steadytree.models.exports.sql import DIALECTS, tree_to_sql
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import Tree
from steadytree.models.variable import category_conditions, number_conditions
from tests.models.scorecards import random_card, random_rows_of_card
from tests.models.trees import deep_tree, random_rows, random_tree

WARDS = ["it's", 'a "b"', "back\\slash", "", "x; DROP TABLE t; --"]


def awkward():
    """Reserved words and quotes as names; thresholds that no decimal number holds exactly."""
    names = {"select": (0, 1), "order by": (-9, 9), 'say "hi"': (0, 1e300)}
    space = FeatureSpace.declare(bounds=names, categories={"group": WARDS})
    pairs = number_conditions(0, [0.1, 0.1 + 0.2, 2 / 3], [0, 2, 3, 7], 4)
    pairs += number_conditions(1, [-1e-7, 5], [6, 0, 1], -2)
    pairs += number_conditions(2, [1e30, 1.5e300], [3, 1, 0], 5)
    pairs += category_conditions(3, [0, 2, 5, 1, 2], 3)
    conditions, points = zip(*pairs, strict=True)
    return Scorecard(space, ["no", "yes"], conditions, points, -3)


def many_rows(n=100_000, seed=0):
    """Values on, one step beside and far from the thresholds; missing and unknown ones."""
    rng = np.random.default_rng(seed)

    def numbers(*at):
        near = [np.nextafter(x, way) for x in at for way in (np.inf, -np.inf)]
        return rng.choice([*at, *near, 0.0, -0.0, 0.5, np.nan], n)

    return pd.DataFrame(
        {
            "select": numbers(0.1, 0.1 + 0.2, 2 / 3, 0.3),
            "order by": numbers(-1e-7, 5),
            'say "hi"': numbers(1e30, 1.5e300),
            "group": rng.choice(np.array([*WARDS, "unknown", None], object), n),
        }
    )


@pytest.mark.parametrize("n_rows", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_sqlite_gives_the_totals_of_many_rows(n_rows):
    card, rows = awkward(), many_rows(n_rows)
    with closing(sqlite3.connect(":memory:")) as base:
        rows.to_sql("t", base, index=False)
        found = base.execute(f"SELECT {card.to_sql()} FROM t").fetchall()
    np.testing.assert_array_equal([total for (total,) in found], card.score(rows))


@pytest.mark.interop
def test_duckdb_gives_the_totals_of_many_rows_with_nan_over_arrow():
    duckdb, pyarrow = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    card, rows = awkward(), many_rows()
    table = pyarrow.table(  # NaN stays NaN here, where pandas would hand over NULL
        {
            name: pyarrow.array(column.to_numpy(), from_pandas=name == "group")
            for name, column in rows.items()
        }
    )
    assert table["select"].null_count == 0
    with duckdb.connect() as base:
        base.register("t", table)
        found = base.execute(f"SELECT {card.to_sql()} AS total FROM t").fetchnumpy()["total"]
    np.testing.assert_array_equal(np.asarray(found, np.int64), card.score(rows))


@pytest.mark.interop
@pytest.mark.parametrize("seed", range(10))
def test_duckdb_gives_the_totals_of_random_cards(seed):
    duckdb, pyarrow = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    rng = np.random.default_rng(seed)
    card = random_card(rng, n_conditions=7)
    rows = random_rows_of_card(rng, card, 200)
    with duckdb.connect() as base:
        base.register("t", pyarrow.Table.from_pandas(rows))
        found = base.execute(f"SELECT {card.to_sql()} AS total FROM t").fetchnumpy()["total"]
    np.testing.assert_array_equal(np.asarray(found, np.int64), card.score(rows))


def test_dialects_differ_in_their_quotes():
    space = FeatureSpace.declare(categories={"a`b": ["it's", "back\\slash", "two\nlines"]})
    card = Scorecard(space, [0, 1], [Condition(0, "among", categories=(0, 1, 2))], [1], 0)
    found = {name: card.to_sql(dialect=name) for name in DIALECTS}
    listed = {
        "standard": """ "a`b" IN ('it''s', 'back\\slash', 'two\nlines') """,
        "mysql": """ `a``b` IN ('it''s', 'back\\\\slash', 'two\nlines') """,
        "bigquery": """ `a\\`b` IN ('it\\'s', 'back\\\\slash', 'two\\nlines') """,
        "spark": """ `a``b` IN ('it\\'s', 'back\\\\slash', 'two\nlines') """,
    }
    assert found == {name: f"(CASE WHEN{text}THEN 1 ELSE 0 END)" for name, text in listed.items()}
    # where NaN compares as the greatest number it is taken from 0; elsewhere that only costs time
    above = {name: dialect.above("a", 0.5) for name, dialect in DIALECTS.items()}
    assert above["standard"] == above["spark"] == "0e0 - a < -0.5e0"
    assert above["mysql"] == above["bigquery"] == "a > 0.5e0"
    with pytest.raises(ValueError, match=r"dialect must be one of .*'bigquery'.*, got 'cobol'"):
        card.to_sql(dialect="cobol")


def test_an_empty_card_is_a_number():
    space = FeatureSpace.declare(bounds={"a": (0, 1)})
    assert Scorecard(space, [0, 1], [], [], 0).to_sql() == "0"
    assert Scorecard(space, [0, 1], [], [], -2).to_sql() == "-2"


def tree_on(column, threshold=0.5, missing_left=False, **subset):
    nodes = ([0, -1, -1], [threshold, np.nan, np.nan], [1, -1, -1], [2, -1, -1])
    value, weight = [[0.5, 0.5], [1, 0], [0.25, 0.75]], [2, 1, 1]
    side = {"missing_left": [missing_left, False, False], **subset}
    return Tree(FeatureSpace((column,)), ["no", "yes"], *nodes, value, weight, **side)


@pytest.mark.parametrize("seed", range(8))
def test_sqlite_gives_the_class_and_the_shares_of_a_tree(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, labels=["int", "float", "bool", "str"][seed % 4], n_classes=2)
    rows = random_rows(rng, tree)
    label = tree.classes.tolist()[1]
    with closing(sqlite3.connect(":memory:")) as base:
        rows.to_sql("t", base, index=False)
        found = base.execute(f"SELECT {tree.to_sql()}, {tree.to_sql(label)} FROM t").fetchall()
    assert [answer for answer, _ in found] == tree.predict(rows).tolist()
    assert [share for _, share in found] == tree.predict_proba(rows)[:, 1].tolist()


@pytest.mark.interop
@pytest.mark.parametrize("seed", range(10))
def test_duckdb_sends_nan_where_the_tree_does(seed):
    duckdb, pyarrow = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_leaves=10)
    rows = random_rows(rng, tree)
    table = pyarrow.table(
        {
            name: pyarrow.array(column.to_numpy(), from_pandas=column.dtype == object)
            for name, column in rows.items()
        }
    )
    with duckdb.connect() as base:
        base.register("t", table)
        found = base.execute(f"SELECT {tree.to_sql()} AS answer FROM t").fetchall()
    assert [answer for (answer,) in found] == tree.predict(rows).tolist()


@pytest.mark.parametrize("missing_left", [False, True])
def test_what_a_database_with_nan_as_greatest_number_would_do(missing_left):
    """PostgreSQL, DuckDB and Spark: NaN is above infinity, and 0 - NaN is NaN."""
    text = tree_on(Column("a", "numeric", 0, 1), missing_left=missing_left).to_sql()
    inner = text.split(" ELSE ", 1)[1]
    compared = '0e0 - "a" < -0.5e0' if missing_left else '"a" <= 0.5e0'
    assert inner.startswith(f"CASE WHEN {compared} THEN")
    # neither comparison holds for such a NaN, so that it takes the ELSE
    assert inner.endswith("ELSE 'no' END END" if missing_left else "ELSE 'yes' END END")


def test_infinite_numbers_give_null_as_models_refuse_them():
    column = Column("a", "numeric", 0, 1)
    space = FeatureSpace((column,))
    card = Scorecard(space, [0, 1], [Condition(0, "at_least", 0.5)], [3], 1)
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("CREATE TABLE t (a REAL)")
        base.executemany("INSERT INTO t VALUES (?)", [(np.inf,), (-np.inf,), (1.0,), (None,)])
        asked = f"SELECT {tree_on(column).to_sql()}, {card.to_sql()} FROM t"
        assert base.execute(asked).fetchall() == [(None, None)] * 2 + [("yes", 4), ("yes", 1)]
    for model in (tree_on(column), card):
        with pytest.raises(ValueError, match="hold infinity"):
            model.predict([[np.inf]])


def test_a_threshold_of_infinity_asks_whether_a_value_is_there():
    column = Column("a", "numeric", 0, 1, missing=True)
    found = tree_on(column, np.inf).to_sql()
    assert "CASE WHEN \"a\" <= 1.7976931348623157e308 THEN 'no' ELSE 'yes' END" in found


def test_what_sql_cannot_tell_apart_is_refused():
    space = FeatureSpace.declare(bounds={"Age": (0, 9), "age": (0, 9)})
    pairs = [(Condition(0, "at_least", 5), 1), (Condition(1, "at_least", 5), 1)]
    conditions, points = zip(*pairs, strict=True)
    with pytest.raises(ValueError, match="'Age' and 'age' are the same in SQL: rename"):
        Scorecard(space, [0, 1], conditions, points, 0).to_sql()
    texts = Column("group", "categorical", categories=("a", "A"))
    tree = tree_on(texts, np.nan, subset=[[True, False], [False] * 2, [False] * 2])
    assert "\"group\" IN ('a')" in tree.to_sql()
    with pytest.raises(ValueError, match=r"'a' and 'A' are the same in SQL.*another dialect"):
        tree.to_sql(dialect="mysql")
    ids = tree_on(Column("id", "integer", 0, 2.0**60), 2.0**55)
    with pytest.raises(ValueError, match=r"'id' have thresholds of 2\*\*53 or more"):
        ids.to_sql()
    assert tree_on(Column("id", "numeric", 0, 2.0**60), 2.0**55).to_sql()
    with pytest.raises(ValueError, match=r"label must be one of \['no', 'yes'\].* got 'may be'"):
        tree.to_sql("may be")
    with pytest.raises(ValueError, match="NUL sign"):
        tree_on(replace(ids.space[0], name="a\0b")).to_sql()
    with pytest.raises(ValueError, match="a class label has a NUL sign"):
        replace(tree, classes=["no", "\0yes"]).to_sql()
    with pytest.raises(ValueError, match="a column has no name"):
        tree_on(replace(ids.space[0], name="")).to_sql()


@pytest.mark.parametrize("other", ["e\u0301", "E\u0301", "e", "\u00e9 ", "\u00c9", "\uff45"])
def test_texts_that_mysql_takes_for_one_are_refused_there(other):
    """By its usual collation: accents in one or two signs, case, width, spaces at the end."""
    texts = Column("group", "categorical", categories=("\u00e9", other, "f"))
    tree = tree_on(texts, np.nan, subset=[[True, False, False], [False] * 3, [False] * 3])
    assert "IN" in tree.to_sql()
    with pytest.raises(ValueError, match=r"are the same in SQL.*another dialect"):
        tree.to_sql(dialect="mysql")


def test_an_expression_that_differs_is_not_returned(monkeypatch):
    """A threshold that was rounded on its way into the text."""
    tree = tree_on(Column("a", "numeric", 0, 1), 0.1 + 0.2)
    monkeypatch.setattr("steadytree.models.exports.sql._number", lambda x: f"{x:.3f}e0")
    with pytest.raises(
        ExportError, match=r"SQL expression differs from the model on 1 of \d+ rows"
    ):
        tree.to_sql()


def test_a_tree_too_deep_for_the_parser_is_refused():
    tree = deep_tree(16)
    with pytest.raises(ValueError, match=r"depth 16 .* too large for SQL, at most 15 levels"):
        tree.to_sql()
    text, check = tree_to_sql(deep_tree(15))
    assert text.count("CASE") == 16
    assert check.n_leaves == 16
    assert check.by.startswith("SQLite 3.")


@pytest.mark.parametrize("below", [True, False])
@pytest.mark.parametrize("sign", [1, -1])
def test_whole_numbers_that_databases_compare_otherwise_are_refused(sign, below):
    at = sign * (2.0**53 - 1 if below else 2.0**53)
    space = FeatureSpace((Column("id", "integer", -(2.0**60), 2.0**60, missing=True),))
    shape = [0, -1, -1], [at, np.nan, np.nan], [1, -1, -1], [2, -1, -1]
    tree = Tree(space, ["no", "yes"], *shape, [[0.5, 0.5], [1, 0], [0, 1]], [2, 1, 1])
    if below:
        assert str(int(at)) in tree_to_sql(tree)[0]
    else:
        with pytest.raises(ValueError, match=r"thresholds of 2\*\*53 or more"):
            tree_to_sql(tree)
