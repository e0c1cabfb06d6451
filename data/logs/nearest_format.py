"""Finds the format nearest to a line, and where the line differs from it, by comparing examples.

Examples are in each format's SQL file, in comments that begin with `Example:`.
"""

import json
import re
from functools import cache
from typing import Final, NamedTuple

from data.logs.columns import columns_in_objects
from data.logs.format_names import FORMATS
from data.logs.layout_guess import SHAPES, split_fields, texts_between
from data.sql import read_sql

MAX_SKIPPED: Final = 8
"""Maximum number of fields in a prefix that is not part of the format, such as a syslog prefix."""
MIN_FIELDS: Final = 3
"""Minimum number of fields that must match a format: an address alone occurs in all logs."""

_EXAMPLE: Final = re.compile("^-- Example: (.*)$", re.MULTILINE)
_MORE_KINDS: Final = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"), "clock": re.compile(r"\d\d:\d\d:\d\d(?:\.\d+)?"),
    "number": re.compile(r"\d+"), "dash": re.compile("-?"),
}  # fmt: skip
_NUMBERS: Final = {"number", "$status", "$msec"}
_LOOSE: Final = {"dash", "other"}
"""Kinds of fields that are not characteristic of a format."""


class Difference(NamedTuple):
    """The first difference between a line and its nearest format."""

    log_format: str  # '' when no format is near
    at: int | None = None  # index of the first different character; None if the format has no fixed order
    wanted: str = ""  # the text expected at this index, or the missing keys


class _Token(NamedTuple):
    before: str  # the text before the field, without repeated spaces
    kind: str
    start: int
    text: str


def example(log_format: str) -> str:
    """Return an example of a log in this format."""
    return "\n".join(_EXAMPLE.findall(read_sql("data.logs", f"formats/{log_format}")))


def nearest_format(line: str) -> Difference:
    """Return the format nearest to a line, and where the line differs from it."""
    return _nearest_object(line) if line.lstrip().startswith("{") else _nearest_text(line)


def _nearest_object(line: str) -> Difference:
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        return Difference("ndjson", error.pos, f"JSON ({error.msg})")
    except RecursionError:
        return Difference("")
    keys, best, most = {*columns_in_objects([line])}, Difference(""), 0.0
    for name, wanted in _examples_of_objects():
        found = len(keys & wanted.keys()) / len(wanted)
        if found > most:
            best, most = Difference(name, None, ", ".join(key for key in wanted if key not in keys)), found
    return best


def _nearest_text(line: str) -> Difference:
    tokens, best, most = _tokens(line), Difference(""), 0
    for name, wanted in _examples_of_lines():
        for skipped in range(min(MAX_SKIPPED, len(tokens)) + 1):
            number, found = _agreement(wanted, tokens[skipped:])
            if number >= MIN_FIELDS and found > most:
                most = found
                rest = tokens[skipped + number :]
                at = rest[0].start if rest and number < len(wanted) else len(line)
                best = Difference(name, at, wanted[number].text if number < len(wanted) else "")
    return best


def _agreement(wanted: list[_Token], tokens: list[_Token]) -> tuple[int, int]:
    """Return the number of fields before the first difference, and how many of them are characteristic of a format."""
    count = found = 0
    for one, other in zip(wanted, tokens, strict=False):
        is_same = one.kind == other.kind or one.kind in _NUMBERS >= {other.kind} or "dash" in {one.kind, other.kind}
        if not is_same or (count and one.before != other.before):
            break
        count, found = count + 1, found + (one.kind not in _LOOSE and other.kind not in _LOOSE)
    return count, found


def _tokens(line: str) -> list[_Token]:
    fields = split_fields(line)
    return [
        _Token(" ".join(before.split(" ")), _kind(text := line[field.start : field.end]), field.start, text)
        for field, before in zip(fields, texts_between(line, fields), strict=False)
    ]


def _kind(text: str) -> str:
    for shape in SHAPES:
        if shape.fits(text):
            return shape.variable
    return next((name for name, pattern in _MORE_KINDS.items() if pattern.fullmatch(text)), "other")


@cache
def _examples_of_lines() -> list[tuple[str, list[_Token]]]:
    examples = ((name, example(name).rpartition("\n")[2]) for name in FORMATS)
    return [(name, _tokens(line)) for name, line in examples if not line.startswith("{")]


@cache
def _examples_of_objects() -> list[tuple[str, dict[str, None]]]:
    """Return each format with a JSON example, and the keys in the example, without the keys of enclosing objects."""
    found = []
    for name in FORMATS:
        keys = columns_in_objects([example(name)])
        leaves = [key for key in keys if not any(other.startswith(f"{key}.") for other in keys)]
        found += [(name, dict.fromkeys(leaves))] if leaves else []
    return found
