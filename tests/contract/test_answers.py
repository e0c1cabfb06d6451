"""Every endpoint over HTTP: a few visits in, the exact answer out, its fields in their order."""

import itertools
import sqlite3
from datetime import datetime

import pytest

from queries import ENDPOINTS
from tests.recount import DASHBOARD
from tests.visits import land, links, visit

WEEK = {"start_date": "2026-03-02", "end_date": "2026-03-08"}  # Monday to Sunday

AUTOMATED = {"device_type": "bot", "operating_system": None, "browser": None}
CHATGPT = AUTOMATED | {
    "bot_category": "ai_assistant",
    "agent_kind": "assistant_fetch",
    "ai_source": "ChatGPT",
    "agent": "ChatGPT-User",
    "operator": "OpenAI",
    "confidence": "verified",
    "detection_method": "ip_range",
}
CLAUDE = CHATGPT | {
    "ai_source": "Claude",
    "agent": "Claude-User",
    "operator": "Anthropic",
    "confidence": "high",
    "detection_method": "user_agent",
}
GPTBOT = CHATGPT | {"bot_category": "ai_training", "agent_kind": "training", "agent": "GPTBot"}
CLAUDE_CODE = CLAUDE | {
    "bot_category": "ai_coding_agent",
    "agent_kind": "coding_agent",
    "ai_source": "Claude Code",
    "agent": "Claude-Code",
}
CURSOR = CLAUDE_CODE | {"ai_source": "Cursor", "agent": "Cursor", "operator": "Anysphere"}
REFERRED = {
    "bot_category": "ai_referral",
    "agent_kind": "referral",
    "ai_source": "ChatGPT",
    "operator": "OpenAI",
    "confidence": "medium",
    "detection_method": "referrer",
    "referrer": "chatgpt.com",
    "referrer_type": "ai",
}
GOOGLEBOT = AUTOMATED | {
    "bot_category": "search_crawler",
    "agent_kind": "search",
    "agent": "Googlebot",
    "operator": "Google",
    "confidence": "high",
    "detection_method": "user_agent",
}
CURL = AUTOMATED | {
    "bot_category": "other_bot",
    "agent_kind": "library",
    "agent": "curl",
    "confidence": "high",
    "detection_method": "user_agent",
}
PHONE = {"device_type": "mobile", "operating_system": "iOS", "browser": "Safari"}
TABLET = {"device_type": "tablet", "operating_system": "iOS", "browser": "Safari"}


def at(day, hour=12, minute=30):
    return datetime(2026, 3, day, hour, minute)


def in_order(value):
    """Objects as lists of pairs, so that the order of their members counts too."""
    if isinstance(value, dict):
        return [(name, in_order(member)) for name, member in value.items()]
    return [in_order(member) for member in value] if isinstance(value, list) else value


def table(names, *rows):
    """Rows of the same fields, in order."""
    return in_order([dict(zip(names, row, strict=True)) for row in rows])


class Asked:
    """The application; whoever asks for a test is an organization of its own."""

    def __init__(self, lake, client, key_of):
        self.lake = lake
        self.client = client
        self._key_of = key_of
        self._numbers = itertools.count()

    def organization(self):
        name = f"tenant-{next(self._numbers)}"
        return name, {"Authorization": f"Bearer {self._key_of(self.lake, name)}"}

    def __call__(self, name, visits=(), rows=(), **query):
        organization, headers = self.organization()
        if visits:
            land(self.lake, organization, visits)
        links(self.lake, organization, rows)
        response = self.client.get(f"/analytics/{name}", params=WEEK | query, headers=headers)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/json"
        return in_order(response.json())


@pytest.fixture(scope="module")
def ask(shared_lake, opened, key_of):
    land(shared_lake, "stranger", [visit(**columns) for columns in (CHATGPT, CLAUDE_CODE, REFERRED, GOOGLEBOT, {})])
    with opened(shared_lake) as client:
        yield Asked(shared_lake, client, key_of)


