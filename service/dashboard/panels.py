"""The panels of all pages: the answer of each panel, the fields to show, and the text for an empty answer."""

from dataclasses import replace
from typing import Final

from queries import ENTRIES
from service.dashboard.panel import Panel
from service.dashboard.panel_kinds import (
    Agents,
    CountryMap,
    Domains,
    Hours,
    LinkList,
    OfPeople,
    Operators,
    Purposes,
    Referrers,
    Values,
    Weekdays,
    WeeksByName,
)
from service.dashboard.series import MainSeries, TimeSeries
from service.dashboard.what_changed import WhatChanged

# fmt: off
WEEKS_HINT: Final = "Each line has its own scale; the number is for the last complete week."
TIME_SERIES: Final = MainSeries.of("time-series", "Visits by day")
AI_SOURCES: Final = Panel.of("ai-sources", "AI platforms", color="ai", limit=10, all_on="ai")
TOP_LINKS: Final = Panel.of(
    "top-links", "Links", "short_code domain visits percentage", limit=10, has_split=True, all_on="links",
    file_of=ENTRIES["all-links"],
)
AGENTS: Final = Agents.of(
    "bot-traffic", "Agents", "agent agent_kind confidence visits percentage", limit=10, all_on="agents",
)
COUNTRIES: Final = CountryMap.of(
    "geographic", "Countries", "country_name country human_clicks share_of_people", limit=10, all_on="people",
)
REFERRERS: Final = Referrers.of(
    "referrers", "Referrers", "referrer referrer_type visits percentage", limit=10, all_on="people",
    color="people", hint="People, and people sent by AI.",
)
DEVICES: Final = OfPeople.of("devices", "Devices", "device_type human_clicks share_of_people")
HOURS: Final = Hours.of("hourly-activity", "Hours", all_on="times")

CHANGED: Final = WhatChanged.of(
    "visits-by-name", "What changed", color="plain",
    hint="Rises and falls are larger than chance would explain.",
    empty="Nothing is new, and nothing rose or fell more than by chance.",
)

