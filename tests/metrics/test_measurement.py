import pytest

from steadytree import Measurement


def test_text_and_plain_values():
    found = Measurement("depth", 3, "most splits", unit="splits")
    assert str(found) == "depth: 3 splits"
    within = Measurement("accuracy", 0.5, "share right", (0.25, 0.75), level=0.9)
    assert str(within) == "accuracy: 0.5 (90 % interval 0.25 to 0.75)"
    assert within.to_dict()["interval"] == (0.25, 0.75)


def test_bad_intervals_and_levels_are_refused():
    with pytest.raises(ValueError, match="out of order"):
        Measurement("accuracy", 0.5, "", (0.75, 0.25))
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\)"):
        Measurement("accuracy", 0.5, "", level=1)
