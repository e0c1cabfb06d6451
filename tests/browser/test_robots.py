"""What blocking a crawler would cost, by clicks: from the page AI to the file, and to its job."""

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
