"""The pages: their numbers equal the API's, they work without script, and text from strangers stays text."""

import base64
import csv
import hashlib
import io
import itertools
import re
import shlex
from datetime import UTC, datetime, timedelta
from itertools import product
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

import pytest
from mmdb_writer import MMDBWriter

from data import Lake
from data.ingest.importer import Importer, Options
from data.links.index import LinkIndex
from data.signals import BITS
from data.tasks.compaction import Compactor
from queries import CATALOG, ENDPOINTS, ENTRIES, PARAMETERS, Scope
from service.core.pages.assets import STYLESHEET
from service.core.pages.rendering import CONTENT_SECURITY_POLICY
from service.core.program import command_line
from service.dashboard import content
from service.dashboard.navigation import NAMED
from service.dashboard.tables import CellLinks
from service.jobs.store import Jobs
from service.reports.filters import Filters
from tests.conftest import NOW
from tests.faults.trials import IS_LONG
from tests.recount import WORDS, word
from tests.service.jobs.findings import broken, ship
from tests.support.control import open_store
from tests.support.page_reading import Browser, as_cells, as_shown, cells_of, link_of, read, tables, tile_values
from tests.support.sql import answers
from tests.support.tables import examples
from tests.support.tables import tables as tables_of
from tests.support.visits import land, links, visit

LOADING = {"script", "link", "use", "img", "iframe", "source", "image", "object", "embed"}
"""The elements that make a browser load something."""
PAGES = [page.path for page in NAMED]
SETTINGS = [
    "jobs", "settings/api-keys", "settings/sessions", "settings/shares", "settings/agent-hooks", "settings/cache",
    "settings/storage", "robots", "invented-links", "left-out", "ai-details",
]  # fmt: skip
SCOPES = [
    "?range=7d",
    "",
    "?range=90d&domain=go.example",
    "?start_date=2026-02-01&end_date=2026-03-10",
    "?short_code=launch&domain=go.example",
]
SHOWN = [
    (path, scope)
    for (row, path), (column, scope) in product(enumerate(PAGES), enumerate(SCOPES))
    if IS_LONG or row % len(SCOPES) == column
]
"""Each page in one scope, and each scope on at least one page; with `TRAFFIC_FAULTS=all` every page in every scope."""
SHOWN += [
    ("link", "?range=7d&short_code=launch&domain=go.example"),
    ("link", "?start_date=2026-02-01&end_date=2026-03-10&short_code=docs"),
    ("link", "?target_url=https://example.com/launch"),
    *(("agents", f"?traffic_type={kind}") for kind in ("ai", "other", "ai_assistant", "AI-referral")),
]
HOSTILE = [text.replace("LONG", 8_000 * "x") for text in tables_of(__file__)["hostile"]]


def drawn():
    """Generate visits of seven kinds over 95 days, to three short codes on two domains and without a short code."""
    kinds = [
        {"bot_category": "human", "referrer": "news.example", "referrer_type": "other", "country": "SE", "visitor": 1},
        {"bot_category": "human", "utm_source": "mail", "utm_medium": "email", "utm_campaign": "spring", "visitor": 2},
        {"bot_category": "ai_assistant", "ai_source": "ChatGPT", "agent": "ChatGPT-User", "operator": "OpenAI",
         "agent_kind": "assistant_fetch", "confidence": "verified", "detection_method": "ip_range"},
        {"bot_category": "ai_training", "ai_source": "Claude", "agent": "ClaudeBot", "operator": "Anthropic",
         "agent_kind": "training", "confidence": "high", "detection_method": "user_agent"},
        {"bot_category": "ai_coding_agent", "ai_source": "Claude Code", "agent": "Claude-Code", "operator": "Anthropic",
         "agent_kind": "coding_agent", "confidence": "medium", "detection_method": "user_agent"},
        {"bot_category": "ai_referral", "ai_source": "ChatGPT", "agent_kind": "referral", "referrer": "chatgpt.com",
         "referrer_type": "ai", "confidence": "high", "detection_method": "referrer", "visitor": 3},
        {"bot_category": "other_bot", "agent": "Spider", "operator": "Nobody", "agent_kind": "other", "status": 404,
         "confidence": "contradicted", "detection_method": "ip_range"},
    ]  # fmt: skip
    codes = ["launch", "docs", "spring", None]
    start = datetime(2025, 12, 10, 6)
    for number in range(600):
        kind = kinds[number * number % 7 if number % 3 else number % 7]
        code = codes[number % 4]
        device = {} if kind["bot_category"] in {"human", "ai_referral"} else {
            "device_type": "bot", "operating_system": None, "browser": None
        }  # fmt: skip
        yield visit(
            visited_at=start + timedelta(hours=number * 3.8),
            domain=("go.example", "to.example")[number % 5 == 0],
            short_code=code,
            path=f"/{code or 'index.html'}",
            **kind | device,
        )


@pytest.fixture(scope="module")
def shared_lake(shared_lake):
    land(shared_lake, "acme", drawn())
    links(shared_lake, "acme", [{"short_code": "launch", "target_url": "https://example.com/launch"},
                                {"short_code": "docs", "target_url": "javascript:alert(1)"}])  # fmt: skip
    return shared_lake


@pytest.fixture(scope="module")
def api(shared_lake, application, key_of, internal):
    """Query the application's API as acme, or the lake for answers without a route."""
    headers = {"Authorization": f"Bearer {key_of(shared_lake)}"}

    def ask(path):
        name, _, query = path.partition("?")
        if name in ENTRIES.keys() - ENDPOINTS.keys():
            return internal(name, {"": 30, "range=7d": 7}[query])
        return application.get(f"/analytics/{path}", headers=headers).json()

    return ask


@pytest.fixture(scope="module")
def internal(shared_lake):
    """Query an answer without a route, for a number of days up to today."""

    def internal(name, days=30, **filters):
        scope = Scope("acme", NOW.date() - timedelta(days - 1), NOW.date(), **filters)
        return answers(shared_lake, scope, [name])[name]

    return internal


@pytest.fixture(scope="module")
def responses(application, shared_lake):
    """The responses to an editor for every page, requested once."""
    application.cookies.clear()
    browser = Browser(application)
    browser.enter(link_of(shared_lake))
    return {path: browser.get(path) for path in (*PAGES, *SETTINGS)}


# Page = API


@pytest.mark.parametrize(("path", "scope"), SHOWN)
def test_the_numbers_of_a_page_match_the_api(browser, api, path, scope):
    group = {page.path: page.group for page in NAMED}.get(path)
    asked = f"{scope}{'&' if scope else '?'}traffic_group={group}" if group else scope
    compare(browser.read(f"{path}{scope}"), api, asked)


def compare(page, api, scope):
    shown = tables(page)
    assert shown
    for (name, part), rows in shown.items():
        if name not in ENDPOINTS:
            continue  # without a route; other tests compare it with the answer from the lake
        answer = api(f"{name}{scope}")
        if name == "domain-breakdown":
            of_people = api(f"{name}{scope}{'&' if scope else '?'}traffic_group=people")
            visitors = {row["domain"]: row["unique_visitors"] for row in of_people}
            answer = [row | {"people_visitors": visitors.get(row["domain"], 0)} for row in answer]
        answer = as_shown(answer[part] if part else answer, rows)
        assert rows == as_cells(answer[: len(rows)], rows[0]), name
        assert len(rows) == len(answer) or len(rows) in {10, 50, 100}
    if page.all("ul", data_entry="figures"):
        overview, shown = api(f"traffic-overview{scope}"), tile_values(page)
        figures = overview | {"agent_fetches": overview["ai_visits"] - overview["ai_referral_requests"]}
        shown = {name: value for name, value in shown.items() if name not in {"people_visitors", "undecided_jobs"}}
        assert shown == {name: str(figures[name]) for name in shown}
        assert sum(map(int, shown.values())) in {overview["total_visits"], overview["ai_visits"]}  # on the page AI


