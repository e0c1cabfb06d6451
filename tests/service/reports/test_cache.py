"""Answers cached for five minutes: computed once for equal requests, separate for each organization, and bounded."""

import asyncio
import json
import os
import threading
from collections import Counter
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries import ENTRIES, Scope, Warehouse
from service.core.http.errors import Overloaded
from service.core.http.pools import MAX_REQUESTS, Workers
from service.reports import cache
from service.reports.answers import LONG, Answers
from service.reports.cache import PAGE_SECONDS, TTL_SECONDS, AnswerCache, CacheKey
from tests.support.clock import Clock
from tests.support.visits import land, visit

OVERVIEW, DEVICES, DASHBOARD = (ENTRIES[name] for name in ("traffic-overview", "devices", "dashboard"))
START, END = date(2026, 3, 1), date(2026, 3, 15)
THREADS = (os.cpu_count() or 1) + 1
MINE, THEIRS = Scope("acme", START, END), Scope("other", START, END)


class Engine(Warehouse):
    """A real warehouse that counts its answers, and whose answers can be delayed or made to fail."""

    def __init__(self, lake):
        self.computed = Counter()
        self.snapshots = self.epochs = 0
        self.open = threading.Event()
        self.open.set()
        self.failure = None
        super().__init__(lake)

    def state(self, organization):
        self.epochs += 1
        return super().state(organization)

    def snapshot(self, scope):
        self.snapshots += 1
        return super().snapshot(scope)

    def answer(self, entry, snapshot, *cancelled):
        self.computed[entry.name, snapshot.scope.organization] += 1
        assert self.open.wait(30)
        if self.failure:
            raise self.failure
        return super().answer(entry, snapshot, *cancelled)


@pytest.fixture
def engine(lake):
    land(lake, "acme", [visit()])
    land(lake, "other", [visit(), visit()])
    engine = Engine(lake)
    yield engine
    engine.open.set()
    engine.close()


@pytest.fixture
def clock():
    return Clock(0.0)


@pytest.fixture
def answers(engine, clock):
    workers = Workers()
    yield Answers(engine, AnswerCache(clock), workers)
    engine.open.set()
    workers.close()


async def test_simultaneous_equal_requests_run_each_query_once(answers, engine):
    bodies = await asyncio.gather(*(answers.body(entry, MINE) for entry in (DASHBOARD, OVERVIEW, DEVICES) * 60))
    assert len(set(bodies)) == 3
    assert all(body in bodies[0] for body in bodies[1:3])
    assert b'"total_visits":1,' in bodies[1]
    assert set(engine.computed.values()) == {1}
    assert {name for name, _ in engine.computed} >= {part.name for _, part in DASHBOARD.members}


async def test_the_longest_queries_of_a_dashboard_start_first(answers, engine):
    engine.open.clear()
    asking = asyncio.create_task(answers.body(DASHBOARD, MINE))
    while len(engine.computed) < min(THREADS - 1, len(DASHBOARD.members)):
        await asyncio.sleep(0.001)
    assert {name for name, _ in engine.computed} >= set(LONG)
    engine.open.set()
    assert list(json.loads(await asking)) == [name for name, _ in DASHBOARD.members]
    assert engine.snapshots == 1  # it read the manifest once


async def test_an_answer_is_cached_for_exactly_five_minutes(answers, engine, clock, lake):
    first = await answers.body(OVERVIEW, MINE)
    land(lake, "acme", [visit()])
    clock.now = TTL_SECONDS - 0.001
    assert await answers.body(OVERVIEW, MINE) == first
    clock.now = TTL_SECONDS
    assert b'"total_visits":2,' in await answers.body(OVERVIEW, MINE)
    assert sum(engine.computed.values()) == 2


@pytest.mark.parametrize("entry", [OVERVIEW, DASHBOARD])
async def test_a_page_shows_new_visits_within_a_minute(answers, engine, clock, lake, entry):
    await answers.get([(entry, MINE)])
    land(lake, "acme", [visit()])
    clock.now = PAGE_SECONDS
    assert b'"total_visits":1,' in (await answers.get([(entry, MINE)]))[0]
    clock.now = PAGE_SECONDS + 1
    assert b'"total_visits":1,' in await answers.body(entry, MINE)  # the API's five minutes
    assert b'"total_visits":2,' in (await answers.get([(entry, MINE)]))[0]


