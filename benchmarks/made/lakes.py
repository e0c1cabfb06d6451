"""Builds lakes of generated visits in the same state as after an import, without writing the logs first.

Lakes are kept, and an interrupted build is resumed.
"""

import hashlib
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from benchmarks.made import DAYS, LAST_DAY, ORGANIZATION
from benchmarks.made.drawing import BROWSERS, Days, Drawing
from benchmarks.servers import TRAFFIC
from data import Lake
from data.links.exports import read_export
from data.links.links import change_links
from data.manifest.clock import format_time
from data.manifest.logs import Batch
from data.store.landing import Landing
from service.demo.sample import Sample

_THEN: Final = datetime(2026, 11, 1, tzinfo=UTC)


def build(root: Path, visits: int, organizations: int = 1) -> Lake:
    """Return a compacted lake with this number of visits; add those that an existing lake lacks."""
    lake = Lake(root, create=True)
    for name, share in shares(visits, organizations).items():
        land_organization(lake, name, Sample(share, LAST_DAY, DAYS))
    compact(lake)
    return lake


def compact(lake: Lake) -> None:
    """Merge, judge and count the landed visits."""
    subprocess.run([str(TRAFFIC), "compact", "--lake", str(lake.root)], check=True, capture_output=True)


def settle_copy(lake: Lake) -> None:
    """Verify the files of a copied lake, and backdate the verification by an hour.

    Otherwise, a server would verify them on first use and consider their days active: it merges and counts only days
    that have not changed for ten minutes.
    """
    now = datetime.now(UTC)
    for file in lake.manifest.files.due_for_check(now):
        lake.recheck(file)
    with closing(sqlite3.connect(lake.root / "manifest.sqlite")) as db, db:
        db.execute("UPDATE files SET checked_at = ?", [format_time(now - timedelta(hours=1))])


def shares(visits: int, organizations: int) -> dict[str, int]:
    """Return each organization's number of visits: the average for ORGANIZATION, and larger or smaller numbers for the
    others.
    """
    mean = visits // organizations
    others = [1 / (rank + 1) ** 0.8 for rank in range(organizations - 1)]
    rest = {f"org-{n + 1}": round((visits - mean) * weight / sum(others)) for n, weight in enumerate(others)}
    return {ORGANIZATION: mean, **rest}


def digest(lake: Lake, organization: str = ORGANIZATION) -> str:
    """Return a digest of all visits of an organization, independent of their order and files."""
    files = lake.visit_files(organization, date.min, date.max)
    ((mixed,),) = duckdb.execute(
        "SELECT bit_xor(md5_number_lower(concat_ws(chr(0), visited_at, domain, path, status, user_agent, "
        "country, referrer, utm_source, visitor, bot_category))) FROM read_parquet($files)",
        {"files": files},
    ).fetchall()
    return f"{mixed:016x}"


def land_organization(
    lake: Lake,
    name: str,
    sample: Sample,
    browsers: int = BROWSERS,
    change: Callable[[pa.Table], pa.Table] = lambda visits: visits,
) -> None:
    """Land the visits (after applying `change` to each part) and the links that the organization still lacks."""
    drawing = Drawing(sample, name, browsers)
    known = {batch.sha256 for batch in lake.manifest.logs.batches(name, "")}
    for days in drawing.parts():
        batch = _batch(name, sample, days)
        if batch.sha256 not in known:
            _land(lake, name, batch, change(drawing.visits(days)))
    drawing.close()
    if lake.manifest.links.live(name).whole is None:
        links = lake.staging / "links.csv"
        sample.write_links(links)
        change_links(lake, name, read_export(links, _THEN).links, _THEN, replace=True)
        links.unlink()


def _batch(name: str, sample: Sample, days: Days) -> Batch:
    """Return the batch for these days, identified by the parameters of the draw instead of a log's content."""
    about = f"{sample} {name} {days[0]['day']} {days[-1]['day']}"
    visits = sum(day["visits"] for day in days)
    sha256 = hashlib.sha256(about.encode()).hexdigest()
    return Batch(0, "", sha256, len(about), len(about), visits, imported_at=format_time(_THEN))


def _land(lake: Lake, name: str, batch: Batch, visits: pa.Table) -> None:
    landing = Landing(lake, name)
    try:
        landing.stage(visits)
        landing.commit(batch, None)
    finally:
        landing.discard()
