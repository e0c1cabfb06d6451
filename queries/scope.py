"""The one filter of every answer: whose visits, and which of them. Where it comes from is not decided here."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Scope:
    """Whose visits of which days (UTC, both included); None: not filtered. Its fields are the SQL type's.

    `traffic_type` is a bot_category, "ai" (the four AI-related) or "other" (both other automated).
    """

    organization: str
    start_date: date
    end_date: date
    short_code: str | None = None
    domain: str | None = None
    traffic_type: str | None = None
