"""Outgoing HTTP: servers of every kind, one deadline for the whole exchange, and checked addresses."""

import asyncio
import contextlib
import ipaddress
import socket
import threading
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest

from service.outgoing.addresses import is_public
from service.outgoing.connection import OutgoingError
from service.outgoing.http import BadStatus, download, fetch, request
from tests.support.receivers import Authority
from tests.support.tables import examples, tables

HOSTILE = tables(str(Path(__file__).with_name("hostile.json")))
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
SECONDS = 0.6
BODY = b'{"type":"job.approved"}'
OK = ["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"]


def fetched(url, seconds=60, max_bytes=100, **how):
    return asyncio.run(fetch(url, seconds, max_bytes, **how))


def posted(url, networks=LOOPBACK, seconds=60):
    """Post a message, reading only the headers of the response; return its status, or why there was no response."""
    how = {"seconds": seconds, "max_bytes": 0, "body": BODY, "headers": {"webhook-id": "evt_1"}, "networks": networks}
    try:
        return asyncio.run(request("POST", url, **how)).status
    except OutgoingError as error:
        return error.error


@pytest.fixture
def named(monkeypatch):
    """Resolve each name to the next of these lists of addresses, and to the last one once no other is left; return the
    lookups."""
    real, asked = socket.getaddrinfo, []

    def named(*answers):
        left = list(answers)

        def found(host, *how):
            asked.append(host)
            addresses = left.pop(0) if len(left) > 1 else left[0]
            return [row for one in addresses for row in real(one, *how, flags=socket.AI_NUMERICHOST)]

        monkeypatch.setattr(socket, "getaddrinfo", found)
        return asked

    return named


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


# Servers


@pytest.mark.parametrize(("script", "status", "body"), [row[1:] for row in HOSTILE["servers"]],
                         ids=[row[0] for row in HOSTILE["servers"]])  # fmt: skip
def test_a_response_is_accepted_or_rejected_in_time(receiver, script, status, body):
    there = receiver(list(script))
    assert posted(there.url, seconds=SECONDS if status == "timed_out" else 60) == status
    try:
        found = fetched(there.url, SECONDS if body == "timed_out" else 60).decode()
    except OutgoingError as error:
        found = str(error) if isinstance(error, BadStatus) else error.error
    assert found == body
    assert there.connections == 2


def test_a_message_is_sent_unchanged(receiver):
    there = receiver()
    assert posted(f"{there.url}/a%20b?token=x&y#z") == 204
    (got,) = there.requests
    assert (got.first, got.body) == ("POST /hook/a%20b?token=x&y HTTP/1.1", BODY)
    ours = {"user-agent": "Traffic-Analytics/1", "accept-encoding": "identity", "connection": "close"}
    about = {"host": f"127.0.0.1:{there.port}", "content-length": str(len(BODY)), "webhook-id": "evt_1"}
    assert got.headers == ours | about


def test_a_form_is_posted_with_the_given_headers(receiver):
    there = receiver(OK)
    form, headers = {"code": "a b&c=d", "name": "ä"}, {"Authorization": "Basic eDp5"}
    assert fetched(there.url, form=form, headers=headers) == b"body"
    (got,) = there.requests
    assert (got.first, got.body) == ("POST /hook HTTP/1.1", b"code=a+b%26c%3Dd&name=%C3%A4")
    sent = {"authorization": "Basic eDp5", "content-type": "application/x-www-form-urlencoded"}
    assert sent.items() <= got.headers.items()


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:99999/", "http://127.0.0.1:x/", "http://[::1/", "http://127.0.0.1/a b", "http://127.0.0.1/ä",
     "https://", "gopher://127.0.0.1/", "nowhere"],
)  # fmt: skip
def test_an_invalid_url_is_an_outgoing_error(url):
    with pytest.raises(OutgoingError):
        fetched(url)


# Connections


def test_a_server_on_ipv6_can_be_reached(receiver):
    there = receiver(host="::1")
    assert posted(there.url) == 204
    assert there.requests[0].headers["host"] == f"[::1]:{there.port}"


