"""The real server's reaction to any bytes on a connection: responses, or one JSON error and a closed connection."""

import itertools
import json
import socket
import time
from contextlib import ExitStack

import pytest

from tests.support.sockets import answers_in, request, rest_on
from tests.support.tables import tables
from tests.support.visits import land, visit

SOURCES = itertools.count(1)
FOUR = {b"x-ratelimit-limit", b"x-ratelimit-remaining", b"x-ratelimit-reset", b"retry-after"}
NO_REQUEST = "Not a valid HTTP request."
NO_HOST = "Exactly one Host header is required."
BAD_HOST = "The Host header is not a valid host."
UPGRADED = "A request with an Upgrade header must not have a body."
TOO_LONG = "The URL is longer than 8 KiB."
TOO_MANY = "There are too many headers, or they are too large."
SLOW = b"/analytics/dashboard?start_date=2016-02-01&end_date=2026-03-%02d"
CLOSE = b"Connection: close"
CHUNKED = b"Transfer-Encoding: chunked"
UPGRADE = (b"Connection: Upgrade", b"Upgrade: h2c")
ROW = b'{"path":"/x","user_agent":"Mozilla/5.0","ip":"203.0.113.9"}\n'


@pytest.fixture(scope="module")
def place(shared_lake, serving, key_of):
    """A server's port and a key. The server must end without having logged problems."""
    land(shared_lake, "acme", [visit()])
    with serving(shared_lake) as server:
        yield server.port, key_of(shared_lake).encode()
        server.process.terminate()
        assert "Traceback" not in server.process.stderr.read()
        assert server.process.wait(60) == 0


@pytest.fixture
def connected(place):
    """Connect from a separate source."""

    def connected(address=""):
        number = next(SOURCES)
        address = address or f"127.7.{number >> 8}.{number & 255}"
        return socket.create_connection(("127.0.0.1", place[0]), timeout=30, source_address=(address, 0))

    return connected


@pytest.fixture
def told(connected):
    """Return all responses to some bytes, each with status, headers and body; the server must then close the
    connection.
    """

    def told(*sent, address=""):
        with connected(address) as connection:
            for piece in sent:
                connection.sendall(piece)
                time.sleep(0.03 if len(sent) > 1 else 0)
            return answers_in(rest_on(connection))

    return told


@pytest.fixture
def post(place):
    """Return the bytes of a request that reports visits."""

    def post(*lines, body=b""):
        return request(b"/visits", b"Authorization: Bearer " + place[1], *lines, method=b"POST") + body

    return post


def fields(count, size):
    """Return this number of headers with this total size, including Host and the four separator bytes of each."""
    each = (size - len("host") - 1 - 4) // (count - 1) - len("a") - 4
    last = size - len("host") - 1 - 4 - (count - 2) * (each + 5) - 5
    return [b"a: " + b"b" * each] * (count - 2) + [b"a: " + b"b" * last]


