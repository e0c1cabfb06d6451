"""The format of pending visits: columns by name, with repeated combinations of values stored once.

Packing must be cheap, because clients wait for it; visits are converted to a table only when a file is written. The
packed visits are stored by pending.py.
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
from data.local_time import DEFAULT_ZONE, local_times
from data.rules.exclusions import NONE_EXCLUDED, ExcludedVisits
from data.visits import COLUMNS, SCHEMA_VERSION, VISITS_OF_DAYS, check_version

ColumnValues = Mapping[str, Sequence[Any]]
"""The columns of visits, by name. Missing columns are null."""


class PackedVisits(NamedTuple):
    """Packed visits of one organization, their number, and the zone in which they are dated."""

    visits: int
    body: bytes
    zone: str = DEFAULT_ZONE
    excluded: ExcludedVisits = NONE_EXCLUDED  # number of visits set aside by each of the owner's rules


class UnpackedVisits(NamedTuple):
    """Visits as `columns` with a value for each visit, and `shared` columns with rows that visits share.

    `numbers` contains the number of each visit's row in the shared columns.
    """

    columns: ColumnValues
    numbers: Sequence[int]
    shared: ColumnValues


_LISTS: Final[dict[pa.DataType, Any]] = {
    pa.timestamp("us"): list[datetime | None] | None,
    pa.string(): list[str | None] | None,
    pa.int16(): list[int | None] | None,
    pa.int64(): list[int | None] | None,
    pa.bool_(): list[bool | None] | None,
}
_VALUES: Final = msgspec.defstruct(
    "_Values", [(column.name, _LISTS[column.type], None) for column in COLUMNS], gc=False
)
_BODY: Final = msgspec.defstruct(
    "_Body", [("version", int), ("columns", _VALUES), ("numbers", list[int]), ("shared", _VALUES)], gc=False
)
"""The content of a packed body: a MessagePack map with these keys."""


class _Version(msgspec.Struct):
    version: int


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final[msgspec.msgpack.Decoder[Any]] = msgspec.msgpack.Decoder(_BODY)
_VERSION_DECODER: Final = msgspec.msgpack.Decoder(_Version)
_HEAD: Final = struct.Struct(">II")
"""The header of a body: the size of the content before compression, and its CRC-32."""
_WHAT: Final = "a batch of pending visits"
_MAX_RATIO: Final = 255
"""The maximum compression ratio of LZ4."""


def pack(columns: ColumnValues, numbers: Sequence[int], shared: ColumnValues, zone: str = DEFAULT_ZONE) -> PackedVisits:
    """Pack visits. The first three arguments are the fields of UnpackedVisits; `zone` is the zone of the visits'
    utc_offset.
    """
    plain = _ENCODER.encode({"version": SCHEMA_VERSION, "columns": columns, "numbers": numbers, "shared": shared})
    body = _HEAD.pack(len(plain), crc32(plain)) + pa.compress(plain, "lz4", asbytes=True)
    return PackedVisits(len(numbers), body, zone)


def unpack(body: bytes) -> UnpackedVisits:
    """Unpack visits. Raises LakeDamaged for a damaged body, and NewerVersion for a newer schema version."""
    try:
        size, checksum = _HEAD.unpack_from(body)
        if size > _MAX_RATIO * len(body):
            raise ValueError("their size is invalid")
        plain = pa.decompress(body[_HEAD.size :], size, "lz4", asbytes=True)
        if crc32(plain) != checksum:
            raise ValueError("their checksum differs")
        try:
            content = _DECODER.decode(plain)
        except msgspec.ValidationError:
            check_version(_VERSION_DECODER.decode(plain).version, _WHAT)
            raise
        check_version(content.version, _WHAT)
        return UnpackedVisits(_present(content.columns), content.numbers, _present(content.shared))
    except (msgspec.MsgspecError, pa.ArrowException, struct.error, OSError, ValueError) as error:
        raise LakeDamaged(f"packed visits cannot be read: {error}.") from error


def _present(values: msgspec.Struct) -> ColumnValues:
    return {name: column for name, column in msgspec.structs.asdict(values).items() if column is not None}


def table_of(parts: Sequence[UnpackedVisits]) -> pa.Table:
    """Concatenate the visits of all parts into a table with the columns of VISITS_OF_DAYS, and strings as
    dictionaries.
    """
    starts = accumulate((_count(part.shared) for part in parts), initial=0)
    numbers = [start + number for start, part in zip(starts, parts, strict=False) for number in part.numbers]
    rows = pa.array(numbers, pa.int32())
    columns = {column.name: _column(column.name, column.type, parts, rows) for column in COLUMNS}
    offsets = columns["utc_offset"].fill_null(0)
    columns["day"] = local_times(columns["visited_at"], offsets).cast(pa.date32())
    return pa.table([columns[name] for name in VISITS_OF_DAYS.names], VISITS_OF_DAYS.names)


def _column(name: str, kind: pa.DataType, parts: Sequence[UnpackedVisits], rows: pa.Array) -> pa.Array:
    """Return one column for all visits. In each part, it may be in `columns`, in `shared` or missing."""
    columns = [part.columns.get(name, ()) for part in parts]
    if all(columns):
        return _encode(pa.array(chain.from_iterable(columns), kind))
    shared = [part.shared.get(name) or [None] * _count(part.shared) for part in parts]
    if not any(columns):
        values = _encode(pa.array(chain.from_iterable(shared), kind))
        if not pa.types.is_dictionary(values.type):
            return values.take(rows)
        return pa.DictionaryArray.from_arrays(values.indices.take(rows), values.dictionary)
    expanded = (column or _expand(part, name) for part, column in zip(parts, columns, strict=True))
    return _encode(pa.array(chain.from_iterable(expanded), kind))


def _encode(values: pa.Array) -> pa.Array:
    return values.dictionary_encode() if pa.types.is_string(values.type) else values


def _expand(part: UnpackedVisits, name: str) -> list[Any]:
    """Return the value of a shared column for each visit of a part; nulls if the part does not have the column."""
    shared = part.shared.get(name)
    return [shared[number] for number in part.numbers] if shared else [None] * len(part.numbers)


def _count(columns: ColumnValues) -> int:
    return len(next(iter(columns.values()), ()))
