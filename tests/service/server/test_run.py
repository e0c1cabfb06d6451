"""The real server on a real socket: bytes that are not a request, signals, ports and prefixes."""

import contextlib
import itertools
import json
import re
import signal
import socket
import subprocess
import threading
import time
from datetime import UTC, datetime

import httpx2
import pytest

from service.server.run import ACCEPT_SECONDS, SIGNAL_DEBOUNCE_SECONDS
from tests.support.forks import PROGRAM
from tests.support.visits import land, visit

FOUR = {b"x-ratelimit-limit", b"x-ratelimit-remaining", b"x-ratelimit-reset", b"retry-after"}
SOURCES = itertools.count(1)
SLOW = "/analytics/dashboard?start_date=2016-02-01&end_date=2026-03-01"  # all of 3,682 days, with a line for each


@pytest.fixture(scope="module")
def shared(shared_lake, serving, key_of):
    """A server, and the headers of a caller from a source that a test chooses."""
    land(shared_lake, "acme", [visit(visited_at=datetime.now(UTC).replace(tzinfo=None))])
    with serving(shared_lake, is_installed=True, trusted_proxies="127.0.0.1") as server:
        yield server, key_of(shared_lake)


@pytest.fixture
def ask(shared):
    """Asks over a connection of its own; each test is a source of its own."""
    server, key = shared
    headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": f"2001:db8:0:{next(SOURCES):x}::1"}
    with httpx2.Client(base_url=server.address, headers=headers, trust_env=False, verify=False, timeout=60) as client:
        yield client


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def received(connection):
    """Everything that comes until the server closes."""
    return b"".join(iter(lambda: connection.recv(1 << 20), b""))


def exchange(port, sent):
    with connected(port) as connection:
        connection.sendall(sent)
        return received(connection)