def test_every_endpoint_has_a_page(responses):
    shown = {name for response in responses.values() for name, _ in tables(read(response.text))}
    assert {entry.name for entry in CATALOG} - shown == {
        "dashboard", "traffic-overview",  # both are the overview
        "filter-values",  # suggested in the fields of filters
        "traffic-value-breakdown",  # shown only if a value is set
    }  # fmt: skip


NAMED_PAGES = [
    ("ai/ChatGPT", {"ai_source": "ChatGPT"}),
    ("ai/Claude%20Code", {"ai_source": "Claude Code"}),
    ("operators/Anthropic", {"operator": "Anthropic"}),
    ("agents/ClaudeBot", {"agent": "ClaudeBot"}),
    ("agents/Spider", {"agent": "Spider"}),
]


@pytest.mark.parametrize(("path", "filters"), NAMED_PAGES)
def test_the_page_of_a_name_shows_only_its_visits(browser, internal, path, filters):
    shown = tables(browser.read(path))
    names = {"bot-traffic", "paths", "source-links" if "ai_source" in filters else "top-links"}
    assert {name for name, _ in shown} == names | ({"ai-to-human-conversion"} if path != "agents/Spider" else set())
    for (name, _), rows in shown.items():
        assert rows == as_cells(internal(name, **filters), rows[0]) != []


@pytest.mark.parametrize(
    ("path", "others"),
    [
        ("ai/ChatGPT", {"operators/OpenAI", "agents/ChatGPT-User"}),
        ("operators/Anthropic", {"ai/Claude", "ai/Claude%20Code", "agents/ClaudeBot", "agents/Claude-Code"}),
        ("agents/ClaudeBot", {"ai/Claude", "operators/Anthropic"}),
        ("agents/Claude-Code", {"ai/Claude%20Code", "operators/Anthropic"}),
        ("ai", {"ai/ChatGPT", "operators/Anthropic"}),
        ("agents", {"operators/Anthropic", "agents/ClaudeBot"}),
    ],
)
def test_platform_operator_and_agent_link_to_each_other(browser, path, others):
    links = {link["href"] for table in browser.read(path).all("tbody") for link in table.all("a")}
    found = {link.removeprefix("/app/") for link in links}
    named = {link for link in found if link.startswith(("ai/", "operators/", "agents/")) and "?" not in link}
    assert (named if "/" in path else named & others) == others


@pytest.mark.parametrize(("path", "noun"), [("ai", "platform"), ("operators", "operator"), ("agents", "agent")])
def test_the_page_of_an_unseen_name_has_a_note(browser, path, noun):
    unknown = browser.read(f"{path}/%3Cb%3ENobody")
    assert unknown.all("section") == []
    assert f"No visits by this {noun} in this period." in unknown.text
    assert browser.get(f"{path}/").status_code == 404


def test_a_panel_without_a_route_names_only_its_command(shared_lake, browser):
    panel = browser.read("ai/ChatGPT").one("section", id="source-links")
    assert [code.text for code in panel.all("code")] == [
        command_line(shared_lake.root, "query", "source-links", "--org", "acme", "--ai-source", "ChatGPT")
    ]


def test_a_panel_without_a_route_has_a_csv_file(browser, internal):
    assert browser.csv("export/source-links.csv") == as_cells(internal("source-links"))


def test_a_panel_without_a_route_has_a_page_with_its_sql(browser):
    page = browser.read("run/source-links")
    assert "FROM daily_link_sources" in page.one("pre").text
    assert "curl" not in page.text


@pytest.mark.parametrize(
    ("name", "title", "back"),
    [
        ("paths", "Paths", ("Back to Paths", "/app/paths?range=7d#paths")),
        ("source-links", "Source links", ("Back to Overview", "/app/?range=7d")),
    ],
)
def test_the_page_with_sql_has_a_title_and_a_way_back(browser, name, title, back):
    page = browser.read(f"run/{name}?range=7d")
    (link,) = (one for one in page.all("a") if one.text.startswith("Back to "))
    assert (page.one("h1").text, (link.text, link["href"])) == (title, back)
    assert [one.text for one in page.one("main").all("h2")] == ["The same rows elsewhere", "SQL"]


def test_the_totals_of_the_cache_are_above_its_folded_table(browser):
    browser.read("")
    page = browser.read("settings/cache")
    facts = {one["data-field"]: int(one["value"]) for one in page.all("data", data_field=True)}
    rows = tables(page)["cache-stats", None]
    assert facts == {name: sum(int(row[name]) for row in rows) for name in ("entries", "hits", "misses", "evictions")}
    assert "ttl_seconds" not in rows[0]
    assert page.one("details", class_="data-table").all("table")


@pytest.fixture
def crawler(browser):
    """Return the first crawler on the page about robots: its name, its fetches, and the people that it may have
    sent."""
    page = browser.read("robots")
    row = page.all("tr")[1]
    people = page.all("data", data_field="ai_referrals")[0]["value"]  # the operators come in the same order
    return row.one("input")["value"], row.one("data")["value"], people


def test_the_page_about_ai_links_to_the_page_about_robots(browser):
    assert browser.read("ai").all("a", href="/app/robots")


def test_the_cost_of_blocking_a_crawler_is_shown(browser, crawler):
    chosen, fetches, people = crawler
    page = browser.read(f"robots?block={quote(chosen)}")
    assert [page.one("data", data_field=name)["value"] for name in ("saved", "at_risk")] == [fetches, people]


def test_the_lines_that_block_a_crawler_are_shown(browser, crawler):
    assert "User-agent: " in browser.read(f"robots?block={quote(crawler[0])}").text


def test_people_sent_by_ai_are_counted_once_per_operator(browser):
    page = browser.read("robots")
    rows = page.one("main").one("tbody").all("tr")
    operators = {row.one("span", class_="sub").text for row in rows}
    assert len(page.all("data", data_field="ai_referrals")) == len(operators) < len(rows)


def test_an_agent_to_block_is_named_with_its_operator(browser):
    heads = [row.one("th") for row in browser.read("robots").one("main").one("tbody").all("tr")]
    shown = {(one.one("label").text.strip(), one.one("span", class_="sub").text) for one in heads}
    known = browser.csv("export/ai-agents.csv?range=90d")
    assert shown <= {(one["agent"], one["operator"]) for one in known}  # each for one purpose
    assert [one.one("input")["value"].rpartition(":")[0] for one in heads] == [
        one.one("span", class_="sub").text for one in heads
    ]


def test_each_file_that_blocks_agents_can_be_copied(browser, crawler):
    section = browser.read(f"robots?block={quote(crawler[0])}").one("section", aria_labelledby="cost")
    assert [one.text for one in section.all("h3")] == ["robots.txt", "nginx", "Caddy"]
    assert len(section.all("button", data_copy=True)) == 3


def test_a_note_names_a_crawler_that_was_not_seen(browser):
    assert "'Nobody' was not seen on these days" in browser.read("robots?block=Nobody").text