def test_the_first_responding_address_is_used(receiver, named):
    there = receiver(host="127.0.0.3")
    named(["127.0.0.2", "::1", "127.0.0.3"])
    assert posted(f"http://hooks.example:{there.port}/") == 204
    assert there.requests[0].headers["host"] == f"hooks.example:{there.port}"


@contextlib.contextmanager
def deaf():
    """Yield a port that accepts no connection."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.2", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def test_an_unreachable_address_leaves_time_for_the_next(named):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()[1]
    assert posted(f"http://127.0.0.1:{closed}/") == "connection_failed"
    with deaf() as port:
        assert posted(f"http://127.0.0.2:{port}/", seconds=SECONDS) == "timed_out"
        named(["127.0.0.2", "127.0.0.1"])
        assert posted(f"http://hooks.example:{port}/", seconds=SECONDS) == "connection_failed"


def test_the_deadline_covers_tls():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert posted(f"https://127.0.0.1:{silent.getsockname()[1]}/", seconds=SECONDS) == "timed_out"


def test_the_deadline_covers_redirects(receiver):
    there = receiver(moved("/newer"), ["hang"])
    with pytest.raises(OutgoingError, match=r"no complete answer within 0\.6 s"):
        asyncio.run(download(there.url, SECONDS, 100))


def test_the_deadline_covers_name_resolution(monkeypatch):
    ends = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: ends.wait(60) and [])
    with pytest.raises(OutgoingError, match=r"^no complete answer within 0\.1 s$"):
        fetched("http://login.example/", 0.1)
    ends.set()


@pytest.mark.parametrize("host", ["nobody.invalid", "x" * 64 + ".example", "a..example"])
def test_a_name_without_an_address_is_reported(named, host):
    asked = named([host])
    assert posted(f"https://{host}/") == "name_not_resolved"
    assert asked == [host]


def test_over_tls_the_name_is_sent_and_the_certificate_checked(receiver, authority, monkeypatch, named):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    there = receiver(tls=authority.context("hooks.example"))
    names = []
    there._tls.sni_callback = lambda _, name, __: names.append(name)
    named(["127.0.0.1"])
    assert posted(f"https://hooks.example:{there.port}/") == 204
    assert names == ["hooks.example"]
    assert there.requests[0].headers["host"] == f"hooks.example:{there.port}"


@pytest.mark.parametrize("wrong", ["unknown authority", "expired", "other name", "no TLS", "closed"])
def test_a_server_with_a_wrong_certificate_gets_no_message(receiver, authority, monkeypatch, tmp_path, wrong, named):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    tls = {
        "unknown authority": lambda: Authority(tmp_path).context("hooks.example"),
        "expired": lambda: authority.context("hooks.example", timedelta(days=-1)),
        "other name": lambda: authority.context("other.example"),
    }.get(wrong, lambda: None)()
    there = receiver([] if wrong == "closed" else ["no TLS here"], tls=tls)
    named(["127.0.0.1"])
    assert posted(f"https://hooks.example:{there.port}/") == "tls_failed"
    assert there.requests == []


# The guard against internal addresses


@pytest.mark.parametrize("address", HOSTILE["forbidden"])
def test_an_address_that_is_not_public_is_rejected(named, address):
    assert not is_public(ipaddress.ip_address(address))
    for scheme, mixed in product(("https", "http"), ([], ["93.184.216.34"])):
        named([*mixed, address])
        assert posted(f"{scheme}://hooks.example/", networks=()) == "address_not_allowed"


@pytest.mark.parametrize("address", HOSTILE["public"])
def test_a_public_address_is_not_allowed_over_http(named, address):
    assert is_public(ipaddress.ip_address(address))
    named([address])
    assert posted("http://hooks.example/", networks=()) == "address_not_allowed"


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::1]", "localhost"])
def test_this_machine_is_rejected_in_any_spelling(receiver, host):
    there = receiver(host="::1" if host == "[::1]" else "127.0.0.1")
    for scheme in ("https", "http"):
        assert posted(f"{scheme}://{host}:{there.port}/", networks=()) == "address_not_allowed"
    assert there.connections == 0


def test_an_allowed_network_allows_no_other_address(receiver, named):
    there = receiver(host="127.0.0.1")
    assert posted(there.url, networks=(ipaddress.ip_network("127.0.0.2/32"),)) == "address_not_allowed"
    named(["::ffff:127.0.0.1"])
    mapped = (ipaddress.ip_network("127.0.0.1/32"),)
    assert posted(f"http://hooks.example:{there.port}/", networks=mapped) == "address_not_allowed"
    assert there.connections == 0


def test_dns_rebinding_does_not_reach_an_internal_address(receiver, named):
    there = receiver(host="127.0.0.2")
    with socket.create_server(("127.0.0.1", there.port)) as inner:
        asked = named(["127.0.0.2"], ["127.0.0.1"], ["127.0.0.2", "127.0.0.1"])
        url, own = f"http://rebinding.example:{there.port}/", (ipaddress.ip_network("127.0.0.2/32"),)
        assert posted(url, networks=own) == 204
        assert len(asked) == 1
        assert [posted(url, networks=own) for _ in range(2)] == ["address_not_allowed"] * 2
        inner.setblocking(False)
        with pytest.raises(BlockingIOError):
            inner.accept()
    assert there.connections == 1


# Proxies from the environment, for addresses that operators configure


def test_neither_guarded_nor_http_requests_use_a_proxy(receiver, monkeypatch):
    proxy, there = receiver(), receiver(OK)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert posted(there.url) == 200
    assert posted("https://127.0.0.1:1/") == "connection_failed"
    assert fetched(there.url) == b"body"
    assert (proxy.connections, there.connections) == (0, 2)


def test_https_uses_the_proxy_from_the_environment(receiver, authority, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    there = receiver(OK, tls=authority.context("login.example"))
    with tunnel(there.port) as (port, asked):
        monkeypatch.setenv("https_proxy", f"http://user:pass%20word@127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "other.example")
        assert fetched("https://login.example/keys") == b"body"
    first, *headers = asked[0].split("\r\n")
    assert first == "CONNECT login.example:443 HTTP/1.1"
    assert f"Proxy-Authorization: Basic {b64encode(b'user:pass word').decode()}" in headers


@contextlib.contextmanager
def tunnel(port):
    """Run a proxy that forwards one connection to this port; yield the proxy's port and the received request."""
    asked = []

    def serve():
        client, _ = listener.accept()
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            asked.append(client.recv(65_536).decode())
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            with ThreadPoolExecutor() as threads:
                back = threads.submit(copy, server, client)
                copy(client, server)
                back.result()

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as threads:
        serving = threads.submit(serve)
        yield listener.getsockname()[1], asked
        serving.result()


