"""Rows compared with the previous period: both numbers equal the answers', and unknown numbers are not 0."""

import re
from datetime import date, datetime

import pytest

from data.links.index import LinkIndex
from data.tasks.compaction import Compactor
from queries import ENTRIES, Scope, template
from service.dashboard.comparison import MAX_ROWS, Comparison, change_in_tenths
from service.dashboard.content import OVERVIEW, PageContent
from service.dashboard.export import COMPARED
from service.dashboard.panels import PATHS, REFERRERS
from service.reports.filters import Filters
from tests.conftest import NOW
from tests.support.page_reading import cells_of, tables
from tests.support.sql import answers
from tests.support.visits import land, visit

WEEK = "range=7d"  # 9 to 15 March; today is the 15th, so that 9 to 14 is compared with 3 to 8
NOW_DAYS, BEFORE_DAYS = (date(2026, 3, 9), date(2026, 3, 14)), (date(2026, 3, 3), date(2026, 3, 8))
AGENT = {"bot_category": "ai_assistant", "ai_source": "ChatGPT", "agent": "ChatGPT-User", "operator": "OpenAI",
         "agent_kind": "assistant_fetch", "confidence": "verified", "detection_method": "ip_range"}  # fmt: skip


def visits_of_two_weeks():
    """Generate visits in two periods, before and now (Sweden 6 and 12, Norway 6 and 0, Denmark 0 and 6, an agent 3 and
    2), and today."""
    for day in range(3, 16):
        countries = ("SE", "SE", "DK") if day >= 9 else ("SE", "NO")
        for second, country in enumerate(countries):
            at = datetime(2026, 3, day, 12, second)
            yield visit(visited_at=at, country=country, path=f"/{country}", short_code=country, domain="go.example",
                        referrer="news.example", referrer_type="other", visitor=second + 1)  # fmt: skip
        if day in {3, 4, 5, 10, 11}:
            at = datetime(2026, 3, day, 13)
            yield visit(visited_at=at, path="/SE", short_code="SE", domain="go.example", **AGENT)


@pytest.fixture(scope="module")
def compared(shared_lake, browsing):
    land(shared_lake, "acme", visits_of_two_weeks())
    Compactor(shared_lake, lambda: NOW).run()
    with browsing(shared_lake) as browser:
        yield browser


def rows_of(page, anchor):
    """Return the cells of a table, row by row."""
    body = page.one("section", id=anchor).one("table", data_entry=True).one("tbody")
    return [[cell.text for cell in cells_of(row)] for row in body.all("tr")]


def test_compared_rows_and_csv_show_both_periods_and_the_change(compared):
    page = compared.read(f"people?{WEEK}&compare=before")
    rows = [["Sweden", "12", "6", "↑ 100 % more", "SE"], ["Denmark", "6", "0", "★ none before", "DK"]]
    assert rows_of(page, "geographic") == rows
    assert "Tables show complete days: 9 Mar – 14 Mar against 3 Mar – 8 Mar." in page.text
    (link,) = page.one("section", id="geographic").all("a", class_="csv")
    rows = compared.csv(link["href"])
    found = [(row["country"], row["human_clicks"], row["before"], row["change"]) for row in rows]
    assert found == [("SE", "12", "6", "100.0"), ("DK", "6", "0", "new")]
    plain = compared.read(f"people?{WEEK}").one("section", id="geographic").one("a", class_="csv")
    assert "before" not in compared.get(plain["href"]).text
    agent = rows_of(compared.read(f"agents?{WEEK}&compare=before"), "bot-traffic")[0]
    assert agent[:4] == ["ChatGPT-User", "2", "3", "↓ 33 % fewer"]


def test_the_chart_compares_each_day_with_the_period_before(compared):
    rows = compared.read(f"?{WEEK}").one("section", id="time-series").one("tbody").all("tr")
    assert [cells_of(row)[-1].text for row in rows] == ["3", "3", "3", "2", "2", "2", "–"]  # today has no such day


def test_an_overview_requests_only_the_answers_that_it_shows(compared, shared_lake):
    filters = Filters.of({"range": "7d"}, "acme", NOW.date(), LinkIndex(shared_lake))
    stored = shared_lake.manifest.statistics.stored_span("acme")
    shown = compared.read(f"?{WEEK}")
    names = {table["data-entry"] for table in shown.all("table", data_entry=True)}
    wanted = [entry.name for entry, _ in PageContent(OVERVIEW, filters, stored).wanted]
    assert set(wanted) - names == {"disguised", "figures-by-day"}
    assert len(wanted) == len(set(wanted))