def test_blocking_a_crawler_creates_a_job_with_its_file(browser, crawler):
    made = browser.read(browser.post(f"robots?block={quote(crawler[0])}", **{"as": "caddy"}).headers["location"])
    assert "Keep AI crawlers out" in made.text
    assert "respond @blocked_agents 403" in made.text


def test_a_robots_job_without_a_chosen_crawler_is_rejected(browser):
    assert "choose crawlers and a file first" in browser.post("robots", **{"as": "caddy"}).text


def test_a_robots_job_with_an_unknown_file_is_rejected(browser, crawler):
    assert browser.post(f"robots?block={quote(crawler[0])}", **{"as": "x"}).status_code == 400


# Groups, paths and agents


def test_every_page_keeps_its_filters_when_a_group_is_chosen(browser):
    for path in ("", "ai", "agents", "people", "times", "links", "paths", "domains", "left-out"):
        choices = browser.read(f"{path}?range=7d&f_path=/a").one("nav", aria_label="Visits of").all("a")
        assert [link.text for link in choices] == ["People", "AI", "Bots", "All"]
        page = browser.read(choices[0]["href"])
        assert page.one("nav", aria_label="Visits of").one("a", aria_current="true").text == "People"
        assert "range=7d&f_path=%2Fa&traffic_group=people" in choices[0]["href"]
        assert "The filters People and AI both include people sent by AI." in page.text


def test_paths_and_statuses_are_filtered_by_group(browser, internal):
    tabs = browser.read("paths").one("nav", aria_label="Visits of").all("a")
    kinds = {"People": "people", "AI": "ai", "Bots": "bots", "All": None}
    assert [tab.text for tab in tabs] == [*kinds]
    page = browser.read("paths?range=7d")
    for name in ("paths", "statuses"):
        for tab, kind in zip(tabs, kinds.values(), strict=True):
            answer, chosen = internal(name, traffic_group=kind), browser.read(tab["href"])
            assert chosen.one("nav", aria_label="Visits of").one("a", aria_current="true").text == tab.text
            rows = tables(chosen)[name, None]
            assert answer
            assert rows == as_cells(answer, rows[0])
        link = page.one("section", id=name).one("tbody").all("a")[0]
        (row,) = tables(browser.read(link["href"]))[name, None]
        assert next(iter(row.values())) == link.text


def test_the_page_of_an_agent_has_its_paths_and_links(lake, acme):
    at, agents = datetime(2026, 3, 14, 10), ["GPTBot/1.0 (x)", "ClaudeBot"]
    its = {"bot_category": "ai_training", "agent_kind": "training", "device_type": "bot"}
    asked = {"/launch": 3, "/docs": 2, "/nothing": 1}
    land(lake, "acme", [
        *(visit(visited_at=at, path=path, short_code=path[1:] if count > 1 else None, status=404 if count == 1 else 302,
                agent=agent, **its) for agent in agents for path, count in asked.items() for _ in range(count)),
        visit(visited_at=at, path="/launch", short_code="launch"),
    ])  # fmt: skip
    assert "No visits by this agent" in acme.read("agents/Nobody").text
    links = acme.read("agents").one("section", id="bot-traffic").all("a")
    for agent in agents:
        (link,) = [link for link in links if link.text == agent]
        page = acme.read(link["href"])
        csv_link = page.one("section", id="paths").one("a", class_="csv")["href"]
        shown = tables(page)
        for listed in (shown["paths", None], acme.csv(csv_link)):
            assert {row["path"]: int(row["visits"]) for row in listed} == asked
        top = [(row["short_code"], row["visits"]) for row in shown["top-links", None]]
        assert top == [("launch", "3"), ("docs", "2")]
        heads = [head["data-field"] for head in page.one("section", id="top-links").all("th", data_field=True)]
        assert heads[:4] == ["short_code", "visits", "percentage", "domain"]  # phones show the first columns only
        (row,) = shown["bot-traffic", None]
        assert (row["agent"], row["visits"], row["errors_4xx"]) == (agent, "6", "1")
        assert f"traffic query paths --org acme --agent {shlex.quote(agent)}" in page.text


def test_a_list_of_paths_over_too_many_visits_is_refused(browser, monkeypatch):
    monkeypatch.setattr(content, "MAX_PATH_VISITS", 100)
    for path in ("paths?range=90d", "agents/GPTBot?range=90d", "export/paths.csv?range=90d"):
        told = browser.get(path)
        assert told.status_code == 400
        assert "paths are listed for at most 100 visits" in told.text
        assert "Choose fewer days or one link." in told.text
    browser.read("paths?range=90d&short_code=launch")


# People are not requests


def test_unknown_visitors_make_the_visitor_count_a_minimum(lake, browsing):
    at = datetime(2026, 3, 14, 10)
    told = {"all": ([1, 1, 2], "2"), "some": ([1, 1, None], "at least 1"), "no": ([None] * 3, "–"), "none": ([], "0")}
    for organization, (visitors, _) in told.items():
        kinds = zip(visitors, ("human", "human", "ai_referral"), strict=False)
        people = [visit(visited_at=at, visitor=visitor, bot_category=kind) for visitor, kind in kinds]
        bot = visit(visited_at=at, bot_category="other_bot", visitor=7, device_type="bot")
        land(lake, organization, [*people, bot])
    with browsing(lake, "") as browser:
        for organization, (_, text) in told.items():
            browser.enter(link_of(lake, organization))
            tiles = browser.read("").one("ul", data_entry="figures")
            assert tiles.one("data", data_field="people_visitors").text == text


def test_the_people_page_ranks_rows_by_human_visits(lake, acme):
    at = datetime(2026, 3, 14, 10)
    people = {"SE": 3, "DE": 2, "BR": 1}
    visits = [visit(visited_at=at, country=code) for code, count in people.items() for _ in range(count)]
    agent = {"bot_category": "other_bot", "device_type": "bot", "operating_system": None, "browser": None}
    land(lake, "acme", [*visits, *(visit(visited_at=at, country="US", **agent) for _ in range(50))])
    for path in ("people", ""):
        shown = tables(acme.read(path))
        rows = [(row["country"], row["human_clicks"], row["share_of_people"]) for row in shown["geographic", None]]
        assert rows == [("SE", "3", "50.0"), ("DE", "2", "33.33"), ("BR", "1", "16.67")]
        assert [row["device_type"] for row in shown["devices", None]] == ["desktop"]


READ = {"visited_at": datetime(2026, 3, 14, 10), "bot_category": "ai_training", "agent": "GPTBot", "operator": "OpenAI"}


def operators_row(page):
    (row,) = tables(page)["operators", None]
    return row


def test_the_operators_table_counts_visits_by_proof_of_identity(lake, acme):
    ways = ((0, "verified"), (BITS["signed"], "verified"), (BITS["signed"], "high"), (0, "high"), (0, "low"))
    land(lake, "acme", [visit(**READ, signals=signals, confidence=confidence) for signals, confidence in ways])
    assert operators_row(acme.read("ai"))["proof"] == "2 verified, 1 signed, 2 claimed"


