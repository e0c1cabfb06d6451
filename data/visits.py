"""What a visit is: its words and its columns. How a visit is classified or stored is not here."""

import re
from typing import Final, Literal, NamedTuple

import pyarrow as pa

from data.errors import BadInput, NewerVersion

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

FilledBy = Literal["request", "target", "visitor", "classification", "referrer", "campaign", "rules"]
"""Which step of the pipeline knows a column: the request as it was logged or reported, the path that it asked for, the
client's address and user agent, the classifier, the Referer header, the query's utm_ parameters, the rules themselves.
"""


class Column(NamedTuple):
    """One column of a visit."""

    name: str
    type: pa.DataType
    meaning: str
    filled_by: FilledBy
    since: int = 1
    """The first schema version that has it. In files of earlier ones it is null."""
    has_statistics: bool = False
    """Whether files keep the least and the greatest value of each row group: queries leave out row groups by them."""


_TEXT: Final = pa.string()

COLUMNS: Final = (
    Column("visited_at", pa.timestamp("us"), "when the request came, UTC", "request", has_statistics=True),
    Column("domain", _TEXT, "the host that was asked", "request", has_statistics=True),
    Column("short_code", _TEXT, "the link; null when the path is not one", "target", has_statistics=True),
    Column("path", _TEXT, 'without the query string; "" when the request line was unreadable', "target"),
    Column("method", _TEXT, "the HTTP method", "request"),
    Column("status", pa.int16(), "the HTTP status of the response", "request"),
    Column("bot_category", _TEXT, "one of BOT_CATEGORIES", "classification", has_statistics=True),
    Column("agent_kind", _TEXT, "what the automaton is for; null for people", "classification"),
    Column("ai_source", _TEXT, "the AI product; null when the visit is not AI-related", "classification"),
    Column("agent", _TEXT, "the name of the automaton", "classification"),
    Column("operator", _TEXT, "who operates the automaton", "classification"),
    Column("confidence", _TEXT, "one of CONFIDENCE_SCORES", "classification"),
    Column("detection_method", _TEXT, "by which kind of rule it was found", "classification"),
    Column("device_type", _TEXT, "one of DEVICE_TYPES", "classification"),
    Column("operating_system", _TEXT, "of a person's device", "classification"),
    Column("browser", _TEXT, "of a person", "classification"),
    Column("user_agent", _TEXT, "the User-Agent header in readable form", "request"),
    Column("country", _TEXT, "ISO 3166-1 alpha-2, as logged, else of the client's address", "visitor"),
    Column("referrer", _TEXT, "the host of the Referer header", "referrer"),
    Column("referrer_type", _TEXT, "one of REFERRER_TYPES", "referrer"),
    Column("utm_source", _TEXT, "the campaign's source", "campaign"),
    Column("utm_medium", _TEXT, "the campaign's medium", "campaign"),
    Column("utm_campaign", _TEXT, "the campaign's name", "campaign"),
    Column("utm_term", _TEXT, "the campaign's term", "campaign"),
    Column("utm_content", _TEXT, "the campaign's content", "campaign"),
    Column("visitor", pa.uint64(), "a salted hash of the day; null without a client's address", "visitor"),
    Column("is_malicious", pa.bool_(), "whether only probes for weaknesses ask for the path", "target"),
    Column("rules_version", _TEXT, "of the rules that classified it", "rules", has_statistics=True),
)
"""The columns of a visit, declared here only: whoever needs a list of them derives it from this one.

A new column is a row here, with `since` one above SCHEMA_VERSION, and the code that fills it. A row is never removed,
renamed or given another type: files that have it stay.
"""

SCHEMA_VERSION: Final = max(column.since for column in COLUMNS)
"""The version of visits that this program writes. It reads older ones, and refuses newer ones."""


def columns_filled_by(*steps: FilledBy) -> tuple[str, ...]:
    """The names of the columns that some steps of the pipeline fill, in their order."""
    return tuple(column.name for column in COLUMNS if column.filled_by in steps)


def visits_schema(version: int) -> pa.Schema:
    """The columns that visits had in a schema version that this program knows."""
    return pa.schema([(column.name, column.type) for column in COLUMNS if column.since <= version])


VISITS: Final = visits_schema(SCHEMA_VERSION)
"""The columns of one Parquet file. Its organization and its UTC day stand in its path, not in the file."""
VISITS_OF_DAYS: Final = VISITS.insert(0, pa.field("day", pa.date32()))
"""The columns of visits on their way into files, one for each day."""
UTM_FIELDS: Final = columns_filled_by("campaign")


def version_problem(version: int) -> str:
    """Why visits of a schema version cannot be read by this program; '' when they can."""
    if version <= SCHEMA_VERSION:
        return ""
    return (
        f"was written by a newer version of this program (visit schema {version}, this one knows {SCHEMA_VERSION}); "
        "upgrade"
    )


def check_version(version: int, what: str) -> None:
    """Raise NewerVersion when visits of a schema version, which lie in `what`, cannot be read by this program."""
    if problem := version_problem(version):
        raise NewerVersion(f"{what} {problem}.")


class Classification(NamedTuple):
    """The columns that the classifier fills, by user agent, method, referrer and campaign. None: does not apply."""

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
