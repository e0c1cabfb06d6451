"""Guessing the columns of a JSON file by their names and values."""

import pytest

from data.logs.column_guess import guess_columns
from data.logs.columns import rows_in_objects
from tests.support.tables import examples

WHOLE = {"ts": 1795680000.5, "client_ip": "203.0.113.7", "uri": "/abc", "status_code": 302, "ua": "curl/8.5.0"}


@examples("line", "columns")
def test_columns_are_found_by_names_and_values(line, columns):
    assert guess_columns(rows_in_objects([line])).columns == columns


@pytest.mark.parametrize(("name", "field"), [
    ("ts", "time"), ("client_ip", "ip"), ("uri", "url"), ("status_code", "status"), ("ua", "user_agent"),
])  # fmt: skip
def test_a_guess_without_a_required_column_is_not_certain(name, field):
    guess = guess_columns([{key: value for key, value in WHOLE.items() if key != name}])
    assert (guess.missing, guess.is_certain) == ([field], False)


def test_a_guess_with_all_required_columns_is_certain():
    assert guess_columns([WHOLE]).is_certain


@pytest.mark.parametrize(("field", "more"), [
    ("time", {"timestamp": "2026-11-26T10:00:00Z"}), ("ip", {"remote_addr": "10.0.0.1"}), ("url", {"url": "/x"}),
    ("status", {"response_status": "200"}), ("user_agent", {"agent": "nginx"}), ("bytes_sent", {"bytes": 1, "size": 2}),
])  # fmt: skip
def test_two_columns_for_one_field_make_a_guess_uncertain(field, more):
    guess = guess_columns([WHOLE | more])
    assert list(guess.rivals) == [field]
    assert {*more} <= {*guess.rivals[field]}
    assert not guess.is_certain


def test_a_column_with_unsuitable_values_is_not_a_candidate():
    assert guess_columns([WHOLE | {"time": 0.003, "ip": "edge-1", "code": "E42", "agent": ""}]).is_certain


def test_a_mostly_empty_column_is_recognized_by_its_values():
    rows = [WHOLE | {"referer": ""}, WHOLE | {"referer": None}, WHOLE | {"referer": "https://t.co/x"}]
    assert guess_columns(rows).columns["referrer"] == "referer"


def test_the_columns_flag_omits_columns_named_like_their_fields():
    row = {"time": "2026-11-26T10:00:00Z", "path": "/abc", "remote_addr": "203.0.113.7"}
    assert guess_columns([row]).pairs == "ip=remote_addr"


def test_a_column_that_the_flag_cannot_name_is_not_guessed():
    assert guess_columns([{"client,ip": "203.0.113.7"}]).columns == {}
