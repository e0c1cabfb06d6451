"""Loads the tables of rules: TOML files in this folder, each row with its evidence.

A malformed row stops the program with a message that names the file, row and field.
"""

import ipaddress
from collections.abc import Callable, Collection, Mapping
from datetime import date
from functools import cache
from importlib import resources
from typing import Annotated, Final, TypeVar

import msgspec
import tomli
from msgspec import Meta

from data.rules.patterns import compile_pattern
from data.visits import CATEGORY_OF_KIND, CONFIDENCE_SCORES, DEVICE_TYPES, REFERRER_TYPES

Text = Annotated[str, Meta(min_length=1)]
VerificationMethod = Annotated[str, Meta(pattern=r"^(ip|dns|signature):[a-z0-9.*-]+\Z")]
"""ip:<row of ip_lists.toml>, dns:<suffix> or signature:<host> (Web Bot Auth), where `*` stands for one label."""

_WORDS: Final[dict[str, Collection[str]]] = {
    "agent_kind": CATEGORY_OF_KIND,
    "confidence": CONFIDENCE_SCORES,
    "referrer_type": REFERRER_TYPES,
    "device_type": DEVICE_TYPES,
}
"""Allowed values by field name."""
_CHECKS: Final[dict[str, Callable[[str], object]]] = {
    "network": ipaddress.ip_network,
    "path": compile_pattern,
    "pattern": compile_pattern,
    "unless": compile_pattern,
}
"""Functions that check values, by field name; they raise ValueError for an invalid value."""


class RuleRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of a table. Strings are never empty."""

    evidence: Annotated[str, Meta(pattern="^https?://")]
    checked: date  # when the evidence was last read

    def __post_init__(self) -> None:
        for name, words in _WORDS.items():
            word = getattr(self, name, None)
            if word is not None and word not in words:
                raise ValueError(f"{name} is {word!r}, not one of {', '.join(words)}")
        for name, check in _CHECKS.items():
            if text := getattr(self, name, ""):
                try:
                    check(text)
                except ValueError as error:
                    raise ValueError(f"{name} is not valid: {error}") from error


AnyRow = TypeVar("AnyRow", bound=RuleRow)


class Agent(RuleRow, frozen=True):
    """A product token in user agents, and its operator. The first matching row in the file wins."""

    token: Text  # literal, matched case-insensitively as a whole word
    agent: Text
    operator: Text
    agent_kind: Text
    confidence: Text
    example: Text
    ai_source: Text | None = None
    exact: bool = False  # the whole user agent must equal the token
    verify: tuple[VerificationMethod, ...] = ()
    server_side: bool = False  # the agent uses only the addresses in its lists, so other addresses contradict it


class OwnAgent(Agent, frozen=True, kw_only=True):
    """An agent in a lake's own table. Unless the row names a page, its evidence is what the lake's operator
    observed.
    """

    evidence: Annotated[str, Meta(pattern="^https?://")] = ""
    checked: date = date.min


class NotCrawler(RuleRow, frozen=True):
    """A pattern in the list crawler-user-agents that is not used because it also matches people's user agents."""

    pattern: Text
    meets: Text
    example: Text  # a person's user agent that the pattern matches


class Heuristic(RuleRow, frozen=True):
    """A pattern (RE2, on the user agent in lower case) that matches bots but not browsers."""

    name: Text
    pattern: Text
    agent_kind: Text
    example: Text
    unless: Text | None = None  # a pattern of people's user agents, which the row must not match


class Referrer(RuleRow, frozen=True):
    """A referring host and its subdomains. The row with the longest matching host wins."""

    host: Text  # "name.*": with the suffix of any country; "host/path": only below that path
    referrer_type: Text
    ai_source: Text | None = None
    confidence: Text | None = None


class Spammer(RuleRow, frozen=True):
    """A host, with its subdomains, that bots put into Referer headers to advertise it."""

    host: Text


class Campaign(RuleRow, frozen=True):
    """A utm_source value that an AI product adds to its links."""

    utm_source: Text
    ai_source: Text
    confidence: Text


class Probe(RuleRow, frozen=True):
    """A regular expression (RE2) for paths that people do not open. The first matching row wins."""

    family: Text
    path: Text
    agent_kind: Text  # scanner: only vulnerability scanners request it; other: programs fetch it on their own
    confidence: Text
    example: Text


class Attack(RuleRow, frozen=True):
    """A case-insensitive regular expression (RE2) for attacks in query strings."""

    family: Text
    pattern: Text
    example: Text


