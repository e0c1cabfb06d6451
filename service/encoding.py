"""Encodes answers as JSON, with the same bytes over HTTP and on the command line."""

from decimal import Decimal
from typing import Final

import orjson

from queries import Result

_OPTIONS: Final = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS


def encode(answer: Result) -> bytes:
    """An answer as JSON; times are RFC 3339 in UTC with Z and whole seconds."""
    return orjson.dumps(answer, option=_OPTIONS, default=_plain)


def _plain(value: object) -> float | str:
    """Encode types that only a user's own SQL returns: decimals as numbers, anything else as a string."""
    return float(value) if isinstance(value, Decimal) else str(value)
