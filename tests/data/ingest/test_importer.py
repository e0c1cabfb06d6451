"""Logs in, visits out: what an import lands, whatever happens before, beside and after it."""

import csv
import gzip
import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import data.ingest.importer as importing
from data.errors import BadInput
from data.ingest.importer import Importer, Options
from data.logs import formats, source
from data.store.lake import Lake
from data.store.link_exports import read_export
from data.store.links import change_links
from data.visits import VISITS
from tests.faults.trials import IS_LONG
from tests.support.forks import ROOT
from tests.support.lakes import everything_in, fail_at
from tests.support.relog import read_log
from tests.support.tables import examples, tables
from tests.support.user_agents import CHROME, GPTBOT, IPHONE

ACME = Options("acme")
START, END = date(1, 1, 1), date(9999, 12, 31)
KEY = ("visited_at", "path", "user_agent", "status", "bot_category")


def line(path="/abc", ip="203.0.113.7", at="17/May/2015:10:05:03 +0000", agent=CHROME, status=200, referrer="-"):
    return f'{ip} - - [{at}] "GET {path} HTTP/1.1" {status} 5316 "{referrer}" "{agent}"\n'


def log_of(number_of_lines):
    return "".join(
        line(f"/{number}", at=f"17/May/2015:10:05:{number % 60:02} +0000") for number in range(number_of_lines)
    )


LINES = log_of(12)
GARBLED = [
    line("/one", referrer="https://chatgpt.com/"),
    "this is not a log line\n",
    line("/two/three?utm_source=chatgpt.com", agent=IPHONE, at="18/May/2015:00:00:00 +0200"),
    line("/ünï", agent="Яндекс 浏览器"),
    line("/two", agent=GPTBOT, status=404),
    "\n",
    '203.0.113.9 - - [19/May/2015:10:05:03 +0000] "\\x16\\x03\\x01" 400 484 "-" "-"\n',
    line("/one", referrer="https://chatgpt.com/"),
    line("/one", at="no time"),
    line("/five", at="20/May/2015:10:05:03 +0000").rstrip("\n") + "\r\n",
    line("/last", agent=r"He said \"hi\" (twice)"),
]


@pytest.fixture(scope="module")
def open_lake():
    """Opens lakes, and closes them when the last test is over."""
    lakes = []

    def opened(root):
        lakes.append(Lake(root, create=True))
        return lakes[-1]

    yield opened
    for lake in lakes:
        lake.manifest.close()


@pytest.fixture
def lake(tmp_path, open_lake):
    return open_lake(tmp_path / "lake")


@pytest.fixture
def importer(lake):
    return Importer(lake)


