"""The real server: its signals, ports and prefixes, and a proxy in front of it.

The proxy is a real nginx. With `TRAFFIC_FAULTS=all`, it gets 1,000 POSTs, each after 4.5 to 6 seconds of silence, which
takes about a minute.
"""

import contextlib
import ctypes
import json
import os
import random
import re
import select
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import pytest

from benchmarks.servers import resident_mb
from service.server import connection as limits
from service.server.run import ACCEPT_SECONDS, LARGE_BLOCK, SIGNAL_DEBOUNCE_SECONDS
from tests.support import web_servers
from tests.support.hurried import HURRIED, hurried
from tests.support.sockets import answer_on, request, rest_on

SLOW = b"/analytics/dashboard?start_date=2016-02-01&end_date=2026-03-01"  # 3,682 days, with a line for each
THREADS, BLOCKS = 8, 200  # the number of large and of small blocks that each thread allocates


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def refused(forks, lake, *flags):
    """Return the only line printed by a server that does not start."""
    server = forks.start("serve", "--lake", lake, *flags)
    _, told = server.communicate()
    assert (server.returncode, told.count("\n")) == (2, 1), told
    return told


@pytest.mark.parametrize("flags", [("--port", "70000"), ("--host", "no.such.host.invalid")])
def test_an_invalid_setting_is_reported_in_one_line_with_code_2(tmp_path, forks, flags):
    assert flags[1] in refused(forks, tmp_path / "lake", *flags)


def test_a_port_in_use_is_reported_in_one_line_with_code_2(tmp_path, forks):
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = str(used.getsockname()[1])
        assert port in refused(forks, tmp_path / "lake", "--port", port)


def test_a_second_server_for_a_lake_names_the_first(lake, serving, forks):
    def first_line():
        second = forks.start("serve", "--lake", lake.root, "--port", "0")
        line = second.stderr.readline()
        second.terminate()
        second.communicate()
        return line

    with serving(lake) as server:
        assert f"{lake.root} is already served at {server.address}/. Stop that server first" in first_line()
    assert first_line().startswith(f"Serving {lake.root} at")


@pytest.mark.parametrize(("number", "base"), [(signal.SIGTERM, ""), (signal.SIGINT, "/v1")])
def test_a_signal_ends_the_server_after_its_running_requests(lake, serving, key_of, number, base):
    key = b"Authorization: Bearer " + key_of(lake).encode()
    with serving(lake, "--base-path", f"{base}/", is_installed=not base) as server, connected(server.port) as idle:
        assert server.address.endswith(f":{server.port}{base}")
        with connected(server.port) as connection:
            for path in (b"/healthz", b"/app/sign-in"):  # so that pages are loaded
                for each in (idle, connection):
                    each.sendall(request(base.encode() + path))
                    assert answer_on(each).status == 200
            connection.sendall(request(base.encode() + SLOW, key))
            time.sleep(0.03)
            for _ in range(2):  # like a supervisor and a launcher
                server.process.send_signal(number)
            answer = answer_on(connection)
            assert rest_on(connection) == b""
        assert answer.status == 200
        assert len(json.loads(answer.body)["timeSeries"]) == 3_682
        assert server.process.wait(60) == 0
        told = server.process.stderr.read()
        assert not re.search("Traceback|leaked", told), told
        with pytest.raises(ConnectionRefusedError):
            connected(server.port)


def test_the_host_with_two_colons_serves_ipv4_and_ipv6(lake, serving):
    if not socket.has_dualstack_ipv6():
        pytest.skip("IPv6 is missing: it is off in this kernel or container")
    with serving(lake, "--host", "::", trusted_proxies="127.0.0.1") as server:
        for address in ("127.0.0.1", "::1"):
            with socket.create_connection((address, server.port), timeout=60) as connection:
                connection.sendall(request(b"/healthz", b"X-Forwarded-For: 203.0.113.7"))
                assert answer_on(connection).headers[b"x-ratelimit-remaining"] == b"59"


def report_half(connection, key):
    """Send the beginning of a report of a visit once the server waits for its body."""
    lines = (f"Authorization: Bearer {key}".encode(), b"Content-Length: 14", b"Expect: 100-continue")
    connection.sendall(request(b"/visits", *lines, method=b"POST"))
    assert connection.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(b"{")


def wait_until_refused(port):
    """Wait until a port is closed."""
    with contextlib.suppress(ConnectionRefusedError):
        while True:
            connected(port).close()
            time.sleep(0.01)


def hold_and_free(asked):
    """Once `asked` exists, allocate large and small blocks in threads, free the large ones, and write memory sizes."""
    while not asked.exists():
        time.sleep(0.05)
    before, kept, is_held = resident_mb(os.getpid()), [], threading.Barrier(THREADS + 1)
    bytes(20_000_000)  # after this, glibc would keep blocks up to its size

    def work():
        large = []
        for _ in range(BLOCKS):
            large.append(b"x" * LARGE_BLOCK)
            kept.append(b"x" * 1_000)
        is_held.wait()
        is_held.wait()

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    is_held.wait()
    held = resident_mb(os.getpid()) - before
    library = ctypes.CDLL(None)  # glibc writes into the file what its heaps contain
    library.fopen.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(library.fopen(str(asked).encode(), b"w"))
    library.malloc_info(0, stream)
    library.fclose(stream)
    is_held.wait()
    for thread in threads:
        thread.join()
    staged = asked.with_suffix(".staged")
    staged.write_text(f"{held} {resident_mb(os.getpid()) - before}")
    staged.rename(asked.with_suffix(".told"))