class Device(RuleRow, frozen=True):
    """A pattern (RE2, on a person's user agent in lower case) for a device. The first matching row wins."""

    name: Text
    device_type: Text
    pattern: Text
    example: Text
    unless: Text | None = None


class Browser(RuleRow, frozen=True):
    """A browser that people use, recognized by a pattern (RE2, on the user agent in lower case) or by ua-parser's names
    for it.
    """

    name: Text
    pattern: Text
    names: tuple[Text, ...]
    example: Text


class Release(RuleRow, frozen=True):
    """A version of a browser that has been superseded."""

    browser: Text
    version: int
    superseded: date  # the day on which the next version was released, or its support ended
    build: int = 0  # for Chrome, the newest build of this version (its third number); 0: unknown


class Lifetime(RuleRow, frozen=True):
    """How long people keep using a version of a browser after it is superseded. The first matching row wins."""

    name: Text
    pattern: Text  # RE2, on a person's user agent in lower case; the group that matches is the version
    browser: Text  # the browser with these releases
    years: int  # 0: forever
    example: Text


class Forged(RuleRow, frozen=True):
    """A form of user agent that no browser sends."""

    name: Text
    pattern: Text  # RE2, on the user agent as it is sent
    example: Text


class HeaderSupport(RuleRow, frozen=True):
    """The first version of a browser that sends `Sec-Fetch-*` and `Accept-Language`. The first matching row wins."""

    name: Text
    pattern: Text  # RE2, on a person's user agent in lower case; its groups are the version
    since: tuple[int, ...]  # the version, one number for each group of the pattern; empty: not known to send them
    example: Text


class Hosting(RuleRow, frozen=True):
    """An autonomous system of a hosting provider, and the networks that it announces."""

    system: int
    name: Text
    networks: tuple[Text, ...] = ()


class IpList(RuleRow, frozen=True):
    """A list of IP addresses: of an operator's agents, published by the operator, or of hosting networks."""

    name: Text
    operator: Text
    url: Text
    format: Annotated[str, Meta(pattern="^(prefixes|text|geofeed|json:.+)$")]  # see ip_lists.parse_networks
    identifies: bool = False  # only the agent uses these addresses, which identify it despite a browser's user agent
    hosting: bool = False  # the networks of hosting providers, not of an agent


class Proxy(RuleRow, frozen=True):
    """A network of a content delivery network's proxies. It contains no client addresses."""

    network: Text
    operator: Text


def load(row_type: type[AnyRow], name: str) -> list[AnyRow]:
    """Return the rows of `<name>.toml`, in tables named after `row_type`. Raises ValueError with row and field."""
    return [*_checked_rows(row_type, name, bytes_of(name))]


@cache
def _checked_rows(row_type: type[AnyRow], name: str, content: bytes) -> tuple[AnyRow, ...]:
    """Return the rows of a TOML file. They are cached because every import and every server start checks the lake's own
    agents against them.
    """
    return tuple(parse_rows(row_type, row_type.__name__.lower(), f"{name}.toml", content))


def parse_rows(row_type: type[AnyRow], key: str, name: str, content: bytes) -> list[AnyRow]:
    """Return the rows in TOML content, in tables called `key`. Raises ValueError with file, row and field."""
    return checked_rows(row_type, parse_tables((key,), name, content)[key], name)


def parse_tables(keys: Collection[str], name: str, content: bytes) -> Mapping[str, list[object]]:
    """Return the tables in TOML content by their names, which must be `keys`. Raises ValueError with the file."""
    try:
        tables = tomli.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: {error}") from error
    if tables.keys() != set(keys) or not all(map(_is_table, tables.values())):
        known = " or a ".join(f"[[{key}]]" for key in keys)
        raise ValueError(f"{name}: every row must be a {known}, not {', '.join(tables) or 'nothing'}")
    return tables


def _is_table(rows: object) -> bool:
    return isinstance(rows, list) and all(isinstance(row, dict) for row in rows)


def checked_rows(row_type: type[AnyRow], rows: list[object], name: str) -> list[AnyRow]:
    """Return the rows of a table in the file `name`. Raises ValueError with row and field."""
    checked = []
    for number, row in enumerate(rows, 1):
        try:
            checked.append(msgspec.convert(row, row_type, builtin_types=(date,)))  # strings are not accepted as dates
        except msgspec.ValidationError as error:
            raise ValueError(f"{name}, row {number}: {error}") from error
    return checked


def bytes_of(name: str) -> bytes:
    """Return the content of a shipped table."""
    return resources.files("data.rules").joinpath(f"{name}.toml").read_bytes()
