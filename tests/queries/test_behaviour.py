"""The class of a visit after judging, which depends on its landing and its day: either all answers use it, or none."""

from contextlib import closing
from datetime import date, datetime

import pytest

from data.tasks.compaction import Compactor
from queries import ENTRIES, RollupBuilder, Scope, Warehouse
from queries.own_sql import OwnSql
from tests import recount
from tests.support.sql import LEAVES, answers
from tests.support.visits import land, visit

DAYS = (date(2026, 3, 1), date(2026, 3, 10))
WHOLE = Scope("acme", *DAYS)
OLD = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/79.0.3945.88 Safari/537.36"
BY_WORD = {
    "country": "geographic", "device_type": "devices time-series", "browser": "browsers",
    "operating_system": "operating-systems", "referrer": "referrers",
    "ai_source": "ai-sources ai-platform-market-share source-links", "agent": "bot-traffic",
    "path": "bot-traffic ai-platform-market-share", "utm_source": "utm-campaigns",
    "utm_campaign": "utm-campaigns",
}  # fmt: skip
"""Filters by a word that rollups of some relations serve, each with answers that read these relations."""


def some_visits(day):
    """Yield a day's visits in three categories, some of them by a scanner or an outdated browser."""
    classes = [
        {"bot_category": "human"},
        {"bot_category": "ai_referral", "agent_kind": "referral", "ai_source": "Claude", "confidence": "medium"},
        {"bot_category": "ai_training", "agent_kind": "training", "ai_source": "ChatGPT", "agent": "GPTBot",
         "operator": "OpenAI", "confidence": "high", "device_type": "bot"},
    ]  # fmt: skip
    for number in range(24):
        yield visit(
            visited_at=datetime(2026, 3, day, 12, 0, number),
            short_code="sale" if number % 2 else None,
            path="/.env" if number == 3 else "/sale",
            is_malicious=number == 3,
            status=404 if number == 3 else 302,
            visitor=number % 4,
            user_agent=OLD if number % 6 == 4 else "Mozilla/5.0",
            referrer="claude.ai" if number % 5 else None,
            country="DE" if number % 2 else None,
            utm_source="mail" if number % 7 < 4 else None,
            utm_campaign="spring" if number % 7 < 3 else None,
            **classes[number % 3],
        )


@pytest.fixture
def judged(lake):
    """A lake with two judged days."""
    for day in (2, 3):
        land(lake, "acme", some_visits(day))
    Compactor(lake).run()
    return lake


@pytest.fixture
def mixed(judged):
    """The same lake with additional visits that are not judged yet."""
    for day in (4, 3):
        land(judged, "acme", some_visits(day))
    return judged


def stored(lake):
    """Return the visits as they landed, with their signals."""
    with closing(OwnSql(lake, "acme")) as own_sql:
        rows = own_sql.table("SELECT * REPLACE (landed_category AS bot_category) FROM visits_in_scope", WHOLE)
    return rows.to_pylist()


@pytest.mark.parametrize("counted", [False, True], ids=["from visits", "from rollups"])
def test_answers_equal_a_recount_with_the_signals_of_the_day(mixed, counted):
    mixed.manifest.behaviour.switch("acme", on=False)
    landed = stored(mixed)
    assert len([row for row in landed if recount.as_seen(row) is not row]) == 16
    narrow = Scope("acme", *DAYS, domain="go.example") if counted else Scope("acme", *DAYS, short_code="sale")
    for behaviour, scope in ((False, WHOLE), (True, WHOLE), (True, narrow)):
        mixed.manifest.behaviour.switch("acme", on=behaviour)
        if counted:
            assert RollupBuilder(mixed).run() == (scope == WHOLE)
        with closing(Warehouse(mixed)) as warehouse:
            snapshot = warehouse.snapshot(scope)
            for name in ENTRIES.keys() & LEAVES.keys() - {"geographic", "filter-values"}:  # names of countries, the day
                expected = recount.recount(name, landed, scope, behaviour=behaviour)
                assert warehouse.answer(ENTRIES[name], snapshot) == expected, (name, scope, behaviour)


@pytest.mark.parametrize("counted", ["no day", "some days", "every day"])
def test_every_answer_filtered_by_a_word_equals_the_recount(mixed, counted):
    if counted != "no day":
        RollupBuilder(mixed).run()
    if counted == "some days":
        land(mixed, "acme", some_visits(4))
    landed = stored(mixed)
    with closing(Warehouse(mixed)) as warehouse:
        assert len(warehouse.snapshot(WHOLE).closed_days) == {"no day": 0, "some days": 2, "every day": 3}[counted]
        for filtered in recount.WORDS:
            words = {recount.word(row, filtered) for visit in landed for row in (visit, recount.as_seen(visit))}
            for scope in (Scope("acme", *DAYS, **{filtered: word}) for word in words):
                snapshot = warehouse.snapshot(scope)
                for name in BY_WORD.get(filtered, "traffic-overview").split():
                    expected = recount.recount(name, landed, scope, countries={"DE": "Germany"})
                    assert warehouse.answer(ENTRIES[name], snapshot) == expected, (name, scope)


