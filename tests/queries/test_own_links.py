"""Links that only their owner opened: the owner's visits show that the short codes are links, but are not counted."""

from contextlib import closing
from datetime import date, datetime, timedelta

import pytest

from data.rules.exclusions import Exclusion
from data.tasks.reclassification import Reclassifier
from queries import RollupBuilder, Scope, Warehouse
from queries.own_sql import OwnSql
from tests.recount import BITS, recount
from tests.support.sql import answer
from tests.support.visits import land, links, visit

FIRST, LAST = date(2026, 3, 2), date(2026, 3, 5)
WHOLE = Scope("acme", FIRST, LAST)
OWNER = "Uptime Kuma"
READERS = (
    "dashboard", "top-links", "domain-breakdown", "operators", "ai-agents", "ai-to-human-conversion", "all-links",
    "filter-values",
)  # fmt: skip
"""The answers that depend on which short codes are links."""
SCOPES = {
    "whole": WHOLE,
    "domain": Scope("acme", FIRST, LAST, domain="go.example"),
    "no domain": Scope("acme", FIRST, LAST, no_domain=True),
    "short code": Scope("acme", FIRST, LAST, short_code="mine"),
    "word": Scope("acme", FIRST, LAST, browser="Firefox"),
    "word and domain": Scope("acme", FIRST, LAST, status="404", domain="go.example"),
    "other days": Scope("acme", FIRST + timedelta(1), LAST),
}


def asked(day, code, status=404, **columns):
    """Return a visit by an assistant, from a different visitor each day."""
    ai = {"bot_category": "ai_assistant", "agent_kind": "assistant_fetch", "agent": "GPTBot", "ai_source": "ChatGPT"}
    at = datetime.combine(day, datetime.min.time()) + timedelta(hours=9)
    return visit(visited_at=at, path=f"/{code}", short_code=code, status=status, visitor=day.day, **ai | columns)


def own(day, code, status=302, **columns):
    """Return a visit by the owner."""
    mine = {"bot_category": "human", "agent": None, "ai_source": None, "browser": "Safari", "user_agent": OWNER}
    return asked(day, code, status, signals=BITS["own_rule"], **mine | columns)


VISITS = [
    own(FIRST, "mine"),  # no other visitor was answered
    *(asked(day, "mine") for day in (FIRST, FIRST + timedelta(1), LAST)),
    own(FIRST, "mine", domain=None),
    asked(LAST, "mine", domain=None),
    own(FIRST, "own", 404),  # no visitor was answered
    asked(FIRST, "own"),
    own(FIRST, "quiet", domain="quiet.example"),  # no other visitor came
    own(LAST, "listed"),
    asked(FIRST, "elsewhere", domain="link.example"),
    own(FIRST, "elsewhere"),  # on another domain
]
LINKS = [{"organization": "acme", "short_code": "listed", "domain": "", "target_url": "https://shop.example/",
          "created_at": datetime(2026, 1, 1)}]  # fmt: skip


def landed(lake, visits=VISITS):
    land(lake, "acme", visits)
    links(lake, "acme", LINKS)


@pytest.fixture(scope="module", params=["live", "counted ahead", "one day open"])
def asker(request, tmp_path_factory, new_lake):
    """The warehouse of a lake without rollups, with rollups, or with rollups for all days but one; tests only read."""
    lake = new_lake(tmp_path_factory.mktemp("asked") / "lake")
    landed(lake, [row for row in VISITS if request.param != "one day open" or row["day"] > FIRST])
    if request.param != "live":
        assert RollupBuilder(lake).run() == 1
    if request.param == "one day open":
        land(lake, "acme", [row for row in VISITS if row["day"] == FIRST])
    with closing(lake.manifest), closing(Warehouse(lake)) as warehouse:
        yield warehouse


def codes(rows):
    return {(row["short_code"], row["domain"]): row["visits"] for row in rows}


def test_404s_count_for_a_link_that_only_its_owner_opened(asker):
    found = codes(answer(asker, "top-links", WHOLE))
    assert found == {("mine", "go.example"): 3, ("mine", "unknown"): 1}


