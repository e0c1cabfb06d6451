"""Lines in every format, and the facts that the readers find in them. test_lines.json has the lines and facts."""

import json
import re
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import BadInput
from data.logs.formats import (
    FIELD_NAMES,
    FORMATS,
    REQUIRED_TEXTS,
    SAMPLE_LINES,
    FormatContext,
    UnknownFormat,
    split_lines,
)
from data.logs.line_layout import parse_layout
from data.logs.request_facts import RequestRecord
from data.logs.source import MAX_LINE_BYTES
from tests.faults.trials import tried
from tests.support.forks import ROOT
from tests.support.tables import examples, examples_at_once, tables

FACTS = tables(__file__)["facts"]
"""The facts of the request in each format's example, except for facts that the format determines."""
FORMAT_LINES = {name: (text, FACTS | facts) for name, (text, facts) in tables(__file__)["formats"].items()}
"""For each format, the text of a log with a request in its last line, and the facts of that request."""
EXAMPLES = tables(__file__)["test_a_line_gives_its_facts_or_a_reason"]
CUSTOM = ("csv", "ndjson")
COMBINED, VHOST, COMMON = (FORMAT_LINES[name][0] for name in ("combined", "vhost-combined", "common"))
CONSOLE = next(text for name, text, _ in EXAMPLES if name == "caddy" and "INFO" in text)
GARBAGE = COMBINED.replace("GET /abc?q=1 HTTP/1.1", r"\x16\x03\x01\x02\x00\x01\xFC")


@pytest.fixture
def read(reader):
    """Return the facts about each request in a string or in bytes, in the form of FACTS."""

    def read(log_format, text, context=None):
        text = text.encode() if isinstance(text, str) else text
        context = context or FormatContext(header=text.partition(b"\n")[0])
        requests = reader.read(split_lines(text, 1), log_format, context).sort_by("number").select(list(FACTS))
        return [
            row | {"visited_at": row["visited_at"] and row["visited_at"].isoformat()} for row in requests.to_pylist()
        ]

    return read


@pytest.fixture
def detected(reader):
    return lambda *lines: reader.detect(split_lines("\n".join(lines).encode(), 1))


def changed(log_format, changes):
    """Return a format's text with some parts replaced, each once; if `changes` is a string, return that string."""
    text = FORMAT_LINES[log_format][0]
    if isinstance(changes, str):
        return changes
    for part, other in changes.items():
        assert part in text
        text = text.replace(part, other, 1)
    return text


def test_every_format_has_an_example_line():
    assert set(FORMAT_LINES) == set(FORMATS)


@pytest.mark.parametrize(("state", "status"), [("CR--", 400), ("cR--", 408)])
def test_haproxy_connections_without_a_request_are_left_out(read, detected, state, status):
    spare = {
        "GET /abc?q=1 HTTP/1.1": "<BADREQ>",
        "web~ links/app1 0/0/1/8/9 302": f"web web/<NOSRV> -1/-1/-1/-1/0 {status}",
    }
    line = changed("haproxy", spare | {"----": state})
    assert read("haproxy", line) == []
    assert (detected(line), detected(line, FORMAT_LINES["haproxy"][0])) == ("haproxy", "haproxy")


def logs_of(log_format):
    """Return a format's example lines with their expected results, grouped by the lines before them."""
    logs = defaultdict(list)
    for name, changes, wanted in (*EXAMPLES, (log_format, {}, {})):
        if name == log_format:
            head, _, line = changed(name, changes).rpartition("\n")
            logs[head].append((line, wanted))
    return logs


@pytest.mark.parametrize("log_format", FORMATS)
def test_a_line_gives_its_facts_or_a_reason(read, log_format):
    for head, log in logs_of(log_format).items():
        found = read(log_format, "\n".join([*head.splitlines(), *(line for line, _ in log)]))[-len(log) :]
        for row, (line, wanted) in zip(found, log, strict=True):
            told = row["reason"] if isinstance(wanted, str) else row
            assert told == (wanted if isinstance(wanted, str) else FORMAT_LINES[log_format][1] | wanted), line


@pytest.mark.parametrize("log_format", ["combined", "vhost-combined", "common"])
def test_a_request_line_is_split_or_empty_but_never_rejected(read, log_format):
    rows = tables(__file__)["test_a_request_line_is_split_or_empty_but_never_rejected"]
    lines = [changed(log_format, {"GET /abc?q=1 HTTP/1.1": request_line}) for request_line, _ in rows]
    for found, (request_line, expected) in zip(read(log_format, "\n".join(lines)), rows, strict=True):
        told = found["reason"], found["method"], found["target"], found["protocol"]
        assert told == (None, *expected), request_line


