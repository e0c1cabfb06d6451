"""Logs written by real proxies with our configuration files match the requests that were sent."""

import socket

import pytest

from data.ingest.block_reader import Options
from data.ingest.importer import Importer
from tests.support.lakes import files_of, read
from tests.support.programs import wait_until
from tests.support.proxies import Site, caddy, haproxy, nginx

REQUESTS = [
    ("/launch?utm_source=a%20b", {"User-Agent": "GPTBot/1.2", "Referer": "https://chatgpt.com/c/1?a=1,2"}),
    ("/launch", {"User-Agent": r'quoted "\ tab	comma, {"brace":"}'}),
    ("/launch", {"User-Agent": "Grüße", "Referer": "https://www.example.org/"}),
    ("/launch", {"User-Agent": "x" * 4_000}),
    ("/" + "y" * 3_000, {}),
]
"""Requests as (target, headers): ordinary ones, and ones that may break a log."""
VISITS = [
    ("/launch", 302, "ai_training", "GPTBot/1.2", "chatgpt.com", "a b"),
    ("/launch", 302, "other_bot", r'quoted "\ tab	comma, {"brace":"}', None, None),
    ("/launch", 302, "other_bot", "Grüße", "www.example.org", None),
    ("/launch", 302, "other_bot", "x" * 1_024, None, None),
    ("/" + "y" * 3_000, 404, "other_bot", None, None, None),
]


def ask(port, target, headers):
    """Send a request unchanged and wait for the end of its response."""
    lines = [f"GET {target} HTTP/1.1", f"Host: go.example.com:{port}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        while connection.recv(65_536):
            pass


def lines_of(log):
    return log.read_bytes().count(b"\n") if log.exists() else 0


@pytest.mark.parametrize("proxy", [nginx, haproxy, caddy])
def test_proxy_logs_match_the_requests_sent(proxy, tmp_path, lake):
    site = Site(tmp_path)
    with proxy(site) as process:
        socket.create_connection(("127.0.0.1", site.links), timeout=60).close()  # like browsers with spare connections
        for target, headers in REQUESTS:
            ask(site.links, target, headers)
        wait_until(lambda: lines_of(site.log) == len(REQUESTS), process, site.root / "output")
    Importer(lake).run(site.log, Options("acme"))
    visits = [visit for file in files_of(lake) for visit in read(lake, file)]
    fields = ("path", "status", "bot_category", "user_agent", "referrer", "utm_source")
    assert sorted(str([visit[field] for field in fields]) for visit in visits) == sorted(map(str, map(list, VISITS)))
    assert {(visit["domain"], visit["protocol"]) for visit in visits} == {("go.example.com", "HTTP/1.1")}
