"""The catalog of all reports: the name, the shape and the fields of each.

The name is also the file name of the template, part of the cache key and, for an endpoint, the route. To add an
endpoint, add its template and one entry here. The description of a report is the comment at the top of its template, if
it has a template.
"""

from dataclasses import dataclass
from typing import Final, Literal

from queries import fields as f
from queries.fields import Field, as_nullable
from queries.prelude import sql_text


@dataclass(frozen=True)
class Entry:
    """One report: all rows of its template, the single row of its template, or an object made of other entries."""

    name: str
    shape: Literal["rows", "row", "parts"]
    fields: tuple[Field, ...] = ()
    members: tuple[tuple[str, "Entry"], ...] = ()
    takes_traffic_type: bool = False
    takes_short_code: bool = True

    @property
    def description(self) -> str:
        """The description of the report: the comment lines of its template, or its text in _DESCRIPTIONS."""
        if self.name in _DESCRIPTIONS:
            return _DESCRIPTIONS[self.name]
        comment = (line for line in template(self.name).splitlines() if line.startswith("--"))
        return " ".join(line.removeprefix("--").strip() for line in comment)


def rows(name: str, *fields: Field, takes_traffic_type: bool = False, takes_short_code: bool = True) -> Entry:
    """Return an entry that answers with an array of objects with these fields."""
    return Entry(name, "rows", fields, takes_traffic_type=takes_traffic_type, takes_short_code=takes_short_code)


def row(name: str, *fields: Field) -> Entry:
    """Return an entry that answers with one object."""
    return Entry(name, "row", fields)


def parts(name: str, **members: Entry) -> Entry:
    """Return an entry that answers with one object; each of its members is the answer for another entry."""
    return Entry(name, "parts", members=tuple(members.items()))


def template(name: str) -> str:
    """Return the SQL text of a template, or of a detector or measure if the name begins with jobs/.

    Raises FileNotFoundError if there is no such file.
    """
    return sql_text(name if name.startswith("jobs/") else f"templates/{name}")


_CATEGORY_COUNTS: Final = (
    f.AI_VISITS, f.AI_ASSISTANT_REQUESTS, f.AI_TRAINING_REQUESTS, f.AI_CODING_AGENT_REQUESTS, f.AI_REFERRAL_REQUESTS,
    f.OTHER_VISITS,
)  # fmt: skip
_PURPOSES: Final = (f.ASKED, f.INDEXED, f.TRAINED, f.CODING)
_BY_CLASS: Final = (f.HUMAN_CLICKS, f.AI_VISITS, f.OTHER_VISITS)
_USUAL: Final = (f.VISITS, f.PERCENTAGE, f.HUMAN_CLICKS, f.AI_VISITS, f.UNIQUE_VISITORS)
_OF_PEOPLE: Final = (f.VISITS, f.PERCENTAGE, f.HUMAN_CLICKS, f.UNIQUE_VISITORS)
_NULLABLE_PERCENTAGE: Final = as_nullable(f.PERCENTAGE)  # null without visits, if the answer has rows even then

