"""A request as somebody reports it, field by field: what may be said of it and what is wrong with it.

Who made it and how it lands is not here. A reason never repeats a value: it may be an address.
"""

import codecs
import re
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from data.errors import BadInput

MOST_AHEAD: Final = timedelta(days=1)
"""A later time is no clock that goes wrong but a mistake: of the unit, or of the field."""
LONGEST: Final = 16_384
"""Bytes of one row; no honest request line and headers are longer."""


class Reported(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One request: its address as `url`, or as `domain` and `path`, and what else is known of it."""

    time: Annotated[
        datetime | int | float | None,
        Meta(description="when it came: RFC 3339, or seconds, milli-, micro- or nanoseconds since 1970; default: now"),
    ] = None
    ip: Annotated[str | None, Meta(description="the client's address; it is looked at and never kept")] = None
    method: Annotated[str | None, Meta(description="default: GET")] = None
    url: Annotated[str | None, Meta(description="absolute, or a path with or without its query")] = None
    domain: Annotated[str | None, Meta(description="where url does not name it")] = None
    path: Annotated[str | None, Meta(description="instead of url")] = None
    status: Annotated[int | None, Meta(description="of the answer, 100 to 999; default: 200")] = None
    user_agent: Annotated[
        str | None, Meta(description="the User-Agent header as it was sent; without it the visit is a bot's")
    ] = None
    referrer: Annotated[str | None, Meta(description="the Referer header; of it only the host is kept")] = None
    country: Annotated[str | None, Meta(description="ISO 3166-1 alpha-2, where your server knows it")] = None


SCHEMA: Final[dict[str, Any]] = msgspec.json.schema(Reported)["$defs"]["Reported"]
"""JSON Schema of one reported request."""

Row = bytes | msgspec.Raw
"""One JSON object, not yet read."""


class Sent(NamedTuple):
    """What one sender reports at once."""

    organization: str
    rows: Sequence[Row]


class Target(NamedTuple):
    """What was asked for."""

    domain: str
    path: str
    query: str


class Facts(msgspec.Struct, frozen=True, gc=False):
    """The facts of one request; '' stands for what is missing."""

    visited_at: datetime  # naive, UTC
    ip: str
    target: Target
    method: str
    status: int
    user_agent: str  # as it was sent
    referrer: str  # without query and fragment
    country: str  # ISO 3166-1 alpha-2


_DECODER: Final = msgspec.json.Decoder(Reported)
_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])
_PLACE: Final = re.compile(r" - at `\$\.?(.*)`$")
_METHOD: Final = re.compile(r"[A-Za-z]{2,20}")
_PORT: Final = re.compile(r":\d*$")
_COUNTRY: Final = re.compile(r"[A-Za-z]{2}")
_UNKNOWN_COUNTRIES: Final = ("", "-", "XX", "T1")
"""As content delivery networks write that they do not know."""


def rows_of(body: bytes) -> Sequence[Row]:
    """The objects of a JSON array, or of lines of JSON, each still to be read. Raises BadInput for neither."""
    body = body.removeprefix(codecs.BOM_UTF8)
    if body.lstrip()[:1] != b"[":
        return [line for line in body.split(b"\n") if line.strip()]
    try:
        return _ARRAY.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"it is no JSON array: {error}") from error


def facts_of(row: Row, now: datetime) -> Facts:
    """The facts that one JSON object reports.

    Without `time` it came `now` (naive, UTC), without `method` it was a GET, without `status` it went well.
    Raises BadInput with a reason that completes "this visit was refused: …".
    """
    if len(row) > LONGEST:
        raise BadInput(f"it is longer than {LONGEST:,} bytes")
    try:
        told = _DECODER.decode(row)
    except msgspec.ValidationError as error:
        raise BadInput(_PLACE.sub(r": \1", str(error)).rstrip(": ")) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput("it is no JSON object") from error
    if told.status is not None and not 100 <= told.status <= 999:
        raise BadInput("status is no number from 100 to 999")
    return Facts(
        now if told.time is None else _time(told.time, now),
        _ip(told.ip or ""),
        _target(told.url or "", told.domain or "", told.path or ""),
        _method(told.method or "GET"),
        told.status or 200,
        told.user_agent or "",
        _referrer(told.referrer) if told.referrer else "",
        _country(told.country or ""),
    )


def _referrer(text: str) -> str:
    return _clean(text).partition("#")[0].partition("?")[0]


def _clean(text: str) -> str:
    return text.replace("\0", "\ufffd") if "\0" in text else text


def _time(value: datetime | float, now: datetime) -> datetime:
    try:
        moment = value if isinstance(value, datetime) else _moment(value)
        moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except (ValueError, OverflowError, OSError) as error:
        raise BadInput("time is no readable time; write it like 2026-03-04T12:30:00Z") from error
    if moment.year < 1970 or moment > now + MOST_AHEAD:
        raise BadInput("time is before 1970 or more than a day ahead")
    return moment


def _moment(value: float) -> datetime:
    while value > 1e11:  # seconds reach that in the year 5138
        value /= 1_000
    return datetime.fromtimestamp(value, UTC)


def _ip(text: str) -> str:
    if text in ("", "-"):
        return ""
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except (OSError, ValueError) as error:
        raise BadInput("ip is no address") from error
    return text


@lru_cache(1 << 14)
def _target(url: str, domain: str, path: str) -> Target:
    """What was asked for, from an absolute URL, or from a domain and a path with or without its query."""
    if url and path:
        raise BadInput("it has both url and path; send one of them")
    address = _clean(url or path)
    if address[:8].lower().startswith(("http://", "https://")):
        rest = address.partition("://")[2]
        end = min((place for mark in "/?#" if (place := rest.find(mark)) >= 0), default=len(rest))
        domain, address = rest[:end].rpartition("@")[2], "/" + rest[end:].removeprefix("/")
    if not address.startswith("/"):
        raise BadInput("it has neither a url (https://…, or a path) nor a path that begins with /")
    path, _, query = address.partition("#")[0].partition("?")
    return Target(_PORT.sub("", _clean(domain)).lower(), path, query)


@lru_cache(1 << 8)
def _method(text: str) -> str:
    if not _METHOD.fullmatch(text):
        raise BadInput("method is no HTTP method")
    return text.upper()


@lru_cache(1 << 10)
def _country(text: str) -> str:
    if text.upper() in _UNKNOWN_COUNTRIES:
        return ""
    if not _COUNTRY.fullmatch(text):
        raise BadInput("country is no two-letter code of ISO 3166-1")
    return text.upper()
