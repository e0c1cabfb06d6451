"""Expires whole days of visits, in all organizations, when they are older than the retention period.

Pending visits are not checked. Once they are in a file, the next run expires them.

A clock that is ahead would expire too much, so it is compared with the newest visit and with the last run first.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

from data.errors import Conflict, TrafficError
from data.maintenance.erasure import GRACE
from data.maintenance.rewriting import stage_removal_record
from data.store.clock import is_recent
from data.store.lake import Lake
from data.store.landing import discard, publisher
from data.store.manifest import LandedFile, Replacement, format_time


class ClockDoubtful(TrafficError):
    """The clock may be ahead, so nothing was deleted."""


class ExpiredVisits(NamedTuple):
    """The expired visits of one organization."""

    organization: str
    days: int
    visits: int
    files: int


@dataclass(frozen=True)
class RetentionResult:
    """What expired, or in a dry run, what would expire."""

    before: date
    """The first day that is kept."""
    ended: list[ExpiredVisits]
    dead: list[str]
    """The paths of all files to delete: those of expired days, including earlier dead files."""


def apply_retention(lake: Lake, days: int, now: datetime, dry_run: bool = False) -> RetentionResult:
    """Expire the visits of UTC days more than `days` before today, one organization at a time.

    Answers no longer include them. Their files are deleted after GRACE, by `erasure.delete_files` or the next sweep.
    This never waits for an import. It trusts `now`: ask `clock_problem` first.
    """
    before = now.astimezone(UTC).date() - timedelta(days=days)
    ended, dead = [], []
    for organization in lake.manifest.organizations():
        files = _expired_files(lake, organization, before) if dry_run else _expire(lake, organization, before, now)
        if files:
            visits = sum(file.visits for file in files)
            ended.append(ExpiredVisits(organization, len({file.day for file in files}), visits, len(files)))
        if not dry_run:
            dead += lake.manifest.expire_now(organization, before, now + GRACE)
    if not dry_run:
        _record(lake, _RUN, now)
    return RetentionResult(before, ended, dead)


def apply_retention_unattended(lake: Lake, days: int, now: datetime) -> None:
    """Expire the visits of old days, unless the clock may be ahead. Then a run one to two days later, by the same
    clock, goes on; until then ClockDoubtful is raised.
    """
    problem = clock_problem(lake, now)
    if problem and not _was_doubted_yesterday(lake, now):
        raise ClockDoubtful(
            f"{problem}; no days are deleted until a run tomorrow finds the same. If the date is right, "
            f"`traffic retain --days {days} --yes` deletes them now."
        )
    apply_retention(lake, days, now)


def clock_problem(lake: Lake, now: datetime) -> str:
    """Why the clock may be ahead: it is more than a day after the newest visit, and after the last run. '' if not."""
    today = now.astimezone(UTC).date()
    ((newest,),) = lake.manifest.rows(
        "SELECT max(day) FROM files WHERE deletable_at IS NULL AND day <= ?", [today.isoformat()]
    )
    last_run = _recorded(lake, _RUN)
    if newest is None or today - date.fromisoformat(newest) <= _DAY or (last_run and is_recent(last_run, _DAY, now)):
        return ""
    ran = f"old days were last deleted on {last_run:%Y-%m-%d}" if last_run else "old days were never deleted"
    return f"the clock says {today}, but the newest visit is of {newest}, and {ran}"


_DAY: Final = timedelta(days=1)
_RUN: Final = "retention"
_DOUBT: Final = "retention, doubted"


def _was_doubted_yesterday(lake: Lake, now: datetime) -> bool:
    """Whether the clock was first doubted one to two days ago. Otherwise it is doubted from now on, if it was not."""
    doubted_at = _recorded(lake, _DOUBT)
    if doubted_at is None or not is_recent(doubted_at, 2 * _DAY, now):
        _record(lake, _DOUBT, now)
        return False
    return now - doubted_at >= _DAY


def _recorded(lake: Lake, task: str) -> datetime | None:
    rows = lake.manifest.rows("SELECT at FROM last_runs WHERE task = ?", [task])
    return datetime.fromisoformat(rows[0][0]) if rows else None


def _record(lake: Lake, task: str, now: datetime) -> None:
    with lake.manifest.transaction() as db:
        db.execute("INSERT OR REPLACE INTO last_runs VALUES (?, ?)", [task, format_time(now)])


def _expired_files(lake: Lake, organization: str, before: date) -> list[LandedFile]:
    return lake.manifest.live_files(organization, end=before - timedelta(days=1))


def _expire(lake: Lake, organization: str, before: date, now: datetime) -> list[LandedFile]:
    """Expire the files of old days without replacing them; return them."""
    while _expired_files(lake, organization, before):
        with lake.rewrite_lock():  # a running rewrite finishes first
            files = _expired_files(lake, organization, before)
            try:
                if files:
                    _replace_by_record(lake, files, now)
            except Conflict:  # an import has just replaced the visit of an unfinished line: try again
                continue
            return files
    return []


def _replace_by_record(lake: Lake, files: list[LandedFile], now: datetime) -> None:
    """Replace files by one without visits, which records that they expired."""
    record, earlier = stage_removal_record(lake, files)
    try:
        replacement = Replacement([*files, *earlier], now + GRACE, changes_answers=True)
        lake.manifest.replace_files(replacement, publisher(lake, [record]))
    finally:
        discard(lake, [record])
