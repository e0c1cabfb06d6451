"""The fields of answers. Each is declared once, with its type and meaning, for all entries that use it."""

from dataclasses import dataclass, replace
from typing import Any, Final

from data.signals import SIGNALS


@dataclass(frozen=True)
class Kind:
    """The type of a field: its DuckDB type, as DESCRIBE prints it, and its JSON Schema."""

    sql: str
    schema: dict[str, Any]


TEXT: Final = Kind("VARCHAR", {"type": "string"})
COUNT: Final = Kind("BIGINT", {"type": "integer", "minimum": 0})
NUMBER: Final = Kind("DOUBLE", {"type": "number"})
DAY: Final = Kind("DATE", {"type": "string", "format": "date"})
TIMESTAMP: Final = Kind("TIMESTAMP", {"type": "string", "format": "date-time"})
FLAG: Final = Kind("BOOLEAN", {"type": "boolean"})
LIST: Final = Kind("VARCHAR[]", {"type": "array", "items": {"type": "string"}})


@dataclass(frozen=True)
class Field:
    """One property of the objects in an answer."""

    name: str
    kind: Kind
    meaning: str
    nullable: bool = False


def as_nullable(field: Field) -> Field:
    """Return a copy of the field that may be null, for example because its divisor is zero."""
    return replace(field, nullable=True)


TOTAL_VISITS = Field("total_visits", COUNT, "observed HTTP requests")
VISITS = Field("visits", COUNT, "observed HTTP requests")
HUMAN_CLICKS = Field("human_clicks", COUNT, "requests by people; AI referrals count as AI-related instead")
HUMAN_VISITS = Field("human_visits", COUNT, "requests by people; AI referrals count as AI-related instead")
AI_VISITS = Field("ai_visits", COUNT, "requests in the four AI-related categories together")
OTHER_VISITS = Field("other_visits", COUNT, "other automated requests")
AI_ASSISTANT_REQUESTS = Field("ai_assistant_requests", COUNT, "requests by AI assistants and AI search indexes")
AI_TRAINING_REQUESTS = Field("ai_training_requests", COUNT, "requests by training crawlers")
AI_CODING_AGENT_REQUESTS = Field("ai_coding_agent_requests", COUNT, "requests by coding agents")
AI_REFERRAL_REQUESTS = Field("ai_referral_requests", COUNT, "requests by people who were referred by an AI product")
MOBILE_VISITS = Field("mobile_visits", COUNT, "requests from phones")
DESKTOP_VISITS = Field("desktop_visits", COUNT, "requests from desktops")
AI_PERCENTAGE = Field("ai_percentage", NUMBER, "AI-related share of all requests, 0 to 100")
AI_PCT = Field("ai_pct", NUMBER, "AI-related share of all requests, 0 to 100")
PERCENTAGE = Field("percentage", NUMBER, "share of the visits in this answer, 0 to 100")
UNIQUE_VISITORS = Field(
    "unique_visitors",
    COUNT,
    "distinct visitor hashes per day, summed over days because hashes change daily; 0: unavailable; "
    "for (other), the sum over its rows",
)
PEOPLE_VISITORS = Field("people_visitors", COUNT, "unique_visitors, counting only people and AI referrals")
UNIDENTIFIED_VISITS = Field(
    "unidentified_visits", COUNT, "requests without a client address, which unique_visitors leaves out"
)
UNIDENTIFIED_PEOPLE_VISITS = Field(
    "unidentified_people_visits",
    COUNT,
    "requests by people, including AI referrals, without a client address; people_visitors leaves them out",
)
SIGNAL = Field("signal", TEXT, "total, or the name of a signal: " + ", ".join(one.name for one in SIGNALS))
STORED = Field("stored", COUNT, "all stored requests, including those that are not counted")
FILES = Field("files", COUNT, "stored requests for files, which are counted unless files are set aside")
OWN = Field("own", COUNT, "stored requests that are not counted because the owner excludes them")
DISGUISED = Field(
    "disguised",
    COUNT,
    "stored requests with a browser's user agent that were judged to be a bot's",
)
LOADED_AHEAD = Field("loaded_ahead", COUNT, "a browser's stored requests to prefetch pages that were never opened")
REASON = Field(
    "reason",
    TEXT,
    "why the request is not counted as a person's: file, own, disguised, loaded_ahead, probe or no_agent",
)
REQUESTED_AT = Field("visited_at", TIMESTAMP, "time of the request")
USER_AGENT = Field("user_agent", TEXT, "the user agent as it was sent, or unknown")
ALONE = Field("alone", COUNT, "requests with this signal only")
PAGES_ACCESSED = Field(
    "pages_accessed", COUNT, "distinct non-empty requested paths; for (other), the sum over its agents"
)
FIRST_SEEN = Field("first_seen", TIMESTAMP, "time of the first request in scope")
LAST_SEEN = Field("last_seen", TIMESTAMP, "time of the last request in scope")

