"""A response sent before its request's body has arrived ends the connection: the rest is never read as a request.

Otherwise the rest of the body would swallow the next request, which a proxy may send for another client.
"""

import json

import pytest

from tests.support.hurried import hurried
from tests.support.sockets import Client, answer_on, answers_in, request, rest_on

NEXT = request(b"/healthz")
LENGTH, CHUNKS = b"Content-Length: 100000", b"Transfer-Encoding: chunked"
ANONYMOUS, EXPECT = b"Authorization: Bearer none", b"Expect: 100-continue"
EARLY = [
    (401, b"POST", b"/visits", (ANONYMOUS,)),
    (401, b"POST", b"/visits", (ANONYMOUS, EXPECT)),
    (401, b"HEAD", b"/analytics/devices", (ANONYMOUS,)),
    (404, b"POST", b"/nothing", ()),
    (405, b"PUT", b"/visits", ()),
    (400, b"GET", b"/analytics/devices", ()),
    (400, b"GET", b"/analytics/devices", (EXPECT,)),
    (400, b"POST", b"/visits", (b"Content-Encoding: gzip",)),
    (403, b"POST", b"/app/sign-in", (b"Origin: https://evil.example",)),
    (303, b"GET", b"/app/nothing", ()),
    (200, b"GET", b"/app/sign-in", ()),
    (200, b"HEAD", b"/healthz", ()),
]
"""Requests that are answered before their bodies have arrived: status, method, path, headers."""


@pytest.fixture(scope="module")
def asker(shared_lake, serving, key_of):
    """A client in the place of a proxy; its server discards the rest of a body for longer than a test waits."""
    with hurried(serving, shared_lake, proxies="127.0.0.1", LINGER_SECONDS=600) as (port, _):
        yield Client(port, key_of(shared_lake))


def rest_after(connection, *sent):
    """Send more; return everything that the server sends after that."""
    for piece in sent:
        connection.sendall(piece)
    return rest_on(connection)


def begun_body(framing):
    return b"2000\r\n" + b"[" * 10 if framing is CHUNKS else b"[" * 10


@pytest.mark.parametrize("framing", [LENGTH, CHUNKS], ids=["length", "chunks"])
@pytest.mark.parametrize(("status", "method", "path", "lines"), EARLY)
def test_an_early_response_closes_the_connection(asker, status, method, path, lines, framing):
    with asker.connected() as connection:
        connection.sendall(asker.request(path, *lines, framing, method=method) + begun_body(framing))
        answer = answer_on(connection, has_body=method != b"HEAD")
        assert (answer.status, answer.headers.get(b"connection")) == (status, b"close")
        assert rest_after(connection, NEXT, b"[" * 100_000, NEXT) == b""


def test_a_rate_limited_request_with_a_body_ends_the_connection(asker):
    with asker.connected() as connection:
        for _ in range(60):
            connection.sendall(asker.request(b"/nothing", source=0))
            assert answer_on(connection).status == 404
        connection.sendall(asker.request(b"/visits", LENGTH, method=b"POST", source=0) + b"[")
        answer = answer_on(connection)
        assert (answer.status, answer.headers.get(b"connection")) == (429, b"close")
        assert rest_after(connection, NEXT) == b""


def test_a_body_above_the_limit_closes_the_connection(asker):
    with asker.connected() as connection:
        connection.sendall(asker.request(b"/visits", b"Content-Length: %d" % (8 << 20), method=b"POST"))
        connection.sendall(b"[" * (6 << 20))
        answer = answer_on(connection)
        assert (answer.status, answer.headers.get(b"connection")) == (413, b"close")
        assert rest_after(connection, NEXT) == b""


def test_a_pipelined_request_after_an_unread_body_is_not_read(asker):
    ready, early = asker.request(b"/healthz"), asker.request(b"/visits", ANONYMOUS, LENGTH, method=b"POST")
    with asker.connected() as connection:
        answers = answers_in(rest_after(connection, ready + early + NEXT, NEXT * 50))
    assert [answer.status for answer in answers] == [200, 401]


@pytest.mark.parametrize(("status", "method", "path", "lines"), [case for case in EARLY if EXPECT not in case[3]])
def test_a_body_that_has_arrived_keeps_the_connection(asker, status, method, path, lines):
    with asker.connected() as connection:
        for _ in range(2):
            connection.sendall(asker.request(path, *lines, b"Content-Length: 2", method=method) + b"[]")
            answer = answer_on(connection, has_body=method != b"HEAD")
            assert (answer.status, answer.headers.get(b"connection")) == (status, None)
        connection.sendall(asker.request(b"/visits", b"Content-Length: 13", method=b"POST") + b'{"path":"/x"}')
        assert json.loads(answer_on(connection).body)["accepted"] == 1