def test_traffic_overview_splits_all_requests_into_people_ai_and_others(ask):
    kinds = ({}, {}, {}, CHATGPT, CLAUDE, GPTBOT, CLAUDE_CODE, REFERRED, GOOGLEBOT, CURL)
    assert ask("traffic-overview", [visit(**columns) for columns in kinds]) == in_order(
        {
            "total_visits": 10,
            "human_clicks": 3,
            "ai_visits": 5,
            "ai_assistant_requests": 2,
            "ai_training_requests": 1,
            "ai_coding_agent_requests": 1,
            "ai_referral_requests": 1,
            "other_visits": 2,
            "ai_percentage": 50,
        }
    )


def test_weekly_trend_has_every_week_and_counts_only_its_days_in_range(ask):
    visits = [
        visit(visited_at=at(4)),  # a day before the range
        visit(visited_at=at(5, 0, 0)),
        visit(**CHATGPT, visited_at=at(6)),
        visit(**REFERRED, visited_at=at(8, 23, 59)),
        visit(**CLAUDE, visited_at=at(8)),
    ]
    zeros = dict.fromkeys(("ai_training_requests", "ai_coding_agent_requests"), 0)
    answer = ask("weekly-trend", visits, start_date="2026-03-05", end_date="2026-03-12")
    assert answer == in_order(
        {
            "weekly": [
                {"week": "2026-03-02", "total_visits": 4, "human_visits": 1, "ai_visits": 3, "ai_assistant_requests": 2}
                | zeros
                | {"ai_referral_requests": 1, "other_visits": 0, "ai_pct": 75},
                {"week": "2026-03-09", "total_visits": 0, "human_visits": 0, "ai_visits": 0, "ai_assistant_requests": 0}
                | zeros
                | {"ai_referral_requests": 0, "other_visits": 0, "ai_pct": 0},
            ],
            "byPlatform": [
                {"week": "2026-03-02", "ai_source": "ChatGPT", "visits": 2},
                {"week": "2026-03-02", "ai_source": "Claude", "visits": 1},
            ],
        }
    )


def test_time_series_has_every_day_and_no_tablets_among_mobile_and_desktop(ask):
    visits = [
        visit(visited_at=at(2, 0, 0)),
        visit(visited_at=at(2), **PHONE),
        visit(visited_at=at(2), **TABLET),
        visit(visited_at=at(4, 23, 59), **CHATGPT),
        visit(visited_at=at(5, 0, 0)),
    ]
    names = ("date", "total_visits", "human_clicks", "ai_visits", "mobile_visits", "desktop_visits")
    assert ask("time-series", visits, end_date="2026-03-04") == table(
        names,
        ("2026-03-02", 3, 3, 0, 1, 1),
        ("2026-03-03", 0, 0, 0, 0, 0),
        ("2026-03-04", 1, 0, 1, 0, 0),
    )


def test_ai_sources_add_up_fetches_and_referrals_of_one_platform(ask):
    visits = [visit(**columns) for columns in (CHATGPT, GPTBOT, REFERRED, CLAUDE, CLAUDE_CODE, GOOGLEBOT, {})]
    assert ask("ai-sources", visits) == in_order(
        [
            {"ai_source": "ChatGPT", "visits": 3, "percentage": 60, "agent_fetches": 2, "ai_referrals": 1},
            {"ai_source": "Claude", "visits": 1, "percentage": 20, "agent_fetches": 1, "ai_referrals": 0},
            {"ai_source": "Claude Code", "visits": 1, "percentage": 20, "agent_fetches": 1, "ai_referrals": 0},
        ]
    )


def test_market_share_counts_assistants_only_and_no_malicious_paths(ask):
    visits = [
        visit(**CHATGPT, path="/a", visitor=1),
        visit(**CHATGPT, path="/a", visitor=1),
        visit(**CHATGPT, path="", visitor=1, visited_at=at(5)),
        visit(**CHATGPT, path="/.env", is_malicious=True),
        visit(**CLAUDE, path="/b"),
        visit(**GPTBOT, path="/c"),
        visit(**REFERRED, path="/d"),
        visit(**GOOGLEBOT, path="/e"),
    ]
    names = ("ai_source", "visits", "percentage", "pages_accessed", "unique_visitors")
    assert ask("ai-platform-market-share", visits) == table(names, ("ChatGPT", 3, 75, 1, 2), ("Claude", 1, 25, 1, 0))