def read(answer):
    """Status, headers and body of the first answer in some bytes."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    pairs = [tuple(line.split(b": ", 1)) for line in lines]
    headers = {name.lower(): value for name, value in pairs}
    assert len(headers) == len(pairs)
    return int(first.split()[1]), headers, rest[: int(headers[b"content-length"])]


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
        b"get /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x00" * 100,
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=lambda sent: repr(sent[:30]),
)
def test_bytes_that_are_not_a_request_are_answered_in_json_with_the_four_headers(shared, sent):
    status, headers, body = read(exchange(shared[0].port, sent))
    assert status in (400, 401)
    assert headers[b"content-type"] == b"application/json"
    assert headers.keys() >= FOUR
    assert list(json.loads(body))[:2] == ["error", "message"]


def test_garbage_counts_for_its_source(lake, serving):
    with serving(lake) as server:
        answers = [read(exchange(server.port, b"nonsense\r\n\r\n")) for _ in range(62)]
        assert [status for status, *_ in answers] == [400] * 60 + [429] * 2
        assert [int(headers[b"x-ratelimit-remaining"]) for _, headers, _ in answers[:60]] == [*range(59, -1, -1)]
        assert json.loads(answers[-1][2])["limit"] == 60
        status, headers, _ = read(
            exchange(server.port, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        )
        assert (status, headers[b"content-type"]) == (429, b"application/json")


def test_a_real_answer_has_the_four_headers_and_names_no_program(ask):
    response = ask.get("/analytics/traffic-overview")
    assert response.json()["total_visits"] == 1
    assert {name.encode() for name in response.headers} >= FOUR
    assert "server" not in response.headers


def test_head_gives_the_headers_of_get_and_no_body(ask):
    head, get = ask.head("/analytics/devices"), ask.get("/analytics/devices")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(get.content))
    assert ask.get("/healthz").json() == {"status": "ok"}  # the connection is still in step


def test_errors_are_json_on_the_wire_too(ask):
    for method, path, status in [
        ("GET", "/nothing", 404),
        ("GET", "/jobs/", 404),
        ("PUT", "/jobs", 405),
        ("BREW", "/jobs", 400),
        ("GET", "/analytics/devices?range=x", 400),
        ("GET", "/%2e%2e/%00?%00", 404),
    ]:
        response = ask.request(method, path)
        assert response.status_code == status, path
        assert response.headers["content-type"] == "application/json"
        assert list(response.json()) == ["error", "message"]
        assert {name.encode() for name in response.headers} >= FOUR


def test_a_websocket_is_answered_as_the_request_it_is(shared, ask):
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "eA==",
    }
    assert ask.get("/healthz", headers=upgrade).status_code == 200


def test_requests_in_one_packet_are_answered_in_order(shared):
    paths = (b"/healthz", b"/nothing", b"/openapi.json")
    source = b"X-Forwarded-For: 203.0.113.78\r\n"
    sent = b"".join(b"GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (path, source) for path in paths[:-1])
    sent += b"GET %s HTTP/1.1\r\nHost: x\r\n%sConnection: close\r\n\r\n" % (paths[-1], source)
    answer = exchange(shared[0].port, sent)
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"401", b"200"]


def test_a_port_in_use_is_one_line_and_exit_code_2(shared, tmp_path):
    command = [PROGRAM, "serve", "--port", str(shared[0].port), "--lake", tmp_path / "lake"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert str(shared[0].port) in ended.stderr


@pytest.mark.parametrize("flags", [("--port", "70000"), ("--host", "no.such.host.invalid")])
def test_a_bad_setting_is_one_line_and_exit_code_2(tmp_path, flags):
    command = [PROGRAM, "serve", "--lake", tmp_path / "lake", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1), ended.stderr


@pytest.mark.parametrize(("number", "base"), [(signal.SIGTERM, ""), (signal.SIGINT, "/v1")])
def test_a_signal_lets_the_request_under_way_be_answered_and_ends_with_0(lake, serving, key_of, number, base):
    key = key_of(lake).encode()
    with serving(lake, "--base-path", f"{base}/", is_installed=True) as server, connected(server.port) as idle:
        assert server.address.endswith(f":{server.port}{base}")
        with connected(server.port) as connection:
            for each in (idle, connection):
                each.sendall(b"GET %s/healthz HTTP/1.1\r\nHost: x\r\n\r\n" % base.encode())
                assert each.recv(65_536).startswith(b"HTTP/1.1 200")
            idle.sendall(b"GET %s/app/sign-in HTTP/1.1\r\nHost: x\r\n\r\n" % base.encode())  # so that pages are loaded
            assert idle.recv(65_536).startswith(b"HTTP/1.1 200")
            path = f"{base}{SLOW}".encode()
            connection.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" % (path, key))
            time.sleep(0.03)
            for _ in range(2):  # as a supervisor and a launcher send it
                server.process.send_signal(number)
            status, _, body = read(received(connection))
        assert status == 200
        assert len(json.loads(body)["timeSeries"]) == 3_682
        assert server.process.wait(60) == 0
        assert "Traceback" not in server.process.stderr.read()
        with pytest.raises(ConnectionRefusedError):
            connected(server.port)


def report_half(connection, key):
    """Send the beginning of a report, once the server waits for it."""
    head = (
        b"POST /visits HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 14\r\n"
        b"Expect: 100-continue\r\n\r\n"
    )
    connection.sendall(head % key.encode())
    told = b""
    while not told.endswith(b"\r\n\r\n"):
        told += (piece := connection.recv(1))
        assert piece, told
    assert told == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(b"{")


def wait_until_refused(port):
    """Wait until nobody listens on a port."""
    with contextlib.suppress(ConnectionRefusedError):
        while True:
            connected(port).close()
            time.sleep(0.01)


def test_a_second_signal_ends_at_once_whoever_waits(lake, serving, key_of):
    with serving(lake) as server, connected(server.port) as connection:
        report_half(connection, key_of(lake))
        server.process.send_signal(signal.SIGTERM)
        wait_until_refused(server.port)
        time.sleep(2 * SIGNAL_DEBOUNCE_SECONDS)
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(5) == -signal.SIGTERM


def test_a_second_port_answers_as_long_as_the_first_and_a_little_longer(lake, serving, key_of):
    head = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as free:
        monitor = free.getsockname()[1]
    with serving(lake, monitor_port=monitor) as server:
        with connected(server.port) as slow, connected(monitor) as idle:
            for port in (server.port, monitor):
                assert read(exchange(port, head % b"/healthz"))[0] == 200
            report_half(slow, key_of(lake))
            server.process.send_signal(signal.SIGTERM)
            wait_until_refused(server.port)
            while b"\ntraffic_connections 1.0\n" not in (numbers := exchange(monitor, head % b"/metrics")):
                assert numbers.startswith(b"HTTP/1.1 200")
            time.sleep(2 * ACCEPT_SECONDS)  # until then connections are kept
            assert server.process.poll() is None
            slow.sendall(b'"path": "/x"}')
            status, headers, body = read(received(slow))
            assert (status, headers[b"connection"], json.loads(body)["accepted"]) == (202, b"close", 1)
            assert received(idle) == b""
        assert server.process.wait(10) == 0
        assert "Traceback" not in server.process.stderr.read()
        with pytest.raises(ConnectionRefusedError):
            connected(monitor)


def test_many_callers_at_once_are_all_answered(shared):
    server, key = shared
    found = []

    def ask(number):
        headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": f"203.0.113.{number}"}
        with httpx2.Client(
            base_url=server.address, headers=headers, trust_env=False, verify=False, timeout=60
        ) as client:
            found.extend(client.get("/analytics/dashboard").status_code for _ in range(10))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 80
