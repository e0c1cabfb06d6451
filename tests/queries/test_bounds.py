"""Strangers choose referrers, campaigns, agents and domains, but not the size of relations and answers."""

import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, datetime, timedelta
from functools import cache
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from data import Lake
from data.store.rollups import LiveRollups
from queries import ENTRIES, RollupBuilder, Scope, Warehouse, template
from queries.prelude import prelude
from queries.shared_visits import has_many_words
from queries.snapshot import CUT_WORDS, MAX_VALUES_PER_DAY
from tests.recount import MAX_ROWS, OTHER_WORDS, recount
from tests.recount import MAX_VALUES_PER_DAY as MAX_COUNTED
from tests.support.sql import answer, rows
from tests.support.visits import Visit, land, links, visit

KEPT = 1_200
"""Number of words kept for a day here, more than an answer has rows: recounting MAX_VALUES_PER_DAY takes too long."""
CROWDED, QUIET, BUSY = date(2026, 3, 3), date(2026, 3, 4), date(2026, 3, 5)
DAYS = (CROWDED, BUSY)
BOUNDED = ("referrers", "utm-campaigns", "domain-breakdown", "bot-traffic")
CUT = {
    "daily_referrers": ("referrer",),
    "daily_campaigns": ("utm_source", "utm_medium", "utm_campaign"),
    "daily_agents": ("agent",),
    "daily_domains": ("domain",),
}
"""The relations that keep a maximum number of words, and the columns with these words."""
SCOPES = [
    Scope("acme", *DAYS),
    Scope("acme", *DAYS, short_code="sale"),
    Scope("acme", *DAYS, domain="1199.example"),  # not kept for the crowded day
    Scope("acme", *DAYS, traffic_type="ai"),
    Scope("acme", *DAYS, "sale", "0001.example", "other"),
    Scope("acme", QUIET, QUIET, domain="1199.example"),
    Scope("acme", *DAYS, referrer="1199.example"),  # with words that are not kept for the crowded day
    Scope("acme", *DAYS, referrer="1199.example", status="302"),
    Scope("acme", *DAYS, agent="Bot1199"),
    Scope("acme", *DAYS, agent="Bot1199", domain="1199.example"),
    Scope("acme", *DAYS, utm_campaign="1195"),
    Scope("acme", *DAYS, utm_campaign="unknown"),
    Scope("acme", *DAYS, country="unknown"),
]
SIZES = (MAX_ROWS, MAX_ROWS + 1)
NO_ROLLUPS = LiveRollups([], frozenset(), frozenset())


def words(number: int, day: date) -> list[Visit]:
    """Return a person's visit and a bot's visit, both with words that only this number has."""
    at = datetime.combine(day, datetime.min.time()) + timedelta(seconds=number)
    shared: dict[str, Any] = {
        "visited_at": at,
        "domain": f"{number:04}.example",
        "short_code": "sale" if number % 8 else f"{number % 7}",
        "visitor": number % 11,
    }
    campaign = {
        "utm_source": f"{number:04}" if number % 5 else None,
        "utm_medium": f"{number:04}" if number % 20 == 0 else None,
        "utm_campaign": f"{number:04}" if number % 4 else None,
        "utm_term": "t",
    }
    person = visit(
        **shared, **campaign, referrer=f"{number:04}.example", referrer_type=("other", "search")[number % 2],
        bot_category=("human", "ai_referral")[number % 9 == 0],
    )  # fmt: skip
    automaton = visit(
        **shared, agent=f"Bot{number:04}", agent_kind="other", path=f"/{number % 13}", status=200 + number % 400,
        bot_category=("other_bot", "ai_training", "search_crawler")[number % 3], confidence=("low", None)[number % 2],
    )  # fmt: skip
    return [person, automaton]


def crowd() -> list[Visit]:
    """Return the visits of a day with more words than are kept, of a day with some of these words, and of a day with
    many visits and few words.
    """
    crowded = [row for number in range(KEPT + 60) for row in words(number, CROWDED)]
    crowded += [row for number in range(KEPT + 10, KEPT + 60) for row in words(number, CROWDED)]
    crowded += [visit(visited_at=row["visited_at"], domain=OTHER_WORDS, referrer=None) for row in crowded[:3]]
    quiet = [row for number in (1, 1_100, 1_199) for row in words(number, QUIET)]
    busy = [row for number in range(KEPT + 2) for row in words(number % 300, BUSY)[number % 2 :][:1]]
    return [*crowded, *quiet, *busy]


