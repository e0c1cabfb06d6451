"""Answers as tables on a terminal: nothing wider than it, and nothing left out in silence."""

import fcntl
import os
import pty
import struct
import termios
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from data import BadInput
from service.commands.answers import select_columns
from service.commands.tables import fit, shorten, text_of
from tests.support.tables import examples
from tests.support.visits import land, links, visit

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
    """How wide each line is, at most."""
    return sum(column.width for column in columns) + 2 * (len(columns) - 1)


def names_of(columns):
    return [column.name for column in columns]


@pytest.fixture(scope="module")
def terminal(shared_lake, forks):
    """Runs `traffic query` on a terminal of 80 columns. Returns the lines that it shows."""
    hostile = visit(short_code="sale", referrer="\x1b[2Jevil\u202e.example", referrer_type="other")
    land(shared_lake, "acme", [hostile, *[visit(short_code="sale", visitor=number) for number in range(1_499)]])
    links(shared_lake, "acme", [{"short_code": "sale", "target_url": URL}])

    def terminal(*arguments):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        days = ("--start-date", "2026-03-02", "--end-date", "2026-03-10")
        words = ("query", *arguments, "--org", "acme", "--lake", shared_lake.root, *days)
        process = forks.start(*words, settings={"TERM": "dumb", "COLUMNS": ""}, out=theirs, err=theirs)
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the other end is closed
            while read := os.read(ours, 65_536):
                shown += read
        os.close(ours)
        assert process.wait() == 0, shown
        return shown.decode().splitlines()

    return terminal


def test_a_table_fits_into_a_terminal_and_tells_what_does_not(terminal):
    head, names, row, *told = terminal("top-links")
    assert all(len(line) <= 80 for line in (head, names, row))
    assert row.split()[0] == "sale"
    assert row.split()[2].startswith("https://")
    assert row.split()[2].endswith("yes")
    assert "…" in row.split()[2]
    assert row.split()[3:5] == ["1,500", "100.00"]
    assert "last_visit" in " ".join(told)
    assert "--wide" in " ".join(told)


def test_wide_shows_all_and_columns_choose(terminal):
    shown = "".join(terminal("top-links", "--wide"))
    assert URL in shown
    assert "2026-03-04T12:30:00Z" in shown
    assert "Not shown" not in shown
    head, row = terminal("top-links", "--columns", "visits,short_code")
    assert (head.split(), row.split()) == (["visits", "short_code"], ["1,500", "sale"])


def test_an_empty_line_ends_each_part_of_an_answer(terminal):
    parts = [line for line in terminal("weekly-trend") if not line.strip()]
    assert len(parts) == 2


def test_one_object_is_shown_from_top_to_bottom_and_no_text_of_a_stranger_controls_the_terminal(terminal):
    shown = dict(line.split() for line in terminal("traffic-overview"))
    assert shown["total_visits"] == shown["human_clicks"] == "1,500"
    for flags, text in (
        (("--columns", "referrer,visits"), "\ufffd[2Jevil\ufffd.example"),
        (("--format", "json"), r"\u001b[2Jevil\u202e.example"),
        (("--format", "csv"), r"\u001b[2Jevil\u202e.example"),
    ):
        shown = "\n".join(terminal("referrers", *flags))
        assert text in shown
        assert not {"\x1b", "\u202e"} & set(shown)


def test_a_table_that_fits_has_a_bar_beside_percentage():
    rows = [{"device_type": name, "visits": visits, "percentage": visits / 40} for name, visits in
            (("desktop", 3_000), ("mobile", 750), ("bot", 0))]  # fmt: skip
    columns, left_out = fit(rows, 80)
    assert left_out == []
    assert [len(cell) for cell in columns[3].cells] == [30, 8, 0]
    assert lines_of(columns) <= 80
    assert names_of(fit(rows, 40)[0]) == ["device_type", "visits", "percentage"]


def test_columns_are_left_out_from_the_right_the_first_visits_and_percentage_last():
    left_out = {width: fit([ROW], width)[1] for width in (200, 80, 60, 40, 30)}
    assert left_out == {
        200: [],
        80: ["last_visit"],
        60: ["unique_visitors", "last_visit"],
        40: ["target_url", "human_clicks", "unique_visitors", "last_visit"],
        30: ["target_url", "human_clicks", "unique_visitors", "last_visit"],
    }
    assert names_of(fit([ROW], 15)[0]) == ["short_code"]


def test_numbers_are_right_aligned_and_never_shortened_and_without_a_terminal_nothing_is():
    for width in range(25, 200):
        cells = {column.name: column for column in fit([ROW], width)[0]}
        assert (cells["visits"].is_number, cells["visits"].cells) == (True, ("1,234,567",))
    columns, left_out = fit([ROW], None)
    assert left_out == []
    assert [column.cells[0] for column in columns] == [text_of(value) for value in ROW.values()]
    assert [column.header for column in columns] == list(ROW)


@given(ROWS, st.integers(1, 120))
def test_no_table_is_wider_than_its_terminal(rows, width):
    columns, left_out = fit(rows, width)
    assert lines_of(columns) <= width
    assert {*names_of(columns), *left_out} - {""} == set(rows[0])
    for column in columns:
        assert all(cell_len(text) <= column.width for text in (*column.cells, *column.header.splitlines()))


@examples("text", "width", "shortened")
def test_a_text_is_shortened_in_its_middle(text, width, shortened):
    assert shorten(text, width) == shortened


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "yes"), (1234, "1,234"), (12.5, "12.50"), (1234.0, "1,234.00"), (0.0001, "0.0001"),
     (Decimal("2.5"), "2.50"), (date(2026, 3, 4), "2026-03-04"), (["a", "b"], "a b")],
)  # fmt: skip
def test_a_value_is_printed_for_people(value, text):
    assert text_of(value) == text


def test_columns_of_an_answer_can_be_chosen():
    assert select_columns([{"a": 1, "b": 2}], "b, a") == [{"b": 2, "a": 1}]
    assert select_columns({"a": 1, "b": 2}, "b") == {"b": 2}
    assert select_columns([], "b") == []
    with pytest.raises(BadInput, match="'c'; use a, b"):
        select_columns([{"a": 1, "b": 2}], "a,c")
    with pytest.raises(BadInput, match="--part: weekly"):
        select_columns({"weekly": []}, "a")
