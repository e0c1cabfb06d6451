"""Visits that wait for their file, packed: column by column, by name, and what repeats among them only once.

Packing is cheap, as somebody waits for it; the table is made together with the file. Where they wait is in pending.py.
"""

import struct
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec
import pyarrow as pa

from data.errors import LakeDamaged
from data.visits import COLUMNS, SCHEMA_VERSION, VISITS_OF_DAYS, check_version

Columns = Mapping[str, Sequence[Any]]
"""Columns of visits by name. One that is missing is null."""


class Packed(NamedTuple):
    """The visits of one organization, how many and what."""

    visits: int
    body: bytes


class Unpacked(NamedTuple):
    """Visits: columns with a value for each, and columns of which each visit has the row that `numbers` gives."""

    columns: Columns
    numbers: Sequence[int]
    shared: Columns


_LISTS: Final[dict[pa.DataType, Any]] = {
    pa.timestamp("us"): list[datetime | None] | None,
    pa.string(): list[str | None] | None,
    pa.int16(): list[int | None] | None,
    pa.uint64(): list[int | None] | None,
    pa.bool_(): list[bool | None] | None,
}
_VALUES: Final = msgspec.defstruct(
    "_Values", [(column.name, _LISTS[column.type], None) for column in COLUMNS], gc=False
)
_BODY: Final = msgspec.defstruct(
    "_Body", [("version", int), ("columns", _VALUES), ("numbers", list[int]), ("shared", _VALUES)], gc=False
)
"""What is packed: a mapping of these names."""


class _Version(msgspec.Struct):
    version: int


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final[msgspec.msgpack.Decoder[Any]] = msgspec.msgpack.Decoder(_BODY)
_VERSION_DECODER: Final = msgspec.msgpack.Decoder(_Version)
_HEAD: Final = struct.Struct(">II")
"""The bytes of what is compressed, and their CRC-32."""
_WHAT: Final = "a batch of visits that wait for their file"
_MAX_RATIO: Final = 255
"""LZ4 makes nothing smaller than that."""


def pack(columns: Columns, numbers: Sequence[int], shared: Columns) -> Packed:
    """Pack visits: the columns that are their own, and for each the number of its row of the columns that repeat."""
    plain = _ENCODER.encode({"version": SCHEMA_VERSION, "columns": columns, "numbers": numbers, "shared": shared})
    return Packed(len(numbers), _HEAD.pack(len(plain), crc32(plain)) + pa.compress(plain, "lz4", asbytes=True))


def unpack(body: bytes) -> Unpacked:
    """Undo the packing. Raises LakeDamaged for bytes that are not as they were packed, NewerVersion for newer ones."""
    try:
        size, checksum = _HEAD.unpack_from(body)
        if size > _MAX_RATIO * len(body):
            raise ValueError("more bytes than there can be")
        plain = pa.decompress(body[_HEAD.size :], size, "lz4", asbytes=True)
        if crc32(plain) != checksum:
            raise ValueError("their checksum differs")
        return _read_positional(plain) if plain[:1] == _POSITIONAL_START else _read(plain)
    except (msgspec.MsgspecError, pa.ArrowException, struct.error, OSError, ValueError) as error:
        raise LakeDamaged(f"packed visits cannot be read: {error}.") from error


def _read(plain: bytes) -> Unpacked:
    try:
        read = _DECODER.decode(plain)
    except msgspec.ValidationError:
        check_version(_VERSION_DECODER.decode(plain).version, _WHAT)
        raise
    check_version(read.version, _WHAT)
    return Unpacked(_given(read.columns), read.numbers, _given(read.shared))


def _given(values: msgspec.Struct) -> Columns:
    return {name: column for name, column in msgspec.structs.asdict(values).items() if column is not None}


def table_of(parts: Sequence[Unpacked]) -> pa.Table:
    """The visits of all parts, one after the other: a table of VISITS_OF_DAYS."""
    starts = accumulate((_count(part.shared) for part in parts), initial=0)
    numbers = [start + number for start, part in zip(starts, parts, strict=False) for number in part.numbers]
    rows = pa.array(numbers, pa.int32())
    columns = {column.name: _column(column.name, column.type, parts, rows) for column in COLUMNS}
    columns["day"] = columns["visited_at"].cast(pa.date32())
    return pa.table([columns[name] for name in VISITS_OF_DAYS.names], schema=VISITS_OF_DAYS)


def _column(name: str, kind: pa.DataType, parts: Sequence[Unpacked], rows: pa.Array) -> pa.Array:
    """One column of all visits, which each part has as a visit's own, or among what repeats, or not at all."""
    own = [part.columns.get(name, ()) for part in parts]
    if all(own):
        return pa.array(chain.from_iterable(own), kind)
    shared = [part.shared.get(name) or [None] * _count(part.shared) for part in parts]
    if not any(own):
        return pa.array(chain.from_iterable(shared), kind).take(rows)
    values = (mine or _repeated(part, name) for part, mine in zip(parts, own, strict=True))
    return pa.array(chain.from_iterable(values), kind)


def _repeated(part: Unpacked, name: str) -> list[Any]:
    """The value for each visit of a part of a column that repeats; null where the part does not have it."""
    shared = part.shared.get(name)
    return [shared[number] for number in part.numbers] if shared else [None] * len(part.numbers)


def _count(columns: Columns) -> int:
    """How many values each of the columns has."""
    return len(next(iter(columns.values()), ()))


# Before schema versions were written, three values stood in a row: the columns that are a visit's own, the numbers, and
# the rows of columns that repeat; which columns these are was known by their positions only. Such bodies still wait.

_OWN: Final = (
    "visited_at", "domain", "short_code", "path", "method", "status", "country", "visitor", "is_malicious",
    "user_agent",
)  # fmt: skip
_SHARED: Final = (
    "bot_category", "agent_kind", "ai_source", "agent", "operator", "confidence", "detection_method", "device_type",
    "operating_system", "browser", "referrer", "referrer_type", "utm_source", "utm_medium", "utm_campaign", "utm_term",
    "utm_content", "rules_version",
)  # fmt: skip
_POSITIONAL_START: Final = b"\x93"
"""Three values in a row, as MessagePack begins them; a mapping begins otherwise."""
_Texts = list[str | None]


class _Positional(msgspec.Struct, array_like=True, gc=False):
    own: tuple[
        list[datetime], _Texts, _Texts, _Texts, _Texts, list[int | None], _Texts, list[int | None], list[bool | None],
        _Texts,
    ]  # fmt: skip
    numbers: list[int]
    shared: list[tuple[str | None, ...]]


_POSITIONAL_DECODER: Final = msgspec.msgpack.Decoder(_Positional)


def _read_positional(plain: bytes) -> Unpacked:
    read = _POSITIONAL_DECODER.decode(plain)
    columns: Columns = dict(zip(_OWN, read.own, strict=True))
    return Unpacked(columns, read.numbers, dict(zip(_SHARED, zip(*read.shared, strict=True), strict=True)))
