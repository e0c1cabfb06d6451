"""Lines whose fields have names: what the readers of other servers' formats make of them."""

import json
from datetime import datetime

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import BadInput
from data.logs.formats import (
    FIELD_NAMES,
    FORMATS,
    REQUIRED_CHARACTERS,
    FormatContext,
    LineReader,
    parse_nginx_log_format,
    split_lines,
)
from tests.faults.trials import scaled

AT = datetime(2026, 3, 4, 10, 5, 3)
FIELDS = (
    "reason", "domain", "ip", "visited_at", "method", "target", "protocol", "status", "referrer", "user_agent",
    "country",
)  # fmt: skip
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
READ = {
    "reason": None,
    "domain": "go.example.com",
    "ip": "203.0.113.7",
    "visited_at": AT,
    "method": "GET",
    "target": "/abc?q=1",
    "protocol": "HTTP/1.1",
    "status": 302,
    "referrer": "https://t.co/x",
    "user_agent": CHROME,
    "country": "DE",
}


@pytest.fixture(scope="module")
def reader():
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        yield LineReader(engine)


@pytest.fixture
def facts(reader):
    """Reads lines in one format; one dict a line, its reason included."""

    def read(log_format, *lines, guide=None):
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
        requests = reader.read(split_lines(text, 1), log_format, guide or FormatContext())
        return requests.sort_by("number").select(FIELDS).to_pylist()

    return read


@pytest.fixture
def fact(facts):
    def read(log_format, line, guide=None):
        (found,) = facts(log_format, line, guide=guide)
        return found

    return read


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


# nginx

NGINX = {
    "time_iso8601": "2026-03-04T11:05:03+01:00",
    "remote_addr": "203.0.113.7",
    "request": "GET /abc?q=1 HTTP/1.1",
    "status": "302",
    "http_referer": "https://t.co/x",
    "http_user_agent": CHROME,
    "host": "go.example.com",
    "http_cf_ipcountry": "DE",
}


@pytest.mark.parametrize(
    ("gone", "other"),
    [
        ([], {}),
        (["time_iso8601"], {"time_local": "04/Mar/2026:05:05:03 -0500"}),
        (["time_iso8601"], {"msec": "1772618703.000"}),
        (["time_iso8601"], {"msec": 1772618703.0}),
        (["request"], {"request_uri": "/abc?q=1", "server_protocol": "HTTP/1.1"}),
        (
            ["request"],
            {"request_method": "GET", "request_uri": "/abc?q=1", "uri": "/x.html", "server_protocol": "HTTP/1.1"},
        ),
        (["request"], {"request_method": "GET", "uri": "/abc", "args": "q=1", "server_protocol": "HTTP/1.1"}),
        (["host"], {"http_host": "go.example.com"}),
        (["host"], {"http_host": "-", "server_name": "go.example.com"}),
        (["remote_addr"], {"http_x_forwarded_for": "203.0.113.7, 10.0.0.1"}),
        ([], {"http_x_forwarded_for": "198.51.100.1"}),
        (["http_cf_ipcountry"], {"geoip_country_code": "DE"}),
        (["http_cf_ipcountry"], {"geoip2_data_country_code": "de"}),
        ([], {"status": 302, "nested": {"a": [1]}}),
    ],
)
def test_variables_of_nginx_stand_for_one_another(fact, gone, other):
    assert fact("nginx-json", without(NGINX, *gone) | other) == READ


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"http_referer": "-", "http_user_agent": "-"}, {"referrer": "", "user_agent": ""}),
        ({"http_referer": "", "http_user_agent": ""}, {"referrer": "", "user_agent": ""}),
        ({"host": "_", "server_name": "_"}, {"domain": "_"}),
        ({"host": "", "server_name": "_"}, {"domain": ""}),
        ({"http_cf_ipcountry": "XX"}, {"country": ""}),
        ({"http_cf_ipcountry": "T1"}, {"country": ""}),
        ({"request": ""}, {"method": "", "target": "", "protocol": ""}),
        ({"http_user_agent": 'say "hi"'}, {"user_agent": 'say "hi"'}),
    ],
)
def test_what_nginx_does_not_know_is_empty(fact, other, told):
    assert fact("nginx-json", NGINX | other) == READ | told


