"""Risk scores as SQL: the same totals on 100,000 rows, in SQLite and in DuckDB."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.condition import Condition
from steadytree.models.export import DIALECTS, scorecard_to_sql, scorecard_to_tree
from steadytree.models.scorecard import Scorecard
from steadytree.models.variable import category_conditions, number_conditions
from tests.models.scorecards import random_card, random_rows_of_card

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
    found = {name: scorecard_to_sql(card, dialect=name) for name in DIALECTS}
    listed = {
        "standard": """ "a`b" IN ('it''s', 'back\\slash', 'two\nlines') """,
        "mysql": """ `a``b` IN ('it''s', 'back\\\\slash', 'two\nlines') """,
        "bigquery": """ `a\\`b` IN ('it\\'s', 'back\\\\slash', 'two\\nlines') """,
        "spark": """ `a``b` IN ('it\\'s', 'back\\\\slash', 'two\nlines') """,
    }
    assert found == {name: f"(CASE WHEN{text}THEN 1 ELSE 0 END)" for name, text in listed.items()}
    with pytest.raises(ValueError, match=r"dialect must be one of .*'bigquery'.*, got 'cobol'"):
        card.to_sql(dialect="cobol")


def test_an_empty_card_is_a_number():
    space = FeatureSpace.declare(bounds={"a": (0, 1)})
    assert Scorecard(space, [0, 1], [], [], 0).to_sql() == "0"
    assert Scorecard(space, [0, 1], [], [], -2).to_sql() == "-2"
    assert scorecard_to_tree(Scorecard(space, [0, 1], [], [], 1)).n_leaves == 1
