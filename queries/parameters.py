"""The parameters of the API, the command line and notebooks: their validation, and their conversion to a Scope."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache, partial
from typing import Any, Final, Literal

from data import BOT_CATEGORIES, BadInput
from data.hosts import normalized_host
from data.links.index import MAX_TAGGED, IndexedLinks, LinkIndex
from data.local_time import today as today_in
from data.visits import DEVICE_TYPES
from queries.catalog import Entry
from queries.scope import FILTERS, Scope

RANGES: Final = {"7d": 7, "30d": 30, "90d": 90}
DEFAULT_RANGE: Final = "30d"
MAX_VALUE_LENGTH: Final = 2_048
MAX_SHOWN_LENGTH: Final = 40
"""Maximum number of characters that a message quotes from a value."""
MAX_DAYS: Final = 3_700

NO_LINK: Final = ""
"""A short code that no visit has, so that the answer for an unknown target_url is empty."""

TRAFFIC_TYPES: Final = {
    **{category: category for category in BOT_CATEGORIES},
    "assistant": "ai_assistant", "training-crawler": "ai_training", "coding-agent": "ai_coding_agent",
    "ai-referral": "ai_referral", "other": "other", "ai": "ai",
}  # fmt: skip
"""The values that the parameter traffic_type accepts, in lower case, with the value in a Scope for each."""

TRAFFIC_GROUPS: Final = {"people": "people", "ai": "ai", "bots": "bots"}
"""The values that the parameter traffic_group accepts, in lower case, with the value in a Scope for each."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")


class InvalidParameter(BadInput):
    """A parameter is given twice, or has a value that it does not accept, such as "5d" for `range`."""

    def __init__(self, name: str, problem: str, remedy: str) -> None:
        """Build the message: `problem` follows the parameter's name in a sentence; `remedy` is a separate sentence."""
        self.problem = f"The parameter {name} {problem}."
        self.remedy = remedy
        super().__init__(f"{self.problem} {remedy}")


def _domain(value: str) -> str:
    """Return the normalized domain. An invalid host is only converted to lower case, since visits stored before hosts
    were validated may have it.
    """
    return normalized_host(value) or value.lower()


def _one_of(name: str, meanings: Mapping[str, str], value: str) -> str:
    """Return the meaning of a value, ignoring its case. Raises InvalidParameter for `name` if the value is unknown."""
    if value.lower() not in meanings:
        problem = f"has the unknown value {_quote(value)}"
        raise InvalidParameter(name, problem, f"Use one of {', '.join(meanings)}.")
    return meanings[value.lower()]


def _country(value: str) -> str:
    return value.lower() if value.lower() == "unknown" else value.upper()


_TEXT: Final = {"type": "string"}
_CHECKED: Final = frozenset(("traffic_group", "traffic_type"))
"""The filters that reject unknown values."""


@dataclass(frozen=True)
class Parameter:
    """One parameter. Query strings, the OpenAPI description, command-line options, MCP tool arguments, filter chips and
    the documentation are derived from it.
    """

    name: str
    kind: Literal["days", "filter", "word"]
    """"days": it selects the days of the scope. "word": a filter by a value shown in answers, compared case-sensitively
    unless `parse` changes its case. "filter": any other filter."""
    description: str
    label: str = ""  # label of its chip on a page; "" if it has no chip
    parse: Callable[[str], str] = str
    """Converts a value to the value of the Scope field with the same name. Raises InvalidParameter."""
    schema: Mapping[str, Any] = field(default_factory=lambda: _TEXT)  # the values that it accepts, as JSON Schema
    form: str = "upper and lower case are distinguished"
    """A clause about the form of valid values, which ends the hint about a value that no visit has."""
    links_unknown: bool = True
    """Whether an "unknown" row on a page links to the visits without this value; False if most visits have none."""

    @property
    def takes_any(self) -> bool:
        """Whether it accepts any value, even a value that no visit has."""
        return self.kind != "days" and self.name not in _CHECKED

    @property
    def page_name(self) -> str:
        """The name in a page's address. Words get the prefix `f_`, since campaign links may carry `utm_…`."""
        return f"f_{self.name}" if self.kind == "word" else self.name


