"""Logs from other servers and custom files: visits, format detection, and grown logs."""

import csv
import io
import json
import re
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import BadInput
from data.ingest.importer import Options
from data.logs import parquet_lines, source
from data.logs.captures import parse_captures
from data.logs.columns import FIELD_NAMES, columns_from
from data.logs.formats import LineReader
from data.logs.line_layout import parse_layout
from tests.data.conftest import Logs
from tests.support.tables import examples, examples_at_once, tables
from tests.support.user_agents import CHROME

LOGS = Path(__file__).parent / "samples"
FACTS = ("visited_at", "domain", "path", "short_code", "method", "status", "referrer", "user_agent", "country",
         "bytes_sent")  # fmt: skip


class Log(Logs):
    """A log that is imported repeatedly."""

    def load(self, content, log_format="auto", columns="", layout="", captures="", organization="acme"):
        told, captured = parse_layout(layout) if layout else None, parse_captures(captures) if captures else ()
        renamed = columns_from(columns)
        options = Options(organization, log_format=log_format, columns=renamed, layout=told, captures=captured)
        return super().load(content, options)

    def facts(self, organization="acme"):
        return [tuple(visit[name] for name in FACTS) for visit in self.visits(organization)]


@pytest.fixture
def log(shared_lake, shared_importer, names, tmp_path):
    return Log(shared_importer, shared_lake, tmp_path, names())


# Real lines

VISITS = {
    log_format: [(datetime.fromisoformat(at), *facts) for at, *facts in visits]
    for log_format, visits in tables(__file__)["visits"].items()
}
"""The facts of the visits in the samples, sorted by day, short code and time."""
OTHER_LOGGER = "not an access log entry (another logger)"
REFUSED = {
    "caddy": [(2, OTHER_LOGGER), (3, OTHER_LOGGER)],
    "traefik": [(2, OTHER_LOGGER)],
    "haproxy": [(2, "not a request (another HAProxy message)")],
    "fastly": [(2, "logged by a shield (fastly_is_edge is false)")],
    "vercel": [(2, "not a request (no proxy)")],
    "heroku": [(2, "not a request (another Heroku entry)")],
    "netlify": [(2, "not a request (log_type is not traffic)")],
    "google-cloud": [(2, "not a request (no httpRequest)")],
    "azure-front-door": [(1, "not an access log entry (another category)")],
    "azure-application-gateway": [(2, "not an access log entry (another category)")],
    "s3": [(2, "not a request (an operation of S3 itself)")],
    "envoy": [(2, "not a request (a connection without HTTP)")],
    "envoy-json": [(2, "not a request (a connection without HTTP)")],
}


# Clients that disconnected before the response

CADDY = (
    '{"ts":1795832242.8,"logger":"http.log.access.log1","msg":"handled request","request":{"remote_ip":"198.51.100.7",'
    '"proto":"HTTP/1.1","method":"GET","host":"go.example.com","uri":"/slow","headers":{"User-Agent":["curl/7.88.1"]}},'
    '"size":0,"status":0}'
)
TIME = "[01/Mar/2026:10:05:03 +0000]"
UNANSWERED = {
    "caddy": CADDY,
    "common": f'198.51.100.7 - - {TIME} "GET /slow HTTP/1.1" - 0',
    "cloudflare": '{"EdgeStartTimestamp":"2026-03-01T10:05:03Z","EdgeResponseStatus":0,"ClientIP":"198.51.100.7",'
    '"ClientRequestMethod":"GET","ClientRequestHost":"go.example.com","ClientRequestURI":"/slow"}',
    "cloudfront": "#Fields: date time c-ip cs-method cs-uri-stem sc-status cs(User-Agent)\n"
    "2026-03-01\t10:05:03\t198.51.100.7\tGET\t/slow\t000\tcurl/7.88.1",
    "ndjson": '{"time":"2026-03-01T10:05:03Z","path":"/slow","status":0}',
}


