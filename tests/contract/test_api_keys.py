"""Settings > API Keys: who may list, make and revoke keys, and what a key does from then on."""

import re
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from service.api_keys import ApiKeys
from tests.support import identity
from tests.support.control import open_store

PATH = "/settings/api-keys"
FIELDS = ["id", "name", "created_by", "created_at", "last_used_at", "revoked_at"]


@pytest.fixture
def client(lake, opened, tmp_path):
    with opened(lake, "", **identity.settings_of(tmp_path)) as client:
        yield client


@pytest.fixture(scope="module")
def keyless(shared_lake, opened, tmp_path_factory):
    """An application in which no test makes a key."""
    with opened(shared_lake, "", **identity.settings_of(tmp_path_factory.mktemp("identity"))) as client:
        yield client


def as_(role="editor", organization="acme", sub="anna@acme.example"):
    return {"Authorization": f"Bearer {identity.token(organization, role, sub)}"}


def with_key(key):
    return {"Authorization": f"Bearer {key}"}


def create(client, name="ci", **how):
    return client.post(PATH, json={"name": name}, headers=as_(**how))


def test_a_key_is_shown_once_and_opens_its_organization(client, lake):
    response = create(client)
    made = response.json()
    assert response.status_code == 201
    assert list(made) == [*FIELDS, "key"]
    assert re.fullmatch(r"tak_[0-9A-Za-z]{36}", made["key"])
    assert (made["id"], made["name"], made["created_by"]) == (made["key"][:12], "ci", "anna@acme.example")
    assert abs(datetime.now(UTC) - datetime.fromisoformat(made["created_at"])) < timedelta(minutes=1)
    assert made["created_at"].endswith("Z")
    assert (made["last_used_at"], made["revoked_at"]) == (None, None)
    assert client.get("/jobs", headers=with_key(made["key"])).status_code == 200
    (listed,) = client.get(PATH, headers=as_()).json()
    assert listed | {"last_used_at": None} == {name: made[name] for name in FIELDS}
    with closing(sqlite3.connect(lake.root / "control.sqlite")) as db:
        assert made["key"][12:] not in "\n".join(db.iterdump())


def test_the_command_line_knows_keys_that_were_made_by_http_and_the_other_way_round(client, lake, key_of):
    key = key_of(lake)
    create(client, "other", organization="other")
    told = client.get(PATH, headers=as_()).json()
    assert [(one["id"], one["created_by"]) for one in told] == [(key[:12], None)]
    with open_store(ApiKeys, lake) as control:
        made = {(one.organization, one.created_by) for one in control.all_keys()}
    assert made == {("acme", None), ("other", "anna@acme.example")}


def test_a_revoked_key_opens_nothing_and_stays_in_the_list(client):
    made = create(client).json()
    response = client.delete(f"{PATH}/{made['id']}", headers=as_(sub="bert"))
    assert response.status_code == 200
    assert list(response.json()) == FIELDS
    assert response.json()["revoked_at"] is not None
    assert client.get("/jobs", headers=with_key(made["key"])).status_code == 401
    assert client.delete(f"{PATH}/{made['id']}", headers=as_()).status_code == 404
    assert [one["id"] for one in client.get(PATH, headers=as_()).json()] == [made["id"]]


def test_nobody_revokes_or_sees_a_key_of_another_organization(client):
    made = create(client, organization="other").json()
    assert client.delete(f"{PATH}/{made['id']}", headers=as_()).status_code == 404
    assert client.get(PATH, headers=as_()).json() == []
    assert client.get("/jobs", headers=with_key(made["key"])).status_code == 200


@pytest.mark.parametrize("who", ["viewer", "no role", "key"])
def test_viewers_and_keys_may_not_manage_keys(client, key_of, lake, who):
    headers = with_key(key_of(lake)) if who == "key" else as_({"viewer": "Viewer", "no role": None}[who])
    answers = [
        client.get(PATH, headers=headers),
        client.post(PATH, json={"name": "x"}, headers=headers),
        client.delete(f"{PATH}/tak_whatever", headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [403] * 3
    assert [answer.json() for answer in answers] == [
        {
            "error": "This token may not manage API keys.",
            "message": "Use an identity token of a role that may write; or `traffic keys` on the server.",
        }
    ] * 3
    assert len(client.get(PATH, headers=as_()).json()) == (who == "key")


def test_other_methods_are_not_known(keyless):
    assert keyless.put(PATH, headers=as_()).status_code == 405
    assert keyless.get(f"{PATH}/x", headers=as_()).status_code == 405
    assert keyless.get(PATH).status_code == 401


@pytest.mark.parametrize("path", [PATH, "/jobs", "/agent-hooks", "/analytics/devices"])
def test_head_is_answered_like_get_and_writes_nothing(keyless, path):
    listed = keyless.get(path, headers=as_())
    response = keyless.head(path, headers=as_())
    assert (response.status_code, response.content) == (200, b"")
    for name in ("content-type", "content-length"):
        assert response.headers[name] == listed.headers[name]
    assert keyless.head(path).status_code == 401
    assert keyless.head("/visits", headers=as_()).status_code == 405


def test_when_a_key_was_last_used_is_told_to_the_hour_but_never_before_it_was_made(client, lake, opened, tmp_path):
    made = create(client).json()
    for _ in range(3):
        client.get("/jobs", headers=with_key(made["key"]))
    with open_store(ApiKeys, lake) as control:
        while not (used := control.keys_of("acme")[0].last_used_at):
            time.sleep(0.01)
    created, used = datetime.fromisoformat(made["created_at"]), datetime.fromisoformat(used)
    assert used == created or (used > created and (used.minute, used.second) == (0, 0))
    assert timedelta(0) <= datetime.now(UTC) - used < timedelta(hours=1, minutes=1)
