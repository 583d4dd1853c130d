"""Columns as a frame of whichever library is there."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from steadytree._base import optional as frame

COLUMNS = {"leaves": np.array([4, 7]), "origin": np.array(["a", "b"])}


def test_pandas_first():
    found = frame.to_frame(COLUMNS)
    assert isinstance(found, pd.DataFrame)
    assert found.to_dict("list") == {"leaves": [4, 7], "origin": ["a", "b"]}


def test_polars_where_it_is_alone(monkeypatch):
    monkeypatch.setattr(frame, "find_spec", lambda name: None if name == "pandas" else "there")
    found = frame.to_frame(COLUMNS)
    assert isinstance(found, pl.DataFrame)
    assert found.to_dict(as_series=False) == {"leaves": [4, 7], "origin": ["a", "b"]}


def test_neither(monkeypatch):
    monkeypatch.setattr(frame, "find_spec", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'steadytree\[frame\]'"):
        frame.to_frame(COLUMNS)
