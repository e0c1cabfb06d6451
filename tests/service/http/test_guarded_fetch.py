"""Asking an address that may be slow or hostile: limits of time and size, no redirects, the proxy that is set."""

import asyncio
import contextlib
import re
import socket
import threading
from base64 import b64encode

import pytest

from service.http import guarded_fetch
from service.http.guarded_fetch import FetchError, fetch, fetch_in_background


@pytest.fixture
def server():
    """Makes servers that send one connection some bytes, and keep it open or not; they note what was asked."""
    ends, threads = threading.Event(), {}

    def server(answer, stays_open=False):
        listener, asked = socket.create_server(("127.0.0.1", 0)), []

        def serve():
            with listener:
                connection, _ = listener.accept()
                with connection:
                    request = connection.recv(65_536).decode("latin-1")
                    if ends.is_set():  # nobody asked
                        return
                    head, _, body = request.partition("\r\n\r\n")
                    length = re.search(r"Content-Length: (\d+)", head)
                    missing = int(length[1]) - len(body) if length else 0  # the body may come with the head, or later
                    if missing:
                        request += connection.recv(missing, socket.MSG_WAITALL).decode("latin-1")
                    asked.append(request)
                    connection.sendall(answer)
                    if stays_open:
                        ends.wait(60)

        address = listener.getsockname()
        threads[address] = threading.Thread(target=serve)
        threads[address].start()
        return f"127.0.0.1:{address[1]}", asked

    yield server
    ends.set()
    for address, thread in threads.items():
        with contextlib.suppress(OSError):  # it may have served its one connection
            socket.create_connection(address).close()
        thread.join()


def ok(body):
    return b"HTTP/1.0 200 OK\r\n\r\n" + body


@pytest.mark.parametrize(
    ("path", "target"), [("", "/"), ("/keys", "/keys"), ("/keys?a=b&c", "/keys?a=b&c"), ("/a#b", "/a")]
)
def test_the_body_of_an_address_is_read(server, path, target):
    host, asked = server(ok(b"body"))
    assert fetch(f"http://{host}{path}", 60, 4) == b"body"
    first, *headers = asked[0].split("\r\n")
    assert first == f"GET {target} HTTP/1.1"
    assert f"Host: {host}" in headers


def test_a_form_is_posted_with_the_headers_that_are_given(server):
    host, asked = server(ok(b"body"))
    form = {"code": "a b&c=d", "name": "ä"}
    assert fetch(f"http://{host}/token", 60, 4, form, {"Authorization": "Basic eDp5"}) == b"body"
    head, _, body = asked[0].partition("\r\n\r\n")
    first, *headers = head.split("\r\n")
    assert first == "POST /token HTTP/1.1"
    assert {
        "Content-Type: application/x-www-form-urlencoded", "Authorization: Basic eDp5", f"Content-Length: {len(body)}"
    } <= set(headers)  # fmt: skip
    assert body == "code=a+b%26c%3Dd&name=%C3%A4"


def test_in_the_background_an_answer_or_its_failure_is_awaited(server):
    host, _ = server(ok(b"body"))
    assert asyncio.run(fetch_in_background(f"http://{host}/", 60, 4)) == b"body"
    host, _ = server(b"HTTP/1.0 400 Bad Request\r\n\r\n")
    with pytest.raises(FetchError, match="HTTP status 400") as refused:
        asyncio.run(fetch_in_background(f"http://{host}/", 60, 4, {}))
    assert refused.value.status == 400


def test_a_resolver_that_does_not_answer_is_not_waited_for(monkeypatch):
    ends = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ends.wait(60) and [])
    with pytest.raises(FetchError, match=r"^no complete answer within 0\.1 s$"):
        asyncio.run(fetch_in_background("http://login.example/", 0.1, 4))
    ends.set()


def test_in_the_background_only_so_many_addresses_are_asked_at_a_time(server, monkeypatch):
    monkeypatch.setattr(guarded_fetch, "_slots", threading.BoundedSemaphore(1))
    host, _ = server(ok(b"bo"), stays_open=True)
    other, _ = server(ok(b"body"))

    async def together():
        first = asyncio.create_task(fetch_in_background(f"http://{host}/", 0.5, 4))
        await asyncio.sleep(0)
        with pytest.raises(FetchError, match="under way"):
            await fetch_in_background(f"http://{other}/", 60, 4)
        with pytest.raises(FetchError, match="no complete answer"):
            await first
        return await fetch_in_background(f"http://{other}/", 60, 4)

    assert asyncio.run(together()) == b"body"


def test_a_byte_too_many_is_refused(server):
    host, _ = server(ok(b"body!"))
    with pytest.raises(FetchError, match="larger than 4 bytes"):
        fetch(f"http://{host}/", 60, 4)


@pytest.mark.parametrize("status", ["201 Created", "204 No Content", "302 Found", "404 Not Found", "500 Oops"])
def test_only_status_200_is_an_answer(server, status):
    host, _ = server(f"HTTP/1.0 {status}\r\nLocation: http://127.0.0.1:9/\r\n\r\nbody".encode())
    with pytest.raises(FetchError, match=f"^HTTP status {status[:3]}$"):
        fetch(f"http://{host}/", 60, 100)


def test_a_body_that_does_not_end_in_time_is_no_answer_even_when_it_looks_whole(server):
    host, _ = server(ok(b'{"keys": []}'), stays_open=True)
    with pytest.raises(FetchError, match=r"^no complete answer within 0\.5 s$"):
        fetch(f"http://{host}/", 0.5, 100)


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/", "http://[::1/", "http://127.0.0.1/a b"])
def test_what_is_not_an_address_fails_in_the_same_way(url):
    with pytest.raises(FetchError):
        fetch(url, 60, 100)


def test_an_https_address_is_reached_through_the_proxy_of_the_environment(server, monkeypatch):
    proxy, asked = server(b"HTTP/1.0 502 Bad Gateway\r\n\r\n")
    monkeypatch.setenv("https_proxy", f"http://user:pass%20word@{proxy}")
    monkeypatch.setenv("no_proxy", "other.example")
    with pytest.raises(FetchError, match="Tunnel connection failed: 502"):
        fetch("https://login.example/keys", 60, 100)
    first, *headers = asked[0].split("\r\n")
    assert first.startswith("CONNECT login.example:443 ")
    assert f"Proxy-Authorization: Basic {b64encode(b'user:pass word').decode()}" in headers


def test_an_https_address_of_no_proxy_is_reached_without(server, monkeypatch):
    host, asked = server(b"no TLS")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(FetchError, match="SSL"):
        fetch(f"https://{host}/keys", 60, 100)
    assert len(asked) == 1
