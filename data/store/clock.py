"""Judges recorded times. One in the future was recorded while the clock was ahead, and counts as old."""

from datetime import datetime, timedelta
from typing import Final

TOLERANCE: Final = timedelta(minutes=5)
"""How far a time may lie in the future: clocks are set back by seconds, and locks are waited for with an old time."""


def is_recent(moment: datetime, age: timedelta, now: datetime) -> bool:
    """Whether a time is less than `age` ago, and not in the future."""
    return now - age < moment <= now + TOLERANCE
