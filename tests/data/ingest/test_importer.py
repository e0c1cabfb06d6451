"""The visits that imports land: options, repeated and grown logs, rejections, crashes and addresses."""

import csv
import gzip
import random
import re
import stat
import threading
from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import data.ingest.importer as importing
from data.errors import BadInput
from data.ingest.importer import Importer, Options
from data.logs import formats, source
from data.visits import VISITS
from tests.faults.trials import IS_LONG, tried
from tests.support.lakes import bytes_on_disk, everything_in, failing_at, files_of, paths, read
from tests.support.log_lines import line
from tests.support.relog import read_log
from tests.support.tables import examples, examples_at_once, tables
from tests.support.user_agents import CHROME, GPTBOT, IPHONE
from tests.support.visits import links

ACME = Options("acme")
KEY = ("visited_at", "path", "user_agent", "status", "bot_category")


def log_of(number_of_lines):
    return "".join(line(f"/{n}", at=f"17/May/2015:10:05:{n % 60:02} +0000") for n in range(number_of_lines))


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


def landed(lake, organization="acme"):
    """Return every landed visit of an organization as a dict: the columns of VISITS, the organization and the day."""
    return [
        visit | {"organization": file.path.split("/")[1].removeprefix("organization="), "day": file.day}
        for file in files_of(lake, organization)
        for visit in read(lake, file)
    ]


def counted(visits):
    return Counter(tuple(visit[name] for name in KEY) for visit in visits)


# Landed visits


def test_a_log_line_gives_exactly_the_expected_visit(lake, load):
    summary = load(
        'Go.Example.com:443 203.0.113.7 - frank [17/May/2015:23:30:03 -0500] "GET /abc?utm_source=News&utm_medium=email'
        f'&utm_campaign=May&utm_term=a+b&utm_content=%C3%A9 HTTP/2.0" 301 5316 "https://T.co/xyz?q=1#top" "{IPHONE}"\n'
    )
    (visit,) = landed(lake)
    assert visit.pop("visitor") is not None
    assert re.fullmatch("[0-9a-f]{12}", visit.pop("rules_version"))
    assert visit.pop("referrer_type") in {"social", "other"}
    names = set(VISITS.names) - {"visitor", "rules_version", "referrer_type"}
    assert visit == dict.fromkeys(names) | {
        "organization": "acme", "day": date(2015, 5, 18), "visited_at": datetime(2015, 5, 18, 4, 30, 3),
        "domain": "go.example.com", "short_code": "abc", "path": "/abc", "method": "GET", "protocol": "HTTP/2",
        "status": 301, "bot_category": "human", "device_type": "mobile", "operating_system": "iOS",
        "browser": "Mobile Safari", "user_agent": IPHONE, "referrer": "t.co", "utm_source": "News",
        "utm_medium": "email", "utm_campaign": "May", "utm_term": "a b", "utm_content": "é", "is_malicious": False,
        "utc_offset": 0, "bytes_sent": 5316,
    }  # fmt: skip
    assert (summary.log_format, summary.lines, summary.visits, summary.rejected) == ("vhost-combined", 1, 1, 0)


def test_a_log_lands_as_an_independent_parser_reads_it(lake, load, tmp_path):
    summary = load("".join(GARBLED))
    recount = read_log(tmp_path / "access.log", "acme", "")
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


def test_each_day_lands_in_one_file_sorted_by_code_and_time(lake, load):
    text = "".join(
        line(path, at=f"{day}/May/2015:10:00:{second:02} +0000")
        for day, path, second in [(18, "/b", 3), (17, "/b", 2), (17, "/a", 9), (17, "/b", 1), (18, "/a", 0)]
    )
    load(text)
    told = [[(row["short_code"], row["visited_at"].second) for row in read(lake, file)] for file in files_of(lake)]
    assert told == [[("a", 9), ("b", 1), ("b", 2)], [("a", 0), ("b", 3)]]


