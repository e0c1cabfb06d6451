"""The page "Left out of people": its two parts, its rules and its switch. test_forms.py tests that only editors can
change them."""

from datetime import datetime

import pytest

from data.rules.exclusions import Exclusion
from data.rules.lake_tables import rules_version
from data.signals import BITS
from service.exclusions.pages import ABOUT
from tests.support.page_reading import read
from tests.support.visits import land, visit

DAYS = "start_date=2026-03-09&end_date=2026-03-11"
PAGE = f"left-out?{DAYS}"
FILE, OWN = {"path": "/a.css", "signals": BITS["file"]}, {"path": "/mine", "signals": BITS["own_rule"]}
PROBE = {"path": "/.env", "is_malicious": True, "bot_category": "other_bot", "user_agent": "zgrab/0.x"}
SILENT = {"path": "/quiet", "bot_category": "other_bot", "user_agent": None}
DISGUISED = {"path": "/swept", "signals": BITS["sweep"], "user_agent": "Firefox"}
AHEAD = {"path": "/next", "signals": BITS["loaded_ahead"] | BITS["unfollowed"]}
NETWORK = Exclusion("address", "203.0.113.0/24")


def store(lake, *kinds, organization="acme"):
    moments = (datetime(2026, 3, 10, 12, minute) for minute in range(60))
    common = {"rules_version": rules_version(), "domain": "go.example"}
    land(lake, organization, [visit(visited_at=at, **common | kind) for at, kind in zip(moments, kinds, strict=False)])


def facts(browser, part):
    section = browser.read(PAGE).one("section", id=part)
    return {data["data-field"]: int(data["value"]) for data in section.all("data", data_field=True)}


def requests(browser, part):
    section = browser.read(PAGE).one("section", id=part)
    return [row.one("th").text for row in section.one("div", class_="requests").one("tbody").all("tr")]


def test_the_overview_reports_that_many_visits_are_for_files(lake, acme):
    store(lake, FILE, FILE, {})
    note = acme.read(f"?{DAYS}").one("div", class_="strip")
    assert "66.7 % of the visits on" in note.text
    assert note.one("button")["value"] == "aside"


@pytest.mark.parametrize("aside", [False, True], ids=["a third", "set aside"])
def test_the_overview_does_not_report_few_files_or_files_aside(lake, acme, aside):
    store(lake, FILE, {}, *([FILE, FILE] if aside else [{}]))
    lake.manifest.exclusions.switch_files("acme", aside=aside)
    assert acme.read(f"?{DAYS}").all("div", class_="strip") == []


def test_counted_files_are_not_listed_as_not_counted(lake, acme):
    store(lake, FILE, FILE, OWN, {})
    assert facts(acme, "not-counted") == {"stored": 4, "own": 1}
    assert facts(acme, "files") == {"files": 2}


def test_the_files_switch_shows_the_percentage_of_files(lake, acme):
    store(lake, FILE, FILE, FILE, {})
    assert "3 of 4, 75.0 %." in acme.read(PAGE).one("section", id="files").text


def test_files_set_aside_are_not_counted(lake, acme):
    lake.manifest.exclusions.switch_files("acme", aside=True)
    store(lake, FILE, FILE, OWN, {})
    assert facts(acme, "not-counted") == {"stored": 4, "files": 2, "own": 1}


def test_bots_are_counted_by_their_signals(lake, acme):
    store(lake, PROBE, PROBE, PROBE, SILENT, DISGUISED, DISGUISED, AHEAD, {}, {"bot_category": "other_bot"})
    assert facts(acme, "bots") == {"disguised": 2, "loaded_ahead": 1, "probes": 3, "no_agent": 1}


def test_listed_requests_have_a_path_and_an_agent(lake, acme):
    store(lake, OWN, PROBE, SILENT, {})
    assert requests(acme, "not-counted") == ["go.example/mineMozilla/5.0"]
    assert requests(acme, "bots") == ["go.example/quietno user agent", "go.example/.envzgrab/0.x"]


def test_a_request_shows_that_it_was_loaded_ahead(lake, acme):
    store(lake, AHEAD)
    assert "loaded ahead" in acme.read(PAGE).one("section", id="bots").one("div", class_="requests").text


def test_each_section_lists_at_most_twenty_requests(lake, acme):
    store(lake, *[OWN] * 21, *[PROBE] * 21)
    assert [len(requests(acme, part)) for part in ("not-counted", "bots")] == [20, 20]


def test_the_heading_counts_the_shown_and_all_requests(lake, acme):
    store(lake, *[OWN] * 21, *[PROBE] * 2)
    headings = [acme.read(PAGE).one("section", id=part).one("h3").text for part in ("not-counted", "bots")]
    assert headings == ["The latest 20 of 21 requests", "The latest requests"]


def test_own_visits_are_listed_first_with_the_total_of_requests(lake, acme):
    store(lake, {}, OWN, {})
    section = acme.read(PAGE).one("section", id="not-counted")
    assert section.all("p")[1].text == "Your own visits: 1 of 3 requests."


def test_a_section_without_requests_has_no_table_and_no_csv_link(lake, acme):
    store(lake, PROBE, {})
    empty, full = (acme.read(PAGE).one("section", id=part) for part in ("not-counted", "bots"))
    assert (empty.all("table"), empty.all("a", class_="csv")) == ([], [])
    assert full.one("a", class_="csv")