def test_developer_tools_are_coding_agents(ask):
    visits = [
        visit(**CLAUDE_CODE, path="/a", visited_at=at(3, 9, 15), visitor=5),
        visit(**CLAUDE_CODE, path="/b", visited_at=at(2, 8, 0), visitor=5),
        visit(**CURSOR, path="/a", visited_at=at(4)),
        visit(**CHATGPT, path="/c"),
    ]
    assert ask("developer-tools", visits) == in_order(
        [
            {
                "tool": "Claude Code",
                "operator": "Anthropic",
                "visits": 2,
                "percentage": 66.67,
                "pages_accessed": 2,
                "unique_visitors": 2,
                "first_seen": "2026-03-02T08:00:00Z",
                "last_seen": "2026-03-03T09:15:00Z",
            },
            {
                "tool": "Cursor",
                "operator": "Anysphere",
                "visits": 1,
                "percentage": 33.33,
                "pages_accessed": 1,
                "unique_visitors": 0,
                "first_seen": "2026-03-04T12:30:00Z",
                "last_seen": "2026-03-04T12:30:00Z",
            },
        ]
    )


def test_dev_tools_adoption_compares_each_week_with_the_one_before(ask):
    days = {CLAUDE_CODE["ai_source"]: (2, 2, 3, 9), CURSOR["ai_source"]: (9, 10, 23)}
    tools = {"Claude Code": CLAUDE_CODE, "Cursor": CURSOR}
    visits = [visit(**tools[tool], visited_at=at(day), visitor=1) for tool in days for day in days[tool]]
    names = ("week", "tool", "visits", "unique_visitors", "active_days", "is_new", "change_percentage")
    answer = ask("dev-tools-adoption", visits, start_date="2026-02-23", end_date="2026-03-15")
    assert answer == table(
        names,
        ("2026-03-02", "Claude Code", 3, 2, 2, True, None),
        ("2026-03-09", "Cursor", 2, 2, 2, True, None),
        ("2026-03-09", "Claude Code", 1, 1, 1, False, -66.67),
    )


def test_ai_confidence_tells_how_sure_the_ai_related_visits_are(ask):
    visits = [visit(**columns) for columns in (CHATGPT, GPTBOT, CLAUDE, REFERRED, GOOGLEBOT, {})]
    names = ("confidence", "detection_method", "score", "visits", "percentage")
    assert ask("ai-confidence", visits) == table(
        names,
        ("verified", "ip_range", 1, 2, 50),
        ("high", "user_agent", 0.9, 1, 25),
        ("medium", "referrer", 0.7, 1, 25),
    )


def test_top_links_names_targets_and_shares_of_all_visits(ask):
    visits = [
        visit(short_code="sale", visitor=1, visited_at=at(5, 10)),
        visit(short_code="sale", **CHATGPT, visited_at=at(6, 11)),
        visit(short_code="sale", domain="other.example"),
        visit(short_code="jobs", **CURL),
        visit(short_code=None),
    ]
    rows = [
        {"short_code": "sale", "target_url": "https://shop.example/anywhere"},
        {"short_code": "sale", "domain": "go.example", "target_url": "https://shop.example/sale"},
    ]
    names = (
        "short_code", "domain", "target_url", "visits", "percentage", "human_clicks", "ai_visits", "other_visits",
        "unique_visitors", "last_visit",
    )  # fmt: skip
    noon = "2026-03-04T12:30:00Z"
    assert ask("top-links", visits, rows) == table(
        names,
        ("sale", "go.example", "https://shop.example/sale", 2, 40, 1, 1, 0, 1, "2026-03-06T11:30:00Z"),
        ("jobs", "go.example", "unknown", 1, 20, 0, 0, 1, 0, noon),
        ("sale", "other.example", "https://shop.example/anywhere", 1, 20, 1, 0, 0, 0, noon),
    )


def test_top_links_ends_after_a_hundred(ask):
    answer = ask("top-links", [visit(short_code=f"code-{number:03}") for number in range(120)])
    assert [dict(row)["short_code"] for row in answer] == [f"code-{number:03}" for number in range(100)]