AI_SOURCE = Field("ai_source", TEXT, "AI platform; the same label for its fetches and its referrals")
AGENT_FETCHES = Field("agent_fetches", COUNT, "requests made by the platform's own agents")
AI_REFERRALS = Field("ai_referrals", COUNT, "requests by people who were referred by the platform")
BOT_CATEGORY = Field("bot_category", TEXT, "one of the seven categories")
CONFIDENCE = Field(
    "confidence", TEXT, "confidence of the classification: verified, high, medium, low, contradicted or unknown"
)
COUNTRY = Field("country", TEXT, "ISO 3166-1 alpha-2 code, or unknown")
COUNTRY_NAME = Field("country_name", TEXT, "English name of the country")
DATE = Field("date", DAY, "day in the organization's time zone")
MONTH = Field("month", DAY, "first day of the month")
DAY_NAME = Field("day_name", TEXT, "Monday to Sunday")
DAY_OF_WEEK = Field("day_of_week", COUNT, "1 is Monday, 7 is Sunday")
DEVICE_TYPE = Field("device_type", TEXT, "desktop, mobile, tablet, bot or unknown")
DOMAIN = Field("domain", TEXT, "requested domain")
NAMED_SUBJECT = Field("subject", TEXT, "agent or referrer")
NAME = Field("name", TEXT, "the agent, or the referring host")
HOUR = Field("hour", COUNT, "hour of the day in the organization's time zone, 0 to 23")
OPERATOR = Field("operator", TEXT, "company or project that runs the agent")
SHORT_CODE = Field("short_code", TEXT, "short code of the link")
TARGET_URL = Field("target_url", TEXT, "URL that the link redirects to")
TAG = Field("tag", TEXT, "tag of links; a request to a link with two tags counts under both")
TOOL = Field("tool", TEXT, "developer tool, by the name of its AI source")
WEEK = Field("week", DAY, "Monday of the week; only days within the range are counted")
AVG_VISITS = Field("avg_visits", NUMBER, "average visits per matching day in the range", nullable=True)

