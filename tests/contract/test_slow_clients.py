"""Slow attackers are disconnected in time; slow legitimate clients and all others are served.

By default, 300 slow connections are tried with shorter deadlines; with `TRAFFIC_FAULTS=all`, 2,000 with the real ones.
"""

import json
import os
import resource
import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

import pytest

from service.server import connection as limits
from tests.support.hurried import HURRIED, hurried
from tests.support.sockets import answer_on, answers_in, request, rest_on
from tests.support.visits import land, visit

IS_LONG = os.environ.get("TRAFFIC_FAULTS") == "all"
SLOW_CONNECTIONS = 2_000 if IS_LONG else 300
DEADLINES = {
    "IDLE_TIMEOUT_SECONDS": 3.0,
    "HEADER_TIMEOUT_SECONDS": 3.0,
    "BODY_IDLE_TIMEOUT_SECONDS": 3.0,
    "WRITE_TIMEOUT_SECONDS": 3.5,
}
if IS_LONG:
    DEADLINES = {name: vars(limits)[name] for name in DEADLINES}
PATIENCE = 5 * max(DEADLINES.values())  # seconds, for a busy machine
LARGE = b"/analytics/time-series?start_date=1926-03-01&end_date=2026-03-01"  # 36,526 days, with a line for each
QUICK = b"/analytics/devices"
HONEST = 60
OPEN_STATES = ("01", "08")  # ESTABLISHED and CLOSE_WAIT: the server has not closed
ROW = b'{"path":"/x"}\n'
CHUNKED = b"Transfer-Encoding: chunked"


@pytest.fixture
def filled(lake, key_of):
    """A lake with a visit today, and the header that authorizes requests to it."""
    land(lake, "acme", [visit(visited_at=datetime.now(UTC).replace(tzinfo=None))])
    return lake, b"Authorization: Bearer " + key_of(lake).encode()


def connected(port, source, receive=0):
    connection = socket.socket()
    if receive:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    connection.settimeout(60)
    connection.bind((source, 0))
    connection.connect(("127.0.0.1", port))
    return connection


def reported(*lines):
    """Return the beginning of a request that reports visits, up to its body."""
    return request(b"/visits", *lines, method=b"POST")


class Honest(threading.Thread):
    """Constantly requests a cached answer from 60 sources in turn, each on one persistent connection."""

    def __init__(self, port, header):
        super().__init__()
        self._connections = [connected(port, f"127.5.0.{number}") for number in range(1, HONEST + 1)]
        self._asked = request(QUICK, header)
        self.asked, self.strange, self.is_done = 0, [], False

    def run(self):
        for connection in cycle(self._connections):
            if self.is_done:
                break
            begun = time.perf_counter()
            try:
                connection.sendall(self._asked)
                status = answer_on(connection).status
                if status != 200:
                    self.strange.append(status)
            except OSError as error:
                self.strange.append(error)
            self.asked += 1
            time.sleep(max(0.0, 0.03 - (time.perf_counter() - begun)))
        for connection in self._connections:
            connection.close()


class Slow:
    """Connections of one kind that send the beginning of a request, then nothing, and read nothing."""

    def __init__(self, port, said, promise, receive=0):
        self._port, self._said, self._receive = port, said, receive
        self.promise = promise
        self.closed = []  # seconds
        self.open = {}  # with their start times, by their own addresses

    def begin(self, source):
        try:
            connection = connected(self._port, source, self._receive)
            connection.sendall(self._said)
        except OSError:  # closed immediately: no slot was free
            self.closed.append(0.0)
            return
        self.open[connection.getsockname()] = connection, time.monotonic()

    def look(self, held):
        """Record which connections the server has closed: those that are not in `held`."""
        for address in self.open.keys() - held:
            connection, begun = self.open.pop(address)
            connection.close()
            self.closed.append(time.monotonic() - begun)


def look(port, kinds):
    """Record which connections the server has closed, from the system's list of sockets: not every close notifies
    clients."""
    with Path("/proc/net/tcp").open() as lines:
        fields = [line.split()[1:4] for line in lines]
    ends = [end for start, end, state in fields[1:] if start.endswith(f":{port:04X}") and state in OPEN_STATES]
    held = {(socket.inet_ntoa(int(end[:8], 16).to_bytes(4, "little")), int(end[9:], 16)) for end in ends}
    for slow in kinds:
        slow.look(held)