@pytest.mark.parametrize("log_format", UNANSWERED)
def test_a_request_without_a_response_is_a_visit_without_status(log, log_format):
    summary = log.load(f"{UNANSWERED[log_format]}\n".encode())
    assert (summary.log_format, summary.rejects) == (log_format, [])
    assert [(visit["path"], visit["status"]) for visit in log.visits()] == [("/slow", None)]


@pytest.mark.parametrize("log_format", VISITS)
def test_a_real_log_is_recognized_and_lands_its_exact_visits(log, log_format):
    summary = log.load((LOGS / f"{log_format}.log").read_bytes())
    assert summary.log_format == log_format
    assert log.facts() == VISITS[log_format]
    assert all(visit["visitor"] for visit in log.visits())
    assert summary.rejects == REFUSED.get(log_format, [])
    assert summary.lines == len(VISITS[log_format]) + summary.rejected


def test_every_sample_has_a_source_and_expected_visits():
    samples = {path.name for path in LOGS.glob("*.log")}
    sources = json.loads((LOGS / "sources.json").read_text("utf-8"))
    assert {name for name, facts in sources.items() if "https://" in facts["source"]} == samples
    assert {name.removesuffix(".log") for name in samples} == set(VISITS)


@pytest.mark.parametrize("log_format", ["w3c", "cloudfront", "vercel", "alb"])
def test_a_real_log_gives_equal_visits_in_blocks_and_in_steps(log, log_format, monkeypatch):
    """Wherever the log is split between two lines, the rest is read with its header, and no line counts twice."""
    lines = (LOGS / f"{log_format}.log").read_bytes().splitlines(keepends=True)
    monkeypatch.setattr(source, "CHUNK_BYTES", 700)
    monkeypatch.setattr(source, "BLOCK_BYTES", max(map(len, lines)))
    for number in range(1, len(lines) + 1):
        log.load(b"".join(lines[:number]))
    assert sorted(log.facts(), key=str) == sorted(VISITS[log_format], key=str)


def test_a_log_with_only_directives_gets_its_format_later(log):
    text = (LOGS / "w3c.log").read_text("utf-8")
    head = "".join(text.splitlines(keepends=True)[:4])
    begun = log.load(head)
    assert (begun.lines, begun.visits, begun.rejected, begun.log_format) == (0, 0, 0, "auto")
    assert log.load(text).log_format == "w3c"
    assert log.facts() == VISITS["w3c"]


# Custom files

ROWS = [
    {
        "time": "2026-03-04T10:05:03Z", "ip": "203.0.113.7", "method": "GET",
        "url": "https://Go.Example.com:443/abc?utm_source=News", "status": "302", "user_agent": CHROME,
        "referrer": "https://t.co/x?y", "country": "de", "bytes_sent": "5316",
    },
    {
        "time": "2026-03-04T12:05:03.25+01:00", "ip": "2001:db8::1", "method": "head",
        "url": "/b,c", "status": "404", "user_agent": 'He said "hi", \\ twice', "referrer": "", "country": "",
        "bytes_sent": "",
    },
]  # fmt: skip
LANDED = [
    (datetime(2026, 3, 4, 11, 5, 3, 250000), None, "/b,c", None, "HEAD", 404, None, ROWS[1]["user_agent"], None, None),
    (datetime(2026, 3, 4, 10, 5, 3), "go.example.com", "/abc", "abc", "GET", 302, "t.co", CHROME, "DE", 5316),
]


