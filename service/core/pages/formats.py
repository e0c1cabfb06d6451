"""Formats of numbers, days, times and the API's words on pages."""

import re
from contextlib import suppress
from datetime import date, datetime
from math import inf
from typing import Final

_ISO_DAY: Final = re.compile(r"(?<![\w./-])\d{4}-\d\d-\d\d(?!\.?[\w/-])", re.ASCII)
_LEAST: Final = 0.05
"""The smallest number that is rounded to 0.1."""
_NOTHING_LEFT: Final = 1_000
"""A decrease to nothing, in tenths of a percent."""


def humanize(value: str) -> str:
    """Format a word of the API as readable text: AI assistant for ai_assistant."""
    return " ".join({"ai": "AI", "seo": "SEO"}.get(word, word) for word in value.split("_"))


def number(value: float | None) -> str:
    """Format a number with separators: 1,234 or 1,234.5; an en dash for None."""
    return "–" if value is None else f"{value:,}"


def decimal(value: float | None) -> str:
    """Format a number with one decimal, but <0.1 if it would be rounded to 0: 12.3; an en dash for None."""
    if value is None:
        return "–"
    return "<0.1" if 0 < value < _LEAST else f"{value:,.1f}"


def amount(value: float | None) -> str:
    """Format a sum of money or a small rate with two decimals: 12.30; an en dash for None."""
    return "–" if value is None else f"{value:,.2f}"


def percent(value: float | None) -> str:
    """Format a percentage: 12.3 %, and 100.0 % only for the whole; an en dash for None."""
    return "–" if value is None else f"{decimal(min(value, 99.9) if value < 100 else value)} %"


def hour(value: int) -> str:
    """Format an hour of the day: 12–13."""
    return f"{value:02}–{value + 1:02}"


def change_in_words(tenths: int) -> tuple[str, str]:
    """Format a change in tenths of a percent as an arrow and words: ↑ and 12 % more.

    A decrease is 100 % only if nothing is left.
    """
    if not tenths:
        return "→", "unchanged"
    whole = (abs(tenths) + 5) // 10
    if -_NOTHING_LEFT < tenths < 0:
        whole = min(whole, 99)
    size = f"{whole:,} %" if whole else "<1 %"
    return ("↑", f"{size} more") if tenths > 0 else ("↓", f"{size} fewer")


def change(percentage: float | None) -> str:
    """Format a percentage change in words: ↑ 12 % more; ★ none before for infinity; an en dash for None."""
    if percentage is None:
        return "–"
    return "★ none before" if percentage == inf else " ".join(change_in_words(round(10 * percentage)))


def short_day(value: date) -> str:
    """Format a day without its year: 4 Mar."""
    return f"{value.day} {value:%b}"


def day(value: str | date | None) -> str:
    """Format a day: 4 Mar 2026; an en dash for None."""
    if not value:
        return "–"
    parsed = date.fromisoformat(value) if isinstance(value, str) else value
    return f"{short_day(parsed)} {parsed.year}"


def with_days(text: str) -> str:
    """Return text with every ISO 8601 day in it, such as 2026-03-04, replaced by the format of pages: 4 Mar 2026."""

    def formatted(found: re.Match[str]) -> str:
        with suppress(ValueError):  # there is no such day
            return day(found[0])
        return found[0]

    return _ISO_DAY.sub(formatted, text)


def month(value: str) -> str:
    """Format a month: Mar 2026."""
    return f"{date.fromisoformat(value):%b %Y}"


def span(start: date, end: date) -> str:
    """Format a span of days: 4 Mar 2026, or 4 Mar – 8 Mar 2026."""
    if start == end:
        return day(start)
    return f"{short_day(start) if start.year == end.year else day(start)} – {day(end)}"


def moment(value: str | datetime | None) -> str:
    """Format a time in UTC: 4 Mar 2026 12:30; an en dash for None."""
    if not value:
        return "–"
    parsed = datetime.fromisoformat(value) if isinstance(value, str) else value
    return f"{day(parsed.date())} {parsed:%H:%M}"


def time_of_day(value: str) -> str:
    """Format the hour and the minute of a time in UTC: 12:30."""
    return f"{datetime.fromisoformat(value):%H:%M}"


def size(value: int) -> str:
    """Format a size in bytes: 12 B, 1.2 kB, 3.4 MB; an en dash for 0, as in logs without sizes."""
    if not value:
        return "–"
    amount, unit = float(value), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if unit == "TB" or round(amount, 1) < 1_000:
            break
        amount /= 1_000
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