def test_conversion_sets_referrals_against_fetches(ask):
    visits = [
        *(visit(**CHATGPT, short_code=code) for code in ("a", "a", "b", None)),
        visit(**REFERRED, short_code="a"),
        visit(**CLAUDE),
        visit(**REFERRED | {"ai_source": "Gemini"}, short_code="c"),
    ]
    names = (
        "ai_source", "agent_fetches", "ai_referrals", "conversion_rate", "fetches_per_referral", "links_fetched",
        "links_referred",
    )  # fmt: skip
    assert ask("ai-to-human-conversion", visits) == table(
        names,
        ("ChatGPT", 4, 1, 25, 4, 2, 1),
        ("Claude", 1, 0, 0, None, 0, 0),
        ("Gemini", 0, 1, None, 0, 0, 1),
    )


VALUE_FIELDS = (
    "traffic_type", "visits", "percentage", "value_per_visit", "estimated_value", "value_percentage", "currency",
)  # fmt: skip


def test_traffic_value_is_nothing_until_the_operator_says_so(ask):
    assert ask("traffic-value-breakdown", [visit(), visit(), visit(**CHATGPT), visit(**CURL)]) == table(
        VALUE_FIELDS,
        ("human", 2, 50, 0, 0, None, "USD"),
        ("ai_assistant", 1, 25, 0, 0, None, "USD"),
        ("other_bot", 1, 25, 0, 0, None, "USD"),
    )


def test_traffic_value_follows_the_operators_file(lake, opened, tmp_path):
    values = tmp_path / "values.toml"
    values.write_text('currency = "EUR"\n[value_per_visit]\nhuman = 0.25\nai_assistant = 1.5\n')
    land(lake, "acme", [visit(), visit(), visit(**CHATGPT), visit(**CURL)])
    with opened(lake, values=values) as client:
        answer = client.get("/analytics/traffic-value-breakdown", params=WEEK).json()
    assert in_order(answer) == table(
        VALUE_FIELDS,
        ("human", 2, 50, 0.25, 0.5, 25, "EUR"),
        ("ai_assistant", 1, 25, 1.5, 1.5, 75, "EUR"),
        ("other_bot", 1, 25, 0, 0, 0, "EUR"),
    )


def test_devices_are_desktop_mobile_tablet_and_bot(ask):
    kinds = ({"visitor": 1}, {"visitor": 1}, {}, REFERRED, CHATGPT, CURL, PHONE, TABLET)
    names = ("device_type", "visits", "percentage", "human_clicks", "ai_visits", "unique_visitors")
    assert ask("devices", [visit(**columns) for columns in kinds]) == table(
        names,
        ("desktop", 4, 50, 3, 1, 1),
        ("bot", 2, 25, 0, 1, 0),
        ("mobile", 1, 12.5, 1, 0, 0),
        ("tablet", 1, 12.5, 1, 0, 0),
    )


@pytest.mark.parametrize(
    ("name", "field", "of_phones", "of_desktops"),
    [("operating-systems", "operating_system", "iOS", "Windows"), ("browsers", "browser", "Safari", "Firefox")],
)
def test_systems_and_browsers_are_those_of_people_and_ai_referrals(ask, name, field, of_phones, of_desktops):
    visits = [
        visit(**PHONE, visitor=1),
        visit(**PHONE, visitor=2),
        visit(),
        visit(**REFERRED),
        visit(**REFERRED | {field: None}),
        visit(**CHATGPT),
    ]
    names = (field, "visits", "percentage", "human_clicks", "unique_visitors")
    assert ask(name, visits) == table(
        names, *sorted([(of_desktops, 2, 40, 1, 0), (of_phones, 2, 40, 2, 2)]), ("unknown", 1, 20, 0, 0)
    )


def test_device_by_ai_source_shares_within_the_source(ask):
    visits = [visit(**columns) for columns in (CHATGPT, CHATGPT, REFERRED, REFERRED | PHONE, CLAUDE, {})]
    names = ("ai_source", "device_type", "visits", "percentage")
    assert ask("device-by-ai-source", visits) == table(
        names,
        ("ChatGPT", "bot", 2, 50),
        ("ChatGPT", "desktop", 1, 25),
        ("ChatGPT", "mobile", 1, 25),
        ("Claude", "bot", 1, 100),
    )


