"""Cached answers on the wire: the same bytes on every kind of connection, in order, and never with an erased visit."""

import contextlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from data.tasks.erasure import Criteria, Eraser
from data.tasks.reclassification import Reclassifier
from tests.support.lakes import opened
from tests.support.sockets import Client, answer_on
from tests.support.visits import land, visit

OVERVIEW = b"/analytics/traffic-overview?start_date=2026-03-02&end_date=2026-03-08"
DASHBOARD = OVERVIEW.replace(b"traffic-overview", b"dashboard")
LARGE = b"/analytics/time-series?start_date=2016-03-01&end_date=2026-03-01"  # 3,653 days, with a line for each
DIFFERS = {b"x-request-id", b"x-ratelimit-remaining", b"x-ratelimit-reset", b"date", b"connection"}
"""The headers that differ between responses."""


def ask(asker, connection, path, *lines, **how):
    connection.sendall(asker.request(path, *lines, **how))
    return answer_on(connection, has_body=how.get("method") != b"HEAD")


@pytest.fixture(scope="module")
def asker(shared_lake, serving, key_of):
    """A client that calls a real server as acme, which has one visit that no test changes."""
    land(shared_lake, "acme", [visit()])
    with serving(shared_lake, trusted_proxies="127.0.0.1") as server:
        yield Client(server.port, key_of(shared_lake))


def test_cached_and_computed_answers_have_the_same_bytes(asker):
    with asker.connected() as connection:
        for path in (OVERVIEW, DASHBOARD, LARGE):
            source = next(Client.sources)
            answers = [ask(asker, connection, path, *lines, source=source) for lines in ((), (), (b"Cookie: a",), ())]
            assert {status for status, *_ in answers} == {200}
            assert len({body for *_, body in answers}) == 1
            kept = [[pair for pair in headers.items() if pair[0] not in DIFFERS] for _, headers, _ in answers]
            assert kept == [kept[0]] * 4
            assert [int(headers[b"x-ratelimit-remaining"]) for _, headers, _ in answers] == [59, 58, 57, 56]
            assert len({headers[b"x-request-id"] for _, headers, _ in answers}) == 4


@pytest.mark.parametrize(
    ("lines", "how", "status"),
    [((), {"method": b"HEAD"}, 200), ((), {"method": b"POST"}, 405), ((b"Content-Length: 0",), {}, 200),
     ((b"Connection: close",), {}, 200), ((b"Connection: keep-alive",), {"version": b"1.0"}, 200),
     ((b"Connection: Upgrade", b"Upgrade: h2c"), {}, 200), ((b"Expect: 100-continue",), {}, 200),
     ((b"Authorization: Bearer x",), {}, 401), ((b"Authorization: Bearer x", b"Authorization: Bearer x"), {}, 401),
     ((b"A: b", b"Cookie: c", b"Cookie: d"), {}, 200)],
)  # fmt: skip
def test_a_connection_stays_in_sync_after_unusual_requests(asker, lines, how, status):
    with asker.connected() as connection:
        *_, body = ask(asker, connection, OVERVIEW)
        told, headers, again = ask(asker, connection, OVERVIEW, *lines, **how)
        assert told == status
        if status == 200:
            assert int(headers[b"content-length"]) == len(body)
            assert again == (b"" if how.get("method") == b"HEAD" else body)
        if {b"Connection: close", b"Connection: keep-alive"} & {*lines}:
            assert connection.recv(1) == b""
        else:
            assert ask(asker, connection, OVERVIEW)[::2] == (200, body)


def test_pipelined_cached_answers_wait_for_a_slow_one(asker):
    slow = DASHBOARD.replace(b"2026-03-02", b"2016-03-09")
    with asker.connected() as connection:
        held = [ask(asker, connection, path).body for path in (OVERVIEW, DASHBOARD)]
        connection.sendall(b"".join(asker.request(path) for path in (slow, OVERVIEW, DASHBOARD)))
        first, *rest = [answer_on(connection).body for _ in range(3)]
    assert len(json.loads(first)["timeSeries"]) > 3_600
    assert rest == held


def watch(asker, told, is_done):
    """Request the same cached answer without pause; add each answer with the time of its request to `told`."""
    with asker.connected() as connection:
        while not is_done.is_set():
            asked_at = time.monotonic()
            status, _, body = ask(asker, connection, OVERVIEW)
            assert status == 200, body
            answer = json.loads(body)
            told.append((asked_at, (answer["total_visits"], answer["human_clicks"])))


def watched(asker, changes):
    """Change the lake during nonstop requests; return when each change was complete, and the timed answers."""
    told, changed_at, is_done = [[] for _ in range(4)], [], threading.Event()
    with ThreadPoolExecutor(4) as threads, contextlib.ExitStack() as stack:
        stack.callback(is_done.set)
        watching = [threads.submit(watch, asker, one, is_done) for one in told]
        for change in (*changes, None):
            counts = [len(one) for one in told]
            while any(len(one) < count + 5 for one, count in zip(told, counts, strict=True)):
                assert not any(one.done() for one in watching)
                time.sleep(0.001)
            if change:
                change()
                changed_at.append(time.monotonic())
    assert [one.result() for one in watching] == [None] * 4
    return changed_at, [moment for one in told for moment in one]


def test_no_answer_after_an_erasure_shows_erased_visits(shared_lake, asker, key_of, tell):
    """New rules find bots among people, then domains are erased one by one, both outside the server's process."""
    letters = "abcde"
    land(shared_lake, "other", [visit(), *(visit(domain=f"{letter}.example") for letter in letters)])
    agents = [visit(user_agent="GPTBot/1.2", visited_at=datetime(2026, 3, 4, hour), visitor=hour) for hour in range(5)]
    land(shared_lake, "other", agents)
    with opened(shared_lake.root) as lake:
        eraser, changes = Eraser(lake), [lambda: Reclassifier(lake).run(["other"])]
        changes += [lambda one=one: eraser.run("other", Criteria(domain=f"{one}.example")) for one in letters]
        changed_at, told = watched(Client(asker.port, key_of(shared_lake, "other")), changes)
    expected = [(11, 11), *((11 - erased, 0) for erased in range(6))]
    assert {counts for _, counts in told} == {*expected}
    for number, moment in enumerate(changed_at, 1):
        assert {counts for asked_at, counts in told if asked_at >= moment} <= {*expected[number:]}
    tell(answers=len(told), changes=len(changed_at))
