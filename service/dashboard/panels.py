"""The panels of pages: which answer each one shows, which of its fields, and what it says when there is nothing."""

from dataclasses import replace
from typing import Final

from service.dashboard.panel import Panel
from service.dashboard.panel_kinds import (
    Agents,
    CountryMap,
    Hours,
    LinkList,
    OfPeople,
    Operators,
    Purposes,
    Weekdays,
    WeeksByName,
)
from service.dashboard.series import MainSeries, TimeSeries

# fmt: off
WEEKS_HINT: Final = "Whole weeks, each line on a scale of its own; the number is that of the last one."
TIME_SERIES: Final = MainSeries.of("time-series", "Visits by day")
AI_SOURCES: Final = Panel.of("ai-sources", "AI platforms", color="ai", limit=10, all_on="ai")
TOP_LINKS: Final = Panel.of(
    "top-links", "Links", "short_code domain visits percentage", limit=10, has_split=True, all_on="links",
)
AGENTS: Final = Agents.of(
    "bot-traffic", "Agents", "agent operator confidence visits percentage", limit=10, color="ai", all_on="agents",
)
COUNTRIES: Final = CountryMap.of(
    "geographic", "Countries of people", "country_name country human_clicks share_of_people", limit=50, all_on="people",
)
REFERRERS: Final = Panel.of(
    "referrers", "Where people come from", "referrer referrer_type visits percentage", limit=10, all_on="people",
    color="people", hint="People and AI referrals only.",
)
DEVICES: Final = OfPeople.of("devices", "Devices of people", "device_type human_clicks share_of_people")
HOURS: Final = Hours.of("hourly-activity", "Hours of the day", all_on="times")