def test_a_file_with_several_blocks_lands_completely(logs, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", 10_000)
    monkeypatch.setattr(source, "BLOCK_BYTES", 70_000)
    text, told = log_of(1500), []
    assert logs.load(text, progress=lambda done, whole: told.append((done, whole))).visits == 1500
    assert logs.paths() == {f"/{number}": 1 for number in range(1500)}
    assert len(told) > 1
    assert told[-1] == (len(text), len(text))


def test_a_line_with_a_time_outside_the_calendar_is_rejected(logs):
    times = ("01/Jan/0000:00:00:00 +0000", "31/Dec/9999:23:59:59 -1200")
    assert logs.load(line() + "".join(line("/odd", at=at) for at in times)).rejected == 2
    assert logs.paths() == {"/abc": 1}


def test_a_request_line_gives_method_path_and_short_code(logs):
    """A short code is the only segment of its path."""
    rows = tables(__file__)["test_a_request_line_gives_method_path_and_short_code"]
    asked = '203.0.113.7 - - [17/May/2015:10:05:{:02} +0000] "{}" 200 1 "-" "Mozilla/5.0 Firefox/140.0"\n'.format
    logs.load("".join(asked(second, request_line) for second, (request_line, _) in enumerate(rows)))
    told = {visit["visited_at"].second: visit for visit in logs.visits()}
    for second, (request_line, columns) in enumerate(rows):
        assert {name: told[second][name] for name in columns} == columns, request_line
    assert len(told) == len(rows)


# Bytes that are not text

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


def test_successive_imports_share_one_reader(lake, importer, load, monkeypatch):
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
    importer.refresh_rules()
    load(line("/c"), name="c")
    assert len(opened) == 2
    for name in ("d", "e"):  # a failed reader is not used again
        with pytest.raises(BadInput):
            load("garbage\n", name=name)
    assert len(opened) == 3
    assert paths(lake) == Counter(("/a", "/b", "/c"))


EXPLICIT = ("combined", "csv", "ndjson")


@pytest.mark.parametrize("place", range(len(NOT_TEXT)), ids=NOT_TEXT)
def test_a_file_that_is_not_a_log_gets_a_one_line_error(logs, place):
    """Its format is unknown, or given: one of three formats in turn, or with TRAFFIC_FAULTS=all, each of the three."""
    for log_format in ("auto", *(EXPLICIT if IS_LONG else [EXPLICIT[place % len(EXPLICIT)]])):
        with pytest.raises(BadInput) as refused:
            logs.load([*NOT_TEXT.values()][place], Options("acme", log_format=log_format))
        assert "\n" not in str(refused.value)
        assert "access.log: " in str(refused.value)
        assert logs.batches() == []


ODD = [b"a\rb\n", b"\r", b"\r\n", b"\r\r\n", b"\0\n", b"\r\0\n", b"\xff\xfe\r\n", b"\x89PNG\r\n\x1a\n"]


@pytest.mark.parametrize("odd", ODD)
def test_readable_lines_land_despite_odd_bytes_anywhere(logs, odd):
    """The bytes are in one of three places, or in each with TRAFFIC_FAULTS=all; the format is given or detected."""
    first, second = line("/one").encode(), line("/two").encode()
    contents = [odd + first + second, first + odd + second, first + second + odd]
    for number, log_format in enumerate(("combined", "auto")):
        for content in contents if IS_LONG else [contents[(ODD.index(odd) + number) % len(contents)]]:
            organization = f"{log_format}-{contents.index(content)}"
            logs.load(content, Options(organization, log_format=log_format))
            assert logs.paths(organization) == Counter(("/one", "/two")), organization


def test_a_probe_comes_from_a_scanner_unless_it_names_a_link(lake, load):
    links(lake, "acme", [{"short_code": "phpmyadmin", "target_url": "https://example.com/docs"}])
    load(line("/phpmyadmin") + line("/.env") + line("/robots.txt") + line("/fine"))
    names = ("agent_kind", "detection_method", "is_malicious")
    assert {visit["path"]: tuple(visit[name] for name in names) for visit in landed(lake)} == {
        "/phpmyadmin": (None, None, False),
        "/.env": ("scanner", "path", True),
        "/robots.txt": ("other", "path", False),
        "/fine": (None, None, False),
    }


# Short codes, domains, options


def test_a_short_code_pattern_selects_another_part_of_the_path(logs):
    logs.load(line("/go/abc/x") + line("/go/") + line("/abc"), Options("acme", short_code_pattern=r"^/go/(\w*)"))
    assert logs.column("short_code") == {"/go/abc/x": "abc", "/go/": None, "/abc": None}


@examples_at_once("message", "given")
def test_invalid_or_contradictory_options_are_rejected(message, given):
    for options in given:
        with pytest.raises(BadInput, match=re.escape(message)):
            Options(**{"organization": "acme"} | options)


@pytest.mark.parametrize("organization", ["7", "-", "A_b-9", "x" * 64])
def test_an_organization_may_be_named_like_a_number_or_option(lake, load, organization):
    load(line(), Options(organization))
    assert [visit["organization"] for visit in landed(lake, organization)] == [organization]


def test_a_domain_in_a_line_overrides_the_domain_of_the_import(logs):
    default = Options("acme", "Default.Example:80")
    for text, options, name in (
        ("A.Example:80 " + line("/a") + "a.example " + line("/b"), replace(default, log_format="vhost-combined"), "1"),
        (line("/c"), default, "2"),
        (line("/d"), ACME, "3"),
    ):
        assert logs.load(text, options, name).invalid_domains == 0
    assert logs.column("domain") == {"/a": "a.example", "/b": "a.example", "/c": "default.example", "/d": None}


HOSTS = {"GO.Example:443": "go.example", "xn--bcher-kva.example": "xn--bcher-kva.example",
         "[2001:DB8::1]:80": "[2001:db8::1]", "go.example:x": None, "user@go.example": None, "a,b": None}  # fmt: skip
NAMING_A_HOST = tables(__file__)["naming_a_host"]
"""For each format, a line for a visit to /path at HOST, and the header of its log."""


@pytest.mark.parametrize("log_format", NAMING_A_HOST)
def test_a_visit_with_an_invalid_host_lands_without_a_domain(logs, log_format):
    written, header = NAMING_A_HOST[log_format]
    lines = [written.replace("HOST", host).replace("/path", f"/{place}") for place, host in enumerate(HOSTS)]
    summary = logs.load(header + "".join(lines), Options("acme", "Default.Example:80", log_format))
    assert logs.column("domain") == {f"/{place}": domain for place, domain in enumerate(HOSTS.values())}
    assert (summary.visits, summary.rejected, summary.invalid_domains) == (6, 0, 3)


@pytest.mark.parametrize("log_format", ["auto", "combined"])
def test_a_required_domain_must_be_given_for_a_log_without_hosts(logs, log_format):
    options = Options("acme", log_format=log_format, needs_domain=True)
    message = r"access\.log: its lines \(combined\) have no host; .* --domain go\.example"
    for _ in range(2):
        with pytest.raises(BadInput, match=message):
            logs.load(LINES, options)
        logs.load(LINES[: len(LINES) // 2])  # begun without the requirement
    assert logs.load(LINES, replace(options, domain="a.example")).begun_without_domain


@examples("names_hosts", "text")
def test_the_need_for_a_domain_is_detected_from_the_lines(logs, names_hosts, text):
    options = Options("acme", needs_domain=True)
    if names_hosts:
        logs.load(text, options)
    else:
        with pytest.raises(BadInput, match="have no host"):
            logs.load(text, options)
        assert logs.batches() == []


def test_the_same_log_for_another_organization_is_imported(lake, load):
    for organization in ("acme", "other", "acme"):
        load(LINES, Options(organization))
    assert len(landed(lake)) == len(landed(lake, "other")) == 12
    assert lake.manifest.organizations.names() == ["acme", "other"]


ASSETS, NO_ASSETS = tables(__file__)["assets"], tables(__file__)["no_assets"]


def test_assets_are_left_out_and_counted_on_request(logs):
    text = "".join(map(line, ASSETS + NO_ASSETS)) + "garbage\n"
    summary = logs.load(text, Options("acme", skip_assets=True))
    assert (summary.visits, summary.assets, summary.rejected) == (len(NO_ASSETS), len(ASSETS), 1)
    assert logs.paths() == Counter(path.partition("?")[0] for path in NO_ASSETS)
    summary = logs.load(text, Options("other"))
    assert (summary.visits, summary.assets) == (len(ASSETS + NO_ASSETS), 0)


# The same content again


def test_importing_known_content_again_changes_nothing(lake, load):
    load(LINES, Options("acme", "a.example"))
    before = bytes_on_disk(lake)
    assert load(gzip.compress(LINES.encode()), Options("acme", "a.example"), name="access.log.1").already_imported
    with pytest.raises(BadInput, match=r"access\.log was imported with --domain a\.example"):
        load(LINES, Options("acme", "b.example"))
    assert bytes_on_disk(lake) == before


NO_VISITS = {"garbage": "garbage\n", "blank": " \n", "empty": "\r\n\n", "cut": "203.0.113.7 - - [17/M"}
PACKED = {"": bytes, "gzip": gzip.compress, "zstd": lambda text: pa.Codec("zstd").compress(text, asbytes=True)}


@examples("what", "steps", "there")
def test_lines_count_once_when_their_log_is_imported_again(logs, what, steps, there):
    """Each step has a log's lines (by path) or text, how the log arrives, and the expected summary or rejection."""
    for step in steps:
        words = step.get("lines", "").split()
        text = (step.get("text") or "".join(NO_VISITS.get(word) or line(word) for word in words))[: step.get("end")]
        content = PACKED[step.get("packed", "")](text.encode())
        options = Options("acme", step.get("domain", ""), **step.get("options", {}))
        name = step.get("name", "access.log")
        if step.get("refused"):
            with pytest.raises(BadInput, match=r"(?i)was imported with --domain a\.example"):
                logs.load(content, options, name)
        else:
            summary = logs.load(content, options, name)
            told = {name: getattr(summary, name) for name in step.get("told", {})}
            assert told == step.get("told", {}), f"{what}: {step}"
    found = Counter(f"{visit['path']} {visit['domain'] or ''}".strip() for visit in logs.visits())
    assert found == there, what


def test_a_line_cut_in_its_user_agent_is_replaced_once_complete(logs):
    text = line("/a") + line("/b", agent=GPTBOT)
    cut = logs.load(text[: text.index("; compatible")])
    assert (cut.visits, cut.repaired) == (2, 1)
    assert Counter(visit["bot_category"] for visit in logs.visits())["ai_training"] == 0
    whole = logs.load(text)
    assert (whole.continued, whole.visits, whole.repaired) == (True, 1, 0)
    assert {visit["path"]: visit["user_agent"] for visit in logs.visits()} == {"/a": CHROME, "/b": GPTBOT}
    assert len(logs.visits()) == 2
    letters = line("/c", agent="Яндекс").encode()
    for content in (letters[:-6], letters):
        logs.load(content, name="letters.log")
    assert logs.column("user_agent")["/c"] == "Яндекс"


def test_a_whole_gzip_file_completes_a_truncated_one(lake, load, tmp_path):
    packed = gzip.compress(log_of(400).encode())
    for size in (3, 12, 60, len(packed) // 2):
        cut = load(packed[:size], name="cut.gz")
        assert cut.is_truncated
        assert cut.visits == cut.lines - cut.rejected
    assert 0 < len(landed(lake)) < 400
    whole = load(packed, name="whole.gz")
    assert (whole.continued, whole.is_truncated) == (True, False)
    assert counted(landed(lake)) == counted(read_log(tmp_path / "whole.gz", "acme", ""))


@pytest.mark.parametrize("long", ["\0" * 500_000 + "\n", line("/long", agent="Ж" * 100_000)])  # as after a crash
def test_an_overlong_line_does_not_make_a_grown_log_count_twice(logs, monkeypatch, long):
    monkeypatch.setattr(source, "CHUNK_BYTES", 10_000)
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 17)
    text = line("/a") + long + line("/b")
    assert logs.load(text).rejects == [(2, "longer than 65536 bytes")]
    logs.load(text + line("/c"))
    assert logs.paths() == {"/a": 1, "/b": 1, "/c": 1}


def test_visits_do_not_depend_on_the_batch_size(importer, monkeypatch):
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


@given(
    cuts=st.lists(st.integers(0, len(CONTENT)), min_size=4, max_size=4).map(sorted),
    log_format=st.sampled_from(["auto", "combined"]),
    packed=st.lists(st.sampled_from([bytes, gzip.compress]), min_size=5, max_size=5),
)
@tried(3)
def test_a_log_imported_in_five_steps_lands_like_a_whole_one(
    shared_lake, shared_importer, names, tmp_path, cuts, log_format, packed
):
    organization, log = names(), tmp_path / "access.log"
    for end, pack in zip([*cuts, len(CONTENT)], packed, strict=True):
        before = counted(landed(shared_lake, organization))
        log.write_bytes(pack(CONTENT[:end]))
        try:
            shared_importer.run(log, Options(organization, log_format=log_format))
        except BadInput:  # a beginning in no known format
            assert end < len(CONTENT)
            assert counted(landed(shared_lake, organization)) == before
    assert counted(landed(shared_lake, organization)) == counted(read_log(log, "acme", ""))


# Rejections

ANY_SALTS = {Path("salts.sqlite"): ""}  # every run deletes old salts


@pytest.fixture
def unchanged(lake, load):
    """Land a log for another organization; check that the test, which imports for acme, leaves the lake unchanged."""
    load(line("/before"), Options("other"))
    before = bytes_on_disk(lake) | ANY_SALTS
    yield
    assert bytes_on_disk(lake) | ANY_SALTS == before
    assert lake.manifest.organizations.names() == ["other"]
    assert lake.manifest.logs.batches("acme", "") == []
    assert landed(lake) == []


@pytest.mark.parametrize("log_format", ["auto", "combined", "vhost-combined", "common"])
@pytest.mark.usefixtures("unchanged")
def test_an_import_of_an_unreadable_log_writes_nothing(load, log_format):
    with pytest.raises(BadInput, match=r"access\.log"):
        load("garbage\nmore garbage\n" * 10, Options("acme", log_format=log_format))


@pytest.mark.usefixtures("unchanged")
def test_a_dry_run_writes_nothing(load):
    assert load("".join(GARBLED), dry_run=True).visits


def test_a_dry_run_reports_the_same_as_an_import(load):
    told, done = load("".join(GARBLED), dry_run=True), load("".join(GARBLED))
    assert (told.visits, told.rejects, told.categories) == (done.visits, done.rejects, done.categories)


def test_without_rejected_lines_no_file_of_rejects_is_written(lake, load):
    assert load(line("/0")).rejects_file is None
    assert list(lake.rejects.iterdir()) == []


REFUSED = line("/a") + "203.0.113.99 garbage\n" + line("/b") + line("/c", ip="203.0.113.98", at="203.0.113.97")
"""A log in which two of four lines are rejected."""


def test_rejected_lines_are_recorded_by_number_and_reason(lake, load):
    summary = load(REFUSED)
    assert summary.rejects_file.parent == lake.rejects
    with summary.rejects_file.open(newline="", encoding="utf-8") as file:
        noted = list(csv.reader(file))
    assert noted == [["line", "reason"], ["2", "not in the combined format"], ["4", "no valid time"]]


def test_rejected_lines_are_numbered_from_the_beginning(load):
    load(REFUSED)
    assert load(REFUSED + "garbage\n" + line("/more")).rejects == [(5, "not in the combined format")]


# Slow rules, and crashes


def test_lines_are_parsed_while_the_rules_are_loaded(lake, load, monkeypatch):
    parsed, read, classifier = threading.Event(), formats.LineReader.read, importing.shared_classifier
    monkeypatch.setattr(formats.LineReader, "read", lambda *given: (read(*given), parsed.set())[0])
    monkeypatch.setattr(importing, "shared_classifier", lambda own: parsed.wait(60) and classifier(own))
    assert load(LINES, by=Importer(lake)).visits == 12


def test_unloadable_rules_end_an_import_before_anything_lands(lake, load, monkeypatch):
    def rules(own):
        raise ValueError("agents.toml, row 1: field 'token' is missing")

    monkeypatch.setattr(importing, "shared_classifier", rules)
    with pytest.raises(ValueError, match="row 1"):
        load(LINES, by=Importer(lake))
    assert lake.manifest.logs.batches("acme") == []
    assert not lake.has_visits()


DAYS = "".join(line(f"/{day}", at=f"{day}/May/2015:10:05:03 +0000") for day in range(10, 14))


@examples("place", "call", "after", "is_landed")
def test_a_crash_leaves_an_import_undone_or_complete(lake, importer, load, place, call, after, is_landed):
    load(line("/before"))
    module, _, name = place.rpartition(".")
    target = lake.manifest if module == "manifest" else module
    with failing_at(target, name, call, after, ZeroDivisionError()):
        load(line("/before") + DAYS)
    whole = Counter(("/before", "/10", "/11", "/12", "/13"))
    assert paths(lake) == (whole if is_landed else {"/before": 1})
    again = load(line("/before") + DAYS)
    assert (again.already_imported, again.visits) == (is_landed, 0 if is_landed else 4)
    assert paths(lake) == whole
    assert list(lake.staging.iterdir()) == []


# Visitors and addresses


def test_a_visitor_is_an_address_and_user_agent_on_one_day(logs):
    logs.load(
        line("/first")
        + line("/again", at="17/May/2015:23:59:59 +0000")
        + line("/address", ip="203.0.113.8")
        + line("/agent", agent=IPHONE)
        + line("/day", at="18/May/2015:00:00:00 +0000")
        + line("/nobody", ip="-")
    )
    logs.load(line("/file"), name="other.log")
    logs.load(line("/first"), Options("other"))
    told = logs.column("visitor")
    assert told["/first"] == told["/again"] == told["/file"]
    assert told["/nobody"] is None
    assert len({*told.values(), *logs.column("visitor", "other").values()}) == 6


def test_a_visitor_is_not_recognized_once_the_salt_is_gone(lake, load):
    now = datetime(2026, 3, 1, tzinfo=UTC)
    load(line("/one"), by=Importer(lake, lambda: now))
    load(line("/two"), by=Importer(lake, lambda: now + timedelta(hours=49)))
    assert len({visit["visitor"] for visit in landed(lake)}) == 2


def test_only_the_owner_can_read_the_salts(lake, load):
    load(line())
    assert stat.S_IMODE(lake.salts.stat().st_mode) == 0o600


CANARIES = ("198.51.100.23", "2001:db8:cafe::23", "2001:DB8:CAFE::24", "canary-198-51-100-25.example.net")


def leaks(folder):
    told = everything_in(folder)
    assert b"canary-path" in told
    return [address for address in CANARIES if address.lower().encode() in told]


@pytest.mark.parametrize("head", ["", "a.example:80 ", "{} ", "{}, 10.0.0.1 "])
def test_no_address_reaches_the_disk(lake, load, tmp_path, monkeypatch, head):
    """This includes one or two addresses in place of a domain, before a proxy's address."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    known = CANARIES[:3] if head else CANARIES
    lines = [
        head.format(address) + line("/canary-path", ip="10.0.0.2" if "{" in head else address) for address in known
    ]
    refused = [f"{head.format(address)}{address} garbage\n" for address in CANARIES]
    load("".join([*lines, *refused, lines[0][:-5]]))
    assert leaks(lake.root) == []
    assert list(Path.cwd().iterdir()) == []


def test_a_crash_leaves_no_address_behind(lake, load, monkeypatch):
    monkeypatch.setattr("data.store.landing.Landing.discard", lambda self: None)  # a killed program cleans up nothing
    with failing_at("data.store.landing", "move_durably", is_done=True):
        load(line("/canary-path", ip=CANARIES[0]))
    assert leaks(lake.root) == []
