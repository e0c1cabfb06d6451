"""Rewriting of live files: what compaction, erasure and reclassification share."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date
from itertools import groupby
from typing import Final, NamedTuple

import duckdb

from data.errors import LakeDamaged
from data.store.lake import Lake
from data.store.manifest import LandedFile

MEMORY: Final = "512MB"
"""What an engine may use before it spills into the lake's staging folder."""


class Partition(NamedTuple):
    """The visits of one organization on one UTC day."""

    organization: str
    day: date


def partitions(lake: Lake, organization: str) -> Iterator[tuple[Partition, list[LandedFile]]]:
    """Every day of an organization that has visits, oldest first, with its live files."""
    files = sorted(lake.manifest.live_files(organization), key=lambda file: file.day)
    for day, of_day in groupby(files, lambda file: file.day):
        yield Partition(organization, day), list(of_day)


@contextmanager
def rewriting_engine(lake: Lake) -> Iterator[duckdb.DuckDBPyConnection]:
    """An engine for visits, which hold no addresses. Raises LakeDamaged for what it cannot read or finish."""
    with closing(duckdb.connect()) as engine:
        engine.execute("SET TimeZone = 'UTC'")
        engine.execute("SET memory_limit = $memory", {"memory": MEMORY})
        engine.execute("SET temp_directory = $folder", {"folder": str(lake.staging / "engine")})
        try:
            yield engine
        except duckdb.Error as error:
            raise LakeDamaged(f"visits cannot be read or rewritten: {' '.join(str(error).split())}") from error
