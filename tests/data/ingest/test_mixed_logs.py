"""In logs with several formats, every line is read in its own format, however the log is split into blocks."""

from collections import Counter
from dataclasses import replace

import pytest

from data.ingest.importer import Options
from data.logs.format_names import FORMATS, WHOLE_FILE_FORMATS
from data.logs.formats import FormatContext, split_lines
from data.logs.nearest_format import example
from tests.support.user_agents import CHROME

AUTO = Options("acme", "dom.example")
SELF_CONTAINED = [name for name in FORMATS if name not in WHOLE_FILE_FORMATS]
"""The formats that can be recognized by a single line."""


def combined(number):
    return (
        f'203.0.113.{number} - - [04/Mar/2026:10:05:0{number} +0000] "GET /c{number} HTTP/1.1" 302 5 "-" "{CHROME}"\n'
    )


def of_a_host(number):
    return f"go.example.com:443 {combined(number)}".replace("/c", "/v")


MIXED = "".join([*map(combined, range(5)), *map(of_a_host, range(5))])
TANGLED = "".join([
    combined(0), of_a_host(1), "garbage\n", example("caddy"), "\n", combined(2), example("common"), "\n", of_a_host(3),
    example("nginx-json"), "\n", '{"a": 1}\n', combined(4),
])  # fmt: skip
FACTS = ("visited_at", "domain", "path", "status", "referrer", "user_agent", "bot_category", "signals", "bytes_sent")


def facts(logs, organization="acme"):
    return Counter(tuple(visit.get(name) for name in FACTS) for visit in logs.visits(organization))


def test_both_formats_in_a_log_are_read(logs):
    summary = logs.load(MIXED, AUTO)
    assert (summary.visits, summary.rejected, summary.log_format) == (10, 0, "combined")
    assert summary.others == {"vhost-combined": 5}
    domains = Counter(visit["domain"] for visit in logs.visits())
    assert domains == {"dom.example": 5, "go.example.com": 5}


@pytest.mark.parametrize("name", FORMATS)
def test_a_line_in_another_recognizable_format_is_read(logs, name):
    *_, other = example(name).split("\n")
    first, last = (of_a_host(1), of_a_host(2)) if name == "combined" else (combined(1), combined(2))
    summary = logs.load(f"{first}{other}\n{last}", AUTO)
    assert (summary.visits, summary.rejected) == ((3, 0) if name in SELF_CONTAINED else (2, 1))


def test_mixed_lines_land_as_in_separate_logs(logs):
    logs.load(TANGLED, AUTO)
    alone = Counter()
    for name in ("combined", "vhost-combined", "caddy", "nginx-json"):
        logs.load(TANGLED, replace(AUTO, organization=name, log_format=name))
        alone += facts(logs, name)
    assert facts(logs) == alone


def test_the_reason_for_a_rejected_line_names_the_logs_format(logs):
    summary = logs.load(TANGLED, AUTO)
    assert summary.rejects == [(number, "not in the combined format") for number in (3, 6, 9)]


@pytest.mark.parametrize("step", [1, 7, 50, 211])
def test_a_growing_mixed_log_lands_like_a_whole_one(logs, step):
    logs.load(TANGLED, replace(AUTO, organization="whole"))
    for end in range(len(combined(0)), len(TANGLED), step * 29):
        logs.load(TANGLED[:end], AUTO)
    logs.load(TANGLED, AUTO)
    assert facts(logs) == facts(logs, "whole")


@pytest.mark.parametrize("name", ["combined", "vhost-combined"])
def test_a_log_with_a_given_format_is_read_only_in_that_format(logs, name):
    summary = logs.load(MIXED, replace(AUTO, log_format=name))
    assert (summary.visits, summary.rejected, summary.others) == (5, 5, {})


@pytest.mark.parametrize("name", FORMATS)
def test_an_unfinished_line_matches_no_other_format(reader, name):
    """Otherwise, a line could be read twice, unfinished and complete, or in two formats."""
    *_, whole = example(name).split("\n")
    begun = "\n".join(whole[:end] for end in range(1, len(whole)))
    read = {other: reader.read(split_lines(begun.encode(), 1), other, FormatContext())["reason"].null_count
            for other in SELF_CONTAINED if other != name}  # fmt: skip
    assert {other: count for other, count in read.items() if count} == {}
