"""One attempt to deliver: receivers of every kind, a deadline over all of it, and addresses that are checked."""

import ipaddress
import socket
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from service.hooks.addresses import is_public, resolve
from service.hooks.delivery import MAX_BODY_BYTES, HookClient, parse_retry_after
from tests.service.hooks.receivers import Authority
from tests.tables import tables

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
SECONDS = 0.6
BODY = b'{"type":"job.approved"}'
HEADERS = {"webhook-id": "evt_1"}


def sent(url, client=None, **how):
    client = client or HookClient(LOOPBACK, **{"seconds": 60} | how)
    return client.post(url, HEADERS, BODY, NOW)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


# Receivers


@pytest.mark.parametrize(
    ("script", "status_code", "error"), [row[1:] for row in tables(__file__)["receivers"]],
    ids=[row[0] for row in tables(__file__)["receivers"]],
)  # fmt: skip
def test_what_comes_of_an_attempt(receiver, script, status_code, error):
    there = receiver(list(script))
    patience = 60 if "drip" not in script else 2  # for the headers; the body drips as long
    attempt = sent(there.url, seconds=SECONDS if error == "timed_out" else patience)
    assert attempt[:2] == (status_code, error)
    assert attempt.is_success == (status_code in (200, 204))
    assert there.connections == 1
    assert attempt.ms >= (1_000 * SECONDS if error == "timed_out" else 0)


def test_a_message_is_sent_as_it_is(receiver):
    there = receiver()
    sent(f"{there.url}/a%20b?token=x&y")
    (got,) = there.requests
    assert got.first == "POST /hook/a%20b?token=x&y HTTP/1.1"
    assert got.body == BODY
    assert got.headers == {
        "host": f"127.0.0.1:{there.port}",
        "accept-encoding": "identity",
        "content-length": str(len(BODY)),
        "content-type": "application/json",
        "user-agent": "Traffic-Analytics/1",
        "connection": "close",
        "webhook-id": "evt_1",
    }


def test_of_a_body_no_more_than_4_kib_is_read(receiver):
    there = receiver([f"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n{'x' * MAX_BODY_BYTES}", "hang"])
    assert sent(there.url).is_success


def test_a_receiver_on_ipv6_is_reached(receiver):
    there = receiver(host="::1")
    assert sent(there.url).is_success
    assert there.requests[0].headers["host"] == f"[::1]:{there.port}"


def test_the_first_address_that_answers_is_used(receiver):
    there = receiver(host="127.0.0.3")
    client = HookClient(LOOPBACK, lambda *_: ["127.0.0.2", "::1", "127.0.0.3"])
    assert sent(f"http://hooks.example:{there.port}/", client).is_success
    assert there.requests[0].headers["host"] == f"hooks.example:{there.port}"


def test_a_receiver_that_accepts_no_connection_is_given_up():
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        attempt = sent(f"http://127.0.0.1:{listener.getsockname()[1]}/", seconds=SECONDS)
    assert attempt[:2] == (None, "timed_out")


def test_a_closed_port_is_no_connection():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert sent(f"http://127.0.0.1:{port}/").error == "connection_failed"


def test_name_servers_that_do_not_answer_are_part_of_the_deadline(receiver):
    there = receiver()
    attempt = sent(f"http://slow.example:{there.port}/", HookClient(LOOPBACK, lambda *_: there.is_ending.wait(), 0.2))
    assert attempt[:2] == (None, "timed_out")


@pytest.mark.parametrize("host", ["nobody.invalid", "x" * 64 + ".example", "a..example"])
def test_a_name_without_an_address_is_told(host):
    def resolver(host, port):
        return socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST)

    assert sent(f"https://{host}/", HookClient((), resolver)).error == "name_not_resolved"


# TLS