@pytest.fixture(scope="module")
def fewer_words() -> Iterator[None]:
    """Keep only KEPT words for a day, in SQL, in Python and in the recount."""
    constant = "max_values_per_day() AS {};"
    kept = [sql.replace(constant.format(MAX_VALUES_PER_DAY), constant.format(KEPT)) for sql in prelude()]
    assert kept != prelude()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queries.definitions.prelude", lambda: kept)
        for module in ("queries.snapshot", "queries.shared_visits", "tests.recount"):
            patch.setattr(f"{module}.MAX_VALUES_PER_DAY", KEPT)
        yield


@pytest.fixture(scope="module")
def recounted(fewer_words: None) -> Callable[[str, Scope], Any]:
    """Return a function that recounts an answer by hand from the crowd's visits."""
    visits = [row | {"organization": "acme"} for row in crowd()]
    return cache(lambda name, scope: recount(name, visits, scope))


@pytest.fixture(scope="module")
def warehouse(fewer_words: None, shared_lake: Lake) -> Iterator[Warehouse]:
    """The warehouse of a lake with the crowd's visits and rollups, and with two organizations that have words for as
    many rows as an answer may have, and for one more.

    The crowd's last days land after the first day is counted, so that the last rollup is made from an older rollup.
    """
    visits = crowd()
    land(shared_lake, "acme", [row for row in visits if row["day"] == CROWDED])
    RollupBuilder(shared_lake).run()
    land(shared_lake, "acme", [row for row in visits if row["day"] != CROWDED])
    for number in SIZES:
        land(shared_lake, f"words-{number}", [row for one in range(number) for row in words(one, QUIET)])
    RollupBuilder(shared_lake).run()
    with closing(Warehouse(shared_lake)) as warehouse:
        yield warehouse


@pytest.fixture(params=["from rollups", "from visits"])
def counted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve answers from rollups, then from visits."""
    if request.param == "from visits":
        monkeypatch.setattr("queries.snapshot.live_rollups", lambda *_: NO_ROLLUPS)


def check_dashboard(warehouse: Warehouse, recounted: Callable[[str, Scope], Any], scope: Scope) -> None:
    """Check that a dashboard's bounded answers equal the recount."""
    dashboard = answer(warehouse, "dashboard", scope)
    assert dashboard["referrers"] == recounted("referrers", scope)
    assert dashboard["botTraffic"] == recounted("bot-traffic", scope)


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: "-".join(scope.filters.values()) or "whole")
def test_every_bounded_answer_matches_the_recount(warehouse, recounted, scope):
    snapshot = warehouse.snapshot(scope)
    for name in BOUNDED if scope.traffic_type is None else ["bot-traffic"]:
        assert warehouse.answer(ENTRIES[name], snapshot) == recounted(name, scope), name
    if scope == SCOPES[1]:  # the dashboard of a link cuts its visits in memory
        check_dashboard(warehouse, recounted, scope)


def test_visits_are_cut_only_on_days_with_cut_rollups(warehouse, monkeypatch):
    snapshot, entries = warehouse.snapshot(SCOPES[1]), [ENTRIES["referrers"]]
    assert snapshot.high_cardinality_days == (CROWDED, BUSY)
    assert warehouse.with_shared_visits(snapshot, entries).high_cardinality_days == (CROWDED,)
    for name in CUT:
        stored = f"stored_rows('{name}') WHERE for_domain IS NULL"
        found = rows(warehouse, f"SELECT count(*) >= max_values_per_day() FROM {stored} GROUP BY day", snapshot)
        assert sorted(found) == [(False,), (False,), (True,)], name
    monkeypatch.setattr("queries.snapshot.live_rollups", lambda *_: NO_ROLLUPS)
    snapshot = warehouse.snapshot(SCOPES[1])
    assert warehouse.with_shared_visits(snapshot, entries).high_cardinality_days == (CROWDED, BUSY)


@pytest.mark.parametrize(
    ("scope", "with_many_visits", "with_many_words"),
    [
        (Scope("acme", BUSY, BUSY), [BUSY], []),
        (Scope("acme", *DAYS), [CROWDED, BUSY], [CROWDED, BUSY]),
        (Scope("acme", BUSY, BUSY, domain="0001.example"), [BUSY], [BUSY]),  # words of other domains are not read
    ],
    ids=["few", "many", "filtered"],
)
def test_unfiltered_open_days_are_cut_only_with_too_many_words(
    warehouse, recounted, monkeypatch, scope, with_many_visits, with_many_words
):
    monkeypatch.setattr("queries.snapshot.live_rollups", lambda *_: NO_ROLLUPS)
    snapshot = warehouse.snapshot(scope)
    assert [*snapshot.high_cardinality_days] == with_many_visits
    shared = warehouse.with_shared_visits(snapshot, [ENTRIES["dashboard"]])
    assert [*shared.high_cardinality_days] == with_many_words
    check_dashboard(warehouse, recounted, scope)


