"""Are certificates and SQL of risk scores exact on the papers' data?

For each set a risk score is fitted with the defaults to half of the rows, at most 20,000; of
several classes with three variables each, so that all combinations can be listed. Certificates of
10,000 rows are compared with brute force: every combination of bands that a row could be moved to,
for moves whose size is the largest change of a column, and the sum of changes.
Totals of 100,000 rows are compared with those of the expression in SQLite and in DuckDB: rows drawn
anew, with values on and one float beside each threshold, missing ones and unknown categories.

``python studies/risk/exact.py``; STEADYTREE_DATA names the data folder.
"""

import argparse
import math
import os
import pathlib
import sqlite3
import warnings
from contextlib import closing

import duckdb
import numpy as np
import pandas as pd
import pyarrow
from pandas.api.types import is_numeric_dtype

import data
from steadytree import Perturbation, RiskScoreClassifier, certify

FILES = ("adult", "bank-additional", "cod-rna_train", "higgs_sample", "skin", "covtype_random10k")
MADE = (data.SITES, data.MADE)
CERTIFIED, SCORED, MOST_FITTED = 10_000, 100_000, 20_000
MISSING = 0.02  # share of the values that are left out, and as many categories that are not known
HEADS = ("set", "classes", "variables", "bands", "combinations")
COMPARED = ("largest, differ", "sum, differ", "error", "SQLite, differ", "DuckDB, differ")


def load(name):
    """All rows of a set; of seven kinds of forest the two most frequent and all others."""
    if name in MADE:
        return data.load(name)
    frame = pd.read_csv(pathlib.Path(os.environ["STEADYTREE_DATA"]) / f"{name}.csv.gz")
    y = frame.pop("target").to_numpy()
    return frame, np.minimum(y, 3) if name == "covtype_random10k" else y


def drawn(frame, n, rng, thresholds):
    """Rows drawn anew, some values on thresholds or beside them, some missing or unknown."""
    found = frame.iloc[rng.integers(0, len(frame), n)].reset_index(drop=True)
    for name in found:
        if is_numeric_dtype(found[name]):
            values = found[name].to_numpy(np.float64, copy=True)
            if len(at := thresholds.get(name, ())):
                near = np.concatenate([at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf)])
                moved = rng.random(n) < 0.2
                values[moved] = rng.choice(near, int(moved.sum()))
            values[rng.random(n) < MISSING] = np.nan
        else:
            values = found[name].to_numpy(object, copy=True)
            values[rng.random(n) < MISSING] = "a category nobody has"
            values[rng.random(n) < MISSING] = None
        found[name] = values
    return found


def brute_force(card, values, answer, costs, add):
    """The least cost of all combinations of bands with another prediction."""
    least = np.full(len(values), np.inf)
    offset = np.asarray(card.offset, np.int64)

    def visit(index, total, cost):
        if index < len(card.variables):
            for k, band in enumerate(card.variables[index].bands):
                visit(index + 1, total + band.points, add(cost, costs[index][:, k]))
            return
        # of several classes the first one on ties
        other = int(total[0] >= card.decision) if card.is_binary else int(np.argmax(total))
        np.minimum(least, np.where(other != answer, cost, np.inf), out=least)

    visit(0, offset, np.zeros(len(values)))
    return least


def costs_of(variable, values, unit, missing):
    """What it costs each row to be moved into each band; missing values stay, and none become so.

    A category that is not known has the points of missing ones, but may be moved as any other.
    """
    x, own = values[:, variable.feature], variable.band_of(values[:, variable.feature])
    found = np.full((len(x), len(variable.bands)), np.inf)
    for k, band in enumerate(variable.bands):
        if variable.column.is_categorical and not band.is_missing:
            found[:, k] = 1.0
        elif not band.is_missing:
            past = np.where(x < band.low, band.low - x, x - np.nextafter(band.high, -np.inf))
            found[:, k] = np.maximum(past, 0) / unit
    found[missing] = np.inf
    found[np.arange(len(x)), own] = 0
    return found


