"""Every route rejects undeclared JSON bodies and unauthorized callers, without changing anything."""

import asyncio
import json

import pytest
from starlette.requests import Request

from service.access import api
from service.access.api_keys import ApiKeys
from service.app.operations import OPERATIONS
from service.core.http.bodies import received_object
from service.core.http.caller import Caller
from service.core.http.endpoints import endpoint_of
from service.core.http.errors import InvalidBody
from service.core.http.received_bodies import ReceivedBodies
from service.jobs.implementations import Draft
from service.jobs.store import Jobs
from tests.conftest import NOW
from tests.service.jobs.findings import broken
from tests.support import identity
from tests.support.control import open_store
from tests.support.identity import as_, bearer
from tests.support.memory import traced_peak
from tests.support.tables import tables

ROUTES = {
    "jobs": ("POST", "/jobs", 64),
    "actions": ("POST", "{new}/actions", 64),
    "implementations": ("POST", "{approved}/implementations", 2_048),
    "status": ("POST", "{approved}/implementations/1/status", 64),
    "hooks": ("POST", "/agent-hooks", 16),
    "hook": ("PATCH", "/agent-hooks/{hook}", 16),
    "link": ("PUT", "/links/go.example/a", 16),
    "exclusions": ("POST", "/exclusions", 4),
    "files": ("PUT", "/exclusions/files", 4),
    "keys": ("POST", "/settings/api-keys", 4),
    "mcp": ("POST", "/mcp", 64),
}
"""Routes by name, with the maximum KiB of their bodies."""
QUIET = {"name": "n", "url": "https://hooks.example/", "events": ["job.reopened"]}
"""A hook that gets no messages here."""
MEANWHILE = {"last_success_at", "last_failure_at", "consecutive_failures", "paused_until", "last_used_at"}
"""Fields of hooks and keys that change by themselves."""
NOT_JSON = {
    "empty": b"",
    "cut off": b'{"name":',
    "two values": b"{} {}",
    "no UTF-8": b'{"name": "\xff"}',
    "half a surrogate pair": b'{"name": "\\ud800"}',
    "NaN": b'{"name": NaN}',
    "too deep": b"[" * 2_000 + b"]" * 2_000,
}


@pytest.fixture(scope="module")
def client(shared_lake, opened, tmp_path_factory):
    changes = identity.settings_of(tmp_path_factory.mktemp("identity")) | {"public_url": "https://stats.example"}
    with opened(shared_lake, "", **changes) as client:
        client.headers |= {"Authorization": f"Bearer {identity.token('acme', 'editor')}"}
        yield client


@pytest.fixture(scope="module")
def send(client, shared_lake):
    """Send a body to one of the routes. A new job, an approved job with an implementation, and a hook exist."""
    with open_store(Jobs, shared_lake) as store:
        for path in ("/found", "/approved"):
            store.upsert(broken(path), NOW)
    jobs = {row["path"]: f"/jobs/{row['id']}" for row in client.get("/jobs").json()}
    known = {"new": jobs["/found"], "approved": jobs["/approved"]}
    known["hook"] = client.post("/agent-hooks", json=QUIET).json()["id"]

    def send(route, body):
        method, path, _ = ROUTES[route]
        return client.request(method, path.format(**known), content=body)

    assert client.post(f"{known['approved']}/actions", json={"action_id": "approve_fix"}).status_code == 200
    attached = {"implementation_type": "patch", "url": "https://git.example/7"}
    assert send("implementations", json.dumps(attached)).status_code == 201
    return send


def state(client):
    """Return everything that a write could change."""
    jobs = client.get("/jobs").json()
    paths = [f"/jobs/{job['id']}" for job in jobs] + ["/links/go.example/a", "/exclusions", "/exclusions/files"]
    rows = client.get("/agent-hooks").json() + client.get("/settings/api-keys").json()
    kept = [{name: value for name, value in row.items() if name not in MEANWHILE} for row in rows]
    return [jobs, kept, *(client.get(path).json() for path in paths)]


@pytest.mark.parametrize("route", ROUTES)
def test_an_invalid_or_oversized_body_has_no_effect(client, send, route):
    before = state(client)
    for name, body in NOT_JSON.items():
        response = send(route, body)
        assert (response.status_code, response.json()["error"]) == (400, "The body is not JSON."), name
    for body in (body for of_route, body in tables(__file__)["not as declared"] if of_route == route):
        response = send(route, body.encode("latin-1") if isinstance(body, str) else json.dumps(body))
        assert (response.status_code, list(response.json())) == (400, ["error", "message"]), body
    *_, limit = ROUTES[route]
    assert send(route, b"[]".ljust(limit << 10)).status_code == 400
    response = send(route, b"[]".ljust((limit << 10) + 1))
    assert response.status_code == 413
    assert response.json() == {"error": f"The body is larger than {limit} KiB.", "message": "Send less text."}
    assert state(client) == before


