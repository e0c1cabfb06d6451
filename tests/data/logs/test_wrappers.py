"""Lines inside objects from Docker and log collectors, and lines that Docker has split."""

import json
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.ingest.importer import Options
from data.ingest.tail import Tail
from data.logs import source
from data.logs.columns import columns_from
from data.logs.explanation import explain
from data.logs.formats import FormatContext, split_lines
from data.logs.wrappers import whole_lines_end
from tests.data.logs.test_lines import COMBINED, FACTS, FORMAT_LINES, SPOILT
from tests.faults.trials import tried

NAMED_BY_A_LINE = ("w3c", "cloudfront", "csv")
WRAPPED = {name: text for name, (text, _) in FORMAT_LINES.items() if name not in NAMED_BY_A_LINE}
AT = "2026-03-04T10:05:03.123456789Z"
COLLECTORS = {
    "docker": lambda line: {"log": f"{line}\n", "stream": "stdout", "time": AT},
    "docker with labels": lambda line: {"log": f"{line}\n", "stream": "stdout", "attrs": {"tag": "web"}, "time": AT},
    "fluent bit": lambda line: {"date": 1772618703.5, "log": line},
    "fluent bit of docker": lambda line: {"date": 1.5, "log": json.dumps(COLLECTORS["docker"](line))},
    "kubernetes": lambda line: {"time": AT, "stream": "stdout", "_p": "F", "log": line, "kubernetes": {"host": "a"}},
    "vector": lambda line: {"file": "/a.log", "host": "a", "message": line, "source_type": "file", "timestamp": AT},
    "filebeat": lambda line: {"@timestamp": AT, "log": {"offset": 0, "file": {"path": "/a.log"}}, "message": line},
    "ecs": lambda line: {"@timestamp": AT, "message": "GET", "event": {"original": line, "dataset": "nginx.access"}},
    "logcli": lambda line: {"labels": {"job": "web"}, "line": line, "timestamp": AT},
    "datadog": lambda line: {"_id": "A", "date": AT, "service": "web", "message": line, "attributes": {"a": 1}},
    "splunk": lambda line: {"preview": False, "result": {"_raw": line, "_time": AT}},
    "cribl": lambda line: {"_raw": line, "_time": 1772618703.5, "source": "in"},
    "journalctl": lambda line: {"__REALTIME_TIMESTAMP": "1772618703000000", "MESSAGE": line, "PRIORITY": "6"},
    "gke": lambda line: {"insertId": "a", "textPayload": f"{line}\n", "timestamp": AT, "resource": {"type": "k8s"}},
}
PART = 1 << 14


@pytest.fixture
def read(reader):
    """Return the facts about each request in a log, by line number."""

    def read(log_format, text):
        text = text.encode() if isinstance(text, str) else text
        found = reader.read_all(split_lines(text, 1), log_format, FormatContext(header=text.partition(b"\n")[0]))
        rows = found.sort_by("number").select(["number", *FACTS]).to_pylist()
        return {
            row.pop("number"): row | {"visited_at": row["visited_at"] and row["visited_at"].isoformat()} for row in rows
        }

    return read


def in_docker(text, stream="stdout"):
    """Return an entry of Docker's json-file log, formatted as Docker does."""
    return json.dumps({"log": text, "stream": stream, "time": AT}, separators=(",", ":")) + "\n"


def split(line, size=PART, stream="stdout"):
    """Return Docker's entries for a line that it split."""
    whole = f"{line}\n"
    return [in_docker(whole[at : at + size], stream) for at in range(0, len(whole), size)]


def long_line(path, length=40_000):
    return COMBINED.replace("/abc?q=1", f"{path}?{'x' * length}")


@pytest.mark.parametrize("log_format", WRAPPED)
def test_formats_without_header_lines_are_read_in_a_wrapper(reader, read, log_format):
    text = in_docker(WRAPPED[log_format] + "\n")
    assert reader.detect(split_lines(text.encode(), 1)) == log_format
    assert read(log_format, text) == {1: FORMAT_LINES[log_format][1]}


@pytest.mark.parametrize("collector", COLLECTORS)
def test_text_and_json_are_read_in_every_wrapper(reader, read, collector):
    for log_format in ("combined", "nginx-json"):
        text = json.dumps(COLLECTORS[collector](WRAPPED[log_format])) + "\n"
        assert read(log_format, text * 2) == dict.fromkeys((1, 2), FORMAT_LINES[log_format][1])
    assert reader.detect(split_lines(text.encode(), 1)) == "nginx-json"