OVERVIEW: Final = (TIME_SERIES, AI_SOURCES, TOP_LINKS, AGENTS, REFERRERS, COUNTRIES, DEVICES)
LINK: Final = (
    TIME_SERIES, AI_SOURCES, AGENTS, REFERRERS, COUNTRIES, DEVICES, HOURS,
    Panel.of(
        "link-operators", "Fetched before people came", is_wide=True, color="ai",
        hint="Fetches before the first person whom the operator sent, beside what shuffled times would give.",
        note="More fetches before than by chance do not prove that people came because of them.",
        empty="No visits by AI agents, or people sent by them, in this period.",
    ),
    Panel.of(
        "link-agents", "AI agents that fetched it, and those that never did", is_wide=True, color="ai",
        hint="All AI agents that this organization saw in this period.",
        empty="No AI agent was seen in this period.",
    ),
)
AI: Final = (
    Operators.of(
        "operators", "Fetches and referrals by operator",
        "operator agent_fetches ai_referrals asked visits_per_answer indexed trained coding bytes_sent errors_4xx "
        "errors_5xx proof links_reached last_seen", is_wide=True, color="ai",
        hint="Asked: for a user of an assistant. Per answer: people sent for each of these. Indexed: for a search "
        "index. Trained: for a model. Coding: agents.",
        note="Verified: by its address. Signed: a signature names it. Claimed: only its user agent does. "
        "Contradicted: under the name of its agents, but from other addresses. A fetch is not a citation.",
    ),
    Purposes.of(
        "ai-by-day", "By purpose, day by day", color="ai", limit=400,
        hint="Days that are over, each line on a scale of its own; the number is that of the last one.",
    ),
    Purposes.of(
        "ai-by-week", "By purpose, week by week", unit="week", color="ai", limit=400, hint=WEEKS_HINT,
    ),
    Panel.of(
        "ai-to-human-conversion", "Fetches and people sent, by platform", is_wide=True, color="ai",
        hint="What each platform's agents fetched, beside the people that it sent.",
        note="The two are independent: a fetch is not a citation, and does not prove that it led to a visit.",
    ),
    Panel.of(
        "ai-texts", "Markdown and llms.txt", is_wide=True, color="ai", is_left_out=True,
        hint="Agents that ask for what is written for them, there or not.",
        note="4xx: it is not there, or is refused. A page may be sent as Markdown under its usual path, too.",
    ),
    Panel.of("ai-sources", "AI-related visits by platform", color="ai"),
    Panel.of(
        "ai-platform-market-share", "Share of assistants", color="ai",
        hint="Assistants only, without training crawlers, search crawlers and probes.",
    ),
    TimeSeries.of(
        "weekly-trend", "Weeks",
        "week total_visits human_visits ai_visits other_visits ai_assistant_requests ai_training_requests "
        "ai_coding_agent_requests ai_referral_requests ai_pct", part="weekly", unit="week", limit=100,
        hint="Weeks that are not whole are hatched.",
    ),
    WeeksByName.of(
        "weekly-trend", "Weeks by platform", part="byPlatform", color="ai", limit=400, hint=WEEKS_HINT,
    ),
    Panel.of(
        "ai-confidence", "Confidence", color="ai",
        hint="Verified: the address belongs to the operator. Low: only a pattern of behaviour.",
        note="AI traffic is a lower bound: agents that pretend to be browsers are counted as people.",
    ),
    Panel.of("developer-tools", "Coding agents", color="ai", is_wide=True),
    WeeksByName.of("dev-tools-adoption", "Coding agents by week", is_wide=True, limit=400, hint=WEEKS_HINT),
    Panel.of(
        "device-by-ai-source", "Devices by platform", color="ai", is_wide=True, hint="Shares are within each platform.",
    ),
)
SOURCE_LINKS: Final = Panel.of(
    "source-links", "Links",
    "short_code domain visits percentage agent_fetches ai_referrals errors_4xx errors_5xx last_visit", color="ai",
    is_wide=True, hint="What its agents fetch, and where it sends people. Shares are of its visits to links.",
    note="The 20 links with most AI-related visits of this platform.",
)
PATHS: Final = Panel.of(
    "paths", "Paths", "path visits percentage errors_4xx errors_5xx last_visit", is_wide=True, has_search=True,
    hint="What was asked for, links or not.", note="The 100 paths with most visits, counted from the visits.",
)
PATHS_PAGE: Final = (
    replace(PATHS, has_split=True),
    Panel.of("statuses", "Answers by HTTP status", "status visits percentage", is_wide=True, has_split=True),
)
AGENT: Final = (
    Agents.of(
        "bot-traffic", "Visits of this agent", "agent operator agent_kind confidence visits pages_accessed "
        "unique_visitors errors_4xx errors_5xx last_seen", is_wide=True,
    ),
    PATHS,
    Panel.of(
        "top-links", "Links", "short_code visits percentage domain target_url last_visit", is_wide=True,
        note="The 100 links with most visits by this agent.",
    ),
)
AGENTS_PAGE: Final = (
    Agents.of(
        "bot-traffic", "Agents",
        "agent visits percentage operator agent_kind confidence pages_accessed errors_4xx errors_5xx bytes_sent "
        "last_seen", is_wide=True, color="ai", has_search=True,
        note="Contradicted: the request named this agent, but came from outside its operator's published addresses.",
    ),
    Panel.of(
        "disguised", "Bots in disguise",
        hint="Automated visits under a browser's name, by the signals of their day.",
        note="A visit may have several signals; “Alone” counts those with one. A day is judged when it is over.",
    ),
)
PEOPLE: Final = (
    Panel.of("referrers", "Referrers", color="people", is_wide=True, has_search=True, hint="People and AI referrals."),
    replace(COUNTRIES, title="Countries", limit=300, all_on=""),
    Panel.of("operating-systems", "Operating systems", color="people", hint="People and AI referrals."),
    replace(DEVICES, title="Devices"),
    Panel.of("browsers", "Browsers", color="people", hint="People and AI referrals."),
    OfPeople.of(
        "utm-campaigns", "Campaigns", "utm_source utm_medium utm_campaign human_clicks share_of_people",
        is_wide=True, empty="No visit by people in this period has a utm tag.",
    ),
)
TIMES: Final = (
    Hours.of("hourly-activity", "Hours of the day", is_wide=True),
    Weekdays.of("daily-activity", "Days of the week", is_wide=True, hint="Average visits of such a day."),
    Panel.of(
        "peak-times", "Busiest hours of the week", "day_name hour avg_visits visits human_clicks ai_visits",
        hint="Ranked by visits each time the hour occurs.",
    ),
    Panel.of(
        "weekend-vs-weekday", "Weekdays and weekends",
        "period days visits avg_visits human_clicks ai_visits other_visits",
        is_compared=False,  # equal spans have unequal numbers of these days
    ),
)
LINKS: Final = (
    LinkList.of(
        "all-links", "All links", "short_code visits human_clicks ai_visits other_visits unique_visitors domain "
        "target_url last_visit created_at", is_wide=True, has_split=True, empty="No link is found.",
        note="Links of the links file, and short codes that were answered. CSV has the links that are shown.",
    ),
)
DOMAINS: Final = (
    Panel.of("domain-breakdown", "Domains", is_wide=True, has_split=True),
    Panel.of(
        "traffic-value-breakdown", "Estimated value", is_wide=True,
        hint="Visits times the value of one visit, as TRAFFIC_VALUES sets it.",
    ),
)
# fmt: on