@pytest.mark.parametrize(("days", "told"), [("2026-03-14", "0.5"), ("2026-03-13", "")])
def test_people_per_answer_are_shown_only_for_covered_periods(lake, acme, tmp_path, days, told):
    kinds = [("ai_assistant", "assistant_fetch")] * 2 + [("ai_referral", "referral")]
    agents = {"agent": "ChatGPT-User", "operator": "OpenAI", "ai_source": "ChatGPT"}
    land(lake, "acme", [visit(**READ | agents | {"bot_category": kind, "agent_kind": of}) for kind, of in kinds])
    hours = [
        f'192.0.2.7 - - [14/Mar/2026:{hour:02}:30:00 +0000] "GET / HTTP/1.1" 200 9 "-" "curl/8"' for hour in range(24)
    ]
    (tmp_path / "log").write_text("\n".join(hours) + "\n")
    Importer(lake).run(tmp_path / "log", Options("acme"))
    row = operators_row(acme.read(f"ai?start_date={days}&end_date=2026-03-14"))
    assert row["visits_per_answer"] == told


def test_agents_that_read_markdown_are_on_the_ai_page(lake, acme):
    land(lake, "acme", [visit(**READ, path=path, status=200) for path in ("/a.md", "/b.md", "/llms.txt")])
    (row,) = tables(acme.read("ai"))["ai-texts", None]
    assert (row["agent"], row["markdown"], row["llms_txt"]) == ("GPTBot", "2", "1")


def test_without_markdown_readers_the_ai_page_omits_their_panel(lake, acme):
    land(lake, "acme", [visit(**READ, path="/a"), visit(visited_at=READ["visited_at"], path="/a.md")])
    assert ("operators", None) in tables(page := acme.read("ai"))
    assert page.all("section", id="ai-texts") == []


@pytest.mark.parametrize(
    ("scope", "whole", "weeks"),  # today is Sunday, 15 March, and not over
    [
        ("?range=30d", ["2026-02-16", "2026-02-23", "2026-03-02"], 5),
        ("?start_date=2026-02-02&end_date=2026-02-15", ["2026-02-02", "2026-02-09"], 2),
        ("?range=7d", [], 1),
    ],
)
def test_only_complete_weeks_are_drawn_as_complete(browser, api, scope, whole, weeks):
    page, trend = browser.read(f"ai{scope}"), api(f"weekly-trend{scope}")
    chart = browser.read(f"ai-details{scope}").one("section", id="weekly").one("div", class_="chart")
    assert len(trend["weekly"]) == weeks
    assert len([one for one in chart.all("rect") if one.attributes.get("class") == "partial"]) == weeks - len(whole)
    shown = [one.text for one in page.one("section", id="byPlatform").all("span") if one["class"] == "last"]
    if not whole:
        assert shown == []
        assert "No complete week in this period." in page.one("section", id="byPlatform").text
        return
    platforms = {row["ai_source"] for row in trend["byPlatform"]}
    last = {row["ai_source"]: row["visits"] for row in trend["byPlatform"] if row["week"] == whole[-1]}
    assert sorted(shown) == sorted(f"{last.get(name, 0):,}" for name in platforms)


def test_weekday_columns_are_proportional_to_their_averages(browser, api):
    scope = "?start_date=2026-03-02&end_date=2026-03-09"  # two Mondays
    chart = browser.read(f"times{scope}").one("section", id="daily-activity").one("div", class_="chart")
    (path,) = [one["d"] for one in chart.all("path") if one["class"] == "people"]
    heights = [float(height) for height in re.findall(r"v([\d.]+)z", path)]
    averages = [row["avg_visits"] for row in api(f"daily-activity{scope}&traffic_group=people")]
    assert heights == pytest.approx([average * heights[0] / averages[0] for average in averages], abs=0.01)


@pytest.mark.parametrize(("last", "is_told"), [("2026-03-14", False), ("2026-03-15", True)])
def test_averages_that_include_today_have_a_note(browser, last, is_told):
    text = browser.read(f"times?start_date=2026-03-09&end_date={last}").one("section", id="daily-activity").text
    assert ("today, which is not over yet." in text) == is_told


def test_days_without_data_are_hatched_and_not_compared(lake, browsing):
    for days in (range(2), range(2, 5), range(8, 14)):  # of March, and nothing from the 6th to the 8th
        land(lake, "acme", [visit(visited_at=datetime(2026, 3, day + 1, hour)) for day in days for hour in (0, 12, 23)])
    land(lake, "silent", [visit(visited_at=datetime(2026, 3, 1))])
    Compactor(lake, lambda: NOW).run()
    with browsing(lake) as browser:
        page, times, weeks = (
            browser.read(f"{path}?start_date=2026-03-02&end_date=2026-03-15") for path in ("", "times", "ai-details")
        )
        recent = browser.read("?start_date=2026-03-13&end_date=2026-03-14")
        browser.enter(link_of(lake, "silent"))
        silent = browser.read("?start_date=2026-03-13&end_date=2026-03-15").text
    chart = page.one("section", id="time-series")
    assert [one["x"] for one in chart.all("rect", class_="missing")] == ["28.57%", "35.71%", "42.86%", "92.86%"]
    marked = [row.text for row in chart.one("tbody").all("tr") if "no data" in row.text]
    assert [text.split(" no")[0] for text in marked] == ["6 Mar 2026", "7 Mar 2026", "8 Mar 2026", "15 Mar 2026"]
    assert "Hatched from top to bottom: no data." in chart.text
    assert "the day is not over" not in chart.text  # today has no column
    assert "Data is missing on 3 of 14 days. No data for today yet." in page.text
    assert "Newest visit: 14 Mar 2026 23:00 UTC." in page.text
    (gap,) = page.one("ol", class_="marks").all("a")
    assert gap.text == "6 Mar – 8 Mar 2026: data is missing on 3 days"
    assert gap["href"] == "/app/?start_date=2026-03-06&end_date=2026-03-08"
    assert "No comparison" in page.text
    averages = "Averages include 3 days on which data is missing and today, which is not over yet."
    assert averages in times.one("section", id="daily-activity").text
    assert len(weeks.one("section", id="weekly").all("rect", class_="partial")) == 2  # this week is not over
    assert "Data is missing" not in recent.text
    assert "Data is missing on 2 of 3 days. No data for today yet." in silent
    assert "Changes cover complete days: 13 Mar – 14 Mar against 11 Mar – 12 Mar." in recent.text


def test_a_robots_page_without_agents_names_the_newest_visit(lake, browsing):
    land(lake, "acme", [visit(visited_at=datetime(2025, 5, 14))])
    with browsing(lake) as browser:
        text = browser.read("robots").text
    assert "No AI agent was seen from 15 Feb – 14 Mar 2026" in text
    assert "The newest visit is from 14 May 2025." in text


def test_a_day_with_visits_is_not_reported_as_missing(lake, browsing):
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, day, hour)) for day, hour in ((1, 23), (2, 0), (2, 23))])
    Compactor(lake, lambda: NOW).run()
    with browsing(lake) as browser:
        page = browser.read("?start_date=2026-03-01&end_date=2026-03-02")
    assert "Data is missing on 1 of 2 days." in page.text
    (gap,) = page.one("ol", class_="marks").all("a")
    assert gap.text == "1 Mar 2026: data is missing"
    assert "Hatched: data is missing." in page.one("section", id="visits-by-hour").text


