"""The classes of visits that tables and charts show for the chosen group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from service.core.pages.columns import TableColumn

_OF_AI: Final = ("ai_assistant_requests", "ai_training_requests", "ai_coding_agent_requests")
_OF_PEOPLE: Final = ("human_clicks", "human_visits", "people_visitors")
_SENT: Final = {"ai_visits": "Sent by AI"}


@dataclass(frozen=True)
class Group:
    """A value of traffic_group: its legend, its colour, and the fields that are always 0 in it."""

    legend: tuple[tuple[str, str], ...]  # the CSS class and the label of each class of visits
    color: str  # colour of charts that do not distinguish classes
    empty: frozenset[str] = frozenset()
    labels: Mapping[str, str] | None = None  # labels of fields that have a narrower meaning in this group
    has_split: bool = False  # whether it has more than one class

    def columns(self, columns: Sequence[TableColumn]) -> tuple[TableColumn, ...]:
        """Return the columns without this group's empty fields, under this group's labels."""
        labels = self.labels or {}
        shown = (column for column in columns if column.field not in self.empty)
        return tuple(replace(one, label=labels[one.field]) if one.field in labels else one for one in shown)


GROUPS: Final[Mapping[str | None, Group]] = {
    None: Group((("people", "People"), ("ai", "AI"), ("other", "Other bots")), "plain", has_split=True),
    "people": Group(
        (("people", "People"), ("ai", "Sent by AI")), "people", frozenset(("other_visits", *_OF_AI)), _SENT, True
    ),
    "ai": Group((("ai", "AI"),), "ai", frozenset(("other_visits", *_OF_PEOPLE))),
    "bots": Group(
        (("other", "Other bots"),), "other",
        frozenset(("ai_visits", "ai_pct", "ai_referral_requests", *_OF_AI, *_OF_PEOPLE)),
    ),
}  # fmt: skip
"""The group for each traffic_group of a scope; None: all visits."""
