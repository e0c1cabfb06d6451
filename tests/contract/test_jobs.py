"""Tests jobs over HTTP: permissions, sizes and types of writes, and responses to stale or forbidden writes."""

import json

import pytest

from service.core.control_database import ControlDatabase
from service.jobs.implementations import MAX_CONTENT_BYTES, RULE
from service.jobs.store import Jobs
from tests.conftest import NOW
from tests.service.jobs.findings import broken
from tests.support.identity import as_, bearer
from tests.support.visits import links

RECORD = ["written_by", "subjects", "evidence", "actions", "implementation", "outcome", "history", "deliveries"]
MANUAL = {"title": "Do it", "summary": "Now."}
REDIRECT = json.dumps({**RULE, "domain": "go.example.com", "from": "/gone"})
PATCH = {"implementation_type": "patch", "content_type": "application/json", "content": REDIRECT}
TEXT = {"implementation_type": "patch", "content_type": "text/plain", "content": "x"}


@pytest.fixture(scope="module")
def asked(with_provider):
    """The application, called by a user of acme."""
    with_provider.headers |= as_()
    return with_provider


@pytest.fixture
def found(shared_lake):
    """The path of a newly found job. After the test, the job is dismissed, and its subject can be found again."""
    store = Jobs(ControlDatabase(shared_lake))
    store.upsert(broken(), NOW)
    path = next(f"/jobs/{row.id}" for row in store.of("acme") if row.status == "new" and row.path == "/gone")
    yield path
    with store.database.transaction() as connection:
        connection.execute("UPDATE jobs SET fingerprint = NULL, status = 'dismissed'")
    store.database.close()


@pytest.fixture
def approved(asked, found):
    assert act(asked, found, "approve_fix").status_code == 200
    return found


def act(client, path, action_id, headers=None, **body):
    return client.post(f"{path}/actions", json={"action_id": action_id, **body}, headers=headers)


def test_a_finding_becomes_a_shipped_fix(asked, found):
    row = next(row for row in asked.get("/jobs").json() if row["id"] == found.rpartition("/")[2])
    response = asked.get(found)
    job = response.json()
    assert list(job) == [*row, *RECORD]
    assert {name: job[name] for name in row} == row
    assert response.headers["etag"] == '"1"'
    response = act(asked, found, "add_redirect", implementation_type="patch", note="as discussed")
    assert (response.status_code, response.headers["etag"], response.json()["status"]) == (200, '"2"', "approved")
    response = asked.post(f"{found}/implementations", json=PATCH)
    assert (response.status_code, response.json()["number"], response.json()["content"]) == (201, 1, REDIRECT)
    done = {"status": "shipped", "shipped_at": NOW.isoformat()}
    response = asked.post(f"{found}/implementations/1/status", json=done)
    assert (response.status_code, response.json()["implementation_status"]) == (200, "shipped")
    assert response.json()["outcome"]["status"] == "waiting"
    assert asked.get(f"{found}/implementations/1").json()["status"] == "shipped"
    actors = {(line["actor"], line["actor_kind"]) for line in asked.get(found).json()["history"]}
    assert actors == {("system", "system"), ("somebody", "user")}


def test_a_redirect_is_written_as_a_link_and_polled_by_its_etag(asked, approved, shared_lake):
    for one in asked.get("/implementations/active").json():
        asked.post(f"/jobs/{one['job_id']}/implementations/{one['number']}/status", json={"status": "withdrawn"})
    links(shared_lake, "acme", [{"short_code": "gones", "target_url": "https://example.com/gones"}])
    (guess,) = asked.get(f"{approved}/guesses").json()
    assert (guess["redirect_to"], guess["path"], guess["visits"]) == ("https://example.com/gones", "/gones", 0)
    assert asked.get(f"{approved}/guesses", headers=as_("other")).status_code == 404
    body = {"implementation_type": "patch", "redirect_to": guess["redirect_to"]}
    assert asked.post(f"{approved}/implementations", json={**body, "redirect_to": "x"}).status_code == 400
    assert asked.get("/links/go.example.com/gone").status_code == 404
    number = asked.post(f"{approved}/implementations", json=body).json()["number"]
    assert asked.get("/links/go.example.com/gone").json()["target_url"] == guess["redirect_to"]

    active = "/implementations/active?domain=GO.example.com"
    before = asked.get(active)
    assert guess["redirect_to"] not in before.text
    asked.post(f"{approved}/implementations/{number}/status", json={"status": "shipped"})
    after = asked.get(active, headers={"If-None-Match": before.headers["etag"]})
    assert [(one["domain"], one["from"], one["to"], one["status"]) for one in after.json()] == [
        ("go.example.com", "/gone", guess["redirect_to"], 302)
    ]
    for known in (after.headers["etag"], f'"x", W/{after.headers["etag"]}', "*"):
        same = asked.get(active, headers={"If-None-Match": known})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", after.headers["etag"])
    other = asked.get("/implementations/active?domain=other.example", headers={"If-None-Match": after.headers["etag"]})
    assert (other.status_code, other.json()) == (200, [])
    assert asked.get("/implementations/active").json() == after.json()
    assert asked.get("/implementations/active", headers=as_("other", "viewer")).json() == []


