"""Answers that are held, given by the protocol itself: the same bytes, counted and noted once, and never too old."""

import asyncio
import itertools
import json
import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO

import pytest
import uvloop

from data.maintenance.reclassification import Reclassifier
from data.rules.classifier import Classifier
from service.app import create_app
from service.http.middleware import Front
from service.logs import Log
from service.server import connection as guard
from service.server.connection import Guard
from service.server.run import _config, _Server, listen
from service.server.slots import Places
from tests.visits import land, visit

SOURCES = itertools.count(1)
OVERVIEW = b"/analytics/traffic-overview?start_date=2026-03-02&end_date=2026-03-08"
DASHBOARD = OVERVIEW.replace(b"traffic-overview", b"dashboard")
LARGE = b"/analytics/time-series?start_date=1926-03-01&end_date=2026-03-01"
NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
OF_EACH = {b"x-request-id", b"x-ratelimit-remaining", b"x-ratelimit-reset", b"date", b"connection"}


class Running:
    """An application on a real socket, with the protocol of the real server, in a thread of this process."""

    def __init__(self, app, key):
        self.app = app
        self.key = b"Authorization: Bearer " + key.encode()
        self.long = 0
        """Requests that were passed to the application's way."""
        self._ready = threading.Event()
        self._listener = listen("127.0.0.1", 0)
        self.loop: asyncio.AbstractEventLoop

    def run(self, factory):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(self.server.serve([self._listener]))

    @contextmanager
    def started(self, factory):
        def ready():
            self.loop = asyncio.get_running_loop()
            self._ready.set()

        protocol = Guard(self.app, Places(self.app.limiter.sources)).protocol()
        self.server = _Server(_config(self.app, protocol, "on", 1), ready)
        thread = threading.Thread(target=self.run, args=[factory])
        thread.start()
        try:
            assert self._ready.wait(30)
            yield self
        finally:
            self.server.should_exit = True
            thread.join(30)

    def connected(self, source=""):
        number = next(SOURCES)
        source = source or f"127.8.{number >> 8}.{number & 255}"
        port = self._listener.getsockname()[1]
        return socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))

    def request(self, path, *lines, method=b"GET", version=b"1.1"):
        return b"\r\n".join((b"%s %s HTTP/%s" % (method, path, version), b"Host: x", self.key, *lines, b"", b""))

    def ask(self, connection, *lines, **how):
        """Status, headers, body, and whether the application was asked."""
        before = self.long
        connection.sendall(self.request(*lines, **how))
        return *answer_on(connection), self.long > before


def answer_on(connection):
    told = b""
    while b"\r\n\r\n" not in told:
        told += (piece := connection.recv(1))
        assert piece
    first, *lines = told[:-4].split(b"\r\n")
    headers = dict(line.split(b": ", 1) for line in lines)
    body = b""
    while len(body) < int(headers[b"content-length"]):
        body += connection.recv(int(headers[b"content-length"]) - len(body))
    return first, headers, body


@pytest.fixture
def running(lake, settings, key_of, monkeypatch):
    """Starts an application over `lake`; its log is a stream."""
    call = Front.__call__

    @contextmanager
    def running(log=None, factory=uvloop.new_event_loop, **changes):
        app = create_app(settings(lake, trusted_proxies="", **changes), lambda: NOW, log)
        one = Running(app, key_of(lake))

        async def counted(front, scope, receive, send):
            one.long += scope["type"] == "http"
            await call(front, scope, receive, send)

        monkeypatch.setattr(Front, "__call__", counted)
        with one.started(factory):
            yield one

    return running


def test_an_answer_is_the_same_whichever_way_and_counted_and_noted_once(lake, running):
    land(lake, "acme", [visit()])
    stream = BytesIO()
    log = Log(stream)
    ids = []
    with running(log) as server, server.connected() as connection:
        for path in (OVERVIEW, DASHBOARD, LARGE):
            ways = [(), (), (b"Origin: https://x.example",), ()]
            answers = [server.ask(connection, path, *lines) for lines in ways]
            assert [is_long for *_, is_long in answers] == [True, False, True, False]
            assert len({first for first, *_ in answers}) == len({body for *_, body, _ in answers}) == 1
            told = [headers for _, headers, *_ in answers]
            assert all(headers.keys() == told[0].keys() >= OF_EACH - {b"connection"} for headers in told)
            assert len({tuple(sorted(headers.items() - own(headers))) for headers in told}) == 1
            ids += [headers[b"x-request-id"].decode() for headers in told]
            assert int(told[-1][b"x-ratelimit-remaining"]) == 60 - len(ids)
        _, _, stats, _ = server.ask(connection, b"/analytics/cache-stats")
        text = server.app.metrics.text().decode()
    log.close()
    rows = {row["scope"]: row for row in json.loads(stats)}
    assert [(rows[name]["hits"], rows[name]["misses"]) for name in ("dashboard", "traffic-overview", "devices")] == [
        (3, 1), (7, 1), (3, 1)]  # fmt: skip
    *lines, _ = map(json.loads, stream.getvalue().splitlines())
    assert [line["id"] for line in lines] == ids
    assert {tuple(line) for line in lines} == {
        ("at", "level", "event", "id", "method", "route", "status", "ms", "organization")
    }
    assert {(line["method"], line["status"], line["organization"]) for line in lines} == {("GET", 200, "acme")}
    assert all(0 <= line["ms"] < 60_000 for line in lines)
    for name in ("traffic-overview", "dashboard", "time-series"):
        route = f"/analytics/{name}"
        assert [line["route"] for line in lines].count(route) == 4
        assert f'traffic_requests_total{{method="GET",route="{route}",status="200"}} 4.0' in text
        assert f'traffic_request_seconds_count{{route="{route}"}} 4.0' in text


