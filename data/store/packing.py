"""Visits that wait for their file, packed: column by column, and what repeats among them only once.

Packing is cheap, as somebody waits for it; the table is made together with the file. Where they wait is in pending.py.
"""

import struct
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec
import pyarrow as pa

from data.errors import LakeDamaged
from data.visits import VISITS_OF_DAYS, columns_filled_by

OWN: Final = (
    "visited_at", "domain", "short_code", "path", "method", "status", "country", "visitor", "is_malicious",
    "user_agent",
)  # fmt: skip
"""The columns that are a visit's own."""
SHARED: Final = columns_filled_by("classification", "referrer", "campaign", "rules")
"""The columns that repeat: what is said of a visit and where it came from, in few combinations for many visits."""

Shared = tuple[str | None, ...]
_Text = list[str | None]


class Packed(NamedTuple):
    """The visits of one organization, how many and what."""

    visits: int
    body: bytes


class Unpacked(msgspec.Struct, array_like=True, gc=False):
    """The columns of OWN, for each visit the number of its row of `shared`, and these rows, each of SHARED."""

    own: tuple[
        list[datetime], _Text, _Text, _Text, _Text, list[int | None], _Text, list[int | None], list[bool | None], _Text
    ]
    numbers: list[int]
    shared: list[Shared]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Unpacked)
_HEAD: Final = struct.Struct(">II")
"""The bytes of what is compressed, and their CRC-32."""
_MOST_TIMES: Final = 255
"""LZ4 makes nothing smaller than that."""


def pack(rows: Sequence[tuple[Any, ...]], shared: Sequence[Shared]) -> Packed:
    """Pack visits, each the values of OWN and the number of its row of `shared`."""
    *own, numbers = zip(*rows, strict=True)
    plain = _ENCODER.encode((own, numbers, shared))
    return Packed(len(rows), _HEAD.pack(len(plain), crc32(plain)) + pa.compress(plain, "lz4", asbytes=True))


def unpack(body: bytes) -> Unpacked:
    """Undo the packing. Raises LakeDamaged for bytes that are not as they were packed."""
    try:
        size, checksum = _HEAD.unpack_from(body)
        if size > _MOST_TIMES * len(body):
            raise ValueError("more bytes than there can be")
        plain = pa.decompress(body[_HEAD.size :], size, "lz4", asbytes=True)
        if crc32(plain) != checksum:
            raise ValueError("their checksum differs")
        return _DECODER.decode(plain)
    except (msgspec.MsgspecError, pa.ArrowException, struct.error, OSError, ValueError) as error:
        raise LakeDamaged(f"packed visits cannot be read: {error}.") from error


def table_of(parts: Sequence[Unpacked]) -> pa.Table:
    """The visits of all parts, one after the other: a table of `day` and the columns of VISITS."""
    own = (chain.from_iterable(values) for values in zip(*(part.own for part in parts), strict=True))
    columns = {name: pa.array(values, VISITS_OF_DAYS.field(name).type) for name, values in zip(OWN, own, strict=True)}
    starts = accumulate((len(part.shared) for part in parts), initial=0)
    numbers = [start + number for start, part in zip(starts, parts, strict=False) for number in part.numbers]
    rows = pa.array(numbers, pa.int32())
    for name, values in zip(SHARED, zip(*(row for part in parts for row in part.shared), strict=True), strict=True):
        columns[name] = pa.array(values, pa.string()).take(rows)
    columns["day"] = columns["visited_at"].cast(pa.date32())
    return pa.table([columns[name] for name in VISITS_OF_DAYS.names], schema=VISITS_OF_DAYS)