def test_undecodable_bytes_and_nul_become_replacement_characters(read):
    (found,) = read("combined", COMBINED.encode().replace(b"abc", b"caf\xe9").replace(b"Mozilla", b"Moz\0illa"))
    assert (found["target"], found["user_agent"][:8]) == ("/caf\ufffd?q=1", "Moz\ufffdilla")


def test_every_non_empty_line_gets_one_result(read):
    found = read("combined", "\n".join([COMBINED, "garbage", f"{COMBINED}\r\n\n\r", COMBINED, GARBAGE]))
    assert [row["reason"] is None for row in found] == [True, False, True, True, True]
    assert [found[place] for place in (0, 2, 3)] == [FORMAT_LINES["combined"][1]] * 3


def test_lines_are_numbered_from_the_given_first_number():
    lines = split_lines(b"a\n\nb\r\nc", 41)
    assert lines.to_pydict() == {"number": [41, 43, 44], "line": ["a", "b", "c"]}


def test_a_line_may_have_the_maximum_length_but_no_more(read):
    room = MAX_LINE_BYTES - len(COMBINED)
    lines = [COMBINED.replace("Mozilla", "Mozilla" + "x" * more) for more in (room, room + 1)]
    assert [row["reason"] for row in read("combined", "\n".join(lines))] == [None, "longer than 65536 bytes"]


def test_entries_for_one_vercel_request_count_once(read):
    line, facts = FORMAT_LINES["vercel"]
    printed = line.replace('"proxy"', '"message": "printed", "proxy"')
    found = read("vercel", "\n".join([line, printed, line.replace('"r1"', '"r2"')]))
    assert (found[0], found[2]) == (facts, facts)
    assert found[1]["reason"] == "another entry of the same request"


def test_the_fastly_format_in_the_manual_has_all_fields():
    manual = (ROOT / "data/logs/README.md").read_text("utf-8")
    (recommended,) = re.findall(r'^ *(\{"timestamp".*\})$', manual, re.MULTILINE)
    assert re.findall(r'"(\w+)":', recommended) == list(json.loads(FORMAT_LINES["fastly"][0]))


# nginx's log_format


def by(layout):
    return FormatContext(layout=parse_layout(layout))


@examples("layout", "line", "given")
def test_a_line_is_read_as_its_nginx_log_format_describes(read, layout, line, given):
    (found,) = read("nginx", line, by(layout))
    assert found["reason"] == given if isinstance(given, str) else found == FACTS | given


@examples_at_once("layout", "problem")
def test_an_unreadable_nginx_log_format_is_bad_input(layout, problem):
    with pytest.raises(BadInput) as refused:
        parse_layout(layout)
    assert f"--log-format {problem}" in str(refused.value)


APACHE = r"%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\""
APACHE_LINE = '203.0.113.7 - - [04/Mar/2026:10:05:03 +0000] "GET /abc?q=1 HTTP/1.1" 302 5316 "https://t.co/x" "Mozilla"'
BARE = {"referrer": "", "user_agent": "", "status": 200, "protocol": "", "bytes_sent": None}
OF_APACHE = [
    (APACHE, APACHE_LINE, {"user_agent": "Mozilla"}),
    (f"%v:%p {APACHE}", f"go.example.com:443 {APACHE_LINE}", {"domain": "go.example.com", "user_agent": "Mozilla"}),
    ("%{sec}t %m %U%q", "1772618703 GET /abc?q=1", BARE | {"ip": ""}),
    ("%{usec}t %m %U%q", "1772618703000000 POST /abc", BARE | {"ip": "", "method": "POST", "target": "/abc"}),
    ("%{begin:%FT%T%z}t %a %r", "2026-03-04T11:05:03+0100 203.0.113.7 GET /abc?q=1", BARE),
    ("[%{%d/%b/%Y:%H:%M:%S %z}t] %{c}a %r", "[04/Mar/2026:10:05:03 +0000] 203.0.113.7 GET /abc?q=1", BARE),
    ("%{c}a %a %t %r", "10.0.0.1 203.0.113.7 [04/Mar/2026:10:05:03 +0000] GET /abc?q=1", BARE),
    (
        '%t %h "%{X-Forwarded-For}i" "%r" %D %T',
        '[04/Mar/2026:10:05:03 +0000] 10.0.0.1 "203.0.113.9, 10.0.0.2" "GET /abc?q=1" 413 0',
        BARE | {"ip": "10.0.0.1", "forwarded": "203.0.113.9, 10.0.0.2"},
    ),
    ('%t %h "%r" 100%%', '[04/Mar/2026:10:05:03 +0000] 203.0.113.7 "GET /abc?q=1" 100%', BARE),
    (
        '%t %h "%{User-Agent}i" "%r"',
        r'[04/Mar/2026:10:05:03 +0000] 203.0.113.7 "a \" \"GET /x\" \\" "GET /abc?q=1"',
        BARE | {"user_agent": r"a \" \"GET /x\" \\"},
    ),
    ('%t %h "%!200{User-Agent}i" "%r"', '[04/Mar/2026:10:05:03 +0000] 203.0.113.7 "-" "GET /abc?q=1"', BARE),
    (APACHE, "garbage", "not in the apache format"),
]