def ndjson(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_csv(rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def parquet(rows, **kinds):
    table = pa.Table.from_pylist(rows)
    for name, kind in kinds.items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
    file = pa.BufferOutputStream()
    pq.write_table(table, file)
    return file.getvalue().to_pybytes()


WRITERS = {"ndjson": ndjson, "csv": as_csv, "parquet": parquet}
OWN = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)


@OWN
def test_a_custom_file_is_recognized_by_its_columns(log, write):
    summary = log.load(write(ROWS))
    assert summary.log_format == ("csv" if write is as_csv else "ndjson")
    assert sorted(log.facts(), key=str) == sorted(LANDED, key=str)
    assert all(visit["visitor"] for visit in log.visits())
    assert {visit["utm_source"] for visit in log.visits()} == {"News", None}
    assert (summary.lines, summary.rejected) == (2, 0)
    if write is not parquet:
        log.load(b"\xef\xbb\xbf" + write(ROWS).replace("\n", "\r\n").encode(), organization="windows")
        assert sorted(log.facts("windows"), key=str) == sorted(LANDED, key=str)


@OWN
def test_columns_may_have_other_names(log, write):
    others = ["ts", "client", "verb", "link", "site", "p", "code", "ua", "from", "cc", "sent", *"abcdefgh", "http"]
    theirs = dict(zip(FIELD_NAMES, others, strict=True))
    rows = [{theirs[name]: value for name, value in row.items()} for row in ROWS]
    given = ",".join(f"{ours}={theirs[ours]}" for ours in ROWS[0])
    with pytest.raises(BadInput, match="--columns"):
        log.load(write(rows))
    assert log.load(write(rows), columns=given).log_format.endswith(" --columns")
    assert sorted(log.facts(), key=str) == sorted(LANDED, key=str)


def test_a_dot_selects_a_value_in_a_nested_object(log):
    rows = [
        {"@t": row["time"], "client": {"ip": row["ip"]}, "http": {"url": row["url"], "ua": {"raw": row["user_agent"]}}}
        for row in ROWS
    ]
    log.load(ndjson(rows), columns="time=@t,ip=client.ip,url=http.url,user_agent=http.ua.raw")
    assert {(visit["path"], visit["user_agent"]) for visit in log.visits()} == {
        (path, user_agent) for _, _, path, _, _, _, _, user_agent, *_ in LANDED
    }
    assert all(visit["visitor"] for visit in log.visits())


def test_a_column_that_a_format_does_not_select_is_null(log, monkeypatch):
    """Such a column may be new, so no format selects it yet."""
    read = LineReader.read
    monkeypatch.setattr(LineReader, "read", lambda *given: read(*given).drop_columns(["bytes_sent"]))
    log.load(ndjson(ROWS))
    assert {visit["bytes_sent"] for visit in log.visits()} == {None}


@OWN
def test_missing_columns_default_to_a_successful_get(log, write):
    rows = [{"time": "2026-03-04T10:05:03", "path": "/abc?q=1", "domain": "Go.Example.com"}]
    log.load(write(rows), "csv" if write is as_csv else "ndjson")
    (visit,) = log.visits()
    assert tuple(visit[name] for name in FACTS) == (
        datetime(2026, 3, 4, 10, 5, 3), "go.example.com", "/abc", "abc", "GET", 200, None, None, None, None,
    )  # fmt: skip
    assert visit["visitor"] is None


@examples("content", "columns", "problem")
def test_a_missing_column_is_reported_with_the_remedy(log, content, columns, problem):
    log_format = "ndjson" if content.startswith("{") else "csv"
    for asked in (log_format, *(["auto"] if columns else [])):
        with pytest.raises(BadInput, match=re.escape(f"{log.path}: column {problem}")):
            log.load(content, asked, columns)
    assert log.batches() == []


@examples_at_once("text", "message")
def test_invalid_pairs_for_the_columns_flag_are_bad_input(text, message):
    with pytest.raises(BadInput, match=f"--columns: {message}"):
        columns_from(text)


def test_a_column_name_may_contain_json_path_escapes(log):
    log.load('{"t/~\\"": 1772618703, "p=q": "/"}\n', columns='time=t/~",path=p=q')
    assert [visit["visited_at"] for visit in log.visits()] == [datetime(2026, 3, 4, 10, 5, 3)]


# Parquet


def test_a_parquet_file_lands_once_regardless_of_its_row_groups(log, monkeypatch):
    monkeypatch.setattr(parquet_lines, "_ROWS", 2)
    rows = [{"time": 1772618703 + number, "path": f"/{number}"} for number in range(8)]
    grown, rows = rows, rows[:7]
    assert log.load(parquet(rows), "ndjson").visits == 7
    again = log.load(parquet(rows), "ndjson")
    assert (again.already_imported, again.visits) == (True, 0)
    monkeypatch.setattr(parquet_lines, "_ROWS", 3)
    assert log.load(parquet(rows), "ndjson").already_imported
    assert (log.load(parquet(grown)).continued, len(log.visits())) == (True, 8)
    assert {visit["path"] for visit in log.visits()} == {f"/{number}" for number in range(8)}


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("ms", "Asia/Tokyo"), pa.int64()]
)
def test_times_in_parquet_are_utc(log, kind):
    at = datetime(2026, 3, 4, 10, 5, 3)
    log.load(parquet([{"time": 1772618703 if kind == pa.int64() else at, "path": "/"}], time=kind), "ndjson")
    assert [visit["visited_at"] for visit in log.visits()] == [at]


