"""Pending visits: acknowledged and stored in the manifest, but not yet in a Parquet file."""

from collections.abc import Collection
from datetime import datetime
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from data.errors import Conflict, LakeDamaged, NewerVersion
from data.manifest.manifest import Manifest
from data.manifest.pending import PendingBatch, PendingPack, ReportedVisits
from data.store.footers import PendingRange
from data.store.lake import Lake
from data.store.landing import Landing
from data.store.packing import PackedVisits, UnpackedVisits, table_of, unpack
from data.text import plural
from data.visits import VISITS_OF_DAYS

MAX_VISITS_PER_TRANSACTION: Final = 20_000
"""Maximum number of visits moved in one transaction, which limits memory to about 60 MB even if all strings are
distinct (50,000 visits would take 112 MB)."""
PIECE_VISITS: Final = 5_000
"""Approximate number of visits unpacked at a time: Python objects take many times as much memory as a table."""
_ORDER: Final = [(name, "ascending") for name in ("day", "short_code", "visited_at")]


_DamagedBatches = list[tuple[PendingBatch, LakeDamaged]]


def enqueue(manifest: Manifest, visits: Collection[tuple[str, PackedVisits]], now: datetime) -> None:
    """Store packed visits durably, each pack with its organization.

    Raises ZoneChanged, storing nothing, if an organization's zone has changed since its visits were packed.
    """
    packs = [
        PendingPack(organization, packed.visits, packed.body, packed.zone, packed.excluded)
        for organization, packed in visits
    ]
    manifest.pending.add(packs, now)


def flush_all(lake: Lake) -> int:
    """Move all pending visits into Parquet files; return how many were moved.

    Visits that cannot be read stay pending, and moving stops once another process moves the same visits. Afterwards,
    this raises LakeDamaged for unreadable visits, or NewerVersion if a newer version of this program packed them all.
    """
    latest = lake.manifest.pending.latest_id()
    moved, last, unreadable = 0, 0, _DamagedBatches()
    while batches := lake.manifest.pending.oldest(last, latest, MAX_VISITS_PER_TRANSACTION):
        last = batches[-1].id
        try:
            moved += _flush(lake, batches, unreadable)
        except Conflict:
            break  # another process moves them
    _raise_for(unreadable)
    return moved


def check_pending(manifest: Manifest, organization: str = "") -> None:
    """Check the pending visits of one organization, or of all, without moving them. Raises the exceptions of
    `flush_all`.
    """
    unreadable = _DamagedBatches()
    for batch in manifest.pending.batches(organization):
        _read(batch, unreadable)
    _raise_for(unreadable)


def _raise_for(unreadable: _DamagedBatches) -> None:
    """Raise LakeDamaged if a batch is damaged; else NewerVersion if a newer version of this program packed a batch."""
    damaged = [batch for batch, error in unreadable if not isinstance(error, NewerVersion)]
    if damaged:
        visits, ids = sum(batch.visits for batch in damaged), ", ".join(str(batch.id) for batch in damaged[:5])
        organizations = ", ".join(sorted({batch.organization for batch in damaged}))
        raise LakeDamaged(
            f"{plural(visits, 'pending visit')} of {organizations} cannot be read (in the "
            f"manifest's table pending: {ids}); restore the lake from a backup."
        )
    if unreadable:
        raise unreadable[0][1]


def _read(batch: PendingBatch, unreadable: _DamagedBatches) -> UnpackedVisits | None:
    try:
        return unpack(batch.body)
    except LakeDamaged as error:
        unreadable.append((batch, error))
        return None


def _flush(lake: Lake, batches: list[PendingBatch], unreadable: _DamagedBatches) -> int:
    """Move batches into files, in one transaction for all organizations; return the number of visits moved.

    Unreadable batches are skipped.
    """
    if not batches:
        return 0
    first, last, known = batches[0], batches[-1], len(unreadable)
    moved = PendingRange(first.id, last.id, first.received_at, last.received_at)
    content = str(first.id)  # if interrupted, the next attempt begins with the same row and moves at least these visits
    landings, landed = list[Landing](), list[ReportedVisits]()
    by_organization = attrgetter("organization")
    try:
        for organization, own in groupby(sorted(batches, key=by_organization), by_organization):
            pieces = _tables_of([*own], unreadable)
            if len(unreadable) == known:
                landings.append(Landing(lake, organization, content, moved))
                landings[-1].stage(_sort(pa.concat_tables(pieces)))
                zone, arrived = landings[-1].zone, landings[-1].arrived
                landed.append(ReportedVisits(organization, zone, arrived, landings[-1].prepare_move()))
        if len(unreadable) == known:
            lake.manifest.pending.land([batch.id for batch in batches], moved.times, landed)
            return sum(batch.visits for batch in batches)
    finally:
        for landing in landings:
            landing.discard()
    skipped = {batch.id for batch, _ in unreadable}
    return _flush(lake, [batch for batch in batches if batch.id not in skipped], unreadable)


def _tables_of(batches: list[PendingBatch], unreadable: _DamagedBatches) -> list[pa.Table]:
    pieces = zip(batches, accumulate(batch.visits for batch in batches), strict=True)
    tables = []
    for _, piece in groupby(pieces, lambda one: one[1] // PIECE_VISITS):
        if parts := [part for batch, _ in piece if (part := _read(batch, unreadable))]:
            tables.append(table_of(parts))
    return tables


def _sort(visits: pa.Table) -> pa.Table:
    """Sort visits for a file, with one dictionary for each string column."""
    names = [name for name, _ in _ORDER]
    keys = visits.select(names).cast(pa.schema([VISITS_OF_DAYS.field(name) for name in names]))
    return visits.unify_dictionaries().combine_chunks().take(pc.sort_indices(keys, _ORDER))
