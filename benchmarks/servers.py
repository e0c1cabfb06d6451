"""Runs servers in separate processes, and sends requests to them."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

TRAFFIC: Final = Path(sys.executable).parent / "traffic"
CONNECTIONS: Final = 32


def key_of(lake: Path, organization: str, traffic: Path = TRAFFIC) -> str:
    """Create an API key, and return it."""
    command = [str(traffic), "keys", "create", "--org", organization, "--name", "bench", "--lake", str(lake)]
    done: subprocess.CompletedProcess[str] = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def most(port: int, path: str, key: str, requests: int) -> dict[str, float]:
    """Return requests per second, counted by wrk if it is installed, otherwise by our own slower driver."""
    return wrk(port, path, key) if shutil.which("wrk") else load(port, path, key, requests)


def load(
    port: int, path: str, key: str, requests: int, connections: int = CONNECTIONS, bodies: Path | None = None
) -> dict[str, float]:
    """Return requests per second and the 99th percentile in ms, for GETs or for POSTs of the bodies in a file."""
    command = [sys.executable, "-m", "benchmarks.load", str(port), path, key, str(requests), str(connections)]
    command += [str(bodies)] if bodies else []
    figures: dict[str, float] = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    return figures


def wrk(port: int, path: str, key: str, seconds: int = 4) -> dict[str, float]:
    """Return requests per second counted by wrk. Every request has its own source address. Raises RuntimeError unless
    every answer has a status 2xx.
    """
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", "-s", str(Path(__file__).parent / "sources.lua")]
    command += ["-H", f"Authorization: Bearer {key}", f"http://127.0.0.1:{port}{path}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    match = re.search(r"Requests/sec:\s+([\d.]+)", output)
    if match is None or re.search(r"Non-2xx|Socket errors", output):
        raise RuntimeError(f"wrk got answers other than 2xx, or lost connections: {output}")
    return {"requests_per_second": float(match[1])}


@contextmanager
def server(lake: Path, traffic: Path = TRAFFIC, **settings: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Run the real server on a lake with these settings, such as TRAFFIC_HOOK_NETWORKS; yield its port and its
    process.
    """
    environ = {**os.environ, "TRAFFIC_TRUSTED_PROXIES": "127.0.0.1", "TRAFFIC_LAKE": str(lake), **settings}
    with _process([str(traffic), "serve", "--port", "0"], environ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.search(r":(\d+)/", line)
        if not match:
            raise SystemExit(f"the server did not start: {line}")
        yield int(match[1]), process


@contextmanager
def program(module: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run a program of the benchmarks; yield its process once it has printed "ready"."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout
        if running.stdout.readline() != "ready\n":
            raise RuntimeError(f"{module} did not start.")
        yield running
    finally:
        running.terminate()
        running.communicate()


@contextmanager
def bare(body: Path) -> Iterator[int]:
    """Serve the bytes of a file on a bare Starlette route; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with _process([sys.executable, "-m", "benchmarks.bare", str(port), str(body)], dict(os.environ)):
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port


@contextmanager
def _process(command: list[str], environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with tempfile.TemporaryFile() as log:  # an operator's log goes to a file, too
        process = subprocess.Popen(command, env=environ, stdout=log, stderr=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
            if process.stderr:
                process.stderr.close()


def get(port: int, path: str, key: str, seconds: float | None = None) -> bytes:
    """Return the body of a response. Raises HTTPError unless the status is 2xx; a timeout raises URLError or
    TimeoutError.
    """
    source = f"10.{time.time_ns() // 1000 % 250}.{time.time_ns() // 250_000 % 250}.1"
    headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": source}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=seconds) as response:
        body: bytes = response.read()
    return body


def resident_mb(pid: int, field: str = "VmRSS") -> float:
    """Return the resident memory of a process in MB; with VmHWM, its peak."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(status.partition(f"{field}:")[2].split()[0]) / 1000
