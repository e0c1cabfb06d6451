"""Cached answers on the wire: the same bytes on every kind of connection, in order, and never an erased visit."""

import itertools
import json
import socket
import threading
import time
from contextlib import closing
from datetime import datetime

import pytest

from data import Lake
from data.maintenance.erasure import Criteria, Eraser
from data.maintenance.reclassification import Reclassifier
from data.rules.classifier import Classifier
from tests.support.visits import land, visit

SOURCES = itertools.count(1)
OVERVIEW = b"/analytics/traffic-overview?start_date=2026-03-02&end_date=2026-03-08"
DASHBOARD = OVERVIEW.replace(b"traffic-overview", b"dashboard")
LARGE = b"/analytics/time-series?start_date=2016-03-01&end_date=2026-03-01"  # 3,653 days, with a line for each
DIFFERS = {b"x-request-id", b"x-ratelimit-remaining", b"x-ratelimit-reset", b"date", b"connection"}
"""Headers that differ from one answer to the next."""


class Asker:
    """Asks a server; each connection and each request may be of a source of its own, as through a proxy."""

    def __init__(self, port, key):
        self._port = port
        self._key = b"Authorization: Bearer " + key.encode()

    def connected(self):
        return socket.create_connection(("127.0.0.1", self._port), timeout=60)

    def request(self, path, *lines, method=b"GET", version=b"1.1", source=None):
        number = next(SOURCES) if source is None else source
        forwarded = b"X-Forwarded-For: 10.%d.%d.%d" % (number >> 16, number >> 8 & 255, number & 255)
        if not any(line.startswith(b"Authorization") for line in lines):
            lines = (self._key, *lines)
        return b"\r\n".join((b"%s %s HTTP/%s" % (method, path, version), b"Host: x", forwarded, *lines, b"", b""))

    def ask(self, connection, path, *lines, **how):
        connection.sendall(self.request(path, *lines, **how))
        return answer_on(connection, has_body=how.get("method") != b"HEAD")


def answer_on(connection, has_body=True):
    """The status, headers and body of the next answer."""
    received = b""
    while not received.endswith(b"\r\n\r\n"):
        received += (piece := connection.recv(1))
        assert piece, received
    first, *lines = received[:-4].split(b"\r\n")
    if first == b"HTTP/1.1 100 Continue":
        return answer_on(connection, has_body)
    headers = dict(line.split(b": ", 1) for line in lines)
    assert len(headers) == len(lines)
    body = bytearray()
    while has_body and len(body) < int(headers[b"content-length"]):
        body += (piece := connection.recv(int(headers[b"content-length"]) - len(body)))
        assert piece, body
    return int(first.split()[1]), headers, bytes(body)


@pytest.fixture
def asker(lake, serving, key_of):
    """Asks the real server over `lake`."""
    land(lake, "acme", [visit()])
    with serving(lake, trusted_proxies="127.0.0.1") as server:
        yield Asker(server.port, key_of(lake))


@pytest.fixture(scope="module")
def shared_asker(shared_lake, serving, key_of):
    """Asks a server over a lake that no test changes."""
    land(shared_lake, "acme", [visit()])
    with serving(shared_lake, trusted_proxies="127.0.0.1") as server:
        yield Asker(server.port, key_of(shared_lake))


def test_a_cached_answer_has_the_bytes_and_headers_of_the_computed_one(shared_asker):
    asker = shared_asker
    with asker.connected() as connection:
        for path in (OVERVIEW, DASHBOARD, LARGE):
            source = next(SOURCES)
            answers = [asker.ask(connection, path, *lines, source=source) for lines in ((), (), (b"Cookie: a",), ())]
            assert {status for status, *_ in answers} == {200}
            assert len({body for *_, body in answers}) == 1
            kept = [[pair for pair in headers.items() if pair[0] not in DIFFERS] for _, headers, _ in answers]
            assert kept == [kept[0]] * 4
            assert [int(headers[b"x-ratelimit-remaining"]) for _, headers, _ in answers] == [59, 58, 57, 56]
            assert len({headers[b"x-request-id"] for _, headers, _ in answers}) == 4


@pytest.mark.parametrize(
    ("lines", "how", "status"),
    [
        ((), {"method": b"HEAD"}, 200),
        ((), {"method": b"POST"}, 405),
        ((b"Content-Length: 0",), {}, 200),
        ((b"Connection: close",), {}, 200),
        ((b"Connection: keep-alive",), {"version": b"1.0"}, 200),
        ((b"Connection: Upgrade", b"Upgrade: h2c"), {}, 200),
        ((b"Expect: 100-continue",), {}, 200),
        ((b"Authorization: Bearer x",), {}, 401),
        ((b"Authorization: Bearer x", b"Authorization: Bearer x"), {}, 401),
        ((b"A: b", b"Cookie: c", b"Cookie: d"), {}, 200),
    ],
)
def test_whatever_is_special_about_a_request_a_connection_stays_in_step(shared_asker, lines, how, status):
    asker = shared_asker
    with asker.connected() as connection:
        *_, body = asker.ask(connection, OVERVIEW)
        told, headers, again = asker.ask(connection, OVERVIEW, *lines, **how)
        assert told == status
        if status == 200:
            assert int(headers[b"content-length"]) == len(body)
            assert again == (b"" if how.get("method") == b"HEAD" else body)
        if {b"Connection: close", b"Connection: keep-alive"} & {*lines}:
            assert connection.recv(1) == b""
        else:
            assert asker.ask(connection, OVERVIEW)[::2] == (200, body)