def test_slow_clients_are_disconnected_without_affecting_others(filled, serving):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4_096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    lake, header = filled
    body = reported(header, b"Content-Length: 100") + b"[" * 10
    with hurried(serving, lake, **DEADLINES) as (port, _):
        with connected(port, "127.5.1.1") as first:
            for path in (LARGE, QUICK):
                first.sendall(request(path, header))
                assert answer_on(first).status == 200
        honest = Honest(port, header)
        honest.start()
        kinds = {
            "idle": Slow(port, b"", DEADLINES["IDLE_TIMEOUT_SECONDS"]),
            "half a header": Slow(port, request(b"/healthz")[:-2], DEADLINES["HEADER_TIMEOUT_SECONDS"]),
            "half a body": Slow(port, body, DEADLINES["BODY_IDLE_TIMEOUT_SECONDS"]),
            "unread": Slow(port, request(LARGE, header), DEADLINES["WRITE_TIMEOUT_SECONDS"], receive=4_096),
        }
        for number, slow in zip(range(SLOW_CONNECTIONS), cycle(kinds.values()), strict=False):
            slow.begin(f"127.6.0.{1 + number // 4 % 40}")
            if number < SLOW_CONNECTIONS // 2:
                slow.begin("127.6.1.1")
            if number % 20 == 0:
                look(port, kinds.values())
        given_up = time.monotonic() + PATIENCE
        while any(slow.open for slow in kinds.values()) and time.monotonic() < given_up:
            time.sleep(0.1)
            look(port, kinds.values())
        honest.is_done = True
        honest.join()
    for kind, slow in kinds.items():
        assert not slow.open, kind
        assert slow.promise / 2 < max(slow.closed), kind
    assert (honest.asked > HONEST, honest.strange) == (True, [])


@pytest.fixture(scope="module")
def port_and_header(shared_lake, serving, key_of):
    """A server with deadlines of at most a tenth of the real ones, and the header that authorizes requests to it."""
    land(shared_lake, "acme", [visit(visited_at=datetime.now(UTC).replace(tzinfo=None))])
    with hurried(serving, shared_lake, **HURRIED) as (port, _):
        yield port, b"Authorization: Bearer " + key_of(shared_lake).encode()


def trickled(connection, pieces, seconds):
    """Send pieces with pauses until the server responds; return the response."""
    for piece in pieces:
        try:
            connection.sendall(piece)
        except OSError:
            break
        if select.select([connection], [], [], seconds)[0]:
            break
    return rest_on(connection)


@pytest.mark.parametrize(
    ("pieces", "pause", "least", "part"),
    [
        ([bytes([byte]) for byte in request(b"/healthz", b"a: " + b"b" * 1_000)], 0.02, 0.4, "header"),
        *(([reported(b"{key}", framing), *[b"1\r\n[\r\n"] * 1_000], pause, least, "body")
          for framing in (b"Content-Length: 1000", CHUNKED) for pause, least in ((0.1, 1.3), (60, 0.5))),
    ],
    ids=["a header", "a body", "a body that stops", "chunks", "chunks that stop"],
)  # fmt: skip
def test_slow_or_stalled_requests_time_out_and_count_once(port_and_header, pieces, pause, least, part):
    port, key = port_and_header
    with connected(port, f"127.4.{int(10 * least)}.{len(pieces[0])}") as connection:
        begun = time.monotonic()
        told = trickled(connection, [pieces[0].replace(b"{key}", key), *pieces[1:]], pause)
        assert least < time.monotonic() - begun < 30
    (answer,) = answers_in(told)
    assert (answer.status, answer.headers[b"connection"]) == (408, b"close")
    assert answer.headers[b"x-ratelimit-remaining"] == b"59"
    assert json.loads(answer.body)["error"] == f"Timed out waiting for the request's {part}."


def test_timed_out_headers_count_against_their_source(port_and_header):
    with ExitStack() as stack:
        held = [stack.enter_context(connected(port_and_header[0], "127.4.9.9")) for _ in range(62)]
        for connection in held:
            connection.sendall(b"GET /")
        statuses = [answers_in(rest_on(connection))[0].status for connection in held]
    assert sorted(statuses) == [408] * 60 + [429] * 2


def test_a_connection_with_an_unsent_body_is_closed_silently(port_and_header):
    with connected(port_and_header[0], "127.4.0.3") as connection:
        connection.sendall(reported(b"Content-Length: 1000"))
        assert answer_on(connection).status == 401
        assert rest_on(connection) == b""


