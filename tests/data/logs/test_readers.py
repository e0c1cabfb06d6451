"""Lines of real servers, and what the readers make of them."""

from datetime import datetime

import duckdb
import pytest

from data.errors import BadInput
from data.logs import formats
from data.logs.source import MAX_LINE_BYTES

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
AT = datetime(2015, 5, 17, 10, 5, 3)
FIELDS = (
    "number", "reason", "domain", "ip", "visited_at", "method", "target", "protocol", "status", "referrer",
    "user_agent", "is_repaired",
)  # fmt: skip


@pytest.fixture(scope="module")
def reader():
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        yield formats.LineReader(engine)


@pytest.fixture
def facts(reader):
    """Reads lines in one format; one dict a line, its reason included."""

    def read(log_format, *lines):
        text = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines)
        return reader.read(formats.split_lines(text, 1), log_format).select(FIELDS).sort_by("number").to_pylist()

    return read


@pytest.fixture
def fact(facts):
    def read(log_format, line):
        (found,) = facts(log_format, line)
        return found

    return read


@pytest.fixture
def detected(reader):
    return lambda *lines: reader.detect(formats.split_lines("\n".join(lines).encode(), 1))


def combined(
    head="203.0.113.7 - -",
    at="17/May/2015:10:05:03 +0000",
    request="GET /abc HTTP/1.1",
    tail='200 5316 "https://example.org/page" "curl/8.5.0"',
):
    return f'{head} [{at}] "{request}" {tail}'


VHOST = combined(head="links.example.com:443 203.0.113.7 - -")
COMMON = combined(tail="200 5316")
GARBAGE = r'203.0.113.9 - - [17/May/2015:10:05:03 +0000] "\x16\x03\x01\x02\x00\x01\x00\x01\xFC" 400 484 "-" "-"'
READABLE = {
    "number": 1,
    "reason": None,
    "domain": "",
    "ip": "203.0.113.7",
    "visited_at": AT,
    "method": "GET",
    "target": "/abc",
    "protocol": "HTTP/1.1",
    "status": 200,
    "referrer": "https://example.org/page",
    "user_agent": "curl/8.5.0",
    "is_repaired": False,
}


def test_a_combined_line_gives_all_its_facts(fact):
    assert fact("combined", combined()) == READABLE


def test_a_vhost_line_names_its_host_and_port(fact):
    assert fact("vhost-combined", VHOST) == READABLE | {"domain": "links.example.com:443"}


def test_a_vhost_line_may_do_without_a_port(fact):
    assert fact("vhost-combined", VHOST.replace(":443", ""))["domain"] == "links.example.com"


def test_a_common_line_has_neither_referrer_nor_user_agent(fact):
    assert fact("common", COMMON) == READABLE | {"referrer": "", "user_agent": ""}


@pytest.mark.parametrize("ip", ["2001:db8::1", "::1", "::ffff:203.0.113.7", "crawl-66-249.example.net", "-"])
def test_an_address_may_be_of_any_kind(fact, ip):
    assert fact("combined", combined(head=f"{ip} - -")) == READABLE | {"ip": ip}


@pytest.mark.parametrize("ip", ["2001:db8::1", "::1", "::ffff:203.0.113.7"])
def test_a_vhost_line_may_hold_an_ipv6_address(fact, ip):
    assert fact("vhost-combined", combined(head=f"a.example:80 {ip} - -")) == READABLE | {
        "domain": "a.example:80",
        "ip": ip,
    }


@pytest.mark.parametrize("user", ["frank", "Frank van Dijk", "frank [admin]", "a - b", "frank@example.org"])
def test_a_user_may_have_any_name(fact, user):
    assert fact("combined", combined(head=f"203.0.113.7 - {user}")) == READABLE


def test_an_empty_user_as_apache_writes_it_is_readable(fact):
    assert fact("combined", combined(head='203.0.113.7 - ""')) == READABLE


