"""The number of panels on a page, and the words on pages."""

from datetime import datetime

import pytest

from data import BOT_CATEGORIES
from service.core.pages.columns import TableColumn, cell
from tests.support.visits import land, visit


@pytest.fixture
def seen(lake):
    """A lake with one visit."""
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 14))])
    return lake


def test_the_ai_page_has_at_most_six_panels(seen, browsing):
    with browsing(seen) as browser:
        assert 3 < len(browser.read("ai").all("section")) <= 6


def test_the_value_panel_is_shown_if_a_value_is_set(seen, browsing, tmp_path):
    worth = "".join(f"{category} = {int(category == 'human')}\n" for category in BOT_CATEGORIES)
    (tmp_path / "values.toml").write_text(f'currency = "EUR"\n[value_per_visit]\n{worth}')
    shown = []
    for settings in ({}, {"values": tmp_path / "values.toml"}):
        with browsing(seen, **settings) as browser:
            shown.append([one["id"] for one in browser.read("domains").all("section")])
    assert shown == [["domain-breakdown"], ["domain-breakdown", "traffic-value-breakdown"]]


@pytest.mark.parametrize(("path", "status"), [("nothing", 404), ("people?range=5d", 400), ("jobs/nothing", 404)])
def test_an_error_page_links_to_all_pages(seen, browsing, path, status):
    with browsing(seen) as browser:
        page, people = browser.read(path, status), browser.read("people")
    links = [[link["href"] for link in one.one("nav", class_="pages").all("a")] for one in (page, people)]
    assert links[0] == links[1]
    assert page.all("a", aria_current=True) == []


@pytest.mark.parametrize(
    ("path", "parent"),
    [("link?short_code=a", "Links"), ("ai-details", "AI"), ("invented-links", "AI"), ("left-out", "Overview"),
     ("agents/GPTBot", "Agents"), ("operators/OpenAI", "AI")],
)  # fmt: skip
def test_a_page_outside_the_navigation_marks_its_parent(seen, browsing, path, parent):
    with browsing(seen) as browser:
        (link,) = browser.read(path).one("nav", class_="pages").all("a", aria_current=True)
    assert link.text == parent


def test_an_error_page_has_no_navigation_without_a_session(seen, browsing):
    with browsing(seen, organization="") as browser:
        assert browser.read("share/nothing", 404).all("nav") == []


def test_an_error_about_days_uses_the_words_of_the_form(seen, browsing):
    with browsing(seen) as browser:
        page = browser.read("?start_date=2026-03-10&end_date=2026-03-01", 400)
    assert page.one("h1").text == "“From” must not be after “To” or after today."


def test_agents_are_described_in_plain_words(seen, browsing):
    agent = {"bot_category": "ai_assistant", "agent_kind": "assistant_fetch", "agent": "ChatGPT-User"}
    land(seen, "acme", [visit(visited_at=datetime(2026, 3, 13), **agent, confidence=each)
                        for each in ("high", "medium", "low", "contradicted")])  # fmt: skip
    with browsing(seen) as browser:
        table = browser.read("agents").one("section", id="bot-traffic").one("table")
    assert [head.text for head in table.one("thead").all("th")][3:6] == ["Operator", "Purpose", "How sure"]
    words = {cell.text.strip(" ●◐○✗") for cell in table.all("td", class_="badge")}
    assert words >= {"by name", "likely", "maybe", "fake name"}
    assert {data["value"] for data in table.all("data")} >= {"high", "medium", "low", "contradicted"}


def test_a_time_is_shown_as_a_day_with_the_time_in_its_title(seen, browsing):
    with browsing(seen) as browser:
        cell = browser.read("paths").one("td", class_="time").one("data")
    assert (cell.text, cell["title"], cell["value"]) == ("14 Mar 2026", "14 Mar 2026 00:00", "2026-03-14T00:00:00Z")


def test_agents_are_totalled_and_unknown_agents_explained(seen, browsing):
    named = {"bot_category": "ai_training", "agent_kind": "training", "agent": "GPTBot", "operator": "OpenAI"}
    probe = {"bot_category": "other_bot", "agent_kind": "scanner"}
    crawled = [visit(visited_at=datetime(2026, 3, 13), **named, bytes_sent=1_500)] * 2
    land(seen, "acme", crawled)
    with browsing(seen) as browser:
        named_only = browser.read("agents").one("section", id="bot-traffic").text
    land(seen, "acme", [visit(visited_at=datetime(2026, 3, 13), **probe, bytes_sent=400)])
    with browsing(seen) as browser:
        text = browser.read("agents").one("section", id="bot-traffic").text
        notes = browser.read("agents").one("section", id="bot-traffic").one("p", class_="note")
    assert len(notes.all("br")) == 3
    assert "In total: 2 visits, 3.0 kB." in named_only
    assert "Unknown agents give no name" not in named_only
    assert "In total: 3 visits, 3.4 kB." in text
    assert "Unknown agents give no name" in text


def test_only_the_agents_page_explains_how_to_verify_agents(seen, browsing):
    probe = {"bot_category": "other_bot", "agent_kind": "scanner"}
    land(seen, "acme", [visit(visited_at=datetime(2026, 3, 13), **probe)])
    with browsing(seen) as browser:
        told = ["agents refresh" in browser.read(path).text for path in ("agents", "", "agents?f_agent=unknown")]
    assert told == [True, False, True]


