"""Tags of links on pages, in CSV and in reports: set with a form, each a row that filters, and never markup."""

from datetime import datetime

import pytest

from data.links.links import links_of
from data.tasks.compaction import Compactor
from tests.conftest import NOW
from tests.support.page_reading import read, tables
from tests.support.visits import land, links, visit

HOSTILE = '=<b>"spring"</b>'
LINKS = [
    {"short_code": "a", "target_url": "https://shop.example/a", "tags": ["mail", HOSTILE]},
    {"short_code": "b", "target_url": "https://shop.example/b", "tags": ["mail"]},
    {"short_code": "c", "target_url": "https://shop.example/c"},
]


@pytest.fixture(scope="module")
def shared_lake(shared_lake):
    people = [visit(short_code=code, visitor=number) for number, code in enumerate("aab")]
    land(shared_lake, "acme", [*people, visit(short_code="a", bot_category="ai_training"), visit(short_code="c")])
    links(shared_lake, "acme", LINKS)
    land(shared_lake, "rival", [visit(short_code="a")])
    links(shared_lake, "rival", [{"short_code": "a", "target_url": "https://shop.example/a"}])
    return shared_lake


def rows_of(page):
    rows = tables(page)["tags", None]
    return {row["tag"]: [row[name] for name in ("visits", "human_clicks", "ai_visits")] for row in rows}


def test_a_link_with_two_tags_counts_under_both(browser):
    page = browser.read("links?by=tag")
    assert rows_of(page) == {"mail": ["4", "3", "1"], HOSTILE: ["3", "2", "1"]}
    assert "A visit to a link with two tags counts under both." in page.text


def test_a_tag_filters_the_page_until_its_chip_is_removed(browser):
    page = browser.read("links?by=tag")
    (cell,) = [link for link in page.all("a") if link.text == HOSTILE]
    filtered = browser.read(cell["href"])
    assert {row["short_code"] for row in tables(filtered)["all-links", None]} == {"a"}
    assert f"Tag: {HOSTILE}" in filtered.text


def test_the_text_of_a_tag_is_escaped(browser):
    assert "<b>" not in browser.get("links?by=tag").text.partition("<main")[2]


def test_csv_escapes_a_tag_that_is_a_formula(browser):
    lines = browser.get("export/tags.csv").text.splitlines()
    assert lines[0] == "tag,visits,human_clicks,ai_visits,other_visits,unique_visitors,people_visitors,last_visit"
    assert [line for line in lines if line.startswith('"\'=<b>""spring""</b>",3,2,1,0,')] != []


def test_a_report_has_a_table_of_tags_if_links_have_tags(traffic, shared_lake):
    days = ("--start-date", "2026-03-01", "--end-date", "2026-03-15", "--format", "text")
    assert "\nTags\n" in traffic("report", "--org", "acme", *days).out
    assert "\nTags\n" not in traffic("report", "--org", "rival", *days).out


def test_the_links_page_lists_links_or_tags(browser):
    for query, entry, chosen in (("", "all-links", "Links"), ("?by=tag", "tags", "By tag")):
        page = browser.read(f"links{query}")
        assert [*tables(page)] == [(entry, None)]
        rows = page.one("nav", aria_label="Rows")
        assert [(link.text, link.attributes.get("aria-current")) for link in rows.all("a")] == [
            (label, "true" if label == chosen else None) for label in ("Links", "By tag")
        ]


def test_links_stay_grouped_by_tag_when_days_change(browser):
    page = browser.read("links?by=tag&range=7d")
    days = page.one("div", role="group", aria_label="Range").all("a", class_="range")
    assert all("by=tag" in link["href"] for link in days)
    kept = page.one("form", aria_label="Filters").all("input", type="hidden")
    assert {one["name"]: one["value"] for one in kept} == {"range": "7d", "by": "tag"}


def test_only_the_links_page_is_grouped_by_tag(browser):
    page = browser.read("links?by=tag&domain=go.example")
    hrefs = [link["href"] for link in page.one("nav", aria_label="Pages").all("a")]
    assert [href for href in hrefs if "by=tag" in href] == []
    assert "/app/links?domain=go.example" in hrefs


def test_an_unknown_grouping_of_links_is_refused(browser):
    response = browser.get("links?by=domain")
    assert (response.status_code, "Use tag." in response.text) == (400, True)


def test_an_organization_without_tags_sees_how_to_set_them(lake, acme):
    land(lake, "acme", [visit()])
    assert "A link's tags are set on its page." in acme.read("links?by=tag").text