def test_html_is_returned_only_as_a_json_string(asked, approved):
    page = {"implementation_type": "edge_page", "content_type": "text/html", "content": "<script>alert(1)</script>"}
    assert asked.post(f"{approved}/implementations", json=page).status_code == 201
    response = asked.get(f"{approved}/implementations/1")
    assert response.headers["content-type"] == "application/json"
    assert response.json()["content"] == page["content"]


def test_an_api_key_may_write(asked, shared_lake, key_of, found):
    key = key_of(shared_lake)
    job = act(asked, found, "review", bearer(key)).json()
    line = job["history"][-1]
    assert (job["status"], line["actor"], line["actor_kind"]) == ("reviewed", key[:12], "key")


def test_an_unknown_or_malformed_implementation_gets_404(asked, approved):
    asked.post(f"{approved}/implementations", json=TEXT)
    for number in ("2", "0", "-1", "x", "1.0", "9" * 30, "\u0661"):
        path = f"{approved}/implementations/{number}"
        assert asked.get(path).status_code == 404
        assert asked.post(f"{path}/status", json={"status": "shipped"}).status_code == 404


def test_a_forbidden_action_gets_409_with_the_current_version(asked, approved):
    response = act(asked, approved, "review")
    assert response.status_code == 409
    assert list(response.json()) == ["error", "message", "status", "version"]
    assert (response.json()["status"], response.json()["version"]) == ("approved", 2)


def test_a_write_with_an_outdated_if_match_gets_412(asked, found):
    before = asked.get(found).json()
    for header in ('"2"', '"0"', "1", 'W/"1"', '"1", "2"', "x", '""', '"' + "9" * 30 + '"'):
        for path, body in ((f"{found}/actions", {"action_id": "review"}), (f"{found}/implementations", TEXT)):
            response = asked.post(path, json=body, headers={"If-Match": header})
            assert response.status_code == 412
            assert (response.json()["status"], response.json()["version"]) == ("new", 1)
    assert asked.get(found).json() == before
    assert act(asked, found, "review", {"If-Match": '"1"'}).json()["version"] == 2
    assert act(asked, found, "approve_fix", {"If-Match": "*"}).json()["version"] == 3


def test_a_manual_job_names_its_author(asked):
    response = asked.post("/jobs", json={**MANUAL, "domain": "GO.example.com", "short_code": "launch"})
    job = response.json()
    assert (response.status_code, response.headers["etag"], job["type"]) == (201, '"1"', "manual")
    assert (job["title"], job["domain"], job["written_by"]) == ("Do it", "go.example.com", job["history"][0]["actor"])
    assert asked.get(f"/jobs/{job['id']}").json() == job
    assert asked.get(f"/jobs/{job['id']}/guesses").json() == []


@pytest.mark.parametrize(
    ("where", "body", "name", "letter", "most"),
    [("/jobs", MANUAL, "title", "ü", 200), ("/jobs", MANUAL, "summary", "ü", 2_000),
     ("{}/actions", {"action_id": "resolve"}, "note", "x", 2_000), ("{}/implementations", TEXT, "note", "x", 2_000),
     ("{}/implementations", TEXT, "content", "\x01", MAX_CONTENT_BYTES)],
)  # fmt: skip
def test_a_body_at_the_limit_passes_but_a_larger_body_gets_413(asked, approved, where, body, name, letter, most):
    path = where.format(approved)
    response = asked.post(path, json={**body, name: letter * (most + 1)})
    assert (response.status_code, list(response.json())) == (413, ["error", "message"])
    assert asked.post(path, json={**body, name: letter * most}).status_code in (200, 201)