async def test_a_page_is_cached_for_five_minutes_if_nothing_changes(answers, engine, clock):
    for clock.now in (0, PAGE_SECONDS + 1, TTL_SECONDS - 1):
        await answers.get([(DASHBOARD, MINE)])
    assert set(engine.computed.values()) == {1}


async def test_a_full_server_shows_cached_answers_on_pages(answers, engine, clock, lake, monkeypatch):
    first = await answers.get([(DASHBOARD, MINE)])
    land(lake, "acme", [visit()])
    clock.now = PAGE_SECONDS + 1
    monkeypatch.setattr(answers._workers, "is_full", lambda *_: True)
    assert await answers.get([(DASHBOARD, MINE)]) == first


async def test_a_dashboard_expires_with_its_oldest_member(answers, engine, clock):
    await answers.body(DEVICES, MINE)
    clock.now = 100
    for _ in range(3):  # computed, assembled, cached as a whole
        await answers.body(DASHBOARD, MINE)
    assert engine.computed["devices", "acme"] == 1
    clock.now = TTL_SECONDS
    await answers.body(DASHBOARD, MINE)
    assert engine.computed["devices", "acme"] == 2
    assert engine.computed["traffic-overview", "acme"] == 1


async def test_the_epoch_is_read_once_per_turn_of_the_event_loop(answers, engine):
    await answers.body(OVERVIEW, MINE)
    engine.epochs = 0
    for turn in range(3):
        await asyncio.gather(*(answers.body(OVERVIEW, MINE) for _ in range(50)))
        assert engine.epochs == turn + 1


async def test_organizations_and_scopes_never_share_an_answer(answers, engine):
    scopes = [MINE, THEIRS, Scope("acme", START, END, domain="go.example"), Scope("Acme", START, END)]
    scopes += [Scope("acme", START, date(2026, 3, 14)), Scope("acme", START, END, short_code="")]
    bodies = await asyncio.gather(*(answers.body(OVERVIEW, scope) for scope in scopes))
    assert [json.loads(body)["total_visits"] for body in bodies] == [1, 2, 1, 0, 1, 0]
    assert sum(engine.computed.values()) == 6


async def test_a_failure_reaches_all_callers_and_is_not_cached(answers, engine):
    engine.failure = RuntimeError("out of order")
    failures = await asyncio.gather(*(answers.body(OVERVIEW, MINE) for _ in range(50)), return_exceptions=True)
    assert {str(failure) for failure in failures} == {"out of order"}
    engine.failure = None
    assert b'"total_visits":1,' in await answers.body(OVERVIEW, MINE)
    assert sum(engine.computed.values()) == 2


async def test_answers_failures_and_cancellations_release_their_slots(answers, engine):
    for year, failure in ((2020, None), (2021, RuntimeError("out of order")), (2022, None)):
        engine.failure = failure
        scopes = [Scope("acme", date(year, 1, day), END) for day in range(1, 32)]
        tasks = [asyncio.create_task(answers.body(OVERVIEW, scope)) for scope in scopes]
        await asyncio.sleep(0)
        if year == 2022:
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    while answers._workers._requests:
        await asyncio.sleep(0.01)
    await answers.body(DASHBOARD, MINE)


async def test_a_signed_in_user_does_not_wait_for_a_shares_query(answers, engine):
    engine.open.clear()
    share, *members = (asyncio.create_task(answers.body(OVERVIEW, MINE, is_share)) for is_share in (True, False, False))
    while not engine.computed:
        await asyncio.sleep(0.001)
    assert len(answers._cache._running) == 2  # the members' query is shared
    engine.open.set()
    assert len(set(await asyncio.gather(share, *members))) == 1