@pytest.fixture
def write(tmp_path):
    def written(content, name="access.log"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


@pytest.fixture
def load(importer, write):
    """Imports a text as a file."""

    def loaded(content, options=ACME, name="access.log", **how):
        return importer.run(write(content, name), options, **how)

    return loaded


def landed(lake, organization="acme"):
    """Every live visit of an organization, as a dict of the columns of VISITS, its organization and its day."""
    visits = []
    for file in lake.visit_files(organization, START, END):
        name, day = re.search("organization=([^/]+)/day=([^/]+)/", Path(file).as_posix()).groups()
        place = {"organization": name, "day": date.fromisoformat(day)}
        visits += [visit | place for visit in pq.ParquetFile(file).read().to_pylist()]
    return visits


class Logs:
    """Logs of organizations of one test alone: their names are its own, the lake and its importer are everybody's."""

    def __init__(self, shared, folder):
        _, self._lake, self._importer, names = shared
        self._folder, self._name = folder, f"example-{next(names)}"

    def _own(self, organization):
        return f"{self._name}-{organization}"

    def load(self, content, options=ACME, name="access.log", **how):
        """Import a text as a file."""
        path = self._folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return self._importer.run(path, replace(options, organization=self._own(options.organization)), **how)

    def batches(self):
        return self._lake.manifest.batches(self._own("acme"), "")

    def landed(self, organization="acme"):
        return landed(self._lake, self._own(organization))

    def paths(self, organization="acme"):
        return paths(self._lake, self._own(organization))

    def visitors(self, organization="acme"):
        return visitors(self._lake, self._own(organization))


@pytest.fixture
def logs(shared, tmp_path):
    return Logs(shared, tmp_path)


def counted(visits):
    return Counter(tuple(visit[name] for name in KEY) for visit in visits)


def paths(lake, organization="acme"):
    return Counter(visit["path"] for visit in landed(lake, organization))


def recounted(path, domain=""):
    return counted(read_log(path, "acme", domain))


def stored(lake):
    """Every file of the lake but the databases, with its bytes; the seed files left out."""
    return {
        path.relative_to(lake.root): path.read_bytes()
        for path in lake.root.rglob("*")
        if path.is_file() and ".sqlite" not in path.name and "_seed" not in str(path)
    }


# What lands


def test_a_line_becomes_exactly_this_visit(lake, load):
    summary = load(
        'Go.Example.com:443 203.0.113.7 - frank [17/May/2015:23:30:03 -0500] "GET /abc?utm_source=News&utm_medium=email'
        f'&utm_campaign=May&utm_term=a+b&utm_content=%C3%A9 HTTP/2.0" 301 5316 "https://T.co/xyz?q=1#top" "{IPHONE}"\n'
    )
    (visit,) = landed(lake)
    assert visit.pop("visitor") is not None
    assert re.fullmatch("[0-9a-f]{12}", visit.pop("rules_version"))
    assert visit.pop("referrer_type") in {"social", "other"}
    assert visit == {
        "organization": "acme",
        "day": date(2015, 5, 18),
        "visited_at": datetime(2015, 5, 18, 4, 30, 3),
        "domain": "go.example.com",
        "short_code": "abc",
        "path": "/abc",
        "method": "GET",
        "protocol": "HTTP/2",
        "status": 301,
        "bot_category": "human",
        "agent_kind": None,
        "ai_source": None,
        "agent": None,
        "operator": None,
        "confidence": None,
        "detection_method": None,
        "device_type": "mobile",
        "operating_system": "iOS",
        "browser": "Mobile Safari",
        "user_agent": IPHONE,
        "country": None,
        "referrer": "t.co",
        "utm_source": "News",
        "utm_medium": "email",
        "utm_campaign": "May",
        "utm_term": "a b",
        "utm_content": "é",
        "is_malicious": False,
        "utc_offset": 0,
        "bytes_sent": 5316,
        "signals": None,
    }
    assert (summary.log_format, summary.lines, summary.visits, summary.rejected) == ("vhost-combined", 1, 1, 0)


def test_landed_files_have_the_one_schema_of_visits(lake, load):
    load("".join(GARBLED))
    for file in lake.visit_files("acme", START, END):
        assert pq.ParquetFile(file).schema_arrow.equals(VISITS)


def test_a_log_lands_as_an_independent_reading_of_it_says(lake, load, write):
    summary = load("".join(GARBLED))
    recount = read_log(write("".join(GARBLED)), "acme", "")
    visits = landed(lake)
    names = recount[0].keys() - {"visitor"}
    told = [Counter(tuple(visit[name] for name in names) for visit in side) for side in (visits, recount)]
    assert told[0] == told[1]
    assert len({visit["visitor"] for visit in visits}) == len({visit["visitor"] for visit in recount})
    assert (summary.lines, summary.visits, summary.rejected) == (10, 8, 2)
    assert summary.rejects == [(2, "not in the combined format"), (9, "no valid time")]
    assert (summary.first_day, summary.last_day) == (date(2015, 5, 17), date(2015, 5, 20))
    assert summary.categories == Counter(visit["bot_category"] for visit in recount)
    assert summary.without_user_agent == 1


def test_a_day_lands_in_a_file_of_its_own_sorted_by_short_code_and_time(lake, load):
    text = "".join(
        line(path, at=f"{day}/May/2015:10:00:{second:02} +0000")
        for day, path, second in [(18, "/b", 3), (17, "/b", 2), (17, "/a", 9), (17, "/b", 1), (18, "/a", 0)]
    )
    load(text)
    told = [
        [(row["short_code"], row["visited_at"].second) for row in pq.ParquetFile(file).read().to_pylist()]
        for file in lake.visit_files("acme", START, END)[1:]
    ]
    assert told == [[("a", 9), ("b", 1), ("b", 2)], [("a", 0), ("b", 3)]]


def test_common_lines_land_without_a_user_agent(logs):
    summary = logs.load('203.0.113.7 - - [17/May/2015:10:05:03 +0000] "GET /abc HTTP/1.1" 200 5316\n')
    (visit,) = logs.landed()
    assert (visit["user_agent"], visit["referrer"], visit["bot_category"]) == (None, None, "other_bot")
    assert (summary.log_format, summary.without_user_agent) == ("common", 1)


def test_repeated_lines_are_visits_of_their_own(logs):
    assert logs.load(line() * 5).visits == 5
    assert logs.paths() == {"/abc": 5}


def test_a_file_of_several_blocks_lands_whole(logs, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", 10_000)
    monkeypatch.setattr(source, "BLOCK_BYTES", 70_000)
    text = log_of(1500)
    assert logs.load(text).visits == 1500
    assert logs.paths() == {f"/{number}": 1 for number in range(1500)}


def test_progress_ends_where_all_is_done(logs):
    told = []
    logs.load(LINES, progress=lambda done, whole: told.append((done, whole)))
    assert told[-1] == (len(LINES), len(LINES))


@pytest.mark.parametrize("content", ["", "\n", "\r\n\n"])
def test_a_file_without_lines_is_not_an_error(logs, content):
    assert logs.load(content).visits == 0
    assert logs.landed() == []
    assert logs.load(content + LINES).visits == 12


@pytest.mark.parametrize("at", ["01/Jan/0000:00:00:00 +0000", "31/Dec/9999:23:59:59 -1200"])
def test_a_time_outside_the_calendar_is_refused_and_stops_nothing(logs, at):
    assert logs.load(line() + line("/odd", at=at)).rejected == 1
    assert logs.paths() == {"/abc": 1}


def test_a_request_line_gives_method_and_path(logs):
    rows = tables(__file__)["test_a_request_line_gives_method_and_path"]
    logs.load(
        "".join(
            f'203.0.113.7 - - [17/May/2015:10:05:{second:02} +0000] "{request_line}" 200 1 "-" "{CHROME}"\n'
            for second, (request_line, *_) in enumerate(rows)
        )
    )
    told = {visit["visited_at"].second: (visit["path"], visit["method"]) for visit in logs.landed()}
    for second, (request_line, path, method) in enumerate(rows):
        assert told[second] == (path, method), request_line
    assert len(told) == len(rows)


@pytest.mark.parametrize("query", ["utm_source=chatgpt.com", "q=why?&utm_source=chatgpt.com"])
def test_a_question_mark_inside_a_query_is_part_of_it(logs, query):
    logs.load(line(f"/abc?{query}"))
    (visit,) = logs.landed()
    assert (visit["utm_source"], visit["bot_category"], visit["path"]) == ("chatgpt.com", "ai_referral", "/abc")


@pytest.mark.parametrize("path", ["/.env", "/wp-login.php", "/a/../../etc/passwd"])
def test_probing_paths_are_malicious(logs, path):
    logs.load(line(path) + line("/fine"))
    assert {visit["path"]: visit["is_malicious"] for visit in logs.landed()} == {path: True, "/fine": False}


# Bytes that are no text

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\x06\0\0\0\x1f\x15\xc4\x89"
NOT_TEXT = {
    "a carriage return": b"a\rb",
    "a line with a carriage return": b"a\rb\n",
    "lines that end with carriage returns": b"time,path\r2026-03-04T10:05:03Z,/a\r",
    "an object with a carriage return": b'{"time":\r1772618703}\n',
    "NULs": b"\0" * 5_000,
    "a picture": PNG,
    "a picture without a line": PNG.replace(b"\n", b""),
    "a program": b"\x7fELF\x02\x01\x01\0\x03\0>\0\r@\0\n\0\r\0",
    "random bytes": random.Random(8).randbytes(5_000),
    "UTF-16": LINES.encode("utf-16"),
    "UTF-16 without a mark": LINES.encode("utf-16-be"),
}


def test_logs_that_are_imported_one_after_another_are_read_by_one_reader(lake, importer, load, monkeypatch):
    opened, reader = [], importer.reader

    def noted():
        opened.append(reader())
        return opened[-1]

    monkeypatch.setattr(importer.readers, "_open_reader", noted)
    for name in ("a", "b"):
        load(line(f"/{name}"), name=name)
    assert len(opened) == 1
    (lake.ip_lists / "a.json").touch()
    (lake.ip_lists / "a.json").unlink()
    importer.refresh_ip_lists()
    load(line("/c"), name="c")
    assert len(opened) == 2
    for name in ("d", "e"):  # one that failed is not used again
        with pytest.raises(BadInput):
            load("garbage\n", name=name)
    assert len(opened) == 3
    assert paths(lake) == Counter(("/a", "/b", "/c"))


EXPLICIT = ("combined", "csv", "ndjson")


@pytest.mark.parametrize("place", range(len(NOT_TEXT)), ids=NOT_TEXT)
def test_what_is_not_a_log_is_refused_in_one_line(logs, place):
    """As a log of an unknown format, and of one that is given: in turn, or each with TRAFFIC_FAULTS=all."""
    for log_format in ("auto", *(EXPLICIT if IS_LONG else [EXPLICIT[place % len(EXPLICIT)]])):
        with pytest.raises(BadInput) as refused:
            logs.load([*NOT_TEXT.values()][place], Options("acme", log_format=log_format))
        assert "\n" not in str(refused.value)
        assert "access.log: " in str(refused.value)
        assert logs.batches() == []


ODD = [b"a\rb\n", b"\r", b"\r\n", b"\r\r\n", b"\0\n", b"\r\0\n", b"\xff\xfe\r\n", b"\x89PNG\r\n\x1a\n"]


@pytest.mark.parametrize("odd", ODD)
def test_readable_lines_land_wherever_odd_bytes_are(logs, odd):
    """In three places of a log of a given format, and of an unknown one in turn, or all with TRAFFIC_FAULTS=all."""
    first, second = line("/one").encode(), line("/two").encode()
    contents = [odd + first + second, first + odd + second, first + second + odd]
    unknown = contents if IS_LONG else [contents[ODD.index(odd) % len(contents)]]
    for log_format, tried in (("combined", contents), ("auto", unknown)):
        for content in tried:
            organization = f"{log_format}-{contents.index(content)}"
            logs.load(content, Options(organization, log_format=log_format))
            assert logs.paths(organization) == Counter(("/one", "/two")), organization


@pytest.mark.parametrize("size", [3, 12, 60])
def test_of_a_gzip_file_cut_short_what_can_be_read_lands(logs, size):
    summary = logs.load(gzip.compress(LINES.encode())[:size], name="access.log.gz")
    assert summary.cut_short
    assert summary.visits == len(logs.landed()) == summary.lines - summary.rejected


def test_a_probe_with_a_browsers_name_is_a_scanner_but_a_code_of_the_links_file_is_not_a_probe(lake, load, tmp_path):
    links = tmp_path / "links.csv"
    links.write_text("short_code,target_url\nphpmyadmin,https://example.com/docs\n")
    change_links(lake, "acme", read_export(links, datetime(2015, 5, 1)).links, datetime(2015, 5, 1))
    load(line("/phpmyadmin") + line("/.env") + line("/robots.txt") + line("/fine"))
    assert {
        visit["path"]: (visit["agent_kind"], visit["detection_method"], visit["is_malicious"]) for visit in landed(lake)
    } == {
        "/phpmyadmin": (None, None, False),
        "/.env": ("scanner", "path", True),
        "/robots.txt": ("other", "path", False),
        "/fine": (None, None, False),
    }


# Short codes, domains, options


def test_a_short_code_is_the_only_segment_of_a_path(logs):
    rows = tables(__file__)["test_a_short_code_is_the_only_segment_of_a_path"]
    times = (f"17/May/2015:10:05:{second:02} +0000" for second in range(len(rows)))
    logs.load("".join(line(path, at=at) for (path, _), at in zip(rows, times, strict=True)))
    told = {visit["visited_at"].second: visit["short_code"] for visit in logs.landed()}
    for second, (path, code) in enumerate(rows):
        assert told[second] == code, path
    assert len(told) == len(rows)


def test_a_short_code_pattern_takes_another_part_of_the_path(logs):
    logs.load(line("/go/abc/x") + line("/go/") + line("/abc"), Options("acme", short_code_pattern=r"^/go/(\w*)"))
    assert {visit["path"]: visit["short_code"] for visit in logs.landed()} == {
        "/go/abc/x": "abc",
        "/go/": None,
        "/abc": None,
    }


@pytest.mark.parametrize("pattern", ["^/abc$", "(a)(b)", "(", "(?=a)(b)", r"(\1)"])
def test_a_pattern_that_captures_no_short_code_is_bad_input(pattern):
    with pytest.raises(BadInput, match=re.escape(repr(pattern))):
        Options("acme", short_code_pattern=pattern)


@pytest.mark.parametrize("organization", ["", "_seed", "a/b", "..", "a b", "x" * 65, "é", "a\n", "a=b"])
def test_an_organization_of_other_letters_is_bad_input(organization):
    with pytest.raises(BadInput, match="cannot name an organization"):
        Options(organization)


@pytest.mark.parametrize("organization", ["7", "-", "A_b-9", "x" * 64])
def test_an_organization_may_look_like_a_number_or_an_option(lake, load, organization):
    load(line(), Options(organization))
    assert [visit["organization"] for visit in landed(lake, organization)] == [organization]


def test_an_unknown_format_is_bad_input():
    with pytest.raises(BadInput, match="'combined_io' is not a known log format"):
        Options("acme", log_format="combined_io")


def test_the_domain_of_a_line_wins_over_the_domain_of_the_import(logs):
    options = Options("acme", "default.example", "vhost-combined")
    logs.load("A.Example:80 " + line("/a") + "a.example " + line("/b"), options)
    logs.load(line("/c"), Options("acme", "default.example"), "other.log")
    logs.load(line("/d"), name="third.log")
    assert {visit["path"]: visit["domain"] for visit in logs.landed()} == {
        "/a": "a.example",
        "/b": "a.example",
        "/c": "default.example",
        "/d": None,
    }


HOSTS = {"GO.Example:443": "go.example", "xn--bcher-kva.example": "xn--bcher-kva.example",
         "[2001:DB8::1]:80": "[2001:db8::1]", "go.example:x": None, "user@go.example": None, "a,b": None}  # fmt: skip
NAMING_A_HOST = {
    "vhost-combined": lambda host, path: f"{host} {line(path)}",
    "nginx-json": lambda host, path: as_json(time_iso8601=TIME, request=f"GET {path} HTTP/1.1", status=200, host=host),
    "caddy": lambda host, path: as_json(
        logger="http.log.access", ts=1772618703.5, status=200,
        request={"method": "GET", "uri": path, "host": host, "client_ip": "203.0.113.7", "proto": "HTTP/2.0"},
    ),
    "cloudflare": lambda host, path: as_json(
        EdgeStartTimestamp=TIME, ClientRequestHost=host, ClientRequestMethod="GET", ClientRequestURI=path,
        ClientIP="203.0.113.7", EdgeResponseStatus=200,
    ),
    "traefik": lambda host, path: as_json(StartUTC=TIME, RequestHost=host, RequestPath=path, DownstreamStatus=200),
    "fastly": lambda host, path: as_json(timestamp=TIME, host=host, url=path, response_status=200),
    "vercel": lambda host, path: as_json(
        projectId="prj_a", timestamp=1772618703000, proxy={"host": host, "path": path, "statusCode": 200}
    ),
    "haproxy": lambda host, path: (
        "203.0.113.7:5132 [04/Mar/2026:10:05:03.000] web links/app 0/0/0/1/1 200 9 - - ---- 1/1/0/0/0 0/0 "
        f'{{{host}||}} "GET {path} HTTP/1.1"\n'
    ),
    "ndjson": lambda host, path: as_json(time=TIME, path=path, domain=host),
    "csv": lambda host, path: f'{TIME},{path},"{host}"\n',
    "w3c": lambda host, path: f"2026-03-04 10:05:03 GET {path} 200 {host}\n",
}  # fmt: skip
HEADERS = {"csv": "time,path,domain\n", "w3c": "#Fields: date time cs-method cs-uri-stem sc-status cs-host\n"}
TIME = "2026-03-04T10:05:03Z"


def as_json(**fields):
    return json.dumps(fields) + "\n"


@pytest.mark.parametrize("default", ["", "Default.Example:80"])
@pytest.mark.parametrize("log_format", NAMING_A_HOST)
def test_a_visit_with_an_invalid_host_lands_without_a_domain_and_is_counted(logs, log_format, default):
    written = NAMING_A_HOST[log_format]
    lines = [written(host, f"/{place}") for place, host in enumerate(HOSTS)]
    summary = logs.load(HEADERS.get(log_format, "") + "".join(lines), Options("acme", default, log_format))
    assert {visit["path"]: visit["domain"] for visit in logs.landed()} == {
        f"/{place}": domain for place, domain in enumerate(HOSTS.values())
    }
    assert (summary.visits, summary.rejected, summary.invalid_domains) == (6, 0, 3)


@pytest.mark.parametrize("default", ["", "Default.Example:80"])
def test_a_line_without_a_host_has_the_domain_of_the_import_and_is_not_counted_as_invalid(logs, default):
    assert logs.load(LINES, Options("acme", default)).invalid_domains == 0
    assert {visit["domain"] for visit in logs.landed()} == {(default and "default.example") or None}


@pytest.mark.parametrize("domain", ["https://go.example", "go.example/launch", "user@go.example", "go example"])
def test_a_domain_of_the_import_that_is_not_a_host_is_refused(domain):
    with pytest.raises(BadInput, match="--domain must be a host or host:port"):
        Options("acme", domain)


@pytest.mark.parametrize("again", [LINES, LINES + line("/more"), gzip.compress(LINES.encode())])
@pytest.mark.parametrize("domain", ["", "b.example"])
def test_a_log_under_another_domain_is_refused_and_names_the_first_one(lake, load, domain, again):
    load(LINES, Options("acme", "a.example"))
    before = stored(lake)
    with pytest.raises(BadInput, match=r"access\.log was imported with --domain a\.example"):
        load(again, Options("acme", domain))
    assert stored(lake) == before
    assert Counter(visit["domain"] for visit in landed(lake)) == {"a.example": 12}


def test_a_domain_may_be_written_in_another_way(logs):
    logs.load(LINES, Options("acme", "Go.Example:80"))
    assert logs.load(LINES + line("/more"), Options("acme", "go.example")).visits == 1
    assert {visit["domain"] for visit in logs.landed()} == {"go.example"}


def test_a_log_begun_without_a_domain_goes_on_with_one(logs):
    logs.load(LINES)
    assert logs.load(LINES, Options("acme", "a.example")).already_imported
    summary = logs.load(LINES + line("/more"), Options("acme", "a.example"))
    assert (summary.visits, summary.continued, summary.begun_without_domain) == (1, True, True)
    assert not logs.load(LINES + line("/more") * 2, Options("acme", "a.example")).begun_without_domain
    assert Counter(visit["domain"] for visit in logs.landed()) == {None: 12, "a.example": 2}
    with pytest.raises(BadInput, match=r"was imported with --domain a\.example"):
        logs.load(LINES + line("/more") * 3, Options("acme", "b.example"))


CSV_HEADER = "time,path\n"


def test_a_header_without_visits_is_not_the_beginning_of_another_log(logs):
    logs.load(CSV_HEADER, Options("acme", "a.example", "csv"))
    for domain, path in (("b.example", "/b"), ("a.example", "/a")):
        summary = logs.load(f"{CSV_HEADER}{TIME},{path}\n", Options("acme", domain, "csv"), f"{domain}.csv")
        assert (summary.visits, summary.continued) == (1, False)
    assert logs.load(CSV_HEADER, Options("acme", "c.example", "csv")).already_imported
    assert {visit["path"]: visit["domain"] for visit in logs.landed()} == {"/a": "a.example", "/b": "b.example"}


def test_lines_that_gave_no_visits_do_not_hide_the_beginning_before_them(logs):
    options = Options("acme", "a.example")
    for end in ("", "garbage\n", "garbage\n" + line("/more")):
        logs.load(LINES + end, options)
    assert logs.paths() == Counter({f"/{number}": 1 for number in range(12)} | {"/more": 1})
    with pytest.raises(BadInput, match=r"a\.example"):
        logs.load(LINES + "garbage\n" + line("/other"), Options("acme", "b.example"))


@pytest.mark.parametrize("log_format", ["auto", "combined"])
def test_a_log_that_names_no_host_needs_a_domain_where_it_is_asked_for(logs, log_format):
    options = Options("acme", log_format=log_format, needs_domain=True)
    for _ in range(2):
        with pytest.raises(
            BadInput, match=r"access\.log: its lines \(combined\) name no host; .* --domain go\.example"
        ):
            logs.load(LINES, options)
        logs.load(LINES[: len(LINES) // 2])  # begun where none was asked for
    assert logs.load(LINES, replace(options, domain="a.example")).begun_without_domain


@pytest.mark.parametrize(
    ("names_hosts", "text"),
    [
        (False, '203.0.113.7 - - [17/May/2015:10:05:03 +0000] "GET /abc HTTP/1.1" 200 5316\n'),
        (False, CSV_HEADER + "2026-03-04T10:05:03Z,/a\n"),
        (False, '{"time": "2026-03-04T10:05:03Z", "path": "/a"}\n'),
        (False, "#Fields: date time cs-method cs-uri-stem sc-status\n2026-03-04 10:05:03 GET /a 200\n"),
        (True, CSV_HEADER + "2026-03-04T10:05:03Z,https://go.example/a\n"),
        (True, '{"time": "2026-03-04T10:05:03Z", "path": "/a", "domain": "go.example"}\n'),
        (
            True,
            "#Fields: date time cs-method cs-uri-stem sc-status cs-host\n2026-03-04 10:05:03 GET /a 200 a.example\n",
        ),
        (True, "go.example " + line() + "- " + line("/without")),
        (True, ""),
        (True, CSV_HEADER),
    ],
)
def test_whether_a_log_needs_a_domain_is_seen_from_its_lines(logs, names_hosts, text):
    options = Options("acme", needs_domain=True)
    if names_hosts:
        logs.load(text, options)
    else:
        with pytest.raises(BadInput, match="name no host"):
            logs.load(text, options)
        assert logs.batches() == []


def test_the_same_log_of_another_organization_is_another_import(lake, load):
    for organization in ("acme", "other", "acme"):
        load(LINES, Options(organization))
    assert len(landed(lake)) == len(landed(lake, "other")) == 12
    assert lake.manifest.organizations() == ["acme", "other"]


ASSETS = ["/a.png", "/a.JPG?v=1", "/a/b.jpeg", "/a.gif", "/a.webp", "/a.avif", "/logo.svg", "/favicon.ico",
          "/s.css?x=/y", "/app.min.js", "/m.mjs#x", "/app.js.map", "/f.woff", "/f.woff2", "/f.ttf", "/f.otf",
          "/f.eot"]  # fmt: skip
NO_ASSETS = [
    "/png",
    "/a.html",
    "/a.json",
    "/js/",
    "/abc?file=a.png",
    "/a.png/x",
    "/robots.txt",
    "/a.jsp",
    "/a.pdf",
    "/",
]


def test_assets_are_left_out_and_counted_where_it_is_asked_for(logs):
    text = "".join(map(line, ASSETS + NO_ASSETS)) + "garbage\n"
    summary = logs.load(text, Options("acme", skip_assets=True))
    assert (summary.visits, summary.assets, summary.rejected) == (len(NO_ASSETS), len(ASSETS), 1)
    assert logs.paths() == Counter(path.partition("?")[0] for path in NO_ASSETS)
    summary = logs.load(text, Options("other"))
    assert (summary.visits, summary.assets) == (len(ASSETS + NO_ASSETS), 0)


def test_a_log_of_assets_alone_is_not_an_error_and_its_later_lines_land(logs):
    options = Options("acme", skip_assets=True)
    assets = "".join(map(line, ASSETS))
    assert logs.load(assets + "garbage\n", options).visits == 0
    assert logs.load(assets + "garbage\n" + line("/a"), options).visits == 1
    assert logs.load(assets + "garbage\n" + line("/a") + line("/b.png"), options).assets == 1
    assert logs.paths() == {"/a": 1}


# The same content again


@pytest.mark.parametrize("packed", [bytes, gzip.compress, lambda text: pa.Codec("zstd").compress(text, asbytes=True)])
def test_a_known_content_changes_nothing_whatever_its_name_and_compression(lake, load, packed):
    load(LINES)
    before = stored(lake)
    again = load(packed(LINES.encode()), name="access.log.1")
    assert again.already_imported
    assert again.visits == 0
    assert stored(lake) == before


def test_a_grown_log_lands_only_its_tail(logs):
    logs.load(log_of(5))
    summary = logs.load(log_of(9))
    assert (summary.continued, summary.lines, summary.visits) == (True, 4, 4)
    assert logs.paths() == {f"/{number}": 1 for number in range(9)}


def test_a_grown_log_may_be_gzipped_and_renamed_meanwhile(logs):
    logs.load(log_of(5))
    logs.load(gzip.compress(log_of(9).encode()), name="access.log.2.gz")
    assert logs.load(gzip.compress(log_of(5).encode()), name="old.gz").already_imported
    assert len(logs.landed()) == 9


def test_another_log_that_begins_alike_is_not_taken_for_a_grown_one(logs):
    logs.load(line("/a") + line("/b"))
    assert not logs.load(line("/a") + line("/c"), name="other.log").continued
    assert logs.paths() == {"/a": 2, "/b": 1, "/c": 1}


def test_repeated_lines_across_two_imports_all_count(logs):
    logs.load(line() * 3)
    logs.load(line() * 7)
    assert logs.paths() == {"/abc": 7}


def test_a_log_cut_in_the_last_user_agent_counts_at_once_and_is_replaced_later(logs):
    text = line("/a") + line("/b", agent=GPTBOT)
    cut = logs.load(text[: text.index("; compatible")])
    assert (cut.visits, cut.repaired) == (2, 1)
    assert Counter(visit["bot_category"] for visit in logs.landed())["ai_training"] == 0
    whole = logs.load(text)
    assert (whole.continued, whole.visits, whole.repaired) == (True, 1, 0)
    assert {visit["path"]: visit["user_agent"] for visit in logs.landed()} == {"/a": CHROME, "/b": GPTBOT}
    assert len(logs.landed()) == 2


def test_a_log_whose_last_line_only_lacks_its_newline_counts_it_once(logs):
    for text in (LINES.rstrip("\n"), LINES, LINES + line("/more")):
        logs.load(text)
    assert len(logs.landed()) == 13


def test_a_log_cut_in_a_letter_is_mended_and_replaced(logs):
    text = line("/a", agent="Яндекс").encode()
    logs.load(text[:-6])
    logs.load(text)
    assert [visit["user_agent"] for visit in logs.landed()] == ["Яндекс"]


def test_a_gzip_file_cut_short_is_completed_by_the_whole_one(lake, load, write):
    text = log_of(400)
    packed = gzip.compress(text.encode())
    cut = load(packed[: len(packed) // 2], name="cut.gz")
    assert cut.cut_short
    assert 0 < cut.visits < 400
    whole = load(packed, name="whole.gz")
    assert (whole.continued, whole.cut_short) == (True, False)
    assert counted(landed(lake)) == recounted(write(text))


@pytest.mark.parametrize("options", [ACME, Options("acme", log_format="combined")], ids=["auto", "combined"])
@pytest.mark.parametrize("tail", ["garbage\n", "203.0.113.7 - - [17/M", " \n"])
def test_a_grown_log_whose_new_lines_cannot_be_read_is_not_an_error(logs, options, tail):
    logs.load(LINES, options)
    summary = logs.load(LINES + tail, options)
    assert (summary.continued, summary.visits, summary.rejected) == (True, 0, 1)
    assert len(logs.landed()) == 12


def test_a_grown_log_keeps_the_format_of_its_beginning(logs):
    logs.load(LINES)
    cut = line("/new").split(' "-"', maxsplit=1)[0]  # complete as a common line
    summary = logs.load(LINES + cut)
    assert (summary.log_format, summary.visits) == ("combined", 0)


def test_a_line_longer_than_a_block_does_not_make_a_grown_log_count_twice(logs, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", 10_000)
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 17)
    text = line("/a") + "\0" * 500_000 + "\n" + line("/b")  # as a crash of the machine leaves it
    logs.load(text)
    logs.load(text + line("/c"))
    assert logs.paths() == {"/a": 1, "/b": 1, "/c": 1}


def test_a_line_longer_than_a_block_is_refused_in_any_alphabet(logs, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", 10_000)
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 17)
    summary = logs.load(line("/a") + line("/long", agent="Ж" * 100_000) + line("/b"))
    assert summary.rejects == [(2, "longer than 65536 bytes")]
    assert logs.paths() == {"/a": 1, "/b": 1}


def test_visits_are_the_same_in_however_many_batches_their_requests_come(importer, monkeypatch):
    agents = (f"agent/{number % 900}" for number in range(5000))
    many = (line(f"/{n % 700}", f"192.0.2.{n % 250}", agent=agent) for n, agent in enumerate(agents))
    text = "".join([*many, *GARBLED]).encode()
    block, columns = source.Block(1, text, len(text), finished=True), []
    with closing(importer.reader()) as reader:
        for rows in (1 << 20, 2048):
            monkeypatch.setattr(formats, "_BATCH_ROWS", rows)
            columns.append(reader._line_reader.read(formats.split_lines(text, 1), "combined")["user_agent"])
        parted = reader.read(block, "combined", ACME)
        monkeypatch.setattr(formats, "_BATCH_ROWS", 1 << 20)
        whole = reader.read(block, "combined", ACME)
    assert [column.num_chunks for column in columns] == [1, 3]
    assert parted.visits.equals(whole.visits)
    assert (parted.rejects, parted.visits.num_rows) == (whole.rejects, 5008)


CONTENT = "".join(GARBLED).encode()


@pytest.fixture(scope="module")
def shared(tmp_path_factory, open_lake):
    """A lake and its importer for many organizations."""
    folder = tmp_path_factory.mktemp("shared")
    lake = open_lake(folder / "lake")
    return folder / "access.log", lake, Importer(lake), count()


@given(
    cuts=st.lists(st.integers(0, len(CONTENT)), min_size=4, max_size=4).map(sorted),
    log_format=st.sampled_from(["auto", "combined"]),
    packed=st.lists(st.sampled_from([bytes, gzip.compress]), min_size=5, max_size=5),
)
@settings(
    max_examples=int(os.environ.get("TRAFFIC_EXAMPLES", "3")),
    deadline=None,
    derandomize="TRAFFIC_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_log_imported_in_five_steps_cut_anywhere_is_the_log_imported_at_once(shared, cuts, log_format, packed):
    path, lake, importer, names = shared
    organization = f"example-{next(names)}"
    for end, pack in zip([*cuts, len(CONTENT)], packed, strict=True):
        path.write_bytes(pack(CONTENT[:end]))
        before = counted(landed(lake, organization))
        try:
            importer.run(path, Options(organization, log_format=log_format))
        except BadInput:  # a beginning that no format explains
            assert end < len(CONTENT)
            assert counted(landed(lake, organization)) == before
    path.write_bytes(CONTENT)
    assert counted(landed(lake, organization)) == recounted(path)


# Refusals


def test_a_dry_run_tells_the_same_and_writes_nothing(lake, load):
    load(line("/before"), Options("other"))
    before = stored(lake)
    told = load("".join(GARBLED), dry_run=True)
    assert stored(lake) == before
    assert lake.manifest.batches("acme", "") == []
    assert landed(lake) == []
    done = load("".join(GARBLED))
    assert (told.visits, told.rejects, told.categories) == (done.visits, done.rejects, done.categories)


@pytest.mark.parametrize("log_format", ["auto", "combined", "vhost-combined", "common"])
def test_a_file_of_which_no_line_can_be_read_is_bad_input_and_changes_nothing(lake, load, log_format):
    before = stored(lake)
    with pytest.raises(BadInput, match=r"access\.log"):
        load("garbage\nmore garbage\n" * 10, Options("acme", log_format=log_format))
    assert stored(lake) == before
    assert lake.manifest.organizations() == []


def test_a_damaged_file_changes_nothing(lake, load):
    packed = bytearray(gzip.compress(log_of(3000).encode()))
    packed[-6] ^= 0xFF
    before = stored(lake)
    with pytest.raises(BadInput, match="damaged"):
        load(bytes(packed))
    assert stored(lake) == before


def test_refused_lines_are_noted_by_number_and_reason_alone(lake, load):
    text = line("/a") + "203.0.113.99 garbage\n" + line("/b") + line("/c", ip="203.0.113.98", at="203.0.113.97")
    summary = load(text)
    assert summary.rejects_file.parent == lake.rejects
    with summary.rejects_file.open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [
            ["line", "reason"],
            ["2", "not in the combined format"],
            ["4", "no valid time"],
        ]


def test_refused_lines_of_a_grown_log_have_their_numbers_in_the_whole_file(logs):
    logs.load(LINES)
    assert logs.load(LINES + "garbage\n" + line("/more")).rejects == [(13, "not in the combined format")]


def test_a_log_without_refused_lines_leaves_no_note(lake, load):
    assert load(LINES).rejects_file is None
    assert list(lake.rejects.iterdir()) == []


# Rules that take a while


def test_lines_are_parsed_while_the_rules_are_loaded(lake, write, monkeypatch):
    parsed, read, load = threading.Event(), formats.LineReader.read, importing.Classifier
    monkeypatch.setattr(formats.LineReader, "read", lambda *given: (read(*given), parsed.set())[0])
    monkeypatch.setattr(importing, "Classifier", lambda: parsed.wait(60) and load())
    assert Importer(lake).run(write(LINES), ACME).visits == 12


def test_rules_that_cannot_be_loaded_end_an_import_before_anything_lands(lake, write, monkeypatch):
    def load():
        raise ValueError("agents.toml, row 1: field 'token' is missing")

    monkeypatch.setattr(importing, "Classifier", load)
    with pytest.raises(ValueError, match="row 1"):
        Importer(lake).run(write(LINES), ACME)
    assert lake.manifest.batches("acme") == []
    assert not lake.has_visits()


# Several at once


IN_FORKS = """
import json, os, sys
from functools import cache
from pathlib import Path
import data.ingest.importer as importing
from data.store.lake import Lake
importing.Classifier = cache(importing.Classifier)
importing.Classifier()
def started(root, path, gates):
    behind, gate = os.pipe()
    gates.append(gate)
    child = os.fork()
    if not child:
        for gate in gates:  # also those of the processes before it, which wait for nobody else's
            os.close(gate)
        importer = importing.Importer(Lake(Path(root), create=True))
        os.read(behind, 1)
        importer.run(Path(path), importing.Options("acme"))
        os._exit(0)
    os.close(behind)
    return child
for line in sys.stdin:
    gates = []
    children = [started(*words, gates) for words in json.loads(line)]
    for gate in gates:
        os.close(gate)
    print(json.dumps(children), flush=True)
    sys.stdin.readline()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]), flush=True)
"""
"""Starts imports in processes of their own, all at the same moment; tells their ids, and once asked, how they ended."""


@pytest.fixture(scope="module")
def ask():
    """Asks a process that has loaded the rules, which the processes that it starts need not load."""
    command = [sys.executable, "-c", IN_FORKS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:

        def ask(*imports):
            process.stdin.write(json.dumps(imports, default=str) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


def at_once(ask, root, *logs):
    """Import logs at the same moment, each in a process of its own."""
    assert len(set(ask(*((root, log) for log in logs)))) == len(logs)
    assert ask() == [0] * len(logs)


def test_two_processes_that_import_the_same_log_count_it_once(ask, tmp_path, write, open_lake):
    text = log_of(2000)
    one, other = write(text, "one.log"), write(gzip.compress(text.encode()), "other.gz")
    at_once(ask, tmp_path / "lake", one, other)
    assert counted(landed(open_lake(tmp_path / "lake"))) == recounted(one)


def test_two_processes_give_the_same_person_the_same_visitor(ask, tmp_path, write, open_lake):
    logs = [write(line("/one"), "one.log"), write(line("/two"), "two.log")]
    at_once(ask, tmp_path / "lake", *logs)
    visits = landed(open_lake(tmp_path / "lake"))
    assert len(visits) == 2
    assert len({visit["visitor"] for visit in visits}) == 1


# Crashes


class Crash(Exception):
    """What a test throws in the way of an import."""


DAYS = "".join(line(f"/{day}", at=f"{day}/May/2015:10:05:03 +0000") for day in range(10, 14))


@examples("place", "call", "after")
def test_a_crash_leaves_the_old_answers_and_the_next_run_lands_all_once(
    lake, importer, load, monkeypatch, place, call, after
):
    load(line("/before"))
    module, _, name = place.rpartition(".")
    if module == "landing":
        fail_at(monkeypatch, "data.store.landing", name, call, is_done=after, error=Crash(name))
    elif module == "manifest":
        fail_at(monkeypatch, lake.manifest, name, call, is_done=after, error=Crash(name))
    else:
        fail_at(monkeypatch, "data.ingest.importer", "daily_salts", call, is_done=after, error=Crash("daily_salts"))
    with pytest.raises(Crash):
        load(line("/before") + DAYS)
    monkeypatch.undo()
    assert paths(lake) == {"/before": 1}
    assert load(line("/before") + DAYS).visits == 4
    assert paths(lake) == {"/before": 1, "/10": 1, "/11": 1, "/12": 1, "/13": 1}
    assert list(lake.staging.iterdir()) == []


def test_a_crash_after_the_commit_leaves_everything_landed(lake, load, monkeypatch):
    fail_at(monkeypatch, lake.manifest, "commit", 1, is_done=True, error=Crash("commit"))
    with pytest.raises(Crash):
        load(DAYS)
    monkeypatch.undo()
    assert load(DAYS).already_imported
    assert len(landed(lake)) == 4


def test_a_killed_process_leaves_a_lake_that_goes_on(ask, tmp_path, write, open_lake):
    log = write(log_of(3000))
    choice = random.Random(7)
    for _ in range(3):
        (number,) = ask((tmp_path / "lake", log))
        time.sleep(choice.uniform(0.0, 0.3))
        os.kill(number, signal.SIGKILL)
        (code,) = ask()
        assert code in {0, -signal.SIGKILL}
        lake = open_lake(tmp_path / "lake")
        assert len(landed(lake)) in {0, 3000}
    Importer(lake).run(log, ACME)
    assert counted(landed(lake)) == recounted(log)


# Who came: visitors and addresses


def visitors(lake, organization="acme"):
    return {visit["path"]: visit["visitor"] for visit in landed(lake, organization)}


def test_a_visitor_is_an_address_and_a_user_agent_on_a_day(logs):
    logs.load(
        line("/first")
        + line("/again", at="17/May/2015:23:59:59 +0000")
        + line("/address", ip="203.0.113.8")
        + line("/agent", agent=IPHONE)
        + line("/day", at="18/May/2015:00:00:00 +0000")
        + line("/nobody", ip="-")
    )
    told = logs.visitors()
    assert told["/first"] == told["/again"]
    assert told["/nobody"] is None
    assert len(set(told.values())) == 5


def test_a_visitor_is_another_for_another_organization(logs):
    logs.load(line(), Options("acme"))
    logs.load(line(), Options("other"))
    assert logs.visitors() != logs.visitors("other")


def test_a_visitor_is_the_same_in_another_file_of_the_day(logs):
    logs.load(line("/one"))
    logs.load(line("/two"), name="other.log")
    assert len(set(logs.visitors().values())) == 1


def test_a_visitor_cannot_be_recognised_once_the_salt_is_gone(lake, write):
    now = datetime(2026, 3, 1, tzinfo=UTC)
    Importer(lake, lambda: now).run(write(line("/one")), ACME)
    Importer(lake, lambda: now + timedelta(hours=49)).run(write(line("/two")), ACME)
    assert len(set(visitors(lake).values())) == 2


def test_the_salts_are_for_their_owner_only(lake, load):
    load(LINES)
    assert stat.S_IMODE(lake.salts.stat().st_mode) == 0o600


CANARIES = ("198.51.100.23", "2001:db8:cafe::23", "2001:DB8:CAFE::24", "canary-198-51-100-25.example.net")


def leaks(folder):
    told = everything_in(folder)
    assert b"canary-path" in told
    return [address for address in CANARIES if address.lower().encode() in told]


@pytest.mark.parametrize("head", ["", "a.example:80 ", "a.example "])
def test_no_address_reaches_the_disk(lake, load, tmp_path, monkeypatch, head):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    lines = [head + line("/canary-path", ip=address) for address in (CANARIES[:3] if head else CANARIES)]
    refused = [f"{head}{address} garbage\n" for address in CANARIES]
    load("".join([*lines, *refused, lines[0][:-5]]))
    assert leaks(lake.root) == []
    assert list(Path.cwd().iterdir()) == []


def test_the_address_behind_a_proxy_does_not_reach_the_disk_as_a_domain(lake, load):
    load("".join(f"{address} {line('/canary-path', ip='10.0.0.1')}" for address in CANARIES[:3]))
    assert leaks(lake.root) == []


def test_a_list_of_forwarded_addresses_does_not_reach_the_disk(lake, load):
    load("".join(f"{address}, 10.0.0.1 {line('/canary-path', ip='10.0.0.2')}" for address in CANARIES[:3]))
    assert leaks(lake.root) == []


def test_a_crash_leaves_no_address_behind(lake, load, monkeypatch):
    fail_at(monkeypatch, "data.store.landing", "move_durably", 1, is_done=True, error=Crash("move_durably"))
    monkeypatch.setattr("data.store.landing.Landing.discard", lambda self: None)  # who is killed tidies nothing up
    with pytest.raises(Crash):
        load(line("/canary-path", ip=CANARIES[0]))
    assert leaks(lake.root) == []
