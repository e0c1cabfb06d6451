"""Each template by example: a handful of visits, and the whole answer they must give."""

from collections.abc import Iterator
from datetime import date, datetime
from functools import partial
from itertools import count
from typing import Any

import pytest

from data import Lake
from queries import ENTRIES, Scope, TrafficValue, Warehouse
from tests.visits import Visit, land, links, visit

MONDAY, SUNDAY = date(2026, 3, 2), date(2026, 3, 8)
VALUES = [
    TrafficValue("human", 2500, "EUR"),
    TrafficValue("ai_training", 0, "EUR"),
    TrafficValue("ai_referral", 10**10, "EUR"),  # the most that can be set
    TrafficValue("other_bot", 1, "EUR"),
]

assistant = partial(visit, bot_category="ai_assistant", ai_source="ChatGPT", device_type="bot")
trainer = partial(visit, bot_category="ai_training", ai_source="ChatGPT", device_type="bot")
coder = partial(
    visit, bot_category="ai_coding_agent", ai_source="Claude Code", operator="Anthropic", device_type="bot", path=""
)
referral = partial(visit, bot_category="ai_referral", ai_source="ChatGPT")
searcher = partial(
    visit, bot_category="search_crawler", agent="Googlebot", operator="Google", agent_kind="search", confidence="high",
    device_type="bot", path="",
)  # fmt: skip
other_bot = partial(visit, bot_category="other_bot", device_type="bot")


