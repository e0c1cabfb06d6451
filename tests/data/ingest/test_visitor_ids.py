"""Daily salts are random, shared, short-lived, and readable only by their owner; visitors are hashed with them."""

import hashlib
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

from data.errors import LakeDamaged
from data.ingest.visitor_ids import LIFETIME, daily_salts, delete_old_salts, visitor_hash, visitor_hashes
from data.manifest.clock import TOLERANCE

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY, NEXT = date(2026, 2, 28), date(2026, 3, 1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "salts.sqlite"


def test_every_day_has_its_own_random_salt_of_256_bits(path, tmp_path):
    salts = daily_salts(path, [DAY, NEXT, DAY], NOW)
    assert set(salts) == {DAY, NEXT}
    assert all(re.fullmatch("[0-9a-f]{64}", salt) for salt in salts.values())
    elsewhere = daily_salts(tmp_path / "another", [DAY], NOW)
    assert len({*salts.values(), *elsewhere.values()}) == 3
    assert daily_salts(path, [], NOW) == {}
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("salts.sqlite*")} == {0o600}


def test_a_salt_stays_the_same_for_48_hours(path):
    first = daily_salts(path, [DAY], NOW)
    assert daily_salts(path, [DAY, NEXT], NOW + LIFETIME)[DAY] == first[DAY]
    assert timedelta(hours=48) == LIFETIME
    assert daily_salts(path, [DAY], NOW + LIFETIME + timedelta(seconds=1))[DAY] != first[DAY]


def test_a_deleted_salt_is_overwritten_in_the_file(path):
    days = [DAY - timedelta(days=back) for back in range(300)]  # more than one page
    old = daily_salts(path, days, NOW)
    assert old[DAY].encode() in path.read_bytes()
    daily_salts(path, [NEXT], NOW + timedelta(hours=49))
    left = b"".join(file.read_bytes() for file in path.parent.glob("salts.sqlite*"))
    assert not [salt for salt in old.values() if salt.encode() in left]


@pytest.mark.parametrize(("ahead", "stays"), [(TOLERANCE, True), (timedelta(minutes=6), False), (LIFETIME, False)])
def test_a_salt_from_the_future_counts_as_too_old(path, ahead, stays):
    """P33: otherwise, it would exist for more than 48 hours."""
    made = daily_salts(path, [DAY], NOW + ahead)[DAY]
    delete_old_salts(path, NOW)
    assert (made.encode() in path.read_bytes()) is stays
    assert (daily_salts(path, [DAY], NOW)[DAY] == made) is stays


def test_concurrent_programs_get_the_same_salts(path):
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: daily_salts(path, [DAY, NEXT], NOW), range(24)))
    assert all(salts == told[0] for salts in told)


@pytest.mark.parametrize(
    ("content", "is_wrong"), [(b"", "is empty"), (b"no database", "cannot be used (file is not a database)")]
)
def test_damaged_salts_are_reported_and_not_replaced(path, content, is_wrong):
    """P6: otherwise, a day's visitors would silently count twice."""
    daily_salts(path, [DAY], NOW)
    path.write_bytes(content)
    with pytest.raises(LakeDamaged) as refused:
        daily_salts(path, [DAY], NOW)
    assert str(refused.value) == (
        f"{path} {is_wrong}, so its salts are lost: delete the file; visitors from the last 48 hours will count as new."
    )
    path.unlink()
    assert len(daily_salts(path, [DAY], NOW)) == 1


def test_visitor_hashes_are_the_first_64_bits_of_sha256():
    salts = ["ab" * 32, "01" * 32]
    visitors = [(number % 2, f"203.0.113.{number}", f"Agent\u00e9/{number}" * (number % 9)) for number in range(500)]
    days, clients = [day for day, *_ in visitors], ["\0".join(client).encode() for _, *client in visitors]
    hashes = visitor_hashes(salts, "acme", pa.array(days, pa.int64()), pa.array(clients, pa.binary()))
    assert hashes.to_pylist() == [visitor_hash(salts[day], "acme", *client) for day, *client in visitors]
    assert hashes.type == pa.int64()
    assert {known < 0 for known in hashes.to_pylist()} == {True, False}
    for known, (day, *client) in zip(hashes.to_pylist(), visitors, strict=True):
        digest = hashlib.sha256("\0".join([salts[day], "acme", *client]).encode()).hexdigest()
        assert f"{known % 2**64:016x}" == digest[:16]
    assert visitor_hashes([], "acme", pa.array([], pa.int64()), pa.array([], pa.binary())).to_pylist() == []
