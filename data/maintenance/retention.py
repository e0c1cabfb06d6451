"""Visits that are kept for some days only: whole days of every organization end when they are too old.

Visits that wait for a file are not looked at: once they have it, the next run finds them.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from data.errors import Conflict
from data.maintenance.erasure import GRACE
from data.store.lake import Lake
from data.store.manifest import LandedFile, Replacement


class ExpiredVisits(NamedTuple):
    """What of one organization was too old."""

    organization: str
    days: int
    visits: int
    files: int


@dataclass(frozen=True)
class RetentionResult:
    """What was too old to be kept, or in a dry run what would be."""

    before: date
    """The first day that is kept."""
    ended: list[ExpiredVisits]
    dead: list[str]
    """Every file that is to be deleted: those of old days that ended now or earlier."""


def apply_retention(lake: Lake, days: int, now: datetime, dry_run: bool = False) -> RetentionResult:
    """Expire the visits of UTC days that lie more than `days` before today; those of one organization all at once.

    Answers leave them out from now on. Their files stay until GRACE is over, then `erasure.delete_files` or the next
    sweep deletes them. This never waits for an import.
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
    """End the files of old days; none takes their place."""
    while _expired_files(lake, organization, before):
        with lake.rewrite_lock():  # whoever writes them anew finishes the day first
            files = _expired_files(lake, organization, before)
            try:
                if files:
                    lake.manifest.replace_files(Replacement(files, now + GRACE, changes_answers=True), list)
            except Conflict:  # an import has ended the visit of an unfinished line: look again
                continue
            return files
    return []
