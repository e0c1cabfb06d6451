"""Counts by the hour what arrives from a continuous source: a followed log, folder or bucket, or reported visits.

Importing a log once does not make it a source: no more visits of it are expected.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from data.local_time import utc_offset
from data.manifest.database import Database

SILENT_HOURS: Final = 6
"""Whole hours without a visit that make a silence, if there used to be visits."""
WEEKS: Final = 4
MIN_VISITS: Final = 10
"""Minimum number of visits in the same hours of the weekday, in each of the last WEEKS weeks."""
_LATE_HOURS: Final = {"drop": SILENT_HOURS}
"""More hours by which visits may be late, by source: objects are delivered once a day, for example."""
_EPOCH: Final = datetime(1970, 1, 1)  # UTC, as times of visits are
_HOUR: Final = timedelta(hours=1)

SourceKind = Literal["follow", "drop", "report"]


class Arrivals(NamedTuple):
    """How many visits arrived from a source, by the hour of their time (hours since 1970, UTC).

    Those of a folder or bucket ("drop") count in the hour in which their object is read.
    """

    source: SourceKind
    domain: str
    by_hour: Mapping[int, int]


class Silence(NamedTuple):
    """A source from which no visits arrive, though they should."""

    source: SourceKind
    domain: str  # of the log or drop; "": of any, or reported visits
    since: datetime  # the end of the hour of its last visit
    before: list[int]  # visits in the first six hours that should have had some, in each of the weeks before


def hours_of(visits: pa.Table) -> dict[int, int]:
    """The number of visits in each hour."""
    hours = pc.floor_temporal(visits["visited_at"], unit="hour").value_counts()
    return {_hour(at): number for at, number in zip(*(part.to_pylist() for part in hours.flatten()), strict=True)}


def object_arrivals(domain: str, visits: int, now: datetime) -> Arrivals:
    """What arrived with an object of a folder or bucket."""
    hour = _hour(now.astimezone(UTC).replace(tzinfo=None))
    return Arrivals("drop", domain, {hour: visits} if visits else {})


_BY_HOUR: Final = """
SELECT source, domain, hour, visits FROM arrivals WHERE organization = :organization
AND (source <> 'report' OR NOT EXISTS (SELECT 1 FROM pending WHERE organization = :organization))
"""


class ArrivalCounts:
    """What arrived from the sources of organizations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def organizations(self) -> list[str]:
        """The organizations that have a source."""
        return [name for (name,) in self._database.rows("SELECT DISTINCT organization FROM arrivals")]

    def silences(self, organization: str, zone: str, now: datetime) -> list[Silence]:
        """The silent sources of an organization in its zone; reports are none while some wait for their file."""
        return silences(self._database.rows(_BY_HOUR, {"organization": organization}), zone, now)


def note_arrivals(db: sqlite3.Connection, organization: str, arrived: Arrivals, now: datetime) -> None:
    """Add to what arrived from a source, in the transaction that lands it. Its hours of five weeks are kept."""
    first = _hour(now.astimezone(UTC).replace(tzinfo=None)) - (WEEKS + 1) * 7 * 24
    key = [organization, *arrived[:2]]
    db.execute("DELETE FROM arrivals WHERE organization = ? AND source = ? AND domain = ? AND hour < ?", [*key, first])
    db.executemany(
        "INSERT INTO arrivals VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET visits = visits + excluded.visits",
        [(*key, hour, visits) for hour, visits in arrived.by_hour.items() if hour >= first],
    )


def silences(rows: Iterable[tuple[SourceKind, str, int, int]], zone: str, now: datetime) -> list[Silence]:
    """The silent sources of an organization, whose rows (source, domain, hour, visits) these are, in its zone.

    Once a source is silent, it stays so until a visit arrives, also in hours in which none is expected.
    """
    current = _hour(now.astimezone(UTC).replace(tzinfo=None))
    sources = defaultdict[tuple[SourceKind, str], dict[int, int]](dict)
    for source, domain, hour, visits in rows:
        sources[source, domain][hour] = visits
    found = []
    for (source, domain), by_hour in sources.items():
        first = max((hour for hour in by_hour if hour <= current), default=current) + 1
        last = min(current - SILENT_HOURS - _LATE_HOURS.get(source, 0), first + WEEKS * 7 * 24)
        weeks = (
            [_visits(by_hour, begin, week, zone) for week in range(WEEKS, 0, -1)] for begin in range(first, last + 1)
        )
        before = next((visits for visits in weeks if min(visits) >= MIN_VISITS), None)
        if before:
            found.append(Silence(source, domain, (_EPOCH + first * _HOUR).replace(tzinfo=UTC), before))
    return found


def _hour(moment: datetime) -> int:
    return (moment - _EPOCH) // _HOUR


def _visits(by_hour: Mapping[int, int], begin: int, weeks: int, zone: str) -> int:
    """The visits of six hours, some weeks before those that begin at `begin` and at the same time by local clocks."""
    moment = _EPOCH + begin * _HOUR
    earlier = moment - timedelta(weeks=weeks)
    shift = (utc_offset(moment, zone) - utc_offset(earlier, zone)) // 60
    first = _hour(earlier) + shift
    return sum(by_hour.get(hour, 0) for hour in range(first, first + SILENT_HOURS))
