"""Each filter by the words of answers, over HTTP; tests/queries/test_recount.py counts all answers under several."""

from datetime import datetime

import pytest

from queries import PARAMETERS
from tests.recount import WORDS, word
from tests.support.visits import land, visit

DAYS = [datetime(2026, 3, day, 9, 30) for day in (2, 3, 9)]
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
    visit(**kind, visited_at=day) for number, kind in enumerate(KINDS) for day in DAYS if number % 4 or day != DAYS[1]
]


@pytest.fixture(scope="module")
def client(shared_lake, opened):
    for organization in ("acme", "stranger"):
        land(shared_lake, organization, VISITS)
    with opened(shared_lake) as client:
        yield client


@pytest.mark.parametrize("name", WORDS)
def test_under_a_filter_exactly_the_visits_with_a_word_are_counted(client, name):
    for value in {word(row, name) for row in VISITS} | {"nowhere"}:
        counted = sum(word(row, name) == PARAMETERS[name].parse(str(value)) for row in VISITS)
        answer = client.get("/analytics/traffic-overview", params={"range": "30d", name: value}).json()
        assert answer["total_visits"] == counted, value
