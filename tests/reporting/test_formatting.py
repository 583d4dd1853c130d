"""Numbers, labels and measurements as text and as plain values."""

import numpy as np
import pytest

from steadytree.metrics.measurement import Measurement
from steadytree.reporting.formatting import (
    format_comparison,
    interval_text,
    label_text,
    measurement_text,
    number_text,
    one_line,
    percent_text,
    plain,
    plain_measurements,
    plain_text,
    rows_text,
    shorten,
    value_text,
)


@pytest.mark.parametrize(
    ("value", "tolerance", "text"),
    [
        (16.7951, 0.03, "16.8"),
        (52310.0, 50, "52,300"),
        (0.00012345, 1e-6, "0.000123"),
        (16.5, 0.5, "16"),  # just within
        (27.0, 5.0, "30"),  # one digit is enough
        (1 / 3, 0.0, "0.3333333333333333"),  # all digits
        (0.0, 1.0, "0"),
        (float("-inf"), 1.0, "-inf"),
    ],
)
def test_numbers_have_as_few_digits_as_the_tolerance_allows(value, tolerance, text):
    assert number_text(value, tolerance) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.934, "93 %"), (0.0004, "< 1 %"), (0.9999, "> 99 %"), (1.0, "100 %"), (0.0, "0 %")],
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
        ("lead", float("-inf"), "-∞"),
        ("rows", 12345, "12,345"),
        ("distance", 1000.5, "1,000"),
        ("distance", -1000.5, "-1,000"),
        ("distance", 999.5, "1e+03"),
        ("distance", 0.12345, "0.123"),
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
    name = "abcdefgh"
    for most in range(1, 9):
        short = shorten(name, most)
        assert len(short) == most
        left, sign, right = short.partition("…")
        assert name.startswith(left)
        assert name.endswith(right)
        assert (short == name) == (not sign) == (most == 8)
        assert most == 8 or 0 <= len(left) - len(right) <= 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (9_999.0, "9999"),
        (10_000.0, "10,000"),
        (-10_000.0, "-10,000"),
        (1e15, "1,000,000,000,000,000.0"),
        (999_999_999_999_999.0, "999,999,999,999,999"),
        (9_999.5, "9999.5"),
        (10_000.5, "10,000.5"),
        (0.000012, "0.000012"),
        (0.000001, "0.000001"),
        (0.00000099, "9.9e-07"),
        (1e17, "1e+17"),
    ],
)
def test_numbers_are_written_out_where_that_is_short(value, text):
    assert plain_text(value) == text


def test_measurements_as_plain_values():
    exact, sampled = plain_measurements(
        [
            Measurement("accuracy", np.float64(0.5), "share"),
            Measurement("distance", np.inf, "size", (1.5, np.inf), "cm"),
        ]
    )
    assert (exact["value"], exact["interval"], exact["shown"]) == (0.5, None, "50.0 %")
    assert exact["shown_interval"] == ""
    assert (sampled["value"], sampled["interval"]) == (None, [1.5, None])
    assert (sampled["shown"], sampled["shown_interval"]) == ("∞ cm", "1.5 to ∞")


# ---- comparisons ----
def learner(name, accuracy, interval, exact=True, **figures):
    readings = {key.replace("_", " "): {"value": x, "interval": None} for key, x in figures.items()}
    readings["accuracy"] = {"value": accuracy, "interval": interval}
    readings = {key: one | {"unit": "s" * (key == "fit time")} for key, one in readings.items()}
    texts = {"name": name, "description": "d", "notes": []}
    return texts | {"epsilon": None, "exact_sensitivity": exact, "readings": readings}