def test_a_link_that_only_its_owner_visited_counts_as_unvisited(asker):
    found = codes(answer(asker, "all-links", WHOLE))
    assert found == {("mine", "go.example"): 3, ("mine", "unknown"): 1, ("listed", "(any)"): 0}


def test_owner_visits_change_neither_visitors_nor_the_last_visit(asker):
    row = answer(asker, "top-links", Scope("acme", FIRST, FIRST))[0]
    assert (row["visits"], row["human_clicks"], row["unique_visitors"]) == (1, 0, 1)
    (row,) = (row for row in answer(asker, "all-links", WHOLE) if row["short_code"] == "listed")
    assert (row["unique_visitors"], row["last_visit"]) == (0, None)


def test_domains_with_only_owner_visits_are_in_no_breakdown(asker):
    rows = answer(asker, "domain-breakdown", WHOLE)
    found = {row["domain"]: (row["visits"], row["short_codes"]) for row in rows}
    assert found == {"go.example": (4, 1), "link.example": (1, 0), "unknown": (1, 1)}


def test_filter_values_exclude_owner_visits(asker):
    values = {row["filter"]: row["values"] for row in answer(asker, "filter-values", WHOLE)}
    assert (values["domain"], values["short_code"]) == (["go.example", "link.example"], ["mine"])
    assert (values["target_url"], values["traffic_type"]) == ([], ["ai_assistant"])


def test_agents_reach_links_that_only_the_owner_opened(asker):
    (row,) = answer(asker, "operators", WHOLE)
    assert row["links_reached"] == 2
    (row,) = answer(asker, "ai-to-human-conversion", WHOLE)
    assert row["links_fetched"] == 2


@pytest.mark.parametrize("name", SCOPES)
def test_every_answer_about_links_matches_the_recount(asker, name):
    rows = [row | {"organization": "acme"} for row in VISITS]
    for entry in READERS:
        assert answer(asker, entry, SCOPES[name]) == recount(entry, rows, SCOPES[name], LINKS), entry


@pytest.mark.parametrize("most", [300_000, 1])
@pytest.mark.parametrize("name", ["whole", "domain", "short code", "word"])
def test_a_dashboard_has_the_same_links_as_its_parts(asker, monkeypatch, name, most):
    monkeypatch.setattr("queries.shared_visits.MAX_SHARED_VISITS", most)
    whole = answer(asker, "dashboard", SCOPES[name])
    assert ("mine", "go.example") in codes(whole["topLinks"])
    assert whole["topLinks"] == answer(asker, "top-links", SCOPES[name])


@pytest.mark.parametrize("name", ["whole", "domain"])
def test_a_month_too_large_for_memory_has_the_same_links(lake, warehouse, monkeypatch, name):
    monkeypatch.setattr("queries.rollups.MAX_VISITS_IN_MEMORY", 0)
    landed(lake)
    RollupBuilder(lake).run()
    assert codes(answer(warehouse, "top-links", SCOPES[name]))["mine", "go.example"] == 3


def test_custom_sql_has_a_row_for_a_link_without_counted_visits(lake):
    landed(lake)
    text = "SELECT visits, last_visit, is_answered FROM daily_links WHERE short_code = 'quiet'"
    with closing(OwnSql(lake, "acme")) as own_sql:
        assert own_sql.sql(text, WHOLE).rows == [(0, None, True)]


@pytest.mark.parametrize("is_counted_ahead", [False, True])
def test_a_link_stays_a_link_when_a_rule_is_added_and_removed(lake, warehouse, is_counted_ahead):
    rule = Exclusion("agent", OWNER)
    landed(lake, [row | {"signals": None} for row in VISITS])
    found = []
    for change in (lambda *_: None, lake.manifest.exclusions.add, lake.manifest.exclusions.remove):
        change("acme", rule)
        Reclassifier(lake).run(["acme"])
        assert not is_counted_ahead or RollupBuilder(lake).run()
        found.append(codes(answer(warehouse, "top-links", WHOLE)).get(("mine", "go.example")))
    assert found == [4, 3, 4]