@pytest.mark.parametrize(
    ("visitors", "words"),
    [
        ((None,), "1 visit by people has no address"),
        ((None, None, 2), "2 visits by people have no address"),
        ((2,), ""),
    ],
)
def test_visits_without_an_address_are_explained(lake, browsing, visitors, words):
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 14), visitor=visitor) for visitor in visitors])
    with browsing(lake) as browser:
        notes = [one.text for page in ("", "?traffic_group=bots") for one in browser.read(page).all("p", class_="note")]
    assert [words in note for note in notes if "no address" in note] == ([True] if words else [])


def test_the_overview_distinguishes_unknown_agents_by_purpose(seen, browsing):
    land(seen, "acme", [visit(visited_at=datetime(2026, 3, 13), bot_category="other_bot", agent_kind=kind)
                        for kind in ("scanner", "disguised")])  # fmt: skip
    with browsing(seen) as browser:
        rows = browser.read("").one("section", id="bot-traffic").one("tbody").all("tr")
    assert [row.all("td")[2].text for row in rows] == ["in disguise", "scanner"]
    names = [(data.text, data["value"]) for data in (row.one("th").one("data") for row in rows)]
    assert names == [("unknown (in disguise)", "unknown"), ("unknown (scanner)", "unknown")]


@pytest.mark.parametrize("anchor", ["geographic", "devices", "utm-campaigns"])
def test_tables_of_people_say_that_ai_referrals_are_left_out(seen, browsing, anchor):
    land(seen, "acme", [visit(visited_at=datetime(2026, 3, 13), bot_category="ai_referral", country="SE")])
    with browsing(seen) as browser:
        panel = browser.read("people").one("section", id=anchor)
    assert panel.one("p", class_="hint").text == "Visits by people, without people sent by AI."


@pytest.mark.parametrize(("paths", "is_noted"), [(99, False), (100, True)])
def test_a_table_notes_its_limit_only_if_it_may_be_truncated(lake, browsing, paths, is_noted):
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 14), path=f"/{number}") for number in range(paths)])
    with browsing(lake) as browser:
        panel = browser.read("paths").one("section", id="paths")
    assert len(panel.one("tbody").all("tr")) == paths
    assert ("The 100 paths with the most visits." in panel.text) == is_noted


def test_short_headings_of_error_columns_have_tooltips(seen, browsing):
    with browsing(seen) as browser:
        heads = browser.read("paths").one("section", id="paths").all("th", title=True)
    assert [(head.text, head["title"]) for head in heads] == [
        ("4xx", "Missing or refused"), ("5xx", "Server errors")
    ]  # fmt: skip


def test_hours_are_shown_as_ranges(seen, browsing):
    with browsing(seen) as browser:
        hours = browser.read("times").one("section", id="hourly-activity").one("tbody").all("th")
    assert [(hours[number].text, hours[number].one("data")["value"]) for number in (0, 23)] == [
        ("00–01", "0"), ("23–24", "23")
    ]  # fmt: skip


def test_a_figure_has_the_name_of_the_page_that_it_links_to(seen, browsing):
    with browsing(seen) as browser:
        labels = [one.text for one in browser.read("ai").one("ul", class_="tiles").all("span", class_="label")]
        tabs = [link.text for link in browser.read("agents").one("nav", class_="tabs").all("a")]
    assert labels[0] == tabs[1] == "Assistants"


def test_the_chosen_group_is_named_only_once(seen, browsing):
    with browsing(seen) as browser:
        (fold,) = browser.read("people").all("details", class_="fold")
    assert "Group" not in fold.all("summary")[0].text


def test_a_selection_without_visits_has_no_empty_cards(seen, browsing):
    with browsing(seen) as browser:
        main = browser.read("link?short_code=nope").one("main")
    assert "No visits in this selection" in main.text
    assert main.all("section") == []


def test_a_comparison_is_offered_only_where_it_is_possible(seen, browsing):
    with browsing(seen) as browser:
        page = browser.read("")
    assert "No comparison" in page.text
    assert page.all("p", class_="compare") == []


def test_own_hosts_are_shown_as_one_referrer(seen, browsing):
    internal = {"referrer_type": "internal"}
    hosts = [("go.example", internal), ("www.go.example", internal), ("news.example", {"referrer_type": "other"})]
    land(seen, "acme", [visit(visited_at=datetime(2026, 3, 13), visitor=number, referrer=host, **kind)
                        for host, kind in hosts for number in range(2)])  # fmt: skip
    with browsing(seen) as browser:
        rows = browser.read("people").one("section", id="referrers").one("tbody").all("tr")
    shown = [[row.children[0].text, *(data.text for data in row.all("data"))] for row in rows]
    assert [row[:3] for row in shown] == [
        ["(own site)", "4", "57.1 %"], ["news.example", "2", "28.6 %"], ["(direct)", "1", "14.3 %"]
    ]  # fmt: skip
    assert rows[0].all("a") == []


def test_tags_are_wrapped_in_a_span_that_may_be_truncated():
    column = TableColumn("tags", "Tags", "list")
    assert str(cell(column, {"tags": ["autumn campaign 2026", "in Germany"]}, "plain", "")).startswith(
        '<span class="cut">'
    )
