"""The service's clock, and the format of times in control.sqlite, output and the log."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, overload

from msgspec import Meta

Clock = Callable[[], datetime]
Time = Annotated[datetime, Meta(tz=True)]
"""A time in a JSON body, in RFC 3339 with an offset."""


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def to_text(moment: datetime, precision: str = "seconds") -> str:
    """Format a time in UTC, according to RFC 3339: 2026-11-20T10:00:00Z. Such strings sort like their times.

    A time without a zone is assumed to be in UTC. `precision` is the `timespec` of `datetime.isoformat`.
    """
    in_utc = moment.astimezone(UTC) if moment.tzinfo else moment
    return f"{in_utc.replace(tzinfo=None).isoformat(timespec=precision)}Z"


def hour_text(moment: datetime) -> str:
    """Return the start of the hour that contains a time, formatted by `to_text`."""
    return to_text(moment.replace(minute=0, second=0))


@overload
def from_text(text: str) -> datetime: ...
@overload
def from_text(text: str | None) -> datetime | None: ...
def from_text(text: str | None) -> datetime | None:
    """Parse a time written by `to_text`; return None for None."""
    return None if text is None else datetime.fromisoformat(text)
