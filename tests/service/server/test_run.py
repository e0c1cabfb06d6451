"""The real server: signals, ports and prefixes."""

import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import threading
import time

import pytest

from benchmarks.servers import resident_mb
from service.server.run import ACCEPT_SECONDS, LARGE_BLOCK, SIGNAL_DEBOUNCE_SECONDS
from tests.support.sockets import answer_on, request, rest_on

SLOW = b"/analytics/dashboard?start_date=2016-02-01&end_date=2026-03-01"  # all of 3,682 days, with a line for each
THREADS, BLOCKS = 8, 200  # large and small blocks of each thread


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def test_a_bad_setting_or_a_port_in_use_is_one_line_and_exit_code_2(tmp_path, forks):
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = str(used.getsockname()[1])
        for flags in (("--port", "70000"), ("--host", "no.such.host.invalid"), ("--port", port)):
            server = forks.start("serve", "--lake", tmp_path / "lake", *flags)
            _, told = server.communicate()
            assert (server.returncode, told.count("\n")) == (2, 1), told
    assert port in told


@pytest.mark.parametrize(("number", "base"), [(signal.SIGTERM, ""), (signal.SIGINT, "/v1")])
def test_a_signal_lets_the_request_under_way_be_answered_and_ends_with_0(lake, serving, key_of, number, base):
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
            for _ in range(2):  # as a supervisor and a launcher send it
                server.process.send_signal(number)
            answer = answer_on(connection)
            assert rest_on(connection) == b""
        assert answer.status == 200
        assert len(json.loads(answer.body)["timeSeries"]) == 3_682
        assert server.process.wait(60) == 0
        assert "Traceback" not in server.process.stderr.read()
        with pytest.raises(ConnectionRefusedError):
            connected(server.port)


def report_half(connection, key):
    """Send the beginning of a report, once the server waits for it."""
    lines = (f"Authorization: Bearer {key}".encode(), b"Content-Length: 14", b"Expect: 100-continue")
    connection.sendall(request(b"/visits", *lines, method=b"POST"))
    assert connection.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(b"{")


def wait_until_refused(port):
    """Wait until nobody listens on a port."""
    with contextlib.suppress(ConnectionRefusedError):
        while True:
            connected(port).close()
            time.sleep(0.01)


def hold_and_free(asked):
    """Once the file `asked` is there: hold large and small blocks in threads, free the large ones, and tell of it."""
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
    library = ctypes.CDLL(None)  # glibc writes into the file what its heaps consist of
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


def test_memory_that_threads_freed_goes_back_to_the_system(lake, serving, tmp_path):
    """Large blocks are asked of the system one by one, whatever was freed before."""
    asked, told = tmp_path / "asked", tmp_path / "asked.told"
    code = f"""
import threading; from pathlib import Path; from tests.service.server.test_run import hold_and_free
threading.Thread(target=hold_and_free, args=[Path({str(asked)!r})], daemon=True).start()
"""
    with serving(lake, before=code):
        asked.touch()
        end = time.monotonic() + 60
        while not told.exists():
            assert time.monotonic() < end, "the threads ended without a word"
            time.sleep(0.05)
    held, left = map(float, told.read_text().split())
    assert left < held / 4
    assert int(re.findall(r'type="mmap" count="(\d+)"', asked.read_text("ascii"))[-1]) > THREADS * BLOCKS / 2


def test_a_second_signal_ends_at_once_despite_waiting_requests(lake, serving, key_of):
    with serving(lake) as server, connected(server.port) as connection:
        report_half(connection, key_of(lake))
        server.process.send_signal(signal.SIGTERM)
        wait_until_refused(server.port)
        time.sleep(2 * SIGNAL_DEBOUNCE_SECONDS)
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(5) == -signal.SIGTERM


def test_a_second_port_answers_as_long_as_the_first_and_a_little_longer(lake, serving, key_of):
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
