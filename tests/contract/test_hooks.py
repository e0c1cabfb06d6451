"""Tests Agent Hooks over HTTP: permissions, rejected input, and where the secret is shown."""

import functools
import io
import json
import re
import sqlite3
import time
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from standardwebhooks import Webhook
from starlette.testclient import TestClient

from service.core.clock import utc_now
from service.core.logs import Log, LogHandler
from service.hooks.outbox import MAX_PENDING
from service.hooks.registry import Hooks
from tests.support import identity
from tests.support.control import open_store

PATH = "/agent-hooks"
FIELDS = [
    "id", "name", "url", "events", "active", "created_at", "created_by", "secret_last4", "secret_rotated_at",
    "previous_secret_until", "last_success_at", "last_failure_at", "consecutive_failures", "paused_until",
    "disabled_reason",
]  # fmt: skip
HOOK = {"name": "automation", "url": "https://hooks.example/traffic?token=canary"}


@pytest.fixture(scope="module")
def client(shared_lake, opened, tmp_path_factory):
    """The application with an identity provider; its own origin is stats.example."""
    changes = identity.settings_of(tmp_path_factory.mktemp("identity")) | {"public_url": "https://stats.example"}
    with opened(shared_lake, "", **changes) as client:
        yield client


as_ = functools.partial(identity.as_, sub="anna")


@pytest.fixture
def mine(client, request):
    """Send a request as an editor of an organization that no other test uses; return the response's JSON."""
    headers = as_("o" + re.sub(r"\W", "_", request.node.name)[-60:])

    def mine(method, path, expected=200, **how):
        answer = client.request(method, path, headers=headers, **how)
        assert answer.status_code == expected, answer.text
        return answer.json()

    return mine


def create(mine, **changes):
    return mine("POST", PATH, 201, json=HOOK | changes)


def test_a_hooks_secret_is_shown_only_when_it_is_created(mine):
    made = create(mine)
    assert list(made) == [*FIELDS, "secret"]
    assert re.fullmatch(r"hook_[0-9a-f]{20}", made["id"])
    assert (made["name"], made["url"], made["events"], made["active"]) == (*HOOK.values(), ["job.approved"], True)
    assert (made["created_by"], made["secret_last4"]) == ("anna", made["secret"][-4:])
    hidden = made.pop("secret")
    read = [mine("GET", PATH), mine("GET", f"{PATH}/{made['id']}"), mine("PATCH", f"{PATH}/{made['id']}", json={})]
    assert read == [[made], made, made]
    mine("POST", f"{PATH}/{made['id']}/test", 202)
    rotated = mine("POST", f"{PATH}/{made['id']}/secret")
    assert list(rotated) == [*FIELDS, "secret"]
    assert rotated["secret"] != hidden
    assert rotated["secret_last4"] == rotated["secret"][-4:]
    until = datetime.fromisoformat(rotated["previous_secret_until"])
    assert until - datetime.fromisoformat(rotated["secret_rotated_at"]) == timedelta(hours=24)
    read += [mine("GET", f"{PATH}/{made['id']}/deliveries"), mine("DELETE", f"{PATH}/{made['id']}")]
    assert not any(secret[6:] in json.dumps(read) for secret in (hidden, rotated["secret"]))


def test_hooks_are_listed_oldest_first_and_can_be_changed(mine):
    first, second = create(mine), create(mine, name="second", events=["job.resolved", "job.created", "job.created"])
    assert [one["id"] for one in mine("GET", PATH)] == [first["id"], second["id"]]
    assert second["events"] == ["job.created", "job.resolved"]
    path, old = f"{PATH}/{first['id']}", {name: first[name] for name in FIELDS}
    for changes in ({"name": "n", "url": "https://b.example", "active": False}, {"events": ["job.created"]}):
        old |= changes
        assert mine("PATCH", path, json=changes) == old
    mine("DELETE", path)
    for method in ("GET", "DELETE"):
        mine(method, path, 404)
    assert [one["id"] for one in mine("GET", PATH)] == [second["id"]]


ROUTES_OF_A_HOOK = [
    ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/secret"), ("GET", "/deliveries"),
    ("POST", "/deliveries/{delivery}/replay"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "route"), ROUTES_OF_A_HOOK, ids=" ".join)
def test_a_hook_of_another_organization_is_unknown(client, mine, method, route):
    hook = create(mine)["id"]
    delivery = mine("POST", f"{PATH}/{hook}/test", 202)["delivery_id"]
    secret = mine("GET", f"{PATH}/{hook}")["secret_last4"]
    told = []
    for asked in (hook, "hook_0123456789abcdef0123"):
        path = f"{PATH}/{asked}{route.format(delivery=delivery)}"
        answer = client.request(method, path, headers=as_("other"), json={} if method == "PATCH" else None)
        assert answer.status_code == 404
        told.append(answer.text.replace(asked, "it"))
    assert told[0] == told[1]
    assert mine("GET", f"{PATH}/{hook}")["secret_last4"] == secret


