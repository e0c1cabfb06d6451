"""The group switch on every page: the default group, and the parts of a page that are omitted for a group."""

from datetime import datetime, timedelta

import pytest

from queries import Scope
from tests.conftest import NOW
from tests.support.page_reading import as_cells, tables, tile_values
from tests.support.sql import answers
from tests.support.visits import land, visit

KINDS = {"human": 4, "ai_referral": 2, "ai_training": 3, "other_bot": 5}
"""Number of visits by class."""
GROUPS = {"people": ("people", "ai"), "ai": ("ai",), "bots": ("other",), "all": ("people", "ai", "other")}
"""The classes that a chart of a group draws."""
FIRST_BY_PEOPLE = ("people", "times")


@pytest.fixture(scope="module")
def page_of(shared_lake, browsing):
    start = datetime(2026, 3, 10, 6)
    land(shared_lake, "acme", [
        visit(visited_at=start + timedelta(hours=number), bot_category=kind, visitor=number, country="SE")
        for kind, count in KINDS.items() for number in range(count)
    ])  # fmt: skip
    with browsing(shared_lake) as browser:
        yield browser.read


def chosen(page):
    return page.one("nav", aria_label="Visits of").one("a", aria_current="true").text


def answer(lake, name, group):
    scope = Scope("acme", NOW.date() - timedelta(29), NOW.date(), traffic_group=group)
    return answers(lake, scope, [name])[name]


@pytest.mark.parametrize("path", ["", "ai", "agents", "links", "paths", "domains"])
def test_pages_about_all_traffic_show_all_groups_by_default(page_of, path):
    assert chosen(page_of(path)) == "All"


@pytest.mark.parametrize("path", FIRST_BY_PEOPLE)
def test_pages_about_people_show_people_by_default(page_of, path):
    assert chosen(page_of(path)) == "People"


@pytest.mark.parametrize("path", FIRST_BY_PEOPLE)
def test_all_visits_are_shown_if_all_is_chosen(page_of, path):
    assert chosen(page_of(f"{path}?traffic_group=all")) == "All"


@pytest.mark.parametrize(("query", "group"), [("", "people"), ("?traffic_group=all", None)])
def test_hours_are_counted_for_the_shown_group(page_of, shared_lake, query, group):
    rows = tables(page_of(f"times{query}"))["hourly-activity", None]
    assert rows == as_cells(answer(shared_lake, "hourly-activity", group), rows[0])


def test_other_pages_keep_all_groups_selected(page_of):
    links = page_of("times?traffic_group=all").one("nav", aria_label="Pages").all("a")
    assert all("traffic_group=all" in link["href"] for link in links[:8])


def test_other_pages_do_not_keep_the_default_group_of_a_page(page_of):
    links = page_of("times").one("nav", aria_label="Pages").all("a")
    assert not any("traffic_group" in link["href"] for link in links)


def test_the_filter_form_keeps_all_groups_selected(page_of):
    form = page_of("times?traffic_group=all").one("form", class_="filters")
    assert form.one("input", name="traffic_group")["value"] == "all"


def test_a_csv_file_has_the_group_of_its_panel(page_of):
    panel = page_of("times").one("section", id="hourly-activity")
    assert "traffic_group=people" in panel.one("a", class_="csv")["href"]


def test_the_link_to_all_rows_keeps_the_group_of_the_panel(page_of):
    (link,) = page_of("").one("section", id="geographic").all("a", class_="all")
    assert link["href"] == "/app/people?traffic_group=all"


def test_the_api_does_not_accept_all_as_a_group(application, shared_lake, key_of):
    headers = {"Authorization": f"Bearer {key_of(shared_lake)}"}
    assert application.get("/analytics/time-series?traffic_group=all", headers=headers).status_code == 400


@pytest.mark.parametrize("group", GROUPS)
def test_a_legend_names_only_classes_of_the_group(page_of, group):
    panel = page_of(f"?traffic_group={group}").one("section", id="time-series")
    assert tuple(one["class"] for one in panel.one("ul", class_="legend").all("li")) == GROUPS[group]


def test_bars_of_several_classes_have_a_legend(page_of):
    panel = page_of("paths?traffic_group=all").one("section", id="paths")
    assert [one["class"] for one in panel.one("ul", class_="legend").all("li")] == ["people", "ai", "other"]
    assert len(panel.all("th", class_="split")) == 1


def test_a_table_of_one_class_has_no_split_bars_or_legend(page_of):
    panel = page_of("paths?traffic_type=ai").one("section", id="paths")
    assert panel.all("ul", class_="legend") + panel.all("th", class_="split") == []


@pytest.mark.parametrize("group", GROUPS)
def test_a_chart_draws_only_classes_of_the_group(page_of, group):
    chart = page_of(f"?traffic_group={group}").one("section", id="time-series").one("div", class_="chart")
    assert tuple(one["class"] for one in chart.all("path")) == GROUPS[group]


def test_a_table_of_people_has_no_other_visits(page_of):
    rows = tables(page_of("times"))["weekend-vs-weekday", None]
    assert {"human_clicks", "ai_visits"} <= rows[0].keys()
    assert "other_visits" not in rows[0]


def test_people_sent_by_ai_are_labelled_among_people(page_of):
    heads = page_of("times").one("section", id="weekend-vs-weekday").all("th", data_field="ai_visits")
    assert [head.text for head in heads] == ["Sent by AI"]


@pytest.mark.parametrize(
    ("group", "figures"),
    [
        ("people", {"human_clicks": "4", "people_visitors": "4", "ai_referral_requests": "2"}),
        ("ai", {"ai_referral_requests": "2", "agent_fetches": "3"}),
        ("bots", {"other_visits": "5"}),
    ],
)
def test_a_group_shows_only_its_own_figures(page_of, group, figures):
    shown = tile_values(page_of(f"?traffic_group={group}"))
    assert {name: value for name, value in shown.items() if name != "undecided_jobs"} == figures


@pytest.mark.parametrize(
    ("chosen", "words"),
    [("ai", "AI"), ("other", "search engines and other bots"), ("AI-referral", "sent by AI"),
     ("ai_training", "for training")],
)  # fmt: skip
def test_a_chosen_traffic_type_is_shown_in_words(page_of, chosen, words):
    page = page_of(f"agents?traffic_type={chosen}")
    (chip,) = page.all("a", class_="chip")
    assert chip.children[0].strip() == f"Traffic type: {words}"


@pytest.mark.parametrize(("path", "chips"), [("", 0), ("people", 0), ("links", 0), ("paths", 1), ("agents/x", 1)])
def test_a_traffic_type_is_shown_only_where_it_is_applied(page_of, path, chips):
    page = page_of(f"{path}?traffic_type=ai")
    assert len([one for one in page.all("a", class_="chip") if "Traffic type" in one.text]) == chips
    assert bool(page.one("nav", aria_label="Visits of").all("a", aria_current="true")) != bool(chips)


def test_an_alias_of_a_traffic_type_selects_its_tab(page_of):
    tabs = page_of("agents?traffic_type=AI-referral").one("nav", aria_label="Traffic type")
    assert tabs.one("a", aria_current="true").text == "Sent by AI"


@pytest.mark.parametrize(("query", "group"), [("ai", []), ("ai&traffic_group=bots", ["Bots"])])
def test_the_group_all_is_not_selected_with_a_traffic_type(page_of, query, group):
    groups = page_of(f"agents?traffic_type={query}").one("nav", aria_label="Visits of")
    assert [link.text for link in groups.all("a", aria_current="true")] == group