def test_a_comparison_marks_the_best_and_says_what_it_does_not_tell():
    small = learner("small", 0.80, (0.75, 0.85), size=3, changed_answers=0.02, fit_time=0.25)
    large = learner("large", 0.78, (0.74, 0.82), False, size=9, changed_answers=0.05, fit_time=0.5)
    large["readings"]["sensitivity"] = {"value": 0.012, "interval": None, "unit": ""}
    large["epsilon"] = 1.5
    forest = learner("forest", 0.90, (0.85, 0.95), changed_answers=0.02)
    found = format_comparison({"learners": [large, small, forest]})
    assert found["headline"] == (
        "Most accurate: forest (90.0 %); fewest predictions change on retraining: small (2.0 %)."
    )
    heads = [column["key"] for column in found["columns"]]
    assert heads == ["accuracy", "size", "sensitivity", "changed answers", "privacy", "fit time"]
    cells = [dict(zip(heads, row["cells"], strict=True)) for row in found["rows"]]
    shown = [[cell["shown"] for cell in row.values()] for row in cells]
    assert shown == [
        ["78.0 %", "9", "≈ 0.012", "5.0 %", "ε = 1.5", "0.5 s"],
        ["80.0 %", "3", "–", "2.0 %", "none", "0.25 s"],
        ["90.0 %", "–", "–", "2.0 %", "none", "–"],
    ]
    best = [[key for key, cell in row.items() if cell["best"]] for row in cells]
    assert best == [[], ["changed answers", "fit time"], ["accuracy", "changed answers"]]
    assert cells[0]["accuracy"]["interval"] == "74.0 % to 82.0 %"
    overlap, price = found["cautions"]  # intervals that touch overlap
    assert overlap.startswith("The accuracy intervals of forest and of small overlap")
    assert "forest is 10.0 points more accurate than small, the most accurate readable" in price


def test_a_comparison_without_doubt_and_one_that_costs_nothing():
    small = learner("small", 0.80, (0.75, 0.85), size=3, changed_answers=0.1)
    forest = learner("forest", 0.70, (0.65, 0.749), changed_answers=0.1, worst_case_accuracy=0.1)
    forest["readings"]["worst-case accuracy"] = forest["readings"].pop("worst case accuracy")
    found = format_comparison({"learners": [forest, small]})
    (price,) = found["cautions"]
    assert "none here, forest is 10.0 points less accurate than small" in price
    assert "; most accurate in the worst case: forest (10.0 %); fewest" in found["headline"]
    changed = [row["cells"][2] for row in found["rows"]]
    assert [one["best"] for one in changed] == [False, False]  # equal: none is better
    alone = format_comparison({"learners": [small]})
    assert alone["cautions"] == []
    assert not any(cell["best"] for cell in alone["rows"][0]["cells"])


def test_figures_of_a_comparison_have_their_own_digits():
    assert value_text("accuracy", 0.93456) == "93.5 %"
    assert value_text("fit time", 0.0123) == "0.012"
    assert (value_text("size", 4.0), value_text("size", 4.25)) == ("4", "4.2")
    assert (value_text("retraining distance", 10.0), value_text("AUC", 0.95)) == ("10", "0.950")


def numbers_of_all_sizes(n):
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=n) * 10.0 ** rng.integers(-9, 19, n)
    rounded = [float(f"{x:.{rng.integers(1, 17)}g}") for x in drawn]
    ends = [1e-6, 1e15, 10_000.0, 1e16, 999_999.5, 1e-7, 123_456_789_012_345.6, 2e15 + 0.25]
    return [*rounded, *ends, *(np.nextafter(x, 0) for x in ends), *(-x for x in ends)]


def test_a_number_that_is_written_out_is_that_number():
    for value in map(float, numbers_of_all_sizes(1_000)):
        text = plain_text(value)
        assert float(text.replace(",", "")) == value
        whole, point, part = text.removeprefix("-").partition(".")
        if "e" in text:
            assert abs(value) < 1e-6 or abs(value) >= 1e15
            continue
        assert not 0 < abs(value) < 1e-6
        digits = whole.replace(",", "")
        assert ("," in whole) == (len(digits) > 4)
        assert whole in {digits, f"{int(digits):,}"}
        assert "," not in part
        assert not point or not value.is_integer() or abs(value) >= 1e15
        assert "." in part or part in {"", "0"} or not part.endswith("0")


def test_a_number_has_the_fewest_digits_that_stay_within_the_tolerance():
    assert number_text(0.1 + 0.2, 0.0) == "0.30000000000000004"
    rng = np.random.default_rng(1)
    for value in map(float, numbers_of_all_sizes(500)):
        tolerance = abs(value) * float(rng.choice([0.0, *10.0 ** -np.arange(15)])) * 0.3
        tried = [float(f"{value:.{digits}g}") for digits in range(1, 18)]
        expected = next(x for x in tried if abs(x - value) <= tolerance)
        assert number_text(value, tolerance) == plain_text(expected)
