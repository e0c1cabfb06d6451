"""The filter of every answer: organization, days, and optional filters. Built from parameters in parameters.py."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Scope:
    """The visits that an answer covers: one organization, from start_date to end_date (inclusive).

    A filter that is None is not applied. `traffic_type` is a bot_category, "ai" (the four AI-related categories) or
    "other" (the two other automated ones). The fields match the SQL type `scope` in prelude/3_scope.sql.
    """

    organization: str
    start_date: date
    end_date: date
    short_code: str | None = None
    domain: str | None = None
    traffic_type: str | None = None
    no_domain: bool | None = None  # True: only visits without a domain
