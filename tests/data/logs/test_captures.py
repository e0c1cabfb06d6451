"""Request headers that HAProxy captures, named by the user in the order of the captures."""

import re
import socket

import httpx2
import pytest

from data.errors import BadInput
from data.ingest.importer import Options
from data.logs.captures import RECOMMENDED, parse_captures
from data.signals import BITS
from tests.support.forks import ROOT
from tests.support.user_agents import CHROME
from tests.support.web_servers import serving

LINE = (
    "203.0.113.7:51324 [04/Mar/2026:10:05:03.401] web~ links/app1 0/0/1/8/9 302 5316 - - ---- 2/2/0/0/0 0/0 "
    '%s"GET /abc HTTP/1.1"\n'
)
INSIDE = """
    option httplog
    log 127.0.0.1:{port} len 8192 local0
    capture request header User-Agent len 256
    capture request header X-Request-Id len 32
    declare capture request len 64
    capture request header Host len 64
    http-request capture req.hdr(Sec-Fetch-Mode) id 2
    http-request capture req.hdr(Accept-Language) len 32
    capture response header Server len 16
    http-request return status 404 content-type text/plain string missing hdr Server mine
"""


@pytest.fixture
def load(logs):
    """Import a log with these capture names; return the summary and the visits."""

    def load(text, captures, domain="go.example", **options):
        names = parse_captures(captures) if captures else ()
        return logs.load(text, Options("acme", domain, captures=names, **options)), logs.visits()

    return load


def known(visits):
    """Return what each visit has from its headers: domain, user agent, referrer and signals."""
    return [(visit["domain"], visit["user_agent"], visit["referrer"], names(visit["signals"])) for visit in visits]


def names(signals):
    return " ".join(name for name, bit in BITS.items() if (signals or 0) & bit)


HERE = "go.example"
CAPTURES = [
    ("User-Agent,Referer,Host", "{Firefox|https://t.co/a|b.example} ", ("b.example", "Firefox", "t.co", "https")),
    ("user-agent, HOST", "{a#7Cb|c.example} ", ("c.example", "a|b", None, "https")),
    ("-,Host,-,User-Agent", "{x|b.example|y|Firefox} ", ("b.example", "Firefox", None, "https")),
    ("X-Request-Id,Host", "{17|b.example} ", ("b.example", None, None, "https")),
    ("Host", "{b.example|Firefox|https://t.co/a} ", ("b.example", None, None, "https")),
    ("Host", "{b.example} ", ("b.example", None, None, "https")),
    ("Sec-Fetch-Mode", "{} ", (HERE, None, None, "https fetch_absent")),
    ("Sec-Fetch-Mode", "{navigate} ", (HERE, None, None, "https fetch_sent navigation")),
    ("Sec-Fetch-Site", "{none} ", (HERE, None, None, "https fetch_sent")),
    ("Sec-Fetch-Dest", "{script} ", (HERE, None, None, "https fetch_sent page_part file")),
    ("Sec-Purpose", "{prefetch} ", (HERE, None, None, "https loaded_ahead")),
    ("X-Firefox-AI", "{1} ", (HERE, None, None, "https link_preview")),
    ("Accept-Language,Host", "{|b.example} ", ("b.example", None, None, "https language_absent")),
    ("Accept-Language", "{de} ", (HERE, None, None, "https language_sent")),
    ("Signature-Agent", "{x} ", (HERE, None, None, "https signed")),
    ("Signature-Input", "{x} ", (HERE, None, None, "https signed")),
    ("Accept,Accept-Language", "{*/*|de} ", (HERE, None, None, "https language_sent")),
    ("Accept-Language", "", (HERE, None, None, "https")),
    ("Accept-Language,Sec-Fetch-Mode", "", (HERE, None, None, "https")),
]


@pytest.mark.parametrize(("captures", "captured", "wanted"), CAPTURES)
def test_named_captures_give_the_facts_from_their_headers(load, captures, captured, wanted):
    _, visits = load(LINE % captured, captures)
    assert known(visits) == [wanted]


def test_named_captures_find_the_client_behind_a_proxy(load):
    line = LINE.replace("203.0.113.7", "10.0.0.1") % "{http|198.51.100.7} "
    _, visits = load(line + LINE.replace("203.0.113.7", "198.51.100.7") % "{|} ", "X-Forwarded-Proto,X-Forwarded-For")
    assert len({visit["visitor"] for visit in visits}) == 1
    assert sorted(names(visit["signals"]) for visit in visits) == ["https", "plain_http"]


