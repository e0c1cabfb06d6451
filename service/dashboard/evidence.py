"""Request headers and networks in each day's visits: evidence that reveals more bots.

Charts and comparisons carry a note if some of their days have evidence that other days lack.
"""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from itertools import pairwise
from typing import Final, TypeAlias

from data import Lake
from data.signals import HEADERS, NETWORKS
from service.core.pages import formats
from service.dashboard.comparison import Comparison
from service.jobs.reader import Mark
from service.reports.filters import Filters

Evidence: TypeAlias = Mapping[date, int]
"""The request facts of each day with visits: a bit mask, ORed over the visits."""
_KINDS: Final = ((HEADERS, "request headers"), (NETWORKS, "networks"))
"""The bit mask of each kind of evidence, and its name in marks and notes."""


def evidence_by_day(lake: Lake, filters: Filters) -> Evidence:
    """Return the evidence of past days in the filters' span and the equal span before it; none if signals
    do not reclassify the organization's visits.
    """
    if not lake.manifest.behaviour.is_used(filters.organization):
        return {}
    first, last = filters.earlier[0], min(filters.scope.end_date, filters.today - timedelta(1))
    return lake.manifest.files.facts_by_day(filters.organization, first, last)


def evidence_marks(filters: Filters, evidence: Evidence) -> Iterator[Mark]:
    """Yield a mark for each day in scope on which evidence appears or disappears since the last day with visits."""
    scope = filters.scope
    days = sorted(day for day in evidence if scope.start_date <= day <= scope.end_date)
    for before, day in pairwise(days):
        gained = [name for mask, name in _KINDS if evidence[day] & mask and not evidence[before] & mask]
        lost = [name for mask, name in _KINDS if evidence[before] & mask and not evidence[day] & mask]
        for verb, names, more in (("have", gained, "more"), ("lack", lost, "fewer")):
            if names:
                what = f"logs {verb} {' and '.join(names)} from here on, so {more} bots are recognized"
                text = f"{formats.day(day)}: {what}"
                yield Mark(day, text, f"left-out{filters.query_string(traffic_type=None, traffic_group=None)}")


def lacking_in_words(comparison: Comparison | None, evidence: Evidence) -> str:
    """Return a sentence with the number of compared days that lack headers or networks that other compared days have;
    "" if there are none.
    """
    if comparison is None:
        return ""
    first, last = comparison.before.start_date, comparison.now.end_date
    compared = [bits for day, bits in evidence.items() if first <= day <= last]
    found = []
    for mask, name in _KINDS:
        lacking = sum(not bits & mask for bits in compared)
        if lacking not in {0, len(compared)}:
            found.append(f"1 compared day lacks {name}" if lacking == 1 else f"{lacking:,} compared days lack {name}")
    if not found:
        return ""
    return f"{' and '.join(found)}, so fewer bots are recognized on these days, and more are counted as people."
