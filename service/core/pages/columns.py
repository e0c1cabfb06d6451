"""Labels for fields on pages, and the contents of table cells."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Final

from markupsafe import Markup, escape

from queries import Field
from service.core.pages import formats
from service.core.pages.charts import bar

LABELS: Final = {
    "short_code": "Link", "target_url": "Target", "total_visits": "Visits", "human_clicks": "By people",
    "human_visits": "By people", "ai_visits": "By AI", "other_visits": "Other bots", "mobile_visits": "Mobile",
    "desktop_visits": "Desktop", "ai_assistant_requests": "Assistants", "ai_training_requests": "For training",
    "ai_coding_agent_requests": "Coding agents", "ai_referral_requests": "Sent by AI", "ai_pct": "AI share",
    "percentage": "Share", "unique_visitors": "Visitors", "pages_accessed": "Pages", "ai_source": "Platform",
    "agent_fetches": "Read by AI", "ai_referrals": "Sent by AI", "conversion_rate": "Sent per 100",
    "visits_per_answer": "Sent per answer", "asked": "For users", "indexed": "For search", "trained": "For training",
    "coding": "For coding", "fetches_per_referral": "Read per person", "links_fetched": "Links read",
    "links_referred": "Links sent to", "links_reached": "Links read", "people_visitors": "Visitors",
    "fetches_before": "Read before", "fetches_by_chance": "By chance", "country_name": "Country", "country": "Code",
    "day_name": "Day", "avg_visits": "Average", "days_in_range": "Days", "utm_source": "Source",
    "utm_medium": "Medium", "utm_campaign": "Campaign", "referrer_type": "Type", "bot_category": "Traffic type",
    "traffic_type": "Traffic type", "agent_kind": "Purpose", "confidence": "How sure", "detection_method": "Known by",
    "signal": "Sign", "alone": "Only this sign", "errors_4xx": "4xx", "errors_5xx": "5xx", "bytes_sent": "Bytes",
    "short_codes": "Links", "value_per_visit": "Per visit", "estimated_value": "Value",
    "value_percentage": "Share of value", "is_new": "New", "change_percentage": "Change", "week": "Week of",
    "oldest_age_seconds": "Oldest (s)", "ttl_seconds": "Kept for (s)", "llms_txt": "llms.txt", "scope": "Endpoint",
    "device_type": "Device", "whole": "All requests", "first_seen": "First visit", "last_seen": "Last visit",
}  # fmt: skip
"""Labels for fields with names that are unsuitable as labels."""
_TITLES: Final = {
    "errors_4xx": "Missing or refused", "errors_5xx": "Server errors",
    "people_visitors": "People, including those whom AI sent",
}  # fmt: skip
"""Explanations of short labels."""

CATEGORIES: Final = {
    "human": "people", "ai_assistant": "assistants", "ai_training": "for training", "ai_coding_agent": "coding agents",
    "ai_referral": "sent by AI", "search_crawler": "search engines", "other_bot": "other bots", "ai": "AI",
    "other": "search engines and other bots",
}  # fmt: skip
"""Words for the values of bot_category, and of traffic_type, which groups the values of bot_category."""
_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "bot_category": CATEGORIES,
    "traffic_type": CATEGORIES,
    "confidence": {"high": "by name", "medium": "likely", "low": "maybe", "contradicted": "fake name"},
    "agent_kind": {
        "assistant_fetch": "for users", "agentic_browser": "browser agent", "ai_search_index": "for search",
        "training": "for training", "ai_data_provider": "for AI data", "coding_agent": "for coding",
        "referral": "sent by AI", "search": "search engine", "preview": "link preview", "feed": "feed reader",
        "library": "program", "prefetch": "loaded ahead", "disguised": "in disguise",
    },
    "detection_method": {"ip_range": "address", "utm": "utm tag", "heuristic": "pattern", "edge": "CDN"},
}  # fmt: skip
"""Words shown instead of values, by field and value."""

_MAX_UNCUT: Final = 30
"""Maximum length of text that is never cut. Longer text is cut after three lines, as is a row's heading if it is a
link."""
_HOSTS: Final = frozenset(("domain", "referrer", "source"))
"""Fields with names of hosts, which a narrow table may break at dots."""
_CUT: Final = Markup('<span class="cut">%s</span>')
_BADGE: Final = Markup('<span class="badge %s"><span aria-hidden="true">%s</span> %s</span>')
_CHANGE: Final = Markup('<data value="%s"><span aria-hidden="true">%s</span> %s<span class="more">%s</span></data>')
_ADDRESS: Final = Markup('<data value="%s" title="%s"><span>%s</span><span>%s</span></data>')
_SHOWN_END: Final = 14
"""Number of characters at the end of an address that are never cut, since addresses differ at the end."""
_TIME: Final = Markup('<data value="%s" title="%s">%s</data>')
_SIGNS: Final = {"verified": "✓", "high": "●", "medium": "◐", "low": "○", "contradicted": "✗", "new": "★"}
_FIELDS_OF_KIND: Final = {
    "percent": "ai_pct ai_percentage hit_rate value_percentage change_percentage top_share",
    "decimal": "avg_visits conversion_rate fetches_per_referral fetches_by_chance",
    "amount": "score visits_per_answer value_per_visit estimated_value",
    # words of the API, shown as readable text
    "word": "bot_category agent_kind traffic_type detection_method signal referrer_type",
    "share": "percentage",
    "badge": "confidence",
    "hour": "hour",
    "month": "month",
    "size": "bytes_sent",
}
_KIND_OF_FIELD: Final = {name: kind for kind, names in _FIELDS_OF_KIND.items() for name in names.split()}
_KIND_OF_TYPE: Final = {"VARCHAR": "text", "DATE": "day", "TIMESTAMP": "time", "BOOLEAN": "flag", "VARCHAR[]": "list"}
"""Kinds of all other fields, by SQL type; a field with any other type is a number."""
_CSS: Final = {
    **dict.fromkeys(("decimal", "amount", "percent", "size", "hour"), "number"),
    **dict.fromkeys(("flag", "list", "word"), "text"),
    "month": "day",
}
"""The CSS class for cells of a kind, if its name differs from the kind's."""


