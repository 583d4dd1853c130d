"""Rows of a file with their target and groups."""

import numpy as np
import pytest

from steadytree.reporting.data_set import DataSet


@pytest.fixture
def path(tmp_path):
    lines = ["id,age,sex,y", *(f"{k},{20 + k % 7},{'mf'[k % 2]},{k % 3 > 0:d}" for k in range(60))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return tmp_path / "rows.csv"


def test_a_dropped_column_may_still_divide_the_rows(path):
    rows = DataSet.read(path, "y", drop=["id", "sex"], by=["sex"])
    assert rows.features.names == ("age",)
    assert rows.title == "rows.csv: y"
    assert rows.labels.tolist() == [int(k % 3 > 0) for k in range(60)]
    assert rows.groups["sex"].tolist() == ["mf"[k % 2] for k in range(60)]


def test_a_split_keeps_rows_labels_and_groups_together(path):
    rows = DataSet.read(path, "y", by=["sex"])
    fitting, held_out = rows.split(0)
    assert len(held_out.labels) == pytest.approx(0.3 * 60, abs=1)
    numbers = np.concatenate(
        [part.features.select(["id"]).columns[0] for part in (fitting, held_out)]
    )
    assert sorted(numbers.tolist()) == list(range(60))
    for part in (fitting, held_out):
        own = part.features.select(["id"]).columns[0].astype(int)
        assert part.labels.tolist() == rows.labels[own].tolist()
        assert part.groups["sex"].tolist() == rows.groups["sex"][own].tolist()


@pytest.mark.parametrize(
    ("target", "drop", "message"),
    [
        (None, [], "name the column to predict with --target NAME"),
        ("z", [], "no column 'z' for the target"),
        ("y", ["y"], "both the target and dropped"),
    ],
)
def test_a_wrong_target_is_refused(path, target, drop, message):
    with pytest.raises(ValueError, match=message):
        DataSet.read(path, target, drop)
