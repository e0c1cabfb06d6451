"""`traffic report`: one file with the API's numbers that loads nothing else, or the same numbers as text."""

import gzip
import re
from datetime import UTC, datetime, timedelta

import pytest
from mmdb_writer import MMDBWriter

from data.tasks.compaction import Compactor
from queries import ENDPOINTS
from service.dashboard.world_map import MAP_SHAPES
from tests.support.page_reading import as_shown, as_text, read, tables, tile_values
from tests.support.tables import examples
from tests.support.visits import land, links, visit

HOSTILE = "\x1b[31m\u202e'\"><script>alert(1)</script>"
MAX_BYTES = 60_000
CODES = [*MAP_SHAPES]
SOME = ("human_clicks", "ai_referral_requests", "other_visits")
DAY = timedelta(days=1)


def drawn(today):
    """Generate visits on sixty days from every country, by people and an agent, to 46 links, and a visit with a
    stranger's words."""
    noon = datetime(today.year, today.month, today.day, 12)
    for number in range(360):
        code = f"link-{number % 60}" if number % 4 else "launch"
        is_agent = number % 5 == 0
        agent = {"bot_category": "ai_training", "ai_source": "Claude", "agent": "ClaudeBot", "operator": "Anthropic",
                 "agent_kind": "training", "confidence": "high", "device_type": "bot"}  # fmt: skip
        person = {"referrer": f"news-{number % 70}.example", "referrer_type": "other", "visitor": number}
        yield visit(
            visited_at=noon - DAY * (number % 60 + 1), domain="go.example", short_code=code, path=f"/{code}",
            country=CODES[number % len(CODES)], **(agent if is_agent else person),
        )  # fmt: skip
    yield visit(visited_at=noon - DAY, domain="go.example", path="/x", referrer=HOSTILE, referrer_type="other")


@pytest.fixture(scope="module")
def shared_lake(shared_lake, today):
    land(shared_lake, "acme", drawn(today))
    links(shared_lake, "acme", [{"short_code": "launch", "target_url": "https://example.com/launch"}])
    Compactor(shared_lake, lambda: datetime.now(UTC)).run()  # judged days are compared
    return shared_lake


@pytest.fixture(scope="module")
def printed():
    """The output of earlier runs of `traffic report`, by their flags."""
    return {}


@pytest.fixture
def report(traffic, shared_lake, printed):
    """Run `traffic report` over the shared lake, once for the same flags."""

    def report(*flags):
        if flags not in printed:
            printed[flags] = traffic("report", "--org", "acme", *flags)
        return printed[flags]

    return report


@pytest.fixture(scope="module")
def api(shared_lake, opened):
    """Query the API over the same lake, as acme, today."""
    with opened(shared_lake, clock=lambda: datetime.now(UTC)) as client:
        yield lambda path: client.get(f"/analytics/{path}").json()


@examples("flags", "query")
def test_the_numbers_of_a_report_match_the_api(report, api, flags, query):
    page = read(report(*flags).out)
    shown = tables(page)
    assert {name for name, _ in shown} >= {"time-series", "ai-sources", "bot-traffic", "geographic"}
    for (name, _), rows in shown.items():
        if name not in ENDPOINTS:
            continue  # pages compare these
        answer = as_shown(api(f"{name}{query}"), rows)
        assert len(rows) == min(len(answer), 400 if name == "time-series" else 50)
        assert rows == [{field: as_text(row[field]) for field in rows[0]} for row in answer[: len(rows)]], name
    shown, overview = tile_values(page), api(f"traffic-overview{query}")
    assert [shown[name] for name in SOME] == [str(overview[name]) for name in SOME]


def test_a_report_is_one_small_self_contained_file(report):
    text = report("--range", "90d", "--domain", "go.example").out
    assert len(gzip.compress(text.encode(), 6)) <= MAX_BYTES
    page = read(text)
    assert [tag for tag in ("script", "link", "img", "iframe", "form", "object", "a") if page.all(tag)] == []
    leading = {"src", "srcset", "action", "data", "style", "href"}
    assert [one.attributes for one in page.all() if leading & set(one.attributes)] == []
    (style,) = page.one("style").children
    assert set(re.findall(r"url\((.)", style)) <= {"#"}
    assert "@import" not in style


def test_untrusted_text_stays_plain_text_in_reports(report):
    assert "<script" not in report().out
    text = report("--format", "text", "--range", "7d").out
    assert "\ufffd[31m\ufffd'\"><script>" in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202a-\u202e]", text)


def test_lines_of_a_text_report_have_at_most_120_characters(report):
    assert max(map(len, report("--format", "text", "--range", "7d").out.splitlines())) <= 120


def test_the_text_has_the_numbers_of_the_api(report, api):
    text = report("--format", "text", "--range", "7d").out
    overview = api("traffic-overview?range=7d")
    assert re.search(rf"^Visits by people +{overview['human_clicks']}  [+−±]", text, re.MULTILINE)
    assert re.search(r"^Claude +(\d+) ", text, re.MULTILINE)[1] == str(api("ai-sources?range=7d")[0]["visits"])
    assert "against" in text


def test_days_without_visits_give_an_empty_report(report):
    days = ["--start-date", "2020-01-01", "--end-date", "2020-01-31"]
    assert "No comparison" in report(*days).out
    assert "No visits" in report("--format", "text", *days).out


def test_a_report_links_to_the_country_database_publisher(traffic, lake):
    land(lake, "acme", [visit()])
    lake.country_database.parent.mkdir(exist_ok=True)
    MMDBWriter(4, "DBIP-Country-Lite", ["en"], "", ipv4_compatible=False).to_db_file(str(lake.country_database))
    run = traffic("report", "--org", "acme")
    assert 'a database of <a href="https://db-ip.com" rel="noreferrer">DB-IP</a>.' in run.out