def test_a_json_line_of_nginx_without_status_was_served(fact):
    assert fact("nginx-json", without(NGINX, "status")) == READ | {"status": 200}


def test_json_that_nginx_was_not_told_to_escape_is_read_with_the_escapes_of_its_log(fact):
    line = json.dumps(NGINX).replace("Chrome/131", r"\x22Chrome\x22 \xD0\xAF")
    assert fact("nginx-json", line)["user_agent"] == CHROME.replace("Chrome/131", r"\x22Chrome\x22 \xD0\xAF")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not in the nginx-json format"),
        ("[1]", "not in the nginx-json format"),
        (without(NGINX, "time_iso8601"), "not in the nginx-json format"),
        (without(NGINX, "request"), "not in the nginx-json format"),
        (NGINX | {"time_iso8601": "today"}, "no valid time"),
        (NGINX | {"status": "000"}, "no valid status"),
    ],
)
def test_lines_that_are_not_of_nginx_are_refused(fact, line, reason):
    assert fact("nginx-json", line)["reason"] == reason


# A notation of nginx

USUAL = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)
COMBINED = f'203.0.113.7 - frank [04/Mar/2026:10:05:03 +0000] "GET /abc?q=1 HTTP/1.1" 302 5 "https://t.co/x" "{CHROME}"'


def by(nginx_log_format):
    return FormatContext(nginx_log_format=parse_nginx_log_format(nginx_log_format))


def test_an_nginx_log_format_reads_what_it_says(fact):
    line = f'{COMBINED} "go.example.com" DE 0.004'
    nginx_log_format = USUAL + ' "$host" $http_cf_ipcountry $request_time'
    assert fact("nginx", line, by(nginx_log_format)) == READ


@pytest.mark.parametrize(
    ("nginx_log_format", "line", "told"),
    [
        ("$msec $request_uri", "1772618703.000 /abc?q=1", {}),
        ("$time_iso8601|$request", "2026-03-04T10:05:03+00:00|GET /abc?q=1 HTTP/1.1", {}),
        ("${time_iso8601}: ${request_method} ${uri}?$args", "2026-03-04T11:05:03+01:00: GET /abc?q=1", {}),
        ("$msec $uri $request_method", "1772618703 /abc POST", {"method": "POST", "target": "/abc"}),
        ("$msec $status $request", "1772618703 404 GET /abc?q=1 HTTP/1.1", {"status": 404}),
        (r"time:$msec\tuser:$remote_user\treq:$request", "time:1772618703\tuser:a\treq:GET /abc?q=1", {}),
        ("[$msec] (a|b)* $request_uri$", "[1772618703] (a|b)* /abc?q=1$", {}),
        ('$msec $http_x_forwarded_for "$request"', '1772618703 10.9.8.7, 10.0.0.1 "GET /abc?q=1"', {"ip": "10.9.8.7"}),
        ("$msec $http_x_forwarded_for $remote_addr $request_uri", "1772618703 10.9.8.7 - /abc?q=1", {"ip": "-"}),
        ("$msec $request_uri $msec", "1772618703 /abc?q=1 1772618704", {}),
        ("$msec $server_name $http_host $request_uri", "1772618703 _ a.example /abc?q=1", {"domain": "a.example"}),
        ("$bytes_sent $upstream_addr $msec $request_uri", "5 10.0.0.1:80, 10.0.0.2:80 1772618703 /abc?q=1", {}),
    ],
)  # fmt: skip
def test_an_nginx_log_format_may_say_no_more_than_time_and_request(fact, nginx_log_format, line, told):
    found = fact("nginx", line, by(nginx_log_format))
    rest = dict.fromkeys(("domain", "ip", "referrer", "user_agent", "country"), "")
    protocol = {"protocol": "HTTP/1.1" if "HTTP/1.1" in line else ""}
    assert found == READ | rest | {"status": 200} | protocol | told


