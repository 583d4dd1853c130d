"""Documents: a fault is explained in one line; tests/models/test_files.py reads whole ones."""

import pytest

from steadytree._base.documents import convert


def test_a_fault_is_named_with_its_path():
    with pytest.raises(ValueError, match=r"^\[1\]: expected an integer, got text$"):
        convert([1, "a"], list[int])