def test_geographic_names_the_countries(ask):
    visits = [
        visit(country="DE", visitor=1),
        visit(country="DE", visitor=1),
        visit(country="CI", **CHATGPT),
        visit(country=None),
    ]
    names = ("country", "country_name", "visits", "percentage", "human_clicks", "ai_visits", "unique_visitors")
    assert ask("geographic", visits) == table(
        names,
        ("DE", "Germany", 2, 50, 2, 0, 1),
        ("CI", "Côte d'Ivoire", 1, 25, 0, 1, 0),
        ("unknown", "unknown", 1, 25, 1, 0, 0),
    )


def test_hourly_activity_has_all_hours_of_the_day_in_utc(ask):
    visits = [visit(visited_at=at(2, 0, 0)), visit(visited_at=at(3, 0, 59), **CHATGPT), visit(visited_at=at(8, 23, 59))]
    names = ("hour", "visits", "percentage", "human_clicks", "ai_visits", "other_visits")
    busy = {0: (0, 2, 66.67, 1, 1, 0), 23: (23, 1, 33.33, 1, 0, 0)}
    hours = [busy.get(hour, (hour, 0, 0, 0, 0, 0)) for hour in range(24)]
    assert ask("hourly-activity", visits) == table(names, *hours)


def test_daily_activity_has_all_weekdays_and_averages_over_their_days(ask):
    visits = [
        visit(visited_at=at(2)),
        visit(visited_at=at(9), **CURL),
        visit(visited_at=at(9)),
        visit(visited_at=at(8)),
    ]
    names = (
        "day_of_week", "day_name", "visits", "percentage", "human_clicks", "ai_visits", "other_visits",
        "days_in_range", "avg_visits",
    )  # fmt: skip
    assert ask("daily-activity", visits, end_date="2026-03-10") == table(
        names,
        (1, "Monday", 3, 75, 2, 0, 1, 2, 1.5),
        (2, "Tuesday", 0, 0, 0, 0, 0, 2, 0),
        (3, "Wednesday", 0, 0, 0, 0, 0, 1, 0),
        (4, "Thursday", 0, 0, 0, 0, 0, 1, 0),
        (5, "Friday", 0, 0, 0, 0, 0, 1, 0),
        (6, "Saturday", 0, 0, 0, 0, 0, 1, 0),
        (7, "Sunday", 1, 25, 1, 0, 0, 1, 1),
    )


def test_peak_times_ranks_hours_of_the_week(ask):
    visits = [
        *(visit(visited_at=at(day, 9)) for day in (2, 2, 9)),
        visit(visited_at=at(3, 9), **CHATGPT),
        visit(visited_at=at(2, 8)),
    ]
    names = (
        "rank", "day_of_week", "day_name", "hour", "visits", "percentage", "avg_visits", "human_clicks", "ai_visits",
    )  # fmt: skip
    assert ask("peak-times", visits, end_date="2026-03-10") == table(
        names,
        (1, 1, "Monday", 9, 3, 60, 1.5, 3, 0),
        (2, 1, "Monday", 8, 1, 20, 0.5, 1, 0),
        (3, 2, "Tuesday", 9, 1, 20, 0.5, 0, 1),
    )


def test_peak_times_ends_after_ten(ask):
    answer = ask("peak-times", [visit(visited_at=at(2, hour)) for hour in range(24)])
    assert [(dict(row)["rank"], dict(row)["hour"]) for row in answer] == [(hour + 1, hour) for hour in range(10)]


def test_weekend_vs_weekday_averages_over_the_days_in_range(ask):
    visits = [
        visit(visited_at=at(6, 23, 59)),
        visit(visited_at=at(7, 0, 0)),
        visit(visited_at=at(8), **CHATGPT),
        visit(visited_at=at(8), **CURL),
    ]
    names = ("period", "days", "visits", "percentage", "avg_visits", "human_clicks", "ai_visits", "other_visits")
    assert ask("weekend-vs-weekday", visits) == table(
        names, ("weekday", 5, 1, 25, 0.2, 1, 0, 0), ("weekend", 2, 3, 75, 1.5, 1, 1, 1)
    )