@pytest.mark.parametrize("user", ["frank", "Frank van Dijk", "frank [admin]", 'a "b"', "a - b", ""])
def test_a_user_may_have_any_name_in_an_nginx_log_format(fact, user):
    found = fact("nginx", COMBINED.replace("frank", user), by(USUAL))
    assert found == READ | {"domain": "", "country": ""}


def test_lines_of_another_nginx_log_format_are_refused(facts):
    lines = ["garbage", COMBINED[:-1], COMBINED + " more", COMBINED.replace("Mar", "März")]
    assert {found["reason"] for found in facts("nginx", *lines, guide=by(USUAL))} == {"not in the nginx format"}
    assert fact_of(facts, COMBINED.replace("04/Mar", "32/Mar")) == "no valid time"
    assert fact_of(facts, COMBINED.replace(" 302 ", " - ")) == "no valid status"


def fact_of(facts, line):
    (found,) = facts("nginx", line, guide=by(USUAL))
    return found["reason"]


@pytest.mark.parametrize(
    ("nginx_log_format", "told"),
    [
        ("$remote_addr $request", r"has no time: add \$time_local, \$time_iso8601 or \$msec\."),
        ("$time_local $status", r"has no request: add \$request, \$request_uri or \$uri\."),
        ("", "has no time"),
        ("$msec $request$status", r"\$request and \$status next to each other, .* add the text between them"),
        ("$msec $foo${bar} $uri", r"\$foo and \$bar next to each other"),
    ],
)
def test_an_nginx_log_format_that_cannot_be_read_by_is_bad_input(nginx_log_format, told):
    with pytest.raises(BadInput, match=f"--log-format .*{told}"):
        parse_nginx_log_format(nginx_log_format)


# Caddy

CADDY = {
    "ts": 1772618703,
    "logger": "http.log.access.log0",
    "status": 302,
    "request": {
        "remote_ip": "10.0.0.1",
        "client_ip": "203.0.113.7",
        "method": "GET",
        "proto": "HTTP/1.1",
        "host": "go.example.com",
        "uri": "/abc?q=1",
        "headers": {
            "User-Agent": [CHROME],
            "Referer": ["https://t.co/x"],
            "Cf-Ipcountry": ["DE"],
            "Accept": ["a", "b"],
        },
    },
}


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"ts": "2026-03-04T11:05:03+01:00"},
        {"ts": "2026/03/04 10:05:03".replace("/", "-")},
        {"logger": "http.log.access"},
        {"logger": None},
        {"request": without(CADDY["request"], "client_ip") | {"remote_ip": "203.0.113.7"}},
        {"request": CADDY["request"] | {"client_ip": "", "remote_ip": "203.0.113.7"}},
    ],
)
def test_a_line_of_caddy_gives_all_its_facts(fact, other):
    assert fact("caddy", CADDY | other) == READ


def test_a_line_of_caddy_may_lack_headers(fact):
    bare = {"referrer": "", "user_agent": "", "country": ""}
    assert fact("caddy", CADDY | {"request": without(CADDY["request"], "headers")}) == READ | bare
    assert fact("caddy", CADDY | {"request": CADDY["request"] | {"headers": {"User-Agent": CHROME}}}) == READ | bare


def test_a_user_agent_is_kept_as_a_server_that_escapes_would_log_it(fact):
    line = CADDY | {"request": CADDY["request"] | {"headers": {"User-Agent": ['a\\x41 "b"']}}}
    assert fact("caddy", line)["user_agent"] == 'a\\\\x41 "b"'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("caddy", "not in the caddy format"),
        (CADDY | {"logger": "http.log.error"}, "not an access log entry (another logger)"),
        ({"ts": 1, "logger": "tls.obtain", "msg": "certificate"}, "not an access log entry (another logger)"),
        (without(CADDY, "status"), "not in the caddy format"),
        (CADDY | {"request": "GET /"}, "not in the caddy format"),
        (CADDY | {"ts": "04 Mar"}, "no valid time"),
        (CADDY | {"status": 0}, "no valid status"),
    ],
)
def test_lines_that_caddy_writes_beside_its_access_log_are_refused(fact, line, reason):
    assert fact("caddy", line)["reason"] == reason


