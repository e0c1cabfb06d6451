"""Proposes a --log-format for lines in no known format: finds their time, request, addresses and quoted strings.

Lines are split into fields. Lines with the same text between their fields are compared by column: the shape of a
column's values identifies the nginx variable. Only the user can judge whether a proposal is right.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

from data.logs.line_layout import ISO, LOCAL

MAX_PROPOSALS: Final = 3
"""Maximum number of proposals: one for each of the most frequent kinds of lines."""
OTHER: Final = "$other"
"""The variable for a field that is not read."""
METHODS: Final = "GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE"

_FIELD: Final = (
    r"(?:(?<![^\s,;|])[A-Za-z_][\w.-]{0,30}=(?=[^\s=]))?"  # the name in name=value is text between fields
    rf'(?:(?P<time>{LOCAL}|{ISO})|"(?P<quoted>(?:[^"\\]|\\.)*)"|\[(?P<bracketed>[^\[\]\s]*)\]|'
)
_FIELDS: Final = {
    "\t": re.compile(_FIELD + r"(?P<word>[^\t]+))"),
    "|": re.compile(_FIELD + r"(?P<word>[^|\s](?:[^|]*[^|\s])?))"),
    "": re.compile(_FIELD + r'(?P<agent>Mozilla/\d[^"|]*[^\s"|])|(?P<word>[^\s"\[\],;|]+))'),
}
"""Patterns for fields, by delimiter. A browser's unquoted user agent is assumed to end the line."""
_MIN_DELIMITERS: Final = 3


class LineField(NamedTuple):
    """A part of a line that may differ from line to line."""

    start: int
    end: int
    is_quoted: bool


class _LineColumn(NamedTuple):
    """The fields at one position in all lines of a kind."""

    values: tuple[str, ...]  # without empty values and dashes
    is_quoted: bool

    def share(self, fits: Callable[[str], object]) -> float:
        """Return the share of values that fit."""
        return sum(map(bool, map(fits, self.values))) / len(self.values) if self.values else 0


class _FieldShape(NamedTuple):
    """The shape of a variable's values, and the share of values that must have this shape."""

    variable: str
    fits: Callable[[str], object]
    share: float = 1
    unless: tuple[str, ...] = ()  # if one of these was found in the line, this variable is not needed


