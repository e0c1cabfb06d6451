"""Counts arriving visits by hour for continuous sources: followed logs, folders and buckets, and reported visits.

A log that is imported once is not a source: no more visits are expected from it.
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
"""Number of whole hours without the usual visits after which a source counts as silent."""
WEEKS: Final = 4
MIN_VISITS: Final = 10
"""Minimum number of visits in the same hours of the same weekday in each of the WEEKS preceding weeks; with fewer,
silence is not reported."""
_LATE_HOURS: Final = {"drop": SILENT_HOURS}
"""Additional hours of delay allowed, by source: log objects, for example, may be delivered only once a day."""
_EPOCH: Final = datetime(1970, 1, 1)  # UTC, like times of visits
_HOUR: Final = timedelta(hours=1)

SourceKind = Literal["follow", "drop", "report"]


class Arrivals(NamedTuple):
    """The number of visits from a source in each hour (hours since 1970, UTC).

    Visits from a folder or bucket ("drop") count in the hour when their object is read.
    """

    source: SourceKind
    domain: str
    by_hour: Mapping[int, int]


class Silence(NamedTuple):
    """A source from which the expected visits have not arrived."""

    source: SourceKind
    domain: str  # domain of the log or drop; "": none was given, or reported visits
    since: datetime  # the end of the hour of its last visit
    before: list[int]  # visits in the same hours as six of the silent hours, in each of the previous weeks


def hours_of(visits: pa.Table) -> dict[int, int]:
    """Return the number of visits in each hour."""
    hours = pc.floor_temporal(visits["visited_at"], unit="hour").value_counts()
    return {_hour(at): number for at, number in zip(*(part.to_pylist() for part in hours.flatten()), strict=True)}


def object_arrivals(domain: str, visits: int, now: datetime) -> Arrivals:
    """Return the arrivals from one object in a folder or bucket."""
    hour = _hour(now.astimezone(UTC).replace(tzinfo=None))
    return Arrivals("drop", domain, {hour: visits} if visits else {})


_BY_HOUR: Final = """
SELECT source, domain, hour, visits FROM arrivals WHERE organization = :organization
AND (source <> 'report' OR NOT EXISTS (SELECT 1 FROM pending WHERE organization = :organization))
"""


class ArrivalCounts:
    """Arrivals from the sources of all organizations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def organizations(self) -> list[str]:
        """Return the organizations that have at least one source."""
        return [name for (name,) in self._database.rows("SELECT DISTINCT organization FROM arrivals")]

    def silences(self, organization: str, zone: str, now: datetime) -> list[Silence]:
        """Return an organization's silent sources, comparing the same local hours of each week.

        While any visits are pending, reported visits do not count as silent.
        """
        return silences(self._database.rows(_BY_HOUR, {"organization": organization}), zone, now)


def note_arrivals(db: sqlite3.Connection, organization: str, arrived: Arrivals, now: datetime) -> None:
    """Add arrivals from a source in the transaction that lands them. Only the last five weeks are kept."""
    first = _hour(now.astimezone(UTC).replace(tzinfo=None)) - (WEEKS + 1) * 7 * 24
    key = [organization, *arrived[:2]]
    db.execute("DELETE FROM arrivals WHERE organization = ? AND source = ? AND domain = ? AND hour < ?", [*key, first])
    db.executemany(
        "INSERT INTO arrivals VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET visits = visits + excluded.visits",
        [(*key, hour, visits) for hour, visits in arrived.by_hour.items() if hour >= first],
    )


def silences(rows: Iterable[tuple[SourceKind, str, int, int]], zone: str, now: datetime) -> list[Silence]:
    """Return an organization's silent sources, given its rows (source, domain, hour, visits) and its time zone.

    A silent source remains silent until a visit arrives, even during hours without expected visits.
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
    """Return the number of visits in the six hours that begin `weeks` weeks before `begin`, at the same local time."""
    moment = _EPOCH + begin * _HOUR
    earlier = moment - timedelta(weeks=weeks)
    shift = (utc_offset(moment, zone) - utc_offset(earlier, zone)) // 60
    first = _hour(earlier) + shift
    return sum(by_hour.get(hour, 0) for hour in range(first, first + SILENT_HOURS))
