"""Answers fitted to the width of a terminal; transcripts/tables.txt shows the output."""

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from data import BadInput
from service.core.commands.answers import select_columns
from service.core.commands.tables import fit, shorten, text_of
from tests.support.tables import examples

URL = "https://shop.example/" + "a" * 100 + "/ü?last=yes"
ROW = {
    "short_code": "sale",
    "target_url": URL,
    "visits": 1_234_567,
    "percentage": 12.5,
    "human_clicks": 1_000_000,
    "unique_visitors": 7,
    "last_visit": datetime(2026, 3, 9, 13, 5, 6),
}
NAMES = st.sampled_from(["agent", "visits", "percentage", "ai_visits", "last_seen", "名前_x"])
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.dates() | st.datetimes() | st.text()
ROWS = st.lists(NAMES, min_size=1).flatmap(
    lambda names: st.lists(st.fixed_dictionaries(dict.fromkeys(names, VALUES)), min_size=1, max_size=3)
)


def lines_of(columns):
    """Return the width of a table with these columns."""
    return sum(column.width for column in columns) + 2 * (len(columns) - 1)


def names_of(columns):
    return [column.name for column in columns]


def test_columns_are_omitted_from_the_right_but_key_columns_last():
    left_out = {width: fit([ROW], width)[1] for width in (200, 80, 60, 40, 30)}
    assert left_out == {
        200: [],
        80: ["last_visit"],
        60: ["unique_visitors", "last_visit"],
        40: ["target_url", "human_clicks", "unique_visitors", "last_visit"],
        30: ["target_url", "human_clicks", "unique_visitors", "last_visit"],
    }
    assert names_of(fit([ROW], 15)[0]) == ["short_code"]


def test_numbers_are_right_aligned_and_never_truncated():
    for width in range(25, 200):
        cells = {column.name: column for column in fit([ROW], width)[0]}
        assert (cells["visits"].is_number, cells["visits"].cells) == (True, ("1,234,567",))


def test_nothing_is_truncated_without_a_terminal():
    columns, left_out = fit([ROW], None)
    assert left_out == []
    assert [column.cells[0] for column in columns] == [text_of(value) for value in ROW.values()]
    assert [column.header for column in columns] == list(ROW)


@given(ROWS, st.integers(1, 120))
def test_no_table_is_wider_than_its_terminal(rows, width):
    columns, left_out = fit(rows, width)
    assert lines_of(columns) <= width
    assert {*names_of(columns), *left_out} == set(rows[0])
    for column in columns:
        assert all(cell_len(text) <= column.width for text in (*column.cells, *column.header.splitlines()))


@examples("text", "width", "shortened")
def test_long_text_is_shortened_in_the_middle(text, width, shortened):
    assert shorten(text, width) == shortened


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "yes"), (1234, "1,234"), (12.5, "12.50"), (1234.0, "1,234.00"), (0.0001, "0.0001"),
     (Decimal("2.5"), "2.50"), (date(2026, 3, 4), "2026-03-04"), (["a", "b"], "a b")],
)  # fmt: skip
def test_a_value_is_printed_in_readable_form(value, text):
    assert text_of(value) == text


def test_columns_of_an_answer_can_be_chosen():
    assert select_columns([{"a": 1, "b": 2}], "b, a") == [{"b": 2, "a": 1}]
    assert select_columns({"a": 1, "b": 2}, "b") == {"b": 2}
    assert select_columns([], "b") == []
    with pytest.raises(BadInput, match="'c'; use a, b"):
        select_columns([{"a": 1, "b": 2}], "a,c")
    with pytest.raises(BadInput, match="--part: weekly"):
        select_columns({"weekly": []}, "a")
