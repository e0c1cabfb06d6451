"""What a visit is: its words and its one schema. How a visit is classified or stored is not here."""

import re
from typing import Final, NamedTuple

import pyarrow as pa

from data.errors import BadInput

AI_CATEGORIES: Final = ("ai_assistant", "ai_training", "ai_coding_agent", "ai_referral")
OTHER_CATEGORIES: Final = ("search_crawler", "other_bot")
BOT_CATEGORIES: Final = ("human", *AI_CATEGORIES, *OTHER_CATEGORIES)

CATEGORY_OF_KIND: Final = {
    "assistant_fetch": "ai_assistant",
    "agentic_browser": "ai_assistant",
    "ai_search_index": "ai_assistant",
    "training": "ai_training",
    "ai_data_provider": "ai_training",
    "coding_agent": "ai_coding_agent",
    "referral": "ai_referral",
    "search": "search_crawler",
    "seo": "other_bot",
    "monitor": "other_bot",
    "preview": "other_bot",
    "feed": "other_bot",
    "library": "other_bot",
    "scanner": "other_bot",
    "other": "other_bot",
}
"""agent_kind → bot_category: the only place where one follows from the other."""

DEVICE_TYPES: Final = ("desktop", "mobile", "tablet", "bot")
CONFIDENCE_SCORES: Final = {"verified": 1.0, "high": 0.9, "medium": 0.7, "low": 0.4, "contradicted": 0.0}
SHORT_CODE_PATTERN: Final = r"^/([A-Za-z0-9_-]{1,64})/?$"
"""A link is the only segment of a path, unless an import says otherwise."""
REFERRER_TYPES: Final = ("direct", "search", "ai", "social", "email", "other")

VISITS: Final = pa.schema(
    [
        ("visited_at", pa.timestamp("us")),  # UTC
        ("domain", pa.string()),
        ("short_code", pa.string()),  # null when the path is not a link
        ("path", pa.string()),  # without the query string; "" when the request line was unreadable
        ("method", pa.string()),
        ("status", pa.int16()),
        ("bot_category", pa.string()),
        ("agent_kind", pa.string()),  # null for people
        ("ai_source", pa.string()),  # null when not AI-related
        ("agent", pa.string()),
        ("operator", pa.string()),
        ("confidence", pa.string()),
        ("detection_method", pa.string()),
        ("device_type", pa.string()),
        ("operating_system", pa.string()),
        ("browser", pa.string()),
        ("user_agent", pa.string()),
        ("country", pa.string()),  # ISO 3166-1 alpha-2
        ("referrer", pa.string()),  # host only
        ("referrer_type", pa.string()),
        ("utm_source", pa.string()),
        ("utm_medium", pa.string()),
        ("utm_campaign", pa.string()),
        ("utm_term", pa.string()),
        ("utm_content", pa.string()),
        ("visitor", pa.uint64()),  # null without a client address
        ("is_malicious", pa.bool_()),
        ("rules_version", pa.string()),
    ]
)
"""The columns of one Parquet file. Its organization and its UTC day stand in its path, not in the file."""


class Classification(NamedTuple):
    """What is known of a visit from its user agent, method, referrer and campaign. None: does not apply."""

    bot_category: str
    agent_kind: str | None
    ai_source: str | None
    agent: str | None
    operator: str | None
    confidence: str | None
    detection_method: str | None
    device_type: str
    operating_system: str | None
    browser: str | None


_ORGANIZATION = re.compile(r"(?!_)[A-Za-z0-9_-]{1,64}")


def is_organization(name: str) -> bool:
    """Whether `name` may name an organization: 1 to 64 of A-Z a-z 0-9 _ -, not starting with _."""
    return _ORGANIZATION.fullmatch(name) is not None


def check_organization(name: str) -> str:
    """Return `name`; raise BadInput when it cannot name an organization."""
    if not is_organization(name):
        raise BadInput(f"{name!r} cannot name an organization: use 1 to 64 of A-Z a-z 0-9 _ -, not starting with _.")
    return name