def test_the_main_chart_marks_days_with_events(lake, browsing):
    agent = {"bot_category": "ai_training", "agent_kind": "training", "device_type": "bot", "operator": "Maker"}
    land(lake, "acme", [visit(visited_at=datetime(2026, 2, day, hour)) for day in range(1, 29) for hour in (0, 12, 23)])
    with open_store(Jobs, lake) as jobs:
        jobs.upsert(broken("/gone"), NOW)
        (job,) = jobs.of("acme")
        ship(jobs, job.id, datetime(2026, 2, 10, tzinfo=UTC))
        for day, rules in ((5, "old"), (6, "old"), (7, "new"), (8, "new")):
            run = ["acme", f"2026-02-{day:02}", rules, NOW.isoformat()]
            jobs.database.rows("INSERT INTO detection_runs VALUES (?, ?, ?, 0, 1, ?)", run)

    def shown(path, agents):
        first = [{"visited_at": datetime(2026, 2, 12, 1, number), "agent": f"New{number}"} for number in range(agents)]
        first.append({"visited_at": datetime(2026, 2, 13), "agent": "Unlisted", "operator": None})
        first.append({"visited_at": datetime(2026, 2, 20), "agent": "Old", "confidence": "low"})  # a separate row
        first.append({"visited_at": datetime(2026, 2, 3), "agent": "Old"})
        land(lake, "acme", [visit(**agent | one) for one in first])
        with browsing(lake) as browser:
            page = browser.read(path)
            for link in page.one("ol", class_="marks").all("a")[:3]:
                assert browser.get(link["href"]).status_code == 200
            assert "rules" in [one["id"] for one in browser.read("settings/storage").all("h2", id=True)]
        items = [item for item in page.one("ol", class_="marks").children if getattr(item, "tag", "") == "li"]
        numbers = page.one("section", id="time-series").all("text", class_="event")
        labels = ["".join(one.children) for one in numbers]
        assert labels[0][0] == "1"
        assert labels[-1].endswith(str(len(items)))
        return [(link.text, link["href"]) for item in items for link in item.all("a")], items[-1]

    query = "?start_date=2026-02-01&end_date=2026-02-28"
    marks, _ = shown(query, 1)
    assert marks == [
        ("7 Feb 2026: new rules for telling people from bots", "/app/settings/storage#rules"),
        (f"10 Feb 2026, fix shipped: {job.title}", f"/app/jobs/{job.id}"),
        ("12 Feb 2026: first visit by New0 in this period", f"/app/agents{query}&f_agent=New0"),
    ]
    marks, last = shown(query, 13)
    assert (len(marks), last.one("summary").text, len(last.all("a"))) == (15, "12 Feb 2026: 13 events", 13)
    domains = ("go.example.com", "other.example")
    land(lake, "acme", [visit(visited_at=datetime(2026, 2, 9), domain=domain) for domain in domains])
    with browsing(lake) as browser:
        pages = [browser.read(f"{query}&domain={domain}") for domain in domains]
    assert [page.text.count(job.title) for page in pages] == [1, 0]  # what was shipped elsewhere is not marked


def test_only_the_first_five_days_with_events_are_marked(lake, browsing):
    for first in range(1, 29, 4):  # three days with visits, and the fourth without
        hours = [datetime(2026, 2, first + day, hour) for day in range(3) for hour in (0, 12, 23)]
        land(lake, "acme", [visit(visited_at=hour) for hour in hours])
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 1))])
    with browsing(lake) as browser:
        page = browser.read("?start_date=2026-02-01&end_date=2026-02-28")
    listed, folded = page.one("ol", class_="marks"), page.one("details", class_="more-marks")
    assert [[link.text for link in part.all("a")] for part in (listed, folded)] == [
        [f"{day} Feb 2026: data is missing" for day in days] for days in ((4, 8, 12, 16, 20), (24, 28))
    ]
    assert folded.one("summary").text == "2 more events"
    numbers = page.one("section", id="time-series").all("text", class_="event")
    assert ["".join(one.children) for one in numbers] == list("12345")


def test_a_page_about_a_file_notes_that_files_are_set_aside(lake, browsing):
    land(lake, "acme", [visit(visited_at=NOW.replace(tzinfo=None), path="/a.css", signals=BITS["file"])])
    lake.manifest.exclusions.switch_files("acme", aside=True)
    with browsing(lake) as browser:
        of_file, of_page = (browser.read(f"?range=7d&f_path={path}").text for path in ("/a.css", "/sale"))
    command = command_line(lake.root, "files", "counted", "--org", "acme")
    said = f"/a.css is the path of a file, and acme sets files aside: {command} counts them."
    assert (said in of_file, "sets files aside" in of_page) == (True, False)


def test_changes_compare_complete_days_that_are_judged(lake, browsing):
    def shown():
        with browsing(lake) as browser:
            page = browser.read("?range=7d")  # 9 to 15 March; today is the 15th
        texts = [one.text for one in page.all("p", class_="note") if "past day" in one.text]
        return [span.text for span in page.all("span", class_="change")][:2], texts

    changes = ["↑ 50 % more 9 Mar – 14 Mar against 3 Mar – 8 Mar"]
    days = ((day, second) for day in range(3, 16) for second in range(3 if day >= 9 else 2))
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, day, 12, second)) for day, second in days])
    assert shown() == ([], ["6 past days wait to be judged: until then, bots in disguise count as people."])
    Compactor(lake, lambda: NOW).run()
    assert shown() == (changes, [])
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 4, 13), bot_category="other_bot")])
    assert shown() == ([], [])
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 14, 13), bot_category="other_bot")])
    assert shown() == ([], ["1 past day waits to be judged: until then, bots in disguise count as people."])
    lake.manifest.behaviour.switch("acme", on=False)
    assert len(shown()[0]) == 2
    with browsing(lake) as browser:
        row = browser.read("?range=7d").one("details", class_="compared").row("Visits by people")
    assert [cell.text for cell in cells_of(row)] == ["Visits by people", "18", "12", "↑ 50 % more"]


def test_no_change_is_shown_without_earlier_visits(browser):
    for scope in ("?start_date=2026-03-15&end_date=2026-03-15", "?start_date=2025-12-01&end_date=2026-01-01"):
        page = browser.read(scope)
        assert not [span for span in page.all("span") if "change" in span.attributes.get("class", "").split()]


def test_the_last_day_is_today_in_the_zone_of_the_organization(lake, browsing):
    now = datetime(2026, 3, 4, 10, 30, tzinfo=UTC)
    lake.manifest.organizations.set_zone("far", "Pacific/Kiritimati")
    land(lake, "far", [visit(visited_at=now.replace(tzinfo=None), utc_offset=840)])
    land(lake, "acme", [visit(visited_at=now.replace(tzinfo=None))])
    with browsing(lake, "", clock=lambda: now) as browser:
        for organization, zone, days in (
            ("far", "Pacific/Kiritimati, other times in UTC.", "27 Feb – 5 Mar 2026"),
            ("acme", "UTC.", "26 Feb – 4 Mar 2026"),
        ):
            browser.enter(link_of(lake, organization, lambda: now))
            text = browser.get("?range=7d").text
            assert f"Days and hours are in {zone}" in text
            assert days in text


# Missing visits and data


def test_a_selection_without_visits_names_days_with_visits(browser):
    page = browser.read("?start_date=2020-01-01&end_date=2020-01-31")
    assert "This organization has visits from 10 Dec 2025 – 15 Mar 2026" in page.text
    (link,) = [one for one in page.all("a") if one.text.startswith("Show 10 Dec")]
    assert link["href"] == "/app/?start_date=2025-12-10&end_date=2026-03-15"
    assert browser.read(link["href"]).text.count("This organization has visits from") == 0