def test_over_tls_the_name_is_sent_and_the_certificate_checked(receiver, authority, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    there = receiver(tls=authority.context("hooks.example"))
    names = []
    there._tls.sni_callback = lambda _, name, __: names.append(name)
    client = HookClient(LOOPBACK, lambda *_: ["127.0.0.1"])
    assert sent(f"https://hooks.example:{there.port}/", client).status_code == 204
    assert names == ["hooks.example"]
    assert there.requests[0].headers["host"] == f"hooks.example:{there.port}"


@pytest.mark.parametrize("wrong", ["unknown authority", "expired", "other name", "no TLS"])
def test_a_wrong_certificate_is_no_receiver(receiver, authority, monkeypatch, tmp_path, wrong):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    tls = {
        "unknown authority": lambda: Authority(tmp_path).context("hooks.example"),
        "expired": lambda: authority.context("hooks.example", timedelta(days=-1)),
        "other name": lambda: authority.context("other.example"),
        "no TLS": lambda: None,
    }[wrong]()
    there = receiver(["no TLS here"], tls=tls)
    attempt = sent(f"https://hooks.example:{there.port}/", HookClient(LOOPBACK, lambda *_: ["127.0.0.1"]))
    assert attempt[:2] == (None, "tls_failed")
    assert there.requests == []


def test_a_handshake_that_never_ends_is_part_of_the_deadline(receiver):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        attempt = sent(f"https://127.0.0.1:{silent.getsockname()[1]}/", seconds=SECONDS)
    assert attempt[:2] == (None, "timed_out")


# Addresses


@pytest.fixture(scope="module")
def resolved():
    """Sends to a host that has some addresses; with one client, which loads the system's certificates once."""
    found = []
    client = HookClient((), lambda *_: found)

    def resolved(url, addresses):
        found[:] = addresses
        return sent(url, client)

    return resolved


@pytest.mark.parametrize("address", tables(__file__)["forbidden"])
def test_an_address_that_is_not_public_is_refused(resolved, address):
    assert not is_public(ipaddress.ip_address(address))
    for scheme, mixed in product(("https", "http"), ([], ["93.184.216.34"])):
        assert resolved(f"{scheme}://hooks.example/", [*mixed, address]).error == "address_not_allowed"


@pytest.mark.parametrize("address", tables(__file__)["public"])
def test_a_public_address_is_allowed_by_https_only(resolved, address):
    assert is_public(ipaddress.ip_address(address))
    assert resolved("http://hooks.example/", [address]).error == "address_not_allowed"


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::1]", "localhost"])
def test_however_this_machine_is_written_it_is_refused(receiver, host):
    there = receiver(host="::1" if host == "[::1]" else "127.0.0.1")
    for scheme in ("https", "http"):
        assert sent(f"{scheme}://{host}:{there.port}/", HookClient()).error == "address_not_allowed"
    assert there.connections == 0


def test_a_network_of_ones_own_takes_no_other_address(receiver):
    there = receiver(host="127.0.0.1")
    own = HookClient((ipaddress.ip_network("127.0.0.2/32"),))
    assert sent(there.url, own).error == "address_not_allowed"
    mapped = HookClient((ipaddress.ip_network("127.0.0.1/32"),), lambda *_: ["::ffff:127.0.0.1"])
    assert sent(f"http://hooks.example:{there.port}/", mapped).error == "address_not_allowed"
    assert there.connections == 0


def test_a_name_that_means_another_address_a_moment_later_leads_nowhere_else(receiver):
    there = receiver(host="127.0.0.2")
    with socket.create_server(("127.0.0.1", there.port)) as inner:
        answers = [["127.0.0.2"], ["127.0.0.1"], ["127.0.0.2", "127.0.0.1"]]
        client = HookClient((ipaddress.ip_network("127.0.0.2/32"),), lambda *_: answers.pop(0))
        url = f"http://rebinding.example:{there.port}/"
        assert sent(url, client).is_success
        assert len(answers) == 2  # the name was resolved once
        assert sent(url, client).error == "address_not_allowed"
        assert sent(url, client).error == "address_not_allowed"
        inner.setblocking(False)
        with pytest.raises(BlockingIOError):
            inner.accept()
    assert there.connections == 1


def test_proxies_of_the_environment_are_not_used(receiver, monkeypatch):
    proxy, there = receiver(), receiver()
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert sent(there.url).is_success
    assert (proxy.connections, there.connections) == (0, 1)


def test_a_resolver_that_fails_is_not_asked_twice():
    asked = []

    def resolver(*what):
        asked.append(what)
        raise OSError

    with pytest.raises(OSError, match=r"^$"):
        resolve(resolver, "hooks.example", 443, 60)
    assert asked == [("hooks.example", 443)]


# Retry-After


@pytest.mark.parametrize(("text", "seconds"), tables(__file__)["retry_after"])
def test_how_long_a_receiver_wants_to_be_left_alone(text, seconds):
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert parse_retry_after(text, NOW) == expected


def test_the_header_retry_after_is_read(receiver):
    there = receiver(["HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7200\r\n\r\n"])
    assert sent(there.url).retry_after == timedelta(hours=2)