@dataclass(frozen=True)
class TableColumn:
    """One column of a table: a field of an answer, and the format of its cells."""

    field: str
    label: str
    kind: str
    """One of the keys of _FORMATS, such as text, number, share, day or flag."""

    @cached_property
    def css(self) -> str:
        """The CSS class of the cells in the column."""
        return "address" if self.field == "target_url" else _CSS.get(self.kind, self.kind)

    @property
    def title(self) -> str:
        """The explanation of a short label; "" for other labels."""
        return _TITLES.get(self.field, "")


SHARE_OF_PEOPLE: Final = TableColumn("share_of_people", "Share", "share")
"""A row's share of all visits by people, which no answer contains: answers have percentages of all visits."""
PROOF: Final = TableColumn("proof", "Proof", "text")
"""The numbers of verified, signed and merely claimed fetches, and of contradicted visits."""
PEOPLE_VISITORS: Final = TableColumn("people_visitors", "Visitors", "number")
"""The visitors among people and AI referrals, for answers that also count all visitors."""
OTHER: Final = TableColumn("other_visits", "Other bots", "number")
"""The visits by neither people nor AI, for answers that have only people, AI and the total."""
PREVIOUS: Final = TableColumn("previous_visits", "Period before", "number")
"""All visits in the corresponding hour or day of the previous period."""

BEFORE: Final = TableColumn("before", "Before", "number")
"""A row's count in the previous period."""
CHANGE: Final = TableColumn("change", "Change", "change")
"""A count's change since the previous period, in percent: infinite for new rows, None if unknown or if both are 0."""


_KIND: Final = TableColumn("agent_kind", LABELS["agent_kind"], "word")


def column_of(field: Field) -> TableColumn:
    """Return the column for a field of an answer."""
    label = LABELS.get(field.name) or field.name.replace("_", " ").capitalize()
    kind = _KIND_OF_FIELD.get(field.name) or _KIND_OF_TYPE.get(field.kind.sql, "number")
    return TableColumn(field.name, label, kind)


def cell(column: TableColumn, row: Mapping[str, Any], color: str, href: str, most: float = 100) -> Markup:
    """Return the content of a row's cell. The API's value is the `value` of its <data> element, or its text.

    `most` is the largest share in the column, for which the bar is full.
    """
    value, text = row[column.field], plain(column, row)
    match column.kind:
        case "text" if value == "unknown" != text:
            shown = _data(value, text)
        case "badge" if value in _SIGNS:  # a sign, hidden from screen readers, and the word
            shown = _BADGE % (value, _SIGNS[str(value)], _data(value, text))
        case "text" if column.css == "address" and value:  # without the scheme and www., which most addresses share
            rest = text.partition("://")[2].removeprefix("www.") or text
            shown = _ADDRESS % (text, text, rest[:-_SHOWN_END], rest[-_SHOWN_END:])
        case "text" | "list" | "badge":
            is_long = not href and len(text) > _MAX_UNCUT
            parts = text.split(".") if column.field in _HOSTS else [text]
            shown = _CUT % text if is_long else Markup(".<wbr>").join(parts)
        case "flag":
            shown = _data("true" if value else "false", text)
        case "change" if value is not None:
            arrow, _, words = text.partition(" ")
            figure, sign, more = words.rpartition(" %")
            shown = _CHANGE % (value if value != inf else "Infinity", arrow, figure + sign, more)
        case "share":
            shown = bar(100 * float(str(value or 0)) / most, color) + _data(value, text)
        case "time" if value:  # the day, so that it fits on a narrow screen; the time is in its title
            shown = _TIME % (value, text, text.rpartition(" ")[0])
        case _:
            shown = _data(value, text)
    return Markup(f'<a href="{escape(href)}">{shown}</a>') if href else shown  # noqa: S704  # shown is markup


def plain(column: TableColumn, row: Mapping[str, Any]) -> str:
    """Return the content of a row's cell as plain text. An unnamed agent is shown as unknown, with its kind in
    parentheses.
    """
    value = row[column.field]
    if column.field == "agent" and value == "unknown" and "agent_kind" in row:
        return f"unknown ({plain(_KIND, row)})"
    if word := _WORDS.get(column.field, {}).get(str(value)):
        return word
    return _FORMATS[column.kind](value)


def _text(value: object) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


def _data(value: object, text: str) -> Markup:
    """Return a <data> element with the API's value and the displayed text."""
    raw = value if isinstance(value, int | float) else escape("" if value is None else value)
    return Markup(f'<data value="{raw}">{escape(text)}</data>')  # noqa: S704  # a number, or escaped


_FORMATS: Final[Mapping[str, Callable[[Any], str]]] = {
    **dict.fromkeys(("text", "list", "badge"), _text),
    "word": formats.humanize,
    "flag": lambda value: "yes" if value else "no",
    "number": formats.number,
    "decimal": formats.decimal,
    "amount": formats.amount,
    "percent": formats.percent,
    "share": formats.percent,
    "change": formats.change,
    "size": formats.size,
    "hour": formats.hour,
    "day": formats.day,
    "month": formats.month,
    "time": formats.moment,
}