# Cloudflare

CLOUDFLARE = {
    "EdgeStartTimestamp": 1772618703000000000,
    "ClientIP": "203.0.113.7",
    "ClientRequestMethod": "GET",
    "ClientRequestProtocol": "HTTP/1.1",
    "ClientRequestHost": "go.example.com",
    "ClientRequestURI": "/abc?q=1",
    "ClientRequestUserAgent": CHROME,
    "ClientRequestReferer": "https://t.co/x",
    "EdgeResponseStatus": 302,
    "ClientCountry": "de",
}


@pytest.mark.parametrize("at", [1772618703000000000, 1772618703, "2026-03-04T10:05:03Z"])
def test_a_line_of_cloudflare_has_its_time_in_three_ways(fact, at):
    assert fact("cloudflare", CLOUDFLARE | {"EdgeStartTimestamp": at}) == READ


def test_a_line_of_cloudflare_may_have_the_path_alone(fact):
    line = without(CLOUDFLARE, "ClientRequestURI", "ClientCountry") | {"ClientRequestPath": "/abc"}
    assert fact("cloudflare", line) == READ | {"target": "/abc", "country": ""}


@pytest.mark.parametrize("country", ["xx", "T1", "", None])
def test_a_country_that_cloudflare_does_not_know_is_none(fact, country):
    assert fact("cloudflare", CLOUDFLARE | {"ClientCountry": country}) == READ | {"country": ""}


@pytest.mark.parametrize("name", ["EdgeStartTimestamp", "ClientRequestURI"])
def test_a_line_of_cloudflare_without_time_or_target_is_refused(fact, name):
    assert fact("cloudflare", without(CLOUDFLARE, name))["reason"] == "not in the cloudflare format"


# AWS load balancer

ALB = (
    "https 2026-03-04T10:05:03.000000Z app/lb/50dc 203.0.113.7:2817 10.0.0.1:80 0.086 0.048 0.037 302 200 0 57 "
    f'"GET https://go.example.com:443/abc?q=1 HTTP/1.1" "{CHROME}" ECDHE TLSv1.2 arn:x "Root=1" "a.example" "-"'
)
ALB_READ = READ | {"target": "https://go.example.com:443/abc?q=1", "referrer": "", "country": ""}


def test_a_line_of_a_load_balancer_gives_all_its_facts(fact):
    assert fact("alb", ALB) == ALB_READ
    assert fact("alb", ALB.replace("203.0.113.7:2817", "[2001:db8::1]:2817"))["ip"] == "2001:db8::1"
    assert fact("alb", ALB.replace("203.0.113.7:2817", "2001:db8::1:2817"))["ip"] == "2001:db8::1"
    assert fact("alb", ALB.replace(f'"{CHROME}"', r'"say \"hi\""'))["user_agent"] == r"say \"hi\""


def test_a_malformed_request_to_a_load_balancer_is_a_request(fact):
    found = fact("alb", ALB.replace("GET https://go.example.com:443/abc?q=1 HTTP/1.1", "- http://a.example:80- -"))
    assert (found["reason"], found["method"], found["target"], found["domain"]) == (None, "", "", "a.example")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (ALB[: ALB.index("Chrome")], "not in the alb format"),
        (ALB.replace("app/", "net/"), "not in the alb format"),
        (ALB.replace(" 0.048", ""), "not in the alb format"),
        (ALB.replace("2026-03-04T", "04/Mar/2026:"), "no valid time"),
        (ALB.replace(" 302 ", " - "), "no valid status"),
    ],
)
def test_lines_that_are_not_of_a_load_balancer_are_refused(fact, line, reason):
    assert fact("alb", line)["reason"] == reason


# W3C extended, IIS and CloudFront

