"""Colours, text widths and axes."""

import pytest

from steadytree.reporting.svg.canvas import (
    Axis,
    class_colours,
    colour_style,
    fit_text,
    text_width,
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
