"""The units of a chart over time (hours, days, weeks or months), and which units are incomplete."""

from calendar import monthrange
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from service.core.pages.formats import short_day

Label = tuple[int, str, bool]
"""A label under a column: the number of the column, the text, and whether narrow screens show it as well."""

MAX_LABELS: Final = 9
HOURS_UP_TO: Final = 2
"""Maximum number of days drawn by the hour."""
MONTHS_FROM: Final = 180
"""Minimum number of days drawn by the month."""

FIELD_OF: Final = {"hour": "date", "day": "date", "week": "week", "month": "month"}
"""The field of a row that contains the first day of its unit; for an hour, its day."""


def unit_for(days: int) -> str:
    """Return the unit for drawing a number of days: hour, day or month."""
    return "hour" if days <= HOURS_UP_TO else "day" if days < MONTHS_FROM else "month"


def last_day_of(unit: str, first: date) -> date:
    """Return the last day of the unit that begins on the day `first`."""
    if unit == "month":
        return first.replace(day=monthrange(first.year, first.month)[1])
    return first + timedelta(6) if unit == "week" else first


def days_of(unit: str, first: date) -> list[date]:
    """Return the days of the unit that begins on the day `first`."""
    return [first + timedelta(number) for number in range((last_day_of(unit, first) - first).days + 1)]


@dataclass(frozen=True)
class ChartDays:
    """The days that charts show, in the organization's zone."""

    start: date
    end: date
    today: date
    hours_begun: int = 24  # of today
    uncovered: frozenset[date] = frozenset()  # past days without coverage by logs or reports
    has_today: bool = True  # whether a visit from today, or later, was read or reported

    @property
    def last_day(self) -> date:
        """The last shown day that is over."""
        return min(self.end, self.today - timedelta(1))

    @property
    def whole_weeks(self) -> list[str]:
        """The Mondays of the weeks that are over, and completely shown and covered."""
        monday = self.start + timedelta(-self.start.weekday() % 7)
        weeks = ((self.last_day - monday).days + 1) // 7
        mondays = [monday + timedelta(7 * number) for number in range(max(weeks, 0))]
        return [day.isoformat() for day in mondays if self.uncovered.isdisjoint(days_of("week", day))]

    @property
    def uncovered_days(self) -> int:
        """The number of shown days that are not covered."""
        return sum(self.start <= day <= self.end for day in self.uncovered)

    @property
    def lacks_today(self) -> bool:
        """True if today is shown, but no visit from today was read or reported."""
        return self.end >= self.today and not self.has_today

    def is_whole(self, unit: str, row: Mapping[str, Any]) -> bool:
        """Return whether a row's unit is over, and completely shown and covered."""
        first = date.fromisoformat(row[FIELD_OF[unit]])
        if unit == "hour" and first == self.today:
            return bool(row["hour"] < self.hours_begun - 1)
        is_inside = self.start <= first and last_day_of(unit, first) <= self.last_day
        return is_inside and self.uncovered.isdisjoint(days_of(unit, first))

    def lacks_part(self, unit: str, row: Mapping[str, Any]) -> bool:
        """Return whether any day in a row's unit is not covered."""
        return not self.uncovered.isdisjoint(days_of(unit, date.fromisoformat(row[FIELD_OF[unit]])))

    def is_missing(self, unit: str, row: Mapping[str, Any]) -> bool:
        """Return whether a row counts nothing because none of its shown days is covered."""
        days = days_of(unit, date.fromisoformat(row[FIELD_OF[unit]]))
        shown = (day for day in days if self.start <= day <= self.end)
        return not row["total_visits"] and all(
            day in self.uncovered or (day == self.today and self.lacks_today) for day in shown
        )

    def is_ahead(self, unit: str, row: Mapping[str, Any]) -> bool:
        """Return whether a row's unit has not begun."""
        return unit == "hour" and row["date"] == self.today.isoformat() and row["hour"] >= self.hours_begun


def day_labels(days: Sequence[str]) -> list[Label]:
    """Return labels for every day, every second day, every Monday, or the first day of each month: the first of these
    choices with at most nine labels, or else the last.
    """
    dates = [date.fromisoformat(day) for day in days]
    choices = (
        range(len(dates)),
        range((len(dates) - 1) % 2, len(dates), 2),
        [number for number, day in enumerate(dates) if day.weekday() == 0],
        [number for number, day in enumerate(dates) if day.day == 1],
    )
    chosen = next((choice for choice in choices if len(choice) <= MAX_LABELS), choices[-1])
    form = "{0.day} {0:%b}" if dates[-1].year == dates[0].year or len(dates) <= 62 else "{0:%b} {0:%Y}"
    return [(number, form.format(dates[number]), place % 2 == 0) for place, number in enumerate(chosen)]


def hour_labels(days: Sequence[str]) -> list[Label]:
    """Return labels for the hours of these days, 24 each: the day at midnight, and every sixth hour."""
    return [
        (24 * number + hour, f"{hour:02}:00" if hour else short_day(date.fromisoformat(day)), hour % 12 == 0)
        for number, day in enumerate(days)
        for hour in range(0, 24, 6)
    ]


def month_labels(months: Sequence[str]) -> list[Label]:
    """Return at most nine labels: for every month, every second, third or sixth month, or for years."""
    dates = [date.fromisoformat(month) for month in months]
    chosen: list[int] = []
    for every in (1, 2, 3, 6, 12, 24, 60):
        chosen = [number for number, month in enumerate(dates) if (12 * month.year + month.month - 1) % every == 0]
        if len(chosen) <= MAX_LABELS:
            break
    form = "{0.year}" if every >= 12 else "{0:%b} {0.year}"
    return [(number, form.format(dates[number]), place % 2 == 0) for place, number in enumerate(chosen)]
