"""Days of an organization are those of its zone: the day it is, what a time in a parameter means, what answers say."""

import re
from datetime import UTC, date, datetime

import pytest

from data.ingest.importer import Importer, Options
from queries import ENDPOINTS, Scope
from service.demo.sample import Sample
from service.encoding import encode
from tests.recount import recount
from tests.support.relog import read_log
from tests.support.visits import land, visit

NOW = datetime(2026, 3, 4, 10, 30, tzinfo=UTC)
ZONES = {"pago": ("Pacific/Pago_Pago", -660), "plain": ("UTC", 0), "kiritimati": ("Pacific/Kiritimati", 840)}
TODAY = {"pago": "2026-03-03", "plain": "2026-03-04", "kiritimati": "2026-03-05"}


@pytest.fixture(scope="module")
def ask(shared_lake, opened, key_of):
    """Asks for one of three organizations, which have the same visit, of half an hour ago, in three zones."""
    for organization, (zone, offset) in ZONES.items():
        shared_lake.manifest.set_zone(organization, zone)
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
def test_a_range_ends_on_the_day_that_it_is_in_the_zone(ask, organization):
    answer = ask(organization, "time-series", range="7d")
    last = answer.json()[-1]
    assert (last["date"], last["total_visits"], len(answer.json())) == (TODAY[organization], 1, 7)


@pytest.mark.parametrize("organization", ZONES)
def test_an_end_in_the_future_is_capped_at_today_in_the_zone(ask, organization):
    rows = ask(organization, "time-series", start_date="2026-03-01", end_date="2026-04-01").json()
    assert rows[-1]["date"] == TODAY[organization]


@pytest.mark.parametrize(("organization", "hour"), [("pago", 23), ("plain", 10), ("kiritimati", 0)])
def test_an_hour_is_one_of_the_zone(ask, organization, hour):
    assert [row["hour"] for row in ask(organization, "hourly-activity").json() if row["visits"]] == [hour]


@pytest.mark.parametrize(("organization", "visits"), [("pago", 1), ("plain", 0), ("kiritimati", 0)])
def test_a_time_in_a_parameter_means_its_day_in_the_zone(ask, organization, visits):
    days = {"start_date": "2026-03-03T10:59:59Z", "end_date": "2026-03-03T12:00:00+00:00"}
    assert ask(organization, "traffic-overview", **days).json()["total_visits"] == visits


@pytest.mark.parametrize("path", ["dashboard", "devices", "cache-stats"])
@pytest.mark.parametrize("organization", ZONES)
def test_an_answer_names_the_zone_and_its_times_stay_utc(ask, organization, path):
    assert ask(organization, path).headers["X-Time-Zone"] == ZONES[organization][0]
    assert [row["last_visit"] for row in ask(organization, "top-links").json()] == []
    assert ask(organization, "domain-breakdown").json()[0]["visits"] == 1


@pytest.mark.parametrize("organization", ZONES)
def test_tools_of_assistants_have_the_days_of_the_zone(ask, organization):
    call = {"name": "query", "arguments": {"endpoint": "time-series", "range": "7d"}}
    answer = ask(organization, body={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    assert max(re.findall(r"2026-0\d-\d\d", answer.text)) == TODAY[organization]


def test_every_answer_over_http_is_that_of_the_days_of_the_zone(lake, opened, tmp_path):
    log, scopes = tmp_path / "access.log", {"east": "Asia/Kolkata", "west": "America/Los_Angeles"}
    Sample(600, date(2026, 3, 9), 5, 20).write(log)
    for organization, zone in scopes.items():
        lake.manifest.set_zone(organization, zone)
        Importer(lake).run(log, Options(organization))
    for organization, zone in scopes.items():
        visits = read_log(log, organization, None, zone=zone)
        scope = Scope(organization, date(2026, 3, 6), date(2026, 3, 8))
        days = {"start_date": "2026-03-06", "end_date": "2026-03-08"}
        with opened(lake, organization, clock=lambda: NOW.replace(day=20)) as client:
            for name in ENDPOINTS:
                answer = client.get(f"/analytics/{name}", params=days).content
                assert answer == encode(recount(name, visits, scope)), (organization, name)
