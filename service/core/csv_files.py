"""Rows as CSV in UTF-8. Paths and referrers are untrusted, and a spreadsheet runs text that looks like a formula."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from service.core.clock import to_text
from service.core.encoding import encode, plain

_FORMULA: Final = re.compile(
    r"""
    ^ (?= [\t\r\n] )                                # a spreadsheet may skip these at the beginning of a cell
    | (?: ^ | (?<= [;\t\r\n] ) )                    # where a cell begins, if ; or a tab separates cells
    (?= (?: [^\S\t\r\n] | [\x00-\x08\x0e-\x1f"] )*  # what it may skip there
        [=+\-@\uff1d\uff0b\uff0d\uff20] )
    """,
    re.VERBOSE,
)
"""Matches where a spreadsheet would start to read a formula, whichever character separates its cells."""


def csv_of(names: Sequence[str], rows: Iterable[Mapping[str, Any]], *, is_raw: bool = False) -> bytes:
    """Return rows as CSV according to RFC 4180, with a header line of names; empty if there are no names.

    An apostrophe is inserted wherever a spreadsheet would begin to read a formula, unless the CSV is for programs
    (`is_raw`). Lists and objects are written as JSON.
    """
    text = io.StringIO()
    if names:
        writer = csv.writer(text)
        writer.writerow([cell(name, is_raw=is_raw) for name in names])
        writer.writerows([cell(row[name], is_raw=is_raw) for name in names] for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def cell(value: object, *, is_raw: bool) -> object:
    """Convert a value for a CSV cell, as described in `csv_of`."""
    if isinstance(value, datetime):
        return to_text(value)
    if isinstance(value, list | tuple | dict | bool):
        value = encode(plain(value)).decode()
    elif isinstance(value, bytes):
        value = plain(value)
    return _FORMULA.sub("'", value) if isinstance(value, str) and not is_raw else value
