"""The catalog of every report: its name, its shape and its fields.

The name is the route, the file name of the template and part of the cache key. To add an endpoint, add its template
and one entry here. The description of a report is the comment at the top of its template.
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
        """What the report shows: the comment lines of its template, or its text in _DESCRIPTIONS."""
        if self.name in _DESCRIPTIONS:
            return _DESCRIPTIONS[self.name]
        comment = (line for line in template(self.name).splitlines() if line.startswith("--"))
        return " ".join(line.removeprefix("--").strip() for line in comment)


def rows(name: str, *fields: Field, takes_traffic_type: bool = False, takes_short_code: bool = True) -> Entry:
    """An entry whose answer is an array of objects with these fields."""
    return Entry(name, "rows", fields, takes_traffic_type=takes_traffic_type, takes_short_code=takes_short_code)


def row(name: str, *fields: Field) -> Entry:
    """An entry whose answer is one object with these fields."""
    return Entry(name, "row", fields)


def parts(name: str, **members: Entry) -> Entry:
    """An entry whose answer is one object; each member is the answer of another entry."""
    return Entry(name, "parts", members=tuple(members.items()))


def template(name: str) -> str:
    """The SQL text of a template, or of a detector or measure, whose names begin with jobs/.

    Raises FileNotFoundError when there is none of that name.
    """
    return sql_text(name if name.startswith("jobs/") else f"templates/{name}")


_CATEGORY_COUNTS = (
    f.AI_VISITS, f.AI_ASSISTANT_REQUESTS, f.AI_TRAINING_REQUESTS, f.AI_CODING_AGENT_REQUESTS, f.AI_REFERRAL_REQUESTS,
    f.OTHER_VISITS,
)  # fmt: skip
_PURPOSES = (f.ASKED, f.INDEXED, f.TRAINED, f.CODING)
_NULLABLE_PERCENTAGE = as_nullable(f.PERCENTAGE)  # null when a dense answer counts no visits at all

OVERVIEW = row("traffic-overview", f.TOTAL_VISITS, f.HUMAN_CLICKS, *_CATEGORY_COUNTS, f.AI_PERCENTAGE)
WEEKLY_TREND = parts(
    "weekly-trend",
    weekly=rows("weekly-trend-weeks", f.WEEK, f.TOTAL_VISITS, f.HUMAN_VISITS, *_CATEGORY_COUNTS, f.AI_PCT),
    byPlatform=rows("weekly-trend-platforms", f.WEEK, f.AI_SOURCE, f.VISITS),
)
TIME_SERIES = rows(
    "time-series", f.DATE, f.TOTAL_VISITS, f.HUMAN_CLICKS, f.AI_VISITS, f.MOBILE_VISITS, f.DESKTOP_VISITS
)
AI_SOURCES = rows("ai-sources", f.AI_SOURCE, f.VISITS, f.PERCENTAGE, f.AGENT_FETCHES, f.AI_REFERRALS)
MARKET_SHARE = rows(
    "ai-platform-market-share",
    f.AI_SOURCE, f.VISITS, f.PERCENTAGE, f.PAGES_ACCESSED, f.UNIQUE_VISITORS, f.ASKED,
)  # fmt: skip
DEVELOPER_TOOLS = rows(
    "developer-tools",
    f.TOOL, f.OPERATOR, f.VISITS, f.PERCENTAGE, f.PAGES_ACCESSED, f.UNIQUE_VISITORS, f.FIRST_SEEN, f.LAST_SEEN,
)  # fmt: skip
DEV_TOOLS_ADOPTION = rows(
    "dev-tools-adoption",
    f.WEEK, f.TOOL, f.VISITS, f.UNIQUE_VISITORS, f.ACTIVE_DAYS, f.IS_NEW, f.CHANGE_PERCENTAGE,
)  # fmt: skip
AI_CONFIDENCE = rows("ai-confidence", f.CONFIDENCE, f.DETECTION_METHOD, f.SCORE, f.VISITS, f.PERCENTAGE)
TOP_LINKS = rows(
    "top-links",
    f.SHORT_CODE, f.DOMAIN, f.TARGET_URL, f.VISITS, f.PERCENTAGE,
    f.HUMAN_CLICKS, f.AI_VISITS, f.OTHER_VISITS, f.UNIQUE_VISITORS, f.LAST_VISIT,
)  # fmt: skip
CONVERSION = rows(
    "ai-to-human-conversion",
    f.AI_SOURCE, f.AGENT_FETCHES, f.AI_REFERRALS, f.CONVERSION_RATE, f.FETCHES_PER_REFERRAL,
    f.LINKS_FETCHED, f.LINKS_REFERRED, *_PURPOSES,
)  # fmt: skip
VALUE_BREAKDOWN = rows(
    "traffic-value-breakdown",
    f.TRAFFIC_TYPE, f.VISITS, f.PERCENTAGE, f.VALUE_PER_VISIT, f.ESTIMATED_VALUE, f.VALUE_PERCENTAGE, f.CURRENCY,
)  # fmt: skip
DEVICES = rows("devices", f.DEVICE_TYPE, f.VISITS, f.PERCENTAGE, f.HUMAN_CLICKS, f.AI_VISITS, f.UNIQUE_VISITORS)
OPERATING_SYSTEMS = rows(
    "operating-systems", f.OPERATING_SYSTEM, f.VISITS, f.PERCENTAGE, f.HUMAN_CLICKS, f.UNIQUE_VISITORS
)
BROWSERS = rows("browsers", f.BROWSER, f.VISITS, f.PERCENTAGE, f.HUMAN_CLICKS, f.UNIQUE_VISITORS)
DEVICE_BY_AI_SOURCE = rows("device-by-ai-source", f.AI_SOURCE, f.DEVICE_TYPE, f.VISITS, f.PERCENTAGE)
GEOGRAPHIC = rows(
    "geographic",
    f.COUNTRY, f.COUNTRY_NAME, f.VISITS, f.PERCENTAGE, f.HUMAN_CLICKS, f.AI_VISITS, f.UNIQUE_VISITORS,
)  # fmt: skip
HOURLY_ACTIVITY = rows(
    "hourly-activity", f.HOUR, f.VISITS, _NULLABLE_PERCENTAGE, f.HUMAN_CLICKS, f.AI_VISITS, f.OTHER_VISITS
)
DAILY_ACTIVITY = rows(
    "daily-activity",
    f.DAY_OF_WEEK, f.DAY_NAME, f.VISITS, _NULLABLE_PERCENTAGE, f.HUMAN_CLICKS, f.AI_VISITS, f.OTHER_VISITS,
    f.DAYS_IN_RANGE, f.AVG_VISITS,
)  # fmt: skip
PEAK_TIMES = rows(
    "peak-times",
    f.RANK, f.DAY_OF_WEEK, f.DAY_NAME, f.HOUR, f.VISITS, f.PERCENTAGE, f.AVG_VISITS, f.HUMAN_CLICKS, f.AI_VISITS,
)  # fmt: skip
WEEKEND_VS_WEEKDAY = rows(
    "weekend-vs-weekday",
    f.PERIOD, f.DAYS, f.VISITS, _NULLABLE_PERCENTAGE, f.AVG_VISITS, f.HUMAN_CLICKS, f.AI_VISITS, f.OTHER_VISITS,
)  # fmt: skip
UTM_CAMPAIGNS = rows(
    "utm-campaigns",
    f.UTM_SOURCE, f.UTM_MEDIUM, f.UTM_CAMPAIGN, f.VISITS, f.PERCENTAGE,
    f.HUMAN_CLICKS, f.AI_VISITS, f.UNIQUE_VISITORS,
)  # fmt: skip
REFERRERS = rows(
    "referrers",
    f.REFERRER, f.REFERRER_TYPE, f.VISITS, f.PERCENTAGE, f.HUMAN_CLICKS, f.AI_REFERRALS, f.REFERRER_SOURCE,
)  # fmt: skip
DOMAIN_BREAKDOWN = rows(
    "domain-breakdown",
    f.DOMAIN, f.VISITS, f.PERCENTAGE, f.HUMAN_CLICKS, f.AI_VISITS, f.OTHER_VISITS, f.SHORT_CODES, f.UNIQUE_VISITORS,
    takes_short_code=False,
)  # fmt: skip
BOT_TRAFFIC = rows(
    "bot-traffic",
    f.AGENT, f.OPERATOR, f.AGENT_KIND, f.BOT_CATEGORY, f.CONFIDENCE, f.VISITS, f.PERCENTAGE, f.PAGES_ACCESSED,
    f.UNIQUE_VISITORS, f.ERRORS_4XX, f.ERRORS_5XX, f.FIRST_SEEN, f.LAST_SEEN, f.BYTES_SENT,
    takes_traffic_type=True,
)  # fmt: skip
FILTER_VALUES = rows("filter-values", f.FILTER, f.VALUES, f.TRUNCATED)
CACHE_STATS = rows(
    "cache-stats",
    f.CACHE_SCOPE, f.ENTRIES, f.HITS, f.MISSES, f.HIT_RATE, f.EVICTIONS, f.BYTES, f.TTL_SECONDS, f.OLDEST_AGE_SECONDS,
)  # fmt: skip
DASHBOARD = parts(
    "dashboard",
    overview=OVERVIEW, timeSeries=TIME_SERIES, aiSources=AI_SOURCES, devices=DEVICES, topLinks=TOP_LINKS,
    weeklyTrend=WEEKLY_TREND, aiPlatformMarketShare=MARKET_SHARE, referrers=REFERRERS, geographic=GEOGRAPHIC,
    browsers=BROWSERS, operatingSystems=OPERATING_SYSTEMS, hourlyActivity=HOURLY_ACTIVITY, botTraffic=BOT_TRAFFIC,
)  # fmt: skip

_DESCRIPTIONS: Final = {
    "dashboard": "Thirteen reports in one object, each identical to the response of its own endpoint.",
    "weekly-trend": "Requests week by week, in total and by AI source.",
    "cache-stats": "Statistics of the cache of this organization's answers. Never cached itself.",
}
"""Descriptions of the entries that have no template of their own."""

CATALOG: Final = (
    DASHBOARD, OVERVIEW, WEEKLY_TREND, TIME_SERIES, AI_SOURCES, MARKET_SHARE, DEVELOPER_TOOLS, DEV_TOOLS_ADOPTION,
    AI_CONFIDENCE, TOP_LINKS, CONVERSION, VALUE_BREAKDOWN, DEVICES, OPERATING_SYSTEMS, BROWSERS, DEVICE_BY_AI_SOURCE,
    GEOGRAPHIC, HOURLY_ACTIVITY, DAILY_ACTIVITY, PEAK_TIMES, WEEKEND_VS_WEEKDAY, UTM_CAMPAIGNS, REFERRERS,
    DOMAIN_BREAKDOWN, BOT_TRAFFIC, FILTER_VALUES, CACHE_STATS,
)  # fmt: skip
"""The routes under /analytics, in the order in which they are documented."""

ENDPOINTS: Final = {entry.name: entry for entry in CATALOG if entry is not CACHE_STATS}
"""The entries that routes serve and the lake answers, by name."""

WITHOUT_ROUTE: Final = (
    rows("protocols", f.PROTOCOL, f.VISITS, f.PERCENTAGE, f.HUMAN_CLICKS, f.AI_VISITS, f.UNIQUE_VISITORS),
    rows("disguised", f.SIGNAL, f.VISITS, f.ALONE),
    rows("visits-by-hour", f.DATE, f.HOUR, f.TOTAL_VISITS, f.HUMAN_CLICKS, f.AI_VISITS, f.OTHER_VISITS),
    rows("visits-by-month", f.MONTH, f.TOTAL_VISITS, f.HUMAN_CLICKS, f.AI_VISITS, f.OTHER_VISITS),
    rows("ai-by-day", f.DATE, *_PURPOSES, f.AI_REFERRALS),
    rows("ai-by-week", f.WEEK, *_PURPOSES, f.AI_REFERRALS),
    rows(
        "operators",
        f.OPERATOR, f.AGENT_FETCHES, *_PURPOSES, f.BYTES_SENT, f.ERRORS_4XX, f.ERRORS_5XX, f.VERIFIED, f.AI_REFERRALS,
        f.CONTRADICTED, f.FETCHES_PER_REFERRAL, f.LINKS_REACHED, f.LINKS, as_nullable(f.LAST_SEEN),
    ),
    rows("link-agents", f.AGENT, f.OPERATOR, f.AGENT_FETCHES, as_nullable(f.FIRST_SEEN), f.DAYS_TO_FIRST_FETCH),
    rows("link-operators", f.OPERATOR, f.AGENT_FETCHES, f.AI_REFERRALS, f.FETCHES_BEFORE, f.FETCHES_BY_CHANCE),
    rows("ai-agents", f.OPERATOR, f.PURPOSE, f.AGENT, f.AGENT_FETCHES, f.BYTES_SENT, f.AI_REFERRALS),
    row("people", f.VISITS, f.HUMAN_CLICKS, f.UNIQUE_VISITORS, f.UNIDENTIFIED_VISITS),
    rows(
        "source-links",
        f.AI_SOURCE, f.SHORT_CODE, f.DOMAIN, f.TARGET_URL, f.VISITS, f.PERCENTAGE, f.AGENT_FETCHES, f.AI_REFERRALS,
        f.ERRORS_4XX, f.ERRORS_5XX, f.LAST_VISIT,
    ),
    rows(
        "paths",
        f.PATH, f.VISITS, f.PERCENTAGE, f.HUMAN_CLICKS, f.AI_VISITS, f.OTHER_VISITS, f.ERRORS_4XX, f.ERRORS_5XX,
        f.LAST_VISIT,
        takes_traffic_type=True,
    ),
    rows(
        "invented-links",
        f.PATH, f.DOMAIN, as_nullable(f.SHORT_CODE), f.AI_SOURCE, f.AI_REFERRALS, f.AGENT_FETCHES, f.VISITORS,
        f.FIRST_SEEN, f.LAST_SEEN,
    ),
    rows(
        "statuses", f.STATUS, f.VISITS, f.PERCENTAGE, f.HUMAN_CLICKS, f.AI_VISITS, f.OTHER_VISITS,
        takes_traffic_type=True,
    ),
    rows(
        "all-links",
        f.SHORT_CODE, f.DOMAIN, f.TARGET_URL, f.LINK_CREATED_AT, f.VISITS, f.HUMAN_CLICKS, f.AI_VISITS, f.OTHER_VISITS,
        f.UNIQUE_VISITORS, as_nullable(f.LAST_VISIT), f.LINKS_FOUND,
    ),
)  # fmt: skip
"""Answers for `traffic query` and the pages only: the contract has no route for them."""

ENTRIES: Final = ENDPOINTS | {entry.name: entry for entry in WITHOUT_ROUTE}
"""Every entry that the lake answers, by name."""


def template_entries(entry: Entry) -> list[Entry]:
    """The entries that have a template: the members of `parts`, recursively, or the entry itself."""
    if entry.shape == "parts":
        return [leaf for _, member in entry.members for leaf in template_entries(member)]
    return [entry]
