"""The format nearest to a line, the first difference between them, and the lines that are compared."""

import pytest

from data.logs import explanation
from data.logs.format_names import FORMATS
from data.logs.formats import FormatContext, split_lines
from data.logs.nearest_format import example, nearest_format
from tests.support.user_agents import CHROME

COMBINED = f'203.0.113.7 - - [26/Nov/2026:10:00:00 +0000] "GET /abc HTTP/1.1" 302 154 "-" "{CHROME}"'


@pytest.mark.parametrize("log_format", FORMATS)
def test_the_example_of_a_format_is_recognized(reader, log_format):
    text = example(log_format).encode()
    lines, context = split_lines(text, 1), FormatContext(header=text.partition(b"\n")[0])
    assert reader.detect(lines, context) == log_format
    assert reader.read(lines, log_format, context)["reason"].to_pylist() == [None]


@pytest.mark.parametrize(("line", "log_format", "until", "wanted"), [
    (COMBINED.replace(":00 +0000", " +0000"), "combined", "203.0.113.7 - - [", "04/Mar/2026:10:05:03 +0000"),
    (COMBINED.replace("GET /abc HTTP/1.1", "none"), "combined", '203.0.113.7 - - [26/Nov/2026:10:00:00 +0000] "',
     "GET /abc HTTP/1.1"),
    (f"Nov 26 lb nginx: {COMBINED.replace('302', 'found')}", "combined",
     'Nov 26 lb nginx: 203.0.113.7 - - [26/Nov/2026:10:00:00 +0000] "GET /abc HTTP/1.1" ', "302"),
    (f"go.example.com {COMBINED}", "vhost-combined", f"go.example.com {COMBINED}", ""),
])  # fmt: skip
def test_a_line_differs_where_it_stops_matching(line, log_format, until, wanted):
    assert nearest_format(line) == (log_format, len(until), wanted)


@pytest.mark.parametrize(("line", "log_format", "wanted"), [
    ('{"StartUTC": "x", "ClientHost": "y", "RequestPath": "/"}', "traefik",
     "RequestHost, RequestMethod, DownstreamStatus"),
    ('{"request": {"remote_ip": "203.0.113.7", "uri": "/"}, "status": 1}', "caddy", "ts, request.method, request.host"),
])  # fmt: skip
def test_an_object_differs_by_the_keys_that_it_lacks(line, log_format, wanted):
    assert nearest_format(line) == (log_format, None, wanted)


def test_a_truncated_object_differs_at_its_unterminated_string():
    assert nearest_format('{"time": "2026') == ("ndjson", 9, "JSON (Unterminated string starting at)")


@pytest.mark.parametrize("line", ["", "garbage", "one two three four", '{"a": 1}'])
def test_a_line_unlike_any_format_has_no_nearest_format(line):
    assert nearest_format(line).log_format == ""


def test_only_complete_lines_of_a_long_log_are_explained(tmp_path, monkeypatch):
    monkeypatch.setattr(explanation, "_SAMPLE_BYTES", 2 * len(COMBINED) + 40)
    (tmp_path / "a.log").write_text(f"{COMBINED}\n" * 3)
    found = explanation.explain(tmp_path / "a.log")
    assert (found.lines, found.read, found.unread) == (2, 2, [])