_ROUTES: Final = (
    row("traffic-overview", f.TOTAL_VISITS, f.HUMAN_CLICKS, *_CATEGORY_COUNTS, f.AI_PERCENTAGE),
    parts(
        "weekly-trend",
        weekly=rows("weekly-trend-weeks", f.WEEK, f.TOTAL_VISITS, f.HUMAN_VISITS, *_CATEGORY_COUNTS, f.AI_PCT),
        byPlatform=rows("weekly-trend-platforms", f.WEEK, f.AI_SOURCE, f.VISITS),
    ),
    rows("time-series", f.DATE, f.TOTAL_VISITS, f.HUMAN_CLICKS, f.AI_VISITS, f.MOBILE_VISITS, f.DESKTOP_VISITS),
    rows("ai-sources", f.AI_SOURCE, f.VISITS, f.PERCENTAGE, f.AGENT_FETCHES, f.AI_REFERRALS),
    rows(
        "ai-platform-market-share",
        f.AI_SOURCE, f.VISITS, f.PERCENTAGE, f.PAGES_ACCESSED, f.UNIQUE_VISITORS, f.ASKED,
    ),
    rows(
        "developer-tools",
        f.TOOL, f.OPERATOR, f.VISITS, f.PERCENTAGE, f.PAGES_ACCESSED, f.UNIQUE_VISITORS, f.FIRST_SEEN, f.LAST_SEEN,
    ),
    rows(
        "dev-tools-adoption",
        f.WEEK, f.TOOL, f.VISITS, f.UNIQUE_VISITORS, f.ACTIVE_DAYS, f.IS_NEW, f.CHANGE_PERCENTAGE,
    ),
    rows("ai-confidence", f.CONFIDENCE, f.DETECTION_METHOD, f.SCORE, f.VISITS, f.PERCENTAGE),
    rows(
        "top-links",
        f.SHORT_CODE, f.DOMAIN, f.TARGET_URL, f.VISITS, f.PERCENTAGE, *_BY_CLASS, f.UNIQUE_VISITORS, f.LAST_VISIT,
    ),
    rows(
        "ai-to-human-conversion",
        f.AI_SOURCE, f.AGENT_FETCHES, f.AI_REFERRALS, f.CONVERSION_RATE, f.FETCHES_PER_REFERRAL,
        f.LINKS_FETCHED, f.LINKS_REFERRED, *_PURPOSES,
    ),
    rows(
        "traffic-value-breakdown",
        f.TRAFFIC_TYPE, f.VISITS, f.PERCENTAGE, f.VALUE_PER_VISIT, f.ESTIMATED_VALUE, f.VALUE_PERCENTAGE, f.CURRENCY,
    ),
    rows("devices", f.DEVICE_TYPE, *_USUAL),
    rows("operating-systems", f.OPERATING_SYSTEM, *_OF_PEOPLE),
    rows("browsers", f.BROWSER, *_OF_PEOPLE),
    rows("device-by-ai-source", f.AI_SOURCE, f.DEVICE_TYPE, f.VISITS, f.PERCENTAGE),
    rows("geographic", f.COUNTRY, f.COUNTRY_NAME, *_USUAL),
    rows("hourly-activity", f.HOUR, f.VISITS, _NULLABLE_PERCENTAGE, *_BY_CLASS),
    rows(
        "daily-activity",
        f.DAY_OF_WEEK, f.DAY_NAME, f.VISITS, _NULLABLE_PERCENTAGE, *_BY_CLASS, f.DAYS_IN_RANGE, f.AVG_VISITS,
    ),
    rows(
        "peak-times",
        f.RANK, f.DAY_OF_WEEK, f.DAY_NAME, f.HOUR, f.VISITS, f.PERCENTAGE, f.AVG_VISITS, f.HUMAN_CLICKS, f.AI_VISITS,
    ),
    rows("weekend-vs-weekday", f.PERIOD, f.DAYS, f.VISITS, _NULLABLE_PERCENTAGE, f.AVG_VISITS, *_BY_CLASS),
    rows("utm-campaigns", f.UTM_SOURCE, f.UTM_MEDIUM, f.UTM_CAMPAIGN, *_USUAL),
    rows(
        "referrers",
        f.REFERRER, f.REFERRER_TYPE, f.VISITS, f.PERCENTAGE, f.HUMAN_CLICKS, f.AI_REFERRALS, f.REFERRER_SOURCE,
    ),
    rows(
        "domain-breakdown", f.DOMAIN, f.VISITS, f.PERCENTAGE, *_BY_CLASS, f.SHORT_CODES, f.UNIQUE_VISITORS,
        takes_short_code=False,
    ),
    rows(
        "bot-traffic",
        f.AGENT, f.OPERATOR, f.AGENT_KIND, f.BOT_CATEGORY, f.CONFIDENCE, f.VISITS, f.PERCENTAGE, f.PAGES_ACCESSED,
        f.UNIQUE_VISITORS, f.ERRORS_4XX, f.ERRORS_5XX, f.FIRST_SEEN, f.LAST_SEEN, f.BYTES_SENT,
        takes_traffic_type=True,
    ),
    rows("filter-values", f.FILTER, f.VALUES, f.TRUNCATED),
    rows(
        "cache-stats",
        f.CACHE_SCOPE, f.ENTRIES, f.HITS, f.MISSES, f.HIT_RATE, f.EVICTIONS, f.BYTES, f.TTL_SECONDS,
        f.OLDEST_AGE_SECONDS,
    ),
)  # fmt: skip
_BY_ROUTE: Final = {entry.name: entry for entry in _ROUTES}
_OF_DASHBOARD: Final = {
    "overview": "traffic-overview", "timeSeries": "time-series", "aiSources": "ai-sources", "devices": "devices",
    "topLinks": "top-links", "weeklyTrend": "weekly-trend", "aiPlatformMarketShare": "ai-platform-market-share",
    "referrers": "referrers", "geographic": "geographic", "browsers": "browsers",
    "operatingSystems": "operating-systems", "hourlyActivity": "hourly-activity", "botTraffic": "bot-traffic",
}  # fmt: skip

_DESCRIPTIONS: Final = {
    "dashboard": "Thirteen reports in one object, each identical to the response of its own endpoint.",
    "weekly-trend": "Requests by week, in total and by AI source.",
    "cache-stats": "Statistics on this organization's cached answers. The statistics are never cached themselves.",
}
"""Descriptions of the entries that have no template of their own."""

CATALOG: Final = (parts("dashboard", **{name: _BY_ROUTE[route] for name, route in _OF_DASHBOARD.items()}), *_ROUTES)
"""The routes under /analytics, in the order in which they are documented."""

CACHE_STATS: Final = _BY_ROUTE["cache-stats"]
ENDPOINTS: Final = {entry.name: entry for entry in CATALOG if entry is not CACHE_STATS}
"""The entries with a route that are answered from the lake, by name."""

