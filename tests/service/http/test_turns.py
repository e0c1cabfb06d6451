"""Turns: organizations one after the other, within one its askers, shares last, and a place left for the others."""

import asyncio
import gc
import threading

import pytest

from service.http.lanes import Lane, Workers
from service.http.turns import Asker, Turns

ANNA, BEN, SHARE = Asker("anna"), Asker("ben"), Asker("a share", is_share=True)


async def order_of(*given):
    """In which order those who wait, as (organization, *askers), get the only place, one after the other."""
    turns, order = Turns(1), []

    async def wait(organization, askers):
        await turns.take(organization, lambda: askers)
        order.append((organization, *(asker.name for asker in askers)))
        turns.give_back(organization)

    await turns.take("who has it", lambda: [ANNA])
    waiting = [asyncio.create_task(wait(organization, askers)) for organization, *askers in given]
    await asyncio.sleep(0)
    turns.give_back("who has it")
    await asyncio.gather(*waiting)
    assert turns._free == 1
    assert not turns._lines
    return order


@pytest.mark.parametrize(
    ("given", "order"),
    [([("a", ANNA)] * 3 + [("b", ANNA), ("c", ANNA)], "a b c a a"),
     ([("a", ANNA)] * 2 + [("b", ANNA)] * 3, "a b a b b"),
     ([("a", ANNA)] * 3 + [("a", BEN)] * 2, "anna ben anna ben anna"),
     ([("a", SHARE), ("a", SHARE), ("a", ANNA), ("a", BEN)], "anna ben a share a share"),
     ([("a", ANNA), ("a", SHARE), ("a", SHARE, BEN), ("a", ANNA)], "anna a share+ben anna a share"),
     ([("a", ANNA), ("a", ANNA), ("a", ANNA, BEN), ("a", ANNA)], "anna anna+ben anna anna")],
)  # fmt: skip
async def test_organizations_take_turns_and_within_one_its_askers_with_shares_last(given, order):
    taken = await order_of(*given)
    several = len({organization for organization, *_ in given}) > 1
    assert " ".join(one[0] if several else "+".join(one[1:]) for one in taken) == order


async def test_an_organization_never_takes_the_last_place_beside_one_that_it_has():
    turns = Turns(3)
    mine = [asyncio.create_task(turns.take("a", lambda: [ANNA])) for _ in range(3)]
    await asyncio.sleep(0)
    assert [one.done() for one in mine] == [True, True, False]
    await turns.take("b", lambda: [ANNA])
    turns.give_back("b")
    await asyncio.sleep(0)
    assert not mine[2].done()
    turns.give_back("a")
    await mine[2]


async def test_of_two_organizations_the_one_with_fewer_places_goes_first():
    turns = Turns(4)
    for organization in "aab":
        await turns.take(organization, lambda: [ANNA])
    waiting = {organization: asyncio.create_task(turns.take(organization, lambda: [ANNA])) for organization in "ab"}
    await asyncio.sleep(0)
    assert not any(one.done() for one in waiting.values())  # each has a place, and one is left
    await turns.take("c", lambda: [ANNA])
    turns.give_back("c")
    turns.give_back("a")  # as many as b has
    await asyncio.sleep(0)
    assert waiting["a"].done()
    turns.give_back("a")
    turns.give_back("a")
    await waiting["b"]


async def test_a_query_gets_the_turn_of_the_best_of_those_who_wait_when_it_is_given():
    turns, joined = Turns(1), [SHARE]
    await turns.take("a", lambda: [ANNA])
    early = asyncio.create_task(turns.take("a", lambda: [SHARE]))
    late = asyncio.create_task(turns.take("a", lambda: joined))
    await asyncio.sleep(0)
    joined.append(BEN)
    turns.give_back("a")
    await late
    assert not early.done()
    turns.give_back("a")
    await early


async def test_who_leaves_while_waiting_or_at_its_turn_keeps_no_place():
    turns = Turns(1)
    await turns.take("a", lambda: [ANNA])
    waiting, at_its_turn, last = (asyncio.create_task(turns.take("b", lambda: [BEN])) for _ in range(3))
    await asyncio.sleep(0)
    waiting.cancel()
    turns.give_back("a")
    at_its_turn.cancel()
    await asyncio.wait_for(last, 5)
    turns.give_back("b")
    assert turns._free == 1
    assert not turns._lines


async def test_a_place_is_given_back_when_the_query_ends_not_when_its_client_leaves():
    lane, begun, end, unheard = Lane(1, "test"), asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: unheard.append(context))

    def work():
        loop.call_soon_threadsafe(begun.set)
        end.wait(30)
        raise RuntimeError("interrupted")

    leaving = asyncio.create_task(lane.compute("a", lambda: [ANNA], work))
    await begun.wait()
    leaving.cancel()
    after = asyncio.create_task(lane.compute("b", lambda: [ANNA], lambda: "answered"))
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
        await turns.take(organization, lambda: [ANNA])
        order.append(organization)
        turns.give_back(organization)

    await turns.take("a", lambda: [ANNA])
    first = asyncio.create_task(wait("a"))
    await asyncio.sleep(0)
    turns.give_back("a", 3_600)
    await asyncio.gather(wait("b"), wait("c"))
    assert not first.done()
    turns._end_rest("a")
    await first
    assert order == ["b", "c", "a"]
    assert turns._free == 1
    assert not turns._lines


@pytest.mark.parametrize(("asker", "rests"), [("a", [0.0]), ("b", [pytest.approx(0.02, abs=0.01)])])
async def test_work_beside_queries_of_others_rests_as_long_as_it_took(monkeypatch, asker, rests):
    times, given = iter([1.0, 1.02]), []
    give_back = Turns.give_back
    monkeypatch.setattr(Turns, "give_back", lambda turns, name, rest=0: given.append(rest) or give_back(turns, name))
    workers, end = Workers(), threading.Event()
    query = asyncio.create_task(workers.compute(asker, lambda: [ANNA], lambda: end.wait(30)))
    await asyncio.sleep(0)
    monkeypatch.setattr("service.http.lanes.monotonic", lambda: next(times))
    await workers.texts.compute("a", lambda: [ANNA], lambda: "a page")
    monkeypatch.undo()
    end.set()
    await query
    workers.close()
    assert given == rests
