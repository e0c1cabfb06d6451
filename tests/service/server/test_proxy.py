"""A proxy in front: it keeps its idle connections, and a POST that it sends on one of them is answered.

nginx is a real one. `TRAFFIC_FAULTS=all uv run pytest tests/service/server/test_proxy.py` sends 1,000 POSTs, each after
4.5 to 6 seconds of silence, and takes about a minute.
"""

import os
import random
import select
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import pytest

from service.server import connection as limits
from tests.support import web_servers
from tests.support.hurried import HURRIED, hurried

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
    """The ports of those who are connected to a port of the loopback interface."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {fields[2] for fields in lines if fields[1].endswith(f":{port:04X}") and fields[3] == "01"}


class Client:
    """Somebody with an address of his own, who sends a visit now and then on one connection to the proxy."""

    def __init__(self, number, port, key):
        self.connection = HTTPConnection("127.0.0.1", port, timeout=120, source_address=(f"127.8.0.{number}", 0))
        self._headers = {"Authorization": f"Bearer {key}"}
        self._pauses = random.Random(number)

    def post(self, pauses=(0, 0)):
        """Wait for a while, then send; the status."""
        time.sleep(self._pauses.uniform(*pauses))
        self.connection.request("POST", "/visits", b'{"path":"/x"}', self._headers)
        with self.connection.getresponse() as answer:
            answer.read()
            return answer.status


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists connections in /proc")
def test_posts_that_nginx_sends_on_idle_connections_are_answered(lake, serving, key_of, tmp_path, tell):
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


def test_an_idle_connection_of_a_trusted_proxy_outlives_those_of_others(lake, serving):
    assert limits.PROXY_IDLE_TIMEOUT_SECONDS > 60 > limits.IDLE_TIMEOUT_SECONDS
    with hurried(serving, lake, proxies="127.8.1.1", **HURRIED | {"PROXY_IDLE_TIMEOUT_SECONDS": 3.0}) as (port, _):
        proxy, other = (
            socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
            for address in ("127.8.1.1", "127.8.1.2")
        )
        with proxy, other:
            assert other.recv(1) == b""  # closed for its silence
            assert select.select([proxy], [], [], 0)[0] == []  # still open, and nothing was said
            assert proxy.recv(1) == b""  # in its turn
