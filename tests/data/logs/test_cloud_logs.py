"""Logs from clouds and content delivery networks: complete files, and lines with several requests."""

import json
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.ingest.importer import Options
from tests.support.forks import ROOT
from tests.support.tables import tables

FORMAT_LINES = tables(ROOT / "tests/data/logs/test_lines.py")["formats"]
SAMPLES = ROOT / "tests/data/logs/samples"
CLOUDS = ("google-cloud", "azure-front-door", "azure-application-gateway", "bunny", "s3", "envoy", "envoy-json",
       "cloudfront-json", "akamai")  # fmt: skip
BALANCERS = ("azure-front-door", "azure-application-gateway")


@pytest.fixture
def load(logs):
    return lambda content, log_format="auto": logs.load(content, Options("acme", "dom.example", log_format))


# Several requests in a line


@pytest.mark.parametrize("log_format", BALANCERS)
def test_all_records_in_a_line_are_read(load, logs, log_format):
    entry = FORMAT_LINES[log_format][0]
    entries = [entry.replace("/abc?q=1", f"/abc{number}") for number in range(3)]
    summary = load(f'{{"records": [{", ".join(entries)}]}}\n{entry.replace("/abc?q=1", "/abc3")}\n')
    assert (summary.log_format, summary.visits, summary.rejects) == (log_format, 4, [])
    assert sorted(visit["path"] for visit in logs.visits()) == ["/abc0", "/abc1", "/abc2", "/abc3"]


@pytest.mark.parametrize("log_format", BALANCERS)
def test_each_bad_record_in_a_line_is_reported(load, log_format):
    entry = FORMAT_LINES[log_format][0]
    bad = json.dumps({"category": "AuditEvent"})
    summary = load(f'{entry}\n{{"records": [{bad}, {entry}, 7, {bad}]}}\n')
    other = (2, "not an access log entry (another category)")
    assert summary.visits == 2
    assert sorted(summary.rejects) == [other, other, (2, f"not in the {log_format} format")]


@pytest.mark.parametrize("log_format", BALANCERS)
def test_a_line_with_too_many_records_is_rejected_as_a_whole(load, log_format):
    entry = FORMAT_LINES[log_format][0]
    summary = load(f'{entry}\n{{"records": [{", ".join([entry] * 200)}]}}\n')
    assert (summary.visits, summary.rejects) == (1, [(2, "longer than 65536 bytes")])


@pytest.mark.parametrize("log_format", BALANCERS)
def test_a_line_of_tiny_records_is_rejected_as_one_line(load, log_format):
    entry = FORMAT_LINES[log_format][0]
    summary = load(f'{entry}\n{{"records": [{", ".join(["{}"] * 9_000)}]}}\n')
    assert (summary.lines, summary.rejects) == (2, [(2, f"not in the {log_format} format")])


# By name


@pytest.mark.parametrize("log_format", CLOUDS)
def test_a_sample_is_imported_by_the_name_of_its_format(load, log_format):
    summary = load((SAMPLES / f"{log_format}.log").read_text("utf-8"), log_format)
    assert (summary.log_format, summary.visits) == (log_format, 2)


# In containers


@pytest.mark.parametrize("log_format", ["envoy", "envoy-json"])
def test_an_envoy_line_is_read_from_a_docker_log(load, log_format):
    line = FORMAT_LINES[log_format][0]
    kept = {"log": f"{line}\n", "stream": "stdout", "time": "2026-03-04T10:05:03.1Z"}
    summary = load(json.dumps(kept) + "\n")
    assert (summary.log_format, summary.visits, summary.rejects) == (log_format, 1, [])


# Parquet

SPELLINGS = {"as documented": str, "in lower case": str.lower}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_a_parquet_file_from_cloudfront_is_recognized(load, logs, spelling):
    row = {"date": "2026-03-04", "time": "10:05:03", "c_ip": "203.0.113.7", "cs_method": "GET", "cs_uri_stem": "/abc"}
    row |= {
        "cs_Host": "d1.cloudfront.net",
        "x_host_header": "go.example.com",
        "sc_status": "302",
        "cs_User_Agent": "a%20b",
    }
    file = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([{spelling(name): value for name, value in row.items()}]), file)
    assert load(file.getvalue().to_pybytes()).log_format == "cloudfront-json"
    (visit,) = logs.visits()
    told = [visit[name] for name in ("visited_at", "domain", "path", "status", "user_agent")]
    assert told == [datetime(2026, 3, 4, 10, 5, 3), "go.example.com", "/abc", 302, "a b"]


# Truncated addresses


def test_addresses_removed_by_bunny_give_no_visitor(load, logs):
    load(FORMAT_LINES["bunny"][0].replace("203.0.113.7", "0.0.0.0") + "\n")
    assert [visit["visitor"] for visit in logs.visits()] == [None]


# Earlier detection stays valid


@pytest.mark.parametrize("keys", [{"path": "/a"}, {"url": "https://go.example.com/a"}], ids=["path", "url"])
def test_json_with_time_and_target_stays_ndjson(load, keys):
    """The line is ndjson, although it also has all of Envoy's keys."""
    line = json.loads(FORMAT_LINES["envoy-json"][0]) | {"time": "2026-03-04T10:05:03Z"} | keys
    assert load(json.dumps(line) + "\n").log_format == "ndjson"
