"""Export random trees and risk scores to every form, and compare the forms on random rows.

    python tools/compare_exports.py --count 1000 --seed 0

Each export is compared with its model at every threshold when it is made. Here the result is run
once more on rows that were not made for that: on, beside and far from thresholds, missing, unknown.
A form whose package is not installed is left out and named.
"""

import argparse
import collections
import importlib.util
import pathlib
import sqlite3
import sys
import warnings
from contextlib import closing

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import numpy as np

from steadytree.models.exports.source import tree_to_source
from steadytree.models.one_hot import one_hot
from steadytree.models.sklearn import to_sklearn
from tests.models.scorecards import random_card, random_rows_of_card
from tests.models.trees import LABELS, random_rows, random_tree, to_float32


def tree_of(random):
    labels = str(random.choice(sorted(LABELS)))
    return random_tree(
        random,
        n_leaves=int(random.integers(1, 14)),
        n_numeric=int(random.integers(1, 4)),
        n_categorical=int(random.integers(0, 3)),
        n_classes=int(random.integers(1, len(LABELS[labels]) + 1)),
        labels=labels,
        single_precision=bool(random.integers(2)),
    )


def in_sqlite(rows, *expressions):
    with closing(sqlite3.connect(":memory:")) as base:
        rows.to_sql("t", base, index=False)
        return list(zip(*base.execute(f"SELECT {', '.join(expressions)} FROM t"), strict=True))


def in_duckdb(rows, expression):
    import duckdb
    import pyarrow

    columns = {
        name: pyarrow.array(column.to_numpy(), from_pandas=column.dtype == object)
        for name, column in rows.items()
    }
    with duckdb.connect() as base:
        base.register("t", pyarrow.table(columns))
        return [answer for (answer,) in base.execute(f"SELECT {expression} FROM t").fetchall()]


def in_onnxruntime(rows, content):
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    given = {}
    for one in session.get_inputs():
        column = rows[one.name].to_numpy()
        if one.type == "tensor(string)":
            column = np.array(["not known" if v is None else v for v in column], object)
        given[one.name] = column.reshape(-1, 1)
    return session.run(["leaf"], given)[0].tolist()


def compare_tree(random, differ, left_out):
    tree = tree_of(random)
    rows = random_rows(random, tree, 60)
    answers, leaves = tree.predict(rows).tolist(), tree.apply(rows).tolist()
    label = tree.classes.tolist()[-1]
    found = in_sqlite(rows, tree.to_sql(), tree.to_sql(label))
    differ["SQL, SQLite"] += list(found[0]) != answers
    differ["SQL, SQLite"] += list(found[1]) != tree.predict_proba(rows)[:, -1].tolist()
    if "duckdb" not in left_out:
        differ["SQL, DuckDB"] += in_duckdb(rows, tree.to_sql()) != answers
    made = {}
    exec(tree.to_source(), made)
    given = [dict(zip(rows, row, strict=True)) for row in rows.itertuples(index=False)]
    differ["Python"] += [made["leaf"](row) for row in given] != leaves
    tree_to_source(tree, "c")  # raises where it differs
    differ["C"] += 0
    if "onnxruntime" not in left_out:
        differ["ONNX"] += in_onnxruntime(rows, tree.to_onnx()) != leaves
    single = to_float32(rows)
    exported = to_sklearn(tree)
    columns = np.asarray(one_hot(tree, single), np.float32)
    shares = exported.tree_.predict(columns).reshape(len(rows), -1)
    differ["scikit-learn, float32 rows"] += not np.array_equal(shares, tree.predict_proba(single))


def compare_card(random, differ, left_out):
    card = random_card(random, n_conditions=7, n_classes=int(random.integers(2, 5)))
    rows = random_rows_of_card(random, card, 60)
    labels = [None] if card.is_binary else card.classes.tolist()
    totals = card.score(rows).reshape(len(rows), -1)
    for k, label in enumerate(labels):
        expression = card.to_sql(label)
        differ["risk score, SQLite"] += (
            list(in_sqlite(rows, expression)[0]) != totals[:, k].tolist()
        )
        if "duckdb" not in left_out:
            differ["risk score, DuckDB"] += in_duckdb(rows, expression) != totals[:, k].tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("error")
    left_out = [name for name in ("duckdb", "onnxruntime") if not importlib.util.find_spec(name)]
    differ = collections.Counter()
    for number in range(given.count):
        random = np.random.default_rng((given.seed, number))
        compare_tree(random, differ, left_out)
        compare_card(random, differ, left_out)
    sys.stdout.write(f"{given.count:,} trees and {given.count:,} risk scores, seed {given.seed}\n")
    for form, count in differ.items():
        sys.stdout.write(f"{form:28} {count} differ\n")
    sys.stdout.write(f"left out: {', '.join(left_out) or 'none'}\n")
    sys.exit(1 if any(differ.values()) else 0)


if __name__ == "__main__":
    main()
