"""A page's filters: the API's parameters in its address, the scopes that they select, and links that change them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property, partial
from typing import Final, Self
from urllib.parse import quote, urlencode

from data.links.index import LinkIndex
from queries import (
    DEFAULT_RANGE,
    ENDPOINTS,
    MAX_DAYS,
    PARAMETERS,
    RANGES,
    RESOLVED,
    TRAFFIC_TYPES,
    Entry,
    InvalidParameter,
    Scope,
    parse_day,
    scope_from,
    validate,
)
from service.core.pages.columns import CATEGORIES
from service.reports.query_string import parse_parameters

_ALL_PARAMETERS: Final = ENDPOINTS["bot-traffic"]
"""An entry that takes every parameter."""
CHIPS: Final = {row.name: row.label for row in PARAMETERS.values() if row.label}
"""The filters that are shown as chips, and their labels; the days have a separate chip."""
_NAMES: Final = {row.page_name: row.name for row in PARAMETERS.values()}
"""The parameters, by their names in a page's address."""
_OF_PAGES: Final = {"compare": "before", "by": "tag"}
"""The parameters that pages have in addition to the API's, each with its only value."""
ALL_GROUPS: Final = "all"
"""The value of traffic_group for all visits, which pages accept but the API does not."""
_GROUPS: Final = {"people": "People", "ai": "AI", "bots": "Bots", ALL_GROUPS: "All"}
"""The values of traffic_group on pages, and their labels."""
_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "traffic_group": _GROUPS,
    "traffic_type": {name: CATEGORIES[meaning] for name, meaning in TRAFFIC_TYPES.items()},
}
"""The words for values of filters, by the filter's name."""
_FORM_FIELDS: Final = frozenset(("domain", "short_code"))
"""The filters with a field in the form."""


class WrongOrder(InvalidParameter):
    """The first day is after the last day, or after today."""

    def __init__(self) -> None:
        super().__init__("start_date", "is after end_date", "Choose other days.")
        self.problem = "“From” must not be after “To” or after today."


