"""Writes and judges recorded times. One in the future was recorded while the clock was ahead, and counts as old."""

from datetime import UTC, datetime, timedelta
from typing import Final

TOLERANCE: Final = timedelta(minutes=5)
"""How far a time may be in the future: clocks are set back by seconds, and locks are waited for with an old time."""


def is_recent(moment: datetime, age: timedelta, now: datetime) -> bool:
    """Whether a time is less than `age` ago, and not in the future."""
    return now - age < moment <= now + TOLERANCE


def format_time(moment: datetime) -> str:
    """A time as stored in the manifest: UTC with a fixed length, so that strings sort like times."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def parse_time(text: str | None) -> datetime | None:
    """A time that format_time wrote; None if there is none."""
    return datetime.fromisoformat(text) if text else None


def unchecked_bounds(before: datetime | None) -> tuple[str, str]:
    """The first and the last `checked_at` that count as checked since `before`; without it, none do."""
    return (format_time(before), format_time(datetime.now(UTC) + TOLERANCE)) if before else ("~", "")