_ROWS: Final = (
    Parameter(
        "range", "days", f"{', '.join(RANGES)}: days ending today (inclusive); {DEFAULT_RANGE} if no days are given",
        schema={**_TEXT, "enum": list(RANGES), "default": DEFAULT_RANGE},
    ),
    Parameter("start_date", "days", "first day, YYYY-MM-DD or RFC 3339; ignored without a last day"),
    Parameter("end_date", "days", "last day (inclusive), in the same formats; a future day counts as today"),
    Parameter(
        "domain", "filter", "only visits to this domain, or unknown", "Domain", _domain,
        form="a domain has no scheme and no path, such as go.example.com",
    ),
    Parameter("short_code", "filter", "only visits to this short code", "Link"),
    Parameter(
        "target_url", "filter", "only visits to the link with this target; takes precedence over a short code",
        "Target", form="a target is the whole address that a link leads to",
    ),
    Parameter(
        "tag", "filter", f"only visits to links with this tag, case-sensitive; at most {MAX_TAGGED:,} links",
        "Tag",
    ),
    Parameter(
        "traffic_group", "filter",
        "only visits of this group, case-insensitive: people, ai or bots; AI referrals are in the first two",
        "Group", partial(_one_of, "traffic_group", TRAFFIC_GROUPS),
    ),
    Parameter(
        "traffic_type", "filter",
        "only visits of this category or group, for bot-traffic, paths and statuses; case-insensitive: "
        f"{', '.join(TRAFFIC_TYPES)}",
        "Traffic type", partial(_one_of, "traffic_type", TRAFFIC_TYPES),
    ),
    Parameter(
        "country", "word", "only visits from this country (ISO 3166-1 alpha-2), or unknown", "Country", _country,
        form="country codes have two letters, such as DE",
    ),
    Parameter(
        "device_type", "word", f"only visits with this device: {', '.join(DEVICE_TYPES)} or unknown", "Device type",
        form=f"devices are {', '.join(DEVICE_TYPES)} and unknown",
    ),
    Parameter("browser", "word", "only visits with this browser, or unknown", "Browser"),
    Parameter("operating_system", "word", "only visits with this operating system, or unknown", "Operating system"),
    Parameter(
        "referrer", "word", "only visits from this referring host, or (direct)", "Referrer", str.lower,
        form="a referrer is a host, such as news.example.com, or (direct)",
    ),
    Parameter(
        "ai_source", "word", "only visits by or from this AI source, or unknown", "AI source", links_unknown=False
    ),
    Parameter("agent", "word", "only visits by this agent, or unknown", "Agent", links_unknown=False),
    Parameter(
        "operator", "word", "only visits by agents of this operator, or unknown", "Operator", links_unknown=False
    ),
    Parameter(
        "path", "word", "only visits to this path, without the query string", "Path",
        form="paths begin with a slash and are case-sensitive",
    ),
    Parameter(
        "status", "word", "only visits answered with this HTTP status, or unknown", "Status",
        form="a status has three digits, such as 404",
    ),
    Parameter(
        "utm_source", "word", "only visits with this utm_source, or unknown", "Campaign source", links_unknown=False
    ),
    Parameter(
        "utm_campaign", "word", "only visits with this utm_campaign, or unknown", "Campaign", links_unknown=False
    ),
)  # fmt: skip

PARAMETERS: Final[Mapping[str, Parameter]] = {row.name: row for row in _ROWS}
"""Every parameter by name, in the order in which they are documented. A filter, except target_url, is also a field of
Scope and a condition in prelude/3_scope.sql; a word is also a term of has_word() there."""


RESOLVED: Final = frozenset(("target_url", "tag"))
"""Parameters that are resolved to links when a Scope is built."""


def validate(pairs: Iterable[tuple[str, str]], entry: Entry) -> Mapping[str, str]:
    """Select, from pairs of name and value, the parameters that `entry` accepts; empty values are dropped.

    Raises InvalidParameter if an accepted parameter is given twice or is too long.
    """
    return select_parameters(pairs, parameters_of(entry))


def parameters_of(entry: Entry) -> tuple[str, ...]:
    """Return the names of the parameters that an entry accepts."""
    return _parameters(entry.takes_traffic_type, entry.takes_short_code)


@lru_cache
def _parameters(traffic_type: bool, short_code: bool) -> tuple[str, ...]:
    is_excluded = {"short_code": not short_code, "traffic_type": not traffic_type}
    return tuple(name for name in PARAMETERS if not is_excluded.get(name))