def own(headers):
    return {(name, headers[name]) for name in OF_EACH & headers.keys()}


def test_whatever_is_special_about_a_question_is_answered_by_the_application(running):
    cases = [
        ((), {"method": b"HEAD"}, b"200", True),
        ((), {"method": b"POST"}, b"405", True),
        ((b"Content-Length: 0",), {}, b"200", True),
        ((b"Connection: close",), {}, b"200", True),
        ((b"Connection: keep-alive",), {"version": b"1.0"}, b"200", True),
        ((b"Connection: Upgrade", b"Upgrade: h2c"), {}, b"200", False),
        ((b"Expect: 100-continue",), {}, b"200", False),
        ((b"Authorization: Bearer x",), {}, b"401", True),
        ((b"A: b", b"Cookie: c", b"Cookie: d"), {}, b"200", False),
    ]
    with running() as server:
        for lines, how, status, is_long in cases:
            with server.connected() as connection:
                assert server.ask(connection, OVERVIEW)[0].split()[1] == b"200"
                before = server.long
                connection.sendall(server.request(OVERVIEW, *lines, **how))
                is_head = how.get("method") == b"HEAD"
                first = connection.recv(65_536) if is_head else answer_on(connection)[0]
                assert (first.split()[1], server.long > before) == (status, is_long), lines
                if {b"Connection: close", b"Connection: keep-alive"} & {*lines}:
                    assert connection.recv(1) == b""
                else:  # still in step
                    assert server.ask(connection, OVERVIEW)[0].split()[1] == b"200"
        for path, status in ((OVERVIEW + b"&range=7d&range=7d", b"400"), (OVERVIEW.upper(), b"404")):
            with server.connected() as connection:
                assert [server.ask(connection, path)[0].split()[1] for _ in range(2)] == [status] * 2


def test_requests_at_once_are_answered_in_order_and_to_the_sixtieth(running):
    with running() as server, server.connected() as connection:
        slow = server.request(DASHBOARD.replace(b"2026-03-02", b"1926-03-02"))
        connection.sendall(slow + server.request(OVERVIEW) + server.request(DASHBOARD) + server.request(OVERVIEW))
        first, *rest = [json.loads(answer_on(connection)[2]) for _ in range(4)]
        assert [*map(len, rest)] == [9, 13, 9]
        assert len(first["timeSeries"]) > 36_000
        connection.sendall(server.request(OVERVIEW) * 58 + b"garbage\r\n\r\n")
        assert [answer_on(connection)[0].split()[1] for _ in range(59)] == [b"200"] * 56 + [b"429"] * 3
        assert connection.recv(1) == b""


# Epochs


LOOPS = pytest.mark.parametrize("factory", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])


@pytest.fixture
def changing(lake, monkeypatch):
    """Five visits of an automaton that older rules took for people; what is to be called puts that right."""
    agents = [visit(user_agent="GPTBot/1.2", visited_at=datetime(2026, 3, 4, hour), visitor=hour) for hour in range(5)]
    land(lake, "acme", agents)
    classifier = Classifier()
    monkeypatch.setattr("data.maintenance.reclassification.Classifier", lambda: classifier)
    return lambda: Reclassifier(lake).run(["acme"])


@pytest.mark.parametrize("crowd", [guard.CROWD, 0])
@LOOPS
def test_who_asks_after_a_commit_is_told_of_it_though_others_asked_in_the_same_turn(
    running, changing, monkeypatch, crowd, factory
):
    """Two requests are there when the loop looks; while the first is answered history is reclassified, and all ask."""
    monkeypatch.setattr(guard, "CROWD", crowd)
    with running(factory=factory) as server:
        connections = one, other, *_ = [server.connected() for _ in range(3)]
        for connection in connections:
            people(server.ask(connection, OVERVIEW))
        ask, gate, stale = server.app._shortcut._epochs._ask, threading.Event(), []
        is_held = threading.Event()

        def hold():
            is_held.set()
            gate.wait(30)

        def ask_and_change(organization):
            epoch = ask(organization)
            if not stale:
                stale.append(epoch)
                changing()
                for connection in connections:
                    connection.sendall(server.request(OVERVIEW))
            return epoch

        server.app._shortcut._epochs._ask = ask_and_change
        server.loop.call_soon_threadsafe(hold)
        is_held.wait(30)
        one.sendall(server.request(OVERVIEW))
        other.sendall(server.request(OVERVIEW))
        gate.set()
        assert {people(answer_on(one)), people(answer_on(other))} == ({5} if crowd else {0, 5})
        for connection in connections:
            assert people(answer_on(connection)) == 0
            connection.close()


@LOOPS
def test_who_asks_after_a_commit_is_told_of_it_though_the_application_asked_before(running, changing, factory):
    """What the application asks for, it asks while the loop does not read: after that the loop looks again."""
    with running(factory=factory) as server, server.connected() as connection:
        assert [people(server.ask(connection, OVERVIEW)) for _ in range(2)] == [5, 5]

        def look_and_change():
            name, value = server.key.split(b": ")
            assert server.app._shortcut.find(OVERVIEW, [(name.lower(), value)], False)
            changing()
            connection.sendall(server.request(OVERVIEW))

        server.loop.call_soon_threadsafe(look_and_change)
        assert people(answer_on(connection)) == 0


def people(answer):
    return json.loads(answer[2])["human_clicks"]
