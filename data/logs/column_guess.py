"""Guesses which column of a JSON or CSV file contains which field of a visit, from names and values.

A column is a candidate for a field if its name is a synonym for the field's name and its values fit the field.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from data.logs.layout_guess import is_address

MAX_VALUES: Final = 100
"""Number of values checked per column."""
NEEDED: Final = ("time", "ip", "status", "user_agent")
"""Fields required for guessing the columns of a file, besides `url` or `path`."""


def _shape(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern, re.ASCII | re.IGNORECASE).fullmatch


class _ColumnShape(NamedTuple):
    """The shape of a field's values, and the usual names of its column, normalized by _plain()."""

    fits: Callable[[str], object]
    synonyms: frozenset[str]


def _field(fits: Callable[[str], object], synonyms: str) -> _ColumnShape:
    return _ColumnShape(fits, frozenset(synonyms.split()))


_FIELDS: Final = {
    "time": _field(
        _shape(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*|1\d{9}(?:\.\d+)?|1\d{12}(?:\.\d+)?|1\d{15}|1\d{18}|1(?:\.\d+)?e\+?\d+"),
        "time ts timestamp datetime date eventtime requesttime starttime timeiso8601 logtime at",
    ),
    "ip": _field(
        is_address,
        "ip remoteaddr remoteaddress remoteip remotehost clientip clientaddr clientaddress clienthost sourceip srcip "
        "ipaddress address addr peer peerip",
    ),
    "method": _field(_shape("[A-Z]{2,20}"), "method verb requestmethod httpmethod"),
    "url": _field(_shape(r"https?://.+|/.*"), "url uri requesturl requesturi fullurl urlfull urloriginal httpurl"),
    "path": _field(_shape("/.*"), "path requestpath urlpath httppath pathname target requesttarget httptarget"),
    "domain": _field(
        _shape(r"(?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*(?::\d+)?|localhost(?::\d+)?"),
        "domain host vhost virtualhost httphost requesthost servername authority urldomain requestdomain",
    ),
    "status": _field(
        _shape(r"[1-9]\d\d(?:\.0)?"), "status statuscode code responsestatus responsecode httpstatus httpstatuscode"
    ),
    "user_agent": _field(
        _shape(r"\D.*"), "useragent ua agent httpuseragent requestuseragent useragentoriginal clientuseragent"
    ),
    "referrer": _field(_shape("[a-z-]+://.*"), "referrer referer httpreferer httpreferrer requestreferer from"),
    "country": _field(
        _shape("[A-Z]{2}"), "country countrycode geocountry geocountrycode clientcountry geoipcountrycode"
    ),
    "bytes_sent": _field(
        _shape(r"\d+"),
        "bytessent bytes bodybytessent size responsesize responsebytes bytesout contentlength bodybytes length",
    ),
    "protocol": _field(
        _shape(r"HTTP/\d(?:\.\d)?"), "protocol proto httpversion serverprotocol requestprotocol version"
    ),
}
"""The fields that can be guessed, with the column names that programs use for them.

Evidence: https://www.elastic.co/docs/reference/ecs/ecs-field-reference and
https://opentelemetry.io/docs/specs/semconv/registry/attributes/http/
"""
_OUTER: Final = {
    "http", "request", "req", "response", "res", "client", "source", "url", "headers", "header", "body", "httprequest",
}  # fmt: skip
"""Objects that may contain a field, as in `request.headers.user-agent`. Fields of other objects, such as `upstream`,
do not belong to the request."""
_NAME: Final = re.compile(r"[\w.@#/ -]+")
"""Column names that can be guessed. Such a name has no comma, since --columns separates pairs with commas."""


@dataclass(frozen=True)
class ColumnGuess:
    """The column that probably contains each field, and the fields with several candidates."""

    columns: dict[str, str]  # field → its first candidate
    rivals: dict[str, tuple[str, ...]]  # field → all its candidates, if there are several

    @property
    def pairs(self) -> str:
        """The value of --columns; columns named like their fields are omitted."""
        return ",".join(f"{name}={column}" for name, column in self.columns.items() if column != name)

    @property
    def missing(self) -> list[str]:
        """The required fields that have no column."""
        missing = [name for name in NEEDED if name not in self.columns]
        return missing + ([] if {"url", "path"} & self.columns.keys() else ["url"])

    @property
    def is_certain(self) -> bool:
        """Whether the guess is complete and unambiguous, so that the file can be read without asking the user."""
        return not (self.missing or self.rivals)


def guess_columns(rows: Iterable[dict[str, Any]]) -> ColumnGuess:
    """Guess the columns from rows, each a dict of values by column name."""
    values = defaultdict[str, list[str]](list)
    for row in rows:
        for name, value in row.items():
            text = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
            if text not in {"", "-"} and len(values[name]) < MAX_VALUES:
                values[name].append(text)
    found = defaultdict[str, list[str]](list)
    for name, texts in values.items():
        for field, shape in _FIELDS.items():
            if texts and _NAME.fullmatch(name) and _may_be(name, shape.synonyms) and all(map(shape.fits, texts)):
                found[field].append(name)
    if "url" in found:  # the URL contains the path
        found.pop("path", None)
    columns = {field: found[field][0] for field in _FIELDS if field in found}
    return ColumnGuess(columns, {field: tuple(names) for field, names in found.items() if len(names) > 1})


def _may_be(name: str, synonyms: frozenset[str]) -> bool:
    """Return whether a dotted column name consists of objects in _OUTER, if any, followed by a synonym."""
    parts = [_plain(part) for part in name.split(".")]
    return any("".join(parts[cut:]) in synonyms and _OUTER.issuperset(parts[:cut]) for cut in range(len(parts)))


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())