def test_utm_campaigns_are_visits_with_any_utm_word(ask):
    mail = {"utm_source": "mail", "utm_medium": "newsletter", "utm_campaign": "spring"}
    visits = [
        visit(**mail, visitor=1),
        visit(**mail, visitor=2),
        visit(**REFERRED, utm_source="chatgpt.com"),
        visit(utm_term="shoes"),
        visit(),
    ]
    names = (
        "utm_source", "utm_medium", "utm_campaign", "visits", "percentage", "human_clicks", "ai_visits",
        "unique_visitors",
    )  # fmt: skip
    assert ask("utm-campaigns", visits) == table(
        names,
        ("mail", "newsletter", "spring", 2, 50, 2, 0, 2),
        ("chatgpt.com", "unknown", "unknown", 1, 25, 0, 1, 0),
        ("unknown", "unknown", "unknown", 1, 25, 1, 0, 0),
    )


def test_referrers_are_those_of_people_and_ai_referrals(ask):
    search = {"referrer": "google.example", "referrer_type": "search"}
    visits = [visit(**search), visit(**search), visit(), visit(**REFERRED), visit(**CURL | search)]
    names = ("referrer", "referrer_type", "visits", "percentage", "human_clicks", "ai_referrals")
    assert ask("referrers", visits) == table(
        names,
        ("google.example", "search", 2, 50, 2, 0),
        ("(direct)", "direct", 1, 25, 1, 0),
        ("chatgpt.com", "ai", 1, 25, 0, 1),
    )


def test_domain_breakdown_counts_by_domain(ask):
    visits = [
        visit(short_code="a", visitor=1),
        visit(short_code="b", **CHATGPT),
        visit(short_code="a", **CURL),
        visit(domain="b.example"),
    ]
    names = (
        "domain", "visits", "percentage", "human_clicks", "ai_visits", "other_visits", "short_codes", "unique_visitors",
    )  # fmt: skip
    assert ask("domain-breakdown", visits) == table(
        names, ("go.example", 3, 75, 1, 1, 1, 2, 1), ("b.example", 1, 25, 1, 0, 0, 0, 0)
    )


def test_bot_traffic_lists_automata_in_detail(ask):
    visits = [
        visit(**GPTBOT, path="/a", visitor=9, status=404, visited_at=at(3)),
        visit(**GPTBOT, path="/a", visitor=9, status=503, visited_at=at(2, 1, 2)),
        visit(**CURL, path="", status=200),
        visit(**REFERRED),
        visit(),
    ]
    assert ask("bot-traffic", visits) == in_order(
        [
            {
                "agent": "GPTBot",
                "operator": "OpenAI",
                "agent_kind": "training",
                "bot_category": "ai_training",
                "confidence": "verified",
                "visits": 2,
                "percentage": 66.67,
                "pages_accessed": 1,
                "unique_visitors": 2,
                "errors_4xx": 1,
                "errors_5xx": 1,
                "first_seen": "2026-03-02T01:02:00Z",
                "last_seen": "2026-03-03T12:30:00Z",
            },
            {
                "agent": "curl",
                "operator": "unknown",
                "agent_kind": "library",
                "bot_category": "other_bot",
                "confidence": "high",
                "visits": 1,
                "percentage": 33.33,
                "pages_accessed": 0,
                "unique_visitors": 0,
                "errors_4xx": 0,
                "errors_5xx": 0,
                "first_seen": "2026-03-04T12:30:00Z",
                "last_seen": "2026-03-04T12:30:00Z",
            },
        ]
    )


def test_filter_values_are_those_of_the_days_in_scope_whatever_else_is_filtered(ask):
    visits = [
        visit(short_code="b"),
        visit(short_code="a", domain="b.example", **CHATGPT),
        visit(**CURL),
        visit(short_code="old", domain="old.example", visited_at=at(1), **CLAUDE),
    ]
    rows = [
        {"short_code": "a", "target_url": "https://shop.example/a"},
        {"short_code": "b", "target_url": "https://shop.example/b", "domain": "elsewhere.example"},
        {"short_code": "old", "target_url": "https://shop.example/old"},
    ]
    assert ask("filter-values", visits, rows, short_code="b", domain="go.example") == in_order(
        [
            {"filter": "domain", "values": ["b.example", "go.example"], "truncated": False},
            {"filter": "short_code", "values": ["a", "b"], "truncated": False},
            {"filter": "target_url", "values": ["https://shop.example/a"], "truncated": False},
            {"filter": "traffic_type", "values": ["ai_assistant", "human", "other_bot"], "truncated": False},
            {"filter": "ai_source", "values": ["ChatGPT"], "truncated": False},
            {"filter": "range", "values": ["7d", "30d", "90d"], "truncated": False},
        ]
    )


