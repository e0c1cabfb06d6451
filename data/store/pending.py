"""Pending visits: acknowledged, stored in the manifest, and not yet in a Parquet file."""

import secrets
import time
from collections.abc import Collection
from datetime import datetime
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from data.errors import Conflict, LakeDamaged, NewerVersion
from data.manifest.arrivals import Arrivals, note_arrivals
from data.manifest.clock import format_time, parse_time
from data.manifest.coverage import note_received
from data.manifest.files import Publisher
from data.manifest.manifest import Manifest, insert_files
from data.manifest.organizations import check_zone_is
from data.store.footers import SESSION_BITS, PendingRange, session_of
from data.store.lake import Lake
from data.store.landing import Landing
from data.store.packing import Packed, Unpacked, table_of, unpack
from data.text import plural
from data.visits import VISITS_OF_DAYS

MAX_VISITS_PER_TRANSACTION: Final = 100_000
"""The number of visits that are moved in one transaction, which limits memory."""
PIECE_VISITS: Final = 10_000
"""About as many visits are unpacked at once: as Python objects they take many times the memory of a table."""
_ORDER: Final = [(name, "ascending") for name in ("day", "short_code", "visited_at")]


class Backlog(NamedTuple):
    """The number of pending visits, and when the oldest was received."""

    visits: int
    oldest: datetime | None


class _PendingBatch(NamedTuple):
    id: int
    organization: str
    visits: int
    received_at: str
    body: bytes


_Unreadable = list[tuple[_PendingBatch, LakeDamaged]]


def enqueue(manifest: Manifest, visits: Collection[tuple[str, Packed]], now: datetime) -> None:
    """Store packed visits, each pack with its organization. They are durable when this returns.

    Raises ZoneChanged; then none was stored.
    """
    rows = [
        (organization, packed.visits, format_time(now), packed.body, packed.zone) for organization, packed in visits
    ]
    with manifest.transaction() as db:
        for organization, packed in visits:
            check_zone_is(db, organization, packed.zone)
        ((last,),) = db.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'pending'").fetchall()
        if not manifest.session:
            chance = secrets.randbits(8)  # so that copies of one manifest that are opened at once go on apart
            manifest.session = max(int(time.time()) << 8, session_of(last) + 1) + chance
        first = max(int(last) + 1, manifest.session << SESSION_BITS)  # higher than any id before
        db.executemany(
            "INSERT INTO pending (id, organization, visits, received_at, body, zone) VALUES (?, ?, ?, ?, ?, ?)",
            [(first + number, *row) for number, row in enumerate(rows)],
        )


def backlog(manifest: Manifest) -> Backlog:
    """The pending visits of all organizations."""
    ((visits, oldest),) = manifest.rows("SELECT coalesce(sum(visits), 0), min(received_at) FROM pending")
    return Backlog(visits, parse_time(oldest))


def flush_all(lake: Lake) -> int:
    """Move all pending visits into Parquet files; return how many were moved.

    Visits that cannot be read stay pending. Once all others were moved, LakeDamaged is raised for them, or NewerVersion
    if all of them were packed by a newer version of this program.
    """
    ((latest,),) = lake.manifest.rows("SELECT max(id) FROM pending")
    moved, last, unreadable = 0, 0, _Unreadable()
    while batches := _oldest(lake.manifest, last, latest):
        last = batches[-1].id
        try:
            moved += _flush(lake, batches, unreadable)
        except Conflict:
            break  # another process moves them
    _raise_for(unreadable)
    return moved


def check_pending(manifest: Manifest, organization: str = "") -> None:
    """Check the pending visits of one organization, or of all. Raises like `flush_all`, but moves nothing."""
    rows = manifest.rows(
        "SELECT id, organization, visits, received_at, body FROM pending WHERE ? IN ('', organization)", [organization]
    )
    unreadable = _Unreadable()
    for row in rows:
        _read(_PendingBatch(*row), unreadable)
    _raise_for(unreadable)


