"""An organization's local time: its zone, its offset from UTC at a moment, and its local day.

Zones come from the tzdata package, not from the system, so that every machine computes the same offsets. The offset of
a visit is computed when it lands and is stored with it; later code only adds the offset to the visit's time.
"""

from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from data.errors import BadInput

DEFAULT_ZONE: Final = "UTC"
_MINUTE: Final = timedelta(minutes=1)
_FIRST_YEAR: Final = 1900


def zone_names() -> list[str]:
    """Return the name of every zone in tzdata, such as Europe/Berlin."""
    return files("tzdata").joinpath("zones").read_text(encoding="ascii").split()


def check_zone(name: str) -> str:
    """Return `name`; raise BadInput if it is not a zone of the tz database."""
    names = zone_names()
    if name not in names:
        by_lower = {known.lower(): known for known in names}
        near = get_close_matches(name.lower(), [*by_lower], 3, 0.6) or ["europe/berlin"]
        raise BadInput(f"{name!r} is not a time zone; did you mean {', '.join(by_lower[match] for match in near)}?")
    return name


@lru_cache
def _zone(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)


def utc_offset(moment: datetime, zone: str) -> int:
    """Return the minutes to add to a (naive) UTC time to get the local time in a zone.

    Offsets with seconds, which zones had until 1972, are rounded down. Before 1900, the offset is 0.
    """
    return 0 if zone == DEFAULT_ZONE else _utc_offset(moment.replace(second=0, microsecond=0), zone)


@lru_cache(1 << 17)
def _utc_offset(minute: datetime, zone: str) -> int:
    if minute.year < _FIRST_YEAR:
        return 0
    offset = minute.replace(tzinfo=UTC).astimezone(_zone(zone)).utcoffset()
    return (offset or timedelta(0)) // _MINUTE


def utc_offsets(moments: pa.Array, zone: str) -> pa.Array:
    """Return a zone's offset in minutes at each UTC time (timestamps, not null) as int16. Each distinct minute is
    computed once.
    """
    if zone == DEFAULT_ZONE:
        return pa.repeat(pa.scalar(0, pa.int16()), len(moments))
    minutes = pc.floor_temporal(moments, unit="minute").dictionary_encode()
    offsets = [_utc_offset(minute, zone) for minute in minutes.dictionary.to_pylist()]
    return pa.array(offsets, pa.int16()).take(minutes.indices)


def local_times(moments: pa.Array, offsets: pa.Array) -> pa.Array:
    """Return the local times of UTC times, given their offsets in minutes."""
    minutes = pc.multiply(offsets.cast(pa.int64()), pa.scalar(60_000_000, pa.int64()))
    return pc.add(moments, minutes.cast(pa.duration("us")))


def local_day(moment: datetime, offset: int) -> date:
    """Return the local day of a (naive) UTC time, given its offset in minutes."""
    return (moment + offset * _MINUTE).date()


def day_bounds(day: date, zone: str) -> tuple[datetime, datetime]:
    """Return the start of a day in a zone and the start of the next day, both as UTC times."""
    begin, end = (datetime.combine(one, time(), _zone(zone)) for one in (day, day + timedelta(1)))
    return begin.astimezone(UTC), end.astimezone(UTC)


def local_now(zone: str, now: datetime) -> datetime:
    """Return the (naive) local time in a zone at a timezone-aware time."""
    moment = now.astimezone(UTC).replace(tzinfo=None)
    return moment if zone == DEFAULT_ZONE else moment + utc_offset(moment, zone) * _MINUTE


def today(zone: str, now: datetime) -> date:
    """Return the local day in a zone at a timezone-aware time."""
    return local_now(zone, now).date()