IIS = (
    "#Fields: date time cs-method cs-uri-stem cs-uri-query c-ip cs(User-Agent) cs(Referer) cs-host cs-version sc-status"
)
IIS_LINE = (
    "2026-03-04 10:05:03 GET /abc q=1 203.0.113.7 "
    + CHROME.replace(" ", "+")
    + " https://t.co/x go.example.com HTTP/1.1 302"
)
IIS_READ = READ | {"country": ""}
AMAZON = IIS.replace("cs-host cs-version", "cs(Host) x-host-header c-country cs-protocol-version")
AMAZON_LINE = "\t".join(
    ["2026-03-04", "10:05:03", "GET", "/abc", "q=1", "203.0.113.7", CHROME.replace(" ", "%20"), "https://t.co/x",
     "d1.cloudfront.net", "go.example.com", "DE", "HTTP/1.1", "302"]
)  # fmt: skip


def test_fields_are_found_by_the_names_of_the_directive(facts):
    assert facts("w3c", IIS, IIS_LINE) == [IIS_READ]
    assert facts("cloudfront", AMAZON, AMAZON_LINE) == [READ]


def test_the_directive_may_stand_before_the_lines(fact):
    assert fact("w3c", IIS_LINE, FormatContext(fields=IIS.encode())) == IIS_READ
    assert fact("cloudfront", AMAZON_LINE, FormatContext(fields=AMAZON.encode())) == READ


def test_the_directive_may_come_again_with_other_fields(facts):
    other = "#Fields: time date sc-status cs-uri-stem c-ip"
    lines = [IIS, IIS_LINE, "#Date: now", other, "10:05:04 2026-03-04 404 /x 203.0.113.8", IIS, IIS_LINE]
    first, second, third = facts("w3c", *lines, guide=FormatContext(fields=other.encode()))
    assert first == third == IIS_READ
    assert (second["ip"], second["status"]) == ("203.0.113.8", 404)
    assert (second["method"], second["target"], second["protocol"]) == ("GET", "/x", "")
    assert second["visited_at"] == datetime(2026, 3, 4, 10, 5, 4)


def test_directives_are_no_lines(facts):
    assert facts("w3c", "#Version: 1.0", IIS, "#Remark: 203.0.113.9") == []


@pytest.mark.parametrize(
    ("before", "line", "reason"),
    [
        ("#Version: 1.0", IIS_LINE, "no #Fields line before this line"),
        (IIS, IIS_LINE + " more", "number of fields differs from the #Fields line"),
        (IIS, IIS_LINE[:60], "number of fields differs from the #Fields line"),
        ("#Fields: date time c-ip", "2026-03-04 10:05:03 203.0.113.7", "not in the w3c format"),
        (IIS, IIS_LINE.replace("2026-03-04", "-"), "no valid time"),
        (IIS.replace("date ", ""), IIS_LINE.replace("2026-03-04 ", ""), "no valid time"),
        (IIS, IIS_LINE.replace(" 302", " -"), "no valid status"),
    ],
)
def test_lines_that_do_not_fit_their_directive_are_refused(facts, before, line, reason):
    (found,) = facts("w3c", before, line)
    assert found["reason"] == reason


@pytest.mark.parametrize(
    ("logged", "user_agent"),
    [
        ("-", ""),
        ("Mozilla/5.0+(compatible;+GPTBot/1.2;++https://openai.com/gptbot)",
         "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"),
        ("curl/8.5.0", "curl/8.5.0"),
    ],
)  # fmt: skip
def test_a_plus_in_a_user_agent_of_iis_is_a_space(facts, logged, user_agent):
    (found,) = facts("w3c", IIS, IIS_LINE.replace(CHROME.replace(" ", "+"), logged))
    assert found["user_agent"] == user_agent


@pytest.mark.parametrize(
    ("logged", "user_agent"),
    [("-", ""), ("a%20b%22c%C3%A9", 'a b"cé'), ("100%", "100%"), ("a%FF", "a%FF"), ("a%5Cb", "a\\\\b")],
)
def test_a_user_agent_of_cloudfront_is_percent_encoded(facts, logged, user_agent):
    (found,) = facts("cloudfront", AMAZON, AMAZON_LINE.replace(CHROME.replace(" ", "%20"), logged))
    assert found["user_agent"] == user_agent