def test_unread_columns_of_every_kind_are_ignored(log):
    beside = {"b": b"\xff\0", "l": [1], "s": {"x": None}, "row": 1, "batch": 2}
    rows = [{"time": 1772618703, "path": "/", "status": status} | beside for status in (404.0, None, float("nan"))]
    summary = log.load(parquet(rows), "ndjson")
    assert [visit["status"] for visit in log.visits()] == [404, 200]
    assert summary.rejects == [(3, "no valid status")]


def test_a_truncated_parquet_file_is_reported_as_damaged(log):
    with pytest.raises(BadInput, match=r"\.log is damaged"):
        log.load(parquet(ROWS)[:-20])


def test_a_parquet_file_from_a_known_service_is_recognized(log):
    line = json.loads((LOGS / "cloudflare.log").read_text("utf-8").splitlines()[1])
    assert log.load(parquet([line])).log_format == "cloudflare"
    assert log.facts() == VISITS["cloudflare"][:1]


# Grown logs


@pytest.mark.parametrize("write", [ndjson, as_csv])
def test_a_growing_custom_file_lands_each_line_once(log, write):
    rows = [{"time": 1772618703 + number, "url": f"/{number}", "user_agent": "a, b"} for number in range(6)]
    text = write(rows)
    for end in (10, 60, 100, 130, len(text) - 1, len(text)):
        try:
            log.load(text[:end])
        except BadInput:
            assert end < 60
    assert Counter(visit["path"] for visit in log.visits()) == {f"/{number}": 1 for number in range(6)}


@examples("content", "given")
def test_a_grown_log_requires_the_same_flag(log, content, given):
    (flag,) = given
    begun = content[: content.rindex("\n", 0, -1) + 1]
    log.load(begun, **given)
    with pytest.raises(BadInput, match=f"give the same --{flag.replace('layout', 'log-format')} to import"):
        log.load(content)
    assert log.load(content, **given).continued
    assert {visit["path"] for visit in log.visits()} == {"/a", "/b"}


def test_a_grown_json_log_may_end_with_another_object(log):
    text = ndjson(ROWS)
    log.load(text, "ndjson")
    assert log.load(text + '{"event": "bye"}\n').rejects == [(3, "no url or path that begins with /")]


# Format detection


@pytest.mark.parametrize("log_format", VISITS)
def test_garbage_and_byte_order_marks_do_not_hide_the_format(log, log_format):
    lines = (LOGS / f"{log_format}.log").read_text("utf-8").splitlines()
    lines[0:0] = lines[-1:-1] = ["garbage", '{"a": 1}']
    content = b"\xef\xbb\xbf" + "".join(f"{line}\r\n" for line in lines).encode()
    assert log.load(content).log_format == log_format
    assert log.facts() == VISITS[log_format]


