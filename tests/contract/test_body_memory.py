"""On a real server, one organization's unfinished bodies, on every kind of route, do not affect other requests."""

import re
import select
import urllib.request
from contextlib import ExitStack, closing, suppress

import pytest

from data import Lake
from tests.support.sockets import Client, answer_on

ROW = b'{"path":"/x"}\n'
UNFINISHED = b"Content-Length: %d"
ROUTES = (
    # path, and size of the body, which lacks its last byte
    (b"/visits", 4 << 20),
    (b"/jobs/job_x/implementations", 2 << 20),
)


@pytest.fixture(scope="module")
def served(tmp_path_factory, serving, key_of):
    """A server, clients of three organizations, and the port of its metrics."""
    lake = Lake(tmp_path_factory.mktemp("served") / "lake", create=True)
    with closing(lake.manifest), serving(lake, trusted_proxies="127.0.0.1", monitor_port="0") as server:
        yield [Client(server.port, key_of(lake, name)) for name in ("acme", "other", "third")], server.monitor


def begin(stack, client, path, size):
    """Return a connection on which a whole body except its last byte was sent."""
    connection = stack.enter_context(client.connected())
    with suppress(ConnectionError):  # the server may evict it in the meantime
        connection.sendall(client.request(path, UNFINISHED % size, method=b"POST") + b" " * (size - 1))
    return connection


def posted(client):
    """Report a visit; return the status of the response."""
    with client.connected() as connection:
        connection.sendall(client.request(b"/visits", UNFINISHED % len(ROW), method=b"POST") + ROW)
        return answer_on(connection).status


def bytes_held(monitor):
    with urllib.request.urlopen(f"{monitor}/metrics") as answer:
        return float(re.search(r"^traffic_body_bytes (\S+)$", answer.read().decode(), re.MULTILINE)[1])


@pytest.mark.parametrize(("path", "size"), ROUTES)
def test_unfinished_bodies_do_not_affect_other_requests(served, path, size):
    (hostile, other, _), monitor = served
    with ExitStack() as stack:
        connections = [begin(stack, hostile, path, size) for _ in range(16)]
        assert {posted(other) for _ in range(20)} == {202}
        assert bytes_held(monitor) <= 16 << 20
        answer = answer_on(connections[0])  # the oldest
        assert (answer.status, answer.headers[b"connection"]) == (503, b"close")
        assert select.select(connections[-1:], [], [], 0)[0] == []  # the newest
    while bytes_held(monitor):
        pass  # until it has noticed all disconnects


def test_two_hostile_organizations_do_not_affect_a_third(served):
    (*hostile, other), monitor = served
    with ExitStack() as stack:
        for client in hostile * 10:
            begin(stack, client, b"/visits", 4 << 20)
        assert {posted(other) for _ in range(20)} == {202}
        assert bytes_held(monitor) <= 33 << 20
