"""The page of addresses that AI products made up: its rows equal the answer's, and clicks on a row create one job."""

from contextlib import closing
from datetime import datetime, timedelta

import pytest

from data.links.links import links_of
from queries import DETECTORS, Finding, Scope, Warehouse, days_before, detect
from service.core.program import command_line
from service.dashboard import content
from service.jobs.detection import Detection
from service.jobs.findings import Cause
from tests.conftest import NOW
from tests.service.jobs.findings import ANNA
from tests.service.jobs.test_texts import COUNTED
from tests.support.page_reading import as_cells, tables
from tests.support.sql import answers
from tests.support.visits import land, links, visit

PERSON = {"bot_category": "ai_referral", "agent_kind": "referral", "ai_source": "Claude", "referrer": "claude.ai"}
AGENT = {"bot_category": "ai_assistant", "agent_kind": "assistant_fetch", "ai_source": "ChatGPT", "agent": "ChatGPT"}
CRAWLER = {"bot_category": "ai_training", "agent_kind": "training", "ai_source": "ChatGPT", "agent": "GPTBot"}
MADE_UP = ["/pricing-2026", "/guide/made up?", "/only-fetched"]


def asked(path, times, who, status=404, days_ago=2, **columns):
    at = datetime(2026, 3, 15, 9) - timedelta(days=days_ago)
    code = path[1:] if path[1:].isalnum() or path == "/pricing-2026" else None
    row = {"path": path, "short_code": code, "status": status, **who, **columns}
    return [visit(visited_at=at - timedelta(days=number % 2, minutes=number), visitor=number, **row)
            for number in range(times)]  # fmt: skip


@pytest.fixture
def lake(lake):
    land(lake, "acme", [
        *asked("/pricing-2026", 4, PERSON, country="SE"), *asked("/pricing-2026", 9, AGENT),
        *asked("/guide/made up?", 3, PERSON, domain=None), *asked("/only-fetched", 5, AGENT, days_ago=12),
        *asked("/crawled", 50, CRAWLER),  # by a crawler, which follows links on other pages
        *asked("/launch", 5, PERSON), *asked("/moved", 5, PERSON), *asked("/moved", 1, {}, 200, country="DE"),
        *asked("/favicon.ico", 5, PERSON), *asked("/", 5, PERSON), *asked("/fails", 5, PERSON, 500),
    ])  # fmt: skip
    links(lake, "acme", [{"short_code": "launch", "target_url": "https://example.com/"}])
    return lake


def rows_of(browser, query=""):
    return browser.read(f"invented-links{query}").one("table", data_entry="invented-links").one("tbody").all("tr")


def test_visitors_without_addresses_are_shown_as_unknown(lake, acme):
    at = datetime(2026, 3, 14, 9)
    land(lake, "acme", [visit(visited_at=at, path="/no-address", status=404, visitor=None, **PERSON)])
    shown = tables(acme.read("invented-links"))["invented-links", None]
    assert {row["visitors"] for row in shown if row["path"] == "/no-address"} == {""}  # the answer's 0


def buttons(browser, query=""):
    """Return the buttons on the page by path: the target of each button's form, and the value that the button sends."""
    forms = [form for row in rows_of(browser, query) for form in row.all("form")]
    named = [(form.one("button"), form["action"]) for form in forms]
    return {button.text.partition(": ")[2]: (action, button["value"]) for button, action in named}


def click(browser, path, query=""):
    action, address = buttons(browser, query)[path]
    return browser.post(action, address=address)


def test_the_ai_page_links_to_the_list_of_invented_links(lake, acme):
    for query, days, filters, paths in (
        ("", 30, {}, MADE_UP),
        ("?range=7d", 7, {}, MADE_UP[:2]),
        ("?domain=go.example", 30, {"domain": "go.example"}, MADE_UP[::2]),
        ("?f_country=SE", 30, {"country": "SE"}, MADE_UP[:1]),
        ("?f_ai_source=Claude", 30, {"ai_source": "Claude"}, MADE_UP[:2]),
        ("?f_ai_source=ChatGPT", 30, {"ai_source": "ChatGPT"}, MADE_UP[::2]),
    ):
        (link,) = (one for one in acme.read(f"ai{query}").all("a") if one.text == "Invented links")
        shown = tables(acme.read(link["href"]))["invented-links", None]
        scope = Scope("acme", NOW.date() - timedelta(days - 1), NOW.date(), **filters)
        expected = answers(lake, scope, ["invented-links"])["invented-links"]
        assert [row["path"] for row in expected] == paths
        assert shown == as_cells(expected, shown[0])
    nothing = acme.read("invented-links?start_date=2026-03-14&end_date=2026-03-14").text
    assert "at an address that has neither a link nor a successful request" in nothing


