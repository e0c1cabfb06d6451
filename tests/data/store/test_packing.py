"""Packed visits are unpacked unchanged, and damaged bytes are detected."""

import random
import struct
from datetime import datetime
from zlib import crc32

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import LakeDamaged, NewerVersion
from data.store.packing import pack, table_of, unpack
from data.visits import SCHEMA_VERSION, VISITS, VISITS_OF_DAYS
from tests.faults.trials import tried
from tests.support.visits import packed, visit

VALUES = {
    "string": st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
}
"""The values that a column may have, by its type."""
COLUMNS = {field.name: st.none() | VALUES[str(field.type)] for field in VISITS if field.name != "visited_at"} | {
    "visited_at": st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)),
    "utc_offset": st.none() | st.integers(-720, 840),
}
ROWS = st.lists(st.fixed_dictionaries(COLUMNS), min_size=1, max_size=8).map(lambda rows: [visit(**row) for row in rows])


@given(st.lists(ROWS, min_size=1, max_size=4))
@tried(20)
def test_visits_from_several_packs_are_unpacked_in_order(packs):
    table = table_of([unpack(packed(rows).body) for rows in packs])
    assert table.cast(VISITS_OF_DAYS).column_names == VISITS_OF_DAYS.names
    assert table.to_pylist() == [{"day": row["day"], **row} for rows in packs for row in rows]


def test_repeated_values_are_packed_once():
    moments = {"visited_at": [datetime(2026, 3, 4)] * 1_000}
    one, many = packed([visit()]), pack(moments, [0] * 1_000, {"agent": ["an agent of a long name"]})
    assert (one.visits, many.visits) == (1, 1_000)
    assert len(many.body) < 3_000


def body_of(content):
    """Return a packed body with this content."""
    plain = msgspec.msgpack.encode(content)
    return struct.pack(">II", len(plain), crc32(plain)) + pa.compress(plain, "lz4", asbytes=True)


def test_columns_are_packed_by_name_with_the_schema_version():
    body = packed([visit(path="/a")]).body
    (size,) = struct.unpack_from(">I", body)
    content = msgspec.msgpack.decode(pa.decompress(body[8:], size, "lz4", asbytes=True))
    assert (content["version"], content["columns"]["path"]) == (SCHEMA_VERSION, ["/a"])
    assert {*content["columns"], *content["shared"]} == set(VISITS.names)


def test_bodies_with_different_columns_form_one_table():
    moment = datetime(2026, 3, 4)
    bodies = [
        pack({"visited_at": [moment], "path": ["/a"]}, [0], {"agent": ["A"], "domain": ["d"]}),
        pack({"visited_at": [moment] * 2, "agent": ["B", None]}, [1, 0], {"path": ["/b", "/c"]}),
        pack({"visited_at": [moment]}, [0], {"operator": ["O"]}),
    ]
    rows = table_of([unpack(body.body) for body in bodies]).to_pylist()
    assert [(row["path"], row["agent"], row["domain"], row["browser"]) for row in rows] == [
        ("/a", "A", "d", None),
        ("/c", "B", None, None),
        ("/b", None, None, None),
        (None, None, None, None),
    ]


@pytest.mark.parametrize("more", [{}, {"columns": 7}])  # whatever else changed
def test_a_body_from_a_newer_program_is_not_called_damaged(more):
    newer = {"version": SCHEMA_VERSION + 1, "columns": {"made_up": [1]}, "numbers": [], "shared": {}} | more
    with pytest.raises(NewerVersion, match=r"newer version of this program .*; upgrade\.$"):
        unpack(body_of(newer))


def test_a_changed_byte_never_changes_an_unpacked_visit():
    chance, body = random.Random(1), packed([visit(path=f"/{number}") for number in range(50)]).body
    for _ in range(2_000):
        damaged = bytearray(body)
        damaged[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
        try:
            assert unpack(bytes(damaged)) == unpack(body)  # an unused bit
        except LakeDamaged:
            continue


def test_a_body_that_cannot_be_unpacked_is_reported():
    bodies = [b"", b"x", b"\0" * 8, b"\xff" * 8, b"\xff" * 4 + b"\0" * 4 + b"x" * 100, b"{}" * 9]
    bodies.append(body_of({"version": SCHEMA_VERSION, "columns": {"path": [1]}, "numbers": [], "shared": {}}))
    whole = packed([visit(path=f"/{number}") for number in range(50)]).body
    bodies += [whole[:end] for end in range(len(whole) - 4)]  # LZ4 ends a frame with four empty bytes
    for body in bodies:
        with pytest.raises(LakeDamaged, match="packed visits cannot be read") as told:
            unpack(body)
        assert not isinstance(told.value, NewerVersion)