def test_tags_are_compared_with_the_previous_period(lake, acme):
    links(lake, "acme", LINKS)
    codes = dict.fromkeys(range(3, 15), "c") | {5: "ab", 12: "aab"}
    land(lake, "acme", [
        visit(visited_at=datetime(2026, 3, day, 12, second), short_code=code)
        for day, letters in codes.items() for second, code in enumerate(letters)
    ])  # fmt: skip
    Compactor(lake, lambda: NOW).run()
    page = acme.read("links?by=tag&range=7d&compare=before")
    rows = {row["tag"]: (row["visits"], row["before"]) for row in tables(page)["tags", None]}
    assert rows == {"mail": ("3", "2"), HOSTILE: ("2", "1")}


# The form of a link's page


@pytest.fixture
def tagged(lake):
    """A lake with links that share one short code, on every domain and on a single domain, and visits to both."""
    land(lake, "acme", [visit(short_code="a", domain=domain) for domain in ("go.example", "to.example")])
    links(lake, "acme", [*LINKS, LINKS[0] | {"domain": "to.example", "tags": None}])
    return lake


def tags_of(lake):
    return {
        (link.short_code, link.domain): list(link.tags) for link in links_of(lake, "acme") if link.short_code == "a"
    }


def forms(page):
    return page.one("section", id="tags").all("form", method="post")


@pytest.mark.parametrize(
    ("query", "domains"),
    [("", ["", "to.example"]), ("&domain=to.example", ["", "to.example"]), ("&domain=go.example", [""])],
)
def test_the_page_of_a_link_has_a_form_for_its_tags(tagged, acme, query, domains):
    page = acme.read(f"link?short_code=a{query}")
    assert [form.one("input", name="domain")["value"] for form in forms(page)] == domains
    assert forms(page)[0].one("input", name="tags")["value"] == 'mail,"=<b>""spring""</b>"'


def test_the_form_sets_all_tags_of_one_link(tagged, acme):
    before = {(link.short_code, link.domain): link for link in links_of(tagged, "acme")}
    (form, _) = forms(acme.read("link?short_code=a&range=7d"))
    answer = acme.post(form["action"], domain="", tags=' spring, "a, b" ')
    assert (answer.status_code, answer.headers["location"]) == (303, "/app/link?short_code=a&range=7d")
    assert tags_of(tagged) == {("a", ""): ["a, b", "spring"], ("a", "to.example"): []}
    after = {(link.short_code, link.domain): link for link in links_of(tagged, "acme")}
    assert [after[key].target_url for key in after] == [before[key].target_url for key in after]
    assert [after[key].created_at for key in after] == [before[key].created_at for key in after]


def test_an_empty_field_removes_all_tags(tagged, acme):
    assert acme.post("link?short_code=a", domain="", tags="").status_code == 303
    assert tags_of(tagged)["a", ""] == []


@pytest.mark.parametrize(
    ("tags", "told"),
    [
        ("x" * 65, "is not a valid tag; use 1 to 64 characters"),
        ("mail, mail", "the tag 'mail' is given twice"),
        (",".join(map(str, range(21))), "there are too many tags; a link may have at most 20."),
    ],
)
def test_an_invalid_tag_is_named_and_the_input_is_kept(tagged, acme, tags, told):
    before = tags_of(tagged)
    answer = acme.post("link?short_code=a", domain="to.example", tags=tags)
    page = read(answer.text)
    assert answer.status_code == 400
    notice = page.one("p", class_="notice bad").text
    assert notice.startswith("Nothing was changed: the link a: ")
    assert told in notice
    assert [form.one("input", name="tags")["value"] for form in forms(page)][1] == tags
    assert tags_of(tagged) == before


def test_a_viewer_can_read_tags_but_not_set_them(tagged, browsing):
    with browsing(tagged, "acme", "viewer") as viewer:
        page = viewer.read("link?short_code=a")
        assert page.all("section", id="tags") == []
        now = page.one("p", id="tags-now")
        assert (
            now.text.split()
            == "Tags on every domain: mail · X. Tags on to.example: none.".replace("X", HOSTILE).split()
        )
        assert now.all("a")[0]["href"] == "/app/links?tag=mail"
        before = tags_of(tagged)
        assert viewer.post("link?short_code=a", domain="", tags="x").status_code == 403
        assert tags_of(tagged) == before


def test_another_site_cannot_set_tags(tagged, acme):
    before = tags_of(tagged)
    answer = acme.post("link?short_code=a", {"Sec-Fetch-Site": "cross-site"}, domain="", tags="x")
    assert (answer.status_code, tags_of(tagged)) == (403, before)


def test_the_page_of_a_code_without_a_link_has_no_tag_form(tagged, acme):
    page = acme.read("link?short_code=other")
    assert page.all("section", id="tags") + page.all("p", id="tags-now") == []
