"""Facts about requests in landed visits, from log lines and reported fields; a log without such fields yields none."""

import json
import re
from pathlib import Path

import pytest

from data.ingest.importer import Options
from data.ingest.live import LiveIngest
from data.logs.line_layout import parse_layout
from data.logs.reported import Submission
from data.signals import BITS
from data.store.pending import flush_all
from tests.support.forks import ROOT
from tests.support.lakes import rows_of
from tests.support.tables import tables

FORMAT_LINES = tables(Path(__file__).parents[1] / "logs/test_lines.py")["formats"]


@pytest.fixture
def facts(logs):
    """Import a log; return the signals of its visits, in order of time."""

    def facts(text, **options):
        logs.load(text, Options("acme", domain="go.example.com", **options))
        visits = sorted(logs.visits(), key=lambda visit: visit["visited_at"])
        return [" ".join(name for name, bit in BITS.items() if (visit["signals"] or 0) & bit) for visit in visits]

    return facts


# Lines

CHROME_HEADERS = {
    "User-Agent": ["Chrome"], "Accept-Language": ["de"], "Sec-Fetch-Mode": ["navigate"],
    "Sec-Fetch-Dest": ["document"], "Sec-Fetch-Site": ["none"],
}  # fmt: skip
NOTHING_SENT = "fetch_absent language_absent"
SCRIPT = "plain_http language_sent accepts_no_page"
HTTP_PAGE = "plain_http fetch_sent navigation {}language_sent"
CADDY = [
    ({"tls": {"version": 772}, "headers": CHROME_HEADERS}, "https fetch_sent navigation language_sent"),
    ({"tls": {"version": 772}, "headers": {}}, "https fetch_absent language_absent"),
    ({"tls": {"version": 772}}, "https"),
    ({"headers": {"Accept-Language": ["de"]}}, "plain_http fetch_absent language_sent"),
    ({"proto": "HTTP/2.0"}, ""),
    ({"proto": "HTTP/3.0", "headers": {"Sec-Fetch-Site": ["none"]}}, NOTHING_SENT),
    ({"proto": "HTTP/3.0", "tls": {"proto": "h3"}, "headers": {"Accept-Language": []}}, f"https {NOTHING_SENT}"),
    ({"headers": CHROME_HEADERS | {"Sec-Fetch-Mode": ["navigate", "cors"]}}, HTTP_PAGE.format("")),
    ({"headers": CHROME_HEADERS | {"Sec-Fetch-Mode": ["REDACTED"]}}, "plain_http fetch_sent language_sent"),
    ({"headers": {"X-Forwarded-For": ["10.1.2.3"], "X-Forwarded-Proto": ["https"]}}, f"plain_http {NOTHING_SENT}"),
    ({"headers": CHROME_HEADERS | {"X-Moz": ["prefetch"]}}, HTTP_PAGE.format("loaded_ahead ")),
    ({"headers": CHROME_HEADERS | {"X-Firefox-Ai": ["1"]}}, HTTP_PAGE.format("link_preview ")),
    ({"headers": {"Signature-Agent": ['"https://chatgpt.com"']}}, "plain_http fetch_absent language_absent signed"),
    ({"remote_ip": "10.0.0.1", "headers": {"X-Forwarded-For": ["198.51.100.7"]}}, "fetch_absent language_absent"),
    (
        {"headers": {"Accept": ["*/*"], "Accept-Language": ["de"]}},
        "plain_http fetch_absent language_sent accepts_no_page",
    ),
    (
        {"remote_ip": "10.0.0.1", "headers": CHROME_HEADERS | {"X-Forwarded-Proto": ["https"]}},
        "https fetch_sent navigation language_sent",
    ),
]  # fmt: skip


def test_caddy_lines_have_the_facts_from_their_headers(facts):
    request = {"remote_ip": "198.51.100.7", "proto": "HTTP/1.1", "method": "GET", "host": "go.example.com", "uri": "/"}
    lines = [
        {"ts": 1795832242 + number, "logger": "http.log.access", "status": 200, "request": request | changes}
        for number, (changes, _) in enumerate(CADDY)
    ]
    assert facts("".join(f"{json.dumps(line)}\n" for line in lines)) == [wanted for _, wanted in CADDY]


