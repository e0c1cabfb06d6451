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
from tests.support.visits import land, visit

FORMS = [
    ("jobs/{job}/actions", {"action_id": "approve_fix", "version": "1"}, 303),
    ("jobs/{job}/implementations", {"kind": "patch text/x-diff", "content": "+a", "version": "2"}, 303),
    ("jobs/{job}/implementations/1/status", {"status": "shipped", "version": "3"}, 303),
    ("settings/api-keys", {"name": "one"}, 200),
    ("settings/api-keys/{key}/revoke", {}, 303),
    ("settings/sessions/nothing/revoke", {}, 404),
    ("settings/shares", {"name": "one", "range": "7d"}, 200),
    ("settings/shares/{share}/revoke", {}, 303),
    ("settings/agent-hooks", {"name": "two", "url": "https://automation.example/two", "job.approved": "on"}, 200),
    ("settings/agent-hooks/{hook}/active", {"active": "on"}, 303),
    ("settings/agent-hooks/{hook}/test", {}, 303),
    ("settings/agent-hooks/{hook}/secret", {}, 200),
    ("settings/agent-hooks/{hook}/deliveries/nothing/replay", {}, 404),
    ("settings/agent-hooks/{hook}/delete", {"confirmed": "on"}, 303),
    ("invented-links/claims", {"address": "nothing"}, 400),
    ("robots?block=OpenAI:training", {"as": "robots.txt"}, 400),
    ("sign-out", {}, 303),
    ("sign-in", {"key": "wrong"}, 403),
    ("enter", {"code": "wrong"}, 403),
]
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
        ids = {"job": jobs.of("acme")[0].id, "hook": hook.id, "key": keys.keys_of("acme")[0].id}
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
