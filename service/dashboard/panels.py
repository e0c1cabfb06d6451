"""The panels of pages: which answer each one shows, which of its fields, and what it says when there is nothing."""

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Final

from queries import ENTRIES, Entry

DRAWN: Final = {
    "series": {"total_visits", "human_clicks", "human_visits", "ai_visits", "other_visits", "previous_visits"},
    "hours": {"visits"},
    "weekdays": {"avg_visits"},
}
"""What each kind of chart draws, of the columns in the table below it."""


@dataclass(frozen=True)
class Panel:
    """One panel: an answer as a table, with a chart above it where that helps."""

    entry: Entry
    title: str
    fields: tuple[str, ...] = ()  # shown, in this order; none: all of the answer
    part: str = ""  # of an answer with several parts
    chart: str = ""  # series, lines, purposes, map, hours or weekdays; then the table is folded
    unit: str = "day"  # of a series: hour, day, week or month
    color: str = "plain"  # of its bars: people, ai, other or plain
    limit: int = 100  # rows of the table; CSV and API have all
    hint: str = ""
    note: str = ""
    all_on: str = ""  # the page that shows all rows
    is_wide: bool = False
    has_split: bool = False  # a column with people, AI-related and other as one bar
    has_search: bool = False
    is_list: bool = False  # a part of all links, which the server searches and sorts
    has_jobs: bool = False  # a column with the job about each row, and a button that makes one
    is_of_people: bool = False  # rows with visits by people only, ranked by these before they are cut
    is_left_out: bool = False  # of the page, where it has no rows
    empty: str = "No visits of this kind in this period."

    @property
    def answer(self) -> Entry:
        """The answer that it shows, or the part of one."""
        return dict(self.entry.members)[self.part] if self.part else self.entry

    @property
    def drawn(self) -> Set[str]:
        """The columns of the table that the chart draws."""
        return DRAWN.get(self.chart, set())

    @property
    def anchor(self) -> str:
        """The id of the panel on its page."""
        return self.part or self.entry.name


def panel(name: str, title: str, fields: str = "", **more: object) -> Panel:
    """The panel of an endpoint's answer; `fields` is a list separated by spaces."""
    return Panel(ENTRIES[name], title, tuple(fields.split()), **more)  # type: ignore[arg-type]


def in_unit(series: Panel, unit: str) -> Panel:
    """The panel of visits over time, by the hour, day or month instead of by the day."""
    name = "time-series" if unit == "day" else f"visits-by-{unit}"
    return replace(series, entry=ENTRIES[name], title=f"Visits by {unit}", unit=unit)


# fmt: off
NO_PEOPLE: Final = "No visits by people in this period."
WEEKS_HINT: Final = "Whole weeks, each line on a scale of its own; the number is that of the last one."
TIME_SERIES: Final = panel(
    "time-series", "Visits by day", chart="series", is_wide=True, limit=400,
    hint="People, AI-related and other automated visits.",
)
AI_SOURCES: Final = panel("ai-sources", "AI platforms", color="ai", limit=10, all_on="ai")
TOP_LINKS: Final = panel(
    "top-links", "Links", "short_code domain visits percentage", limit=10, has_split=True, all_on="links",
)
AGENTS: Final = panel(
    "bot-traffic", "Agents", "agent operator confidence visits percentage", limit=10, color="ai", all_on="agents",
)
COUNTRIES: Final = panel(
    "geographic", "Countries of people", "country_name country human_clicks share_of_people", chart="map", limit=50,
    all_on="people", color="people", is_of_people=True, empty=NO_PEOPLE,
)
REFERRERS: Final = panel(
    "referrers", "Where people come from", "referrer referrer_type visits percentage", limit=10, all_on="people",
    color="people", hint="People and AI referrals only.",
)
DEVICES: Final = panel(
    "devices", "Devices of people", "device_type human_clicks share_of_people", color="people", is_of_people=True,
    empty=NO_PEOPLE,
)
HOURS: Final = panel("hourly-activity", "Hours of the day", chart="hours", all_on="times")