OVERVIEW: Final = (TIME_SERIES, CHANGED, AI_SOURCES, TOP_LINKS, AGENTS, REFERRERS, COUNTRIES, DEVICES)
LINK: Final = (
    TIME_SERIES, AI_SOURCES, AGENTS, REFERRERS, COUNTRIES, DEVICES, HOURS,
    Panel.of(
        "link-operators", "Read before people came", is_wide=True, color="ai",
        hint="Reads by AI before the first person that it sent, and how many there would be by chance.",
        note="More reads than by chance do not prove that people came because of them.",
        empty="No visits by AI agents, or by people they sent, in this period.",
    ),
    Panel.of(
        "link-agents", "AI agents", is_wide=True, color="ai",
        hint="Every AI agent seen in this period, whether or not it read this link.",
        empty="No AI agent was seen in this period.",
    ),
)
AI: Final = (
    Operators.of(
        "operators", "Operators",
        "operator agent_fetches ai_referrals asked visits_per_answer indexed trained coding bytes_sent proof",
        is_wide=True, color="ai",
        hint="The operators of agents, the pages they read and why, and the people they send.",
        note="Verified: by its address. Signed: a signature names it. Claimed: only its user agent names it. "
        "Fake name: other addresses use its name. A page that is read need not be quoted.",
    ),
    Panel.of(
        "ai-to-human-conversion", "Platforms", is_wide=True, color="ai",
        hint="Pages that each platform's agents read, and the people it sends.",
        note="The two are independent: a page that is read need not lead to a visit.",
    ),
    Purposes.of(
        "ai-by-day", "Why AI reads", color="ai", limit=400,
        hint="Each line has its own scale; the number is for the last complete day.",
    ),
    WeeksByName.of(
        "weekly-trend", "Platforms by week", part="byPlatform", color="ai", limit=400, hint=WEEKS_HINT,
    ),
    Panel.of(
        "developer-tools", "Coding agents", "tool operator visits percentage pages_accessed first_seen last_seen",
        color="ai", is_wide=True,
    ),
    Panel.of(
        "ai-texts", "Markdown and llms.txt", is_wide=True, color="ai", is_left_out=True,
        hint="Requests by agents for files written for them, whether or not the files exist.",
        note="4xx: missing or refused. A page may also be sent as Markdown under its usual path.",
    ),
)
AI_DETAILS: Final = (
    TimeSeries.of(
        "weekly-trend", "Weeks",
        "week total_visits human_visits ai_visits other_visits ai_assistant_requests ai_training_requests "
        "ai_coding_agent_requests ai_referral_requests ai_pct", part="weekly", unit="week", limit=100,
        hint="Incomplete weeks are hatched.",
    ),
    Purposes.of("ai-by-week", "Why AI reads, by week", unit="week", color="ai", limit=400, hint=WEEKS_HINT),
    WeeksByName.of(
        "dev-tools-adoption", "Coding agents by week", "week tool visits active_days is_new change_percentage",
        limit=400, hint=WEEKS_HINT,
    ),
    Panel.of(
        "ai-platform-market-share", "Share of assistants", "ai_source visits percentage pages_accessed asked",
        color="ai", is_wide=True, hint="Shares of all pages read by assistants.",
    ),
    Panel.of(
        "ai-confidence", "How sure", color="ai", is_wide=True,
        hint="The evidence that each visit is by AI.",
        note="AI traffic is a lower bound: agents that pretend to be browsers are counted as people.",
    ),
    Panel.of(
        "device-by-ai-source", "Devices by platform", color="ai", is_wide=True, hint="Shares are within each platform.",
    ),
)
"""Panels on the separate page AI in detail, for less common questions about AI."""
PATHS: Final = Panel.of(
    "paths", "Paths", "path visits percentage errors_4xx errors_5xx last_visit", is_wide=True, has_search=True,
    hint="Requested paths, whether or not they are links.",
    cut="The 100 paths with the most visits.",
)
PATHS_PAGE: Final = (
    replace(PATHS, has_split=True),
    Panel.of("statuses", "Responses", "status visits percentage", is_wide=True, has_split=True),
)
_PLATFORMS: Final = Panel.of(
    "ai-to-human-conversion", "Platforms", "ai_source agent_fetches asked indexed trained coding", is_wide=True,
    color="ai", hint="Pages read, and why.",
)
_AGENTS: Final = Agents.of(
    "bot-traffic", "Agents",
    "agent operator agent_kind confidence visits pages_accessed errors_4xx errors_5xx last_seen", is_wide=True,
)
_LINKS: Final = Panel.of(
    "top-links", "Links", "short_code visits percentage domain target_url last_visit", is_wide=True,
    cut="The 100 links with the most of these visits.",
)
OF_PLATFORM: Final = (
    replace(_PLATFORMS, fields=(
        "ai_source", "agent_fetches", "ai_referrals", "asked", "indexed", "trained", "coding", "fetches_per_referral",
    ), hint="Pages read, and people sent."),
    _AGENTS,
    replace(PATHS, fields=(
        "path", "visits", "percentage", "agent_fetches", "ai_referrals", "errors_4xx", "errors_5xx", "last_visit",
    )),
    Panel.of(
        "source-links", "Links",
        "short_code domain visits percentage agent_fetches ai_referrals errors_4xx errors_5xx last_visit", color="ai",
        is_wide=True, hint="Shares of all visits to links by this platform and by people it sent.",
        cut="The 20 links with the most visits by this platform and by people it sent.",
    ),
)
OF_OPERATOR: Final = (_PLATFORMS, _AGENTS, PATHS, _LINKS)
OF_AGENT: Final = (_AGENTS, PATHS, _LINKS, _PLATFORMS)
AGENTS_PAGE: Final = (
    Agents.of(
        "bot-traffic", "Agents",
        "agent visits percentage operator agent_kind confidence errors_4xx errors_5xx bytes_sent last_seen",
        is_wide=True, has_search=True, explains=True,
        note="Fake name: the request named this agent, but came from outside its operator's published addresses.",
    ),
    Panel.of(
        "disguised", "Bots in disguise",
        hint="Bots under a browser's name, by what gave them away.",
        note="A visit may have several signs. A day is judged when it is over.",
    ),
)
PEOPLE: Final = (
    Referrers.of(
        "referrers", "Referrers", color="people", is_wide=True, has_search=True, hint="People, and people sent by AI.",
    ),
    replace(COUNTRIES, limit=300, all_on=""),
    Panel.of("operating-systems", "Operating systems", color="people", hint="People, and people sent by AI."),
    DEVICES,
    Panel.of("browsers", "Browsers", color="people", hint="People, and people sent by AI."),
    OfPeople.of(
        "utm-campaigns", "Campaigns", "utm_source utm_medium utm_campaign human_clicks share_of_people",
        is_wide=True, empty="No visit by people in this period has a utm tag.",
    ),
)
TIMES: Final = (
    Hours.of("hourly-activity", "Hours", hint="Visits in each hour of the day."),
    Weekdays.of("daily-activity", "Days of the week", hint="Average visits on each day of the week."),
    Panel.of(
        "weekend-vs-weekday", "Weekdays and weekends",
        "period days visits avg_visits human_clicks ai_visits other_visits", is_wide=True,
        is_compared=False,  # equal spans have unequal numbers of these days
    ),
    Panel.of(
        "peak-times", "Busiest hours", "day_name hour avg_visits visits human_clicks ai_visits", is_wide=True,
        hint="Ranked by the average visits in each hour of each day of the week.",
    ),
)
TAGS: Final = Panel.of(
    "tags", "Tags", "tag visits human_clicks ai_visits other_visits people_visitors last_visit", is_wide=True,
    has_split=True, is_left_out=True, note="A visit to a link with two tags counts under both.",
)
LINKS_BY_TAG: Final = (
    replace(
        TAGS, limit=1_000, is_left_out=False, has_search=True,
        empty="No link with a tag was visited in this period. A link's tags are set on its page.",
    ),
)
LINKS: Final = (
    LinkList.of(
        "all-links", "All links", "short_code visits human_clicks ai_visits other_visits people_visitors domain "
        "target_url tags last_visit created_at", is_wide=True, has_split=True, empty="No links found.",
        note="Stored links, and short codes with successful requests. The CSV file has up to 100,000 of them.",
    ),
)
DOMAINS: Final = (
    Domains.of(
        "domain-breakdown", "Domains",
        "domain visits percentage human_clicks ai_visits other_visits short_codes people_visitors", is_wide=True,
        has_split=True,
    ),
    Values.of(
        "traffic-value-breakdown", "Estimated value", is_wide=True, is_left_out=True,
        hint="Visits times the value of one visit, as set by TRAFFIC_VALUES.",
    ),
)
# fmt: on