def test_a_body_sent_after_the_response_is_cut_off(shared_lake, serving):
    with hurried(serving, shared_lake, LINGER_SECONDS=0.2) as (port, _):
        for framing in (b"Content-Length: 1000000", CHUNKED):
            with connected(port, "127.4.0.7") as connection:
                connection.sendall(reported(framing))
                assert answer_on(connection).status == 401
                begun = time.monotonic()
                with suppress(ConnectionResetError):  # a piece in flight when the server closed
                    assert trickled(connection, [b"1\r\n[\r\n"] * 1_000, 0.05) == b""
                assert time.monotonic() - begun < 15


def test_an_idle_connection_is_closed_without_a_response(port_and_header):
    with connected(port_and_header[0], "127.4.0.4") as connection:
        for _ in range(3):
            connection.sendall(request(b"/healthz"))
            assert answer_on(connection).status == 200
            time.sleep(0.3)
        assert rest_on(connection) == b""
    with connected(port_and_header[0], "127.4.0.4") as connection:
        connection.sendall(b"\r\n")
        assert rest_on(connection) == b""


def test_computing_time_does_not_count_as_idle_time(port_and_header):
    """Several long computations run at the same time, so that the slowest takes longer than a client may be idle."""
    port, header = port_and_header
    dashboard = LARGE.replace(b"time-series", b"dashboard")
    longest = HURRIED["IDLE_TIMEOUT_SECONDS"] + 2 * HURRIED["SWEEP_SECONDS"]

    def ask(number):
        with connected(port, f"127.4.8.{1 + number}") as connection:
            # the next request arrives before the response: otherwise this side, if slow, may be idle for too long
            path = dashboard.replace(b"1926", b"%d" % (1926 + number))
            connection.sendall(request(path, header) + request(b"/healthz", b"Connection: close"))
            assert [answer.status for answer in answers_in(rest_on(connection))] == [200, 200]
            return time.monotonic()

    for many in (6, 12, 24, 48):  # on a fast machine, the first responses come too soon
        begun = time.monotonic()
        with ThreadPoolExecutor(many) as callers:  # no client waits for another before it reads
            took = max(callers.map(ask, range(many, 2 * many))) - begun
        if took > longest:
            return
    pytest.fail(f"48 of the largest answers took {took:.1f} s")


def test_a_large_answer_can_be_read_slowly(port_and_header):
    """At 400 kB a second, the first 900 kB of the answer take longer than the time limit for unread responses."""
    port, header = port_and_header
    with connected(port, "127.4.0.5", receive=65_536) as connection:
        connection.sendall(request(LARGE, header, b"Connection: close"))
        told, begun = b"", time.monotonic()
        while piece := connection.recv(20_000):
            told += piece
            time.sleep(0.05 if len(told) < 900_000 else 0)
        took = time.monotonic() - begun
    (answer,) = answers_in(told)
    assert took > HURRIED["WRITE_TIMEOUT_SECONDS"]
    assert len(answer.body) == int(answer.headers[b"content-length"])


def test_slow_clients_do_not_delay_shutdown(filled, serving):
    lake, header = filled
    half = reported(header, b"Content-Length: 100") + b"[" * 10
    with hurried(serving, lake, DRAIN_SECONDS=1) as (port, process), ExitStack() as stack:
        begun = (b"", b"GET /", half, request(b"/healthz")[:-2], request(LARGE, header))
        for number, said in enumerate(begun, 1):
            stack.enter_context(connected(port, f"127.4.7.{number}", receive=4_096)).sendall(said)
        time.sleep(1)
        process.terminate()
        assert process.wait(20) == 0


def test_a_large_body_arrives_over_a_slow_connection(port_and_header):
    """The whole body takes longer than the longest pause allowed within it."""
    port, header = port_and_header
    body = ROW + b" " * ((4 << 20) - len(ROW))
    with connected(port, "127.4.0.6") as connection:
        connection.sendall(reported(header, b"Content-Length: %d" % len(body)))
        begun = time.monotonic()
        for start in range(0, len(body), len(body) // 16):
            connection.sendall(body[start : start + len(body) // 16])
            time.sleep(0.06)
        answer = answer_on(connection)
        assert time.monotonic() - begun > HURRIED["BODY_IDLE_TIMEOUT_SECONDS"]
    assert (answer.status, json.loads(answer.body)["accepted"]) == (202, 1)
