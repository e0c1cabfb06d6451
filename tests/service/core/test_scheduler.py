"""The scheduler: organizations take turns, shares come last within an organization, and a slot is left for others."""

import asyncio
import gc
import threading

import pytest

from service.core.http.pools import Pool, Workers
from service.core.http.scheduler import Scheduler


async def order_of(*given):
    """Return the order in which waiting clients (organization, is_share, name) get the only slot, one after another."""
    scheduler, order = Scheduler(1), []

    async def wait(organization, is_share, name):
        await scheduler.acquire(organization, is_share)
        order.append(name)
        scheduler.release(organization)

    await scheduler.acquire("who has it")
    waiting = [asyncio.create_task(wait(*one)) for one in given]
    await asyncio.sleep(0)
    scheduler.release("who has it")
    await asyncio.gather(*waiting)
    assert scheduler._free == 1
    assert not scheduler._queues
    return order


@pytest.mark.parametrize(("given", "order"), [("aaabc", "abcaa"), ("aabbb", "ababb")])
async def test_organizations_take_turns(given, order):
    assert await order_of(*((name, False, name) for name in given)) == [*order]


async def test_members_precede_shares_and_both_keep_their_order():
    given = ("a", True, "share"), ("a", False, "anna"), ("a", True, "another share"), ("a", False, "ben")
    assert await order_of(*given) == ["anna", "ben", "share", "another share"]


async def test_a_share_does_not_wait_for_other_organizations_members():
    given = ("a", False, "anna"), ("a", False, "ben"), ("b", True, "share of b")
    assert await order_of(*given) == ["anna", "share of b", "ben"]


async def test_an_organization_with_a_slot_leaves_the_last_slot_free(monkeypatch):
    monkeypatch.setattr("service.core.http.scheduler.RECENT_SECONDS", 0)
    scheduler = Scheduler(3)
    mine = [asyncio.create_task(scheduler.acquire("a")) for _ in range(3)]
    await asyncio.sleep(0)
    assert [one.done() for one in mine] == [True, True, False]
    await scheduler.acquire("b")
    scheduler.release("b")
    await asyncio.sleep(0)
    assert not mine[2].done()
    scheduler.release("a")
    await mine[2]


async def test_two_organizations_get_half_of_the_slots_each():
    scheduler = Scheduler(3)
    await scheduler.acquire("b")
    scheduler.release("b")
    mine = [asyncio.create_task(scheduler.acquire("a")) for _ in range(2)]
    await asyncio.sleep(0)
    assert [one.done() for one in mine] == [True, False]
    scheduler.release("a")
    await mine[1]


async def test_the_organization_with_fewer_slots_goes_first():
    scheduler = Scheduler(4)
    for organization in "aab":
        await scheduler.acquire(organization)
    waiting = {organization: asyncio.create_task(scheduler.acquire(organization)) for organization in "ab"}
    await asyncio.sleep(0)
    assert not any(one.done() for one in waiting.values())  # each has a slot, and one slot is left
    await scheduler.acquire("c")
    scheduler.release("c")
    scheduler.release("a")  # the same number as b
    await asyncio.sleep(0)
    assert waiting["a"].done()
    scheduler.release("a")
    scheduler.release("a")
    await waiting["b"]


async def test_a_cancelled_client_leaves_the_queue_or_frees_its_slot():
    scheduler = Scheduler(1)
    await scheduler.acquire("a")
    waiting, at_its_turn, last = (asyncio.create_task(scheduler.acquire("b")) for _ in range(3))
    await asyncio.sleep(0)
    waiting.cancel()
    scheduler.release("a")
    at_its_turn.cancel()
    await asyncio.wait_for(last, 5)
    scheduler.release("b")
    assert scheduler._free == 1
    assert not scheduler._queues


async def test_a_slot_is_held_until_the_query_ends():
    lane, begun, end, unheard = Pool(1, "test"), asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: unheard.append(context))

    def work():
        loop.call_soon_threadsafe(begun.set)
        end.wait(30)
        raise RuntimeError("interrupted")

    leaving = asyncio.create_task(lane.compute("a", False, work))
    await begun.wait()
    leaving.cancel()
    after = asyncio.create_task(lane.compute("b", False, lambda: "answered"))
    await asyncio.sleep(0.05)
    assert not after.done()
    end.set()
    assert await after == "answered"
    del leaving
    gc.collect()
    assert unheard == []  # no remaining client needs its result
    lane.close()


async def test_a_resting_organization_lets_others_go_first():
    scheduler, order = Scheduler(1), []

    async def wait(organization):
        await scheduler.acquire(organization)
        order.append(organization)
        scheduler.release(organization)

    await scheduler.acquire("a")
    first = asyncio.create_task(wait("a"))
    await asyncio.sleep(0)
    scheduler.release("a", 3_600)
    await asyncio.gather(wait("b"), wait("c"))
    assert not first.done()
    scheduler._end_rest("a")
    await first
    assert order == ["b", "c", "a"]
    assert scheduler._free == 1
    assert not scheduler._queues


@pytest.mark.parametrize(("organization", "rests"), [("a", [0.0]), ("b", [pytest.approx(0.02, abs=0.01)])])
async def test_work_pauses_for_its_own_duration_while_others_query(monkeypatch, organization, rests):
    times, given = iter([1.0, 1.02]), []
    release = Scheduler.release
    monkeypatch.setattr(Scheduler, "release", lambda self, name, rest=0: given.append(rest) or release(self, name))
    workers, end = Workers(), threading.Event()
    query = asyncio.create_task(workers.compute(organization, False, lambda: end.wait(30)))
    await asyncio.sleep(0)
    monkeypatch.setattr("service.core.http.pools.monotonic", lambda: next(times))
    await workers.texts.compute("a", False, lambda: "a page")
    monkeypatch.undo()
    end.set()
    await query
    workers.close()
    assert given == rests
