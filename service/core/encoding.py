"""Encodes answers as JSON, with the same bytes over HTTP and on the command line, and builds records from rows of
control.sqlite.
"""

from collections.abc import Iterable
from datetime import date, time
from decimal import Decimal
from math import isfinite
from typing import Any, Final, TypeVar

import msgspec
import orjson

from data.errors import NewerVersion
from queries import Result

Record = TypeVar("Record", bound=msgspec.Struct)
_OPTIONS: Final = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS


def encode(answer: Result) -> bytes:
    """Encode an answer as JSON; times are RFC 3339 in UTC with Z and whole seconds."""
    return orjson.dumps(answer, option=_OPTIONS, default=_plain)


def plain(value: Any, depth: int = 0) -> Any:  # noqa: ANN401  # any type that SQL returns
    """Convert a value from a user's own SQL to a JSON value; values without a JSON type become text.

    Integers of more than 64 bits, non-finite numbers, keys of a MAP, and values nested deeper than MAX_DEPTH
    also become text.
    """
    if isinstance(value, dict) and depth < MAX_DEPTH:
        return {_key(key): plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple) and depth < MAX_DEPTH:
        return [plain(inner, depth + 1) for inner in value]
    if isinstance(value, bytes):
        return value.decode("latin-1").translate(_ESCAPES)
    if isinstance(value, int):
        is_known = _MIN_INTEGER <= value <= _MAX_INTEGER
    elif isinstance(value, float | Decimal):
        is_known = isfinite(value)
    elif isinstance(value, time):
        is_known = value.tzinfo is None
    else:
        is_known = value is None or isinstance(value, str | date)
    return value if is_known else str(value)


def record(kind: type[Record], row: Iterable[object]) -> Record:
    """Build a record from stored values in the order of its fields, with times as text and JSON already decoded.

    Raises NewerVersion if the values do not fit the record.
    """
    try:
        return msgspec.convert(dict(zip(kind.__struct_encode_fields__, row, strict=True)), kind)
    except msgspec.ValidationError as error:
        what = f"a {kind.__name__} in control.sqlite was written by a newer version of this program"
        raise NewerVersion(f"{what} ({error}); upgrade.") from error


def _key(key: object) -> str:
    """Return the key of a MAP as text: its JSON without quotation marks."""
    known = plain(key)
    return known if isinstance(known, str) else encode(known).decode().strip('"')


MAX_DEPTH: Final = 100
"""Maximum number of levels of nested values that are encoded as JSON."""
_MIN_INTEGER: Final = -(2**63)
_MAX_INTEGER: Final = 2**64 - 1
_ESCAPES: Final = {byte: f"\\x{byte:02X}" for byte in range(256) if not 32 <= byte < 127 or byte in b"\\'\""}
"""The escape sequence for each byte of a BLOB that needs one, as in DuckDB."""


def _plain(value: object) -> float | str:
    """Encode types that only a user's own SQL returns: decimals as numbers, anything else as a string."""
    return float(value) if isinstance(value, Decimal) else str(value)
