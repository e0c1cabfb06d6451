"""Expires whole days of visits, in all organizations, when they are older than the retention period.

Pending visits are not checked. Once they are in a file, the next run expires them. Unknown files, which are not in the
manifest, expire like all others; since no query reads them, their visits are deleted immediately.

If the clock were ahead, too many visits would expire, so it is first compared with the newest visit and the last run.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

from data.errors import Conflict, TrafficError
from data.manifest.clock import is_recent
from data.manifest.files import LandedFile
from data.manifest.policies import RETAINING
from data.store.lake import Lake
from data.store.rewriting import Rewrite, rewrite
from data.store.unknown import expire_unknown, partition_of, unknown_files
from data.tasks.erasure import GRACE


class ClockDoubtful(TrafficError):
    """The clock may be wrong, so nothing was deleted."""


class ExpiredVisits(NamedTuple):
    """The expired visits of one organization, including those in unknown files."""

    organization: str
    days: int
    visits: int
    files: int


@dataclass(frozen=True)
class RetentionResult:
    """The visits that expired or, in a dry run, would expire."""

    before: date  # the first day that is kept; if zones differ, the earliest such day
    ended: list[ExpiredVisits]
    dead: list[str]  # the paths of all files of expired days, which must be deleted; some were already dead


def apply_retention(
    lake: Lake, days: int, now: datetime, dry_run: bool = False, organization: str = ""
) -> RetentionResult:
    """Expire the visits of days more than `days` ago, for one organization or, one after another, for all.

    Answers no longer include them. Their files are deleted after GRACE, by `erasure.delete_files` or the next sweep.
    This never waits for an import. It trusts `now`, so call `clock_problem` first.
    """
    first_kept, expired, dead = dict[str, date](), [], list[str]()
    for name in [organization] if organization else lake.manifest.organizations.names():
        first_kept[name] = before = lake.manifest.organizations.today(name, now) - timedelta(days=days)
        files = _expired_files(lake, name, before) if dry_run else _expire(lake, name, before, now)
        expired += [(name, file.day, file.visits) for file in files]
        if not dry_run:
            dead += lake.manifest.files.expire_now(name, before, now + GRACE)
    if not (dry_run or organization):
        lake.manifest.last_runs.note(_RUN, now)
    expired += expire_unknown(lake, timedelta(days=days), now, dry_run, organization)
    ended = []
    for name in sorted({name for name, *_ in expired}):
        counts = [(day, visits) for owner, day, visits in expired if owner == name]
        gone = {day for day, _ in counts}
        ended.append(ExpiredVisits(name, len(gone), sum(visits for _, visits in counts), len(counts)))
    earliest = min(first_kept.values(), default=now.astimezone(UTC).date() - timedelta(days=days))
    return RetentionResult(earliest, ended, dead)


def apply_retention_unattended(lake: Lake, days: int, now: datetime) -> RetentionResult:
    """Expire the visits of old days, unless the clock may be ahead.

    If the clock may be ahead, raises ClockDoubtful, except in a run that is, by the same clock, one to two days after
    the first such run.
    """
    if problem := clock_problem(lake, now):
        doubted_at = lake.manifest.last_runs.time_of(_DOUBT)
        if doubted_at is None or not is_recent(doubted_at, 2 * _DAY, now):
            doubted_at = now
            lake.manifest.last_runs.note(_DOUBT, now)
        if now - doubted_at < _DAY:
            raise ClockDoubtful(
                f"{problem}; nothing is deleted until a run tomorrow finds the same problem. If the date is right, "
                f"`traffic retain --days {days} --yes --trust-clock` deletes the old days now."
            )
    return apply_retention(lake, days, now)


def clock_problem(lake: Lake, now: datetime) -> str:
    """Return why the clock may be ahead: it is more than a day later than the newest visit and the last run, if any.

    Returns '' otherwise, and if there are no visits.
    """
    today = now.astimezone(UTC).date()
    day = lake.manifest.files.newest_day(today)
    newest = [day] if day else []
    if not newest or today - newest[0] > _DAY:  # unknown files are examined only if necessary
        unknown = [partition_of(path)[1] for path in unknown_files(lake)]
        newest = sorted([*newest, *(day for day in unknown if day <= today)], reverse=True)
    last_run = lake.manifest.last_runs.time_of(_RUN)
    if not newest or today - newest[0] <= _DAY or (last_run and is_recent(last_run, _DAY, now)):
        return ""
    ran = f"old days were last deleted on {last_run:%Y-%m-%d}" if last_run else "old days were never deleted"
    return f"the clock says {today}, but the newest visit is from {newest[0]}, and {ran}"


_DAY: Final = timedelta(days=1)
_RUN: Final = "retention"
_DOUBT: Final = "retention, doubted"


def _expired_files(lake: Lake, organization: str, before: date) -> list[LandedFile]:
    return lake.manifest.files.live(organization, end=before - timedelta(days=1))


def _expire(lake: Lake, organization: str, before: date, now: datetime) -> list[LandedFile]:
    """Replace the files for old days with a file without visits that records the expiry; return the old files."""
    files: list[LandedFile] = []

    def remove_old(work: Rewrite) -> None:
        files[:] = _expired_files(lake, organization, before)
        work.remove(files)

    while _expired_files(lake, organization, before):
        with suppress(Conflict):  # an import has just replaced the visit of an unfinished line, so try again
            rewrite(lake, organization, RETAINING, remove_old, now=lambda: now, grace=GRACE)
            return files
    return []