def test_an_organization_without_visits_gets_a_guided_start(shared_lake, stranger):
    stranger.enter(link_of(shared_lake, "newcomer"))
    for path in PAGES:
        page = stranger.read(path)
        commands = [code.text for code in page.all("code")]
        words = ("import", "access.log", "--org", "newcomer", "--domain", "go.example.com")
        assert command_line(shared_lake.root, *words) in commands
        assert tables(page) == {}


def test_unknown_countries_and_unverified_agents_name_a_command(lake, acme, browser):
    assert "traffic agents refresh" not in browser.read("agents").text
    at = datetime(2026, 3, 14, 10)
    land(lake, "acme", [visit(visited_at=at), visit(visited_at=at, bot_category="other_bot", confidence="low")])
    assert "traffic countries" in acme.read("").one("section", id="geographic").text
    command = acme.read("agents").one("section", id="bot-traffic").all("p")[-1].one("code").text
    assert command == command_line(lake.root, "agents", "refresh")


# Filters


def test_filters_are_chips_that_can_be_removed(browser):
    page = browser.read("?domain=go.example&short_code=launch&start_date=2026-03-01&end_date=2026-03-10")
    chips = page.one("nav", aria_label="Active filters").all("a")
    assert {chip.text.partition(" \u00d7")[0]: chip["href"] for chip in chips} == {
        "Days: 2026-03-01 to 2026-03-10": "/app/?domain=go.example&short_code=launch&range=30d",
        "Domain: go.example": "/app/?short_code=launch&start_date=2026-03-01&end_date=2026-03-10",
        "Link: launch": "/app/?domain=go.example&start_date=2026-03-01&end_date=2026-03-10",
        "Clear all": "/app/",
    }


def test_a_step_back_is_one_period(browser):
    page = browser.read("?start_date=2026-03-01&end_date=2026-03-10")
    assert page.one("a", rel="prev")["href"] == "/app/?start_date=2026-02-19&end_date=2026-02-28"


def test_a_step_forward_ends_no_later_than_today(browser):
    page = browser.read("?start_date=2026-03-01&end_date=2026-03-10")
    assert page.one("a", rel="next")["href"] == "/app/?start_date=2026-03-06&end_date=2026-03-15"


def test_no_step_leads_past_today(browser):
    assert browser.read("?range=7d").all("a", rel="next") == []


def test_a_step_to_a_preset_names_the_preset_in_its_address(browser):
    page = browser.read("?start_date=2026-03-02&end_date=2026-03-08")
    assert page.one("a", rel="next")["href"] == "/app/?range=7d"


def test_presets_set_the_days_and_the_form_shows_them(browser):
    page = browser.read("people?domain=go.example")
    presets = {link.text: urlsplit(link["href"]) for link in page.one("details", class_="menu").all("a")}
    assert {url.path for url in presets.values()} == {"/app/people"}
    assert {name: [*dict(parse_qsl(url.query)).values()] for name, url in presets.items()} == {
        "Today": ["go.example", "2026-03-15", "2026-03-15"],
        "Yesterday": ["go.example", "2026-03-14", "2026-03-14"],
        "This month": ["go.example", "2026-03-01", "2026-03-15"],
        "Last month": ["go.example", "2026-02-01", "2026-02-28"],
        "This year": ["go.example", "2026-01-01", "2026-03-15"],
        "All days": ["go.example", "2025-12-10", "2026-03-15"],
    }
    for query, name, days in (
        ("", "More", ["2026-02-14", "2026-03-15"]),
        ("range=7d", "More", ["2026-03-09", "2026-03-15"]),
        (presets["Last month"].query, "Last month", ["2026-02-01", "2026-02-28"]),
    ):
        form = browser.read(f"people?{query}").one("form", class_="filters")
        assert form.one("summary").text == name
        assert [form.one("input", name=end)["value"] for end in ("start_date", "end_date")] == days


@examples("path", "query", "settled")
def test_an_incomplete_page_address_redirects_to_a_complete_one(browser, path, query, settled):
    response = browser.get(f"{path}?{query}")
    assert response.status_code == 303
    address, _, found = response.headers["location"].partition("?")
    assert (address, sorted(found.split("&"))) == (f"/app/{path}", sorted(settled.split("&")))
    assert browser.get(response.headers["location"]).status_code == 200


@pytest.mark.parametrize(
    ("days", "name", "rows"), [(1, "visits-by-hour", 24), (2, "visits-by-hour", 48), (180, "visits-by-month", 7)]
)
def test_chart_units_range_from_hours_to_months(browser, internal, days, name, rows):
    first = NOW.date() - timedelta(days - 1)
    panel = browser.read(f"?start_date={first}&end_date={NOW.date()}").one("section", id=name)
    answer = internal(name, days)
    assert len(answer) == rows
    assert tables(panel)[name, None] == as_cells(answer)
    hatched = [one["class"] for one in panel.all("rect") if one.attributes.get("fill")]
    by_month = ["partial", "partial", *["missing"] * 3]  # the log begins on 10 December
    assert hatched == (["partial", *["ahead"] * 11] if days <= 2 else by_month)  # it is past noon


@examples("path", "query", "named")
def test_an_invalid_parameter_gives_a_page_that_names_it(browser, path, query, named):
    assert named in browser.read(f"{path}?{query.replace('LONG', 2_049 * 'x')}", status=400).one("h1").text.split()


def test_a_row_filters_by_its_value_until_the_chip_is_removed(browser, api):
    links = (
        link["href"]
        for path in PAGES
        if path != "paths"  # its answers have no route
        for table in browser.read(path).all("tbody")
        for link in table.all("a")
    )
    found = {name: link for link in links for name in parse_qs(urlsplit(link).query) if name.startswith("f_")}
    platform = browser.read("ai/ChatGPT?range=7d").one("p", class_="lead").one("a")
    assert platform["href"] == "/app/?range=7d&f_ai_source=ChatGPT"
    found |= {"f_ai_source": platform["href"]}
    assert len(found) == 8  # rows of agents lead to their pages; they, paths and statuses come from the address
    one_visit = next(drawn())
    for name in WORDS:
        query = urlencode({f"f_{name}": word(one_visit, name)}, quote_via=quote, safe="")
        found.setdefault(f"f_{name}", f"/app/people?{query}")
    for page_name, address in found.items():
        of_people = "&traffic_group=people" if urlsplit(address).path == "/app/people" else ""
        page, row = browser.read(address), PARAMETERS[page_name.removeprefix("f_")]
        page_query = urlsplit(address).query
        query, value = page_query.replace("f_", ""), dict(parse_qsl(page_query))[page_name]
        compare(page, api, f"?{query}{of_people}")
        assert page.one("form", class_="filters").one("input", name=page_name)["value"] == value
        chip = page.one("nav", aria_label="Active filters").one("a", data_clear=True)
        assert chip.text.startswith(f"{row.label}: {value} ")
        assert "f_" not in chip["href"]
        assert page.one("nav", aria_label="Pages").all("a")[3]["href"] == f"/app/people?{page_query}"
        panel = page.all("details", class_="yourself")[0]
        curl, command = (code.text for code in panel.all("code"))
        assert f"?{query}{of_people}'" in curl
        assert f"--{row.name.replace('_', '-')} {shlex.quote(value)}" in command
        assert page.all("a", class_="csv")[0]["href"].endswith(f".csv?{page_query}{of_people}")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "f_country=Germany&f_browser=Firefox",
            ["No visits on these days have country Germany; country codes have two letters, such"],
        ),
        (
            "f_agent=gptbot&domain=https%3A%2F%2Fgo.example",
            ["have agent gptbot; upper", "have domain https://go.example; a"],
        ),
        ("f_status=404&f_country=SE", []),
        ("f_country=SE", []),
    ],
)
def test_an_empty_page_names_a_value_that_no_visit_has(browser, query, told):
    for path in ("", "people", "times"):
        notices = [one.text for one in browser.read(f"{path}?{query}").all("p", class_="notice plain")]
        hints = [text for text in notices if "No visits on these days have" in text]
        assert [part in text for part, text in zip(told, hints, strict=True)] == [True] * len(told)