def test_requests_in_one_packet_are_answered_in_order_and_to_the_sixtieth(shared_asker):
    asker = shared_asker
    with asker.connected() as connection:
        for path in (OVERVIEW, DASHBOARD):
            asker.ask(connection, path)
        source = next(SOURCES)
        slow = DASHBOARD.replace(b"2026-03-02", b"2016-03-09")
        connection.sendall(b"".join(asker.request(path, source=source) for path in (slow, OVERVIEW, DASHBOARD)))
        first, *rest = [json.loads(answer_on(connection)[2]) for _ in range(3)]
        assert [*map(len, rest)] == [9, 13]
        assert len(first["timeSeries"]) > 3_600
        connection.sendall(asker.request(OVERVIEW, source=source) * 60 + b"garbage\r\n\r\n")
        assert [answer_on(connection)[0] for _ in range(61)] == [200] * 57 + [429] * 3 + [400]
        assert connection.recv(1) == b""


# What must not be answered any more


class Watching(threading.Thread):
    """Asks for the same cached answer without pause: what it said, and when it was asked for."""

    def __init__(self, asker, name):
        super().__init__()
        self._asker = asker
        self._name = name
        self.told = []
        self.is_done = False

    def run(self):
        with self._asker.connected() as connection:
            while not self.is_done:
                asked_at = time.monotonic()
                status, _, body = self._asker.ask(connection, OVERVIEW)
                self.told.append((asked_at, json.loads(body)[self._name] if status == 200 else status))


def watched(asker, name, rounds):
    """While others ask without pause, change the lake by each of `rounds`: when each returned, and what was told."""
    watching = [Watching(asker, name) for _ in range(4)]
    for thread in watching:
        thread.start()
    changed_at = []
    for change in rounds:
        counts = [len(thread.told) for thread in watching]
        while any(len(thread.told) < count + 5 for thread, count in zip(watching, counts, strict=True)):
            assert all(thread.is_alive() for thread in watching)
            time.sleep(0.001)
        change()
        changed_at.append(time.monotonic())
    counts = [len(thread.told) for thread in watching]
    while any(len(thread.told) < count + 5 for thread, count in zip(watching, counts, strict=True)):
        assert all(thread.is_alive() for thread in watching)
        time.sleep(0.001)
    for thread in watching:
        thread.is_done = True
    for thread in watching:
        thread.join()
    return changed_at, [moment for thread in watching for moment in thread.told]


def test_an_erased_visit_is_in_no_answer_asked_for_after_the_erasure_returned(lake, asker, tell):
    """Visits of ten domains are erased one domain after the other, by this process beside the server's."""
    land(lake, "acme", [visit(domain=f"{letter}.example") for letter in "abcdefghij"])
    with asker.connected() as connection:
        assert json.loads(asker.ask(connection, OVERVIEW)[2])["total_visits"] == 11
    with closing((other := Lake(lake.root)).manifest):
        eraser = Eraser(other)
        domains = [f"{letter}.example" for letter in "abcdefghij"]
        rounds = [lambda domain=domain: eraser.run("acme", Criteria(domain=domain)) for domain in domains]
        changed_at, told = watched(asker, "total_visits", rounds)
    assert {total for _, total in told} == set(range(1, 12))
    for erased, moment in enumerate(changed_at, 1):
        assert max(total for asked_at, total in told if asked_at >= moment) <= 11 - erased
    tell(answers=len(told), erasures=len(changed_at))


def test_the_program_erases_beside_a_server_whose_next_answer_knows(lake, asker, forks):
    land(lake, "acme", [visit(domain="sale.example")])
    with asker.connected() as connection:
        assert [json.loads(asker.ask(connection, OVERVIEW)[2])["total_visits"] for _ in range(2)] == [2, 2]
        process = forks.start("erase", "--org", "acme", "--domain", "sale.example", "--yes", "--lake", lake.root)
        assert process.stderr.readline().endswith(" from all answers.\n")  # it still waits for readers
        many = [stack_of(asker) for _ in range(8)]
        assert {answer_total(one) for one in many for _ in range(5)} == {1}
        process.kill()
        process.communicate()
        for one in many:
            one.close()


def stack_of(asker):
    """A connection on which five requests were sent in one packet."""
    connection = asker.connected()
    connection.sendall(b"".join(asker.request(OVERVIEW) for _ in range(5)))
    return connection


def answer_total(connection):
    return json.loads(answer_on(connection)[2])["total_visits"]


def test_an_answer_asked_for_after_a_reclassification_rests_on_the_new_rules(lake, asker, monkeypatch):
    agents = [visit(user_agent="GPTBot/1.2", visited_at=datetime(2026, 3, 4, hour), visitor=hour) for hour in range(5)]
    land(lake, "acme", agents)
    classifier = Classifier()
    monkeypatch.setattr("data.maintenance.reclassification.Classifier", lambda: classifier)
    with closing((other := Lake(lake.root)).manifest):
        (changed_at,), told = watched(asker, "human_clicks", [lambda: Reclassifier(other).run(["acme"])])
    assert {people for _, people in told} == {6, 0}
    assert {people for asked_at, people in told if asked_at >= changed_at} == {0}