def test_a_viewer_of_cloudfront_asked_for_the_host_it_named(facts):
    lines = [AMAZON_LINE, AMAZON_LINE.replace("go.example.com", "-"), AMAZON_LINE.replace("q=1", "-")]
    first, second, third = facts("cloudfront", AMAZON, *lines)
    assert (first["domain"], second["domain"]) == ("go.example.com", "d1.cloudfront.net")
    assert third["target"] == "/abc"


# Files of one's own

OWN = {
    "time": "2026-03-04T10:05:03Z",
    "ip": "203.0.113.7",
    "method": "get",
    "url": "https://go.example.com/abc?q=1",
    "domain": "other.example.com",
    "path": "",
    "status": "302",
    "user_agent": CHROME,
    "referrer": "https://t.co/x",
    "country": "de",
    "protocol": "HTTP/1.1",
}


def own_fact(fact, log_format, row):
    """What the only line of a file of one's own gives."""
    if log_format == "ndjson":
        return fact("ndjson", row)
    header, line = (",".join(f'"{cell}"' for cell in cells) for cells in (row, row.values()))
    return fact("csv", f"{header}\n{line}", FormatContext(header=header.encode()))


def inserted(row, name, value, index):
    cells = list(row.items())
    return dict([*cells[:index], (name, value), *cells[index:]])


def test_every_field_has_its_value_here():
    assert tuple(OWN) == FIELD_NAMES


@pytest.mark.parametrize("log_format", ["csv", "ndjson"])
@pytest.mark.parametrize("index", range(len(OWN) + 1))
def test_a_column_more_shifts_no_other(fact, log_format, index):
    assert own_fact(fact, log_format, inserted(OWN, "bytes", "5316", index)) == READ


@pytest.mark.parametrize("log_format", ["csv", "ndjson"])
def test_columns_may_stand_in_any_order(fact, log_format):
    assert own_fact(fact, log_format, dict(reversed(OWN.items()))) == READ


@pytest.mark.parametrize("log_format", ["csv", "ndjson"])
@pytest.mark.parametrize("index", range(len(OWN) + 1))
def test_a_field_more_that_is_accepted_shifts_no_other(fact, monkeypatch, log_format, index):
    names = (*FIELD_NAMES[:index], "bytes", *FIELD_NAMES[index:])
    monkeypatch.setattr("data.logs.columns.FIELD_NAMES", names)
    monkeypatch.setattr("data.logs.formats.FIELD_NAMES", names)
    assert own_fact(fact, log_format, OWN | {"bytes": "5316"}) == READ


@pytest.mark.parametrize("log_format", ["csv", "ndjson"])
@pytest.mark.parametrize(
    ("logged", "expected"),
    [
        ("HTTP/1.0", "HTTP/1.0"),
        ("HTTP/2.0", "HTTP/2"),
        ("HTTP/2", "HTTP/2"),
        ("HTTP/3.0", "HTTP/3"),
        ("h2", ""),
        ("", ""),
    ],
)
def test_a_version_of_http_is_written_alike(fact, log_format, logged, expected):
    assert own_fact(fact, log_format, OWN | {"protocol": logged}) == READ | {"protocol": expected}


@pytest.mark.parametrize("log_format", ["csv", "ndjson"])
@pytest.mark.parametrize("method", ["G", "GE-T", "GET /x", "X" * 21])
def test_a_request_with_an_unreadable_method_has_neither_method_nor_target(fact, log_format, method):
    unread = {"method": "", "target": "", "protocol": ""}
    assert own_fact(fact, log_format, OWN | {"method": method}) == READ | unread


# All of them