def single_filters(given: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return, for each given filter that accepts any value, the parameters for a query with the same days and only this
    filter.
    """
    set_ones = {name: value for name, value in given.items() if value}
    days = {name: value for name, value in set_ones.items() if PARAMETERS[name].kind == "days"}
    return {name: {**days, name: value} for name, value in set_ones.items() if PARAMETERS[name].takes_any}


def unknown_value_hint(name: str, value: str) -> str:
    """Return a hint that no visit has this value of a filter, with the form of valid values."""
    row = PARAMETERS[name]
    label = row.label if row.label[:2].isupper() else row.label.lower()
    shown = value if len(value) <= MAX_SHOWN_LENGTH else f"{value[:MAX_SHOWN_LENGTH]}…"
    return f"No visits on these days have {label} {shown}; {row.form}."


def select_parameters(pairs: Iterable[tuple[str, str]], known: Collection[str]) -> dict[str, str]:
    """Return the `known` parameters from pairs of name and value, like `validate`."""
    values: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            continue
        if name in values:
            raise InvalidParameter(name, "is given twice", "Give it once.")
        if len(value) > MAX_VALUE_LENGTH:
            raise InvalidParameter(name, "is too long", f"Use at most {MAX_VALUE_LENGTH:,} characters.")
        values[name] = value
    return {name: value for name, value in values.items() if value}


def scope_from(query: Mapping[str, str], organization: str, today: date, targets: LinkIndex) -> Scope:
    """Return the scope for an answer. `today` is the organization's current day. Raises InvalidParameter."""
    if "start_date" in query and "end_date" in query:
        zone = partial(targets.zone, organization)
        start, end = (parse_day(name, query[name], zone) for name in ("start_date", "end_date"))
        end = min(end, today)
        if start > end:
            remedy = "Use a day on or before end_date and today."
            raise InvalidParameter("start_date", f"is after the last day, {end}", remedy)
        if (end - start).days >= MAX_DAYS:
            raise InvalidParameter("start_date", "is too far before the last day", f"Use at most {MAX_DAYS:,} days.")
    elif length := RANGES.get(query.get("range", DEFAULT_RANGE)):
        start, end = today - timedelta(days=length - 1), today
    else:
        remedy = f"Use one of {', '.join(RANGES)}; or start_date and end_date."
        raise InvalidParameter("range", f"has the unknown value {_quote(query['range'])}", remedy)
    filters: dict[str, Any] = {name: PARAMETERS[name].parse(value) for name, value in query.items() if name in FILTERS}
    if filters.get("domain") == "unknown":
        filters = {**filters, "domain": None, "no_domain": True}
    if "target_url" in query:
        filters["short_code"] = targets.links(organization).short_code_of(query["target_url"]) or NO_LINK
    if "tag" in query:
        filters["tag"] = _links_with_tag(query["tag"], targets.links(organization))
    return Scope(organization, start, end, **filters)


def _links_with_tag(tag: str, links: IndexedLinks) -> str:
    """Return the links with a tag, as Scope.tag lists them. Raises InvalidParameter if too many links have it."""
    words, found = links.with_tag(tag)
    if found > MAX_TAGGED:
        remedy = f"Use a tag with at most {MAX_TAGGED:,} links."
        raise InvalidParameter("tag", f"selects {found:,} links", remedy)
    return words


def parse_day(name: str, value: str, zone: Callable[[], str]) -> date:
    """Return the day that a value names; a time is converted to the zone from `zone`. Raises InvalidParameter."""
    try:
        if _DAY.fullmatch(value):
            return date.fromisoformat(value)
        if _TIMESTAMP.fullmatch(value):
            return today_in(zone(), datetime.fromisoformat(value.upper()))
    except (ValueError, OverflowError):
        pass
    problem = f"is {_quote(value)}, not a date"
    raise InvalidParameter(name, problem, "Write it like 2026-11-20 or 2026-11-20T10:00:00Z.")


def _quote(value: str) -> str:
    """Return a value as an error message shows it: quoted, and truncated if it is long."""
    return repr(value if len(value) <= MAX_SHOWN_LENGTH else f"{value[:MAX_SHOWN_LENGTH]}…")
