"""Turns: organizations one after the other, within one shares last, and a place left for the others."""

import asyncio
import gc
import threading

import pytest

from service.http.lanes import Lane, Workers
from service.http.turns import Turns


async def order_of(*given):
    """In which order those who wait, as (organization, is_share, name), get the only place, one after the other."""
    turns, order = Turns(1), []

    async def wait(organization, is_share, name):
        await turns.take(organization, is_share)
        order.append(name)
        turns.give_back(organization)

    await turns.take("who has it")
    waiting = [asyncio.create_task(wait(*one)) for one in given]
    await asyncio.sleep(0)
    turns.give_back("who has it")
    await asyncio.gather(*waiting)
    assert turns._free == 1
    assert not turns._queues
    return order


@pytest.mark.parametrize(("given", "order"), [("aaabc", "abcaa"), ("aabbb", "ababb")])
async def test_organizations_take_turns(given, order):
    assert await order_of(*((name, False, name) for name in given)) == [*order]


async def test_a_share_comes_after_members_who_keep_their_order():
    given = ("a", True, "share"), ("a", False, "anna"), ("a", True, "another share"), ("a", False, "ben")
    assert await order_of(*given) == ["anna", "ben", "share", "another share"]


async def test_a_share_waits_for_no_members_of_other_organizations():
    given = ("a", False, "anna"), ("a", False, "ben"), ("b", True, "share of b")
    assert await order_of(*given) == ["anna", "share of b", "ben"]


async def test_an_organization_takes_no_second_place_that_is_the_last(monkeypatch):
    monkeypatch.setattr("service.http.turns.RECENT_SECONDS", 0)
    turns = Turns(3)
    mine = [asyncio.create_task(turns.take("a")) for _ in range(3)]
    await asyncio.sleep(0)
    assert [one.done() for one in mine] == [True, True, False]
    await turns.take("b")
    turns.give_back("b")
    await asyncio.sleep(0)
    assert not mine[2].done()
    turns.give_back("a")
    await mine[2]


async def test_beside_another_an_organization_has_half_of_the_places():
    turns = Turns(3)
    await turns.take("b")
    turns.give_back("b")
    mine = [asyncio.create_task(turns.take("a")) for _ in range(2)]
    await asyncio.sleep(0)
    assert [one.done() for one in mine] == [True, False]
    turns.give_back("a")
    await mine[1]


async def test_of_two_organizations_the_one_with_fewer_places_goes_first():
    turns = Turns(4)
    for organization in "aab":
        await turns.take(organization)
    waiting = {organization: asyncio.create_task(turns.take(organization)) for organization in "ab"}
    await asyncio.sleep(0)
    assert not any(one.done() for one in waiting.values())  # each has a place, and one is left
    await turns.take("c")
    turns.give_back("c")
    turns.give_back("a")  # as many as b has
    await asyncio.sleep(0)
    assert waiting["a"].done()
    turns.give_back("a")
    turns.give_back("a")
    await waiting["b"]


async def test_who_leaves_while_waiting_or_at_its_turn_keeps_no_place():
    turns = Turns(1)
    await turns.take("a")
    waiting, at_its_turn, last = (asyncio.create_task(turns.take("b")) for _ in range(3))
    await asyncio.sleep(0)
    waiting.cancel()
    turns.give_back("a")
    at_its_turn.cancel()
    await asyncio.wait_for(last, 5)
    turns.give_back("b")
    assert turns._free == 1
    assert not turns._queues


async def test_a_place_is_given_back_when_the_query_ends_not_when_its_client_leaves():
    lane, begun, end, unheard = Lane(1, "test"), asyncio.Event(), threading.Event(), []
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
    assert unheard == []  # what it ends with is of interest to none who are here
    lane.close()


async def test_an_organization_that_rests_lets_others_go_first():
    turns, order = Turns(1), []

    async def wait(organization):
        await turns.take(organization)
        order.append(organization)
        turns.give_back(organization)

    await turns.take("a")
    first = asyncio.create_task(wait("a"))
    await asyncio.sleep(0)
    turns.give_back("a", 3_600)
    await asyncio.gather(wait("b"), wait("c"))
    assert not first.done()
    turns._end_rest("a")
    await first
    assert order == ["b", "c", "a"]
    assert turns._free == 1
    assert not turns._queues


@pytest.mark.parametrize(("organization", "rests"), [("a", [0.0]), ("b", [pytest.approx(0.02, abs=0.01)])])
async def test_work_beside_queries_of_others_rests_as_long_as_it_took(monkeypatch, organization, rests):
    times, given = iter([1.0, 1.02]), []
    give_back = Turns.give_back
    monkeypatch.setattr(Turns, "give_back", lambda turns, name, rest=0: given.append(rest) or give_back(turns, name))
    workers, end = Workers(), threading.Event()
    query = asyncio.create_task(workers.compute(organization, False, lambda: end.wait(30)))
    await asyncio.sleep(0)
    monkeypatch.setattr("service.http.lanes.monotonic", lambda: next(times))
    await workers.texts.compute("a", False, lambda: "a page")
    monkeypatch.undo()
    end.set()
    await query
    workers.close()
    assert given == rests