@pytest.mark.parametrize("prefix", ["2026-03-04T10:05:03.1Z stdout F ", "web-1  | ", "Mar  4 10:05:03 a web[1]: "])
def test_json_after_a_prefix_is_recognized_and_read(reader, read, prefix):
    text = f"{prefix}{WRAPPED['caddy']}\n"
    assert reader.detect(split_lines(text.encode(), 1)) == "caddy"
    assert read("caddy", text) == {1: FORMAT_LINES["caddy"][1]}


@pytest.mark.parametrize("log_format", [name for name, line in WRAPPED.items() if line.startswith("{")])
def test_an_object_in_a_known_format_is_not_unwrapped(reader, read, log_format):
    wrapped = dict.fromkeys(("message", "log", "line"), COMBINED) | {"event": {"original": WRAPPED["caddy"]}}
    text = json.dumps(wrapped | json.loads(WRAPPED[log_format]))
    assert reader.detect(split_lines(text.encode(), 1)) == log_format
    assert read(log_format, text) == {1: FORMAT_LINES[log_format][1]}


def test_an_object_that_wraps_no_line_keeps_its_reason(read):
    printed = json.dumps({"projectId": "prj_a", "message": '{"level": "info"}'})
    assert [row["reason"] for row in read("vercel", printed).values()] == ["not a request (no proxy)"]


def test_a_wrapped_line_may_be_rejected_for_its_own_reason(read):
    other = json.dumps({"level": "info", "logger": "admin", "msg": "started", "ts": 1772618703})
    rows = read("caddy", in_docker(f"{other}\n") + in_docker(WRAPPED["caddy"] + "\n"))
    assert [row["reason"] for row in rows.values()] == ["not an access log entry (another logger)", None]


def test_rejected_lines_keep_their_numbers_in_the_file(logs):
    entries = [in_docker(f"{COMBINED}\n"), in_docker("starting\n", "stderr"), "\n", in_docker(f"{COMBINED}\n"), "{\n"]
    summary = logs.load("".join(entries), Options("acme", "go.example"))
    assert (summary.log_format, summary.lines, summary.visits) == ("combined", 4, 2)
    assert summary.rejects == [(2, "not in the combined format"), (5, "not in the combined format")]


def test_wrapped_lines_without_a_url_or_path_are_rejected(read):
    rows = read("ndjson", in_docker('{"time": "2026-03-04", "event": "bye"}\n') + in_docker("plain\n"))
    assert {row["reason"] for row in rows.values()} == {"no url or path that begins with /"}


def test_columns_may_have_other_names_in_a_wrapper(logs):
    columns = columns_from("time=ts,path=link")
    text = in_docker('{"ts": 1772618703, "link": "/a"}\n')
    assert logs.load(text, Options("acme", "go.example", columns=columns)).log_format == "ndjson --columns"
    assert logs.paths() == {"/a": 1}


def test_wrapped_lines_are_explained_in_the_way_they_are_read(tmp_path):
    (tmp_path / "a.log").write_text("".join([*split(COMBINED, 50), in_docker("starting\n")]), "utf-8")
    explained = explain(tmp_path / "a.log")
    found = explained.log_format, explained.lines, explained.read, [line.number for line in explained.unread]
    assert found == ("combined", 2, 1, [len(split(COMBINED, 50)) + 1])


OWN = json.dumps({"ts": 1772618703, "ip": "203.0.113.7", "uri": "/a", "status": 302, "user_agent": "curl/8.5.0"})


def test_columns_of_wrapped_json_are_guessed(logs):
    summary = logs.load(in_docker(f"{OWN}\n"), Options("acme", "go.example", guesses_columns=True))
    assert (summary.log_format.partition(" ")[0], logs.paths()) == ("ndjson", {"/a": 1})


def test_columns_of_wrapped_json_are_proposed(tmp_path):
    (tmp_path / "a.log").write_text(in_docker(f"{OWN}\n"), "utf-8")
    proposal = explain(tmp_path / "a.log").proposal
    assert (proposal.flag, proposal.read) == ("--columns", 1)


def test_a_grown_wrapped_log_is_continued(logs):
    text = in_docker(f"{COMBINED}\n")
    for count in (1, 2, 2):
        summary = logs.load(text * count, Options("acme", "go.example"))
    assert (summary.already_imported, len(logs.visits())) == (True, 2)


# Lines that Docker has split


@pytest.mark.parametrize("size", [PART, 50])
def test_a_line_split_by_docker_gets_the_number_of_its_last_part(read, size):
    line = long_line("/long") if size == PART else COMBINED
    parts = split(line, size)
    assert len(parts) > 2
    (facts,) = read("combined", line).values()
    assert facts["reason"] is None
    whole = in_docker(f"{COMBINED}\n")
    assert read("combined", "".join([whole, *parts, whole]))[len(parts) + 1] == facts
    assert len(read("combined", "".join([whole, *parts, whole]))) == 3