def test_a_caddy_console_line_has_the_facts_from_its_headers(facts):
    request = {"remote_ip": "198.51.100.7", "uri": "/", "tls": {"version": 772}, "headers": CHROME_HEADERS}
    told = json.dumps({"request": request, "status": 200})
    line = f"2026/11/28 02:17:21.835\t\x1b[34mINFO\x1b[0m\thttp.log.access.log0\thandled request\t{told}\n"
    assert facts(line) == ["https fetch_sent navigation language_sent"]


NGINX = (
    '$remote_addr [$time_local] "$request" $status "$http_user_agent" $scheme "$http_sec_fetch_mode" '
    '"$http_sec_purpose" "$http_accept_language" "$http_signature_agent"'
)
NGINX_FACTS = [
    ('https "navigate" "-" "de, en;q=0.5" "-"', "https fetch_sent navigation language_sent"),
    ('https "navigate" "prefetch;prerender" "de" "-"', "https fetch_sent navigation loaded_ahead language_sent"),
    ('http "-" "-" "-" "\\x22https://chatgpt.com\\x22"', "plain_http fetch_absent language_absent signed"),
]


def test_an_nginx_log_format_gives_the_facts_from_its_variables(facts):
    lines = [
        f'198.51.100.7 [01/Mar/2026:10:05:0{number} +0000] "GET / HTTP/1.1" 200 "Chrome" {rest}\n'
        for number, (rest, _) in enumerate(NGINX_FACTS)
    ]
    found = facts("".join(lines), layout=parse_layout(NGINX))
    assert found == [wanted for _, wanted in NGINX_FACTS]


APACHE = (
    '%h %t "%r" %>s "%{User-Agent}i" %{HTTPS}x "%{Sec-Fetch-Mode}i" "%{Sec-Purpose}i" "%{Accept-Language}i" '
    '"%{Signature-Agent}i"'
)
APACHE_FACTS = [
    ('on "navigate" "-" "de, en;q=0.5" "-"', "https fetch_sent navigation language_sent"),
    ('on "navigate" "prefetch;prerender" "de" "-"', "https fetch_sent navigation loaded_ahead language_sent"),
    (r'off "-" "-" "-" "\"https://chatgpt.com\""', "plain_http fetch_absent language_absent signed"),
]


def test_facts_come_from_the_directives_of_an_apache_log_format(facts):
    lines = [
        f'198.51.100.7 [01/Mar/2026:10:05:0{number} +0000] "GET / HTTP/1.1" 200 "Chrome" {rest}\n'
        for number, (rest, _) in enumerate(APACHE_FACTS)
    ]
    assert facts("".join(lines), layout=parse_layout(APACHE)) == [wanted for _, wanted in APACHE_FACTS]


@pytest.mark.parametrize(
    ("directive", "logged", "wanted"),
    [
        ("%{SSL_PROTOCOL}x", "TLSv1.3", "https"),
        ("%{SSL_PROTOCOL}x", "-", "plain_http"),
        ("%{REQUEST_SCHEME}x", "https", "https"),
        ("$https", "on", "https"),
        ("$https", "", "plain_http"),
        ("$ssl_protocol", "TLSv1.2", "https"),
    ],
)
def test_a_layout_with_tls_variables_gives_the_scheme(facts, directive, logged, wanted):
    layout = f'%h %t "%r" "{directive}"' if "%" in directive else f'$remote_addr [$time_local] "$request" "{directive}"'
    line = f'198.51.100.7 [01/Mar/2026:10:05:03 +0000] "GET / HTTP/1.1" "{logged}"\n'
    assert facts(line, layout=parse_layout(layout)) == [wanted]


def test_irrelevant_headers_in_an_nginx_log_format_give_no_facts(logs):
    told = parse_layout('$remote_addr [$time_local] "$request" $status "$http_user_agent" "$http_cookie"')
    line = '198.51.100.7 [01/Mar/2026:10:05:03 +0000] "GET / HTTP/1.1" 200 "Chrome" "-"\n'
    logs.load(line, Options("acme", domain="go.example.com", layout=told))
    assert [visit["signals"] for visit in logs.visits()] == [None]


