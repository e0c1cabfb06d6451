"""An organization's zone is set before its first visit, checked at each commit, and kept in files and pending
visits.
"""

import json
from datetime import UTC, date, datetime, timedelta

import pytest

from data.errors import BadInput, LakeDamaged
from data.ingest.follower import Follower
from data.ingest.importer import Importer, Options
from data.ingest.live import LiveIngest
from data.ingest.visitor_ids import LIFETIME, daily_salts
from data.local_time import DEFAULT_ZONE
from data.logs.reported import Submission
from data.manifest.organizations import ZoneChanged
from data.store import pending
from data.store.footers import read_visit_file
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser
from data.tasks.retention import ClockDoubtful, apply_retention, apply_retention_unattended
from tests.support.lakes import rebuilt
from tests.support.manifests import database_of
from tests.support.visits import land, packed, visit

TOKYO, PAGO, KIRITIMATI = "Asia/Tokyo", "Pacific/Pago_Pago", "Pacific/Kiritimati"
NOW = datetime(2026, 3, 4, 10, 30, tzinfo=UTC)


def in_tokyo(**columns):
    return visit(utc_offset=540, **columns)


def post(lake, *moments, now=NOW):
    rows = [json.dumps({"url": "https://go.example/a", "time": f"{at.isoformat()}Z"}).encode() for at in moments]
    LiveIngest(lake, now=lambda: now).land([Submission("acme", rows)])


def test_a_zone_can_be_changed_from_utc_until_the_first_visit(lake):
    assert lake.manifest.organizations.zone("acme") == DEFAULT_ZONE
    for zone in (TOKYO, PAGO, DEFAULT_ZONE):
        lake.manifest.organizations.set_zone("acme", zone)
        assert (lake.manifest.organizations.zone("acme"), lake.manifest.organizations.zone("other")) == (
            zone,
            DEFAULT_ZONE,
        )


@pytest.mark.parametrize("visits", ["landed", "waiting", "erased"])
def test_a_zone_cannot_change_once_there_are_visits(lake, visits):
    if visits == "waiting":
        pending.enqueue(lake.manifest, [("acme", packed([visit()]))], NOW)
    else:
        land(lake, "acme", [visit()])
    if visits == "erased":
        Eraser(lake).run("acme", Criteria())
    with pytest.raises(BadInput, match="acme already has visits in UTC, so its zone cannot change; set the zone"):
        lake.manifest.organizations.set_zone("acme", TOKYO)
    lake.manifest.organizations.set_zone("acme", DEFAULT_ZONE)
    lake.manifest.organizations.set_zone("other", TOKYO)


def test_a_landing_that_began_in_another_zone_is_not_committed(lake, monkeypatch):
    monkeypatch.setattr(lake.manifest.organizations, "zone", lambda _: DEFAULT_ZONE)  # the zone when the import began
    lake.manifest.organizations.set_zone("acme", TOKYO)
    with pytest.raises(ZoneChanged, match=f"the time zone of acme has since been set to {TOKYO}; try again"):
        land(lake, "acme", [visit()])
    assert (
        database_of(lake.manifest).rows("SELECT * FROM files")
        == database_of(lake.manifest).rows("SELECT * FROM batches")
        == []
    )


def test_live_visits_are_dated_again_if_the_zone_was_just_set(lake, monkeypatch):
    zones = iter([DEFAULT_ZONE, TOKYO])
    monkeypatch.setattr(lake.manifest.organizations, "zone", lambda _: next(zones, TOKYO))
    lake.manifest.organizations.set_zone("acme", TOKYO)
    post(lake, datetime(2026, 3, 3, 14, 59, 59), datetime(2026, 3, 3, 15))
    pending.flush_all(lake)
    assert [file.day for file in lake.manifest.files.live("acme")] == [date(2026, 3, 3), date(2026, 3, 4)]