def test_parts_of_two_streams_may_alternate(read):
    out, err = split(long_line("/out")), split(long_line("/err"), stream="stderr")
    text = "".join(part for pair in zip(out, err, strict=True) for part in pair)
    assert [row["target"][:4] for row in read("combined", text).values()] == ["/out", "/err"]


def test_strings_without_any_newline_are_separate_lines(read):
    assert [row["reason"] for row in read("combined", in_docker(COMBINED) * 3).values()] == [None] * 3


def test_a_joined_line_that_is_too_long_is_rejected(read):
    rows = read("combined", "".join([*split(long_line("/a", 70_000)), in_docker(f"{COMBINED}\n")]))
    assert [row["reason"] for row in rows.values()] == ["longer than 65536 bytes", None]


@pytest.mark.parametrize(
    ("entries", "whole"),
    [
        ([], 0),
        (["a\n", "b\n"], 2),
        (["a\n", "b"], 1),
        ([in_docker("a\n"), in_docker("b" * PART)], 1),
        ([in_docker("b" * PART), in_docker("b" * PART)], 0),
        ([in_docker("a\n"), in_docker("b" * PART), in_docker("b" * PART), "{"], 1),
        ([in_docker("b" * PART), in_docker("b\n")], 2),
        ([in_docker("b" * PART), in_docker("b" * PART + "\n")], 2),
        ([in_docker("a\n"), in_docker("b" * PART + "\\n")], 1),
        ([in_docker("a\n"), in_docker('b","stream' * PART)], 2),
        ([in_docker("a")], 1),
        (['{"log":"' + "a" * PART + '"}\n'], 1),
        ([in_docker("b" * PART)] * 9, 9),
    ],
)
def test_a_log_is_split_between_complete_lines(entries, whole):
    assert whole_lines_end("".join(entries).encode()) == len("".join(entries[:whole]))


@pytest.mark.parametrize("size", [20_000, 60_000])
def test_a_docker_log_is_read_the_same_in_blocks_and_in_steps(logs, monkeypatch, size):
    lines = [
        line
        for number in range(4)
        for line in (COMBINED.replace("/abc", f"/short{number}"), long_line(f"/long{number}"))
    ]
    entries = [entry for line in lines for entry in split(line)]
    monkeypatch.setattr(source, "CHUNK_BYTES", size)
    monkeypatch.setattr(source, "BLOCK_BYTES", size)
    for end in accumulate(map(len, entries)):
        summary = logs.load("".join(entries)[:end], Options("acme", "go.example"))
    assert summary.continued
    assert sorted(visit["path"] for visit in logs.visits()) == sorted(
        f"/{kind}{n}" for kind in ("short", "long") for n in range(4)
    )


def test_a_split_line_in_a_followed_log_is_read_when_complete(tmp_path):
    first, *rest = split(long_line("/a", 20_000))
    path = tmp_path / "container-json.log"
    path.write_text(in_docker("whole\n") + first, "utf-8")
    log = Tail(path)
    found = [log.read(log.size, is_over=False)]
    log.accept(*found[0], None)
    assert log.read(log.size, is_over=False) is None
    path.write_text(path.read_text("utf-8") + "".join(rest), "utf-8")
    found.append(log.read(log.size, is_over=False))
    log.close()
    assert [block.text.decode() for block, _ in found] == [in_docker("whole\n"), "".join([first, *rest])]


# Arbitrary lines

OBJECTS = st.builds(lambda write, line: json.dumps(write(line)), st.sampled_from([*COLLECTORS.values()]), SPOILT)
CUT = st.builds(lambda text, at, end: text[:at] + text[end:], OBJECTS, st.integers(0, 400), st.integers(0, 400))
TYPES = st.sampled_from(["[]", "{}", "1", "null", "true", '""', '"\\u0000"', '"\\ud800"', '"\\n"', "[" * 5_000])
ODD = st.builds(
    lambda key, value: f'{{"stream": "stdout", "{key}": {value}}}', st.sampled_from(["log", "message"]), TYPES
)


@given(st.lists(st.one_of(OBJECTS, CUT, ODD), min_size=20, max_size=40))
@tried(3)
def test_a_wrapped_line_gives_at_most_one_result(reader, lines):
    table = split_lines("\n".join(lines).encode(), 2)
    for log_format in ("combined", "haproxy", "caddy", "vercel", "ndjson"):
        numbers = reader.read_all(table, log_format, FormatContext(b"time,path"))["number"].to_pylist()
        assert len(numbers) == len(set(numbers))
        assert set(numbers) <= set(table["number"].to_pylist())
