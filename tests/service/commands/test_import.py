"""`traffic import` of logs that must be told how they look."""

from datetime import date

import pyarrow.parquet as pq
import pytest

from data.logs.formats import FORMATS

NOTATION = '$remote_addr [$time_local] "$request" $status "$http_user_agent" $host'
NGINX = '203.0.113.7 [04/Mar/2026:10:05:03 +0000] "GET /abc HTTP/1.1" 302 "curl/8.5.0" go.example.com\n'
CSV = "ts,link,client\n2026-03-04T10:05:03Z,https://go.example.com/abc,203.0.113.7\n"


@pytest.fixture
def run(lake, tmp_path, traffic, monkeypatch):
    """Runs `traffic import` on a text; what it told, and its exit code."""
    monkeypatch.setenv("COLUMNS", "400")

    def run(text, *flags):
        path = tmp_path / "access.log"
        path.write_text(text, "utf-8")
        code, printed, told = traffic("import", path, "--org", "acme", "--lake", lake.root, *flags)
        assert printed == ""
        return told, code

    return run


def paths(lake):
    files = lake.visit_files("acme", date(2026, 1, 1), date(2026, 12, 31))
    return [(visit["domain"], visit["path"]) for file in files for visit in pq.ParquetFile(file).read().to_pylist()]


@pytest.mark.parametrize(
    ("text", "flags"), [(NGINX, ("--log-format", NOTATION)), (CSV, ("--columns", "time=ts,url=link,ip=client"))]
)
def test_a_log_that_is_told_how_it_looks_lands(lake, run, text, flags):
    told, code = run(text, *flags)
    assert (code, "1 visit landed from 1 line" in told) == (0, True)
    assert paths(lake) == [("go.example.com", "/abc")]


def test_visits_with_an_invalid_host_land_and_are_counted(lake, run):
    text = "".join(NGINX.replace("go.example.com", host) for host in ("Go.Example.com:443", "a@go.example.com", "a,b"))
    told, code = run(text, "--log-format", NOTATION)
    assert (code, "3 visits landed from 3 lines" in told) == (0, True)
    assert "  2 with an invalid host: the domain is unknown" in told
    assert sorted(paths(lake), key=str) == [("go.example.com", "/abc"), (None, "/abc"), (None, "/abc")]


@pytest.mark.parametrize(
    ("text", "flags", "told"),
    [
        (NGINX, ("--domain", "https://go.example.com"), "--domain must be a host or host:port, such as"),
        (NGINX, (), "--log-format"),
        (CSV, (), "--columns"),
        (CSV, ("--format", "csv"), "column 'time' for time is missing; found: ts, link, client."),
        (CSV, ("--columns", "when=ts"), "--columns: unknown field 'when'; use one of time, ip,"),
        (
            NGINX,
            ("--log-format", "$remote_addr$request"),
            "--log-format has $remote_addr and $request next to each other",
        ),
    ],
)
def test_what_cannot_be_read_ends_with_one_clear_line(lake, run, text, flags, told):
    said, code = run(text, *flags)
    assert code == 2
    assert told in said
    assert "Traceback" not in said
    assert "203.0.113.7" not in said
    assert paths(lake) == []


@pytest.mark.parametrize("content", ["a\rb\n", "\x7fELF\0\r\0\n", "\r\0"])
def test_a_binary_ends_with_one_clear_line(lake, run, content):
    said, code = run(content)
    assert code == 2
    assert said.splitlines()[-1].startswith("traffic: ")
    assert "no known log format matches" in said
    assert paths(lake) == []


def test_the_help_names_every_format_and_shows_how_logs_are_described(traffic):
    code, printed, _ = traffic("import", "--help")
    assert code == 0
    told = " ".join(printed.split())
    assert [name for name in (*FORMATS, "$remote_addr [$time_local]", "time=ts,ip=") if name not in told] == []
