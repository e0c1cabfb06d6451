"""The short way finds what the cache holds at that moment, whatever happened before, and remembers little."""

import asyncio
import random
from dataclasses import replace
from datetime import date

import pytest

from data import Lake
from data.store.links import Targets
from queries import ENTRIES, Scope, Warehouse
from service.api_keys import Control
from service.http import cache, shortcut
from service.http.answers import Answers, Workers
from service.http.authentication import Gate
from service.http.cache import TTL_SECONDS, AnswerCache
from service.http.shortcut import Shortcut
from tests.visits import land, visit

START, END = date(2026, 3, 1), date(2026, 3, 15)
NAMES = ("dashboard", "devices", "traffic-overview", "weekly-trend")
LAST_WEEK, FORTNIGHT = b"range=7d", b"start_date=2026-03-01&end_date=2026-03-15"


class Known:
    """A caller, the short way and what it stands on; tests move the clock and the day."""

    def __init__(self, lake: Lake, key: str, gate: Gate, answers: Answers) -> None:
        self.now = 0.0
        self.today = END
        self.headers = [(b"host", b"x"), (b"authorization", f"Bearer {key}".encode())]
        self.lake = lake
        self.gate = gate
        self.answers = answers
        paths = {f"/{name}": entry for name, entry in ENTRIES.items()}
        self.shortcut = Shortcut(paths, gate, answers, Targets(lake), lambda: self.today)

    def find(self, name, query=FORTNIGHT):
        found = self.shortcut.find(b"/%s?%s" % (name.encode(), query), self.headers, False)
        return found and found.body

    def scope(self, query):
        start = START if query == FORTNIGHT else date.fromordinal(self.today.toordinal() - 6)
        return Scope("acme", start, min(END, self.today) if query == FORTNIGHT else self.today)

    def held(self, name, query):
        held = self.answers.held(ENTRIES[name], self.scope(query), self.answers.epoch("acme"))
        return held and held.body


@pytest.fixture
def play(lake, settings, key_of):
    """Plays a coroutine of somebody known."""
    land(lake, "acme", [visit()])
    control, warehouse, workers = Control(lake), Warehouse(lake), Workers()
    gate = Gate(settings(lake), control, None, lambda: 0.0)

    def play(script):
        async def played():
            answers = Answers(warehouse, AnswerCache(lambda: known.now), workers)
            known = Known(lake, key_of(lake), gate, answers)
            await gate.caller(known.headers)
            await script(known)

        asyncio.run(played())

    yield play
    for part in (workers, warehouse, control):
        part.close()


def test_what_it_finds_is_always_what_the_cache_holds_then(play, tell, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 16_000)  # not enough for everything

    async def script(known):
        chance, found = random.Random(1), 0
        for _ in range(400):
            name, query = chance.choice(NAMES), chance.choice([LAST_WEEK, FORTNIGHT])
            event = chance.random()
            if event < 0.2:
                await known.answers.body(ENTRIES[name], known.scope(query))
            elif event < 0.24:
                known.now += chance.choice([1, 100, TTL_SECONDS - 1, TTL_SECONDS])
            elif event < 0.26:
                known.today = chance.choice([END, date(2026, 3, 14)])
            elif event < 0.28:
                land(known.lake, "acme", [visit()])
            elif event < 0.29:
                with known.lake.manifest.transaction() as db:
                    db.execute("INSERT OR REPLACE INTO epochs VALUES ('acme', ?)", [chance.randrange(1_000)])
            for _ in range(2):
                body = known.find(name, query)
                assert body == known.held(name, query)
                found += body is not None
        [total, *_] = known.answers.statistics("acme")
        tell(asked=800, found=found, evicted=total["evictions"])
        assert 100 < found < 700
        assert total["evictions"]

    play(script)


def test_an_answer_of_several_is_found_as_long_as_its_oldest_part_is_held(play):
    async def script(known):
        await known.answers.body(ENTRIES["devices"], known.scope(FORTNIGHT))
        known.now = 100.0
        body = await known.answers.body(ENTRIES["dashboard"], known.scope(FORTNIGHT))
        for known.now, expected in ((100.0, body), (TTL_SECONDS - 0.1, body), (TTL_SECONDS, None)):
            assert known.find("dashboard") == expected
        assert known.find("traffic-overview") is not None

    play(script)


def test_questions_that_cannot_be_understood_or_may_change_their_meaning_are_not_remembered(play):
    async def script(known):
        await known.answers.body(ENTRIES["devices"], known.scope(FORTNIGHT))
        await known.answers.body(ENTRIES["devices"], replace(known.scope(FORTNIGHT), short_code=""))
        for query in (b"range=x", b"target_url=https://x", b"%74arget_url=https://x", b"x=" + b"x" * 600):
            assert known.find("devices", FORTNIGHT + b"&" + query) is not None
        assert len(known.shortcut._found) == 1
        for query in (b"range=x", FORTNIGHT + b"#", b"range=7d&range=7d"):
            assert known.find("devices", query) is None
        assert known.find("nothing") is known.find("%64evices") is known.find("\xe9") is None

    play(script)


@pytest.mark.parametrize(("limit", "most"), [("MOST_QUESTIONS", 10), ("MOST_JOINED_BYTES", 100_000)])
def test_what_is_remembered_is_bounded_in_number_and_bytes(play, monkeypatch, limit, most):
    async def script(known):
        monkeypatch.setattr(shortcut, limit, most)
        size = len(await known.answers.body(ENTRIES["dashboard"], known.scope(FORTNIGHT)))
        for number in range(60):
            assert len(known.find("dashboard", FORTNIGHT + b"&x=%d" % number)) == size
            remembered = len(known.shortcut._found)
            assert remembered <= (10 if limit == "MOST_QUESTIONS" else 100_000 // size)
        assert remembered > 1

    play(script)


def test_the_header_of_another_caller_or_none_finds_nothing(play, key_of):
    async def script(known):
        await known.answers.body(ENTRIES["devices"], known.scope(FORTNIGHT))
        assert known.find("devices") is not None
        mine = known.headers
        other = (b"authorization", f"Bearer {key_of(known.lake, 'other')}".encode())
        for headers in ([other], [mine[1], mine[1]], [(b"authorization", b"Bearer x")], [], [*mine, (b"origin", b"x")]):
            known.headers = headers
            assert known.find("devices") is None
        await known.gate.caller([other])
        known.headers = [other]
        assert known.find("devices") is None
        known.headers = mine
        assert known.find("devices") is not None

    play(script)