ACTIVE_DAYS = Field("active_days", COUNT, "days with at least one request")
IS_NEW = Field("is_new", FLAG, "whether this is the tool's first week in scope")
CHANGE_PERCENTAGE = Field(
    "change_percentage", NUMBER, "change in visits from the week before, in percent", nullable=True
)
DETECTION_METHOD = Field(
    "detection_method",
    TEXT,
    "ip_range, signature, user_agent, referrer, utm, path, heuristic, edge, header, behaviour or unknown",
)
SCORE = Field("score", NUMBER, "confidence as a number, 0 to 1", nullable=True)
LAST_VISIT = Field("last_visit", TIMESTAMP, "time of the last request in scope")
LINK_CREATED_AT = Field(
    "created_at", TIMESTAMP, "time when the link was created, if the links file contains it", nullable=True
)
LINK_TAGS = Field("tags", LIST, "tags of the link, sorted")
CONVERSION_RATE = Field("conversion_rate", NUMBER, "referrals per 100 fetches", nullable=True)
FETCHES_PER_REFERRAL = Field("fetches_per_referral", NUMBER, "fetches per referral", nullable=True)
VISITS_PER_ANSWER = Field(
    "visits_per_answer",
    NUMBER,
    "visits by people whom the operator's products sent, per request made for a user",
    nullable=True,
)
PURPOSE = Field("purpose", TEXT, "purpose of an AI agent's fetches: asked, indexed, trained or coding")
ASKED = Field("asked", COUNT, "requests made for a user of an assistant")
INDEXED = Field("indexed", COUNT, "requests made to build an AI search index")
TRAINED = Field("trained", COUNT, "requests made for training")
CODING = Field("coding", COUNT, "requests by coding agents")
MARKDOWN = Field("markdown", COUNT, "requests for pages in Markdown, with paths that end in .md")
LLMS_TXT = Field("llms_txt", COUNT, "requests for llms.txt or llms-full.txt")
FETCHES_BEFORE = Field("fetches_before", COUNT, "fetches before the operator's products sent a person", nullable=True)
FETCHES_BY_CHANCE = Field(
    "fetches_by_chance", NUMBER, "fetches_before expected by chance: its average with shuffled times", nullable=True
)
LINKS_REACHED = Field(
    "links_reached", COUNT, "distinct links that the operator's agents fetched, each a short code on a domain"
)
CONTRADICTED = Field(
    "contradicted",
    COUNT,
    "requests that name the operator's agents but come from other addresses; not in any other count",
)
LINKS_FETCHED = Field("links_fetched", COUNT, "distinct links fetched by the platform's agents")
LINKS_REFERRED = Field("links_referred", COUNT, "distinct links that the platform referred people to")
TRAFFIC_TYPE = Field("traffic_type", TEXT, "one of the seven categories")
VALUE_PER_VISIT = Field("value_per_visit", NUMBER, "configured value of one visit of this type")
ESTIMATED_VALUE = Field("estimated_value", NUMBER, "visits times value_per_visit")
VALUE_PERCENTAGE = Field("value_percentage", NUMBER, "share of the total estimated value in this answer", nullable=True)
CURRENCY = Field("currency", TEXT, "currency of the values")
OPERATING_SYSTEM = Field("operating_system", TEXT, "family of the operating system")
BROWSER = Field("browser", TEXT, "family of the browser")
PROTOCOL = Field("protocol", TEXT, "HTTP version, such as HTTP/2")
DAYS_IN_RANGE = Field("days_in_range", COUNT, "number of matching days in the range")
RANK = Field("rank", COUNT, "1 is the busiest")
PERIOD = Field("period", TEXT, "weekday or weekend")
DAYS = Field("days", COUNT, "number of matching days in the range")
UTM_SOURCE = Field("utm_source", TEXT, "utm_source of the campaign, unknown or (other)")
UTM_MEDIUM = Field("utm_medium", TEXT, "utm_medium of the campaign, unknown or (other)")
UTM_CAMPAIGN = Field("utm_campaign", TEXT, "utm_campaign of the campaign, unknown or (other)")
REFERRER = Field("referrer", TEXT, "host of the referrer, (direct), or (other) for all hosts without a separate row")
REFERRER_TYPE = Field("referrer_type", TEXT, "direct, internal, search, ai, social, email, other or (other)")
REFERRER_SOURCE = Field("source", TEXT, "name shared by the hosts of one service, such as Google; otherwise the host")
LINKS_FOUND = Field("links_found", COUNT, "number of links in the whole list; an answer may contain only some of them")
SHORT_CODES = Field("short_codes", COUNT, "distinct requested links; for (other), the sum over its domains")
AGENT = Field("agent", TEXT, "product token found in the user agent, unknown or (other)")
AGENT_KIND = Field("agent_kind", TEXT, "purpose of the agent, more specific than the category")
ERRORS_4XX = Field("errors_4xx", COUNT, "requests answered with 400 to 499")
ERRORS_5XX = Field("errors_5xx", COUNT, "requests answered with 500 to 599")
BYTES_SENT = Field("bytes_sent", COUNT, "total size of the responses; those without a size in the log count as 0")
FILTER = Field("filter", TEXT, "name of the parameter or dimension")
VALUES = Field("values", LIST, "values that occur on the days in scope, sorted, at most 1,000")
TRUNCATED = Field("truncated", FLAG, "whether there are more values")