@pytest.mark.parametrize(
    ("at", "utc"),
    [
        ("17/May/2015:10:05:03 +0000", AT),
        ("17/May/2015:23:30:00 -0500", datetime(2015, 5, 18, 4, 30)),
        ("01/Jan/2026:00:10:00 +0530", datetime(2025, 12, 31, 18, 40)),
        ("29/Feb/2024:12:00:00 -0000", datetime(2024, 2, 29, 12)),
        ("31/Dec/2025:23:59:59 +1400", datetime(2025, 12, 31, 9, 59, 59)),
    ],
)
def test_times_become_utc(fact, at, utc):
    assert fact("combined", combined(at=at))["visited_at"] == utc


@pytest.mark.parametrize("zone", ["+0000", "-0000"])
@pytest.mark.parametrize("end", ["]", "] ", "]  "])
def test_times_are_read_behind_names_of_several_words_and_before_any_number_of_spaces(fact, zone, end):
    line = f'203.0.113.7 - Jane van Dyk [17/May/2015:10:05:03 {zone}{end}"GET /abc HTTP/1.1" 200 5 "-" "curl/8.5.0"'
    assert fact("combined", line)["visited_at"] == AT


@pytest.mark.parametrize(
    ("logged", "user_agent"),
    [
        (r"He said \"hi\"", r"He said \"hi\""),
        (r"ends in a backslash\\", r"ends in a backslash\\"),
        (r"ends in a quote\"", r"ends in a quote\""),
        (r"both \\\" of them", r"both \\\" of them"),
        (r"\x22nginx\x22", r"\x22nginx\x22"),
        ("-", ""),
        ("", ""),
        (" spaces around ", " spaces around "),
        ("Яндекс 浏览器 🙂", "Яндекс 浏览器 🙂"),
    ],
)
def test_a_user_agent_keeps_the_escapes_of_its_server(fact, logged, user_agent):
    line = combined(tail=f'200 1 "-" "{logged}"')
    assert fact("combined", line) == READABLE | {"referrer": "", "user_agent": user_agent}


def test_escaped_quotes_in_request_and_referrer_split_nothing(fact):
    line = combined(request=r"GET /\"x\" HTTP/1.1", tail=r'404 1 "http://a.example/?q=\"x\"\\" "curl/8.5.0"')
    assert fact("combined", line) == READABLE | {
        "target": r"/\"x\"",
        "status": 404,
        "referrer": r"http://a.example/?q=\"x\"\\",
    }


def test_a_quote_that_no_server_escaped_ends_the_user_agent(fact):
    found = fact("combined", combined(tail='200 1 "-" "before "after" end"'))
    assert (found["reason"], found["user_agent"], found["is_repaired"]) == (None, "before ", False)


def test_missing_text_is_empty(fact):
    found = fact("combined", combined(head="- - -", request="-", tail='408 - "-" "-"'))
    unread = {"method": "", "target": "", "protocol": ""}
    assert found == READABLE | unread | {"ip": "-", "status": 408, "referrer": "", "user_agent": ""}


@pytest.mark.parametrize("extra", [' "203.0.113.9"', " 0.004 0.003 .", ' "-" rt=0.1 "gzip"', " "])
def test_fields_after_the_user_agent_change_nothing(fact, extra):
    assert fact("combined", combined() + extra) == READABLE