def test_an_organization_has_at_most_20_hooks(mine):
    for _ in range(20):
        create(mine)
    assert "maximum" in mine("POST", PATH, 400, json=HOOK)["message"]
    assert len(mine("GET", PATH)) == 20


def test_a_test_is_delivered_signed_and_can_be_replayed(lake, opened, receiver):
    there = receiver()
    changes = {"hook_networks": "127.0.0.0/8", "public_url": "https://stats.example", "base_path": "/base"}
    with opened(lake, clock=utc_now, **changes) as client:
        made = client.post("/base/agent-hooks", json={"name": "n", "url": there.url}).json()
        answer = client.post(f"/base/agent-hooks/{made['id']}/test")
        assert answer.status_code == 202
        (got,) = there.wait_for(1)
        assert answer.json() == {"delivery_id": got.headers["webhook-id"]}
        listing = f"/base/agent-hooks/{made['id']}/deliveries"
        while (deliveries := client.get(listing).json())[0]["status"] != "delivered":
            time.sleep(0.01)
        (delivery,) = deliveries
        assert (delivery["event"], delivery["attempts"], delivery["status_code"]) == ("hook.test", 1, 204)
        replay = client.post(f"{listing}/{delivery['id']}/replay")
        assert (replay.status_code, replay.json()) == (202, answer.json())
        _, again = there.wait_for(2)
    told = json.loads(got.body)
    assert told["data"]["job"]["is_test"]
    assert told["data"]["links"]["self"] == "https://stats.example/base/jobs/job_00000000000000000000"
    assert (again.headers["webhook-id"], again.body) == (got.headers["webhook-id"], got.body)
    for message in (got, again):
        Webhook(made["secret"]).verify(message.body, message.headers)


def test_neither_secrets_nor_urls_are_in_the_log_or_the_metrics(lake, opened, receiver):
    there = receiver()
    stream = io.BytesIO()
    log = Log(stream)
    handler = LogHandler(log)
    with opened(lake, clock=utc_now, log=log, hook_networks="127.0.0.0/8") as client:
        url = f"{there.url}/canary?token=canary"
        made = client.post(PATH, json={"name": "canary", "url": url}).json()
        client.post(f"{PATH}/{made['id']}/test")
        there.wait_for(1)
        client.post(f"{PATH}/{made['id']}/secret")
        with open_store(Hooks, lake) as hooks:
            while hooks.deliveries("acme", made["id"])[0].status != "delivered":
                time.sleep(0.01)
        with TestClient(client.app.monitor) as monitor:
            metrics = monitor.get("/metrics").text
    log.close()
    handler.close()
    text = stream.getvalue().decode()
    (line,) = [line for line in map(json.loads, text.splitlines()) if line["event"] == "hook"]
    assert line["hook"] == made["id"]
    assert line["id"].startswith("evt_")
    expected = {"level": "info", "organization": "acme", "type": "hook.test", "outcome": "delivered", "status": 204}
    assert line | expected | {"attempt": 1, "error": None} == line
    assert line["ms"] >= 0
    assert "canary" not in text + metrics
    assert made["secret"][6:] not in text + metrics
    assert 'traffic_hook_deliveries_total{outcome="delivered"} 1.0' in metrics
    assert 'traffic_hook_deliveries_total{outcome="dead"} 0.0' in metrics
    assert "traffic_hook_pending 0.0" in metrics


def test_a_secret_is_stored_only_in_the_private_control_sqlite(lake, opened):
    with opened(lake) as client:
        made = client.post(PATH, json=HOOK).json()
    files = [path for path in lake.root.rglob("*") if path.is_file()]
    assert [path.name for path in files if made["secret"].encode() in path.read_bytes()] == ["control.sqlite"]
    assert (lake.root / "control.sqlite").stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(lake.root / "control.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM hooks").fetchall() == [(1,)]


def test_an_approval_that_a_full_hook_blocks_changes_nothing(lake, opened, receiver, monkeypatch):
    monkeypatch.setattr("service.hooks.delivery.DEADLINE_SECONDS", 600)
    hanging = receiver(["hang"])
    with opened(lake, hook_networks="127.0.0.0/8") as client:
        fields = {"name": "agent", "url": hanging.url, "events": ["job.created", "job.approved"]}
        hook, title = client.post(PATH, json=fields).json(), {"title": "t", "summary": "s"}
        jobs = [client.post("/jobs", json=title).json() for _ in range(MAX_PENDING)]
        path = f"/jobs/{jobs[0]['id']}"
        before = client.get(path).json()
        refused = client.post(f"{path}/actions", json={"action_id": "approve_fix"})
        assert refused.status_code == 409
        assert hook["id"] in refused.text
        assert (refused.json()["status"], refused.json()["version"]) == ("new", 1)
        assert client.get(path).json() == before
        assert client.post("/jobs", json=title).status_code == 409
        assert client.post(f"{PATH}/{hook['id']}/test").status_code == 409
        assert client.patch(f"{PATH}/{hook['id']}", json={"active": False}).status_code == 200
        assert client.post(f"{path}/actions", json={"action_id": "approve_fix"}).status_code == 200
