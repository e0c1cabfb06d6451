"""The scope of an answer: an organization, days, and optional filters. parameters.py builds it from parameters."""

from dataclasses import dataclass, fields
from datetime import date
from typing import Any, Final


@dataclass(frozen=True)
class Scope:
    """The visits that an answer covers: an organization's visits from start_date to end_date (inclusive) that pass the
    filters.

    A filter that is None is not applied; prelude/3_scope.sql applies the others. `traffic_type` is a bot_category, "ai"
    (the four AI-related categories) or "other" (the two other automated categories). `traffic_group` is "people"
    (including AI referrals), "ai" (agents and AI referrals) or "bots" (all others). `tag` lists the links that have a
    tag, in the format of TaggedLinks.words. The other filters use the words shown in answers, such as "unknown" for
    a missing country.
    """

    organization: str
    start_date: date
    end_date: date
    short_code: str | None = None
    domain: str | None = None
    traffic_type: str | None = None
    traffic_group: str | None = None
    tag: str | None = None
    country: str | None = None
    device_type: str | None = None
    browser: str | None = None
    operating_system: str | None = None
    referrer: str | None = None
    ai_source: str | None = None
    agent: str | None = None
    operator: str | None = None
    path: str | None = None
    status: str | None = None
    utm_source: str | None = None
    utm_campaign: str | None = None
    no_domain: bool | None = None  # True: only visits without a domain
    search: str | None = None  # text in a link; these six fields select and order the rows of all-links, not visits
    unvisited: bool | None = None  # True: only links without visits
    sorted_by: str | None = None  # the field to sort by
    ascending: bool | None = None
    skipped: int | None = None  # number of rows to skip
    shown: int | None = None  # maximum number of rows; None: 100
    only_judged: bool = False  # whether unjudged days are left out, unless behaviour is switched off

    @property
    def filters(self) -> dict[str, Any]:
        """The filters that are applied, by field."""
        return self._set(FILTERS)

    @property
    def listing(self) -> dict[str, Any]:
        """The values that select and order the rows of a list, by field."""
        return self._set(LISTING)

    def _set(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}


LISTING: Final = ("search", "unvisited", "sorted_by", "ascending", "skipped", "shown")
"""The fields of a Scope that select and order the rows of a list. Each field that is set is a session variable."""
FILTERS: Final = tuple(field.name for field in fields(Scope) if field.default is None and field.name not in LISTING)
"""The fields of a Scope that are filters, unlike organization and days. Each field that is set is a session variable.
"""
