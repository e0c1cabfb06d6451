"""`traffic import` of logs that must be told how they look."""

import re
from datetime import UTC, date, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from data.ingest.importer import Importer, Options
from data.logs.formats import FORMATS
from data.maintenance import erasure
from queries import DEFAULT_RANGE, RANGES
from service.commands.importing import OLD
from tests.support.tables import examples
from tests.support.user_agents import CHROME

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
    files = lake.visit_files("acme", date(2026, 1, 1), date(2030, 12, 31))
    return [(visit["domain"], visit["path"]) for file in files for visit in pq.ParquetFile(file).read().to_pylist()]


@pytest.mark.parametrize(
    ("text", "flags"), [(NGINX, ("--log-format", NOTATION)), (CSV, ("--columns", "time=ts,url=link,ip=client"))]
)
def test_a_log_that_is_told_how_it_looks_lands(lake, run, text, flags):
    told, code = run(text, *flags)
    assert (code, "1 visit imported from 1 line" in told) == (0, True)
    assert paths(lake) == [("go.example.com", "/abc")]


def test_lines_of_the_day_after_tomorrow_are_counted_and_not_read(lake, run):
    now = datetime.now(UTC)
    times = [now + timedelta(hours=hours) for hours in (-1, 23, 25, 50)]
    text = "".join(NGINX.replace("04/Mar/2026:10:05:03", f"{time:%d/%b/%Y:%H:%M:%S}") for time in times)
    told, code = run(text, "--log-format", NOTATION)
    assert (code, "2 visits imported from 4 lines" in told) == (0, True)
    assert "  2 lines not read" in told
    assert "the first is line 3: more than a day in the future\n" in told
    assert "  2 lines of them more than a day in the future: check the clock" in told


def test_a_log_from_the_future_is_recognized_and_refused(lake, run):
    line = '203.0.113.7 - - [04/Mar/2100:10:05:03 +0000] "GET /abc HTTP/1.1" 302 5 "-" "curl/8.5.0"\n'
    told, code = run(line, "--domain", "go.example.com")
    assert code == 2
    assert "it has 1 line, but none in the combined format; the first, line 1: more than a day in the future." in told
    assert paths(lake) == []


@examples("line", "problem")
def test_json_lines_without_time_are_refused_as_only_live_visits_take_the_present(lake, run, line, problem):
    told, code = run(f"{line}\n", "--format", "ndjson")
    assert (code, problem in told) == (2, True), told
    assert paths(lake) == []


def test_visits_with_an_invalid_host_land_and_are_counted(lake, run):
    text = "".join(NGINX.replace("go.example.com", host) for host in ("Go.Example.com:443", "a@go.example.com", "a,b"))
    told, code = run(text, "--log-format", NOTATION)
    assert (code, "3 visits imported from 3 lines" in told) == (0, True)
    assert "  2 with an invalid host: the domain is unknown" in told
    assert sorted(paths(lake), key=str) == [("go.example.com", "/abc"), (None, "/abc"), (None, "/abc")]


def test_an_import_judges_past_days_once_and_a_dry_run_judges_none(lake, run):
    flags = "--log-format", NOTATION
    told = [run(NGINX, *flags, *more)[0] for more in (["--dry-run"], [], [])]
    assert ["Judged 1 past day: disguised bots no longer count as people." in text for text in told] == [
        False, True, False
    ]  # fmt: skip
    assert all(file.behaviour_version for file in lake.manifest.live_files("acme"))


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


# What a dry run tells, and the way back


def line(path, at="04/Mar/2026"):
    return f'203.0.113.7 - - [{at}:10:05:03 +0000] "GET {path} HTTP/1.1" 200 5 "-" "{CHROME}"\n'


def test_a_dry_run_tells_dates_categories_and_the_first_short_codes(lake, run):
    now = datetime.now(UTC)
    text = "".join(line(f"/c{number:02}", f"{now:%d/%b/%Y}") for number in range(12)) + line("/no/link", "01/Mar/2026")
    told, code = run(text, "--domain", "go.example", "--dry-run")
    assert code == 0
    assert f"  days 2026-03-01 to {now:%Y-%m-%d} (UTC)" in told
    assert re.search(r"human +13 +100\.0 %", told)
    codes = ", ".join(f"c{number:02}" for number in range(10))
    assert f"  92.3 % of paths match the short-code pattern, such as {codes}\n" in told
    assert "warning" not in told
    assert paths(lake) == []
    assert "short-code pattern" not in run(text, "--domain", "go.example")[0]