LINES = {
    "alb": [ALB],
    "caddy": [CADDY],
    "cloudflare": [CLOUDFLARE],
    "cloudfront": [AMAZON, AMAZON_LINE],
    "nginx-json": [NGINX],
    "w3c": [IIS, IIS_LINE],
    "ndjson": [{"time": 1772618703, "path": "/abc"}],
    "csv": ["time,path", "1772618703,/abc"],
    "combined": [COMBINED],
    "vhost-combined": [f"a.example:80 {COMBINED}"],
    "common": [COMBINED[: COMBINED.index(' "https')]],
}


def line_of(line):
    return line if isinstance(line, str) else json.dumps(line)


@pytest.mark.parametrize("log_format", LINES)
def test_every_format_is_seen_from_one_line(reader, log_format):
    text = "\n".join(map(line_of, LINES[log_format])).encode()
    assert reader.detect(split_lines(text, 1), FormatContext(header=text.partition(b"\n")[0])) == log_format


@pytest.mark.parametrize("log_format", FORMATS)
def test_no_format_explains_a_line_of_another(reader, facts, log_format):
    """Of CSV each log by itself, as every first line may be its header."""
    if log_format == "csv":
        explained = []
        for name, lines in LINES.items():
            guide = FormatContext(header=line_of(lines[0]).encode())
            explained += [name] * (None in [found["reason"] for found in facts("csv", *lines, guide=guide)])
    else:
        names = [name for name, lines in LINES.items() for _ in lines]
        text = "\n".join(line_of(line) for lines in LINES.values() for line in lines).encode()
        found = reader.read(split_lines(text, 1), log_format).select(["number", "reason"]).to_pylist()
        explained = [names[row["number"] - 1] for row in found if row["reason"] is None]
    assert explained == [log_format]


@pytest.mark.parametrize("log_format", REQUIRED_CHARACTERS)
def test_no_line_without_the_required_character_of_a_format_is_of_it(facts, log_format):
    required = REQUIRED_CHARACTERS[log_format]
    lines = [line_of(line) for lines in LINES.values() for line in lines]
    without = [line.replace(required, other) for line in lines for other in ("", "(")]
    assert None not in [found["reason"] for found in facts(log_format, *without)]


def test_formats_whose_required_character_a_log_lacks_are_not_tried(reader, monkeypatch):
    tried, read = [], reader.read

    def noted(lines, log_format, context):
        tried.append(log_format)
        return read(lines, log_format, context)

    monkeypatch.setattr(reader, "read", noted)
    text = json.dumps(LINES["ndjson"][0]).encode()
    assert reader.detect(split_lines(text, 1), FormatContext(header=text)) == "ndjson"
    assert {*FORMATS[:3]} & {*tried} == set()


def test_every_format_has_its_lines_here():
    assert set(LINES) == set(FORMATS)


PIECES = [
    "",
    '"',
    "\\",
    "\\u0000",
    "\\ud800",
    "%ff",
    ",",
    "\t",
    "NaN",
    "null",
    "#Fields: ",
    "1e999",
    "\x01",
    "é",
    "[" * 5_000,
]
WHOLE = [line_of(line) for lines in LINES.values() for line in lines]
SPOILT = st.builds(
    lambda line, at, gone, piece: line[:at] + piece + line[at + gone :],
    st.sampled_from(WHOLE), st.integers(0, 400), st.integers(0, 20), st.sampled_from(PIECES),
)  # fmt: skip


@given(st.lists(SPOILT, min_size=20, max_size=40))
@settings(max_examples=scaled(3, 200), deadline=None, derandomize=True)
def test_whatever_a_line_holds_every_reader_answers_for_it(reader, lines):
    table = split_lines("\n".join(lines).encode(), 2)
    guide = FormatContext(b"time,path", IIS.encode(), nginx_log_format=parse_nginx_log_format(USUAL))
    for log_format in (*FORMATS, "nginx"):
        requests = reader.read(table, log_format, guide)
        numbers = requests["number"].to_pylist()
        assert len(numbers) == len(set(numbers)) <= len(table)
        readable = [row for row in requests.to_pylist() if row.pop("reason") is None]
        assert [row for row in readable if None in row.values()] == []