def test_an_unknown_format_is_rejected_with_the_remedy(log):
    with pytest.raises(BadInput, match=f"`traffic formats explain {log.path}` .*--log-format or --columns"):
        log.load('{"when": 1772618703, "what": "/"}\n')


@examples("given", "message")
def test_invalid_or_contradictory_flags_are_bad_input(log, given, message):
    with pytest.raises(BadInput, match=message):
        log.load("", **given)


# No address is stored or repeated


@OWN
def test_addresses_in_custom_files_do_not_reach_the_disk(log, write):
    row = {"time": "2026-03-04T10:05:03Z", "ip": "198.51.100.77", "path": "/x"}
    rows = [row, row | {"time": "198.51.100.77"}, row | {"path": "198.51.100.77"}]
    summary = log.load(write(rows), "csv" if write is as_csv else "ndjson")
    assert (summary.visits, summary.rejected) == (1, 2)
    kept = [path for path in log.lake.root.rglob("*") if path.is_file() and b"198.51.100.77" in path.read_bytes()]
    assert kept == []


# The same requests in other formats

PATHS = ("/", "/a,b;c", "/caf%C3%A9", "/a~b!$&()*+:@", "/abc")
QUERIES = ("", "?q=1", "?utm_source=chatgpt.com", "?utm_source=a%2Cb&utm_medium=c")
SENT = ("", "https://chatgpt.com/", "https://t.co/a?b", "android-app://com.slack")
AGENTS = ("", CHROME, "GPTBot/1.2", "a\\b", 'say "hi", twice', "\\x41", "Яндекс 浏览器", "'; --", " spaces  ",
          "\U0001f600")  # fmt: skip
REQUESTS = [
    {
        "time": datetime(2026, 3, 4, 23, 59, 50) + timedelta(seconds=n), "ip": ("203.0.113.7", "2001:db8::1")[n % 2],
        "method": ("GET", "HEAD", "POST")[n % 3], "path": PATHS[n % 5], "query": QUERIES[n % 4],
        "status": (200, 302, 404, 500)[n % 4], "bytes_sent": (0, 1 << 40)[n % 2], "user_agent": AGENTS[n % 10],
        "referrer": SENT[n // 4 % 4],
    }
    for n in range(20)
]  # fmt: skip


def combined(request):
    at = request["time"].strftime("%d/%b/%Y:%H:%M:%S +0000")
    user_agent = request["user_agent"].replace("\\", "\\\\").replace('"', '\\"')
    target = request["path"] + request["query"]
    return (
        f'{request["ip"]} - - [{at}] "{request["method"]} {target} HTTP/1.1" {request["status"]} '
        f'{request["bytes_sent"]} "{request["referrer"] or "-"}" "{user_agent}"\n'
    )


def own(request):
    rest = {name: request[name] for name in ("ip", "method", "user_agent", "referrer")}
    numbers = {name: str(request[name]) for name in ("status", "bytes_sent")}
    at = {"time": f"{request['time'].isoformat()}Z", "url": request["path"] + request["query"]}
    return at | numbers | {"protocol": "HTTP/1.1"} | rest


def counted(visits):
    """Count the visits without regard to their visitors, and the visitors by their number of visits."""
    facts = Counter(tuple(value for name, value in visit.items() if name != "visitor") for visit in visits)
    return facts, Counter(Counter(visit["visitor"] for visit in visits).values())


def test_equal_requests_in_four_formats_give_equal_visits(log, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", 700)
    monkeypatch.setattr(source, "BLOCK_BYTES", 2_000)
    log.load("".join(map(combined, REQUESTS)), "combined")
    for name, write in WRITERS.items():
        log_format = "auto" if name == "parquet" else name
        log.load(write([own(request) for request in REQUESTS]), log_format, organization=name)
    facts = [counted(log.visits(organization)) for organization in ("acme", *WRITERS)]
    assert facts == [facts[0]] * 4
    assert sum(facts[0][0].values()) == len(REQUESTS)