UNREADABLE = ("", "", "")


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        ("GET /abc HTTP/1.1", ("GET", "/abc", "HTTP/1.1")),
        ("GET /abc HTTP/1.0", ("GET", "/abc", "HTTP/1.0")),
        ("GET /abc HTTP/2.0", ("GET", "/abc", "HTTP/2")),
        ("HEAD /abc HTTP/2", ("HEAD", "/abc", "HTTP/2")),
        ("POST /abc HTTP/3.0", ("POST", "/abc", "HTTP/3")),
        ("GET /abc HTTP/0.9", ("GET", "/abc", "")),
        ("GET /abc", ("GET", "/abc", "")),
        ("GET /a b c HTTP/1.1", ("GET", "/a b c", "HTTP/1.1")),
        ("GET /a b c", ("GET", "/a b c", "")),
        ("GET /a HTTP/1.0 HTTP/1.1", ("GET", "/a HTTP/1.0", "HTTP/1.1")),
        ("GET /a HTTP/1.1 ", ("GET", "/a HTTP/1.1 ", "")),
        ("GET /a http/1.1", ("GET", "/a http/1.1", "")),
        ("GET  HTTP/1.1", ("GET", "", "HTTP/1.1")),
        ("GET HTTP/1.1", ("GET", "HTTP/1.1", "")),
        ("GET  /a HTTP/1.1", ("GET", " /a", "HTTP/1.1")),
        ("PRI * HTTP/2.0", ("PRI", "*", "HTTP/2")),
        ("GET http://a.example/x?y HTTP/1.1", ("GET", "http://a.example/x?y", "HTTP/1.1")),
        ("CONNECT a.example:443 HTTP/1.1", ("CONNECT", "a.example:443", "HTTP/1.1")),
        (f"{'X' * 20} / HTTP/1.1", ("X" * 20, "/", "HTTP/1.1")),
        (f"{'X' * 21} / HTTP/1.1", UNREADABLE),
        ("get / HTTP/1.1", UNREADABLE),
        ("GET", UNREADABLE),
        ("", UNREADABLE),
        ("-", UNREADABLE),
        (r"\x16\x03\x01", UNREADABLE),
    ],
)
@pytest.mark.parametrize("log_format", ["combined", "vhost-combined", "common"])
def test_a_request_line_is_split_or_left_empty_but_never_refused(fact, log_format, request_line, expected):
    line = combined(request=request_line, **({"tail": "200 1"} if log_format == "common" else {}))
    found = fact(log_format, f"a.example:80 {line}" if log_format == "vhost-combined" else line)
    assert (found["reason"], found["method"], found["target"], found["protocol"]) == (None, *expected)


def test_a_line_cut_in_its_user_agent_is_mended(fact):
    assert fact("combined", combined()[:-4]) == READABLE | {"user_agent": "curl/8.", "is_repaired": True}
    assert fact("vhost-combined", VHOST[:-1]) == READABLE | {"domain": "links.example.com:443", "is_repaired": True}


def test_a_line_cut_in_an_escape_is_mended(fact):
    found = fact("combined", combined(tail='200 1 "-" "He said \\'))
    assert (found["reason"], found["user_agent"], found["is_repaired"]) == (None, "He said \\", True)


def test_carriage_returns_and_empty_lines_are_no_text(facts):
    found = facts("combined", combined() + "\r", "", "\r", combined())
    assert found == [READABLE, READABLE | {"number": 4}]


def test_undecodable_bytes_and_nuls_become_the_replacement_character(fact):
    line = combined(request="GET /caf? HTTP/1.1").encode().replace(b"f?", b"f\xe9")
    found = fact("combined", line.replace(b"curl/8", b"cu\0rl/8"))
    assert found == READABLE | {"target": "/caf\ufffd", "user_agent": "cu\ufffdrl/8.5.0"}


def test_line_numbers_go_on_from_the_first():
    lines = formats.split_lines(b"a\n\nb\r\nc", 41)
    assert lines.to_pydict() == {"number": [41, 43, 44], "line": ["a", "b", "c"]}


@pytest.mark.parametrize(
    "line",
    [
        "not a log line",
        '"',
        " ",
        "2015-05-17 10:05:03 203.0.113.7 GET /abc - 80 - 203.0.113.7 curl 200",
        combined(tail='200 5316 "https://exam'),
        combined(tail="200 53"),
        '203.0.113.7 - - [17/May/2015:10:05:03 +0000] "GET /ab',
    ],
)
def test_lines_of_another_shape_are_refused_as_such(fact, line):
    assert fact("combined", line)["reason"] == "not in the combined format"
    assert fact("vhost-combined", line)["reason"] == "not in the vhost-combined format"


