"""Every answer counted again by hand: plain Python over a list of visits, written from the documents, not the SQL.

A visit is a dict of its columns, its `day` and its `organization`. One function gives one answer.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from queries.prelude import sql_text

Visit = Mapping[str, Any]
Row = dict[str, Any]
Measure = Callable[[Sequence[Visit]], Any]

AI: Final = {"ai_assistant", "ai_training", "ai_coding_agent", "ai_referral"}
OTHER: Final = {"search_crawler", "other_bot"}
PEOPLE: Final = {"human", "ai_referral"}
CATEGORIES: Final = sorted({"human"} | AI | OTHER)
SCORES: Final = {"verified": 1.0, "high": 0.9, "medium": 0.7, "low": 0.4, "contradicted": 0.0}
DAY_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
OTHER_WORDS: Final = "(other)"
MAX_WORDS: Final = 10_000  # of a day: referrers, campaigns, agents, domains
MAX_ROWS: Final = 1_000  # of an answer by such words
UTM_WORDS: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
_SOURCES: Final = sorted(
    re.findall(r"\('(\w+)', '([^']+)', '([^']+)'\)", sql_text("names/referrer_sources")),
    key=lambda row: (row[1].endswith("*"), -len(row[1])),
)
"""Referrer type, host and source, from the table that answers are made with; the longest hosts first."""
DASHBOARD: Final = {
    "overview": "traffic-overview",
    "timeSeries": "time-series",
    "aiSources": "ai-sources",
    "devices": "devices",
    "topLinks": "top-links",
    "weeklyTrend": "weekly-trend",
    "aiPlatformMarketShare": "ai-platform-market-share",
    "referrers": "referrers",
    "geographic": "geographic",
    "browsers": "browsers",
    "operatingSystems": "operating-systems",
    "hourlyActivity": "hourly-activity",
    "botTraffic": "bot-traffic",
}


@dataclass(frozen=True)
class Question:
    """What an answer is counted from."""

    scope: Any
    visits: list[Visit]  # in scope
    seen: list[Visit]  # in the days in scope, whatever the filters
    links: list[Mapping[str, Any]]
    values: list[tuple[str, int, str]]
    countries: Mapping[str, str]

    @property
    def days(self) -> list[date]:
        length = (self.scope.end_date - self.scope.start_date).days + 1
        return [self.scope.start_date + timedelta(number) for number in range(length)]


def recount(
    name: str,
    visits: Iterable[Visit],
    scope: Any,
    links: Iterable[Mapping[str, Any]] = (),
    values: Iterable[tuple[str, int, str]] | None = None,
    countries: Mapping[str, str] | None = None,
) -> Any:
    """The answer called `name`. `values`: traffic type, ten thousandths of the currency's unit, currency."""
    mine = [visit for visit in visits if visit["organization"] == scope.organization]
    seen = [visit for visit in mine if scope.start_date <= visit["day"] <= scope.end_date]
    question = Question(
        scope=scope,
        visits=[visit for visit in seen if _passes(visit, scope)],
        seen=seen,
        links=[link for link in links if link["organization"] == scope.organization],
        values=[(category, 0, "USD") for category in CATEGORIES] if values is None else list(values),
        countries=countries or {},
    )
    return ENTRIES[name](question)


# Words


def _passes(visit: Visit, scope: Any) -> bool:
    wanted = {"short_code": scope.short_code, "domain": scope.domain}
    return all(value is None or visit[column] == value for column, value in wanted.items())


def _week(day: date) -> date:
    return day - timedelta(day.weekday())


