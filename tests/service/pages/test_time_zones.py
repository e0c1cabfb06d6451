"""Pages have the days of the organization's time zone, and say which it is."""

from datetime import UTC, datetime

from tests.support.visits import land, visit

NOW = datetime(2026, 3, 4, 10, 30, tzinfo=UTC)


def test_a_page_ends_on_the_day_that_it_is_in_the_zone_and_names_it(lake, browsing):
    lake.manifest.set_zone("acme", "Pacific/Kiritimati")
    land(lake, "acme", [visit(visited_at=NOW.replace(tzinfo=None), utc_offset=840)])
    with browsing(lake, clock=lambda: NOW) as browser:
        text = browser.client.get("/app/?range=7d").text
    assert "Days and hours are those of Pacific/Kiritimati, other times are UTC." in text
    assert "27 Feb – 5 Mar 2026" in text


def test_without_a_zone_days_are_utc(lake, browsing):
    land(lake, "acme", [visit(visited_at=NOW.replace(tzinfo=None))])
    with browsing(lake, clock=lambda: NOW) as browser:
        text = browser.client.get("/app/?range=7d").text
    assert "Days and hours are those of UTC." in text
    assert "26 Feb – 4 Mar 2026" in text
