"""Listing, creating and revoking API keys: permissions, and the effect on requests."""

import re
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from service.access.api_keys import ApiKeys
from tests.conftest import NOW
from tests.support import identity
from tests.support.clock import Clock
from tests.support.control import open_store
from tests.support.identity import as_, bearer

PATH = "/settings/api-keys"
FIELDS = ["id", "name", "created_by", "created_at", "last_used_at", "expires_at", "revoked_at"]


@pytest.fixture(scope="module")
def client(with_provider):
    """The application; each test has keys in its own organization, and acme has none."""
    return with_provider


@pytest.fixture
def keys_at(lake, opened, tmp_path):
    """An application that trusts the identity provider, and its clock."""
    clock = Clock(NOW)
    with opened(lake, "", clock, **identity.settings_of(tmp_path)) as client:
        yield client, clock


def create(client, organization="acme", **more):
    return client.post(PATH, json={"name": "ci", **more}, headers=as_(organization))


def test_creating_a_key_returns_its_secret(client):
    response = create(client, "shown")
    made = response.json()
    assert response.status_code == 201
    assert list(made) == [*FIELDS, "key"]
    assert re.fullmatch(r"tak_[0-9A-Za-z]{36}", made["key"])
    assert (made["id"], made["name"], made["created_by"]) == (made["key"][:12], "ci", "somebody")
    assert made["created_at"] == "2026-03-15T12:00:00Z"
    assert (made["last_used_at"], made["revoked_at"]) == (None, None)


def test_a_created_key_opens_its_organization(client):
    assert client.get("/jobs", headers=bearer(create(client, "opens").json()["key"])).status_code == 200


def test_a_key_is_listed_without_its_secret(client):
    made = create(client, "listed").json()
    assert client.get(PATH, headers=as_("listed")).json() == [{name: made[name] for name in FIELDS}]


def test_the_use_of_a_key_is_shown_in_the_list(client):
    made = create(client, "used").json()
    client.get("/jobs", headers=bearer(made["key"]))
    while not (told := client.get(PATH, headers=as_("used"))).json()[0]["last_used_at"]:  # recorded in the background
        time.sleep(0.01)
    (listed,) = told.json()
    assert listed | {"last_used_at": None} == {name: made[name] for name in FIELDS}


def test_head_returns_the_headers_of_the_list(client):
    create(client, "heads")
    listed, head = (client.request(method, PATH, headers=as_("heads")) for method in ("GET", "HEAD"))
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(listed.content)))


def test_the_secret_of_a_key_is_not_stored(client, shared_lake):
    made = create(client, "hidden").json()
    with closing(sqlite3.connect(shared_lake.root / "control.sqlite")) as db:
        stored = "\n".join(db.iterdump())
    assert made["id"] in stored
    assert made["key"][12:] not in stored


def test_http_and_the_command_line_use_the_same_keys(client, shared_lake, key_of):
    key = key_of(shared_lake, "both")
    made = create(client, "both").json()
    told = client.get(PATH, headers=as_("both")).json()
    assert {(one["id"], one["created_by"]) for one in told} == {(key[:12], None), (made["id"], "somebody")}
    with open_store(ApiKeys, shared_lake) as control:
        assert {one["id"] for one in told} == {one.id for one in control.all_keys() if one.organization == "both"}


@pytest.fixture
def revoked(request, client):
    """Return a new organization, its key as it was created, and the response to the revocation of this key."""
    organization = request.function.__name__
    made = create(client, organization).json()
    return organization, made, client.delete(f"{PATH}/{made['id']}", headers=as_(organization, sub="bert"))


def test_revoking_a_key_returns_it_with_the_time(revoked):
    _, _, response = revoked
    assert response.status_code == 200
    assert list(response.json()) == FIELDS
    assert response.json()["revoked_at"] is not None


def test_a_revoked_key_is_rejected(client, revoked):
    _, made, _ = revoked
    assert client.get("/jobs", headers=bearer(made["key"])).status_code == 401


def test_a_key_is_revoked_only_once(client, revoked):
    organization, made, _ = revoked
    assert client.delete(f"{PATH}/{made['id']}", headers=as_(organization)).status_code == 404


def test_a_revoked_key_stays_in_the_list(client, revoked):
    organization, made, _ = revoked
    assert [one["id"] for one in client.get(PATH, headers=as_(organization)).json()] == [made["id"]]


def test_a_key_gets_401_from_the_second_it_expires(keys_at):
    client, clock = keys_at
    made = create(client, expires_at="2026-03-15").json()
    assert made["expires_at"] == "2026-03-15T23:59:59Z"
    clock.now = datetime(2026, 3, 15, 23, 59, 58, tzinfo=UTC)
    assert client.get("/jobs", headers=bearer(made["key"])).status_code == 200
    clock.now += timedelta(seconds=1)
    for path in ("/jobs", "/analytics/devices", "/nothing"):
        refused = client.get(path, headers=bearer(made["key"]))
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert refused.json() == {
            "error": f"The API key {made['id']} expired at 2026-03-15T23:59:59Z.",
            "message": "Create another one under Settings > API keys, or with "
            "`traffic keys create --org acme --name NAME` on the server.",
        }
    (listed,) = client.get(PATH, headers=as_()).json()
    assert (listed["expires_at"], listed["revoked_at"]) == (made["expires_at"], None)


@pytest.mark.parametrize("expires_at", ["2026-03-14", "soon", 7])
def test_a_key_that_would_never_be_valid_is_not_created(client, expires_at):
    response = create(client, expires_at=expires_at)
    assert response.status_code == 400
    assert "expires_at" in " ".join(response.json().values())
    assert client.get(PATH, headers=as_()).json() == []


@pytest.mark.parametrize(("at", "told"), [("12:45:10", "12:30:00"), ("13:45:10", "13:00:00")])
def test_last_use_is_rounded_to_the_hour_but_not_before_creation(keys_at, lake, at, told):
    client, clock = keys_at
    clock.now = NOW.replace(minute=30)
    made = create(client).json()
    clock.now = datetime.fromisoformat(f"2026-03-15T{at}Z")
    client.get("/jobs", headers=bearer(made["key"]))
    with open_store(ApiKeys, lake) as control:
        while not control.database.rows("SELECT 1 FROM keys WHERE last_used_at IS NOT NULL"):
            time.sleep(0.01)
    assert client.get(PATH, headers=as_()).json()[0]["last_used_at"] == f"2026-03-15T{told}Z"
