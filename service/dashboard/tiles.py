"""The tiles of an overview: its figures, each with its change over complete days."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from data.text import plural
from queries import ENTRIES, Scope
from service.dashboard.comparison import Comparison
from service.reports.filters import Filters

FIGURES: Final = ENTRIES["figures-by-day"]
VISITORS: Final = "people_visitors"
READ_BY_AI: Final = "agent_fetches"
_REQUESTS: Final = ("ai_assistant_requests", "ai_training_requests", "ai_coding_agent_requests")
_SENT: Final = ("ai_referral_requests", "Sent by AI", "ai", "agents?traffic_type=ai_referral")
TILES: Final = (
    ("human_clicks", "Visits by people", "people", "people"),
    (VISITORS, "Visitors", "people", "people"),
    _SENT,
    (READ_BY_AI, "Read by AI", "ai", "ai"),
    ("other_visits", "Other bots", "other", "agents?traffic_type=other"),
)
"""The figures of an overview: the field of `figures-by-day`, label, colour, and the linked page with its query."""
OF_AI: Final = (
    ("ai_assistant_requests", "Assistants", "ai", "agents?traffic_type=ai_assistant"),
    ("ai_training_requests", "For training", "ai", "agents?traffic_type=ai_training"),
    ("ai_coding_agent_requests", "Coding agents", "ai", "agents?traffic_type=ai_coding_agent"),
    _SENT,
)
"""The figures of the page about AI."""

_OF_GROUP: Final = {
    "people": frozenset(("human_clicks", VISITORS, _SENT[0])),
    "ai": frozenset((READ_BY_AI, _SENT[0], *_REQUESTS)),
    "bots": frozenset(("other_visits",)),
}
"""The figures shown for a traffic_group; all others would be 0, as if there were no such visits."""

Figures = Mapping[str, Any]
"""The row of traffic-overview, or the sums of rows of figures-by-day. Visitors are people, and people sent by AI."""


@dataclass(frozen=True)
class Tile:
    """A figure with its label, colour, change and link."""

    field: str
    label: str
    color: str
    value: int | None  # None: no visit has an address, so visitors cannot be counted
    is_least: bool  # whether the value is a lower bound, since some visits have no address
    change: Mapping[str, str] | None
    href: str

    @property
    def text(self) -> str:
        """Return the figure as text: 1,234, at least 1,234, or an en dash."""
        return "–" if self.value is None else f"{'at least ' if self.is_least else ''}{self.value:,}"


def figures_of(rows: Sequence[Mapping[str, Any]], scope: Scope) -> Figures:
    """Return the sums of the rows of figures-by-day over the days of a scope."""
    days = [row for row in rows if str(scope.start_date) <= row["date"] <= str(scope.end_date)]
    return {field.name: sum(row[field.name] for row in days) for field in FIGURES.fields if field.name != "date"}


def filled_tiles(
    tiles: Sequence[tuple[str, str, str, str]],
    figures: Figures,
    compared: tuple[Comparison, Figures, Figures] | None,
    filters: Filters,
    *,
    has_links: bool,
) -> list[Tile]:
    """Return every tile of the shown group; `compared` has the comparison and the figures for both spans.

    Visitors have a change only if all of them are counted in both spans.
    """
    filled, chosen = [], filters.scope.traffic_group
    for field, label, color, target in tiles:
        if chosen and field not in _OF_GROUP[chosen]:
            continue
        path, _, fixed = target.partition("?")
        query = filters.query_string(traffic_type=fixed.partition("=")[2] or None)
        is_least = field == VISITORS and bool(figures["unidentified_people_visits"])
        value = None if is_least and not figures[field] else figures[field]
        change = None
        if compared:
            comparison, now, before = compared
            if field != VISITORS or not (now["unidentified_people_visits"] or before["unidentified_people_visits"]):
                change = comparison.change(field, now, before)
        href = f"{path}{query}" if target and has_links else ""
        filled.append(Tile(field, label, color, value, is_least, change, href))
    return filled


def unidentified_in_words(figures: Figures) -> str:
    """Return a sentence with the number of visits by people that have no address; "" if there are none."""
    count = figures["unidentified_people_visits"]
    have = "has" if count == 1 else "have"
    words = (
        f"{plural(count, 'visit')} by people {have} no address, so Visitors does not count the people who made {{}}."
    )
    return words.format("it" if count == 1 else "them") if count else ""


def disguised_in_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence with the number of visits reclassified from people to bots, and why; "" if there are none."""
    if not rows:
        return ""
    total, *signals = rows
    why = ", ".join(f"{row['signal'].replace('_', ' ')} ({row['visits']:,})" for row in signals)
    words = "looks like a browser but is a bot" if total["visits"] == 1 else "look like browsers but are bots"
    return f"{plural(total['visits'], 'visit')} {words}, judging by the whole day: {why}."
