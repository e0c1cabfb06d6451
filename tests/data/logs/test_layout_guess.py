"""The --log-format proposed for plain lines reads them as the server meant them."""

import re

import pytest

from data.logs.formats import FormatContext, split_lines
from data.logs.layout_guess import proposed_layouts
from data.logs.line_layout import parse_layout
from tests.support.user_agents import CHROME

REQUESTS = [
    {
        "time_local": f"26/Nov/2026:10:00:0{number} +0100", "time_iso8601": f"2026-11-26T10:00:0{number}+01:00",
        "msec": f"179568000{number}.123", "remote_addr": f"203.0.113.{number}", "remote_user": user, "status": status,
        "request": f"{method} {target} HTTP/1.1", "request_method": method, "request_uri": target,
        "server_protocol": "HTTP/1.1", "body_bytes_sent": sent, "http_referer": referrer, "http_user_agent": agent,
        "host": f"{number % 2}.go.example.com", "server_port": "443", "remote_port": f"5123{number}",
        "request_time": f"0.00{number}", "upstream_addr": "10.0.0.9:8080", "request_id": f"7f{number}e0a",
        "http_x_forwarded_for": forwarded, "gzip_ratio": "-", "ssl_protocol": "TLSv1.3", "request_length": "612",
    }
    for number, (method, target, status, sent, referrer, agent, user, forwarded) in enumerate([
        ("GET", "/abc?q=1", "302", "154", "-", CHROME, "-", "-"),
        ("GET", "/", "200", "5316", "https://t.co/x?y=a b", CHROME, "-", "198.51.100.7"),
        ("POST", "/form", "404", "0", "-", "curl/8.5.0", "frank", "198.51.100.7, 10.0.0.1"),
        ("HEAD", "/a.b-c_d", "499", "17", "https://x.example/", "Mozilla/5.0 (compatible; GPTBot/1.2)", "-", "-"),
        ("GET", "/last", "301", "200", "http://y.example", CHROME, "-", "2001:db8::7"),
    ])
]  # fmt: skip
LAYOUTS = {
    "combined": '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
    '"$http_user_agent"',
    "host first": '$host:$server_port $remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
    '"$http_referer" "$http_user_agent"',
    "time first": '[$time_local] $status "$request" $remote_addr "$http_user_agent" $host "$http_referer"',
    "iso": '$time_iso8601 $remote_addr $request_method "$request_uri" $status "$http_user_agent"',
    "seconds": '$msec $remote_addr "$request" $status $body_bytes_sent $request_time "$http_user_agent"',
    "main": '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
    '"$http_user_agent" "$http_x_forwarded_for"',
    "pipes": "$time_iso8601|$remote_addr|$host|$request|$status|$body_bytes_sent|$http_referer|$http_user_agent",
    "pipes and spaces": '$remote_addr | $time_local | "$request" | $status | $http_user_agent',
    "tabs": r"$time_iso8601\t$remote_addr\t$request_method\t$request_uri\t$status\t$http_referer\t$http_user_agent",
    "names": 'time="$time_local" ip=$remote_addr method=$request_method uri="$request_uri" status=$status '
    'bytes=$body_bytes_sent ua="$http_user_agent" ref="$http_referer" host=$host',
    "ports": '$remote_addr:$remote_port [$time_local] $host "$request" $status "$http_user_agent"',
    "times behind": '$remote_addr - - [$time_local] $host "$request" $status $body_bytes_sent "$http_referer" '
    '"$http_user_agent" $request_time $upstream_addr $request_id',
    "bare": "$remote_addr $time_iso8601 $request_method $request_uri $server_protocol $status $http_user_agent",
    "odd": '{$request_id} <$ssl_protocol> $request_length, $remote_addr; [$time_local]; "$request"; $status; '
    '"$http_user_agent"',
}  # fmt: skip
"""Layouts of servers, by what is peculiar about them."""
COMPARED = (
    "ip",
    "visited_at",
    "method",
    "target",
    "protocol",
    "status",
    "referrer",
    "user_agent",
    "domain",
    "forwarded",
)


@pytest.fixture
def read(reader):
    """Return the requests in lines, read with a layout or in a format."""

    def read(lines, layout="", log_format="nginx"):
        context = FormatContext(layout=parse_layout(layout) if layout else None)
        requests = reader.read(split_lines("\n".join(lines).encode(), 1), log_format, context).sort_by("number")
        assert requests["reason"].null_count == len(lines)
        rows = requests.select(COMPARED).to_pylist()
        return [row | {"domain": row["domain"].removesuffix(":443")} for row in rows]

    return read


def written(layout, requests=REQUESTS):
    """Return the lines that a server with this layout writes."""
    text = re.sub(r"\$(\w+)", r"{\1}", layout.replace("{", "{{").replace("}", "}}").replace(r"\t", "\t"))
    return [text.format(**one) for one in requests]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_proposed_layout_reads_the_same_visits(read, layout):
    lines = written(layout)
    proposed, *_ = proposed_layouts(lines)
    assert read(lines, proposed) == read(lines, layout)


@pytest.mark.parametrize("name", ["combined", "host first", "main"])
def test_a_proposed_layout_reads_lines_as_a_known_format_does(read, name):
    lines = written(LAYOUTS[name])
    proposed, *_ = proposed_layouts(lines)
    assert read(lines, proposed) == read(lines, log_format="vhost-combined" if name == "host first" else "combined")


def test_layouts_are_proposed_for_the_most_frequent_lines_first():
    names = ["combined", "host first", "host first"]
    lines = [line for name in names for line in written(LAYOUTS[name], REQUESTS[:2])]
    first, second = proposed_layouts(lines)
    assert (first.split()[:2], second.split()[:1]) == (["$host", "$remote_addr"], ["$remote_addr"])


@pytest.mark.parametrize(
    "line", ["", "garbage", "a b c", '"GET / HTTP/1.1"', "[26/Nov/2026:10:00:00 +0000] 203.0.113.7"]
)
def test_lines_without_a_time_or_a_request_get_no_layout(line):
    assert proposed_layouts([line] * 3) == []


def test_a_destination_address_is_not_mistaken_for_the_client(read):
    lines = written('[$time_local] "$request" $status [Client $remote_addr] [Sent-to 198.51.100.1]')
    proposed, *_ = proposed_layouts(lines)
    assert {row["forwarded"] for row in read(lines, proposed)} == {""}


def test_a_number_is_not_mistaken_for_the_status(read):
    lines = written('[$time_local] $status "$request" $remote_addr $request_length')
    proposed, *_ = proposed_layouts(lines)
    assert [row["status"] for row in read(lines, proposed)] == [302, 200, 404, 499, 301]