def test_a_dry_run_makes_no_lake(traffic, tmp_path):
    (tmp_path / "access.log").write_text(line("/a"))
    options = ("--org", "acme", "--domain", "go.example", "--lake", tmp_path / "new", "--dry-run")
    run = traffic("import", tmp_path / "access.log", *options)
    assert (run.code, run.err.splitlines()[0]) == (0, f"Lake: {tmp_path / 'new'}")
    assert "1 visit would be imported from 1 line" in run.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("flags", [("--skip-assets",), ()])
def test_assets_are_left_out_by_flag_or_setting(lake, run, monkeypatch, flags):
    monkeypatch.setenv("TRAFFIC_SKIP_ASSETS", "" if flags else "1")
    told, code = run(line("/a") + line("/a.png") * 2, "--domain", "go.example", *flags)
    assert (code, paths(lake)) == (0, [("go.example", "/a")])
    assert "1 visit imported from 3 lines" in told
    assert "  2 requests for images, styles, scripts and fonts left out" in told


@pytest.mark.parametrize("flags", [["--dry-run"], []])
def test_an_import_and_its_dry_run_warn_of_few_links_and_of_old_visits(run, flags):
    assert timedelta(days=RANGES[DEFAULT_RANGE]) == OLD
    told, code = run(line("/go/abc") * 19 + line("/abc"), "--domain", "go.example", *flags)
    assert (code, "  5.0 % of paths match" in told, "few of its paths" in told) == (0, bool(flags), False)
    (day,) = re.findall(r"days (\S+) to", told)
    warning = "warning: its newest visit is older than the default range of queries, 30d: ask with "
    assert f"{warning}--start-date {day} --end-date {day}\n" in told
    recent = datetime.now(UTC) - timedelta(days=60)
    told, _ = run(line("/abc", f"{recent:%d/%b/%Y}"), "--domain", "go.example", *flags)
    assert f"{warning}--range 90d or --start-date {recent:%Y-%m-%d} --end-date {recent:%Y-%m-%d}\n" in told
    told, _ = run(line("/go/abc") * 20 + line("/abc"), "--domain", "go.example", *flags)
    assert "warning: few of its paths are links; --short-code-pattern" in told


def test_an_empty_log_is_told_without_a_format(run):
    told, code = run("", "--domain", "go.example")
    assert (code, "access.log: 0 visits imported from 0 lines.\n" in told) == (0, True)


def test_a_log_that_names_no_host_ends_with_one_line_that_says_what_is_missing(lake, run):
    told, code = run(line("/a"))
    assert code == 2
    assert "its lines (combined) name no host; name it, such as --domain go.example.com." in told
    assert lake.manifest.batches("acme") == []


@pytest.fixture
def erase(traffic, lake, monkeypatch):
    monkeypatch.setattr(erasure, "GRACE", timedelta(0))
    return lambda *flags: traffic("erase", "--org", "acme", "--yes", "--lake", lake.root, *flags)


def test_a_log_that_landed_without_a_domain_is_erased_and_lands_again_with_one(lake, run, erase, tmp_path):
    (tmp_path / "access.log").write_text(line("/a"))
    Importer(lake).run(tmp_path / "access.log", Options("acme"))  # where none was asked for
    assert "already imported, without a domain, nothing changed" in run(line("/a"), "--domain", "go.example")[0]
    told, code = run(line("/a"), "--domain", "go.example", "--again")
    (command,) = re.findall("`traffic erase --org acme (.*?)`", told)
    assert (code, command) == (2, "--no-domain --since 2026-03-04 --before 2026-03-05")
    assert erase(*command.split()).code == 0
    told, code = run(line("/a"), "--domain", "go.example", "--again")
    assert (code, "1 visit imported from 1 line" in told) == (0, True)
    assert paths(lake) == [("go.example", "/a")]


def test_before_an_erased_link_comes_back_it_asks(today, lake, run, erase):
    flags = ("--domain", "go.example", "--again")
    run(line("/a") + line("/b"), *flags)
    for criteria in (("--short-code", "a"), ("--all",)):
        assert erase(*criteria).code == 0
    told, code = run(line("/a") + line("/b"), *flags)
    assert code == 2
    assert f"visits of the link a were erased on {today}" in told
    assert "--yes" in told.splitlines()[-1]
    assert paths(lake) == []
    told, code = run(line("/a") + line("/b"), *flags, "--dry-run")
    assert (code, "warning: visits of the link a were erased" in told) == (0, True)
    assert run(line("/a") + line("/b"), *flags, "--yes")[1] == 0
    assert sorted(paths(lake)) == [("go.example", "/a"), ("go.example", "/b")]


def test_the_help_names_every_format_and_shows_how_logs_are_described(traffic):
    code, printed, _ = traffic("import", "--help")
    assert code == 0
    told = " ".join(printed.split())
    assert [name for name in (*FORMATS, "$remote_addr [$time_local]", "time=ts,ip=") if name not in told] == []
