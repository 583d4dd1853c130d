"""Colours, text widths and axes."""

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
