"""Exclusions over HTTP: permissions to read and change them; a request never reclassifies visits."""

import itertools
from datetime import date, datetime

import pytest

from data.rules.exclusions import Exclusion
from data.rules.lake_tables import rules_version
from data.signals import BITS
from data.store.status import marks_all_files
from tests.support.identity import as_
from tests.support.visits import land, visit

NUMBERS = itertools.count(1)
ADDRESS = {"kind": "address", "value": "203.0.113.7/24"}
PATH = {"kind": "path", "value": "/admin/"}
AT = datetime(2026, 3, 10, 12)


@pytest.fixture
def client(with_provider):
    """A client that sends requests as an editor of an organization that no other test uses."""
    with_provider.organization = f"e{next(NUMBERS)}"
    with_provider.headers |= as_(with_provider.organization)
    return with_provider


def add(client, rule, **how):
    return client.post("/exclusions", json=rule, **how)


def listed(client, **how):
    return client.get("/exclusions", **how).json()


def switch(client, files, **how):
    return client.put("/exclusions/files", json={"files": files}, **how)


def viewer(client):
    return {"headers": as_(client.organization, "viewer")}


def store(client, lake, rules=None, many=3):
    columns = {"visited_at": AT, "rules_version": rules or rules_version()}
    marked = [visit(**columns, path="/a.css", signals=BITS["file"]) for _ in range(many)]
    land(lake, client.organization, [*marked, visit(**columns, path="/a")])


def total(client):
    days = {"start_date": "2026-03-09", "end_date": "2026-03-11"}
    return client.get("/analytics/traffic-overview", params=days).json()["total_visits"]


def test_a_rule_is_normalized_when_added(client, shared_lake):
    answer = add(client, ADDRESS)
    assert (answer.status_code, answer.json()["value"]) == (201, "203.0.113.0/24")
    assert shared_lake.manifest.exclusions.rules(client.organization) == (Exclusion("address", "203.0.113.0/24"),)


def test_an_existing_rule_is_reported_as_existing(client):
    answers = [add(client, PATH), add(client, {"kind": "path", "value": "/admin"})]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert answers[0].json() == answers[1].json()


def test_a_removed_rule_is_gone(client, shared_lake):
    made = add(client, PATH).json()
    assert client.delete(f"/exclusions/{made['id']}").json() == made
    assert shared_lake.manifest.exclusions.rules(client.organization) == ()
    assert client.delete(f"/exclusions/{made['id']}").status_code == 404


@pytest.mark.parametrize(
    ("kind", "value"),
    [("address", "203.0.113.0/33"), ("path", "admin"), ("agent", "("), ("agent", ".*"), ("ip", "::1")],
)
def test_a_value_of_the_wrong_kind_is_rejected(client, kind, value):
    answer = add(client, {"kind": kind, "value": value})
    assert answer.status_code == 400
    assert listed(client) == []


def test_viewers_see_rules_but_no_addresses(client):
    made = [add(client, ADDRESS).json(), add(client, PATH).json()]
    hidden = made[0] | {"id": None, "value": None}
    assert (listed(client), listed(client, **viewer(client))) == (made, [hidden, made[1]])


def test_viewers_may_not_change_exclusions(client):
    made = add(client, PATH).json()
    refused = [
        add(client, ADDRESS, **viewer(client)),
        client.delete(f"/exclusions/{made['id']}", **viewer(client)),
        switch(client, "aside", **viewer(client)),
    ]
    assert [answer.status_code for answer in refused] == [403, 403, 403]
    assert listed(client) == [made]
    assert client.get("/exclusions/files", **viewer(client)).json() == {"files": "counted"}


def test_rules_of_other_organizations_do_not_exist(client):
    made, other = add(client, ADDRESS).json(), {"headers": as_("stranger")}
    assert listed(client, **other) == []
    assert client.delete(f"/exclusions/{made['id']}", **other).status_code == 404
    assert listed(client) == [made]


def test_at_most_a_hundred_rules_are_accepted(client):
    for number in range(100):
        add(client, {"kind": "path", "value": f"/{number}"})
    answer = add(client, PATH)
    assert (answer.status_code, "100 rules" in answer.text) == (409, True)
    assert add(client, {"kind": "path", "value": "/7"}).status_code == 200  # it exists


def test_the_switch_changes_cached_answers_immediately(client, shared_lake):
    store(client, shared_lake)
    before = total(client)
    switched = switch(client, "aside").json()
    assert (before, switched, total(client)) == (4, {"files": "aside"}, 1)
    switch(client, "counted")
    assert total(client) == 4


def test_the_switch_affects_only_the_callers_organization(client, shared_lake):
    store(client, shared_lake)
    switch(client, "aside", headers=as_("stranger"))
    assert total(client) == 4


@pytest.mark.parametrize("rules", ["old", f"{rules_version()[:-1]}x"])
def test_the_switch_is_rejected_if_visits_are_under_older_rules(client, shared_lake, rules):
    store(client, shared_lake)
    store(client, shared_lake, rules)
    answer = switch(client, "aside")
    assert answer.status_code == 409
    assert f"traffic files aside --org {client.organization}" in answer.json()["message"]
    assert client.get("/exclusions/files").json() == {"files": "counted"}


def test_custom_agents_do_not_prevent_setting_files_aside(client, shared_lake):
    store(client, shared_lake, f"{rules_version()}+0123456789ab")
    assert switch(client, "aside").status_code == 200


def test_visits_in_too_many_files_count_as_unmarked(client, shared_lake, monkeypatch):
    monkeypatch.setattr("data.store.status.MAX_FOOTERS", 1)
    store(client, shared_lake)
    assert marks_all_files(shared_lake, client.organization)
    store(client, shared_lake)
    assert shared_lake.manifest.files.span(client.organization) == (date(2026, 3, 10), date(2026, 3, 10))
    assert switch(client, "aside").status_code == 409