class Desk:
    """Where a test asks: every question is that of a new organization."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.warehouse = Warehouse(lake, VALUES)
        self._numbers = count()

    def ask(
        self,
        name: str,
        visits: list[Visit],
        start: date = MONDAY,
        end: date = SUNDAY,
        links_of: Any = (),
        **filters: Any,
    ) -> Any:
        organization = f"o{next(self._numbers)}"
        land(self.lake, organization, visits)
        links(self.lake, organization, links_of)
        variables = self.warehouse.variables(Scope(organization, start, end, **filters))
        return self.warehouse.answer(ENTRIES[name], variables)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    desk = Desk(Lake(tmp_path_factory.mktemp("lake"), create=True))
    yield desk
    desk.warehouse.close()
    desk.lake.manifest.close()


def at(day: int, hour: int = 12, minute: int = 0, month: int = 3) -> datetime:
    return datetime(2026, month, day, hour, minute)


def table(fields: str, *rows: tuple) -> list[dict]:
    return [dict(zip(fields.split(), row, strict=True)) for row in rows]


# Totals and trends


OVERVIEW = (
    "total_visits human_clicks ai_visits ai_assistant_requests ai_training_requests ai_coding_agent_requests "
    "ai_referral_requests other_visits ai_percentage"
)


def test_the_overview_splits_visits_into_people_ai_and_others(desk):
    visits = [visit(), visit(), assistant(), trainer(), coder(), referral(), referral(), searcher(), other_bot()]
    assert [desk.ask("traffic-overview", visits)] == table(OVERVIEW, (9, 2, 5, 1, 1, 1, 2, 2, 55.56))


def test_the_overview_of_nothing_is_zero_not_null(desk):
    assert [desk.ask("traffic-overview", [])] == table(OVERVIEW, (0, 0, 0, 0, 0, 0, 0, 0, 0.0))


@pytest.mark.parametrize(
    ("column", "kept", "left_out"),
    [("short_code", "sale", "Sale"), ("short_code", "sale", None), ("domain", "a.example", "b.example")],
)
def test_a_filter_keeps_its_own_value_alone(desk, column, kept, left_out):
    visits = [visit(**{column: kept}), visit(**{column: left_out})]
    assert desk.ask("traffic-overview", visits, **{column: kept})["total_visits"] == 1


def test_the_first_and_the_last_moment_of_a_range_are_in_it(desk):
    moments = [at(1, 23, 59), at(2, 0), at(8, 23, 59), at(9, 0)]
    visits = [visit(visited_at=moment) for moment in moments]
    assert desk.ask("traffic-overview", visits)["total_visits"] == 2


def test_a_week_counts_only_its_days_in_range(desk):
    visits = [
        visit(visited_at=at(3)),
        assistant(visited_at=at(4)),
        visit(visited_at=at(4)),
        referral(visited_at=at(17)),
    ]
    answer = desk.ask(
        "weekly-trend", [*visits, trainer(visited_at=at(18))], start=date(2026, 3, 4), end=date(2026, 3, 17)
    )
    assert answer["weekly"] == table(
        "week total_visits human_visits ai_visits ai_assistant_requests ai_training_requests "
        "ai_coding_agent_requests ai_referral_requests other_visits ai_pct",
        (date(2026, 3, 2), 2, 1, 1, 1, 0, 0, 0, 0, 50.0),
        (date(2026, 3, 9), 0, 0, 0, 0, 0, 0, 0, 0, 0.0),
        (date(2026, 3, 16), 1, 0, 1, 0, 0, 0, 1, 0, 100.0),
    )
    assert answer["byPlatform"] == table(
        "week ai_source visits", (date(2026, 3, 2), "ChatGPT", 1), (date(2026, 3, 16), "ChatGPT", 1)
    )


def test_platforms_of_a_week_are_ordered_by_visits_then_by_name(desk):
    visits = [assistant(ai_source=source) for source in ("b", "a", "C", "b", None)]
    assert desk.ask("weekly-trend", [*visits, visit()])["byPlatform"] == table(
        "week ai_source visits", (MONDAY, "b", 2), (MONDAY, "C", 1), (MONDAY, "a", 1), (MONDAY, "unknown", 1)
    )


def test_a_week_over_new_year_is_named_by_its_monday_in_december(desk):
    visits = [assistant(visited_at=at(31, month=12)), assistant(visited_at=datetime(2027, 1, 3))]
    answer = desk.ask("weekly-trend", visits, start=date(2026, 12, 31), end=date(2027, 1, 3))
    assert answer["byPlatform"] == table("week ai_source visits", (date(2026, 12, 28), "ChatGPT", 2))


def test_every_day_has_its_row_and_tablets_are_in_neither_column(desk):
    devices = ["mobile", "mobile", "desktop", "tablet", None]
    visits = [visit(visited_at=at(1, month=3), device_type=device) for device in devices]
    assert desk.ask(
        "time-series", [*visits, searcher(visited_at=at(1))], start=date(2026, 2, 28), end=date(2026, 3, 2)
    ) == table(
        "date total_visits human_clicks ai_visits mobile_visits desktop_visits",
        (date(2026, 2, 28), 0, 0, 0, 0, 0),
        (date(2026, 3, 1), 6, 5, 0, 2, 1),
        (date(2026, 3, 2), 0, 0, 0, 0, 0),
    )


def test_the_29th_of_february_is_a_day(desk):
    days = desk.ask("time-series", [], start=date(2028, 2, 28), end=date(2028, 3, 1))
    assert [row["date"] for row in days] == [date(2028, 2, 28), date(2028, 2, 29), date(2028, 3, 1)]


# AI


def test_an_ai_source_counts_what_it_fetched_and_whom_it_sent(desk):
    visits = [
        assistant(),
        trainer(),
        referral(),
        assistant(ai_source="Claude"),
        coder(ai_source=None),
        visit(),
        searcher(),
    ]
    assert desk.ask("ai-sources", visits) == table(
        "ai_source visits percentage agent_fetches ai_referrals",
        ("ChatGPT", 3, 60.0, 2, 1), ("Claude", 1, 20.0, 1, 0), ("unknown", 1, 20.0, 1, 0),
    )  # fmt: skip


def test_the_market_share_is_of_assistants_without_probes(desk):
    visits = [
        assistant(path="/a", visitor=1), assistant(path="/a", visitor=1), assistant(path="/b", visitor=2),
        assistant(path="/.env", visitor=3, is_malicious=True), assistant(path="/b", visitor=1, visited_at=at(5)),
        assistant(ai_source="Claude", path=""), trainer(path="/c"), referral(path="/c"),
    ]  # fmt: skip
    assert desk.ask("ai-platform-market-share", visits) == table(
        "ai_source visits percentage pages_accessed unique_visitors",
        ("ChatGPT", 4, 80.0, 2, 3),  # visitor 1 came on two days, under two hashes that mean nothing to each other
        ("Claude", 1, 20.0, 0, 0),
    )


def test_a_tool_is_known_by_name_and_operator(desk):
    visits = [
        coder(path="/a", visited_at=at(3, 7)), coder(path="/b", visited_at=at(6, 1)), coder(visitor=2**64 - 1),
        coder(operator=None), coder(ai_source="Cursor", operator="Anysphere"), assistant(),
    ]  # fmt: skip
    assert desk.ask("developer-tools", visits) == table(
        "tool operator visits percentage pages_accessed unique_visitors first_seen last_seen",
        ("Claude Code", "Anthropic", 3, 60.0, 2, 1, at(3, 7), at(6, 1)),
        ("Claude Code", "unknown", 1, 20.0, 0, 0, at(4, 12, 30), at(4, 12, 30)),
        ("Cursor", "Anysphere", 1, 20.0, 0, 0, at(4, 12, 30), at(4, 12, 30)),
    )


def test_adoption_compares_a_tools_week_with_the_week_before(desk):
    weeks = {2: 3, 9: 2, 23: 5, 30: 8}  # none in the week of the 16th
    visits = [coder(visited_at=at(day), visitor=number) for day, many in weeks.items() for number in range(many)]
    visits += [coder(visited_at=at(11), visitor=0, ai_source="Cursor"), coder(visited_at=at(13), ai_source="Cursor")]
    assert desk.ask("dev-tools-adoption", visits, end=date(2026, 3, 31)) == table(
        "week tool visits unique_visitors active_days is_new change_percentage",
        (date(2026, 3, 2), "Claude Code", 3, 3, 1, True, None),
        (date(2026, 3, 9), "Claude Code", 2, 2, 1, False, -33.33),
        (date(2026, 3, 9), "Cursor", 2, 1, 2, True, None),
        (date(2026, 3, 23), "Claude Code", 5, 5, 1, False, None),
        (date(2026, 3, 30), "Claude Code", 8, 8, 1, False, 60.0),
    )


def test_a_day_of_two_operators_is_one_active_day(desk):
    (row,) = desk.ask("dev-tools-adoption", [coder(), coder(operator=None)])
    assert (row["visits"], row["active_days"]) == (2, 1)


@pytest.mark.parametrize(
    ("before", "now", "change"), [(800, 799, -0.13), (800, 801, 0.13), (3, 1, -66.67), (3, 5, 66.67), (2, 2, 0.0)]
)
def test_a_change_is_rounded_half_away_from_zero(desk, before, now, change):
    visits = [coder(visited_at=at(2))] * before + [coder(visited_at=at(9))] * now
    rows = desk.ask("dev-tools-adoption", visits, end=date(2026, 3, 15))
    assert [row["change_percentage"] for row in rows] == [None, change]


def test_a_change_too_small_to_show_is_zero_without_a_sign(desk):
    visits = [coder(visited_at=at(2))] * 20_001 + [coder(visited_at=at(9))] * 20_000
    _, row = desk.ask("dev-tools-adoption", visits, end=date(2026, 3, 15))
    assert repr(row["change_percentage"]) == "0.0"


def test_confidence_is_counted_over_ai_traffic_only(desk):
    visits = [
        assistant(confidence="verified", detection_method="ip_range"), trainer(), searcher(confidence="medium"),
        trainer(confidence="verified", detection_method="ip_range"),
        referral(confidence="low", detection_method="utm"),
    ]  # fmt: skip
    assert desk.ask("ai-confidence", visits) == table(
        "confidence detection_method score visits percentage",
        ("verified", "ip_range", 1.0, 2, 50.0), ("low", "utm", 0.4, 1, 25.0), ("unknown", "unknown", None, 1, 25.0),
    )  # fmt: skip


def test_conversion_may_exceed_a_hundred_and_is_null_over_nothing(desk):
    visits = [
        assistant(short_code="a"), referral(short_code="a"), referral(short_code="b"), referral(),
        assistant(ai_source="Claude", short_code="a", domain="x"), assistant(ai_source="Claude", short_code="a"),
        assistant(ai_source="Claude", short_code="A"), referral(ai_source="Gemini"), visit(short_code="z"),
    ]  # fmt: skip
    assert desk.ask("ai-to-human-conversion", visits) == table(
        "ai_source agent_fetches ai_referrals conversion_rate fetches_per_referral links_fetched links_referred",
        ("Claude", 3, 0, 0.0, None, 3, 0), ("ChatGPT", 1, 3, 300.0, 0.33, 1, 2), ("Gemini", 0, 1, None, 0.0, 0, 0),
    )  # fmt: skip


def test_a_device_is_a_share_of_its_ai_source(desk):
    visits = [
        assistant(), assistant(), referral(device_type="mobile"), referral(ai_source="Claude", device_type="mobile"),
        referral(ai_source="Claude", device_type=None), visit(device_type="mobile"),
    ]  # fmt: skip
    assert desk.ask("device-by-ai-source", visits) == table(
        "ai_source device_type visits percentage",
        ("ChatGPT", "bot", 2, 66.67), ("ChatGPT", "mobile", 1, 33.33),
        ("Claude", "mobile", 1, 50.0), ("Claude", "unknown", 1, 50.0),
    )  # fmt: skip


BOTS = (
    "agent operator agent_kind bot_category confidence visits percentage pages_accessed unique_visitors "
    "errors_4xx errors_5xx first_seen last_seen"
)
NOON = at(4, 12, 30)


def test_bot_traffic_names_every_automaton_and_nobody_sent_by_ai(desk):
    visits = [
        searcher(path="/a", status=404, visitor=1, visited_at=at(3)), searcher(path="/b", status=499, visitor=1),
        searcher(path="/a", status=500), searcher(status=599, visited_at=at(7)), searcher(status=399),
        searcher(status=600), other_bot(), referral(agent="x"), visit(agent="y"),
    ]  # fmt: skip
    assert desk.ask("bot-traffic", visits) == table(
        BOTS,
        ("Googlebot", "Google", "search", "search_crawler", "high", 6, 85.71, 2, 2, 2, 2, at(3), at(7)),
        ("unknown", "unknown", "unknown", "other_bot", "unknown", 1, 14.29, 1, 0, 0, 0, NOON, NOON),
    )


@pytest.mark.parametrize(
    ("traffic_type", "categories"),
    [
        (None, ["ai_assistant", "ai_coding_agent", "ai_training", "other_bot", "search_crawler"]),
        ("ai", ["ai_assistant", "ai_coding_agent", "ai_referral", "ai_training"]),
        ("other", ["other_bot", "search_crawler"]),
        ("ai_referral", ["ai_referral"]),
        ("ai_training", ["ai_training"]),
        ("search_crawler", ["search_crawler"]),
        ("human", []),
    ],
)
def test_bot_traffic_can_be_asked_by_traffic_type(desk, traffic_type, categories):
    kinds = (visit, assistant, trainer, coder, referral, searcher, other_bot)
    rows = desk.ask("bot-traffic", [kind(agent=None) for kind in kinds], traffic_type=traffic_type)
    assert sorted(row["bot_category"] for row in rows) == categories


# Links, campaigns, places, devices


LINKS = "short_code domain target_url visits percentage human_clicks ai_visits other_visits unique_visitors last_visit"


def test_a_link_leads_where_its_domain_says_else_where_any_domain_does(desk):
    visits = [
        visit(short_code="a", domain="x", visitor=1), referral(short_code="a", domain="x", visitor=1),
        searcher(short_code="a", domain="x", visited_at=at(8)), visit(short_code="a", domain="y"),
        visit(short_code="b", domain="x"), visit(short_code="A", domain="x"), visit(),
        visit(short_code="a", domain=None),
    ]  # fmt: skip
    known = table(
        "short_code domain target_url",
        ("a", "x", "https://own"), ("a", "", "https://any"), ("b", "y", "https://elsewhere"),
    )  # fmt: skip
    assert desk.ask("top-links", visits, links_of=known) == table(
        LINKS,
        ("a", "x", "https://own", 3, 37.5, 1, 1, 1, 1, at(8)),
        ("A", "x", "unknown", 1, 12.5, 1, 0, 0, 0, NOON),
        ("a", "unknown", "https://any", 1, 12.5, 1, 0, 0, 0, NOON),
        ("a", "y", "https://any", 1, 12.5, 1, 0, 0, 0, NOON),
        ("b", "x", "unknown", 1, 12.5, 1, 0, 0, 0, NOON),
    )


def test_only_the_hundred_top_links_are_listed(desk):
    codes = [f"{number:03}" for number in range(101)]
    visits = [visit(short_code=code) for code in (*codes, "100")]
    rows = desk.ask("top-links", [*visits, *([visit()] * 98)])
    assert [row["short_code"] for row in rows] == ["100", *codes[:99]]
    assert [row["percentage"] for row in rows] == [1.0, *([0.5] * 99)]


def test_a_link_listed_by_another_organization_is_unknown_here(desk):
    desk.ask("top-links", [], links_of=table("short_code target_url", ("a", "https://secret")))
    assert [row["target_url"] for row in desk.ask("top-links", [visit(short_code="a")])] == ["unknown"]


def test_a_campaign_is_any_visit_with_an_utm_word(desk):
    visits = [
        visit(utm_source="mail", utm_medium="cpc", utm_campaign="x", visitor=1), visit(utm_source="mail", visitor=1),
        referral(utm_source="mail"), visit(utm_term="shoes"), searcher(utm_content=""), visit(),
    ]  # fmt: skip
    assert desk.ask("utm-campaigns", visits) == table(
        "utm_source utm_medium utm_campaign visits percentage human_clicks ai_visits unique_visitors",
        ("mail", "unknown", "unknown", 2, 40.0, 1, 1, 1),
        ("unknown", "unknown", "unknown", 2, 40.0, 1, 0, 0),
        ("mail", "cpc", "x", 1, 20.0, 1, 0, 1),
    )


def test_referrers_are_those_of_people(desk):
    visits = [
        visit(referrer="google.example", referrer_type="search"), visit(), visit(referrer=None, referrer_type=None),
        referral(referrer="chatgpt.example", referrer_type="ai"), searcher(referrer="spam.example"), assistant(),
    ]  # fmt: skip
    assert desk.ask("referrers", visits) == table(
        "referrer referrer_type visits percentage human_clicks ai_referrals",
        ("(direct)", "direct", 2, 50.0, 2, 0),
        ("chatgpt.example", "ai", 1, 25.0, 0, 1),
        ("google.example", "search", 1, 25.0, 1, 0),
    )


def test_a_domain_counts_its_distinct_short_codes(desk):
    visits = [
        visit(domain="x", short_code="a", visitor=1), visit(domain="x", short_code="a", visited_at=at(5), visitor=1),
        referral(domain="x", short_code="A"), searcher(domain="x"), visit(domain="y"), other_bot(domain=None),
    ]  # fmt: skip
    assert desk.ask("domain-breakdown", visits) == table(
        "domain visits percentage human_clicks ai_visits other_visits short_codes unique_visitors",
        ("x", 4, 66.67, 2, 1, 1, 2, 2), ("unknown", 1, 16.67, 0, 0, 1, 0, 0), ("y", 1, 16.67, 1, 0, 0, 0, 0),
    )  # fmt: skip


def test_countries_have_names_and_those_without_are_unknown(desk):
    visits = [
        visit(country="DE", visitor=1), referral(country="DE", visitor=1), visit(), visit(country="QQ"),
        visit(country="DE", visited_at=at(5), visitor=1), searcher(country="CI"),
    ]  # fmt: skip
    assert desk.ask("geographic", visits) == table(
        "country country_name visits percentage human_clicks ai_visits unique_visitors",
        ("DE", "Germany", 3, 50.0, 2, 1, 2),
        ("CI", "Côte d'Ivoire", 1, 16.67, 0, 0, 0),
        ("QQ", "unknown", 1, 16.67, 1, 0, 0),
        ("unknown", "unknown", 1, 16.67, 1, 0, 0),
    )


def test_devices_count_everybody(desk):
    visits = [visit(visitor=1), referral(visitor=1), assistant(visitor=1), searcher(), visit(device_type="tablet")]
    assert desk.ask("devices", visits) == table(
        "device_type visits percentage human_clicks ai_visits unique_visitors",
        ("bot", 2, 40.0, 0, 1, 1), ("desktop", 2, 40.0, 1, 1, 1), ("tablet", 1, 20.0, 1, 0, 0),
    )  # fmt: skip


@pytest.mark.parametrize(("name", "column"), [("browsers", "browser"), ("operating-systems", "operating_system")])
def test_browsers_and_systems_are_those_of_people(desk, name, column):
    used = ["b", "b", "a", None]
    visits = [visit(visitor=7, **{column: value}) for value in used]
    visits += [referral(visitor=7, **{column: "a"}), assistant(**{column: "robot"}), searcher(**{column: "robot"})]
    assert desk.ask(name, visits) == table(
        f"{column} visits percentage human_clicks unique_visitors",
        ("a", 2, 40.0, 1, 1), ("b", 2, 40.0, 2, 1), ("unknown", 1, 20.0, 1, 1),
    )  # fmt: skip


# Times


def test_every_hour_has_its_row(desk):
    visits = [visit(visited_at=at(3, 0)), referral(visited_at=at(5, 23, 59)), searcher(visited_at=at(8, 23))]
    rows = desk.ask("hourly-activity", visits)
    assert [row["hour"] for row in rows] == list(range(24))
    fields = "hour visits percentage human_clicks ai_visits other_visits"
    assert [row for row in rows if row["visits"]] == table(fields, (0, 1, 33.33, 1, 0, 0), (23, 2, 66.67, 0, 1, 1))
    assert rows[1] == table(fields, (1, 0, 0.0, 0, 0, 0))[0]


def test_a_weekday_is_averaged_over_as_many_as_the_range_holds(desk):
    visits = [visit(visited_at=at(2)), visit(visited_at=at(9)), assistant(visited_at=at(9)), searcher(visited_at=at(4))]
    assert desk.ask("daily-activity", visits, end=date(2026, 3, 9)) == table(
        "day_of_week day_name visits percentage human_clicks ai_visits other_visits days_in_range avg_visits",
        (1, "Monday", 3, 75.0, 2, 1, 0, 2, 1.5),
        (2, "Tuesday", 0, 0.0, 0, 0, 0, 1, 0.0),
        (3, "Wednesday", 1, 25.0, 0, 0, 1, 1, 1.0),
        (4, "Thursday", 0, 0.0, 0, 0, 0, 1, 0.0),
        (5, "Friday", 0, 0.0, 0, 0, 0, 1, 0.0),
        (6, "Saturday", 0, 0.0, 0, 0, 0, 1, 0.0),
        (7, "Sunday", 0, 0.0, 0, 0, 0, 1, 0.0),
    )


def test_a_weekday_out_of_range_has_no_average_and_no_visits_no_percentage(desk):
    rows = desk.ask("daily-activity", [], end=MONDAY)
    assert [(row["visits"], row["percentage"], row["days_in_range"]) for row in rows] == [
        (0, None, 1),
        *[(0, None, 0)] * 6,
    ]
    assert [row["avg_visits"] for row in rows] == [0.0, *[None] * 6]


def test_peaks_are_the_ten_busiest_hours_of_the_week(desk):
    visits = [visit(visited_at=at(3, hour)) for hour in range(11)]
    visits += [referral(visited_at=at(10, 10)), searcher(visited_at=at(2, 22))]
    rows = desk.ask("peak-times", visits, end=date(2026, 3, 10))
    fields = "rank day_of_week day_name hour visits percentage avg_visits human_clicks ai_visits"
    assert rows[:3] == table(
        fields,
        (1, 2, "Tuesday", 10, 2, 15.38, 1.0, 1, 1),
        (2, 1, "Monday", 22, 1, 7.69, 0.5, 0, 0),
        (3, 2, "Tuesday", 0, 1, 7.69, 0.5, 1, 0),
    )
    assert [row["rank"] for row in rows] == list(range(1, 11))
    assert [row["hour"] for row in rows[3:]] == list(range(1, 8))


def test_a_weekend_is_compared_with_the_weekdays(desk):
    visits = [visit(visited_at=at(6)), assistant(visited_at=at(7)), searcher(visited_at=at(8)), visit(visited_at=at(8))]
    assert desk.ask("weekend-vs-weekday", visits, start=date(2026, 3, 4)) == table(
        "period days visits percentage avg_visits human_clicks ai_visits other_visits",
        ("weekday", 3, 1, 25.0, 0.33, 1, 0, 0), ("weekend", 2, 3, 75.0, 1.5, 1, 1, 1),
    )  # fmt: skip


def test_a_range_without_a_weekend_still_has_its_row(desk):
    assert desk.ask("weekend-vs-weekday", [], end=MONDAY) == table(
        "period days visits percentage avg_visits human_clicks ai_visits other_visits",
        ("weekday", 1, 0, None, 0.0, 0, 0, 0), ("weekend", 0, 0, None, None, 0, 0, 0),
    )  # fmt: skip


# Values


WORTH = "traffic_type visits percentage value_per_visit estimated_value value_percentage currency"


def test_visits_are_worth_what_the_operator_set(desk):
    visits = [*[visit()] * 3, *[other_bot()] * 50, trainer()]
    assert desk.ask("traffic-value-breakdown", visits) == table(
        WORTH,
        ("other_bot", 50, 92.59, 0.0001, 0.01, 0.66, "EUR"),
        ("human", 3, 5.56, 0.25, 0.75, 99.34, "EUR"),
        ("ai_training", 1, 1.85, 0.0, 0.0, 0.0, "EUR"),
    )


def test_a_high_value_of_many_visits_is_counted(desk):
    assert desk.ask("traffic-value-breakdown", [referral()] * 50_000) == table(
        WORTH, ("ai_referral", 50_000, 100.0, 1e6, 5e10, 100.0, "EUR")
    )


def test_shares_of_no_value_are_null(desk):
    assert desk.ask("traffic-value-breakdown", [trainer()]) == table(
        WORTH, ("ai_training", 1, 100.0, 0.0, 0.0, None, "EUR")
    )


def test_filter_values_are_those_of_the_days_whatever_else_is_filtered(desk):
    visits = [
        visit(short_code="b", domain="y"), assistant(short_code="a", domain="x"), searcher(domain=None),
        referral(ai_source="Ä", visited_at=at(9), short_code="late"),
    ]  # fmt: skip
    known = table(
        "short_code domain target_url",
        ("a", "x", "https://t/2"), ("a", "y", "https://t/no"), ("b", "", "https://t/1"), ("late", "", "https://t/late"),
    )  # fmt: skip
    assert desk.ask("filter-values", visits, links_of=known, short_code="b", domain="none") == table(
        "filter values truncated",
        ("domain", ["x", "y"], False),
        ("short_code", ["a", "b"], False),
        ("target_url", ["https://t/1", "https://t/2"], False),
        ("traffic_type", ["ai_assistant", "human", "search_crawler"], False),
        ("ai_source", ["ChatGPT"], False),
        ("range", ["7d", "30d", "90d"], False),
    )


@pytest.mark.parametrize(("many", "truncated"), [(1000, False), (1001, True)])
def test_at_most_a_thousand_filter_values_are_listed(desk, many, truncated):
    codes = [f"{number:04}" for number in range(many)]
    known = [{"short_code": code, "target_url": f"https://t/{code}"} for code in codes]
    rows = desk.ask("filter-values", [visit(short_code=code) for code in codes], links_of=known)
    found = {row["filter"]: (row["values"], row["truncated"]) for row in rows}
    assert found["short_code"] == (codes[:1000], truncated)
    assert found["target_url"] == ([f"https://t/{code}" for code in codes[:1000]], truncated)
    assert found["domain"] == (["go.example"], False)


def test_filter_values_of_nothing_are_empty_lists(desk):
    assert desk.ask("filter-values", []) == table(
        "filter values truncated",
        *((name, [], False) for name in ("domain", "short_code", "target_url", "traffic_type", "ai_source")),
        ("range", ["7d", "30d", "90d"], False),
    )


@pytest.mark.parametrize(
    "name",
    ["ai-sources", "ai-platform-market-share", "developer-tools", "dev-tools-adoption", "ai-confidence", "top-links",
     "ai-to-human-conversion", "traffic-value-breakdown", "devices", "operating-systems", "browsers",
     "device-by-ai-source", "geographic", "peak-times", "utm-campaigns", "referrers", "domain-breakdown",
     "bot-traffic"],
)  # fmt: skip
def test_an_answer_about_nothing_has_no_rows(desk, name):
    assert desk.ask(name, []) == []


@pytest.mark.parametrize(("part", "whole", "percentage"), [(1, 3, 33.33), (2, 3, 66.67), (1, 32, 3.13), (1, 800, 0.13)])
def test_percentages_are_rounded_half_up(desk, part, whole, percentage):
    visits = [visit(browser="b")] * part + [visit(browser="a")] * (whole - part)
    shares = {row["browser"]: row["percentage"] for row in desk.ask("browsers", visits)}
    assert shares["b"] == percentage