def test_each_reason_has_one_row_with_its_meaning_and_total(lake, acme):
    store(lake, PROBE, PROBE, SILENT)
    rows = acme.read(PAGE).one("section", id="bots").all("table")[0].one("tbody").all("tr")
    shown = [
        (row.one("th").text.partition(ABOUT[field])[0], row.one("data")["value"])
        for row, field in zip(rows, ABOUT, strict=True)
    ]
    assert shown == [("Disguised", "0"), ("Loaded ahead", "0"), ("Probes", "2"), ("No user agent", "1")]


def test_each_kind_of_rule_has_its_own_example(lake, acme):
    store(lake, {})
    text = acme.get(PAGE).text
    for option in ("Address (203.0.113.0/24)", "User agent (UptimeKuma)", "Path (/admin)"):
        assert f">{option}</option>" in text


def test_a_domain_filter_applies_to_the_section_of_bots(lake, acme):
    store(lake, OWN, PROBE, PROBE | {"domain": "to.example"})
    section = acme.read(f"{PAGE}&domain=to.example").one("section", id="bots")
    assert section.one("data", data_field="probes")["value"] == "1"


def test_visits_of_other_organizations_are_not_shown(lake, acme):
    store(lake, {})
    store(lake, OWN, PROBE, organization="stranger")
    assert facts(acme, "not-counted") == {"stored": 1, "own": 0}
    assert "zgrab" not in acme.get(PAGE).text


def test_an_editor_adds_a_rule(lake, acme):
    store(lake, {})
    answer = acme.post("left-out/rules", kind="address", value="203.0.113.7/24")
    assert (answer.status_code, answer.headers["location"]) == (303, "/app/left-out#rules")
    assert lake.manifest.exclusions.rules("acme") == (NETWORK,)
    assert acme.read(PAGE).row("203.0.113.0/24")


def test_an_editor_removes_a_rule_with_its_button(lake, acme):
    store(lake, {})
    lake.manifest.exclusions.add("acme", NETWORK)
    action = acme.read(PAGE).row("203.0.113.0/24").one("form")["action"]
    assert acme.post(action).status_code == 303
    assert lake.manifest.exclusions.rules("acme") == ()


@pytest.mark.parametrize("fields", [{"kind": "path", "value": "admin"}, {"kind": "host", "value": "/admin"}])
def test_a_rejected_rule_stays_in_the_form(lake, acme, fields):
    store(lake, {})
    answer = acme.post("left-out/rules", **fields)
    page = read(answer.text).one("section", id="rules")
    assert (answer.status_code, page.one("input", name="value")["value"]) == (400, fields["value"])
    assert page.one("p", class_="notice bad").text
    assert lake.manifest.exclusions.rules("acme") == ()


def test_viewers_see_rules_without_addresses(lake, browsing):
    store(lake, {})
    for rule in (NETWORK, Exclusion("agent", "UptimeKuma")):
        lake.manifest.exclusions.add("acme", rule)
    with browsing(lake, "acme", "viewer") as viewer:
        section = viewer.read(PAGE).one("section", id="rules")
        assert section.row("UptimeKuma")
        assert section.row("not shown to viewers")
        assert "203.0.113" not in viewer.get(PAGE).text


def test_viewers_have_no_form(lake, browsing):
    store(lake, {})
    with browsing(lake, "acme", "viewer") as viewer:
        assert viewer.read(PAGE).one("main").all("form", method="post") == []


def test_a_rule_of_another_organization_cannot_be_removed(lake, acme, browsing):
    store(lake, {})
    lake.manifest.exclusions.add("acme", NETWORK)
    action = acme.read(PAGE).row("203.0.113.0/24").one("form")["action"]
    with browsing(lake, "stranger") as stranger:
        assert stranger.post(action).status_code == 404
    assert lake.manifest.exclusions.rules("acme") == (NETWORK,)


def test_the_switch_sets_files_aside(lake, acme):
    store(lake, FILE, {})
    button = acme.read(PAGE).one("section", id="files").one("button")
    assert acme.post("left-out/files", **{button["name"]: button["value"]}).status_code == 303
    assert lake.manifest.exclusions.are_files_aside("acme")
    assert acme.read(PAGE).one("section", id="files").one("button")["value"] == "counted"


def test_a_rejected_switch_names_the_command(lake, acme):
    store(lake, FILE | {"rules_version": "older"})
    answer = acme.post("left-out/files", files="aside")
    assert (answer.status_code, "traffic files aside --org acme" in read(answer.text).text) == (409, True)
    assert not lake.manifest.exclusions.are_files_aside("acme")


@pytest.mark.parametrize("path", ["rules", "rules/nothing/remove", "files"])
def test_forms_from_other_sites_are_rejected(lake, acme, path):
    store(lake, {})
    fields = {"kind": "path", "value": "/a", "files": "aside"}
    answer = acme.client.post(f"/app/left-out/{path}", data=fields, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    exclusions = lake.manifest.exclusions
    assert (exclusions.rules("acme"), exclusions.are_files_aside("acme")) == ((), False)


def test_an_organization_without_visits_sees_how_to_import(acme):
    assert "traffic import" in acme.read("left-out").text


def test_the_overview_links_to_the_page_with_its_filters(lake, acme):
    store(lake, {})
    links = [
        link["href"] for link in acme.read(f"?{DAYS}&domain=go.example").all("a") if link.text == "Left out of people"
    ]
    assert links == [f"/app/left-out?{DAYS}&domain=go.example"]