def test_repeated_clicks_create_one_approved_job(lake, acme, jobs):
    action, address = buttons(acme, "?range=7d")["/pricing-2026"]
    answers = [acme.post(action, address=address) for _ in range(3)]
    (job,) = jobs.of("acme")
    assert {answer.headers["location"] for answer in answers} == {f"/app/jobs/{job.id}#implementation"}
    page = acme.read(f"jobs/{job.id}")
    assert page.one("input", name="redirect_to")
    words = "query invented-links --org acme --start-date 2026-03-09 --end-date 2026-03-15"
    command = command_line(lake.root, *words.split())
    assert command in [code.text for code in page.all("code")]
    assert (job.type, job.status) == ("invented_link", "approved")
    assert (job.domain, job.path) == ("go.example", "/pricing-2026")
    assert "/pricing-2026" not in buttons(acme)
    assert rows_of(acme)[0].one("a", href=f"/app/jobs/{job.id}").text == "approved"
    target = "https://example.com/pricing"
    response = acme.post(f"jobs/{job.id}/implementations", version=job.version, redirect_to=target)
    assert response.status_code == 303
    assert "/pricing-2026" not in [row.one("th").text for row in rows_of(acme, "?range=90d")]
    assert ("pricing-2026", target) in {(link.short_code, link.target_url) for link in links_of(lake, "acme")}


def test_a_claim_and_a_finding_about_one_path_share_a_job(lake, acme, jobs):
    lake.manifest.behaviour.switch("acme", on=False)  # so that no day waits to be judged
    with closing(Warehouse(lake)) as warehouse:
        found = detect(warehouse, DETECTORS["invented_link"], "acme", NOW.date())
        assert {one.subject["path"] for one in found} == {*MADE_UP[:2]}
        click(acme, MADE_UP[1])
        Detection(warehouse, lake, jobs, "acme").update_jobs(NOW.date(), NOW)
    states = {row.path: row.status for row in jobs.of("acme") if row.type == "invented_link"}
    assert states == {"/pricing-2026": "new", "/guide/made%20up%3F": "approved"}
    click(acme, MADE_UP[0])
    click(acme, MADE_UP[2])
    states = {(row.path, row.type): row.status for row in jobs.of("acme") if row.path in MADE_UP}
    assert states == {(MADE_UP[0], "invented_link"): "approved", (MADE_UP[2], "broken_link"): "approved"}


def test_claiming_one_address_keeps_the_job_about_its_folder(lake, acme, jobs):
    folder = ["/old/a", "/old/b"]
    land(lake, "acme", [row for path in folder for row in asked(path, 5, AGENT)])
    found = [Finding("broken_link", "acme", {"domain": "go.example", "path": path}, {}, 1.0) for path in folder]
    rows = [dict.fromkeys(COUNTED, 3) for _ in folder]
    jobs.upsert(Cause(DETECTORS["broken_link"], "jobs/broken_link", found, days_before(NOW.date()), rows), NOW)
    click(acme, "/old/a")
    assert {row.path: row.status for row in jobs.of("acme")} == {None: "new", "/old/a": "approved"}
    assert not {"/old/a"} & buttons(acme).keys()


def test_an_address_with_a_closed_job_has_no_button(acme, jobs):
    click(acme, "/only-fetched")
    (job,) = jobs.of("acme")
    jobs.act("acme", job.id, "dismiss", ANNA, NOW)
    assert "/only-fetched" not in buttons(acme)
    assert [row.one("a", href=f"/app/jobs/{job.id}").text for row in rows_of(acme)[2:]] == ["dismissed"]


def test_a_claim_beyond_a_limit_or_for_a_missing_row_is_refused(acme, jobs, monkeypatch):
    action, address = buttons(acme)["/pricing-2026"]
    assert acme.post(action, address="0" * 64).status_code == 400
    monkeypatch.setattr("service.jobs.store.MAX_OPEN_JOBS", 0)
    assert "are open; resolve or dismiss some first" in acme.post(action, address=address).text
    monkeypatch.setattr(content, "MAX_PATH_VISITS", 10)
    for path in ("invented-links", "export/invented-links.csv"):
        assert acme.get(path).status_code == 400
    assert acme.post(action, address=address).status_code == 400
    assert jobs.of("acme") == []


def test_viewers_see_invented_links_but_cannot_claim_them(lake, browsing, acme, jobs):
    action, address = buttons(acme)["/pricing-2026"]
    with browsing(lake, role="viewer") as viewer:
        assert len(rows_of(viewer)) == 3
        assert buttons(viewer) == {}
        assert viewer.post(action, address=address).status_code == 403
    assert jobs.of("acme") == []