@pytest.mark.parametrize("path", ["", "ai", "agents", "people", "paths", "domains", "link?short_code=SE", "ai/ChatGPT"])
def test_compared_numbers_equal_the_answer_for_each_period(compared, shared_lake, path):
    page = compared.read(f"{path}{'&' if '?' in path else '?'}{WEEK}&compare=before")
    shown = {name: rows for (name, _), rows in tables(page).items() if rows and "before" in rows[0]}
    assert shown
    named = {"link?short_code=SE": {"short_code": "SE"}, "ai/ChatGPT": {"ai_source": "ChatGPT"}}.get(path, {})
    spans = [answers(shared_lake, Scope("acme", *days, **named), shown) for days in (NOW_DAYS, BEFORE_DAYS)]
    for name, rows in shown.items():
        texts = [one.name for one in ENTRIES[name].fields if one.name in rows[0] and one.kind.sql == "VARCHAR"]
        (figure,) = rows[0].keys() - {*texts, "before", "change"}
        for row in rows:
            counts = [
                sum(one[figure] for one in found[name] if all(str(one[text]) == row[text] for text in texts))
                for found in spans
            ]
            assert [int(row[figure]), int(row["before"])] == counts, (name, row)
        csv_link = page.one("section", id=name).one("a", class_="csv")["href"]
        assert compared.get(csv_link).text.splitlines()[0].endswith(",before,change"), name


def test_the_compare_link_compares_the_rows_of_a_page(compared):
    plain = compared.read(f"people?{WEEK}")
    assert not plain.all("table", class_="rows comparing")
    (link,) = (one for one in plain.all("a") if one.text == "Compare")
    assert compared.read(link["href"]).all("table", class_="rows comparing")


def test_compare_is_not_offered_if_nothing_can_be_compared(lake, acme):
    land(lake, "acme", [one for one in visits_of_two_weeks() if one["visited_at"].day >= 9])
    page = acme.read(f"people?{WEEK}")
    assert [one for one in page.all("a") if one.text == "Compare"] == []
    assert "No comparison: the previous period is incomplete." in page.text


def test_a_comparison_is_kept_by_filters_and_links(compared):
    page = compared.read(f"people?{WEEK}&compare=before")
    assert page.one("form", class_="filters").one("input", name="compare")["value"] == "before"
    assert all("compare=before" in one["href"] for one in page.one("nav", class_="pages").all("a")[:3])


def test_a_page_with_a_comparison_links_to_one_without(compared):
    page = compared.read(f"people?{WEEK}&compare=before")
    (back,) = (one for one in page.all("a") if one.text == "Without comparison")
    assert "compare" not in back["href"]


def test_an_unknown_comparison_is_refused(compared):
    assert compared.get("people?compare=after").status_code == 400


def test_rows_are_not_compared_if_a_day_is_uncovered(lake, acme):
    for days in (range(3, 5), range(7, 16)):
        land(lake, "acme", [one for one in visits_of_two_weeks() if one["visited_at"].day in days])
    Compactor(lake, lambda: NOW).run()
    page = acme.read(f"people?{WEEK}&compare=before")
    assert "Rows are not compared" in page.text
    assert not page.all("table", class_="rows comparing")


def test_the_row_limits_of_comparisons_match_their_sql():
    limits = {name: re.search(r"(?:LIMIT|<=) (\d+)", template(name)) for name in COMPARED}
    assert {name: int(found[1]) for name, found in limits.items() if found} == MAX_ROWS
    now, before = (Scope("acme", date(2026, 3, day), date(2026, 3, day)) for day in (14, 13))
    assert Comparison(now, before).spans == "14 Mar against 13 Mar"  # a day is named once


def test_rows_that_may_have_been_cut_before_are_not_called_new():
    paths = [{"path": f"/{number}", "visits": 5} for number in range(100)]
    (row,) = PATHS.compared([{"path": "/new", "visits": 5}], paths)
    assert (row["before"], row["change"]) == (None, None)
    (row,) = PATHS.compared([{"path": "/new", "visits": 5}], paths[:99])
    assert (row["before"], row["change"]) == (0, float("inf"))
    names = ("a.example", "(other)")
    hosts = [{"referrer": name, "referrer_type": name, "source": name, "visits": 9} for name in names]
    unknown = {"referrer": "b.example", "referrer_type": "other", "source": "other", "visits": 1}
    found = REFERRERS.compared([hosts[0], unknown, hosts[1]], hosts)
    assert [(row["before"], row["change"]) for row in found] == [(9, 0.0), (None, None), (None, None)]


@pytest.mark.parametrize(
    ("now", "before", "tenths"),
    [(0, 5_000, -1_000), (1, 5_000, -999), (2_499, 5_000, -500), (3, 2, 500), (5_001, 5_000, 0), (5_003, 5_000, 1)],
)
def test_a_decrease_is_100_percent_only_if_nothing_is_left(now, before, tenths):
    assert change_in_tenths(now, before) == tenths
