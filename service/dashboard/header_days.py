"""Which days have request headers, by which more machines are recognized when days are judged.

A chart and a comparison say so if some of their days have them and others lack them.
"""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from itertools import pairwise
from typing import TypeAlias

from data import Lake
from data.signals import HEADERS
from service.core.pages import formats
from service.dashboard.comparison import Comparison
from service.jobs.reader import Mark
from service.reports.filters import Filters

HeaderDays: TypeAlias = Mapping[date, bool]
"""For each day with visits whether some of them have request headers."""


def header_days(lake: Lake, filters: Filters) -> HeaderDays:
    """The days of these filters, and as many before, that are over; none where days are not judged."""
    if not lake.manifest.behaviour.is_used(filters.organization):
        return {}
    first, last = filters.earlier[0], min(filters.scope.end_date, filters.today - timedelta(1))
    facts = lake.manifest.files.facts_by_day(filters.organization, first, last)
    return {day: bool(bits & HEADERS) for day, bits in facts.items()}


def header_marks(filters: Filters, has_headers: HeaderDays) -> Iterator[Mark]:
    """A mark for each day in scope that has headers where the last day with visits had none, or the reverse."""
    scope = filters.scope
    days = sorted(day for day in has_headers if scope.start_date <= day <= scope.end_date)
    for before, day in pairwise(days):
        if has_headers[before] != has_headers[day]:
            have = "have request headers, by which more" if has_headers[day] else "lack request headers, by which"
            text = f"{formats.day(day)}: from here on, visits {have} machines are recognized"
            yield Mark(day, text, f"left-out{filters.query_string(traffic_type=None)}")


def lacking_in_words(comparison: Comparison | None, has_headers: HeaderDays) -> str:
    """How many of the days that are compared lack headers which others have; "" if all have them, or none."""
    if comparison is None:
        return ""
    first, last = comparison.before.start_date, comparison.now.end_date
    compared = [has for day, has in has_headers.items() if first <= day <= last]
    lacking = compared.count(False)
    if lacking in {0, len(compared)}:
        return ""
    days = "1 compared day lacks" if lacking == 1 else f"{lacking:,} compared days lack"
    return f"{days} request headers, by which more machines are recognized on the others: people are not counted alike."
