"""Visits that were acknowledged and wait for their Parquet file, in the manifest; one transaction moves them."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

import pyarrow as pa

from data.errors import Outdated
from data.lake import Lake
from data.landing import Landing
from data.manifest import Manifest, insert_files, time_text

MOST_AT_ONCE: Final = 500_000
"""Visits that one transaction moves: what is held in memory meanwhile."""


class Waiting(NamedTuple):
    """What waits at the moment."""

    visits: int
    oldest: datetime | None


def keep(manifest: Manifest, visits: Mapping[str, pa.Table], now: datetime) -> None:
    """Keep the visits of each organization, tables of `day` and the columns of VISITS. Durable on return."""
    rows = [(name, len(table), time_text(now), _bytes_of(table)) for name, table in visits.items()]
    with manifest.transaction() as db:
        db.executemany("INSERT INTO pending (organization, visits, received_at, body) VALUES (?, ?, ?, ?)", rows)


def waiting(manifest: Manifest) -> Waiting:
    """How many visits wait, and since when the oldest does."""
    ((visits, oldest),) = manifest.rows("SELECT coalesce(sum(visits), 0), min(received_at) FROM pending")
    return Waiting(visits, datetime.fromisoformat(oldest) if oldest else None)


def flush_all(lake: Lake) -> int:
    """Move every visit that waits now into Parquet files; how many they were."""
    ((latest,),) = lake.manifest.rows("SELECT max(id) FROM pending")
    total = 0
    while moved := _flush(lake, latest):
        total += moved
    return total


def _flush(lake: Lake, latest: int | None) -> int:
    """Move the visits that have waited longest; 0 when none does, or when somebody else moves them."""
    rows = lake.manifest.rows(
        "SELECT id, organization, visits, body FROM (SELECT *, sum(visits) OVER (ORDER BY id) AS so_far FROM pending) "
        "WHERE id <= ? AND so_far - visits < ? ORDER BY id",
        [latest, MOST_AT_ONCE],
    )
    if not rows:
        return 0
    tables = defaultdict(list)
    for _, organization, _, body in rows:
        tables[organization].append(pa.ipc.open_stream(body).read_all())
    landings = [Landing(lake, organization) for organization in tables]
    try:
        for landing, parts in zip(landings, tables.values(), strict=True):
            order = [(name, "ascending") for name in ("day", "short_code", "visited_at")]
            landing.stage(pa.concat_tables(parts).sort_by(order))
        _move(lake.manifest, [key for key, *_ in rows], landings)
    except Outdated:
        return 0
    finally:
        for landing in landings:
            landing.discard()
    return sum(visits for _, _, visits, _ in rows)


def _move(manifest: Manifest, keys: list[int], landings: list[Landing]) -> None:
    places = [landing.placing() for landing in landings]
    with manifest.transaction() as db:
        for key in keys:
            if db.execute("DELETE FROM pending WHERE id = ?", [key]).rowcount != 1:
                raise Outdated("somebody else moves these visits; try again.")
        insert_files(db, [file for place in places for file in place()])


def _bytes_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
