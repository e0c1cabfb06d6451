"""Parses and validates the requests that programs report as JSON (POST /visits).

Error messages never contain a reported value, because it may be an IP address.
"""

import codecs
import re
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from itertools import islice
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from data.errors import BadInput
from data.hosts import HOST_RULE, normalized_address, normalized_host
from data.logs.request_facts import NO_RECORD, RequestRecord
from data.text import ShortTextCache

MAX_CLOCK_SKEW: Final = timedelta(days=1)
"""How far in the future a time may be. A later time suggests an error, such as a wrong unit, rather than a wrong clock.
"""
MAX_ROW_BYTES: Final = 16_384
"""Maximum size of a row. Servers reject longer request lines and headers."""
MAX_ROWS: Final = 10_000
"""Maximum number of rows in a body."""
MAX_BYTES_SENT: Final = 1 << 40
"""Maximum size of a response. A larger size is an error and would make sums overflow."""


class Reported(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One request as JSON. Its target is either `url` or `path`; `domain` is for a target without a host."""

    time: Annotated[
        datetime | int | float | None,
        Meta(
            description="time of the request: RFC 3339, or seconds, milli-, micro- or nanoseconds since 1970; "
            "default: now"
        ),
    ] = None
    ip: Annotated[str | None, Meta(description="the client's address; used to classify the visit, never stored")] = None
    method: Annotated[str | None, Meta(description="default: GET")] = None
    url: Annotated[str | None, Meta(description="absolute, or a path with or without a query")] = None
    domain: Annotated[str | None, Meta(description="host or host:port, if url is not absolute")] = None
    path: Annotated[str | None, Meta(description="instead of url")] = None
    status: Annotated[int | None, Meta(description="HTTP status of the response, 100 to 999; default: 200")] = None
    user_agent: Annotated[
        str | None, Meta(description="the User-Agent header as it was sent; without it, the visit counts as a bot's")
    ] = None
    referrer: Annotated[str | None, Meta(description="the Referer header; only its host is stored")] = None
    country: Annotated[str | None, Meta(description="ISO 3166-1 alpha-2, if your server knows it")] = None
    bytes_sent: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_BYTES_SENT)] | None,
        Meta(description="size of the response, if your server knows it"),
    ] = None
    scheme: Annotated[
        str | None,
        Meta(
            description="https or http, as requested by the client; only facts derived from it and the headers are "
            "stored"
        ),
    ] = None
    sec_fetch_mode: Annotated[
        str | None,
        Meta(description='the Sec-Fetch-Mode header; "": not sent, null: not known; likewise for the next headers'),
    ] = None
    sec_fetch_dest: Annotated[str | None, Meta(description="the Sec-Fetch-Dest header")] = None
    sec_fetch_site: Annotated[str | None, Meta(description="the Sec-Fetch-Site header")] = None
    sec_purpose: Annotated[str | None, Meta(description="the Sec-Purpose header")] = None
    accept: Annotated[str | None, Meta(description="the Accept header")] = None
    accept_language: Annotated[str | None, Meta(description="the Accept-Language header")] = None
    signature_agent: Annotated[str | None, Meta(description="the Signature-Agent header")] = None


JsonObject = bytes | msgspec.Raw
"""One JSON object, not yet parsed."""


class RefusedVisit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A visit that was not stored."""

    index: Annotated[int, Meta(description="index of the visit in the request, from 0")]
    error: Annotated[str, Meta(description="reason for the rejection")]


class TooManyRows(BadInput):
    """A body has more than MAX_ROWS rows."""


class Submission(NamedTuple):
    """The visits of one organization in one HTTP request."""

    organization: str
    rows: Sequence[JsonObject]


class Target(NamedTuple):
    """The target of a request. `query` excludes the question mark."""

    domain: str
    path: str
    query: str


class ReportedVisit(msgspec.Struct, frozen=True, gc=False):
    """One validated request; missing values are ''."""

    visited_at: datetime  # naive, UTC
    ip: str
    target: Target
    method: str
    status: int
    user_agent: str  # as it was sent
    referrer: str  # without query and fragment
    country: str  # ISO 3166-1 alpha-2
    bytes_sent: int | None
    record: RequestRecord = NO_RECORD


_NO_TEXTS: Final = NO_RECORD[:9]
_DECODER: Final = msgspec.json.Decoder(Reported)
_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])
_LINE: Final = re.compile(rb"\S[^\n]*")
_TOO_MANY_ROWS: Final = f"the body has more than {MAX_ROWS:,} rows"
_ERROR_PATH: Final = re.compile(r" - at `\$\.?(.*)`$")
_METHOD: Final = re.compile(r"[A-Za-z]{2,20}")
_COUNTRY: Final = re.compile(r"[A-Za-z]{2}")
_UNKNOWN_COUNTRIES: Final = ("", "-", "XX", "T1")
"""Codes that content delivery networks send for an unknown country."""