def copy(source, target):
    with contextlib.suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


def test_a_proxy_that_refuses_is_reported(receiver, monkeypatch):
    proxy = receiver(["HTTP/1.0 300 Multiple Choices\r\n\r\n"])
    monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
    with pytest.raises(OutgoingError, match="the proxy answered with HTTP status 300"):
        fetched("https://login.example/keys")


def test_the_proxy_is_bypassed_for_addresses_in_no_proxy(receiver, monkeypatch):
    proxy, there = receiver(["no proxy"]), receiver(["no TLS"])
    monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(OutgoingError, match="SSL"):
        fetched(f"https://127.0.0.1:{there.port}/keys")
    assert (proxy.connections, there.connections) == (0, 1)


def moved(location):
    return [f"HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n"]


def test_a_download_follows_redirects_to_safe_addresses(receiver):
    there = receiver(moved("/newer"), moved("newest?v=1"), OK)
    assert asyncio.run(download(there.url, 60, 100)) == b"body"
    assert [one.first.split()[1] for one in there.requests] == ["/hook", "/newer", "/newest?v=1"]
    assert {one.first.split()[0] for one in there.requests} == {"GET"}


@examples("location", "reason")
def test_a_download_follows_neither_loops_nor_unsafe_redirects(receiver, location, reason):
    there = receiver(moved(location))
    with pytest.raises(OutgoingError, match=reason):
        asyncio.run(download(there.url, 60, 100))
    assert there.connections == (6 if location == "/" else 1)
