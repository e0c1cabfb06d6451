"""Formats and compares recorded times. A time in the future comes from a wrong clock and counts as old."""

from datetime import UTC, datetime, timedelta
from typing import Final

TOLERANCE: Final = timedelta(minutes=5)
"""How far in the future a recorded time may be: clocks are corrected by a few seconds, and `now` may be outdated after
a wait for a lock."""


def is_recent(moment: datetime, age: timedelta, now: datetime) -> bool:
    """Return whether a time is less than `age` ago and at most TOLERANCE in the future."""
    return now - age < moment <= now + TOLERANCE


def format_time(moment: datetime) -> str:
    """Format a time for the manifest: in UTC with a fixed length, so that strings sort chronologically."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def parse_time(text: str | None) -> datetime | None:
    """Parse a time written by format_time; return None for an empty or missing string."""
    return datetime.fromisoformat(text) if text else None


def unchecked_bounds(before: datetime | None) -> tuple[str, str]:
    """Return the range of recorded times from `before` until now (plus TOLERANCE); empty if `before` is None."""
    return (format_time(before), format_time(datetime.now(UTC) + TOLERANCE)) if before else ("~", "")
