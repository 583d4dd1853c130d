"""Colours, text widths and axes."""

import numpy as np
import pytest

from steadytree.reporting.svg.canvas import (
    Axis,
    class_colours,
    colour_style,
    fit_text,
    text_width,
    wrap_text,
)


def test_frequent_classes_have_colours_of_their_own():
    assert class_colours([5, 9]) == [0, 1]
    assert class_colours([1, 1, 1, 1, 1, 1, 1, 1, 9])[-1] == 0


def test_style_rules_name_each_colour():
    first = colour_style(".a").splitlines()[0]
    assert first == ".a .c0 { fill: #0072B2; background: #0072B2; }"


def test_wide_letters_take_more_room():
    assert text_width("iii") < text_width("mmm")


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [("short", 100, "short"), ("a name that is much too long", 80, "a name…ong")],
)
def test_texts_that_do_not_fit_lose_their_middle(text, room, shown):
    assert fit_text(text, room) == shown


def test_a_text_fits_into_a_box_made_for_it():
    text = "≤ 7.41 (missing: yes)"
    padding = 9
    for size in (11, 12.5, 15):
        width = text_width(text, size) + 2 * padding
        assert fit_text(text, width - 2 * padding, size) == text


def test_ticks_are_round():
    assert Axis.over([0.93, 0.96], "accuracy").ticks == (0.93, 0.94, 0.95, 0.96)


def test_lines_fit_their_width_and_lose_no_word():
    text = "a group of categories with names of several words each, one after the other"
    lines = wrap_text(text, 120, 12, most=20)
    assert " ".join(lines) == text
    assert all(text_width(line, 12) <= 120 for line in lines)
    short = wrap_text(text, 120, 12, most=2)
    assert len(short) == 2
    assert "…" in short[1]
    assert wrap_text("x" * 200, 120, 12) == [fit_text("x" * 200, 120, 12)]
    assert wrap_text("", 120, 12) == [""]


def fitted_slowly(text, width, size):
    """Every trial measured as a whole, from the longest."""
    if text_width(text, size) <= width + 1e-6:
        return text
    for kept in range(len(text) - 1, 1, -1):
        tail = kept // 3
        end = text[len(text) - tail :].lstrip() if tail else ""
        tried = f"{text[: kept - tail].rstrip()}…{end}"
        if text_width(tried, size) <= width:
            return tried
    return "…"


def test_texts_are_shortened_as_by_trying_every_length():
    random = np.random.default_rng(0)
    for _ in range(300):
        text = "".join(random.choice([*"ab  mWi\u0301一 "], random.integers(0, 60)))
        width, size = float(random.uniform(0, 200)), int(random.choice([9, 12, 15]))
        assert fit_text(text, width, size) == fitted_slowly(text, width, size)


def test_a_label_of_many_letters_is_measured_a_few_times_only(monkeypatch):
    measured = []

    def counted(text, *options):
        measured.append(len(text))
        return text_width(text, *options)

    monkeypatch.setattr("steadytree.reporting.svg.canvas.text_width", counted)
    shown = fit_text("sehr " * 20_000, 200)
    assert len(shown) < 60
    assert sum(measured) < 101_000  # once as a whole; every length would be 5e9 letters
