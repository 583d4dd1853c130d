"""Limits by name, as numbers or shares."""

import pytest

from steadytree.reporting.limits import Limits


def test_shares_are_read_as_numbers():
    read = Limits.of({"min_accuracy": "90%", "max_leaves": 12}).values
    assert read == {"min_accuracy": 0.9, "max_leaves": 12.0}


def test_an_unknown_limit_is_refused_with_a_similar_one():
    with pytest.raises(ValueError, match="'min_acuracy': did you mean 'min_accuracy'"):
        Limits.of({"min_acuracy": 0.9})
