"""Expires whole days of visits, in all organizations, when they are older than the retention period.

Pending visits are not checked. Once they are in a file, the next run expires them.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from data.errors import Conflict
from data.maintenance.erasure import GRACE
from data.maintenance.rewriting import stage_removal_record
from data.store.lake import Lake
from data.store.landing import discard, publisher
from data.store.manifest import LandedFile, Replacement


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
    This never waits for an import.
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
    return RetentionResult(before, ended, dead)


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