def compare_certificates(card, rows):
    """Rows whose distance differs for the largest and the summed change, and the largest error."""
    units = {v.name: 0.0 for v in card.variables if v.column.is_categorical}
    units |= {
        v.name: (v.column.high - v.column.low) / 10
        for v in card.variables
        if not v.column.is_categorical
    }
    ways = [
        (
            Perturbation(radius={name: unit or 1.0 for name, unit in units.items()}, whole=[]),
            np.maximum,
        ),
        (
            Perturbation(
                step_cost={name: 1 / (unit or 1.0) for name, unit in units.items()}, whole=[]
            ),
            np.add,
        ),
    ]
    values = card.encode(rows)
    costs = [costs_of(v, values, units[v.name], rows[v.name].isna()) for v in card.variables]
    differ, error = [], 0.0
    for noise, add in ways:
        found = certify(card, rows, card.predict(rows), noise)
        least = brute_force(card, values, found.answer, costs, add)
        wrong = ~np.isclose(found.distance, least, rtol=1e-9, atol=1e-12)
        reached = np.isfinite(found.distance)
        moved = card.answer_encoded(np.where(reached[:, None], found.witness, values))
        wrong |= (moved != found.answer) != reached
        differ.append(int(wrong.sum()))
        both = np.isfinite(least) & reached
        error = max(error, np.abs(found.distance[both] - least[both]).max(initial=0.0).item())
    return *differ, error


def compare_sql(card, rows):
    """Rows whose total differs in SQLite and in DuckDB, NaN over Arrow as it stands."""
    totals = card.score(rows).reshape(len(rows), -1)
    labels = [None] if card.is_binary else card.classes.tolist()
    expressions = ", ".join(card.to_sql(label) for label in labels)
    with closing(sqlite3.connect(":memory:")) as base:
        rows.to_sql("t", base, index=False)
        lite = np.array(base.execute(f"SELECT {expressions} FROM t").fetchall(), object)
    table = pyarrow.table(
        {
            name: pyarrow.array(column.to_numpy(), from_pandas=not is_numeric_dtype(column))
            for name, column in rows.items()
        }
    )
    with duckdb.connect() as base:
        base.register("t", table)
        duck = np.array(base.execute(f"SELECT {expressions} FROM t").fetchall(), object)
    return [int((found != totals).any(axis=1).sum()) for found in (lite, duck)]


def measure(name):
    frame, y = load(name)
    rng = np.random.default_rng(0)
    fitted = rng.permutation(len(y))[: min(len(y) // 2, MOST_FITTED)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        most = {"max_variables": 3} if len(np.unique(y)) > 2 else {}
        card = RiskScoreClassifier(**most).fit(frame.iloc[fitted], y[fitted]).card_
    bands = [len(variable.bands) for variable in card.variables]
    thresholds = {v.name: v.thresholds for v in card.variables}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of categories that are not known
        rows = drawn(frame, SCORED, rng, thresholds)
        certificates = compare_certificates(card, rows[:CERTIFIED])
        found = compare_sql(card, rows)
    about = name, len(card.classes), len(bands), sum(bands), math.prod(bands)
    return (*about, *certificates, *found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="*", choices=(*FILES, *MADE), default=(*FILES, *MADE))
    given = parser.parse_args()
    print(f"certified rows: {CERTIFIED:,}; rows in SQL: {SCORED:,}")
    print(f"{HEADS[0]:<20}" + "".join(f"{head:>16}" for head in (*HEADS[1:], *COMPARED)))
    found = []
    for name in given.sets:
        found.append(measure(name))
        print_line(*found[-1])
    columns = list(zip(*found, strict=True))[5:]
    worst = [max(column) if k == 2 else sum(column) for k, column in enumerate(columns)]
    print_line("all", *[""] * 4, *worst)


def print_line(name, *cells):
    shown = [
        f"{cell:.1e}" if isinstance(cell, float) else f"{cell:,}" if cell != "" else ""
        for cell in cells
    ]
    print(f"{name:<20}" + "".join(f"{cell:>16}" for cell in shown), flush=True)


if __name__ == "__main__":
    main()