REFUSED = {
    **{name: (sent.encode("latin-1"), 400, NO_REQUEST) for name, sent in tables(__file__)["NO_REQUESTS"].items()},
    "another protocol's bytes": (b"\x16\x03\x01\x02\x00\x01" * 50, 400, NO_REQUEST),
    "NULs": (b"\0" * 100, 400, NO_REQUEST),
    "an address of 8,193 bytes": (request(b"/" + b"a" * 8_192), 414, TOO_LONG),
    "an address without end": (b"GET /" + b"a" * 100_000, 414, TOO_LONG),
    "101 headers": (request(b"/", *[b"a: b"] * 100), 431, TOO_MANY),
    "headers of 64 KiB and a byte": (request(b"/", *fields(90, 65_537)), 431, TOO_MANY),
    "a header without end": (request(b"/")[:-2] + b"a: " + b"b" * 100_000, 431, TOO_MANY),
    "headers without end": (request(b"/")[:-2] + b"a: b\r\n" * 1_000, 431, TOO_MANY),
    "a header of 2 MB": (request(b"/", b"a: " + b"b" * 2_000_000), 431, TOO_MANY),
    "no host": (request(b"/healthz", host=()), 400, NO_HOST),
    "two hosts": (request(b"/healthz", b"Host: x"), 400, NO_HOST),
    "two hosts in HTTP/1.0": (request(b"/healthz", b"Host: x", version=b"1.0"), 400, NO_HOST),
    "a host that is none": (request(b"/healthz", host=(b"Host: a/b",)), 400, BAD_HOST),
    "a body for another protocol": (request(b"/", *UPGRADE, b"Content-Length: 9", method=b"POST"), 400, UPGRADED),
    "chunks for another protocol": (request(b"/", *UPGRADE, CHUNKED, method=b"POST"), 400, UPGRADED),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_oversized_or_ambiguous_request_ends_its_connection(told, name):
    sent, status, error = REFUSED[name]
    [(found, headers, body)] = told(sent)
    assert (found, json.loads(body)["error"]) == (status, error)
    assert list(json.loads(body)) == ["error", "message"]
    assert (headers[b"content-type"], headers[b"connection"]) == (b"application/json", b"close")
    assert headers.keys() >= {*FOUR, b"date", b"x-request-id", b"x-content-type-options"}
    assert headers[b"x-ratelimit-remaining"] == b"59"


ANSWERED = {
    **{name: (sent.encode("latin-1"), [*told]) for name, (sent, told) in tables(__file__)["ANSWERED"].items()},
    "an address of 8,192 bytes": (request(b"/" + b"a" * 8_191, CLOSE), [401]),
    "100 headers": (request(b"/healthz", CLOSE, *[b"a: b"] * 98), [200]),
    "headers of 64 KiB": (request(b"/healthz", CLOSE, *fields(90, 65_536 - 19)), [200]),
    "sixty at once": (request(b"/healthz") * 59 + request(b"/healthz", CLOSE), [200] * 60),
    "too many at once, each of a source that it makes up": (
        b"".join(request(b"/healthz", b"X-Forwarded-For: 203.0.113.%d" % number) for number in range(200)),
        [200] * 60 + [429] * 6,
    ),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_well_formed_requests_are_answered_in_order(told, name):
    sent, statuses = ANSWERED[name]
    assert [status for status, *_ in told(sent)] == statuses


BODIES = {
    "in one piece": ((b"Content-Length: %d" % len(ROW),), [ROW], [202]),
    "in chunks": ((CHUNKED,), [b"%x\r\n%s\r\n0\r\n\r\n" % (len(ROW), ROW)], [202]),
    "with extensions": ((CHUNKED,), [b'%x;a="b"\r\n%s\r\n0;c\r\n\r\n' % (len(ROW), ROW)], [202]),
    "with words after it": ((CHUNKED,), [b"%x\r\n%s\r\n0\r\nContent-Encoding: x\r\n\r\n" % (len(ROW), ROW)], [202]),
    "after a permission": ((b"Expect: 100-continue", b"Content-Length: %d" % len(ROW)), [ROW], [100, 202]),
    "unasked-for": ((b"Expect: 100-continue", b"Content-Length: %d" % (5 << 20)), [b" " * (5 << 20)], [100, 413]),
    "after odd wishes": ((b"Expect: tea", b"Content-Length: %d" % len(ROW)), [ROW], [202]),
    "with endless words after it": ((CHUNKED,), [b"0\r\na: ", b"b" * 200_000], [431]),
    "with too many words after it": ((CHUNKED,), [b"0\r\n", b"a: b\r\n" * 30_000], [431]),
    "in an encoding that is none": ((b"Transfer-Encoding: xchunked",), [ROW], [400]),
    "in no encoding": ((b"Transfer-Encoding: identity",), [ROW], [400]),
    "in chunks that end in LF": ((CHUNKED,), [b"%x\n%s\n0\n\n" % (len(ROW), ROW)], [400]),
    "in an endless chunk": ((CHUNKED,), [b"f" * 17 + b"\r\n"], [400]),
    "in a chunk longer than it says": ((CHUNKED,), [b"1\r\n%s\r\n0\r\n\r\n" % ROW], [400]),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_accepted_whole_or_rejected_with_one_error(told, post, name):
    lines, pieces, statuses = BODIES[name]
    answers = told(post(CLOSE, *lines), *pieces)
    assert [status for status, *_ in answers] == statuses
    status, headers, body = answers[-1]
    assert headers[b"connection"] == b"close"
    assert headers[b"x-ratelimit-remaining"] == b"59"  # counted once
    assert list(json.loads(body))[:2] == (["accepted", "refused"] if status == 202 else ["error", "message"])


def test_bytes_that_are_not_a_request_count_against_their_source(told):
    answers = [told(b"nonsense\r\n\r\n", address="127.9.9.8")[0] for _ in range(62)]
    assert [answer.status for answer in answers] == [400] * 60 + [429] * 2
    assert [int(answer.headers[b"x-ratelimit-remaining"]) for answer in answers[:60]] == [*range(59, -1, -1)]
    assert [answer.status for answer in told(request(b"/healthz", CLOSE), address="127.9.9.8")] == [429]


def test_a_body_followed_by_garbage_is_still_accepted(told, post):
    sent = post(b"Content-Length: %d" % len(ROW), body=ROW)
    assert [status for status, *_ in told(sent + b"garbage\r\n\r\n")] == [202, 400]


def test_garbage_is_answered_after_earlier_requests(told, place):
    key = b"Authorization: Bearer " + place[1]
    for number, (garbage, status) in enumerate([(b"garbage\r\n\r\n", 400), (request(b"/", *[b"a: b"] * 200), 431)], 1):
        answers = told(request(SLOW % number, key), request(b"/healthz"), garbage)
        assert [status for status, *_ in answers] == [200, 200, status]
        assert len(json.loads(answers[0][2])["timeSeries"]) > 3_600


def test_only_a_few_of_500_pipelined_requests_wait(connected, place):
    """If the first request is slow, the others wait, but at most as many as a source may send."""
    key = b"Authorization: Bearer " + place[1]
    with connected() as connection:
        connection.sendall(request(SLOW % 3, key) + request(b"/nothing") * 500)
        answers = answers_in(rest_on(connection))
    assert [status for status, *_ in answers] == [200] + [401] * 59 + [429] * 6
    assert json.loads(answers[-1][2])["limit"] == 60


def is_let_in(connection):
    """Return whether the server answers a request on a connection, instead of closing it."""
    try:
        connection.sendall(request(b"/healthz"))
        return connection.recv(1) != b""
    except (BrokenPipeError, ConnectionResetError):
        return False


def test_a_source_is_limited_to_64_connections(connected, told):
    with ExitStack() as stack:

        def opened(count):
            return [stack.enter_context(connected("127.9.9.9")) for _ in range(count)]

        held, more = opened(64), opened(10)
        assert [is_let_in(connection) for connection in more] == [False] * 10
        assert all(is_let_in(connection) for connection in held[:3] + held[-3:])
        assert [status for status, *_ in told(request(b"/healthz", CLOSE))] == [200]
        for connection in held[:10]:
            connection.close()
        let_in = 0
        while let_in < 10:  # once the server has noticed the disconnects
            let_in += is_let_in(opened(1)[0])
        assert not is_let_in(opened(1)[0])


def test_a_trusted_proxy_has_no_connection_limit(lake, serving):
    with serving(lake, trusted_proxies="127.0.0.1") as server, ExitStack() as stack:
        held = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 30)) for _ in range(100)]
        for number, connection in enumerate(held):
            connection.sendall(request(b"/healthz", b"X-Forwarded-For: 198.51.100.%d" % number))
        assert all(connection.recv(65_536).startswith(b"HTTP/1.1 200") for connection in held)
