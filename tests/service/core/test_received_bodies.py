"""Request bodies in memory: evictions at a limit, in random sequences of arrivals."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from service.core.http.caller import Caller
from service.core.http.errors import BodyTooLarge, InvalidBody, Overloaded
from service.core.http.received_bodies import FIRST_BYTES, ReceivedBodies

ALL, EACH = 320, 160
LARGE = 1_000


class Sender:
    """A request with a body that arrives as scripted."""

    def __init__(self, bodies, owner):
        self._bodies, self._owner = bodies, owner
        self._messages = asyncio.Queue()
        self.landed = asyncio.Event()
        self.task = asyncio.create_task(self._run())

    async def _run(self):
        caller = Caller(self._owner, "editor", "x", is_key=True) if self._owner else None
        scope = {"type": "http", "headers": [], "bodies": self._bodies, "caller": caller}
        too_large = BodyTooLarge("too large")
        async with self._bodies.receive(Request(scope, self._messages.get), LARGE, too_large) as body:
            await self.landed.wait()
            return body

    async def send(self, size, more=True):
        self._messages.put_nowait({"type": "http.request", "body": b"x" * size, "more_body": more})
        await settled()

    async def leave(self):
        self._messages.put_nowait({"type": "http.disconnect"})
        await settled()

    @property
    def error(self):
        return type(self.task.exception()) if self.task.done() and self.task.exception() else None


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def bodies():
    return ReceivedBodies(lambda _: "198.51.100.1", ALL, EACH)


async def sent(bodies, owner, *sizes):
    sender = Sender(bodies, owner)
    for size in sizes:
        await sender.send(size)
    return sender


async def test_a_complete_body_counts_until_it_is_released(bodies):
    sender = await sent(bodies, "acme", 100)
    await sender.send(20, more=False)
    assert bodies.bytes_held == 120
    sender.landed.set()
    assert await sender.task == b"x" * 120
    assert bodies.bytes_held == 0


async def test_an_owner_past_its_limit_loses_its_oldest_body(bodies):
    first, second = await sent(bodies, "acme", 100), await sent(bodies, "acme", 50)
    third = await sent(bodies, "acme", 20)
    assert [one.error for one in (first, second, third)] == [Overloaded, None, None]
    assert bodies.bytes_held == 70


async def test_past_the_total_limit_the_heaviest_owner_loses_a_body(bodies):
    light = await sent(bodies, "light", 40)
    heavy = [await sent(bodies, owner, 140) for owner in ("a", "b")]
    more = await sent(bodies, "a", 10)  # 330 in all
    assert [one.error for one in (light, *heavy, more)] == [None, Overloaded, None, None]
    assert bodies.bytes_held == 190


async def test_an_owner_below_its_equal_share_is_never_rejected(bodies):
    landing = [await sent(bodies, owner, 80) for owner in "abcd"]
    for sender in landing:
        await sender.send(0, more=False)  # complete bodies, which are not evicted
    late = await sent(bodies, "late", 60)
    assert late.error is None
    assert bodies.bytes_held == 380


async def test_complete_bodies_count_against_their_owners_limit(bodies):
    landing = await sent(bodies, "acme", 150)
    await landing.send(0, more=False)
    late = await sent(bodies, "acme", 20)
    assert (landing.error, late.error) == (None, Overloaded)
    assert bodies.bytes_held == 150


async def test_a_disconnecting_client_releases_its_bytes(bodies):
    sender = await sent(bodies, "acme", 100)
    await sender.leave()
    assert (sender.error, bodies.bytes_held) == (InvalidBody, 0)


async def test_a_cancelled_request_releases_its_bytes(bodies):
    sender = await sent(bodies, "acme", 100)
    sender.task.cancel()
    await settled()
    assert bodies.bytes_held == 0


async def test_before_authentication_the_address_is_the_owner(bodies):
    first = await sent(bodies, None, 100)
    second = await sent(bodies, None, 70)
    assert (first.error, second.error) == (Overloaded, None)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 120), st.booleans()), max_size=30))
def test_bodies_stay_within_limits_and_are_all_released(arrivals):
    async def run():
        bodies = ReceivedBodies(lambda _: "", ALL, EACH)
        senders = []
        for owner, size, is_whole in arrivals:
            sender = await sent(bodies, owner, size)
            senders.append(sender)
            if is_whole:
                await sender.send(0, more=False)
            assert bodies.bytes_held <= 2 * ALL
            assert all(held <= max(EACH, 120) + 120 for held in bodies._held.values())
        for sender in senders:
            sender.landed.set()
            await sender.leave()
            with suppress(Overloaded, InvalidBody):
                await sender.task
        assert bodies.bytes_held == 0

    asyncio.run(run())


class Stream:
    """A request whose chunks have all been received; it counts those that are taken."""

    def __init__(self, owner, chunks):
        self._left, self.taken = chunks, 0
        caller = Caller(owner, "editor", "x", is_key=True)
        self.scope = {"type": "http", "headers": [], "caller": caller}

    async def receive(self):
        self.taken += 1
        return {"type": "http.request", "body": b"x" * (FIRST_BYTES + 1), "more_body": self.taken < self._left}


async def test_a_body_waits_for_only_one_chunk_of_each_other_body():
    bodies = ReceivedBodies(lambda _: "198.51.100.1")

    async def received(stream):
        request = Request(stream.scope, stream.receive)
        async with bodies.receive(request, 1 << 20, BodyTooLarge("too large")):
            pass

    crowd = [Stream("acme", 10) for _ in range(20)]
    sending = [asyncio.create_task(received(stream)) for stream in crowd]
    await asyncio.sleep(0)  # the first chunk of each is taken
    await received(Stream("other", 3))
    assert sum(stream.taken for stream in crowd) < 20 + 3 + 3
    await asyncio.gather(*sending)
    assert [stream.taken for stream in crowd] == [10] * 20
