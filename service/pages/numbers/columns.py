"""What the fields of answers are called on pages, and how a cell of each is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Final

from markupsafe import Markup, escape

from queries import Field
from service.pages import formats
from service.pages.numbers.charts import bar

LABELS: Final = {
    "short_code": "Link",
    "target_url": "Target",
    "total_visits": "Visits",
    "human_clicks": "By people",
    "human_visits": "By people",
    "ai_visits": "AI-related",
    "other_visits": "Other",
    "mobile_visits": "Mobile",
    "desktop_visits": "Desktop",
    "ai_assistant_requests": "Assistants",
    "ai_training_requests": "Training",
    "ai_coding_agent_requests": "Coding agents",
    "ai_referral_requests": "AI referrals",
    "ai_pct": "AI share",
    "percentage": "Share",
    "unique_visitors": "Visitors",
    "pages_accessed": "Pages",
    "ai_source": "AI source",
    "agent_fetches": "Agent fetches",
    "ai_referrals": "People sent",
    "conversion_rate": "People sent per 100 fetches",
    "fetches_per_referral": "Fetches per person",
    "links_fetched": "Links fetched",
    "links_referred": "Links sent to",
    "links_reached": "Links fetched",
    "days_to_first_fetch": "Days until then",
    "fetches_before": "Fetches before",
    "fetches_by_chance": "By chance",
    "country_name": "Country",
    "country": "Code",
    "day_name": "Day",
    "avg_visits": "Average",
    "days_in_range": "Days",
    "utm_source": "Source",
    "utm_medium": "Medium",
    "utm_campaign": "Campaign",
    "referrer_type": "Type",
    "bot_category": "Category",
    "agent_kind": "Purpose",
    "errors_4xx": "4xx",
    "errors_5xx": "5xx",
    "bytes_sent": "Sent",
    "short_codes": "Links",
    "value_per_visit": "Value of one",
    "estimated_value": "Estimated value",
    "value_percentage": "Share of value",
    "is_new": "New",
    "change_percentage": "Change",
    "week": "Week of",
    "oldest_age_seconds": "Oldest (s)",
    "ttl_seconds": "Kept for (s)",
    "scope": "Endpoint",
    "device_type": "Device",
}
"""The labels of fields whose names, with spaces, are not good ones."""

_BADGE: Final = Markup('<span class="badge %s"><span aria-hidden="true">%s</span> %s</span>')
_CHANGE: Final = Markup('<data value="%s"><span aria-hidden="true">%s</span> %s</data>')
_SIGNS: Final = {"verified": "✓", "high": "●", "medium": "◐", "low": "○", "contradicted": "✗", "new": "★"}
_PERCENTAGES: Final = frozenset(
    ("percentage", "ai_pct", "ai_percentage", "hit_rate", "value_percentage", "change_percentage")
)
_DECIMALS: Final = frozenset(
    (
        "avg_visits",
        "score",
        "conversion_rate",
        "fetches_per_referral",
        "fetches_by_chance",
        "value_per_visit",
        "estimated_value",
    )
)

_KINDS: Final = {"percentage": "share", "confidence": "badge", "month": "month", "bytes_sent": "size"}
"""The kinds of single fields."""
_WORDS: Final = frozenset(("bot_category", "agent_kind", "traffic_type", "detection_method", "signal"))
"""Fields whose values are words of the API, written as people write them."""


@dataclass(frozen=True)
class TableColumn:
    """One column of a table: a field of an answer, and what its cells look like."""

    field: str
    label: str
    kind: str  # text, number, decimal, percent, size, share, day, month, time, flag, badge, change, word or list

    @cached_property
    def css(self) -> str:
        """The class of its cells."""
        return {
            "decimal": "number",
            "percent": "number",
            "size": "number",
            "month": "day",
            "flag": "text",
            "list": "text",
            "word": "text",
        }.get(self.kind, self.kind)


SHARE_OF_PEOPLE: Final = TableColumn("share_of_people", "Share", "share")
"""The share of the visits by people, which no answer has: its percentage is of all visits."""
OTHER: Final = TableColumn("other_visits", "Other", "number")
"""The visits by neither people nor AI, where the answer has only those and all."""
PREVIOUS: Final = TableColumn("previous_visits", "Period before", "number")
"""All visits of the hour or day of the same number in the period before."""

BEFORE: Final = TableColumn("before", "Before", "number")
"""The figure of a row in the period before."""
CHANGE: Final = TableColumn("change", "Change", "change")
"""The change of that figure in percent: infinite for what is new, None where it is not known."""


def column_of(field: Field) -> TableColumn:
    """The column for a field of an answer."""
    label = LABELS.get(field.name) or field.name.replace("_", " ").capitalize()
    return TableColumn(field.name, label, _kind_of(field))


def cell(column: TableColumn, value: object, color: str, href: str) -> Markup:
    """The content of a cell. What the API answers is the `value` of its <data> element, or else its text."""
    text = plain(column, value)
    match column.kind:
        case "text" | "list":
            shown = escape(text)
        case "badge":
            shown = _badge(str(value))
        case "flag":
            shown = _data("true" if value else "false", text)
        case "change" if value is not None:
            arrow, _, words = text.partition(" ")
            shown = _CHANGE % (value if value != inf else "Infinity", arrow, words)
        case "share":
            shown = bar(float(str(value or 0)), color) + _data(value, text)
        case _:
            shown = _data(value, text)
    return Markup(f'<a href="{escape(href)}">{shown}</a>') if href else shown  # noqa: S704  # shown is markup


def plain(column: TableColumn, value: object) -> str:
    """The content of a cell as plain text."""
    match column.kind:
        case "word":
            return formats.humanize(str(value))
        case "text" | "list" | "badge":
            return ", ".join(value) if isinstance(value, list) else str(value)
        case "flag":
            return "yes" if value else "no"
        case "share":
            return formats.percent(_as_number(value))
        case "change":
            return _change(_as_number(value))
        case kind:
            return _FORMATS[kind](value)


def _change(percent: float | None) -> str:
    """A change in words, after an arrow or a sign."""
    if percent is None:
        return "–"
    return "★ new" if percent == inf else " ".join(formats.change_in_words(round(10 * percent)))


def _kind_of(field: Field) -> str:
    if field.name in _KINDS:
        return _KINDS[field.name]
    if field.name in _WORDS:
        return "word"
    if field.name in _PERCENTAGES:
        return "percent"
    if field.name in _DECIMALS:
        return "decimal"
    kinds = {"VARCHAR": "text", "DATE": "day", "TIMESTAMP": "time", "BOOLEAN": "flag", "VARCHAR[]": "list"}
    return kinds.get(field.kind.sql, "number")


def _data(value: object, text: str) -> Markup:
    """A value as the API has it, and the text that is shown."""
    raw = value if isinstance(value, int | float) else escape("" if value is None else value)
    return Markup(f'<data value="{raw}">{escape(text)}</data>')  # noqa: S704  # a number, or escaped


def _badge(text: str) -> Markup:
    """A confidence as a badge: a sign, hidden from screen readers, and the word."""
    sign = _SIGNS.get(text)
    if sign is None:
        return escape(text)
    return _BADGE % (text, sign, _data(text, text))


def _as_number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


_FORMATS: Final[Mapping[str, Callable[[Any], str]]] = {
    "number": formats.number,
    "decimal": formats.decimal,
    "percent": formats.percent,
    "size": formats.size,
    "day": formats.day,
    "month": formats.month,
    "time": formats.moment,
}
