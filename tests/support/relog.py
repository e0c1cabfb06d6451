"""A second, independent reader of access logs, to compare answers with a recount.

It uses the program only for the classification itself; splitting lines, rejecting them and building visits are
implemented here again, by other means. It holds a whole log in memory and is slow.
"""

import gzip
import re
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from importlib import resources
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import iporigin

from data.rules.bots import readable_user_agent
from data.rules.classifier import Classifier, Request
from data.rules.tables import Hosting, load
from data.signals import BITS
from data.visits import UTM_FIELDS

_CODE = re.compile(r"^/([A-Za-z0-9_-]{1,64})/?$")
MAX_LINE_BYTES = 65_536
SAMPLE = 1_000
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

_BEGIN = r"(?P<ip>\S*) .*?\[(?P<time>[^\]]*)\] "
_REQUEST = r'"(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{3}) (?P<bytes>\d*)[^"]*'
_NAMES = r'"(?P<referrer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*\\?)(?P<end>"|$)'
_LINES = {
    "vhost-combined": re.compile(
        r"(?P<domain>\S+?)(?::\d*)? (?=[0-9A-Fa-f]*[.:][0-9A-Fa-f:.]* )" + _BEGIN + _REQUEST + _NAMES
    ),
    "combined": re.compile(_BEGIN + _REQUEST + _NAMES),
    "common": re.compile(_BEGIN + _REQUEST + "$"),
}
_TIME = re.compile(r"(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)")


def read_log(path: Path, organization: str, domain: str | None, zone: str = "UTC") -> list[dict[str, Any]]:
    """Return every visit in an access log, plain or gzipped, in the order of its lines, with its day in a time zone."""
    lines = _lines_of(path)
    found = [match for match in map(_reader_for(lines), lines) if match]
    return [_dated(_visit(match, organization, domain), ZoneInfo(zone)) for match in found]


def _dated(visit: dict[str, Any], zone: ZoneInfo) -> dict[str, Any]:
    """Return a visit with its offset from UTC and its day; a visitor has a different hash on each day."""
    local = visit["visited_at"].replace(tzinfo=UTC).astimezone(zone)
    offset, visitor = local.utcoffset() // timedelta(minutes=1), visit["visitor"]
    return visit | {"utc_offset": offset, "day": local.date(), "visitor": visitor and (local.date(), *visitor)}


def _lines_of(path: Path) -> list[str]:
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    lines = content.decode("utf-8", errors="replace").replace("\0", "\ufffd").split("\n")
    return [line.rstrip("\r") for line in lines if line.rstrip("\r")]


def _reader_for(lines: list[str]) -> Callable[[str], re.Match[str] | None]:
    def reads(pattern: re.Pattern[str], line: str) -> re.Match[str] | None:
        match = pattern.match(line) if len(line) <= MAX_LINE_BYTES else None
        return match if match and int(match["status"]) >= 100 and _moment(match["time"]) else None

    def explained(pattern: re.Pattern[str]) -> int:
        return sum(reads(pattern, line) is not None for line in lines[:SAMPLE])

    best = max(_LINES.values(), key=explained)  # the strictest of equal matches, since max keeps the first
    return lambda line: reads(best, line)


def _moment(text: str) -> datetime | None:
    found = _TIME.fullmatch(text)
    if not found or found[2] not in MONTHS:
        return None
    day, month, year, hour, minute, second, sign, zone_hours, zone_minutes = found.groups()
    offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes))
    try:
        zone = timezone(-offset if sign == "-" else offset)
        local = datetime(int(year), MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second), tzinfo=zone)
        return local.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def _protocol(request: str) -> str | None:
    """Return the HTTP version of a request line."""
    found = re.search(r" (HTTP/(?:1\.[01]|[23])(?:\.0)?)$", request)
    return re.sub(r"([23])\.0$", r"\1", found[1]) if found else None


def _asked(request: str) -> tuple[str, str, str]:
    """Return method, path and query of a request line; all '' if it is invalid."""
    words = request.split(" ")
    if len(words) < 2 or not re.fullmatch("[A-Z]{2,20}", words[0]):
        return "", "", ""
    if len(words) > 2 and re.fullmatch(r"HTTP/[0-9.]+", words[-1]):
        words.pop()
    target = " ".join(words[1:])
    if target.startswith(("http://", "https://")):
        authority = re.split("[/?]", target.split("//", 1)[1], maxsplit=1)[0]
        target = target.split("//", 1)[1].removeprefix(authority)
    path, _, query = target.partition("?")
    return words[0], path if path.startswith("/") else "", query


@cache
def _hosting() -> frozenset[str]:
    return frozenset(text for row in load(Hosting, "hosting") for text in row.networks)


@cache
def _network(ip: str) -> int | None:
    """Return the bit of the fact about an address's network, if it is one of the two facts that judging uses."""
    try:
        origin, address = iporigin.classify(ip), ip_address(ip)
    except ValueError:
        return None
    if origin.provider in {"Google", "Cogent"}:
        return None
    around = (str(ip_network((address, length), strict=False)) for length in range(8, address.max_prefixlen + 1))
    if not origin.provider and address.is_global and any(network in _hosting() for network in around):
        return BITS["from_hosting"]
    return {"hosting": BITS["from_hosting"], "bot": BITS["from_bot"]}.get(origin.kind)


def _visit(match: re.Match[str], organization: str, domain: str | None) -> dict[str, Any]:
    fields = match.groupdict(default="")
    method, path, query = _asked(fields["request"])
    logged, referrer = ("" if text == "-" else text for text in (fields.get("agent", ""), fields.get("referrer", "")))
    request = Request.from_log(logged, method, referrer, query, path)
    classifier = _classifier()
    origin = classifier.origin(request)
    visited_at, user_agent, short = _moment(fields["time"]), readable_user_agent(logged) or None, _CODE.search(path)
    ip, host = fields["ip"], fields.get("domain", "").lower() or domain or None
    is_own = origin.referrer is not None and origin.referrer.removeprefix("www.") == (host or "").removeprefix("www.")
    return {
        "organization": organization,
        "visited_at": visited_at,
        "domain": host,
        "short_code": short[1] if short else None,
        "path": path,
        "method": method,
        "protocol": _protocol(fields["request"]),
        "status": int(fields["status"]),
        "bytes_sent": int(fields["bytes"]) if fields["bytes"] else None,
        **classifier.classify(request)._asdict(),
        "user_agent": user_agent,
        "country": None,
        "referrer": origin.referrer,
        "referrer_type": "internal" if is_own else origin.referrer_type,
        **dict(zip(UTM_FIELDS, origin.utm, strict=True)),
        "visitor": None if ip in {"", "-"} else (ip, user_agent),
        "is_malicious": _probes().search(path) is not None,
        "rules_version": classifier.rules_version,
        "signals": _network(ip),
    }


@cache
def _classifier() -> Classifier:
    return Classifier()


@cache
def _probes() -> re.Pattern[str]:
    table = tomllib.loads(resources.files("data.rules").joinpath("probes.toml").read_text("utf-8"))
    paths = [row["path"] for row in table["probe"] if row["agent_kind"] == "scanner"]
    return re.compile("|".join(f"(?:{path})" for path in paths), re.IGNORECASE)