@dataclass(frozen=True)
class Filters:
    """The valid parameters of a page, as the API interprets them."""

    parameters: Mapping[str, str]
    """The parameters that have an effect, by name."""
    given: Mapping[str, str]
    """All given parameters, including any without effect."""
    organization: str
    today: date
    targets: LinkIndex
    target_code: str | None = None  # the short code that target_url resolves to
    target_codes: int = 0  # number of short codes that lead to target_url
    tagged: str | None = None  # the links with the tag, encoded as in Scope.tag
    compares: bool = False  # whether tables show the previous period: a parameter of pages, not of the API
    by: str = ""  # "tag": the page Links lists tags instead of links; a parameter of pages, too
    chosen_group: str = ""  # the traffic_group in the address, perhaps ALL_GROUPS; "": the default of the page

    @classmethod
    def parse(cls, query_string: bytes, organization: str, today: date, targets: LinkIndex, group: str = "") -> Self:
        """Parse the query string of a page; `group` is the page's default for traffic_group.

        Raises InvalidParameter, as the API does. Blocks while it reads links.
        """
        given = dict(parse_parameters(query_string, (*_NAMES, *_OF_PAGES)))
        own = {name: given.pop(name, "") for name in _OF_PAGES}
        for name, value in _OF_PAGES.items():
            if own[name] not in {"", value}:
                raise InvalidParameter(name, "has an unknown value", f"Use {value}.")
        if given.get("start_date") and given.get("end_date"):
            zone = partial(targets.zone, organization)
            start, end = (parse_day(name, given[name], zone) for name in ("start_date", "end_date"))
            if start > min(end, today):
                raise WrongOrder
        chosen = given.get("traffic_group", "")
        shown = "" if chosen.lower() == ALL_GROUPS else chosen or group
        values = {_NAMES[name]: value for name, value in given.items()} | {"traffic_group": shown}
        filters = cls.of(values, organization, today, targets)
        return replace(filters, compares=bool(own["compare"]), by=own["by"], chosen_group=chosen)

    @classmethod
    def of(cls, values: Mapping[str, str], organization: str, today: date, targets: LinkIndex) -> Self:
        """Return the filters that these API parameters set. Raises InvalidParameter. Blocks while it reads links."""
        given = validate(values.items(), _ALL_PARAMETERS)
        has_span = "start_date" in given and "end_date" in given
        ignored = {"range"} if has_span else {"start_date", "end_date"}
        if "target_url" in given:
            ignored |= {"short_code"}
        parameters = {name: value for name, value in given.items() if name not in ignored}
        scope = scope_from(parameters, organization, today, targets)
        codes = targets.links(organization).codes_to(given["target_url"]) if "target_url" in given else 0
        group = parameters.get("traffic_group", "")
        return cls(
            parameters, given, organization, today, targets, scope.short_code, codes, scope.tag, chosen_group=group
        )

    @cached_property
    def scope(self) -> Scope:
        """The scope with every filter applied."""
        return self.scope_for(_ALL_PARAMETERS)

    def scope_for(self, entry: Entry) -> Scope:
        """Return the scope of an endpoint's answer for these parameters; the endpoint may ignore some of them."""
        accepted = validate(self.parameters.items(), entry)
        given = RESOLVED & accepted.keys()
        rest = {name: value for name, value in accepted.items() if name not in given}
        scope = scope_from(rest, self.organization, self.today, self.targets)
        scope = replace(scope, tag=self.tagged) if "tag" in given else scope
        return replace(scope, short_code=self.target_code) if "target_url" in given else scope

    @property
    def days(self) -> int:
        """The number of days in scope."""
        return (self.scope.end_date - self.scope.start_date).days + 1

    @property
    def range(self) -> str:
        """The range in effect; "" for custom days."""
        return "" if "start_date" in self.parameters else self.parameters.get("range", DEFAULT_RANGE)

    @property
    def in_address(self) -> dict[str, str]:
        """The parameters in a page's address, without the page's default group."""
        chosen = {**self.parameters, "traffic_group": self.chosen_group}
        return {name: value for name, value in chosen.items() if value}

    def query_string(self, **changes: str | None) -> str:
        """Return a page's query string with these parameters and the given changes; None removes a parameter."""
        changed = {**self.in_address, **changes}
        if "range" in changes:
            changed |= {"start_date": None, "end_date": None}
        elif "start_date" in changes:
            changed["range"] = None
        named = {PARAMETERS[name].page_name: value for name, value in changed.items() if value}
        return query_of(named | self._of_page)

    @property
    def _of_page(self) -> dict[str, str]:
        """The parameters that only pages have, if they are set."""
        chosen = {"compare": _OF_PAGES["compare"] if self.compares else "", "by": self.by}
        return {name: value for name, value in chosen.items() if value}

    @property
    def compare_query(self) -> str:
        """The query string that turns comparison in tables on or off."""
        return replace(self, compares=not self.compares).query_string()

    def days_query(self, start: date, end: date) -> str:
        """Return the query string for other days, as a range if they match one."""
        length = (end - start).days + 1
        name = next((name for name, days in RANGES.items() if days == length and end == self.today), None)
        if name:
            return self.query_string(range=name)
        return self.query_string(start_date=start.isoformat(), end_date=end.isoformat())

    def settled(self, first_day: date | None) -> str | None:
        """Return the query string to redirect to, or None if no redirect is needed.

        If only one day is given, it contains both. If the days equal the given range, it contains only the range,
        since a form sends the days as well. `first_day` is the day of the first visit. Raises InvalidParameter.
        """
        start, end = self.given.get("start_date"), self.given.get("end_date")
        if not start and not end:
            return None
        if not end:
            return self.query_string(start_date=start, end_date=self.today.isoformat())
        if not start:
            last = min(parse_day("end_date", end, lambda: self.targets.zone(self.organization)), self.today)
            return self.query_string(start_date=str(_first_day(first_day, last)), end_date=end)
        by_days = self.days_query(self.scope.start_date, self.scope.end_date)
        is_range = "range" in self.given and by_days == self.query_string(range=self.given["range"])
        return by_days if is_range else None

    def presets(self, first_day: date | None) -> list[tuple[str, str, bool]]:
        """Return the selectable spans: label, query string, and whether the span is selected.

        At most one span is selected, although "Today" equals "This month" on the first of a month. None is selected
        while a range is in effect, which has its own button ("This month" equals "30 days" on the last day of
        November).
        """
        today = self.today
        this_month = today.replace(day=1)
        last_month = this_month - timedelta(1)
        spans = {
            "Today": (today, today),
            "Yesterday": (today - timedelta(1), today - timedelta(1)),
            "This month": (this_month, today),
            "Last month": (last_month.replace(day=1), last_month),
            "This year": (today.replace(month=1, day=1), today),
            "All days": (_first_day(first_day, today), today),
        }
        span_shown = self.scope.start_date, self.scope.end_date
        shown = "" if self.range else next((label for label, span in spans.items() if span == span_shown), "")
        return [(label, self.days_query(*span), label == shown) for label, span in spans.items()]

    @property
    def earlier(self) -> tuple[date, date]:
        """The span of the same length directly before the days in scope: its first and last day."""
        return self.scope.start_date - timedelta(self.days), self.scope.start_date - timedelta(1)

    @property
    def later(self) -> tuple[date, date] | None:
        """The span of the same length directly after the days in scope, moved back to end today if it would end later;
        None if today is in scope.
        """
        if self.scope.end_date >= self.today:
            return None
        end = min(self.scope.end_date + timedelta(self.days), self.today)
        return end - timedelta(self.days - 1), end

    @property
    def hidden_fields(self) -> list[tuple[str, str]]:
        """The names and values of the form's hidden fields: filters without a visible field."""
        given = [(PARAMETERS[name], value) for name, value in self.in_address.items()]
        fields = [(row.page_name, value) for row, value in given if row.kind != "days" and row.name not in _FORM_FIELDS]
        return [*fields, *self._of_page.items()]

    @property
    def groups(self) -> list[tuple[str, str, bool]]:
        """The selectable groups: label, query string, and whether the group is selected. No group is selected if only a
        traffic_type is chosen.
        """
        chosen = self.scope.traffic_group or ("" if "traffic_type" in self.parameters else ALL_GROUPS)
        return [(label, self.query_string(traffic_group=name), name == chosen) for name, label in _GROUPS.items()]

    @property
    def same_group(self) -> str:
        """The query string that keeps this page's group on any other page."""
        return self.query_string(traffic_group=self.scope.traffic_group or ALL_GROUPS)

    def chips(self) -> list[tuple[str, str, str]]:
        """Return the active filters: label, value, and the query string without the filter."""
        removed = [name for name in CHIPS if name in self.parameters]
        chips = [
            (*shown, self.query_string(**{name: None}))
            for name, shown in zip(removed, in_words(self.parameters), strict=True)
        ]
        if "start_date" in self.parameters:
            span = f"{self.scope.start_date} to {self.scope.end_date}"
            chips.insert(0, ("Days", span, self.query_string(range=DEFAULT_RANGE)))
        return chips


def in_words(parameters: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the label and the value of each of these filters, in words, in the order of chips."""
    given = [(name, label, parameters[name]) for name, label in CHIPS.items() if name in parameters]
    return [(label, _WORDS.get(name, {}).get(value.lower(), value)) for name, label, value in given]


def _first_day(first_day: date | None, last: date) -> date:
    """Return the first day with visits (`last` if None), but no day before the MAX_DAYS days that end on `last`."""
    return max(min(first_day or last, last), last - timedelta(MAX_DAYS - 1))


def query_of(parameters: Mapping[str, str]) -> str:
    """Return the query string for these names and values, with its question mark, or "" for none."""
    return f"?{urlencode(parameters, safe='', quote_via=quote)}" if parameters else ""