def test_a_line_with_fewer_captures_than_names_is_not_read(load):
    summary, visits = load(LINE % "{b.example|Firefox} " + LINE % "{b.example} ", "Host,User-Agent")
    fewer = "fewer captured request headers (1) than --captures names (2)"
    reason = f"{fewer}; name those that HAProxy captures, in their order"
    assert (summary.rejects, len(visits)) == ([(2, reason)], 1)


def test_a_log_with_fewer_captures_than_names_is_rejected(load, logs):
    with pytest.raises(BadInput, match=r"fewer captured request headers \(1\) than --captures names \(3\); name those"):
        load(LINE % "{b.example} ", "Host,User-Agent,Referer")
    assert logs.batches() == []


def test_captures_with_a_log_in_another_format_are_rejected(load):
    with pytest.raises(BadInput, match="none in the haproxy --captures format"):
        load('203.0.113.7 - - [04/Mar/2026:10:05:03 +0000] "GET /a HTTP/1.1" 200 1 "-" "x"\n', "Host")


def test_the_default_captures_are_those_in_the_manual():
    manual = (ROOT / "data/logs/README.md").read_text("utf-8")
    captures = re.findall(r"^(?:capture request header |http-request capture req\.hdr\()([\w-]+)", manual, re.MULTILINE)
    assert tuple(map(str.lower, captures)) == RECOMMENDED


def test_captures_named_as_recommended_give_the_same_facts(load):
    line = LINE % "{b.example|Firefox|https://t.co/a|navigate|document||de||198.51.100.7|https} "
    (_, unnamed), (_, named) = load(line, ""), load(line + LINE % "", ",".join(RECOMMENDED))
    assert known(unnamed) == [("b.example", "Firefox", "t.co", "https fetch_sent navigation language_sent")]
    assert known(unnamed)[0] in known(named)


@pytest.mark.parametrize(
    ("captures", "problem"),
    [
        ("Host,host", "--captures names host twice; replace one of them with -"),
        ("Host,,Referer", "--captures: '' is not a header name; separate names with commas"),
        ("Host User-Agent", "--captures: 'host user-agent' is not a header name"),
        ("Host:len", "--captures: 'host:len' is not a header name"),
        (" ", "--captures: '' is not a header name"),
    ],
)
def test_invalid_capture_names_are_bad_input(captures, problem):
    with pytest.raises(BadInput) as refused:
        parse_captures(captures)
    assert problem in str(refused.value)


def test_several_capture_names_may_be_dashes():
    assert parse_captures("-,Host,-") == ("-", "host", "-")


def ask(port, path, **headers):
    request = {"User-Agent": CHROME, "Host": "go.acme.test", **headers}
    httpx2.get(f"http://127.0.0.1:{port}{path}", headers=request, trust_env=False, verify=False)


def test_captures_from_a_real_haproxy_are_read_by_their_names(load, tmp_path):
    with socket.socket(type=socket.SOCK_DGRAM) as syslog:
        syslog.bind(("127.0.0.1", 0))
        syslog.settimeout(60)
        with serving("haproxy", tmp_path, INSIDE.format(port=syslog.getsockname()[1])) as port:
            ask(port, "/page", **{"Sec-Fetch-Mode": "navigate", "Accept-Language": "de, en;q=0.5"})
            ask(port, "/tool", **{"X-Request-Id": "{a|b}"})
            with socket.create_connection(("127.0.0.1", port), 10) as bad:
                bad.sendall(b"nonsense\r\n\r\n")
                while bad.recv(4096):
                    pass
            lines = []  # HAProxy logs a request after its response, so it must still be running here
            while not all(any(part in line for line in lines) for part in (b"/page", b"/tool", b" PR-- ")):
                lines.append(syslog.recv(8_192).rstrip(b"\n"))
    _, visits = load(b"\n".join([*lines, b""]), "User-Agent,X-Request-Id,Sec-Fetch-Mode,Host,Accept-Language")
    by_path = dict(zip([visit["path"] for visit in visits], known(visits), strict=True))
    assert by_path == {
        "/page": ("go.acme.test", CHROME, None, "plain_http fetch_sent navigation language_sent"),
        "/tool": ("go.acme.test", CHROME, None, "plain_http fetch_absent language_absent"),
        "": (HERE, None, None, "plain_http"),
    }