@pytest.mark.parametrize(("layout", "line", "given"), OF_APACHE)
def test_a_line_is_read_as_its_apache_log_format_describes(read, layout, line, given):
    (found,) = read("apache", line, by(layout))
    assert (
        found["reason"] == given if isinstance(given, str) else found == FACTS | {"domain": "", "country": ""} | given
    )


@pytest.mark.parametrize(
    ("layout", "problem"),
    [
        ("%h %r", "has no time: add %t, %{%FT%T%z}t or %{sec}t."),
        ("%t %{%H:%M}t", "has no request: add %r or %U."),
        ("%{%c}t %r", "has no time"),
        ("%t %r%>s", "has %r and %>s next to each other"),
    ],
)
def test_an_unreadable_apache_log_format_is_bad_input(layout, problem):
    with pytest.raises(BadInput) as refused:
        parse_layout(layout)
    assert f"--log-format {problem}" in str(refused.value)


# Directives


def test_directives_are_not_read_as_requests(read):
    assert read("w3c", f"#Version: 1.0\n{FORMAT_LINES['w3c'][0].partition(chr(10))[0]}\n#Remark: 203.0.113.9") == []
    for log_format in ("w3c", "cloudfront"):
        text, facts = FORMAT_LINES[log_format]
        directive, line = text.split("\n")
        assert read(log_format, line, FormatContext(fields=directive.encode())) == [facts]


def test_a_fields_directive_may_be_repeated_with_other_fields(read):
    text, facts = FORMAT_LINES["w3c"]
    other = "#Fields: time date sc-status cs-uri-stem c-ip"
    lines = [text, "#Date: now", other, "10:05:04 2026-03-04 404 /x 203.0.113.8", text]
    first, second, third = read("w3c", "\n".join(lines), FormatContext(fields=other.encode()))
    assert first == third == facts
    there = {"ip": "203.0.113.8", "status": 404, "target": "/x", "visited_at": "2026-03-04T10:05:04"}
    nothing = dict.fromkeys(("domain", "protocol", "referrer", "user_agent", "country"), "") | {"bytes_sent": None}
    assert second == facts | nothing | there


# Files with custom columns

CELLS = dict(
    zip(*([cell.strip('"') for cell in line.split(",")] for line in FORMAT_LINES["csv"][0].split("\n")), strict=True)
)
"""The cells of the example line of a custom file, by column."""


def written(log_format, cells):
    """Return a custom file with one line."""
    if log_format == "csv":
        return "\n".join(",".join(f'"{cell}"' for cell in line) for line in (cells, cells.values()))
    return "{" + ", ".join(f'"{name}": "{value}"' for name, value in cells.items()) + "}"


@pytest.mark.parametrize("log_format", CUSTOM)
def test_columns_may_be_in_any_order(read, log_format):
    assert tuple(CELLS) == FIELD_NAMES
    cells = [*CELLS.items()]
    orders = [cells[::-1], *([*cells[:place], ("bytes", "5316"), *cells[place:]] for place in (0, 1, 6, len(cells)))]
    for order in orders:
        assert read(log_format, written(log_format, dict(order)))[-1] == FACTS


@pytest.mark.parametrize("log_format", CUSTOM)
@pytest.mark.parametrize("index", [0, 1, 6, len(FIELD_NAMES)])
def test_an_optional_field_does_not_shift_others(read, monkeypatch, log_format, index):
    names = (*FIELD_NAMES[:index], "bytes", *FIELD_NAMES[index:])
    monkeypatch.setattr("data.logs.columns.FIELD_NAMES", names)
    monkeypatch.setattr("data.logs.formats.FIELD_NAMES", names)
    assert read(log_format, written(log_format, CELLS | {"bytes": "5316"}))[-1] == FACTS


