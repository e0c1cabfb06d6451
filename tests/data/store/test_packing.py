"""Visits on their way to a file: what is packed comes out as it went in, and no damaged byte gets through."""

import os
import random
from datetime import date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import LakeDamaged
from data.store.packing import pack, table_of, unpack
from data.visits import VISITS, VISITS_OF_DAYS
from tests.visits import packed, unpacked, visit

TEXT = st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
COLUMNS = {
    "visited_at": st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)),
    "status": st.none() | st.integers(100, 999),
    "visitor": st.none() | st.integers(0, 2**64 - 1),
    "is_malicious": st.none() | st.booleans(),
}
ROWS = st.lists(
    st.fixed_dictionaries({name: COLUMNS.get(name, TEXT) for name in VISITS.names}), min_size=1, max_size=8
).map(lambda rows: [visit(**row) for row in rows])


@given(st.lists(ROWS, min_size=1, max_size=4))
@settings(max_examples=int(os.environ.get("TRAFFIC_EXAMPLES", "50")), deadline=None)
def test_visits_of_several_packs_come_out_in_their_order(packs):
    table = table_of([unpack(packed(rows).body) for rows in packs])
    assert table.schema.equals(VISITS_OF_DAYS)
    assert table.to_pylist() == [{"day": row["day"], **row} for rows in packs for row in rows]


def test_what_repeats_is_packed_once():
    one, many = packed([visit()]), pack([(datetime(2026, 3, 4), *[None] * 9, 0)] * 1_000, [(None,) * 18])
    assert (one.visits, many.visits) == (1, 1_000)
    assert len(many.body) < 3_000


def test_the_day_is_that_of_the_visit():
    moments = [datetime(2026, 3, 4, 23, 59, 59, 999_999), datetime(2026, 3, 5)]
    (first, second) = unpacked([packed([visit(visited_at=moment) for moment in moments]).body])
    assert (first["day"], second["day"]) == (date(2026, 3, 4), date(2026, 3, 5))


def test_no_changed_byte_is_taken_for_a_visit():
    chance, body = random.Random(1), packed([visit(path=f"/{number}") for number in range(50)]).body
    for _ in range(2_000):
        damaged = bytearray(body)
        damaged[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
        try:
            assert unpack(bytes(damaged)).own == unpack(body).own  # a bit that means nothing
        except LakeDamaged:
            continue


@pytest.mark.parametrize("body", [b"", b"x", b"\0" * 8, b"\xff" * 8, b"\xff" * 4 + b"\0" * 4 + b"x" * 100, b"{}" * 9])
def test_what_nobody_packed_is_told(body):
    with pytest.raises(LakeDamaged, match="packed visits cannot be read"):
        unpack(body)


def test_no_end_of_a_pack_may_be_missing():
    body = packed([visit(path=f"/{number}") for number in range(50)]).body
    for end in range(len(body) - 4):  # LZ4 closes a frame by four bytes that hold nothing
        with pytest.raises(LakeDamaged):
            unpack(body[:end])