def test_filter_values_ends_after_a_thousand_of_each(ask):
    answer = ask("filter-values", [visit(short_code=f"{number:04}") for number in range(1_001)])
    codes = dict(answer[1])
    assert codes["values"] == [f"{number:04}" for number in range(1_000)]
    assert codes["truncated"] is True


def test_the_dashboard_is_thirteen_answers_each_equal_to_its_own_endpoints(ask):
    name, headers = ask.organization()
    kinds = ({}, PHONE, CHATGPT, CLAUDE, GPTBOT, CLAUDE_CODE, REFERRED, GOOGLEBOT, CURL)
    land(ask.lake, name, [visit(**columns, short_code="a", country="DE") for columns in kinds])

    def answer(endpoint):
        return ask.client.get(f"/analytics/{endpoint}", params=WEEK, headers=headers).json()

    dashboard = answer("dashboard")
    assert list(dashboard) == [
        "overview", "timeSeries", "aiSources", "devices", "topLinks", "weeklyTrend", "aiPlatformMarketShare",
        "referrers", "geographic", "browsers", "operatingSystems", "hourlyActivity", "botTraffic",
    ]  # fmt: skip
    for member, endpoint in DASHBOARD.items():
        assert in_order(dashboard[member]) == in_order(answer(endpoint)), member
    assert all(dashboard.values())


ZERO_HOUR = {"visits": 0, "percentage": None, "human_clicks": 0, "ai_visits": 0, "other_visits": 0}
NOTHING_OVERALL = {
    "total_visits": 0,
    "human_clicks": 0,
    "ai_visits": 0,
    "ai_assistant_requests": 0,
    "ai_training_requests": 0,
    "ai_coding_agent_requests": 0,
    "ai_referral_requests": 0,
    "other_visits": 0,
    "ai_percentage": 0,
}
NOTHING = {
    "traffic-overview": NOTHING_OVERALL,
    "weekly-trend": {
        "weekly": [
            {"week": "2026-03-02"}
            | {{"human_clicks": "human_visits", "ai_percentage": "ai_pct"}.get(key, key): 0 for key in NOTHING_OVERALL}
        ],
        "byPlatform": [],
    },
    "time-series": [
        {"date": f"2026-03-0{day}", "total_visits": 0, "human_clicks": 0, "ai_visits": 0}
        | {"mobile_visits": 0, "desktop_visits": 0}
        for day in range(2, 9)
    ],
    "hourly-activity": [{"hour": hour} | ZERO_HOUR for hour in range(24)],
    "daily-activity": [
        {"day_of_week": number, "day_name": name} | ZERO_HOUR | {"days_in_range": 1, "avg_visits": 0}
        for number, name in enumerate(
            ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"), start=1
        )
    ],
    "weekend-vs-weekday": [
        {"period": period, "days": days, "visits": 0, "percentage": None, "avg_visits": 0}
        | {"human_clicks": 0, "ai_visits": 0, "other_visits": 0}
        for period, days in (("weekday", 5), ("weekend", 2))
    ],
    "filter-values": [
        {"filter": name, "values": ["7d", "30d", "90d"] if name == "range" else [], "truncated": False}
        for name in ("domain", "short_code", "target_url", "traffic_type", "ai_source", "range")
    ],
}
NOTHING["dashboard"] = {member: NOTHING.get(name, []) for member, name in DASHBOARD.items()}


@pytest.mark.parametrize("name", ENDPOINTS)
def test_without_visits_an_answer_is_zeros_or_empty(ask, name):
    assert ask(name) == in_order(NOTHING.get(name, []))


def test_an_average_over_no_day_is_null(ask):
    weekend = ask("weekend-vs-weekday", start_date="2026-03-02", end_date="2026-03-02")[1]
    assert dict(weekend)["days"] == 0
    assert dict(weekend)["avg_visits"] is None


def statistics(client, headers, **query):
    response = client.get("/analytics/cache-stats", params=query, headers=headers)
    assert response.status_code == 200, response.text
    return {row["scope"]: row for row in response.json()}


