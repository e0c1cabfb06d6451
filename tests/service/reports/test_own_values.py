"""Values of every DuckDB type are printed in every format and sent to assistants, though JSON has few types."""

import csv
import io
import json
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

from tests.support.runs import run
from tests.support.tables import examples, tables
from tests.support.visits import land, visit

TYPES = tables(__file__)["test_own_sql_prints_every_type_as_json"]
ALL_TYPES = "SELECT " + ", ".join(f"{value} AS c{place}" for place, (value, _) in enumerate(TYPES))


@pytest.fixture(scope="module")
def lake(shared_lake):
    land(shared_lake, "ant", [visit()])
    return shared_lake


@pytest.fixture
def asked(lake, tmp_path):
    """Run SQL with `traffic query` and an output format."""

    def asked(sql, output):
        file = tmp_path / "own.sql"
        file.write_text(sql)
        return run("query", file, "--org", "ant", "--lake", lake.root, "--format", output)

    return asked


def said(lake, sql):
    """Run each query with the tool run_sql, in one session; return each result's text and whether the call failed."""
    calls = [{"name": "run_sql", "arguments": {"sql": one, "max_tokens": "25000"}} for one in sql]
    lines = [json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}) for call in calls]
    answered = run("mcp", "--org", "ant", "--lake", lake.root, stdin="\n".join(lines).encode())
    assert answered.code == 0
    return [(one["result"]["content"][0]["text"], one["result"]["isError"]) for one in answered.answers]


@examples("sql", "value")
def test_own_sql_prints_every_type_as_json(every_type, sql, value):
    assert json.dumps(every_type[sql]) == json.dumps(value)


@pytest.fixture(scope="module")
def every_type(lake, tmp_path_factory):
    file = tmp_path_factory.mktemp("sql") / "own.sql"
    file.write_text(ALL_TYPES)
    (row,) = run("query", file, "--org", "ant", "--lake", lake.root, "--format", "json").json
    return {sql: row[f"c{place}"] for place, (sql, _) in enumerate(TYPES)}


def test_an_assistant_gets_every_type_as_json(lake, every_type):
    ((text, failed),) = said(lake, [ALL_TYPES])
    assert not failed
    assert [*json.loads(text.split("\n")[1])[0].values()] == [*every_type.values()]


def test_own_sql_prints_every_type_as_csv(asked, every_type):
    (row,) = csv.DictReader(io.StringIO(asked(ALL_TYPES, "csv").out))
    for place, (_, value) in enumerate(TYPES):
        if isinstance(value, str | tuple | dict):
            assert row[f"c{place}"] == (value if isinstance(value, str) else json.dumps(value, separators=(",", ":")))


def test_own_sql_prints_every_type_in_a_table(asked):
    printed = asked(ALL_TYPES, "table")
    assert printed.code == 0
    for text in ("x\\xFF\\x00", '{"1":"a"}', "3 days, 0:00:00", "2026-03-01T23:02:03Z", "01:02:03+02:00", "inf"):
        assert text in printed.out


def test_own_sql_writes_every_type_as_parquet(asked):
    (row,) = pq.read_table(io.BytesIO(asked(ALL_TYPES, "parquet").body)).to_pylist()
    found = {sql: row[f"c{place}"] for place, (sql, _) in enumerate(TYPES)}
    assert found["map {1: 'a'}"] == '{"1":"a"}'
    assert found["TIMESTAMPTZ '2026-03-02 01:02:03+02'"] == datetime(2026, 3, 1, 23, 2, 3)
    assert found["(-9223372036854775809)::HUGEINT"] == "-9223372036854775809"
    assert found["'11111111-2222-4333-8444-555555555555'::UUID"] is not None


def test_the_current_time_is_printed_in_utc(asked):
    (row,) = asked("SELECT now() AS now", "json").json
    assert abs(datetime.fromisoformat(row["now"]) - datetime.now(UTC)).total_seconds() < 3_600


@examples("sql", "told")
def test_an_unrepresentable_value_is_reported(asked, sql, told):
    refused = asked(sql, "json")
    assert (refused.code, refused.out) == (2, "")
    assert told in refused.err
    assert refused.err.count("\n") == 1


def test_an_assistant_continues_after_an_unrepresentable_value(lake):
    (_, refused), (answer, failed) = said(lake, ["SELECT INTERVAL 5000000 YEAR", "SELECT 1 AS one"])
    assert (refused, failed) == (True, False)
    assert json.loads(answer.split("\n")[1]) == [{"one": 1}]


@pytest.mark.parametrize("depth", [50, 150, 400])
@pytest.mark.parametrize("output", ["json", "csv", "table", "parquet"])
def test_lists_of_any_depth_are_printed_or_rejected(asked, depth, output):
    printed = asked(f"SELECT {'[' * depth}1{']' * depth} AS deep", output)
    assert printed.code in (0, 2) or "longer than 10 seconds" in printed.err  # a slow machine does not get this far
    assert "Traceback" not in printed.err
    assert printed.body or printed.err.count("\n") == 1
