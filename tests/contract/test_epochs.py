"""After history is reclassified, erased or merged, answers computed from the old visits are never served."""

import asyncio
import json
import threading
from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime

import pytest

from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser
from data.tasks.reclassification import Reclassifier
from queries import ENDPOINTS, Scope, Warehouse
from service.core.http.pools import Workers
from service.reports.answers import Answers
from service.reports.cache import AnswerCache
from tests.support.identity import bearer
from tests.support.lakes import opened as opened_lake
from tests.support.visits import land, visit

DAYS = {"start_date": "2026-03-02", "end_date": "2026-03-08"}
STALE = [
    visit(user_agent=agent, visited_at=datetime(2026, 3, day, hour), short_code="sale" if hour else None, visitor=hour)
    for day in (3, 4)
    for hour, agent in enumerate(("GPTBot/1.2", "ChatGPT-User/1.0", "claude-code/2.1", "curl/8.9.1", None))
]
"""Visits by bots that rules of another version classified as people; all except the first on each day are to a link."""


def reclassify(lake):
    Reclassifier(lake).run(["acme"])


def erase(lake):
    Eraser(lake).run("acme", Criteria("sale"))


CHANGES = [(reclassify, (0, 6, 4)), (erase, (2, 0, 0))]
"""Each change, with the numbers of human, AI-related and other visits after it; all ten visits of STALE were human
before."""


def asked(client, name="traffic-overview", headers=None):
    response = client.get(f"/analytics/{name}", params=DAYS, headers=headers)
    assert response.status_code == 200, response.text
    return response.content


def counts(client):
    """Return the numbers of people's, AI-related and other visits."""
    answer = json.loads(asked(client))
    return answer["human_clicks"], answer["ai_visits"], answer["other_visits"]


def hits(client, headers=None):
    """Return how many requests by the caller's organization got a cached answer."""
    return client.get("/analytics/cache-stats", headers=headers).json()[0]["hits"]


@pytest.mark.parametrize(("change", "changed"), CHANGES)
def test_a_change_drops_only_the_organizations_cached_answers(lake, client, key_of, change, changed):
    theirs = bearer(key_of(lake, "other"))
    for name in ("acme", "other"):
        land(lake, name, STALE)
    assert counts(client) == counts(client) == (10, 0, 0)
    before = asked(client, headers=theirs)
    land(lake, "other", [visit()])
    change(lake)
    assert (counts(client), hits(client)) == (changed, 1)
    assert (counts(client), hits(client)) == (changed, 2)
    assert (asked(client, headers=theirs), hits(client, theirs)) == (before, 1)


def test_after_a_change_endpoints_answer_like_a_fresh_server(lake, client, opened):
    land(lake, "acme", STALE)
    held = {name: asked(client, name) for name in ENDPOINTS}
    reclassify(lake)
    told = {name: asked(client, name) for name in ENDPOINTS}
    with opened(lake) as fresh:
        assert told == {name: asked(fresh, name) for name in ENDPOINTS}
    must_differ = {"dashboard", "traffic-overview", "top-links", "bot-traffic"}
    assert {name for name in ENDPOINTS if told[name] != held[name]} >= must_differ


def test_landing_keeps_cached_answers_but_reclassifying_does_not(lake, client):
    land(lake, "acme", STALE)
    for expected in ((10, 0, 0), (0, 7, 4)):
        assert counts(client) == expected
        land(lake, "acme", [visit(user_agent="GPTBot/1.2")])
        assert counts(client) == expected
        reclassify(lake)
    assert counts(client) == (0, 8, 4)


def test_an_answer_stays_cached_if_its_organization_is_unchanged(lake, client):
    for name in ("acme", "other"):
        land(lake, name, STALE)
    first = asked(client)
    land(lake, "acme", [visit()])
    for organizations, how in ((["acme"], {"dry_run": True}), (["other"], {}), ([], {})):
        Reclassifier(lake).run(organizations, **how)
        assert asked(client) == first
    assert (hits(client), lake.manifest.organizations.epoch("acme")) == (3, 0)
    reclassify(lake)
    second = asked(client)
    assert second != first
    reclassify(lake)  # by the current rules, like before
    assert (asked(client), hits(client)) == (second, 4)


class HeldBack(Warehouse):
    """A real warehouse that has read the manifest, but does not compute an answer until its gate opens."""

    def __init__(self, lake):
        self.gate = threading.Event()
        self.computed = Counter()
        super().__init__(lake)

    def answer(self, entry, snapshot, *cancelled):
        self.computed[entry.name] += 1
        assert self.gate.wait(60)
        return super().answer(entry, snapshot, *cancelled)


@pytest.mark.parametrize(("name", "change", "changed"), [("traffic-overview", *CHANGES[0]), ("dashboard", *CHANGES[1])])
async def test_an_answer_begun_before_a_change_is_not_served_after_it(lake, name, change, changed):
    land(lake, "acme", STALE)
    scope = Scope("acme", date(2026, 3, 2), date(2026, 3, 8))
    with closing(Workers()) as workers, closing(HeldBack(lake)) as warehouse:
        answers = Answers(warehouse, AnswerCache(), workers)
        before = asyncio.create_task(answers.body(ENDPOINTS[name], scope))
        while not warehouse.computed:
            await asyncio.sleep(0.001)
        with opened_lake(lake.root) as other:
            change(other)
        after = asyncio.create_task(answers.body(ENDPOINTS[name], scope))
        await asyncio.sleep(0)
        warehouse.gate.set()
        assert b'"human_clicks":10,' in await before
        assert b'"human_clicks":%d,"ai_visits":%d,' % changed[:2] in await after
        assert await answers.body(ENDPOINTS[name], scope) == await after


# Files that vanish between a query's listing and its reading


@pytest.mark.parametrize(("name", "times"), [("traffic-overview", 3), ("dashboard", 1)])
def test_a_query_is_retried_if_its_files_were_deleted(lake, opened, monkeypatch, times, name):
    """The files are merged, and the old files deleted, right after a query has listed them; the server itself does
    neither."""
    taken, snapshots = Warehouse.snapshot, []

    def snapshot(warehouse, scope):
        snapshots.append(taken(warehouse, scope))
        if len(snapshots) <= times:
            land(lake, "acme", [visit(visited_at=datetime(2026, 3, 4, len(snapshots)))])
            assert Compactor(lake, lambda: datetime(2027, 1, 1, tzinfo=UTC)).run().partitions == 1
            assert Compactor(lake, lambda: datetime(9000, 1, 1, tzinfo=UTC)).sweep() == 2
        return snapshots[-1]

    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 4))])
    monkeypatch.setattr(Warehouse, "snapshot", snapshot)
    monkeypatch.setattr("service.ops.maintenance.START_DELAY_SECONDS", 600.0)
    with opened(lake) as client:
        answer = client.get(f"/analytics/{name}", params=DAYS)
    assert answer.status_code == 200
    found = answer.json()
    assert found.get("overview", found)["total_visits"] == 1 + times
    assert len(snapshots) > times
