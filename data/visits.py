"""The columns of a visit and their allowed values. Visits are classified in rules/ and stored in store/."""

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
    "disguised": "other_bot",
    "prefetch": "other_bot",
    "other": "other_bot",
}
"""The bot_category of each agent_kind."""

DEVICE_TYPES: Final = ("desktop", "mobile", "tablet", "bot")
CONFIDENCE_SCORES: Final = {"verified": 1.0, "high": 0.9, "medium": 0.7, "low": 0.4, "contradicted": 0.0}
SHORT_CODE_PATTERN: Final = r"^/([A-Za-z0-9_-]{1,64})/?$"
"""The default pattern (RE2) of short codes: a path of one segment. The group captures the short code."""
REFERRER_TYPES: Final = ("direct", "internal", "search", "ai", "social", "email", "other")

FilledBy = Literal["request", "target", "visitor", "classification", "referrer", "campaign", "zone", "day", "rules"]
"""The step of the pipeline that fills a column.

request: the request as logged or reported. target: the requested path. visitor: client address and user agent.
classification: the classifier. referrer: the Referer header. campaign: the utm_ parameters. zone: the time zone of the
organization. day: the request and, once its day is over, all visits of that day. rules: the rules' version.
"""


class Column(NamedTuple):
    """One column of a visit."""

    name: str
    type: pa.DataType
    meaning: str
    filled_by: FilledBy
    since: int = 1
    """The first schema version with this column. In files of earlier versions it is null."""
    has_statistics: bool = False
    """True if files store the minimum and maximum of each row group, which queries use to skip row groups."""


_TEXT: Final = pa.string()

COLUMNS: Final = (
    Column("visited_at", pa.timestamp("us"), "the time of the request, UTC", "request", has_statistics=True),
    Column("domain", _TEXT, "the requested host", "request", has_statistics=True),
    Column("short_code", _TEXT, "the short code; null when the path is not a link", "target", has_statistics=True),
    Column("path", _TEXT, 'the path, without the query string; "" when the request line was unreadable', "target"),
    Column("method", _TEXT, "the HTTP method", "request"),
    Column("status", pa.int16(), "the HTTP status of the response", "request"),
    Column("bot_category", _TEXT, "one of BOT_CATEGORIES", "classification", has_statistics=True),
    Column("agent_kind", _TEXT, "the purpose of the bot; null for people", "classification"),
    Column("ai_source", _TEXT, "the AI product; null when the visit is not AI-related", "classification"),
    Column("agent", _TEXT, "the name of the bot", "classification"),
    Column("operator", _TEXT, "the operator of the bot", "classification"),
    Column("confidence", _TEXT, "one of CONFIDENCE_SCORES", "classification"),
    Column("detection_method", _TEXT, "the kind of rule that matched", "classification"),
    Column("device_type", _TEXT, "one of DEVICE_TYPES", "classification"),
    Column("operating_system", _TEXT, "the operating system of a person's device", "classification"),
    Column("browser", _TEXT, "the browser of a person", "classification"),
    Column("user_agent", _TEXT, "the User-Agent header in readable form", "request"),
    Column("country", _TEXT, "ISO 3166-1 alpha-2: as logged, otherwise looked up by the client's address", "visitor"),
    Column("referrer", _TEXT, "the host of the Referer header", "referrer"),
    Column("referrer_type", _TEXT, "one of REFERRER_TYPES", "referrer"),
    Column("utm_source", _TEXT, "the campaign's source", "campaign"),
    Column("utm_medium", _TEXT, "the campaign's medium", "campaign"),
    Column("utm_campaign", _TEXT, "the campaign's name", "campaign"),
    Column("utm_term", _TEXT, "the campaign's term", "campaign"),
    Column("utm_content", _TEXT, "the campaign's content", "campaign"),
    Column("visitor", pa.int64(), "a hash with a daily salt; null without a client address", "visitor"),
    Column("is_malicious", pa.bool_(), "whether only vulnerability scanners request the path", "target"),
    Column("protocol", _TEXT, "the HTTP version, such as HTTP/2; null where the log has none", "request"),
    Column("bytes_sent", pa.int64(), "the size of the response; null where the log has none", "request"),
    Column("utc_offset", pa.int16(), "offset of the organization's local time from UTC, in minutes", "zone"),
    Column("signals", pa.int64(), "bits of evidence from its request and the visits of its day; null: none yet", "day"),
    Column("rules_version", _TEXT, "the version of the rules that classified it", "rules", has_statistics=True),
)
"""The columns of a visit. All other lists of columns are derived from this list.

To add a column, add a row with `since` one above SCHEMA_VERSION, and the code that fills it. Never remove or rename a
row or change its type: existing files keep their columns.
"""

SCHEMA_VERSION: Final = max(column.since for column in COLUMNS)
"""The schema version that this program writes. It reads older versions and rejects newer ones."""


def columns_filled_by(*steps: FilledBy) -> tuple[str, ...]:
    """Return the names of the columns that the given steps of the pipeline fill, in the order of COLUMNS."""
    return tuple(column.name for column in COLUMNS if column.filled_by in steps)


def visits_schema(version: int) -> pa.Schema:
    """Return the Arrow schema of visits in a schema version up to SCHEMA_VERSION."""
    return pa.schema([(column.name, column.type) for column in COLUMNS if column.since <= version])


VISITS: Final = visits_schema(SCHEMA_VERSION)
"""The schema of a Parquet file of visits. The organization, and the day in its zone, are in the file's path."""
VISITS_OF_DAYS: Final = VISITS.insert(0, pa.field("day", pa.date32()))
"""The schema of visits that are not in files yet. `day`, in the organization's zone, decides which file gets them."""
UTM_FIELDS: Final = columns_filled_by("campaign")


def version_problem(version: int) -> str:
    """Return why this program cannot read visits of a schema version; '' if it can."""
    if version <= SCHEMA_VERSION:
        return ""
    return (
        f"was written by a newer version of this program (visit schema {version}, this one reads up to "
        f"{SCHEMA_VERSION}); upgrade"
    )


def check_version(version: int, what: str) -> None:
    """Raise NewerVersion if this program cannot read visits of a schema version; `what` begins the message."""
    if problem := version_problem(version):
        raise NewerVersion(f"{what} {problem}.")


class Classification(NamedTuple):
    """The columns that the classifier fills from user agent, method, referrer and campaign. None means not
    applicable.
    """

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
    """Return whether `name` is a valid organization name: 1 to 64 of A-Z a-z 0-9 _ -, not starting with _."""
    return _ORGANIZATION.fullmatch(name) is not None


def check_organization(name: str) -> str:
    """Return `name`; raise BadInput if it is not a valid organization name."""
    if not is_organization(name):
        raise BadInput(
            f"{name!r} is not a valid organization name: use 1 to 64 characters from A-Z, a-z, 0-9, _ and -, not "
            "beginning with _."
        )
    return name