def test_a_line_of_json_is_refused(fact):
    for log_format in formats.FORMATS:
        assert fact(log_format, '{"remote_addr": "203.0.113.7", "request": "GET /", "status": 200}')["reason"]


def test_a_combined_line_is_not_a_common_or_vhost_line(fact):
    assert fact("common", combined())["reason"] == "not in the common format"
    assert fact("vhost-combined", combined())["reason"] == "not in the vhost-combined format"


@pytest.mark.parametrize(
    "at",
    [
        "",
        "32/May/2015:10:05:03 +0000",
        "29/Feb/2015:10:05:03 +0000",
        "17/Mai/2015:10:05:03 +0000",
        "17/May/2015:25:05:03 +0000",
        "17/May/2015:10:05:03",
        "2015-05-17T10:05:03+00:00",
    ],
)
def test_lines_without_a_readable_time_are_refused(fact, at):
    assert fact("combined", combined(at=at))["reason"] == "no valid time"


@pytest.mark.parametrize("status", ["-", "", "000", "99", "1000", "-200", "40000", "abc"])
def test_lines_without_a_readable_status_are_refused(fact, status):
    assert fact("combined", combined(tail=f'{status} 1 "-" "-"'))["reason"] == "no valid status"


@pytest.mark.parametrize("status", [100, 200, 304, 499, 599, 999])
def test_every_status_of_three_digits_is_readable(fact, status):
    assert fact("combined", combined(tail=f'{status} - "-" "-"'))["status"] == status


def test_a_line_may_be_as_long_as_allowed_and_no_longer(fact):
    room = MAX_LINE_BYTES - len(combined(tail='200 1 "-" ""'))
    assert fact("combined", combined(tail=f'200 1 "-" "{"x" * room}"'))["reason"] is None
    refused = fact("combined", combined(tail=f'200 1 "-" "{"x" * (room + 1)}"'))
    assert refused["reason"] == "longer than 65536 bytes"


def test_every_line_is_answered_for_once(facts):
    found = facts("combined", combined(), "garbage", combined(), combined(), GARBAGE)
    assert [(row["number"], row["reason"] is None) for row in found] == [
        (1, True),
        (2, False),
        (3, True),
        (4, True),
        (5, True),
    ]


@pytest.mark.parametrize(
    ("line", "log_format"), [(combined(), "combined"), (VHOST, "vhost-combined"), (COMMON, "common")]
)
def test_the_format_is_seen_from_one_line(detected, line, log_format):
    assert detected(line) == log_format


def test_the_format_is_the_one_of_most_lines(detected):
    assert detected("garbage", VHOST, COMMON, VHOST) == "vhost-combined"
    assert detected("garbage", "garbage", combined(), COMMON, combined()) == "combined"
    assert detected(COMMON, COMMON, combined()) == "common"


def test_a_stray_combined_line_does_not_cost_a_vhost_log_its_domains(detected):
    assert detected(*[VHOST] * 99, combined()) == "vhost-combined"


def test_an_ident_or_user_does_not_make_a_combined_line_a_vhost_line(detected):
    assert detected(combined(head="203.0.113.7 - frank")) == "combined"
    assert detected(combined(head="203.0.113.7 face frank")) == "combined"


def test_garbage_requests_do_not_hide_the_format(detected):
    assert detected(GARBAGE, GARBAGE, GARBAGE) == "combined"


def test_only_the_beginning_of_a_log_decides_its_format(detected):
    assert detected(*[COMMON] * formats.SAMPLE_LINES, *[combined()] * 2 * formats.SAMPLE_LINES) == "common"


@pytest.mark.parametrize("lines", [["garbage"], ["", "\r", "x"], ['{"a": 1}', "plain words"]])
def test_lines_that_no_format_explains_are_refused_naming_what_is_known(detected, lines):
    with pytest.raises(BadInput, match="combined, vhost-combined, common"):
        detected(*lines)
