"""Every form of the pages is read whole, also where its body is late: nothing else reads from the connection first."""

import time
from pathlib import Path
from urllib.parse import urlencode

import httpx2

import service.pages
from service.api_keys import ApiKeys
from service.clock import utc_now
from service.hooks.registry import Hooks
from service.jobs.store import Jobs
from service.pages.shares import ShareStore
from tests.service.jobs.findings import broken
from tests.service.pages.reading import OURS, Browser
from tests.support.control import open_store
from tests.support.tables import tables
from tests.support.visits import land, visit

FORMS = [*tables(__file__)["forms"]]
"""Each form, what is submitted, and the answer; those that end something are the last."""
PAUSE_SECONDS = 0.1


def late(fields):
    time.sleep(PAUSE_SECONDS)  # the server has the head by now
    yield urlencode(fields).encode()


def test_every_form_is_answered_at_once_when_its_body_is_late(lake, serving, link_of):
    land(lake, "acme", [visit(visited_at=utc_now().replace(tzinfo=None))])
    with open_store(Jobs, lake) as jobs, open_store(Hooks, lake) as hooks, open_store(ApiKeys, lake) as keys:
        jobs.upsert(broken(), utc_now())
        hook, _ = hooks.create("acme", "one", "https://automation.example/one")
        keys.create_key("acme", "two")
        ids = {"job": jobs.of("acme")[0].id, "hook": hook.id, "key": keys.all_keys("acme")[0].id}
        with open_store(ShareStore, lake) as shares:
            shares.create("acme", "test", {"name": "two", "range": "7d"})
            ids["share"] = shares.shares_of("acme")[0].id
    answers = []
    with serving(lake) as server, httpx2.Client(base_url=server.address, trust_env=False, timeout=10) as client:
        Browser(client).enter(link_of(lake, clock=utc_now))
        for path, fields, _ in FORMS:
            headers = {"Content-Type": "application/x-www-form-urlencoded", **OURS}
            answer = client.post(f"/app/{path.format(**ids)}", content=late(fields), headers=headers)
            answers.append((path, fields, answer.status_code))
            assert "Incomplete body" not in answer.text
    assert answers == FORMS


def test_no_form_is_missing_here():
    routes = sum(path.read_text("utf-8").count('"POST"]') for path in Path(service.pages.__file__).parent.rglob("*.py"))
    assert routes == len(FORMS)