@pytest.mark.usefixtures("fewer_words")
@pytest.mark.parametrize("columns", CUT.values())
def test_a_day_is_cut_if_one_kind_of_word_exceeds_the_limit(columns):
    each = math.ceil((KEPT + 1) ** (1 / len(columns)))  # values of a column
    words = {name: [f"{one // each**place % each}" for one in range(KEPT + 1)] for place, name in enumerate(columns)}
    others = {name: ["one"] * (KEPT + 1) for kind in CUT.values() for name in kind}
    visits = pa.table(others | words)
    assert has_many_words(visits)
    assert not has_many_words(visits.slice(1))


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("name", CUT)
def test_only_crowded_days_lose_their_rarest_words(warehouse, name):
    columns = CUT[name]
    words = f"SELECT DISTINCT day, {', '.join(columns)} FROM {name}"
    found = rows(warehouse, words, warehouse.snapshot(SCOPES[0]))
    nothing, rest = (None,) * len(columns), (OTHER_WORDS,) * len(columns)
    kept = {day: {tuple(word) for that, *word in found if that == day} - {nothing} for day in (CROWDED, BUSY)}
    assert len(kept[CROWDED] - {rest}) == KEPT - (name == "daily_domains")  # a domain is named (other)
    assert rest in kept[CROWDED]
    assert len(kept[BUSY]) in (150, 300)
    assert rest not in kept[BUSY]


def test_filters_by_words_skip_rollups_of_days_that_may_be_cut(warehouse):
    for word in CUT_WORDS:
        assert warehouse.snapshot(Scope("acme", *DAYS, **{word: "2051"})).closed_days == (QUIET,)
    assert warehouse.snapshot(Scope("acme", *DAYS, country="DE")).closed_days == (CROWDED, QUIET, BUSY)
    closed = {scope.domain: warehouse.snapshot(scope).closed_days for scope in SCOPES[:3]}
    assert closed == {None: (CROWDED, QUIET, BUSY), "1199.example": (QUIET, BUSY)}
    whole = warehouse.snapshot(SCOPES[0])
    days = "SELECT DISTINCT day FROM stored_rows('daily_categories') WHERE for_domain IS NOT NULL ORDER BY day"
    assert rows(warehouse, days, whole) == [(QUIET,), (BUSY,)]


@pytest.mark.parametrize(("name", "number"), [*product(BOUNDED, SIZES)])
def test_after_a_thousand_rows_an_answer_ends_with_the_rest(warehouse, name, number):
    found = answer(warehouse, name, Scope(f"words-{number}", *DAYS))
    texts = [next(iter(row.values())) for row in found]
    rest = texts.count(OTHER_WORDS)
    if number <= MAX_ROWS:
        assert (len(found), rest) == (number, 0)
    else:
        assert (len(found), rest) == ((997, 3) if name == "bot-traffic" else (1_000, 1))
    assert texts[len(texts) - rest :] == [OTHER_WORDS] * rest
    assert sum(row["visits"] for row in found) == number * (2 if name == "domain-breakdown" else 1)


def scans_of(plan: Any, file: str) -> int:
    """Return how many operators in a JSON plan read a file."""
    if isinstance(plan, list):
        return sum(scans_of(part, file) for part in plan)
    inside = sum(scans_of(plan[name], file) for name in ("operator", "children") if name in plan)
    return inside + (file in plan.get("extra_info", {}).get("Filename(s)", ""))


@pytest.mark.parametrize("name", ["top-links", "filter-values"])
def test_top_links_and_filter_values_read_the_links_once(tmp_path, name):
    lake = Lake(tmp_path, create=True)
    land(lake, "acme", [visit(short_code="code7", status=404)])
    links(lake, "acme", [{"short_code": f"code{n}", "target_url": "https://x.example"} for n in range(1_000)])
    with closing(Warehouse(lake)) as warehouse:
        snapshot = warehouse.snapshot(Scope("acme", date(2026, 3, 1), date(2026, 3, 31)))
        ((_, plan),) = rows(warehouse, f"EXPLAIN (ANALYZE, FORMAT json) {template(name)}", snapshot)
    assert scans_of(json.loads(plan), "links/organization=acme/") == 1


def test_limits_in_sql_equal_the_constants_in_python():
    constants = re.findall(r"^CREATE MACRO (max_\w+)\(\) AS (\d+);", "\n".join(prelude()), re.MULTILINE)
    assert constants == [("max_values_per_day", "10000"), ("max_rows", "1000")]
    assert (MAX_VALUES_PER_DAY, MAX_COUNTED, MAX_ROWS) == (10_000, 10_000, 1_000)
