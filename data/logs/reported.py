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

MAX_CLOCK_SKEW: Final = timedelta(days=1)
"""A later time is no clock that goes wrong but a mistake: of the unit, or of the field."""
MAX_ROW_BYTES: Final = 16_384
"""Bytes of one row; no honest request line and headers are longer."""


class Reported(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One request: its address as `url`, or as `domain` and `path`, and what else is known of it."""

    time: Annotated[
        datetime | int | float | None,
        Meta(
            description="of the request: RFC 3339, or seconds, milli-, micro- or nanoseconds since 1970; default: now"
        ),
    ] = None
    ip: Annotated[str | None, Meta(description="the client's address; used to classify the visit, never stored")] = None
    method: Annotated[str | None, Meta(description="default: GET")] = None
    url: Annotated[str | None, Meta(description="absolute, or a path with or without its query")] = None
    domain: Annotated[str | None, Meta(description="host name, if url is not absolute")] = None
    path: Annotated[str | None, Meta(description="instead of url")] = None
    status: Annotated[int | None, Meta(description="HTTP status of the response, 100 to 999; default: 200")] = None
    user_agent: Annotated[
        str | None, Meta(description="the User-Agent header as it was sent; without it the visit is a bot's")
    ] = None
    referrer: Annotated[str | None, Meta(description="the Referer header; only its host is stored")] = None
    country: Annotated[str | None, Meta(description="ISO 3166-1 alpha-2, where your server knows it")] = None


SCHEMA: Final[dict[str, Any]] = msgspec.json.schema(Reported)["$defs"]["Reported"]
"""JSON Schema of one reported request."""

Row = bytes | msgspec.Raw
"""One JSON object, not yet read."""


class Submission(NamedTuple):
    """What one sender reports at once."""

    organization: str
    rows: Sequence[Row]


class Target(NamedTuple):
    """What was asked for."""

    domain: str
    path: str
    query: str


class ReportedVisit(msgspec.Struct, frozen=True, gc=False):
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
_ERROR_PATH: Final = re.compile(r" - at `\$\.?(.*)`$")
_METHOD: Final = re.compile(r"[A-Za-z]{2,20}")
_PORT: Final = re.compile(r":\d*$")
_COUNTRY: Final = re.compile(r"[A-Za-z]{2}")
_UNKNOWN_COUNTRIES: Final = ("", "-", "XX", "T1")
"""As content delivery networks write that they do not know."""


def split_rows(body: bytes) -> Sequence[Row]:
    """The objects of a JSON array, or of lines of JSON, each still to be read. Raises BadInput for neither."""
    body = body.removeprefix(codecs.BOM_UTF8)
    if body.lstrip()[:1] != b"[":
        return [line for line in body.split(b"\n") if line.strip()]
    try:
        return _ARRAY.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the body is not a valid JSON array: {error}") from error


def parse_reported(row: Row, now: datetime) -> ReportedVisit:
    """The facts that one JSON object reports.

    Without `time` it came `now` (naive, UTC), without `method` it was a GET, without `status` it went well.
    Raises BadInput with a reason that completes "this visit was refused: …".
    """
    if len(row) > MAX_ROW_BYTES:
        raise BadInput(f"the visit is longer than {MAX_ROW_BYTES:,} bytes")
    try:
        reported = _DECODER.decode(row)
    except msgspec.ValidationError as error:
        raise BadInput(_ERROR_PATH.sub(r": \1", str(error)).rstrip(": ")) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput("the visit is not a valid JSON object") from error
    if reported.status is not None and not 100 <= reported.status <= 999:
        raise BadInput("status must be a number from 100 to 999")
    return ReportedVisit(
        now if reported.time is None else _time(reported.time, now),
        _ip(reported.ip or ""),
        _target(reported.url or "", reported.domain or "", reported.path or ""),
        _method(reported.method or "GET"),
        reported.status or 200,
        reported.user_agent or "",
        _referrer(reported.referrer) if reported.referrer else "",
        _country(reported.country or ""),
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
        raise BadInput("time is not valid; write it like 2026-03-04T12:30:00Z") from error
    if moment.year < 1970 or moment > now + MAX_CLOCK_SKEW:
        raise BadInput("time must be after 1970 and at most one day in the future")
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
        raise BadInput("ip is not a valid address") from error
    return text


@lru_cache(1 << 14)
def _target(url: str, domain: str, path: str) -> Target:
    """What was asked for, from an absolute URL, or from a domain and a path with or without its query."""
    if url and path:
        raise BadInput("send either url or path, not both")
    address = _clean(url or path)
    if address[:8].lower().startswith(("http://", "https://")):
        rest = address.partition("://")[2]
        end = min((index for mark in "/?#" if (index := rest.find(mark)) >= 0), default=len(rest))
        domain, address = rest[:end].rpartition("@")[2], "/" + rest[end:].removeprefix("/")
    if not address.startswith("/"):
        raise BadInput("url (https://… or a path) or a path that begins with / is required")
    path, _, query = address.partition("#")[0].partition("?")
    return Target(_PORT.sub("", _clean(domain)).lower(), path, query)


@lru_cache(1 << 8)
def _method(text: str) -> str:
    if not _METHOD.fullmatch(text):
        raise BadInput("method is not a valid HTTP method")
    return text.upper()


@lru_cache(1 << 10)
def _country(text: str) -> str:
    if text.upper() in _UNKNOWN_COUNTRIES:
        return ""
    if not _COUNTRY.fullmatch(text):
        raise BadInput("country must be a two-letter code of ISO 3166-1")
    return text.upper()