def split_rows(body: bytes) -> Sequence[JsonObject]:
    """Split a JSON array or JSON lines into objects that are not yet parsed.

    Raises BadInput for an invalid array, and TooManyRows as soon as the limit is exceeded, because splitting two
    million rows would take 0.1 s.
    """
    body = body.removeprefix(codecs.BOM_UTF8)
    if body.lstrip()[:1] != b"[":
        lines = [line[0] for line in islice(_LINE.finditer(body), MAX_ROWS + 1)]
        if len(lines) > MAX_ROWS:
            raise TooManyRows(_TOO_MANY_ROWS)
        return lines
    try:
        if body.count(b",") >= MAX_ROWS:
            _short_array().decode(body)
        return _ARRAY.decode(body)
    except msgspec.ValidationError as error:
        raise TooManyRows(_TOO_MANY_ROWS) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the body is not a valid JSON array: {error}") from error


@cache
def _short_array() -> msgspec.json.Decoder[msgspec.Struct]:
    """Return a decoder for arrays of at most MAX_ROWS items; it raises ValidationError at the first excess item.

    msgspec checks the maximum length of a list only after decoding the whole list, but rejects a struct's first excess
    field at once.
    """
    fields = [(f"row_{number}", msgspec.Raw, msgspec.Raw()) for number in range(MAX_ROWS)]
    rows = msgspec.defstruct("Rows", fields, array_like=True, forbid_unknown_fields=True)
    return msgspec.json.Decoder(rows)


def parse_reported(row: JsonObject, now: datetime) -> ReportedVisit:
    """Parse one JSON object. Defaults: `time` is `now` (naive, UTC), `method` is GET, `status` is 200.

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
        _clean(reported.referrer or "").partition("#")[0].partition("?")[0],
        _country(reported.country or ""),
        reported.bytes_sent,
        _record(reported),
    )


def _record(reported: Reported) -> RequestRecord:
    texts = (
        reported.scheme, reported.sec_fetch_mode, reported.sec_fetch_dest, reported.sec_fetch_site,
        reported.sec_purpose, None, reported.accept, reported.accept_language, reported.signature_agent,
    )  # fmt: skip
    return NO_RECORD if texts == _NO_TEXTS else RequestRecord(*texts)


def _clean(text: str) -> str:
    return text.replace("\0", "\ufffd") if "\0" in text else text


def _time(value: datetime | float, now: datetime) -> datetime:
    try:
        if not isinstance(value, datetime):
            for _ in range(3):  # milli-, micro-, nanoseconds
                if value > 1e11:  # in seconds, this is the year 5138
                    value /= 1_000
            value = datetime.fromtimestamp(value, UTC)
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    except (ValueError, OverflowError, OSError) as error:
        raise BadInput("time is not valid; write it like 2026-03-04T12:30:00Z") from error
    if moment.year < 1970 or moment > now + MAX_CLOCK_SKEW:
        raise BadInput("time must be in 1970 or later, and at most one day in the future")
    return moment


def _ip(text: str) -> str:
    if text in ("", "-"):
        return ""
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except (OSError, ValueError) as error:
        raise BadInput("ip is not a valid address") from error
    return normalized_address(text)


def _parse_target(url: str, domain: str, path: str) -> Target:
    """Return the target given by an absolute URL, or by a domain and a path with or without a query."""
    if url and path:
        raise BadInput("send either url or path, not both")
    address, field = _clean(url or path), "domain"
    if address[:8].lower().startswith(("http://", "https://")):
        rest = address.partition("://")[2]
        end = min((index for mark in "/?#" if (index := rest.find(mark)) >= 0), default=len(rest))
        domain, address = rest[:end].rpartition("@")[2], "/" + rest[end:].removeprefix("/")
        field = "the host of url" if url else "the host of path"
    if not address.startswith("/"):
        raise BadInput("url or path is required: an address with http:// or https://, or a path that begins with /")
    path, _, query = address.partition("#")[0].partition("?")
    host = "" if domain in ("", "-") else normalized_host(domain)
    if host is None:
        raise BadInput(f"{field} {HOST_RULE}")
    return Target(host, path, query)


_target: Final = ShortTextCache(1 << 14, _parse_target)


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
        raise BadInput("country must be a two-letter ISO 3166-1 code")
    return text.upper()