def test_files_and_their_replacements_record_the_zone(lake):
    lake.manifest.organizations.set_zone("acme", TOKYO)
    for _ in range(2):
        land(lake, "acme", [in_tokyo()])
    post(lake, datetime(2026, 3, 4, 12))
    pending.flush_all(lake)
    Compactor(lake, lambda: NOW + timedelta(days=1)).run()
    Eraser(lake).run("acme", Criteria())
    paths = lake.root.glob("visits/organization=acme/*/*.parquet")
    assert {read_visit_file(path).footer.zone for path in paths} == {TOKYO}


@pytest.mark.parametrize(("zone", "is_over"), [(KIRITIMATI, True), (DEFAULT_ZONE, False), (PAGO, False)])
def test_a_day_that_is_over_in_its_zone_is_merged_and_expires(lake, zone, is_over):
    lake.manifest.organizations.set_zone("acme", zone)
    for _ in range(2):
        land(lake, "acme", [visit()])
    Compactor(lake, lambda: NOW).run()
    assert len(lake.manifest.files.live("acme")) == (1 if is_over else 2)
    with pytest.raises(ClockDoubtful):
        apply_retention_unattended(lake, 30, NOW + timedelta(days=400))
    assert sum(file.visits for file in lake.manifest.files.live("acme")) == 2
    apply_retention(lake, 0, NOW)
    assert sum(file.visits for file in lake.manifest.files.live("acme")) == (0 if is_over else 2)


def test_visits_in_a_followed_log_are_dated_in_its_zone(lake, tmp_path):
    lake.manifest.organizations.set_zone("acme", TOKYO)
    log = tmp_path / "access.log"
    follower = Follower(lake, Importer(lake), log, Options("acme", "go.example"), notify=print)
    for clock in ("03/Mar/2026:14:59:59", "03/Mar/2026:15:00:00"):
        with log.open("a") as file:
            file.write(f'1.1.1.1 - - [{clock} +0000] "GET /a HTTP/1.1" 302 0 "-" "Mozilla/5.0"\n')
        follower.tick()
    follower.close()
    assert [(file.day.day, file.visits) for file in lake.manifest.files.live("acme")] == [(3, 1), (4, 1)]


def test_salts_for_two_zones_differ_and_last_48_hours(lake):
    day = date(2026, 3, 4)
    first = {zone: daily_salts(lake.salts, [day], NOW, zone)[day] for zone in (PAGO, KIRITIMATI)}
    assert first[PAGO] != first[KIRITIMATI]
    after = {zone: daily_salts(lake.salts, [day], NOW + LIFETIME, zone)[day] for zone in first}
    assert after == first
    later = {zone: daily_salts(lake.salts, [day], NOW + LIFETIME + timedelta(seconds=1), zone)[day] for zone in first}
    assert not {*later.values()} & {*first.values()}


def test_a_rebuilt_manifest_keeps_the_zone(lake):
    lake.manifest.organizations.set_zone("acme", TOKYO)
    land(lake, "acme", [in_tokyo()])
    with rebuilt(lake) as again:
        assert again.manifest.organizations.zone("acme") == TOKYO


def test_a_rebuild_rejects_an_organization_with_two_zones(lake, tmp_path):
    land(lake, "acme", [visit()])
    (path,) = lake.root.glob("visits/organization=acme/*/*.parquet")
    kept = path.read_bytes()
    other = type(lake)(tmp_path / "other", create=True)
    other.manifest.organizations.set_zone("acme", TOKYO)
    land(other, "acme", [in_tokyo()])
    path_of_other = next(iter(other.root.glob("visits/organization=acme/*/*.parquet")))
    path_of_other.with_name(path.name).write_bytes(kept)
    message = rf"acme are dated in 2 time zones \({TOKYO}: .*; UTC: .*{path.name}\)"
    with pytest.raises(LakeDamaged, match=message), rebuilt(other, is_lost=False):
        pass