async def test_a_disconnect_cancels_duplicate_entries(answers, engine):
    engine.open.clear()
    before = asyncio.all_tasks()
    asking = asyncio.create_task(answers.get([(DEVICES, MINE), (DEVICES, MINE)]))
    while not engine.computed:
        await asyncio.sleep(0.001)
    asking.cancel()
    await asyncio.wait([asking])
    for _ in range(10):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_only_new_computations_are_rejected_at_capacity(answers, engine):
    assert MAX_REQUESTS == 32
    await answers.body(DEVICES, MINE)
    engine.open.clear()
    scopes = [Scope("acme", START, END, domain=f"go{number}.example") for number in range(MAX_REQUESTS)]
    asked = [answers.body(OVERVIEW if number else DASHBOARD, scope) for number, scope in enumerate(scopes)]
    tasks = [asyncio.create_task(one) for one in asked]
    while not answers._workers.is_full("acme", False):
        await asyncio.sleep(0)
    before = asyncio.all_tasks()
    bodies = answers.get([(OVERVIEW, MINE), (DASHBOARD, MINE)])
    for refused in (answers.body(OVERVIEW, MINE), answers.body(DASHBOARD, MINE), bodies):
        with pytest.raises(Overloaded):
            refused.send(None)  # at its first step, without a task for each part
    assert asyncio.all_tasks() == before
    await answers.body(DEVICES, MINE)  # cached
    asked = [answers.body(OVERVIEW, scopes[7]), answers.get([(OVERVIEW, scopes[7])])]  # being computed
    asked += [answers.body(OVERVIEW, THEIRS), answers.body(OVERVIEW, MINE, is_share=True)]
    others = [asyncio.create_task(one) for one in asked]
    await asyncio.sleep(0)
    assert not any(one.done() for one in others)
    engine.open.set()
    await asyncio.gather(*tasks, *others)
    await answers.body(OVERVIEW, MINE)


async def test_a_rejected_caller_does_not_cancel_a_shared_answer(answers):
    cache_key, full = CacheKey.of("devices", MINE), asyncio.Event()

    async def refused():
        await full.wait()
        raise Overloaded

    tasks = []
    for compute in (refused, lambda: asyncio.sleep(0, b"[]")):
        tasks.append(asyncio.create_task(answers._cache.get_or_compute(cache_key, False, compute)))
        await asyncio.sleep(0)
    full.set()
    with pytest.raises(Overloaded):
        await tasks[0]
    assert await tasks[1] == b"[]"


steps = st.lists(
    st.tuples(st.sampled_from(["acme", "other"]), st.integers(0, 2), st.sampled_from([0, 1, 150, 299, 300, 301])),
    min_size=1,
    max_size=60,
)


@settings(max_examples=60, derandomize=True)
@given(steps)
def test_a_cached_answer_is_never_stale_or_for_another_scope(script):
    async def play():
        answers = AnswerCache(clock := Clock(0.0))
        for organization, number, pause in script:
            key = CacheKey.of("devices", Scope(organization, START, date(2026, 3, 10 + number)))
            made = f"{organization} {number} {clock.now}".encode()
            body = await answers.get_or_compute(key, False, lambda made=made: asyncio.sleep(0, made))
            assert answers.get(key).body == body
            owner, which, made_at = body.decode().split()
            assert (owner, int(which)) == (organization, number)
            assert clock.now - float(made_at) < TTL_SECONDS
            for name in ("acme", "other"):
                total, devices = answers.statistics(name, ["devices"], {})
                assert total == devices | {"scope": "total"}
                assert devices["oldest_age_seconds"] is None or devices["oldest_age_seconds"] < TTL_SECONDS
            clock.now += pause

    asyncio.run(play())


async def test_the_cache_is_bounded_in_bytes_and_counts_evictions(monkeypatch, clock):
    monkeypatch.setattr(cache, "MAX_BYTES", 10_000)
    answers = AnswerCache(clock)
    for day in range(1, 16):
        key = CacheKey.of("devices", Scope("acme", date(2026, 3, day), END))
        await answers.get_or_compute(key, False, lambda: asyncio.sleep(0, b"x" * 1_000))
    huge = CacheKey.of("browsers", MINE)
    assert await answers.get_or_compute(huge, False, lambda: asyncio.sleep(0, b"x" * 10_000)) == b"x" * 10_000
    assert answers.get(huge) is None
    total, devices, browsers = answers.statistics("acme", ["devices", "browsers"], {})
    assert (devices["entries"], devices["bytes"], devices["evictions"]) == (6, 6_000, 9)
    assert browsers["entries"] == 0
    assert total == devices | {"scope": "total", "misses": 16}