def test_memory_freed_by_threads_is_returned_to_the_system(lake, serving, tmp_path):
    """Each large block is allocated from the system separately, regardless of how much memory was freed."""
    asked, told = tmp_path / "asked", tmp_path / "asked.told"
    code = f"""
import threading; from pathlib import Path; from tests.service.server.test_run import hold_and_free
threading.Thread(target=hold_and_free, args=[Path({str(asked)!r})], daemon=True).start()
"""
    with serving(lake, before=code):
        asked.touch()
        end = time.monotonic() + 60
        while not told.exists():
            assert time.monotonic() < end, "the threads wrote no result"
            time.sleep(0.05)
    held, left = map(float, told.read_text().split())
    assert left < held / 4
    assert int(re.findall(r'type="mmap" count="(\d+)"', asked.read_text("ascii"))[-1]) > THREADS * BLOCKS / 2


def test_a_second_signal_ends_the_server_immediately(lake, serving, key_of):
    with serving(lake) as server, connected(server.port) as connection:
        report_half(connection, key_of(lake))
        server.process.send_signal(signal.SIGTERM)
        wait_until_refused(server.port)
        time.sleep(2 * SIGNAL_DEBOUNCE_SECONDS)
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(5) == -signal.SIGTERM


def test_the_monitor_port_outlives_the_main_port(lake, serving, key_of):
    with socket.create_server(("127.0.0.1", 0)) as free:
        monitor = free.getsockname()[1]

    def asked(path, port=monitor):
        with connected(port) as connection:
            connection.sendall(request(path, b"Connection: close"))
            return answer_on(connection)

    with serving(lake, monitor_port=monitor) as server:
        with connected(server.port) as slow, connected(monitor) as idle:
            assert [asked(b"/healthz", port).status for port in (server.port, monitor)] == [200, 200]
            report_half(slow, key_of(lake))
            server.process.send_signal(signal.SIGTERM)
            wait_until_refused(server.port)
            while b"\ntraffic_connections 1.0\n" not in (numbers := asked(b"/metrics")).body:
                assert numbers.status == 200
            time.sleep(2 * ACCEPT_SECONDS)  # until then connections are kept
            assert server.process.poll() is None
            slow.sendall(b'"path": "/x"}')
            status, headers, body = answer_on(slow)
            assert (status, headers[b"connection"], json.loads(body)["accepted"]) == (202, b"close", 1)
            assert rest_on(idle) == b""
        assert server.process.wait(10) == 0
        assert "Traceback" not in server.process.stderr.read()
        with pytest.raises(ConnectionRefusedError):
            connected(monitor)


# A proxy keeps idle connections, and a POST on such a connection is answered

IS_LONG = os.environ.get("TRAFFIC_FAULTS") == "all"
CLIENTS, POSTS, PAUSES, DEADLINES = (100, 10, (4.5, 6.0), {}) if IS_LONG else (12, 4, (0.4, 1.0), HURRIED)
UPSTREAM = "upstream service { server 127.0.0.1:%d; keepalive 128; }"
"""A pool of idle connections, which nginx closes after 60 s."""
PASS = """
    location / {
        proxy_pass http://service;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header X-Forwarded-For $remote_addr;
    }
"""


def peers_of(port):
    """Return the ports of the clients connected to a port of the loopback interface."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {fields[2] for fields in lines if fields[1].endswith(f":{port:04X}") and fields[3] == "01"}


class Client:
    """A client with an address of its own that sends visits to the proxy, with pauses, on one connection."""

    def __init__(self, number, port, key):
        self.connection = HTTPConnection("127.0.0.1", port, timeout=120, source_address=(f"127.8.0.{number}", 0))
        self._headers = {"Authorization": f"Bearer {key}"}
        self._pauses = random.Random(number)

    def post(self, pauses=(0, 0)):
        """Wait for a while, then send a visit; return the status."""
        time.sleep(self._pauses.uniform(*pauses))
        self.connection.request("POST", "/visits", b'{"path":"/x"}', self._headers)
        with self.connection.getresponse() as answer:
            answer.read()
            return answer.status


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists connections in /proc")
def test_posts_from_nginx_on_idle_connections_are_answered(lake, serving, key_of, tmp_path, tell):
    key = key_of(lake)
    with (
        hurried(serving, lake, proxies="127.0.0.1", **DEADLINES) as (service, _),
        web_servers.serving("nginx", tmp_path, PASS, UPSTREAM % service) as port,
    ):
        clients = [Client(number, port, key) for number in range(1, CLIENTS + 1)]
        with ThreadPoolExecutor(CLIENTS) as threads:
            assert [*threads.map(Client.post, clients)] == [202] * CLIENTS
            pool = peers_of(service)
            found = threads.map(lambda client: [client.post(PAUSES) for _ in range(POSTS)], clients)
            statuses = [status for several in found for status in several]
        kept = pool & peers_of(service)
        for client in clients:
            client.connection.close()
    tell(posts=len(statuses), errors=len(statuses) - statuses.count(202), pooled=len(pool), kept=len(kept))
    assert set(statuses) == {202}
    assert kept == pool


def test_an_idle_connection_from_a_proxy_is_kept_longer(lake, serving):
    assert limits.PROXY_IDLE_TIMEOUT_SECONDS > 60 > limits.IDLE_TIMEOUT_SECONDS
    with hurried(serving, lake, proxies="127.8.1.1", **HURRIED | {"PROXY_IDLE_TIMEOUT_SECONDS": 3.0}) as (port, _):
        proxy, other = (
            socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
            for address in ("127.8.1.1", "127.8.1.2")
        )
        with proxy, other:
            assert other.recv(1) == b""  # closed because it was silent
            assert select.select([proxy], [], [], 0)[0] == []  # still open, and nothing was sent
            assert proxy.recv(1) == b""  # closed later
