"""From the page AI by clicks: what blocking a crawler would cost, its file and its job, and made-up links."""

from contextlib import closing
from datetime import UTC, datetime, timedelta

from queries import Reader


def test_three_clicks_say_what_blocking_the_heaviest_training_crawler_saves_and_give_the_file(opened, dashboard):
    watched = opened()
    page = watched.goto("ai")
    takes_most = page.locator("#operators tbody tr").first.locator("th").inner_text()
    page.get_by_role("link", name="What would robots.txt cost me?").click()
    page.locator(f"input[name=block][value='{takes_most}:trained']").check()
    page.get_by_role("button", name="Show what it would cost").click()
    today = datetime.now(UTC).date()
    with closing(Reader(dashboard.lake)) as reader:
        days = {"start_date": today - timedelta(28), "end_date": today - timedelta(1)}
        visits = reader.sql("FROM visits_in_scope", organization="acme", **days).to_pylist()
    own = [one for one in visits if one["operator"] == takes_most]
    products = {one["ai_source"] for one in own} - {None}
    counted = {
        "saved": sum(one["bot_category"] == "ai_training" for one in own),
        "at_risk": sum(one["bot_category"] == "ai_referral" and one["ai_source"] in products for one in visits),
    }
    shown = {name: page.locator(f"data[data-field={name}]").get_attribute("value") for name in counted}
    assert shown == {name: str(number) for name, number in counted.items()}
    assert counted["saved"] > 0
    assert "Disallow: /" in page.get_by_label("robots.txt", exact=True).inner_text()
    page.get_by_role("button", name="Make it a job").first.click()
    page.wait_for_url("**/app/jobs/job_*")
    assert "Keep AI crawlers out" in page.locator("h1").inner_text()
    assert watched.problems == []


def test_two_clicks_from_the_page_ai_claim_an_address_that_was_made_up_where_it_gets_its_redirect(opened, axe):
    watched = opened()
    page = watched.goto("ai")
    page.get_by_role("link", name="Invented links").click()
    page.get_by_role("button", name="/pricing-2026").click()
    page.wait_for_url("**/app/jobs/job_*#implementation")
    field = page.get_by_label("Redirect to")
    assert field.evaluate(
        "one => { const at = one.getBoundingClientRect(); return 0 < at.top && at.top < innerHeight; }"
    )
    assert axe(page) == []
    assert watched.goto("invented-links").get_by_role("link", name="approved").count() == 1
    assert watched.problems == []
