"""JSON with common keys is imported without --columns, unless its keys are ambiguous."""

import json
import re
from dataclasses import replace
from datetime import datetime

import pytest

from data.errors import BadInput
from data.ingest.importer import Options
from data.logs.columns import columns_from
from tests.support.user_agents import CHROME

ROWS = [
    {"ts": 1795687200 + number, "client": {"ip": f"203.0.113.{number}"}, "uri": f"/b{number}", "status_code": 302,
     "ua": CHROME}
    for number in range(4)
]  # fmt: skip
PAIRS = "time=ts,ip=client.ip,url=uri,status=status_code,user_agent=ua"
PATHS = {"/b0": 1, "/b1": 1, "/b2": 1, "/b3": 1}
GUESSING = Options("acme", "go.example.com", guesses_columns=True)
GIVEN = replace(GUESSING, columns=columns_from(PAIRS))
ASKED = replace(GUESSING, guesses_columns=False)


def ndjson(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def test_json_with_common_keys_is_imported(logs):
    summary = logs.load(ndjson(ROWS), GUESSING)
    assert (summary.visits, summary.rejected, summary.log_format) == (4, 0, f"ndjson --columns {PAIRS}")
    assert logs.column("visited_at")["/b1"] == datetime(2026, 11, 26, 10, 0, 1)
    assert {visit["bot_category"] for visit in logs.visits()} == {"human"}
    assert len({visit["visitor"] for visit in logs.visits()}) == 4


def test_guessed_columns_give_the_same_visits_as_given_columns(logs):
    logs.load(ndjson(ROWS), GUESSING)
    logs.load(ndjson(ROWS), replace(GIVEN, organization="other"))
    first, second = ([visit | {"visitor": None} for visit in logs.visits(name)] for name in ("acme", "other"))
    assert first == second


def test_competing_keys_are_rejected_and_named(logs):
    rows = [row | {"remote_addr": "10.0.0.1", "code": 200} for row in ROWS]
    with pytest.raises(BadInput, match=r"client\.ip and remote_addr for ip; status_code and code for status.*explain"):
        logs.load(ndjson(rows), GUESSING)
    assert logs.batches() == []


@pytest.mark.parametrize("key", ["ts", "client", "uri", "status_code", "ua"])
def test_json_without_a_required_key_is_rejected(logs, key):
    with pytest.raises(BadInput, match="no known log format"):
        logs.load(ndjson([{name: value for name, value in row.items() if name != key} for row in ROWS]), GUESSING)


def test_without_guessing_the_error_names_the_columns(logs):
    with pytest.raises(BadInput, match=re.escape(f"can be read with --columns {PAIRS}; ")):
        logs.load(ndjson(ROWS), ASKED)


def test_a_grown_log_keeps_its_columns_despite_other_keys(logs):
    logs.load(ndjson(ROWS[:2]), GUESSING)
    more = [row | {"ip": "192.0.2.1", "timestamp": 0} for row in ROWS[2:]]
    summary = logs.load(ndjson(ROWS[:2] + more), GUESSING)
    assert (summary.continued, summary.visits, summary.log_format) == (True, 2, f"ndjson --columns {PAIRS}")
    assert logs.paths() == PATHS


def test_a_grown_log_accepts_its_columns_as_a_flag(logs):
    logs.load(ndjson(ROWS[:2]), GUESSING)
    summary = logs.load(ndjson(ROWS), GIVEN)
    assert (summary.continued, summary.visits, summary.log_format) == (True, 2, "ndjson --columns")


def test_a_log_with_guessed_columns_needs_them_to_continue(logs):
    logs.load(ndjson(ROWS[:2]), GUESSING)
    with pytest.raises(BadInput, match=f"was imported with --columns {PAIRS} before; give the same --columns"):
        logs.load(ndjson(ROWS), ASKED)


def test_columns_are_not_guessed_after_they_were_given(logs):
    logs.load(ndjson(ROWS[:2]), GIVEN)
    with pytest.raises(BadInput, match="was imported with --columns before"):
        logs.load(ndjson(ROWS), GUESSING)


def test_a_growing_log_with_guessed_columns_lands_each_line_once(logs):
    text = ndjson(ROWS)
    for end in range(len(ndjson(ROWS[:1])), len(text) + 1, 37):
        logs.load(text[:end], GUESSING)
    logs.load(text, GUESSING)
    assert logs.paths() == PATHS
