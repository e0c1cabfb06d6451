"""Visits that were acknowledged and wait for their Parquet file, in the manifest; one transaction moves them."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from data.errors import Conflict, LakeDamaged, NewerVersion
from data.store.lake import Lake
from data.store.landing import Landing
from data.store.manifest import Manifest, format_time, insert_files
from data.store.packing import Packed, Unpacked, table_of, unpack

MAX_VISITS_PER_TRANSACTION: Final = 100_000
"""Visits that one transaction moves: what is held in memory meanwhile."""


class Backlog(NamedTuple):
    """What waits at the moment."""

    visits: int
    oldest: datetime | None


class _PendingBatch(NamedTuple):
    id: int
    organization: str
    visits: int
    body: bytes


class _Unreadable(NamedTuple):
    batches: _PendingBatch
    error: LakeDamaged


def enqueue(manifest: Manifest, visits: Mapping[str, Packed], now: datetime) -> None:
    """Keep the visits of each organization. Durable on return."""
    rows = [(organization, packed.visits, format_time(now), packed.body) for organization, packed in visits.items()]
    with manifest.transaction() as db:
        db.executemany("INSERT INTO pending (organization, visits, received_at, body) VALUES (?, ?, ?, ?)", rows)


def backlog(manifest: Manifest) -> Backlog:
    """How many visits wait, and since when the oldest does."""
    ((visits, oldest),) = manifest.rows("SELECT coalesce(sum(visits), 0), min(received_at) FROM pending")
    return Backlog(visits, datetime.fromisoformat(oldest) if oldest else None)


def flush_all(lake: Lake) -> int:
    """Move every visit that waits now into Parquet files; how many they were.

    Raises LakeDamaged when some cannot be read, after all others were moved: those go on waiting. It is NewerVersion
    when they are sound, but packed by a newer version of this program.
    """
    ((latest,),) = lake.manifest.rows("SELECT max(id) FROM pending")
    moved, last, unreadable = 0, 0, list[_Unreadable]()
    while batches := _oldest(lake.manifest, last, latest):
        last = batches[-1].id
        readable = [(one, part) for one in batches if (part := _read(one, unreadable))]
        try:
            _land(lake, readable)
        except Conflict:
            break  # somebody else moves them
        moved += sum(one.visits for one, _ in readable)
    _raise_for(unreadable)
    return moved


def check_pending(manifest: Manifest, organization: str = "") -> None:
    """Raises what `flush_all` raises for some of what waits, of one organization or of any."""
    rows = manifest.rows(
        "SELECT id, organization, visits, body FROM pending WHERE ? IN ('', organization)", [organization]
    )
    unreadable = list[_Unreadable]()
    for row in rows:
        _read(_PendingBatch(*row), unreadable)
    _raise_for(unreadable)


def _raise_for(unreadable: list[_Unreadable]) -> None:
    """Raise LakeDamaged for what is damaged, else NewerVersion for what only a newer program can read."""
    damaged = [one.batches for one in unreadable if not isinstance(one.error, NewerVersion)]
    if damaged:
        visits, publishers = sum(one.visits for one in damaged), ", ".join(str(one.id) for one in damaged[:5])
        organizations = ", ".join(sorted({one.organization for one in damaged}))
        raise LakeDamaged(
            f"{visits:,} visits of {organizations} that wait for their file cannot be read (in the "
            f"manifest's table pending: {publishers}); restore the lake from a backup."
        )
    if unreadable:
        raise unreadable[0].error


def _oldest(manifest: Manifest, last: int, latest: int | None) -> list[_PendingBatch]:
    """What has waited longest, after number `last` and up to `latest`: as much as one transaction moves."""
    rows = manifest.rows(
        "SELECT id, organization, visits, body FROM "
        "(SELECT *, sum(visits) OVER (ORDER BY id) AS so_far FROM pending WHERE id > ? AND id <= ?) "
        "WHERE so_far - visits < ? ORDER BY id",
        [last, latest, MAX_VISITS_PER_TRANSACTION],
    )
    return [_PendingBatch(*row) for row in rows]


def _read(batches: _PendingBatch, unreadable: list[_Unreadable]) -> Unpacked | None:
    try:
        return unpack(batches.body)
    except LakeDamaged as error:
        unreadable.append(_Unreadable(batches, error))
        return None


def _land(lake: Lake, readable: list[tuple[_PendingBatch, Unpacked]]) -> None:
    parts = defaultdict[str, list[Unpacked]](list)
    for batches, part in readable:
        parts[batches.organization].append(part)
    landings = [Landing(lake, organization) for organization in parts]
    try:
        for landing, some in zip(landings, parts.values(), strict=True):
            order = [(name, "ascending") for name in ("day", "short_code", "visited_at")]
            landing.stage(table_of(some).sort_by(order))
        _move(lake.manifest, [batches.id for batches, _ in readable], landings)
    finally:
        for landing in landings:
            landing.discard()


def _move(manifest: Manifest, keys: list[int], landings: list[Landing]) -> None:
    publishers = [landing.publisher() for landing in landings]
    with manifest.transaction() as db:
        for key in keys:
            if db.execute("DELETE FROM pending WHERE id = ?", [key]).rowcount != 1:
                raise Conflict("somebody else moves these visits; try again.")
        insert_files(db, [file for publish in publishers for file in publish()])
