"""Numbers, labels and measurements as text and as plain values."""

import numpy as np
import pytest

from steadytree.metrics.measurement import Measurement
from steadytree.reporting.formatting import (
    interval_text,
    label_text,
    measurement_text,
    number_text,
    one_line,
    percent_text,
    plain,
    rows_text,
    shorten,
    value_text,
)


@pytest.mark.parametrize(
    ("value", "tolerance", "text"),
    [(16.7951, 0.03, "16.8"), (52310.0, 50, "52,300"), (0.00012345, 1e-6, "0.000123")],
)
def test_numbers_have_as_few_digits_as_the_tolerance_allows(value, tolerance, text):
    assert number_text(value, tolerance) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.934, "93 %"), (0.0004, "< 1 %"), (0.9999, "> 99 %"), (1.0, "100 %")]
)
def test_shares_are_rounded_to_0_or_100_only_where_they_are_that(share, text):
    assert percent_text(share) == text


def test_rows_are_counted():
    assert (rows_text(1), rows_text(12345)) == ("1 row", "12,345 rows")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("accuracy", 0.93449, "93.4 %"),
        ("leaves", 12, "12"),
        ("median distance", float("inf"), "∞"),
    ],
)
def test_measurements_show_shares_in_per_cent_and_infinity_as_a_sign(name, value, text):
    assert measurement_text(Measurement(name, value, "meaning")) == text


def test_intervals_are_shown_where_there_are_any():
    with_interval = Measurement("accuracy", 0.93, "share right", (0.9, 0.955))
    assert interval_text(with_interval) == "90.0 % to 95.5 %"
    assert interval_text(Measurement("leaves", 12, "answers")) == ""


def test_plain_values_are_what_json_can_hold():
    given = {"a": np.array([1.0, np.inf]), "b": (np.int64(2),)}
    assert plain(given) == {"a": [1.0, None], "b": [2]}


def test_labels_are_one_line_and_never_empty():
    assert one_line("age\n(years)\x1b[0m") == "age (years)[0m"
    assert (label_text("high risk"), label_text("")) == ("high risk", "(empty)")


def test_long_names_lose_their_middle():
    assert shorten("a_very_long_name_of_a_column", 15) == "a_very_…_column"


def test_figures_of_a_comparison_have_their_own_digits():
    assert value_text("accuracy", 0.93456) == "93.5 %"
    assert value_text("fit time", 0.0123) == "0.012"
