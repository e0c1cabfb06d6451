"""Filters by the words of answers: what each endpoint answers over HTTP is what the recount counts."""

import json
from datetime import datetime
from itertools import cycle

import pytest

from queries import ENDPOINTS, PARAMETERS, RollupBuilder, Scope
from service.encoding import encode
from tests.conftest import NOW
from tests.faults.trials import IS_LONG
from tests.recount import CATEGORIES, WORDS, recount, word
from tests.support.visits import land, links, visit

DAYS = [datetime(2026, 3, day, 9, 30) for day in (2, 3, 9)]
"""The first two are counted ahead."""
LINKS = [{"organization": "acme", "short_code": "launch", "domain": "", "target_url": "https://shop.example/"}]
PERSON = {"country": "DE", "referrer": "news.example", "referrer_type": "other", "short_code": "launch", "visitor": 1}
GPTBOT = {
    "bot_category": "ai_training", "agent_kind": "training", "agent": "GPTBot", "operator": "OpenAI",
    "ai_source": "ChatGPT", "device_type": "bot", "operating_system": None, "browser": None, "confidence": "high",
    "detection_method": "user_agent", "short_code": "launch", "path": "/launch", "visitor": 3,
}  # fmt: skip
ASSISTANT = GPTBOT | {"bot_category": "ai_assistant", "agent_kind": "assistant_fetch", "agent": "ChatGPT-User"}
KINDS = [
    PERSON,
    PERSON | {"device_type": "mobile", "operating_system": "iOS", "browser": "Safari", "country": None, "visitor": 2},
    PERSON | {"referrer": None, "utm_source": "mail", "utm_campaign": "Autumn", "domain": "to.example", "path": "/a b"},
    PERSON | {"utm_source": "Mail", "referrer": None, "status": None, "short_code": "lost", "path": None},
    PERSON | {"bot_category": "ai_referral", "ai_source": "Claude", "referrer": "claude.ai", "referrer_type": "ai"},
    GPTBOT,
    GPTBOT | {"status": 404, "path": "/missing", "short_code": "missing", "domain": None},
    ASSISTANT,
    ASSISTANT | {"status": 404, "agent": None, "ai_source": None, "country": "US"},
    GPTBOT | {"bot_category": "ai_coding_agent", "agent": "Claude-User", "ai_source": "Claude Code", "status": 500},
    GPTBOT | {"bot_category": "other_bot", "agent": "curl", "ai_source": None, "operator": None, "status": 404},
]
VISITS = [
    visit(**kind, visited_at=day) | {"organization": "acme"}
    for number, kind in enumerate(KINDS)
    for day in DAYS
    if number % 4 or day != DAYS[1]
]


@pytest.fixture(scope="module")
def client(shared_lake, opened):
    for day in (DAYS[:2], DAYS[2:]):
        land(shared_lake, "acme", [row for row in VISITS if row["visited_at"] in day])
        land(shared_lake, "stranger", [row for row in VISITS if row["visited_at"] in day])
        if day == DAYS[:2]:
            RollupBuilder(shared_lake).run()
    links(shared_lake, "acme", LINKS)
    with opened(shared_lake) as client:
        yield client


@pytest.mark.parametrize("name", WORDS)
def test_every_endpoint_answers_what_is_counted_by_hand_of_the_visits_with_a_word(client, name):
    """Each endpoint is asked for some words, each word of some endpoints; `TRAFFIC_FAULTS=all` asks all of each."""
    values = sorted({word(row, name) for row in VISITS} | {"nowhere"})
    asked = [*ENDPOINTS][0 if IS_LONG else [*WORDS].index(name) % 4 :: 1 if IS_LONG else 4]
    for endpoint, value in zip(asked, cycle(values), strict=False):
        scope = Scope("acme", DAYS[0].date(), NOW.date(), **{name: PARAMETERS[name].parse(value)})
        query = {"start_date": str(scope.start_date), "end_date": str(scope.end_date), name: value}
        answer = client.get(f"/analytics/{endpoint}", params=query)
        expected = recount(endpoint, VISITS, scope, LINKS, countries={"DE": "Germany", "US": "United States"})
        assert answer.json() == json.loads(encode(expected)), (endpoint, value)


def test_filters_apply_together(client):
    query = {"range": "30d", "status": "404", "agent": "GPTBot", "traffic_type": "ai"}
    (row,) = client.get("/analytics/bot-traffic", params=query).json()
    assert (row["agent"], row["visits"], row["errors_4xx"]) == ("GPTBot", 3, 3)
    assert client.get("/analytics/bot-traffic", params=query | {"domain": "go.example"}).json() == []


def test_values_to_filter_by_are_those_of_all_visits(client):
    filtered = client.get("/analytics/filter-values", params={"country": "US", "path": "/nowhere"})
    assert filtered.json() == client.get("/analytics/filter-values").json()


@pytest.mark.parametrize("query", ["status=404&status=404", f"path=/{'a' * 2_048}"])
def test_an_invalid_filter_is_400_wherever_it_has_an_effect_or_none(client, query):
    for endpoint in ("devices", "cache-stats"):
        response = client.get(f"/analytics/{endpoint}?{query}")
        assert response.status_code == 400
        assert response.json()["error"].startswith(f"The parameter {query.partition('=')[0]} is ")


def test_the_visits_of_this_file_have_each_kind_of_traffic_but_search():
    assert {*CATEGORIES} - {row["bot_category"] for row in VISITS} == {"search_crawler"}