SOME = ("traffic-overview", "ai-sources", "bot-traffic", "devices")
"""Answers that all change once days are judged."""


def test_a_rollup_begun_before_a_switch_is_not_used_afterwards(judged, monkeypatch):
    expected = answers(judged, WHOLE, SOME)
    judged.manifest.behaviour.switch("acme", on=False)
    builder = RollupBuilder(judged)
    build = builder._build_month

    def switched_meanwhile(engine, month):
        build(engine, month)
        judged.manifest.behaviour.switch("acme", on=True)

    monkeypatch.setattr(builder, "_build_month", switched_meanwhile)
    assert builder.run() == 1
    assert answers(judged, WHOLE, SOME) == expected


def test_custom_sql_reads_signals_and_both_classes_of_a_visit(judged):
    text = (
        "SELECT DISTINCT bot_category, agent_kind, ai_source, agent, operator, confidence, detection_method, "
        "device_type, landed_category FROM visits_in_scope "
        "WHERE signals > 0 AND landed_category IN ('human', 'ai_referral') ORDER BY ALL"
    )
    with closing(OwnSql(judged, "acme")) as own_sql:
        seen = own_sql.sql(text, WHOLE).rows
    disguise = ("other_bot", "disguised", None, None, None, "medium", "behaviour", "bot")
    assert seen == [(*disguise, "ai_referral"), (*disguise, "human")]


def test_no_answer_reads_facts_about_requests(lake):
    probed, https = recount.BITS["probed"], recount.BITS["https"]
    land(lake, "acme", [visit(signals=bits) for bits in (https, https | probed, probed, None)])
    with closing(OwnSql(lake, "acme")) as own_sql:
        rows = own_sql.sql("SELECT signals FROM visits_in_scope ORDER BY ALL", WHOLE).rows
    assert rows == [(0,), (probed,), (probed,), (None,)]
    with closing(Warehouse(lake)) as warehouse:
        told = warehouse.answer(ENTRIES["disguised"], warehouse.snapshot(WHOLE))
    assert [(row["signal"], row["visits"], row["alone"]) for row in told] == [("total", 2, 2), ("probed", 2, 2)]


def test_the_signals_attacked_and_breadth_do_not_convict(lake):
    with closing(OwnSql(lake, "acme")) as own_sql:
        rows = own_sql.sql("FROM (SELECT unnest(range(256)) AS value) WHERE NOT convicts(value)", WHOLE).rows
    assert rows == [(0,), (1,), (16,), (17,)]


def test_only_declared_bits_convict(lake):
    with closing(OwnSql(lake, "acme")) as own_sql:
        rows = own_sql.sql("FROM (SELECT 1::BIGINT << unnest(range(63)) AS bit) WHERE convicts(bit)", WHOLE).rows
    assert [bit for (bit,) in rows] == [recount.BITS[name] for name in recount.CONVICTING]


# Agents' names that scanners use

CLAIMS = [
    ({"bot_category": "ai_assistant", "agent_kind": "assistant_fetch", "ai_source": "Claude"}, 3, "contradicted"),
    ({"bot_category": "ai_training", "agent_kind": "training"}, 3, "contradicted"),
    ({"bot_category": "search_crawler", "agent_kind": "search"}, 3, "contradicted"),
    ({"bot_category": "ai_training", "agent_kind": "training"}, 2, "high"),
    ({"bot_category": "ai_training", "agent_kind": "training", "confidence": "verified"}, 3, "verified"),
    ({"bot_category": "other_bot", "agent_kind": "library"}, 3, "high"),
]


@pytest.mark.parametrize(("claim", "probes", "confidence"), CLAIMS)
def test_three_probes_contradict_an_unverified_ai_or_search_bot(lake, claim, probes, confidence):
    columns = {"agent": "SomeBot", "operator": "Some", "confidence": "high", "visitor": 1, "user_agent": "SomeBot/1"}
    paths = ["/sale", *(f"/.env.{number}" for number in range(probes))]
    land(lake, "acme", [
        visit(path=path, short_code=None, status=404, is_malicious="env" in path, **columns | claim) for path in paths
    ])  # fmt: skip
    Compactor(lake).run()
    with closing(OwnSql(lake, "acme")) as own_sql:
        found = own_sql.sql("SELECT DISTINCT agent, confidence, bot_category, ai_source FROM visits_in_scope", WHOLE)
    is_taken = confidence == "contradicted"
    category = "other_bot" if is_taken else claim["bot_category"]
    assert found.rows == [("SomeBot", confidence, category, None if is_taken else claim.get("ai_source"))]


def test_probes_contradict_no_agent_if_behaviour_is_off(lake):
    paths = [f"/.env.{number}" for number in range(3)]
    claim = {"bot_category": "ai_training", "agent": "SomeBot", "confidence": "high", "visitor": 1}
    land(lake, "acme", [visit(path=path, short_code=None, status=404, is_malicious=True, **claim) for path in paths])
    Compactor(lake).run()
    lake.manifest.behaviour.switch("acme", on=False)
    with closing(OwnSql(lake, "acme")) as own_sql:
        assert own_sql.sql("SELECT DISTINCT confidence FROM visits_in_scope", WHOLE).rows == [("high",)]
