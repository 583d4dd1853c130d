"""Fingerprints of rows: what is found again, what the file holds, bad files."""

import json

import numpy as np
import pandas as pd
import pytest

from steadytree._base.exceptions import TreeFileError
from steadytree.data.dataset import (
    fingerprint_path,
    fingerprints_of,
    read_fingerprints,
    rows_in,
    write_fingerprints,
)

ROWS = pd.DataFrame({"age": [40.0, 41.0, np.nan, 40.0], "town": ["Ulm", None, "Bonn", "Ulm"]})
LABELS = ["yes", "no", "no", "yes"]


def test_rows_are_found_in_any_order_of_rows_and_columns_as_often_as_they_were(tmp_path):
    write_fingerprints(tmp_path / "a.rows.json", ROWS[:3], LABELS[:3])
    known = read_fingerprints(tmp_path / "a.rows.json")
    assert rows_in(known, ROWS, LABELS).tolist() == [True, True, True, False]
    turned = ROWS[["town", "age"]][::-1].assign(new=1)
    assert rows_in(known, turned, LABELS[::-1]).tolist() == [True, True, True, False]
    assert not rows_in(known, ROWS, ["no", "yes", "yes", "no"]).any()


def test_values_run_into_one_another_nowhere():
    known = fingerprints_of(np.array([["ab", "c"], ["-", "d"]], object), ["x", "y"])
    others = np.array([["a", "bc"], [None, "d"]], object)
    assert not rows_in(known, others, ["x", "y"]).any()


def test_the_file_holds_salted_hashes_alone(tmp_path):
    path = tmp_path / "a.rows.json"
    hashes = []
    for _ in range(2):
        write_fingerprints(path, ROWS, LABELS)
        hashes.append(json.loads(path.read_text("utf-8"))["rows"])
    assert "Ulm" not in path.read_text("utf-8")
    assert not set(hashes[0]) & set(hashes[1])
    assert hashes[0] == sorted(hashes[0])


def test_the_file_lies_beside_that_of_the_tree():
    assert fingerprint_path("models/q1.tree.json").as_posix() == "models/q1.rows.json"
    assert fingerprint_path("q1.json").name == "q1.rows.json"


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "no json",
        '{"format":"other","version":1,"salt":"00","columns":[],"rows":[]}',
        '{"format":"steadytree-rows","version":2,"salt":"00","columns":[],"rows":[]}',
        '{"format":"steadytree-rows","version":1,"salt":"no hex","columns":[],"rows":[]}',
    ],
)
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "a.rows.json"
    path.write_text(text, "utf-8")
    with pytest.raises(TreeFileError, match=r"a.rows.json: not a file of fingerprints"):
        read_fingerprints(path)


def test_columns_that_the_rows_lack_are_named():
    known = fingerprints_of(ROWS, LABELS)
    with pytest.raises(ValueError, match="rows with 'town', which these rows lack"):
        rows_in(known, ROWS[["age"]], LABELS)