def _raise_for(unreadable: _Unreadable) -> None:
    """Raise LakeDamaged if a batch is damaged, NewerVersion if a newer version of this program wrote one."""
    damaged = [batch for batch, error in unreadable if not isinstance(error, NewerVersion)]
    if damaged:
        visits, ids = sum(batch.visits for batch in damaged), ", ".join(str(batch.id) for batch in damaged[:5])
        organizations = ", ".join(sorted({batch.organization for batch in damaged}))
        raise LakeDamaged(
            f"{plural(visits, 'visit')} of {organizations} without a file yet cannot be read (in the "
            f"manifest's table pending: {ids}); restore the lake from a backup."
        )
    if unreadable:
        raise unreadable[0][1]


def _oldest(manifest: Manifest, last: int, latest: int | None) -> list[_PendingBatch]:
    """The oldest batches with ids after `last` and up to `latest`, as many as one transaction moves, of one session."""
    rows = manifest.rows(
        "SELECT id, organization, visits, received_at, body FROM "
        "(SELECT *, sum(visits) OVER (ORDER BY id) AS so_far FROM pending WHERE id > ? AND id <= ?) "
        "WHERE so_far - visits < ? ORDER BY id",
        [last, latest, MAX_VISITS_PER_TRANSACTION],
    )
    batches = [_PendingBatch(*row) for row in rows]
    return [batch for batch in batches if session_of(batch.id) == session_of(batches[0].id)]


def _read(batch: _PendingBatch, unreadable: _Unreadable) -> Unpacked | None:
    try:
        return unpack(batch.body)
    except LakeDamaged as error:
        unreadable.append((batch, error))
        return None


def _flush(lake: Lake, batches: list[_PendingBatch], unreadable: _Unreadable) -> int:
    """Move batches into files, those of one organization after the other; return how many visits they have.

    If some are found to be unreadable, all others are moved.
    """
    if not batches:
        return 0
    first, last, known = batches[0], batches[-1], len(unreadable)
    moved = PendingRange(first.id, last.id, first.received_at, last.received_at)
    content = str(first.id)  # what else is moved then is among what the next attempt moves
    landings, publishers = list[Landing](), list[Publisher]()
    by_organization = attrgetter("organization")
    try:
        for organization, own in groupby(sorted(batches, key=by_organization), by_organization):
            pieces = _tables_of([*own], unreadable)
            if len(unreadable) == known:
                landings.append(Landing(lake, organization, content, moved))
                landings[-1].stage(_sorted(pa.concat_tables(pieces)))
                publishers.append(landings[-1].publisher())
        if len(unreadable) == known:
            _move(lake.manifest, [batch.id for batch in batches], moved, landings, publishers)
            return sum(batch.visits for batch in batches)
    finally:
        for landing in landings:
            landing.discard()
    skipped = {batch.id for batch, _ in unreadable}
    return _flush(lake, [batch for batch in batches if batch.id not in skipped], unreadable)


def _tables_of(batches: list[_PendingBatch], unreadable: _Unreadable) -> list[pa.Table]:
    pieces = zip(batches, accumulate(batch.visits for batch in batches), strict=True)
    tables = []
    for _, piece in groupby(pieces, lambda one: one[1] // PIECE_VISITS):
        if parts := [part for batch, _ in piece if (part := _read(batch, unreadable))]:
            tables.append(table_of(parts))
    return tables


def _sorted(visits: pa.Table) -> pa.Table:
    """Visits in the order in which a file has them. Each text column gets one dictionary."""
    names = [name for name, _ in _ORDER]
    keys = visits.select(names).cast(pa.schema([VISITS_OF_DAYS.field(name) for name in names]))
    return visits.unify_dictionaries().combine_chunks().take(pc.sort_indices(keys, _ORDER))


def _move(
    manifest: Manifest, ids: list[int], moved: PendingRange, landings: list[Landing], publishers: list[Publisher]
) -> None:
    with manifest.transaction() as db:
        for landing in landings:
            check_zone_is(db, landing.organization, landing.zone)
        for key in ids:
            if db.execute("DELETE FROM pending WHERE id = ?", [key]).rowcount != 1:
                raise Conflict("these visits were moved by another process; try again.")
        for landing in landings:
            note_received(db, landing.organization, *moved.times)
            arrived = Arrivals("report", "", landing.arrived)
            note_arrivals(db, landing.organization, arrived, datetime.fromisoformat(moved.last_at))
        insert_files(db, [file for publish in publishers for file in publish()])