OTHERS = [
    ("cloudflare", {}, ""),
    ("cloudflare", {"{": '{"ClientRequestScheme": "https", "BotScore": 1, '}, "https edge_automated"),
    ("cloudflare", {"{": '{"BotScore": 12, "VerifiedBotCategory": "AI", '}, "edge_suspected edge_verified"),
    ("cloudflare", {"{": '{"ClientIPClass": "noRecord", '}, ""),
    ("cloudflare", {"{": '{"ClientIPClass": "scan", '}, "edge_suspected"),
    ("cloudflare", {"{": '{"ClientIPClass": "monitoringService", '}, "edge_verified"),
    ("cloudflare", {"{": '{"ClientIPClass": "tor", '}, "from_tor"),
    ("cloudflare", {"{": '{"RequestHeaders": {"sec-fetch-mode": "cors", "x": ""}, '}, "fetch_sent page_part file"),
    ("cloudflare", {"{": '{"RequestHeaders": {"sec-fetch-site": "none"}, '}, "fetch_sent"),
    ("cloudfront", {" c-country": " cs-protocol", "\tDE\t": "\thttps\t"}, "https"),
    ("cloudfront", {" c-country": " cs-protocol", "\tDE\t": "\tws\t"}, "plain_http"),
    ("w3c", {" cs-host": " cs(Accept-Language)", "go.example.com": "-"}, "language_absent"),
    ("w3c", {" cs-host": " cs(Sec-Fetch-Mode)", "go.example.com": "navigate"}, "fetch_sent navigation"),
    ("w3c", {" cs-host": " cs(Sec-Fetch-Site)", "go.example.com": "none"}, "fetch_sent"),
    ("w3c", {" cs-host": " cs(Sec-Fetch-Site)", "go.example.com": "-"}, "fetch_absent"),
    ("w3c", {" cs-host": " X-Forwarded-Proto", "go.example.com": "https", "203.0.113.7": "10.0.0.1"}, "https"),
    ("nginx-json", {"{": '{"http_sec_fetch_site": "none", '}, "fetch_sent"),
    ("nginx-json", {"{": '{"http_sec_fetch_site": "", '}, "fetch_absent"),
    ("cloudflare", {"{": '{"ClientRequestScheme": "http", "RequestHeaders": {"accept-language": "de", "accept": "a"},'},
     SCRIPT),
    ("cloudfront", {" c-country": " cs-protocol cs-headers",
                    "\tDE\t": "\thttp\taccept:*/*%0Aaccept-language:de%0A\t"}, SCRIPT),
    ("w3c", {" cs-host": " cs(Accept-Language) cs(Accept) X-Forwarded-Proto", "go.example.com": "de */* http",
             "203.0.113.7": "10.0.0.1"}, SCRIPT),
    ("nginx-json", {"{": '{"scheme": "http", "http_accept_language": "de", "http_accept": "*/*", '}, SCRIPT),
    ("traefik", {"{": '{"RequestScheme": "http", "request_Accept-Language": "de", "request_Accept": "*/*", '}, SCRIPT),
    ("alb", {}, "https"),
    ("alb", {"https 2026": "ws 2026"}, "plain_http"),
    ("alb", {"203.0.113.7": "104.16.0.9"}, "from_cdn"),
    ("traefik", {"{": '{"RequestScheme": "https", '}, "https"),
    ("traefik", {"{": '{"RequestScheme": "http", ', '"203.0.113.7"': '"198.51.100.7"', "203.": "10."}, ""),
    ("traefik", {"{": '{"request_Accept-Language": "REDACTED", "request_Sec-Purpose": "", '}, "language_sent"),
    ("traefik", {"{": '{"request_Sec-Fetch-Site": "none", '}, "fetch_sent"),
    ("haproxy", {}, "https"),
    ("haproxy", {"web~": "web"}, "plain_http"),
    ("haproxy", {"t.co/x}": "t.co/x|navigate|document||de|||}"}, "https fetch_sent navigation language_sent"),
    ("haproxy", {"t.co/x}": "t.co/x|||||||}"}, f"https {NOTHING_SENT}"),
    ("haproxy", {"203.0.113.7": "10.0.0.1", "web~": "web", "t.co/x}": "t.co/x||||||198.51.100.7|https}"},
     f"https {NOTHING_SENT}"),
    ("haproxy", {"203.0.113.7": "10.0.0.1", "t.co/x}": "t.co/x|||||||}"}, NOTHING_SENT),
    ("npm", {}, "https"),
    ("npm", {"GET https": "GET http"}, "plain_http"),
    ("npm", {"203.0.113.7": "10.0.0.1"}, ""),
    ("heroku", {}, "https"),
    ("heroku", {"protocol=https": "protocol=http"}, "plain_http"),
    ("heroku", {"protocol=https": "protocol=http1.1 tls=true tls_version=tls1.3"}, "https"),
    ("heroku", {"protocol=https": "protocol=http1.1 tls=false"}, "plain_http"),
    ("heroku", {" protocol=https": ""}, ""),
    ("heroku", {"203.0.113.7": "203.0.113.7,104.16.0.9"}, ""),
    ("netlify", {}, "https"),
    ("netlify", {"https://go": "http://go"}, "plain_http"),
    ("netlify", {"https://go.example.com/abc": "/abc"}, ""),
    ("google-cloud", {}, "https"),
    ("google-cloud", {"https://go": "http://go"}, "plain_http"),
    ("google-cloud", {"203.0.113.7": "10.0.0.1"}, ""),
    ("azure-front-door", {}, "https"),
    ("azure-front-door", {'"HTTPS"': '"HTTP"'}, "plain_http"),
    ("azure-front-door", {'"requestProtocol": "HTTPS", ': ""}, "https"),
    ("azure-front-door", {'"socketIp": "203.0.113.7"': '"socketIp": "10.0.0.1"'}, ""),
    ("azure-application-gateway", {}, "https"),
    ("azure-application-gateway", {'"on"': '"off"'}, "plain_http"),
    ("azure-application-gateway", {'"on"': '"-"'}, ""),
    ("azure-application-gateway", {"203.0.113.7": "10.0.0.1"}, ""),
    ("bunny", {}, "https"),
    ("bunny", {"https://go": "http://go"}, "plain_http"),
    ("s3", {}, "https"),
    ("s3", {"TLSv1.2": "-"}, "plain_http"),
    ("s3", {" TLSv1.2 - - eu-west-1": ""}, ""),
    ("envoy", {}, ""),
    ("envoy-json", {}, ""),
    ("cloudfront-json", {}, "https"),
    ("cloudfront-json", {'"cs-protocol": "https"': '"cs-protocol": "http"'}, "plain_http"),
    ("cloudfront-json", {'"cs-protocol": "https"': '"cs-protocol": "-"'}, ""),
    ("akamai", {}, "https language_sent"),
    ("akamai", {"TLSv1.3": "-", '"HTTP/1.1"': '"HTTP"', '"accLang": "de"': '"accLang": "-"'}, "plain_http"),
    ("akamai", {'"tlsVersion": "TLSv1.3", ': "", '"accLang": "de", ': ""}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("log_format", "changes", "wanted"), OTHERS)
def test_a_line_has_the_facts_that_its_format_logs(facts, log_format, changes, wanted):
    line = FORMAT_LINES[log_format][0]
    for part, other in changes.items():
        assert part in line
        line = line.replace(part, other, 1)
    assert facts(f"{line}\n", log_format=log_format) == [wanted]


REAL_TIME = [
    ("host:a%0Asec-fetch-mode:navigate%0ASec-Fetch-Dest:document%0Aaccept-language:de%0A",
     "host%0Asec-fetch-mode%0ASec-Fetch-Dest%0Aaccept-language%0A", "4", "fetch_sent navigation language_sent"),
    ("host:a%0Aaccept:*/*%0A", "host%0Aaccept%0A", "2", NOTHING_SENT),
    ("host:a%0Aaccept:*/*%0A", "-", "2", NOTHING_SENT),
    ("host:a%0A", "host%0Acookie%0A", "2", NOTHING_SENT),
    ("host:a%0A", "-", "2", ""),
    ("host:a%0Aacce", "host%0Aaccept%0Acook", "3", ""),
    ("host:a%0A", "host%0A", "-", ""),
    ("host:a%0Asec-fetch-mode:navi", "host%0Asec-fetch-mode%0Aaccept-language%0A", "3", "fetch_sent language_sent"),
    ("-", "host%0Asec-fetch-site%0A", "2", "fetch_sent language_absent"),
    ("host:a%0Asec-purpose:prefetch;prerender%0Asignature-agent:%22https://a.example%22%0A", "-", "3",
     f"{NOTHING_SENT} loaded_ahead signed"),
    ("host:a%0Ax-moz:prefetch%0Ax-firefox-ai:1%0A", "-", "4", "loaded_ahead link_preview"),
    ("-", "-", "-", ""),
]  # fmt: skip
"""cs-headers, cs-header-names, cs-headers-count, and the facts besides https: a header is absent only if it is missing
from a complete list."""


def test_a_cloudfront_real_time_log_has_the_facts_from_headers(facts):
    (fields,) = re.findall("^#Fields: .*", (ROOT / "data/logs/README.md").read_text("utf-8"), re.MULTILINE)
    request = {"c-ip": "198.51.100.7", "sc-status": "302", "cs-uri-stem": "/", "cs-protocol": "https"}
    lines = [fields]
    for number, told in enumerate(REAL_TIME):
        headers = dict(zip(("cs-headers", "cs-header-names", "cs-headers-count"), told, strict=False))
        cells = {"timestamp": f"{1795832242 + number}.087"} | request | headers
        lines.append("\t".join(cells.get(name, "-") for name in fields.split()[1:]))
    wanted = [{"https", *names.split()} for *_, names in REAL_TIME]
    assert [{*names.split()} for names in facts("\n".join([*lines, ""]))] == wanted


# Reported visits

REPORTED = [
    ({}, ""),
    ({"scheme": "https", "sec_fetch_mode": "navigate"}, "https fetch_sent navigation"),
    ({"scheme": "http", "sec_fetch_mode": "", "sec_fetch_dest": "", "accept_language": ""},
     "plain_http fetch_absent language_absent"),
    ({"sec_purpose": "prefetch", "sec_fetch_dest": "image"}, "fetch_sent page_part loaded_ahead file"),
    ({"scheme": "http", "accept_language": "de", "accept": "*/*"}, "plain_http language_sent accepts_no_page"),
    ({"sec_fetch_site": "none"}, "fetch_sent"),
    ({"sec_fetch_site": ""}, "fetch_absent"),
    ({"signature_agent": '"https://chatgpt.com"', "accept_language": None}, "signed"),
    ({"query": "?id=1'+union+select+1--", "scheme": "https"}, "attacked https"),
]  # fmt: skip


def reported(number, told):
    query = told.get("query", "")
    fields = {name: text for name, text in told.items() if name != "query"}
    return json.dumps({"time": 1772618703 + number, "path": f"/{number}{query}", "ip": "10.0.0.1"} | fields)


def test_facts_are_read_from_the_fields_of_an_ndjson_file(facts):
    lines = [reported(number, told) for number, (told, _) in enumerate(REPORTED)]
    assert facts("".join(f"{line}\n" for line in lines), log_format="ndjson") == [wanted for _, wanted in REPORTED]


def test_a_csv_file_has_the_facts_from_its_columns(facts):
    head = "time,path,scheme,sec_fetch_mode,accept_language"
    assert facts(f"{head}\n2026-03-04,/,https,,\n2026-03-05,/,http,navigate,de\n", log_format="csv") == [
        "https fetch_absent language_absent", "plain_http fetch_sent navigation language_sent"
    ]  # fmt: skip


def test_live_visits_have_the_facts_from_their_fields(lake):
    rows = [reported(number, told).encode() for number, (told, _) in enumerate(REPORTED)]
    LiveIngest(lake).land([Submission("acme", rows)])
    flush_all(lake)
    signals = {visit["path"]: visit["signals"] for visit in rows_of(lake)}
    wanted = [sum(BITS[name] for name in names.split()) or None for _, names in REPORTED]
    assert [signals[f"/{number}"] for number in range(len(REPORTED))] == wanted
