"""Local times: the zones in tzdata, offsets around the minute when clocks change, and days."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from data.errors import BadInput
from data.local_time import check_zone, local_day, local_times, today, utc_offset, utc_offsets, zone_names

CHANGES = [
    ("Europe/Berlin", datetime(2026, 3, 29, 0, 59, 59), 60), ("Europe/Berlin", datetime(2026, 3, 29, 1), 120),
    ("Europe/Berlin", datetime(2026, 10, 25, 0, 59, 59), 120), ("Europe/Berlin", datetime(2026, 10, 25, 1), 60),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 14, 59, 59), 660),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15), 630),
    ("America/St_Johns", datetime(2009, 3, 8, 3, 30), -210), ("America/St_Johns", datetime(2009, 3, 8, 3, 31), -150),
    ("Africa/Monrovia", datetime(1971, 1, 1), -45), ("Asia/Kolkata", datetime(2026, 1, 1), 330),
    ("UTC", datetime(2026, 1, 1), 0), ("Europe/Berlin", datetime(1, 1, 1), 0),
    ("Europe/Berlin", datetime(1899, 12, 31, 23, 59), 0), ("Europe/Berlin", datetime(1900, 1, 1), 60),
    ("Europe/Berlin", datetime(9999, 12, 31), 60),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "moment", "offset"), CHANGES)
def test_offsets_are_exact_to_the_minute(zone, moment, offset):
    assert utc_offset(moment, zone) == offset
    assert utc_offsets(pa.array([moment, moment], pa.timestamp("us")), zone).to_pylist() == [offset] * 2


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Kolkata", "Pacific/Auckland", "Australia/Lord_Howe"])
def test_local_times_match_the_standard_library(zone):
    moments = [datetime(2026, 1, 1) + timedelta(minutes=37 * number) for number in range(14_000)]
    expected = [
        moment.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0) for moment in moments
    ]
    column = pa.array(moments, pa.timestamp("us"))
    offsets = utc_offsets(column, zone)
    assert local_times(column, offsets).to_pylist() == expected
    assert [local_day(*dated) for dated in zip(moments, offsets.to_pylist(), strict=True)] == [
        moment.date() for moment in expected
    ]


def test_one_moment_can_fall_on_three_local_days():
    now = datetime(2026, 3, 4, 10, 30, tzinfo=UTC)
    days = [today(zone, now) for zone in ("Pacific/Pago_Pago", "UTC", "Pacific/Kiritimati")]
    assert days == [date(2026, 3, 3), date(2026, 3, 4), date(2026, 3, 5)]


def test_every_zone_in_tzdata_can_be_used():
    assert len(zone_names()) > 400
    for name in zone_names():
        assert abs(utc_offset(datetime(2026, 7, 1), check_zone(name))) <= 14 * 60


@pytest.mark.parametrize(
    ("name", "near"),
    [("Europe/Berln", "Europe/Berlin"), ("europe/berlin", "Europe/Berlin"), ("../etc/passwd", "?"), ("", "?")],
)  # fmt: skip
def test_an_unknown_zone_is_rejected_with_the_nearest_names(name, near):
    with pytest.raises(BadInput, match=near.replace("?", r"\?")):
        check_zone(name)