@examples("field", "row", "address")
def test_a_row_links_to_a_page_where_its_value_has_visits(shared_lake, field, row, address):
    values = {"range": "7d", "browser": "Firefox", "traffic_type": ""}
    filters = Filters.of(values, "acme", NOW.date(), LinkIndex(shared_lake))
    links = CellLinks("/app", "/app/people", filters)
    assert links.of(field, row) == address
    assert links.of("utm_source", {"utm_source": "x" * 2_049}) == ""  # longer than a parameter may be


def test_campaign_tags_in_a_url_do_not_filter_anything(browser):
    tagged = browser.read("?utm_source=mail&utm_campaign=spring&country=SE&path=/launch")
    assert tagged.all("nav", aria_label="Active filters") == []
    assert tables(tagged) == tables(browser.read(""))


# Without script


def test_every_link_and_form_works_without_javascript(browser):
    seen, waiting = set(), ["/app/"]
    while waiting:
        path = waiting.pop()
        shape = re.sub(r"\?.*", "?", path)  # once with and without filters
        shape = re.sub(r"/(agents|ai|run|export)/[^?]*", r"/\1/", shape)
        if shape in seen:
            continue
        seen.add(shape)
        response = browser.get(path)
        assert response.status_code in {200, 303}, path
        if not response.headers.get("content-type", "").startswith("text/html"):
            assert "/export/" not in path or response.headers["content-disposition"].startswith("attachment")
            continue
        if response.status_code == 303:
            waiting.append(response.headers["location"])
            continue
        page = read(response.text)
        for form in page.all("form"):
            assert form.attributes.get("method") in {"get", "post", "dialog"}
            assert form["method"] == "dialog" or form["action"].startswith("/app/")
            if form["method"] == "get":
                fields = [(one["name"], one.attributes.get("value", "")) for one in form.all("input")]
                answer = browser.get(form["action"], params=fields)
                if answer.status_code == 303:  # to the complete address
                    answer = browser.get(answer.headers["location"])
                assert answer.status_code == 200
        for element in page.all("a"):
            target = element["href"]
            if target.startswith("https://example.com"):
                assert element["rel"] == "noreferrer noopener"
                continue
            if target.startswith("#"):
                assert f'id="{target[1:]}"' in response.text
                continue
            assert target.startswith(("/app/", "agents", "people", "ai")), target
            waiting.append(target if target.startswith("/") else f"/app/{target}".partition("#")[0])
    assert {f"/app/{path}" for path in PAGES} <= {urlsplit(shape).path for shape in seen}
    assert len(seen) > 25


@pytest.fixture(scope="module")
def every_page(application, shared_lake, responses):
    """Return the responses to an editor for all kinds of pages, also for one that does not exist, each with its parsed
    content."""
    application.cookies.clear()
    browser = Browser(application)
    browser.enter(link_of(shared_lake))
    others = (browser.get(path) for path in ("link?short_code=launch", "run/top-links", "nothing"))
    return [(response, read(response.text)) for response in (*responses.values(), *others)]


def test_the_content_security_policy_blocks_all_by_default():
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "require-trusted-types-for 'script'" in CONTENT_SECURITY_POLICY


def test_every_page_has_the_same_headers(every_page):
    for response, _ in every_page:
        assert response.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert response.headers["cache-control"] == "private, no-store"
        assert response.headers["cross-origin-opener-policy"] == "same-origin"
        assert response.headers["referrer-policy"] == "no-referrer"


def test_no_page_has_inline_styles_or_event_handlers(every_page):
    for _, page in every_page:
        everything = page.all()
        assert [one.tag for one in everything if "style" in one.attributes] == []
        assert [name for one in everything for name in one.attributes if name.startswith("on")] == []
        assert page.all("style") == []


def test_the_policy_allows_the_script_of_a_page_by_its_hash(every_page):
    for response, _ in every_page:
        (script,) = re.findall(r"<script[^>]*>(.*?)</script>", response.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}';" in response.headers["content-security-policy"]


def test_a_page_loads_only_its_style_sheet(every_page):
    for _, page in every_page:
        assert loaded_by(page) == {"/app/static/" + STYLESHEET}


def test_a_chart_has_a_name_or_is_hidden_from_screen_readers(every_page):
    for _, page in every_page:
        charts = page.all("svg", class_=True)
        assert {one.attributes.get("role") or one["aria-hidden"] for one in charts} <= {"true", "img"}


def test_ids_of_a_page_are_unique(every_page):
    for _, page in every_page:
        ids = [one["id"] for one in page.all(id=True)]
        assert [one for one in ids if ids.count(one) > 1] == []


def test_ids_that_a_page_refers_to_exist(every_page):
    for _, page in every_page:
        ids = [one["id"] for one in page.all(id=True)]
        named = {one["aria-labelledby"] for one in page.all(aria_labelledby=True)}
        assert named | {one["list"] for one in page.all(list=True)} <= set(ids)


def test_a_table_of_countries_has_a_map(every_page):
    maps = 0
    for _, page in every_page:
        countries = [one for one in page.all("a", href=True) if "/export/geographic.csv" in one["href"]]
        assert len(page.all("svg", class_="map")) == len(countries)
        maps += len(countries)
    assert maps


def test_a_csv_file_is_named_by_organization_report_and_days(browser):
    response = browser.get("export/top-links.csv?range=90d&domain=go.example")
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    name = "acme-top-links-2025-12-16-2026-03-15.csv"
    assert response.headers["content-disposition"] == f'attachment; filename="{name}"'


def test_a_csv_file_has_the_rows_of_the_api(browser, api):
    query = "range=90d&domain=go.example"
    assert browser.csv(f"export/top-links.csv?{query}") == as_cells(api(f"top-links?{query}"))


def test_a_csv_file_has_one_part_of_a_composite_answer(browser, api):
    rows = browser.csv("export/weekly-trend.csv?part=byPlatform")
    assert [row["visits"] for row in rows] == [str(row["visits"]) for row in api("weekly-trend")["byPlatform"]]


@pytest.mark.parametrize(("name", "status"), [("weekly-trend", 400), ("nothing", 404)])
def test_a_csv_file_of_an_unknown_or_divided_answer_is_refused(browser, name, status):
    assert browser.get(f"export/{name}.csv").status_code == status