WITHOUT_ROUTE: Final = (
    rows("protocols", f.PROTOCOL, *_USUAL),
    rows("disguised", f.SIGNAL, f.VISITS, f.ALONE),
    rows("left-out", f.DATE, f.STORED, f.FILES, f.OWN, f.DISGUISED, f.LOADED_AHEAD, f.PROBES, f.NO_AGENT),
    rows("left-out-requests", f.REASON, f.REQUESTED_AT, f.USER_AGENT, f.DOMAIN, f.PATH, f.STATUS),
    rows("visits-by-minute", f.FIRST_SEEN, f.TOTAL_VISITS, *_BY_CLASS),
    rows("visits-by-hour", f.DATE, f.HOUR, f.TOTAL_VISITS, *_BY_CLASS),
    rows("visits-by-name", f.NAMED_SUBJECT, f.NAME, f.DATE, f.VISITS),
    rows("visits-by-link", f.SHORT_CODE, f.DOMAIN, f.DATE, f.VISITS),
    rows("visits-by-month", f.MONTH, f.TOTAL_VISITS, *_BY_CLASS),
    rows("ai-by-day", f.DATE, *_PURPOSES, f.AI_REFERRALS),
    rows("ai-by-week", f.WEEK, *_PURPOSES, f.AI_REFERRALS),
    rows(
        "operators",
        f.OPERATOR, f.AGENT_FETCHES, *_PURPOSES, f.BYTES_SENT, f.ERRORS_4XX, f.ERRORS_5XX, f.VERIFIED, f.SIGNED,
        f.AI_REFERRALS, f.CONTRADICTED, f.FETCHES_PER_REFERRAL, f.VISITS_PER_ANSWER, f.LINKS_REACHED,
        as_nullable(f.LAST_SEEN),
    ),
    rows("link-agents", f.AGENT, f.OPERATOR, f.AGENT_FETCHES, as_nullable(f.FIRST_SEEN)),
    rows("link-operators", f.OPERATOR, f.AGENT_FETCHES, f.AI_REFERRALS, f.FETCHES_BEFORE, f.FETCHES_BY_CHANCE),
    rows("ai-agents", f.OPERATOR, f.PURPOSE, f.AGENT, f.AGENT_FETCHES, f.BYTES_SENT, f.AI_REFERRALS),
    rows("ai-texts", f.AGENT, f.OPERATOR, f.MARKDOWN, f.LLMS_TXT, f.ERRORS_4XX, f.LAST_SEEN),
    row("people", f.VISITS, f.HUMAN_CLICKS, f.UNIQUE_VISITORS, f.UNIDENTIFIED_VISITS),
    rows(
        "figures-by-day",
        f.DATE, f.TOTAL_VISITS, f.HUMAN_CLICKS, f.AGENT_FETCHES, f.AI_REFERRAL_REQUESTS, f.OTHER_VISITS,
        f.PEOPLE_VISITORS, f.UNIDENTIFIED_PEOPLE_VISITS,
    ),
    rows(
        "source-links",
        f.AI_SOURCE, f.SHORT_CODE, f.DOMAIN, f.TARGET_URL, f.VISITS, f.PERCENTAGE, f.AGENT_FETCHES, f.AI_REFERRALS,
        f.ERRORS_4XX, f.ERRORS_5XX, f.LAST_VISIT,
    ),
    rows(
        "paths",
        f.PATH, f.VISITS, f.PERCENTAGE, *_BY_CLASS, f.AGENT_FETCHES, f.AI_REFERRALS, f.ERRORS_4XX, f.ERRORS_5XX,
        f.LAST_VISIT, takes_traffic_type=True,
    ),
    rows(
        "invented-links",
        f.PATH, f.DOMAIN, as_nullable(f.SHORT_CODE), f.AI_SOURCE, f.AI_REFERRALS, f.AGENT_FETCHES, f.VISITORS,
        f.FIRST_SEEN, f.LAST_SEEN,
    ),
    rows("statuses", f.STATUS, f.VISITS, f.PERCENTAGE, *_BY_CLASS, takes_traffic_type=True),
    rows(
        "all-links",
        f.SHORT_CODE, f.DOMAIN, f.TARGET_URL, f.LINK_CREATED_AT, f.LINK_TAGS, f.VISITS, *_BY_CLASS,
        f.UNIQUE_VISITORS, f.PEOPLE_VISITORS, as_nullable(f.LAST_VISIT), f.LINKS_FOUND,
    ),
    rows("tags", f.TAG, f.VISITS, *_BY_CLASS, f.UNIQUE_VISITORS, f.PEOPLE_VISITORS, f.LAST_VISIT),
)  # fmt: skip
"""Entries without a route in the contract: only `traffic query`, notebooks and the pages use them."""

ENTRIES: Final = ENDPOINTS | {entry.name: entry for entry in WITHOUT_ROUTE}
"""Every entry that is answered from the lake, by name, with or without a route."""


def template_entries(entry: Entry) -> list[Entry]:
    """Return the entries with templates that make up an entry: its members, recursively, or the entry itself."""
    if entry.shape == "parts":
        return [leaf for _, member in entry.members for leaf in template_entries(member)]
    return [entry]
