"""An organization's days follow its zone; tests/test_whole_way.py recounts a log in several zones."""

import re
from datetime import UTC, datetime

import pytest

from tests.support.visits import land, visit

NOW = datetime(2026, 3, 4, 10, 30, tzinfo=UTC)
ZONES = {
    "pago": ("Pacific/Pago_Pago", -660, "2026-03-03", 23, 1),
    "plain": ("UTC", 0, "2026-03-04", 10, 0),
    "kiritimati": ("Pacific/Kiritimati", 840, "2026-03-05", 0, 0),
}
"""By organization: its zone, the offset, the current day, the hour of its visit half an hour ago, and how many visits
it has on 3 March."""


@pytest.fixture(scope="module")
def ask(shared_lake, opened, key_of):
    """Query one of three organizations in different zones, each with the same visit, half an hour ago."""
    for organization, (zone, offset, *_) in ZONES.items():
        shared_lake.manifest.organizations.set_zone(organization, zone)
        land(shared_lake, organization, [visit(visited_at=NOW.replace(tzinfo=None, minute=0), utc_offset=offset)])
    keys = {organization: key_of(shared_lake, organization) for organization in ZONES}
    with opened(shared_lake, clock=lambda: NOW) as client:

        def ask(organization, path="", body=None, **query):
            headers = {"Authorization": f"Bearer {keys[organization]}"}
            if body:
                return client.post("/mcp", json=body, headers=headers)
            return client.get(f"/analytics/{path}", params=query, headers=headers)

        yield ask


@pytest.mark.parametrize("organization", ZONES)
def test_days_and_hours_follow_the_zone(ask, organization):
    zone, _, today, hour, visits = ZONES[organization]
    week = ask(organization, "time-series", range="7d").json()
    assert (week[-1]["date"], week[-1]["total_visits"], len(week)) == (today, 1, 7)
    to_come = ask(organization, "time-series", start_date="2026-03-01", end_date="2026-04-01").json()
    assert to_come[-1]["date"] == today  # the future is capped
    assert [row["hour"] for row in ask(organization, "hourly-activity").json() if row["visits"]] == [hour]
    days = {"start_date": "2026-03-03T10:59:59Z", "end_date": "2026-03-03T12:00:00+00:00"}
    assert ask(organization, "traffic-overview", **days).json()["total_visits"] == visits
    for path in ("dashboard", "devices", "cache-stats"):
        assert ask(organization, path).headers["X-Time-Zone"] == zone
    call = {"name": "query", "arguments": {"endpoint": "time-series", "range": "7d"}}
    answer = ask(organization, body={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    assert max(re.findall(r"2026-0\d-\d\d", answer.text)) == today
