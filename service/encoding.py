"""Encodes answers as JSON, with the same bytes over HTTP and on the command line; reads records of control.sqlite."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Final, TypeVar

import msgspec
import orjson

from data.errors import NewerVersion
from queries import Result

Record = TypeVar("Record", bound=msgspec.Struct)
_OPTIONS: Final = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS


def encode(answer: Result) -> bytes:
    """An answer as JSON; times are RFC 3339 in UTC with Z and whole seconds."""
    return orjson.dumps(answer, option=_OPTIONS, default=_plain)


def record(kind: type[Record], row: Iterable[object]) -> Record:
    """A record from its stored values, in the order of its fields: times as text, JSON decoded. Raises NewerVersion."""
    try:
        return msgspec.convert(dict(zip(kind.__struct_encode_fields__, row, strict=True)), kind)
    except msgspec.ValidationError as error:
        what = f"a {kind.__name__} in control.sqlite was written by a newer version of this program"
        raise NewerVersion(f"{what} ({error}); upgrade.") from error


def _plain(value: object) -> float | str:
    """Encode types that only a user's own SQL returns: decimals as numbers, anything else as a string."""
    return float(value) if isinstance(value, Decimal) else str(value)