# Format detection


@pytest.mark.parametrize("log_format", FORMATS)
def test_no_format_matches_a_line_in_another_format(read, log_format):
    """All lines are one log. For CSV, each line is a separate log, since any first line may be a header."""
    texts = {name: text for name, (text, _) in FORMAT_LINES.items()}
    others = [text for name, text in texts.items() if name != log_format]
    for log in others if log_format == "csv" else ["\n".join([*others, texts[log_format]])]:
        reasons = [row["reason"] for row in read(log_format, log)]
        assert None not in (reasons if log_format == "csv" else reasons[:-1])


@pytest.mark.parametrize("log_format", REQUIRED_TEXTS)
def test_a_format_rejects_lines_without_its_required_text(read, log_format):
    text = "\n".join(text for text, _ in FORMAT_LINES.values())
    assert None in [row["reason"] for row in read(log_format, text)]
    for other in ("", "("):
        without = text.replace(REQUIRED_TEXTS[log_format], other)
        assert None not in [row["reason"] for row in read(log_format, without)]


def test_formats_are_skipped_if_a_log_lacks_their_required_text(reader, monkeypatch):
    tried, read = [], reader.read

    def noted(lines, log_format, context):
        tried.append(log_format)
        return read(lines, log_format, context)

    monkeypatch.setattr(reader, "read", noted)
    text = FORMAT_LINES["ndjson"][0].encode()
    assert reader.detect(split_lines(text, 1), FormatContext(header=text)) == "ndjson"
    assert {*FORMATS[:3]} & {*tried} == set()


@pytest.mark.parametrize(
    ("lines", "log_format"),
    [
        (["garbage", VHOST, COMMON, VHOST], "vhost-combined"),
        (["garbage", "garbage", COMBINED, COMMON, COMBINED], "combined"),
        ([COMMON, COMMON, COMBINED], "common"),
        ([VHOST] * 99 + [COMBINED], "vhost-combined"),
        ([COMBINED.replace("- -", "- frank")], "combined"),
        ([COMBINED.replace("- -", "face frank")], "combined"),
        ([GARBAGE] * 3, "combined"),
        (["garbage", CONSOLE], "caddy"),
        ([COMMON] * SAMPLE_LINES + [COMBINED] * 2 * SAMPLE_LINES, "common"),
    ],
)
def test_the_format_is_detected_from_the_first_lines(detected, lines, log_format):
    assert detected(*lines) == log_format


@pytest.mark.parametrize("lines", [["garbage"], ["", "\r", "x"], ['{"a": 1}', "plain words"]])
def test_lines_in_no_known_format_are_rejected(detected, lines):
    with pytest.raises(UnknownFormat, match=r"its first \d lines?$"):
        detected(*lines)


# Arbitrary lines

PIECES = ["", '"', "\\", "\\u0000", "\\ud800", "%ff", ",", "\t", "NaN", "null", "#Fields: ", "1e999", "\x01", "é",
          "[" * 5_000]  # fmt: skip
MAY_LACK = dict.fromkeys(("bytes_sent", "forwarded_proto", *RequestRecord._fields), 0)
"""Columns that may be null in a readable line."""
WHOLE = [line for text, _ in FORMAT_LINES.values() for line in text.split("\n")]
SPOILT = st.builds(
    lambda line, at, gone, piece: line[:at] + piece + line[at + gone :],
    st.sampled_from(WHOLE), st.integers(0, 400), st.integers(0, 20), st.sampled_from(PIECES),
)  # fmt: skip


@given(st.lists(SPOILT, min_size=20, max_size=40))
@tried(3)
def test_any_line_gives_at_most_one_result_in_every_format(reader, lines):
    table = split_lines("\n".join(lines).encode(), 2)
    usual, _, _ = tables(__file__)["test_a_line_is_read_as_its_nginx_log_format_describes"][-1]
    directive = FORMAT_LINES["w3c"][0].partition("\n")[0].encode()
    guide = FormatContext(b"time,path", directive, layout=parse_layout(usual))
    for log_format in (*FORMATS, "nginx"):
        requests = reader.read(table, log_format, guide)
        numbers = requests["number"].to_pylist()
        assert len(numbers) == len(set(numbers)) <= len(table)
        readable = [row for row in requests.to_pylist() if row.pop("reason") is None]
        assert [row for row in readable if None in {**row, **MAY_LACK}.values()] == []
