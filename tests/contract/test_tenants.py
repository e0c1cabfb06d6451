"""Tenants are isolated: one has canaries in every field, another sends hostile queries."""

import json
import random
from datetime import datetime
from itertools import cycle, product

import pytest

from queries import CATALOG, PARAMETERS
from tests.faults.trials import IS_LONG, SHARE
from tests.support.identity import as_
from tests.support.tables import tables
from tests.support.visits import land, links, visit

CANARY = "canary"
LINK = f"/links/*/{CANARY}-short_code"
PATHS = [
    *(f"/analytics/{entry.name}" for entry in CATALOG), "/jobs", "/settings/api-keys", LINK, "/openapi.json", "/healthz"
]  # fmt: skip
NAMES = [*PARAMETERS, "organization", "org_id", "files", "scope"]


def hostile():
    """Return more than a hundred hostile values; with `TRAFFIC_FAULTS=all`, every quote is combined with every
    condition."""
    words = tables(__file__)
    quotes, logic, files = [*map("".join, product(words["marks"], words["ends"]))], words["logic"], words["files"]
    quoted = product(quotes, logic) if IS_LONG else zip(quotes, cycle(logic), strict=False)
    values = [f"x{quote} OR {condition}" for quote, condition in quoted]
    values += [call.format(path) for call, path in product(words["calls"], files)]
    return list(dict.fromkeys([*values, *files, *words["names"], *words["words"], *words["odd"], "x" * 2_048]))


@pytest.fixture(scope="module")
def client(shared_lake, with_provider):
    """The application over acme's visits, and over another organization's visits with canaries in every text field."""
    words = {
        name: f"{CANARY}-{name}"
        for name in ("domain", "short_code", "path", "ai_source", "agent", "operator", "operating_system", "browser",
                     "user_agent", "country", "referrer", "utm_source", "utm_medium", "utm_campaign")
    }  # fmt: skip
    for category in ("human", "ai_assistant", "ai_coding_agent", "ai_referral", "other_bot"):
        land(shared_lake, "acme", [visit(bot_category=category, visited_at=datetime(2026, 3, 14, 1))])
        land(shared_lake, "other", [visit(**words, bot_category=category, visited_at=datetime(2026, 3, 14, 1))])
    links(shared_lake, "other", [{"short_code": f"{CANARY}-short_code", "target_url": f"https://{CANARY}.example/"}])
    return with_provider


def test_canaries_appear_in_their_own_organizations_answers(client):
    client.post("/settings/api-keys", json={"name": CANARY}, headers=as_("other"))
    told = {path: client.get(path, headers=as_("other")).text for path in PATHS}
    blind = [path for path, text in told.items() if CANARY not in text]
    assert len(blind) <= 14, blind  # counts by hour, for example, contain no words


def test_no_query_reveals_a_word_from_another_organization(client, tell):
    values = hostile()
    assert len(values) >= 100
    if IS_LONG:
        asked = product(PATHS, NAMES, values)
    else:  # every value once, with all paths and names in turn
        random.Random(SHARE).shuffle(values)
        asked = zip(cycle(PATHS), cycle(NAMES), values, strict=False)
    asked = [*asked]
    assert {*PATHS, *NAMES} == {one for path, name, _ in asked for one in (path, name)}
    statuses = set()
    for path, name, value in asked:
        answer = client.get(path, params={name: value}, headers=as_("acme"))
        statuses.add(200 if path == LINK and answer.status_code == 404 else answer.status_code)
        told = answer.text.replace(json.dumps(value)[1:-1], "")  # a rejection may quote the rejected value
        assert CANARY not in told, (path, name, value)
    assert statuses <= {200, 400}
    tell(questions=len(asked), hostile_values=len(values), canaries=0)


def test_unfiltered_answers_never_come_from_another_organization(client):
    for _ in range(2):
        for organization, seen in (("other", True), ("acme", False)):
            told = client.get("/analytics/dashboard", headers=as_(organization)).text
            assert (CANARY in told) == seen
