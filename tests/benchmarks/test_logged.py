"""User agents from public logs, and how well bots are recognized among them."""

import re

import pytest

from benchmarks.logged import FILE, Logged, logged, share_by_line
from data.rules.bots import MAX_USER_AGENT_LENGTH
from data.rules.classifier import Request

ROWS = list(logged())


def test_the_file_of_user_agents_is_small():
    assert FILE.stat().st_size <= 300_000


def test_rows_are_bots_people_or_set_aside():
    assert {row.label for row in ROWS} == {"automaton", "person", "aside"}


def test_rows_are_from_the_last_three_years():
    assert {row.year for row in ROWS} <= {2024, 2025, 2026}


def test_every_row_counts_at_least_one_line():
    assert min(row.lines for row in ROWS) > 0


def test_user_agents_are_no_longer_than_the_maximum():
    assert max(len(row.user_agent) for row in ROWS) <= MAX_USER_AGENT_LENGTH


def test_the_halves_come_from_different_repositories():
    learned, reported = ({row.repository for row in ROWS if row.half == half} for half in ("learn", "report"))
    assert learned
    assert reported
    assert not learned & reported
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+", name) for name in learned | reported)


@pytest.mark.parametrize("half", ["learn", "report"])
def test_bots_in_public_logs_are_recognized_precisely(classifier, half):
    rows = [row for row in ROWS if row.half == half]
    told = [classifier.classify_user_agent(Request.from_log(row.user_agent).user_agent) for row in rows]
    share = share_by_line(rows, [one.device_type == "bot" for one in told])
    assert share.precision >= 0.998
    assert share.recall >= 0.985


def test_a_share_counts_lines_and_excludes_players():
    rows = [
        Logged("a/b", "learn", 2025, 8, "automaton", "x"),
        Logged("a/b", "learn", 2025, 2, "automaton", "y"),
        Logged("a/c", "learn", 2025, 2, "person", "z"),
        Logged("a/c", "learn", 2025, 100, "aside", "player"),
    ]
    share = share_by_line(rows, [True, False, True, True])
    assert share == (2, 12, 10, 0.8, 0.8)