def test_a_panel_has_commands_that_print_the_same_rows(shared_lake, browser):
    page = browser.read("agents?range=7d&domain=go.example&traffic_type=ai")
    lines = [one.text for one in page.one("section", id="bot-traffic").one("details", class_="yourself").all("code")]
    url = "http://testserver/analytics/bot-traffic?range=7d&domain=go.example&traffic_type=ai"
    filters = ("--domain", "go.example", "--traffic-type", "ai")
    assert lines == [
        f"curl -H \"Authorization: Bearer $KEY\" '{url}'",
        command_line(shared_lake.root, *["query", "bot-traffic", "--org", "acme", "--range", "7d"], *filters),
    ]
    sql = browser.read("run/bot-traffic").one("pre").text
    assert sql.startswith("-- ")
    assert "FROM daily_agents" in sql
    (panel,) = browser.read("domains?short_code=launch&range=7d").all("section", id="domain-breakdown")
    assert "launch" not in "".join(code.text for code in panel.all("code"))  # a filter that it does not take


def test_the_overview_and_agents_pages_count_disguised_bots(lake, browsing):
    old = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/79.0.3945.88 Safari/537.36"
    at = {"visited_at": datetime(2026, 3, 4, 12)}
    probe = visit(path="/.env", status=404, is_malicious=True, bot_category="other_bot", visitor=1, **at)
    land(lake, "acme", [visit(user_agent=old, visitor=0, **at), visit(visitor=1, **at), visit(visitor=2, **at), probe])
    days, words = "start_date=2026-03-01&end_date=2026-03-07", "look like browsers"
    with browsing(lake) as browser:
        assert words not in browser.read(f"?{days}").one("main").text
    Compactor(lake, lambda: NOW).run()
    with browsing(lake) as browser:
        (note,) = (one.text for one in browser.read(f"?{days}").all("p", class_="note") if words in one.text)
        assert note == ("2 visits look like browsers but are bots, judging by the whole day: probed (1), outdated (1).")
        rows = browser.read(f"agents?{days}").one("section", id="disguised").one("tbody").all("tr")
        assert [row.text for row in rows] == ["total22", "probed11", "outdated11"]


# Strangers' text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, browsing):
    """A browser for visits in which an attacker wrote every text."""
    lake = Lake(tmp_path_factory.mktemp("hostile") / "lake", create=True)
    land(lake, "acme", [
        visit(path=f"/{text}", short_code=text, domain=text, referrer=text, referrer_type="other", utm_source=text,
              utm_medium=text, utm_campaign=text, agent=text, operator=text, ai_source=text, user_agent=text,
              browser=text, operating_system=text, country=text[:2], visited_at=datetime(2026, 3, 14, 10),
              bot_category=category, agent_kind="other", confidence="low", detection_method="user_agent")
        for text in HOSTILE for category in ("human", "ai_coding_agent", "ai_referral", "other_bot")
    ])  # fmt: skip
    links(lake, "acme", [{"short_code": text, "target_url": text} for text in HOSTILE])
    with browsing(lake) as browser:
        yield browser
    lake.manifest.close()


def test_text_from_strangers_stays_text_on_every_page(hostile):
    paths = [*PAGES, *SETTINGS, "link?short_code=javascript:alert(1)", "ai/%22%3E%3Cscript%3Ealert(1)",
             "?domain=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&short_code=%3Cb%3E"]  # fmt: skip
    found = set()
    for path in paths:
        page = hostile.read(path)
        found |= {cell.text for cell in page.all("th")}
        assert len(page.all("script")) == 1, path
        assert page.all("b") == []
        assert [one["href"] for one in page.all("a") if not one["href"].startswith(
            ("/app/", "#main", "#tags", "agents?", "people?", "ai?", "agents", "people", "ai"))] == []  # fmt: skip
    assert "49" not in found
    assert '"><script>alert(1)</script>' in "".join(found)
    page = hostile.read("link?short_code=javascript:alert(1)")
    target, *_ = page.all("p", class_="target")  # no web address, so no link
    assert (target.all("a"), target.one("code").text) == ([], page.one("h1").text) == ([], "javascript:alert(1)")


def test_no_cell_of_a_csv_file_is_a_formula(hostile):
    found = set()
    for name, entry in ENTRIES.items():
        for part in [f"?part={member}" for member, one in entry.members if not one.members] or [""]:
            rows = list(csv.reader(io.StringIO(hostile.get(f"export/{name}.csv{part}").text, newline="")))
            dangerous = [cell for row in rows for cell in row if re.search(r"(^|;)[=+\-@\t\r\uff1d\uff20]", cell)]
            assert [cell for cell in dangerous if not re.fullmatch(r"-?\d+(\.\d+)?", cell)] == [], name
            found |= {cell for row in rows for cell in row}
    assert '\'=HYPERLINK("http://evil.example")' in found
    assert {"'@sum", "'\uff1d1", "a;'=1"} <= found


# Size


def loaded_by(page):
    """Return the addresses that a browser loads to show a page, from every element that loads something."""
    named = (one.attributes.get("src") or one.attributes.get("href", "") for one in page.all() if one.tag in LOADING)
    return {address.partition("#")[0] for address in named if address and not address.startswith("data:")}


VIEWERS = itertools.count(35)
"""The last numbers of source addresses that no other test uses."""


@pytest.fixture
def first_view(browser):
    """Return the responses of a first view: the page with the most content, the path of the only file that it loads,
    and that file.
    """
    headers = {"Accept-Encoding": "gzip", "X-Forwarded-For": f"192.0.2.{next(VIEWERS)}"}
    response = browser.get("?range=90d", headers=headers)
    page = read(response.text)
    assert page.all("svg", class_="map")
    (path,) = loaded_by(page)
    return response, path, browser.get(path, headers=headers)


def test_a_first_page_view_transfers_at_most_40_kilobytes(first_view):
    page, _, style = first_view
    sizes = [int(response.headers["content-length"]) for response in (page, style)]
    assert sizes[0] <= 30_000
    assert sum(sizes) <= 40_000


def test_a_first_view_uses_two_requests_of_the_rate_limit(first_view):
    *_, style = first_view
    assert style.headers["x-ratelimit-remaining"] == "58"


def test_the_style_sheet_is_named_after_its_content(browser, first_view):
    _, path, _ = first_view
    assert re.fullmatch(r"/app/static/app\.[0-9a-f]{12}\.css", path)
    assert browser.get(path.replace("app.", "app.0")).status_code == 404


def test_browsers_may_cache_the_style_sheet_for_a_year(first_view):
    *_, style = first_view
    assert (style.status_code, style.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")


def test_the_style_sheet_is_the_same_without_compression(browser, first_view):
    _, path, style = first_view
    assert browser.get(path, headers={"Accept-Encoding": "identity"}).content == style.content


def test_a_page_is_compressed_only_for_clients_that_accept_gzip(browser):
    response = browser.get("?range=90d", headers={"Accept-Encoding": "gzip"})
    assert response.headers["content-encoding"] == "gzip"
    for accepted in ("identity", "gzip;q=0"):
        plain = browser.get("?range=90d", headers={"Accept-Encoding": accepted})
        assert "content-encoding" not in plain.headers
        assert plain.content == response.content


@examples("kind", "publisher")
def test_pages_name_the_publisher_of_the_country_database(lake, browsing, tmp_path, kind, publisher):
    MMDBWriter(4, kind, ["en"], "", ipv4_compatible=False).to_db_file(str(tmp_path / "countries.mmdb"))
    with browsing(lake, geoip=tmp_path / "countries.mmdb") as browser:
        page = browser.get("").text
    assert (f"Countries are looked up in a database of {publisher}." in page) == bool(publisher)
    assert ("Countries are looked up" in page) == bool(publisher)
