"""Pages have the days of the organization's time zone, and say which it is."""

from datetime import UTC, datetime

from tests.support.visits import land, visit

NOW = datetime(2026, 3, 4, 10, 30, tzinfo=UTC)


def test_a_page_ends_on_the_day_that_it_is_in_the_zone_of_its_organization_or_in_utc_and_names_it(
    lake, browsing, link_of
):
    lake.manifest.set_zone("far", "Pacific/Kiritimati")
    land(lake, "far", [visit(visited_at=NOW.replace(tzinfo=None), utc_offset=840)])
    land(lake, "acme", [visit(visited_at=NOW.replace(tzinfo=None))])
    with browsing(lake, "", clock=lambda: NOW) as browser:
        for organization, zone, days in (
            ("far", "Pacific/Kiritimati, other times are UTC.", "27 Feb – 5 Mar 2026"),
            ("acme", "UTC.", "26 Feb – 4 Mar 2026"),
        ):
            browser.enter(link_of(lake, organization, lambda: NOW))
            text = browser.get("?range=7d").text
            assert f"Days and hours are those of {zone}" in text
            assert days in text