CACHE_SCOPE = Field("scope", TEXT, "total, or the name of an endpoint")
ENTRIES = Field("entries", COUNT, "number of cached answers")
HITS = Field("hits", COUNT, "requests answered from the cache")
MISSES = Field("misses", COUNT, "requests that had to be computed")
HIT_RATE = Field("hit_rate", NUMBER, "hits per 100 requests", nullable=True)
EVICTIONS = Field("evictions", COUNT, "answers removed before they expired to make room for others")
BYTES = Field("bytes", COUNT, "total size of the cached answers")
TTL_SECONDS = Field("ttl_seconds", COUNT, "how long an answer stays in the cache")
OLDEST_AGE_SECONDS = Field("oldest_age_seconds", COUNT, "age of the oldest cached answer", nullable=True)

PATH = Field("path", TEXT, "requested path, without the query string")
PATH_TEMPLATE = Field("path", TEXT, "requested path, in which * stands for any number, UUID, hash or long token")
TOP_PATHS = Field("top_paths", LIST, "the three paths with the most of the finding's requests")
TOP_AGENT = Field("top_agent", TEXT, "agent with the most requests of the finding, or a browser's whole user agent")
TOP_SHARE = Field("top_share", NUMBER, "share of the finding's requests that top_agent made, 0 to 100")
VISITORS = Field("visitors", COUNT, "distinct visitor hashes, which change daily; 0: unavailable")
AUDIENCE = Field("audience", TEXT, "who made most of the requests: people, AI, search (crawlers) or other (bots)")
ASKED_TO_PAY = Field("asked_to_pay", COUNT, "refused requests that were answered with 402 (Payment Required)")
MISSING = Field("missing", COUNT, "requests by people that were answered with 404 or 410")
REFERRED = Field("referred", COUNT, "how many of the finding's requests followed a link, according to their referrer")
IS_CATCH_ALL = Field("is_catch_all", FLAG, "whether the answers are one page that the domain sends for any path")
ANSWERED = Field("answered", COUNT, "requests answered with 200 to 299")
PROBED_PATHS = Field("paths", COUNT, "distinct paths of the requests that were answered with 200 to 299")
ANSWER_SIZE = Field("bytes_sent", COUNT, "size of the largest answer in bytes", nullable=True)
WHOLE = Field("whole", COUNT, "all requests to the domain on the days of the flood")
FAILED = Field("refused_or_failed", COUNT, "the agent's requests that were answered with 400 or above")
IS_INVENTED = Field("is_invented", FLAG, "whether people were sent to a path without a link or any answer below 400")
VERIFIED = Field("verified", COUNT, "requests that came from the published addresses of the agent's operator")
SIGNED = Field("signed", COUNT, "requests that named their agent in a signature, but are not verified")
DAYS_SEEN = Field("days", COUNT, "days with requests of the finding")
EXPECTED_REFERRALS = Field("expected_referrals", NUMBER, "number of people expected from the number of fetches")
REFUSED = Field("refused", COUNT, "requests answered with 401, 402, 403, 405, 406, 429 or 451")
REFUSED_PEOPLE = Field("refused", COUNT, "requests by people that were answered with 403, 429 or 499")
STATUS = Field("status", TEXT, "HTTP status of the answers, or unknown")
STATUSES = Field("statuses", TEXT, "HTTP statuses of the refusals, separated by commas")
PROBES = Field("probes", COUNT, "requests for paths that only vulnerability scanners request")
NO_AGENT = Field("no_agent", COUNT, "stored requests without a user agent that have none of the other reasons")
ERRORS = Field("errors", COUNT, "requests answered with 500 to 599")
PEOPLE = Field("people", COUNT, "failed requests by people, including AI referrals")
REFERRALS_BEFORE = Field("referrals_before", COUNT, "visits by people who were sent in the first 14 of the 28 days")
LOST_REFERRALS = Field("lost_referrals", COUNT, "how many fewer people were sent in the last 14 days")
PROBABILITY = Field(
    "probability", NUMBER, "p-value: the probability of this few or fewer people by chance alone, 0 to 1"
)
TRAINING_FETCHES = Field("training_fetches", COUNT, "requests by the operator's training crawlers")
SUBJECT_NUMBER = Field("number", COUNT, "number of the subject among the subjects measured together")
SIMILARITY = Field("similarity", NUMBER, "Jaro-Winkler similarity of the path to the job's path, 0.9 to 1")
ON_DAY = Field("day", DAY, "day on which the events and visits happened")
EVENTS = Field("events", COUNT, "the events that the job is about, such as requests that failed")