OVERVIEW: Final = (TIME_SERIES, AI_SOURCES, TOP_LINKS, AGENTS, REFERRERS, COUNTRIES, DEVICES)
LINK: Final = (
    TIME_SERIES, AI_SOURCES, AGENTS, REFERRERS, COUNTRIES, DEVICES, HOURS,
    panel(
        "link-operators", "Fetched before people came", is_wide=True, color="ai",
        hint="Fetches before the first person whom the operator sent, beside what shuffled times would give.",
        note="More fetches before than by chance do not prove that people came because of them.",
        empty="No visits by AI agents, or people sent by them, in this period.",
    ),
    panel(
        "link-agents", "AI agents that fetched it, and those that never did", is_wide=True, color="ai",
        hint="All AI agents that this organization saw in this period.",
        empty="No AI agent was seen in this period.",
    ),
)
AI: Final = (
    panel(
        "operators", "Fetches and referrals by operator",
        "operator agent_fetches ai_referrals asked visits_per_answer indexed trained coding bytes_sent errors_4xx "
        "errors_5xx proof links_reached last_seen", is_wide=True, color="ai",
        hint="Asked: for a user of an assistant. Per answer: people sent for each of these. Indexed: for a search "
        "index. Trained: for a model. Coding: agents.",
        note="Verified: by its address. Signed: a signature names it. Claimed: only its user agent does. "
        "Contradicted: under the name of its agents, but from other addresses. A fetch is not a citation.",
    ),
    panel(
        "ai-by-day", "By purpose, day by day", chart="purposes", color="ai", limit=400,
        hint="Days that are over, each line on a scale of its own; the number is that of the last one.",
    ),
    panel(
        "ai-by-week", "By purpose, week by week", chart="purposes", unit="week", color="ai", limit=400,
        hint=WEEKS_HINT,
    ),
    panel(
        "ai-to-human-conversion", "Fetches and people sent, by platform", is_wide=True, color="ai",
        hint="What each platform's agents fetched, beside the people that it sent.",
        note="The two are independent: a fetch is not a citation, and does not prove that it led to a visit.",
    ),
    panel(
        "ai-texts", "Markdown and llms.txt", is_wide=True, color="ai", is_left_out=True,
        hint="Agents that ask for what is written for them, there or not.",
        note="4xx: it is not there, or is refused. A page may be sent as Markdown under its usual path, too.",
    ),
    panel("ai-sources", "AI-related visits by platform", color="ai"),
    panel(
        "ai-platform-market-share", "Share of assistants", color="ai",
        hint="Assistants only, without training crawlers, search crawlers and probes.",
    ),
    panel(
        "weekly-trend", "Weeks",
        "week total_visits human_visits ai_visits other_visits ai_assistant_requests ai_training_requests "
        "ai_coding_agent_requests ai_referral_requests ai_pct", part="weekly", chart="series", unit="week",
        is_wide=True, hint="Weeks that are not whole are hatched.",
    ),
    panel(
        "weekly-trend", "Weeks by platform", part="byPlatform", chart="lines", color="ai", limit=400, hint=WEEKS_HINT,
    ),
    panel(
        "ai-confidence", "Confidence", color="ai",
        hint="Verified: the address belongs to the operator. Low: only a pattern of behaviour.",
        note="AI traffic is a lower bound: agents that pretend to be browsers are counted as people.",
    ),
    panel("developer-tools", "Coding agents", color="ai", is_wide=True),
    panel(
        "dev-tools-adoption", "Coding agents by week", chart="lines", is_wide=True, limit=400, hint=WEEKS_HINT,
    ),
    panel(
        "device-by-ai-source", "Devices by platform", color="ai", is_wide=True, hint="Shares are within each platform.",
    ),
)
SOURCE_LINKS: Final = panel(
    "source-links", "Links",
    "short_code domain visits percentage agent_fetches ai_referrals errors_4xx errors_5xx last_visit", color="ai",
    is_wide=True, hint="What its agents fetch, and where it sends people. Shares are of its visits to links.",
    note="The 20 links with most AI-related visits of this platform.",
)
PATHS: Final = panel(
    "paths", "Paths", "path visits percentage errors_4xx errors_5xx last_visit", is_wide=True, has_search=True,
    hint="What was asked for, links or not.", note="The 100 paths with most visits, counted from the visits.",
)
PATHS_PAGE: Final = (
    replace(PATHS, has_split=True),
    panel("statuses", "Answers by HTTP status", "status visits percentage", is_wide=True, has_split=True),
)
AGENT: Final = (
    panel(
        "bot-traffic", "Visits of this agent", "agent operator agent_kind confidence visits pages_accessed "
        "unique_visitors errors_4xx errors_5xx last_seen", is_wide=True,
    ),
    PATHS,
    panel(
        "top-links", "Links", "short_code visits percentage domain target_url last_visit", is_wide=True,
        note="The 100 links with most visits by this agent.",
    ),
)
AGENTS_PAGE: Final = (
    panel(
        "bot-traffic", "Agents",
        "agent visits percentage operator agent_kind confidence pages_accessed errors_4xx errors_5xx bytes_sent "
        "last_seen", is_wide=True, color="ai", has_search=True,
        note="Contradicted: the request named this agent, but came from outside its operator's published addresses.",
    ),
    panel(
        "disguised", "Bots in disguise",
        hint="Automated visits under a browser's name, by the signals of their day.",
        note="A visit may have several signals; “Alone” counts those with one. A day is judged when it is over.",
    ),
)
PEOPLE: Final = (
    panel("referrers", "Referrers", color="people", is_wide=True, has_search=True, hint="People and AI referrals."),
    replace(COUNTRIES, title="Countries", limit=300, all_on=""),
    panel("operating-systems", "Operating systems", color="people", hint="People and AI referrals."),
    replace(DEVICES, title="Devices"),
    panel("browsers", "Browsers", color="people", hint="People and AI referrals."),
    panel(
        "utm-campaigns", "Campaigns", "utm_source utm_medium utm_campaign human_clicks share_of_people",
        color="people", is_wide=True, is_of_people=True, empty="No visit by people in this period has a utm tag.",
    ),
)
TIMES: Final = (
    panel("hourly-activity", "Hours of the day", chart="hours", is_wide=True),
    panel("daily-activity", "Days of the week", chart="weekdays", is_wide=True, hint="Average visits of such a day."),
    panel(
        "peak-times", "Busiest hours of the week", "day_name hour avg_visits visits human_clicks ai_visits",
        hint="Ranked by visits each time the hour occurs.",
    ),
    panel(
        "weekend-vs-weekday", "Weekdays and weekends",
        "period days visits avg_visits human_clicks ai_visits other_visits",
    ),
)
LINKS: Final = (
    panel(
        "all-links", "All links", "short_code visits human_clicks ai_visits other_visits unique_visitors domain "
        "target_url last_visit created_at", is_wide=True, has_split=True, is_list=True, empty="No link is found.",
        note="Links of the links file, and short codes that were answered. CSV has the links that are shown.",
    ),
)
DOMAINS: Final = (
    panel("domain-breakdown", "Domains", is_wide=True, has_split=True),
    panel(
        "traffic-value-breakdown", "Estimated value", is_wide=True,
        hint="Visits times the value of one visit, as TRAFFIC_VALUES sets it.",
    ),
)
# fmt: on