def _rate(part: int, whole: int) -> float | None:
    return ((200 * part + whole) // (2 * whole)) / 100 if whole else None


def _share(part: int, whole: int) -> float | None:
    return ((20_000 * part + whole) // (2 * whole)) / 100 if whole else None


def _change(now: int, before: int) -> float | None:
    size = _share(abs(now - before), before)
    return -size if size and now < before else size


def _of(visits: Iterable[Visit], *categories: str) -> list[Visit]:
    return [visit for visit in visits if visit["bot_category"] in categories]


def _named(column: str, missing: str = "unknown") -> Callable[[Visit], str]:
    return lambda visit: missing if visit[column] is None else visit[column]


# Measures: what can be counted of any group of visits


def _in(*categories: str) -> Measure:
    return lambda visits: len(_of(visits, *categories))


def _from_device(device_type: str) -> Measure:
    return lambda visits: sum(visit["device_type"] == device_type for visit in visits)


def _status(hundreds: int) -> Measure:
    return lambda visits: sum((visit["status"] or 0) // 100 == hundreds for visit in visits)


def _links(*categories: str) -> Measure:
    return lambda visits: len(
        {
            (visit["short_code"], visit["domain"])
            for visit in _of(visits, *categories)
            if visit["short_code"] is not None
        }
    )


def _distinct(column: str) -> Measure:
    return lambda visits: len({visit[column] for visit in visits if visit[column] is not None})


def _first(visits: Sequence[Visit]) -> Any:
    return min(visit["visited_at"] for visit in visits)


def _last(visits: Sequence[Visit]) -> Any:
    return max(visit["visited_at"] for visit in visits)


MEASURES: Final[dict[str, Measure]] = {
    "visits": len,
    "total_visits": len,
    "human_clicks": _in("human"),
    "human_visits": _in("human"),
    "ai_visits": _in(*AI),
    "other_visits": _in(*OTHER),
    "ai_assistant_requests": _in("ai_assistant"),
    "ai_training_requests": _in("ai_training"),
    "ai_coding_agent_requests": _in("ai_coding_agent"),
    "ai_referral_requests": _in("ai_referral"),
    "agent_fetches": _in(*(AI - {"ai_referral"})),
    "ai_referrals": _in("ai_referral"),
    "mobile_visits": _from_device("mobile"),
    "desktop_visits": _from_device("desktop"),
    "unique_visitors": lambda visits: len(
        {(visit["day"], visit["visitor"]) for visit in visits if visit["visitor"] is not None}
    ),
    "pages_accessed": lambda visits: len({visit["path"] for visit in visits if visit["path"]}),
    "short_codes": _distinct("short_code"),
    "active_days": _distinct("day"),
    "links_fetched": _links(*(AI - {"ai_referral"})),
    "links_referred": _links("ai_referral"),
    "errors_4xx": _status(4),
    "errors_5xx": _status(5),
    "first_seen": _first,
    "last_seen": _last,
    "last_visit": _last,
    "ai_percentage": lambda visits: _share(_in(*AI)(visits), len(visits)) or 0.0,
    "ai_pct": lambda visits: _share(_in(*AI)(visits), len(visits)) or 0.0,
    "score": lambda visits: SCORES.get(visits[0]["confidence"]),
    "conversion_rate": lambda visits: _share(_in("ai_referral")(visits), _in(*(AI - {"ai_referral"}))(visits)),
    "fetches_per_referral": lambda visits: _rate(_in(*(AI - {"ai_referral"}))(visits), _in("ai_referral")(visits)),
}

SPLIT: Final = (
    "ai_visits", "ai_assistant_requests", "ai_training_requests", "ai_coding_agent_requests", "ai_referral_requests",
    "other_visits",
)  # fmt: skip


# Rows


def _measured(visits: Sequence[Visit], fields: Iterable[str]) -> Row:
    return {field: MEASURES[field](visits) for field in fields}


def _grouped(visits: Iterable[Visit], key: Callable[[Visit], Any]) -> dict[Any, list[Visit]]:
    groups: dict[Any, list[Visit]] = {}
    for visit in visits:
        groups.setdefault(key(visit), []).append(visit)
    return groups


def _ranked(
    visits: Sequence[Visit], keys: Mapping[str, Callable[[Visit], Any]], *fields: str, whole: int | None = None
) -> list[Row]:
    """A row for each combination of keys: most visits first, then by keys; percentages are of `whole`, or of all."""
    whole = len(visits) if whole is None else whole
    groups = _grouped(visits, lambda visit: tuple(key(visit) for key in keys.values()))
    rows = []
    for values, group in groups.items():
        row = dict(zip(keys, values, strict=True))
        for field in fields:
            row[field] = _share(len(group), whole) if field == "percentage" else MEASURES[field](group)
        rows.append(row)
    return sorted(rows, key=lambda row: (-row["visits"], *(row[key] for key in keys)))


def _by(*columns: str) -> dict[str, Callable[[Visit], Any]]:
    return {column: _named(column) for column in columns}


# Bounds: what strangers can write without end is cut, by day and then in the answer


def _cut(question: Question, columns: Sequence[str], counted: Callable[[Visit], bool]) -> list[Visit]:
    """The counted visits in scope. Of each day, the words in these columns with the most visits are kept, whatever the
    filters; in the visits with other words, all of these columns are (other). Words that are all missing are kept."""

    def word(visit: Visit) -> tuple[str | None, ...]:
        return tuple(visit[column] for column in columns)

    kept: dict[date, set[tuple[str | None, ...]]] = {}
    for day, visits in _grouped(filter(counted, question.seen), lambda visit: visit["day"]).items():
        words = Counter(word(visit) for visit in visits if any(text is not None for text in word(visit)))
        by_weight = sorted(words, key=lambda one: (-words[one], [(text is None, text or "") for text in one]))
        kept[day] = {*by_weight[:MAX_WORDS], (None,) * len(columns)}
    return [
        visit if word(visit) in kept[visit["day"]] else {**visit, **dict.fromkeys(columns, OTHER_WORDS)}
        for visit in question.visits
        if counted(visit)
    ]


def _bounded(rows: list[Row], texts: Sequence[str], words: int = 1, others: int = 1) -> list[Row]:
    """At most MAX_ROWS of some ranked rows; the rest is summed up in one row, or in one for each bot_category.

    In that row all `texts` are (other); rows whose first so many `words` are (other) are always part of it.
    """
    cut = [row for row in rows if all(row[text] == OTHER_WORDS for text in texts[:words])]
    named = [row for row in rows if row not in cut] if cut else rows
    room = MAX_ROWS - others if cut or len(rows) > MAX_ROWS else MAX_ROWS
    groups = _grouped([*named[room:], *cut], lambda row: row.get("bot_category"))
    whole = sum(row["visits"] for row in rows)
    rest = [_summed_up(group, whole) | dict.fromkeys(texts, OTHER_WORDS) for group in groups.values()]
    return named[:room] + sorted(rest, key=lambda row: (-row["visits"], row.get("bot_category")))


def _summed_up(rows: Sequence[Row], whole: int) -> Row:
    row = dict(rows[0])
    for field, value in row.items():
        if field in ("first_seen", "last_seen"):
            row[field] = (min if field == "first_seen" else max)(one[field] for one in rows)
        elif isinstance(value, int):
            row[field] = sum(one[field] for one in rows)
    return row | {"percentage": _share(row["visits"], whole)}


def _counted_apart(
    rows: list[Row], visits: list[Visit], keys: Mapping[str, Callable[[Visit], Any]], field: str
) -> None:
    """Count a field that is never cut: of a row's own words on all days; for (other), of each word without a row."""
    groups = _grouped(visits, lambda visit: tuple(key(visit) for key in keys.values()))
    amounts = {words: MEASURES[field](group) for words, group in groups.items()}
    first, category = next(iter(keys)), list(keys).index("bot_category") if "bot_category" in keys else None
    for row in rows:
        if row[first] != OTHER_WORDS:
            row[field] = amounts.pop(tuple(row[key] for key in keys))
    for row in rows:
        if row[first] == OTHER_WORDS:
            alike = (words for words in amounts if category is None or words[category] == row["bot_category"])
            row[field] = sum(amounts[words] for words in alike)


def _with(row: Row, after: str, field: str, value: Any) -> Row:
    """The row with one more field, behind the field `after`."""
    behind = list(row).index(after) + 1
    items = list(row.items())
    return dict([*items[:behind], (field, value), *items[behind:]])


# Answers


def _dashboard(question: Question) -> Row:
    return {member: ENTRIES[name](question) for member, name in DASHBOARD.items()}


def _traffic_overview(question: Question) -> Row:
    return _measured(question.visits, ("total_visits", "human_clicks", *SPLIT, "ai_percentage"))


def _weekly_trend(question: Question) -> Row:
    weeks = _grouped(question.visits, lambda visit: _week(visit["day"]))
    fields = ("total_visits", "human_visits", *SPLIT, "ai_pct")
    return {
        "weekly": [
            {"week": week} | _measured(weeks.get(week, []), fields) for week in sorted(set(map(_week, question.days)))
        ],
        "byPlatform": [
            {"week": week} | row
            for week in sorted(weeks)
            for row in _ranked(_of(weeks[week], *AI), _by("ai_source"), "visits")
        ],
    }


def _time_series(question: Question) -> list[Row]:
    days = _grouped(question.visits, lambda visit: visit["day"])
    fields = ("total_visits", "human_clicks", "ai_visits", "mobile_visits", "desktop_visits")
    return [{"date": day} | _measured(days.get(day, []), fields) for day in question.days]


def _ai_sources(question: Question) -> list[Row]:
    visits = _of(question.visits, *AI)
    return _ranked(visits, _by("ai_source"), "visits", "percentage", "agent_fetches", "ai_referrals")


def _ai_platform_market_share(question: Question) -> list[Row]:
    visits = [visit for visit in _of(question.visits, "ai_assistant") if not visit["is_malicious"]]
    return _ranked(visits, _by("ai_source"), "visits", "percentage", "pages_accessed", "unique_visitors")


def _developer_tools(question: Question) -> list[Row]:
    return _ranked(
        _of(question.visits, "ai_coding_agent"),
        {"tool": _named("ai_source"), "operator": _named("operator")},
        "visits", "percentage", "pages_accessed", "unique_visitors", "first_seen", "last_seen",
    )  # fmt: skip


def _dev_tools_adoption(question: Question) -> list[Row]:
    visits = _of(question.visits, "ai_coding_agent")
    keys = {"week": lambda visit: _week(visit["day"]), "tool": _named("ai_source")}
    rows = _ranked(visits, keys, "visits", "unique_visitors", "active_days")
    counts = {(row["week"], row["tool"]): row["visits"] for row in rows}
    for row in rows:
        before = counts.get((row["week"] - timedelta(7), row["tool"]), 0)
        row["is_new"] = row["week"] == min(week for week, tool in counts if tool == row["tool"])
        row["change_percentage"] = _change(row["visits"], before)
    return sorted(rows, key=lambda row: (row["week"], -row["visits"], row["tool"]))


def _ai_confidence(question: Question) -> list[Row]:
    keys = _by("confidence", "detection_method")
    return _ranked(_of(question.visits, *AI), keys, "score", "visits", "percentage")


def _without_strays(question: Question, visits: Iterable[Visit]) -> list[Visit]:
    """The visits, without the short codes that are no links: not in the links file, and never answered below 400 on
    that domain in these days. A visit without a status may have been answered."""
    answered = {
        (visit["short_code"], visit["domain"])
        for visit in question.seen
        if visit["status"] is None or visit["status"] < 400
    }
    return [
        visit
        if (visit["short_code"], visit["domain"]) in answered or _targets(question.links, visit)
        else {**visit, "short_code": None}
        for visit in visits
    ]


def _top_links(question: Question) -> list[Row]:
    targets = {(link["short_code"], link["domain"]): link["target_url"] for link in question.links}
    rows = _ranked(
        [visit for visit in _without_strays(question, question.visits) if visit["short_code"] is not None],
        _by("short_code", "domain"),
        "visits", "percentage", "human_clicks", "ai_visits", "other_visits", "unique_visitors", "last_visit",
        whole=len(question.visits),
    )  # fmt: skip
    return [_with(row, "domain", "target_url", _target(targets, row)) for row in rows[:100]]


def _target(targets: Mapping[tuple[str, str], str], row: Row) -> str:
    anywhere = targets.get((row["short_code"], ""), "unknown")
    return targets.get((row["short_code"], row["domain"]), anywhere)


def _ai_to_human_conversion(question: Question) -> list[Row]:
    sources = _grouped(_of(_without_strays(question, question.visits), *AI), _named("ai_source"))
    fields = (
        "agent_fetches", "ai_referrals", "conversion_rate", "fetches_per_referral", "links_fetched", "links_referred",
    )  # fmt: skip
    rows = [{"ai_source": source} | _measured(visits, fields) for source, visits in sources.items()]
    return sorted(rows, key=lambda row: (-row["agent_fetches"], row["ai_source"]))


def _traffic_value_breakdown(question: Question) -> list[Row]:
    worth = {category: (amount, currency) for category, amount, currency in question.values}
    rows = _ranked(question.visits, {"traffic_type": _named("bot_category")}, "visits", "percentage")
    total = sum(row["visits"] * worth[row["traffic_type"]][0] for row in rows)
    for row in rows:
        amount, currency = worth[row["traffic_type"]]
        row["value_per_visit"] = amount / 10_000
        row["estimated_value"] = _rate(row["visits"] * amount, 10_000)
        row["value_percentage"] = _share(row["visits"] * amount, total)
        row["currency"] = currency
    return rows


def _devices(question: Question) -> list[Row]:
    fields = ("visits", "percentage", "human_clicks", "ai_visits", "unique_visitors")
    return _ranked(question.visits, _by("device_type"), *fields)


def _protocols(question: Question) -> list[Row]:
    fields = ("visits", "percentage", "human_clicks", "ai_visits", "unique_visitors")
    return _ranked(question.visits, _by("protocol"), *fields)


def _source_links(question: Question) -> list[Row]:
    targets = {(link["short_code"], link["domain"]): link["target_url"] for link in question.links}
    visits = [visit for visit in _of(question.visits, *AI) if visit["short_code"] is not None]
    sources = _grouped(visits, _named("ai_source"))
    fields = ("visits", "percentage", "agent_fetches", "ai_referrals", "errors_4xx", "errors_5xx", "last_visit")
    return [
        _with(row, "domain", "target_url", _target(targets, row))
        for source in sorted(sources)
        for row in _ranked(sources[source], _by("ai_source", "short_code", "domain"), *fields)[:20]
    ]


def _operating_systems(question: Question) -> list[Row]:
    fields = ("visits", "percentage", "human_clicks", "unique_visitors")
    return _ranked(_of(question.visits, *PEOPLE), _by("operating_system"), *fields)


def _browsers(question: Question) -> list[Row]:
    fields = ("visits", "percentage", "human_clicks", "unique_visitors")
    return _ranked(_of(question.visits, *PEOPLE), _by("browser"), *fields)


def _device_by_ai_source(question: Question) -> list[Row]:
    visits = _of(question.visits, *AI)
    sources = _grouped(visits, _named("ai_source"))
    rows = _ranked(visits, _by("ai_source", "device_type"), "visits")
    return [row | {"percentage": _share(row["visits"], len(sources[row["ai_source"]]))} for row in rows]


def _geographic(question: Question) -> list[Row]:
    fields = ("visits", "percentage", "human_clicks", "ai_visits", "unique_visitors")
    rows = _ranked(question.visits, _by("country"), *fields)
    return [_with(row, "country", "country_name", question.countries.get(row["country"], "unknown")) for row in rows]


def _hourly_activity(question: Question) -> list[Row]:
    hours = _grouped(question.visits, lambda visit: visit["visited_at"].hour)
    return [{"hour": hour} | _activity(hours.get(hour, []), question) for hour in range(24)]


def _daily_activity(question: Question) -> list[Row]:
    weekdays = _grouped(question.visits, lambda visit: visit["day"].weekday())
    rows = []
    for weekday, name in enumerate(DAY_NAMES):
        visits = weekdays.get(weekday, [])
        days = sum(day.weekday() == weekday for day in question.days)
        averages = {"days_in_range": days, "avg_visits": _rate(len(visits), days)}
        rows.append({"day_of_week": weekday + 1, "day_name": name} | _activity(visits, question) | averages)
    return rows


def _activity(visits: Sequence[Visit], question: Question) -> Row:
    percentage = _share(len(visits), len(question.visits))
    counts = _measured(visits, ("human_clicks", "ai_visits", "other_visits"))
    return {"visits": len(visits), "percentage": percentage} | counts


def _peak_times(question: Question) -> list[Row]:
    keys = {
        "day_of_week": lambda visit: visit["day"].isoweekday(),
        "hour": lambda visit: visit["visited_at"].hour,
    }
    rows = []
    for row in _ranked(question.visits, keys, "visits", "percentage", "human_clicks", "ai_visits")[:10]:
        days = sum(day.isoweekday() == row["day_of_week"] for day in question.days)
        named = _with(row, "day_of_week", "day_name", DAY_NAMES[row["day_of_week"] - 1])
        rows.append({"rank": len(rows) + 1} | _with(named, "percentage", "avg_visits", _rate(row["visits"], days)))
    return rows


def _weekend_vs_weekday(question: Question) -> list[Row]:
    rows = []
    for period, weekdays in (("weekday", range(5)), ("weekend", range(5, 7))):
        visits = [visit for visit in question.visits if visit["day"].weekday() in weekdays]
        days = sum(day.weekday() in weekdays for day in question.days)
        row = {"period": period, "days": days} | _activity(visits, question)
        rows.append(_with(row, "percentage", "avg_visits", _rate(len(visits), days)))
    return rows


def _utm_campaigns(question: Question) -> list[Row]:
    columns = ("utm_source", "utm_medium", "utm_campaign")
    visits = _cut(question, columns, lambda visit: any(visit[word] is not None for word in UTM_WORDS))
    rows = _ranked(visits, _by(*columns), "visits", "percentage", "human_clicks", "ai_visits", "unique_visitors")
    return _bounded(rows, columns, words=3)


def _referrers(question: Question) -> list[Row]:
    keys = {"referrer": _named("referrer", "(direct)"), "referrer_type": _named("referrer_type", "direct")}
    visits = _cut(question, ["referrer"], lambda visit: visit["bot_category"] in PEOPLE)
    rows = _bounded(_ranked(visits, keys, "visits", "percentage", "human_clicks", "ai_referrals"), list(keys))
    return [row | {"source": _source(row["referrer"], row["referrer_type"])} for row in rows]


def _source(referrer: str, referrer_type: str) -> str:
    """The name of the longest host in the table that the referrer equals or lies below; else the referrer."""
    for listed_type, host, source in _SOURCES:
        name = re.escape(host).replace(r"\.\*", r"\.(com|[a-z]{2}|com?\.[a-z]{2})")
        if listed_type == referrer_type and re.fullmatch(rf"([^:/]+\.)?{name}", referrer):
            return source
    return referrer


def _domain_breakdown(question: Question) -> list[Row]:
    visits = _cut(question, ["domain"], lambda visit: True)
    rows = _ranked(
        visits, _by("domain"),
        "visits", "percentage", "human_clicks", "ai_visits", "other_visits", "short_codes", "unique_visitors",
    )  # fmt: skip
    rows = _bounded(rows, ["domain"])
    _counted_apart(rows, _without_strays(question, question.visits), _by("domain"), "short_codes")
    return rows


def _bot_traffic(question: Question) -> list[Row]:
    asked = {"ai": AI, "other": OTHER, None: (AI | OTHER) - {"ai_referral"}}
    wanted = asked.get(question.scope.traffic_type, {question.scope.traffic_type}) - {"human"}
    keys = _by("agent", "operator", "agent_kind", "bot_category", "confidence")
    visits = _cut(question, ["agent"], lambda visit: visit["bot_category"] != "human")
    rows = _ranked(
        _of(visits, *wanted), keys,
        "visits", "percentage", "pages_accessed", "unique_visitors", "errors_4xx", "errors_5xx",
        "first_seen", "last_seen",
    )  # fmt: skip
    rows = _bounded(rows, ["agent", "operator", "agent_kind", "confidence"], others=6)
    _counted_apart(rows, _of(question.visits, *wanted), keys, "pages_accessed")
    return rows


def _filter_values(question: Question) -> list[Row]:
    codes = [visit for visit in _without_strays(question, question.seen) if visit["short_code"] is not None]
    visits = {
        "domain": Counter(visit["domain"] for visit in question.seen),
        "short_code": Counter(visit["short_code"] for visit in codes),
        "target_url": Counter(url for visit in codes for url in _targets(question.links, visit)),
        "traffic_type": Counter(visit["bot_category"] for visit in question.seen),
        "ai_source": Counter(visit["ai_source"] for visit in question.seen),
    }
    rows = [_values(name, counted) for name, counted in visits.items()]
    return [*rows, {"filter": "range", "values": ["7d", "30d", "90d"], "truncated": False}]


def _targets(links: Iterable[Mapping[str, Any]], visit: Visit) -> set[str]:
    """Where a short code leads: on the visit's domain, and on any."""
    places = {(visit["short_code"], visit["domain"]), (visit["short_code"], "")}
    return {link["target_url"] for link in links if (link["short_code"], link["domain"]) in places}


def _values(name: str, visits: Counter[str | None]) -> Row:
    del visits[None]
    heaviest = sorted(visits, key=lambda value: (-visits[value], value))[:1000]
    return {"filter": name, "values": sorted(heaviest), "truncated": len(visits) > 1000}


ENTRIES: Final[dict[str, Callable[[Question], Any]]] = {
    "dashboard": _dashboard,
    "traffic-overview": _traffic_overview,
    "weekly-trend": _weekly_trend,
    "time-series": _time_series,
    "ai-sources": _ai_sources,
    "ai-platform-market-share": _ai_platform_market_share,
    "developer-tools": _developer_tools,
    "dev-tools-adoption": _dev_tools_adoption,
    "ai-confidence": _ai_confidence,
    "top-links": _top_links,
    "ai-to-human-conversion": _ai_to_human_conversion,
    "traffic-value-breakdown": _traffic_value_breakdown,
    "devices": _devices,
    "operating-systems": _operating_systems,
    "browsers": _browsers,
    "device-by-ai-source": _device_by_ai_source,
    "geographic": _geographic,
    "hourly-activity": _hourly_activity,
    "daily-activity": _daily_activity,
    "peak-times": _peak_times,
    "weekend-vs-weekday": _weekend_vs_weekday,
    "utm-campaigns": _utm_campaigns,
    "referrers": _referrers,
    "domain-breakdown": _domain_breakdown,
    "bot-traffic": _bot_traffic,
    "filter-values": _filter_values,
    "protocols": _protocols,
    "source-links": _source_links,
}
