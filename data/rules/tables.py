"""Loads the tables of rules: TOML files in this folder, each row with its evidence.

A malformed row stops the program with a message that names file, row and field.
"""

import hashlib
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import metadata, resources
from typing import Any, Final, TypeVar

import tomli

from data.rules.row_checks import checked_row

Row = TypeVar("Row")

_RULE_TABLES: Final = (
    "agents", "notcrawlers", "heuristics", "devices", "browsers", "referrers", "spammers", "campaigns", "probes",
    "releases",
)  # fmt: skip
_RULE_PACKAGES: Final = ("crawler-user-agents", "ua-parser-builtins")


@dataclass(frozen=True)
class Agent:
    """A product token in user agents, and its operator. The first row of the file that matches wins."""

    token: str  # literal, matched case-insensitively as a whole word
    agent: str
    operator: str
    agent_kind: str
    confidence: str
    evidence: str
    checked: date
    example: str
    ai_source: str | None = None
    exact: bool = False  # the whole user agent must equal the token
    verify: tuple[str, ...] = ()  # "ip:<row of ip_lists.toml>", "dns:<suffix>", "signature:<host>" (Web Bot Auth)
    server_side: bool = False  # it only uses the addresses of its lists, so other addresses contradict it


@dataclass(frozen=True)
class NotCrawler:
    """A pattern of crawler-user-agents that also matches people's user agents, and is therefore excluded."""

    pattern: str
    meets: str
    evidence: str
    checked: date
    example: str  # a person's user agent that the pattern matches


@dataclass(frozen=True)
class Heuristic:
    """A pattern (RE2, on the user agent in lower case) that matches bots but not browsers."""

    name: str
    pattern: str
    agent_kind: str
    evidence: str
    checked: date
    example: str
    unless: str | None = None  # a pattern of people's user agents, which the row must not match


@dataclass(frozen=True)
class Referrer:
    """A referring host and its subdomains. The row with the longest matching host wins."""

    host: str  # "name.*": under any country's suffix; "host/path": only below that path
    referrer_type: str
    evidence: str
    checked: date
    ai_source: str | None = None
    confidence: str | None = None


@dataclass(frozen=True)
class Spammer:
    """A host, with its subdomains, that automata put into Referer headers to advertise it."""

    host: str
    evidence: str
    checked: date


@dataclass(frozen=True)
class Campaign:
    """A utm_source value that an AI product adds to its links."""

    utm_source: str
    ai_source: str
    confidence: str
    evidence: str
    checked: date


@dataclass(frozen=True)
class Probe:
    """A regular expression (RE2) for paths that people do not open. The first row that matches wins."""

    family: str
    path: str
    agent_kind: str  # scanner: only vulnerability scanners request it; other: programs fetch it by themselves
    confidence: str
    evidence: str
    checked: date
    example: str


@dataclass(frozen=True)
class Attack:
    """A regular expression (RE2, without case) for attacks in query strings."""

    family: str
    pattern: str
    evidence: str
    checked: date
    example: str


@dataclass(frozen=True)
class Device:
    """A pattern (RE2, on a person's user agent in lower case) of a device. The first row that matches wins."""

    name: str
    device_type: str
    pattern: str
    evidence: str
    checked: date
    example: str
    unless: str | None = None


@dataclass(frozen=True)
class Browser:
    """A browser of people, by a pattern (RE2, on the user agent in lower case) or by ua-parser's names for it."""

    name: str
    pattern: str
    names: tuple[str, ...]
    evidence: str
    checked: date
    example: str


@dataclass(frozen=True)
class Release:
    """A version of a browser that a newer one has replaced."""

    browser: str
    version: int
    superseded: date  # the day on which the next version was released, or its support ended
    evidence: str
    checked: date
    build: int = 0  # of Chrome, the third number of its versions: the newest build of this version; 0: unknown


@dataclass(frozen=True)
class Lifetime:
    """How long people go on with a version of a browser once it is superseded. The first row that matches wins."""

    name: str
    pattern: str  # RE2, on a person's user agent in lower case; the group that matches is the version
    browser: str  # whose releases
    years: int  # 0: for ever
    evidence: str
    checked: date
    example: str


@dataclass(frozen=True)
class IpList:
    """A list of the IP addresses of an operator's agents, published by the operator."""

    name: str
    operator: str
    url: str
    format: str  # see ip_lists.parse_networks
    evidence: str
    checked: date
    identifies: bool = False  # nobody but the agent sends requests from there, so a browser's name does not matter


@dataclass(frozen=True)
class Proxy:
    """A network of a content delivery network's proxies. Its addresses are never those of clients."""

    network: str
    operator: str
    evidence: str
    checked: date


def load(row_type: type[Row], name: str) -> list[Row]:
    """The rows of `<name>.toml`, in tables named after `row_type`. Raises ValueError naming the row and the field."""
    return [*_checked_rows(row_type, name, _bytes_of(name))]  # type: ignore[arg-type]  # a class is hashable


@cache
def _checked_rows(row_type: type[Row], name: str, content: bytes) -> tuple[Row, ...]:
    """The rows of a TOML file. Cached, because every import and every server checks its agents by them."""
    try:
        tables = _parsed(content)
    except ValueError as error:
        raise ValueError(f"{name}.toml: {error}") from error
    key = row_type.__name__.lower()
    rows = tables.get(key)
    if tables.keys() != {key} or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{name}.toml: every row must be a [[{key}]], not {', '.join(tables) or 'nothing'}")
    return tuple(checked_row(row_type, f"{name}.toml, row {number}", row) for number, row in enumerate(rows, 1))


@cache
def _parsed(content: bytes) -> dict[str, Any]:
    """Parse a TOML file. Cached, because several modules load the same file."""
    return tomli.loads(content.decode())


def rules_version() -> str:
    """Twelve hexadecimal digits that change whenever a table of rules or a rule package changes."""
    digest = hashlib.sha256()
    for name in _RULE_TABLES:
        digest.update(_bytes_of(name))
    for package in _RULE_PACKAGES:
        digest.update(f"{package}=={metadata.version(package)}".encode())
    return digest.hexdigest()[:12]


def _bytes_of(name: str) -> bytes:
    return resources.files("data.rules").joinpath(f"{name}.toml").read_bytes()
