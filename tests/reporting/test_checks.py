"""Columns that name rows, and numbers with some text."""

import numpy as np
import pytest

from steadytree.data.table import Table
from steadytree.reporting.checks import check_texts, drop_options, mixed_numbers


def table_of(name, column):
    return Table((name,), [np.asarray(column)], {})


@pytest.mark.parametrize(("n_texts", "n_rows", "is_refused"), [(31, 60, True), (30, 60, False)])
def test_texts_are_refused_where_they_are_hardly_ever_the_same(n_texts, n_rows, is_refused):
    texts = np.array([f"text {k % n_texts}" for k in range(n_rows)], object)
    if is_refused:
        with pytest.raises(ValueError, match="different texts for more than every second row"):
            check_texts(table_of("note", texts))
    else:
        check_texts(table_of("note", texts))
    texts[:20] = None  # missing values are no texts
    few = texts[:40]
    assert len(set(few.tolist())) <= 21
    check_texts(table_of("note", few))


def test_options_that_leave_columns_out_are_quoted():
    assert drop_options(["id", "full name"]) == "--drop id --drop 'full name'"


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["forty"], {"age": "forty"}),
        (["forty", None], {"age": "forty"}),
        ([], {}),  # numbers that were declared as text
        ([f"grade {k}" for k in range(9)], {}),  # too many to be slips
    ],
)
def test_numbers_with_a_few_texts_among_them_are_found(texts, found):
    column = np.array([*map(str, range(30)), *texts], object)
    assert mixed_numbers(table_of("age", column)) == found
    assert mixed_numbers(table_of("age", column[20:])) == {}  # few values may well be categories
    assert mixed_numbers(table_of("age", np.arange(30.0))) == {}


def test_numbers_with_stray_text_are_refused_as_such():
    column = np.array([*map(str, range(100)), "-", "n.a."], object)
    with pytest.raises(ValueError, match=r"has numbers, but also text such as '-': correct the te"):
        check_texts(table_of("income", column))


@pytest.mark.parametrize("form", ["2026-03-{:02d}", "{}.3.2026", "2026-03-{:02d} 10:00:00"])
def test_dates_are_refused_as_such(form):
    column = np.array([form.format(day) for day in range(1, 31)], object)
    with pytest.raises(ValueError, match="has dates: write numbers instead, such as days since"):
        check_texts(table_of("opened", column))