def test_cache_stats_counts_what_this_organization_asked(ask):
    _, mine = ask.organization()
    _, others = ask.organization()
    fields = ["scope", "entries", "hits", "misses", "hit_rate", "evictions", "bytes", "ttl_seconds"]
    fields.append("oldest_age_seconds")
    unused = {"entries": 0, "hits": 0, "misses": 0, "hit_rate": None, "evictions": 0, "bytes": 0, "ttl_seconds": 300}

    before = statistics(ask.client, mine)
    assert list(before) == ["total", *ENDPOINTS]
    assert all(
        row == {"scope": scope} | unused | {"oldest_age_seconds": None} and list(row) == fields
        for scope, row in before.items()
    )

    sizes = {}
    for headers, query in [
        (mine, {}),  # a miss
        (mine, {"range": "30d", "unknown": "x", "traffic_type": "x"}),  # the same question
        (mine, {"start_date": "2026-02-14", "end_date": "2099-01-01"}),  # the same days
        (mine, {"domain": "GO.example"}),  # a miss
        (mine, {"domain": "go.example"}),
        (others, {}),  # a miss of somebody else
        (others, {"domain": "unseen.example"}),
    ]:
        response = ask.client.get("/analytics/devices", params=query, headers=headers)
        sizes[response.content] = len(response.content)
    after = statistics(ask.client, mine)
    age = after["total"]["oldest_age_seconds"]
    used = {"entries": 2, "hits": 3, "misses": 2, "hit_rate": 60, "evictions": 0, "bytes": 2 * sum(sizes.values())}
    used |= {"ttl_seconds": 300, "oldest_age_seconds": age}
    assert isinstance(age, int)
    assert after["total"] == {"scope": "total"} | used
    assert after["devices"] == {"scope": "devices"} | used
    assert all(after[name] == before[name] for name in ENDPOINTS if name != "devices")


def test_cache_stats_is_never_cached_and_still_checks_its_parameters(ask):
    _, headers = ask.organization()
    assert statistics(ask.client, headers) == statistics(ask.client, headers)
    ask.client.get("/analytics/dashboard", headers=headers)
    cold = statistics(ask.client, headers)
    assert (cold["dashboard"]["hits"], cold["dashboard"]["misses"], cold["devices"]["misses"]) == (0, 1, 1)
    ask.client.get("/analytics/devices", headers=headers)
    ask.client.get("/analytics/dashboard", headers=headers)
    warm = statistics(ask.client, headers, range="7d", domain="any.example")
    assert (warm["dashboard"]["hits"], warm["devices"]["hits"], warm["devices"]["entries"]) == (1, 2, 1)
    assert ask.client.get("/analytics/cache-stats", params={"range": "1d"}, headers=headers).status_code == 400


def test_jobs_are_the_organizations_own_newest_first_then_by_id(ask):
    name, headers = ask.organization()
    assert ask.client.get("/jobs", headers=headers).json() == []
    fields = ("id", "organization", "type", "status", "title", "created_at", "updated_at")
    jobs = [
        ("a", name, "patch", "open", "Ünï'x\"", "2026-03-01T08:00:00", "2026-03-01T08:00:00"),
        ("c", name, "edge_page", "done", "Tie", "2026-03-02T08:00:00", "2026-03-02T09:30:00"),
        ("b", name, "patch", "open", "Tie", "2026-03-02T08:00:00", "2026-03-02T08:00:00"),
        ("z", "stranger", "patch", "open", "Not mine", "2026-03-03T08:00:00", "2026-03-03T08:00:00"),
    ]
    with sqlite3.connect(ask.lake.root / "control.sqlite") as database:
        database.executemany("INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?)", jobs)
    database.close()
    response = ask.client.get("/jobs", params={"range": "nonsense"}, headers=headers)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    expected = [(*job[:5], f"{job[5]}Z", f"{job[6]}Z") for job in (jobs[1], jobs[2], jobs[0])]
    assert in_order(response.json()) == table(fields, *expected)


def test_the_public_routes_need_no_token(ask):
    ask.client.headers.pop("authorization", None)
    assert ask.client.get("/healthz").json() == {"status": "ok"}
    assert ask.client.get("/openapi.json").json()["info"]["version"] == "1.0.0"
