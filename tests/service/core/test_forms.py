"""Every form on the pages: read completely, even if its body is late, and only from users who may send it."""

import time
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest

import service
from service.access.api_keys import ApiKeys
from service.access.sessions import SessionStore
from service.core.clock import utc_now
from service.dashboard.shares import ShareStore
from service.hooks.registry import Hooks
from service.jobs.implementations import Draft
from service.jobs.store import Jobs
from tests.conftest import NOW
from tests.service.jobs.findings import ANNA, broken
from tests.support.page_reading import OURS, Browser, link_of, read
from tests.support.tables import tables
from tests.support.visits import land, visit

FORMS = [*tables(__file__)["forms"]]
"""Each form, its submitted values, and the responses to an editor, a viewer, a session of a key (null: the same as for
an editor), and an editor of another organization. Forms that end something come last.
"""
PAUSE_SECONDS = 0.1


@pytest.fixture
def ids(lake, control):
    """The ids in the paths of forms: acme has one of everything, named "secret", and a second, approved job."""
    land(lake, "acme", [visit()])
    jobs, hooks, keys, shares = Jobs(control), Hooks(control), ApiKeys(control), ShareStore(control)
    for path in ("/secret", "/secret-too"):
        jobs.upsert(broken(path), NOW)
    found = {row.path[1:]: row.id for row in jobs.of("acme")}
    jobs.act("acme", found["secret-too"], "approve_fix", ANNA, NOW)
    jobs.attach("acme", found["secret-too"], Draft("manual"), ANNA, NOW)
    hook, _ = hooks.create("acme", "secret", "https://automation.example/secret")
    keys.create_key("acme", "secret")
    shares.create("acme", "test", {"name": "secret", "range": "7d"})
    found |= {"hook": hook.id, "key": keys.all_keys("acme")[0].id, "share": shares.shares_of("acme")[0].id}
    SessionStore(control).open_by_link(link_of(lake, clock=utc_now))
    (session,) = SessionStore(control).sessions_of("acme")
    return found | {"job": found["secret"], "approved": found["secret-too"], "session": session.id}


def late(fields):
    time.sleep(PAUSE_SECONDS)  # the server has the head by now
    yield urlencode(fields).encode()


def test_every_form_is_answered_even_if_its_body_is_late(lake, ids, serving):
    answers = []
    with (
        serving(lake) as server,
        httpx2.Client(base_url=server.address, trust_env=False, verify=False, timeout=10) as client,
    ):
        Browser(client).enter(link_of(lake, clock=utc_now))
        for path, fields, *_ in FORMS:
            headers = {"Content-Type": "application/x-www-form-urlencoded", **OURS}
            answer = client.post(f"/app/{path.format(**ids)}", content=late(fields), headers=headers)
            answers.append((path, answer.status_code))
            assert "Incomplete body" not in answer.text
    assert answers == [(path, status) for path, _, status, *_ in FORMS]


def test_every_form_is_in_the_tested_list():
    routes = sum(path.read_text("utf-8").count('"POST"]') for path in Path(service.__file__).parent.rglob("*.py"))
    assert routes == len(FORMS)


@pytest.mark.parametrize(("who", "column"), [("viewer", 3), ("key", 4), ("rival", 5)])
def test_only_editors_can_see_and_change_settings(lake, control, ids, browsing, key_of, who, column):
    """The session of a key could make content that outlives the key, and the addresses of hooks are often secret
    themselves."""
    stores = Jobs(control).of, Hooks(control).of, ShareStore(control).shares_of
    key, before = key_of(lake), [store("acme") for store in stores]
    with browsing(lake, *(("rival",) if who == "rival" else ("acme", "viewer"))) as browser:
        if who == "key":
            browser.post("sign-in", key=key)
        for path, seen_by, changed_by in tables(__file__)["pages"]:
            page = browser.get(path.format(**ids)).text
            assert ("secret" in page) == (who in seen_by), path
            assert bool(read(page).one("main").all("form", method="post")) == (who in changed_by), path
        for path, fields, *statuses in FORMS:
            if status := statuses[column - 2]:
                assert browser.post(path.format(**ids), **fields).status_code == status, path
    assert [store("acme") for store in stores] == before
    assert {one.state for one in ApiKeys(control).all_keys("acme")} == {"active"}
    assert ids["session"] in {one.id for one in SessionStore(control).sessions_of("acme")}