def is_address(text: str) -> bool:
    """Return whether a string is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _are_addresses(text: str) -> bool:
    return all(is_address(part.strip()) for part in text.split(","))


def _has_port(text: str) -> bool:
    address, _, port = text.rpartition(":")
    return port.isdecimal() and "." in address and is_address(address)


def _shape(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern, re.ASCII).fullmatch


_STATUS: Final = _shape(r"10[0-3]|20[0-8]|226|30[0-8]|4[0-5]\d|46[0-4]|49[4-9]|5[0-3]\d|56\d|0|000")
_AGENT: Final = _shape(r"(?![A-Z]+/\d)[A-Za-z][\w.-]*/\d.*|.*(?:Mozilla/|https?://\S+\)).*")
SHAPES: Final = (
    _FieldShape("$time_local", _shape(LOCAL)),
    _FieldShape("$time_iso8601", _shape(ISO), unless=("$time_local",)),
    _FieldShape("$msec", _shape(r"1\d{9}(?:\.\d+)?|1\d{12}"), unless=("$time_local", "$time_iso8601")),
    _FieldShape("$request", _shape(rf"(?:{METHODS}) \S.*"), 0.5),
    _FieldShape("$request_method", _shape(METHODS), unless=("$request",)),
    _FieldShape("$request_uri", _shape("/.*"), 0.9, unless=("$request",)),
    _FieldShape("$server_protocol", _shape(r"HTTP/\d(?:\.\d)?"), unless=("$request",)),
    _FieldShape("$remote_addr", is_address),
    _FieldShape("$remote_addr:$remote_port", _has_port, unless=("$remote_addr",)),
    _FieldShape("$http_x_forwarded_for", _are_addresses),
    _FieldShape("$status", _STATUS),
    _FieldShape("$http_referer", _shape("(?:https?|android-app)://.*"), 0.9),
    _FieldShape("$http_user_agent", _AGENT, 0.5),
    _FieldShape("$host", _shape(r"(?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*(?::\d+)?"), 0.9),
)
"""Variables in the order of assignment: each is assigned to the first column that fits and has no variable yet."""
_TIMES: Final = {shape.variable for shape in SHAPES[:3]}
_REQUESTS: Final = {"$request", "$request_uri"}
_ADDRESSES: Final = {"$remote_addr", "$remote_addr:$remote_port"}


def proposed_layouts(lines: Sequence[str]) -> list[str]:
    """Return possible values of --log-format for these lines; the value that matches most lines is first."""
    delimiter = _delimiter(lines)
    kinds = defaultdict[tuple[str, ...], list[tuple[str, tuple[LineField, ...]]]](list)
    for line in lines:
        fields = split_fields(line, delimiter)
        kinds[texts_between(line, fields)].append((line, fields))
    frequent = sorted(kinds.items(), key=lambda kind: -len(kind[1]))[:MAX_PROPOSALS]
    return [layout for texts, equal in frequent if (layout := _layout(texts, equal))]


def split_fields(line: str, delimiter: str = "") -> tuple[LineField, ...]:
    """Return the fields of a line; the text between them is the same in all lines with the same layout."""
    found = []
    for match in _FIELDS[delimiter].finditer(line):
        name = match.lastgroup or ""
        found.append(LineField(*match.span(name), name == "quoted"))
    return tuple(found)


def texts_between(line: str, fields: Sequence[LineField]) -> tuple[str, ...]:
    """Return the text before the first field, between the fields, and after the last."""
    ends, starts = [0, *(field.end for field in fields)], [*(field.start for field in fields), len(line)]
    return tuple(line[end:start] for end, start in zip(ends, starts, strict=True))


def _delimiter(lines: Sequence[str]) -> str:
    """Return a character so frequent in most lines that it must separate their fields; '' for spaces."""
    for delimiter in ("\t", "|"):
        if 2 * sum(line.count(delimiter) >= _MIN_DELIMITERS for line in lines) > len(lines):
            return delimiter
    return ""


def _layout(texts: tuple[str, ...], lines: Sequence[tuple[str, tuple[LineField, ...]]]) -> str:
    """Return a layout for lines with the same texts between fields; '' if they have no time or no request."""
    columns = []
    for number, first in enumerate(lines[0][1]):
        values = (line[fields[number].start : fields[number].end] for line, fields in lines)
        columns.append(_LineColumn(tuple(value for value in values if value not in {"", "-"}), first.is_quoted))
    names = _variables(columns)
    if not (_TIMES & {*names} and _REQUESTS & {*names}):
        return ""
    return "".join(text.replace("\t", r"\t") + name for text, name in zip(texts, [*names, ""], strict=True))


def _variables(columns: Sequence[_LineColumn]) -> list[str]:
    """Return the variable for each column, with its dollar sign."""
    found: dict[str, int] = {}
    for shape in SHAPES:
        if not found.keys().isdisjoint(shape.unless):
            continue
        free = [number for number in range(len(columns)) if number not in found.values()]
        fitting = [number for number in free if columns[number].share(shape.fits) >= shape.share]
        if shape.variable == "$status":  # a number before the request may be anything
            request = max((found[name] for name in _REQUESTS & found.keys()), default=0)
            fitting = [number for number in fitting if number > request] or fitting
        if shape.variable == "$http_x_forwarded_for":  # other addresses, such as a backend's, are not the client's
            addresses = {found[name] for name in _ADDRESSES & found.keys()}
            fitting = [
                number for number in fitting if columns[number].is_quoted or {number - 1, number + 1} & addresses
            ]
        if fitting:
            found[shape.variable] = fitting[0]
    names = {number: name for name, number in found.items()}
    after, before = found.get("$status", -2) + 1, found.get("$http_user_agent", 0) - 1
    if after in range(1, len(columns)) and columns[after].share(str.isdecimal) == 1 > columns[after].share(_STATUS):
        names.setdefault(after, "$body_bytes_sent")
    if before >= 0 and "$http_referer" not in found and columns[before].is_quoted and not columns[before].values:
        names.setdefault(before, "$http_referer")
    return [names.get(number, OTHER) for number in range(len(columns))]