ANOTHER = "Use an API key, or an identity token with another role."
WRITES = {"error": "Viewers cannot write.", "message": ANOTHER}
HOOKS = {"error": "Viewers may neither see nor change hooks.", "message": ANOTHER}
KEYS = {
    "error": "This token may not manage API keys.",
    "message": "Use an identity token with a role that may write, or `traffic keys` on the server.",
}
BODIES = {
    "set-implementation-status": {"status": "shipped"}, "change-hook": {"active": False}, "create-hook": QUIET,
    "create-api-key": {"name": "n"}, "put-link": {"target_url": "https://shop.example/"}, "visits": [{"url": "/a"}],
    "add-exclusion": {"kind": "path", "value": "/admin"}, "switch-files": {"files": "counted"},
}  # fmt: skip
"""Bodies of operations without an example."""
FOUR = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"}


@pytest.fixture(scope="module")
def requests(client, send):
    """Return every operation that needs a token, except mcp: its row, method, path to an existing resource, and a
    suitable body."""
    approved = next(f"/jobs/{row['id']}" for row in client.get("/jobs").json() if row["path"] == "/approved")
    hook = f"/agent-hooks/{client.get('/agent-hooks').json()[0]['id']}"
    key = f"/settings/api-keys/{client.post('/settings/api-keys', json=BODIES['create-api-key']).json()['id']}"
    assert client.put("/links/go.example/a", json=BODIES["put-link"]).status_code == 201
    assert client.post(f"{hook}/test").status_code == 202
    given = {"/jobs/{id}": approved, "{number}": "1", "/agent-hooks/{id}": hook, "/settings/api-keys/{id}": key}
    rule = client.post("/exclusions", json={"kind": "path", "value": "/mine"}).json()["id"]
    given |= {"{domain}/{short_code}": "go.example/a", "/exclusions/{id}": f"/exclusions/{rule}"}
    given["{delivery}"] = client.get(f"{hook}/deliveries").json()[0]["id"]
    found = []
    for one in (one for one in OPERATIONS if not one.is_public and one.name != "mcp"):
        method, path = one.route.split()
        for name, value in given.items():
            path = path.replace(name, value)
        found.append((one, method, path, BODIES.get(one.name, next(iter(one.examples.values()), None))))
    return found


@pytest.mark.parametrize("role", ["viewer", "Viewer", None, "an API key"])
def test_callers_without_write_access_change_nothing(client, requests, shared_lake, key_of, role):
    headers = bearer(key_of(shared_lake)) if role == "an API key" else as_(role=role)
    before = state(client)
    for one, method, path, body in requests:
        refusal = KEYS if path.startswith("/settings/") else HOOKS if path.startswith("/agent-hooks") else WRITES
        if refusal is WRITES and method == "GET":
            assert client.get(path, headers=headers).json() == client.get(path).json(), one.route
        elif refusal is KEYS or role != "an API key":
            answer = client.request(method, path, json=body, headers=headers)
            assert (answer.status_code, answer.json()) == (403, refusal), one.route
            assert set(answer.headers) >= FOUR
    assert state(client) == before


def test_resources_of_another_organization_are_not_found(client, requests):
    before, stranger = state(client), as_("stranger")
    for one, method, path, body in requests:
        if "{" in one.route and one.name != "put-link":
            for wanted in (path, one.route.split()[1].translate({ord("{"): "", ord("}"): ""})):
                answer = client.request(method, wanted, json=body, headers=stranger)
                assert (answer.status_code, list(answer.json())) == (404, ["error", "message"]), one.route
        elif method == "GET":
            assert client.get(path, headers=stranger).json() in ([], {"files": "counted"}), one.route
        elif one.name != "put-link":
            assert client.request(method, path, json=body, headers=stranger).status_code in (200, 201, 202), one.route
    assert state(client) == before


async def test_a_client_that_disconnects_mid_body_creates_no_key(control):
    pieces = iter([{"type": "http.request", "body": b'{"name":', "more_body": True}, {"type": "http.disconnect"}])

    async def receive():
        return next(pieces)

    keys, caller = ApiKeys(control), Caller("acme", "editor", "somebody", is_key=False)
    bodies = ReceivedBodies(lambda _: "")
    scope = {"type": "http", "method": "POST", "headers": [], "caller": caller, "bodies": bodies}
    request = Request(scope, receive)
    (create,) = [bound for bound in api.OPERATIONS.bound(keys) if bound[0].name == "create-api-key"]
    with pytest.raises(InvalidBody, match="Incomplete body"):
        await endpoint_of(*create)(request)
    assert keys.all_keys() == []
    assert bodies.bytes_held == 0


@pytest.mark.parametrize("start", [b"", b'{"content":', b'{"nothing":'])
def test_undeclared_json_is_rejected_without_parsing_it(start):
    """Parsed into Python lists, the JSON would take 50 MB, and parsing it would block the event loop."""
    body = start + b"[" + b"[]," * 600_000 + b"[]]" + b"}" * bool(start)

    async def receive():
        return {"type": "http.request", "body": body}

    async def refuse():
        bodies = ReceivedBodies(lambda _: "")
        request = Request({"type": "http", "method": "POST", "headers": [], "bodies": bodies}, receive)
        with pytest.raises(InvalidBody, match="is invalid"):
            async with received_object(request, Draft, len(body)):
                pass

    assert traced_peak(lambda: asyncio.run(refuse())) < 4 * len(body)
